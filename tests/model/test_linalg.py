"""Factorising and solving one by one: the same numbers and slopes as the batched routines."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.model.linalg import cholesky, solve_lower
from censored_gp.model.lmc import geometry
from support import small
from support.quick import quick

BATCHES = [(), (1,), (3,), (2, 2)]


def covariances(shape, order=6):
    root = np.random.default_rng(0).normal(size=(*shape, order, order))
    return root @ np.swapaxes(root, -1, -2) + order * np.eye(order)


@pytest.mark.parametrize("shape", BATCHES)
def test_factor_and_solution_are_numpys(shape):
    matrix = covariances(shape)
    factor = np.linalg.cholesky(matrix)
    right = np.random.default_rng(1).normal(size=(*shape, 6, 4))

    @quick
    def ours(matrix, factor, right):
        return solve_lower(factor, right), cholesky(matrix)

    solved, own = ours(matrix, factor, right)
    np.testing.assert_allclose(solved, np.linalg.solve(factor, right))
    np.testing.assert_allclose(own, factor, atol=1e-12)


@pytest.mark.parametrize("shape", BATCHES)
def test_slopes_are_those_of_jax(shape):
    matrix, right = covariances(shape), np.random.default_rng(1).normal(size=(*shape, 6, 4))

    def own(m, r):
        return jnp.sum(jnp.sin(solve_lower(cholesky(m), r)))

    def plain(m, r):
        factor = jnp.linalg.cholesky(m, symmetrize_input=True)
        solved = jax.lax.linalg.triangular_solve(factor, r, left_side=True, lower=True)
        return jnp.sum(jnp.sin(solved))

    both = quick(lambda *args: [jax.grad(each, (0, 1))(*args) for each in (own, plain)])
    for mine, theirs in zip(*both(matrix, right), strict=True):
        # The slope in a symmetric matrix is known but for what is antisymmetric.
        symmetric = (each + np.swapaxes(each, -1, -2) for each in (mine, theirs))
        np.testing.assert_allclose(
            *(symmetric if mine.shape == matrix.shape else (mine, theirs)), atol=1e-10
        )


def test_no_batched_lapack_call_is_made():
    """A batched call waits for the threads it needs: two at a time stop a machine of two cores."""
    matrix, right = covariances((3,)), np.ones((3, 6, 2))
    task = small.separate()
    lmc, inducing = task.model.priors["mean"], task.problem(task.model).inducing["mean"]
    assert len(lmc.mean) > 1

    def solved(m, r):
        return jnp.sum(solve_lower(cholesky(m), r) ** 2)

    def features(lmc):
        return jnp.sum(geometry(lmc, inducing, task.inputs, jnp.asarray(1e-9)).phi)

    programs = (
        jax.jit(jax.grad(solved)).lower(matrix, right),
        jax.jit(jax.grad(features)).lower(lmc),
    )
    for program in programs:
        assert set(re.findall(r'num_batch_dims = "(\d+)"', program.as_text())) == {"0"}
