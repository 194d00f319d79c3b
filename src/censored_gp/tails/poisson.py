"""Log probabilities of a Poisson count."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.scipy.special import digamma, gammaln, xlogy
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from censored_gp.tails.elementary import HALF_LOG_2PI, log_ratio_excess, stirling_error

FEW = 16.0


def log_poisson(
    k: Float[ArrayLike, "*#batch"], mu: Float[ArrayLike, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return log[mu^k e^-mu / k!], also for counts in the millions."""
    k, mu = jnp.broadcast_arrays(jnp.asarray(k, float), jnp.asarray(mu, float))
    return _log_poisson(k, jnp.maximum(mu, 1e-290))


@jax.custom_jvp
def _log_poisson(
    k: Float[Array, "*#batch"], mu: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    few = jnp.where(k < FEW, k, 0.0)
    direct = xlogy(few, mu) - mu - gammaln(few + 1.0)
    many = jnp.where(k < FEW, FEW, k)
    deviance = many * log_ratio_excess(mu / many, (mu - many) / many)
    saddle = deviance - 0.5 * jnp.log(many) - HALF_LOG_2PI - stirling_error(1.0 / many)
    return jnp.where(k < FEW, direct, saddle)


def _log_poisson_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (k, mu), (dk, dmu) = primals, tangents
    tangent = jnp.zeros_like(mu)
    if not isinstance(dmu, SymbolicZero):
        tangent = tangent + (k - mu) / mu * dmu
    if not isinstance(dk, SymbolicZero):
        tangent = tangent + (jnp.log(mu) - digamma(k + 1.0)) * dk
    return _log_poisson(k, mu), tangent


_log_poisson.defjvp(_log_poisson_jvp, symbolic_zeros=True)
