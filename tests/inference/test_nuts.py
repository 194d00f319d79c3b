"""The reference engine: its target against the textbook's, its draws against natural's Gaussian."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp import CensoredGP
from censored_gp.inference import natural
from censored_gp.inference.elbo import collect_terms
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import DrawnPosterior, Posterior
from censored_gp.inference.result import FitResult
from censored_gp.kernels import Linear
from censored_gp.likelihoods import Gaussian, NegativeBinomial, Poisson
from support import dense, small

nuts = pytest.importorskip("censored_gp.inference.nuts")

SETTINGS = nuts.NutsSettings(draws=200, warmup=200, chains=2, draws_at_a_time=100)


def latent(posterior, inputs):
    return Posterior.latent(posterior, inputs)


def compare(task, settings):
    """Largest distance of the two engines' means in posterior deviations, and the report."""
    drawn, report = nuts.fit(task, settings)
    held = dataclasses.replace(task, model=drawn.model)
    fitted, _ = natural.fit(held, NaturalSettings(learn=False))
    (mean, _), (true_mean, true_variance) = (latent(each, task.inputs) for each in (fitted, drawn))
    shift = (mean["mean"] - true_mean["mean"]) / np.sqrt(true_variance["mean"])
    return float(np.max(np.abs(shift))), report, drawn


def test_target_is_prior_times_likelihood():
    """Differences of the target are those of log N(v; 0, I) + log p(y | gamma)."""
    task = small.separate()
    posterior, _ = natural.fit(task, NaturalSettings(max_iterations=3))
    roles = {role: lmc.outputs for role, lmc in posterior.model.priors.items()}
    terms = collect_terms(task.observations, posterior.model.likelihoods, roles)
    target = nuts.make_target(posterior, task.inputs, terms)
    assert posterior.left_out(task.inputs) < 1e-6
    at = eqx.filter_jit(lambda t, z: (*t.at(z)[:2], t(z)))
    found, expected = [], []
    for seed in (0, 1):
        blocks, _, rank, size = target.shapes["mean"].loading.shape
        z = {"mean": jax.random.normal(jax.random.key(seed), (blocks, rank * size))}
        v, gamma, value = at(target, z)
        cells = {role: (np.asarray(g), np.zeros(np.shape(g))) for role, g in gamma.items()}
        likelihood = dense.expected_log_likelihood(
            posterior.model.likelihoods, task.observations, cells, roles, {0: 1}
        )
        found.append(float(value))
        expected.append(likelihood - 0.5 * float(np.sum(np.square(v["mean"]))))
    np.testing.assert_allclose(found[1] - found[0], expected[1] - expected[0], rtol=1e-9)


@pytest.mark.slow
def test_it_agrees_with_natural_where_that_is_nearly_exact():
    """Few rows, and draws enough for a third of a deviation; another test asks for a tenth."""
    task = small.single(Gaussian())
    shift, report, drawn = compare(task, SETTINGS)
    assert shift < 0.3
    assert report.converged
    assert "R-hat" in report.message
    assert "0 divergence(s)" in report.message
    assert isinstance(drawn, DrawnPosterior)
    assert drawn.draws["mean"].shape == (400, 1, 24)
    np.testing.assert_allclose(drawn.weights["mean"].mean, drawn.draws["mean"].mean(axis=0))
    # The mixture over draws has the moments of the Gaussian made of them.
    nodes, mass, _ = DrawnPosterior.nodes(drawn, task.inputs)
    mean, variance = latent(drawn, task.inputs)
    assert float(jnp.sum(mass)) == pytest.approx(1.0)
    np.testing.assert_allclose(jnp.mean(nodes["mean"], axis=0), mean["mean"], atol=1e-4)
    np.testing.assert_allclose(jnp.var(nodes["mean"], axis=0), variance["mean"], rtol=1e-3)


@pytest.mark.slow
def test_interruption_keeps_the_draws_so_far():
    def press(stage, done, most, bound):
        if stage == "sampling" and done == 100:
            raise KeyboardInterrupt

    task = dataclasses.replace(small.single(Gaussian()), progress=press)
    posterior, report = nuts.fit(task, SETTINGS)
    assert report.status == "interrupted"
    assert "2 chain(s) of 100 draws" in report.message
    assert posterior.draws["mean"].shape[0] == 200


def test_interruption_before_any_draw_keeps_naturals_posterior():
    def press(stage, done, most, bound):
        if stage == "warming up":
            raise KeyboardInterrupt

    task = dataclasses.replace(small.single(Gaussian()), progress=press)
    posterior, report = nuts.fit(task, SETTINGS)
    assert report.status == "interrupted"
    assert not isinstance(posterior, DrawnPosterior)


def test_what_is_left_out_is_noted_with_a_setting_that_exists():
    before = FitResult("converged", "", 0.0, ())
    divergent = np.zeros((2, 100), dtype=bool)
    assert not nuts._result(before, divergent, 100, (1.0, 100.0), 1e-6).notes
    (note,) = nuts._result(before, divergent, 100, (1.0, 100.0), 0.25).notes
    assert "25.0% of the prior variance" in note
    assert set(re.findall(r"raise (\w+)", note)) <= set(CensoredGP().get_params())


@pytest.mark.slow
@pytest.mark.parametrize("family", [Gaussian(), Poisson(), NegativeBinomial()], ids=repr)
def test_it_agrees_with_natural_to_a_tenth_of_a_deviation(family):
    settings = nuts.NutsSettings(draws=2000, warmup=500, chains=2)
    shift, report, _ = compare(small.single(family, rows=60), settings)
    assert report.converged
    assert shift < 0.1


def test_what_is_given_stays_while_levels_and_noise_are_sampled():
    x = np.arange(20.0)[:, None]
    y = 0.3 * x[:, 0] + np.random.default_rng(0).normal(size=20)
    model = CensoredGP(
        kernels=Linear(scale=0.5), heteroscedastic=False, hyperparameters="given",
        engine="nuts", engine_settings={"draws": 300, "warmup": 200}, random_state=0,
    ).fit(x, y)  # fmt: skip
    draws = model.posterior_.priors
    np.testing.assert_allclose(jax.tree.leaves(draws["mean"].kernels)[0], 0.5, rtol=1e-4)
    assert np.ptp(draws["scale"].mean) > 0.1
