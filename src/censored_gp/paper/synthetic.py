"""Runs on the paper's synthetic worlds: two outputs drawn from the model itself."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import norm

from censored_gp.paper.models import MODELS, SINGLE, build, scores, seen_by
from censored_gp.paper.runs import Settings, Study
from censored_gp.simulate import SyntheticPair, synthetic_pair

__all__ = ["STUDY", "runs", "world", "world_settings"]

N = 100
FIRST_DRAW = 100
"""Seeds of the draws start here: how far values are pushed down was settled on seeds below 10."""
WINDOWS = {
    "none": (),
    "block": ((1.3, 5.5),),
    "elsewhere": ((5.6, 9.8),),
    "broken": ((0.5, 1.5), (2.5, 3.5), (4.5, 5.5), (6.5, 7.5)),
    "half": ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, 8.0)),
}
"""Where an output is censored. "half" overlaps one half of "broken"."""
RANGES = {
    "short lengthscale": (0.5, 1.0),
    "long lengthscale": (1.5, 3.0),
    "noise lengthscale": (2.0, 4.0),
    "correlation": (0.75, 0.98),
    "noise": (0.1, 0.3),
    "noise spread": (0.3, 0.8),
    "depth": (1.5, 3.0),
}
"""Hyper-parameters of the draws: uniform on these."""


def world_settings(draw: int) -> dict[str, float]:
    """Return the hyper-parameters of a draw.

    >>> sorted(world_settings(0)) == sorted(RANGES)
    True
    """
    rng = np.random.default_rng([draw, 2022])
    return {name: float(rng.uniform(*ends)) for name, ends in RANGES.items()}


def world(draw: int, own: Any, other: Any = "none", n: int = N) -> SyntheticPair:
    """Return the world of a draw, its outputs censored in windows that are named or given.

    >>> pair = world(0, "block")
    >>> bool(pair.censored[:, 0].any()), bool(pair.censored[:, 1].any())
    (True, False)
    """
    chosen = world_settings(draw)
    windows = tuple(WINDOWS[name] if isinstance(name, str) else name for name in (own, other))
    pair = synthetic_pair(
        n,
        seed=draw,
        windows=windows,
        lengthscales=(chosen["short lengthscale"], chosen["long lengthscale"]),
        noise_lengthscales=(chosen["noise lengthscale"],),
        correlation=chosen["correlation"],
        noise=chosen["noise"],
        noise_spread=chosen["noise spread"],
    )
    below = pair.truth - chosen["depth"] * pair.truth.std(axis=0)
    return replace(pair, observed=np.where(pair.censored, below, pair.truth))


def run(settings: Settings) -> dict[str, float]:
    """Fit one model to one world; score the true values of the first output."""
    other = "none" if settings["model"] in SINGLE else settings["other"]
    pair = world(int(settings["draw"]), settings["own"], other)
    start = time.perf_counter()
    model = build(
        settings["model"], engine=settings["engine"], random_state=int(settings["draw"])
    ).fit({"x": pair.x}, seen_by(settings["model"], pair.observations()))
    seconds = time.perf_counter() - start
    prediction = model.predict_distribution({"x": pair.x})
    truth, censored = pair.truth[:, 0], pair.censored[:, 0]
    hidden = scores(prediction, np.where(censored, truth, np.nan))
    floor = -norm.logpdf(truth, pair.mean[:, 0], pair.scale[:, 0]).sum()
    return scores(prediction, truth) | {
        "nlpd_censored": hidden["nlpd_per_point"],
        "coverage_censored": hidden["coverage"],
        "nlpd_floor": float(floor),
        "elbo": model.elbo_,
        "converged": float(model.report_.converged),
        "fit_seconds": seconds,
    }


STUDY = Study(
    "synthetic",
    ("draw", "own", "other", "model", "engine"),
    (
        *("nlpd", "nlpd_per_point", "nlpd_censored", "nlpd_floor", "r2", "mae"),
        *("coverage", "coverage_censored", "elbo", "converged", "fit_seconds"),
    ),
    run,
    varied=("draw", "own", "other"),
)


def runs(
    draws: int, scenarios: Iterable[tuple[str, str]], engine: str, models: Iterable[str] = MODELS
) -> list[Settings]:
    """Return the runs of all models; those of single outputs do not depend on the other one.

    >>> [run["other"] for run in runs(1, [("block", "none")], "natural", ["CGP", "MOCGP"])]
    ['-', 'none']
    """
    return [
        {"draw": draw, "own": own, "other": other_of(model, other), "model": model,
         "engine": engine}
        for model in models for own, other in scenarios
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws)
    ]  # fmt: skip


def other_of(model: str, other: str) -> str:
    """Return how the other output is censored, "-" where the model does not see it.

    >>> other_of("CGP", "half"), other_of("MOCGP", "half")
    ('-', 'half')
    """
    return "-" if model in SINGLE else other
