"""How much demand was lost, and how much supply would meet it: sums and peaks of joint draws.

The interval of a sum is not the sum of intervals: what is uncertain is uncertain for many cells
together. So cells are drawn jointly, draws are summed (or their peak is taken), and intervals are
read off the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.errors import listed
from censored_gp.data.inputs import Columns
from censored_gp.data.observations import Observations
from censored_gp.data.time import CALENDAR, duration_hours

EVERY = "all outputs"


FIGURES = (
    *("observed", "demand", "lost", "lost_low", "lost_high", "share", "share_low", "share_high"),
    *("cells", "censored"),
)
"""Columns of a table of lost demand, beside those of its groups."""


Table = dict[str, Any]
"""Columns by name, all of one length."""


Labels = Shaped[np.ndarray, "N D"]


class Groups(NamedTuple):
    """Cells put into G groups: the labels of each group, and the group of each cell."""

    labels: dict[str, Shaped[np.ndarray, " G"]]
    code: Int[np.ndarray, "N D"]
    count: int


def clock(columns: Columns, inputs: Float[np.ndarray, "N C"]) -> Shaped[np.ndarray, " N"]:
    """Return the time of each row by the wall clock, to the second.

    >>> times = np.array(["2024-06-03T08:30", "2024-06-04T09:00"], dtype="datetime64[m]")
    >>> from censored_gp.data.inputs import read_inputs
    >>> inputs, columns = read_inputs(times)
    >>> clock(columns, inputs)[1]
    np.datetime64('2024-06-04T09:00:00')
    """
    times = [c for c, is_time in enumerate(columns.is_time) if is_time]
    if not times:
        raise ValueError(
            f"The inputs ({listed(columns.names)}) have no column of times. Accepted is a model "
            "that was fitted with one. For groups or windows of your own give a label for each row."
        )
    origin = np.asarray(columns.origin[times[0]]).astype("datetime64[s]")
    seconds = np.round(inputs[:, times[0]] * 3600.0).astype(np.int64)
    return origin + seconds.astype("timedelta64[s]")


def group_cells(
    by: Any,
    names: Sequence[Any],
    times: Any,
    shape: tuple[int, int],
    output_label: str = "output",
    column: Any = None,
) -> Groups:
    """Put cells into groups: by output, by a part of their time, a column, or labels of their own.

    `times` is a function that returns the time of each row; it is called if it is needed. `column`
    is one that returns the label of every cell by the name of a column, None if there is no such.

    >>> groups = group_cells("output", ["a", "b"], None, (3, 2))
    >>> groups.labels, groups.count
    ({'output': array(['a', 'b'], dtype='<U1')}, 2)
    """
    if by is None:
        return Groups({}, np.zeros(shape, dtype=int), 1)
    known = _Known(names, times, shape, output_label, column or (lambda _: None))
    parts = by if isinstance(by, list | tuple) and known.are_names(by) else [by]
    labelled = [_part(part, known) for part in parts]
    coded = [_code(values, order) for _, values, order in labelled]
    sizes = [len(distinct) for distinct, _ in coded]
    flat = np.ravel_multi_index([code.reshape(-1) for _, code in coded], sizes)
    present, code = np.unique(flat, return_inverse=True)
    each = np.unravel_index(present, sizes)
    labels = {
        name: np.asarray(distinct)[index]
        for (name, _, _), (distinct, _), index in zip(labelled, coded, each, strict=True)
    }
    return Groups(labels, code.reshape(shape), len(present))


class _Known(NamedTuple):
    """What cells can be grouped by."""

    names: Sequence[Any]
    times: Any
    shape: tuple[int, int]
    output_label: str
    column: Any

    def are_names(self, by: Sequence[Any]) -> bool:
        """Whether a list has names in it, not a label for each row."""
        words = {*PARTS, self.output_label}
        each = all(isinstance(p, str) and (p in words or self.column(p) is not None) for p in by)
        return each or len(by) != self.shape[0]


def _part(by: Any, known: _Known) -> tuple[str, Labels, Any]:
    """Return the name of a grouping, the label of every cell, and the order of the labels."""
    shape = known.shape
    if isinstance(by, str) and by in ("output", known.output_label):
        each = np.broadcast_to(np.arange(shape[1]), shape)
        return known.output_label, each, np.asarray(known.names)
    if isinstance(by, str) and by in PARTS:
        values, order = PARTS[by](known.times())
        return by, np.broadcast_to(values[:, None], shape), order
    if isinstance(by, str):
        return by, _labels_of_column(by, known), None
    labels = np.asarray(by)
    if labels.shape == shape[:1]:
        return "group", np.broadcast_to(labels[:, None], shape), None
    if labels.shape != shape:
        raise ValueError(
            f"by: found labels of shape {labels.shape}. Accepted is one label for each of the "
            f"{shape[0]} rows, or names among {listed(PARTS)} and the columns of the table."
        )
    return "group", labels, None


def _labels_of_column(by: str, known: _Known) -> Labels:
    """Return the labels that a column has, or say that there is none."""
    labels = known.column(by)
    if labels is None:
        raise ValueError(
            f"by: found {by!r}. Accepted are {listed(PARTS)}, columns of the training table (of a "
            "model from a file: its time and inputs), a list of these, or an array with a label "
            "for each row."
        )
    if by in FIGURES:
        raise ValueError(
            f"by: found the column {by!r}, a name that a figure of the answer has. Give its "
            "values, as by=table[...], or rename it."
        )
    return labels


def _code(values: Labels, order: Any) -> tuple[Any, Int[np.ndarray, "N D"]]:
    """Return the distinct labels and their place for each cell."""
    if order is not None:
        return order, values
    distinct, code = np.unique(values, return_inverse=True)
    return distinct, code.reshape(values.shape)


PARTS: Mapping[str, Any] = {"output": None, **CALENDAR}
"""What cells can be grouped by: labels of the times, and their order if it is not their own."""


def lost_cells(known: Observations, draws: Float[np.ndarray, "S N D"]) -> Float[np.ndarray, "S R"]:
    """Return what was lost in each right-censored cell, from draws of what the cells were.

    >>> known = Observations.from_flags([[3.0], [5.0]], [[0], [1]])
    >>> lost_cells(known, np.array([[[3.0], [6.0]], [[3.0], [8.0]]]))
    array([[1.],
           [3.]])
    """
    right = known.is_right
    # Computing is in other units, so that a draw at its bound can come out a hair below it.
    return np.maximum(draws[:, right] - known.lower[right], 0.0)


def lost_demand(
    known: Observations,
    lost: Float[np.ndarray, "S R"],
    groups: Groups,
    probability: float = 0.9,
) -> Table:
    """Return observed and lost demand of each group, with intervals, from joint draws.

    `lost` are draws of what was lost in the R right-censored cells, in the order of rows. Cells
    of which no value was recorded (missing, or censored from below) are left out of all figures.

    >>> known = Observations.from_flags([[3.0], [5.0]], [[0], [1]])
    >>> groups = group_cells(None, "y", None, (2, 1))
    >>> table = lost_demand(known, np.array([[1.0], [2.0], [3.0]]), groups)
    >>> float(table["observed"][0]), float(table["lost"][0]), float(table["demand"][0])
    (8.0, 2.0, 10.0)
    """
    check_probability(probability)
    counted = known.is_exact | known.is_right
    members = np.zeros((lost.shape[1], groups.count))
    members[np.arange(len(members)), groups.code[known.is_right]] = 1.0
    total = lost @ members
    observed = _sums(np.where(counted, known.lower, 0.0), groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.nan_to_num(total / (observed + total), nan=0.0)
    ends = [(1 - probability) / 2, (1 + probability) / 2]
    return {
        **groups.labels,
        "observed": observed,
        "demand": observed + total.mean(axis=0),
        **_summary("lost", total, ends),
        **_summary("share", share, ends),
        "cells": _sums(counted, groups).astype(int),
        "censored": _sums(known.is_right, groups).astype(int),
    }


def _sums(cells: Shaped[np.ndarray, "N D"], groups: Groups) -> Float[np.ndarray, " G"]:
    return np.bincount(groups.code.ravel(), weights=cells.ravel(), minlength=groups.count)


def _summary(name: str, draws: Float[np.ndarray, "S G"], ends: Sequence[float]) -> Table:
    low, high = np.quantile(draws, ends, axis=0)
    return {name: draws.mean(axis=0), f"{name}_low": low, f"{name}_high": high}


def check_probability(probability: float) -> None:
    """Refuse what is not a probability between 0 and 1."""
    if not isinstance(probability, int | float | np.number) or not 0 < probability < 1:
        raise ValueError(
            f"probability: found {probability!r}. Accepted is a number between 0 and 1, as 0.9."
        )


def windows_of(
    window: Any, times: Any, rows: int
) -> tuple[Shaped[np.ndarray, " W"], Int[np.ndarray, " N"]]:
    """Return the labels of windows and the window of each row.

    A window is a duration ("6h", "1d": they start at midnight of the first day), a label for each
    row, or None for all rows together.

    >>> windows_of(["x", "y", "x"], None, 3)
    (array(['x', 'y'], dtype='<U1'), array([0, 1, 0]))
    """
    if window is None:
        return np.array(["all rows"]), np.zeros(rows, dtype=int)
    if not isinstance(window, str):
        labels = np.asarray(window)
        if labels.shape != (rows,):
            raise ValueError(
                f"window: found labels of shape {labels.shape}. Accepted is a duration such as "
                f'"6h" or "1d", or one label for each of the {rows} rows.'
            )
        distinct, code = np.unique(labels, return_inverse=True)
        return distinct, code
    seconds = round(3600 * duration_hours(window))
    when = times()
    midnight = when.min().astype("datetime64[D]").astype("datetime64[s]")
    number = (when - midnight).astype(np.int64) // seconds
    present, code = np.unique(number, return_inverse=True)
    return midnight + (present * seconds).astype("timedelta64[s]"), code


def required_supply(
    draws: Iterable[Float[np.ndarray, "S N D"]],
    windows: tuple[Shaped[np.ndarray, " W"], Int[np.ndarray, " N"]],
    asked: Bool[np.ndarray, "N D"],
    names: Sequence[Any],
    probability: float = 0.95,
    output_label: str = "output",
) -> Table:
    """Return what would meet demand with a probability: in its peak, and in sum, by window.

    >>> drawn = np.array([[[1.0], [3.0]], [[2.0], [2.0]]])
    >>> windows = windows_of(None, None, 2)
    >>> table = required_supply([drawn], windows, np.ones((2, 1), bool), ["a"], 0.95)
    >>> float(table["peak"][0]), float(table["sum"][0]), float(table["expected_sum"][0])
    (3.0, 4.0, 4.0)
    """
    check_probability(probability)
    labels, code = windows
    outputs = [d for d in range(len(names)) if asked[:, d].any()]
    parts = [_peaks_and_sums(part, code, len(labels), asked, outputs) for part in draws]
    peaks, sums = (np.concatenate(both) for both in zip(*parts, strict=True))
    shown = [names[d] for d in outputs] + ([EVERY] if len(outputs) > 1 else [])
    peak, total = (_quantile(values, probability) for values in (peaks, sums))
    return {
        "window": np.repeat(labels, len(shown)),
        output_label: np.array([str(name) for name in shown] * len(labels)),
        "peak": peak.reshape(-1),
        "sum": total.reshape(-1),
        "expected_peak": peaks.mean(axis=0).reshape(-1),
        "expected_sum": sums.mean(axis=0).reshape(-1),
    }


def _quantile(draws: Float[np.ndarray, "S W K"], level: float) -> Float[np.ndarray, "W K"]:
    # The next draw above: enough in at least that share of them, and whole where demand is.
    return np.quantile(draws, level, axis=0, method="inverted_cdf")


def _peaks_and_sums(
    draws: Float[np.ndarray, "S N D"],
    code: Int[np.ndarray, " N"],
    windows: int,
    asked: Bool[np.ndarray, "N D"],
    outputs: Sequence[int],
) -> tuple[Float[np.ndarray, "S W K"], Float[np.ndarray, "S W K"]]:
    """Return peak and sum of each output (and of all together, if several) in each window."""
    cells = np.where(asked, draws, 0.0)[:, :, outputs]
    if len(outputs) > 1:
        cells = np.concatenate([cells, cells.sum(axis=2, keepdims=True)], axis=2)
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(windows))
    ordered = cells[:, order]
    return np.maximum.reduceat(ordered, starts, axis=1), np.add.reduceat(ordered, starts, axis=1)
