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

# The kind that all cells have: exact, right, left or interval; None is any of them.
Kind = str | None
Curve = Callable[[Batch], Batch]
# The relative error of a probability, for each unit of its logarithm.
ROUNDING = 1e-15
# The relative error of a variance above which the density is integrated.
WORST = 1e-8
# Where the log density is this far below its peak, the integral ends.
NEGLIGIBLE = 37.0
# The number of pieces, each with its own Gauss nodes, into which sums over counts are cut, and into
# which the first of them is.
PANELS = 12
# Up to this ratio of upper to lower bound the density is integrated over the interval.
NARROW = 1.5


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
        # Else the tails of an interval that is neither narrow nor far out.
        harmless = (-2.0, -0.5), (-0.5, -2.0)
        ends = jax.tree.map(lambda tail, h: jnp.where(both, tail, h), tails, harmless)
        return jnp.where(both, between(family, ends, low, high, theta), single)

    return lax.cond(jnp.any(both), interval, lambda: single)


def moments_by_powers(
    family: Likelihood,
    bounds: Pair,
    theta: Sequence[Batch],
    log_masses: Batch | Sequence[Batch],
    log_moments: Sequence[Batch],
) -> Pair:
    """Return mean and variance of a positive Y given lower <= Y <= upper.

    E[Y^m | a <= Y <= b] = E[Y^m] P_m(a <= Y <= b) / P(a <= Y <= b), where P_m has the density of Y
    times y^m / E[Y^m]. ``log_masses`` are the logs of P, P_1 and P_2, ``log_moments`` those of E[Y]
    and E[Y^2]. Where the variance cancels, far out or next to the mean, the density is integrated.
    """
    (lower, upper), (whole, *tilted) = bounds, log_masses
    first, second = (jnp.exp(e + mass - whole) for e, mass in zip(log_moments, tilted, strict=True))
    mean, spread = jnp.clip(first, lower, upper), jnp.maximum(second - first**2, 0.0)
    narrow = (upper < NARROW * lower) & jnp.isfinite(upper)
    hard = narrow | (ROUNDING * (1.0 + jnp.abs(whole)) * second > WORST * spread)

    def density(y: Batch) -> Batch:
        return family.log_density(y, *theta)

    def integrals() -> Pair:
        # About the likeliest of the mean and the bounds, to where the density is negligible: around
        # the mean it is close to log-quadratic, and far out it falls almost exponentially.
        inner = (jnp.where((end > 0.0) & jnp.isfinite(end), end, mean) for end in bounds)
        places = jnp.stack([mean, *inner])
        which = jnp.argmax(density(places), axis=0)[None]
        peak = jnp.take_along_axis(places, which, axis=0)[0]
        top, rise = jax.jvp(density, (peak,), (jnp.ones_like(peak),))
        bend, ends = 2.0 * NEGLIGIBLE / family.variance(*theta), []
        for sign in (-1.0, 1.0):
            fall = jnp.maximum(-sign * rise, 0.0)
            reach = 2.0 * NEGLIGIBLE / (fall + jnp.sqrt(fall**2 + bend))
            tried = jnp.maximum(peak + sign * reach, 0.5 * peak)
            fallen = (top - density(tried)) * reach / jnp.abs(tried - peak)
            reach = reach * jnp.maximum(1.0, NEGLIGIBLE / jnp.maximum(fallen, 1.0))
            ends.append(jnp.clip(peak + sign * reach, lower, upper))
        return _integrated(density, ends[0], ends[1], peak)

    closed = mean, jnp.where(lower == upper, 0.0, spread)
    found = lax.cond(jnp.any(hard), integrals, lambda: closed)
    mean, spread = (jnp.where(hard, h, own) for h, own in zip(found, closed, strict=True))
    return jnp.clip(mean, lower, upper), spread


def moments_by_stein(
    family: Likelihood, bounds: Pair, theta: Sequence[Batch], slope: Batch | float, kind: Kind
) -> Pair:
    """Return mean and variance of Y given lower <= Y <= upper: one probability and two densities.

    For a family whose Stein kernel tau is straight (of Pearson's, or Ord's for counts),

        tau(y) f(y) = int_y^inf (t - mean) f(t) dt,    tau(y) = variance + slope (y - mean),

    with S = tau f / P(a <= Y <= b) at both ends

        E[Y - mean | .] = S(a) - S(b),
        E[(Y - mean)^2 | .] = (a - mean) S(a) - (b - mean) S(b) + E[tau | .].

    Of counts these are sums over t > y, so that S(a - 1) stands for S(a), and b + 1 for b. Far out,
    or between narrow bounds, the variance cancels: there the density is integrated.
    """
    lower, upper, *theta = jnp.broadcast_arrays(*bounds, *theta)
    support, step = family.support, 1.0 * family.support.discrete
    log_whole = log_mass(family, lower, upper, *theta, kind=kind)
    lower, upper = support.round_inward(lower, upper)
    mean, variance = family.mean(*theta), family.variance(*theta)

    def tau(y: Batch) -> Batch:
        return variance + slope * (y - mean)

    def fall(y: Batch) -> Batch:
        """Return how far log f falls from y on, to the next count or for a unit of length."""
        ratio = (y + step - mean + slope) / tau(y)
        return jnp.log1p(ratio) if support.discrete else ratio

    some = jnp.stack(support.excludes(lower, upper))
    ends = jnp.stack([support.just_below(lower), upper])
    ends = jnp.where(some, ends, support.inside[0])
    first, last = jnp.where(
        some, tau(ends) * jnp.exp(family.log_density(ends, *theta) - log_whole), 0.0
    )
    away, terms = first - last, (ends + step - mean) * jnp.stack([first, -last])
    parts = jnp.stack([variance, slope * away, *terms, -(away**2)])
    spread, size = jnp.sum(parts, axis=0), jnp.sum(jnp.abs(parts), axis=0)
    low, high = jnp.maximum(lower, support.lower), jnp.minimum(upper, support.upper)
    lost = ROUNDING * (1.0 + jnp.abs(log_whole)) * size
    hard = (low < high) & (lost > WORST * spread)

    def integrals() -> Pair:
        # About the likeliest value. The density falls from there at least exponentially, or the
        # bounds are so near that it hardly changes. Where it is log-convex (dispersions above one)
        # its fall is least at the upper end.
        peak = jnp.clip(mean - slope, low, high)
        peak = jnp.clip(jnp.floor(peak), low, high) if support.discrete else peak
        least = jnp.minimum(fall(peak), fall(jnp.minimum(high, 1e100)))
        reach = (NEGLIGIBLE / jnp.maximum(f, 1e-300) for f in (-fall(peak - step), least))
        start, end = jnp.fmax(peak - next(reach), low), jnp.fmin(peak + next(reach), high)
        if support.discrete:
            return _summed(lambda y: family.log_density(y, *theta), start, end, peak)
        return _integrated(lambda y: family.log_density(y, *theta), start, end, peak)

    closed = mean + away, spread
    found = lax.cond(jnp.any(hard), integrals, lambda: closed)
    mean, spread = (jnp.where(hard, h, own) for h, own in zip(found, closed, strict=True))
    return jnp.clip(mean, low, high), jnp.where(low == high, 0.0, spread)


def _integrated(log_density: Curve, lower: Batch, upper: Batch, peak: Batch) -> Pair:
    """Return mean and variance between finite bounds by Gauss-Legendre on both sides of a peak."""
    nodes, weights = map(jnp.asarray, gauss_legendre(40, peak.ndim))
    sides = [0.5 * (end - peak) for end in (lower, upper)]
    offsets = jnp.concatenate([half * (1.0 + nodes) for half in sides])
    # Of a point both sides are empty, and still it has a mean.
    widths = jnp.concatenate([(jnp.abs(half) + 1e-300) * weights for half in sides])
    return _weighted(log_density, peak, offsets, widths)


def _summed(log_density: Curve, lower: Batch, upper: Batch, peak: Batch) -> Pair:
    """Return mean and variance of a count between finite bounds."""
    start, number = jnp.ceil(lower), jnp.floor(upper) - jnp.ceil(lower) + 1.0
    # Near zero a mass may fall like a power: there the pieces grow in proportion.
    sizes = [(number / PANELS) ** (i / PANELS) for i in range(1, PANELS)]
    sizes = [0.0 * number, *sizes, *(number * i / PANELS for i in range(1, PANELS + 1))]
    edges = jnp.floor(jnp.stack(sizes))
    offsets, weights = nodes_for_counts(start - peak + edges[:-1], edges[1:] - edges[:-1])
    offsets, weights = (each.reshape(-1, *start.shape) for each in (offsets, weights))
    return _weighted(log_density, peak, offsets, weights)


def _weighted(log_density: Curve, centre: Batch, offsets: Batch, weights: Batch) -> Pair:
    """Return mean and variance by nodes relative to a centre, which may be far away from zero."""
    logs = log_density(centre + offsets)
    weights = weights * jnp.exp(logs - jnp.max(logs, axis=0))
    weights = weights / jnp.sum(weights, axis=0)
    away = jnp.sum(weights * offsets, axis=0)
    return centre + away, jnp.sum(weights * (offsets - away) ** 2, axis=0)
