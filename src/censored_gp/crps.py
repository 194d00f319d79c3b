"""The integral behind the continuous ranked probability score, for any distribution with a cdf.

`∫_{low}^{left} F(x)² dx + ∫_{right}^{high} (1 - F(x))² dx`, elementwise over N rows and D outputs.
The range is cut at quantiles and at the bounds, so that every panel is smooth and as wide as its
part of the distribution. A panel takes a Gauss-Legendre rule, or for outputs that are whole
numbers, whose F is a step function, a sum. It takes at most 84 calls of the cdf. Relative
errors seen: 1e-8 for a Gaussian and a Poisson, 2e-5 for a log-normal of log scale 1.5, 4e-4 for a
Student-t of 1.5 degrees of freedom and for a negative binomial of mean 50 and dispersion 20.
"""

from collections.abc import Callable
from itertools import pairwise
from math import factorial
from typing import TypeAlias

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

Cells: TypeAlias = Float[np.ndarray, "N D"]
Bounds: TypeAlias = tuple[Float[ArrayLike, "*#N"], Float[ArrayLike, "*#N"]]

PANEL_NODES = 7
FIRST_COUNTS = (7, 40, 250)
PANEL_PROBABILITIES = (1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4)
"""Where the range is cut. Beyond the first and the last the integrand is below 1e-8."""


def crps_integral(
    cdf: Callable[[Float[np.ndarray, "N D"]], Float[np.ndarray, "N D"]],
    quantiles: Float[np.ndarray, "P N D"],
    discrete: Bool[np.ndarray, " D"],
    known: tuple[Float[np.ndarray, "N D"], Float[np.ndarray, "N D"]],
    within: Bounds = (-np.inf, np.inf),
) -> Float[np.ndarray, "N D"]:
    """Return `∫ (F(x) - 1{y <= x})² dx` over the x where the indicator is known.

    That is below `known[0]` and from `known[1]` on, and between the limits `within`;
    `quantiles` are those at `PANEL_PROBABILITIES`.
    """
    low, high = np.asarray(within[0], float), np.asarray(within[1], float)
    left, right = np.minimum(known[0], high), np.maximum(known[1], low)
    total = np.zeros_like(left)
    for start, stop in pairwise(_edges(quantiles, discrete, left, right, low, high)):
        is_left, is_right = stop <= left, start >= right
        nodes, weights = _panel_rule(start, stop, discrete)
        for node, weight in zip(nodes, weights * (is_left | is_right), strict=True):
            # A call of the cdf is dear, and many nodes of narrow sums go unused.
            if np.any(weight):
                below = cdf(node)
                total += weight * np.where(is_left, below, 1 - below) ** 2
    return total


def _edges(
    quantiles: Float[np.ndarray, "P N D"],
    discrete: Bool[np.ndarray, " D"],
    left: Cells,
    right: Cells,
    low: Float[np.ndarray, "*#N"],
    high: Float[np.ndarray, "*#N"],
) -> Float[np.ndarray, "P N D"]:
    """Return the sorted ends of the panels: quantiles and bounds, inside the limits."""
    first, last = quantiles[0], quantiles[-1]
    ends = [np.where(np.isfinite(end), end, first) for end in (left, right)]
    # Counts pile up at nought, where no polynomial follows F: take the first ones singly.
    ends += [np.where(discrete, np.minimum(first + n, last), first) for n in FIRST_COUNTS]
    edges = np.clip(np.sort(np.concatenate([quantiles, ends]), axis=0), low, high)
    return np.where(discrete, np.ceil(edges), edges)


def _panel_rule(
    start: Cells, stop: Cells, discrete: Bool[np.ndarray, " D"]
) -> tuple[Float[np.ndarray, "S N D"], Float[np.ndarray, "S N D"]]:
    """Return nodes and weights for the integral over `[start, stop)` of a smooth or a step F."""
    t, w = np.polynomial.legendre.leggauss(PANEL_NODES)
    half = (stop - start) / 2
    nodes, weights = start + np.multiply.outer(1 + t, half), np.multiply.outer(w, half)
    if np.any(discrete):
        counts, shares = _lattice_rule(start, stop)
        nodes, weights = np.where(discrete, counts, nodes), np.where(discrete, shares, weights)
    return nodes, weights


def _lattice_rule(
    start: Cells, stop: Cells
) -> tuple[Float[np.ndarray, "S N D"], Float[np.ndarray, "S N D"]]:
    """Return whole-number nodes and weights for the sum over `start, start + 1, ..., stop - 1`.

    With fewer counts than nodes it is the sum itself. Else the nodes are equally spaced, and the
    weights w solve `Σ_i w_i t_i^m = Σ_k t_k^m` for every power m below the number of nodes,
    where t maps the panel to [-1, 1].
    """
    width = stop - start
    i = np.arange(PANEL_NODES).reshape(-1, 1, 1)
    wide = np.maximum(width, PANEL_NODES)
    steps = np.round(i * (wide - 1) / (PANEL_NODES - 1))
    t = np.moveaxis((2 * steps + 1) / wide - 1, 0, -1)
    powers = t[..., None, :] ** np.arange(PANEL_NODES)[:, None]
    solved = np.linalg.solve(powers, _lattice_moments(wide)[..., None])[..., 0]
    few = width < PANEL_NODES
    weights = np.where(few, i < width, np.moveaxis(solved, -1, 0))
    return start + np.where(few, np.minimum(i, width), steps), weights


def _lattice_moments(width: Cells) -> Float[np.ndarray, "N D S"]:
    """Return `Σ_k t_k^m`, m = 0, 1, ..., for the midpoints t_k of `width` equal parts of [-1, 1].

    By the Euler-Maclaurin formula for midpoints, which ends, and so is exact, for a power.
    """
    h = 2 / width
    coefficients = (1.0, -1 / 24, 7 / 5760, -31 / 967680)

    def moment(m: int) -> Float[np.ndarray, "N D"]:
        terms = (
            2 * c * h ** (2 * j - 1) * factorial(m) / factorial(m - 2 * j + 1)
            for j, c in enumerate(coefficients)
            if 2 * j <= m
        )
        return sum(terms, np.zeros_like(h)) if m % 2 == 0 else np.zeros_like(h)

    return np.stack([moment(m) for m in range(PANEL_NODES)], axis=-1)
