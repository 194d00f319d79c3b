"""Tables: any frame, dict or file becomes one `Table` of Arrow columns, and results go back alike.

A `Table` remembers what it came from (pandas, polars, pyarrow, a dict, a file), so that a result
can be of the same kind, with the same index, time zones and units. Numbers, flags, times and words
are taken from its columns here, for tables and arrays alike, and what cannot be read is refused by
column and row.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float, Int, Shaped
from narwhals.exceptions import DuplicateError

from censored_gp.data.errors import DataError, did_you_mean, listed, quoted, reads_as, refuse, warn
from censored_gp.data.time import resolve_repeated, skipped, wall_clock, zone_name, zone_rules

# Flags in text, in lower case.
FLAG_WORDS = {
    **dict.fromkeys(("1", "1.0", "1,0", "true", "t", "yes", "y"), 1.0),
    **dict.fromkeys(("0", "0.0", "0,0", "false", "f", "no", "n"), 0.0),
    **dict.fromkeys(("-1", "-1.0", "-1,0"), -1.0),
}

# A day without separators, of a year from 1800 to 2199.
DAY = re.compile(r"(18|19|20|21)\d{2}[01]\d[0-3]\d")

# A number whose commas may separate thousands.
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")

# The sign of a bound in text, as in "<0.5" or "≥ 100"; without "=" the number itself is excluded.
BOUND = r"^\s*(?P<sign>[<>≤≥]=?)\s*(?P<number>[-+.\d].*)$"

ISO_TIMES = (
    "There must be ISO 8601 times that exist, such as 2024-06-03 or 2024-06-03T14:30, with or "
    "without a zone (Z, +02:00), or numbers."
)
OTHER_TIMES = (
    "Say how other times are written: --time-format '%d/%m/%Y' (day first) or '%m/%d/%Y' (month "
    "first) on the command line, pandas.to_datetime(..., format=...) in Python."
)

# Kinds of objects that a column may hold, the narrower first.
KINDS = {
    "text": str | bytes,
    "numbers": bool | int | float | decimal.Decimal | np.number | np.bool_,
    "times": datetime.datetime | np.datetime64,
    "days": datetime.date,
}

# What pyarrow calls an index of pandas that has no name.
UNNAMED_INDEX = "__index_level_0__"

Numbers = Float[np.ndarray, " N"]
ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
types: Any = pa.types
# Its functions are made when it is imported, so that type checkers do not know them.
compute: Any = pyarrow.compute


fromisoformat = datetime.datetime.fromisoformat
strptime = datetime.datetime.strptime


class Column(NamedTuple):
    """One column in numpy: numbers, wall-clock datetime64 times, or text objects.

    Numbers are float64; integers that would lose digits so are int64.

    Attributes
    ----------
    name, values : str, array (N,)
        What the column is called, and what it holds.
    zone : str, optional
        The zone of times that have one.
    is_category : bool
        Whether the type of the column says that it holds categories.
    decimal : str
        The decimal sign of numbers in text.
    """

    name: str
    values: Shaped[np.ndarray, " N"]
    zone: str | None = None
    is_category: bool = False
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
        if self.is_time and len(self.values):
            refuse_value(self.values[0].item(), 0, self.name, noun)
        if not self.is_text:
            return self.values.astype(np.float64, copy=False)
        return _parse_numbers(pa.array(self.values, pa.string()), self.name, noun, self.decimal)

    def readings(self, noun: str) -> tuple[Numbers, Numbers]:
        """Return numbers and flags: text such as "<0.5" is at most (-1), ">100" at least (1)."""
        if not self.is_text:
            return (found := self.numbers(noun)), np.zeros(len(found))
        return _parse_readings(pa.array(self.values, pa.string()), self.name, noun, self.decimal)

    def flags(self, noun: str) -> Numbers:
        """Return flags as 1, 0, -1 and NaN; words such as yes and false are read."""
        if not self.is_text:
            return self.numbers(noun)
        # Inf marks what is no flag: the words are looked up once each.
        known = {w: FLAG_WORDS.get((w or "").strip().lower(), np.inf) for w in set(self.values)}
        known |= {word: np.nan for word in known if not (word or "").strip()}
        found = np.array([known[word] for word in self.values])
        hint = "A flag is true, yes or 1 (censored), or false, no or 0 (exact)."
        refuse(np.isposinf(found), self.name, noun, "got {!r}.", self.values, hint=hint)
        return found


@dataclass(frozen=True)
class Table:
    """Columns in memory or in Parquet files, and what they came from.

    Attributes
    ----------
    arrow : pyarrow.Table
        The columns in memory, those of a pandas index among them.
    backend : str
        "pandas", "polars", "pyarrow", ... or "dict"; "file" is pandas, if it is installed, else
        pyarrow.
    file : files.File, optional
        The file that the table was read from.
    file_rows : array (N,) of int, optional
        The rows of the file that are there; None: all.
    unreadable : dict of DataError by name
        Columns that pyarrow cannot hold, which are refused once they are asked for.
    stored : tuple of str
        Columns of Parquet files, each of which is read when it is asked for: a table may be larger
        than memory.

    Examples
    --------
    >>> table = read_table({"time": [1, 2], "bikes": ["3", None]})
    >>> table.names, table.backend, table.numbers("bikes", "Output").tolist()
    (('time', 'bikes'), 'dict', [3.0, nan])
    """

    arrow: pa.Table
    backend: str = "pyarrow"
    file: Any = field(default=None, compare=False)
    file_rows: Int[np.ndarray, " N"] | None = field(default=None, compare=False)
    unreadable: Mapping[str, DataError] = field(default_factory=dict, compare=False)
    stored: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.file.parquet.count_rows() if self.stored else self.arrow.num_rows

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that are the index of a pandas frame."""
        metadata = self.arrow.schema.pandas_metadata if self.backend == "pandas" else None
        return tuple(metadata["index_columns"]) if metadata else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, without the index."""
        held = dict.fromkeys((*self.stored, *self.arrow.column_names))
        return (*(name for name in held if name not in self.index), *self.unreadable)

    @property
    def decimal(self) -> str:
        """The decimal sign of numbers in text."""
        return "." if self.file is None else self.file.decimal

    def _key(self, name: Any) -> str:
        """Return what pyarrow calls a column; "index" is an index without a name."""
        return UNNAMED_INDEX if name == "index" and name not in self.names else str(name)

    def has(self, name: Any) -> bool:
        """Whether there is such a column (or index)."""
        return self._key(name) in (*self.stored, *self.arrow.column_names, *self.unreadable)

    def array(self, name: Any, noun: str) -> pa.ChunkedArray:
        """Return a column as pyarrow has it."""
        if not self.has(name):
            said = f"got no column {quoted(name)}. The table has {listed(self.names)}."
            raise DataError(said, noun, hint=did_you_mean(name, self.names))
        if str(name) in self.unreadable:
            raise self.unreadable[str(name)].at(noun=noun)
        key = self._key(name)
        read = key in self.stored and key not in self.arrow.column_names
        return self.file.read_parquet([key])[key] if read else self.arrow[key]

    def column(self, name: Any, noun: str, zone: str | None = None) -> Column:
        """Return a column in numpy; times by the wall clock of their zone, or of the given one."""
        column = from_arrow(self.array(name, noun), str(name), noun, zone)
        return column._replace(decimal=self.decimal)

    def numbers(self, name: Any, noun: str) -> Numbers:
        """Return a column of numbers, NaN where missing."""
        array = _plain(self.array(name, noun))
        if types.is_string(array.type):
            return _parse_numbers(array, str(name), noun, self.decimal)
        return from_arrow(array, str(name), noun).numbers(noun)

    def readings(self, name: Any, noun: str) -> tuple[Numbers, Numbers]:
        """Return a column of numbers and what text such as "<0.5" makes of them; see `Column`."""
        array = _plain(self.array(name, noun))
        if types.is_string(array.type):
            return _parse_readings(array, str(name), noun, self.decimal)
        return from_arrow(array, str(name), noun).readings(noun)

    def flags(self, name: Any, noun: str) -> Numbers:
        """Return a column of flags as 1, 0, -1 and NaN."""
        return self.column(name, noun).flags(noun)

    def labels(self, name: Any) -> Shaped[np.ndarray, " N"]:
        """Return the values of a column that names something in every row, as objects."""
        encoded = _plain(self.array(name, "Column")).dictionary_encode()
        missing = encoded.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        refuse(missing, str(name), "Column", "got no value. There must be a name in every row.")
        words = encoded.dictionary.to_pylist()
        distinct = np.empty(len(words), dtype=object)
        distinct[:] = [word.strip() if isinstance(word, str) else word for word in words]
        return distinct[encoded.indices.to_numpy()]

    def _holding(self, columns: Mapping[str, Any]) -> Table:
        """Return a table of these columns; the metadata say which are the index of pandas."""
        arrow = pa.table(columns).replace_schema_metadata(self.arrow.schema.metadata)
        return replace(self, arrow=arrow)

    def select(self, names: Iterable[Any]) -> Table:
        """Return some of the columns, and the index, in memory."""
        keys = dict.fromkeys([*map(self._key, names), *self.index])
        return replace(self._holding({k: self.array(k, "Column") for k in keys}), stored=())

    def take(self, rows: Int[np.ndarray, " K"]) -> Table:
        """Return some of the rows."""
        of_file = rows if self.file_rows is None else self.file_rows[rows]
        taken = self.arrow.take(rows) if self.arrow.num_columns else self.arrow
        unread = [name for name in self.stored if name not in taken.column_names]
        if unread:
            read, held = self.file.read_parquet(unread, rows), taken.column_names
            taken = pa.table([*read.columns, *taken.columns], names=[*read.column_names, *held])
        return replace(self, arrow=taken, file_rows=of_file, stored=())

    def rows(self, rows: slice) -> Table:
        """Return rows that follow each other."""
        return self.take(np.arange(len(self))[rows])

    def only(self, name: Any, wanted: Sequence[Any]) -> Table:
        """Return the rows in which a column has one of the wanted values; each must be there."""
        encoded = _plain(self.array(name, "Column")).dictionary_encode("encode")
        words, kept = [*map(str, encoded.dictionary.to_pylist())], [*map(str, wanted)]
        for value in kept:
            if value not in words:
                said = f"got no row with {quoted(value)}, but with {listed(words)}."
                raise self.locate(DataError(said, "Column", str(name)))
        return self.take(np.flatnonzero(np.isin(words, kept)[encoded.indices.to_numpy()]))

    def with_column(self, name: Any, values: Any) -> Table:
        """Return the table with a column added, or exchanged."""
        held, key = {key: self.arrow[key] for key in self.arrow.column_names}, self._key(name)
        made = self._holding(held | {key: to_arrow(values)})
        if pandas := made.arrow.schema.pandas_metadata:
            # Else pandas would make of the new values what the old ones were, such as text.
            pandas["columns"] = [each for each in pandas["columns"] if each["field_name"] != key]
            metadata = {**made.arrow.schema.metadata, b"pandas": json.dumps(pandas).encode()}
            made = replace(made, arrow=made.arrow.replace_schema_metadata(metadata))
        return made

    def with_times(self, name: Any, zone: str | None = None, by: Any = None) -> Table:
        """Return the table with a column of times in place of text, in a zone if one is given.

        Without one it is that of the file, if it has one. Of an hour that a zone has twice the
        second comes second, among the rows of a group `by`.
        Days in digits are times in files (20240603); other numbers stay.
        """
        array, name = _plain(self.array(name, "Time")), str(name)
        zone = zone or getattr(self.file, "zone", None)
        is_text = types.is_string(array.type)
        if is_text or (self.file is not None and types.is_integer(array.type)):
            own = None if self.file is None else self.file.time_format
            read = _parse_times(array.cast(pa.string()), name, zone, self.decimal, own)
            array = read if is_text or types.is_temporal(read.type) else array
        if zone is None or not types.is_temporal(array.type):
            return self.with_column(name, array)
        if getattr(array.type, "tz", None) is not None:
            return self.with_column(name, array.cast(pa.timestamp(array.type.unit, tz=zone)))
        walls = from_arrow(array, name, "Time").values.astype("datetime64[us]")
        said = f"got {{}}, which clocks of {zone} skip as summer time begins."
        hint = "Delete the row, or name no zone."
        refuse(skipped(walls, zone), name, "Time", said, walls.astype(object), hint=hint)
        groups = self.array(by, "by").to_pylist() if by is not None and self.has(by) else None
        return self.with_column(name, aware_times(resolve_repeated(walls, zone, groups), zone))

    def locate(self, error: DataError) -> DataError:
        """Return an error about a row as one about a line of the file, if there is a file."""
        if self.file is None or error.file is not None:
            return error
        if error.row is None:
            return error.at(file=self.file.name)
        return error.at(file=self.file.name, line=self.place(error.row))

    def place(self, row: int) -> str:
        """Return where a row stands, in words: the line of the file, if there is a file."""
        if self.file is None:
            return f"row {row}"
        return self.file.line(int(row if self.file_rows is None else self.file_rows[row]))

    def native(self) -> Any:
        """Return the table as what it came from."""
        if self.backend == "file":
            # Who reads a file has no frames of his own: pandas is what most people know.
            known = "pyarrow" if find_spec("pandas") is None else "pandas"
            return replace(self, backend=known).native()
        if self.backend == "dict":
            return {name: _to_numpy(self.arrow[name]) for name in self.arrow.column_names}
        if self.backend == "pyarrow":
            return self.arrow
        if self.backend != "pandas":
            backend: Any = self.backend
            return nw.from_arrow(self.arrow, backend=backend).to_native()
        frame = self.arrow.to_pandas()
        # pyarrow gives back rows that are numbered from 0 with an index in memory.
        plain = frame.index.dtype == np.int64 and frame.index.name is None
        is_range = plain and (frame.index == np.arange(len(frame))).all()
        return frame.reset_index(drop=True) if is_range else frame

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
    """Whether the data have named columns; a path is that of a table.

    >>> is_table({"time": [1, 2]}), is_table([[1.0], [2.0]])
    (True, False)
    """
    try:
        found = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError:
        found = read_table(data)  # It says which.
    return isinstance(found, nw.DataFrame | Mapping | Table | Path)


def read_table(data: Any, noun: str = "Table") -> Table:
    """Return a data frame or a dict of columns as a table."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        return _from_mapping(data, noun)
    try:
        frame = nw.from_native(data, eager_only=True)
    except DuplicateError as error:
        said = " ".join(str(error).split())
        raise DataError(f"{said}. Rename or drop a column.", noun) from error
    except TypeError as error:
        hint = "It must be a data frame (pandas, polars, pyarrow; a lazy one after .collect()) or "
        hint += "a dict of columns by name."
        raise DataError(f"got {type(data).__name__}.", noun, hint=hint) from error
    names, backend = [str(name) for name in frame.columns], frame.implementation
    if len(set(names)) < len(names):
        raise DataError(f"got names that are alike: {listed(names)}. Rename a column.", noun)
    if backend.is_pandas():
        return _from_pandas(data.set_axis(names, axis=1), noun)
    return Table(frame.to_arrow().rename_columns(names), str(backend.value))


def _from_pandas(frame: Any, noun: str) -> Table:
    """Return the columns that pyarrow can hold; the index is kept as columns, to take rows from."""
    dense = frame.assign(**{name: _dense(frame[name]) for name in frame.columns})
    arrays, unreadable = _convert(dict(dense.items()), noun)
    objects = [name for name in dense.columns if dense[name].dtype == object]
    typed = dense.drop(columns=[*objects, *unreadable], errors="ignore")
    try:
        arrow = pa.Table.from_pandas(typed, preserve_index=True)
    except ARROW_ERRORS as error:
        hint = "Make it a column, or drop it: .reset_index(drop=True)."
        raise DataError("got an index of mixed kinds.", noun, hint=hint) from error
    index = [name for name in arrow.column_names if name not in frame.columns]
    for name in arrays:
        arrow = arrow.append_column(name, arrays[name]) if name in objects else arrow
    return Table(arrow.select([*arrays, *index]), "pandas", unreadable=unreadable)


def _dense(column: Any) -> Any:
    """Return a column of pandas without sparse storage and periods, which pyarrow does not know."""
    kind = type(column.dtype).__name__
    if kind == "PeriodDtype":
        return column.dt.to_timestamp()
    return column.sparse.to_dense() if kind == "SparseDtype" else column


def _from_mapping(data: Mapping[Any, Any], noun: str) -> Table:
    """Return the columns of a dict, each an array, a list or a series, all of one length."""
    arrays, unreadable = _convert({str(name): values for name, values in data.items()}, noun)
    if len({len(array) for array in arrays.values()}) > 1 or len(arrays | unreadable) < len(data):
        found = ", ".join(f"{quoted(name)} of {len(array)} rows" for name, array in arrays.items())
        raise DataError(f"got columns of unequal length, or names that are alike: {found}.", noun)
    return Table(pa.table(arrays), "dict", unreadable=unreadable)


def _convert(
    columns: Mapping[str, Any], noun: str
) -> tuple[dict[str, pa.Array], dict[str, DataError]]:
    """Return columns as arrays, and the errors of those that cannot be: they may not be needed."""
    arrays, unreadable = {}, {}
    for name, values in columns.items():
        try:
            arrays[name] = to_arrow(values, name, noun)
        except DataError as error:
            unreadable[name] = error
        except ARROW_ERRORS as error:
            unreadable[name] = DataError(f"got what cannot be read ({error}).", noun, name)
    return arrays, unreadable


def to_arrow(values: Any, name: str = "", noun: str = "Column") -> Any:
    """Return a flat array, a list or a series as a pyarrow array."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    series = nw.from_native(values, series_only=True, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        # pyarrow would take a number among days for a day.
        objects = series.dtype == nw.Object
        return from_objects(series.to_list(), name, noun) if objects else series.to_arrow()
    array = as_array(values, noun)
    if array.ndim != 1:
        raise DataError(f"got an array of shape {array.shape}. It must be flat.", noun, name)
    kind = array.dtype.kind
    if kind == "M" and np.datetime_data(array.dtype)[0] in ("Y", "M", "W", "h", "m"):
        array = array.astype("datetime64[s]")
    if kind in "biufM":
        return pa.array(array.astype(np.float64) if kind == "f" else array, from_pandas=True)
    return from_objects(array.tolist(), name, noun)


def as_array(data: Any, noun: str) -> Shaped[np.ndarray, "..."]:
    """Return data as a numpy array, missing where it is masked."""
    if isinstance(data, np.ma.MaskedArray):
        times = data.dtype.kind == "M"
        masked: Any = data if times else data.astype(np.float64)
        return masked.filled(np.datetime64("NaT") if times else np.nan)
    try:
        return np.asarray(data)
    except ValueError as error:  # numpy's way to refuse rows of different lengths
        sizes = [len(r) if isinstance(r, Sequence | np.ndarray) else 1 for r in data]
        other = next((row for row, size in enumerate(sizes) if size != sizes[0]), 0)
        found = f"rows of unequal length, {sizes[0]} in row 0 and {sizes[other]} in row {other}"
        raise DataError(f"got {found if other else error}.", noun) from error


def from_objects(values: list[Any], name: str, noun: str) -> pa.Array:
    """Return Python objects of one kind (text, numbers or times) as a pyarrow array."""
    values = [None if is_missing(value) else value for value in values]
    kinds = {row: _kind(value) for row, value in enumerate(values) if value is not None}
    kind = next(iter(kinds.values()), "numbers")
    if kind in ("text", "numbers") and {"text", "numbers"} <= set(kinds.values()):
        bounds = (isinstance(value, str) and re.match(BOUND, value) for value in values)
        if any(bounds):
            return pa.array([None if v is None else str(v) for v in values], pa.string())
        kind = "numbers"
    for row, other in kinds.items():
        if other == "other" or (other != kind and (kind, other) != ("numbers", "text")):
            refuse_value(values[row], row, name, noun, kind)
    if kind == "text":
        return pa.array([None if v is None else str(v) for v in values], pa.string())
    if kind == "numbers":
        return pa.array(_as_numbers(values, name, noun), from_pandas=True)
    if kind == "days":
        return pa.array(values, pa.date32())
    return aware_times(*_from_datetimes(values, range(len(values)), name, noun))


def _kind(value: Any) -> str:
    return next((kind for kind, classes in KINDS.items() if isinstance(value, classes)), "other")


def _from_datetimes(
    values: Sequence[Any], rows: Sequence[int], name: str, noun: str, zone: str | None = None
) -> tuple[Shaped[np.ndarray, " N"], str | None]:
    """Return instants and the one zone of all; times of several offsets need the name of one."""
    rules = {k: getattr(v, "tzinfo", None) for k, v in enumerate(values) if v is not None}
    zones = {k: None if each is None else zone or zone_name(each) for k, each in rules.items()}
    first = next(iter(zones.values()), None)
    for k, other in zones.items():
        if other != first:
            said = f"got a time in zone {other}, after times in zone {first}."
            hint = "Convert them to one named zone, such as Europe/Copenhagen."
            raise DataError(said, noun, name, rows[k], hint=hint)
    if first is not None:
        in_utc = (value and value.astimezone(datetime.UTC) for value in values)
        values = [time and time.replace(tzinfo=None) for time in in_utc]
    return np.array(values, dtype="datetime64[us]"), first


def aware_times(instants: Shaped[np.ndarray, " N"], zone: str | None, unit: str = "us") -> pa.Array:
    """Return instants in UTC as time stamps of a zone (None: wall-clock times as they are)."""
    array = pa.array(instants.astype(f"datetime64[{unit}]"))
    return array if zone is None else array.cast(pa.timestamp(unit, tz=zone))


def from_arrow(array: Any, name: str, noun: str, zone: str | None = None) -> Column:
    """Return a pyarrow column in numpy; times by the wall clock of their zone, or of `zone`."""
    is_category = types.is_dictionary(array.type)
    array = _plain(array)
    kind = array.type
    if types.is_string(kind) or is_category:
        encoded = array.dictionary_encode("encode")
        words = [None if v is None else str(v) for v in encoded.dictionary.to_pylist()]
        values = np.array([*words, None], dtype=object)[encoded.indices.to_numpy()]
        return Column(name, values, is_category=is_category)
    if types.is_date(kind):
        return Column(name, array.cast(pa.date32()).to_numpy(zero_copy_only=False))
    if types.is_timestamp(kind):
        ticks = array.cast(pa.int64()).fill_null(np.iinfo(np.int64).min)
        times = ticks.to_numpy().view(f"datetime64[{kind.unit}]")
        if kind.tz is None:
            return Column(name, times)
        # In winter an offset would be taken for another hour of the day.
        if zone not in (None, kind.tz) and not hasattr(zone_rules(zone), "key"):
            said = f"got times in zone {kind.tz}, which cannot be converted to {zone}, which is "
            raise DataError(said + "not a named zone. Convert all times to one.", noun, name)
        return Column(name, wall_clock(times, zone or kind.tz), kind.tz)
    if types.is_decimal(kind):
        # As numbers at once they would be off by a last bit here and there.
        array = array.cast(pa.string())
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        row = int(np.argmax(array.is_valid()))
        refuse_value(array[row].as_py(), row, name, noun)
    if types.is_integer(kind) and not array.null_count:
        return Column(name, _keep_digits(array.to_numpy(zero_copy_only=False)))
    return Column(name, array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _keep_digits(numbers: Shaped[np.ndarray, " N"]) -> Shaped[np.ndarray, " N"]:
    """Return numbers as float64, integers that have more digits than that as int64."""
    floats = numbers.astype(np.float64)
    long = 2.0**53 < np.abs(floats).max(initial=0.0) < 2.0**63
    return numbers.astype(np.int64) if long else floats


def _plain(array: Any) -> pa.Array:
    """Return one array instead of chunks, decoded, and text of one type."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    if types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if types.is_large_string(kind) or types.is_string_view(kind):
        return array.cast(pa.string())
    return array.cast(pa.float64()) if types.is_null(kind) else array


def _parse_numbers(text: pa.Array, name: str, noun: str, sign: str = ".") -> Numbers:
    """Return the numbers that text stands for; the decimal sign is a point or a comma."""
    text = compute.utf8_trim_whitespace(text)
    if sign == ",":
        pointed = compute.match_substring_regex(text, r"^[+-]?[\d.]*\.[\d.,]*$").fill_null(False)
        hint = "With a decimal comma, numbers have no point, as in 1234,5."
        refuse(np.asarray(pointed), name, noun, "got {!r}.", text.to_pylist(), hint=hint)
        commas = [word for word in text.to_pylist() if word and "," in word]
        if commas and all(map(THOUSANDS.fullmatch, commas)):
            said = f"{noun} {quoted(name)}: the decimal sign is a comma, so that {commas[0]} is "
            warn(f"{said}{commas[0].replace(',', '.')}.")
        text = compute.replace_substring(text, ",", ".", max_replacements=1)
    try:
        return text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return _as_numbers(text.to_pylist(), name, noun)


def _parse_readings(text: pa.Array, name: str, noun: str, sign: str) -> tuple[Numbers, Numbers]:
    """Return numbers and flags of those that are bounds; of counts "<7" is at most 6."""
    parts = compute.extract_regex(text, BOUND)
    if parts.null_count == len(parts):
        return _parse_numbers(text, name, noun, sign), np.zeros(len(text))
    signs = compute.struct_field(parts, "sign").fill_null("").to_numpy(zero_copy_only=False)
    numbers = compute.coalesce(compute.struct_field(parts, "number"), text)
    values = _parse_numbers(numbers, name, noun, sign)
    flags = np.isin(signs, [">", "≥", ">="]) * 1.0 - np.isin(signs, ["<", "≤", "<="])
    # Families of counts round bounds inward, and to others the next number is the same.
    excluded = np.isin(signs, ["<", ">"]) & (values == np.round(values))
    beyond = np.nextafter(values, np.where(flags > 0, np.inf, -np.inf))
    return np.where(excluded, beyond, values), flags


def _as_numbers(values: list[Any], name: str, noun: str) -> Numbers:
    """Return objects as numbers, NaN where there is none."""
    for row, value in enumerate(values):
        if value is not None and not reads_as(float, value):
            refuse_value(value, row, name, noun)
    return np.array([np.nan if value is None else float(value) for value in values])


def refuse_value(value: Any, row: int, name: str, noun: str, accepted: str = "numbers") -> NoReturn:
    """Refuse a value for its kind, with advice."""
    hint = "Convert the column first."
    if isinstance(value, str) and THOUSANDS.fullmatch(value.strip()):
        hint = "Delete commas between thousands. If it is a decimal comma, say so: --decimal ,"
    elif isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", value):
        hint = "Write decimals with a point, or say that the decimal sign is a comma."
    elif noun == "Input" and isinstance(value, str) and reads_as(fromisoformat, value.strip()):
        hint = "Convert text to numbers or to datetimes, or name a column of times by time=..."
    elif isinstance(value, str) and re.match(BOUND, value):
        hint = "Text such as <0.5 is a bound in outputs that a model is fitted to, and only there."
    elif isinstance(value, str):
        hint = "Convert text to numbers or to datetimes, and categories to 0/1 columns first."
        if noun == "Output":
            hint = "Correct the value, or leave it empty (or NA, or NaN) where it is missing. What "
            hint += "is below a detection limit may be written as <0.5."
    elif isinstance(value, datetime.timedelta | np.timedelta64):
        hint = "Divide durations by one hour, or another unit, to make them numbers."
    accepted = "numbers" if accepted == "other" else accepted
    said = f"got {value!r} ({type(value).__name__}). There must be {accepted}."
    raise DataError(said, noun, name, row, hint=hint)


def _parse_times(
    text: pa.Array, name: str, zone: str | None, sign: str, written: str | None = None
) -> pa.Array:
    """Return time stamps from text in ISO 8601 or as `written` says, in the letters of `strptime`.

    Without a format they are numbers, if the first cell is a number that is no day.
    """
    # Rows of a long table share their times: each is parsed once.
    encoded = compute.utf8_trim_whitespace(text).dictionary_encode()
    words, code = encoded.dictionary.to_pylist(), encoded.indices.fill_null(-1).to_numpy()
    # Python reads days without separators as ISO 8601, too.
    are_days = all(DAY.fullmatch(w) and reads_as(fromisoformat, w) for w in words)
    is_number = not are_days and words and reads_as(float, words[0].replace(",", "."))
    if not words or (written is None and is_number):
        return pa.array(_parse_numbers(text, name, "Time", sign), from_pandas=True)
    if written is None:
        # A zone may stand apart from the time.
        words = [re.sub(r"\s+(?=[+Z-])", "", word.upper()) for word in words]
    read: Any = fromisoformat if written is None else lambda w: strptime(w, written)
    accepted = ISO_TIMES if written is None else f"The format is {written!r}."
    hint = f"{accepted} {OTHER_TIMES}"
    bad = np.array([not reads_as(read, word) for word in words] + [False])
    refuse(bad[code], name, "Time", "got {!r}.", text.to_pylist(), hint=hint)
    codes, rows = np.unique(code, return_index=True)
    times = [read(word) for word in words]
    instants, own = _from_datetimes(times, rows[codes >= 0].tolist(), name, "Time", zone)
    return aware_times(np.append(instants, np.datetime64("NaT"))[code], own)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or a missing value of a data-frame package."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.datetime64) and bool(np.isnan(value))


def read_columns(
    data: Any, noun: str, *, prefix: str = "x", alone: str = "x0", zones: Sequence[str | None] = ()
) -> tuple[list[Column], bool]:
    """Return the columns of a table, an array, a list or a series, and whether they have names.

    Columns without names are called `prefix` and their number; a flat array, `alone`. Times with a
    zone are read as wall-clock times, in `zones[c]` if that is given.
    """
    named = is_table(data)
    if named:
        table = read_table(data, noun)
    else:
        series = nw.from_native(data, series_only=True, allow_series=True, pass_through=True)
        if isinstance(series, nw.Series):
            columns = {alone if series.name in (None, "") else str(series.name): data}
        else:
            array = as_array(data, noun)
            if array.ndim not in (1, 2):
                found = f"an array of shape {array.shape}" if array.ndim else type(data).__name__
                said = f"got {found}. There must be rows and columns, or a data frame (a lazy one "
                hint = "Reshape the data, as with .reshape(-1, 1)."
                if isinstance(data, str):
                    hint = (
                        "Names of columns go with names of outputs: fit(table, outputs='y', ...)."
                    )
                raise DataError(said + "after .collect()).", noun, hint=hint)
            names = [alone] if array.ndim == 1 else [f"{prefix}{c}" for c in range(array.shape[1])]
            columns = dict(zip(names, np.atleast_2d(array.T), strict=True))
        table = Table(pa.table({name: to_arrow(v, name, noun) for name, v in columns.items()}))
    zone = dict(enumerate(zones)).get
    return [table.column(name, noun, zone(c)) for c, name in enumerate(table.names)], named


def shape_of(data: Any, noun: str) -> tuple[int, ...]:
    """Return the shape of an array, of a table, or of what reads as an array."""
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
    return values


def build(backend: str, columns: Mapping[Any, Any]) -> Any:
    """Return columns as a table of the given backend.

    >>> build("dict", {"a": [1, 2]})
    {'a': array([1, 2])}
    """
    arrays = {str(name): to_arrow(values) for name, values in columns.items()}
    for name, array in arrays.items():
        if array.type == pa.timestamp("s"):
            arrays[name] = array.cast(pa.timestamp("us"))  # polars knows no coarser unit
    return Table(pa.table(arrays), backend).native()


def _to_numpy(array: Any) -> Shaped[np.ndarray, " N"]:
    """Return a column of a dict: times of a zone as date-times, text as text."""
    array = _plain(array)
    kind = array.type
    if types.is_timestamp(kind) and kind.tz is not None:
        rules, made = zone_rules(kind.tz), np.empty(len(array), dtype=object)
        # Nanoseconds, which Python does not have, are dropped.
        utc = array.cast(pa.timestamp("us", tz="UTC"), safe=False).to_pylist()
        made[:] = [None if time is None else time.astimezone(rules) for time in utc]
        return made
    if types.is_string(kind) and not array.null_count:
        return np.array(array.to_pylist(), dtype=str)
    return array.to_numpy(zero_copy_only=False)


def times_like(
    own: Any, wall: Shaped[np.ndarray, " H"], instant: Shaped[np.ndarray, " H"], zone: str | None
) -> pa.Array:
    """Return new times in the type of a column `own`: with its zone, its unit, or days as days.

    `own` is a pyarrow column or None; text and None become time stamps in microseconds.
    """
    kind = pa.null() if own is None else own.type
    days = wall.astype("datetime64[D]")
    if types.is_date(kind) and np.all(wall == days):
        return pa.array(days)
    unit = kind.unit if types.is_timestamp(kind) else "us"
    return aware_times(wall if zone is None else instant, zone, unit)


def with_intervals(keys: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns: keys, and the value, lower and upper end of each output side by side.

    >>> with_intervals({"t": [1]}, {"a": ([2.0], [1.5], [2.5])})
    {'t': [1], 'a': [2.0], 'a_low': [1.5], 'a_high': [2.5]}
    """
    taken = {*keys, *answers}
    for ends in (("", "_low", "_high"), ("", "_interval_low", "_interval_high")):
        if taken.isdisjoint(f"{name}{end}" for name in answers for end in ends[1:]):
            return dict(keys) | {
                f"{name}{end}": cells
                for name, each in answers.items()
                for end, cells in zip(ends, each, strict=True)
            }
    raise DataError(f"must not all end in _low or _high, got {listed(taken)}.", argument="outputs")


def as_arrow(data: Any) -> pa.Table:
    """Return a table of any kind, or a list of rows, as a pyarrow table without an index.

    >>> as_arrow([{"a": 1}, {"a": 2}]).equals(as_arrow({"a": [1, 2]}))
    True
    """
    if isinstance(data, list):
        return pa.Table.from_pylist(data)
    table = read_table(data)
    return table.arrow.select(table.names)


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
