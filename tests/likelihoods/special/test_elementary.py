"""Elementary functions where the obvious formula loses its digits."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np

from censored_gp.likelihoods.special import elementary as el
from support.quick import quick


def exactly(function, points):
    """The function in 40 digits, as doubles."""
    with mp.workdps(40):
        return np.array([float(function(mp.mpf(float(p)))) for p in points])


def test_log1mexp_at_both_ends():
    x = np.array([-1e-300, -1e-20, -1e-3, -0.69, -0.7, -3.0, -40.0, -700.0])
    expected = exactly(lambda v: mp.log(-mp.expm1(v)) if v > -1 else mp.log1p(-mp.exp(v)), x)
    np.testing.assert_allclose(quick(el.log1mexp)(x), expected, rtol=1e-14)
    assert el.log1mexp(-np.inf) == 0.0
    slope = quick(jax.grad(el.log1mexp))
    assert slope(-np.inf) == slope(0.0) == 0.0


def test_log_ndtr_from_minus_to_plus_forty():
    z = np.linspace(-40.0, 40.0, 161)

    def exact(v):
        tail = mp.erfc(abs(v) / mp.sqrt(2)) / 2
        return mp.log(tail) if v < 0 else mp.log1p(-tail)

    np.testing.assert_allclose(quick(el.log_ndtr)(z), exactly(exact, z), rtol=1e-12, atol=1e-300)


def test_slope_of_log_ndtr_is_the_hazard_also_beyond_any_exponential():
    z = np.array([-40.0, -10.0, -0.5, 0.5, 10.0])
    expected = exactly(lambda v: mp.npdf(v) / mp.ncdf(v), z)
    np.testing.assert_allclose(quick(jax.vmap(jax.grad(el.log_ndtr)))(z), expected, rtol=1e-13)
    # -log Phi(-z) grows like z^2 / 2, so its slope is z to the last digit.
    np.testing.assert_allclose(quick(jax.grad(el.log_ndtr))(-1e12), 1e12, rtol=1e-15)


def test_log_ndtr_at_infinity():
    assert el.log_ndtr(np.inf) == 0.0
    assert el.log_ndtr(-np.inf) == -np.inf
    slope = quick(jax.grad(el.log_ndtr))
    assert slope(np.inf) == slope(-np.inf) == 0.0


def test_second_derivative_of_log_ndtr():
    # (log Phi)'' = -h (z + h) with h the first derivative.
    z = np.array([-15.0, -2.0, 0.0, 3.0])
    h = quick(jax.vmap(jax.grad(el.log_ndtr)))(z)
    second = quick(jax.vmap(jax.grad(jax.grad(el.log_ndtr))))(z)
    np.testing.assert_allclose(second, -h * (z + h), rtol=1e-11)


def test_log1p_curvature_is_smooth_through_zero():
    x = np.array([-0.29, -1e-3, -1e-12, 1e-300, 1e-8, 0.2, 0.29])
    expected = exactly(lambda v: (mp.log1p(v) - v) / v**2 if abs(v) > 1e-8 else -0.5 + v / 3, x)
    np.testing.assert_allclose(el.log1p_curvature(x), expected, rtol=2e-15)
    assert el.log1p_curvature(0.0) == -0.5
    np.testing.assert_allclose(quick(jax.grad(el.log1p_curvature))(0.0), 1 / 3, rtol=1e-15)


def test_log_ratio_excess_agrees_on_both_sides_of_its_switch():
    excess = np.array([-0.999, -0.31, -0.29, 1e-9, 0.29, 0.31, 1e6])
    expected = exactly(lambda v: mp.log1p(v) - v, excess)
    np.testing.assert_allclose(el.log_ratio_excess(1.0 + excess, excess), expected, rtol=1e-13)


def test_log1p_ratio_has_its_limit_with_its_slope():
    h = 3.0
    assert el.log1p_ratio(0.0, h) == h
    np.testing.assert_allclose(quick(jax.grad(el.log1p_ratio))(0.0, h), -(h**2) / 2, rtol=1e-15)
    alpha = np.array([1e-12, 0.05, 0.2, 50.0])
    np.testing.assert_allclose(el.log1p_ratio(alpha, h), np.log1p(alpha * h) / alpha, rtol=1e-14)


def test_stirling_error_from_tiny_to_infinite_shapes():
    z = np.array([1e-20, 0.1, 1.0, 15.9, 16.1, 300.0, 1e9])

    def exact(v):
        return mp.loggamma(v) - ((v - 0.5) * mp.log(v) - v + mp.log(2 * mp.pi) / 2)

    np.testing.assert_allclose(quick(el.stirling_error)(1.0 / z), exactly(exact, z), rtol=1e-12)
    assert el.stirling_error(0.0) == 0.0
    np.testing.assert_allclose(quick(jax.grad(el.stirling_error))(0.0), 1 / 12, rtol=1e-15)


def test_erfcx_on_both_sides_of_its_switch():
    w = np.array([0.0, 0.5, 5.0, 9.99, 10.01, 30.0, 1e3])
    expected = exactly(lambda v: mp.exp(v * v) * mp.erfc(v), w)
    np.testing.assert_allclose(quick(el.erfcx)(w), expected, rtol=3e-14)
    slopes = quick(jax.vmap(jax.grad(el.erfcx)))(w)
    exact = exactly(lambda v: 2 * v * mp.exp(v * v) * mp.erfc(v) - 2 / mp.sqrt(mp.pi), w)
    np.testing.assert_allclose(slopes, exact, rtol=1e-10)


def test_both_tails_sum_to_one():
    smaller = jnp.log(jnp.array([1e-300, 0.2, 0.5]))
    lower, upper = el.both_tails(smaller, jnp.array([True, False, True]))
    np.testing.assert_allclose(jnp.exp(lower) + jnp.exp(upper), 1.0, rtol=1e-15)
    np.testing.assert_allclose(upper[0], -1e-300, rtol=1e-12)
