"""What every kernel must fulfil. A kernel without a case here fails the first test."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from sklearn.gaussian_process import kernels as sk

from censored_gp import kernels
from censored_gp.data.inputs import Columns
from censored_gp.estimator.persistence import _classes
from censored_gp.kernels import (
    RBF,
    Block,
    Brownian,
    Combination,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Stationary,
    White,
)
from censored_gp.kernels.base import distinct_rows
from support.quick import quick


class Wiener:
    """The covariance of W(x) and W(z): how much of the way from zero they have in common."""

    def __call__(self, X, Z=None):
        x, z = X[:, None], (X if Z is None else Z)[None]
        return np.sum(np.minimum(abs(x), abs(z)) * (x * z > 0), axis=2) / 2.5

    def diag(self, X):
        return np.sum(abs(X), axis=1) / 2.5


class SameBlock:
    """1 for inputs that round down to the same half."""

    def __call__(self, X, Z=None):
        x, z = np.floor(2 * X), np.floor(2 * (X if Z is None else Z))
        return (x == z.T).astype(float)

    def diag(self, X):
        return np.ones(len(X))


# Each kernel with its counterpart in scikit-learn, the independent oracle.
PAIRS = {
    "RBF": (RBF(0.7), sk.RBF(0.7)),
    "Matern12": (Matern12(0.7), sk.Matern(0.7, nu=0.5)),
    "Matern32": (Matern32(0.7), sk.Matern(0.7, nu=1.5)),
    "Matern52": (Matern52(0.7), sk.Matern(0.7, nu=2.5)),
    "RationalQuadratic": (RationalQuadratic(0.7, 1.3), sk.RationalQuadratic(0.7, alpha=1.3)),
    "Periodic": (Periodic(1.9, 0.8, columns=0), sk.ExpSineSquared(0.8, periodicity=1.9)),
    "Brownian": (Brownian(2.5), Wiener()),
    "Linear": (Linear(1.0), sk.DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")),
    "Constant": (Constant(2.5), sk.ConstantKernel(2.5)),
    "Block": (Block(0.5, columns=0), SameBlock()),
    "White": (White(), sk.WhiteKernel(1.0)),
    "Sum": (RBF(0.7) + Constant(0.3), sk.RBF(0.7) + sk.ConstantKernel(0.3)),
    "Product": (RBF(0.7) * Matern32(2.0), sk.RBF(0.7) * sk.Matern(2.0, nu=1.5)),
}
CASES = [pytest.param(*pair, id=name) for name, pair in PAIRS.items()]
ALONE = [pytest.param(pair[0], id=name) for name, pair in PAIRS.items()]
TABLE = Columns(("time", "rain"), (True, False), (np.datetime64("2018-01-01"), 0.0))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(25, 3))


def looked_at(kernel, X):
    return X[:, list(kernel.columns)] if kernel.columns else X


def emptied(kernel):
    """The kernel with every lengthscale and scale to be chosen."""
    names = [n for n in ("lengthscale", "scale") if hasattr(kernel, n)]
    return eqx.tree_at(lambda k: [getattr(k, n) for n in names], kernel, [None] * len(names))


def test_every_kernel_has_a_case():
    # Other tests define kernels too.
    built_in = {c for c in _classes(Kernel).values() if c.__module__.startswith("censored_gp.")}
    assert {c.__name__ for c in built_in - {Kernel, Stationary, Combination}} == set(PAIRS)
    assert set(PAIRS) <= set(kernels.__all__)


@pytest.mark.parametrize(("kernel", "oracle"), CASES)
def test_equals_scikit_learn(kernel, oracle, X):
    own = looked_at(kernel, X)
    found = quick(lambda X: (kernel(X, X), kernel(X, X[:7] + 1), kernel.diagonal(X)))(X)
    np.testing.assert_allclose(found[0], oracle(own), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[1], oracle(own, own[:7] + 1), rtol=1e-12)
    np.testing.assert_allclose(found[2], oracle.diag(own), rtol=1e-12)


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


@pytest.mark.parametrize("kernel", ALONE)
def test_gradients_are_right_and_finite_at_zero_distance(kernel, X):
    flat, unravel = ravel_pytree(eqx.filter(kernel, eqx.is_inexact_array))

    def total(leaves):
        return jnp.sum(jnp.sin(eqx.combine(unravel(leaves), kernel)(X, X)))

    steps = 1e-6 * np.eye(flat.size)
    at = quick(total)
    slopes = [(at(flat + step) - at(flat - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(quick(jax.grad(total))(flat), slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ALONE)
def test_the_diagonal_is_that_of_the_gram_matrix(kernel, X):
    gram, diagonal = quick(lambda X: (kernel(X, X), kernel.diagonal(X)))(X)
    np.testing.assert_allclose(diagonal, np.diagonal(gram), rtol=1e-14)


@pytest.mark.parametrize("kernel", ALONE)
def test_what_is_open_is_filled_with_usable_values(kernel, X):
    terms = getattr(kernel, "terms", (kernel,))
    for term in map(emptied, terms):
        filled = term.fill_lengthscales(X)
        assert "None" not in repr(filled)
        assert all(np.all(np.isfinite(v) & (v > 0)) for v in jax.tree.leaves(filled))
        assert np.all(np.isfinite(filled(X, X)))


@pytest.mark.parametrize("kernel", ALONE)
def test_resolving_and_naming_columns_changes_no_covariance(kernel, X):
    rows = X[:, :2]
    resolved = kernel.resolve(TABLE)
    again = resolved.named(TABLE).resolve(TABLE)
    assert repr(again) == repr(resolved)
    np.testing.assert_array_equal(again(rows, rows), kernel(rows, rows))


@pytest.mark.parametrize("kernel", ALONE)
def test_rows_that_are_not_distinct_have_equal_covariances(kernel, X):
    rows = np.concatenate([X[:6], X[:6] + np.array([1.9, 0.0, 0.0]), X[:6]])
    kept = distinct_rows(kernel, rows)
    canonical = kernel.canonical(rows)
    gram = np.asarray(quick(lambda X: kernel(X, X))(rows))
    for n in range(len(rows)):
        twin = next(m for m in kept if np.allclose(canonical[m], canonical[n]))
        np.testing.assert_allclose(gram[n], gram[twin], atol=1e-9)


def test_a_kernel_is_known_to_model_files_by_being_defined():
    class Cauchy(Stationary):
        def correlation(self, s):
            return 1 / (1 + s)

    assert _classes(Kernel)["Cauchy"] is Cauchy
    assert all(_classes(Kernel)[name] is type(pair[0]) for name, pair in PAIRS.items())
