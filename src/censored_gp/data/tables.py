"""The keys of a training table, kept with the model: to give results their rows, now and later.

What is kept is plain arrays, so that a file can hold it. As long as the program runs the table
itself is there too.

Named columns out of whatever a user has: arrays, lists, data frames and series of any make.

Both the inputs and the outputs of a model are read through here, so that a problem is reported in
one way: the column, the row, what was found, what is accepted and what to do.

Tables of any make: data frames of pandas, polars and pyarrow, and dicts of columns.

They are opened to take columns from, and results are made to be like them.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from narwhals.exceptions import DuplicateError

CELL = re.compile(r"(?P<column>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"), row (?P<row>\d+)")
"""How messages name a cell of a table, the column in quotes as Python has them."""


FLAG_WORDS = {
    **dict.fromkeys(("1", "1.0", "true", "t", "yes", "y"), 1),
    **dict.fromkeys(("0", "0.0", "false", "f", "no", "n"), 0),
    **dict.fromkeys(("-1", "-1.0"), -1),
}
"""What a flag may be in text, in small letters: in tables and in files."""


FIXED = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})(?::?\d{2})?|pytz.FixedOffset\((-?\d+)\)")
"""How zones that are always as far from UTC are called."""


class Column(NamedTuple):
    """One column as it came: numbers, datetime64 wall-clock times, or objects."""

    name: str
    values: Shaped[np.ndarray, " N"]
    zone: str | None = None


class Table(NamedTuple):
    """Columns of equal length; `named` tells whether the names are the user's own."""

    columns: tuple[Column, ...]
    named: bool
    noun: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


def listed(names: Iterable[str]) -> str:
    """Names in quotes, for messages."""
    return ", ".join(map(repr, names)) or "none"


def first_problem(
    bad: Bool[np.ndarray, "N D"], names: Sequence[str], noun: str
) -> tuple[int, int, str] | None:
    """Row, column and the beginning of a message for the first cell that is bad, if any is."""
    if not np.any(bad):
        return None
    row, column = (int(i) for i in np.argwhere(bad)[0])
    more = int(np.sum(bad)) - 1
    others = f" (and {more} more such cell{'s' if more > 1 else ''})" if more else ""
    return row, column, f"{noun} {names[column]!r}, row {row}{others}"


def read_table(
    data: Any,
    *,
    noun: str,
    prefix: str,
    alone: str,
    zones: Sequence[str | None] | None = None,
) -> Table:
    """Split `data` into named columns; a flat array, list or series is one column.

    A dict of columns by name is a table too.
    Columns without names are called `prefix` and their number; one that is flat, `alone`.
    Times with a zone are read as local wall-clock times, in `zones[c]` if that is given.
    """
    try:
        native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError as error:
        raise ValueError(f"{noun}s: {error}\nRename or drop the doubles.") from error
    named = isinstance(native, nw.DataFrame | Mapping)
    if isinstance(native, nw.Series | nw.DataFrame):
        series, names = _series_of(native, noun, alone)
    elif isinstance(native, Mapping):
        series, names = _columns_of(native, noun)
    else:
        series, names = _arrays_of(data, noun, prefix, alone)
    wanted = zones if zones is not None and len(zones) == len(names) else [None] * len(names)
    triples = zip(series, names, wanted, strict=True)
    return Table(tuple(_column(noun, *triple) for triple in triples), named, noun)


def shape_of(data: Any, noun: str) -> tuple[int, ...]:
    """The shape of an array, of a data frame, or of what reads as an array.

    >>> shape_of([[1, 2, 3], [4, 5, 6]], "Input")
    (2, 3)
    """
    # Not np.shape: array-likes need not implement numpy's functions.
    return tuple(data.shape) if hasattr(data, "shape") else _as_array(data, noun).shape


def as_numbers(column: Column, noun: str) -> Float[np.ndarray, " N"]:
    """The values as float64 with NaN where they are missing; everything else is refused."""
    if column.values.dtype.kind in "fiub":
        return column.values.astype(np.float64)
    if is_time(column):
        _refuse(noun, column, 0, "Accepted are numbers.")
    return np.array(
        [_as_number(value, column, row, noun) for row, value in enumerate(column.values)],
        dtype=np.float64,
    )


def is_time(column: Column) -> bool:
    """Whether the column holds time stamps."""
    return column.values.dtype.kind == "M"


def is_missing(value: Any) -> bool:
    """None, NaN, NaT and the missing values of data-frame packages."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.datetime64) and bool(np.isnan(value))


def _series_of(
    native: nw.Series | nw.DataFrame, noun: str, alone: str
) -> tuple[list[nw.Series], list[str]]:
    if isinstance(native, nw.Series):
        return [native], [alone if native.name in (None, "") else str(native.name)]
    names = [str(name) for name in native.columns]
    _check_names(names, noun)
    return [native[:, c] for c in range(len(names))], names


def _columns_of(data: Mapping[str, Any], noun: str) -> tuple[list[Any], list[str]]:
    """The columns of a dict, each an array, a list or a series, all of one length."""
    each = [nw.from_native(v, series_only=True, allow_series=True, pass_through=True) for v in
            data.values()]  # fmt: skip
    columns = [c if isinstance(c, nw.Series) else np.asarray(c) for c in each]
    sizes = [len(column) if np.ndim(column) == 1 else -1 for column in columns]
    if len(set(sizes)) > 1 or -1 in sizes:
        found = ", ".join(
            f"{name!r} {f'of {size} rows' if size >= 0 else 'that is not flat'}"
            for name, size in zip(data, sizes, strict=True)
        )
        raise ValueError(
            f"{noun}s: found the columns {found}. Accepted are flat columns of equal length."
        )
    return columns, [str(name) for name in data]


def _arrays_of(data: Any, noun: str, prefix: str, alone: str) -> tuple[list[np.ndarray], list[str]]:
    array = _as_array(data, noun)
    if array.ndim not in (1, 2):
        found = f"an array of shape {array.shape}" if array.ndim else f"{type(data).__name__}"
        raise ValueError(
            f"{noun}s: found {found}. Accepted are one column, a table of rows and columns, or a "
            "data frame (a lazy one after .collect()). Reshape the data, for example with "
            ".reshape(-1, 1)."
        )
    if array.ndim == 1:
        return [array], [alone]
    return list(array.T), [f"{prefix}{c}" for c in range(array.shape[1])]


def _as_array(data: Any, noun: str) -> Shaped[np.ndarray, "..."]:
    try:
        return np.asarray(data)
    except ValueError as error:  # numpy's way to refuse rows of different lengths
        rows = data if isinstance(data, Sequence) else ()
        sizes = [len(row) if isinstance(row, Sequence | np.ndarray) else 1 for row in rows]
        other = next((row for row, size in enumerate(sizes) if size != sizes[0]), None)
        found = f"what is no table: {error}"
        if other is not None:
            found = f"rows of unequal length, {sizes[0]} in row 0 and {sizes[other]} in row {other}"
        raise ValueError(
            f"{noun}s: found {found}. Accepted are arrays, lists of equally long rows, and data "
            "frames."
        ) from error


def _check_names(names: Sequence[str], noun: str) -> None:
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise ValueError(
            f"{noun}s: found the name {listed(doubles)} more than once among {listed(names)}. "
            "Names must differ: rename or drop the doubles."
        )


def _column(noun: str, values: nw.Series | np.ndarray, name: str, zone: str | None) -> Column:
    """One column in numpy: numbers, wall-clock times, or whatever else it holds."""
    if isinstance(values, nw.Series):
        return _from_series(noun, values, name, zone)
    first = next((v for v in values if not is_missing(v)), None) if values.dtype == object else None
    if isinstance(first, datetime.date | np.datetime64):
        return _from_time_objects(Column(name, values), noun, zone)
    return Column(name, values)


def _from_series(noun: str, series: nw.Series, name: str, zone: str | None) -> Column:
    dtype = series.dtype
    if dtype == nw.Decimal:
        # One by one: casting a whole column is off by a last bit here and there.
        numbers = [np.nan if value is None else float(value) for value in series.to_list()]
        return Column(name, np.array(numbers, dtype=np.float64))
    if dtype == nw.Boolean or dtype.is_numeric():
        return Column(name, series.cast(nw.Float64).to_numpy())
    if not isinstance(dtype, nw.Datetime) or dtype.time_zone is None:
        return _column(noun, series.to_numpy(), name, zone)
    foreign = zone not in (None, dtype.time_zone)
    here = series.dt.convert_time_zone(_known_zone(noun, name, zone).key) if foreign else series
    return Column(name, here.dt.replace_time_zone(None).to_numpy(), dtype.time_zone)


def _from_time_objects(column: Column, noun: str, zone: str | None) -> Column:
    """Python dates and datetimes as datetime64, on the wall clock of their (one) time zone."""
    times = np.full(len(column.values), "NaT", dtype="datetime64[us]")
    present = [row for row, value in enumerate(column.values) if not is_missing(value)]
    own = _zone_of(column.values[present[0]])
    rules = None if zone is None or own in (None, zone) else _known_zone(noun, column.name, zone)
    for row in present:
        value = column.values[row]
        if not isinstance(value, datetime.date | np.datetime64):
            _refuse(noun, column, row, "Accepted are times, as in the rows above it.")
        if _zone_of(value) != own:
            raise ValueError(
                f"{noun} {column.name!r}, row {row}: found a time in zone {_zone_of(value)}, after "
                f"times in zone {own}. Accepted is one zone per column. Convert the times to one "
                "named zone first."
            )
        times[row] = _wall_clock(value, rules)
    return Column(column.name, times, own)


def _wall_clock(value: Any, rules: ZoneInfo | None) -> Any:
    here = value if rules is None else value.astimezone(rules)
    return here.replace(tzinfo=None) if isinstance(here, datetime.datetime) else here


def _zone_of(value: Any) -> str | None:
    zone = getattr(value, "tzinfo", None)
    return None if zone is None else str(zone)


def _known_zone(noun: str, name: str, zone: str | None) -> ZoneInfo:
    """The rules of a named zone, to which other times can be converted.

    An offset is none: what is an hour off in winter would be taken for the same hour of the day.
    """
    try:
        return ZoneInfo(str(zone))
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{noun} {name!r}: found times in another zone than {zone}, and {zone} is not a named "
            'zone they could be converted to. Convert all times to one named zone ("UTC", '
            '"Europe/Copenhagen", ...) first.'
        ) from error


def zone_rules(zone: str) -> datetime.tzinfo:
    """The rules of a time zone: one that has a name, or is always as far from UTC.

    >>> [str(zone_rules(name)) for name in ("+02:00", "UTC-03:30", "Europe/Berlin")]
    ['UTC+02:00', 'UTC-03:30', 'Europe/Berlin']
    """
    fixed = FIXED.fullmatch(zone)
    if fixed is not None:
        minutes = int(fixed[4] or 60 * int(fixed[2] or 0) + int(fixed[3] or 0))
        ahead = datetime.timedelta(minutes=-minutes if fixed[1] == "-" else minutes)
        return datetime.timezone(ahead)
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            f'Time zone: found {zone!r}. Accepted are names such as "UTC" or '
            '"Europe/Copenhagen", and offsets such as "+02:00". Convert the times to one of these.'
        ) from error


def _as_number(value: Any, column: Column, row: int, noun: str) -> float:
    if is_missing(value):
        return np.nan
    try:
        if isinstance(value, complex | datetime.timedelta | np.timedelta64 | datetime.date):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return _refuse(noun, column, row, "Accepted are numbers.")


def _refuse(noun: str, column: Column, row: int, accepted: str) -> NoReturn:
    value = column.values[row]
    value = value.item() if isinstance(value, np.generic) else value
    advice = "Convert the column"
    if isinstance(value, str):
        advice = "Convert text to numbers or to datetimes, and categories to 0/1 columns"
    elif isinstance(value, datetime.timedelta | np.timedelta64):
        advice = "Divide durations by one hour, or another unit, to make them numbers"
    raise ValueError(
        f"{noun} {column.name!r}, row {row}: found {value!r} ({type(value).__name__}). {accepted} "
        f"{advice} first."
    )


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


Plain = Shaped[np.ndarray, " N"]


@dataclass(frozen=True)
class Kept:
    """A table as labels, arrays (times with a zone in UTC) and zones; the index likewise.

    An index of several levels has a tuple of each: names, arrays and zones.
    """

    make: Any
    rows: int
    labels: tuple[Any, ...]
    columns: tuple[Plain, ...]
    zones: tuple[str | None, ...]
    index: tuple[Any, Any, Any] = (None, None, None)
    native: Any = field(init=False, default=None, repr=False, compare=False)

    @classmethod
    def of(cls, data: Any) -> Kept:
        """Keep a table.

        >>> Kept.of({"station": ["a", "b"]}).table()
        {'station': ['a', 'b']}
        """
        table = open_table(data)
        raw = [table.raw(label, "Column") for label in table.labels]
        rows = len(data) if table.make == "pandas" else len(table)
        kept = cls(
            table.make, rows, tuple(table.labels), tuple(map(_storable_index, raw)),
            tuple(map(_zone, raw)), _index(table),
        )  # fmt: skip
        object.__setattr__(kept, "native", data)
        return kept

    def table(self) -> Any:
        """Return the table, or one like it if the model came from a file."""
        if self.native is not None:
            return self.native
        triples = zip(self.labels, self.columns, self.zones, strict=True)
        if self.make == "dict":
            return {label: column for label, column, _ in triples}
        made = {label: self._series(values, zone) for label, values, zone in triples}
        if self.make != "pandas":
            return nw.from_dict(made, backend=self.make).to_native() if made else self._empty()
        return self._pandas({label: series.to_native() for label, series in made.items()})

    def column(self, label: Any) -> Any:
        """Return a column in the table's own make; the index, if there is no such column.

        >>> Kept.of({"day": [1, 2]}).column("day")
        [1, 2]
        """
        table = self.table()
        if self.make != "pandas":
            return table[label]
        return table[label] if label in table.columns else table.index.to_series()

    def _series(self, values: Plain, zone: str | None) -> nw.Series:
        # pandas has no type for days: they were objects, and are again.
        days = values.dtype == "datetime64[D]" and self.make == "pandas"
        listed = values.tolist() if values.dtype.kind in "OU" or days else values
        series = nw.new_series("", listed, backend=self.make)
        return series if zone is None else in_zone(series, zone)

    def _empty(self) -> Any:
        return nw.from_dict({"": []}, backend=self.make).drop("").to_native()

    def _pandas(self, columns: dict[Any, Any]) -> Any:
        # Imported when asked for: the table was one of pandas, so that it should be there.
        import pandas as pd

        name, values, zone = self.index
        index = pd.RangeIndex(self.rows)
        if isinstance(values, tuple):
            pairs = zip(values, zone, strict=True)
            index = pd.MultiIndex.from_arrays([self._series(*pair).to_native() for pair in pairs])
        elif values is not None:
            index = pd.Index(self._series(values, zone).to_native())
        frame = pd.DataFrame({label: s.array for label, s in columns.items()}, index=index)
        frame.index.names = list(name) if isinstance(values, tuple) else [name]
        return frame


def _zone(column: Any) -> str | None:
    series = nw.from_native(column, series_only=True, pass_through=True)
    return getattr(series.dtype, "time_zone", None) if isinstance(series, nw.Series) else None


def _storable_index(column: Any) -> Plain:
    """Return a column as numbers, times or text."""
    values = plain(column)
    if values.dtype == object and len(values) and all(map(_is_day, values)):
        return values.astype("datetime64[D]")
    return values if values.dtype.kind in "biufM" else values.astype(str)


def _is_day(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _index(table: Opened) -> tuple[Any, Any, Any]:
    if table.make != "pandas":
        return None, None, None
    index = table.native.index
    if type(index).__name__ == "RangeIndex" and index.equals(type(index)(len(index))):
        return index.name, None, None
    levels = [index.get_level_values(k).to_series() for k in range(index.nlevels)]
    arrays, zones = tuple(map(_storable_index, levels)), tuple(map(_zone, levels))
    if index.nlevels > 1:
        return tuple(index.names), arrays, zones
    return index.name, arrays[0], zones[0]
