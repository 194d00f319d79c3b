"""Plots of a fitted model show its numbers."""

import warnings

import numpy as np
import pytest

from censored_gp import CensoredGP, reporting
from censored_gp.inference.posterior import Posterior
from censored_gp.prediction import metrics
from censored_gp.reporting.plots import predict_training, training_axis
from support import fitted

pytest.importorskip("matplotlib")


def test_the_posterior_shows_every_kind_of_cell_apart(model, ax):
    assert reporting.plot_posterior(model, fitted.NAMES[0], ax=ax) is ax
    labels = ax.get_legend_handles_labels()[1]
    assert labels[-5:] == ["exact", "at least", "at most", "between", "missing"]
    shapes = {len(c.get_paths()[0].vertices) for c in ax.collections[1:3]}
    assert len(shapes) == 2, "censored cells have another shape"
    ax.figure.canvas.draw()


def test_the_posterior_shows_some_rows_if_asked(model, ax):
    truth = fitted.world().demand
    reporting.plot_posterior(model, 1, rows=slice(24, 48), truth=truth, ax=ax)
    line = next(line for line in ax.lines if line.get_label() == "truth")
    np.testing.assert_array_equal(line.get_ydata(), truth[24:48, 1])


def test_components_add_up_to_the_latent_function(model):
    inputs = model.training_.inputs[::7]
    mean, _ = model.posterior_.components("mean", inputs)
    whole, spread = predict_training(model, slice(None, None, 7)).latent()
    constant = whole["mean"] - mean.sum(axis=0)
    assert np.ptp(constant, axis=0).max() < 1e-8
    assert spread["mean"].shape == mean.shape[1:]


def test_a_single_component_has_the_variance_of_the_latent_function(model):
    inputs, q = model.training_.inputs[::7], model.posterior_
    mode = Posterior(q.model, q.inducing, q.weights, q.jitter)
    mean, variance = mode.components("scale", inputs)
    whole, spread = mode.latent(inputs)
    np.testing.assert_allclose(variance[0], spread["scale"], rtol=1e-8)
    assert np.ptp(mean[0] - whole["scale"], axis=0).max() < 1e-8


def test_a_daily_component_is_drawn_over_a_day_and_is_periodic(model, ax):
    assert reporting.plot_component(model, 0, 0, ax=ax).get_title(loc="left") == "daily"
    x, y = ax.lines[0].get_data()
    assert (x[0], x[-1]) == (0, 24)
    np.testing.assert_allclose(y[0], y[-1], atol=1e-6)


def test_every_component_has_its_axes_and_its_label(model):
    axes = reporting.require_matplotlib().figure.Figure().subplots(1, 3)
    drawn = reporting.plot_components(model, 1, axes=axes)
    assert [ax.get_title(loc="left") for ax in drawn] == ["daily", "slow", "rain"]
    assert drawn[2].lines[0].get_xdata().min() == fitted.world().rain.min()
    drawn[0].figure.canvas.draw()
    with pytest.raises(ValueError, match=r"axes.*3.*got 2"):
        reporting.plot_components(model, 1, axes=axes[:2])


def test_what_does_not_exist_is_refused(model, ax):
    with pytest.raises(ValueError, match=r"kernel.*0 to 2.*got 3"):
        reporting.plot_component(model, 3, ax=ax)
    with pytest.raises(ValueError, match=r"role.*'mean', 'scale'"):
        reporting.plot_component(model, 0, role="shape", ax=ax)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:9 cell.s. with an upper bound")
def test_lost_demand_is_drawn_as_it_is_told(model, ax):
    told = model.lost_demand(by="hour", samples=500)
    bars = reporting.plot_lost_demand(model, "hour", ax=ax).patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], told["lost"])
    assert reporting.plot_lost_demand(model, "weekday", share=True, ax=ax).get_ylabel() == (
        "share of demand lost"
    )


def test_transforms_of_a_right_prediction_are_flat_and_intervals_hold(ax):
    u = (np.arange(1000.0)[:, None] + 0.5) / 1000
    pit = metrics.PIT(u, u)
    np.testing.assert_allclose(metrics.pit_histogram(pit), 1.0)
    np.testing.assert_allclose(metrics.pit_coverage(pit, [0.2, 0.9]), [0.2, 0.9])
    assert len(reporting.plot_pit(pit, ax=ax).patches) == 10
    held = reporting.plot_coverage(pit, ax=ax).lines[-1]
    np.testing.assert_allclose(held.get_ydata(), held.get_xdata(), atol=1e-9)


def test_transforms_of_one_output_can_be_drawn_alone(ax):
    pit = metrics.PIT(np.array([[0.1, 0.9]] * 4), np.array([[0.1, 0.9]] * 4))
    heights = [bar.get_height() for bar in reporting.plot_pit(pit, 1, bins=2, ax=ax).patches]
    np.testing.assert_allclose(heights, [0, 2])
    with pytest.raises(ValueError, match=r"output.*got 2"):
        reporting.plot_coverage(pit, 2, ax=ax)


def test_without_a_number_among_the_inputs_rows_are_numbered():
    table = {"zone": ["fan", "basin"] * 10, "lead": np.arange(20.0)}
    model = CensoredGP(heteroscedastic=False, max_iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table, outputs="lead", inputs="zone", capacity=18.0)
    axis = training_axis(model)
    assert axis.label == "row"
    np.testing.assert_array_equal(axis.values, np.arange(20))
