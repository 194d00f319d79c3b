import pickle
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from sklearn.gaussian_process import kernels as sk

from censored_gp import kernels
from censored_gp.data.inputs import Columns
from censored_gp.kernels import (
    RBF,
    Combination,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Stationary,
    Sum,
    White,
)
from support.quick import quick

# Each kernel with its counterpart in scikit-learn, the independent oracle.
PAIRS = {
    "RBF": (RBF(0.7), sk.RBF(0.7)),
    "Matern12": (Matern12(0.7), sk.Matern(0.7, nu=0.5)),
    "Matern32": (Matern32(0.7), sk.Matern(0.7, nu=1.5)),
    "Matern52": (Matern52(0.7), sk.Matern(0.7, nu=2.5)),
    "RationalQuadratic": (RationalQuadratic(0.7, 1.3), sk.RationalQuadratic(0.7, alpha=1.3)),
    "Periodic": (Periodic(1.9, 0.8, columns=0), sk.ExpSineSquared(0.8, periodicity=1.9)),
    "Linear": (Linear(1.0), sk.DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")),
    "Constant": (Constant(2.5), sk.ConstantKernel(2.5)),
    "White": (White(), sk.WhiteKernel(1.0)),
    "Sum": (RBF(0.7) + Constant(0.3), sk.RBF(0.7) + sk.ConstantKernel(0.3)),
    "Product": (RBF(0.7) * Matern32(2.0), sk.RBF(0.7) * sk.Matern(2.0, nu=1.5)),
}
CASES = [pytest.param(*pair, id=name) for name, pair in PAIRS.items()]
ALONE = [pytest.param(pair[0], id=name) for name, pair in PAIRS.items()]
STATIONARY = [RBF, Matern12, Matern32, Matern52, RationalQuadratic]
TABLE = Columns(("time", "rain"), (True, False), (np.datetime64("2018-01-01"), 0.0))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(25, 3))


def looked_at(kernel, X):
    return X[:, list(kernel.columns)] if kernel.columns else X


def test_every_kernel_has_a_case():
    public = [getattr(kernels, name) for name in kernels.__all__]
    classes = {c for c in public if isinstance(c, type) and issubclass(c, Kernel)}
    assert {c.__name__ for c in classes - {Kernel, Stationary, Combination}} == set(PAIRS)


@pytest.mark.parametrize(("kernel", "oracle"), CASES)
def test_equals_scikit_learn(kernel, oracle, X):
    own = looked_at(kernel, X)
    found = quick(lambda X: (kernel(X, X), kernel(X, X[:7] + 1), kernel.diagonal(X)))(X)
    np.testing.assert_allclose(found[0], oracle(own), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[1], oracle(own, own[:7] + 1), rtol=1e-12)
    np.testing.assert_allclose(found[2], oracle.diag(own), rtol=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(RBF, sk.RBF), (Matern32, sk.Matern)], ids=["RBF", "Matern32"]
)
def test_one_lengthscale_per_column_equals_scikit_learn(ours, theirs, X):
    np.testing.assert_allclose(ours([0.5, 1.0, 3.0])(X, X), theirs([0.5, 1.0, 3.0])(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", ALONE)
def test_batch_equals_the_obvious_loop(kernel, X):
    rows, others = jnp.asarray(X[:4]), jnp.asarray(X[2:7])
    one = quick(lambda x, z: kernel.evaluate(x, z))
    loop = [[float(one(x, z)) for z in others] for x in rows]
    np.testing.assert_allclose(quick(lambda a, b: kernel(a, b))(rows, others), loop, rtol=1e-14)


@pytest.mark.parametrize("kernel", ALONE)
def test_is_symmetric_and_positive_semi_definite(kernel, X):
    gram = np.asarray(quick(lambda X: kernel(X, X))(X))
    np.testing.assert_array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-10 * np.trace(gram)


@pytest.mark.parametrize("kernel", [*(k(0.3) for k in STATIONARY), Periodic(2.0, 0.3), White()])
def test_unit_variance(kernel, X):
    np.testing.assert_array_equal(kernel.diagonal(X), np.ones(25))


@pytest.mark.parametrize("kernel", ALONE)
def test_gradients_are_right_and_finite_at_zero_distance(kernel, X):
    flat, unravel = ravel_pytree(eqx.filter(kernel, eqx.is_inexact_array))

    def total(leaves):
        return jnp.sum(jnp.sin(eqx.combine(unravel(leaves), kernel)(X, X)))

    steps = 1e-6 * np.eye(flat.size)
    at = quick(total)
    slopes = [(at(flat + step) - at(flat - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(quick(jax.grad(total))(flat), slopes, rtol=1e-6, atol=1e-6)


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
    with pytest.raises(ValueError, match=r"Sum: found .* Accepted are kernels"):
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
