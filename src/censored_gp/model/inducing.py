"""model.inducing."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from censored_gp.kernels import Kernel, distinct_rows
from censored_gp.model.compilation import bucket

FEW_DISTINCT = 32
"""So many distinct inputs (the hours of a day, say) are all kept as inducing inputs."""


MOST_CANDIDATES = 3000
"""Distinct inputs among which inducing inputs are picked: their Gram matrix is formed once."""


class Inducing(eqx.Module):
    """The inducing inputs of one kernel; rows whose mask is False only pad the shape."""

    points: Float[np.ndarray, "M C"]
    mask: Bool[np.ndarray, "M"]

    @property
    def size(self) -> int:
        """The number of real inducing inputs."""
        return int(np.sum(self.mask))


def greedy_inducing(
    kernel: Kernel, inputs: Float[np.ndarray, "N C"], tolerance: float, most: int
) -> Float[np.ndarray, "M C"]:
    """Pick inducing inputs among the distinct ones until what is left out is below tolerance.

    Pivoted Cholesky factorisation: each pick is the input with the largest conditional
    variance. ``tolerance`` is relative to the largest prior variance. Where the distinct inputs
    are few, or the tolerance is zero, all of them are kept and the features are exact.
    """
    candidates = _spread_out(inputs[distinct_rows(kernel, inputs)], MOST_CANDIDATES)
    if len(candidates) <= (most if tolerance <= 0 else min(most, FEW_DISTINCT)):
        return candidates
    gram = np.asarray(eqx.filter_jit(kernel)(candidates, candidates))
    left = np.diagonal(gram).copy()
    enough = tolerance * left.max()
    factor = np.zeros((min(most, len(candidates)), len(candidates)))
    picked: list[int] = []
    for step in range(len(factor)):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough:
            break
        row = (gram[pivot] - factor[:step, pivot] @ factor[:step]) / np.sqrt(left[pivot])
        factor[step] = row
        left = np.maximum(left - row**2, 0.0)
        left[pivot] = 0.0
        picked.append(pivot)
    return candidates[np.sort(picked or [0])]


def _spread_out(rows: Float[np.ndarray, "N C"], most: int) -> Float[np.ndarray, "K C"]:
    """Keep at most so many rows, evenly spaced in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def pad_inducing(points: Float[np.ndarray, "M C"]) -> Inducing:
    """Round the number of inducing inputs up, so that fits of similar size share a program."""
    room = _rounded_up(len(points)) - len(points)
    padded = np.concatenate([points, np.repeat(points[-1:], room, axis=0)])
    return Inducing(padded, np.arange(len(padded)) < len(points))


def _rounded_up(size: int) -> int:
    """Return how many inducing inputs a kernel of so many has with its padding.

    The steps are finer than those of rows, as time grows with the cube of their number, and coarse
    enough for the fits of other data to share a program. The hours of a day and of a week fit in.

    >>> [_rounded_up(n) for n in (2, 24, 40, 74, 150, 168, 250, 300)]
    [8, 24, 48, 80, 168, 168, 264, 304]
    """
    steps = ((FEW_DISTINCT, 8), (128, 16), (264, 24))
    step = next((step for most, step in steps if size <= most), 0)
    return -(-size // step) * step if step else bucket(size, steps=16)
