"""The log probability that a standard normal lies in an interval, with both of its slopes."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from censored_gp.tails.elementary import HALF_LOG_2PI, erfcx

NARROW = 0.1
"""Half width, alone and times the centre, up to which Gauss-Legendre is right to the last digit."""
NODES = 5


@jax.custom_jvp
def log_normal_interval(
    centre: Float[ArrayLike, "*#batch"], half: Float[ArrayLike, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return log P(centre - half <= Z <= centre + half) for a finite half > 0.

    As much is right of it however far out the interval lies and however narrow it is. It takes a
    tenth of the time that the general rule takes with the tails of a normal.
    """
    return _value_and_slopes(*jnp.broadcast_arrays(centre, half))[0]


@log_normal_interval.defjvp
def _log_normal_interval_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (centre, half), (d_centre, d_half) = primals, tangents
    value, by_centre, by_half = _value_and_slopes(*jnp.broadcast_arrays(centre, half))
    return value, by_centre * d_centre + by_half * d_half


Parts = tuple[Float[Array, "*#batch"], Float[Array, "*#batch"], Float[Array, "*#batch"]]


def _value_and_slopes(centre: Float[Array, "*#batch"], half: Float[Array, "*#batch"]) -> Parts:
    """Return the log probability, and its slopes in the centre and in the half width."""
    # It is the same on either side of nought.
    away = jnp.abs(centre)
    narrow = (half < NARROW) & (away * half < NARROW)
    # Each way is kept away from what only the other can do.
    summed = _summed(jnp.where(narrow, away, 0.0), jnp.where(narrow, half, NARROW))
    tails = _from_tails(jnp.where(narrow, 0.0, away), jnp.where(narrow, 1.0, half))
    value, by_centre, by_half = (
        jnp.where(narrow, s, t) for s, t in zip(summed, tails, strict=True)
    )
    return value, jnp.sign(centre) * by_centre, by_half


def _summed(centre: Float[Array, "*#batch"], half: Float[Array, "*#batch"]) -> Parts:
    """Integrate the density over its value at the centre, exp(-centre t - t^2 / 2)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    total, first = jnp.zeros_like(half), jnp.zeros_like(half)
    for node, weight in zip(nodes, weights, strict=True):
        t = half * node
        part = weight * jnp.exp(-t * (centre + 0.5 * t))
        total, first = total + part, first + part * t
    mass = half * total
    ends = jnp.exp(-0.5 * half**2) * 2.0 * jnp.cosh(centre * half)
    return jnp.log(mass) - 0.5 * centre**2 - HALF_LOG_2PI, -centre - first / total, ends / mass


def _from_tails(centre: Float[Array, "*#batch"], half: Float[Array, "*#batch"]) -> Parts:
    """Subtract tails on the side where both are small; the centre is not below nought.

    With scaled tails e(z) = exp(z^2 / 2) 2 P(Z > z) nothing underflows.
    """
    a, b = centre - half, centre + half
    scaled_a, scaled_b = (erfcx(jnp.abs(z) * math.sqrt(0.5)) for z in (a, b))
    across = a < 0
    # Not across nought: what is beyond b, and the density there, over those at a.
    fallen = jnp.exp(-2.0 * centre * half)
    left = 1.0 - fallen * scaled_b / scaled_a
    beyond = jnp.log(0.5 * scaled_a * jnp.where(across, 1.0, left)) - 0.5 * a**2
    density = math.sqrt(2.0 / math.pi) / (scaled_a * jnp.where(across, 1.0, left))
    # Across nought: all but two tails.
    near, far = jnp.exp(-0.5 * jnp.where(across, a, 0.0) ** 2), jnp.exp(-0.5 * b**2)
    outside = jnp.where(across, 0.5 * (scaled_a * near + scaled_b * far), 0.0)
    at_a, at_b = (d * math.exp(-HALF_LOG_2PI) / (1.0 - outside) for d in (near, far))
    at_a, at_b = jnp.where(across, at_a, density), jnp.where(across, at_b, density * fallen)
    return jnp.where(across, jnp.log1p(-outside), beyond), at_b - at_a, at_a + at_b
