"""Incomplete gamma functions: identities, shapes in the millions, derivatives."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_ndtr

from censored_gp.likelihoods.special import gamma as temme
from censored_gp.likelihoods.special.beta import _log_smaller
from censored_gp.likelihoods.special.gamma import log_gamma_kernel, log_gamma_tails, log_poisson
from support.quick import quick


def log_upper(a, x):
    """log Q(a, x)."""
    return log_gamma_tails(a, x)[1]


lower_tail, upper_tail = quick(lambda a, x: log_gamma_tails(a, x)[0]), quick(log_upper)
A, X = np.meshgrid([0.05, 0.9, 1.0, 4.0, 11.9, 12.1, 40.0, 1e3], [0.02, 0.6, 1.0, 1.7, 6.0])
X = A * X


def test_tails_sum_to_one():
    total = np.exp(lower_tail(A, X)) + np.exp(upper_tail(A, X))
    np.testing.assert_allclose(total, 1.0, rtol=1e-13)


def test_recurrence_in_the_shape():
    # P(a, x) - P(a + 1, x) = x^a e^-x / Gamma(a + 1).
    difference = np.exp(lower_tail(A, X)) - np.exp(lower_tail(A + 1.0, X))
    np.testing.assert_allclose(
        difference, np.exp(quick(log_gamma_kernel)(A, X)) / A, rtol=1e-9, atol=1e-15
    )


def test_shape_one_is_exponential_and_shape_half_is_normal():
    x = np.array([1e-10, 0.3, 2.0, 700.0])
    np.testing.assert_allclose(upper_tail(np.ones(4), x), -x, rtol=1e-14)
    np.testing.assert_allclose(
        upper_tail(np.full(4, 0.5), x), np.log(2) + log_ndtr(-np.sqrt(2 * x)), rtol=1e-9
    )


@pytest.mark.parametrize("x", [0.96e6, 0.9995e6, 1.0002e6, 1.04e6])
def test_a_shape_of_a_million(x):
    with mp.workdps(40):
        a, v = mp.mpf(10) ** 6, mp.mpf(x)
        term = total = mp.mpf(1)
        n = 0
        # The series of P, or the series of Q downwards from a whole-numbered shape.
        while term > total * mp.mpf(10) ** -25:
            n += 1
            term *= v / (a + n) if x < a else (a - n) / v
            total += term
        kernel = a * mp.log(v) - v - mp.loggamma(a)
        expected = float(kernel + mp.log(total) - mp.log(a if x < a else v))
    found = lower_tail(1e6, x) if x < 1e6 else upper_tail(1e6, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_expansion_and_the_fraction_agree_where_they_meet():
    a = np.full(8, 14.0)
    x = a * np.array([0.4, 0.6, 0.8, 0.99, 1.1, 1.3, 1.8, 2.3])

    @quick
    def ways(a, x):
        fraction, _ = _log_smaller(a, x, jnp.zeros_like(a))
        return temme.log_smaller_tail(a, x), fraction

    np.testing.assert_allclose(*ways(a, x), rtol=1e-12)


def test_first_coefficients_of_temme():
    # C_0(0) = -1/3, C_1(0) = -1/540, and C_0 begins -1/3 + eta/12 (DLMF 8.12.13).
    table = temme.coefficients()
    np.testing.assert_allclose(table[:2, 0], [-1 / 3, -1 / 540], rtol=1e-15)
    np.testing.assert_allclose(table[0, 1], 1 / 12, rtol=1e-15)


def test_forward_and_reverse_derivatives_agree():
    a, x = jnp.array([0.7, 3.0, 30.0]), jnp.array([2.0, 1.0, 33.0])

    @quick
    def both(a, x):
        ones, zeros = jnp.ones(3), jnp.zeros(3)
        reverse = jax.vmap(jax.grad(log_upper, argnums=(0, 1)))(a, x)
        by_shape = jax.jvp(log_upper, (a, x), (ones, zeros))[1]
        return reverse, (by_shape, jax.jvp(log_upper, (a, x), (zeros, ones))[1])

    np.testing.assert_allclose(*both(a, x), rtol=1e-12)


@pytest.mark.slow
def test_second_derivative_in_x():
    # d/dx log Q = -h with h = k/(x Q), and h' = h ((a - 1)/x - 1 + h).
    a, x = 3.0, 4.0
    h = -jax.grad(log_upper, argnums=1)(a, x)
    second = jax.jacfwd(jax.grad(log_upper, argnums=1), argnums=1)(a, x)
    np.testing.assert_allclose(second, -h * ((a - 1) / x - 1 + h), rtol=1e-10)


def test_nothing_is_nan_at_the_ends():
    a, x = np.meshgrid([1e-300, 0.5, 3.0, 1e8], [0.0, 1e-300, 1e300, np.inf])
    both = quick(jax.vmap(jax.value_and_grad(log_upper, argnums=(0, 1))))
    values, slopes = both(a.ravel(), x.ravel())
    assert not np.isnan(values).any()
    assert np.isfinite(slopes).all()


def test_poisson_probabilities_are_differences_of_tails():
    k, mu = np.array([0.0, 3.0, 15.0, 16.0, 80.0]), np.array([0.3, 2.0, 15.0, 17.0, 70.0])
    mass = np.exp(upper_tail(k + 1, mu)) - np.where(
        k > 0, np.exp(upper_tail(np.maximum(k, 1.0), mu)), 0.0
    )
    np.testing.assert_allclose(np.exp(quick(log_poisson)(k, mu)), mass, rtol=1e-11)


def test_slopes_of_the_poisson_probability():
    by_count, by_rate = quick(jax.grad(log_poisson, argnums=(0, 1)))(4.0, 2.5)
    np.testing.assert_allclose(by_rate, 4.0 / 2.5 - 1.0, rtol=1e-14)
    np.testing.assert_allclose(by_count, np.log(2.5) - float(mp.digamma(5)), rtol=1e-12)
