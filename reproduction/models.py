"""The paper's models as its experiments set them up, and how a fit is scored."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

import censored_gp
from censored_gp import CensoredGP, Observations, Prediction
from censored_gp.kernels import RBF, Kernel, Periodic
from censored_gp.likelihoods import NegativeBinomial, Poisson
from censored_gp.prediction import metrics

MODELS = ("NCGP", "MONCGP", "CGP", "HCGP", "MOCGP", "HMOCGP")
SINGLE = ("NCGP", "CGP", "HCGP")
"""Models of one output: they are fitted to the first output alone."""
IGNORING = "HMONCGP"
"""HMOCGP that ignores censoring, which the paper does not name."""
NATURAL = {"max_iterations": 30, "tolerance": 0.2}
"""Settings of the natural engine for real data: hundreds of fits need not climb to the last nat."""


def build(name: str, likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> Any:
    """Return a model of the paper by name: its hyper-parameters are taken for certain."""
    settings = {"hyperparameters": "fixed"} | settings
    if name == IGNORING:
        return CensoredGP(likelihood, kernels, use_censoring=False, **settings)
    return getattr(censored_gp, name)(likelihood, kernels, **settings)


def paper_kernels(rain: bool = True) -> list[Kernel]:
    """Return the kernels of the paper's published code, at its starting values."""
    of_time: list[Kernel] = [
        Periodic("1d", 1.0, columns="time"),
        Periodic("7d", 1.0, columns="time"),
        RBF("1h", columns="time"),
    ]
    return [*of_time, RBF(1.0, columns="rain")] if rain else of_time


def paper_likelihood(family: str) -> Any:
    """Return a likelihood with the paper's links: softplus, where the defaults are exponential."""
    if family == "poisson":
        return Poisson(rate="softplus")
    if family == "negative_binomial":
        return NegativeBinomial(mean="softplus", dispersion="softplus")
    return family


def training_data(name: str, observations: Observations) -> Observations:
    """Return what a model is fitted to: the first output for models of one output, else all."""
    return observations.outputs([0]) if name in SINGLE else observations


def scores(prediction: Prediction, truth: Float[np.ndarray, " N"]) -> dict[str, float]:
    """Return the scores of the first output against the truth (NaN: not scored)."""
    first, cells = prediction.of_outputs([0]), truth[:, None]
    return point_scores(first.mean[:, 0], truth) | {
        "nlpd": float(metrics.nlpd(first, cells)),
        "nlpd_per_point": float(metrics.nlpd(first, cells, per_point=True)),
        "coverage": coverage(first, truth),
    }


def point_scores(
    predicted: Float[np.ndarray, " N"], truth: Float[np.ndarray, " N"]
) -> dict[str, float]:
    """Return R² and mean absolute error."""
    return {"r2": float(metrics.r2(predicted, truth)), "mae": float(metrics.mae(predicted, truth))}


def coverage(prediction: Prediction, truth: Float[np.ndarray, " N"]) -> float:
    """Return the share of the truth inside the 90 % intervals of the first output.

    Counts under a continuous family are rounded values: an interval holds one if it holds any value
    that rounds to it.
    """
    first, known = prediction.of_outputs([0]), np.isfinite(truth)
    cells: Any = truth[:, None]
    if not first.discrete[0] and np.all(truth[known] == np.round(truth[known])):
        ends = (np.where(known, truth + half, np.sign(half) * np.inf) for half in (-0.5, 0.5))
        cells = Observations(*(end[:, None] for end in ends), first.names)
    return float(metrics.coverage(first, cells, 0.9).upper)


def expected_coverage(prediction: Prediction, truth: Float[np.ndarray, " N"]) -> float:
    """Return the share of the model's own draws inside its 90 % intervals.

    It is more than 0.9 for counts, because both ends of an interval belong to it.
    """
    low, high = (np.round(end[:, 0]) for end in prediction.of_outputs([0]).interval(0.9))
    inside = prediction.of_outputs([0]).cdf(high[:, None] + 0.5)
    inside = inside - prediction.of_outputs([0]).cdf(low[:, None] - 0.5)
    return float(np.mean(inside[np.isfinite(truth)]))
