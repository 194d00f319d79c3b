"""The bound, its marginals and its gradient against the textbook's own."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.inference.elbo import evaluate, next_sites
from censored_gp.inference.natural import (
    evaluate_compiled,
    from_vector,
    mix_sites,
    starting_sites,
    to_vector,
)
from censored_gp.inference.posterior import Posterior, Sites
from censored_gp.kernels import RBF, White
from censored_gp.likelihoods import Poisson
from censored_gp.likelihoods.quadrature import NODES
from censored_gp.model.model import Cycle
from support import dense, small

JITTER = np.asarray(1e-12)
CASES = {
    "mixed": small.mixed,
    "scattered": small.scattered,
    "separate": small.separate,
    "deficient": small.deficient,
}


def some_sites(task, problem):
    """Sites of no particular meaning: informative where something was seen, nothing elsewhere."""
    rng, found = np.random.default_rng(3), {}
    for role, lmc in task.model.priors.items():
        if not lmc.varies:
            continue
        blocks, outputs = np.shape(lmc.mean)
        seen = np.zeros((len(problem.inputs), blocks * outputs))
        seen[: len(task.inputs)] = ~task.observations.is_missing[:, lmc.outputs]
        seen = np.moveaxis(seen.reshape(-1, blocks, outputs), 1, 0)
        precision = seen * rng.uniform(0.5, 4.0, seen.shape)
        found[role] = Sites(precision * rng.normal(size=seen.shape), precision)
    return found


def settle(free, problem, sites=None, steps=300):
    """Take site steps until nothing moves."""
    sites = sites or starting_sites(free, problem)
    before = -np.inf
    for _ in range(steps):
        found = evaluate_compiled(free, sites, problem, JITTER)
        if abs(float(found.elbo) - before) < 1e-11:
            break
        before = float(found.elbo)
        sites = mix_sites(sites, found.target, np.asarray(1.0))
    return found, sites


@pytest.mark.parametrize("case", CASES)
def test_bound_and_marginals_are_the_textbooks(case):
    """Coupled or not, of full rank or not, with missing cells, families and roles mixed."""
    task = CASES[case]()
    problem = task.problem(task.model)
    sites = some_sites(task, problem)
    found = evaluate_compiled(small.free_parameters(task), sites, problem, JITTER)
    elbo, moments = dense.everything(task, sites, NODES)
    np.testing.assert_allclose(float(found.elbo), elbo, rtol=0, atol=1e-6)
    fitted = Posterior(task.model, problem.inducing, found.weights, JITTER)
    rows = len(task.inputs)
    seen = {role: Sites(*(part[:, :rows] for part in own)) for role, own in sites.items()}
    mean, variance = eqx.filter_jit(Posterior.latent)(fitted, task.inputs, seen)
    for role, (true_mean, true_variance) in moments.items():
        np.testing.assert_allclose(mean[role], true_mean, atol=1e-6)
        np.testing.assert_allclose(variance[role], true_variance, atol=1e-6)


def test_the_two_ways_to_write_the_divergence_agree():
    task = small.separate()
    sites = some_sites(task, task.problem(task.model))["mean"]
    lmc, X = task.model.priors["mean"], task.inputs
    pair = [dense.stacked(part, 0, len(X)) for part in sites]
    q, p = dense.posterior(lmc, X, X, 0, *pair), dense.prior(lmc, X, 0)
    np.testing.assert_allclose(dense.divergence(q, p, *pair), dense.gaussian_divergence(q, p), 1e-4)


@pytest.mark.parametrize("case", ["mixed", "scattered"])
@pytest.mark.parametrize("most_inducing", [8, 20])
def test_gradient_is_the_slope_of_the_settled_bound(case, most_inducing):
    """Also where the inducing inputs leave something out, which moves with the hyper-parameters."""
    task = CASES[case](most_inducing=most_inducing)
    problem, free = task.problem(task.model), small.free_parameters(task)
    found, sites = settle(free, problem)
    assert (float(found.left_out) > 1e-4) == (most_inducing < 20)
    assert all(np.all(site.precision[site.linear != 0] > 0) for site in sites.values())
    at, gradient = to_vector(free), to_vector(found.gradient)
    for direction in np.random.default_rng(0).normal(size=(4, len(at))):
        step = 1e-4 * direction
        up, down = (
            float(settle(from_vector(at + s, free), problem, sites)[0].elbo) for s in (step, -step)
        )
        slope, noise = (up - down) / 2e-4, 1e-5 * float(np.linalg.norm(gradient))
        np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-4, atol=noise)


def test_fewer_inducing_inputs_make_a_lower_bound():
    bounds = []
    for most in (8, 20):
        task = small.mixed(most_inducing=most)
        bounds.append(float(settle(small.free_parameters(task), task.problem(task.model))[0].elbo))
    assert bounds[0] < bounds[1]


@pytest.mark.parametrize("case", ["mixed", "scattered"])
def test_settled_sites_are_the_best_there_are(case):
    task = CASES[case]()
    problem, free = task.problem(task.model), small.free_parameters(task)
    found, sites = settle(free, problem)
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved = jax.tree.map(lambda s: s * (1 + 0.1 * rng.normal(size=s.shape)), sites)
        assert evaluate_compiled(free, moved, problem, JITTER).elbo < found.elbo


def test_a_nugget_is_a_white_kernel_with_an_inducing_input_at_every_row():
    """The bound is the same to rounding, at a fraction of the cost."""
    smooth = {"mean": (RBF(1.5),), "scale": ()}
    task = small.make_task((Poisson(),), smooth, nugget=Cycle())
    lmc = task.model.priors["mean"]
    kernels = (*lmc.kernels, White(columns=0))
    mixing = (*lmc.mixing, np.asarray(lmc.nugget.size))
    white = dataclasses.replace(lmc, kernels=kernels, mixing=mixing, nugget=None)
    twin = dataclasses.replace(task, model=task.with_priors({"mean": white}))
    bounds = []
    for each in (task, twin):
        problem = each.problem(each.model)
        assert problem.inducing_size == 20 * len(each.model.priors["mean"].kernels)
        bounds.append(float(settle(small.free_parameters(each), problem)[0].elbo))
    np.testing.assert_allclose(bounds[0], bounds[1], atol=1e-7)


def test_rows_where_nothing_was_seen_change_nothing():
    task = small.scattered()
    more = small.with_rows_missing(task, np.array([[-3.0], [4.321]]))
    bounds = []
    for each in (task, more):
        problem = each.problem(each.model)
        bounds.append(float(settle(small.free_parameters(each), problem)[0].elbo))
    np.testing.assert_allclose(bounds[0], bounds[1], atol=1e-7)


def test_a_convex_expectation_gives_no_negative_precision():
    ones = jnp.ones((1, 3, 1))
    sites = next_sites(2 * ones, 0.5 * ones, jnp.array([1.0, 0.0, -1.0]).reshape(1, 3, 1))
    np.testing.assert_allclose(sites.precision[0, :, 0], [0.0, 0.0, 2.0])
    np.testing.assert_allclose(sites.linear[0, :, 0], [0.5, 0.5, 4.5])


def test_no_batched_lapack_call_is_made():
    """Blocks and roles side by side must not wait for each other's threads (see linalg)."""
    task = small.separate()
    problem, free = task.problem(task.model), small.free_parameters(task)
    sites = starting_sites(free, problem)
    program = jax.jit(lambda f, s: evaluate(f, s, problem, JITTER).elbo).lower(free, sites)
    assert set(re.findall(r'num_batch_dims = "(\d+)"', program.as_text())) == {"0"}
