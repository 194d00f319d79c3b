"""Latent functions and inputs that are each output's own: identities with models that have none."""

import dataclasses

import numpy as np
import pytest

from censored_gp.data.observations import Observations
from censored_gp.inference.elbo import evaluate
from censored_gp.inference.fisher import fisher_information, from_vector, to_vector
from censored_gp.inference.natural import starting_sites
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.result import Task
from censored_gp.kernels import RBF, White
from censored_gp.likelihoods import Gaussian
from censored_gp.model.compilation import float64
from censored_gp.model.lmc import OWN_SLOPE_SPREAD, SLOPE_SPREAD, to_free
from censored_gp.model.model import Design
from censored_gp.model.starting_values import starting_model

ROWS, OUTPUTS, JITTER = 12, 5, 1e-9
RNG = np.random.default_rng(0)
INPUTS = np.column_stack([np.arange(ROWS) * 1.0, RNG.normal(size=(ROWS, OUTPUTS))])
VALUES = RNG.normal(size=(ROWS, OUTPUTS))
SLOPES = 0.3 * RNG.normal(size=(1, OUTPUTS, 1))


def task_of(values=VALUES, **parts):
    """Kernels over time alone; every output has a column of its own."""
    kernels = (RBF(4.0, columns=(0,)), White(columns=(0,)))
    likelihoods = (Gaussian(),) * OUTPUTS
    design = Design(likelihoods, {"mean": kernels}, rank={"mean": [1, 2]}, **parts)
    return Task(starting_model(design, VALUES), Observations(values, values), INPUTS)


def settled(task, slopes=None):
    """The bound and its gradient; a Gaussian's sites are exact after one step."""
    problem = task.problem(task.model)
    free = {role: to_free(lmc) for role, lmc in task.model.priors.items()}
    if slopes is not None:
        own = dataclasses.replace(free["mean"].slopes, size=slopes)
        free["mean"] = dataclasses.replace(free["mean"], slopes=own)
    return free, at_rest(free, problem), problem


@float64()
def at_rest(free, problem):
    sites = starting_sites(free, problem)
    for _ in range(2):
        found = evaluate(free, sites, problem, JITTER)
        sites = found.target
    return evaluate(free, sites, problem, JITTER)


def test_functions_of_their_own_are_a_diagonal_mixing():
    task = task_of(own=(0,))
    free, found, problem = settled(task)
    lmc = free["mean"]
    assert lmc.mixing[0].shape == (1, OUTPUTS, 1)
    twin = {**free, "mean": dataclasses.replace(lmc, own=(), mixing=lmc.loadings)}
    other = at_rest(twin, problem)
    assert found.elbo == pytest.approx(other.elbo, abs=1e-9)
    mine, theirs = found.gradient["mean"], other.gradient["mean"]
    np.testing.assert_allclose(mine.mixing[0][0, :, 0], np.diagonal(theirs.mixing[0][0]), atol=1e-8)
    np.testing.assert_allclose(mine.mixing[1], theirs.mixing[1], atol=1e-8)
    np.testing.assert_allclose(
        mine.kernels[0].lengthscale, theirs.kernels[0].lengthscale, atol=1e-8
    )
    # The weights are those of the functions that exist, and no more.
    assert len(found.weights["mean"].mean[0]) < len(other.weights["mean"].mean[0])


def test_slopes_move_the_observations():
    """The bound at y with slopes s is that of y - s x without, less the prior of s."""
    columns = tuple((1 + d,) for d in range(OUTPUTS))
    _, found, _ = settled(task_of(own_inputs=columns), SLOPES)
    _, other, _ = settled(task_of(VALUES - INPUTS[:, 1:] * SLOPES[0, :, 0]))
    size = np.sum(INPUTS[:, 1:] ** 4, axis=0) / np.sum(INPUTS[:, 1:] ** 2, axis=0)
    common = np.sum(INPUTS[:, 1:] ** 4) / np.sum(INPUTS[:, 1:] ** 2)
    own = np.maximum(size, common)
    covariance = SLOPE_SPREAD**2 / common + np.diag(OWN_SLOPE_SPREAD**2 / own)
    prior = 0.5 * SLOPES[0, :, 0] @ np.linalg.solve(covariance, SLOPES[0, :, 0])
    assert found.elbo == pytest.approx(other.elbo - prior, abs=1e-8)


def test_gradient_of_slopes_is_that_of_the_bound():
    columns = tuple((1 + d,) for d in range(OUTPUTS))
    free, found, problem = settled(task_of(own_inputs=columns, own=(0,)), SLOPES)
    gradient, here = to_vector(found.gradient), to_vector(free)
    for seed in range(2):
        along = np.random.default_rng(seed).normal(size=len(here))
        step = 1e-4 * along
        ends = [at_rest(from_vector(here + sign * step, free), problem).elbo for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-4 == pytest.approx(gradient @ along, rel=1e-5, abs=1e-5)
    for _, matrix in fisher_information(free, found):
        assert np.linalg.eigvalsh(matrix).min() > -1e-8


@float64()
def test_draws_of_the_prior_have_the_slopes():
    columns = tuple((1 + d,) for d in range(OUTPUTS))
    model = task_of(own_inputs=columns, own=(0,)).model
    lmc = model.priors["mean"]

    def draw(slopes):
        moved = dataclasses.replace(lmc, slopes=dataclasses.replace(lmc.slopes, size=slopes))
        own = dataclasses.replace(model, priors=model.priors | {"mean": moved})
        prior = Posterior.of_prior(own, INPUTS)
        return prior.draw(np.random.default_rng(0), INPUTS, 1)["mean"][0]

    change = draw(SLOPES) - draw(np.asarray(lmc.slopes.size))
    np.testing.assert_allclose(change, INPUTS[:, 1:] * SLOPES[0, :, 0], atol=1e-9)
