"""Factorising and solving, one matrix of a batch after the other.

XLA hands the matrices of a batched LAPACK call to the very threads that wait for them. With as many
such calls at a time as there are cores the program deadlocks (two roles with a block for each
output, on two cores; one such call, in a process of one thread). These functions never make a
batched call, also under vmap. Their adjoints are written out, which compiles faster than the
general rules.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.lax.linalg import triangular_solve
from jaxtyping import Array, Float

Square = Float[Array, "P P"]
Right = Float[Array, "P K"]
Squares = Float[Array, "*B P P"]


@sequential_vmap
def _factor(matrix: Square) -> Square:
    """Return the Cholesky factor of one matrix."""
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


@sequential_vmap
def _forward(factor: Square, right: Right) -> Right:
    """Return L^-1 R."""
    return triangular_solve(factor, right, left_side=True, lower=True)


@sequential_vmap
def _backward(factor: Square, right: Right) -> Right:
    """Return L^-T R."""
    return triangular_solve(factor, right, left_side=True, lower=True, transpose_a=True)


@jax.custom_vjp
def _cholesky(matrix: Square) -> Square:
    return _factor(matrix)


def _cholesky_forward(matrix: Square) -> tuple[Square, Square]:
    factor = _factor(matrix)
    return factor, factor


def _cholesky_adjoint(factor: Square, slope: Square) -> tuple[Square]:
    """Return L^-T Phi(L' slope) L^-1, symmetrised; Phi keeps the lower half of the diagonal."""
    kept = jnp.tril(factor.T @ slope)
    kept = kept - 0.5 * jnp.diag(jnp.diagonal(kept))
    turned = _backward(factor, _backward(factor, kept).T)
    return (0.5 * (turned + turned.T),)


_cholesky.defvjp(_cholesky_forward, _cholesky_adjoint)


@jax.custom_vjp
def _solve(factor: Square, right: Right) -> Right:
    return _forward(factor, right)


def _solve_forward(factor: Square, right: Right) -> tuple[Right, tuple[Square, Right]]:
    solved = _forward(factor, right)
    return solved, (factor, solved)


def _solve_adjoint(kept: tuple[Square, Right], slope: Right) -> tuple[Square, Right]:
    """Return -tril(L^-T slope X') and L^-T slope."""
    factor, solved = kept
    back = _backward(factor, slope)
    return -jnp.tril(back @ solved.T), back


_solve.defvjp(_solve_forward, _solve_adjoint)


def cholesky(matrix: Squares) -> Squares:
    """Return the lower triangular L with L L' = matrix; only the lower half is read."""
    return jnp.vectorize(_cholesky, signature="(p,p)->(p,p)")(matrix)


def solve_lower(factor: Squares, right: Float[Array, "*B P K"]) -> Float[Array, "*B P K"]:
    """Return L^-1 R for a lower triangular L."""
    return jnp.vectorize(_solve, signature="(p,p),(p,k)->(p,k)")(factor, right)


def inverse_of_product(factor: Squares) -> Squares:
    """Return (L L')^-1 for a lower triangular L."""
    inverse = solve_lower(factor, jnp.broadcast_to(jnp.eye(factor.shape[-1]), factor.shape))
    return jnp.swapaxes(inverse, -1, -2) @ inverse
