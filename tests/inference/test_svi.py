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
from censored_gp.inference.svi import FreeWeights, SVISettings
from censored_gp.likelihoods import Gaussian
from support import dense, small

JITTER = 1e-6
QUICK = SVISettings(samples=10, learn=False, learning_rate=0.01, max_iterations=1000, patience=3)


def coupled(**changes):
    """Two coupled Gaussians of few rows."""
    kernels = {"mean": (small.RBF(1.5),), "scale": ()}
    return small.make_task((Gaussian(), Gaussian()), kernels, rows=12, **changes)


def some_weights(run, seed=0):
    """Parameters with a q of no particular meaning."""
    rng, size = np.random.default_rng(seed), np.shape(run.parameters.q["mean"].mean)
    factor = 0.2 * np.tril(rng.normal(size=(*size, size[1])))
    q = FreeWeights(jnp.asarray(rng.normal(size=size)), jnp.asarray(factor))
    return run.parameters._replace(q={"mean": q})


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


def test_divergence_is_that_of_the_textbook():
    q = some_weights(svi.Run(coupled(), SVISettings(), JITTER)).q["mean"]
    root = np.asarray(q.root)[0]
    assert np.all(np.diagonal(root) > 0)
    np.testing.assert_array_equal(root, np.tril(root))
    own = dense.Normal(np.ravel(q.mean), root @ root.T)
    prior = dense.Normal(np.zeros(len(root)), np.eye(len(root)))
    np.testing.assert_allclose(q.divergence, dense.gaussian_divergence(own, prior), rtol=1e-9)


def test_q_starts_at_the_prior_of_every_output():
    """Of Eq. (5)."""
    task = coupled()
    run = svi.Run(task, SVISettings(), JITTER)
    mean, variance = eqx.filter_jit(svi.moments)(run.parameters, run.data)
    np.testing.assert_allclose(mean["mean"], np.tile(task.model.priors["mean"].mean, (12, 1)))
    joint = dense.prior(task.model.priors["mean"], task.inputs, 0).covariance
    np.testing.assert_allclose(variance["mean"].T.ravel(), np.diag(joint), rtol=1e-6)
    assert float(run.parameters.q["mean"].divergence) == 0.0


def test_noisy_bounds_scatter_around_the_exact_one():
    run = svi.Run(coupled(), SVISettings(), JITTER)
    exact = float(eqx.filter_jit(svi.bound)(run.parameters, run.data))
    noisy = eqx.filter_jit(jax.vmap(lambda key: svi.bound(run.parameters, run.data, key, 3)))(
        jax.random.split(jax.random.key(0), 2000)
    )
    error = float(np.std(noisy)) / np.sqrt(2000)
    assert abs(float(np.mean(noisy)) - exact) < 4 * error < 1.0


def test_the_posterior_has_the_moments_of_q(reference):
    task, _, _ = reference
    run = svi.Run(task, SVISettings(), JITTER)
    parameters = some_weights(run)
    mean, variance = eqx.filter_jit(svi.moments)(parameters, run.data)
    found_mean, found_variance = latent(svi.to_posterior(task, parameters, run.data), task.inputs)
    np.testing.assert_allclose(found_mean["mean"], mean["mean"], atol=1e-8)
    np.testing.assert_allclose(found_variance["mean"], variance["mean"], atol=1e-8)


@pytest.mark.slow
def test_it_approaches_natural_from_below(reference):
    task, bound, (mean, variance) = reference
    posterior, report = svi.fit(task, QUICK)
    assert report.elbo < bound + 1e-3
    assert report.elbo > bound - 1.0
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
