"""Every family against SciPy: density, tails, moments, quantiles, draws, bounds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st

from censored_gp.likelihoods import FAMILIES, Likelihood, as_likelihood
from censored_gp.likelihoods.partial import GivenShare
from support.quick import quick

U = np.array([1e-8, 0.01, 0.3, 0.5, 0.9, 1 - 1e-8])


CASES: dict[str, tuple[tuple[float, ...], Any]] = {
    "gaussian": ((1.3, 0.7), st.norm(1.3, 0.7)),
    "student_t": ((1.3, 0.7, 4.5), st.t(4.5, 1.3, 0.7)),
    "log_normal": ((0.3, 0.7), st.lognorm(0.7, scale=np.exp(0.3))),
    "gamma": ((2.0, 3.0), st.gamma(3.0, scale=2.0 / 3.0)),
    "exponential": ((2.0,), st.expon(scale=2.0)),
    "weibull": ((2.0, 1.7), st.weibull_min(1.7, scale=2.0)),
    "beta": ((0.7, 6.0), st.beta(6.0 * 0.7 / 1.7, 6.0 / 1.7)),
    "poisson": ((4.2,), st.poisson(4.2)),
    "negative_binomial": ((4.2, 0.4), st.nbinom(2.5, 1.0 / (1.0 + 0.4 * 4.2))),
    "paper_negative_binomial": ((1.5, 0.4), st.nbinom(2.5, 1.0 / (1.0 + np.exp(-0.6)))),
    "bernoulli": ((0.6,), st.bernoulli(0.6 / 1.6)),
}

ODD = {
    "zeros": np.zeros(4),
    "one value": np.array([0.7]),
    "constant": np.full(5, 1.0),
    "nothing seen": np.array([np.nan, np.inf]),
    "huge": np.array([1e6, 3e6]),
    "tiny": np.array([1e-6, 3e-6]),
}


def test_every_family_has_a_case():
    assert set(CASES) == set(FAMILIES)
    built_in = [c for c in Likelihood.__subclasses__() if c.__module__.startswith("censored_gp.")]
    # What a count was given its share is no family to choose: it has tests of its own.
    assert set(built_in) - {GivenShare} == set(FAMILIES.values())


@pytest.fixture(params=CASES)
def case(request):
    theta, oracle = CASES[request.param]
    return as_likelihood(request.param), theta, oracle


# The paper's own negative binomial passes draws and moments on to the other.
@pytest.fixture(params=[name for name in CASES if name != "paper_negative_binomial"])
def distinct(request):
    theta, oracle = CASES[request.param]
    return as_likelihood(request.param), theta, oracle


def test_density_tails_moments_and_quantiles(case):
    family, theta, oracle = case

    @quick
    def everything(y, u, *theta):
        moments = family.mean(*theta), family.variance(*theta)
        tails = family.log_tails(y, *theta)
        return family.log_density(y, *theta), tails, moments, family.quantile(u, *theta)

    y = oracle.ppf(U)
    density, tails, moments, quantiles = everything(y, U, *theta)
    log_density = oracle.logpmf if family.support.discrete else oracle.logpdf
    np.testing.assert_allclose(density, log_density(y), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.exp(tails[0]), oracle.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(np.exp(tails[1]), oracle.sf(y), rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(moments, [oracle.mean(), oracle.var()], rtol=1e-9)
    np.testing.assert_allclose(quantiles, oracle.ppf(U), rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "log_normal", "exponential", "weibull"])
def test_the_default_quantile_is_the_closed_one(name):
    theta, oracle = CASES[name]
    family = as_likelihood(name)
    found = quick(lambda u: Likelihood.quantile(family, u, *theta))(U)
    np.testing.assert_allclose(found, oracle.ppf(U), rtol=1e-9)


def test_draws_have_the_mean_and_spread(distinct):
    family, theta, oracle = distinct
    draws = quick(lambda key: family.sample(key, (4000,), *theta))(jax.random.key(3))
    assert np.all(family.support.contains(np.asarray(draws)))
    assert abs(np.mean(draws) - oracle.mean()) < 5 * oracle.std() / np.sqrt(4000)
    np.testing.assert_allclose(np.std(draws), oracle.std(), rtol=0.25)


def test_moments_within_bounds(distinct):
    family, theta, oracle = distinct
    lower = np.array([oracle.ppf(0.3), -np.inf, oracle.ppf(0.2), -np.inf])
    upper = np.array([np.inf, oracle.ppf(0.6), oracle.ppf(0.8), np.inf])
    mean, variance = quick(lambda a, b: family.moments_within(a, b, *theta))(lower, upper)
    u = (np.arange(100_000) + 0.5) / 100_000
    for i in range(4):
        start, end = oracle.cdf(lower[i] - family.support.discrete), oracle.cdf(upper[i])
        draws = oracle.ppf(start + u * (end - start))
        np.testing.assert_allclose(mean[i], draws.mean(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(variance[i], draws.var(), rtol=2e-2, atol=1e-4)


@pytest.mark.parametrize(
    "name",
    ["log_normal", *(pytest.param(n, marks=pytest.mark.slow) for n in ("exponential", "weibull"))],
)
def test_moments_of_positive_families_hold_far_out_and_between_narrow_bounds(name):
    theta, oracle = CASES[name]
    far, middle = oracle.isf(1e-12), oracle.median()
    lower = np.array([far, middle, middle, 0.2 * middle])
    upper = np.array([np.inf, middle, middle * (1 + 1e-6), 0.3 * middle])
    family = as_likelihood(name)
    mean, variance = quick(lambda a, b: family.moments_within(a, b, *theta))(lower, upper)
    for i in range(4):
        end = upper[i] if np.isfinite(upper[i]) else oracle.isf(1e-12 * np.exp(-34.0))
        y = np.linspace(lower[i], end, 400_001)
        weight = np.exp(oracle.logpdf(y) - oracle.logpdf(y).max())
        weight[[0, -1]] /= 2
        centre = lower[i] + np.average(y - lower[i], weights=weight)
        np.testing.assert_allclose(mean[i] - lower[i], centre - lower[i], rtol=1e-6, atol=1e-12)
        spread = np.average((y - centre) ** 2, weights=weight)
        np.testing.assert_allclose(variance[i], spread, rtol=1e-4, atol=1e-18)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("values", ODD.values(), ids=ODD.keys())
def test_starts_are_inside_the_domain_whatever_was_seen(name, values):
    family = as_likelihood(name)
    latent = [link.inverse(t) for link, t in zip(family.links, family.start(values), strict=True)]
    assert np.isfinite(latent).all()
    assert 0 < family.latent_spread(values) < np.inf


def test_starts_are_near_the_truth(case):
    family, theta, oracle = case
    values = oracle.rvs(4000, random_state=1)
    found = np.array(family.start(values))
    at_truth = family.log_likelihood(values, values, *theta, kinds=("exact",)).mean()
    at_start = family.log_likelihood(values, values, *found, kinds=("exact",)).mean()
    assert at_truth - at_start < 0.2
    spread = family.latent_spread(values)
    assert 0.05 < spread < 5.0


def ladder(first, ratio, step, number=3000):
    """Mean and variance of counts from `first` on whose probabilities have the given ratios."""
    counts = first + step * np.arange(number)
    weights = np.cumprod(np.append(1.0, [ratio(k) for k in counts[:-1]]))
    weights /= weights.sum()
    away = weights @ (counts - first)
    return first + away, weights @ (counts - first - away) ** 2


def test_moments_of_large_counts_far_out_or_in_narrow_bounds():
    """Where the variance is one part in 10^10 of the square of the mean, or less."""
    family = as_likelihood("poisson")
    cases = {
        (5e4, 1e5, np.inf): ladder(1e5, lambda k: 5e4 / (k + 1), 1),
        (1e5, -np.inf, 5e4): ladder(5e4, lambda k: k / 1e5, -1),
        (1e6, 1.2e6, 1.2e6 + 9): ladder(1.2e6, lambda k: 1e6 / (k + 1), 1, 10),
        (5e4, 5.5e4, np.inf): ladder(5.5e4, lambda k: 5e4 / (k + 1), 1),
    }
    rate, lower, upper = np.array(list(cases)).T
    mean, variance = quick(family.moments_within)(lower, upper, rate)
    np.testing.assert_allclose([mean, variance], np.array(list(cases.values())).T, rtol=2e-6)
    # A negative binomial next to a Poisson: P(k + 1) / P(k) = (k + r) (1 - p) / (k + 1).
    family, q = as_likelihood("negative_binomial"), 0.05 / 1.05
    found = quick(family.moments_within)(1e5, np.inf, 5e4, 1e-6)
    np.testing.assert_allclose(found, ladder(1e5, lambda k: (k + 1e6) * q / (k + 1), 1), rtol=1e-9)


def test_parameters_move_along_with_the_unit(case):
    """shift + scale Y has the density of Y, spread over the unit."""
    family, theta, oracle = case
    shift = 3.0 if family.rescale == "affine" else 0.0
    scale = 1.0 if family.rescale == "none" else 2.5
    y = oracle.ppf([0.2, 0.7])
    moved = family.rescaled(shift, scale, *theta)
    found = quick(family.log_density)(shift + scale * y, *moved)
    expected = quick(family.log_density)(y, *theta) - np.log(scale)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("df", [1.2, 1.5, 2.5, 30.0])
def test_students_moments_beyond_one_bound(df):
    """Also where the variance is infinite, or nearly so."""
    family, oracle = as_likelihood("student_t"), st.t(df, 0.5, 2.0)
    lower, upper = np.array([3.0, -3.0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 1.0, np.inf])
    within = quick(lambda a, b, df: family.moments_within(a, b, 0.5, 2.0, df))
    mean, variance = within(lower, upper, df)
    for i in range(3):
        expected = oracle.expect(lb=lower[i], ub=upper[i], conditional=True)
        np.testing.assert_allclose(mean[i], expected, rtol=1e-7)
        if df > 2:
            square = oracle.expect(
                lambda y, m=expected: (y - m) ** 2, lb=lower[i], ub=upper[i], conditional=True
            )
            np.testing.assert_allclose(variance[i], square, rtol=1e-6)
    assert mean[3] == 0.5
    assert np.isinf(variance).all() == (df <= 2)


def test_student_has_a_mean_whatever_its_latent_is():
    family = as_likelihood("student_t")
    location, scale, df = family.theta(3.0, 0.0, np.array([-800.0, -40.0, 0.0, 40.0]))
    assert np.all(np.asarray(df) >= 1.0)
    np.testing.assert_array_equal(family.mean(location, scale, df), 3.0)
    np.testing.assert_array_equal(
        np.isinf(family.variance(location, scale, df)), [True, True, True, False]
    )


def test_the_papers_mean_falls_as_its_mu_grows():
    family = as_likelihood("paper_negative_binomial")
    means = family.mean(jnp.array([0.5, 1.0, 4.0]), 0.3)
    assert np.all(np.diff(means) < 0)
    np.testing.assert_allclose(means, np.exp(-0.3 * np.array([0.5, 1.0, 4.0])) / 0.3, rtol=1e-14)
