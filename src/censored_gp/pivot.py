"""Rows of a long table put side by side: one row of the model for each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Int, Shaped

from censored_gp.natives import plain
from censored_gp.tables import is_missing

__all__ = ["rows_of_long"]

Whole = Int[np.ndarray, " K"]


def rows_of_long(
    columns: Mapping[Any, Any],
    output: Int[np.ndarray, " K"],
    time: Any = None,
    names: Sequence[Any] = (),
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " K"]]:
    """Return the first row of the table for each row of the model, and the latter for all.

    Rows of one time are one row of the model. Without a time, rows of equal inputs are; if an
    output has several of them, each makes a row of its own.

    >>> first, row = rows_of_long({"t": np.array([1, 0, 1])}, np.array([0, 0, 1]), "t", "ab")
    >>> first, row
    (array([1, 0]), array([1, 0, 1]))
    """
    values = {label: plain(column) for label, column in columns.items()}
    codes = {label: _codes(each, label) for label, each in values.items()}
    if time is None:
        alike = np.stack([*codes.values(), _occurrence([*codes.values(), output])], axis=1)
        _, first, row = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        return first, row.reshape(-1)
    _, first, row = np.unique(codes.pop(time), return_index=True, return_inverse=True)
    _refuse_twice(row, output, time, columns[time], names)
    for label, code in codes.items():
        _refuse_disagreeing(label, values[label], code, first[row], time)
    return first, row


def _occurrence(codes: Sequence[Whole]) -> Whole:
    """Return how often each row's combination of codes came before."""
    _, same = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    order = np.argsort(same.reshape(-1), kind="stable")
    ranks = np.arange(len(order))
    starts = np.r_[True, np.diff(same.reshape(-1)[order]) != 0]
    since = ranks - np.maximum.accumulate(np.where(starts, ranks, 0))
    return since[np.argsort(order, kind="stable")]


def _codes(values: Shaped[np.ndarray, " K"], label: Any) -> Whole:
    """Return whole numbers that are equal where the values of a column are, in their order."""
    if values.dtype == object:
        lost = np.array([is_missing(value) for value in values])
    else:
        lost = values != values  # NaN and NaT, of which none equals itself
    if np.any(lost):
        raise ValueError(
            f"Input {label!r}, row {int(np.argmax(lost))}: found no value. Accepted is one in "
            "every row. Drop the row or fill in the value."
        )
    text = values.astype(str) if values.dtype == object else values
    return np.unique(text, return_inverse=True)[1].astype(np.int64)


def _refuse_twice(row: Whole, output: Whole, time: Any, times: Any, names: Sequence[Any]) -> None:
    """Refuse two rows about one output at one time."""
    pair = row * (int(output.max()) + 1) + output
    _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse] != np.arange(len(pair)))
    if len(again):
        late, early = int(again[0]), int(first[inverse[again[0]]])
        more = f" ({len(again) - 1} more such rows)" if len(again) > 1 else ""
        raise ValueError(
            f"Time {str(time)!r}, row {late}: found {_shown(times, late)} of output "
            f"{names[output[late]]!r} again, after row {early}{more}. Accepted is one row for each "
            "output and time. Drop the doubles, or add them up first."
        )


def _shown(column: Any, row: int) -> str:
    """Return a value as the user's table has it: a time in its own zone."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    return str(series[row])


def _refuse_disagreeing(
    label: Any, values: Shaped[np.ndarray, " K"], code: Whole, first: Whole, time: Any
) -> None:
    """Refuse an input that is not the same for all outputs at one time."""
    other = np.flatnonzero(code != code[first])
    if len(other):
        late, early = int(other[0]), int(first[other[0]])
        raise ValueError(
            f"Input {label!r}, row {late}: found {values[late]!s}, but {values[early]!s} in row "
            f"{early} of the same {time}. Accepted are inputs that are the same for all outputs "
            "at one time. Average them, or give each output an input column of its own."
        )
