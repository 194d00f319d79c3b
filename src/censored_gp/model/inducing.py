"""Inducing inputs: for each kernel a subset Z_q of its distinct inputs, picked greedily.

Pivoted Cholesky factorisation picks the input of largest conditional variance until the rest is
below a tolerance. A kernel that sees few distinct inputs (the hours of a day) keeps them all.
"""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from censored_gp.kernels.base import Kernel, distinct_rows
from censored_gp.model.compilation import Rows, bucket, pad

FEW_DISTINCT = 32
"""Up to this many distinct inputs (the hours of a day, say) are all kept as inducing inputs."""
MOST_CANDIDATES = 3000
"""Inducing inputs are picked among at most this many candidates, whose Gram matrix is formed."""


class Inducing(eqx.Module):
    """The inducing inputs of one kernel; those whose mask is False only pad the shape."""

    points: Float[np.ndarray, "M C"]
    mask: Bool[np.ndarray, "M"]

    @property
    def size(self) -> int:
        """The number of real inducing inputs."""
        return int(np.sum(self.mask))

    @classmethod
    def padded(cls, points: Float[np.ndarray, "M C"]) -> Inducing:
        """Pad points to a size that other data sets share."""
        room = bucket(len(points), "inducing") - len(points)
        return cls(pad(points, room), np.arange(len(points) + room) < len(points))


InducingInputs = tuple[Inducing, ...]
"""The inducing inputs of every kernel of a role."""


def greedy_inducing(
    kernel: Kernel, inputs: Rows, tolerance: float, most: int
) -> Float[np.ndarray, "M C"]:
    """Pick inducing inputs until no conditional variance is above the tolerance.

    ``tolerance`` is relative to the largest prior variance. Where distinct inputs are few, or the
    tolerance is zero, all of them are kept and the features are exact.
    """
    candidates = inputs[distinct_rows(kernel, inputs)]
    if len(candidates) > MOST_CANDIDATES:
        spaced = np.linspace(0, len(candidates) - 1, MOST_CANDIDATES).round().astype(int)
        candidates = candidates[spaced]
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
