"""Moments between bounds, from the laws that a family's is tilted to by powers of the datum.

E[Y^m | a <= Y <= b] = E[Y^m] P_m(a <= Y <= b) / P(a <= Y <= b), where P_m has the density of Y
times y^m / E[Y^m]. Where the interval is narrow the variance would cancel: there a sum serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

NARROW = 1.5
"""Upper over lower bound up to which the density is summed over the interval."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def moments_by_powers(
    log_density: Callable[[Array], Array],
    log_masses: Sequence[Float[Array, "*#batch"]],
    log_moments: Sequence[Float[Array, "*#batch"]],
    lower: Float[Array, "*#batch"],
    upper: Float[Array, "*#batch"],
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return mean and variance of a positive Y given lower <= Y <= upper.

    ``log_masses`` are those of the interval under the law itself and as tilted by Y and by Y^2,
    ``log_moments`` the logs of E[Y] and E[Y^2].
    """
    whole, *tilted = log_masses
    first, second = (
        jnp.exp(moment + mass - whole) for moment, mass in zip(log_moments, tilted, strict=True)
    )
    narrow = (upper < NARROW * lower) & jnp.isfinite(upper)
    low, high = jnp.where(narrow, lower, 1.0), jnp.where(narrow, upper, 1.0)
    centre, spread = _summed(log_density, low, high)
    mean = jnp.clip(jnp.where(narrow, centre, first), lower, upper)
    return mean, jnp.where(narrow, spread, jnp.maximum(second - first**2, 0.0))


def _summed(
    log_density: Callable[[Array], Array],
    lower: Float[Array, "*#batch"],
    upper: Float[Array, "*#batch"],
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return both moments by Gauss-Legendre quadrature over the interval."""
    place = jnp.asarray(NODES).reshape((-1,) + (1,) * lower.ndim)
    half = 0.5 * (upper - lower)
    logs = log_density(lower + half * (1.0 + place))
    weight = jnp.exp(logs - jnp.max(logs, axis=0)) * jnp.asarray(WEIGHTS).reshape(place.shape)
    weight = weight / jnp.sum(weight, axis=0)
    # About the middle of the interval, which may be many widths away from zero.
    centre = jnp.sum(weight * place, axis=0)
    spread = jnp.sum(weight * (place - centre) ** 2, axis=0)
    return lower + half * (1.0 + centre), half**2 * spread
