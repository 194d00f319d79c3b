"""The models of the paper as its experiments set them up, and how a fit is scored."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from censored_gp.data.observations import Observations
from censored_gp.estimator.censored_gp import CensoredGP, presets
from censored_gp.kernels import RBF, Kernel, Periodic
from censored_gp.likelihoods import NegativeBinomial, Poisson
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import Prediction

__all__ = [
    "CRPS_DRAWS",
    "MODELS",
    "NATURAL",
    "SINGLE",
    "build",
    "coverage",
    "expected_coverage",
    "imputed",
    "paper_kernels",
    "paper_likelihood",
    "point_scores",
    "sampled_crps",
    "scores",
    "seen_by",
]

MODELS = ("NCGP", "MONCGP", "CGP", "HCGP", "MOCGP", "HMOCGP")
SINGLE = ("NCGP", "CGP", "HCGP")
"""Models of one output alone: they are fitted to the first output only."""
IGNORING = "HMONCGP"
"""HMOCGP that takes records at their word: what the censoring gap is measured from."""

CRPS_DRAWS = 64
"""Draws of every hour for its CRPS."""
NATURAL = {"max_iterations": 30, "tolerance": 0.2}
"""Settings of the natural engine for real data: of hundreds of fits none climbs to the last nat."""


def build(name: str, likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> Any:
    """Return a model of the paper by name.

    >>> build("CGP", "poisson").use_censoring
    True
    """
    if name == IGNORING:
        return CensoredGP(likelihood, kernels, use_censoring=False, **settings)
    return getattr(presets, name)(likelihood, kernels, **settings)


def paper_kernels(rain: bool = True) -> list[Kernel]:
    """Return the kernels of the paper's published code, at its starting values.

    >>> len(paper_kernels()), len(paper_kernels(rain=False))
    (4, 3)
    """
    of_time: list[Kernel] = [
        Periodic("1d", 1.0, columns="time"),
        Periodic("7d", 1.0, columns="time"),
        RBF("1h", columns="time"),
    ]
    return [*of_time, RBF(1.0, columns="rain")] if rain else of_time


def paper_likelihood(family: str) -> Any:
    """Return a likelihood with the paper's links: a softplus for rates, where ours is exponential.

    >>> paper_likelihood("gaussian")
    'gaussian'
    """
    links: dict[str, Any] = {
        "poisson": (Poisson, {"rate": "softplus"}),
        "negative_binomial": (NegativeBinomial, {"mean": "softplus", "dispersion": "softplus"}),
    }
    if family not in links:
        return family
    make, chosen = links[family]
    return make(**chosen)


def seen_by(name: str, observations: Observations) -> Observations:
    """Return what a model is fitted to: one output for models of single outputs, else all.

    >>> both = Observations([[1.0, 2.0]], [[1.0, 2.0]], ("a", "b"))
    >>> seen_by("HCGP", both).names, seen_by("HMOCGP", both).names
    (('a',), ('a', 'b'))
    """
    return observations.outputs([0]) if name in SINGLE else observations


def scores(prediction: Prediction, truth: Float[np.ndarray, " N"]) -> dict[str, float]:
    """Return the scores of the first output against the truth (NaN: not scored)."""
    known = int(np.isfinite(truth).sum())
    nlpd = metrics.nlpd(prediction, _beside(prediction, truth), per_output=True)[0]
    return point_scores(prediction.mean[:, 0], truth) | {
        "nlpd": float(nlpd),
        "nlpd_per_point": float(nlpd) / known if known else float("nan"),
        **coverage(prediction, truth),
    }


def coverage(
    prediction: Prediction, truth: Float[np.ndarray, " N"], level: float = 0.9
) -> dict[str, float]:
    """Return how much of the truth (NaN: not counted) the central intervals of output 1 hold.

    Both ends count in full: intervals of small counts hold more than they promise, however right
    the model is. `coverage_at_random` is of intervals between quantiles whose ends hold a count
    with a probability that makes it even: of these a model that is right holds `level`.
    """
    below, upto = _ends(prediction, truth)
    low, high = (1 - level) / 2, (1 + level) / 2
    point = (upto >= low) & (below < high)
    if prediction.discrete[0]:
        known, (start, end) = np.isfinite(truth), prediction.interval(level)
        point = ((truth >= start[:, 0]) & (truth <= end[:, 0]))[known]
    inside, width = np.clip(upto, low, high) - np.clip(below, low, high), upto - below
    even = np.where(width > 0, inside / np.where(width > 0, width, 1.0), point)
    return {"coverage": _mean(point), "coverage_at_random": _mean(even)}


def expected_coverage(
    prediction: Prediction, truth: Float[np.ndarray, " N"], level: float = 0.9
) -> float:
    """Return how much of what the model itself would draw the same intervals hold.

    It is `level` where values are not whole numbers. Of whole ones it is more: both ends count in
    full.
    """
    known, whole = _known_and_whole(truth)
    if not whole:
        return level
    low, high = (np.round(end) for end in prediction.interval(level))
    held = prediction.cdf(high + 0.5) - prediction.cdf(low - 0.5)
    return _mean(held[known, 0])


def _known_and_whole(truth: Float[np.ndarray, " N"]) -> tuple[Bool[np.ndarray, " N"], bool]:
    """Return which values are known, and whether these are whole numbers."""
    known = np.isfinite(truth)
    return known, bool(np.all(truth[known] == np.round(truth[known])))


def _mean(values: Shaped[np.ndarray, " K"]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _ends(
    prediction: Prediction, truth: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]:
    """Return P(Y < y) and P(Y <= y) at the known values.

    Whole numbers under a family that has no atoms are rounded ones: what rounds to y counts as y.
    """
    known, whole = _known_and_whole(truth)
    if whole and not prediction.discrete[0]:
        ends = [prediction.cdf(_beside(prediction, truth + half)) for half in (-0.5, 0.5)]
    else:
        uniform = metrics.pit(prediction, _beside(prediction, truth))
        ends = [uniform.lower, uniform.upper]
    return ends[0][known, 0], ends[1][known, 0]


def imputed(model: Any, rows: Shaped[np.ndarray, " K"]) -> Prediction:
    """Return the distribution of what training rows really were, given their bounds."""
    return model.imputation(rows)


def sampled_crps(
    prediction: Prediction, truth: Float[np.ndarray, " N"], samples: int = CRPS_DRAWS, seed: int = 0
) -> float:
    """Return the CRPS of the first output, `E|X - y| - E|X - X'| / 2`, from draws of X.

    The integral of `metrics.crps` takes many quantiles, and so a hundred times as long. Its
    own error is small in a mean over hundreds of hours.
    """
    drawn = np.sort(prediction.sample(samples, seed, joint=False)[:, :, 0], axis=0)
    # The mean distance between two draws is a weighted sum of the sorted ones.
    weight = (2.0 * np.arange(1, samples + 1) - samples - 1)[:, None]
    spread = (weight * drawn).sum(axis=0) / (samples * (samples - 1))
    return float(np.mean(np.abs(drawn - truth).mean(axis=0) - spread))


def _beside(prediction: Prediction, truth: Float[np.ndarray, " N"]) -> Float[np.ndarray, "N D"]:
    """Return the truth of the first output beside nothing for the others."""
    cells = np.full(prediction.shape, np.nan)
    cells[:, 0] = truth
    return cells


def point_scores(
    predicted: Float[np.ndarray, " N"], truth: Float[np.ndarray, " N"]
) -> dict[str, float]:
    """Return R² and mean absolute error.

    >>> point_scores(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    {'r2': 0.5, 'mae': 0.5}
    """
    return {"r2": float(metrics.r2(predicted, truth)), "mae": float(metrics.mae(predicted, truth))}
