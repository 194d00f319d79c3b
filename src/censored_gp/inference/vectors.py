"""Hyper-parameters as one vector, and back."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float, PyTree

Vector = Float[np.ndarray, "P"]


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
