"""Sums of a Poisson number of gamma amounts, beside sums of SciPy's functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as sc
import scipy.stats as st

from censored_gp.likelihoods import Tweedie
from censored_gp.likelihoods.special.compound import log_compound_tails, log_jump_sum
from censored_gp.likelihoods.support import JUST
from support.quick import quick

SHAPES = np.array([0.02, 0.3, 1.0, 4.0, 19.0])
RATES = np.array([1e-9, 0.02, 0.7, 5.0, 60.0])
JUMPS = np.arange(1, 400)[:, None, None]


def test_the_sum_over_jumps_is_wrights_function():
    """Phi(a, 0; z) = sum_j z^j / (j! Gamma(a j)) has the same terms, of any size."""
    jumps = np.array([1e-3, 0.5, 3.0, 20.0, 45.0, 90.0])
    found = quick(log_jump_sum)(jumps, SHAPES[:, None])
    z = jumps * (SHAPES[:, None] * jumps) ** SHAPES[:, None]
    expected = sc.log_wright_bessel(SHAPES[:, None], 0.0, z) - (1.0 + SHAPES[:, None]) * jumps
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_many_jumps_are_the_saddle_point_approximation():
    """R -> sqrt(a n / (2 pi (1 + a))), with its slopes, and an error of 1 / n."""
    n = 1e9
    values, slopes = quick(jax.value_and_grad(lambda a: log_jump_sum(n, a).sum()))(SHAPES)
    expected = 0.5 * np.log(SHAPES * n / (2 * np.pi * (1 + SHAPES)))
    np.testing.assert_allclose(values, expected.sum(), rtol=1e-7)
    np.testing.assert_allclose(slopes, 0.5 / SHAPES - 0.5 / (1 + SHAPES), rtol=1e-3)


def test_tails_are_poisson_sums_of_incomplete_gamma_functions():
    """At all sizes of the rate and the shape, from the smallest amount to ten deviations out."""
    rate, a = RATES[:, None], SHAPES
    spread = np.sqrt(rate * a * (a + 1))
    x = np.stack([1e-6 * a + 0 * rate, 0.5 * a + 0 * rate, a + 0 * rate, rate * a + 0.1 * spread])
    x = np.concatenate([x, [rate * a + 3 * spread, rate * a + 10 * spread]])
    cdf, survival = quick(log_compound_tails)(rate, a, x)
    weight = st.poisson.pmf(JUMPS, rate)
    for i, each in enumerate(x):
        above, below = (np.sum(weight * f(JUMPS * a, each), 0) for f in (sc.gammaincc, sc.gammainc))
        np.testing.assert_allclose(np.exp(survival[i]), above, rtol=1e-9)
        np.testing.assert_allclose(np.exp(cdf[i]), np.exp(-rate) + below, rtol=1e-9)


def test_slopes_are_finite_at_zero_and_next_to_it():
    y = np.array([0.0, 5e-324, 1e-300, 1e-100, 1e-9, 1.0])

    @quick
    def slopes(*theta):
        density = jax.jacrev(lambda *t: Tweedie().log_density(y, *t), argnums=(0, 1, 2))
        tails = jax.jacrev(lambda *t: Tweedie().log_tails(y, *t), argnums=(0, 1, 2))
        return density(*theta), tails(*theta)

    for theta in ((4.0, 2.0, 1.5), (1e-3, 5.0, 1.1), (1e4, 0.1, 1.9)):
        assert all(np.isfinite(each).all() for each in jax.tree.leaves(slopes(*theta)))


def test_bounds_at_zero_include_its_probability():
    """At least 0 says nothing, at most 0 is zero itself, and from 0 on is a lower tail."""
    lower, upper = np.array([[0, np.inf], [-np.inf, 0], [0, 2], [-np.inf, 2], [0, 0]]).T
    theta = (3.0, 1.5, 1.4)
    found = np.asarray(quick(lambda *t: Tweedie().log_likelihood(lower, upper, *t))(*theta))
    assert (found[0], found[1], found[2]) == (0.0, found[4], found[3])
    assert found[4] == quick(Tweedie().log_density)(0.0, *theta)


def test_a_part_of_the_period_and_the_rest_add_up():
    """The sum of independent parts of 0.3 and 0.7 has the mean, variance and zeros of the whole."""
    family = Tweedie()

    @quick
    def of_parts_and_of_the_whole(*theta):
        several = [*(family.exposed(share, *theta) for share in (0.3, 0.7)), theta]
        return jnp.array([(family.log_density(0.0, *t), family.variance(*t)) for t in several])

    first, second, whole = np.asarray(of_parts_and_of_the_whole(3.0, 1.5, 1.4))
    np.testing.assert_allclose(first + second, whole, rtol=1e-12)


def test_a_fixed_power_is_no_parameter():
    fixed = Tweedie(power=1.3)
    assert [parameter.name for parameter in fixed.parameters] == ["mean", "dispersion"]
    np.testing.assert_allclose(fixed.theta(0.0, 0.0), [1.0, 1.0, 1.3])
    assert repr(fixed) == "Tweedie(power=1.3)"
    assert fixed != Tweedie(power=1.4)
    with pytest.raises(ValueError, match=r"`power` must be a number between 1.01 and 1.99, got 2"):
        Tweedie(power=2)


def test_nothing_lies_just_below_zero_in_any_unit():
    """Programs take numbers below 2e-308 for zero, which has a probability."""
    scale = np.array([1e-100, 1.0, 1e10, 1e100])
    below, above = quick(Tweedie().log_tails_anywhere)(-JUST / scale, 1.0, 1.0, 1.5)
    np.testing.assert_array_equal(below, np.full(4, -np.inf))
    np.testing.assert_array_equal(above, np.zeros(4))
