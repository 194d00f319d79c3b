"""Factorising and solving, one matrix of a batch after the other.

XLA hands the matrices of a batched LAPACK call to the very threads that wait for them. With as many
such calls at a time as there are cores the program deadlocks (two roles with a block for each
output, on two cores; one such call, in a process of one thread). These functions loop over a batch,
forwards and in their derivatives. Under vmap a loop would become a batched call again: callers loop
too (`jax.lax.map`).
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.lax.linalg import triangular_solve
from jaxtyping import Array, Float

Squares = Float[Array, "*B P P"]


def _one_by_one(
    function: Callable[..., Float[Array, "P K"]], *batches: Float[Array, "*B P _"]
) -> Float[Array, "*B P K"]:
    """Call a function with each matrix, or pair of matrices, of a batch in turn."""
    batch = batches[0].shape[:-2]
    stacked = tuple(each.reshape(-1, *each.shape[-2:]) for each in batches)
    found = jax.lax.map(lambda each: function(*each), stacked)
    return found.reshape(*batch, *found.shape[1:])


def cholesky(matrix: Squares) -> Squares:
    """Return the lower triangular L with L L' = matrix, a symmetric one."""
    return _one_by_one(lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False), matrix)


def solve_lower(factor: Squares, right: Float[Array, "*B P K"]) -> Float[Array, "*B P K"]:
    """Return L^-1 R for a lower triangular L."""
    return _one_by_one(
        lambda a, b: triangular_solve(a, b, left_side=True, lower=True), factor, right
    )
