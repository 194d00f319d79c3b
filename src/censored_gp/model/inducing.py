"""Inducing inputs: for each kernel a subset Z_q of its distinct inputs, picked greedily.

Pivoted Cholesky factorisation picks the input of largest conditional variance until the rest is
below a tolerance. A kernel that sees few distinct inputs (the hours of a day) starts with all of
them; the engine `natural` leaves out those that fitted lengthscales do not need.

A smooth kernel over a long series would need too many. It is written as white noise at the knots
z_m of a grid, smoothed by the root g of the kernel under convolution (`Knots`):

    u(x) = c sum_m g(x - z_m) v_m,    v ~ N(0, I),    c^2 sum_m g(x - z_m)^2 = 1,

which has the covariance k(x, x') up to exp(-5 l^2 / h^2), for a lengthscale l and a spacing h. Only
the knots within some lengthscales of x count, so that precisions of the weights are banded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from censored_gp.kernels.base import Kernel, distinct_rows
from censored_gp.model.compilation import Rows, bucket, pad

# Up to this many distinct inputs (the hours of a day, say) are all kept as inducing inputs.
FEW_DISTINCT = 32
# Inducing inputs are picked among at most this many candidates, whose Gram matrix is formed.
MOST_CANDIDATES = 3000
# A series of more distinct inputs may have knots; of fewer, hyper-parameters may be mixed over.
LONG = 5000
# A grid has at most this many knots.
MOST_KNOTS = 2**15
# A grid has this many knots to a lengthscale: enough for one half as long.
KNOTS_A_LENGTH = 2.8
# The root of a kernel is zero from this many lengthscales on: it is below 4e-5 there.
REACH = 3.2


class Inducing(eqx.Module):
    """The inducing inputs of one kernel, and which of the points are in use.

    Others pad the shape, or are left out by `only`: compiled programs keep their shapes.
    """

    points: Float[np.ndarray, "M C"]
    mask: Bool[np.ndarray, "M"]

    @property
    def size(self) -> int:
        """The number of inducing inputs."""
        return int(np.sum(self.mask))

    @property
    def width(self) -> int:
        """The number of weights of one latent function in dense matrices."""
        return self.size

    @classmethod
    def padded(cls, points: Float[np.ndarray, "M C"]) -> Inducing:
        """Pad points to a size that other data sets share."""
        room = bucket(len(points), "inducing") - len(points)
        return cls(pad(points, room), np.arange(len(points) + room) < len(points))

    def only(self, kept: Sequence[Int[np.ndarray, "K"]]) -> Inducing:
        """Return those of the inducing inputs in use that one of the lists names by number."""
        mask = np.zeros_like(self.mask)
        mask[np.flatnonzero(self.mask)[np.unique(np.concatenate(kept))]] = True
        return Inducing(self.points, mask)


class Knots(eqx.Module):
    """An even grid over the one column that a kernel looks at, see above."""

    first: Float[np.ndarray, ""]
    spacing: Float[np.ndarray, ""]
    size: int = eqx.field(static=True)
    width = 0

    @classmethod
    def along(cls, kernel: Kernel, inputs: Rows) -> Knots:
        """Return a grid for a kernel, beyond both ends of the inputs by the reach of its root."""
        x, length = np.asarray(kernel.canonical(inputs))[:, 0], longest(kernel)
        margin = 2.0 * REACH * length
        span = float(np.ptp(x)) + 2.0 * margin
        spacing = max(length / KNOTS_A_LENGTH, span / (MOST_KNOTS - 1))
        size = int(np.ceil(span / spacing)) + 1
        return cls(np.asarray(x.min() - margin), np.asarray(spacing), size)

    def suits(self, other: Knots) -> bool:
        """Whether the lengthscale has not grown by half or more since another grid was made."""
        return float(self.spacing) < 1.5 * float(other.spacing)

    def window(self, length: float) -> int:
        """Return how many neighbouring knots are within reach, rounded up to a multiple of 8."""
        within = int(np.ceil(2.0 * REACH * length / float(self.spacing))) + 1
        return min(-(-within // 8) * 8, self.size)


def longest(kernel: Kernel) -> float:
    """Return the largest lengthscale of a kernel."""
    return max(float(np.max(leaf)) for leaf in jax.tree.leaves(kernel))


# The inducing inputs (`Inducing`, or `Knots`) of every kernel of a role.
InducingInputs = tuple[Any, ...]


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
