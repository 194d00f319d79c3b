"""Tables in, tables out: which column of a table is what, and results that look like the table.

A wide table has a column for each output, a long one a row for each output and time. Either way
the model sees rows of inputs and one column for each output; what the table had beside that (its
make, its index, its time zone, the order of its rows) comes back in every result.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from censored_gp.bounds import odds_of_limits
from censored_gp.kept import Kept
from censored_gp.natives import Opened, labels_of, make_table, open_table, taken, times_of
from censored_gp.observations import Observations
from censored_gp.pivot import rows_of_long
from censored_gp.readings import Spec, read_cells
from censored_gp.tables import CELL, listed

__all__ = [
    "Layout",
    "Rows",
    "Training",
    "placed",
    "read_new",
    "read_training",
    "read_truth",
    "result",
    "values_of",
    "with_index",
]


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what.

    Of a wide table `outputs` are columns. Of a long one they are the distinct values of the
    column `by`, and `value` is the column of their values.
    """

    outputs: tuple[Any, ...]
    time: Any = None
    inputs: tuple[Any, ...] = ()
    by: Any = None
    value: Any = None
    make: str = "pandas"
    spec: Spec = field(default_factory=Spec)

    @property
    def long(self) -> bool:
        """Whether the table has a row for each output and time."""
        return self.by is not None

    @property
    def columns(self) -> tuple[Any, ...]:
        """Columns that the model has as inputs: the time first."""
        return ((self.time,) if self.time is not None else ()) + self.inputs

    @property
    def keys(self) -> tuple[Any, ...]:
        """Columns that say which row is which, and come first in every result."""
        both = (self.time, self.by)
        return tuple(label for label in both if label is not None)


@dataclass(frozen=True)
class Rows:
    """The rows of a table: their keys, and where their cells are among those of the model."""

    keys: Any
    """The time (and `by`) columns, in a table of the make that was given, or `Kept` from one."""
    row: Int[np.ndarray, " K"]
    """The row of the model that a row of the table is about; -1: none."""
    output: Int[np.ndarray, " K"] | None = None
    """The output that a row of a long table is about; None: the table is wide."""
    table: Any = field(init=False, default=None, repr=False, compare=False)
    """The training table itself, as long as the program runs: to group its rows by any column."""

    def of(self, table: Opened) -> Rows:
        """Keep the table that the rows are of."""
        # Later changes to a frame of pandas do not reach a copy, which takes no room until then.
        own = table.native.copy(deep=False) if table.make == "pandas" else table.native
        object.__setattr__(self, "table", own)
        return self


ALL_EXACT = Spec()
"""What is meant where nothing is said of censoring."""


class Training(NamedTuple):
    """A table for training, read."""

    layout: Layout
    rows: Rows
    inputs: dict[str, Any]
    observations: Observations


def read_training(
    data: Any,
    outputs: Any,
    *,
    by: Any = None,
    time: Any = None,
    inputs: Any = None,
    spec: Spec = ALL_EXACT,
) -> Training:
    """Read a table as its columns are named.

    >>> table = {"hour": [0.0, 1.0], "a": [1.0, 5.0], "full": [False, True]}
    >>> read = read_training(table, "a", time="hour", spec=Spec(censored="full"))
    >>> print(read.observations.summary())
    2 rows of 1 output
      a: 1 exact, 1 at least a bound (right-censored)
    """
    table = with_index(open_table(data), time)
    names = _as_labels(table, outputs)
    others = () if inputs is None else _as_labels(table, inputs)
    _check_roles(table, names, others, time, by)
    layout = Layout(names, time, others, make=table.make, spec=_lasting(spec))
    if by is None:
        seen = read_cells(table, names, spec)
        rows = Rows(Kept.of(_keys(table, layout)), np.arange(len(table))).of(table)
        return Training(layout, rows, _inputs(table, layout), seen)
    return _read_long(table, layout, by, spec)


def _read_long(table: Opened, wide: Layout, by: Any, spec: Spec) -> Training:
    """Put the rows of a long table side by side: one row of the model for each time."""
    labels = labels_of(table, by)
    distinct = tuple(dict.fromkeys(labels))
    layout = Layout(
        distinct, wide.time, wide.inputs, by, wide.outputs[0], table.make, spec=wide.spec
    )
    cells = read_cells(table, (layout.value,), spec, keys=labels)
    place = {label: d for d, label in enumerate(distinct)}
    output = np.array([place[label] for label in labels])
    columns = {label: _input(table, label, layout.time) for label in layout.columns}
    first, row = rows_of_long(columns, output, layout.time, distinct)
    seen = _spread(cells, (len(first), len(distinct)), (row, output), distinct)
    inputs = {str(label): taken(column, first) for label, column in columns.items()}
    keys = Kept.of(_keys(table, layout))
    return Training(layout, Rows(keys, row, output).of(table), inputs, seen)


@contextlib.contextmanager
def placed(layout: Layout | None, rows: Rows | None) -> Iterator[None]:
    """Name the row and the column of a long table in errors about a cell of the model."""
    try:
        yield
    except ValueError as error:
        cell = CELL.search(str(error))
        if layout is None or rows is None or rows.output is None or cell is None:
            raise
        raise ValueError(_in_long_table(str(error), cell, layout, rows)) from error


def _in_long_table(message: str, cell: re.Match[str], layout: Layout, rows: Rows) -> str:
    """Return a message about a row of the model as one about a row of the long table."""
    own = rows.row == int(cell["row"])
    column, names = cell["column"], [repr(str(label)) for label in layout.outputs]
    if column in names and message.startswith("Output"):
        assert rows.output is not None
        own &= rows.output == names.index(column)
        column = f"{column} in column {str(layout.value)!r}"
    found = np.flatnonzero(own)
    place = f"{column}, row {int(found[0])}" if len(found) else column
    return message[: cell.start()] + place + message[cell.end() :]


def read_new(data: Any, layout: Layout) -> tuple[dict[str, Any], Rows]:
    """Read the inputs of a new table, and which cells its rows ask for.

    A long table without the column `by` asks for all outputs at each of its rows.
    """
    table = with_index(open_table(data), layout.time)
    inputs = _inputs(table, layout)
    each = np.arange(len(table))
    if not layout.long:
        return inputs, Rows(_keys(table, layout), each)
    if table.has(layout.by):
        return inputs, Rows(_keys(table, layout), each, _known_labels(table, layout))
    repeated = np.repeat(each, len(layout.outputs))
    keys = [k for k in (layout.time,) if table.has(k) and k != table.from_index]
    labels = {layout.by: np.array(layout.outputs * len(table))}
    long = make_table(table.select(keys), repeated, labels)
    return inputs, Rows(long, repeated, np.tile(np.arange(len(layout.outputs)), len(table)))


def read_truth(data: Any, layout: Layout) -> Observations:
    """Read what a new table says of the outputs, row by row of the table."""
    table = with_index(open_table(data), layout.time)
    if not layout.long:
        return read_cells(table, layout.outputs, layout.spec)
    cells = read_cells(table, (layout.value,), layout.spec, keys=labels_of(table, layout.by))
    shape = (len(table), len(layout.outputs))
    where = (np.arange(len(table)), _known_labels(table, layout))
    return _spread(cells, shape, where, layout.outputs)


def _spread(
    cells: Observations, shape: tuple[int, int], where: tuple[Any, Any], outputs: Sequence[Any]
) -> Observations:
    """Put the rows of one column into the cells of a table in which all else is missing."""
    lower, upper, share = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, bool)
    lower[where], upper[where] = cells.lower[:, 0], cells.upper[:, 0]
    share[where] = cells.is_share[:, 0]
    # Limits of one output say nothing of those of another.
    odds = odds_of_limits(lower, share) if cells.limit_odds.any() else np.zeros((1, 1))
    names = tuple(map(str, outputs))
    return Observations(lower, upper, names, is_share=share, limit_odds=odds)


def values_of(
    data: Any, layout: Layout | None, rows: Rows, shape: tuple[int, int]
) -> Float[np.ndarray, "N D"]:
    """Return the recorded values of a new table at the rows of the model, NaN where missing."""
    table, cells = open_table(data), np.full(shape, np.nan)
    assert layout is not None
    if rows.output is None:
        columns = [table.numbers(label, "Output") for label in layout.outputs]
        return np.stack(columns, axis=1)
    cells[rows.row, rows.output] = table.numbers(layout.value, "Output")
    return cells


def _known_labels(table: Opened, layout: Layout) -> Int[np.ndarray, " K"]:
    place = {label: d for d, label in enumerate(layout.outputs)}
    labels = labels_of(table, layout.by)
    unknown = next((row for row, label in enumerate(labels) if label not in place), None)
    if unknown is not None:
        raise ValueError(
            f"Column {layout.by!r}, row {unknown}: found {labels[unknown]!r}. Accepted are the "
            f"outputs of the training data: {listed(map(str, layout.outputs))}."
        )
    return np.array([place[label] for label in labels], dtype=int)


def result(
    layout: Layout,
    rows: Rows,
    cells: Float[np.ndarray, "... N D"],
    stack: tuple[str, Sequence[Any]] | None = None,
) -> Any:
    """Return cells as a table like the one that was given.

    A leading axis of the cells is stacked: the column `stack[0]` then says which is which.
    """
    many = cells[None] if stack is None else cells
    count, size = len(many), len(rows.row)
    repeat = np.tile(np.arange(size), count)
    added = {} if stack is None else {stack[0]: np.repeat(np.asarray(stack[1]), size)}
    if rows.output is not None:
        columns = {layout.value: many[:, rows.row, rows.output].reshape(-1)}
    else:
        flat = many[:, rows.row].reshape(-1, many.shape[-1])
        columns = {label: flat[:, d] for d, label in enumerate(layout.outputs)}
    keys = rows.keys.table() if isinstance(rows.keys, Kept) else rows.keys
    return make_table(keys, repeat if stack else None, {**added, **columns})


def with_index(table: Opened, time: Any) -> Opened:
    """Return the table with its index as a column too, if that is what `time` names."""
    if table.make != "pandas" or time is None or table.has(time):
        return table
    index = table.native.index
    if time != index.name and not (time == "index" and index.name is None):
        return table
    return replace(open_table(table.native.assign(**{str(time): index.array})), from_index=time)


def _as_labels(table: Opened, given: Any) -> tuple[Any, ...]:
    """Return names of columns, from one name or several."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _check_roles(
    table: Opened, outputs: tuple[Any, ...], inputs: tuple[Any, ...], time: Any, by: Any
) -> None:
    """Refuse columns that are absent, named twice, or named for two purposes."""
    if not outputs or (time is None and not inputs):
        raise ValueError(
            f"Found outputs={list(outputs)}, time={time!r} and inputs={list(inputs)}. Accepted is "
            "at least one output, and a time or inputs (or both) by name of their columns."
        )
    if by is not None and len(outputs) != 1:
        raise ValueError(
            f"outputs: found {listed(map(str, outputs))} with by={by!r}. Accepted for a long table "
            "is the one column of values; leave out by=... for a wide table."
        )
    used = [*outputs, *inputs, *(label for label in (time, by) if label is not None)]
    twice = sorted({str(label) for label in used if used.count(label) > 1})
    if twice:
        raise ValueError(
            f"Columns: found {listed(twice)} named more than once among outputs, inputs, time and "
            "by. Accepted is one purpose for each column."
        )
    if not len(table):
        raise ValueError("Table: found no rows. Accepted is at least one.")


def _lasting(spec: Spec) -> Spec:
    """Return the names and numbers of a specification: arrays are about the training rows only."""

    def kept(given: Any) -> Any:
        plain = given is None or isinstance(given, str | int | float)
        several = isinstance(given, list | tuple) and all(isinstance(g, str) for g in given)
        return given if plain or several or isinstance(given, Mapping) else None

    return Spec(
        kept(spec.censored), kept(spec.capacity), kept(spec.lower), kept(spec.upper), spec.side
    )


def _keys(table: Opened, layout: Layout) -> Any:
    return table.select([k for k in layout.keys if table.has(k) and k != table.from_index])


def _inputs(table: Opened, layout: Layout) -> dict[str, Any]:
    return {str(label): _input(table, label, layout.time) for label in layout.columns}


def _input(table: Opened, label: Any, time: Any) -> Any:
    return times_of(table, label) if label == time else table.raw(label, "Input")
