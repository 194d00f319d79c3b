"""Negative binomial probabilities in log space, smooth down to the Poisson limit alpha = 0."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from censored_gp.tails.beta import HUGE, log_odds_kernel


def log_negative_binomial(
    k: Float[ArrayLike, "*#batch"],
    mu: Float[ArrayLike, "*#batch"],
    alpha: Float[ArrayLike, "*#batch"],
) -> Float[Array, "*#batch"]:
    """Return log P(Y = k) for a count of mean mu and variance mu + alpha mu^2.

    P(k) = C(k + r - 1, k) p^r (1 - p)^k with r = 1/alpha and p = 1 / (1 + alpha mu).
    """
    values = (jnp.asarray(value, float) for value in (k, mu, alpha))
    k, mu, alpha = jnp.broadcast_arrays(*values)
    return _log_mass(k, jnp.clip(mu, 1e-290, 1e120), jnp.minimum(alpha, HUGE))


def _formula(
    k: Float[Array, "*#batch"], mu: Float[Array, "*#batch"], alpha: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    odds = jnp.log1p(alpha * mu) - jnp.log1p(alpha * k) - jnp.log(mu)
    return log_odds_kernel(k + 1.0, mu, alpha) + odds


_log_mass = jax.custom_jvp(_formula)


def _log_mass_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (k, mu, alpha), (dk, dmu, dalpha) = primals, tangents
    change = jnp.zeros_like(mu)
    value = _log_mass(k, mu, alpha)
    if not isinstance(dalpha, SymbolicZero):
        change = change + jax.jvp(lambda s: _formula(k, mu, s), (alpha,), (dalpha,))[1]
    if not isinstance(dk, SymbolicZero):
        change = change + jax.jvp(lambda s: _formula(s, mu, alpha), (k,), (dk,))[1]
    if not isinstance(dmu, SymbolicZero):
        change = change + (k - mu) / (mu * (1.0 + alpha * mu)) * dmu
    return value, change


_log_mass.defjvp(_log_mass_jvp, symbolic_zeros=True)
