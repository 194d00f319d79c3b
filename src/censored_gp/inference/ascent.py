"""Limited-memory BFGS for a bound that moves a little between evaluations.

The sites change along with the hyper-parameters, so there is no line search to be exact about: a
step is taken, looked at once, and taken back if the bound fell.
"""

from __future__ import annotations

from collections import deque

import jax
import numpy as np
from jaxtyping import Float, PyTree

Vector = Float[np.ndarray, "P"]

LONGEST_STEP = 1.0
"""Most that any free hyper-parameter may move in one step (they are logarithms, or of order 1)."""
FIRST_STEP = 0.3
"""Length of the first step, when nothing is known of the curvature."""


def to_vector(tree: PyTree) -> Vector:
    """Put all leaves of a tree in one vector."""
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)])


def from_vector(vector: Vector, like: PyTree) -> PyTree:
    """Undo :func:`to_vector`."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = np.split(vector, ends)
    shaped = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


class Curvature:
    """Remembers steps and changes of gradient, and turns a gradient into a quasi-Newton step."""

    def __init__(self, memory: int = 40) -> None:
        self._pairs: deque[tuple[Vector, Vector]] = deque(maxlen=memory)

    def learn(self, step: Vector, fall: Vector) -> None:
        """Remember a step and by how much the gradient fell along it, if that is informative."""
        if step @ fall > 1e-6 * np.linalg.norm(step) * np.linalg.norm(fall):
            self._pairs.append((step, fall))

    def forget(self) -> None:
        """Start anew, after steps that the remembered curvature got wrong."""
        self._pairs.clear()

    def ascent(self, gradient: Vector) -> Vector:
        """Return the step uphill: the two-loop recursion, bounded in every coordinate."""
        step, slopes = gradient.copy(), []
        for s, y in reversed(self._pairs):
            slopes.append((s @ step) / (s @ y))
            step = step - slopes[-1] * y
        if self._pairs:
            s, y = self._pairs[-1]
            step = step * (s @ y) / (y @ y)
        for (s, y), slope in zip(self._pairs, reversed(slopes), strict=True):
            step = step + (slope - (y @ step) / (s @ y)) * s
        largest = np.abs(step).max(initial=1e-300)
        bound = LONGEST_STEP if self._pairs else FIRST_STEP
        return step * (min(1.0, bound / largest) if self._pairs else bound / largest)
