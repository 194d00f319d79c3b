"""Gaussian sites, and a nugget: what is independent from row to row, known without inducing inputs.

A site stands for what an observation says of its latent value, exp(h gamma - Lambda gamma^2 / 2).
With a nugget the latent value is gamma = f + e, of a function f and of e ~ N(0, s^2) that no other
row shares. Given the sites everything is Gaussian, and e can be integrated out row by row:

    the site of f itself:   Lambda / w  and  h / w,                          w = 1 + s^2 Lambda,
    gamma given f:          N((f + s^2 h) / w, s^2 / w),
    divergence of e:        (1 / w - 1 + log w + s^2 E[(h - Lambda f)^2] / w^2) / 2.

So a nugget costs next to nothing. As a kernel (`White`) it would need an inducing input at every
row.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from censored_gp.runtime import AnyArray

__all__ = ["Sites", "Spread", "nugget_divergence", "nugget_slope", "of_functions", "with_nugget"]


class Sites(NamedTuple):
    """Gaussian sites of one role: exp(h gamma - Lambda gamma^2 / 2) for each cell."""

    linear: Float[AnyArray, "B N D"]
    precision: Float[AnyArray, "B N D"]


class Spread(NamedTuple):
    """Means and variances of f, without its nugget, at the rows."""

    mean: Float[Array, "... B N D"]
    variance: Float[Array, "... B N D"]


def _weight(
    sites: Sites, nugget: Float[AnyArray, "B D"]
) -> tuple[Float[Array, "B 1 D"], Float[Array, "B N D"]]:
    """Return s^2 and w = 1 + s^2 Lambda."""
    variance = jnp.square(jnp.asarray(nugget))[:, None]
    return variance, 1.0 + variance * sites.precision


def of_functions(sites: Sites, nugget: Float[AnyArray, "B D"] | None) -> Sites:
    """Return what sites of gamma = f + e say of f."""
    if nugget is None:
        return sites
    _, weight = _weight(sites, nugget)
    return Sites(sites.linear / weight, sites.precision / weight)


def with_nugget(f: Spread, sites: Sites, nugget: Float[AnyArray, "B D"]) -> Spread:
    """Return means and variances of gamma = f + e where it has sites."""
    variance, weight = _weight(sites, nugget)
    mean = (f.mean + variance * sites.linear) / weight
    return Spread(mean, f.variance / weight**2 + variance / weight)


def nugget_divergence(f: Spread, sites: Sites, nugget: Float[AnyArray, "B D"]) -> Float[Array, ""]:
    """Return the divergence of e from its prior given f, in the mean over f, of all rows."""
    variance, weight = _weight(sites, nugget)
    residual = sites.linear - sites.precision * f.mean
    squared = residual**2 + sites.precision**2 * f.variance
    return 0.5 * jnp.sum(1.0 / weight - 1.0 + jnp.log(weight) + variance * squared / weight**2)


def nugget_slope(
    f: Spread, sites: Sites, nugget: Float[AnyArray, "B D"]
) -> tuple[Float[Array, "B D"], Float[Array, "B D"]]:
    """Return the slope in s of log Z, the evidence of the sites, and what it says of s.

    With S the covariance of sites under the prior, these are s sum(alpha^2 - S^-1_nn) and
    2 s^2 sum((S^-1_nn)^2): the information that rows have each on its own.
    """
    own = of_functions(sites, nugget)
    alpha = own.linear - own.precision * f.mean
    inverse = own.precision - own.precision**2 * f.variance
    s = jnp.asarray(nugget)
    slope = s * jnp.sum(alpha**2 - inverse, axis=1)
    return slope, 2.0 * s**2 * jnp.sum(inverse**2, axis=1)
