"""A further kernel where rows share what passes for noise, and the rank by Akaike's criterion."""

import dataclasses
import itertools
from types import SimpleNamespace

import equinox as eqx
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from censored_gp.inference import model_search, natural
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.result import Task
from censored_gp.inference.sites import Sites
from censored_gp.kernels import RBF
from censored_gp.likelihoods import Gaussian, Poisson
from censored_gp.model.lmc import from_free, grams
from censored_gp.model.model import Cycle, Design
from censored_gp.model.starting_values import coefficients, starting_model, starting_models
from support import small

ROWS = 200
TIME = np.arange(float(ROWS))
FAST, SLOW = 4.0, 40.0
SPARE = tuple(RBF(length, columns=0) for length in (FAST, 12.0, SLOW))


def rbf(length):
    return np.exp(-0.5 * ((TIME[:, None] - TIME) / length) ** 2)


SPARES = [rbf(kernel.lengthscale) for kernel in SPARE]


def drawn(noise, *parts, seed=0):
    """Draw observations with so much noise, of a sum of parts: (variance, Gram)."""
    rng = np.random.default_rng(seed)
    covariance = sum((v * gram for v, gram in parts), np.diag(np.broadcast_to(noise, ROWS)))
    return 3.0 + np.linalg.cholesky(covariance) @ rng.normal(size=ROWS)


def promised(z, noise, prior):
    precision = np.full(ROWS, 1.0 / noise)
    return model_search.promise(z * precision, precision, 3.0, prior, SPARES)


def test_the_promise_is_a_difference_of_textbook_evidences():
    noise, prior = 0.2, 0.5 * rbf(SLOW)
    z = drawn(noise, (0.5, rbf(SLOW)), (0.3, rbf(FAST)))
    unit = 0.5 + noise

    def evidence(gram, variances):
        return max(
            multivariate_normal(np.full(ROWS, 3.0), cov, allow_singular=False).logpdf(z)
            for s, a in itertools.product(model_search.NOISE, variances)
            for cov in [
                prior + a * unit * gram + (s * noise + model_search.JITTER * unit) * np.eye(ROWS)
            ]
        )

    without = evidence(np.eye(ROWS), (0.0, *model_search.VARIANCES))
    expected = [evidence(gram, model_search.VARIANCES) - without for gram in SPARES]
    gains, _ = promised(z, noise, prior)
    np.testing.assert_allclose(gains, expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("more_noise", [0.5, 1.0, 4.0])
def test_noise_promises_nothing_however_much_it_is(seed, more_noise):
    """An overdispersed family has noise that its sites do not know of: no kernel mends that."""
    z = drawn(more_noise * 0.3, (0.5, rbf(SLOW)), seed=seed)
    assert promised(z, 0.3, 0.5 * rbf(SLOW))[0].max() < model_search.LEAST_GAIN


@pytest.mark.parametrize(
    ("there", "missing", "best"),
    [((0.5, rbf(SLOW)), (0.3, rbf(FAST)), 0), ((0.1, rbf(FAST)), (3.0, rbf(SLOW)), 2)],
)
def test_what_rows_share_beyond_the_prior_is_found(there, missing, best):
    gains, variances = promised(drawn(0.1, there, missing), 0.1, there[0] * there[1])
    assert np.argmax(gains) == best
    assert gains[best] > model_search.LEAST_GAIN
    assert variances[best] > 0.05


def test_cells_that_tell_nothing_change_nothing():
    z = drawn(0.1, (0.5, rbf(SLOW)), (0.3, rbf(FAST)))
    precision = np.where(np.arange(ROWS) % 3 == 0, 0.0, 10.0)
    known = precision > 0
    pairs = np.ix_(known, known)
    args = z * precision, precision, 3.0, 0.5 * rbf(SLOW)
    all_rows = model_search.promise(*args, SPARES)
    those = model_search.promise(
        *(a[known] for a in args[:2]), 3.0, args[3][pairs], [gram[pairs] for gram in SPARES]
    )
    np.testing.assert_allclose(all_rows, those)
    nothing = model_search.promise(*(0.0 * a for a in args[:2]), *args[2:], SPARES)
    np.testing.assert_array_equal(nothing[0], 0.0)


@pytest.mark.parametrize("coupled", [True, False])
def test_a_grown_role_has_the_promised_variance_beside_its_own(coupled):
    task = small.make_task((Gaussian(), Gaussian()), {"mean": (RBF(1.5),)}, coupled=coupled)
    before = small.free_parameters(task)["mean"]
    variance = np.array([0.2, 0.7]).reshape(np.shape(before.mean))
    after = from_free(
        model_search.with_kernel(before, model_search.Growth(RBF(0.4, columns=0), variance))
    )
    assert len(after.kernels) == 2
    blocks = len(variance)
    np.testing.assert_allclose(
        grams(after.kernels[1], task.inputs, blocks)[0], RBF(0.4)(task.inputs, task.inputs)
    )
    own = [np.asarray(b) for b in after.coregionalization]
    np.testing.assert_allclose(np.diagonal(own[1], axis1=1, axis2=2), variance)
    for b in own:  # outputs share the new part as they share the old one
        scale = np.sqrt(np.diagonal(b, axis1=1, axis2=2))
        correlation = b / (scale[:, :, None] * scale[:, None])
        first = np.sqrt(np.diagonal(own[0], axis1=1, axis2=2))
        np.testing.assert_allclose(correlation, own[0] / (first[:, :, None] * first[:, None]))


def task_of(z, **choices):
    observations = small.observe(z[:, None], 0.1)
    design = Design((Gaussian(),), {"mean": (RBF(SLOW, columns=0),), "scale": ()})
    model = starting_model(design, observations.values())
    return Task(model, observations, TIME[:, None], **choices)


BOTH = drawn(0.02, (1.0, rbf(SLOW)), (0.1, rbf(FAST)))
PLAIN = drawn(0.3, (0.5, rbf(SLOW)))


def test_a_fit_takes_up_the_kernel_that_it_lacks():
    wider, report = natural.fit(task_of(BOTH, spare=SPARE))
    narrow, other = natural.fit(task_of(BOTH))
    fitted = wider.model.priors["mean"]
    assert report.converged
    lengths = [float(kernel.lengthscale[0]) for kernel in fitted.kernels]
    assert len(narrow.model.priors["mean"].kernels) == 1
    assert max(lengths) > 2.5 * min(lengths)
    assert report.elbo > other.elbo + 3.0


def test_a_fit_that_lacks_nothing_is_not_touched():
    looked, report = natural.fit(task_of(PLAIN, spare=SPARE))
    plain, same = natural.fit(task_of(PLAIN))
    assert report == same
    assert eqx.tree_equal(looked, plain)


def test_nothing_grows_in_the_last_iteration_or_with_hyper_parameters_held():
    for settings in (
        NaturalSettings(max_iterations=natural.LOOK_AFTER),
        NaturalSettings(learn=False),
    ):
        posterior, report = natural.fit(task_of(BOTH, spare=SPARE), settings)
        assert len(posterior.model.priors["mean"].kernels) == 1
        assert report.status in {"out of iterations", "converged"}


@pytest.mark.slow
@pytest.mark.parametrize("coupled", [True, False])
def test_many_outputs_grow_only_if_they_share_nothing(monkeypatch, coupled):
    monkeypatch.setattr(natural, "MOST_BY_OUTPUT", 1)
    observations = small.observe(np.stack([BOTH, BOTH[::-1]], axis=1), 0.0)
    design = Design(
        (Gaussian(), Gaussian()), {"mean": (RBF(SLOW, columns=0),), "scale": ()}, coupled
    )
    model = starting_model(design, observations.values())
    posterior, _ = natural.fit(Task(model, observations, TIME[:, None], spare=SPARE))
    assert len(posterior.model.priors["mean"].kernels) == (1 if coupled else 2)


@pytest.mark.parametrize("scatter", [0.0, 0.8])
def test_a_nugget_stays_if_each_of_its_bumps_is_worth_a_nat(scatter):
    rng = np.random.default_rng(0)
    y = rng.poisson(np.exp(1.5 + np.sin(TIME / 20.0) + scatter * rng.normal(size=ROWS)))
    observations = small.observe(y[:, None].astype(float), 0.1)

    def fitted(cycle, explore=False):
        kernels = {"mean": (RBF(SLOW, columns=0),)}
        design = Design((Poisson(),), kernels, nugget=cycle)
        model = starting_model(design, observations.values())
        posterior, report = natural.fit(Task(model, observations, TIME[:, None], explore=explore))
        return posterior.model.priors["mean"].nugget, report.elbo

    bumps = Cycle(0, 24.0, 4)
    (chosen, bound), (_, wide), (_, bare) = fitted(bumps, True), fitted(bumps), fitted(None)
    assert np.any(chosen.size) == (wide - bare > bumps.bumps)
    assert np.any(chosen.size) == (scatter > 0)
    assert bound > max(wide - bumps.bumps, bare) - 0.1


def is_wide(free):
    return len(free["mean"].kernels) == 2


@pytest.mark.parametrize("pressed", [1, 2])
def test_an_interruption_of_the_wider_climb_returns_the_better_fit(monkeypatch, pressed):
    """The wider model has no value yet, or one that is not worth having."""
    done, honest = [], natural.evaluate

    def interrupted(free, *others):
        done.extend([1] * is_wide(free))
        if len(done) == pressed:
            raise KeyboardInterrupt
        return honest(free, *others)

    monkeypatch.setattr(natural, "evaluate", interrupted)
    posterior, report = natural.fit(task_of(BOTH, spare=SPARE))
    assert report.status == "interrupted"
    assert report.elbo == max(report.trace)
    assert is_wide(posterior.model.priors) == (pressed > 1 and report.trace[-1] == report.elbo)
    assert np.all(np.isfinite(posterior.latent(TIME[:, None])[0]["mean"]))


def test_a_wider_model_that_leads_no_higher_is_left(monkeypatch):
    honest = natural.evaluate

    def lower(free, *others):
        found = honest(free, *others)
        return found._replace(elbo=found.elbo - 1e3) if is_wide(free) else found

    monkeypatch.setattr(natural, "evaluate", lower)
    posterior, report = natural.fit(task_of(BOTH, spare=SPARE))
    assert not is_wide(posterior.model.priors)
    assert report.converged
    assert report.elbo == max(report.trace)


def test_several_outputs_have_their_own_promises():
    """Only the second output lacks a fast part; rows in the middle were not seen at all."""
    z = np.stack([PLAIN, drawn(0.02, (1.0, rbf(SLOW)), (0.3, rbf(FAST)), seed=3)], axis=1)
    observations = small.observe(z, 0.0)
    design = Design((Gaussian(), Gaussian()), {"mean": (RBF(SLOW, columns=0),), "scale": ()}, False)
    task = Task(starting_model(design, observations.values()), observations, TIME[:, None])
    free, problem = small.free_parameters(task), task.problem(task.model)
    room = len(problem.inputs)
    precision = np.zeros((2, room, 1))
    precision[0, :ROWS, 0], precision[1, :ROWS, 0] = 1 / 0.3, 1 / 0.02
    linear = np.zeros((2, room, 1))
    linear[:, :ROWS, 0] = z.T * precision[:, :ROWS, 0]
    free["mean"] = dataclasses.replace(free["mean"], mean=np.full((2, 1), 3.0))
    found = model_search.propose_kernel(free, {"mean": Sites(linear, precision)}, problem, SPARE)
    assert found is not None
    assert found.kernel.lengthscale == FAST
    assert found.variance.shape == (2, 1)
    assert found.variance[1, 0] > found.variance[0, 0] > 0.0


def test_rows_are_looked_at_in_the_order_of_time():
    shuffled = np.random.default_rng(1).permutation(ROWS)
    task = task_of(BOTH, spare=SPARE)
    mixed = dataclasses.replace(
        task, inputs=task.inputs[shuffled], observations=task.observations.rows(shuffled)
    )
    problem = mixed.problem(mixed.model)
    told = np.ones((1, len(problem.inputs), 1))
    rows = model_search._stretch(problem, SPARE[0], told, 0.0)
    times = problem.inputs[rows[rows < ROWS], 0]
    np.testing.assert_array_equal(times, np.sort(times))
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(problem.inputs)))


def test_rows_that_tell_nothing_are_passed_over_where_they_are_many(monkeypatch):
    monkeypatch.setattr(model_search, "STRETCH", 64)
    task = task_of(BOTH, spare=SPARE)
    problem = task.problem(task.model)
    middle = np.arange(ROWS // 2 - 32, ROWS // 2 + 32)
    told = np.ones((1, len(problem.inputs), 1))
    np.testing.assert_array_equal(model_search._stretch(problem, SPARE[0], told, 0.0), middle)
    told[:, middle] = 0.0
    rows = model_search._stretch(problem, SPARE[0], told, 0.0)
    assert len(rows) == 64
    assert not np.isin(rows, middle).any()


@pytest.fixture
def task():
    return small.separate()


def models():
    """One of rank one with 4 coefficients, one of rank three with 9."""
    design = Design((Gaussian(),) * 4, {"mean": (small.RBF(1.0),), "scale": ()})
    found = starting_models(design, np.random.default_rng(0).normal(size=(10, 4)))
    assert [coefficients(model) for model in found] == [4, 9]
    return found


@pytest.fixture
def pretend(task, monkeypatch):
    """Pretend to climb: the bounds are those of successive models, an exception is raised."""

    def choose(*bounds, status="converged"):
        left, tried = list(bounds), []

        class Climbs:
            over = False

            def __init__(self, own, settings):
                tried.append(own)
                bound = left.pop(0)
                if isinstance(bound, BaseException):
                    raise bound
                self.task, self.status = own, status
                evaluation = SimpleNamespace(elbo=bound)
                self.best = SimpleNamespace(evaluation=evaluation, free=own.model)

            def model(self, free):
                return free

            def climb_and_grow(self):
                pass

            prune = refine = climb_and_grow

        monkeypatch.setattr(natural, "FitSchedule", Climbs)
        several = dataclasses.replace(task, candidates=tuple(models()))
        found = natural.best_climbs(several, NaturalSettings())
        assert all(dataclasses.replace(own, model=task.model) == several for own in tried)
        return found

    return choose


@pytest.mark.parametrize(("second", "kept"), [(-6.0, 4), (-4.0, 9), (np.nan, 4), (-np.inf, 4)])
def test_more_coefficients_must_be_worth_a_nat_each(pretend, second, kept):
    assert coefficients(pretend(-10.0, second).task.model) == kept


def test_a_bound_that_is_no_number_never_wins(pretend):
    assert coefficients(pretend(np.nan, -100.0).task.model) == 9


def test_an_interruption_of_the_second_fit_keeps_the_first_and_says_so(pretend):
    found = pretend(-10.0, KeyboardInterrupt())
    assert coefficients(found.task.model) == 4
    assert found.status == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        pretend(KeyboardInterrupt())


def test_after_an_interruption_no_other_model_is_tried(pretend):
    found = pretend(-10.0, AssertionError("tried"), status="interrupted")
    assert found.status == "interrupted"
