"""Probabilities of intervals where subtracting the tails would leave nothing."""

import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.likelihoods.special.elementary import log_ndtr
from censored_gp.likelihoods.special.gamma import log_gamma_tails, log_poisson
from censored_gp.likelihoods.special.interval import (
    gauss_for_sums,
    log_count_interval,
    log_interval,
)
from support.quick import quick

gauss_rule = quick(gauss_for_sums)


@quick
def normal_interval(lower, upper):
    def density(z):
        return -0.5 * z**2 - 0.5 * np.log(2 * np.pi)

    tails = [(log_ndtr(z), log_ndtr(-z)) for z in (lower, upper)]
    return log_interval(density, *tails, lower, upper)


@pytest.mark.parametrize("z", [-38.0, -5.0, 0.0, 3.0, 38.0])
@pytest.mark.parametrize("width", [1e-14, 1e-9, 1e-4])
def test_a_narrow_interval_is_density_times_width(z, width):
    upper = z + width
    centre = 0.5 * (z + upper)
    expected = -0.5 * centre**2 - 0.5 * np.log(2 * np.pi) + np.log(upper - z)
    np.testing.assert_allclose(normal_interval(z, upper), expected, atol=1e-6)


def test_symmetric_and_additive():
    edges = np.array([-9.0, -8.99, -8.0, 0.5, 0.5001, 8.0, 9.0])
    pieces = normal_interval(edges[:-1], edges[1:])
    np.testing.assert_allclose(pieces, normal_interval(-edges[1:], -edges[:-1]), rtol=1e-12)
    whole = normal_interval(edges[0], edges[-1])
    np.testing.assert_allclose(np.sum(np.exp(pieces)), np.exp(whole), rtol=1e-13)
    # All but two tails of 1e-19: its log is minus their sum.
    np.testing.assert_allclose(whole, -2.0 * np.exp(quick(log_ndtr)(-9.0)), rtol=1e-12)


@pytest.mark.parametrize("count", [6.0, 11.0, 1e3, 1e6])
def test_gauss_nodes_for_sums_are_exact_to_degree_nine(count):
    nodes, weights = map(np.asarray, gauss_rule(count))
    integers = np.arange(count) - 0.5 * (count - 1.0)
    scale = 0.5 * count
    for degree in range(10):
        expected = np.sum((integers / scale) ** degree)
        found = np.sum(weights * (nodes / scale) ** degree)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-9 * count)


def test_a_range_of_counts_is_the_sum_over_it():
    mu = 7.0

    @quick
    def by_rule(lower, upper):
        tails = [log_gamma_tails(k + 1.0, mu)[::-1] for k in (lower - 1.0, upper)]
        return log_count_interval(lambda k: log_poisson(k, mu), *tails, lower, upper)

    lower, upper = np.array([3.0, 2.0, 1.0, 5.0, 150.0]), np.array([4.0, 6.0, 12.0, 20.0, 170.0])
    every = np.asarray(quick(log_poisson)(np.arange(171.0), mu))
    ranges = zip(lower.astype(int), upper.astype(int), strict=True)
    sums = [np.logaddexp.reduce(every[a : b + 1]) for a, b in ranges]
    np.testing.assert_allclose(by_rule(lower, upper), sums, rtol=1e-12)


def test_many_counts_whose_tails_cancel():
    # A flat stretch: 1000 counts of probability 1e-9 each, in the middle of an even spread.
    def flat(k):
        return jnp.full_like(k, jnp.log(1e-9))

    half = np.log(0.5)
    below, above = (half - 1e-6, half + 1e-6), (half + 1e-6, half - 1e-6)
    found = quick(lambda *ends: log_count_interval(flat, below, above, *ends))(5e8, 5e8 + 999.0)
    np.testing.assert_allclose(found, np.log(1e-6), rtol=1e-13)
