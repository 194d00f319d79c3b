"""Which column of a table is what, and results that look like the table.

A wide table has a column for each output, a long one a row for each output and time. Either way
the model sees rows of inputs and one column for each output; what the table had beside that (its
backend, its index, its time zone, the order of its rows) comes back in every result.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from censored_gp.data.bounds import UNKNOWN, Seen, column_names, read_bounds, share_term
from censored_gp.data.errors import DataError, listed, refuse
from censored_gp.data.files import open_table
from censored_gp.data.inputs import Columns
from censored_gp.data.observations import Observations
from censored_gp.data.tables import (
    Table,
    aware_times,
    from_arrow,
    is_table,
    read_table,
    to_arrow,
)
from censored_gp.data.time import is_holiday, occurrence, to_utc

Whole = Int[np.ndarray, " K"]

# Fields of a layout that say how far an output was seen.
GIVEN = ("censored", "capacity", "lower", "upper", "exposure", "side")


# The name of the input that tells holidays.
HOLIDAY = "holiday"


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what.

    Of a wide table `outputs` are columns. Of a long one they are the distinct values of the
    column `by`, and `value` is the column of their values. `censored`, `capacity`, `lower`,
    `upper` and `exposure` name columns or give numbers (see `CensoredGP.fit`). `own_inputs` are
    inputs of one output alone: columns for each output of a wide table, the same for all of a long.
    """

    outputs: tuple[Any, ...]
    time: str | None = None
    inputs: tuple[str, ...] = ()
    own_inputs: tuple[Any, ...] = ()
    holidays: str | None = None
    by: str | None = None
    value: str | None = None
    censored: Any = None
    capacity: Any = None
    lower: Any = None
    upper: Any = None
    exposure: Any = None
    side: str = "right"
    backend: str = "pandas"

    @property
    def long(self) -> bool:
        """Whether the table has a row for each output and time."""
        return self.by is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the model has as inputs: the time first."""
        return ((self.time,) if self.time is not None else ()) + self.inputs

    @property
    def own_columns(self) -> tuple[tuple[str, ...], ...]:
        """Columns that the model has as inputs of each output alone."""
        if not self.long:
            return self.own_inputs
        return tuple(tuple(f"{name} of {o}" for name in self.own_inputs) for o in self.outputs)

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that say which row is which, and come first in every result."""
        return tuple(name for name in (self.time, self.by) if name is not None)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `CensoredGP.fit` that say all this."""
        own = self.own_inputs if self.long else map(list, self.own_inputs)
        return {
            "outputs": self.value if self.long else list(self.outputs),
            "by": self.by,
            "time": self.time,
            "inputs": list(self.inputs) or None,
            "own_inputs": list(own) or None,
            "holidays": self.holidays,
        } | {name: getattr(self, name) for name in GIVEN}


@dataclass(frozen=True)
class Rows:
    """The rows of a table: their keys, and where their cells are among those of the model.

    Attributes
    ----------
    index : Table
        The time and `by` columns (and the index of pandas).
    row : array (K,) of int
        The row of the model that a row of the table is about.
    output : array (K,) of int, optional
        The output that a row of a long table is about; None: the table is wide.
    table : Table, optional
        The training table itself, as long as the program runs: to group its rows by any column.
    """

    index: Table
    row: Whole
    output: Whole | None = None
    table: Table | None = field(init=False, default=None, repr=False, compare=False)

    def locate(self, error: DataError, layout: Layout) -> DataError:
        """Return an error about a row of the model as one about a row of a long table."""
        if self.output is None or error.row is None:
            return error
        own, place = self.row == error.row, {}
        names = [str(label) for label in layout.outputs]
        if error.noun == "Output" and error.column in names:
            own &= self.output == names.index(error.column)
            place = {"noun": f"Output {error.column!r} in column", "column": layout.value}
        found = np.flatnonzero(own)
        return error.at(row=int(found[0]) if len(found) else None, **place)


class Training(NamedTuple):
    """A table for training, read."""

    layout: Layout
    rows: Rows
    inputs: Table
    observations: Observations


def read_training(
    data: Any,
    outputs: Any,
    *,
    by: Any = None,
    time: Any = None,
    inputs: Any = None,
    own_inputs: Any = None,
    holidays: str | None = None,
    order: Sequence[Any] = (),
    **given: Any,
) -> Training:
    """Read a table as its columns are named; `given` are fields that are in `GIVEN`.

    Outputs of a long table are in the given order, and else in that of their first rows.

    >>> table = {"hour": [0.0, 1.0], "a": [1.0, 5.0], "full": [False, True]}
    >>> print(read_training(table, "a", time="hour", censored="full").observations.summary())
    2 rows of 1 output
      a: 1 exact, 1 at least a bound (right-censored)
    """
    table = open_table(data)
    names, others = (_as_names(given) for given in (outputs, inputs))
    time, by = (None if name is None else str(name) for name in (time, by))
    _check_roles(table, names, others, time, by, holidays)
    numbers = {"capacity": len(names), "exposure": len(names)}
    bounds = {name: lasting(each, numbers.get(name, 0)) for name, each in given.items()}
    if any(bounds[name] is None for name, each in given.items() if each is not None):
        # Without what arrays say of the training rows, the rest would be wrong about other rows.
        bounds = {"side": given.get("side", "right")}
    with located(table):
        # Other tables than files get their times back as they were.
        if table.file is not None and time is not None:
            table = table.with_times(time, by=by)
        layout = Layout(names, time, others, backend=table.backend, holidays=holidays, **bounds)
        if own_inputs is not None:
            own = _as_names(own_inputs) if by is not None else own_of_each(own_inputs, names)
            layout = replace(layout, own_inputs=own)
        if by is None:
            seen = _read_cells(table, names, given)
            rows = _rows(table, layout, np.arange(len(table)))
            return Training(layout, rows, _inputs(table, layout), seen)
        labels = table.labels(by)
        place = {str(label): d for d, label in enumerate(order)}
        distinct = dict.fromkeys(labels)
        distinct = tuple(sorted(distinct, key=lambda n: place.get(str(n), len(place))))
        layout = replace(layout, outputs=distinct, by=by, value=names[0])
        cells, output = _read_cells(table, names, given, labels), _known_labels(table, layout)
        every = _inputs(table, layout)
        first, row = _rows_of_long(every, output, layout)
        seen = _pivot(cells, (len(first), len(distinct)), (row, output), distinct)
        inputs = _with_own(every.take(first), table, layout, row, output)
        return Training(layout, _rows(table, layout, row, output), inputs, seen)


def read_new(data: Any, layout: Layout) -> tuple[Table, Rows]:
    """Read the inputs of a new table, row by row, and which cells its rows ask for.

    Rows of a long table that differ in their output alone are one row of the model; by the clock
    of a zone, an hour that comes twice is two.
    A long table without the column `by` asks for all outputs at each of its rows.
    """
    table = open_table(data)
    with located(table):
        if table.file is not None and layout.time is not None:
            table = table.with_times(layout.time, by=layout.by)
        inputs, each = _inputs(table, layout), np.arange(len(table))
        if not layout.long or table.has(layout.by):
            output = _known_labels(table, layout) if layout.long else None
            if output is not None:
                first, each = _rows_alike([_codes(inputs, n) for n in layout.columns], output)
                inputs = _with_own(inputs.take(first), table, layout, each, output).take(each)
            return inputs, _rows(table, layout, each, output)
        for place, names in enumerate(zip(*layout.own_columns, strict=True)):
            # Without the column `by`, what a row says is said of every output.
            for name in names:
                source = name if table.has(name) else layout.own_inputs[place]
                inputs = inputs.with_column(name, table.numbers(source, "Input"))
    repeated = np.repeat(each, len(layout.outputs))
    labels = np.array(layout.outputs * len(table))
    long = _rows(table, layout, each).index.take(repeated).with_column(layout.by, labels)
    return inputs, Rows(long, repeated, np.tile(np.arange(len(layout.outputs)), len(table)))


def with_own_ahead(data: Any, layout: Layout | None) -> Any:
    """Return a table of times ahead with the columns that are one output's alone.

    Of a long table with the column `by` there must be a row for each output at each of its times.
    """
    if layout is None or not layout.long or not is_table(data):
        return data
    table = read_table(data)
    own = tuple(name for name in layout.own_inputs if table.has(name))
    if not own:
        return data
    time = layout.time if table.has(layout.time) else None
    if time is None and table.has(layout.by):
        said = f"must have the column of times {layout.time!r}, as it has {layout.by!r}."
        raise DataError(said, argument="inputs")
    part = replace(layout, time=time, inputs=(), own_inputs=own, holidays=None)
    inputs, rows = read_new(table, part)
    if time is not None and rows.output is not None and table.has(layout.by):
        when, times = _codes(inputs, time), inputs.array(time, "Time")
        twice = occurrence(np.stack([when, rows.output], axis=1))[0] > 0
        refuse(twice, time, "Time", "got {} again, for the same output.", times)
        lacking = np.bincount(when) < len(layout.outputs)
        if lacking.any():
            own = when == np.argmax(lacking)
            absent = set(range(len(layout.outputs))) - set(rows.output[own].tolist())
            said = f"must have rows of all outputs {listed(layout.outputs)} at each of its times, "
            said += f"got none of {str(layout.outputs[min(absent)])!r} at {times[np.argmax(own)]}."
            raise DataError(said, argument="inputs")
    for column in itertools.chain(*part.own_columns):
        table = table.with_column(column, inputs.array(column, "Input"))
    return table


def read_truth(data: Any, layout: Layout) -> Observations:
    """Read what a new table says of the outputs, row by row of the table."""
    table = open_table(data)
    given = {name: getattr(layout, name) for name in GIVEN}
    with located(table):
        if not layout.long:
            return _read_cells(table, layout.outputs, given)
        labels = table.labels(layout.by)
        # A new table need not have rows of every output.
        absent = set(map(str, layout.outputs)) - set(map(str, labels))
        for name, each in given.items():
            if isinstance(each, Mapping):
                given[name] = {key: one for key, one in each.items() if str(key) not in absent}
        cells = _read_cells(table, (layout.value,), given, labels)
        where = (np.arange(len(table)), _known_labels(table, layout))
        return _pivot(cells, (len(table), len(layout.outputs)), where, layout.outputs)


def result(
    layout: Layout,
    rows: Rows,
    cells: Float[np.ndarray, "... N D"],
    stack: tuple[str, Sequence[Any]] | None = None,
) -> Any:
    """Return cells as a table like the one that was given.

    A leading axis of the cells is stacked: the column `stack[0]` then says which is which.
    """
    many, size, index = cells[None] if stack is None else cells, len(rows.row), rows.index
    columns: dict[str, Any] = {}
    if stack is not None:
        columns[stack[0]] = np.repeat(np.asarray(stack[1]), size)
        index = index.take(np.tile(np.arange(size), len(many)))
    if rows.output is not None:
        columns[str(layout.value)] = many[:, rows.row, rows.output].reshape(-1)
    else:
        flat = many[:, rows.row].reshape(-1, many.shape[-1])
        columns |= {str(name): flat[:, d] for d, name in enumerate(layout.outputs)}
    for name, values in columns.items():
        index = index.with_column(name, values)
    return index.native()


def inputs_table(columns: Columns, inputs: Float[np.ndarray, "N C"]) -> Table:
    """Return the user's columns of inputs, from the matrix that was made of them."""
    made = {}
    for name, places in columns.groups.items():
        values, zone = columns.values(name, inputs), columns.zones[places[0]]
        # The model knows the wall clock alone, so that either of a doubled hour is as good.
        made[name] = to_arrow(values) if zone is None else aware_times(to_utc(values, zone), zone)
    return Table(pa.table(made))


def columns_used(arguments: Mapping[str, Any], header: Sequence[str]) -> list[str]:
    """Return the columns that the arguments of `fit` name; bounds may stand for an output."""
    roles = {n: g for n, g in arguments.items() if n not in ("side", "rounded", "holidays")}
    names = [name for role, given in roles.items() if role != "exposure" for name in _texts(given)]
    shares = [share_term(text, header)[0] for text in _texts(roles.get("exposure"))]
    names += [name for name in shares if name in header or name != UNKNOWN]
    if arguments.get("lower") is None and arguments.get("upper") is None:
        return names
    return [name for name in names if name in header or name not in arguments["outputs"]]


def _texts(given: Any) -> Iterator[str]:
    """Yield the text in lists and dicts, which may be nested."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Iterable):
        for each in given.values() if isinstance(given, Mapping) else given:
            yield from _texts(each)


@contextlib.contextmanager
def located(table: Any, layout: Layout | None = None, rows: Rows | None = None) -> Iterator[None]:
    """Name the file and the line in errors about a row of a table that came from a file.

    With a layout and rows, errors are about cells of the model, and named are row and column of the
    user's table.
    """
    try:
        yield
    except DataError as error:
        moved = error
        if layout is not None and rows is not None and error.file is None:
            moved = rows.locate(error, layout)
        moved = table.locate(moved) if isinstance(table, Table) else moved
        if moved is error:
            raise
        raise moved from error


def _as_names(given: Any) -> tuple[str, ...]:
    """Return names of columns, from one name or several."""
    if given is None:
        return ()
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return tuple(map(str, given)) if several else (str(given),)


def _check_roles(
    table: Table,
    outputs: tuple[str, ...],
    inputs: tuple[str, ...],
    time: Any,
    by: Any,
    holidays: Any,
) -> None:
    """Refuse columns that are named twice or for two purposes, and tables without rows."""
    if not outputs or (time is None and not inputs):
        said = "Give at least one output, and a time or inputs (or both) by name of their columns; "
        said += f"got outputs={list(outputs)}, time={time!r} and inputs={list(inputs)}."
        raise DataError(said)
    if by is not None and len(outputs) != 1:
        said = f"must be the one column of values of a long table, got {listed(outputs)}."
        raise DataError(said, argument="outputs", hint="Leave out by=... for a wide table.")
    used = [*outputs, *inputs, *(name for name in (time, by) if name is not None)]
    twice = sorted({name for name in used if used.count(name) > 1})
    if twice:
        raise DataError(f"got {listed(twice)} named more than once, for two purposes.", "Columns")
    if holidays and HOLIDAY in used:
        said = f"makes an input of the name {HOLIDAY!r}, which a column has. Leave out one of them."
        raise DataError(said, argument="holidays")
    if not len(table):
        raise DataError("got no rows. There must be at least one.", "Table")


def lasting(given: Any, outputs: int = 0) -> Any:
    """Return names and numbers as they are; arrays are about the training rows only.

    A list of so many `outputs` has a number for each.
    """
    numbers = isinstance(given, list | tuple) and len(given) == outputs
    each = given.values() if isinstance(given, Mapping) else given if numbers else [given]
    lasts = all(one is None or isinstance(one, str | int | float | np.number) for one in each)
    return given if lasts or column_names(given) else None


def _rows(table: Table, layout: Layout, row: Whole, output: Whole | None = None) -> Rows:
    """Return rows with the columns that say which is which, and the table itself."""
    keys = table.select([name for name in layout.keys if name in table.names])
    rows = Rows(keys, row, output)
    object.__setattr__(rows, "table", table)
    return rows


def _inputs(table: Table, layout: Layout) -> Table:
    """Return the columns that the model has as inputs, times in text read."""
    own = () if layout.long else [name for names in layout.own_inputs for name in names]
    made = {name: table.array(name, "Input") for name in (*layout.inputs, *own)}
    if layout.time is not None:
        made = {layout.time: table.with_times(layout.time).array(layout.time, "Time"), **made}
    if layout.holidays is not None:
        times = None if layout.time is None else from_arrow(made[layout.time], layout.time, "Time")
        if times is None or not times.is_time:
            raise DataError("needs a time column of dates or times.", argument="holidays")
        made[HOLIDAY] = to_arrow(is_holiday(times.values, layout.holidays))
    return Table(pa.table(made), "pyarrow", table.file, table.file_rows)


def own_of_each(given: Any, outputs: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    """Return columns of the inputs that are one output's alone, as many for each output.

    >>> own_of_each({"a": "price_a", "b": "price_b"}, ["a", "b"])
    (('price_a',), ('price_b',))
    """
    listed_all = isinstance(given, list | tuple) and len(given) == len(outputs)
    if isinstance(given, Mapping) and set(map(str, given)) == set(map(str, outputs)):
        by_name = {str(name): each for name, each in given.items()}
        given, listed_all = [by_name[str(name)] for name in outputs], True
    each = [e if isinstance(e, list | tuple) else [e] for e in given] if listed_all else []
    if not each or len({len(e) for e in each}) != 1:
        raise DataError(
            f"must have as many columns for each of the outputs {listed(outputs)}, in a list or a "
            f"dict, got {given!r}.",
            argument="own_inputs",
        )
    return tuple(tuple(e) for e in each)


def _with_own(inputs: Table, table: Table, layout: Layout, row: Whole, output: Whole) -> Table:
    """Return inputs of the model with the columns that are one output's alone.

    Where an output has no row its inputs do not matter, and are its mean.
    """
    for name, columns in zip(layout.own_inputs, zip(*layout.own_columns, strict=True), strict=True):
        values = table.numbers(name, "Input")
        refuse(~np.isfinite(values), name, "Input", "got no value. Fill in the value.")
        for d, column in enumerate(columns):
            own = output == d
            cells = np.full(len(inputs), values[own].mean() if own.any() else 0.0)
            cells[row[own]] = values[own]
            inputs = inputs.with_column(column, cells)
    return inputs


def _read_cells(
    table: Table, outputs: Sequence[Any], given: dict[str, Any], keys: Any = None
) -> Observations:
    """Return what the table says of its cells, rows as in the table and a column for each output.

    An output that has bounds alone need not have a column of its own.
    """
    bounded = given.get("lower") is not None or given.get("upper") is not None
    absent = {name for name in outputs if bounded and not table.has(name)}
    missing = np.full(len(table), np.nan), np.zeros(len(table))
    read = (missing if n in absent else table.readings(n, "Output") for n in outputs)
    values, flags = (np.stack(each, axis=1) for each in zip(*read, strict=True))
    names = tuple(map(str, outputs))
    seen = Seen(values, names, named=True, table=table, keys=keys, flags=flags)
    return Observations(*read_bounds(seen, **given))


def _pivot(
    cells: Observations, shape: tuple[int, int], where: tuple[Any, Any], outputs: Sequence[Any]
) -> Observations:
    """Put the rows of one column into the cells of a table in which all else is missing."""
    lower, upper, exposure = np.full(shape, -np.inf), np.full(shape, np.inf), np.ones(shape)
    lower[where], upper[where] = cells.lower[:, 0], cells.upper[:, 0]
    exposure[where] = cells.exposure[:, 0]
    return Observations(lower, upper, tuple(map(str, outputs)), exposure=exposure)


def _known_labels(table: Table, layout: Layout) -> Whole:
    """Return the output that each row of a long table is about.

    A number is the same in text, as a CSV file has no types.
    """
    place = {each: d for d, label in enumerate(layout.outputs) for each in (str(label), label)}
    labels = table.labels(layout.by)
    known = np.array([place.get(n, place.get(str(n), -1)) for n in labels], dtype=int)
    hint = f"The outputs of the training data are {listed(layout.outputs)}."
    refuse(known < 0, str(layout.by), "Column", "got {!r}.", labels, hint=hint)
    return known


def _rows_of_long(inputs: Table, output: Whole, layout: Layout) -> tuple[Whole, Whole]:
    """Return the first row of the table for each row of the model, and the latter for all.

    Rows of one time are one row of the model. Without a time, rows of equal inputs are; if an
    output has several of them, each makes a row of its own.
    """
    codes = {name: _codes(inputs, name) for name in layout.columns}
    if layout.time is None:
        return _rows_alike(list(codes.values()), output)
    _, first, row = np.unique(codes.pop(layout.time), return_index=True, return_inverse=True)
    pair = row * len(layout.outputs) + output
    _, place, same = np.unique(pair, return_index=True, return_inverse=True)
    early = place[same]
    times, labels = inputs.array(layout.time, "Time"), np.array(layout.outputs, object)[output]
    hint = "There must be one row for each output and time. Drop the doubles, or add them up."
    twice = early != np.arange(len(early))
    if twice.any():
        said = f"got {{}} of output {{!r}} again, after {inputs.place(early[np.argmax(twice)])}."
        refuse(twice, layout.time, "Time", said, times, labels, hint=hint)
    early = first[row]
    hint = "Inputs must be the same for all outputs: average them, or give each output its own "
    hint += "(own_inputs)."
    for name, code in codes.items():
        values = inputs.array(name, "Input")
        other = code != code[early]
        if other.any():
            place = inputs.place(early[np.argmax(other)])
            said = f"got {{}}, but {{}} in {place} of the same time."
            refuse(other, name, "Input", said, values, values.take(early), hint=hint)
    return first, row


def _rows_alike(codes: list[Whole], output: Whole) -> tuple[Whole, Whole]:
    """Return first rows, and the row of the model of each: equal inputs of different outputs."""
    rank, _ = occurrence(np.stack([*codes, output], axis=1))
    alike = np.stack([*codes, rank], axis=1)
    _, first, row = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    return first, row.reshape(-1)


def _codes(inputs: Table, name: str) -> Whole:
    """Return whole numbers that are equal where the values of a column are, in their order."""
    array = inputs.array(name, "Input")
    values = from_arrow(array, name, "Input").values
    missing = array.is_null(nan_is_null=True).to_numpy()
    refuse(missing, name, "Input", "got no value. Drop the row or fill in the value.")
    if pa.types.is_timestamp(array.type):
        # Instants: in autumn the wall clock shows an hour twice.
        values = array.cast(pa.int64()).to_numpy()
    text = values.astype(str) if values.dtype == object else values
    return np.unique(text, return_inverse=True)[1].astype(np.int64)
