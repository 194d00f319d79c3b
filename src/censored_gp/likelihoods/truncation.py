"""Moments between bounds, from the laws that a family's is tilted to by powers of the datum.

E[Y^m | a <= Y <= b] = E[Y^m] P_m(a <= Y <= b) / P(a <= Y <= b), where P_m has the density of Y
times y^m / E[Y^m]. Where the interval is narrow the variance would cancel: there a sum serves.

What may be known of a datum.

Probabilities between bounds, from one call for all the tails that they need.

It is tails that take long to compile. As elsewhere, what is not needed is replaced by what is
harmless: an infinite bound must not make a NaN of a gradient that is multiplied by zero.

Mean and variance of a count between bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods.special.interval import (
    LogTails,
    log_count_interval,
    log_interval,
    nodes_for_counts,
)

KINDS = ("exact", "right", "left", "interval")
"""What an interval can be, besides missing."""


OPEN = KINDS[1:]
"""Those that are not a point."""


ONE_SIDED = ("right", "left")


def open_kinds(lower: Any, upper: Any) -> tuple[str, ...]:
    """Return the kinds of interval that bounds make, besides points.

    A bound that no cell has comes as a plain infinite number: then there is less to compile.

    >>> open_kinds(np.zeros(3), np.inf), open_kinds(np.zeros(3), np.full(3, np.inf))
    (('right', 'left'), ('right', 'left', 'interval'))
    """
    absent = any(isinstance(bound, float) and np.isinf(bound) for bound in (lower, upper))
    return ONE_SIDED if absent else OPEN


HARMLESS = (-2.0, -0.5), (-0.5, -2.0)
"""Log tails at both ends of an interval that is neither narrow nor far out."""


def bound_tails(
    family: Any, lower: Array, upper: Array, theta: Sequence[Any]
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
    family: Any, both: Bool[Array, "*#batch"], lower: Array, upper: Array, *theta: Any
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


Cells = Float[Array, "*#batch"]


Moments = tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]


ROUNDING = 1e-15
"""Relative error of a probability for each unit of its logarithm."""


WORST = 1e-7
"""Relative error of the variance above which counts are added up."""


NEGLIGIBLE = 37.0
"""Fall of a log probability after which what follows does not matter."""


PANELS = 12


def moments_between(
    log_mass: Callable[[Cells], Cells],
    lower: Cells,
    upper: Cells,
    log_masses: Sequence[Cells],
    log_factorial: tuple[Cells, Cells],
    mode: Cells,
    curvature: Callable[[Cells], Cells],
) -> Moments:
    """Return mean and variance of a count within bounds from its factorial moments.

    E[Y | .] = E[Y] P(Y' in bounds - 1) / P(Y in bounds), and E[Y (Y - 1) | .] likewise: these are
    the logs of all. Far out, where bounds leave a narrow part of a large count, the variance is a
    small difference of large squares; there the probabilities about the likeliest count are added
    up, whose logs have their peak at `mode` and the given `curvature`.
    """
    first, second = (
        jnp.exp(moment + mass - log_masses[0])
        for moment, mass in zip(log_factorial, log_masses[1:], strict=True)
    )
    mean = jnp.clip(first, jnp.maximum(lower, 0.0), upper)
    variance = jnp.maximum(second + mean - mean**2, 0.0)
    low, high = jnp.ceil(jnp.maximum(lower, 0.0)), jnp.floor(upper)
    lost = ROUNDING * mean**2 * (1.0 + jnp.abs(log_masses[0]))
    hard = (low < high) & (lost > WORST * variance)
    summed = lax.cond(
        jnp.any(hard),
        lambda: _added_up(log_mass, low, high, jnp.clip(mode, low, high), curvature),
        lambda: (mean, variance),
    )
    mean, variance = (jnp.where(hard, s, c) for s, c in zip(summed, (mean, variance), strict=True))
    return jnp.where(low == high, low, mean), jnp.where(low == high, 0.0, variance)


def _added_up(
    log_mass: Callable[[Cells], Cells],
    low: Cells,
    high: Cells,
    peak: Cells,
    curvature: Callable[[Cells], Cells],
) -> Moments:
    """Return the moments by sums over the counts that matter, relative to the likeliest one."""
    bend = curvature(peak)
    # All three in one call: less to compile.
    around = log_mass(jnp.maximum(jnp.stack([peak, peak - 1.0, peak + 1.0]), 0.0))
    here, ends = around[0], []
    for side, beside in ((-1.0, around[1]), (1.0, around[2])):
        # Where slope t + bend t^2 / 2 is the fall that is negligible.
        slope = jnp.maximum(here - beside, 0.0)
        root = jnp.sqrt(slope**2 + 2.0 * NEGLIGIBLE * jnp.maximum(bend, 1e-30))
        reach = jnp.ceil(2.0 * NEGLIGIBLE / (slope + root))
        ends.append(jnp.clip(peak + side * reach, low, high))
    start, number = ends[0], ends[1] - ends[0] + 1.0
    edges = jnp.stack([jnp.floor(number * i / PANELS) for i in range(PANELS + 1)])
    points, weights = nodes_for_counts(start + edges[:-1], edges[1:] - edges[:-1])
    weights = weights * jnp.exp(log_mass(points) - here)
    weights = weights / jnp.sum(weights, axis=(0, 1))
    step = jnp.sum(weights * (points - peak), axis=(0, 1))
    spread = jnp.sum(weights * (points - peak - step) ** 2, axis=(0, 1))
    return peak + step, spread


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
