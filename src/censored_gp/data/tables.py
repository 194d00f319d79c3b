"""Tables: any frame, dict or file becomes one `Table` of Arrow columns, and results go back alike.

A `Table` remembers what it came from (pandas, polars, pyarrow, a dict, a file), so that a result
can be of the same kind, with the same index, time zones and units. Numbers, flags, times and words
are taken from its columns here, for tables and arrays alike, and what cannot be read is refused by
column and row.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float, Int, Shaped
from narwhals.exceptions import DuplicateError

from censored_gp.data.errors import DataError, did_you_mean, listed, quoted, refuse
from censored_gp.data.time import resolve_repeated, skipped, wall_clock, zone_name, zone_rules

FLAG_WORDS = {
    **dict.fromkeys(("1", "1.0", "1,0", "true", "t", "yes", "y"), 1.0),
    **dict.fromkeys(("0", "0.0", "0,0", "false", "f", "no", "n"), 0.0),
    **dict.fromkeys(("-1", "-1.0", "-1,0"), -1.0),
}
"""Flags in text, in lower case."""

ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}(?::\d{2}(?::\d{2}(?:\.\d+)?)?)?))?"
    r"\s*(Z|z|[+-]\d{2}(?::?\d{2})?)?"
)
"""A time in text, as ISO 8601 has it: day, time of day, zone."""

DAY_IN_DIGITS = re.compile(r"(18|19|20|21)\d{2}[01]\d[0-3]\d")
"""A day without separators, of a year from 1800 to 2199."""

UNNAMED_INDEX = "__index_level_0__"
"""What pyarrow calls an index of pandas that has no name."""

Numbers = Float[np.ndarray, " N"]


class Column(NamedTuple):
    """One column in numpy: float64 numbers, wall-clock datetime64 times, or text objects."""

    name: str
    values: Shaped[np.ndarray, " N"]
    zone: str | None = None
    is_category: bool = False
    """Whether the type of the column says that it holds categories."""
    decimal: str = "."

    @property
    def is_time(self) -> bool:
        """Whether the column holds time stamps."""
        return self.values.dtype.kind == "M"

    @property
    def is_text(self) -> bool:
        """Whether the column holds text."""
        return self.values.dtype.kind == "O"

    def numbers(self, noun: str) -> Numbers:
        """Return float64 numbers, NaN where missing; text must read as numbers."""
        if self.is_time:
            refuse_value(self.values[0].item(), 0, self.name, noun)
        if not self.is_text:
            return self.values
        text = pa.array(self.values, pa.string())
        return _parse_numbers(text, self.name, noun, self.decimal)

    def flags(self, noun: str) -> Numbers:
        """Return flags as 1, 0, -1 and NaN; words such as yes and false are read."""
        if not self.is_text:
            return self.numbers(noun)
        words = ["" if value is None else value.strip().lower() for value in self.values]
        found = [np.nan if not word else FLAG_WORDS.get(word, np.inf) for word in words]
        numbers = np.array(found, dtype=np.float64)
        refuse(
            np.isposinf(numbers),
            self.name,
            noun,
            lambda row, _: f"got {self.values[row]!r}.",
            "A flag is true, yes or 1 (censored), or false, no or 0 (exact).",
        )
        return numbers


@dataclass(frozen=True)
class Table:
    """A `pyarrow.Table`, and what it came from.

    >>> table = read_table({"time": [1, 2], "bikes": ["3", None]})
    >>> table.names, table.backend, table.numbers("bikes", "Output").tolist()
    (('time', 'bikes'), 'dict', [3.0, nan])
    """

    arrow: pa.Table
    backend: str = "pyarrow"
    """"pandas", "polars", "pyarrow", ... or "dict"."""
    file: Any = dataclasses.field(default=None, compare=False)
    """The `files.File` that the table was read from, if any."""
    file_rows: Int[np.ndarray, " N"] | None = dataclasses.field(default=None, compare=False)
    """The rows of the file that are there; None: all."""

    def __len__(self) -> int:
        return self.arrow.num_rows

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a pandas frame."""
        metadata = self.arrow.schema.pandas_metadata if self.backend == "pandas" else None
        return tuple(metadata["index_columns"]) if metadata else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, without the index."""
        return tuple(name for name in self.arrow.column_names if name not in self.index)

    def has(self, name: Any) -> bool:
        """Whether there is such a column (or index)."""
        return self._key(name) in self.arrow.column_names

    def _key(self, name: Any) -> str:
        """Return what pyarrow calls a column; "index" is an index without a name."""
        return UNNAMED_INDEX if name == "index" and name not in self.names else str(name)

    def array(self, name: Any, noun: str) -> pa.ChunkedArray:
        """Return a column as pyarrow has it."""
        if not self.has(name):
            raise DataError(
                f"got no column {quoted(name)}. The table has {listed(self.names)}.",
                noun=noun,
                column=None,
                hint=did_you_mean(name, self.names),
            )
        return self.arrow[self._key(name)]

    def column(self, name: Any, noun: str, zone: str | None = None) -> Column:
        """Return a column in numpy; times by the wall clock of their zone, or of the given one."""
        column = from_arrow(self.array(name, noun), str(name), noun, zone)
        return column._replace(decimal=self.decimal)

    @property
    def decimal(self) -> str:
        """The decimal sign of numbers in text."""
        return "." if self.file is None else self.file.decimal

    def numbers(self, name: Any, noun: str) -> Numbers:
        """Return a column of numbers, NaN where missing."""
        array = _plain(self.array(name, noun))
        if pa.types.is_string(array.type):
            return _parse_numbers(array, str(name), noun, self.decimal)
        return self.column(name, noun).numbers(noun)

    def labels(self, name: Any, noun: str = "Column") -> list[Any]:
        """Return the values of a column that names something in every row."""
        array = _plain(self.array(name, noun))
        values = [v.strip() if isinstance(v, str) else v for v in array.to_pylist()]
        refuse(
            np.array([is_missing(value) for value in values], dtype=bool),
            str(name),
            noun,
            "got no value. There must be a name in every row.",
            "Drop the row or fill in the name.",
        )
        return values

    def select(self, names: Iterable[Any]) -> Table:
        """Return some of the columns, and the index."""
        keys = dict.fromkeys([*(self._key(name) for name in names), *self.index])
        return dataclasses.replace(self, arrow=self.arrow.select(list(keys)))

    def take(self, rows: Int[np.ndarray, " K"]) -> Table:
        """Return some of the rows."""
        of_file = rows if self.file_rows is None else self.file_rows[rows]
        return dataclasses.replace(self, arrow=self.arrow.take(rows), file_rows=of_file)

    def only(self, name: Any, wanted: Sequence[Any]) -> Table:
        """Return the rows in which a column has one of the wanted values; each must be there."""
        words = [str(value) for value in self.array(name, "Column").to_pylist()]
        absent = [value for value in map(str, wanted) if value not in set(words)]
        if absent:
            raise DataError(
                f"got no row with {quoted(absent[0])}, but with {listed(dict.fromkeys(words))}.",
                noun="Column",
                column=str(name),
                file=None if self.file is None else self.file.name,
            )
        kept = set(map(str, wanted))
        return self.take(np.flatnonzero([word in kept for word in words]))

    def with_column(self, name: Any, values: Any) -> Table:
        """Return the table with a column added, or exchanged."""
        key, array = self._key(name), to_arrow(values)
        if key in self.arrow.column_names:
            place = self.arrow.column_names.index(key)
            return dataclasses.replace(self, arrow=self.arrow.set_column(place, key, array))
        return dataclasses.replace(self, arrow=self.arrow.append_column(key, array))

    def with_times(self, name: Any, zone: str | None = None, by: Any = None) -> Table:
        """Return the table with a column of times in place of text, and in a zone if one is given.

        Of an hour that a zone has twice the second comes second, among the rows of a group `by`.
        Days such as 20240603 are times too; other numbers stay.
        """
        array = _plain(self.array(name, "Time"))
        is_whole = pa.types.is_integer(array.type)
        if pa.types.is_string(array.type) or is_whole:
            array = _parse_times(array.cast(pa.string()), str(name), zone, self.decimal, is_whole)
        if zone is None or not pa.types.is_temporal(array.type):
            return (
                self
                if is_whole and not pa.types.is_temporal(array.type)
                else (self.with_column(name, array))
            )
        if getattr(array.type, "tz", None) is not None:
            return self.with_column(name, array.cast(pa.timestamp(array.type.unit, tz=zone)))
        walls = from_arrow(array, str(name), "Time").values.astype("datetime64[us]")
        refuse(
            skipped(walls, zone),
            str(name),
            "Time",
            lambda row, _: (
                f"got {str(walls[row]).replace('T', ' ')[:19]}, which clocks of {zone} "
                "skip as summer time begins."
            ),
            "Delete the row, or name no zone if the times are not by these clocks.",
        )
        groups = None if by is None or not self.has(by) else self.array(by, "by").to_pylist()
        return self.with_column(name, aware_times(resolve_repeated(walls, zone, groups), zone))

    def locate(self, error: DataError) -> DataError:
        """Return an error about a row as one about a line of the file, if there is a file."""
        if self.file is None or error.file is not None:
            return error
        row, line = error.row, None
        if row is not None:
            line = self.file.line(row if self.file_rows is None else int(self.file_rows[row]))
        return error.at(file=self.file.name, line=line)

    def native(self) -> Any:
        """Return the table as what it came from."""
        return _native(self.arrow, self.backend)

    def to_bytes(self) -> Shaped[np.ndarray, " B"]:
        """Return the table as bytes in Arrow's IPC format."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.arrow.schema) as writer:
            writer.write_table(self.arrow)
        return np.frombuffer(sink.getvalue(), dtype=np.uint8)

    @classmethod
    def from_bytes(cls, content: Shaped[np.ndarray, " B"], backend: str) -> Table:
        """Return the table that `to_bytes` has written."""
        return cls(pa.ipc.open_stream(pa.py_buffer(content.tobytes())).read_all(), backend)


def is_table(data: Any) -> bool:
    """Whether the data have named columns.

    >>> is_table({"time": [1, 2]}), is_table([[1.0], [2.0]])
    (True, False)
    """
    if isinstance(data, Mapping | Table):
        return True
    try:
        found = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError:
        return True
    return isinstance(found, nw.DataFrame)


def read_table(data: Any, noun: str = "Table") -> Table:
    """Return a data frame, a dict of columns, or the file at a path as a table."""
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path):
        # A section of its own that few tables need.
        from censored_gp.data.files import read_file

        return read_file(data)
    if isinstance(data, Mapping):
        return Table(_from_mapping(data, noun), "dict")
    try:
        frame = nw.from_native(data, eager_only=True)
    except DuplicateError as error:
        raise DataError(_doubles(data, error), noun=noun) from error
    except TypeError as error:
        raise DataError(
            f"got {type(data).__name__}. It must be a data frame (pandas, polars, pyarrow; a lazy "
            "one after .collect()), a dict of columns by name, or the path of a file.",
            noun=noun,
        ) from error
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise DataError(_doubles(frame, None), noun=noun)
    backend = str(frame.implementation.value)
    if frame.implementation.is_pandas():
        return Table(_from_pandas(data, names, noun), backend)
    return Table(frame.to_arrow().rename_columns(names), backend)


def _doubles(data: Any, error: Exception | None) -> str:
    names = [str(name) for name in data.columns] if hasattr(data, "columns") else []
    doubles = list(dict.fromkeys(name for name in names if names.count(name) > 1))
    found = f"the name {listed(doubles)} more than once among {listed(names)}"
    return f"got {found if doubles else error}. Names must differ: rename or drop a column."


def _from_pandas(frame: Any, names: list[str], noun: str) -> pa.Table:
    frame = frame.set_axis(names, axis=1)
    try:
        # The index is kept as columns, so that rows can be taken from it.
        return pa.Table.from_pandas(frame, preserve_index=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
        pass
    mixed = {n: _mixed_column(frame[n], n, noun) for n in names if frame[n].dtype == object}
    arrow = pa.Table.from_pandas(frame.drop(columns=list(mixed)), preserve_index=True)
    for name, array in mixed.items():
        arrow = arrow.append_column(name, array)
    return arrow.select([*names, *(n for n in arrow.column_names if n not in names)])


def _from_mapping(data: Mapping[Any, Any], noun: str) -> pa.Table:
    """Return the columns of a dict, each an array, a list or a series, all of one length."""
    arrays = {str(name): _one_column(values, str(name), noun) for name, values in data.items()}
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{quoted(name)} of {size}" for name, size in sizes.items())
        raise DataError(f"got columns of unequal length: {found} rows.", noun=noun)
    if len(arrays) < len(data):
        raise DataError(f"got names that are alike: {listed(data)}.", noun=noun)
    return pa.table(arrays)


def _one_column(values: Any, name: str, noun: str) -> Any:
    series = nw.from_native(values, series_only=True, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series_to_arrow(series, name, noun)
    array = as_array(values, noun)
    if array.ndim != 1:
        raise DataError(
            f"got an array of shape {array.shape}. It must be flat.", noun=noun, column=name
        )
    return to_arrow(array, name, noun)


def _series_to_arrow(series: nw.Series, name: str, noun: str) -> Any:
    try:
        return series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
        return _mixed_column(series.to_native(), name, noun)


def _mixed_column(values: Any, name: str, noun: str) -> pa.Array:
    return from_objects(list(values), name, noun)


def to_arrow(values: Any, name: str = "", noun: str = "Column") -> Any:
    """Return a flat array as a pyarrow array."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    array = _unmasked(values)
    if array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] not in ("s", "ms", "us", "ns"):
        day = np.datetime_data(array.dtype)[0] == "D"
        return pa.array(array if day else array.astype("datetime64[s]"))
    if array.dtype.kind in "biufM":
        return pa.array(array, from_pandas=True)
    return from_objects(array.tolist(), name, noun)


def as_array(data: Any, noun: str) -> Shaped[np.ndarray, "..."]:
    """Return data as a numpy array, NaN or None where it is masked."""
    try:
        return _unmasked(data)
    except ValueError as error:  # numpy's way to refuse rows of different lengths
        rows = data if isinstance(data, Sequence) else ()
        sizes = [len(row) if isinstance(row, Sequence | np.ndarray) else 1 for row in rows]
        other = next((row for row, size in enumerate(sizes) if size != sizes[0]), None)
        found = f"something that is no table: {error}"
        if other is not None:
            found = f"rows of unequal length, {sizes[0]} in row 0 and {sizes[other]} in row {other}"
        raise DataError(f"got {found}.", noun=noun) from error


def _unmasked(data: Any) -> Shaped[np.ndarray, "..."]:
    if not isinstance(data, np.ma.MaskedArray):
        return np.asarray(data)
    if data.dtype.kind in "biuf":
        return data.astype(np.float64).filled(np.nan)
    return (
        data.filled(np.datetime64("NaT"))
        if data.dtype.kind == "M"
        else (data.astype(object).filled(None))
    )


def from_objects(values: list[Any], name: str, noun: str) -> pa.Array:
    """Return Python objects of one kind (text, numbers or times) as a pyarrow array."""
    present = [(row, value) for row, value in enumerate(values) if not is_missing(value)]
    if not present:
        return pa.nulls(len(values), pa.float64())
    kinds = [_kind(value) for _, value in present]
    kind = kinds[0] if kinds[0] != "text" or "number" not in kinds else "number"
    for (row, value), other in zip(present, kinds, strict=True):
        if other != kind and not (kind == "number" and other == "text"):
            accepted = {"number": "numbers", "text": "text"}.get(kind, "times, as above it")
            refuse_value(value, row, name, noun, accepted)
        if kind == "other":
            refuse_value(value, row, name, noun)
    if kind == "text":
        return pa.array([None if is_missing(v) else str(v) for v in values], pa.string())
    if kind == "number":
        return pa.array([_as_number(v, row, name, noun) for row, v in enumerate(values)])
    if kind == "day":
        return pa.array([None if is_missing(v) else v for v in values], pa.date32())
    return _from_datetimes(values, present, name, noun)


def _kind(value: Any) -> str:
    if isinstance(value, str | bytes):
        return "text"
    if isinstance(value, bool | int | float | decimal.Decimal | np.number | np.bool_):
        return "number"
    if isinstance(value, datetime.datetime | np.datetime64):
        return "time"
    return "day" if isinstance(value, datetime.date) else "other"


def _from_datetimes(
    values: list[Any], present: list[tuple[int, Any]], name: str, noun: str
) -> pa.Array:
    """Return date-times as time stamps of their (one) zone."""
    zones = [
        None if getattr(v, "tzinfo", None) is None else zone_name(v.tzinfo) for _, v in present
    ]
    other = next((k for k, zone in enumerate(zones) if zone != zones[0]), None)
    if other is not None:
        raise DataError(
            f"got a time in zone {zones[other]}, after times in zone {zones[0]}. A column has one "
            "zone.",
            noun=noun,
            column=name,
            row=present[other][0],
            hint="Convert the times to one named zone first.",
        )
    instants = np.full(len(values), "NaT", dtype="datetime64[us]")
    for row, value in present:
        naive = value if zones[0] is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
        instants[row] = np.datetime64(naive, "us")
    return aware_times(instants, zones[0])


def aware_times(instants: Shaped[np.ndarray, " N"], zone: str | None, unit: str = "us") -> pa.Array:
    """Return instants in UTC as time stamps of a zone (None: wall-clock times as they are)."""
    array = pa.array(instants.astype(f"datetime64[{unit}]"))
    return array if zone is None else array.cast(pa.timestamp(unit, tz=zone))


def from_arrow(array: Any, name: str, noun: str, zone: str | None = None) -> Column:
    """Return a pyarrow column in numpy; times by the wall clock of their zone, or of `zone`."""
    is_category = pa.types.is_dictionary(array.type)
    array = _plain(array)
    kind = array.type
    if pa.types.is_string(kind) or is_category:
        values = np.array([None if v is None else str(v) for v in array.to_pylist()], dtype=object)
        return Column(name, values, is_category=is_category)
    if pa.types.is_date(kind):
        return Column(name, array.cast(pa.date32()).to_numpy(zero_copy_only=False))
    if pa.types.is_timestamp(kind):
        ticks = array.cast(pa.int64()).fill_null(np.iinfo(np.int64).min)
        times = ticks.to_numpy().view(f"datetime64[{kind.unit}]")
        if kind.tz is None:
            return Column(name, times)
        if zone not in (None, kind.tz):
            _require_named(zone, name, noun)
        return Column(name, wall_clock(times, zone or kind.tz), kind.tz)
    if pa.types.is_decimal(kind):
        # As numbers at once they would be off by a last bit here and there.
        array = array.cast(pa.string())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        row = int(np.argmax(array.is_valid().to_numpy(zero_copy_only=False)))
        refuse_value(array[row].as_py(), row, name, noun)
    return Column(name, array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _require_named(zone: str | None, name: str, noun: str) -> None:
    """Refuse to convert to an offset: in winter it would be taken for another hour of the day."""
    if not hasattr(zone_rules(str(zone)), "key"):
        raise DataError(
            f"got times in another zone than {zone}, which is not a named zone they could be "
            "converted to.",
            noun=noun,
            column=name,
            hint='Convert all times to one named zone ("UTC", "Europe/Copenhagen", ...) first.',
        )


def _plain(array: Any) -> pa.Array:
    """Return one array instead of chunks, decoded, and text of one type."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    return array.cast(pa.float64()) if pa.types.is_null(kind) else array


def _parse_numbers(text: pa.Array, name: str, noun: str, sign: str) -> Numbers:
    """Return the numbers that text stands for; the decimal sign is a point or a comma."""
    trimmed = pc.utf8_trim_whitespace(text)
    if sign == ",":
        pointed = pc.match_substring_regex(trimmed, r"^[+-]?[\d.]*\.[\d.,]*$").fill_null(False)
        refuse(
            pointed.to_numpy(zero_copy_only=False),
            name,
            noun,
            lambda row, _: f"got {trimmed[row].as_py()!r}.",
            "With a decimal comma, numbers have no point, as in 1234,5.",
        )
        trimmed = pc.replace_substring(trimmed, ",", ".", max_replacements=1)
    try:
        return trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        each = enumerate(trimmed.to_pylist())
        return np.array([_as_number(value, row, name, noun) for row, value in each])


def _as_number(value: Any, row: int, name: str, noun: str) -> float:
    try:
        return np.nan if is_missing(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        return refuse_value(value, row, name, noun)


def refuse_value(value: Any, row: int, name: str, noun: str, accepted: str = "numbers") -> NoReturn:
    """Refuse a value for its kind, with advice."""
    hint = "Convert the column first."
    if isinstance(value, str):
        hint = "Convert text to numbers or to datetimes, and categories to 0/1 columns first."
        if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", value):
            hint = "Write decimals with a point, or say that the decimal sign is a comma."
    elif isinstance(value, datetime.timedelta | np.timedelta64):
        hint = "Divide durations by one hour, or another unit, to make them numbers."
    raise DataError(
        f"got {value!r} ({type(value).__name__}). There must be {accepted}.",
        noun=noun,
        column=name,
        row=row,
        hint=hint,
    )


def _parse_times(
    text: pa.Array, name: str, zone: str | None, sign: str, numbers: bool
) -> pa.Array:
    """Return time stamps from ISO 8601 text; numbers, if the first cell is one that is no day."""
    # Rows of a long table share their times: each is parsed once.
    encoded = pc.utf8_trim_whitespace(text).dictionary_encode()
    code = encoded.indices.fill_null(-1).to_numpy()
    words = encoded.dictionary.to_pylist()
    instants = np.full(len(words) + 1, "NaT", dtype="datetime64[us]")
    if words and all(DAY_IN_DIGITS.fullmatch(word) for word in words):
        try:
            instants[:-1] = [np.datetime64(f"{w[:4]}-{w[4:6]}-{w[6:]}") for w in words]
            return pa.array(instants[code])
        except ValueError:
            numbers = True
    if numbers or not words or _reads_as_number(words[0]):
        return pa.array(_parse_numbers(text, name, "Time", sign), from_pandas=True)
    parts = [(word, ISO.fullmatch(word)) for word in words]

    def problem(k: int, said: str, hint: str = "") -> DataError:
        row = int(np.argmax(code == k))
        return DataError(said, noun="Time", column=name, row=row, hint=hint)

    offsets = []
    for k, (word, match) in enumerate(parts):
        if match is None:
            raise problem(
                k,
                f"got {word!r}. There must be ISO 8601 times such as 2024-06-03 or "
                "2024-06-03T14:30, with or without a zone (Z, +02:00), or numbers.",
            )
        offsets.append(match[3])
        some = (match[3] is None) != (offsets[0] is None)
        if some or (zone is None and _minutes(match[3]) != _minutes(offsets[0])):
            hint = "Name the zone, such as Europe/Copenhagen, and all times are converted to it."
            raise problem(
                k,
                f"got a time in zone {match[3]}, after times in zone {offsets[0]}.",
                "Add the zone to every time, or to none." if some else hint,
            )
        try:
            wall = datetime.datetime.fromisoformat(f"{match[1]}T{(match[2] or '00')[:15]}")
        except ValueError as error:
            raise problem(k, f"got {word!r}, which is no day or time that exists.") from error
        instants[k] = np.datetime64(wall) - np.timedelta64(_minutes(match[3]), "m")
    offset = None if offsets[0] is None else zone or _offset_name(_minutes(offsets[0]))
    return aware_times(instants[code], offset)


def _reads_as_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _minutes(offset: str | None) -> int:
    """Return the minutes by which an offset such as +02:00 is ahead of UTC."""
    if offset is None or offset in "Zz":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    ahead = 60 * int(digits[:2]) + int(digits[2:])
    return -ahead if offset[0] == "-" else ahead


def _offset_name(minutes: int) -> str:
    if not minutes:
        return "UTC"
    return zone_name(datetime.timezone(datetime.timedelta(minutes=minutes)))


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or a missing value of a data-frame package."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.datetime64) and bool(np.isnan(value))


def read_columns(
    data: Any,
    noun: str,
    *,
    prefix: str = "x",
    alone: str = "x0",
    zones: Sequence[str | None] | None = None,
) -> tuple[list[Column], bool]:
    """Return the columns of a table, an array, a list or a series, and whether they have names.

    Columns without names are called `prefix` and their number; a flat array, `alone`. Times with a
    zone are read as wall-clock times, in `zones[c]` if that is given.
    """
    if isinstance(data, str | Path) or not is_table(data):
        series = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
        if isinstance(series, nw.Series):
            name = alone if series.name in (None, "") else str(series.name)
            arrays = {name: _series_to_arrow(series, name, noun)}
        else:
            arrays = _split_array(data, noun, prefix, alone)
        named = False
    else:
        table, named = read_table(data, noun), True
        arrays = {name: table.arrow[name] for name in table.names}
    wanted = zones if zones is not None and len(zones) == len(arrays) else [None] * len(arrays)
    columns = [
        _column(array, name, noun, zone)
        for (name, array), zone in zip(arrays.items(), wanted, strict=True)
    ]
    if named and isinstance(data, Table):
        columns = [column._replace(decimal=data.decimal) for column in columns]
    return columns, named


def _column(array: Any, name: str, noun: str, zone: str | None) -> Column:
    """Return an array of numpy or pyarrow as a column."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
        return Column(name, array.astype(np.float64))
    if isinstance(array, np.ndarray) and array.dtype.kind == "M":
        return Column(name, array)
    return from_arrow(to_arrow(array, name, noun), name, noun, zone)


def _split_array(data: Any, noun: str, prefix: str, alone: str) -> dict[str, Any]:
    array = as_array(data, noun)
    if array.ndim not in (1, 2):
        found = f"an array of shape {array.shape}" if array.ndim else type(data).__name__
        raise DataError(
            f"got {found}. There must be one column, rows and columns, or a data frame (a lazy one "
            "after .collect()).",
            noun=noun,
            hint="Reshape the data, for example with .reshape(-1, 1).",
        )
    if array.ndim == 1:
        return {alone: array}
    return {f"{prefix}{c}": array[:, c] for c in range(array.shape[1])}


def shape_of(data: Any, noun: str) -> tuple[int, ...]:
    """Return the shape of an array, of a data frame, or of what reads as an array."""
    if isinstance(data, Table):
        return len(data), len(data.names)
    # Not np.shape: array-likes need not implement numpy's functions.
    return tuple(data.shape) if hasattr(data, "shape") else as_array(data, noun).shape


def group_labels(table: Table, name: Any) -> Shaped[np.ndarray, " N"]:
    """Return a column as labels of groups: whole numbers, times by the wall clock, or words.

    >>> group_labels(read_table({"store": [7.0, 8.0], "sky": ["wet", None]}), "store")
    array([7, 8])
    """
    values = table.column(name, "by").values
    if values.dtype.kind == "f" and np.all(np.isfinite(values) & (values == np.round(values))):
        return values.astype(np.int64)
    if values.dtype.kind != "O":
        return values
    return np.array(["missing" if value is None else str(value) for value in values])


def build(backend: str, columns: Mapping[Any, Any], index: Any = None) -> Any:
    """Return columns as a table of the given backend; `index`: the column that is pandas' index.

    >>> build("dict", {"a": [1, 2]})
    {'a': array([1, 2])}
    """
    arrays = {str(name): _storable(values) for name, values in columns.items()}
    table = _native(pa.table(arrays), backend)
    return table if index is None or backend != "pandas" else table.set_index(str(index))


def _storable(values: Any) -> Any:
    """Return values as pyarrow arrays, times in microseconds."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else np.asarray(values)
    if isinstance(array, np.ndarray) and array.dtype.kind == "M":
        day = np.datetime_data(array.dtype)[0] == "D"
        return pa.array(array if day else array.astype("datetime64[us]"))
    return to_arrow(array)


def _native(arrow: pa.Table, backend: str) -> Any:
    if backend == "dict":
        return {name: _to_numpy(arrow[name]) for name in arrow.column_names}
    if backend == "pyarrow":
        return arrow
    if backend != "pandas":
        return nw.from_arrow(arrow, backend=backend).to_native()
    frame = arrow.to_pandas()
    plain = type(frame.index).__name__ == "Index" and frame.index.dtype == np.int64
    if plain and frame.index.name is None and (frame.index == np.arange(len(frame))).all():
        frame = frame.reset_index(drop=True)
    return frame


def _to_numpy(array: pa.ChunkedArray) -> Shaped[np.ndarray, " N"]:
    """Return a column of a dict: times of a zone as date-times, text as text."""
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        rules, made = zone_rules(kind.tz), np.empty(len(array), dtype=object)
        # Nanoseconds, which Python does not have, are dropped.
        utc = array.cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast("timestamp[us]", safe=False)
        made[:] = [
            None if t is None else t.replace(tzinfo=datetime.UTC).astimezone(rules)
            for t in utc.to_pylist()
        ]
        return made
    array = _plain(array)
    if pa.types.is_string(array.type) and not array.null_count:
        return np.array(array.to_pylist(), dtype=str)
    return array.to_numpy(zero_copy_only=False)


def times_like(
    own: Any, wall: Shaped[np.ndarray, " H"], instant: Shaped[np.ndarray, " H"], zone: str | None
) -> pa.Array:
    """Return new times in the type of a column `own`: with its zone, its unit, or days as days.

    `own` is a pyarrow column or None; text and None become time stamps in microseconds.
    """
    kind = None if own is None else own.type
    if wall.dtype.kind != "M":
        whole = kind is not None and pa.types.is_integer(kind) and np.all(wall == np.round(wall))
        return pa.array(wall).cast(kind) if whole else pa.array(wall)
    days = wall.astype("datetime64[D]")
    if kind is not None and pa.types.is_date(kind) and np.all(wall == days):
        return pa.array(days)
    unit = kind.unit if kind is not None and pa.types.is_timestamp(kind) else "us"
    return aware_times(wall if zone is None else instant, zone, unit)


def interval_suffixes(outputs: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """Return what the names of the columns of intervals end in, so that none is there already.

    >>> interval_suffixes(["a", "b"], ["time"]), interval_suffixes(["a", "a_low"], ["time"])
    (('_low', '_high'), ('_interval_low', '_interval_high'))
    """
    taken = {*outputs, *others}
    for ends in (("_low", "_high"), ("_interval_low", "_interval_high")):
        clash = next((f"{n}{end}" for n in outputs for end in ends if f"{n}{end}" in taken), None)
        if clash is None:
            return ends
    raise DataError(
        f"got {quoted(clash)}, a name that the column of an interval would have.",
        noun="Outputs",
        hint="Rename the column so that it does not end in _low or _high.",
    )


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
        plain = [
            _to_numpy(v).tolist() if isinstance(v, pa.Array) else np.asarray(v).tolist()
            for v in columns.values()
        ]
        return cls(dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self[0]) if self else []

    def __str__(self) -> str:
        shown = [self.columns] + [
            [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in self
        ]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        lines = ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in shown)
        return "\n".join(line.rstrip() for line in lines)
