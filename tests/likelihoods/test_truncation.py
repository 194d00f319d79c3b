"""Moments between bounds where closed forms cancel: far out, between narrow bounds, heavy tails."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.stats as st

from censored_gp.likelihoods import Gaussian, as_likelihood
from support.quick import quick

INF = np.inf
POSITIVE = {
    "log_normal": ((0.3, 0.7), st.lognorm(0.7, scale=np.exp(0.3))),
    "exponential": ((2.0,), st.expon(scale=2.0)),
    "weibull": ((2.0, 1.7), st.weibull_min(1.7, scale=2.0)),
}


@pytest.mark.parametrize(
    "name",
    ["log_normal", *(pytest.param(n, marks=pytest.mark.slow) for n in ("exponential", "weibull"))],
)
def test_moments_of_positive_families_hold_far_out_and_between_narrow_bounds(name):
    theta, oracle = POSITIVE[name]
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


@pytest.mark.parametrize(
    ("name", "theta"),
    [
        ("log_normal", (4.0, 1e-3)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("gamma", (60.0, 1e6)),
                ("weibull", (60.0, 300.0)),
                ("tweedie", (60.0, 1e-5, 1.5)),
            )
        ),
    ],
)
def test_bounds_that_leave_out_nothing_of_a_narrow_law_leave_its_moments(name, theta):
    """Between bounds hundreds of deviations apart, and with one alone, where variances cancel."""
    family = as_likelihood(name)
    mean, variance = family.mean(*theta), family.variance(*theta)
    lower, upper = 0.8 * mean, 1.15 * mean
    bounds = jnp.array([[lower, upper], [lower, INF], [0.0, upper]]).T
    found = quick(lambda a, b: family.moments_within(a, b, *theta))(*bounds)
    np.testing.assert_allclose(found[0], np.full(3, mean), rtol=1e-12)
    np.testing.assert_allclose(found[1], np.full(3, variance), rtol=1e-7)


def test_waiting_times_have_no_memory():
    """However far out: Y - a given Y >= a is as Y, and between bounds far apart, too."""
    lower = np.array([1e3, 1e3, 1e5, 1e7])
    upper = np.array([INF, 1.4e3, INF, 1.4e7])
    family = as_likelihood("exponential")
    mean, variance = quick(lambda a, b: family.moments_within(a, b, 2.0))(lower, upper)
    np.testing.assert_allclose(mean - lower, 2.0, rtol=1e-8)
    np.testing.assert_allclose(variance, 4.0, rtol=1e-8)


def test_moments_of_a_truncated_normal_are_those_of_mpmath():
    """Ordinary bounds, bounds far out on either side, narrow ones, and both."""
    bounds = [(-INF, 1.0), (0.5, INF), (-1.0, 2.0), (40.0, INF), (-INF, -60.0), (30.0, 31.0)]
    bounds += [(0.7, 0.7 + 1e-7), (-25.0, -24.99), (300.0, 300.5)]
    lower, upper = np.array(bounds).T
    mean, variance = quick(lambda: Gaussian().moments_within(lower, upper, 0.3, 1.2))()
    for (low, high), m, v in zip(bounds, mean, variance, strict=True):
        expected = exact_moments((low - 0.3) / 1.2, (high - 0.3) / 1.2)
        np.testing.assert_allclose((m - 0.3) / 1.2, float(expected[0]), rtol=1e-12)
        np.testing.assert_allclose(v / 1.2**2, float(expected[1]), rtol=1e-8)


def exact_moments(a, b):
    """Mean and variance of a standard normal between a and b, with 60 digits."""
    if b < 0:  # in the right tail, where erfc is small, nothing cancels
        mean, variance = exact_moments(-b, -a)
        return -mean, variance
    with mpmath.workdps(60):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        p, q = (mpmath.npdf(z) if mpmath.isfinite(z) else mpmath.mpf(0) for z in (a, b))
        tails = (mpmath.erfc(z / mpmath.sqrt(2)) / 2 for z in (a, b))
        mass = -mpmath.fsum([-next(tails), next(tails)])
        shift = (p - q) / mass
        first, last = (z * d if mpmath.isfinite(z) else 0 for z, d in ((a, p), (b, q)))
        return shift, 1 + (first - last) / mass - shift**2


def test_an_exact_cell_is_itself_and_a_missing_one_the_whole_normal():
    lower, upper = np.array([2.0, -INF]), np.array([2.0, INF])
    mean, variance = quick(lambda: Gaussian().moments_within(lower, upper, 0.3, 1.2))()
    np.testing.assert_allclose(mean, [2.0, 0.3], rtol=1e-14)
    np.testing.assert_allclose(variance, [0.0, 1.44], atol=1e-14)


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


@pytest.mark.parametrize(
    ("mean", "dispersion", "lower", "upper"),
    [(1e5, 5.0, 1, 100), (1e6, 2.0, -np.inf, 1000), (1e9, 100.0, 1, 10_000), (1e6, 1.0, 3, 5000)],
)
def test_moments_of_dispersed_counts_far_below_their_mean(mean, dispersion, lower, upper):
    """With dispersions above one the probabilities fall like a power, not exponentially."""
    family, q = as_likelihood("negative_binomial"), dispersion * mean / (1 + dispersion * mean)
    found = quick(family.moments_within)(float(lower), float(upper), mean, dispersion)
    first = max(lower, 0)
    wanted = ladder(first, lambda k: (k + 1 / dispersion) * q / (k + 1), 1, upper - first + 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


students_moments = quick(as_likelihood("student_t").moments_within)


@pytest.mark.parametrize("df", [1.2, 1.5, 2.5, 30.0])
def test_students_moments_beyond_one_bound(df):
    """Also where the variance is infinite, or nearly so."""
    oracle = st.t(df, 0.5, 2.0)
    lower, upper = np.array([3.0, -3.0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 1.0, np.inf])
    mean, variance = students_moments(lower, upper, 0.5, 2.0, df)
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
