"""Runs with more and more of an output censored: for the figures on error and on calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from censored_gp.paper.models import MODELS, build, coverage, point_scores, seen_by
from censored_gp.paper.runs import Row, Settings, Study, good
from censored_gp.paper.synthetic import FIRST_DRAW, world
from censored_gp.prediction import metrics

__all__ = ["DRAWS", "SHARES", "STUDY", "by_share", "pit_shares", "runs"]

DRAWS = 12
SHARES = (0.1, 0.25, 0.4, 0.55, 0.7)
START = 1.0
"""Output 1 is censored from here on, over the given share of [0, 10]."""
BINS = 10
PIT_COLUMNS = tuple(f"pit{k}" for k in range(BINS))


def run(settings: Settings) -> dict[str, float]:
    """Fit one model to one world; look at the censored points, whose truth is known."""
    share, draw = float(settings["share"]), int(settings["draw"])
    pair = world(draw, ((START, START + 10.0 * share),))
    model = build(settings["model"], engine=settings["engine"], random_state=draw).fit(
        {"x": pair.x}, seen_by(settings["model"], pair.observations())
    )
    prediction = model.predict_distribution({"x": pair.x})
    truth, censored = pair.truth[:, 0], pair.censored[:, 0]
    hidden = np.where(censored, truth, np.nan)
    cells = np.full(prediction.shape, np.nan)
    cells[:, 0] = hidden
    uniform = metrics.pit(prediction, cells).randomised(draw)[censored, 0]
    counts = np.histogram(uniform, BINS, (0.0, 1.0))[0] / censored.sum()
    return {
        "relative_error": point_scores(prediction.mean[:, 0], hidden)["mae"] / truth.std(),
        "r2": point_scores(prediction.mean[:, 0], truth)["r2"],
        "coverage": coverage(prediction, hidden)["coverage"],
        **{name: float(count) for name, count in zip(PIT_COLUMNS, counts, strict=True)},
    }


STUDY = Study(
    "shares",
    ("draw", "share", "model", "engine"),
    ("relative_error", "coverage", "r2", *PIT_COLUMNS),
    run,
    varied=("draw", "share"),
)


def runs(
    draws: int = DRAWS, engine: str = "natural", models: Iterable[str] = MODELS
) -> list[Settings]:
    """Return the runs.

    >>> len(runs(2, models=["CGP"]))
    10
    """
    return [
        {"draw": draw, "share": share, "model": model, "engine": engine}
        for model in models for share in SHARES
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws)
    ]  # fmt: skip


def by_share(
    rows: Sequence[Row], model: str, score: str
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]:
    """Return mean and standard error of a score at each censoring share; NaN without runs.

    >>> row = {"model": "CGP", "share": "0.1", "r2": 0.5, "error": ""}
    >>> float(by_share([row], "CGP", "r2")[0][0])
    0.5
    """
    means, errors = np.full((2, len(SHARES)), np.nan)
    for k, share in enumerate(SHARES):
        values = [r[score] for r in good(rows) if r["model"] == model and r["share"] == str(share)]
        if values:
            means[k] = np.mean(values)
            errors[k] = np.std(values) / np.sqrt(max(len(values) - 1, 1))
    return means, errors


def pit_shares(rows: Sequence[Row], model: str) -> Float[np.ndarray, " B"]:
    """Return how much of the censored truth falls in each tenth of the prediction.

    >>> row = {"model": "CGP", "error": ""} | dict.fromkeys(PIT_COLUMNS, 0.1)
    >>> float(pit_shares([row], "CGP").sum().round(6))
    1.0
    """
    own = [row for row in good(rows) if row["model"] == model]
    if not own:
        return np.full(BINS, np.nan)
    return np.array([np.mean([row[name] for row in own]) for name in PIT_COLUMNS])
