"""Cells sorted by likelihood and kind, and their expected log likelihood against plain loops."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.data.observations import Observations
from censored_gp.inference.elbo import (
    collect_terms,
    expected_log_likelihood,
    gradient_of_expectation,
    pad_rows,
)
from censored_gp.likelihoods import Gaussian, NegativeBinomial, Poisson
from censored_gp.likelihoods.quadrature import NODES
from support import dense, small
from support.quick import quick

FAMILIES = (Gaussian(), Poisson(), Gaussian())
ROLES = {"mean": (0, 1, 2), "scale": (0, 2)}


def every_kind():
    """Exact, right, left, interval and missing cells, in all three outputs."""
    low = np.array([[1.0, 2, 0], [1, 2, -np.inf], [-np.inf, 0, 1], [0, 1, 1], [-np.inf, 3, -1]])
    high = np.array([[1.0, 2, 0], [np.inf, 2, 2], [3, 0, 1], [2, 1, np.inf], [np.inf, 3, 1]])
    return Observations(low, high)


def latent(rows, seed=0) -> Any:
    rng = np.random.default_rng(seed)
    sizes = {role: (rows, len(outputs)) for role, outputs in ROLES.items()}
    mean = {role: 0.3 * rng.normal(size=size) for role, size in sizes.items()}
    return mean, {role: rng.uniform(0.1, 0.5, size) for role, size in sizes.items()}


def test_every_cell_that_was_seen_is_in_one_list():
    observations = every_kind()
    terms = collect_terms(observations, FAMILIES, ROLES)
    found = [
        (int(row), ROLES["mean"][place])
        for part in terms
        for row, place, weight in zip(part.row, part.column[:, 0], part.weight, strict=True)
        if weight
    ]
    assert len(found) == len(set(found))
    assert set(found) == {(n, d) for n, d in np.argwhere(~observations.is_missing)}


def test_lists_hold_one_likelihood_and_one_kind():
    terms = collect_terms(every_kind(), FAMILIES, ROLES)
    pairs = [(type(part.likelihood), part.kind) for part in terms]
    assert len(pairs) == len(set(pairs))
    assert {kind for family, kind in pairs if family is Poisson} == {"exact"}


def test_parameters_are_found_among_the_outputs_of_their_role():
    """The third output is the second one that has a scale."""
    mean, _ = latent(5)
    for part in collect_terms(every_kind(), FAMILIES, ROLES):
        gathered = part.gather({role: jnp.asarray(m) for role, m in mean.items()})
        for place, row in enumerate(part.row):
            output = ROLES["mean"][part.column[place, 0]]
            expected = [mean[role][row, ROLES[role].index(output)] for role in part.roles]
            np.testing.assert_array_equal(gathered[place], expected)


def test_expectation_is_that_of_nested_loops():
    """Also with censored counts, which the tests of the whole bound leave out."""
    observations = small.observe(small.outputs(FAMILIES, np.linspace(0, 9, 10)[:, None], 0), 0.3)
    mean, variance = latent(10)
    terms = collect_terms(observations, FAMILIES, ROLES)
    varies = {"mean": True, "scale": True}
    found = eqx.filter_jit(expected_log_likelihood)(terms, mean, variance, varies)
    moments = {role: (mean[role], variance[role]) for role in ROLES}
    true = dense.expected_log_likelihood(FAMILIES, observations, moments, ROLES, NODES)
    np.testing.assert_allclose(float(found), true, rtol=1e-10)


def test_a_role_that_does_not_vary_is_not_integrated_over():
    observations = small.observe(np.random.default_rng(0).normal(size=(6, 1)), 0.0)
    mean: Any = {"mean": np.zeros((6, 1)), "scale": np.full((6, 1), 0.2)}
    variance: Any = {"mean": np.full((6, 1), 0.3), "scale": np.full((6, 1), 1e6)}
    terms = collect_terms(observations, (Gaussian(),), {"mean": (0,), "scale": (0,)})
    varies = {"mean": True, "scale": False}
    found = eqx.filter_jit(expected_log_likelihood)(terms, mean, variance, varies)
    sigma, y = np.exp(0.2), observations.lower
    closed = -0.5 * (y**2 + 0.3) / sigma**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(float(found), closed.sum(), rtol=1e-12)


@pytest.mark.parametrize("nothing", [0.0, 1e-40])
def test_a_row_without_variance_has_a_slope_of_its_own(nothing):
    """A straight line is known at the origin: no infinite slope, and none for the other rows."""
    observations = Observations(np.array([[1.0], [0.5]]), np.array([[1.0], [0.5]]))
    terms = collect_terms(observations, (Gaussian(),), {"mean": (0,), "scale": (0,)})
    mean: Any = {"mean": np.zeros((2, 1)), "scale": np.zeros((2, 1))}
    variance: Any = {"mean": np.array([[nothing], [0.3]]), "scale": np.ones((2, 1))}
    slope = eqx.filter_jit(gradient_of_expectation)
    value, (d_mean, d_variance) = slope(terms, mean, variance, {"mean": True, "scale": False})
    np.testing.assert_allclose(float(value), -np.log(2 * np.pi) - (1 + 0.25 + 0.3) / 2)
    np.testing.assert_allclose(d_mean["mean"].ravel(), [1.0, 0.5])
    np.testing.assert_allclose(d_variance["mean"].ravel(), [0.0, -0.5], atol=1e-12)


def test_cells_that_pad_the_shape_weigh_nothing():
    part = collect_terms(every_kind(), FAMILIES, ROLES)[0]
    real = part.weight > 0
    assert not np.all(real)
    names = ("row", "column", "lower", "upper", "weight")
    cut = dataclasses.replace(part, **{name: getattr(part, name)[real] for name in names})
    mean, variance = latent(5)
    varies = {"mean": True, "scale": True}
    compiled = eqx.filter_jit(expected_log_likelihood)
    both = [float(compiled((each,), mean, variance, varies)) for each in (part, cut)]
    np.testing.assert_allclose(*both, rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 8, 9, 100])
def test_rows_are_padded_with_rows_that_exist(rows):
    inputs = np.arange(rows, dtype=float)[:, None]
    padded = pad_rows(inputs)
    np.testing.assert_array_equal(padded[:rows], inputs)
    assert np.all(padded[rows:] == inputs[-1])


def test_a_familys_own_nodes_are_enough():
    family, rng = NegativeBinomial(), np.random.default_rng(0)
    y = rng.poisson(3.0, size=(200, 1)).astype(float)
    seen = Observations(y, np.where(rng.random(y.shape) < 0.3, np.inf, y))
    roles = {"mean": (0,), "scale": (0,)}
    mean = {"mean": rng.normal(1.0, 0.5, y.shape), "scale": rng.normal(-0.5, 0.5, y.shape)}
    variance = {role: np.full(y.shape, 0.7**2) for role in roles}
    varies = dict.fromkeys(roles, True)

    def expected(likelihood):
        terms = collect_terms(seen, (likelihood,), roles)
        return float(
            quick(lambda m, v: expected_log_likelihood(terms, m, v, varies))(mean, variance)
        )

    class Fine(NegativeBinomial):
        product_nodes = 24

    assert family.product_nodes is not None
    assert family.product_nodes < NODES[2]
    np.testing.assert_allclose(expected(family), expected(Fine()), atol=200 * 1e-5)
