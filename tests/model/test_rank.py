"""How many latent functions a kernel has, where the user has not said."""

import dataclasses

import numpy as np
import pytest

from censored_gp import CensoredGP
from censored_gp.estimator.analysis import diagnose
from censored_gp.kernels import RBF
from censored_gp.likelihoods import Gaussian
from censored_gp.model.model import Design
from censored_gp.model.starting_values import coefficients, starting_model, starting_models


@pytest.mark.parametrize(("rows", "outputs", "tried"), [(20, 4, 2), (400, 4, 1), (20, 2, 1)])
def test_where_cells_are_few_for_many_coefficients_one_function_is_tried_too(rows, outputs, tried):
    design = Design((Gaussian(),) * outputs, {"mean": (RBF(1.0), RBF(5.0))})
    models = starting_models(design, np.random.default_rng(0).normal(size=(rows, outputs)))
    widest = min(outputs, 3)
    assert [m.priors["mean"].mixing[0].shape[2] for m in models] == [1, widest][-tried:]
    chosen = dataclasses.replace(design, rank=3)
    assert len(starting_models(chosen, np.ones((4, outputs)))) == 1


def test_coefficients_do_not_count_rotations():
    """Four outputs of rank three are known by a 4 x 4 matrix of that rank: 9 numbers."""
    design = Design((Gaussian(),) * 4, {"mean": (RBF(1.0), RBF(5.0))}, rank=3)
    model = starting_model(design, np.random.default_rng(0).normal(size=(9, 4)))
    assert coefficients(model) == 18
    single = starting_model(dataclasses.replace(design, rank=1), np.zeros((9, 4)))
    assert coefficients(single) == 8


@pytest.mark.parametrize("shared", [True, False])
def test_with_few_cells_the_bound_less_the_coefficients_chooses_the_rank(shared):
    """Four outputs that are one function need one; four that have nothing in common need more."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 20)[:, None]
    waves = np.sin(X + (0.0 if shared else np.array([0.0, 1.0, 2.0, 4.0])) + np.zeros(4))
    y = waves + 0.1 * rng.normal(size=waves.shape)
    model = CensoredGP(kernels=RBF(1.5), heteroscedastic=False).fit(X, y)
    assert model.rank_["mean"] == ((1,) if shared else (3,))
    other = CensoredGP(kernels=RBF(1.5), heteroscedastic=False, rank=3 if shared else 1).fit(X, y)
    saved = 5  # of nine coefficients
    assert other.elbo_ < model.elbo_ + (saved if shared else -saved)


@pytest.mark.slow
def test_what_is_held_out_is_predicted_by_models_that_are_chosen_in_the_same_way(monkeypatch):
    X, y = np.arange(10.0)[:, None], np.random.default_rng(0).normal(size=(10, 3))
    model = CensoredGP(kernels=RBF(2.0), heteroscedastic=False).fit(X, y)
    tried, honest = [], diagnose.infer

    def infer(engine, task, settings):
        tried.append(task.model.priors["mean"].mixing[0].shape[2])
        return honest(engine, task, settings)

    monkeypatch.setattr(diagnose, "infer", infer)
    diagnose.cross_predict(model, diagnose.hold_out(model.observations_, 2))
    assert tried == [1, 3, 1, 3]
