"""Equations of single kernels, sums and products, and the kernels of the documentation."""

import pickle
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from censored_gp.data.inputs import Columns
from censored_gp.kernels import (
    RBF,
    Brownian,
    Constant,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Sum,
    White,
)
from support.quick import quick

STATIONARY = [RBF, Matern12, Matern32, Matern52, RationalQuadratic]
TABLE = Columns(("time", "rain"), (True, False), (np.datetime64("2018-01-01"), 0.0))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(25, 3))


@pytest.mark.parametrize(
    ("ours", "theirs"), [(RBF, sk.RBF), (Matern32, sk.Matern)], ids=["RBF", "Matern32"]
)
def test_one_lengthscale_per_column_equals_scikit_learn(ours, theirs, X):
    np.testing.assert_allclose(ours([0.5, 1.0, 3.0])(X, X), theirs([0.5, 1.0, 3.0])(X), rtol=1e-12)


def test_second_derivatives_and_those_in_the_rows_are_finite_at_zero_distance(X):
    def total(lengthscale, Z):
        return sum(jnp.sum(kernel(lengthscale)(Z, X)) for kernel in STATIONARY)

    assert np.isfinite(quick(jax.grad(jax.grad(total)))(0.7, X))
    assert np.all(np.isfinite(quick(jax.grad(total, argnums=1))(0.7, X)))


@pytest.mark.parametrize("kernel", [k(1.0) for k in STATIONARY])
def test_extreme_distances_leave_no_nan(kernel):
    far = np.array([[0.0], [1e-160], [1e8], [1e100]])
    value, gradient = quick(jax.value_and_grad(lambda k: jnp.sum(k(far, far))))(kernel)
    assert np.isfinite(value)
    assert np.isfinite(gradient.lengthscale)


def test_rational_quadratic_tends_to_rbf(X):
    np.testing.assert_allclose(RationalQuadratic(0.7, 1e9)(X, X), RBF(0.7)(X, X), atol=1e-8)


def test_periodic_is_an_rbf_close_by_and_repeats_far_off():
    x, period, width = np.linspace(0, 0.01, 9)[:, None], 24.0, 0.004
    periodic = Periodic(period, 2 * np.pi * width / period)
    np.testing.assert_allclose(periodic(x, x), RBF(width)(x, x), atol=1e-6)
    np.testing.assert_allclose(periodic(x, x + 1000 * period), periodic(x, x), atol=1e-6)


def test_sums_and_products_are_flat_and_distribute(X):
    a, b, c = RBF(1.0), Matern12(2.0), Constant(3.0)
    assert isinstance(a + b + c, Sum)
    assert len((a + (b + c)).terms) == 3
    assert isinstance(a * b * c, Product)
    assert len((a * (b * c)).terms) == 3
    np.testing.assert_allclose(((a + b) * c)(X, X), (a * c + b * c)(X, X), rtol=1e-13)


@pytest.mark.parametrize("other", [1.0, "RBF", None])
def test_only_kernels_combine(other):
    with pytest.raises(TypeError):
        _ = RBF() + other
    with pytest.raises(TypeError):
        _ = RBF() * other
    with pytest.raises(ValueError, match=r"`terms` of Sum .*got"):
        Sum([RBF(), other])


def test_leaves_are_the_positive_hyperparameters():
    leaves = jax.tree.leaves(Periodic(24, 0.5) * RBF(2) + RationalQuadratic([1.0, 2.0], alpha=3))
    assert [np.asarray(leaf).tolist() for leaf in leaves] == [0.5, 2.0, [1.0, 2.0], 3.0]
    assert all(isinstance(leaf, np.ndarray) and leaf.dtype == np.float64 for leaf in leaves)


def test_new_hyperparameters_do_not_compile_again(X):
    traces = []

    @eqx.filter_jit
    def gram(kernel, X):
        traces.append(None)
        return kernel(X, X)

    for lengthscale in (0.1, 1, 10.0):
        gram(RBF(lengthscale, columns=0) * Periodic(24, 0.2), X)
    assert len(traces) == 1


def test_repr_is_the_call_that_makes_it():
    kernel = (RBF(None, columns="rain") + White()) * Periodic(168, 0.1, columns="time")
    assert repr(Periodic(168, 0.1, columns="time")) == (
        "Periodic(period=168, lengthscale=0.1, columns=('time',))"
    )
    assert repr(eval(repr(kernel))) == repr(kernel)
    again = Matern32(["1d", 2.0]) + RBF([0.5, 2]) * Constant(1 / 3)
    assert repr(eval(repr(again))) == repr(again)


def test_resolved_kernels_can_be_read_by_name():
    kernel = Periodic(168, 0.1, columns="time") + RBF(2.0) * Constant()
    named = kernel.resolve(TABLE).named(TABLE)
    assert repr(named) == (
        "Periodic(period=168, lengthscale=0.1, columns=('time',)) + "
        "RBF(lengthscale=2, columns=('time', 'rain')) * Constant(variance=1)"
    )


def test_kernels_survive_copies_transforms_and_logs():
    kernel = RBF(2.0) + Periodic(24, 0.5)
    assert repr(pickle.loads(pickle.dumps(kernel))) == repr(kernel)
    logs = jax.tree.map(jnp.log, kernel)
    np.testing.assert_allclose(jax.tree.map(jnp.exp, logs).terms[0].lengthscale, 2.0)
    eqx.filter_jit(lambda k: repr(k) and k.diagonal(np.eye(2)))(kernel)


def test_the_kernels_of_the_docs_work():
    page = Path(__file__).parents[2] / "docs" / "extending" / "kernel.md"
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
    made: dict = {"__name__": "docs"}
    exec(compile(code, str(page), "exec"), made)
    X = np.stack([np.arange(30.0), np.random.default_rng(0).normal(size=30)], axis=1)
    kernel = made["Above"](columns="rain") + made["Wendland"]("6h", columns="time")
    ready = kernel.resolve(TABLE).fill_lengthscales(X)
    gram = np.asarray(eqx.filter_jit(ready)(X, X))
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    np.testing.assert_allclose(np.diag(gram), ready.diagonal(X))
    gradient = eqx.filter_jit(eqx.filter_grad(lambda k: jnp.sum(k(X, X))))(ready)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))


def test_a_brownian_level_stays_where_it_was_last_seen_and_becomes_less_certain():
    kernel, seen, ahead = (
        Brownian(5.0),
        np.linspace(-3.0, 3.0, 8)[:, None],
        np.array([[4.0], [9.0]]),
    )
    gram, cross = np.asarray(kernel(seen, seen)), np.asarray(kernel(ahead, seen))
    weights = np.linalg.solve(gram, cross.T).T
    np.testing.assert_allclose(weights, np.tile(np.eye(8)[-1], (2, 1)), atol=1e-9)
    left = np.asarray(kernel.diagonal(ahead)) - np.sum(weights * cross, axis=1)
    np.testing.assert_allclose(left, (ahead[:, 0] - 3.0) / 5.0)
