"""The engine that the documentation shows how to write."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from censored_gp import CensoredGP
from censored_gp.inference import Engine, natural
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.kernels import RBF
from censored_gp.likelihoods import Gaussian
from support import small

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending" / "engine.md"
X = np.linspace(0, 6, 24)[:, None]
Y = np.sin(X[:, 0]) + 0.1 * np.cos(37 * X[:, 0])


@pytest.fixture(scope="module")
def blocks():
    """The code of the page: the engine, and how it is used."""
    return re.findall(r"```python\n((?:import|from).*?)```", PAGE.read_text(encoding="utf-8"), re.S)


@pytest.fixture(scope="module")
def engine(blocks):
    names: dict = {}
    exec(blocks[0], names)
    return names["fit"]


def test_the_documented_engine_finds_the_mode_which_for_gaussians_is_the_mean(engine):
    task = small.single(Gaussian(), censored=0.0)
    posterior, report = engine(task)
    exact, _ = natural.fit(task, NaturalSettings(learn=False))
    assert report.converged
    assert report.trace[-1] > report.trace[0]
    found, expected = (
        Posterior.latent(each, task.inputs)[0]["mean"] for each in (posterior, exact)
    )
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_the_estimator_uses_it_as_documented(blocks, engine):
    used: dict = {"fit": engine, "X": X, "y": Y}
    exec(blocks[1], used)
    model = used["model"]
    assert model.score(X, Y) > 0.8
    assert model.report_.message == "The climb is over."
    low, high = model.interval(X)
    assert np.all(low < high)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of an engine of one's own."""

    steps: int = 10


def test_an_engine_may_declare_settings(engine):
    given = []

    def fit(task, settings):
        given.append(settings)
        return engine(task)

    fixed: dict = {"kernels": RBF(1.0), "heteroscedastic": False}
    own = Engine(fit, Settings)
    declared = CensoredGP(engine=own, engine_settings={"steps": 3}, **fixed).fit(X, Y, Y > 0.9)
    plain = CensoredGP(engine=fit, **fixed).fit(X, Y, Y > 0.9)
    assert given == [Settings(3), None]
    np.testing.assert_array_equal(declared.predict(X), plain.predict(X))
    with pytest.raises(ValueError, match="max_iterations"):
        CensoredGP(engine=own, max_iterations=5).fit(X, Y)
    with pytest.raises(ValueError, match="steps"):
        CensoredGP(engine=own, engine_settings={"steps": 0}).fit(X, Y)
