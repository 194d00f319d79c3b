"""Gaussian sites, and what they say where part of a latent value belongs to its row alone.

A site stands for what an observation says of its latent value, exp(h gamma - Lambda gamma^2 / 2).
With a nugget the latent value is gamma = f + e, of a function f and of e ~ N(0, c) that no other
row shares. Given the sites everything is Gaussian, and e can be integrated out row by row:

    the site of f itself:   Lambda / w  and  h / w,                          w = 1 + c Lambda,
    gamma given f:          N((f + c h) / w, c / w),
    divergence of e:        (1 / w - 1 + log w + c E[(h - Lambda f)^2] / w^2) / 2.

So a nugget costs next to nothing. As a kernel (`White`) it would need an inducing input at every
row.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from censored_gp.runtime import AnyArray

__all__ = [
    "Sites",
    "Spread",
    "before_seen",
    "nugget_divergence",
    "nugget_slope",
    "of_functions",
    "with_nugget",
]

LEAST_REST = 1e-9
"""Share of what is known of f that is at least owed to other cells, or to the prior."""


class Sites(NamedTuple):
    """Gaussian sites of one role: exp(h gamma - Lambda gamma^2 / 2) for each cell."""

    linear: Float[AnyArray, "B N D"]
    precision: Float[AnyArray, "B N D"]


class Spread(NamedTuple):
    """Means and variances of latent values at the rows: of f, or of gamma with its nugget."""

    mean: Float[Array, "... B N D"]
    variance: Float[Array, "... B N D"]


def of_functions(sites: Sites, nugget: Float[Array, "B N D"] | None) -> Sites:
    """Return what sites of gamma = f + e say of f; the nugget is given by its variance."""
    if nugget is None:
        return sites
    weight = 1.0 + nugget * sites.precision
    return Sites(sites.linear / weight, sites.precision / weight)


def with_nugget(f: Spread, sites: Sites, nugget: Float[Array, "B N D"]) -> Spread:
    """Return means and variances of gamma = f + e where it has sites."""
    weight = 1.0 + nugget * sites.precision
    mean = (f.mean + nugget * sites.linear) / weight
    return Spread(mean, f.variance / weight**2 + nugget / weight)


def before_seen(f: Spread, sites: Sites, nugget: Float[Array, "B N D"]) -> Spread:
    """Return means and variances of gamma = f + e by all that was seen but the cell itself."""
    own = of_functions(sites, nugget)
    rest = jnp.maximum(1.0 - own.precision * f.variance, LEAST_REST)
    return Spread((f.mean - f.variance * own.linear) / rest, f.variance / rest + nugget)


def nugget_divergence(f: Spread, sites: Sites, nugget: Float[Array, "B N D"]) -> Float[Array, ""]:
    """Return the divergence of e from its prior given f, in the mean over f, of all rows."""
    weight = 1.0 + nugget * sites.precision
    residual = sites.linear - sites.precision * f.mean
    squared = residual**2 + sites.precision**2 * f.variance
    return 0.5 * jnp.sum(1.0 / weight - 1.0 + jnp.log(weight) + nugget * squared / weight**2)


def nugget_slope(
    f: Spread, sites: Sites, nugget: Float[Array, "B N D"]
) -> tuple[Float[Array, "B N D"], Float[Array, "B N D"]]:
    """Return the slope in c of log Z, the evidence of the sites, and what each row tells of its c.

    With S the covariance of sites under the prior, and alpha = S^-1 times their distance from the
    mean, these are (alpha^2 - S^-1_nn) / 2 and (S^-1_nn)^2 / 2.
    """
    own = of_functions(sites, nugget)
    alpha = jnp.asarray(own.linear - own.precision * f.mean)
    inverse = jnp.asarray(own.precision - own.precision**2 * f.variance)
    return 0.5 * (alpha**2 - inverse), 0.5 * inverse**2
