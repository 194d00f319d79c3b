"""The paper's engine: its divergence against the textbook's, and its end against natural's."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.inference import natural, svi
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.svi import SVISettings, Values, gaussians, separate, together, triangular
from censored_gp.likelihoods import Gaussian
from censored_gp.model.lmc import covariance
from support import dense, small

JITTER = 1e-6
QUICK = SVISettings(
    samples=10, learn=False, learning_rate=0.01, max_iterations=1000, patience=3, stacked=True
)


def coupled(**changes):
    """Two coupled Gaussians of few rows."""
    kernels = {"mean": (small.RBF(1.5),), "scale": ()}
    return small.make_task((Gaussian(), Gaussian()), kernels, rows=12, **changes)


def some_values(blocks, groups, points, seed=0):
    rng = np.random.default_rng(seed)
    factor = 0.2 * np.tril(rng.normal(size=(blocks, groups, points, points)))
    return Values(jnp.asarray(rng.normal(size=(blocks, groups, points))), jnp.asarray(factor))


def latent(posterior, inputs):
    return Posterior.latent(posterior, inputs)


@pytest.fixture(scope="module")
def reference():
    """A task at natural's hyper-parameters, natural's bound and moments there."""
    with jax.enable_x64(True):
        task = coupled()
        fitted, _ = natural.fit(task)
        held = dataclasses.replace(task, model=fitted.model)
        posterior, report = natural.fit(held, NaturalSettings(learn=False))
        return held, report.elbo, latent(posterior, held.inputs)


@pytest.mark.parametrize("groups", [1, 2])
def test_divergence_is_from_the_joint_prior(groups):
    """Whether q is one Gaussian or factorised over outputs: never from each output's own prior."""
    task = coupled()
    lmc, rows = task.model.priors["mean"], len(task.inputs)
    joint = eqx.filter_jit(covariance)(lmc, task.inputs, JITTER)
    q = eqx.filter_jit(gaussians)(some_values(1, groups, 2 * rows // groups), joint)
    spread = np.asarray(together(q.factor))[0]
    own = dense.Normal(np.ravel(q.shift), spread @ spread.T)
    prior = dense.Normal(np.zeros(2 * rows), np.asarray(joint)[0])
    expected = dense.gaussian_divergence(own, prior)
    np.testing.assert_allclose(float(q.divergence), expected, rtol=1e-6)


def test_q_starts_at_the_prior_of_every_output():
    task = coupled()
    joint = eqx.filter_jit(covariance)(task.model.priors["mean"], task.inputs, JITTER)

    def start(stacked):
        run = svi.Run(task, SVISettings(stacked=stacked), JITTER)
        return eqx.filter_jit(gaussians)(run.parameters.values["mean"], joint)

    q = start(stacked=False)
    assert not np.any(q.shift)
    found = q.factor @ jnp.swapaxes(q.factor, 2, 3)
    np.testing.assert_allclose(found, separate(joint, 2), atol=1e-10)
    # One Gaussian over all outputs would be the prior itself.
    assert abs(float(start(stacked=True).divergence)) < 1e-6 < float(q.divergence)


def test_factor_has_a_positive_diagonal_and_nothing_above_it():
    factor = np.asarray(triangular(some_values(1, 2, 5).factor))
    assert np.all(np.diagonal(factor, axis1=2, axis2=3) > 0)
    np.testing.assert_array_equal(factor, np.tril(factor))


def test_noisy_bounds_scatter_around_the_exact_one():
    run = svi.Run(coupled(), SVISettings(), JITTER)
    exact = float(eqx.filter_jit(svi.bound)(run.parameters, run.shared))
    noisy = eqx.filter_jit(jax.vmap(lambda key: svi.bound(run.parameters, run.shared, key, 3)))(
        jax.random.split(jax.random.key(0), 2000)
    )
    error = float(np.std(noisy)) / np.sqrt(2000)
    assert abs(float(np.mean(noisy)) - exact) < 4 * error < 1.0


def test_weights_give_back_the_function_values(reference):
    """q(gamma) and the q(v) made of it agree where both are defined: at the training rows."""
    task, _, _ = reference
    run = svi.Run(task, SVISettings(), JITTER)
    values = {role: some_values(1, 2, 12) for role in run.parameters.values}
    parameters = run.parameters._replace(values=values)
    mean, variance, _ = eqx.filter_jit(svi.moments)(parameters, run.shared)
    posterior = svi.to_posterior(task, parameters, run.shared)
    found_mean, found_variance = latent(posterior, task.inputs)
    np.testing.assert_allclose(found_mean["mean"], mean["mean"], atol=2e-2)
    np.testing.assert_allclose(found_variance["mean"], variance["mean"], atol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("stacked", [True, False])
def test_it_approaches_natural_from_below(reference, stacked):
    """One q over all outputs reaches natural's; factorised it cannot, but has the means."""
    task, bound, (mean, variance) = reference
    posterior, report = svi.fit(task, dataclasses.replace(QUICK, stacked=stacked))
    assert report.elbo < bound + 1e-3
    assert report.elbo > bound - (1.0 if stacked else 12.0)
    shift = latent(posterior, task.inputs)[0]["mean"] - mean["mean"]
    assert np.max(np.abs(shift) / np.sqrt(variance["mean"])) < 0.3


@pytest.mark.slow
def test_hyper_parameters_climb_too(reference):
    task, _, _ = reference
    start = dataclasses.replace(task, model=coupled().model)
    settings = dataclasses.replace(QUICK, learn=True, max_iterations=300)
    _, held = svi.fit(start, dataclasses.replace(settings, learn=False))
    posterior, moved = svi.fit(start, settings)
    assert moved.elbo > held.elbo
    assert not eqx.tree_equal(posterior.model, start.model)


@pytest.mark.slow
def test_held_out_data_decide_when_to_stop(reference):
    """Held-out values that are absurd get worse with every step away from the wide prior."""
    task, _, _ = reference
    absurd = small.Observations.exact(np.full((4, 2), 3.0) * np.array([[1, -1]] * 4))
    settings = dataclasses.replace(
        QUICK, validation=(task.inputs[::3], absurd), check_every=20, patience=2
    )
    _, report = svi.fit(task, settings)
    assert report.converged
    assert "validation" in report.message
    assert len(report.trace) < 200
