"""Own demand where the excess of one output moves to others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

from censored_gp import Observations
from censored_gp.inference.substitution import (
    Plan,
    Records,
    accelerated,
    draw_own_demand,
    feasible,
    lost_of,
    own_demand,
)

SHARES = np.array([[0.0, 0.6, 0.3], [0.5, 0.0, 0.5], [0.2, 0.0, 0.0]])


def recorded(own: np.ndarray, limit: np.ndarray, shares: np.ndarray) -> Records:
    """Return what is recorded of own demand."""
    wanted = own + np.maximum(own - limit, 0.0) @ shares
    return Records(np.minimum(wanted, limit), wanted >= limit, wanted < limit)


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, Records]:
    random = np.random.default_rng(0)
    own, limit = random.normal(size=(40, 3)), random.normal(0.3, 0.5, size=(40, 3))
    return own, recorded(own, limit, SHARES)


def evidence(records: Records, mean: np.ndarray, scale: np.ndarray, share: float) -> list[float]:
    """Integrate d, d^2 and 1 of a full output 0, whose excess goes to 1, below its limit."""
    limit, seen = records.value[0]

    def weight(d: float) -> float:
        rest = norm.pdf(seen - share * (d - limit), mean[0, 1], scale[0, 1])
        return norm.pdf(d, mean[0, 0], scale[0, 0]) * rest

    ends = limit, max(limit, mean[0, 0]) + 12 * scale[0, 0]
    return [
        quad(lambda d, p=power: d**p * weight(d), *ends, epsabs=0, limit=200)[0]
        for power in (1, 2, 0)
    ]


@pytest.mark.parametrize("level", [-1.0, 0.5, 3.0])
def test_one_output_at_its_limit_is_integrated_out(level: float) -> None:
    records = Records(np.array([[0.5, 1.2]]), np.array([[True, False]]), np.array([[False, True]]))
    mean, scale = np.array([[level, 0.4]]), np.array([[0.8, 0.6]])
    shares = np.array([[0.0, 0.7], [0.3, 0.0]])
    own, doubt, slope = own_demand(records, mean, scale**2, shares)
    first, second, mass = evidence(records, mean, scale, 0.7)
    expected = first / mass
    variance = second / mass - expected**2
    np.testing.assert_allclose(own[0], [expected, 1.2 - 0.7 * (expected - 0.5)], atol=1e-3)
    np.testing.assert_allclose(doubt[0], [variance, 0.49 * variance], rtol=1e-2)
    step = 1e-4
    near = [np.log(evidence(records, mean, scale, 0.7 + sign * step)[2]) for sign in (1, -1)]
    np.testing.assert_allclose(slope[0, 1], (near[0] - near[1]) / (2 * step), rtol=2e-3)


def test_without_shares_own_demand_is_a_truncated_normal(world: tuple[np.ndarray, Records]) -> None:
    _, (value, full, below) = world
    mean, scale = np.full(value.shape, 0.2), 0.7
    own, doubt, _ = own_demand(Records(value, full, below), mean, mean * 0 + scale**2, 0 * SHARES)
    truncated = truncnorm((value - mean) / scale, np.inf, mean, scale)
    np.testing.assert_allclose(own, np.where(full, truncated.mean(), value), rtol=5e-4)
    np.testing.assert_allclose(doubt, np.where(full, truncated.var(), 0.0), rtol=5e-3)


def test_draws_make_the_records_and_their_moments_agree(world: tuple[np.ndarray, Records]) -> None:
    _, records = world
    mean = np.zeros((1000, *records.value.shape))
    drawn = draw_own_demand(np.random.default_rng(1), records, mean, mean + 1.0, SHARES)
    again = recorded(drawn, np.where(records.full, records.value, np.inf), SHARES).value
    np.testing.assert_allclose(again, np.broadcast_to(records.value, again.shape), atol=1e-9)
    found, *_ = own_demand(records, mean[0], mean[0] + 1.0, SHARES)
    one = records.full.sum(axis=1) == 1
    np.testing.assert_allclose(found[one], drawn.mean(axis=0)[one], atol=0.15)
    # Several outputs at their limits are independent to the deterministic sweeps.
    np.testing.assert_allclose(found, drawn.mean(axis=0), atol=0.35)


def test_what_was_served_elsewhere_is_not_lost(world: tuple[np.ndarray, Records]) -> None:
    own, records = world
    lost = lost_of(records, own, SHARES)
    assert np.all(lost >= -1e-12)
    np.testing.assert_allclose(lost.sum(axis=1), (own - records.value).sum(axis=1), atol=1e-12)


def test_a_missing_record_says_nothing_and_serves_nobody() -> None:
    nan, flags = float("nan"), [[1, 0, 0], [1, 0, 0]]
    records = Records.of(Observations.from_flags([[0.5, 1.2, nan], [0.5, nan, nan]], flags))
    mean = np.full((2, 3), 0.4)
    found, *_ = own_demand(records, mean, mean, SHARES)
    pair, *_ = own_demand(
        Records(*(p[:, :2] for p in records)), mean[:, :2], mean[:, :2], SHARES[:2, :2]
    )
    np.testing.assert_allclose(found[:, :2], pair)
    own = np.array([[1.5, 0.6, 9.0], [1.5, 9.0, 9.0]])
    np.testing.assert_allclose(lost_of(records, own, SHARES)[:, 0], [0.4, 1.0])


def test_feasible_shares_are_the_nearest() -> None:
    random = np.random.default_rng(2)
    given = random.normal(0.5, 0.5, size=(3, 3))
    found = feasible(given)
    np.testing.assert_allclose(feasible(found), found)
    others = random.dirichlet(np.ones(4), size=(20_000, 3))[..., :3] * (1 - np.eye(3))
    off = 1 - np.eye(3)
    distance = np.sum(off * (others - given) ** 2, axis=2).min(axis=0)
    assert np.all(np.sum(off * (found - given) ** 2, axis=1) <= distance + 1e-9)
    assert np.all(found >= 0)
    assert np.all(found.sum(axis=1) <= 1 + 1e-12)


def test_a_linear_iteration_is_accelerated_to_its_end() -> None:
    random = np.random.default_rng(4)
    slope, start = 0.9 * np.linalg.qr(random.normal(size=(3, 3)))[0], random.normal(size=3)
    point, path = np.zeros(3), []
    for _ in range(5):
        path = [*path, (point, start + slope @ point)]
        point = accelerated(path)
    np.testing.assert_allclose(point, np.linalg.solve(np.eye(3) - slope, start), rtol=1e-6)


def test_shares_by_distance_have_the_derivatives_of_differences() -> None:
    apart = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
    plan = Plan(apart, apart, 0.7, 1.5, ("moving", "decay")).at(np.array([0.7, np.log(1.5)]))
    for way, change in zip(plan.directions, 1e-6 * np.eye(2), strict=True):
        ends = [plan.at(plan.free + sign * change).shares for sign in (1, -1)]
        np.testing.assert_allclose(way, (ends[0] - ends[1]) / 2e-6, atol=1e-8)


def test_a_step_ends_at_the_best_shares_that_may_be() -> None:
    plan, random = Plan(SHARES, learned=("shares",)), np.random.default_rng(5)
    root = random.normal(size=(9, 9))
    curvature, rise = root @ root.T + 12 * np.eye(9), 4.0 * random.normal(size=9)
    rise[::4] = 0.0

    def gain(shares: np.ndarray) -> np.ndarray:
        step = (shares - SHARES).reshape(-1, 9)
        return step @ rise - 0.5 * np.sum(step @ curvature * step, axis=1)

    best = plan.step(rise, curvature).shares
    np.testing.assert_allclose(feasible(best), best, atol=1e-12)
    others = best + 0.05 * random.normal(size=(2000, 3, 3))
    assert np.all(gain(np.stack([feasible(each) for each in others])) <= gain(best) + 1e-6)
