"""From tables and arrays to the centred float64 matrix that kernels see.

Times become hours since the first training time, by the local wall clock: people keep their habits
by the clock on the wall, so that is what daily and weekly patterns follow. A time zone with summer
time therefore has one hour twice in autumn and one never in spring; for elapsed time convert to
UTC first. Numbers are shifted by their training mean and keep the user's unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.tables import Column, Table, as_numbers, first_problem, is_time, listed, read_table

__all__ = ["Columns", "duration_hours", "read_inputs"]

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
    the names are the user's own, to be found again in new data.
    """

    names: tuple[str, ...]
    is_time: tuple[bool, ...]
    origin: tuple[float | np.datetime64, ...]
    zones: tuple[str | None, ...] = ()
    named: bool = False

    def __post_init__(self) -> None:
        # Most inputs have no time zone, so that it need not be said.
        object.__setattr__(self, "zones", self.zones or (None,) * len(self.names))

    @classmethod
    def plain(cls, number: int) -> Columns:
        """Numbers without names: x0, x1, ... with their zero where it is."""
        names = tuple(f"x{c}" for c in range(number))
        return cls(names, (False,) * number, (0.0,) * number)

    def indices(
        self, wanted: Iterable[int | str] | None, *, asked_by: str = "a kernel"
    ) -> tuple[int, ...]:
        """The positions of the wanted columns, given by name or index; all of them for None."""
        if wanted is None:
            return tuple(range(len(self.names)))
        return tuple(self._index(column, asked_by) for column in wanted)

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

    def _index(self, column: int | str, asked_by: str) -> int:
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        if not isinstance(column, str | bool) and column in range(len(self.names)):
            return int(column)
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
    zones = None if columns is None else columns.zones
    table = read_table(X, noun="Input", prefix="x", alone="x0", zones=zones)
    if not table.columns or not len(table.columns[0].values):
        raise ValueError("Inputs: found no rows or no columns. Accepted is at least one of each.")
    table = table if columns is None else _checked_against(columns, table)
    known = _training_columns(table) if columns is None else columns
    pairs = zip(table.columns, known.origin, strict=True)
    return np.stack([_centred(column, origin) for column, origin in pairs], axis=1), known


def _training_columns(table: Table) -> Columns:
    return Columns(
        names=table.names,
        is_time=tuple(map(is_time, table.columns)),
        origin=tuple(map(_origin, table.columns)),
        zones=tuple(column.zone for column in table.columns),
        named=table.named,
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
    if len(table.columns) != len(columns.names):
        raise ValueError(
            f"Inputs: found {len(table.columns)} column(s) ({listed(table.names)}). Accepted are "
            f"the {len(columns.names)} of the training data: {listed(columns.names)}."
        )
    if table.named and columns.named and table.names != columns.names:
        raise ValueError(
            f"Inputs: found the columns {listed(table.names)}. Accepted are those of the training "
            f"data in their order: {listed(columns.names)}. Rename or reorder the columns."
        )
    pairs = zip(table.columns, columns.names, strict=True)
    named = tuple(column._replace(name=name) for column, name in pairs)
    for column, was_time, zone in zip(named, columns.is_time, columns.zones, strict=True):
        _check_kind(column, was_time, zone)
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
