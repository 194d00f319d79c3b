"""Tables of any make: data frames of pandas, polars and pyarrow, and dicts of columns.

They are opened to take columns from, and results are made to be like them.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int, Shaped
from narwhals.exceptions import DuplicateError

from censored_gp.tables import (
    Column,
    as_numbers,
    is_missing,
    is_time,
    listed,
    read_table,
    zone_rules,
)

__all__ = [
    "Opened",
    "ResultTable",
    "build",
    "group_labels",
    "in_zone",
    "is_table",
    "labels_of",
    "make_table",
    "names_of_ends",
    "open_table",
    "plain",
    "taken",
    "times_like",
]


@dataclass(frozen=True)
class Opened:
    """A table that columns are taken from: a data frame of any make, or a dict of columns."""

    native: Any
    table: Any
    """The same as narwhals has it, or the dict."""
    make: Any
    """"pandas", "polars", "pyarrow", ... or "dict"."""
    from_index: Any = None
    """The column that is a copy of the index."""

    @property
    def labels(self) -> list[Any]:
        """Names of the columns, as the table has them."""
        return list(self.table if self.make == "dict" else self.table.columns)

    def __len__(self) -> int:
        return len(next(iter(self.table.values()), ())) if self.make == "dict" else len(self.table)

    def has(self, label: Any) -> bool:
        """Whether there is such a column."""
        return isinstance(label, Hashable) and label in self.labels

    def raw(self, label: Any, noun: str) -> Any:
        """Return a column as the table holds it, an array, a list or a series."""
        if not self.has(label):
            raise ValueError(
                f"{noun}: found no column {label!r} in the table. It has "
                f"{listed(map(str, self.labels))}. Give one of these names."
            )
        return self.table[label] if self.make == "dict" else self.table[label].to_native()

    def column(self, label: Any, noun: str) -> Column:
        """Return a column in numpy."""
        read = read_table(self.raw(label, noun), noun=noun, prefix="", alone=str(label))
        return read.columns[0]._replace(name=str(label))

    def numbers(self, label: Any, noun: str) -> Float[np.ndarray, " N"]:
        """Return a column of numbers, NaN where missing."""
        return as_numbers(self.column(label, noun), noun)

    def select(self, labels: Sequence[Any]) -> Any:
        """Return some of the columns, in a table of the same make (and with the same index)."""
        if self.make == "dict":
            return {label: self.table[label] for label in labels}
        if self.make == "pandas":
            return self.native[list(labels)]
        return self.table.select(labels).to_native()


def open_table(data: Any) -> Opened:
    """Return the table, or say what is accepted as one."""
    if isinstance(data, Opened):
        return data
    if isinstance(data, Mapping):
        read_table(data, noun="Column", prefix="", alone="")
        return Opened(data, dict(data), "dict")
    try:
        table = nw.from_native(data, eager_only=True)
    except DuplicateError as error:
        raise ValueError(f"Table: {error}\nRename or drop the doubles.") from error
    except TypeError as error:
        raise ValueError(
            f"Table: found {type(data).__name__}. Accepted with outputs=... are a data frame "
            "(pandas, polars, pyarrow; a lazy one after .collect()) or a dict of columns by name."
        ) from error
    return Opened(data, table, str(table.implementation.value))


def is_table(data: Any) -> bool:
    """Whether the data have named columns.

    >>> is_table({"time": [1, 2]}), is_table([[1.0], [2.0]])
    (True, False)
    """
    if isinstance(data, Mapping | Opened):
        return True
    found = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    return isinstance(found, nw.DataFrame)


def labels_of(table: Opened, label: Any) -> list[Any]:
    """Return the output that each row of a long table is about."""
    raw = table.raw(label, "by")
    values: Shaped[np.ndarray, " N"] = (
        np.asarray(raw, dtype=object) if table.make == "dict" else table.table[label].to_list()
    )
    found = list(values)
    lost = next((row for row, value in enumerate(found) if is_missing(value)), None)
    if lost is not None:
        raise ValueError(
            f"Column {label!r}, row {lost}: found no output named. Accepted is a name in every "
            "row. Drop the row or fill in the name."
        )
    return [value.item() if isinstance(value, np.generic) else value for value in found]


def group_labels(table: Opened, label: Any) -> Shaped[np.ndarray, " N"]:
    """Return a column as labels of groups: whole numbers, times by the wall clock, or words.

    >>> group_labels(open_table({"store": [7.0, 8.0], "sky": ["wet", None]}), "store")
    array([7, 8])
    """
    column = table.column(label, "by")
    values = column.values if is_time(column) else plain(table.raw(label, "by"))
    if values.dtype.kind == "f" and np.all(np.isfinite(values) & (values == np.round(values))):
        return values.astype(np.int64)
    if values.dtype.kind != "O":
        return values
    return np.array(["missing" if is_missing(value) else str(value) for value in values])


def make_table(keys: Any, index: Int[np.ndarray, " K"] | None, columns: Mapping[Any, Any]) -> Any:
    """Return a table of the make of `keys`: some of its rows, with columns added to it.

    >>> make_table({"time": np.array([7, 8])}, np.array([1, 1]), {"a": np.array([0.5, 0.6])})
    {'time': array([8, 8]), 'a': array([0.5, 0.6])}
    """
    if isinstance(keys, Mapping):
        taken = {
            k: np.asarray(v) if index is None else np.asarray(v)[index] for k, v in keys.items()
        }
        return {**taken, **columns}
    frame = nw.from_native(keys, eager_only=True)
    if frame.implementation.is_pandas_like():
        own = keys if index is None else keys.iloc[index]
        kept = {label: own[label].array for label in own.columns}
        return type(own)({**kept, **columns}, index=own.index)
    # A frame without columns has no rows to take.
    own = frame if index is None or not frame.columns else frame[index.tolist()]
    made = {label: own[label] for label in own.columns}
    backend = frame.implementation
    for label, values in columns.items():
        made[label] = nw.new_series(str(label), np.asarray(values), backend=backend)
    return nw.from_dict(made, backend=backend).to_native()


def build(make: Any, columns: Mapping[Any, Any]) -> Any:
    """Return columns as a table of the given make.

    >>> build("dict", {"a": [1, 2]})
    {'a': array([1, 2])}
    """
    if make == "dict":
        return {label: np.asarray(values) for label, values in columns.items()}
    series = {str(label): v for label, v in columns.items() if isinstance(v, nw.Series)}
    made = {
        str(label): nw.new_series(str(label), _storable(values), backend=make)
        for label, values in columns.items()
        if str(label) not in series
    }
    # Series are added afterwards: pandas' would lose their time zone in from_dict.
    frame = nw.from_dict(made, backend=make).with_columns(*(v.alias(k) for k, v in series.items()))
    return frame.select(list(map(str, columns))).to_native()


def _storable(values: Any) -> Any:
    """Return values as every make of frame takes them: text as a list, the rest in numpy."""
    array = np.asarray(values)
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in ("s", "m", "h"):
        return array.astype("datetime64[us]")  # polars knows no coarser unit, but for days
    return array.tolist() if array.dtype.kind in "OU" else array


def plain(column: Any) -> Shaped[np.ndarray, " K"]:
    """Return a column in numpy, times with a zone as instants (in UTC)."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return column.values if isinstance(column, Column) else np.asarray(column)
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        return series.to_numpy()
    return np.array(series.to_list(), dtype=object)


def taken(column: Any, rows: Int[np.ndarray, " N"]) -> Any:
    """Return some rows of a column."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series[rows.tolist()].to_native()
    return np.asarray(column)[rows]


def times_of(table: Opened, label: Any) -> Any:
    """Return the column of times as the table holds it; of times in text, the times.

    >>> times_of(open_table({"t": ["2024-06-03 08:00", "2024-06-03 09:00"]}), "t")[1]
    datetime.datetime(2024, 6, 3, 9, 0)
    """
    raw, column = table.raw(label, "Time"), table.column(label, "Time")
    if is_time(column) or column.values.dtype.kind in "fiu":
        return raw
    made = np.empty(len(column.values), dtype=object)
    made[:] = [_as_time(value, row, label) for row, value in enumerate(column.values)]
    return made


def _as_time(value: Any, row: int, label: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return datetime.datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise ValueError(
            f"Time {label!r}, row {row}: found {value!r}. Accepted are times, numbers, and text "
            'such as "2024-06-03 08:00" or "2024-06-03T08:00+02:00". Convert the column to times '
            "first."
        ) from error


def names_of_ends(outputs: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """Return what the names of the columns of intervals end in, so that none is there already.

    >>> names_of_ends(["a", "b"], ["time"]), names_of_ends(["a", "a_low"], ["time"])
    (('_low', '_high'), ('_interval_low', '_interval_high'))
    """
    taken = {*outputs, *others}
    for ends in (("_low", "_high"), ("_interval_low", "_interval_high")):
        if not any(f"{name}{end}" in taken for name in outputs for end in ends):
            return ends
    clash = next(f"{n}{e}" for n in outputs for e in ends if f"{n}{e}" in taken)
    raise ValueError(
        f"Outputs: found {clash!r}, a name that the column of an interval would have. Accepted are "
        "outputs that do not end in _low or _high. Rename the column."
    )


def in_zone(instants: nw.Series, zone: str) -> nw.Series:
    """Return times that are in UTC as times of a zone."""
    # The name that a package of zones has for an offset is known to no other.
    named = str(zone_rules(zone)) if "FixedOffset" in zone else zone
    return instants.dt.replace_time_zone("UTC").dt.convert_time_zone(named)


def times_like(
    own: Any, make: Any, wall: Shaped[np.ndarray, " H"], instant: Any, zone: str | None
) -> Any:
    """Return new times in the way of a column `own`: with its zone, its unit, or days as days.

    >>> when = np.array(["2024-06-03T06"], dtype="datetime64[s]")
    >>> times_like(None, "dict", when, when, "Europe/Berlin")[0].isoformat()
    '2024-06-03T08:00:00+02:00'
    """
    if wall.dtype.kind != "M":
        kind = np.asarray(_first(own)).dtype.kind
        return wall.astype(int) if kind in "iu" and np.all(wall == np.round(wall)) else wall
    whole = np.all(wall == wall.astype("datetime64[D]"))
    days = wall.astype("datetime64[D]").astype(object) if whole else None
    series = nw.from_native(own, series_only=True, pass_through=True)
    if days is not None and type(_first(own)) is datetime.date:
        return days if make in (None, "dict", "pandas") else wall.astype("datetime64[D]")
    if make in (None, "dict"):
        return wall if zone is None else _aware(instant, zone)
    made = nw.new_series("", _storable(wall if zone is None else instant), backend=make)
    made = made if zone is None else in_zone(made, zone)
    typed = isinstance(series, nw.Series) and isinstance(series.dtype, nw.Datetime)
    return made.cast(series.dtype) if typed else made


def _first(column: Any) -> Any:
    """Return the first value of a column."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series[0] if len(series) else None
    return column[0] if column is not None and len(column) else None


def _aware(instants: Shaped[np.ndarray, " H"], zone: str) -> Shaped[np.ndarray, " H"]:
    """Return instants in UTC as times that know their zone."""
    rules, made = zone_rules(zone), np.empty(len(instants), dtype=object)
    each = instants.astype("datetime64[us]").tolist()
    made[:] = [time.replace(tzinfo=datetime.UTC).astimezone(rules) for time in each]
    return made


class ResultTable(list[dict[str, Any]]):
    """Rows of a result, each a dict by column: what there is where no data frame was given.

    >>> table = ResultTable.of({"output": ["a", "b"], "lost": [1.25, 10.0]})
    >>> table[1]["lost"], table.columns
    (10.0, ['output', 'lost'])
    >>> print(table)
    output  lost
    a       1.25
    b       10
    """

    @classmethod
    def of(cls, columns: dict[str, Any]) -> ResultTable:
        """Make rows of columns."""
        plain = [np.asarray(values).tolist() for values in columns.values()]
        return cls(dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self[0]) if self else []

    def __str__(self) -> str:
        shown = [self.columns] + [[_shown(value) for value in row.values()] for row in self]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in shown)
        return "\n".join(line.rstrip() for line in lines)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
