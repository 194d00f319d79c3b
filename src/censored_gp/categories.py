"""Inputs that are words: text and categories become one 0/1 column for each category."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Shaped

from censored_gp.tables import Column, Table, is_missing, listed

__all__ = ["Levels", "are_words", "declared", "split"]

Levels = tuple[str, ...]
MOST_CATEGORIES = 50
"""More than these are names or free text, from which nothing can be learned about new rows."""


def declared(X: Any) -> set[str]:
    """Return the columns of a table that are categories by their type.

    >>> declared({"weather": ["dry", "wet"]})
    set()
    """
    native = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    columns: Mapping[Any, Any] = {}
    if isinstance(native, nw.DataFrame):
        columns = {name: native[name] for name in native.columns}
    elif isinstance(native, Mapping):
        columns = {
            name: nw.from_native(column, series_only=True, pass_through=True)
            for name, column in native.items()
        }
    kinds = (nw.Categorical, nw.Enum)
    return {str(k) for k, c in columns.items() if isinstance(getattr(c, "dtype", None), kinds)}


def are_words(values: Shaped[np.ndarray, " N"]) -> bool:
    """Whether a column is text of which nothing reads as a number or a date.

    >>> are_words(np.array(["dry", "wet"])), are_words(np.array(["1", "2"]))
    (True, False)
    """
    if values.dtype.kind not in "OUT":
        return False
    present = [value for value in values if not is_missing(value)]
    if not present or not all(isinstance(value, str) for value in present):
        return False
    return not any(_reads_otherwise(value) for value in dict.fromkeys(present))


def _reads_otherwise(text: str) -> bool:
    for reader in (float, datetime.datetime.fromisoformat):
        try:
            reader(text.strip())
        except ValueError:
            continue
        return True
    return False


def levels_of(column: Column) -> Levels:
    """Return the categories of a training column, sorted."""
    words = _words(column)
    found = tuple(sorted(set(words)))
    if len(found) > MOST_CATEGORIES:
        raise ValueError(
            f"Input {column.name!r}: found {len(found)} different words, such as "
            f"{listed(found[:3])}. Accepted are at most {MOST_CATEGORIES} categories. Put rare "
            "ones together, convert text to numbers or datetimes, or leave the column out."
        )
    return found


def split(column: Column, levels: Levels) -> list[Column]:
    """Return a 0/1 column for each category; one that is not among them is refused by name.

    >>> for part in split(Column("sky", np.array(["wet", "dry"])), ("dry", "wet")):
    ...     print(part.name, part.values)
    sky=dry [0. 1.]
    sky=wet [1. 0.]
    """
    words = _words(column)
    unknown = next((row for row, word in enumerate(words) if word not in levels), None)
    if unknown is not None:
        raise ValueError(
            f"Input {column.name!r}, row {unknown}: found the category {words[unknown]!r}, which "
            f"the training data do not have. Accepted are {listed(levels)}. Train on rows that "
            "have it, or replace it by one of these."
        )
    text = np.array(words)
    return [
        Column(f"{column.name}={level}", (text == level).astype(np.float64)) for level in levels
    ]


def _words(column: Column) -> list[str]:
    lost = next((row for row, value in enumerate(column.values) if is_missing(value)), None)
    if lost is not None:
        raise ValueError(
            f"Input {column.name!r}, row {lost}: found no category. Accepted is one in every row. "
            "Drop the row or fill in the value (outputs may be missing, inputs not)."
        )
    return [str(value) for value in column.values]


def in_training(table: Table, marked: set[str]) -> dict[str, Levels]:
    """Return the categories of each column of a named table that is made of words."""
    if not table.named:
        return {}
    return {
        column.name: levels_of(column)
        for column in table.columns
        if column.name in marked or are_words(column.values)
    }


def expand(columns: Sequence[Column], levels: Mapping[str, Levels]) -> list[Column]:
    """Return all columns, those of words split."""
    parts = [split(c, levels[c.name]) if c.name in levels else [c] for c in columns]
    return [column for part in parts for column in part]
