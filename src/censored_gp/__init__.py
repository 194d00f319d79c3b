"""Gaussian-process regression for outputs that were only partly seen.

>>> import censored_gp
>>> censored_gp.CGP(max_iterations=50)
CensoredGP(coupled=False, heteroscedastic=False, max_iterations=50)
>>> len(censored_gp.__version__.split("."))
3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from censored_gp import datasets, kernels, likelihoods, metrics
    from censored_gp.comparison import compare
    from censored_gp.datasets import simulated as simulate
    from censored_gp.estimator import CensoredGP
    from censored_gp.files import load
    from censored_gp.observations import Observations
    from censored_gp.predict import Prediction
    from censored_gp.presets import CGP, HCGP, HMOCGP, MOCGP, MONCGP, NCGP

__version__ = "0.1.0"

__all__ = [
    "CGP",
    "HCGP",
    "HMOCGP",
    "MOCGP",
    "MONCGP",
    "NCGP",
    "CensoredGP",
    "Observations",
    "Prediction",
    "__version__",
    "compare",
    "datasets",
    "kernels",
    "likelihoods",
    "load",
    "metrics",
    "simulate",
]

HOMES = {
    "CensoredGP": "estimator",
    "Observations": "observations",
    "Prediction": "predict",
    "compare": "comparison",
    "load": "files",
    **dict.fromkeys(("CGP", "HCGP", "HMOCGP", "MOCGP", "MONCGP", "NCGP"), "presets"),
}
"""The module that each public name lives in; names not here are modules themselves."""

ALIASES = {"simulate": "datasets.simulated"}
"""The modules that have a shorter public name."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: what is not used costs no time."""
    if name not in __all__:
        raise AttributeError(f"module 'censored_gp' has no attribute {name!r}")
    module = import_module(f"censored_gp.{(HOMES | ALIASES).get(name, name)}")
    return getattr(module, name) if name in HOMES else module


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
