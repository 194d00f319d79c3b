"""Incomplete beta functions in log space, with derivatives in the shapes too.

I_x(a, b) is written in terms of (a, mu, alpha) with b = 1 / alpha and x / (1 - x) = alpha mu:
the terms of the negative binomial, in which nothing cancels and the limit alpha = 0 is the
incomplete gamma function P(a, mu). With y = 1 - x = 1 / (1 + alpha mu),

    kernel = x^a y^b / B(a, b) = dI / dlog mu.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from censored_gp.tails.elementary import (
    HALF_LOG_2PI,
    both_slopes,
    both_tails,
    log1p_curvature,
    log_ratio_excess,
    stirling_error,
)
from censored_gp.tails.fraction import steed

TINY, HUGE = 1e-30, 1e30
"""Limits on the shapes, so that products of several of them stay finite."""


def log_beta_tails(
    a: Float[ArrayLike, "*#batch"],
    b: Float[ArrayLike, "*#batch"],
    x: Float[ArrayLike, "*#batch"],
    y: Float[ArrayLike, "*#batch"],
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return (log I_x(a, b), log I_y(b, a)), y = 1 - x, at the cost of one of them."""
    b, x, y = (jnp.asarray(value, float) for value in (b, x, y))
    return log_odds_tails(a, b * x / y, 1.0 / b)


def log_odds_tails(
    a: Float[ArrayLike, "*#batch"],
    mu: Float[ArrayLike, "*#batch"],
    alpha: Float[ArrayLike, "*#batch"],
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return the logs of I_x(a, 1/alpha) and of its complement, x / (1 - x) = alpha mu.

    With a = k + 1 these are P(Y > k) and P(Y <= k) of a negative binomial count Y of mean mu
    and dispersion alpha, a Poisson count if alpha = 0.
    """
    values = (jnp.asarray(value, float) for value in (a, mu, alpha))
    a, mu, alpha = jnp.broadcast_arrays(*values)
    alpha = jnp.minimum(alpha, HUGE)
    return _log_tails(jnp.clip(a, TINY, HUGE), jnp.clip(mu, 1e-290, 1e120), alpha)


def log_odds_kernel(
    a: Float[Array, "*#batch"], mu: Float[Array, "*#batch"], alpha: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return log[x^a y^b / B(a, b)] by its deviance from the mode, in which nothing cancels."""
    y = 1.0 / (1.0 + alpha * mu)
    growth = (1.0 + alpha * a) * y
    first = a * log_ratio_excess(mu / a * growth, (mu - a) * y / a)
    # The second deviance is divided by alpha, which may be 0: one power of it is taken out.
    gap = (a - mu) * y
    near = jnp.abs(alpha * gap) < 0.3
    inner = jnp.where(near, alpha * gap, 0.0)
    outer_alpha = jnp.where(near, 1.0, alpha)
    outer = (jnp.log(jnp.where(near, 1.0, growth)) - outer_alpha * gap) / outer_alpha
    second = jnp.where(near, gap * inner * log1p_curvature(inner), outer)
    errors = (
        stirling_error(alpha / (1.0 + alpha * a)) - stirling_error(1.0 / a) - stirling_error(alpha)
    )
    return first + second + errors + 0.5 * jnp.log(a / (1.0 + alpha * a)) - HALF_LOG_2PI


@jax.custom_jvp
@jax.jit
def _log_tails(
    a: Float[Array, "*#batch"], mu: Float[Array, "*#batch"], alpha: Float[Array, "*#batch"]
) -> tuple[Array, Array]:
    return both_tails(_log_smaller(a, mu, alpha)[0], _is_lower(a, mu, alpha))


def _log_tails_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    (a, mu, alpha), (da, dmu, dalpha) = primals, tangents
    shapes = [i for i, d in enumerate((da, dalpha)) if not isinstance(d, SymbolicZero)]
    (smaller, kernel), slopes = _shape_slopes(a, mu, alpha, shapes)
    lower_is_smaller = _is_lower(a, mu, alpha)
    tails = both_tails(smaller, lower_is_smaller)
    changes = [jnp.zeros_like(a), jnp.zeros_like(a)]
    for slope, i in zip(slopes, shapes, strict=True):
        for side, partial in enumerate(both_slopes(smaller, slope, lower_is_smaller)):
            changes[side] = changes[side] + partial * (da, dalpha)[i]
    if not isinstance(dmu, SymbolicZero):
        changes[0] = changes[0] + jnp.exp(kernel - tails[0]) / mu * dmu
        changes[1] = changes[1] - jnp.exp(kernel - tails[1]) / mu * dmu
    return tails, tuple(changes)


_log_tails.defjvp(_log_tails_jvp, symbolic_zeros=True)


def _shape_slopes(
    a: Float[Array, "*#batch"],
    mu: Float[Array, "*#batch"],
    alpha: Float[Array, "*#batch"],
    shapes: list[int],
) -> tuple[tuple[Array, Array], list[Float[Array, "*#batch"]]]:
    """Return `_log_smaller` and the tail's slopes in a (0) and alpha (1), as asked for."""
    if not shapes:
        return _log_smaller(a, mu, alpha), []

    def along(direction: Float[Array, " 2"]) -> tuple[tuple[Array, Array], Array]:
        tangents = (direction[0] * jnp.ones_like(a), direction[1] * jnp.ones_like(a))
        values, slopes = jax.jvp(lambda s, t: _log_smaller(s, mu, t), (a, alpha), tangents)
        return values, slopes[0]

    values, slopes = jax.vmap(along, out_axes=(None, 0))(jnp.eye(2)[jnp.array(shapes)])
    return values, list(slopes)


def _is_lower(
    a: Float[Array, "*#batch"], mu: Float[Array, "*#batch"], alpha: Float[Array, "*#batch"]
) -> Bool[Array, "*#batch"]:
    """Return where I_x(a, b) is computed and its complement derived: x < (a+1) / (a+b+2)."""
    return a + 1.0 > mu * (1.0 + alpha)


@jax.jit
def _log_smaller(
    a: Float[Array, "*#batch"], mu: Float[Array, "*#batch"], alpha: Float[Array, "*#batch"]
) -> tuple[Array, Array]:
    """Return log I_x(a, b) where `_is_lower`, log I_y(b, a) elsewhere, and the log kernel."""
    lower = _is_lower(a, mu, alpha)
    y = 1.0 / (1.0 + alpha * mu)
    x = alpha * mu * y
    gap = jnp.where(lower, a - mu, mu - a) * y
    fraction = _beta_fraction(
        jnp.where(lower, 1.0 / a, alpha),
        jnp.where(lower, mu, a) * y,
        jnp.where(lower, x, y),
        jnp.where(lower, y, x),
        gap,
    )
    kernel = log_odds_kernel(a, mu, alpha)
    return kernel + jnp.log(fraction), kernel


def _beta_fraction(
    s: Float[Array, "*#batch"],
    v: Float[Array, "*#batch"],
    x: Float[Array, "*#batch"],
    y: Float[Array, "*#batch"],
    gap: Float[Array, "*#batch"],
) -> Float[Array, "*#batch"]:
    """Return I_x(a, b) / kernel by the fraction of Didonato and Morris (TOMS 708, BFRAC).

    Its arguments s = 1/a, v = b x, x, y = 1 - x and gap = a y - b x stay finite, and its terms
    smooth, as either shape goes to infinity.
    """

    def coefficients(n: Float[Array, ""]) -> tuple[Array, Array]:
        # BFRAC divides by p_n = 1 + (2n - 1) s; multiplying b_n by p_n p_(n+1), and a_n to match,
        # leaves the fraction as it is and no division but the algorithm's own.
        before = 1.0 + jnp.where(n > 1.0, 2.0 * n - 3.0, 0.0) * s
        here, after = 1.0 + (2.0 * n - 1.0) * s, 1.0 + (2.0 * n + 1.0) * s
        rest, weight = n * (v - n * x), 1.0 + (n - 1.0) * s
        numerator = rest * weight * (weight * x + v * s) * (before * after)
        slope = (1.0 + n * s) * (gap + 1.0 + n * (1.0 + y))
        return numerator, (n * here + rest * s) * after + slope * here

    return (1.0 + s) * steed(coefficients, 1.0 / (gap + 1.0))
