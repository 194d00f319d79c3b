"""Diagnosis of a fitted model: whether its estimates of censored cells are to be trusted.

The truth behind a censored cell is unknown, so exact cells are **censored anew**, as the real ones
are. For a censored cell j, an exact cell i of the same output and hour of the week, with neighbours
about as busy, gets its bound at the same share of its value (on the real line: at the same
distance from it):

    bound_i = y_i * bound_j / E[y_j | bound_j].

One refit, which goes on from the hyper-parameters of the model, estimates these cells, and predicts
whole days of which it sees nothing. Two simple methods have the same task: the mean of exact cells
of the hour of the week, and gradient boosting on exact cells, both cut at the bound. Where real
cells were seen for a part of their period, exact counts are thinned to such parts.

Whether limits are independent of demand cannot be told from censored records alone (Tsiatis, 1975).
If what can be told speaks against the model, the verdict says so, with the readings of all methods.

With `substitution` it is not known what would move from a cell that was censored anew: the verdict
then rests on what else can be told, and whole rows are held out, so that no record of a day tells
of its other outputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from threadpoolctl import threadpool_limits

from censored_gp.data.errors import quoted
from censored_gp.data.observations import Observations, widen_exact
from censored_gp.data.time import CALENDAR, WEEKDAYS, weekday
from censored_gp.estimator.analysis.lost_demand import draw_lost
from censored_gp.estimator.settings import seed_of, with_points
from censored_gp.estimator.training import TrainingData, design_of, make_task, seen_by
from censored_gp.inference import infer
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.model.compilation import float64, interruptible
from censored_gp.model.starting_values import starting_models, uncensored_values
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import Prediction

# The probability of the intervals whose coverage is measured.
LEVEL = 0.9

# Differences of so many standard errors are no chance.
CLEARLY = 2.0

THIS = "this model"

# The last line of a verdict.
MORE = "More data, further inputs or another likelihood may help."

Cells = Float[np.ndarray, "N D"]
Mask = Bool[np.ndarray, "N D"]
Times = Shaped[np.ndarray, " N"]
Codes = Int[np.ndarray, " N"]
# Scores by output and name.
Scores = dict[str, dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What speaks for and against a fitted model; print it to see all.

    Attributes
    ----------
    verdict : tuple of str
        Why estimates are not to be trusted, or that too few exact cells could tell, and what to
        do; empty if nothing speaks against them.
    warnings : tuple of str
        Further problems, in sentences.
    rows : table
        Of this model and simple methods, by output: on `cells` that were censored anew, `ratio`
        (the sum of the estimates over that of the truth; where it may be negative, 1 and their
        difference over the sum of its absolute values), `error` (mean absolute error); and
        `lost`, the demand that the method holds lost in the cells that are really censored. If
        nothing is censored, the cells are those held out.
    scores : dict
        Of this model, by output and name: scores of cells of days that were held out.
    prediction : Prediction
        What was predicted without the days held out.
    truth : Observations
        The outputs on the days held out.
    """

    verdict: tuple[str, ...]
    warnings: tuple[str, ...]
    rows: Any
    scores: Scores
    prediction: Any
    truth: Observations

    @property
    def pit(self) -> metrics.PIT:
        """Probability integral transforms of the held-out cells: uniform if all is well."""
        return metrics.pit(self.prediction, self.truth)

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict, or that there is none."""
        return self.verdict or ("Nothing speaks against these estimates, where truth is known.",)

    def __str__(self) -> str:
        return "\n".join([*self.lines, str(self.rows), *map("- {}".format, self.warnings)])


def diagnose(model: Any, folds: int = 5, seed: Any = None) -> Diagnosis:
    """Censor exact cells anew, hold out days, and judge a refit; see `CensoredGP.diagnose`."""
    training: TrainingData = model.training_
    known, units = training.observations, model.units_
    rng = np.random.default_rng(seed_of(seed, model.random_state, 0))
    held_out = hold_out(known, folds, training.times, rng) == 0
    again, whole, short = known, known, known.falls_short & model.use_censoring
    expected = _imputed_now(model)
    if model.substitution_ is not None:
        held_out = np.broadcast_to(held_out[:, :1], known.shape)
        # Of other records it is not known what of them is own demand.
        whole = seen = recorded = training.seen
    else:
        if model.use_censoring:
            again = censor_anew(model, known.is_exact & ~held_out, expected, rng)
        seen = seen_by(training.likelihoods, again, model.use_censoring)
        recorded = widen_exact(seen)
    posterior = refit(model, units.apply(recorded), held_out)
    prediction = Prediction(posterior, units, training.inputs, known.names)
    anew = known.is_exact & ~again.is_exact
    if anew.any():
        judged, own = anew, _imputed(model, posterior, again, seen, anew)
    else:
        judged, own = whole.is_exact & held_out, prediction.mean
    estimates = {THIS: own, **simple_estimates(_without(again, held_out), training)}
    readings = {THIS: expected, **simple_estimates(known, training)}
    names = [(name, [d]) for d, name in enumerate(known.names)]
    names += [("all", slice(None))] if len(names) > 1 else []
    rows, truth = [], np.where(judged, known.lower, 0.0)
    for method, estimate in estimates.items():
        lost = np.where(short, readings[method] - known.recorded, 0.0)
        if method == THIS and model.substitution_ is not None:
            # Here it is no sum of single cells.
            lost[short] = np.concatenate(list(draw_lost(model, 200, 0)[0])).mean(axis=0)
        off = np.where(judged, estimate - truth, 0.0)
        for output, d in names:
            cells, size = int(judged[:, d].sum()), np.abs(truth[:, d]).sum()
            ratio = float(1 + off[:, d].sum() / size) if size > 0 else np.nan
            error = float(np.abs(off[:, d]).sum() / cells) if cells else np.nan
            row = {"method": method, "output": output, "cells": cells, "ratio": ratio}
            rows.append({**row, "error": error, "lost": float(lost[:, d].sum())})
    table = training.table({name: [row[name] for row in rows] for name in rows[0]})
    truth = _without(whole, ~held_out)
    scores = scored(cell_scores(prediction, truth), truth)
    verdict = verdict_of(model, rows, estimates, readings, anew)
    return Diagnosis(verdict, warnings_of(model, scores), table, scores, prediction, truth)


def _without(known: Observations, cells: Mask) -> Observations:
    """Return the observations with some cells missing."""
    lower, upper = np.where(cells, -np.inf, known.lower), np.where(cells, np.inf, known.upper)
    return dataclasses.replace(known, lower=lower, upper=upper)


def _imputed(
    model: Any, posterior: Posterior, known: Observations, seen: Observations, cells: Mask
) -> Cells:
    """Return the expected truth of some training cells, given what is known; elsewhere NaN."""
    rows, found = np.flatnonzero(cells.any(axis=1)), np.full(known.shape, np.nan)
    units, inputs = model.units_, model.training_.inputs[rows]
    given = Prediction(posterior, units, inputs, known.names, units.apply(seen.rows(rows)), rows)
    within = np.clip(given.mean, known.lower[rows], known.upper[rows])
    found[rows] = np.where(known.is_partial[rows], given.mean, within)
    return np.where(cells, found, np.nan)


def _imputed_now(model: Any) -> Cells:
    """Return the expected truth of the training cells that are not exact; elsewhere NaN."""
    data, cells = model.training_, censored_cells(model.training_.observations)
    if not cells.any():
        return np.full(cells.shape, np.nan)
    # Own demand for an output at its limit may be below that.
    known = data.observations if model.substitution_ is None else data.seen
    return _imputed(model, model.posterior_, known, data.seen, cells)


def censored_cells(known: Observations) -> Mask:
    """Return which cells are known in part, or could not be seen at all (exposure 0)."""
    return ~known.is_exact & (~known.is_missing | (known.exposure == 0))


# ---- exact cells, censored anew ----


def censor_anew(model: Any, free: Mask, expected: Cells, rng: np.random.Generator) -> Observations:
    """Return the observations with some of the exact cells that are `free` censored, too.

    `expected` is the truth of cells that are not exact, by the model. Half of the exact cells of an
    hour of the week stay exact.
    """
    training: TrainingData = model.training_
    known, times = training.observations, training.times
    levels, whole = calendar_slots(times, len(known)), censored_cells(known)
    if not whole.any():
        return known
    # Without a calendar, cells that are expected to be alike are of the same kind.
    kind = model.distribution_at(training.inputs).mean if times is None else busyness(known, times)
    lower, upper, exposure = known.lower.copy(), known.upper.copy(), known.exposure.copy()
    # A fifth of the exact cells of an output at most, and 2,000 of all outputs together.
    most = 2000 / int(whole.any(axis=0).sum())
    capacity, seen = capacities(known), training.seen
    for d, likelihood in enumerate(training.likelihoods):
        y, left, support = known.lower[:, d], free[:, d].copy(), likelihood.support
        count = int(min(most, 0.2 * left.sum(), whole[:, d].sum()))
        # What is exact was within its own limit, where there are few: that much is known of it.
        floors = np.unique(seen.upper[seen.is_left[:, d], d])
        floors = np.append(-np.inf, floors if len(floors) <= 5 else [])
        # So it was below its capacity: a count by one or more.
        highest = np.max(y[known.is_exact[:, d]], initial=-np.inf)
        limit = capacity[d] - (support.discrete and highest < capacity[d])
        for j in rng.permutation(np.flatnonzero(whole[:, d]))[:count]:
            for slot in levels:
                same = slot == slot[j]
                places = np.flatnonzero(same & left)
                if 2 * (len(places) - 1) >= np.sum(same & free[:, d]):
                    break
            else:
                continue
            places = rng.permutation(places)
            i = places[np.argmin(np.abs(kind[places, d] - kind[j, d]))]
            left[i], exposure[i, d] = False, known.exposure[j, d]
            if exposure[i, d] != 1:
                share = rng.uniform() if np.isnan(exposure[i, d]) else exposure[i, d]
                part = rng.binomial(int(y[i]), share) if support.discrete else share * y[i]
                lower[i, d] = upper[i, d] = part
                continue
            ends = np.array([known.lower[j, d], known.upper[j, d]])
            moved = y[i] + ends - expected[j, d]
            if support.lower == 0 and expected[j, d] > 0:
                moved = y[i] * (np.where(np.isfinite(ends), ends, 0.0) / expected[j, d])
            ends = np.where(np.isfinite(ends), moved, ends)
            if support.discrete:
                # As often up as down, but never beyond the truth.
                ends = np.floor(ends + rng.uniform())
            lower[i, d] = min(max(ends[0], floors[floors <= y[i]].max()), y[i])
            upper[i, d] = max(min(ends[1], limit), y[i])
    return dataclasses.replace(known, lower=lower, upper=upper, exposure=exposure)


def capacities(known: Observations) -> Float[np.ndarray, " D"]:
    """Return for each output the least lower bound if no exact value is beyond it, else inf."""
    capacity = np.min(np.where(known.is_right, known.lower, np.inf), axis=0)
    highest = np.max(np.where(known.is_exact, known.lower, -np.inf), axis=0)
    return np.where(highest <= capacity, capacity, np.inf)


def calendar_slots(times: Times | None, rows: int) -> list[Codes]:
    """Return codes of the rows, finest first: hour of the week, of a working day or not, of a day.

    Without times there is one code for all.
    """
    if times is None:
        return [np.zeros(rows, dtype=int)]
    days, hours = weekday(times), CALENDAR["hour"](times)[0]
    return [24 * days + hours, 24 * (days >= 5) + hours, hours]


def busyness(known: Observations, times: Times) -> Cells:
    """Return how busy the exact neighbours of each cell are, 1 if they are as usual.

    Neighbours are the other outputs at the same time, and the same output one row before. Usual is
    the mean of other exact cells at the same hour of the week.
    """
    seen, usual = _neighbours(known, times)
    return np.where(usual > 0, seen / np.where(usual > 0, usual, 1.0), 1.0)


def _neighbours(known: Observations, times: Times) -> tuple[Cells, Cells]:
    """Return sums of the exact neighbours of each cell: as they were, and as they usually are."""
    slot, exact = calendar_slots(times, len(known))[0], known.is_exact
    value = np.where(exact, known.lower, 0.0)
    total, count = _sums(value, slot), _sums(exact, slot)
    compared = exact & (count > 1)
    usual = np.where(compared, (total - value) / np.maximum(count - 1, 1), 0.0)
    order, found = np.argsort(times, kind="stable"), []
    for cells in (np.where(compared, value, 0.0), usual):
        before = np.zeros(known.shape)
        before[order[1:]] = cells[order[:-1]]
        found.append(before + cells.sum(axis=1, keepdims=True) - cells)
    return found[0], found[1]


def _sums(cells: Shaped[np.ndarray, "N D"], code: Codes) -> Cells:
    """Return for each cell the sum of its output over all rows of its code."""
    total = np.zeros((code.max() + 1, cells.shape[1]))
    np.add.at(total, code, cells)
    return total[code]


def simple_estimates(known: Observations, training: TrainingData) -> dict[str, Cells]:
    """Return estimates by simple methods trained on exact cells, within the bounds of each cell."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    times, levels = training.times, calendar_slots(training.times, len(known))
    mean, weight = calendar_means(known, times)
    calendar = [] if times is None else [np.stack([levels[2], weekday(times)], axis=1)]
    boosted, matrix = mean.copy(), np.concatenate([training.inputs, *calendar], axis=1)
    for d in np.flatnonzero(np.sum(weight > 0, axis=0) >= 2):
        rows = weight[:, d] > 0
        own, rate = weight[rows, d], known.lower[rows, d] / weight[rows, d]
        regressor = HistGradientBoostingRegressor(random_state=0)
        regressor.set_params(early_stopping=False)
        # Threads that wait for each other cost more than they save on a busy machine.
        with threadpool_limits(1):
            boosted[:, d] = regressor.fit(matrix[rows], rate, own).predict(matrix)
    hourly = len(np.unique(levels[0])) > 7
    name = "mean" if times is None else f"{'hour' if hourly else 'day'}-of-week mean"
    return {name: fill(known, mean), "boosting": fill(known, boosted)}


def calendar_means(known: Observations, times: Times | None) -> tuple[Cells, Cells]:
    """Return the mean of exact cells of the same hour of the week, and the weight of each cell.

    Where there are none it is that of the hour on working days or on others, of the hour on any
    day, or of all records. What was seen for a part of a period counts for that part.
    """
    weight = np.nan_to_num(known.exposure) * (known.lower == known.upper)
    value, records = np.where(weight > 0, known.lower, 0.0), known.full_values()
    number = np.maximum(np.sum(~np.isnan(records), axis=0), 1)
    mean = np.broadcast_to(np.nansum(records, axis=0) / number, known.shape)
    for slot in reversed(calendar_slots(times, len(known))):
        count = _sums(weight, slot)
        mean = np.where(count > 0, _sums(value, slot) / np.where(count > 0, count, 1.0), mean)
    return mean, weight


def fill(known: Observations, estimate: Cells) -> Cells:
    """Return estimates within the bounds; of a part of a period what was seen, and of the rest."""
    rest = np.where(known.exposure == 0, 0.0, 1 - np.nan_to_num(known.exposure, nan=0.5))
    return np.clip(estimate, known.lower, known.upper) + rest * estimate


# ---- words ----


def verdict_of(
    model: Any,
    rows: list[dict[str, Any]],
    estimates: dict[str, Cells],
    readings: dict[str, Cells],
    anew: Mask,
) -> tuple[str, ...]:
    """Return why the estimates of a model are not to be trusted, and what to do; else nothing.

    `estimates` are those of cells censored `anew`, by method; `readings` those of really censored
    ones.
    """
    known, times = model.observations_, model.training_.times
    censored = censored_cells(known)
    if not (model.use_censoring and censored.any()):
        return ()
    total = {row["method"]: row for row in rows if row["output"] == rows[-1]["output"]}
    own, day = total[THIS], _days(times, len(known))
    found: dict[str, str] = {}
    unclear = ""

    def ratio(cells: Cells, to: Float[np.ndarray, "N D"] | Mask) -> tuple[float, float]:
        """Return the ratio of two sums and its jackknife standard error, over days."""
        above, below = (np.bincount(day, each.sum(axis=1)) for each in (cells, to))
        size = max(float(below.sum()), 1e-300)
        value, others = float(above.sum()) / size, size - below
        # One day that has nearly all of a sum tells nothing: there the usual formula finds no
        # error, and the jackknife a great one.
        apart = np.full(len(below), np.inf)
        np.divide(above.sum() - above, others, out=apart, where=others > 1e-9 * size)
        return value, float(np.linalg.norm(apart - value))

    if anew.any():
        truth = np.where(anew, known.lower, 0.0)
        off = {name: np.where(anew, cells - truth, 0.0) for name, cells in estimates.items()}
        bias, noise = ratio(off[THIS], np.abs(truth))
        if abs(bias) > 0.1 + noise:
            wrong = "overestimated" if bias > 0 else "underestimated"
            found[f"where the truth is known, it is {wrong} by {abs(bias):.0%}"] = (
                f"{own['cells']} exact cells were censored anew, as the real ones are. The "
                f"estimates of them sum to {own['ratio']:.2f} times the truth."
            )
        elif abs(bias) > 0.1 and noise > 0.2:
            unclear = (
                "It cannot be told whether these estimates are to be trusted: those of "
                f"{own['cells']} exact cells that were censored anew sum to {own['ratio']:.2f} "
                "times the truth, which rests on few of them."
            )
        best = min(total, key=lambda name: total[name]["error"])
        gain, noise = ratio(np.abs(off[THIS]) - np.abs(off[best]), anew)
        if gain > CLEARLY * noise:
            found["a simple method does better"] = (
                f"The mean absolute error on cells censored anew is {own['error']:.3g} by this "
                f"model and {total[best]['error']:.3g} by {best}."
            )
    highest = np.max(np.where(known.is_missing, -np.inf, known.values()), axis=0)
    top = np.max(np.where(censored, readings[THIS], -np.inf), axis=0)
    positive = np.all((known.lower >= 0) | ~known.is_exact, axis=0) & (highest > 0)
    factor = np.where(positive, top / np.where(positive, highest, 1.0), 0.0)
    if factor.max() > 2:
        d = int(np.argmax(factor))
        found["estimates go far beyond what was ever recorded"] = (
            f"Output {quoted(known.names[d])} is estimated at up to {top[d]:.4g}; no more than "
            f"{highest[d]:.4g} was ever recorded of it."
        )
    limits = capacities(known)
    said = (
        "nothing was seen beyond this capacity. How far the truth goes beyond it rests on the "
        "likelihood alone, and intervals are right only if the likelihood is: compare several."
    )
    capped = [(known.names[d], f"{limits[d]:.4g}", said) for d in np.flatnonzero(limits < np.inf)]
    for reason in _grouped(capped):
        found["no record tells how far the truth goes beyond a capacity"] = reason
    # A capacity is reached on busy days, and does not depend on them. With substitution, other
    # outputs are busy because one is at its limit.
    right = known.is_right & np.isposinf(limits) & (model.substitution_ is None)
    if times is not None and right.any() and np.all(known.lower[known.is_exact] >= 0):
        seen, usual = (np.where(right, cells, 0.0) for cells in _neighbours(known, times))
        slot = calendar_slots(times, len(known))[0]
        count = _sums(known.is_exact, slot)
        alike = _sums(np.where(known.is_exact, known.lower, 0.0), slot) / np.maximum(count, 1)
        flagged, alike = (np.where(right & (count > 0), c, 0.0) for c in (known.lower, alike))
        (around, noise), (within, doubt) = ratio(seen, usual), ratio(flagged, alike)
        share = (
            f"What was recorded of flagged cells is {within:.0%} of exact cells of the same hours"
        )
        if around - 1 > max(0.05, CLEARLY * noise) or within - 1 > CLEARLY * doubt:
            found["flags go with demand"] = (
                f"{share}; around them (other outputs, the row before) it is {around:.0%} of what "
                "is usual. Limits that are reached on busy days may depend on demand themselves, "
                "and the model assumes that they do not."
            )
        elif within < 0.6 and any(k.support.discrete for k in model.training_.likelihoods):
            found["flagged counts look broken off"] = (
                f"{share}. A count that stopped at some moment is a bound that rises and falls "
                "with demand, which the model assumes not to be."
            )
    if not found:
        return (unclear, MORE) if unclear else ()
    lines = [f"Do not trust these estimates: {'; '.join(found)}.", *found.values()]
    if known.falls_short.any():
        lost = ", ".join(f"{row['lost']:,.0f} by {name}" for name, row in total.items())
        lines.append(
            f"Lost demand is {lost}. Where flags go with demand, exact cells are the quieter "
            "ones: a test on them is then hard on this model, simple methods are too low, and the "
            "truth is between."
        )
    if np.any(known.is_right & np.isposinf(limits)):
        lines.append(
            "If it is known for how long each output could be seen (minutes, a share of the "
            "period), pass it as exposure: that does not assume that limits are independent of "
            'demand. For counts that stopped at an unknown moment, pass exposure="unknown". Else '
            "report both readings, or take flagged cells for missing (NaN)."
        )
    return *lines, MORE


def warnings_of(model: Any, scores: Scores) -> tuple[str, ...]:
    """Return further problems, in sentences that say what could be done."""
    known = model.observations_
    # A model that ignores censoring does not extrapolate beyond the bounds.
    times = model.training_.times if model.use_censoring else None
    found = [] if model.report_.converged else [model.report_.message]
    found += censoring_cautions(known, times)
    if model.substitution_ is not None:
        found.append(
            "No exact cell was censored anew, as it is not known what would have moved to other "
            "outputs: estimates of censored cells are held against no truth. Cells held out are "
            "those of rows in which nothing moved."
        )
    if sum(scores[name]["cells"] for name in known.names) == 0:
        found.append(
            "No cell could be scored, as all were seen for a part of their period: nothing is "
            "known for or against the model. Some cells that were seen whole would tell."
        )
    discrete = any(k.support.discrete or k.support.atom for k in model.training_.likelihoods)
    return (
        *found,
        *_grouped(
            (n, *said)
            for n in known.names
            for said in _of_row(scores[n], discrete, model.heteroscedastic)
        ),
    )


def _grouped(found: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a sentence for each message, with all outputs that it is about and their figures."""
    by_message: dict[str, list[str]] = {}
    for name, figure, message in found:
        by_message.setdefault(message, []).append(f"{quoted(name)} ({figure})")
    said = []
    for message, names in by_message.items():
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        word = "Outputs" if len(names) > 1 else "Output"
        said.append(f"{word} {', '.join(names[:5])}{more}: {message}")
    return said


def _of_row(
    row: dict[str, float], discrete: bool, heteroscedastic: bool = False
) -> list[tuple[str, str]]:
    """Return what the scores of one output say against the model, as figures and sentences."""
    found, cells = [], max(1.0, row["cells"])
    noise = 2 * np.sqrt(LEVEL * (1 - LEVEL) / cells) + 0.02
    held = f"{row['coverage']:.0%}"
    if row["coverage"] < LEVEL - noise:
        varying = "" if heteroscedastic else "heteroscedastic=True, "
        found.append((
            held,
            f"too few of the cells held out are in their {LEVEL:.0%} intervals, which are too "
            f"narrow. Try {varying}a family with heavier tails (student_t, negative_binomial), or "
            "inputs that explain more.",
        ))  # fmt: skip
    # Intervals of counts are whole numbers, and hold more than they promise.
    if row["coverage"] > LEVEL + noise and not discrete:
        words = f"too many of the cells held out are in their {LEVEL:.0%} intervals"
        found.append((held, f"{words}, which are too wide."))
    if row["pit_deviation"] > 1.63 / np.sqrt(cells) + 0.03:
        shift = abs(row["pit_mean"] - 0.5) > 0.04
        what = f"too {'low' if row['pit_mean'] > 0.5 else 'high'} on the whole"
        words = f"predictions are {what if shift else 'miscalibrated'} for the cells held out. "
        figure = f"PIT {row['pit_deviation']:.2f} from uniform"
        found.append((figure, f"{words}Try another family with compare(...)."))
    # Where much is censored, exact cells are the low ones, and their mean is no fair rival.
    if row["r2"] < 0 and row["exact"] > 0.7 * cells:
        words = "exact cells held out would have been predicted better by their mean."
        found.append((f"R² {row['r2']:.2f}", f"{words} Are the inputs the right ones?"))
    return found


def censoring_cautions(known: Observations, times: Times | None = None) -> list[str]:
    """Return sentences on outputs whose level is not identified by their data."""
    # Two bounds identify the level, and so does what was seen in a part of a period.
    hidden, found = known.is_right | known.is_left, []
    for d, name in enumerate(known.names):
        seen = ~known.is_missing[:, d]
        share = float(hidden[seen, d].mean()) if seen.any() else 0.0
        if share > 0.5:
            said = (
                "most cells are censored. The level rests more on the model than on data: trust "
                "differences in time more than the level itself."
            )
            found.append((name, f"{share:.0%}", said))
        elif times is not None and (figure := _always_censored(hidden[seen, d], times[seen])):
            said = (
                "these are censored every time. What is said of the values there rests on other "
                "times and on the model, and goes too far beyond the bounds if the bounds rose and "
                "fell with the values."
            )
            found.append((name, figure, said))
    return _grouped(found)


def _always_censored(hidden: Bool[np.ndarray, " K"], times: Times) -> str:
    """Return how many hours of the week (of daily records: days) are always censored, if many."""
    slots, number = calendar_slots(times, len(times))[0], 168
    if daily := len(np.unique(slots % 24)) <= 1:
        slots, number = slots // 24, 7
    week = (times.astype("datetime64[D]").astype(np.int64) - weekday(times)) // 7
    weeks = np.bincount(np.unique(week * number + slots) % number, minlength=number)
    # Of fewer weeks it is chance.
    often = weeks >= 3
    always = often & (np.bincount(slots, ~hidden, number) == 0)
    by_chance = float(np.sum(hidden.mean() ** weeks[often])) if often.any() else 0.0
    # A few may be, and three times as many as random flags would make.
    if always.sum() <= max(0.05 * often.sum(), 3 * by_chance):
        return ""
    first, what = int(np.argmax(always)), "days" if daily else "hours"
    example = WEEKDAYS[first] if daily else f"{WEEKDAYS[first // 24]} {first % 24}:00"
    return f"{always.sum()} of {often.sum()} {what} of the week, such as {example}"


# ---- held-out days ----


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
    block = _days(times, rows)
    block = block if block.max() + 1 >= 2 * folds else np.arange(rows)
    count, rng = int(block.max()) + 1, np.random.default_rng(seed)
    dealt = [rng.permutation(np.arange(count) % folds)[block] for _ in range(outputs)]
    return np.stack(dealt, axis=1)


def _days(times: Times | None, rows: int) -> Codes:
    """Return the number of the day of each row; without times each row has its own."""
    if times is None:
        return np.arange(rows)
    return np.unique(times.astype("datetime64[D]"), return_inverse=True)[1]


def refit(model: Any, seen: Observations, held_out: Mask, afresh: bool = False) -> Posterior:
    """Fit to observations in model units without some cells, going on from the model or afresh."""
    training, posterior = model.training_, model.posterior_
    with interruptible(), float64():
        models, centre, settings = [posterior.model], posterior.centre, NaturalSettings()
        if afresh:
            lower = np.where(held_out, -np.inf, seen.lower)
            upper = np.where(held_out, np.inf, seen.upper)
            rest = dataclasses.replace(seen, lower=lower, upper=upper)
            left, values = (
                uncensored_values(each, posterior.model.likelihoods) for each in (rest, seen)
            )
            # An output of which nothing is left must start somewhere.
            left = np.where(np.isnan(left).all(axis=0), values, left)
            models, centre = starting_models(design_of(model, training), left), None
        elif model.engine == "natural" and model.max_iterations is not None:
            settings = NaturalSettings(max_iterations=model.max_iterations)
        task = make_task(model, training, models, seen, centre, held_out=held_out)
        # With substitution, messages that the fit ended with take the place of records.
        settings = dataclasses.replace(settings, learn=model.substitution_ is None)
        settings = with_points(settings, model.hyperparameters, "natural", task)
        # The other engines would take many times longer for about the same answer.
        posterior, result = infer("natural", task, settings)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return posterior


def cell_scores(prediction: Any, truth: Observations) -> dict[str, Cells]:
    """Return the figures of each cell that `scored` takes means of."""
    pit = metrics.pit(prediction, truth)
    return {
        "mean": prediction.mean,
        "nlpd": metrics.nlpd_cells(prediction, truth),
        "coverage": metrics.coverage_cells(prediction, truth, LEVEL)[2],
        "pit_lower": pit.lower,
        "pit_upper": pit.upper,
    }


def scored(cells: dict[str, Cells], truth: Observations) -> Scores:
    """Return scores by output, with a last row named "all".

    `cells` counts all cells that were scored, `exact` the exact ones. `nlpd` is the mean negative
    log probability of a cell (or of its bounds); `mae` and `r2` are of exact cells; `coverage` is
    the share of cells inside their intervals; `pit_deviation` is how far the probability integral
    transforms are from uniform.
    """
    exact, table = np.where(truth.is_exact, truth.lower, np.nan), {}
    for d, name in enumerate((*truth.names, "all")):
        own = slice(None) if d == len(truth.names) else slice(d, d + 1)
        each, values = {key: figures[:, own] for key, figures in cells.items()}, exact[:, own]
        pit = metrics.PIT(each["pit_lower"], each["pit_upper"])
        known = ~np.isnan(each["nlpd"])
        mean_of = partial(metrics.mean_of, known=known, per_output=False)
        table[name] = {
            "cells": int(known.sum()),
            "exact": int(truth.is_exact[:, own].sum()),
            "nlpd": mean_of(each["nlpd"]),
            "mae": metrics.mae(each["mean"], values),
            "r2": metrics.r2(each["mean"], values),
            "coverage": mean_of(each["coverage"]),
            "pit_mean": mean_of(pit.mid()),
            "pit_deviation": pit.deviation(),
        }
    return table
