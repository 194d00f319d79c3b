"""Tables 1 and 2: two outputs drawn from the model itself, and the runs on them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from censored_gp.datasets.simulated import Cells, World
from censored_gp.model.compilation import blas_threads_for
from censored_gp.prediction import metrics
from reproduction.models import MODELS, SINGLE, build, coverage, point_scores, scores, training_data
from reproduction.study import Settings, Study

N = 100
DRAWS = 50
FIRST_DRAW = 100
"""Seeds of the draws start here: the ranges below were chosen on seeds below 10."""
WINDOWS = {
    "none": (),
    "block": ((1.3, 5.5),),
    "elsewhere": ((5.6, 9.8),),
    "broken": ((0.5, 1.5), (2.5, 3.5), (4.5, 5.5), (6.5, 7.5)),
    "half": ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (7.0, 8.0)),
}
"""Where an output is censored. "half" overlaps one half of "broken"."""
TABLE_1 = ("block", "none")
TABLE_2 = {
    "0 %": ("block", "elsewhere"),
    "50 %": ("broken", "half"),
    "100 %-M": ("broken", "broken"),
    "100 %-H": ("block", "block"),
}
"""How the first and the second output are censored, by overlap."""
RANGES = {
    "short lengthscale": (0.5, 1.0),
    "long lengthscale": (1.5, 3.0),
    "noise lengthscale": (2.0, 4.0),
    "correlation": (0.75, 0.98),
    "noise": (0.1, 0.3),
    "noise spread": (0.3, 0.8),
    "depth": (1.5, 3.0),
}
"""Hyper-parameters of the draws are uniform on these ranges."""
SHARES = (0.1, 0.25, 0.4, 0.55, 0.7)
SHARE_DRAWS = 12
PIT_COLUMNS = tuple(f"pit{k}" for k in range(10))

Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class SyntheticPair(World):
    """Two correlated outputs with input-dependent noise, drawn from the paper's own model.

    Attributes
    ----------
    mean
        The latent mean f.
    scale
        The standard deviation exp(g) of the noise.
    truth
        The outputs before censoring, `N(mean, scale²)`.
    observed
        The truth, or less where censored.

    Examples
    --------
    >>> world = synthetic_pair(50)
    >>> world.truth.shape, world.censored.any(axis=0).tolist()
    ((50, 2), [True, False])
    """

    x: Float[np.ndarray, " N"]
    mean: Cells
    scale: Cells

    explaining = ("x",)


def synthetic_pair(
    n: int = 100,
    *,
    seed: int = 0,
    windows: Sequence[Sequence[tuple[float, float]]] = (((1.3, 5.5),), ()),
    depth: float = 1.0,
    lengthscales: Sequence[float] = (0.7, 2.0),
    noise_lengthscales: Sequence[float] = (2.5,),
    correlation: float = 0.9,
    noise: float = 0.2,
    noise_spread: float = 0.5,
) -> SyntheticPair:
    """Draw the world of the paper's table 1: N equally spaced inputs on [0, 10], two outputs.

    `f = Σ_q A u_q` and `g = log(noise) + noise_spread Σ_q A v_q` are linear models of
    coregionalization (Eq. 4) over the mean and the log scale, with RBF kernels of the given
    lengthscales and `A Aᵀ = [[1, correlation], [correlation, 1]]`. Each output is censored inside
    its `windows`. How far, the paper leaves open: here a censored value is the truth less a
    uniform amount on `[0, 2 depth]` standard deviations of its output.

    >>> world = synthetic_pair(50, windows=(((2.0, 4.0),), ()))
    >>> bool((world.observed <= world.truth).all()), int(world.censored.sum())
    (True, 10)
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 10.0, n)
    mean = _coregionalized(rng, x, lengthscales, correlation)
    log_scale = _coregionalized(rng, x, noise_lengthscales, correlation)
    scale = noise * np.exp(noise_spread * log_scale)
    truth = mean + scale * rng.standard_normal((n, 2))
    censored = np.zeros((n, 2), bool)
    for d, spans in enumerate(windows):
        for start, stop in spans:
            censored[:, d] |= (x >= start) & (x <= stop)
    hidden = rng.uniform(0.0, 2.0 * depth, (n, 2)) * truth.std(axis=0)
    observed = np.where(censored, truth - hidden, truth)
    return SyntheticPair(("y1", "y2"), truth, observed, censored, x, mean, scale)


def _coregionalized(
    rng: np.random.Generator,
    x: Float[np.ndarray, " N"],
    lengthscales: Sequence[float],
    correlation: float,
) -> Cells:
    """Draw two functions of unit variance from an LMC whose kernels all correlate them alike."""
    mixing = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    total = np.zeros((len(x), 2))
    for lengthscale in lengthscales:
        kernel = np.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2)
        with blas_threads_for(len(x)):
            values, vectors = np.linalg.eigh(kernel)
        # Rounding leaves tiny negative eigenvalues, which a Cholesky factor would refuse.
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        total += root @ rng.standard_normal((len(x), 2)) @ mixing.T
    return total / np.sqrt(len(lengthscales))


def world(draw: int, first: Spans, second: Spans = (), n: int = N) -> SyntheticPair:
    """Return the world of a draw, its outputs censored on the given spans.

    A censored value is the truth less `depth` standard deviations of its output.
    """
    rng = np.random.default_rng([draw, 2022])
    chosen = {name: float(rng.uniform(*ends)) for name, ends in RANGES.items()}
    pair = synthetic_pair(
        n,
        seed=draw,
        windows=(first, second),
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
    second = "none" if settings["model"] in SINGLE else settings["output_2"]
    pair = world(int(settings["draw"]), WINDOWS[settings["output_1"]], WINDOWS[second])
    start = time.perf_counter()
    model = _fit(settings, pair)
    seconds = time.perf_counter() - start
    prediction = model.predict_distribution({"x": pair.x})
    truth = pair.truth[:, 0]
    hidden = scores(prediction, np.where(pair.censored[:, 0], truth, np.nan))
    return scores(prediction, truth) | {
        "nlpd_censored": hidden["nlpd_per_point"],
        "coverage_censored": hidden["coverage"],
        "nlpd_floor": float(-norm.logpdf(truth, pair.mean[:, 0], pair.scale[:, 0]).sum()),
        "elbo": model.elbo_,
        "converged": float(model.report_.converged),
        "fit_seconds": seconds,
    }


def run_share(settings: Settings) -> dict[str, float]:
    """Fit one model with a given share of output 1 censored; score the censored points."""
    draw = int(settings["draw"])
    pair = world(draw, ((1.0, 1.0 + 10.0 * float(settings["share"])),))
    prediction = _fit(settings, pair).predict_distribution({"x": pair.x}).of_outputs([0])
    truth, censored = pair.truth[:, 0], pair.censored[:, 0]
    hidden = np.where(censored, truth, np.nan)
    uniform = metrics.pit(prediction, hidden[:, None]).randomised(draw)[censored, 0]
    counts = np.histogram(uniform, len(PIT_COLUMNS), (0.0, 1.0))[0] / censored.sum()
    return {
        "relative_error": point_scores(prediction.mean[:, 0], hidden)["mae"] / truth.std(),
        "coverage": coverage(prediction, hidden),
        **dict(zip(PIT_COLUMNS, map(float, counts), strict=True)),
    }


def _fit(settings: Settings, pair: SyntheticPair) -> Any:
    model = build(settings["model"], engine=settings["engine"], random_state=int(settings["draw"]))
    return model.fit({"x": pair.x}, training_data(settings["model"], pair.observations()))


STUDY = Study(
    "synthetic",
    ("draw", "output_1", "output_2", "model", "engine"),
    (
        *("nlpd", "nlpd_per_point", "nlpd_censored", "nlpd_floor", "r2", "mae"),
        *("coverage", "coverage_censored", "elbo", "converged", "fit_seconds"),
    ),
    run,
)
SHARE_STUDY = Study(
    "shares",
    ("draw", "share", "model", "engine"),
    ("relative_error", "coverage", *PIT_COLUMNS),
    run_share,
)


def runs(
    draws: int, scenarios: Iterable[tuple[str, str]], engine: str = "natural"
) -> list[Settings]:
    """Return the runs of all models; "-" stands for an output that a model does not see."""
    return [
        {"draw": draw, "output_1": first, "output_2": "-" if model in SINGLE else second,
         "model": model, "engine": engine}
        for model in MODELS for first, second in scenarios
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws)
    ]  # fmt: skip


def share_runs(draws: int) -> list[Settings]:
    """Return the runs with more and more of output 1 censored."""
    return [
        {"draw": draw, "share": share, "model": model, "engine": "natural"}
        for model in MODELS for share in SHARES
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws)
    ]  # fmt: skip
