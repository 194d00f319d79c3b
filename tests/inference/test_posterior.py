"""Moments, nodes and joint draws against dense regression; nuggets against Gaussians by hand."""

from typing import Any

import jax
import numpy as np
import pytest

from censored_gp.inference import natural
from censored_gp.inference import posterior as posteriors
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import DrawnPosterior, Posterior
from censored_gp.inference.sites import Moments, Sites, Weights
from censored_gp.kernels import Linear
from censored_gp.likelihoods import Gaussian
from support import dense, small

NEW = np.array([[-3.0], [-2.5], [3.3], [14.0], [14.2]])
COUNT = 40_000


@pytest.fixture(scope="module")
def fitted():
    """Exactly seen, coupled Gaussians: a task, its posterior, and the true one at new rows."""
    kernels = {"mean": (small.RBF(1.5),), "scale": ()}
    with jax.enable_x64(True):
        task = small.make_task((Gaussian(), Gaussian()), kernels, rows=12, censored=0.0)
        posterior, _ = natural.fit(task, NaturalSettings(learn=False))
    precision = np.repeat(np.exp(-2 * task.model.priors["scale"].mean[0]), 12)
    linear = precision * task.observations.lower.T.ravel()
    true = dense.posterior(task.model.priors["mean"], task.inputs, NEW, 0, linear, precision)
    return task, posterior, true


def as_drawn(posterior, count=COUNT):
    """The same posterior kept as draws of the weights."""
    rng, q = np.random.default_rng(1), posterior.weights["mean"]
    draws = {"mean": rng.multivariate_normal(q.mean[0], q.covariance[0], count)[:, None]}
    fields = (posterior.model, posterior.inducing, posterior.weights, posterior.jitter)
    return DrawnPosterior(*fields, draws=draws)


def joint_draws(posterior, seed):
    """Draws of the mean at the new rows."""
    return posterior.draw(np.random.default_rng(seed), NEW, COUNT)["mean"]


def test_moments_are_those_of_regression(fitted):
    _, posterior, true = fitted
    mean, variance = Posterior.latent(posterior, NEW)
    np.testing.assert_allclose(mean["mean"].T.ravel(), true.mean, atol=1e-6)
    np.testing.assert_allclose(variance["mean"].T.ravel(), np.diag(true.covariance), atol=1e-6)


def test_draws_of_the_prior_have_the_covariance_of_equation_5():
    task = small.mixed()
    inputs = task.inputs[:4]
    drawn = Posterior.of_prior(task.model, inputs).draw(np.random.default_rng(0), inputs, COUNT)
    stacked = drawn["mean"].transpose(0, 2, 1).reshape(COUNT, -1)
    expected = dense.prior(task.model.priors["mean"], inputs, 0)
    np.testing.assert_allclose(stacked.mean(axis=0), expected.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(stacked.T), expected.covariance, atol=0.04)


def test_a_constant_is_known(fitted):
    task, posterior, _ = fitted
    mean, variance = Posterior.latent(posterior, NEW)
    np.testing.assert_allclose(mean["scale"], np.tile(task.model.priors["scale"].mean, (5, 1)))
    assert not np.any(variance["scale"])


def test_nodes_have_the_moments(fitted):
    _, posterior, _ = fitted
    mean, variance = Posterior.latent(posterior, NEW)
    nodes, mass, _ = Posterior.nodes(posterior, NEW)
    average = np.tensordot(mass, nodes["mean"], axes=1)
    np.testing.assert_allclose(average, mean["mean"], atol=1e-9)
    spread = np.tensordot(mass, (nodes["mean"] - average) ** 2, axes=1)
    np.testing.assert_allclose(spread, variance["mean"], atol=1e-9)


@pytest.mark.parametrize("kept_as_draws", [False, True])
def test_joint_draws_have_the_covariance_of_regression(fitted, kept_as_draws):
    """Over rows and outputs together, and far from the data too: sums of draws are right."""
    _, posterior, true = fitted
    source = as_drawn(posterior) if kept_as_draws else posterior
    drawn = joint_draws(source, 0)
    values = np.asarray(drawn).transpose(0, 2, 1).reshape(COUNT, -1)
    np.testing.assert_allclose(values.mean(axis=0), true.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(values.T), true.covariance, atol=0.04)
    near = true.covariance[3, 4] / np.sqrt(true.covariance[3, 3] * true.covariance[4, 4])
    assert near > 0.9  # far from the data the functions are still smooth


def test_rows_far_apart_in_the_table_are_drawn_stretch_by_stretch(fitted, monkeypatch):
    _, posterior, true = fitted
    monkeypatch.setattr("censored_gp.inference.posterior.MOST_JOINT", 2)
    drawn = joint_draws(posterior, 2)
    values = np.asarray(drawn).transpose(0, 2, 1).reshape(COUNT, -1)
    np.testing.assert_allclose(values.var(axis=0), np.diag(true.covariance), atol=0.04)
    np.testing.assert_allclose(np.cov(values.T)[0, 1], true.covariance[0, 1], atol=0.04)


def test_a_seed_draws_the_same_weights_for_any_rows(fitted):
    """So that draws at some rows and at others are of the same functions."""
    task, posterior, _ = fitted
    whole = posterior.draw(np.random.default_rng(3), task.inputs, 4)["mean"]
    few = posterior.draw(np.random.default_rng(3), task.inputs[:3], 4)["mean"]
    np.testing.assert_allclose(few, whole[:, :3], atol=1e-3)


@pytest.mark.slow
def test_draws_of_a_nugget_have_its_moments():
    """At cells that were seen, which tell their own; and at new ones, which tell nothing."""
    task = small.scattered(missing=0.0)
    with jax.enable_x64(True):
        posterior, _ = natural.fit(task, NaturalSettings(learn=False))
        count = 20_000
        for seen in (None, posterior.sites):
            mean, variance = Posterior.latent(posterior, task.inputs, seen)
            drawn = posterior.draw(np.random.default_rng(0), task.inputs, count, seen)
            np.testing.assert_allclose(drawn["mean"].mean(axis=0), mean["mean"], atol=0.02)
            spread = np.var(drawn["mean"], axis=0)
            np.testing.assert_allclose(spread, variance["mean"], rtol=0.06, atol=1e-4)


def test_the_nugget_of_a_new_row_is_not_that_of_the_same_inputs_in_training():
    task = small.scattered(missing=0.0)
    with jax.enable_x64(True):
        posterior, _ = natural.fit(task, NaturalSettings(learn=False))
        (_, new), (_, known) = (
            Posterior.latent(posterior, task.inputs, seen) for seen in (None, posterior.sites)
        )
        own = posterior.model.priors["mean"].nugget.variance(task.inputs)[0]
    assert np.all(new["mean"][:, 1] > own[:, 1])
    assert np.all(known["mean"][:, 1] < new["mean"][:, 1])
    # The Gaussian has none.
    np.testing.assert_allclose(known["mean"][:, 0], new["mean"][:, 0])


class Picked(DrawnPosterior):
    """Tells which draws were picked."""

    def _at(self, random, chosen, inputs):
        return chosen


@pytest.fixture(scope="module")
def chains():
    """Six hundred draws, one chain after the other."""
    nothing: Any = None
    draws: Any = {"mean": np.arange(600.0).reshape(600, 1, 1)}
    return Picked(nothing, {}, {}, np.zeros(()), draws=draws)


def pick(posterior, seed, count):
    return posterior.draw(np.random.default_rng(seed), NEW, count)


def test_draws_are_picked_evenly_from_all_chains(chains):
    """As many of either half as chance has it; every one once, before any is picked again."""
    assert 120 < np.sum(pick(chains, 0, 300) < 300) < 180
    for count, most in {400: 1, 600: 1, 900: 2}.items():
        numbers, times = np.unique(pick(chains, 0, count), return_counts=True)
        assert len(numbers) == min(count, 600)
        assert times.max() == most


def test_draws_follow_their_seed(chains):
    """Parts of a large sample, each with its own seed, are different draws."""
    first, again, other = (pick(chains, seed, 100) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert len(np.intersect1d(first, other)) < 50


def test_the_mixture_over_draws_has_their_moments(fitted):
    _, posterior, _ = fitted
    drawn = as_drawn(posterior, 2000)
    nodes, mass, _ = DrawnPosterior.nodes(drawn, NEW)
    assert mass.shape == (2000,)
    mean, variance = Posterior.latent(posterior, NEW)
    deviation = np.sqrt(variance["mean"])
    np.testing.assert_array_less(
        np.abs(np.mean(nodes["mean"], axis=0) - mean["mean"]), 0.1 * deviation
    )
    np.testing.assert_allclose(np.std(nodes["mean"], axis=0), deviation, rtol=0.1)


F = Moments(np.full((1, 1, 1), 0.7), np.full((1, 1, 1), 0.3))
SITES = Sites(np.full((1, 1, 1), 2.0), np.full((1, 1, 1), 1.6))


def variance(value):
    return np.full((1, 1, 1), value)


def test_a_nugget_of_nothing_changes_nothing():
    nothing = variance(0.0)
    for own, given in zip(SITES.marginal(nothing), SITES, strict=True):
        np.testing.assert_allclose(own, given)
    for own, given in zip(SITES.with_nugget(F, nothing), F, strict=True):
        np.testing.assert_allclose(own, given)
    assert float(SITES.nugget_divergence(F, nothing)) == 0.0


def test_under_a_large_nugget_a_cell_says_nothing_of_the_function_and_all_of_itself():
    large = variance(1e12)
    assert SITES.marginal(large).precision.item() < 1e-11
    found = SITES.with_nugget(F, large)
    np.testing.assert_allclose(found.mean, SITES.linear / SITES.precision)
    np.testing.assert_allclose(found.variance, 1 / SITES.precision)


def test_a_cell_that_was_not_seen_has_the_nugget_of_a_new_one():
    unseen = Sites(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
    found = unseen.with_nugget(F, variance(0.4))
    np.testing.assert_allclose(found.mean, F.mean)
    np.testing.assert_allclose(found.variance, F.variance + 0.4)
    assert float(unseen.nugget_divergence(F, variance(0.4))) == 0.0


def test_moments_and_divergence_are_those_of_draws():
    """f from q, e given f from its Gaussian: their sum, and the mean divergence of e."""
    c, precision, linear = 0.4, 1.6, 2.0
    rng = np.random.default_rng(0)
    f = 0.7 + np.sqrt(0.3) * rng.standard_normal(400_000)
    spread = 1 / (1 / c + precision)
    centre = spread * (linear - precision * f)
    gamma = f + centre + np.sqrt(spread) * rng.standard_normal(len(f))
    found = SITES.with_nugget(F, variance(c))
    np.testing.assert_allclose(found.mean, gamma.mean(), atol=0.005)
    np.testing.assert_allclose(found.variance, gamma.var(), atol=0.005)
    divergence = 0.5 * (spread / c - 1 + centre**2 / c + np.log(c / spread))
    found = SITES.nugget_divergence(F, variance(c))
    np.testing.assert_allclose(found, divergence.mean(), atol=0.003)


def test_slope_is_that_of_the_evidence_of_one_cell():
    """A lone site of f ~ N(m, k) is an observation h / Lambda with variance k + c + 1 / Lambda."""
    m, k, c, (linear, precision) = 0.2, 0.9, 0.4, (2.0, 1.6)

    def evidence(c):
        total = k + c + 1 / precision
        return -0.5 * np.log(total) - 0.5 * (linear / precision - m) ** 2 / total

    own = SITES.marginal(variance(c))
    after = 1 / (1 / k + own.precision.item())
    q = Moments(variance(after * (m / k + own.linear.item())), variance(after))
    slope, information = own.nugget_slope(q)
    step = 1e-5
    np.testing.assert_allclose(slope, (evidence(c + step) - evidence(c - step)) / (2 * step), 1e-6)
    np.testing.assert_allclose(information, 0.5 / (k + c + 1 / precision) ** 2)


def test_the_cavity_times_the_site_is_the_posterior():
    """Precisions add up, whatever the nugget; without a site nothing has changed."""
    for c in (0.0, 0.4, 30.0):
        cavity, after = SITES.cavity(F, variance(c)), SITES.with_nugget(F, variance(c))
        np.testing.assert_allclose(1 / cavity.variance + SITES.precision, 1 / after.variance)
        both = cavity.mean / cavity.variance + SITES.linear
        np.testing.assert_allclose(both, after.mean / after.variance)
    unseen = Sites(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
    np.testing.assert_allclose(unseen.cavity(F, variance(0.4)).variance, F.variance + 0.4)


@pytest.mark.filterwarnings("error")
def test_draws_at_the_origin_of_a_line_are_those_of_its_mean_without_a_warning(monkeypatch):
    """The kernel is zero there: nothing is left out, and nothing is to be drawn."""

    def refuse(kernel, inputs):
        raise AssertionError("a Gram matrix was asked for")

    kernels = {"mean": (Linear(1.0),), "scale": ()}
    task = small.make_task((Gaussian(),), kernels, tolerance=1e-6)
    posterior, _ = natural.fit(task, NaturalSettings(max_iterations=2))
    monkeypatch.setattr(posteriors, "_gram", refuse)
    drawn = posterior.draw(np.random.default_rng(0), np.zeros((3, 1)), 4)["mean"]
    level = np.asarray(posterior.model.priors["mean"].mean).item()
    np.testing.assert_allclose(drawn, level, atol=1e-9)


@pytest.mark.parametrize("lost", [-0.1, 1e-17])
def test_draws_have_the_covariance_of_the_weights_also_where_rounding_has_made_it_singular(lost):
    direction = np.array([[1.0, -2.0, 0.5]])
    covariance = direction.T @ direction - lost * np.eye(3)
    assert np.all(np.linalg.eigvalsh(covariance) > 0.0) == (lost < 0.0)
    draws = Weights(np.ones((1, 3)), covariance[None]).draw(np.eye(3)[:, None])[:, 0] - 1.0
    np.testing.assert_allclose(draws.T @ draws, covariance, atol=1e-12)


def test_what_is_no_covariance_is_not_drawn_from():
    weights = Weights(np.zeros((1, 2)), np.diag([1.0, -0.5])[None])
    with pytest.raises(np.linalg.LinAlgError):
        weights.draw(np.ones((3, 1, 2)))
