"""Kernels chosen from the inputs: the cycles that the data show, and no others."""

import numpy as np
import pytest

from censored_gp import CGP
from censored_gp.defaults import default_kernels, freedom_of
from censored_gp.inputs import read_inputs
from censored_gp.kernels import RBF, Periodic


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


def spare(X, kernels=None, most=256):
    inputs, columns = read_inputs(X)
    return freedom_of(kernels, columns, inputs, most).get("spare", ())


def test_spare_parts_of_time_are_fast_slow_and_between():
    fast, between, slow = (float(kernel.lengthscale) for kernel in spare(hours(24 * 30)))
    assert fast == 4.0
    assert slow == pytest.approx(float(chosen(hours(24 * 30))[-1].lengthscale))
    assert between == pytest.approx(np.sqrt(fast * slow))


def test_a_spare_part_is_longer_where_rows_are_many_for_the_inducing_inputs():
    lengths = [float(spare(hours(count))[0].lengthscale) for count in (2048, 8192)]
    assert lengths == [4.0, 16.0]
    assert spare(hours(8192), most=4) == ()


def test_a_spare_part_looks_at_time_alone():
    table = {"rain": np.arange(720.0) % 7, "when": hours(720)}
    assert {kernel.columns for kernel in spare(table)} == {(1,)}


def test_nothing_is_spare_without_a_time_in_short_ones_or_for_who_chose_kernels():
    assert spare(np.arange(300.0)[:, None]) == ()
    assert spare(hours(24)) == ()
    assert spare(hours(1)) == ()
    assert spare(hours(720), kernels=[RBF("1d")]) == ()


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
