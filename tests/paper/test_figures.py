"""Figures come as PNG and SVG, and as the runs say."""

import numpy as np
import pytest

from censored_gp.paper import figures, shares
from censored_gp.paper.captions import CAPTIONS
from censored_gp.paper.models import MODELS
from censored_gp.paper.runs import Study, complete

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_window():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs in which model k covers k tenths, and the truth lies evenly."""
    made = tmp_path_factory.mktemp("runs")

    def pretended(run):
        covered = MODELS.index(run["model"]) / 10
        return dict.fromkeys(shares.STUDY.results, 0.1) | {"coverage": covered}

    study = Study(shares.STUDY.name, shares.STUDY.settings, shares.STUDY.results, pretended)
    complete(study, shares.runs(2), made, jobs=1)
    return made


def test_every_figure_has_a_caption():
    assert set(figures.DRAWN) == set(CAPTIONS)


@pytest.mark.slow
def test_figures_are_written_in_both_formats_and_alike_each_time(folder):
    names = ("contributions", "overlap", "shares")
    first = [path.read_bytes() for path in figures.draw_all(folder, names)]
    again = [path.read_bytes() for path in figures.draw_all(folder, names)]
    assert first == again
    for name in names:
        assert (folder / f"{name}.png").stat().st_size > 10_000
        assert (folder / f"{name}.svg").read_text().startswith("<?xml")


def test_calibration_shows_what_the_runs_say(folder):
    left, right = figures.calibration(folder).axes
    for k, line in enumerate(left.lines[:6]):
        assert line.get_label() == MODELS[k]
        np.testing.assert_allclose(line.get_ydata(), np.linspace(0, 1, 11))
    heights = [line.get_ydata()[0] for line in right.lines if len(line.get_ydata()) == 5]
    np.testing.assert_allclose(heights[0], 0.0)
    assert {round(float(h), 3) for h in heights} >= {0.1, 0.2, 0.3, 0.4, 0.5}


def test_models_are_told_apart_without_colours():
    styles = [figures._style(model) for model in MODELS]
    assert len({(style["marker"], style["ls"]) for style in styles}) == 6
    assert len({style["color"] for style in styles}) == 6


def test_the_censoring_figure_needs_real_data(data_folder):
    (ax,) = figures.censoring(data_folder).axes
    truth, seen = (line.get_ydata() for line in ax.lines[:2])
    assert len(truth) == 168
    assert np.all(seen <= truth)
    assert np.any(seen < truth)
