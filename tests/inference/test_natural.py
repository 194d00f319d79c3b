"""The default engine: exact where exactness is known, deterministic, frugal and interruptible."""

import contextlib
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from censored_gp.inference import elbo, lookup, natural
from censored_gp.inference.model_search import Growth
from censored_gp.inference.natural import NaturalSettings, Optimizer, starting_sites
from censored_gp.inference.posterior import MixedPosterior, Posterior
from censored_gp.inference.result import Task
from censored_gp.kernels import RBF, Linear, Periodic, White
from censored_gp.likelihoods import Gaussian, Poisson
from censored_gp.model.compilation import float64
from censored_gp.model.lmc import scale_lengthscales, to_free
from censored_gp.model.model import Design
from censored_gp.model.starting_values import starting_model
from support import small

HELD = NaturalSettings(learn=False)


def latent(posterior, inputs):
    return Posterior.latent(posterior, inputs)


def interrupt(monkeypatch, pressed):
    """Press Ctrl-C during an evaluation, given by its number."""
    done, honest = [], natural.evaluate

    def interrupted(*arguments):
        done.append(1)
        if len(done) == pressed:
            raise KeyboardInterrupt
        return honest(*arguments)

    monkeypatch.setattr(natural, "evaluate", interrupted)


def test_exactly_seen_gaussians_are_regression_after_one_step():
    """Mean, deviation and log marginal likelihood are those of scikit-learn."""
    task = small.separate(censored=0.0)
    posterior, report = natural.fit(task, dataclasses.replace(HELD, max_iterations=1))
    new = np.linspace(-1, 12, 7)[:, None]
    mean, variance = latent(posterior, new)
    evidence = 0.0
    for d in range(2):
        lmc, noise = task.model.priors["mean"], np.exp(task.model.priors["scale"].mean[d, 0])
        amplitude = float(np.sum(np.square(lmc.mixing[0][d])))
        kernel = sk.ConstantKernel(amplitude) * sk.RBF(float(jax.tree.leaves(lmc.kernels)[0][d]))
        settings: dict[str, Any] = {"alpha": noise**2, "optimizer": None}
        oracle: Any = GaussianProcessRegressor(kernel, **settings)
        level = float(lmc.mean[d, 0])
        oracle.fit(task.inputs, task.observations.lower[:, d] - level)
        expected, deviation = oracle.predict(new, return_std=True)
        np.testing.assert_allclose(mean["mean"][:, d], expected + level, atol=1e-6)
        np.testing.assert_allclose(np.sqrt(variance["mean"][:, d]), deviation, atol=1e-6)
        evidence += oracle.log_marginal_likelihood_value_
    np.testing.assert_allclose(report.elbo, evidence, atol=1e-5)


def test_the_bound_rises_and_the_report_says_how_it_ended():
    _, report = natural.fit(small.separate())
    assert report.converged
    assert "converged" in str(report)
    assert report.elbo == max(report.trace) > report.trace[0]
    assert report.site_steps >= report.hyper_steps > 0


def test_nothing_is_random():
    first, second = (natural.fit(small.separate()) for _ in range(2))
    assert first[1] == second[1]
    assert eqx.tree_equal(first[0], second[0])


def test_a_straight_line_is_fitted_through_a_row_at_its_origin():
    x = np.arange(-4.0, 5.0)[:, None]
    observations = small.observe(2.0 * x + np.random.default_rng(0).normal(size=x.shape), 0.0)
    design = Design((Gaussian(),), {"mean": (Linear(2.5),)})
    task = Task(starting_model(design, observations.lower), observations, x)
    posterior, report = natural.fit(task)
    assert report.converged
    mean, _ = latent(posterior, np.array([[0.0], [2.0]]))
    slope = float(x.ravel() @ observations.lower.ravel() / (x.ravel() @ x.ravel()))
    np.testing.assert_allclose(np.diff(mean["mean"].ravel()), 2.0 * slope, rtol=0.05)


def test_an_output_whose_coefficients_vanished_keeps_its_level():
    task = small.mixed()
    means = task.model.priors["mean"]
    mixing = tuple(np.array(a) * np.array([1.0, 0.0])[:, None] for a in means.mixing)
    priors = task.model.priors | {"mean": dataclasses.replace(means, mixing=mixing)}
    _, report = natural.fit(dataclasses.replace(task, model=task.with_priors(priors)), HELD)
    assert np.isfinite(report.trace).all()


def test_hyper_parameters_that_are_held_stay():
    task = small.separate()
    posterior, _ = natural.fit(task, HELD)
    assert eqx.tree_equal(posterior.model, task.model)


@pytest.mark.parametrize("pressed", [2, 6, 9, 11])
def test_an_interruption_during_any_evaluation_returns_what_there_is(monkeypatch, pressed):
    """During the first start's steps, the second start's first value, and the climb."""
    interrupt(monkeypatch, pressed)
    task = dataclasses.replace(small.separate(), explore=True)
    posterior, report = natural.fit(task)
    assert report.status == "interrupted"
    assert np.all(np.isfinite(latent(posterior, task.inputs)[0]["mean"]))


def test_fits_of_similar_size_share_one_program(monkeypatch):
    traces = []

    def counted(module, name):
        honest = getattr(module, name).__wrapped__

        def stage(*arguments):
            traces.append(name)
            return honest(*arguments)

        monkeypatch.setattr(module, name, eqx.filter_jit(stage))

    counted(lookup, "_matrices_and_slopes")
    counted(elbo, "expected_cells")
    for rows in (20, 22, 23):
        natural.fit(small.separate(rows=rows), NaturalSettings(max_iterations=4))
    # Exact and censored cells are two kinds.
    assert sorted(traces) == ["_matrices_and_slopes", *["expected_cells"] * 2]


def test_the_hosts_precision_is_left_alone():
    with jax.enable_x64(False):
        before = jnp.ones(3) / 3
        with float64():
            natural.fit(small.separate(), NaturalSettings(max_iterations=2))
        assert before.dtype == (jnp.ones(3) / 3).dtype == jnp.float32
        np.testing.assert_array_equal(before, jnp.ones(3) / 3)


@pytest.mark.parametrize("most", [8, 80])
def test_inducing_inputs_are_picked_anew_within_the_same_number_of_steps(most, monkeypatch):
    """A start that is too smooth needs few inducing inputs, and what it leads to needs more."""
    monkeypatch.setattr("censored_gp.model.inducing.FEW_DISTINCT", 4)
    kernels = {"mean": (small.RBF(6.0),), "scale": ()}
    task = small.make_task((Gaussian(),), kernels, rows=60, censored=0.0, tolerance=1e-3)
    few = task.problem(task.model).inducing["mean"][0].size
    posterior, report = natural.fit(task, NaturalSettings(max_iterations=most))
    inducing = posterior.inducing["mean"][0]
    assert posterior.weights["mean"].mean.shape[1] == inducing.size
    assert report.site_steps <= most + NaturalSettings().warm_up
    if most > 50:
        assert inducing.size > few


@pytest.mark.parametrize("case", [small.separate, small.mixed])
def test_inducing_inputs_that_lengthscales_do_not_need_are_left_out(case, monkeypatch):
    task = dataclasses.replace(case(rows=60), tolerance=1e-6)
    thin, report = natural.fit(task)
    monkeypatch.setattr(natural.FitSchedule, "thinning_share", lambda *_: 0.0)
    whole, as_whole = natural.fit(task)
    for q, (few, all_) in enumerate(
        zip(thin.inducing["mean"], whole.inducing["mean"], strict=True)
    ):
        assert few.size < all_.size, q
    np.testing.assert_allclose(report.elbo, as_whole.elbo, atol=1e-4)
    for own, other in zip(latent(thin, task.inputs), latent(whole, task.inputs), strict=True):
        np.testing.assert_allclose(own["mean"], other["mean"], atol=1e-3)


def test_inducing_inputs_come_back_where_lengthscales_have_shrunk():
    task = dataclasses.replace(small.separate(rows=60), tolerance=1e-6)
    problem = task.problem(task.model)
    run = Optimizer(problem, NaturalSettings(), 1e-9, share=1e-8)
    priors = task.model.priors
    free = {role: to_free(lmc) for role, lmc in priors.items()}
    state = run.evaluate(free, starting_sites(free, problem))
    run.thin(state, natural.THIN_EVERY)
    assert run.problem.inducing_size < problem.inducing_size
    shorter = {role: to_free(scale_lengthscales(lmc, 0.25)) for role, lmc in priors.items()}
    before = run.evaluate(shorter, state.sites)
    run.thin(before, 1)
    assert run.problem is problem
    # A refused step leaves the state of before, which must not undo that.
    run.thin(before, 2 * natural.THIN_EVERY)
    assert run.problem is problem


def test_design_points_with_short_lengthscales_have_their_inducing_inputs(monkeypatch):
    left_out, honest = [], natural.evaluate

    def watched(*arguments):
        found = honest(*arguments)
        left_out.append(found.left_out)
        return found

    task = dataclasses.replace(small.separate(rows=60), tolerance=1e-6)
    monkeypatch.setattr(natural, "evaluate", watched)
    natural.fit(task, NaturalSettings(points=4))
    assert max(left_out[-8:]) < 1e-4


def test_inducing_inputs_that_are_not_needed_do_not_keep_a_fit_from_mixing(monkeypatch):
    task = dataclasses.replace(small.many(rows=60), tolerance=1e-6)
    problem = task.problem(task.model)
    order = problem.order("mean", task.model.priors["mean"])
    monkeypatch.setattr(natural, "MOST_NUMBERS", 2 * order**2 - 1)
    posterior, _ = natural.fit(task, NaturalSettings(points=2))
    assert isinstance(posterior, MixedPosterior)
    monkeypatch.setattr(natural, "MOST_NUMBERS", 0)
    posterior, report = natural.fit(task, NaturalSettings(points=2))
    assert not isinstance(posterior, MixedPosterior)
    assert "too many" in str(report)


@pytest.mark.parametrize("pressed", [1, 3])
def test_an_interruption_while_a_nugget_is_tried_without_leaves_its_prior(monkeypatch, pressed):
    task = dataclasses.replace(small.scattered(rows=40), explore=True)
    schedule = natural.FitSchedule(task, NaturalSettings(prior=True))
    schedule.climb_and_grow()
    centre, best = schedule.centre, schedule.best
    interrupt(monkeypatch, pressed)
    with contextlib.suppress(KeyboardInterrupt):
        schedule.prune()
    # Either both are those of before, or both have no nugget.
    for now, earlier in ((schedule.centre, centre), (schedule.best.free, best.free)):
        size = now["mean"].nugget.size
        whole = np.array_equal(size, earlier["mean"].nugget.size)
        assert whole == (schedule.best is best)
        assert whole or not size.any()


class Powered(Gaussian):
    """A family with a field that is no array, by which Python branches."""

    power: float

    def __init__(self, power):
        super().__init__()
        self.power = power

    def log_density(self, y, mean, scale):
        if self.power > 1:
            return super().log_density(y, mean, scale)
        raise AssertionError


def test_families_may_have_fields_that_are_no_arrays():
    posterior, _ = natural.fit(small.single(Powered(2.0)), NaturalSettings(max_iterations=2))
    assert np.all(np.isfinite(posterior.weights["mean"].mean))


def test_small_gains_per_cell_count_as_none_where_many_outputs_are_coupled(monkeypatch):
    task = small.deficient()
    problem, free = task.problem(task.model), small.free_parameters(task)
    calm = []
    for many in (False, True):
        run = Optimizer(problem, NaturalSettings(), 1e-9, many)
        state = run.evaluate(free, natural.starting_sites(free, problem))
        gain = run.settings.tolerance + 10 * run.settings.tolerance_per_cell * problem.cells
        higher = state._replace(value=state.value + gain)
        monkeypatch.setattr(run, "evaluate", lambda *_, higher=higher: higher)
        run.step(state)
        run.site_step(state)  # with the hyper-parameters held the tolerance is the plain one
        calm.append(run.calm)
        run.step(state)
        calm.append(run.calm)
    assert calm == [0, 0, 0, 1]


def test_a_larger_jitter_is_tried_where_the_bound_is_not_finite(monkeypatch):
    honest = natural.evaluate

    def fails_at_first(free, sites, problem, jitter, *others):
        found = honest(free, sites, problem, jitter, *others)
        return found._replace(elbo=found.elbo * (np.nan if jitter < 1e-8 else 1.0))

    monkeypatch.setattr(natural, "evaluate", fails_at_first)
    posterior, report = natural.fit(small.separate(), NaturalSettings(max_iterations=2))
    assert float(posterior.jitter) == pytest.approx(1e-8)
    assert any("1e-08" in note for note in report.notes)


def test_steps_to_where_nothing_is_finite_raise_the_jitter_and_are_no_convergence(monkeypatch):
    """As where a kernel matrix cannot be factorised any more after the first few steps."""
    honest, calls = natural.evaluate, []

    def fails_later(free, sites, problem, jitter, *others):
        found = honest(free, sites, problem, jitter, *others)
        calls.append(jitter)
        fails = jitter < 1e-8 and len(calls) > 6
        return found._replace(elbo=np.nan) if fails else found

    monkeypatch.setattr(natural, "evaluate", fails_later)
    posterior, report = natural.fit(small.separate())
    assert report.status == "converged"
    assert float(posterior.jitter) == pytest.approx(1e-8)
    assert any("1e-08" in note for note in report.notes)


def test_a_site_step_to_where_nothing_is_finite_is_not_taken(monkeypatch):
    honest, calls = natural.evaluate, []

    def fails_second(free, sites, problem, jitter, *others):
        calls.append(jitter)
        found = honest(free, sites, problem, jitter, *others)
        nowhere = jax.tree.map(lambda a: np.full_like(a, np.nan), found.target)
        return found._replace(elbo=np.nan, target=nowhere) if len(calls) == 2 else found

    monkeypatch.setattr(natural, "evaluate", fails_second)
    _, report = natural.fit(small.separate(), NaturalSettings(max_iterations=3))
    assert np.isfinite(report.elbo)
    assert report.status != "diverged"


def test_a_count_far_above_the_others_is_reached():
    """Sites of the first step overshoot whatever its length; full ones come back from there."""
    y = np.random.default_rng(0).poisson(3.0, (40, 1)).astype(float)
    y[17] = 1e5
    x, design = np.linspace(0.0, 10.0, 40)[:, None], Design((Poisson(),), {"mean": (RBF(1.0),)})
    task = Task(starting_model(design, y), small.observe(y, 0.0), x)
    for learn in (True, False):
        posterior, report = natural.fit(task, NaturalSettings(learn=learn))
        assert report.status == "converged"
        assert latent(posterior, x)[0]["mean"][17] == pytest.approx(np.log(1e5), abs=0.1)


def test_site_steps_raise_the_bound_where_full_ones_go_far_beyond_a_count():
    """All rows share the functions that meet a count of 5000 among ones."""
    x = np.arange(480.0)[:, None]
    rate = np.exp(1.5 * np.sin(x * 2 * np.pi / 24) - 1)
    y = np.random.default_rng(0).poisson(rate).astype(float)
    y[200] = 5000.0
    design = Design((Poisson(),), {"mean": (Periodic(24.0, 0.65), RBF(60.0))})
    task = Task(starting_model(design, y), small.observe(y, 0.0), x)
    problem, free = task.problem(task.model), small.free_parameters(task)
    run = Optimizer(problem, HELD, 1e-9)
    state = run.evaluate(free, natural.starting_sites(free, problem))
    for _ in range(4):
        before, state = state, run.site_step(state)
        assert state.value > before.value


def test_a_bound_that_the_sites_alone_raise_is_not_calm(monkeypatch):
    task = small.separate()
    problem, free = task.problem(task.model), small.free_parameters(task)
    run = Optimizer(problem, NaturalSettings(), 1e-9)
    state = run.evaluate(free, natural.starting_sites(free, problem))
    away = [state._replace(value=state.value + change) for change in (-9.0, 5.0)]
    monkeypatch.setattr(run, "evaluate", lambda *_: away.pop(0))
    monkeypatch.setattr(natural, "newton_step", lambda *_: natural.Step(0.0 * state.gradient, 0.0))
    assert run.step(state).value == state.value + 5.0
    assert run.calm == 0


def test_a_small_gain_of_a_short_site_step_is_not_calm():
    """A tenth of the way that gains a fifth of the tolerance has twice as much ahead."""
    run = Optimizer(small.separate().problem(small.separate().model), NaturalSettings(), 1e-9)
    for rho, calm in ((1.0, 1), (0.1, 0)):
        run.rho = rho
        run._settle(0.2 * NaturalSettings().tolerance)
        assert run.calm == calm


@pytest.mark.parametrize("coupled", [True, False])
def test_a_kernel_without_hyper_parameters_is_fitted(coupled):
    kernels = {"mean": (White(),), "scale": ()}
    for outputs in (2, 6):
        task = small.make_task((Gaussian(),) * outputs, kernels, coupled=coupled)
        _, report = natural.fit(task, NaturalSettings(points=2))
        assert report.status == "converged"


def test_a_further_kernel_that_does_not_help_leaves_the_prior_as_it_was(monkeypatch):
    def proposed(free, sites, problem, spare):
        return Growth(spare[0], np.full(np.shape(free["mean"].mean), 1e6))

    monkeypatch.setattr(natural, "propose_kernel", proposed)
    task = dataclasses.replace(small.separate(), spare=(RBF(0.01),))
    for most in (80, 23):
        posterior, report = natural.fit(task, NaturalSettings(points=2, max_iterations=most))
        assert len(posterior.model.priors["mean"].kernels) == 1
        assert report.status in ("converged", "out of iterations")


def test_an_interruption_while_mixing_keeps_the_posterior_at_the_mode(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(natural, "principal_directions", interrupted)
    task = small.separate()
    posterior, report = natural.fit(task, NaturalSettings(max_iterations=5, points=4))
    assert report.status == "interrupted"
    assert type(posterior) is Posterior
    assert np.all(np.isfinite(posterior.latent(task.inputs)[0]["mean"]))
