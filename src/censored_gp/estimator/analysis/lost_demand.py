"""How much demand was lost, and how much supply would meet it: sums and peaks of joint draws.

The interval of a sum is not the sum of intervals: what is uncertain is uncertain for many cells
together. So cells are drawn jointly, draws are summed (or their peak is taken), and intervals are
read off the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.errors import listed
from censored_gp.data.observations import Observations
from censored_gp.data.tables import group_labels, read_table
from censored_gp.data.time import CALENDAR, duration_hours
from censored_gp.estimator import training as data
from censored_gp.estimator.settings import check_probability, seed_of
from censored_gp.estimator.training import TrainingData
from censored_gp.inference.posterior import Posterior

PARTS = ("output", *CALENDAR)
"""What cells can be grouped by, beside columns of the training table."""

FIGURES = (
    *("observed", "demand", "lost", "lost_low", "lost_high", "share", "share_low", "share_high"),
    *("cells", "censored"),
)
"""Columns of a table of lost demand, beside those of its groups."""

EVERY = "all outputs"

NO_TIME = "The model has no input that is a time. Give a label for each row instead."

Labels = Shaped[np.ndarray, "N D"]


class Groups(NamedTuple):
    """Cells put into G groups: the labels of each group, and the group of each cell."""

    labels: dict[str, Shaped[np.ndarray, " G"]]
    code: Int[np.ndarray, "N D"]
    count: int


class Draws(NamedTuple):
    """Draws of lost demand: of which fit, how many by which seed, and what was drawn."""

    posterior: Posterior
    key: tuple[int, int]
    lost: Float[np.ndarray, "S R"]


LATEST: WeakKeyDictionary[Any, Draws] = WeakKeyDictionary()
"""The last draws of each model. They are not in it, so that no file or copy holds them."""


def lost_demand(
    model: Any, by: Any = None, probability: float = 0.9, samples: int = 500, seed: Any = None
) -> Any:
    """Return observed and lost demand by group, with intervals; see `CensoredGP.lost_demand`."""
    if not model.use_censoring:
        raise ValueError(
            "lost_demand needs a model that uses the bounds, such as HMOCGP, got one with "
            "use_censoring=False."
        )
    check_probability(probability)
    groups = group_cells(model.training_, by)
    drawn = draw_lost(model, samples, seed_of(seed, model.random_state, 0))
    return model.training_.table(summarise(model.observations_, drawn, groups, probability))


def draw_lost(model: Any, samples: int, seed: Any) -> Float[np.ndarray, "S R"]:
    """Draw what was lost in each right-censored cell, in the order of rows; kept for next time.

    A seed that is a generator makes other draws every time: they are not kept.
    """
    last = LATEST.get(model)
    if last and last.posterior is model.posterior_ and last.key == (samples, seed):
        return last.lost
    known, rows = model.observations_, np.any(model.observations_.is_right, axis=1)
    if not rows.any():
        return np.zeros((1, 0))
    right, recorded = known.is_right[rows], known.lower[known.is_right]
    parts = model.imputation(rows).sample_in_chunks(samples, seed)
    # Computing is in other units, so that a draw at its bound can come out a hair below it.
    lost = np.concatenate([np.maximum(part[:, right] - recorded, 0.0) for part in parts])
    if isinstance(seed, int):
        LATEST[model] = Draws(model.posterior_, (samples, seed), lost)
    return lost


def summarise(
    known: Observations, lost: Float[np.ndarray, "S R"], groups: Groups, probability: float = 0.9
) -> dict[str, Any]:
    """Return observed and lost demand of each group, with intervals, from joint draws.

    Cells of which no value was recorded (missing, or censored from below) are left out.
    """
    counted = known.is_exact | known.is_right
    members = np.zeros((lost.shape[1], groups.count))
    members[np.arange(len(members)), groups.code[known.is_right]] = 1.0
    total = lost @ members
    observed = _sums(np.where(counted, known.lower, 0.0), groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.nan_to_num(total / (observed + total), nan=0.0)
    table = {**groups.labels, "observed": observed, "demand": observed + total.mean(axis=0)}
    for name, draws in (("lost", total), ("share", share)):
        low, high = np.quantile(draws, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
        table |= {name: draws.mean(axis=0), f"{name}_low": low, f"{name}_high": high}
    table["cells"] = _sums(counted, groups).astype(int)
    table["censored"] = _sums(known.is_right, groups).astype(int)
    return table


def _sums(cells: Shaped[np.ndarray, "N D"], groups: Groups) -> Float[np.ndarray, " G"]:
    return np.bincount(groups.code.ravel(), weights=cells.ravel(), minlength=groups.count)


def group_cells(training: TrainingData, by: Any) -> Groups:
    """Put cells into groups: by output, a part of their time, a column, or labels of their own."""
    shape = training.observations.shape
    if by is None:
        return Groups({}, np.zeros(shape, dtype=int), 1)
    parts = by if isinstance(by, list | tuple) and _are_names(training, by) else [by]
    names, distinct, codes = zip(*(_grouping(training, part) for part in parts), strict=True)
    sizes = [len(each) for each in distinct]
    flat = np.ravel_multi_index([code.reshape(-1) for code in codes], sizes)
    present, code = np.unique(flat, return_inverse=True)
    index = np.unravel_index(present, sizes)
    labels = {
        name: np.asarray(each)[own] for name, each, own in zip(names, distinct, index, strict=True)
    }
    return Groups(labels, code.reshape(shape), len(present))


def _are_names(training: TrainingData, by: Sequence[Any]) -> bool:
    """Whether a list has names in it, not a label for each row."""
    words = {*PARTS, training.output_label}
    known = all(isinstance(p, str) and (p in words or _column(training, p) is not None) for p in by)
    return known or len(by) not in _lengths(training)


def _grouping(training: TrainingData, by: Any) -> tuple[str, Any, Int[np.ndarray, "N D"]]:
    """Return the name of a grouping, its distinct labels in order, and the code of each cell."""
    shape = training.observations.shape
    if isinstance(by, str) and by in ("output", training.output_label):
        code = np.broadcast_to(np.arange(shape[1]), shape)
        return training.output_label, np.asarray(training.labels), code
    name, labels, order = "group", None, None
    if isinstance(by, str) and by in CALENDAR:
        if training.times is None:
            raise ValueError(NO_TIME)
        parts, order = CALENDAR[by](training.times)
        name, labels = by, np.broadcast_to(parts[:, None], shape)
    elif isinstance(by, str):
        name, labels = by, _column(training, by)
    elif np.shape(by) == shape:
        labels = np.asarray(by)
    elif np.ndim(by) == 1 and len(by) in _lengths(training):
        labels = data.spread_labels(np.asarray(by), training.rows, shape)
    if labels is None or name in FIGURES:
        problem = "a name that a column of the answer has" if name in FIGURES else repr(by)
        raise ValueError(
            f"`by` must be among {listed(PARTS)}, columns of the training table (of a model from a "
            f"file: its time and inputs), a list of these, or one label for each of the {shape[0]} "
            f"rows, got {problem}."
        )
    if order is not None:
        return name, order, labels
    distinct, code = np.unique(labels, return_inverse=True)
    return name, distinct, code.reshape(shape)


def _lengths(training: TrainingData) -> set[int]:
    """Return how many labels there may be: one for each row of the model, or of a long table."""
    return {len(training.inputs)} | ({len(training.rows.row)} if training.rows else set())


def _column(training: TrainingData, name: str) -> Labels | None:
    """Return what a column of the training table has for each cell; None: no such column."""
    rows, columns, shape = training.rows, training.columns, training.observations.shape
    for table in () if rows is None else (rows.table, rows.index):
        if table is not None and table.has(name):
            return data.spread_labels(group_labels(table, name), rows, shape)
    if name not in columns.groups:
        return None
    values = read_table({name: columns.values(name, training.inputs)})
    return np.broadcast_to(group_labels(values, name)[:, None], shape)


def required_supply(
    model: Any,
    X: Any,
    probability: float = 0.95,
    window: Any = None,
    samples: int = 500,
    seed: Any = None,
) -> Any:
    """Return how much supply meets demand with a probability; see `CensoredGP.required_supply`."""
    check_probability(probability)
    training = model.training_
    inputs, rows = data.read_new(model, X)
    prediction = model.distribution_at(inputs)
    windows = windows_of(window, data.wall_clock(training.columns, inputs), len(inputs))
    asked = data.asked_cells(rows, prediction.shape)
    parts = prediction.sample_in_chunks(samples, seed_of(seed, model.random_state, 0))
    figures = peaks_and_sums(parts, windows[1], asked)
    outputs = [str(label) for d, label in enumerate(training.labels) if asked[:, d].any()]
    shown = outputs + [EVERY] * (len(outputs) > 1)
    starts = np.repeat(windows[0], len(shown))
    if isinstance(window, str):
        starts = training.timestamps(training.columns.is_time.index(True), starts)
    # The next draw above: enough in at least that share of them, and whole where demand is.
    peak, total = (np.quantile(f, probability, axis=0, method="inverted_cdf") for f in figures)
    return training.table(
        {
            "window": starts,
            training.output_label: np.array(shown * len(windows[0])),
            "peak": peak.reshape(-1),
            "sum": total.reshape(-1),
            "expected_peak": figures[0].mean(axis=0).reshape(-1),
            "expected_sum": figures[1].mean(axis=0).reshape(-1),
        }
    )


def windows_of(
    window: Any, times: Shaped[np.ndarray, " N"] | None, rows: int
) -> tuple[Shaped[np.ndarray, " W"], Int[np.ndarray, " N"]]:
    """Return the labels of windows and the window of each row.

    A window is a duration ("6h", "1d": they start at midnight of the first day), a label for each
    row, or None for all rows together.
    """
    if window is None:
        return np.array(["all rows"]), np.zeros(rows, dtype=int)
    if not isinstance(window, str):
        if np.shape(window) != (rows,):
            raise ValueError(
                '`window` must be a duration such as "6h" or "1d", or one label for each of the '
                f"{rows} rows, got labels of shape {np.shape(window)}."
            )
        distinct, code = np.unique(np.asarray(window), return_inverse=True)
        return distinct, code
    seconds = round(3600 * duration_hours(window))
    if times is None:
        raise ValueError(NO_TIME)
    midnight = times.min().astype("datetime64[D]").astype("datetime64[s]")
    present, code = np.unique((times - midnight).astype(np.int64) // seconds, return_inverse=True)
    return midnight + (present * seconds).astype("timedelta64[s]"), code


def peaks_and_sums(
    draws: Iterable[Float[np.ndarray, "S N D"]],
    code: Int[np.ndarray, " N"],
    asked: Bool[np.ndarray, "N D"],
) -> tuple[Float[np.ndarray, "S W K"], Float[np.ndarray, "S W K"]]:
    """Return peak and sum of each output that is asked for, and of several together, by window."""
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(code.max() + 1))
    peaks, sums = [], []
    for part in draws:
        cells = np.where(asked, part, 0.0)[:, order][:, :, asked.any(axis=0)]
        if cells.shape[2] > 1:
            cells = np.concatenate([cells, cells.sum(axis=2, keepdims=True)], axis=2)
        peaks.append(np.maximum.reduceat(cells, starts, axis=1))
        sums.append(np.add.reduceat(cells, starts, axis=1))
    return np.concatenate(peaks), np.concatenate(sums)
