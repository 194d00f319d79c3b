"""Named columns out of whatever a user has: arrays, lists, data frames and series of any make.

Both the inputs and the outputs of a model are read through here, so that a problem is reported in
one way: the column, the row, what was found, what is accepted and what to do.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Shaped
from narwhals.exceptions import DuplicateError

__all__ = [
    "CELL",
    "FLAG_WORDS",
    "Column",
    "Table",
    "as_numbers",
    "first_problem",
    "is_missing",
    "is_time",
    "listed",
    "read_table",
    "shape_of",
    "zone_rules",
]

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
