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
    from censored_gp import datasets, kernels, likelihoods
    from censored_gp.data.observations import Observations
    from censored_gp.datasets import simulated as simulate
    from censored_gp.estimator.analysis.compare import compare
    from censored_gp.estimator.censored_gp import CensoredGP
    from censored_gp.estimator.persistence import load
    from censored_gp.estimator.presets import CGP, HCGP, HMOCGP, MOCGP, MONCGP, NCGP
    from censored_gp.prediction import metrics
    from censored_gp.prediction.predictive import Prediction

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


def __getattr__(name: str) -> Any:
    """Import a public name on first use, to keep `import censored_gp` fast."""
    if name in ("datasets", "kernels", "likelihoods", "metrics", "simulate"):
        if name == "metrics":
            from censored_gp.prediction import metrics as module
        elif name == "simulate":
            from censored_gp.datasets import simulated as module
        else:
            return import_module(f"censored_gp.{name}")
        return module
    if name == "Observations":
        from censored_gp.data.observations import Observations as found
    elif name == "Prediction":
        from censored_gp.prediction.predictive import Prediction as found
    elif name == "compare":
        from censored_gp.estimator.analysis.compare import compare as found
    elif name == "load":
        from censored_gp.estimator.persistence import load as found
    elif name == "CensoredGP":
        from censored_gp.estimator.censored_gp import CensoredGP as found
    elif name in __all__:
        from censored_gp.estimator import presets

        return getattr(presets, name)
    else:
        raise AttributeError(f"module 'censored_gp' has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
