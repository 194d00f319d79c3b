"""A long series on a grid of knots: against dense matrices, exact kernels and regression."""

import dataclasses

import jax
import numpy as np
import pytest

from censored_gp import CGP, load
from censored_gp.inference import lookup, natural
from censored_gp.inference.elbo import evaluate
from censored_gp.inference.fisher import fisher_information, to_dense, to_vector
from censored_gp.inference.lookup import LocalFeatures
from censored_gp.inference.natural import NaturalSettings, starting_sites
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.sites import Sites
from censored_gp.kernels import RBF, Periodic
from censored_gp.likelihoods import Gaussian, Poisson
from censored_gp.model import model as models
from censored_gp.model.inducing import Knots
from support import small

TWO = (Gaussian(), Gaussian())
CASES = {
    "few outputs": {},
    "rank one": {"rank": 1},
    "many outputs": {"likelihoods": (Gaussian(),) * 6},
    "separate": {"coupled": False},
    "other families": {"likelihoods": (Gaussian(), Poisson())},
}
NEW = np.array([[-3.0], [0.13], [3.3], [10.4], [14.0]])


@pytest.fixture(autouse=True)
def short_series_may_have_knots(monkeypatch):
    monkeypatch.setattr(models, "LONG", 10)
    monkeypatch.setattr(lookup, "LEAST_KNOTS", 8)


def long_task(likelihoods=TWO, rank=2, length=0.35, **choices):
    """More rows than the dense inducing inputs of a fast kernel can carry, and a cycle."""
    kernels = {"mean": (RBF(length, columns=0), Periodic(4.0, 1.0)), "scale": ()}
    settings = {"rows": 60, "missing": 0.1, "tolerance": 1e-6, "most_inducing": 12} | choices
    return small.make_task(likelihoods, kernels, rank=rank, **settings)


class Flat(lookup.Features):
    """The same features as a dense table, derivatives by their chain rule."""

    def __init__(self, local):
        vars(self).update(vars(local))
        self.phi, self.slopes = local.phi.toarray(), [s.toarray() for s in local.slopes]

    def gradient(self, d_phi, d_rest):
        inward = d_phi - 2.0 * np.where(self._left_out, d_rest, 0.0)[:, None] * self.phi
        return [float(np.vdot(inward, slope)) for slope in self.slopes]


class Flattened:
    """In the place of `LocalFeatures`, this makes blocks dense."""

    def __new__(cls, *given):
        return Flat(LocalFeatures(*given))


@pytest.mark.parametrize("sparse", [0, 16])
@pytest.mark.parametrize("case", CASES)
def test_the_arrow_is_its_dense_twin(case, sparse, monkeypatch):
    """The bound, its gradient and the next sites."""
    task = long_task(**CASES[case])
    free, problem = small.free_parameters(task), task.problem(task.model, knots=True)
    assert isinstance(problem.inducing["mean"][0], Knots)
    rng = np.random.default_rng(0)
    sites = {
        role: Sites(rng.normal(size=s.linear.shape), rng.uniform(0.1, 3.0, s.linear.shape))
        for role, s in starting_sites(free, problem).items()
    }
    monkeypatch.setattr(lookup, "SPARSE", sparse)
    found = evaluate(free, sites, problem, 1e-9)
    monkeypatch.setattr(lookup, "LocalFeatures", Flattened)
    twin = evaluate(free, sites, problem, 1e-9)
    np.testing.assert_allclose(found.elbo, twin.elbo, rtol=1e-12)
    gradient = to_vector(twin.gradient)
    error = to_vector(found.gradient) - gradient
    np.testing.assert_allclose(error, 0.0, atol=1e-10 * abs(gradient).max())
    for mine, theirs in zip(found.target["mean"], twin.target["mean"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_smoothed_white_noise_has_the_covariance_of_the_kernel(factor):
    """Knots that were chosen for one lengthscale carry one half, and one twice as long."""
    x, kernel = np.linspace(0.0, 10.0, 80)[:, None], RBF(factor, columns=0)
    knots = Knots.along(RBF(1.0, columns=0), x)
    free = jax.tree.map(np.log, kernel)
    phi = LocalFeatures(free, knots, x, knots.window(factor)).phi
    np.testing.assert_allclose((phi @ phi.T).toarray(), kernel(x, x), atol=4e-4)


def test_answers_are_those_of_dense_inducing_inputs():
    """Moments, shares of kernels and joint draws, between the rows and far beyond them."""
    task, found = long_task(length=0.5), []
    for most in (12, 80):
        own = dataclasses.replace(task, most_inducing=most)
        posterior, report = natural.fit(own, NaturalSettings(learn=False))
        found.append(posterior.latent(NEW))
        assert ("knots" in str(report)) == (most == 12)
        if most == 12:
            drawn = posterior.draw(np.random.default_rng(0), NEW, 20_000)["mean"]
    for own, dense in zip(*found, strict=True):
        np.testing.assert_allclose(own["mean"], dense["mean"], atol=2e-3)
    mean, variance = found[0]
    error = np.sqrt(variance["mean"] / len(drawn))
    np.testing.assert_allclose((drawn.mean(axis=0) - mean["mean"]) / error, 0.0, atol=4.5)
    np.testing.assert_allclose(drawn.var(axis=0), variance["mean"], rtol=0.05)


def test_a_lengthscale_that_grows_gets_knots_further_apart():
    """Those of the starting lengthscale would reach too few of their neighbours."""
    task = long_task((Gaussian(),), rank=1, length=0.12, rows=80)
    kernels = task.model.priors["mean"].kernels
    before = task.problem(task.model, knots=True).inducing["mean"][0]
    posterior, report = natural.fit(task)
    fitted = posterior.model.priors["mean"].kernels[0]
    assert report.converged
    assert np.max(fitted.lengthscale) > 3.0 * np.max(kernels[0].lengthscale)
    knots = posterior.inducing["mean"][0]
    assert not Knots.along(fitted, task.inputs).suits(before)
    assert Knots.along(fitted, task.inputs).suits(knots)


@pytest.mark.parametrize("optional", [False, True])
def test_hyperparameters_that_should_be_mixed_are_said_to_be_certain(optional):
    settings = NaturalSettings(max_iterations=2, points=2, optional=optional)
    posterior, report = natural.fit(long_task(), settings)
    assert type(posterior) is Posterior
    assert any("certain" in note for note in report.notes) != optional


def test_its_information_is_that_of_the_textbook():
    """Lengthscale and coefficients under even sites: tr(S^-1 dS S^-1 dS) / 2, but for the ends."""
    task = long_task(rows=240, missing=0.0, length=0.5)
    lmc = task.model.priors["mean"]
    alone = {"kernels": lmc.kernels[:1], "mixing": lmc.mixing[:1]}
    task = dataclasses.replace(
        task,
        model=task.with_priors(task.model.priors | {"mean": dataclasses.replace(lmc, **alone)}),
        inputs=np.linspace(0.0, 20.0, 240)[:, None],
    )
    free, problem = small.free_parameters(task), task.problem(task.model, knots=True)
    sites = {
        r: Sites(0.0 * s.linear, 0.0 * s.precision + 2.0)
        for r, s in starting_sites(free, problem).items()
    }
    information = fisher_information(free, evaluate(free, sites, problem, 1e-9))
    mine = to_dense(information, len(to_vector(free)))[:5, :5]
    a, x = np.asarray(free["mean"].mixing[0][0]), problem.inputs[:, 0]
    squared = (x[:, None] - x) ** 2

    def joint(numbers):
        loading = numbers[1:].reshape(a.shape)
        return np.kron(loading @ loading.T, np.exp(-0.5 * squared / np.exp(2 * numbers[0])))

    at = np.array([np.log(0.5), *a.ravel()])
    noise, steps = 0.5 * np.eye(2 * len(x)), 1e-5 * np.eye(5)
    solved = [
        np.linalg.solve(joint(at) + noise, (joint(at + h) - joint(at - h)) / 2e-5) for h in steps
    ]
    exact = np.array([[0.5 * np.sum(s * t.T) for t in solved] for s in solved])
    np.testing.assert_allclose(mine, exact, atol=0.1 * exact.max())


def test_a_saved_model_answers_the_same(tmp_path):
    rng, hours = np.random.default_rng(0), np.arange(80.0)
    # A cycle of eight hours has fewer distinct inputs than the series.
    kernels = [RBF(1.5), Periodic(8.0, 1.0)]
    table = {"x": hours, "y": np.sin(hours) + 0.1 * rng.normal(size=80)}
    model = CGP(
        "gaussian", kernels=kernels, max_inducing=12, hyperparameters="fixed", random_state=0
    )
    model.fit(table, outputs="y", inputs="x")
    assert "knots" in str(model.report_)
    new = {"x": np.array([3.3, 40.1, 90.0])}
    again = load(model.save(tmp_path / "long.cgp"))
    for answer in ("predict", "sample"):
        both = [getattr(m, answer)(new) for m in (model, again)]
        np.testing.assert_array_equal(*(np.asarray(b["y"]) for b in both))
    np.testing.assert_allclose(model.predict(new)["y"][:2], np.sin([3.3, 40.1]), atol=0.3)
