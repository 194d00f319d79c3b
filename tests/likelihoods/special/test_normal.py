"""The normal's probability of an interval, against many digits and against the general rule."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from censored_gp.likelihoods.special.elementary import log_ndtr, normal_hazard
from censored_gp.likelihoods.special.interval import log_interval
from censored_gp.likelihoods.special.normal import log_normal_interval
from support.quick import quick

CENTRES = [0.0, 1e-9, 0.1, -0.7, 1.0, -3.0, 8.0, 37.5, -300.0, 1e6]
HALVES = [1e-12, 1e-6, 1e-3, 0.099, 0.101, 0.9, 3.0, 8.5, 40.0]
PLACES = [(c, h) for c in CENTRES for h in HALVES]


def about(centre, half):
    return log_normal_interval(centre - half, centre + half, half)


@quick
def with_slopes(centre, half):
    return jax.vmap(jax.value_and_grad(about, argnums=(0, 1)))(centre, half)


def exact(centre, half):
    """Return the log probability and its slopes with hundreds of digits."""
    with mpmath.workdps(400):
        c, h = mpmath.mpf(abs(centre)), mpmath.mpf(half)
        # Of what is on the side where both tails are small.
        a, b = c - h, c + h
        mass = (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2
        at = [mpmath.npdf(z) / mass for z in (a, b)]
        slope = float(at[1] - at[0]) * (-1.0 if centre < 0 else 1.0)
        return float(mpmath.log(mass)), slope, float(at[0] + at[1])


def test_value_and_slopes_have_all_their_digits():
    centre, half = np.array(PLACES).T
    value, (by_centre, by_half) = with_slopes(centre, half)
    expected = np.array([exact(*place) for place in PLACES]).T
    # By symmetry some slopes are nought, and have no digits.
    np.testing.assert_allclose(value, expected[0], rtol=1e-14, atol=1e-18)
    np.testing.assert_allclose(by_centre, expected[1], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(by_half, expected[2], rtol=1e-13, atol=1e-300)


def test_it_is_what_the_general_rule_finds():
    centre, half = (np.array(side) for side in zip(*PLACES, strict=True))
    lower, upper = centre - half, centre + half

    @quick
    def general(lower, upper):
        tails = [(log_ndtr(z), log_ndtr(-z)) for z in (lower, upper)]
        return log_interval(lambda z: -0.5 * z**2 - 0.5 * jnp.log(2 * jnp.pi), *tails, lower, upper)

    # Ends that are rounded are another interval: what is narrow and far from nought is left out.
    fair = half > 1e-9 * (1.0 + np.abs(centre))
    found, expected = quick(about)(centre, half), general(lower, upper)
    np.testing.assert_allclose(found[fair], expected[fair], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("centre", [0.0, 0.4, 1.0, 5.0, 60.0])
def test_both_ways_meet_where_one_takes_over(centre):
    edge = 0.1 / max(1.0, centre)
    near = np.array([edge * (1 - 1e-9), edge * (1 + 1e-9)])
    value, slopes = with_slopes(np.full(2, centre), near)
    for each in (value, *slopes):
        np.testing.assert_allclose(each[0], each[1], rtol=1e-8, atol=1e-12)


def test_its_slopes_have_slopes():
    centre, half = jnp.array([-2.0, 0.1, 4.0, 0.0, 0.0]), jnp.array([0.05, 2.0, 1.0, 0.01, 1.0])
    curve = quick(jax.vmap(jax.grad(jax.grad(about))))(centre, half)
    slope = quick(jax.vmap(jax.grad(about)))
    step = 1e-5
    numeric = (slope(centre + step, half) - slope(centre - step, half)) / (2 * step)
    np.testing.assert_allclose(curve, numeric, rtol=1e-7)


def test_an_end_that_is_far_away_does_not_blur_the_other():
    lower, upper = np.full(4, 5.0), np.array([1e3, 1e16, 1e18, 1.7e308])
    half, hazard = 0.5 * upper - 0.5 * lower, normal_hazard(5.0)
    slopes_of = quick(jax.vmap(jax.value_and_grad(log_normal_interval, argnums=(0, 1, 2))))
    for ends, expected in (((lower, upper), (-hazard, 0.0)), ((-upper, -lower), (0.0, hazard))):
        value, slopes = slopes_of(*ends, half)
        np.testing.assert_allclose(value, log_ndtr(-5.0), rtol=1e-14)
        for found, known in zip(slopes, (*expected, 0.0), strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-14)
