"""The facts that a report tells, gathered from a fitted model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from censored_gp.estimator.analysis.compare import MODELS, compare
from censored_gp.estimator.summary import paper_name
from censored_gp.plotting.calibration import LEVELS, coverage_curve, pit_bars
from censored_gp.plotting.lost import columns_of_table
from censored_gp.prediction import metrics
from censored_gp.report.problems import data_problems
from censored_gp.report.series import Series, series_of

__all__ = ["Calibration", "Facts", "Lost", "gather"]

MOST_CHECKED = 3000
"""Rows whose calibration is computed where none were held out."""
EVERY = "all outputs"


class Lost(NamedTuple):
    """Lost demand: in all, by output, and by output and hour or weekday."""

    total: dict[str, float]
    outputs: list[dict[str, Any]]
    hours: list[dict[str, Any]]
    weekdays: list[dict[str, Any]]


class Calibration(NamedTuple):
    """How predictions and cells agree: bars of transforms, and shares that intervals hold."""

    held_out: bool
    cells: int
    bars: Float[np.ndarray, " B"]
    coverage: Float[np.ndarray, " L"]
    levels: tuple[float, ...]
    outputs: list[dict[str, Any]]
    """By output: cells, coverage of 90 % intervals, deviation from uniform."""
    scores: list[dict[str, Any]]
    """Of a diagnosis: this model and simpler ones."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """All that a report tells."""

    title: str
    model: Any
    probability: float
    series: Series
    lost: Lost | None
    calibration: Calibration
    comparison: list[dict[str, Any]]
    problems: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [str(name) for name in self.model.output_names_]


def gather(
    model: Any,
    title: str | None,
    diagnosis: Any,
    folds: int | None,
    comparison: Any,
    problems: Sequence[str],
    probability: float,
    max_points: int,
    random_state: Any,
) -> Facts:
    """Ask the model all that a report tells."""
    if diagnosis is None and folds:
        diagnosis = model.diagnose(folds=folds)
    said = () if diagnosis is None else diagnosis.warnings
    found = (*problems, *data_problems(model), *said)
    return Facts(
        title or _title(model),
        model,
        probability,
        series_of(model, probability, max_points),
        _lost(model, probability, random_state),
        _calibration(model, diagnosis),
        _comparison(model, comparison),
        tuple(dict.fromkeys(found)),
    )


def _title(model: Any) -> str:
    names = [str(name) for name in model.output_names_]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"Behind the records: {shown}"


def records(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table of any make.

    >>> records({"a": np.array([1, 2])})
    [{'a': 1}, {'a': 2}]
    """
    columns = {name: values.tolist() for name, values in columns_of_table(table).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _lost(model: Any, probability: float, random_state: Any) -> Lost | None:
    """Return lost demand; None where nothing can have been lost, or the model heeds no bounds."""
    if not model.use_censoring or not model.observations_.is_right.any():
        return None

    def ask(by: Any) -> list[dict[str, Any]]:
        found = model.lost_demand(by=by, probability=probability, random_state=random_state)
        return records(found)

    label, parts = model._output_label(), {"hour": [], "weekday": []}
    if any(model.columns_.is_time):
        for part in parts:
            rows = ask(part)
            if len(rows) > 1:
                # The names of groups are the user's: the page has its own.
                both = [{**row, label: EVERY} for row in rows] + ask(["output", part])
                parts[part] = [{"output": str(row[label]), "group": row[part], **_figures(row)}
                               for row in both]  # fmt: skip
    total = ask(None)[0]
    each = [{"output": str(row[label]), **_figures(row)} for row in ask("output")]
    return Lost(total, each, parts["hour"], parts["weekday"])


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    kept = ("observed", "demand", "lost", "lost_low", "lost_high", "share", "share_low",
            "share_high", "cells", "censored")  # fmt: skip
    return {name: row[name] for name in kept}


def _calibration(model: Any, diagnosis: Any) -> Calibration:
    if diagnosis is None:
        count = len(model.observations_)
        rows = np.unique(np.linspace(0, count - 1, min(count, MOST_CHECKED)).astype(int))
        known = model.observations_.rows(rows)
        pit = metrics.pit(model._prediction(model._inputs[rows]), known)
        scores = []
    else:
        pit, scores = diagnosis.pit, records(diagnosis.rows)
    outputs = []
    for d, name in enumerate(model.output_names_):
        own = metrics.PIT(pit.lower[:, d : d + 1], pit.upper[:, d : d + 1])
        cells = int(np.sum(~np.isnan(own.lower)))
        held = float(coverage_curve(own, [0.9])[0]) if cells else float("nan")
        outputs.append(
            {"output": str(name), "cells": cells, "coverage": held, "deviation": own.deviation()}
        )
    cells = sum(row["cells"] for row in outputs)
    curve = coverage_curve(pit, LEVELS)
    return Calibration(diagnosis is not None, cells, pit_bars(pit), curve, LEVELS, outputs, scores)


def _comparison(model: Any, wanted: Any) -> list[dict[str, Any]]:
    """Return the rows of a comparison that is given, or that is made now."""
    if wanted is None or wanted is False:
        return []
    names = isinstance(wanted, list | tuple) and all(isinstance(name, str) for name in wanted)
    if wanted is not True and not names and not isinstance(wanted, str):
        return records(wanted)
    models = MODELS if wanted is True else wanted
    found = compare(
        _inputs_again(model), model.observations_, models=models, likelihoods=model.likelihood,
        settings={"engine": model.engine, "max_iterations": model.max_iterations},
    )  # fmt: skip
    for row in found:
        row["this"] = row["model"] == paper_name(model)
    return found


def _inputs_again(model: Any) -> dict[str, Any]:
    """Return the training inputs by name, as they were before they were read."""
    columns, known = model.columns_, model._inputs
    clock = model._clock() if any(columns.is_time) else None
    first = columns.is_time.index(True) if clock is not None else -1
    return {
        name: clock if c == first else known[:, c] + _origin(columns, c)
        for c, name in enumerate(columns.names)
    }


def _origin(columns: Any, c: int) -> float:
    return 0.0 if columns.is_time[c] else float(columns.origin[c])
