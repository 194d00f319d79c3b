"""Counts of which a share was counted: S(v), its slopes, and the distribution of the whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from censored_gp.likelihoods import (
    FAMILIES,
    Gaussian,
    NegativeBinomial,
    PaperNegativeBinomial,
    Poisson,
)
from censored_gp.likelihoods.partial import PartialCount, averages_exposure, log_share
from censored_gp.likelihoods.special.beta import log_negative_binomial
from support.quick import quick

INF = np.inf
COUNTS = np.arange(3000.0)
CASES = [
    (Poisson(), (5.0,)),
    (NegativeBinomial(), (6.0, 0.4)),
    pytest.param(PaperNegativeBinomial(), (0.7, 1.4), marks=pytest.mark.slow),
]
MEANS = np.array([1e-3, 0.3, 4.0, 37.0, 900.0])
SEEN = np.array([[0.0], [1.0], [7.0], [60.0]])
of_records, of_counts = quick(log_share), quick(log_negative_binomial)
slopes = quick(jax.grad(lambda *a: log_share(*a).sum(), argnums=(1, 2)))


def table(dispersion):
    """Return records, means and a dispersion, for every pair of the first two."""
    return np.broadcast_arrays(SEEN, MEANS, dispersion)


@pytest.mark.parametrize("dispersion", [1e-3, 0.7, 1.0, 6.0])
def test_the_probability_of_a_record_is_the_sum_over_what_the_count_may_have_been(dispersion):
    y = np.arange(100_000.0)
    expected = np.empty((len(SEEN), len(MEANS)))
    for column, mean in enumerate(MEANS):
        count = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))
        terms = count.logpmf(y) - np.log1p(y)
        expected[:, column] = [np.logaddexp.reduce(terms[int(v) :]) for v in SEEN[:, 0]]
    np.testing.assert_allclose(of_records(*table(dispersion)), expected, atol=2e-6, rtol=1e-9)


def test_without_dispersion_it_is_that_of_a_poisson_count():
    v, mean, none = table(0.0)
    expected = quick(Poisson().log_part)(v, mean)
    np.testing.assert_allclose(of_records(v, mean, none), expected, atol=1e-6, rtol=1e-9)


@pytest.mark.parametrize("dispersion", [0.3, 1.0, 2.5])
def test_its_slopes_are_right(dispersion):
    """In the log of the mean it is P(v) / S(v) - 1; in the dispersion a central difference."""
    v, mean, alpha = table(dispersion)
    along_mean, along = slopes(v, mean, alpha)
    mass = np.asarray(of_counts(v, mean, alpha)) - np.asarray(of_records(v, mean, alpha))
    np.testing.assert_allclose(mean * along_mean, np.expm1(mass), atol=1e-5)
    ends = [of_records(v, mean, alpha + step) for step in (1e-4, -1e-4)]
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / 2e-4, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("likelihood", "theta"), CASES, ids=str)
def test_the_whole_is_weighed_by_how_likely_its_share_is(likelihood, theta):
    """P(y) / (y + 1): the record, density, tails, moments and quantiles, from the record on."""
    given, seen, levels = PartialCount(likelihood), np.array([0.0, 3.0, 14.0]), (0.03, 0.97)

    @quick
    def everything(*theta):
        no_bound = jnp.full(3, INF)
        level = jnp.asarray(levels)[:, None]
        return (
            likelihood.log_likelihood(seen, no_bound, *theta, kind="unknown"),
            given.log_density(COUNTS, *theta),
            given.log_tails(COUNTS[:40], *theta),
            (given.mean(*theta), given.variance(*theta)),
            given.moments_within(seen, no_bound, *theta),
            given.quantile_within(level, seen, no_bound, *theta),
        )

    record, density, tails, moments, within, quantiles = everything(*theta)
    weight = np.exp(quick(likelihood.log_density)(COUNTS, *theta)) / (COUNTS + 1)
    share = weight / weight.sum()
    np.testing.assert_allclose(record, [np.log(weight[int(v) :].sum()) for v in seen], atol=1e-5)
    np.testing.assert_allclose(np.exp(density), share, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(np.exp(tails[0]), np.cumsum(share)[:40], atol=1e-6)
    np.testing.assert_allclose(np.exp(tails[1]), 1 - np.cumsum(share)[:40], atol=1e-6)
    mean = share @ COUNTS
    np.testing.assert_allclose(moments, [mean, share @ (COUNTS - mean) ** 2], rtol=1e-4)
    for i, v in enumerate(seen):
        above = np.where(v <= COUNTS, share, 0.0) / share[int(v) :].sum()
        mean = above @ COUNTS
        spread = above @ (COUNTS - mean) ** 2
        np.testing.assert_allclose(within[0][i], mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(within[1][i], spread, rtol=1e-3, atol=1e-4)
        assert list(quantiles[:, i]) == list(np.searchsorted(np.cumsum(above), levels))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=str)
def test_intervals_of_low_counts_have_a_probability_however_large_the_mean(likelihood):
    theta = (200.0, 1e-4)[: len(likelihood.parameters)]
    lower, upper = np.array([0.0, 2.0, 2.0, 150.0]), np.array([4.0, 8.0, 30.0, 260.0])
    found = np.exp(quick(PartialCount(likelihood).log_likelihood)(lower, upper, *theta))
    weight = np.exp(quick(likelihood.log_density)(COUNTS, *theta)) / (COUNTS + 1)
    share = weight / weight.sum()
    expected = [share[int(a) : int(b) + 1].sum() for a, b in zip(lower, upper, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=1e-6)


def test_it_has_the_parameters_of_the_whole_and_is_no_family_to_choose():
    given = PartialCount(NegativeBinomial(mean="softplus"))
    assert given.parameters == NegativeBinomial.parameters
    assert given.links == NegativeBinomial(mean="softplus").links
    assert PartialCount(Poisson()) == PartialCount(Poisson())
    assert PartialCount not in FAMILIES.values()


def test_counts_can_be_counted_in_part():
    assert all(averages_exposure(f()) for f in (Poisson, NegativeBinomial))
    assert not averages_exposure(Gaussian())


def test_it_can_be_differentiated_far_out():
    for likelihood, theta in ((Poisson(), (1e-3,)), (NegativeBinomial(), (1e-3, 3.0))):
        slopes = quick(jax.grad(lambda t, f=likelihood: f.log_part(300.0, *t)))(theta)
        assert np.isfinite(slopes).all()
