"""Settings are what they should be, and reach the engine they are meant for."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from censored_gp import CensoredGP
from censored_gp.estimator.settings import engine_settings
from censored_gp.inference import Engine
from censored_gp.inference.natural import NaturalSettings
from censored_gp.prediction.predictive import check_probability


@dataclasses.dataclass(frozen=True)
class OwnSettings:
    """Of an engine that the package does not know."""

    steps: int = 10
    seed: int = 0


def bare(task, settings=None):
    """An engine that declares no settings."""


OWN = Engine(bare, OwnSettings)


def made(engine, given=None, most=None, state: Any = 7):
    return engine_settings(engine, given, most, state)


def test_settings_of_the_estimator_reach_the_engine():
    found = made("svi", {"samples": 2}, most=50)
    assert (found.samples, found.max_iterations) == (2, 50)
    assert found.seed == made("svi").seed != made("svi", state=8).seed


def test_what_is_said_of_the_engine_goes_before_what_is_said_of_the_estimator():
    settings = made("svi", {"max_iterations": 9, "seed": 3}, most=50)
    assert (settings.max_iterations, settings.seed) == (9, 3)


def test_most_iterations_of_a_sampler_are_those_of_its_first_part():
    assert made("nuts", most=5).natural.max_iterations == 5
    assert made("nuts", {"draws": 20}, most=5).draws == 20
    assert made("nuts", {"natural": {"tolerance": 0.5}}, most=5).natural == NaturalSettings(5, 0.5)
    kept = made("nuts", {"natural": {"max_iterations": 9}}, most=5)
    assert kept.natural.max_iterations == 9
    assert made("nuts").natural is None


def test_an_engine_may_have_settings_of_its_own_or_none():
    assert made(OWN, {"steps": 3}).steps == 3
    assert made(OWN).seed == made("svi").seed
    assert made(bare) is None
    assert made(bare, {"any": 1}) == {"any": 1}


def test_a_function_and_an_engine_are_given_their_settings(begin):
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    assert begin(CensoredGP(engine=bare, engine_settings=3), X, y)[1] == 3
    assert begin(CensoredGP(engine=OWN, engine_settings={"steps": 4}), X, y)[1].steps == 4


REFUSED = {
    "unknown engine": (("em",), "engine.*'em'"),
    "an object": (("svi", NaturalSettings()), "dict or None"),
    "of another engine": (("natural", {"samples": 3}), "samples"),
    "of an inner engine": (("nuts", {"natural": {"draws": 3}}), "draws"),
    "negative": (("svi", {"samples": -3}), "samples.*-3"),
    "inside": (("nuts", {"natural": {"warm_up": -1}}), "warm_up.*-1"),
    "half": (("svi", {"patience": 2.5}), "patience.*2.5"),
    "text": (("svi", {"learning_rate": "a"}), "learning_rate.*'a'"),
    "no rate": (("svi", {"learning_rate": 0}), "learning_rate.*0"),
    "no": (("svi", {"learn": "no"}), "learn.*'no'"),
    "steps of none": ((bare, None, 5), "max_iterations"),
    "steps of others": ((OWN, None, 5), "max_iterations"),
}


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED)
def test_settings_that_mean_nothing_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        made(*given)


def test_zero_is_a_tolerance_and_a_whole_number_is_a_number():
    assert made("natural", {"tolerance": 0, "warm_up": 0}).tolerance == 0
    assert made("svi", {"learning_rate": np.float32(0.5), "samples": np.int64(2)}).samples == 2


@pytest.mark.parametrize("found", [0, 1, -0.5, 100.0, 10**400, np.nan, "0.9", True, None])
def test_only_probabilities_are_probabilities(found):
    check_probability(0.9)
    with pytest.raises(ValueError, match="`probability` must be between 0 and 1"):
        check_probability(found)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"coupled": {"mean": "no"}}, "coupled.*'mean'.*'no'"),
        ({"coupled": {"level": True}}, "coupled.*'level'"),
        ({"rank": {"maen": 1}}, "mean 'mean'"),
        ({"rank": {"mean": [2, 0]}}, "rank.*'mean'.*0"),
    ],
)
def test_settings_by_role_are_checked(setting, message):
    y = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(ValueError, match=message):
        CensoredGP(**setting).fit(np.arange(8.0)[:, None], y)
