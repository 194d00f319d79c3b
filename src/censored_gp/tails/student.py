"""Student's t in log space, smooth down to the normal limit 1 / df = 0."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from censored_gp.tails.beta import log_odds_tails
from censored_gp.tails.elementary import (
    HALF_LOG_2PI,
    both_tails,
    log1p_ratio,
    stirling_error,
)


def log_student(
    t: Float[ArrayLike, "*#batch"], df: Float[ArrayLike, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return the log density at t of Student's t with df degrees of freedom.

    log f = log[Gamma((df+1)/2) / (sqrt(pi df) Gamma(df/2))] - (df+1)/2 log(1 + t^2/df).
    """
    alpha, h = 2.0 / jnp.asarray(df), 0.5 * jnp.square(t)
    errors = stirling_error(alpha / (1.0 + 0.5 * alpha)) - stirling_error(alpha)
    normaliser = errors + log1p_ratio(alpha, 0.5) - 0.5 - HALF_LOG_2PI
    return normaliser - (1.0 + 0.5 * alpha) * log1p_ratio(alpha, h)


def log_student_tails(
    t: Float[ArrayLike, "*#batch"], df: Float[ArrayLike, "*#batch"]
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return (log P(T <= t), log P(T > t)) at the cost of one of them.

    The smaller is half of P(|T| > |t|), an incomplete beta function of t^2.
    """
    return _log_tails(*jnp.broadcast_arrays(jnp.asarray(t, float), jnp.asarray(df, float)))


def _formula(t: Float[Array, "*#batch"], df: Float[Array, "*#batch"]) -> tuple[Array, Array]:
    outside = log_odds_tails(0.5, 0.5 * jnp.square(t), 2.0 / df)[1] - math.log(2.0)
    return both_tails(outside, t < 0)


_log_tails = jax.custom_jvp(_formula)


def _log_tails_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    (t, df), (dt, ddf) = primals, tangents
    if isinstance(ddf, SymbolicZero):
        tails, change = _formula(t, df), (jnp.zeros_like(t), jnp.zeros_like(t))
    else:
        # The slope in t^2 is infinite at t = 0, so that direction is left to the density below.
        tails, change = jax.jvp(lambda shape: _formula(t, shape), (df,), (ddf,))
    if not isinstance(dt, SymbolicZero):
        density = log_student(t, df)
        change = (
            change[0] + jnp.exp(density - tails[0]) * dt,
            change[1] - jnp.exp(density - tails[1]) * dt,
        )
    return tails, change


_log_tails.defjvp(_log_tails_jvp, symbolic_zeros=True)
