"""The engine that the documentation shows how to write."""

import re
from pathlib import Path

import equinox as eqx
import numpy as np

import small
from censored_gp.inference import natural
from censored_gp.inference.natural import NaturalSettings
from censored_gp.likelihoods import Gaussian
from censored_gp.posterior import Posterior

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending" / "engine.md"


def test_the_documented_engine_finds_the_mode_which_for_gaussians_is_the_mean():
    code = re.findall(r"```python\n(import.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names: dict = {}
    exec(code[0], names)
    task = small.single(Gaussian(), censored=0.0)
    posterior, report = names["fit"](task)
    exact, _ = natural.fit(task, NaturalSettings(learn=False))
    assert report.converged
    assert report.trace[-1] > report.trace[0]
    found, expected = (
        eqx.filter_jit(Posterior.latent)(each, task.inputs)[0]["mean"]
        for each in (posterior, exact)
    )
    np.testing.assert_allclose(found, expected, atol=0.05)
