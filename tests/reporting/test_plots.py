"""Plots show what they are given: every kind of observation in its own way."""

import itertools
import sys

import numpy as np
import pytest

from censored_gp import reporting
from censored_gp.data.observations import Observations

pytest.importorskip("matplotlib")

X = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
SEEN = Observations.from_bounds(
    {"a": [3.0, 1.0, np.nan, 4.0, np.nan], "b": np.zeros(5)},
    {"a": [3.0, np.nan, 2.0, 6.0, np.nan], "b": np.zeros(5)},
)


class Straight:
    """A prediction along a line."""

    names = ("a", "b")
    mean = np.column_stack([X, -X])

    def interval(self, probability):
        return self.mean - probability, self.mean + probability


# Viénot, Brettel and Mollon (1999): what is left of colours without red or without green cones.
BLIND = {
    "protan": [[0.112, 0.888, 0.0], [0.112, 0.888, 0.0], [0.004, -0.004, 1.0]],
    "deutan": [[0.293, 0.707, 0.0], [0.293, 0.707, 0.0], [-0.021, 0.021, 1.0]],
}


@pytest.mark.parametrize("kind", BLIND)
def test_the_colour_blind_tell_apart_what_is_drawn_together(kind):
    to_rgb = pytest.importorskip("matplotlib.colors").to_rgb
    for pair in itertools.combinations(["prediction", "censored", "exact"], 2):
        rgb = np.array([to_rgb(reporting.COLOURS[name]) for name in pair])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen = np.clip(linear @ np.transpose(BLIND[kind]), 0, 1) ** (1 / 2.2)
        assert np.abs(np.diff(seen, axis=0)).max() > 0.15, pair


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def test_each_kind_of_observation_is_drawn_apart(ax):
    assert reporting.plot_observations(SEEN, X, "a", ax=ax) is ax
    assert labels(ax) == ["exact", "at least", "at most", "between", "missing"]
    exact, right, left, between = ax.collections
    for points, expected in ((exact, (3, 3)), (right, (1, 1)), (left, (2, 2))):
        np.testing.assert_array_equal(points.get_offsets(), [expected])
    np.testing.assert_array_equal(between.get_segments(), [[[5, 4], [5, 6]]])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [4])


def test_kinds_that_do_not_occur_are_not_in_the_legend(ax):
    assert labels(reporting.plot_observations(SEEN, X, 1, ax=ax)) == ["exact"]


def test_a_prediction_is_drawn_in_the_order_of_x(ax):
    reporting.plot_prediction(Straight(), X, "b", probability=0.5, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [-1, -2, -3, -4, -5])
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == -5.5
    assert band[:, 1].max() == -0.5
    assert labels(ax) == ["predicted, 50% interval", "predicted"]


def test_an_output_is_drawn_with_all_that_is_known(ax):
    truth = Straight.mean + 1
    assert reporting.plot_output(Straight(), X, 0, observations=SEEN, truth=truth, ax=ax) is ax
    assert {"truth", "predicted", "exact", "at least", "missing"} <= set(labels(ax))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 3, 4, 5, 6])
    assert ax.get_title(loc="left") == "a"


def test_without_a_probability_there_is_no_band(ax):
    reporting.plot_output(Straight(), X, probability=None, ax=ax)
    assert not ax.collections


@pytest.mark.parametrize("output", ["c", 2, -1, True])
def test_an_unknown_output_is_refused(ax, output):
    with pytest.raises(ValueError, match=r"'a', 'b'.*0 to 1"):
        reporting.plot_prediction(Straight(), X, output, ax=ax)


def test_axes_are_made_when_none_are_given():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    made = reporting.plot_observations(SEEN, X)
    assert made.figure is pyplot.gcf()
    pyplot.close(made.figure)


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "censored-gp\[plot\]"'):
        reporting.new_axes()
