"""The paper's six models: classes with names of their own and fixed settings."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censored_gp
from censored_gp.data import validation as targets
from censored_gp.estimator import presets
from censored_gp.estimator.presets import MODELS, paper_name

TABLE = {  # the noise varies, outputs are coupled, bounds are used
    "NCGP": (False, False, False),
    "MONCGP": (False, True, False),
    "CGP": (False, False, True),
    "HCGP": (True, False, True),
    "MOCGP": (False, True, True),
    "HMOCGP": (True, True, True),
}


@pytest.mark.parametrize(("name", "settings"), TABLE.items())
def test_a_preset_is_the_papers_model(name, settings):
    model = getattr(censored_gp, name)("poisson", rank=1)
    assert isinstance(model, censored_gp.CensoredGP)
    assert (model.heteroscedastic, model.coupled, model.use_censoring) == settings
    assert (model.likelihood, model.rank) == ("poisson", 1)
    names = ("heteroscedastic", "coupled", "use_censoring")
    general = censored_gp.CensoredGP(**dict(zip(names, settings, strict=True)))
    assert paper_name(model) == paper_name(general) == name


@pytest.mark.parametrize("name", TABLE)
def test_a_preset_is_an_estimator_of_its_own_name(name):
    model = getattr(censored_gp, name)(rank=2)
    copied: Any = clone(model)
    assert type(copied) is type(model)
    assert copied.get_params() == model.get_params()
    assert not {"coupled", "heteroscedastic", "use_censoring"} & set(model.get_params())
    assert repr(model) == f"{name}(rank=2)"
    assert make_pipeline(StandardScaler(), model).steps[1][0] == name.lower()


def test_every_model_of_the_paper_is_there():
    assert list(MODELS) == list(TABLE)
    other = censored_gp.CensoredGP(use_censoring=False)
    assert paper_name(other) == "CensoredGP"


def test_a_naive_model_takes_bounds_for_values():
    X, y = np.arange(12.0)[:, None], np.tile([1.0, 2.0, 3.0], 4)
    flags = y == 3.0
    told = presets.NCGP(kernels=censored_gp.kernels.RBF(1.0)).fit(X, y, flags)
    not_told = presets.NCGP(kernels=censored_gp.kernels.RBF(1.0)).fit(X, y)
    assert told.elbo_ == not_told.elbo_
    assert told.observations_.counts()["right"] == 4
    assert "at least a bound" in told.summary()
    np.testing.assert_array_equal(told.impute(), y)


def test_between_two_counts_a_naive_model_takes_the_lower_middle():
    seen = censored_gp.Observations(np.array([[2.0], [3.0]]), np.array([[5.0], [3.0]]))
    naive = targets.ignore_censoring(seen, (censored_gp.likelihoods.Poisson(),))
    np.testing.assert_array_equal(naive.lower, [[3.0], [3.0]])
    np.testing.assert_array_equal(naive.upper, naive.lower)
