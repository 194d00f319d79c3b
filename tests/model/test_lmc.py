"""Features and inducing inputs against the matrices they stand for, Eq. (4) and Eq. (5)."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.kernels import RBF, Linear, Matern12, Periodic, White
from censored_gp.model.inducing import FEW_DISTINCT, Inducing, greedy_inducing
from censored_gp.model.lmc import LMC, Nugget, from_free, geometry, loadings, to_free
from support import dense, small

JITTER = jnp.asarray(1e-12)
HOURS = np.arange(100.0)[:, None]


def role(task, name="mean"):
    """A role of a task, with its inducing inputs."""
    return task.model.priors[name], task.problem(task.model).inducing[name]


def test_features_at_all_distinct_inputs_are_exact():
    """K = Psi Psi' of Eq. (5), nothing left out."""
    task = small.mixed()
    lmc, inducing = role(task)
    shape = eqx.filter_jit(geometry)(lmc, inducing, task.inputs, JITTER)
    psi = np.einsum("bnm,bdrm->bdnrm", shape.phi, shape.loading).reshape(40, -1)
    np.testing.assert_allclose(
        psi @ psi.T, dense.covariance(lmc, task.inputs, task.inputs, 0), atol=1e-9
    )
    np.testing.assert_allclose(shape.left_out, 0.0, atol=1e-9)


def test_what_is_left_out_makes_up_the_variance_at_new_inputs():
    task = small.mixed()
    lmc, inducing = role(task)
    new = np.array([[-5.0], [4.7], [30.0]])
    shape = eqx.filter_jit(geometry)(lmc, inducing, new, JITTER)
    sizes = np.cumsum([len(z.mask) for z in inducing])[:-1]
    carried = [np.sum(part**2, axis=2) for part in np.split(np.asarray(shape.phi), sizes, axis=2)]
    assert carried[0][0, 2] < 1e-3  # far from all data a smooth kernel is all prior
    pairs = zip(carried, lmc.variances, strict=True)
    expected = sum((1.0 - own[..., None]) * variance[:, None] for own, variance in pairs)
    np.testing.assert_allclose(shape.left_out, expected, atol=1e-9)


def test_padding_points_have_no_feature():
    task = small.mixed()
    lmc, inducing = role(task)
    phi = eqx.filter_jit(geometry)(lmc, inducing, task.inputs, JITTER).phi
    padding = ~np.concatenate([z.mask for z in inducing])
    assert padding.any()
    assert not np.any(np.asarray(phi)[..., padding])


def test_a_kernel_of_lower_rank_gets_empty_columns():
    lmc = LMC(
        (RBF(np.ones(1)), RBF(np.ones(1))),
        (np.ones((1, 2, 1)), np.ones((1, 2, 2))),
        np.zeros((1, 2)),
        (0, 1),
    )
    inducing = (Inducing.padded(HOURS[:3]), Inducing.padded(HOURS[:5]))
    found = np.asarray(loadings(lmc, inducing))
    assert found.shape == (1, 2, 2, 16)
    np.testing.assert_array_equal(found[0, :, 1, :8], 0.0)
    np.testing.assert_array_equal(found[0, :, 1, 8:], 1.0)


def test_blocks_of_their_own_see_nothing_of_each_other():
    """Uncoupled: the features of a block are those of a model of that output alone."""
    task = small.separate()
    lmc, inducing = role(task)
    both = eqx.filter_jit(geometry)(lmc, inducing, task.inputs, JITTER)
    for block in range(2):
        alone = jax.tree.map(lambda leaf, b=block: leaf[b : b + 1], lmc)
        own = eqx.filter_jit(geometry)(alone, inducing, task.inputs, JITTER)
        # Features are ill-conditioned one by one; the covariance that they make is not.
        products = (phi @ phi.T for phi in (both.phi[block], own.phi[0]))
        np.testing.assert_allclose(*products, atol=1e-10)


def test_coregionalization_matrices_are_products_of_the_mixing():
    lmc, _ = role(small.mixed())
    for a, b in zip(lmc.mixing, lmc.coregionalization, strict=True):
        np.testing.assert_allclose(b[0], a[0] @ a[0].T)


def test_free_hyper_parameters_are_logarithms_of_the_kernels_only():
    lmc, _ = role(small.mixed())
    free = to_free(lmc)
    np.testing.assert_allclose(
        jax.tree.leaves(free.kernels)[0], np.log(jax.tree.leaves(lmc.kernels)[0])
    )
    np.testing.assert_array_equal(free.mixing[0], lmc.mixing[0])
    for back, there in zip(jax.tree.leaves(from_free(free)), jax.tree.leaves(lmc), strict=True):
        np.testing.assert_allclose(back, there)


@pytest.mark.parametrize(
    ("kernel", "number"), [(Periodic(24.0, 0.5), 24), (RBF(5.0), 100), (White(), 100)]
)
def test_without_tolerance_every_distinct_input_is_kept(kernel, number):
    assert len(greedy_inducing(kernel, HOURS, 0.0, 256)) == number


@pytest.mark.parametrize("kernel", [RBF(8.0), Matern12(200.0)], ids=repr)
def test_inducing_inputs_are_picked_until_little_is_left(kernel):
    tolerance, rows = 1e-2, np.arange(2.0 * FEW_DISTINCT)[:, None]
    picked = greedy_inducing(kernel, rows, tolerance, len(rows))
    assert 2 < len(picked) < len(rows) / 2
    cross, gram = np.asarray(kernel(rows, picked)), np.asarray(kernel(picked, picked))
    carried = np.linalg.solve(gram + 1e-10 * np.eye(len(gram)), cross.T).T
    assert np.max(1 - np.sum(cross * carried, axis=1)) <= tolerance


def test_no_more_inducing_inputs_than_allowed():
    assert len(greedy_inducing(Matern12(0.1), HOURS, 1e-9, 17)) == 17


def test_a_kernel_that_is_zero_at_its_inducing_inputs_leaves_all_of_it_out():
    """A line through the origin where every row is at the origin: one row, or a constant column."""
    lmc = LMC((Linear(np.ones(1)),), (np.ones((1, 1, 1)),), np.zeros((1, 1)), (0,))
    inducing = (Inducing.padded(greedy_inducing(Linear(1.0), np.zeros((9, 1)), 1e-3, 256)),)
    new = np.array([[0.0], [2.0]])
    shape = eqx.filter_jit(geometry)(lmc, inducing, new, JITTER)
    np.testing.assert_array_equal(shape.phi, 0.0)
    np.testing.assert_allclose(shape.left_out.ravel(), [0.0, 4.0])
    product = Linear(1.0, columns=0) * RBF(1.0, columns=1)
    rows = np.stack([np.zeros(300), np.arange(300.0)], axis=1)
    assert len(greedy_inducing(product, rows, 1e-3, 256)) == 1


def test_padding_repeats_a_point_and_says_so():
    inducing = Inducing.padded(HOURS[:5])
    assert inducing.size == 5
    assert inducing.points.shape == (8, 1)
    np.testing.assert_array_equal(inducing.points[5:], HOURS[[4] * 3])


def test_a_role_without_kernels_does_not_vary():
    assert not small.separate().model.priors["scale"].varies
    assert small.separate().model.priors["mean"].varies


def test_constants_stand_side_by_side_at_every_row():
    lmc = LMC((), (), np.array([[1.0, 2.0], [3.0, 4.0]]), (0, 1, 2, 3))
    np.testing.assert_array_equal(lmc.constant(3), np.tile([1.0, 2.0, 3.0, 4.0], (3, 1)))


def test_the_bumps_of_a_nugget_add_up_to_one_all_around_their_cycle():
    nugget = Nugget(np.ones((1, 1, 8)), 1, 24.0)
    inputs = np.stack([np.zeros(500), np.linspace(-60.0, 60.0, 500)], axis=1)
    bumps = nugget.bumps(inputs)
    np.testing.assert_allclose(bumps.sum(axis=1), 1.0)
    np.testing.assert_allclose(nugget.bumps(inputs + 24.0), bumps, atol=1e-9)
    np.testing.assert_allclose(nugget.bumps(np.array([[0.0, 3.0]]))[0], np.eye(8)[1], atol=1e-12)


def test_a_nugget_is_as_large_as_its_bump_says():
    nugget = Nugget(np.array([[[0.1, -0.5, 0.2]]]), 0, 6.0)
    found = nugget.variance(np.array([[0.0], [2.0], [4.0], [3.0]]))[0, :, 0]
    np.testing.assert_allclose(found, [0.01, 0.25, 0.04, (0.25 + 0.04) / 2])


def test_no_batched_lapack_call_is_made():
    """A batched call waits for the threads it needs: two at a time stop a machine of two cores."""
    task = small.separate()
    lmc, inducing = task.model.priors["mean"], task.problem(task.model).inducing["mean"]
    assert len(lmc.mean) > 1

    def features(lmc):
        return jnp.sum(geometry(lmc, inducing, task.inputs, jnp.asarray(1e-9)).phi)

    program = jax.jit(jax.grad(features)).lower(lmc).as_text()
    assert set(re.findall(r'num_batch_dims = "(\d+)"', program)) == {"0"}
