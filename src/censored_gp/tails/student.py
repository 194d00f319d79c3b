"""Student's t in log space, smooth down to the normal limit 1 / df = 0."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from censored_gp.tails.beta import log_odds_tails
from censored_gp.tails.elementary import HALF_LOG_2PI, log1mexp, log1p_ratio, stirling_error


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


def log_student_survival(
    t: Float[ArrayLike, "*#batch"], df: Float[ArrayLike, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return log P(T > t) for Student's t with df degrees of freedom.

    For t >= 0 it is half of P(|T| > t), an incomplete beta function of t^2.
    """
    return _log_survival(*jnp.broadcast_arrays(jnp.asarray(t, float), jnp.asarray(df, float)))


def _formula(t: Float[Array, "*#batch"], df: Float[Array, "*#batch"]) -> Float[Array, "*#batch"]:
    outside = log_odds_tails(0.5, 0.5 * jnp.square(t), 2.0 / df)[1] - math.log(2.0)
    return jnp.where(t > 0, outside, log1mexp(outside))


_log_survival = jax.custom_jvp(_formula)


def _log_survival_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (t, df), (dt, ddf) = primals, tangents
    if isinstance(ddf, SymbolicZero):
        value, change = _log_survival(t, df), jnp.zeros_like(t)
    else:
        # The slope in t^2 is infinite at t = 0, so that direction is left to the density below.
        value, change = jax.jvp(lambda shape: _formula(t, shape), (df,), (ddf,))
    if not isinstance(dt, SymbolicZero):
        change = change - jnp.exp(log_student(t, df) - value) * dt
    return value, change


_log_survival.defjvp(_log_survival_jvp, symbolic_zeros=True)
