"""Gaussian-process regression for censored data.

>>> import censored_gp
>>> censored_gp.CGP(max_iterations=50)
CGP(max_iterations=50)
>>> len(censored_gp.__version__.split("."))
3
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from censored_gp import kernels, likelihoods
    from censored_gp.data.errors import DataError
    from censored_gp.data.observations import Observations
    from censored_gp.datasets import simulated as simulate
    from censored_gp.estimator.analysis.compare import compare
    from censored_gp.estimator.censored_gp import CensoredGP
    from censored_gp.estimator.fleet import Fleet, fit_many, group_outputs
    from censored_gp.estimator.presets import CGP, HCGP, HMOCGP, MOCGP, MONCGP, NCGP, load
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
    "DataError",
    "Fleet",
    "Observations",
    "Prediction",
    "__version__",
    "compare",
    "fit_many",
    "group_outputs",
    "kernels",
    "likelihoods",
    "load",
    "metrics",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, to keep `import censored_gp` fast."""
    # A statement that imports a submodule makes it an attribute of the package.
    if name == "kernels":
        import censored_gp.kernels as found
    elif name == "likelihoods":
        import censored_gp.likelihoods as found
    elif name == "simulate":
        from censored_gp.datasets import simulated as found
    elif name == "metrics":
        from censored_gp.prediction import metrics as found
    elif name == "Observations":
        from censored_gp.data.observations import Observations as found
    elif name == "DataError":
        from censored_gp.data.errors import DataError as found
    elif name == "Prediction":
        from censored_gp.prediction.predictive import Prediction as found
    elif name == "compare":
        from censored_gp.estimator.analysis.compare import compare as found
    elif name in ("Fleet", "fit_many", "group_outputs"):
        from censored_gp.estimator import fleet

        found = getattr(fleet, name)
    elif name in __all__:
        from censored_gp.estimator import presets

        found = getattr(presets, name)
    else:
        said = f"module 'censored_gp' has no attribute {name!r}"
        raise AttributeError(said, name=name, obj=sys.modules[__name__])
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
