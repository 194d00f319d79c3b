"""Kernels chosen from the inputs: the cycles that the data show, and no others."""

import dataclasses

import numpy as np
import pytest

from censored_gp import CGP, CensoredGP
from censored_gp.data.inputs import read_inputs
from censored_gp.data.observations import Observations
from censored_gp.estimator import training
from censored_gp.estimator.analysis import compare, diagnose
from censored_gp.kernels import RBF, Brownian, Periodic, White
from censored_gp.likelihoods import Exponential, Gaussian, LogNormal, Parameter, Poisson
from censored_gp.model.inducing import KNOTS_A_LENGTH
from censored_gp.model.model import Cycle, Design
from censored_gp.model.starting_values import (
    coefficients,
    default_kernels,
    default_nugget,
    design_for,
    spare_kernels,
    starting_model,
    starting_models,
    uncensored_values,
)
from censored_gp.prediction.predictive import central_interval


def hours(count, step=1, start="2024-03-01T00"):
    return np.datetime64(start, "h") + step * np.arange(count)


def chosen(X, role="mean"):
    inputs, columns = read_inputs(X)
    return default_kernels(columns, inputs, role)


def periods(kernels):
    return [k.period for k in kernels if isinstance(k, Periodic)]


@pytest.mark.parametrize(
    ("count", "step", "expected"),
    [
        (24 * 30, 1, [24.0, 168.0]),
        (24 * 5, 1, [24.0]),  # too short for a week to repeat
        (120, 24, [168.0]),  # days cannot show an hour
        (30, 1, []),
        (3 * 365, 24, [168.0, 8766.0]),
    ],
)
def test_cycles_are_those_resolved_and_repeated(count, step, expected):
    assert periods(chosen(hours(count, step))) == expected


def test_starting_lengthscales_can_follow_an_hourly_pattern():
    day, week, slow = chosen(hours(24 * 30))
    # 2.5 hours of phase each: correlated with the next hour, not with the next part of the day.
    for kernel in (day, week):
        assert kernel.lengthscale * kernel.period / (2 * np.pi) == pytest.approx(2.5)
    assert 48 < slow.lengthscale < 240


def test_every_other_column_gets_a_part_of_its_own():
    frame = {
        "time": hours(24 * 30),
        "rain": np.tile([0.0, 1.0], 360),
        "same": np.ones(720),
    }
    parts = chosen(frame)
    assert [k.columns for k in parts if isinstance(k, RBF)] == [(0,), (1,)]


def test_numbers_without_a_time_share_one_part():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 100.0]
    (kernel,) = chosen(X)
    assert kernel.columns == (0, 1, 2)
    np.testing.assert_allclose(kernel.lengthscale, np.sqrt(3) * X.std(axis=0))


def test_noise_follows_the_shortest_cycle_only():
    assert periods(chosen(hours(24 * 30), "scale")) == [24.0]
    assert len(chosen(hours(24 * 30), "scale")) == 1
    (slow,) = chosen(hours(30), "scale")
    assert isinstance(slow, RBF)


def test_a_wave_in_plain_numbers_is_found(quickly):
    """From lengthscales that are too long a fit ends where the wave is taken for noise."""
    x = np.linspace(0, 14, 240)[:, None]
    y = np.sin(2 * np.pi * x[:, 0]) + 0.1 * np.cos(37 * x[:, 0])
    assert CGP(random_state=0).fit(x, y).score(x, y) > 0.9


def spare(X, most=256):
    inputs, columns = read_inputs(X)
    return spare_kernels(columns, inputs, most)


def test_spare_parts_of_time_are_fast_slow_and_between():
    fast, between, slow = (float(kernel.lengthscale) for kernel in spare(hours(24 * 30)))
    assert fast == 4.0
    assert slow == pytest.approx(float(chosen(hours(24 * 30))[-1].lengthscale))
    assert between == pytest.approx(np.sqrt(fast * slow))


def test_a_spare_part_is_longer_where_rows_are_many_for_the_inducing_inputs():
    lengths = [float(spare(hours(count))[0].lengthscale) for count in (2048, 4096, 2**18)]
    np.testing.assert_allclose(lengths, [4.0, 8.0, 8.0 * KNOTS_A_LENGTH])
    assert spare(hours(4096), most=4) == ()


def test_a_spare_part_looks_at_time_alone():
    table = {"rain": np.arange(720.0) % 7, "when": hours(720)}
    assert {kernel.columns for kernel in spare(table)} == {(1,)}


def test_nothing_is_spare_without_a_time_or_in_short_ones():
    assert spare(np.arange(300.0)[:, None]) == ()
    assert spare(hours(24)) == ()
    assert spare(hours(1)) == ()


@pytest.mark.parametrize("kernels", [None, RBF("1d")])
def test_only_kernels_that_nobody_has_chosen_may_change(kernels):
    model, X = CGP(kernels=kernels), hours(720)
    data = training.read_training(
        model, {"time": X, "y": np.arange(720.0)}, outputs="y", time="time"
    )
    start = starting_model(training.design_of(model, data), data.observations.values())
    task = training.make_task(model, data, [start], data.observations)
    assert (bool(task.spare), task.explore) == (kernels is None, kernels is None)


@pytest.mark.slow
def test_drift_is_not_lost_to_what_strays_for_an_afternoon():
    """Days of which nothing was seen are guessed from the drift around them."""
    rng = np.random.default_rng(1)
    days, hour = np.divmod(np.arange(50 * 8), 8)
    elapsed = 24 * days + hour
    alike = np.exp(-0.5 * ((elapsed[:, None] - elapsed) / 4.0) ** 2) + 1e-8 * np.eye(len(days))
    drift, daily = np.sin(days / 8.0), np.sin(hour / 2.0)
    stray = 0.5 * np.linalg.cholesky(alike) @ rng.normal(size=len(days))
    y = drift + daily + stray + 0.1 * rng.normal(size=len(days))
    when, hidden = np.datetime64("2024-03-01T08", "h") + elapsed, days % 8 == 5
    model = CGP().fit(when[~hidden], y[~hidden])
    assert len(model.posterior_.model.priors["mean"].kernels) == 4
    error = model.predict(when[hidden]) - (drift + daily)[hidden]
    assert np.mean(error**2) < 0.1 * np.var(drift)  # all of it, if one smooth part must be both


def nugget_over(X):
    inputs, columns = read_inputs(X)
    return default_nugget(columns, inputs)


@pytest.mark.parametrize(
    ("count", "step", "expected"),
    [
        (24 * 30, 1, Cycle(0, 24.0, 8)),
        (24 * 15, 1, Cycle(0, 24.0, 4)),  # few rows for each part of the day
        (24 * 5, 1, Cycle()),
        (3 * 365, 24, Cycle(0, 168.0, 7)),  # days of a week
        (30, 1, Cycle()),
    ],
)
def test_a_nugget_may_change_over_the_shortest_cycle_if_rows_tell(count, step, expected):
    assert nugget_over(hours(count, step)) == expected


def test_a_nugget_of_numbers_without_a_time_is_the_same_everywhere():
    assert nugget_over(np.arange(300.0)[:, None]) == Cycle()


def test_a_nugget_changes_only_over_hours_that_were_seen():
    """A bump that no row reaches would keep its starting size."""
    when = hours(24 * 90)
    day = when.astype(int) % 24
    assert nugget_over(when).bumps == 8
    assert nugget_over(when[(day >= 8) & (day <= 18)]) == Cycle()


def counts(scatter, rows=24 * 30, seed=0):
    """Hourly counts of a daily pattern; the log rate of hour h scatters by `scatter(h)`."""
    rng = np.random.default_rng(seed)
    hour = np.arange(rows) % 24
    rate = 2.0 + np.sin(2 * np.pi * hour / 24) + scatter(hour) * rng.normal(size=rows)
    return hour, rng.poisson(np.exp(rate)).astype(float)


def by_day(model):
    return np.abs(model.posterior_.model.priors["mean"].nugget.size[0, 0])


@pytest.mark.slow
def test_counts_that_scatter_more_in_the_morning_have_a_nugget_there():
    """And their intervals hold what they should, where a plain Poisson's hold far less."""
    hour, y = counts(lambda hour: np.where(hour < 12, 0.8, 0.0), rows=24 * 45)
    half = 2 * len(y) // 3
    when = hours(len(y))
    own, plain = (
        CGP("poisson", kernels=kernels).fit(when[:half], y[:half])
        for kernels in (None, [Periodic("1d", "3h")])
    )
    assert plain.posterior_.model.priors["mean"].nugget is None
    sizes = by_day(own)
    assert sizes[1:4].min() > 0.5 > 0.3 > sizes[5:].max()
    held = []
    for model in (own, plain):
        low, high = model.predict_distribution(when[half:]).interval(0.9)
        inside = (low[:, 0] <= y[half:]) & (y[half:] <= high[:, 0])
        held.append(inside[hour[half:] < 12].mean())
    assert held[0] > 0.85 > 0.7 > held[1]
    assert own.elbo_ > plain.elbo_ + 50


@pytest.mark.slow
def test_counts_that_scatter_no_more_than_chance_have_no_nugget():
    _, y = counts(lambda hour: 0.0)
    np.testing.assert_array_equal(by_day(CGP("poisson").fit(hours(len(y)), y)), 0.0)


@pytest.mark.slow
def test_what_a_censored_count_was_is_what_its_like_are_above_its_bound():
    """By a fit that did not see the cell, its prediction cut to the bound, and by draws.

    As a Gaussian it would be far narrower.
    """
    _, y = counts(lambda hour: np.where(hour < 12, 0.8, 0.0), seed=1)
    when, at = hours(len(y)), 24 * 3 + 6
    y[at], flags = 40.0, np.arange(len(y)) == at  # of some 20
    without = np.where(flags, np.nan, y)
    model, other = CGP("poisson").fit(when, y, censored=flags), CGP("poisson").fit(when, without)
    found, beside = model.imputation(flags), other.predict_distribution(np.repeat(when[at], 600))
    count = np.arange(40.0, 640.0)
    share = np.exp(beside.log_density(count[:, None]))[:, 0]
    share /= share.sum()
    mean = share @ count
    std = np.sqrt(share @ (count - mean) ** 2)
    first = np.searchsorted(np.cumsum(share), 0.05)
    low, high = count[[first, np.searchsorted(np.cumsum(share), 0.9 + share[:first].sum())]]
    drawn = found.sample(16000, random_state=0)
    for own, its in (
        ((found.mean, found.std, *found.interval(0.9)), 0.05),
        ((drawn.mean(), drawn.std(), *central_interval(drawn, 0.9)), 0.1),
    ):
        np.testing.assert_allclose(
            [np.ravel(each)[0] for each in own], [mean, std, low, high], rtol=its
        )


@pytest.mark.parametrize("engine", ["svi", "nuts"])
def test_other_engines_have_no_nugget(engine):
    inputs, columns = read_inputs(hours(24 * 5))
    settings = vars(CGP("poisson", engine=engine))
    assert design_for(settings, (Poisson(),), columns, inputs).nugget is None


@pytest.mark.parametrize(
    ("step", "outputs", "panel"), [(24, 6, True), (168, 6, True), (1, 6, False), (24, 4, False)]
)
def test_levels_of_a_panel_of_days_walk_together_and_each_by_itself(step, outputs, panel):
    inputs, columns = read_inputs(hours(90, step))
    design = design_for(vars(CensoredGP()), (Gaussian(),) * outputs, columns, inputs)
    kernels, model = design.kernels["mean"], starting_model(design, np.ones((90, outputs)))
    walks = [q for q, kernel in enumerate(kernels) if isinstance(kernel, Brownian)]
    assert [q in design.own for q in walks] == ([False, True] if panel else [])
    assert model.priors["mean"].own == design.own
    if panel:
        # What is each output's own is a copy of what they share.
        assert all(type(kernels[q]) is type(kernels[q - 1]) for q in design.own)
        assert isinstance(kernels[-1], White)


class OnlyScale(Exponential):
    """A family whose one parameter is a scale, by its role."""

    parameters = (Parameter("mean", "exp", "scale"),)


def test_a_family_without_a_mean_has_no_nugget():
    inputs, columns = read_inputs(hours(24 * 30))
    settings = vars(CGP("poisson"))
    assert design_for(settings, (OnlyScale(),), columns, inputs).nugget is None


@pytest.mark.parametrize(("rows", "outputs", "tried"), [(20, 4, 2), (400, 4, 1), (20, 2, 1)])
def test_where_cells_are_few_for_many_coefficients_one_function_is_tried_too(rows, outputs, tried):
    design = Design((Gaussian(),) * outputs, {"mean": (RBF(1.0), RBF(5.0))})
    models = starting_models(design, np.random.default_rng(0).normal(size=(rows, outputs)))
    widest = min(outputs, 3)
    assert [m.priors["mean"].mixing[0].shape[2] for m in models] == [1, widest][-tried:]
    chosen = dataclasses.replace(design, rank=3)
    assert len(starting_models(chosen, np.ones((4, outputs)))) == 1


def test_coefficients_do_not_count_rotations():
    """Four outputs of rank three are known by a 4 x 4 matrix of that rank: 9 numbers."""
    design = Design((Gaussian(),) * 4, {"mean": (RBF(1.0), RBF(5.0))}, rank=3)
    model = starting_model(design, np.random.default_rng(0).normal(size=(9, 4)))
    assert coefficients(model) == 18
    single = starting_model(dataclasses.replace(design, rank=1), np.zeros((9, 4)))
    assert coefficients(single) == 8


@pytest.mark.parametrize("shared", [True, False])
def test_with_few_cells_the_bound_less_the_coefficients_chooses_the_rank(shared):
    """Four outputs that are one function need one; four that have nothing in common need more."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 20)[:, None]
    waves = np.sin(X + (0.0 if shared else np.array([0.0, 1.0, 2.0, 4.0])) + np.zeros(4))
    y = waves + 0.1 * rng.normal(size=waves.shape)
    model = CensoredGP(kernels=RBF(1.5), heteroscedastic=False).fit(X, y)
    assert model.rank_["mean"] == ((1,) if shared else (3,))
    other = CensoredGP(kernels=RBF(1.5), heteroscedastic=False, rank=3 if shared else 1).fit(X, y)
    saved = 5  # of nine coefficients
    assert other.elbo_ < model.elbo_ + (saved if shared else -saved)


@pytest.mark.slow
def test_what_is_held_out_is_predicted_by_models_that_are_chosen_in_the_same_way(monkeypatch):
    X, y = np.arange(16.0)[:, None], np.random.default_rng(0).normal(size=(16, 3))
    model = CensoredGP(kernels=RBF(2.0), heteroscedastic=False).fit(X, y)
    tried, honest = [], diagnose.infer

    def infer(engine, task, settings):
        tried.append([each.priors["mean"].mixing[0].shape[2] for each in task.candidates])
        return honest(engine, task, settings)

    monkeypatch.setattr(diagnose, "infer", infer)
    compare.cross_validate(model, diagnose.hold_out(model.observations_, 2))
    assert tried == [[1, 3], [1, 3]]


@pytest.mark.parametrize("side", ["right", "left"])
def test_starting_levels_know_limits(side):
    """Of a normal that random limits cut, level and spread are near its own."""
    rng = np.random.default_rng(0)
    truth, limit = rng.normal(3.0, 1.0, (4000, 1)), rng.normal(3.0, 1.0, (4000, 1))
    censored = truth > limit if side == "right" else truth < limit
    seen = np.where(censored, limit, truth)
    low, high = np.where(censored & (side == "left"), -np.inf, seen), seen.copy()
    high[censored & (side == "right")] = np.inf
    values = uncensored_values(Observations(low, high), (Gaussian(),))
    assert abs(values.mean() - 3.0) < 0.1 < 0.2 < abs(seen.mean() - 3.0)
    np.testing.assert_array_equal(values[~censored], truth[~censored])
    beyond = values > limit if side == "right" else values < limit
    assert np.all(beyond[censored])
    logs = uncensored_values(Observations(np.exp(low), np.exp(high)), (LogNormal(),))
    np.testing.assert_allclose(np.log(logs), values, rtol=1e-9)


def test_starting_values_of_counts_stay_finite_where_little_is_seen():
    flags = np.array([[1], [1], [1], [1], [1], [1], [0], [0], [0], [0], [0]], dtype=bool)
    seen = np.r_[np.full(6, 3.0), np.zeros(5)][:, None]
    known = Observations.from_flags(seen, flags)
    values = uncensored_values(known, (Poisson(),))
    assert np.all(np.isfinite(values))
    assert np.all(values[:6] >= 3.0)
    few = uncensored_values(known[:8], (Poisson(),))
    np.testing.assert_array_equal(few, seen[:8])
