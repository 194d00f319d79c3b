"""Mean and variance of a count between bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from censored_gp.tails.interval import nodes_for_counts

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
