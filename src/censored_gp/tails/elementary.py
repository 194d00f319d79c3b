"""Elementary functions that keep their digits where the obvious formula loses them."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc, gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Float

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


@jax.custom_jvp
def log1mexp(x: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return log(1 - exp(x)) for x <= 0: the log of one minus a probability given as a log."""
    x = jnp.asarray(x)
    near = x > -math.log(2.0)
    small = jnp.log(-jnp.expm1(jnp.where(near, x, -1.0)))
    return jnp.where(near, small, jnp.log1p(-jnp.exp(jnp.where(near, -1.0, x))))


@log1mexp.defjvp
def _log1mexp_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    x = jnp.asarray(x)
    # At x = 0 the slope is infinite; zero there keeps an unused branch from spreading NaN.
    slope = jnp.where(x < 0, -1.0 / jnp.expm1(-jnp.where(x < 0, x, -1.0)), 0.0)
    return log1mexp(x), slope * dx


def log_ratio_excess(
    ratio: Float[ArrayLike, "..."], excess: Float[ArrayLike, "..."]
) -> Float[Array, "..."]:
    """Return log(ratio) - excess where excess = ratio - 1 is given without cancellation."""
    near = jnp.abs(excess) < 0.3
    inner = jnp.where(near, excess, 0.0)
    outer = jnp.log(jnp.where(near, 1.0, ratio)) - excess
    return jnp.where(near, inner**2 * log1p_curvature(inner), outer)


def log1p_curvature(x: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return (log(1 + x) - x) / x^2 for |x| < 0.3, smooth through x = 0.

    With r = x / (2 + x), log(1 + x) = 2 atanh(r) = 2 r (1 + r^2/3 + r^4/5 + ...).
    """
    square = (x / (2.0 + x)) ** 2
    series = jnp.zeros_like(square)
    for k in reversed(range(10)):
        series = 1.0 / (2 * k + 3) + square * series
    return (2.0 * x * series / (2.0 + x) ** 2 - 1.0) / (2.0 + x)


def stirling_error(reciprocal: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return log Gamma(z) - [(z - 1/2) log z - z + log(2 pi) / 2] at z = 1 / reciprocal.

    Taking 1 / z lets a shape go to infinity (reciprocal 0) with all its derivatives.
    """
    reciprocal = jnp.asarray(reciprocal)
    large = reciprocal < 1 / 16
    w = jnp.where(large, reciprocal, 0.0)
    square, series = w * w, jnp.zeros_like(w)
    for coefficient in reversed(STIRLING):
        series = coefficient + square * series
    z = 1.0 / jnp.where(large, 1.0, reciprocal)
    direct = gammaln(z) - (z - 0.5) * jnp.log(z) + z - HALF_LOG_2PI
    return jnp.where(large, w * series, direct)


def erfcx(w: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return exp(w^2) erfc(w) for w >= 0, without underflow or overflow."""
    w = jnp.asarray(w)
    near = w < 10.0
    inner = jnp.where(near, w, 1.0)
    outer = jnp.where(near, 10.0, w)
    square, series = -0.5 / outer**2, jnp.ones_like(w)
    for k in reversed(range(1, 12)):
        series = 1.0 + (2 * k - 1) * square * series
    asymptotic = series / (outer * math.sqrt(math.pi))
    return jnp.where(near, jnp.exp(inner**2) * erfc(inner), asymptotic)


@jax.custom_jvp
def log_ndtr(z: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return log Phi(z), the log of the standard normal cdf, right in both tails."""
    z = jnp.asarray(z)
    below = jnp.where(z < 0, -z, 0.0)
    above = jnp.where(z < 0, 0.0, z)
    lower = jnp.log(0.5 * erfcx(below * math.sqrt(0.5))) - 0.5 * below**2
    return jnp.where(z < 0, lower, jnp.log1p(-0.5 * erfc(above * math.sqrt(0.5))))


@log_ndtr.defjvp
def _log_ndtr_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (z,), (dz,) = primals, tangents
    return log_ndtr(z), normal_hazard(-jnp.asarray(z)) * dz


def normal_hazard(z: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
    """Return phi(z) / Phi(-z), the slope of -log P(Z > z); 0 at either infinity."""
    z = jnp.where(jnp.isfinite(z), z, -100.0)
    above = jnp.where(z > 0, z, 0.0)
    below = jnp.where(z > 0, 0.0, z)
    upper = math.sqrt(2.0 / math.pi) / erfcx(above * math.sqrt(0.5))
    density = jnp.exp(-0.5 * below**2 - HALF_LOG_2PI)
    return jnp.where(z > 0, upper, density / (0.5 * erfc(below * math.sqrt(0.5))))
