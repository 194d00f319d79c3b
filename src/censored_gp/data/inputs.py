"""From tables and arrays to the centred float64 matrix that kernels see.

Times become hours since the first training time, by the local wall clock: people keep their habits
by the clock on the wall, so that is what daily and weekly patterns follow. A time zone with summer
time therefore has one hour twice in autumn and one never in spring; for elapsed time convert to
UTC first. Numbers are shifted by their training mean and keep the user's unit. Words become one
0/1 column for each category that the training data have.

Inputs that are words: text and categories become one 0/1 column for each category.

How training inputs lie on their columns: spread, spacing and phase. Set-up code, in numpy.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.data.tables import (
    Column,
    Table,
    as_numbers,
    first_problem,
    is_missing,
    is_time,
    listed,
    read_table,
)

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


# Phases closer than this fraction of the period are one and the same: far above rounding error,
# far below anything a kernel can tell apart.
PHASE_TOLERANCE = 1e-9


def per_column(values: Float[np.ndarray, " K"]) -> Float[np.ndarray, "*L"]:
    """One value per column, or a plain number where there is one column only."""
    return values.reshape(()) if len(values) == 1 else values


def spread(X: Float[np.ndarray, "N K"]) -> Float[np.ndarray, "*L"]:
    """√K standard deviations per column (one where the column is constant).

    The √K keeps typical rows alike when the distances of many columns add up.
    """
    scale = np.sqrt(X.shape[1]) * np.std(X, axis=0)
    return per_column(np.where(np.ptp(X, axis=0) > 0.0, scale, 1.0))


def spacing(x: Float[np.ndarray, " N"]) -> float:
    """The typical (median) step between neighbouring distinct values; zero if there are none."""
    steps = np.diff(np.unique(x))
    return float(np.median(steps)) if len(steps) else 0.0


def phase(x: Float[np.ndarray, " N"], period: float) -> Float[np.ndarray, " N"]:
    """x modulo the period, equal for all x that differ by whole periods up to rounding.

    Neighbouring phases are merged rather than rounded to a grid: on a grid, two copies of a value
    that happens to lie on the border of two cells would be told apart.
    """
    cell = max(PHASE_TOLERANCE * period, 4.0 * float(np.spacing(np.max(np.abs(x), initial=0.0))))
    remainder = np.mod(x, period)
    # Just below a whole period is just below zero.
    remainder = np.where(remainder > period - cell, remainder - period, remainder)
    order = np.argsort(remainder)
    ordered = remainder[order]
    starts = np.diff(ordered, prepend=-np.inf) > cell
    merged = np.empty_like(remainder)
    merged[order] = np.round(ordered[starts] / cell)[np.cumsum(starts) - 1] * cell
    return np.maximum(merged, 0.0)


HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}


def duration_hours(duration: str) -> float:
    """The hours of a duration such as `"30min"`, `"1d"` or `"1.5h"`."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", str(duration))
    if match is None or match[2] not in HOURS:
        raise ValueError(
            f"{duration!r} is not a duration. Accepted is a number followed by one of "
            f'{", ".join(HOURS)}, such as "30min", "1d" or "7d".'
        )
    return float(match[1]) * HOURS[match[2]]


@dataclass(frozen=True)
class Columns:
    """What the columns of the inputs are called, which are times, and where each has its zero.

    The origin of a time is the first time stamp of the training data, on the wall clock of its
    zone (None for times without one); that of a number is its training mean. `named` tells whether
    the names are the user's own, to be found again in new data. A column of words is as many
    columns here as it has categories; `levels` then has the user's column and the category.
    """

    names: tuple[str, ...]
    is_time: tuple[bool, ...]
    origin: tuple[float | np.datetime64, ...]
    zones: tuple[str | None, ...] = ()
    named: bool = False
    levels: tuple[tuple[str, str] | None, ...] = ()

    def __post_init__(self) -> None:
        # Most inputs have no time zone and are not words, so that it need not be said.
        for name in ("zones", "levels"):
            object.__setattr__(self, name, getattr(self, name) or (None,) * len(self.names))

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Positions of each of the user's columns, by name and in their order."""
        found: dict[str, tuple[int, ...]] = {}
        for c, (name, level) in enumerate(zip(self.names, self.levels, strict=True)):
            source = name if level is None else level[0]
            found[source] = (*found.get(source, ()), c)
        return found

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of each of the user's columns that is made of words."""
        found: dict[str, tuple[str, ...]] = {}
        for level in self.levels:
            if level is not None:
                found[level[0]] = (*found.get(level[0], ()), level[1])
        return found

    def only(self, sources: Iterable[str]) -> Columns:
        """Some of the user's columns, in their order."""
        kept = [c for source in sources for c in self.groups[source]]

        def some(values: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(values[c] for c in kept)

        return Columns(
            some(self.names), some(self.is_time), some(self.origin), some(self.zones), self.named,
            some(self.levels),
        )  # fmt: skip

    @classmethod
    def plain(cls, number: int) -> Columns:
        """Numbers without names: x0, x1, ... with their zero where it is."""
        names = tuple(f"x{c}" for c in range(number))
        return cls(names, (False,) * number, (0.0,) * number)

    def values(self, source: str, inputs: Float[np.ndarray, "N C"]) -> Shaped[np.ndarray, " N"]:
        """What one of the user's columns held, from the inputs that were made of it.

        >>> inputs, columns = read_inputs({"sky": ["wet", "dry"], "heat": [1.5, 2.0]})
        >>> columns.values("sky", inputs).tolist(), columns.values("heat", inputs).tolist()
        (['wet', 'dry'], [1.5, 2.0])
        """
        places = self.groups[source]
        if self.levels[places[0]] is not None:
            origin = np.array([float(self.origin[c]) for c in places])
            return np.array(self.categories[source])[np.argmax(inputs[:, places] + origin, axis=1)]
        first = self.origin[places[0]]
        if isinstance(first, np.datetime64):
            seconds = np.round(inputs[:, places[0]] * 3600.0).astype("timedelta64[s]")
            return first.astype("datetime64[s]") + seconds
        # The last digits come from taking the mean away and adding it again.
        numbers = inputs[:, places[0]] + float(first)
        return np.array([float(f"{number:.12g}") for number in numbers])

    def indices(
        self, wanted: Iterable[int | str] | None, *, asked_by: str = "a kernel"
    ) -> tuple[int, ...]:
        """The positions of the wanted columns, given by name or index; all of them for None."""
        if wanted is None:
            return tuple(range(len(self.names)))
        return tuple(c for column in wanted for c in self._places(column, asked_by))

    def require_times(self, index: Iterable[int], *, asked_by: str, duration: str) -> None:
        """Refuse a duration on a column that is not a time."""
        for c in index:
            if not self.is_time[c]:
                times = [name for i, name in enumerate(self.names) if self.is_time[i]]
                raise ValueError(
                    f"{asked_by} gives the duration {duration!r}, but column {self.names[c]!r} "
                    f"holds numbers, not times. Give a number in the unit of the column, or look "
                    f"at a column of times ({listed(times)}) with columns=..."
                )

    def _places(self, column: int | str, asked_by: str) -> tuple[int, ...]:
        """The position of a column, or those of all categories of a column of words."""
        if isinstance(column, str) and column in self.names:
            return (self.names.index(column),)
        if isinstance(column, str) and column in self.groups:
            return self.groups[column]
        if not isinstance(column, str | bool) and column in range(len(self.names)):
            return (int(column),)
        raise ValueError(
            f"{asked_by} looks at column {column!r}, which is not there. The inputs have "
            f"{listed(self.names)}. Give one of these names, or an index from 0 to "
            f"{len(self.names) - 1}."
        )


def read_inputs(X: Any, columns: Columns | None = None) -> tuple[Float[np.ndarray, "N C"], Columns]:
    """The centred inputs, and what is needed to read new data in the same way.

    Without `columns` these are training data, which set the origins; with them, new data are
    checked against the training data and use the origins of those. A flat array is one column.
    """
    sources = None if columns is None else columns.groups.values()
    zones = None if columns is None or sources is None else [columns.zones[c[0]] for c in sources]
    table = read_table(X, noun="Input", prefix="x", alone="x0", zones=zones)
    if not table.columns or not len(table.columns[0].values):
        raise ValueError("Inputs: found no rows or no columns. Accepted is at least one of each.")
    if columns is None:
        levels = in_training(table, declared(X))
        known = _training_columns(table, levels)
    else:
        table, known, levels = _checked_against(columns, table), columns, columns.categories
    pairs = zip(expand(table.columns, levels), known.origin, strict=True)
    return np.stack([_centred(column, origin) for column, origin in pairs], axis=1), known


def _training_columns(table: Table, levels: dict[str, Levels]) -> Columns:
    expanded = expand(table.columns, levels)
    each = [[(c.name, k) for k in levels[c.name]] if c.name in levels else [None]
            for c in table.columns]  # fmt: skip
    return Columns(
        names=tuple(column.name for column in expanded),
        is_time=tuple(map(is_time, expanded)),
        origin=tuple(map(_origin, expanded)),
        zones=tuple(column.zone for column in expanded),
        named=table.named,
        levels=tuple(level for levels_ in each for level in levels_),
    )


def _origin(column: Column) -> float | np.datetime64:
    values = _checked(column)
    return np.min(values) if is_time(column) else float(np.mean(values))


def _checked(column: Column) -> Shaped[np.ndarray, " N"]:
    """Times or float64 numbers, none of them missing or infinite."""
    values = column.values if is_time(column) else as_numbers(column, "Input")
    bad = np.isnat(values) if is_time(column) else ~np.isfinite(values)
    problem = first_problem(bad[:, None], [column.name], "Input")
    if problem is None:
        return values
    row, _, place = problem
    if is_time(column):
        raise ValueError(
            f"{place}: found a missing time. Accepted are times in every row. Drop the row or "
            "fill in its time."
        )
    found = "NaN" if np.isnan(values[row]) else f"{values[row]:g}"
    raise ValueError(
        f"{place}: found {found}. Accepted are finite numbers in every row. Drop the row or fill "
        "in the value (outputs may be missing, inputs not)."
    )


def _centred(column: Column, origin: float | np.datetime64) -> Float[np.ndarray, " N"]:
    values = _checked(column)
    return hours_since(values, origin) if isinstance(origin, np.datetime64) else values - origin


def hours_since(times: Shaped[np.ndarray, " N"], origin: np.datetime64) -> Float[np.ndarray, " N"]:
    """Hours from the origin to each time.

    Whole days and the time of day are subtracted apart, so that no unit overflows and hourly times
    are whole hours, however far from 1970.
    """
    days, first_day = times.astype("datetime64[D]"), origin.astype("datetime64[D]")
    time_of_day = (times - days) - (origin - first_day)
    return 24.0 * (days - first_day).astype(np.int64) + time_of_day / np.timedelta64(1, "h")


def _checked_against(columns: Columns, table: Table) -> Table:
    """New data under the names of the training data, refused if their columns are other ones."""
    groups = columns.groups
    if len(table.columns) != len(groups):
        raise ValueError(
            f"Inputs: found {len(table.columns)} column(s) ({listed(table.names)}). Accepted are "
            f"the {len(groups)} of the training data: {listed(groups)}."
        )
    if table.named and columns.named and table.names != tuple(groups):
        raise ValueError(
            f"Inputs: found the columns {listed(table.names)}. Accepted are those of the training "
            f"data in their order: {listed(groups)}. Rename or reorder the columns."
        )
    pairs = zip(table.columns, groups, strict=True)
    named = tuple(column._replace(name=name) for column, name in pairs)
    for column, places in zip(named, groups.values(), strict=True):
        _check_kind(column, columns.is_time[places[0]], columns.zones[places[0]])
    return table._replace(columns=named)


def _check_kind(column: Column, was_time: bool, zone: str | None) -> None:
    if is_time(column) != was_time:
        found, accepted = ("times", "numbers") if is_time(column) else ("no times", "times")
        raise ValueError(
            f"Input {column.name!r}: found {found}. Accepted are {accepted}, as in the training "
            "data. Convert the column."
        )
    if (column.zone is None) != (zone is None):
        found = "without a time zone" if column.zone is None else f"in zone {column.zone}"
        accepted = "without a time zone" if zone is None else f"in zone {zone}, or any other zone"
        raise ValueError(
            f"Input {column.name!r}: found times {found}. Accepted are times {accepted}, as in the "
            "training data. Add or remove the zone."
        )
