"""What every engine must fulfil: agreement on a small problem, status, interruption, repetition."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from censored_gp.inference import ENGINES, infer
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.svi import SVISettings
from censored_gp.likelihoods import Gaussian
from support import small


def nuts(**choices) -> Any:
    return pytest.importorskip("censored_gp.inference.nuts").NutsSettings(**choices)


# Settings with which an engine comes near the posterior, and with which it ends too early.
# Steps of svi differ in their number only, so that they share a program.
SVI = SVISettings(samples=10, learning_rate=0.01, max_iterations=1000, learn=False)
CASES: dict[str, Any] = {
    "natural": (lambda: NaturalSettings(), lambda: NaturalSettings(max_iterations=2)),
    "svi": (lambda: SVI, lambda: dataclasses.replace(SVI, max_iterations=4)),
    "nuts": (
        lambda: nuts(draws=200, warmup=150, chains=2, natural=NaturalSettings(learn=False)),
        lambda: nuts(draws=8, warmup=8, chains=2, draws_at_a_time=4),
    ),
}
SAMPLER = pytest.mark.slow
ALL = [pytest.param(name, marks=[SAMPLER] if name == "nuts" else []) for name in CASES]


def task(**changes):
    return small.single(Gaussian(), rows=12, **changes)


def latent(posterior, inputs):
    return Posterior.latent(posterior, inputs)


@pytest.fixture(scope="module")
def reference():
    """A task at natural's hyper-parameters, and natural's moments there."""
    with jax.enable_x64(True):
        fitted, _ = infer("natural", task())
        held = dataclasses.replace(task(), model=fitted.model)
        posterior, result = infer("natural", held, NaturalSettings(learn=False))
        return held, result.elbo, latent(posterior, held.inputs)


def test_every_engine_has_a_case():
    assert set(ENGINES) == set(CASES)


def test_an_unknown_engine_is_refused_by_name():
    with pytest.raises(ValueError, match="magic"):
        infer("magic", task())


@pytest.mark.parametrize("engine", ALL)
def test_engines_agree_on_a_small_problem(engine, reference):
    """Means within a third of a deviation, and no bound above that of natural."""
    held, bound, (mean, variance) = reference
    posterior, result = infer(engine, held, CASES[engine][0]())
    found, spread = latent(posterior, held.inputs)
    shift = np.abs(found["mean"] - mean["mean"]) / np.sqrt(variance["mean"])
    assert np.max(shift) < 0.35
    np.testing.assert_allclose(np.sqrt(spread["mean"]), np.sqrt(variance["mean"]), rtol=0.4)
    if engine != "natural":
        assert result.elbo < bound + 1e-3


@pytest.mark.parametrize("engine", ALL)
def test_a_fit_that_ends_too_early_says_what_to_raise(engine):
    posterior, result = infer(engine, task(), CASES[engine][1]())
    assert result.status == "out of iterations"
    assert not result.converged
    assert "raise" in result.message
    assert np.isfinite(result.elbo)
    assert np.all(np.isfinite(latent(posterior, task().inputs)[0]["mean"]))


@pytest.mark.parametrize("engine", ALL)
def test_an_interrupted_fit_keeps_the_best_so_far(engine):
    """Ctrl-C in the middle: a whole posterior, and a bound not below that of the start."""
    calls = []

    def press(stage, done, most, bound):
        calls.append(bound)
        if len(calls) == 8:
            raise KeyboardInterrupt

    pressed = dataclasses.replace(task(), progress=press)
    posterior, result = infer(engine, pressed, CASES[engine][0]())
    assert result.status == "interrupted"
    assert len(calls) == 8
    assert result.elbo >= result.trace[0]
    mean, variance = latent(posterior, pressed.inputs)
    assert np.all(np.isfinite(mean["mean"]))
    assert np.all(variance["mean"] > 0)


@pytest.mark.parametrize("engine", ALL)
def test_the_same_fit_twice_is_the_same(engine):
    first, second = (infer(engine, task(), CASES[engine][1]()) for _ in range(2))
    assert first[1] == second[1]
    assert eqx.tree_equal(first[0], second[0])


@pytest.mark.parametrize("engine", ["natural", "svi"])
def test_held_out_cells_do_not_matter(engine):
    """Whatever stands in a held-out cell, the fit is the same; seen, it is not."""
    plain = task()
    hidden = np.zeros(plain.observations.shape, dtype=bool)
    hidden[np.flatnonzero(plain.observations.is_exact)[3]] = True
    bounds = {name: getattr(plain.observations, name) + 2.0 * hidden for name in ("lower", "upper")}
    changed = dataclasses.replace(
        plain, observations=dataclasses.replace(plain.observations, **bounds)
    )
    bounds = [
        infer(engine, dataclasses.replace(each, held_out=mask), CASES[engine][1]())[1].elbo
        for each, mask in ((plain, hidden), (changed, hidden), (changed, None))
    ]
    assert bounds[0] == bounds[1] != bounds[2]
