"""Incomplete beta functions and what is made of them: negative binomial and Student's t."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from censored_gp.likelihoods.special.beta import (
    log_beta_tails,
    log_negative_binomial,
    log_odds_tails,
    log_student,
    log_student_tails,
)
from censored_gp.likelihoods.special.elementary import log_ndtr
from censored_gp.likelihoods.special.gamma import log_gamma_tails, log_poisson
from support.quick import quick

tails_of_beta = quick(log_beta_tails)
X = np.array([1e-9, 0.01, 0.3, 0.5, 0.77, 0.999])


@pytest.mark.parametrize("a", [0.02, 0.5, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("b", [0.04, 1.0, 3.0, 900.0])
def test_agrees_with_scipy_where_scipy_can(a, b):
    lower, upper = tails_of_beta(a, b, X, 1.0 - X)
    expected = scipy.special.betainc(a, b, X)
    np.testing.assert_allclose(np.exp(lower), expected, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(np.exp(lower) + np.exp(upper), 1.0, rtol=1e-13)


def test_reflection():
    # I_x(a, b) = 1 - I_(1-x)(b, a).
    lower, upper = tails_of_beta(2.5, 40.0, X, 1.0 - X)
    np.testing.assert_allclose(tails_of_beta(40.0, 2.5, 1.0 - X, X)[0], upper, rtol=1e-11)
    np.testing.assert_allclose(tails_of_beta(40.0, 2.5, 1.0 - X, X)[1], lower, rtol=1e-11)


def test_an_x_next_to_one_keeps_its_digits_through_y():
    # I_x(a, 1) = x^a, so that log I = a log(1 - y).
    y = np.array([1e-30, 1e-18, 1e-3])
    np.testing.assert_allclose(
        tails_of_beta(3.0, 1.0, 1.0 - y, y)[0], 3.0 * np.log1p(-y), rtol=1e-12
    )


def test_derivatives_in_every_argument_follow_the_line_of_y():
    def along(x):
        return log_beta_tails(2.0, 5.0, x, 1.0 - x)[0]

    density = scipy.stats.beta(2.0, 5.0)
    expected = density.pdf(0.3) / density.cdf(0.3)
    np.testing.assert_allclose(quick(jax.grad(along))(0.3), expected, rtol=1e-12)


def test_no_dispersion_is_poisson_in_value_and_slope():
    k, mu = np.array([0.0, 3.0, 40.0, 500.0]), np.array([0.2, 5.0, 30.0, 450.0])
    tails = np.stack(quick(log_odds_tails)(k + 1.0, mu, 0.0))
    np.testing.assert_allclose(tails, np.stack(quick(log_gamma_tails)(k + 1.0, mu)), rtol=1e-12)
    np.testing.assert_allclose(
        quick(log_negative_binomial)(k, mu, 0.0), quick(log_poisson)(k, mu), atol=1e-12
    )
    # The first effect of dispersion on log P(k) is ((k - mu)^2 - k) / 2.
    slope = quick(jax.vmap(jax.grad(log_negative_binomial, argnums=2)))(k, mu, np.zeros(4))
    np.testing.assert_allclose(slope, ((k - mu) ** 2 - k) / 2, rtol=1e-10)


def test_the_way_to_the_poisson_limit_does_not_cancel():
    def tail(alpha):
        return log_odds_tails(31.0, 20.0, alpha)[0]

    alpha = np.array([0.0, 1e-12, 1e-8, 1e-4])
    values, slopes = quick(jax.vmap(jax.value_and_grad(tail)))(alpha)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-2)
    np.testing.assert_allclose(slopes[:3], slopes[0], rtol=1e-6)
    np.testing.assert_allclose(values - values[0], alpha * slopes, rtol=1e-2, atol=1e-13)


def test_negative_binomial_sums_to_its_tail():
    mu, alpha = 6.0, 0.8
    k = np.arange(400.0)
    mass = np.exp(quick(log_negative_binomial)(k, mu, alpha))
    np.testing.assert_allclose(
        np.cumsum(mass), np.exp(quick(log_odds_tails)(k + 1, mu, alpha)[1]), rtol=1e-12
    )
    np.testing.assert_allclose([mass.sum(), mass @ k], [1.0, mu], rtol=1e-10)


def test_slopes_of_the_negative_binomial_in_all_three():
    def direct(k, mu, alpha):
        r = 1.0 / alpha
        choose = jax.lax.lgamma(k + r) - jax.lax.lgamma(k + 1.0) - jax.lax.lgamma(r)
        return choose - r * jnp.log1p(alpha * mu) + k * jnp.log(alpha * mu / (1.0 + alpha * mu))

    found = quick(jax.grad(log_negative_binomial, argnums=(0, 1, 2)))(7.0, 4.0, 0.3)
    np.testing.assert_allclose(
        found, quick(jax.grad(direct, argnums=(0, 1, 2)))(7.0, 4.0, 0.3), rtol=1e-9
    )


def test_student_with_one_degree_of_freedom_is_cauchy():
    t = np.array([-1e8, -2.0, 0.0, 0.5, 1e8])
    np.testing.assert_allclose(
        quick(log_student_tails)(t, 1.0)[1], scipy.stats.cauchy.logsf(t), rtol=1e-12, atol=1e-16
    )
    np.testing.assert_allclose(quick(log_student)(t, 1.0), scipy.stats.cauchy.logpdf(t), rtol=1e-13)


def test_student_with_endless_degrees_of_freedom_is_normal():
    t = np.array([-40.0, -1.0, 0.0, 2.0, 37.0])
    lower, upper = quick(log_student_tails)(t, np.inf)
    np.testing.assert_allclose(lower, log_ndtr(t), rtol=1e-12)
    np.testing.assert_allclose(upper, log_ndtr(-t), rtol=1e-12)


def test_slope_of_student_at_its_centre():
    # The incomplete beta function has an infinite slope in t^2 there; the tail has the density's.
    slope = quick(jax.grad(lambda *v: log_student_tails(*v)[1], argnums=(0, 1)))(0.0, 3.0)
    np.testing.assert_allclose(
        slope, [-2.0 * scipy.stats.t.pdf(0.0, 3.0), 0.0], rtol=1e-12, atol=1e-15
    )


def test_nothing_is_nan_at_the_ends():
    def slopes(a, mu, alpha):
        return jax.value_and_grad(lambda *v: log_odds_tails(*v)[0], argnums=(0, 1, 2))(a, mu, alpha)

    grid = np.array(np.meshgrid([1e-300, 1.0, 1e8], [0.0, 1.0, 1e300, np.inf], [0.0, 1e-8, 1e30]))
    values, gradient = quick(jax.vmap(slopes))(*grid.reshape(3, -1))
    assert not np.isnan(values).any()
    assert np.isfinite(gradient).all()


def test_counts_far_above_their_mean_keep_their_digits():
    """With a dispersion of one they are geometric: k log[mu / (1 + mu)] - log(1 + mu)."""
    k, mu = np.meshgrid([1e4, 1e6, 1e8], [1e-6, 1e-3, 0.5, 7.0])
    expected = -k * np.log1p(1.0 / mu) - np.log1p(mu)
    np.testing.assert_allclose(quick(log_negative_binomial)(k, mu, 1.0), expected, rtol=1e-13)
