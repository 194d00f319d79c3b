"""Gaussian-process regression for outputs that were only partly seen."""

from censored_gp import datasets, kernels, likelihoods, metrics, simulate
from censored_gp.estimator import CensoredGP
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
    "datasets",
    "kernels",
    "likelihoods",
    "metrics",
    "simulate",
]
