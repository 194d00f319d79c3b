"""Cells as mixtures: quantiles between bounds are found quickly, and must be the exact ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.likelihoods import Gamma, Gaussian, NegativeBinomial, Tweedie
from censored_gp.likelihoods.partial import PartialCount
from censored_gp.prediction.mixture import Mixture, Nodes, draw, evaluate, reweight
from support.quick import quick

INF = np.inf
MASS = np.array([[0.2], [0.5], [0.3]])
LEVELS = (0.001, 0.05, 0.5, 0.95)


def cut(family, theta, lower, upper):
    """One mixture of three components for every pair of bounds."""
    each = tuple(jnp.broadcast_to(jnp.asarray(t)[:, None], (3, len(lower))) for t in theta)
    return Mixture(family, each, jnp.asarray(MASS), (jnp.asarray(lower), jnp.asarray(upper)))


def found(mixture):
    """Quantiles at all levels, and the lower tails there by the exact way."""
    quantiles = np.stack(
        [QUANTILES(mixture, jnp.full(mixture.bounds[0].shape, level)) for level in LEVELS]
    )
    return quantiles, np.stack([below(mixture, q) for q in quantiles])


def below(mixture, y):
    return np.exp(CDF(mixture, jnp.asarray(y)))


QUANTILES = quick(lambda mixture, level: mixture.quantile(level, jnp.log(level)))
CDF = quick(lambda mixture, y: mixture.log_cdf(y))
SURVIVAL = quick(lambda mixture, y: mixture.log_probability(y + 1.0, jnp.full_like(y, INF)))


def test_quantiles_between_bounds_reach_their_level_far_out_and_in_narrow_bounds():
    """Right, left, both; 30 deviations out; narrow; none; a point, all but for rounding; exact."""
    lower = np.array([0.3, -INF, -0.5, 30.0, 1.0, -INF, 1e-20, 2.0])
    upper = np.array([INF, 0.1, 0.7, INF, 1.0 + 1e-3, INF, 2e-20, 2.0])
    mixture = cut(Gaussian(), ([0.0, 0.4, -1.0], [1.0, 0.7, 1.5]), lower, upper)
    quantiles, reached = found(mixture)
    assert np.all((quantiles >= lower) & (quantiles <= upper))
    assert np.all(quantiles[:, -1] == 2.0)
    levels = np.broadcast_to(np.array(LEVELS)[:, None], reached[:, :-2].shape)
    np.testing.assert_allclose(reached[:, :-2], levels, rtol=1e-6)
    np.testing.assert_allclose(quantiles[:, -2], (1.0 + levels[:, 0]) * 1e-20, rtol=1e-9)


def test_quantiles_of_counts_between_bounds_are_the_smallest_that_reach_their_level():
    lower, upper = np.array([3.0, -INF, 2.0, 400.0, 5.0]), np.array([INF, 4.0, 6.0, INF, 5.0])
    mixture = cut(NegativeBinomial(), ([2.0, 5.0, 9.0], [0.5, 0.1, 1.3]), lower, upper)
    quantiles, reached = found(mixture)
    assert np.all((quantiles >= lower) & (quantiles <= upper))
    levels = np.array(LEVELS)[:, None]
    assert np.all(reached >= levels - 1e-9)
    assert np.all((below(mixture, quantiles[2] - 1.0) < 0.5) | (quantiles[2] == lower))


@pytest.mark.slow
def test_quantiles_of_what_was_counted_in_part_are_those_of_the_sum():
    counts, theta = np.arange(4000.0), ([2.0, 5.0, 9.0], [0.5, 0.1, 1.3])
    lower = np.array([0.0, 3.0, 40.0])
    mixture = cut(PartialCount(NegativeBinomial()), theta, lower, np.full(3, INF))
    quantiles, reached = found(mixture)
    each = np.exp(NegativeBinomial().log_density(counts, *(np.array(t)[:, None] for t in theta)))
    for k, v in enumerate(lower.astype(int)):
        above = np.where(counts >= v, each / (counts + 1), 0.0)
        upto = np.cumsum(MASS[:, 0] @ (above / above.sum(axis=1, keepdims=True)))
        np.testing.assert_array_equal(quantiles[:, k], np.searchsorted(upto, LEVELS))
        np.testing.assert_allclose(reached[:, k], upto[quantiles[:, k].astype(int)], atol=1e-6)
    far = QUANTILES(mixture, jnp.full(3, 1 - 1e-11))
    above = [np.exp(SURVIVAL(mixture, y)) for y in (far, far - 1.0)]
    assert np.all(above[0] <= 1e-11 * (1 + 1e-9))
    assert np.all(above[1] > 1e-11)


@pytest.mark.parametrize(
    "family",
    [pytest.param(NegativeBinomial(), marks=pytest.mark.slow), Gamma()],
    ids=lambda f: type(f).__name__,
)
@pytest.mark.parametrize("side", ["right", "left"])
def test_bounds_of_one_side_have_the_moments_that_they_have_beside_others(family, side):
    """With a cell between two bounds among them another program is compiled."""
    rng = np.random.default_rng(0)
    gamma = tuple(rng.normal(size=(3, 6)) for _ in range(2))
    near = np.array([1.0, 2.0, 4.0, 30.0, 200.0, 3.0])
    bounds = (near, np.full(6, INF)) if side == "right" else (np.full(6, -INF), near)
    between = np.array([*near[:-1], 1.0]), np.array([*np.full(5, INF), 5.0])
    if side == "left":
        between = np.array([*np.full(5, -INF), 1.0]), np.array([*near[:-1], 5.0])
    with jax.enable_x64(True):
        alone, beside = (
            evaluate(Nodes(family, gamma, MASS, each), Mixture.moments)
            for each in (bounds, between)
        )
    # Far out a variance is what squares of rounded numbers leave.
    np.testing.assert_allclose(np.array(alone)[:, :-1], np.array(beside)[:, :-1], rtol=1e-7)
    assert np.all(alone[0][:-1] >= bounds[0][:-1])
    assert np.all(alone[0][:-1] <= bounds[1][:-1])


@pytest.mark.parametrize("family", [Gaussian(), Tweedie(power=1.5)])
def test_weights_of_design_points_are_those_of_single_nodes(family):
    rng = np.random.default_rng(0)
    points, nodes, cells = 2, 3, 4
    mean = rng.normal(size=(points * nodes, cells))
    constant = np.repeat(rng.normal(size=(points, cells)), nodes, axis=0)
    mass, y, share = rng.dirichlet(np.ones(6))[:, None], np.arange(1.0, 5.0), np.full(4, 0.7)
    given = Nodes(family, (mean, constant), mass, (y, y), share)
    logs = family.log_likelihood(y, y, *family.theta(mean, constant), kind="exact", exposure=share)
    expected = mass * np.exp(logs)
    weights = reweight(given).weights
    np.testing.assert_allclose(weights, expected / expected.sum(axis=0), rtol=1e-10)


def test_cells_without_a_bound_are_drawn_from_the_law_itself():
    gamma = tuple(np.broadcast_to(g, (2000, 2)) for g in (np.log(3.0), np.log(2.0), 0.0))
    key, inf = jax.random.key(0), np.full(2, np.inf)
    nodes = Nodes(Tweedie(), gamma, np.ones((1, 1)), ())
    free = draw(nodes, key)
    np.testing.assert_array_equal(draw(nodes._replace(bounds=(-inf, inf)), key), free)
    lower = np.array([-np.inf, 4.0])
    some = draw(nodes._replace(bounds=(lower, inf)), key)
    assert np.all(some[:, 1] >= 4.0)
    assert np.mean(some[:, 0]) == pytest.approx(np.mean(free[:, 0]), rel=0.15)
