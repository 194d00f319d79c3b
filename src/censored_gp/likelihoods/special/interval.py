"""Log probability of an interval, without cancellation wherever it lies and however narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from censored_gp.likelihoods.special.elementary import Batch, Numbers, Pair, log1mexp

# Below this difference of log tails, integrating the density is the more precise way.
NARROW = 0.01


NODES = 5
LogDensity = Callable[[Batch], Batch]


def log_interval(
    log_density: LogDensity, tails_lower: Pair, tails_upper: Pair, lower: Numbers, upper: Numbers
) -> Batch:
    """Return log P(lower <= Y <= upper) of a continuous Y, lower < upper both finite.

    The tails are (log P(Y <= y), log P(Y > y)) at either end. They are subtracted on the side
    where both are small; where even that cancels, Gauss-Legendre integrates the density.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = 0.5 * (jnp.asarray(upper) - lower)
    points = jnp.stack([lower + half * (1.0 + node) for node in nodes])
    masses = jnp.stack([weight * half for weight in weights])
    return _subtract_or_sum(log_density, tails_lower, tails_upper, points, masses)


def log_count_interval(
    log_mass: LogDensity, tails_below: Pair, tails_upper: Pair, lower: Numbers, upper: Numbers
) -> Batch:
    """Return log P(lower <= Y <= upper) of a count, both bounds whole numbers.

    `tails_below` are taken at lower - 1. Up to five counts are simply added; where more of
    them cancel in the tails, five Gauss nodes for sums over consecutive integers stand in.
    """
    width = jnp.asarray(upper) - lower + 1.0
    points, weights = nodes_for_counts(lower, width)
    few = width <= NODES
    return _subtract_or_sum(log_mass, tails_below, tails_upper, points, weights, prefer_sum=few)


def nodes_for_counts(
    lower: Numbers, width: Batch
) -> tuple[Float[Array, "S *#batch"], Float[Array, "S *#batch"]]:
    """Return nodes and weights for sums over `width` whole numbers from `lower` on.

    Up to five are the numbers themselves, more are Gauss nodes between them.
    """
    few = width <= NODES
    offsets, masses = gauss_for_sums(jnp.where(few, 2.0 * NODES, width))
    index = jnp.arange(float(NODES)).reshape((-1,) + (1,) * width.ndim)
    single = lower + jnp.where(index < width, index, 0.0)
    points = jnp.where(few, single, lower + 0.5 * (width - 1.0) + offsets)
    return points, jnp.where(few, jnp.where(index < width, 1.0, 0.0), masses)


def log_difference(tails_lower: Pair, tails_upper: Pair) -> Batch:
    """Return log P(lower < Y <= upper) from the tails at its ends, however much of them cancels.

    It keeps as many digits as the difference of the tails does: for what needs no more than that.
    """
    larger, smaller = _on_small_side(tails_lower, tails_upper)
    possible = larger > -jnp.inf
    gap = jnp.where(possible, smaller - jnp.where(possible, larger, 0.0), -jnp.inf)
    return larger + log1mexp(jnp.minimum(gap, 0.0))


def _on_small_side(tails_lower: Pair, tails_upper: Pair) -> Pair:
    """Return the larger and the smaller log tail on the side where both are small."""
    below = tails_upper[0] < tails_lower[1]
    larger = jnp.where(below, tails_upper[0], tails_lower[1])
    return larger, jnp.where(below, tails_lower[0], tails_upper[1])


def _subtract_or_sum(
    log_density: LogDensity,
    tails_lower: Pair,
    tails_upper: Pair,
    points: Float[Array, "S *#batch"],
    weights: Float[Array, "S *#batch"],
    prefer_sum: ArrayLike = False,
) -> Batch:
    """Return the difference of tails where it keeps its digits, the weighted sum elsewhere."""
    larger, smaller = _on_small_side(tails_lower, tails_upper)
    narrow = (larger - smaller < NARROW) | jnp.asarray(prefer_sum)
    gap = jnp.where(narrow, -1.0, smaller - jnp.where(narrow, 0.0, larger))
    difference = jnp.where(narrow, 0.0, larger) + log1mexp(gap)
    density = jnp.where(narrow, log_density(points), 0.0)
    return jnp.where(narrow, logsumexp(density, axis=0, b=weights), difference)


def gauss_for_sums(count: Any) -> tuple[Any, Any]:
    """Return nodes about the centre and weights: sum w p(x) = sum of p over `count` integers.

    Exact to degree 9, if there are more than five; arrays of numpy or of JAX. Gauss quadrature of
    the counting measure: the orthogonal (Gram) polynomials have the recurrence
    beta_n = n^2 (count^2 - n^2) / (4 (4 n^2 - 1)).
    """
    beta = [n * n * (count**2 - n * n) / (4.0 * (4 * n * n - 1)) for n in range(1, NODES)]
    total = beta[0] + beta[1] + beta[2] + beta[3]
    product = beta[0] * (beta[2] + beta[3]) + beta[1] * beta[3]
    root = (total**2 - 4.0 * product) ** 0.5
    outer, inner = 0.5 * (total + root), 2.0 * product / (total + root)
    second, fourth = count * beta[0], count * beta[0] * (beta[0] + beta[1])
    outer_weight = 0.5 * (fourth - second * inner) / (outer * (outer - inner))
    inner_weight = 0.5 * (fourth - second * outer) / (inner * (inner - outer))
    middle = count - 2.0 * (outer_weight + inner_weight)
    far, near = outer**0.5, inner**0.5
    xp = np if isinstance(count, np.ndarray) else jnp
    nodes = xp.stack([-far, -near, 0.0 * far, near, far])
    return nodes, xp.stack([outer_weight, inner_weight, middle, inner_weight, outer_weight])
