"""The model that is kept: by Akaike's criterion, and whatever happens in between."""

import dataclasses

import numpy as np
import pytest

from censored_gp.inference.model_search import best_fit
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.result import Report
from censored_gp.likelihoods import Gaussian
from censored_gp.model.model import Design
from censored_gp.model.starting_values import coefficients, starting_models
from support import small


@pytest.fixture
def task():
    return small.separate()


def models():
    """One of rank one with 4 coefficients, one of rank three with 9."""
    design = Design((Gaussian(),) * 4, {"mean": (small.RBF(1.0),), "scale": ()})
    found = starting_models(design, np.random.default_rng(0).normal(size=(10, 4)))
    assert [coefficients(model) for model in found] == [4, 9]
    return found


def engine(*bounds, status="converged"):
    """Pretend to fit: the bounds are those of successive models, an exception is raised."""
    left = list(bounds)

    def run(task, settings):
        bound = left.pop(0)
        if isinstance(bound, BaseException):
            raise bound
        posterior = Posterior(task.model, {}, {}, np.asarray(1e-9))
        return posterior, Report(status, "", bound, (bound,))

    return run


@pytest.mark.parametrize(("second", "kept"), [(-6.0, 4), (-4.0, 9), (np.nan, 4), (-np.inf, 4)])
def test_more_coefficients_must_be_worth_a_nat_each(task, second, kept):
    posterior, report = best_fit(engine(-10.0, second), task, models())
    assert coefficients(posterior.model) == kept
    assert report.elbo == (-10.0 if kept == 4 else second)


def test_a_bound_that_is_no_number_never_wins(task):
    posterior, _ = best_fit(engine(np.nan, -100.0), task, models())
    assert coefficients(posterior.model) == 9


def test_an_interruption_of_the_second_fit_keeps_the_first_and_says_so(task):
    posterior, report = best_fit(engine(-10.0, KeyboardInterrupt()), task, models())
    assert coefficients(posterior.model) == 4
    assert report.status == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        best_fit(engine(KeyboardInterrupt()), task, models())


def test_after_an_interruption_no_other_model_is_tried(task):
    run = engine(-10.0, AssertionError("tried"), status="interrupted")
    assert best_fit(run, task, models())[1].status == "interrupted"


def test_every_model_is_fitted_to_the_same_data(task):
    seen = []

    def run(own, settings):
        seen.append(dataclasses.replace(own, model=task.model))
        return engine(-1.0)(own, settings)

    best_fit(run, task, models())
    assert all(each == task for each in seen)
