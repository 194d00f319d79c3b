"""Incomplete gamma functions in log space, with derivatives in the shape too.

P(a, x) = int_0^x t^(a-1) e^-t dt / Gamma(a) and Q = 1 - P. The smaller of the two is computed
with full relative precision and the other follows from it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from censored_gp.tails import temme
from censored_gp.tails.elementary import (
    HALF_LOG_2PI,
    both_slopes,
    both_tails,
    log_ratio_excess,
    stirling_error,
)
from censored_gp.tails.fraction import TOLERANCE, steed

MAXIMUM_STEPS = 2000
TINY, HUGE = 1e-30, 1e30
"""Limits on the shape, so that products of several of them stay finite."""


def log_gamma_tails(
    a: Float[ArrayLike, "*#batch"], x: Float[ArrayLike, "*#batch"]
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return (log P(a, x), log Q(a, x)) for a > 0 and x >= 0 at the cost of one of them."""
    a, x = jnp.broadcast_arrays(jnp.asarray(a, float), jnp.asarray(x, float))
    return _log_tails(jnp.clip(a, TINY, HUGE), jnp.clip(x, 1e-290, 1e120))


def log_gamma_kernel(
    a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return log[x^a e^-x / Gamma(a)] = dP / dlog x, without subtracting large numbers."""
    deviance = a * log_ratio_excess(x / a, (x - a) / a)
    return deviance + 0.5 * jnp.log(a) - HALF_LOG_2PI - stirling_error(1.0 / a)


@jax.custom_jvp
@jax.jit
def _log_tails(a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]) -> tuple[Array, Array]:
    return both_tails(_log_smaller(a, x), _is_lower(a, x))


def _log_tails_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    (a, x), (da, dx) = primals, tangents
    lower_is_smaller = _is_lower(a, x)
    change = (jnp.zeros_like(a), jnp.zeros_like(a))
    if isinstance(da, SymbolicZero):
        smaller = _log_smaller(a, x)
    else:
        smaller, slope = jax.jvp(lambda shape: _log_smaller(shape, x), (a,), (jnp.ones_like(a),))
        change = tuple(s * da for s in both_slopes(smaller, slope, lower_is_smaller))
    tails = both_tails(smaller, lower_is_smaller)
    if not isinstance(dx, SymbolicZero):
        kernel, relative = log_gamma_kernel(a, x), dx / x
        change = (
            change[0] + jnp.exp(kernel - tails[0]) * relative,
            change[1] - jnp.exp(kernel - tails[1]) * relative,
        )
    return tails, change


_log_tails.defjvp(_log_tails_jvp, symbolic_zeros=True)


def _is_lower(a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]) -> Bool[Array, "*#batch"]:
    """Return where P is computed and Q derived; past x = a + 1 it is the other way round."""
    return jnp.where(temme.in_region(a, x), x < a, x < a + 1.0)


@jax.jit
def _log_smaller(a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]) -> Float[Array, "*#batch"]:
    """Return log P where `_is_lower`, log Q elsewhere, each by what converges fast there."""
    uniform, lower = temme.in_region(a, x), _is_lower(a, x)
    expansion = temme.log_smaller_tail(jnp.where(uniform, a, 20.0), jnp.where(uniform, x, 20.0))
    below, above = lower & ~uniform, ~lower & ~uniform
    series = _power_series(jnp.where(below, a, 1.0), jnp.where(below, x, 0.0)) / a
    fraction = _legendre_fraction(jnp.where(above, a, 1.0), jnp.where(above, x, 1.0))
    a, x = jnp.where(uniform, 1.0, a), jnp.where(uniform, 1.0, x)
    looped = log_gamma_kernel(a, x) + jnp.log(jnp.where(below, series, fraction))
    return jnp.where(uniform, expansion, looped)


def _power_series(
    a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return 1 + x/(a+1) + x^2/((a+1)(a+2)) + ... = a P / kernel (DLMF 8.11.4)."""

    def step(state: tuple) -> tuple:
        n, term, total = state
        term = term * (x / (a + n + 1.0))
        return n + 1.0, term, total + term

    def unfinished(state: tuple) -> Bool[Array, ""]:
        n, term, total = state
        return (n < MAXIMUM_STEPS) & jnp.any(term > TOLERANCE * total)

    return lax.while_loop(unfinished, step, (0.0, jnp.ones_like(x), jnp.ones_like(x)))[2]


def _legendre_fraction(
    a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return Q / kernel = 1/(x+1-a + 1(a-1)/(x+3-a + 2(a-2)/(x+5-a + ...))) (DLMF 8.9.2)."""

    def coefficients(n: Float[Array, ""]) -> tuple[Array, Array]:
        return n * (a - n), x - a + (2.0 * n + 1.0)

    return steed(coefficients, 1.0 / (x - a + 1.0))
