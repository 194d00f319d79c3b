"""Starting values, units and inducing inputs of a model."""

from typing import Any

import jax
import numpy as np
import pytest

from censored_gp.data.observations import Observations
from censored_gp.kernels import RBF, Periodic
from censored_gp.likelihoods import Gaussian, LogNormal, Poisson
from censored_gp.model.model import (
    Design,
    Units,
    choose_inducing,
    choose_units,
)
from censored_gp.model.starting_values import (
    correlation_factor,
    observed_correlation,
    starting_model,
)
from support import small

BOTH = (Gaussian(), Poisson())


def values(rows=50, seed=0):
    return small.outputs(BOTH, np.linspace(0, 10, rows)[:, None], seed)


def test_roles_hold_the_outputs_that_have_them():
    design = Design((Gaussian(), Poisson(), Gaussian()), {})
    assert design.role_outputs == {"mean": (0, 1, 2), "scale": (0, 2)}


def test_coupled_outputs_start_with_the_observed_correlation():
    model = starting_model(Design(BOTH, {"mean": (RBF(1.0), RBF(2.0))}), values())
    lmc = model.priors["mean"]
    prior = np.sum([b[0] for b in lmc.coregionalization], axis=0)
    found = prior[0, 1] / np.sqrt(prior[0, 0] * prior[1, 1])
    np.testing.assert_allclose(found, observed_correlation(values())[0, 1], atol=1e-6)
    spread = [k.latent_spread(v) for k, v in zip(BOTH, values().T, strict=True)]
    np.testing.assert_allclose(np.sqrt(np.diag(prior)), spread)


def test_uncoupled_outputs_stand_in_blocks_of_their_own():
    model = starting_model(Design(BOTH, {"mean": (RBF(1.0),)}, coupled=False), values())
    lmc = model.priors["mean"]
    assert lmc.mean.shape == (2, 1)
    assert lmc.mixing[0].shape == (2, 1, 1)
    assert jax.tree.leaves(lmc.kernels)[0].shape == (2,)


@pytest.mark.parametrize(("rank", "expected"), [(None, 2), (1, 1), (5, 2)])
def test_rank_is_at_most_the_number_of_outputs(rank, expected):
    model = starting_model(Design(BOTH, {"mean": (RBF(1.0),)}, rank=rank), values())
    assert model.priors["mean"].mixing[0].shape == (1, 2, expected)


def test_missing_values_do_not_matter_to_the_start():
    holes = np.concatenate([values(), np.full((3, 2), np.nan)])
    design = Design(BOTH, {"mean": (RBF(1.0),)})
    full, with_holes = (starting_model(design, v) for v in (values(), holes))
    for one, other in zip(jax.tree.leaves(full), jax.tree.leaves(with_holes), strict=True):
        np.testing.assert_allclose(one, other)


def test_correlations_are_shrunk_and_the_factor_has_unit_rows():
    x = np.random.default_rng(0).normal(size=(200, 3)) @ np.array(
        [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]
    )
    correlation = observed_correlation(x)
    np.testing.assert_allclose(np.diag(correlation), 1.0)
    np.testing.assert_allclose(correlation[0, 1], 0.9 * np.asarray(np.corrcoef(x.T))[0, 1])
    np.testing.assert_allclose(
        correlation_factor(correlation, 3) @ correlation_factor(correlation, 3).T, correlation
    )
    for rank in (1, 2):
        factor = correlation_factor(correlation, rank)
        np.testing.assert_allclose(np.linalg.norm(factor, axis=1), 1.0)


def test_units_keep_the_family():
    """Affine for a Gaussian, a factor for a positive family, none for counts."""
    rng = np.random.default_rng(0)
    y = np.stack(
        [1e6 + 10 * rng.normal(size=99), 1e-6 * rng.lognormal(size=99), rng.poisson(9, 99)], 1
    )
    units = choose_units((Gaussian(), LogNormal(), Poisson()), y)
    np.testing.assert_allclose(units.shift, [y[:, 0].mean(), 0, 0])
    np.testing.assert_allclose(units.scale, [y[:, 0].std(), np.exp(np.log(y[:, 1]).mean()), 1])


@pytest.mark.parametrize("constant", [0.0, 5.0, -1e9, 1e-9])
def test_a_constant_output_has_a_unit_too(constant):
    units = choose_units((Gaussian(),), np.full((4, 1), constant))
    assert np.all(np.isfinite(units.scale))
    assert np.all(units.scale > 0)


def test_bounds_are_expressed_in_units():
    units = Units(np.array([10.0, 0.0]), np.array([2.0, 1.0]))
    bounds = units.apply(Observations(np.array([[10.0, 3.0]]), np.array([[np.inf, 3.0]])))
    np.testing.assert_array_equal(bounds.lower, [[0.0, 3.0]])
    np.testing.assert_array_equal(bounds.upper, [[np.inf, 3.0]])


def test_a_cycle_needs_as_many_inducing_inputs_as_it_has_hours():
    hours = np.arange(500.0)[:, None]
    kernels: Any = {"mean": (Periodic(24.0, 0.5), Periodic(168.0, 0.1), RBF(100.0))}
    model = starting_model(Design((Poisson(),), kernels), np.ones((500, 1)))
    chosen = choose_inducing(model, hours, tolerance=1e-6, most=256)
    sizes = [z.size for z in chosen["mean"]]
    assert sizes[:2] == [24, 168]
    assert sizes[2] < 100


def test_every_kernel_has_its_own_rank_and_every_role_its_own_coupling():
    kernels = {"mean": (small.RBF(1.0), small.RBF(3.0)), "scale": (small.RBF(2.0),)}
    ranks, coupled = {"mean": [2, 1]}, {"scale": False}
    design = Design((Gaussian(), Gaussian()), kernels, coupled, ranks)
    values = np.random.default_rng(0).normal(size=(20, 2))
    priors = starting_model(design, values).priors
    assert [a.shape for a in priors["mean"].mixing] == [(1, 2, 2), (1, 2, 1)]
    assert [a.shape for a in priors["scale"].mixing] == [(2, 1, 1)]
    variance = sum((a**2).sum(axis=2) for a in priors["mean"].mixing)
    np.testing.assert_allclose(variance[0], values.var(axis=0), rtol=1e-6)


def test_ranks_that_are_not_those_of_the_kernels_are_refused():
    design = Design((Gaussian(),) * 2, {"mean": (small.RBF(1.0),)}, True, {"mean": [2, 1]})
    with pytest.raises(ValueError, match=r"`rank`.*'mean'.* 1 kernel.*got \[2, 1\]"):
        starting_model(design, np.zeros((3, 2)))
