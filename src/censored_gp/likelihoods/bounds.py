"""Probabilities between bounds, from one call for all the tails that they need.

It is tails that take long to compile. As elsewhere, what is not needed is replaced by what is
harmless: an infinite bound must not make a NaN of a gradient that is multiplied by zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from censored_gp.tails import log_count_interval, log_interval
from censored_gp.tails.interval import LogTails

if TYPE_CHECKING:
    from censored_gp.likelihoods.base import Likelihood

HARMLESS = (-2.0, -0.5), (-0.5, -2.0)
"""Log tails at both ends of an interval that is neither narrow nor far out."""


def bound_tails(
    family: Likelihood, lower: Array, upper: Array, theta: Sequence[Any]
) -> tuple[LogTails, LogTails]:
    """Return both log tails just below the lower bound, and at the upper one.

    A bound that excludes nothing of the support leaves a tail of nothing and one of everything.
    """
    lower, upper, *theta = jnp.broadcast_arrays(*family.to_support(lower, upper), *theta)
    _, below, above = family.knowledge(lower, upper)
    inside = family.support.inside
    low, high = jnp.where(below, lower, inside[0]), jnp.where(above, upper, inside[1])
    # A loop, so that there is one program; an end at which nothing has a bound is passed over.
    cdf, survival = lax.map(
        lambda end: lax.cond(
            jnp.any(end[1]),
            lambda: family.log_tails(end[0], *theta),
            lambda: (jnp.zeros(low.shape), jnp.zeros(low.shape)),
        ),
        (jnp.stack([family.just_below(low), high]), jnp.stack([below, above])),
    )
    first = jnp.where(below, cdf[0], -jnp.inf), jnp.where(below, survival[0], 0.0)
    return first, (jnp.where(above, cdf[1], 0.0), jnp.where(above, survival[1], -jnp.inf))


def log_between(
    family: Likelihood, both: Bool[Array, "*#batch"], lower: Array, upper: Array, *theta: Any
) -> Float[Array, "*#batch"]:
    """Return log P(lower <= Y <= upper), where one of them is a bound or `both` are."""
    tails = bound_tails(family, lower, upper, theta)
    single = jnp.where(lower > family.support.lower, tails[0][1], tails[1][0])
    rule = log_count_interval if family.support.discrete else log_interval

    def interval() -> Array:
        inside = family.support.inside
        low, high = jnp.where(both, lower, inside[0]), jnp.where(both, upper, inside[1])
        start = _either(both, tails[0], HARMLESS[0])
        end = _either(both, tails[1], HARMLESS[1])
        value = rule(lambda y: family.log_density(y, *theta), start, end, low, high)
        return jnp.where(both, value, single)

    return lax.cond(jnp.any(both), interval, lambda: single)


def _either(
    known: Bool[Array, "*#batch"], tails: LogTails, harmless: tuple[float, float]
) -> LogTails:
    """Return the tails where they are known, harmless ones elsewhere."""
    return jnp.where(known, tails[0], harmless[0]), jnp.where(known, tails[1], harmless[1])
