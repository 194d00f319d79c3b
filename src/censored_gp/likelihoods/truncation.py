"""A datum between bounds: its probability, mean and variance.

Tails take long to compile, so all that are needed come from one call. An argument that is not
needed is replaced by a harmless one: an infinite bound must not make a NaN of a gradient that is
multiplied by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from censored_gp.likelihoods.quadrature import gauss_legendre
from censored_gp.likelihoods.special.elementary import Batch, Mask, Pair
from censored_gp.likelihoods.special.interval import (
    log_count_interval,
    log_interval,
    nodes_for_counts,
)

if TYPE_CHECKING:
    from censored_gp.likelihoods.base import Likelihood

Kind = str | None
"""The kind that all cells have: exact, right, left or interval; None is any of them."""
Curve = Callable[[Batch], Batch]
HARMLESS = (-2.0, -0.5), (-0.5, -2.0)
"""Log tails at both ends of an interval that is neither narrow nor far out."""
ROUNDING = 1e-15
"""The relative error of a probability, for each unit of its logarithm."""
WORST = 1e-7
"""The relative error of the variance above which the probabilities of counts are summed."""
NEGLIGIBLE = 37.0
"""Counts whose log probability is this far below the largest are left out of the sum."""
PANELS = 12
"""The number of pieces, each with its own Gauss nodes, into which that sum is cut."""
NARROW = 1.5
"""Up to this ratio of upper to lower bound the density is integrated over the interval."""
NODES = 24
"""The number of Gauss-Legendre nodes for that integral."""


def where_any(
    family: Likelihood, mask: Mask, term: Any, lower: Batch, upper: Batch, theta: Sequence[Batch]
) -> Batch:
    """Return the term where mask, 0 elsewhere; skipped at run time if there is no such cell."""
    inside = family.support.inside
    lower, upper = jnp.where(mask, lower, inside[0]), jnp.where(mask, upper, inside[1])
    harmless = family.theta(*(jnp.zeros(()) for _ in theta))
    theta = [jnp.where(mask, t, h) for t, h in zip(theta, harmless, strict=True)]
    value = lax.cond(
        jnp.any(mask), lambda: term(lower, upper, *theta), lambda: jnp.zeros(mask.shape)
    )
    return jnp.where(mask, value, 0.0)


def log_mass(
    family: Likelihood, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None
) -> Batch:
    """Return log P(lower <= Y <= upper), but 0 where the interval is a point.

    `kind` "right" says that no cell has an upper bound, "left" that none has a lower one.
    """
    lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
    lower, upper = family.support.round_inward(lower, upper)
    below, above = family.support.excludes(lower, upper)
    empty = family.support.is_empty(lower, upper)
    open_ = (below | above) & (lower != upper) & ~empty

    def term(low: Batch, high: Batch, *theta: Batch) -> Batch:
        if kind is None:
            return _log_between(family, open_ & below & above, low, high, *theta)
        return family.log_likelihood(low, high, *theta, kind=kind)

    return jnp.where(empty, -jnp.inf, where_any(family, open_, term, lower, upper, each))


def bound_tails(
    family: Likelihood, lower: Batch, upper: Batch, theta: Sequence[Any]
) -> tuple[Pair, Pair]:
    """Return both log tails just below the lower bound, and at the upper one.

    A bound that excludes nothing of the support has log tails -inf and 0, or 0 and -inf.
    """
    lower, upper = family.support.round_inward(lower, upper)
    lower, upper, *theta = jnp.broadcast_arrays(lower, upper, *theta)
    below, above = family.support.excludes(lower, upper)
    inside = family.support.inside
    low, high = jnp.where(below, lower, inside[0]), jnp.where(above, upper, inside[1])
    # A loop, so that there is one program; an end at which nothing has a bound is passed over.
    cdf, survival = lax.map(
        lambda end: lax.cond(
            jnp.any(end[1]),
            lambda: family.log_tails(end[0], *theta),
            lambda: (jnp.zeros(low.shape), jnp.zeros(low.shape)),
        ),
        (jnp.stack([family.support.just_below(low), high]), jnp.stack([below, above])),
    )
    first = jnp.where(below, cdf[0], -jnp.inf), jnp.where(below, survival[0], 0.0)
    return first, (jnp.where(above, cdf[1], 0.0), jnp.where(above, survival[1], -jnp.inf))


def between(
    family: Likelihood, tails: tuple[Pair, Pair], lower: Batch, upper: Batch, theta: Sequence[Any]
) -> Batch:
    """Return log P(lower <= Y <= upper) from the log tails just below `lower` and at `upper`."""
    rule = log_count_interval if family.support.discrete else log_interval
    return rule(lambda y: family.log_density(y, *theta), *tails, lower, upper)


def _log_between(
    family: Likelihood, both: Mask, lower: Batch, upper: Batch, *theta: Batch
) -> Batch:
    """Return log P(lower <= Y <= upper), where one of them is a bound or `both` are."""
    tails = bound_tails(family, lower, upper, theta)
    single = jnp.where(lower > family.support.lower, tails[0][1], tails[1][0])

    def interval() -> Batch:
        inside = family.support.inside
        low, high = jnp.where(both, lower, inside[0]), jnp.where(both, upper, inside[1])
        ends = jax.tree.map(lambda tail, h: jnp.where(both, tail, h), tails, HARMLESS)
        return jnp.where(both, between(family, ends, low, high, theta), single)

    return lax.cond(jnp.any(both), interval, lambda: single)


def moments_by_powers(
    log_density: Curve, bounds: Pair, log_masses: Sequence[Batch], log_moments: Sequence[Batch]
) -> Pair:
    """Return mean and variance of a positive Y given lower <= Y <= upper.

    E[Y^m | a <= Y <= b] = E[Y^m] P_m(a <= Y <= b) / P(a <= Y <= b), where P_m has the density of Y
    times y^m / E[Y^m]. ``log_masses`` are the logs of P, P_1 and P_2, ``log_moments`` those of E[Y]
    and E[Y^2]. Between narrow bounds the variance would cancel: there the density is integrated.
    """
    lower, upper = bounds
    first, second = _ratios(log_moments, log_masses)
    narrow = (upper < NARROW * lower) & jnp.isfinite(upper)
    low, high = jnp.where(narrow, lower, 1.0), jnp.where(narrow, upper, 1.0)
    centre, spread = moments_by_quadrature(log_density, low, high, NODES)
    mean = jnp.clip(jnp.where(narrow, centre, first), lower, upper)
    return mean, jnp.where(narrow, spread, jnp.maximum(second - first**2, 0.0))


def _ratios(log_moments: Sequence[Batch], log_masses: Sequence[Batch]) -> list[Batch]:
    """Return E[Y] P_1 / P and E[Y^2] P_2 / P, or the same of factorial moments."""
    whole, *tilted = log_masses
    return [jnp.exp(e + mass - whole) for e, mass in zip(log_moments, tilted, strict=True)]


def moments_by_quadrature(log_density: Curve, lower: Batch, upper: Batch, count: int) -> Pair:
    """Return mean and variance between finite bounds by Gauss-Legendre quadrature."""
    nodes, weights = map(jnp.asarray, gauss_legendre(count, lower.ndim))
    half = 0.5 * (upper - lower)
    logs = log_density(lower + half * (1.0 + nodes))
    weight = weights * jnp.exp(logs - jnp.max(logs, axis=0))
    weight = weight / jnp.sum(weight, axis=0)
    # About the middle of the interval, which may be many widths away from zero.
    centre = jnp.sum(weight * nodes, axis=0)
    spread = jnp.sum(weight * (nodes - centre) ** 2, axis=0)
    return lower + half * (1.0 + centre), half**2 * spread


def moments_of_counts(
    family: Likelihood,
    bounds: Pair,
    theta: Sequence[Batch],
    tilted: Sequence[Batch],
    log_factorial: Sequence[Batch],
    peak: tuple[Batch, Curve],
    kind: Kind,
) -> Pair:
    """Return mean and variance of a count between bounds, from its factorial moments.

    E[Y | .] = E[Y] P(Y' in bounds - 1) / P(Y in bounds), and E[Y (Y - 1) | .] likewise: `tilted`
    are the parameters of Y, Y' and Y'', `log_factorial` the logs of E[Y] and E[Y (Y - 1)]. Far out,
    where bounds leave a narrow part of a large count, the variance is a small difference of large
    squares; there the probabilities are summed about their `peak`, a mode with the curvature of
    their logs.
    """
    lower, upper = bounds
    # In one call, as tails take long to compile.
    ends = (jnp.stack([b, b - 1.0, b - 2.0]) for b in bounds)
    log_masses = [*log_mass(family, *ends, *tilted, kind=kind)]
    first, second = _ratios(log_factorial, log_masses)
    mean = jnp.clip(first, jnp.maximum(lower, 0.0), upper)
    variance = jnp.maximum(second + mean - mean**2, 0.0)
    low, high = jnp.ceil(jnp.maximum(lower, 0.0)), jnp.floor(upper)
    lost = ROUNDING * mean**2 * (1.0 + jnp.abs(log_masses[0]))
    hard = (low < high) & (lost > WORST * variance)
    summed = lax.cond(
        jnp.any(hard),
        lambda: _summed(lambda k: family.log_density(k, *theta), low, high, *peak),
        lambda: (mean, variance),
    )
    mean, variance = (jnp.where(hard, s, c) for s, c in zip(summed, (mean, variance), strict=True))
    return jnp.where(low == high, low, mean), jnp.where(low == high, 0.0, variance)


def _summed(log_density: Curve, low: Batch, high: Batch, mode: Batch, curvature: Curve) -> Pair:
    """Return the moments by sums over the counts that matter, relative to the likeliest one."""
    peak = jnp.clip(mode, low, high)
    bend = curvature(peak)
    # All three in one call: less to compile.
    around = log_density(jnp.maximum(jnp.stack([peak, peak - 1.0, peak + 1.0]), 0.0))
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
    weights = weights * jnp.exp(log_density(points) - here)
    weights = weights / jnp.sum(weights, axis=(0, 1))
    step = jnp.sum(weights * (points - peak), axis=(0, 1))
    spread = jnp.sum(weights * (points - peak - step) ** 2, axis=(0, 1))
    return peak + step, spread
