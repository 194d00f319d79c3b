"""Cross-validation of a fitted model: scores of held-out cells, and warnings in words.

A censored cell is scored by the log probability of its bounds, an exact one by its log density
(what was seen for a part of its period is not scored). The probability integral transform of a
censored cell is an interval, like that of a count. The same folds are predicted by a model that
ignores censoring and by one that is fitted to exact cells only, to tell what using the bounds is
worth.

`censoring_cautions` tells where levels are not identified by the data: outputs, and hours of the
week, that are mostly censored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.observations import Observations, widen_exact
from censored_gp.data.time import CALENDAR, WEEKDAYS, weekday
from censored_gp.estimator.settings import seed_of
from censored_gp.estimator.training import make_task, seen_by
from censored_gp.inference import infer
from censored_gp.inference.hyperparameters import POINTS, mixes
from censored_gp.inference.model_search import best_fit
from censored_gp.inference.natural import NaturalSettings
from censored_gp.model.compilation import float64, interruptible
from censored_gp.model.starting_values import design_for, starting_models
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import Prediction

MANY = 0.5
"""The share of censored cells of an output above which a caution is given."""

ALWAYS = 0.05
"""The share of the hours of the week (or of its days) that may be censored every time."""

LEAST = 3
"""The number of weeks an hour must have been in the data to count as censored every time."""

MORE_THAN_CHANCE = 3.0
"""The least ratio of the number of such hours to that expected of random flags."""

SHARE = (
    " If it is a count that stopped at a random moment of its period, say so: with a family of "
    'counts, exposure="unknown" averages over that moment. If the time is known in which it could '
    "be seen, give that as the exposure."
)

THIS, NAIVE, EXACT = "this model", "ignores censoring", "exact cells only"

RIVALS = {
    NAIVE: "A model that ignores censoring",
    EXACT: "A model that leaves out censored cells",
}
"""The models that a model is compared with, in words."""

LEVEL = 0.9
"""The probability of the intervals whose coverage is measured."""

Cells = Float[np.ndarray, "N D"]
Times = Shaped[np.ndarray, " N"]
Scores = dict[str, dict[str, dict[str, float]]]
"""Scores by model, output and name."""


def censoring_cautions(known: Observations, times: Times | None = None) -> list[str]:
    """Return a sentence for each output whose level is not identified by its data."""
    # Two bounds identify the level, and so does what was seen in a part of a period.
    hidden = known.is_right | known.is_left
    found = []
    for d, name in enumerate(known.names):
        seen = ~known.is_missing[:, d]
        share = float(hidden[seen, d].mean()) if seen.any() else 0.0
        if share > MANY:
            found.append(
                f"Output {name!r}: {share:.0%} of its cells are censored. Its level rests more on "
                "the model than on data: trust differences in time more than the level itself."
            )
        elif times is not None and (said := _of_slots(hidden[seen, d], times[seen])):
            # Of what was seen in part, the whole is at least that.
            hint = SHARE if known.is_right[hidden[:, d], d].all() else ""
            found.append(f"Output {name!r}: {said}{hint}")
    return found


def _of_slots(hidden: Bool[np.ndarray, " K"], times: Times) -> str:
    """Return a sentence if hours of the week (of daily records: days) are always censored."""
    days, hours = weekday(times), CALENDAR["hour"](times)[0]
    daily = len(np.unique(hours)) <= 1
    slots, number = (days, 7) if daily else (24 * days + hours, 168)
    week = (times.astype("datetime64[D]").astype(np.int64) - days) // 7
    weeks = np.bincount(np.unique(week * number + slots) % number, minlength=number)
    often = weeks >= LEAST
    always = often & (np.bincount(slots, ~hidden, number) == 0)
    by_chance = float(np.sum(hidden.mean() ** weeks[often])) if often.any() else 0.0
    if always.sum() <= max(ALWAYS * often.sum(), MORE_THAN_CHANCE * by_chance):
        return ""
    first, count, what = int(np.argmax(always)), int(always.sum()), "days" if daily else "hours"
    example = WEEKDAYS[first] if daily else f"{WEEKDAYS[first // 24]} {first % 24}:00"
    return (
        f"{count} of {often.sum()} {what} of the week {'is' if count == 1 else 'are'} censored "
        f"every time, such as {example}. What is said of the values there rests on other {what} "
        "and on the model, and goes too far beyond the bounds if the bounds rose and fell with "
        "the values."
    )


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The result of a cross-validation; print it to see scores and warnings.

    Attributes
    ----------
    rows : table
        Scores of each model and output.
    warnings : tuple of str
        Sentences; none if nothing is wrong.
    scores : dict
        Scores by model, output and name.
    prediction : CrossPrediction
        Predictions of the cells by the refits that they were held out of.
    truth : Observations
        The outputs.
    """

    rows: Any
    warnings: tuple[str, ...]
    scores: Scores
    prediction: CrossPrediction
    truth: Observations

    @property
    def pit(self) -> metrics.PIT:
        """Probability integral transforms of the held-out cells: uniform if all is well."""
        return metrics.pit(self.prediction, self.truth)

    def __str__(self) -> str:
        said = "\n".join(f"- {warning}" for warning in self.warnings)
        return f"{self.rows}\n{said or 'Nothing is wrong as far as held-out cells can tell.'}"


class CrossPrediction:
    """Out-of-fold predictions: each cell is predicted by the refit that it was held out of."""

    def __init__(self, parts: Sequence[Prediction], fold: Int[np.ndarray, "N D"]) -> None:
        self._parts, self._fold = parts, fold
        self.names, self.discrete = parts[0].names, parts[0].discrete

    def _chosen(self, ask: Callable[[Prediction], Any]) -> Any:
        return np.choose(self._fold, np.stack([ask(part) for part in self._parts]))

    @property
    def mean(self) -> Cells:
        """Expected value of each cell."""
        return self._chosen(lambda part: part.mean)

    def quantile(self, level: Any) -> Float[np.ndarray, "... N D"]:
        """Return quantiles; a list of levels gives a leading axis."""
        return self._chosen(lambda part: part.quantile(level))

    def interval(self, probability: float = LEVEL) -> tuple[Cells, Cells]:
        """Return both ends of central intervals."""
        return tuple(self._chosen(lambda part: np.stack(part.interval(probability))))

    def cdf(self, y: Cells) -> Cells:
        """Return P(Y <= y)."""
        return self._chosen(lambda part: part.cdf(y))

    def log_probability(self, lower: Cells, upper: Cells) -> Cells:
        """Return log P(lower <= Y <= upper), the log density where they are equal."""
        return self._chosen(lambda part: part.log_probability(lower, upper))


def hold_out(
    known: Observations, folds: int, times: Times | None = None, seed: int | np.random.Generator = 0
) -> Int[np.ndarray, "N D"]:
    """Return the fold in which each cell is held out: whole days if there are times, else rows.

    Hours of one day resemble each other, so that a day must be held out as a whole. The days of
    each output are dealt out on their own: what other outputs did on a day may be used.
    """
    if not isinstance(folds, int | np.integer) or folds < 2:
        raise ValueError(f"`folds` must be an integer of at least 2, got {folds!r}.")
    rows, outputs = known.shape
    block = np.arange(rows)
    if times is not None:
        days, of_day = np.unique(times.astype("datetime64[D]"), return_inverse=True)
        block = of_day if len(days) >= 2 * folds else block
    count, rng = int(block.max()) + 1, np.random.default_rng(seed)
    dealt = [rng.permutation(np.arange(count) % folds)[block] for _ in range(outputs)]
    return np.stack(dealt, axis=1)


def cross_predict(
    model: Any,
    fold: Int[np.ndarray, "N D"],
    hidden: Bool[np.ndarray, "N D"] | None = None,
    use_censoring: bool = True,
) -> CrossPrediction:
    """Predict every cell by a refit without its fold, and without cells that are `hidden`.

    Each refit starts afresh: hyper-parameters fitted to all cells would leak those held out.
    """
    folds = [fold == k for k in range(int(fold.max()) + 1)]
    left_out = folds if hidden is None else [hidden | each for each in folds]
    return CrossPrediction([_refit(model, each, use_censoring) for each in left_out], fold)


def _refit(model: Any, held_out: Bool[np.ndarray, "N D"], use_censoring: bool) -> Prediction:
    """Fit again without some cells."""
    training, units = model.training_, model.units_
    seen = seen_by(training.likelihoods, training.observations, use_censoring)
    seen = units.apply(widen_exact(seen))
    values = seen.full_values()
    left = np.where(held_out, np.nan, values)
    # An output of which nothing is left must start somewhere.
    left = np.where(np.isnan(left).all(axis=0), values, left)
    with interruptible(), float64():
        design = design_for(vars(model), training.likelihoods, training.columns, training.inputs)
        models = starting_models(design, left)
        task = make_task(model, training, models[-1], seen, held_out=held_out)
        points = POINTS if mixes(model.hyperparameters, "natural", task) else 0
        settings = NaturalSettings(points=points, hold=model.hyperparameters == "given")
        # The other engines would take many times longer for about the same answer.
        posterior, result = best_fit(partial(infer, "natural"), task, models, settings)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return Prediction(posterior, units, training.inputs, model.output_names_)


def scored(
    prediction: CrossPrediction, truth: Observations, level: float = LEVEL
) -> dict[str, dict[str, float]]:
    """Return scores by output, with a last row named "all".

    `cells` counts all cells that were scored, `exact` the exact ones. `nlpd` is the mean negative
    log probability of a cell (or of its bounds); `mae` and `r2` are of exact cells; `coverage` is
    the share of cells inside their intervals; `pit_deviation` is how far the probability integral
    transforms are from uniform.
    """
    exact = np.where(truth.is_exact, truth.lower, np.nan)
    log_scores = metrics.nlpd_cells(prediction, truth)
    pit = metrics.pit(prediction, truth)
    known, r2 = ~np.isnan(log_scores), metrics.r2(prediction, exact, per_output=True)

    def row(d: slice, r2: Any, coverage: Any) -> dict[str, float]:
        own = metrics.PIT(pit.lower[:, d], pit.upper[:, d])
        errors = np.abs(prediction.mean - exact)[:, d]
        return {
            "cells": int(known[:, d].sum()),
            "exact": int(truth.is_exact[:, d].sum()),
            "nlpd": metrics.mean_of(log_scores[:, d], known[:, d], per_output=False),
            "mae": metrics.mean_of(errors, truth.is_exact[:, d], per_output=False),
            "r2": float(r2),
            "coverage": float(coverage),
            "pit_mean": metrics.mean_of(own.mid(), known[:, d], per_output=False),
            "pit_deviation": own.deviation(),
        }

    each, all_ = (metrics.coverage(prediction, truth, level, per_output=p) for p in (True, False))
    table = {
        name: row(slice(d, d + 1), r2[d], each.expected[d]) for d, name in enumerate(truth.names)
    }
    mean_r2 = metrics.mean_of(r2, ~np.isnan(r2), per_output=False)
    return table | {"all": row(slice(None), mean_r2, all_.expected)}


def diagnose(model: Any, folds: int = 3, seed: Any = None) -> Diagnosis:
    """Hold out cells, predict them, and score the predictions; see `CensoredGP.diagnose`."""
    known, times = model.observations_, model.training_.times
    fold = hold_out(known, folds, times, seed_of(seed, model.random_state, 0))
    censored = ~known.is_exact & ~known.is_missing
    predictions = {THIS: cross_predict(model, fold, use_censoring=model.use_censoring)}
    if model.use_censoring and censored.any():
        predictions[NAIVE] = cross_predict(model, fold, use_censoring=False)
        if all((known.is_exact & (fold != k)).any(axis=0).all() for k in range(folds)):
            predictions[EXACT] = cross_predict(model, fold, hidden=censored)
    scores = {name: scored(found, known) for name, found in predictions.items()}
    flat = [
        {"model": m, "output": o, **row} for m, table in scores.items() for o, row in table.items()
    ]
    rows = model.training_.table({name: [row[name] for row in flat] for name in flat[0]})
    return Diagnosis(rows, warnings_of(scores, model), scores, predictions[THIS], known)


def warnings_of(scores: Scores, model: Any, level: float = LEVEL) -> tuple[str, ...]:
    """Return what is wrong with a model, in sentences that say what could be done."""
    own, known = scores[THIS], model.observations_
    # A model that ignores censoring does not extrapolate beyond the bounds.
    times = model.training_.times if model.use_censoring else None
    found = [] if model.report_.converged else [model.report_.message]
    found += censoring_cautions(known, times)
    if own["all"]["cells"] == 0:
        found.append(
            "No cell could be scored, as all were seen for a part of their period: nothing is "
            "known for or against the model. Some cells that were seen whole would tell."
        )
    discrete = any(k.support.discrete for k in model.training_.likelihoods)
    for name, unscored in zip(known.names, known.is_partial.sum(axis=0), strict=True):
        said = _of_row(own[name], level, discrete, int(unscored))
        found += [f"Output {name!r}: {words}" for words in said]
    for name in [name for name in RIVALS if name in scores]:
        gain = own["all"]["nlpd"] - scores[name]["all"]["nlpd"]
        if gain > 0.01:
            found.append(
                f"{RIVALS[name]} predicts the cells held out better (by {gain:.3f} per cell in log "
                "score). Check the flags, and whether censoring is independent of demand."
            )
    return tuple(found)


def _of_row(row: dict[str, float], level: float, discrete: bool, unscored: int = 0) -> list[str]:
    """Return what the scores of one output say against the model; cells of parts were unscored."""
    found, cells = [], max(1.0, row["cells"])
    noise = 2 * np.sqrt(level * (1 - level) / cells) + 0.02
    if row["coverage"] < level - noise:
        found.append(
            f"its {level:.0%} intervals hold only {row['coverage']:.0%} of the cells held out: "
            "they are too narrow. Try heteroscedastic=True, a family with heavier tails "
            "(student_t, negative_binomial), or inputs that explain more."
        )
    # Intervals of counts are whole numbers, and hold more than they promise.
    if row["coverage"] > level + noise and not discrete:
        found.append(
            f"its {level:.0%} intervals hold {row['coverage']:.0%} of the cells held out: they are "
            "too wide."
        )
    if row["pit_deviation"] > 1.63 / np.sqrt(cells) + 0.03:
        low = row["pit_mean"] > 0.5
        shift = abs(row["pit_mean"] - 0.5) > 0.04
        what = f"too {'low' if low else 'high'} on the whole" if shift else "miscalibrated"
        found.append(
            f"its predictions are {what} for the cells held out (their PIT deviates from uniform "
            f"by {row['pit_deviation']:.2f}). Try another family with compare(...)."
        )
    # Where much is censored, exact cells are the low ones, and their mean is no fair rival.
    if row["r2"] < 0 and row["exact"] > 0.7 * (cells + unscored):
        found.append(
            "its exact cells would have been predicted better by their mean. Are the inputs the "
            "right ones?"
        )
    return found
