"""Tables in, tables out: which column of a table is what, and results that look like the table.

A wide table has a column for each output, a long one a row for each output and time. Either way
the model sees rows of inputs and one column for each output; what the table had beside that (its
make, its index, its time zone, the order of its rows) comes back in every result.

What a table says of the outputs: values, flags, capacities and bounds, by name of column.

A table is read as it stands, one row at a time, so that whatever is wrong with a cell is told by
the name of its column and its row in the table.

Rows of a long table put side by side: one row of the model for each time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.observations import ACCEPTED, SHARES, Observations, check_side, odds_of_limits
from censored_gp.data.tables import (
    CELL,
    FLAG_WORDS,
    Column,
    Kept,
    Opened,
    as_numbers,
    first_problem,
    is_missing,
    labels_of,
    listed,
    make_table,
    open_table,
    plain,
    read_table,
    taken,
    times_of,
)
from censored_gp.data.validation import read_targets, refuse_share_without_flags, warn

Numbers = Float[np.ndarray, " N"]


@dataclass(frozen=True)
class Spec:
    """Which columns say how far an output was seen: see `CensoredGP.fit`."""

    censored: Any = None
    capacity: Any = None
    lower: Any = None
    upper: Any = None
    side: str = "right"

    def __post_init__(self) -> None:
        check_side(self.side)


def read_cells(table: Opened, outputs: Sequence[Any], spec: Spec, keys: Any = None) -> Observations:
    """Return what the table says of its cells, rows as in the table and a column for each output.

    Of a long table `outputs` is its one column of values and `keys` are the outputs by row, to
    which a dict of capacities refers.
    """
    bounded = spec.lower is not None or spec.upper is not None
    if bounded and (spec.censored is not None or spec.capacity is not None):
        raise ValueError(
            "Outputs: found bounds and flags or a capacity as well. Accepted is one: give "
            "lower=... and upper=..., or censored=... and capacity=..."
        )
    if spec.side in SHARES and spec.censored is None and (bounded or spec.capacity is not None):
        refuse_share_without_flags(spec.side)
    names = tuple(map(str, outputs))
    ends = {
        end: _cells(table, outputs, getattr(spec, end), f"{end.capitalize()} bound", keys)
        for end in ("lower", "upper")
    }
    values = [_values(table, label, bool(bounded)) for label in outputs]
    if bounded:
        given = {e: _named(names, cells) for e, cells in ends.items() if cells is not None}
        y = _named(names, values)
        return read_targets(y, lower=given.get("lower"), upper=given.get("upper"))
    flags = _flags(table, outputs, spec, values)
    if flags is not None:
        values, flags = _without_unknown(values, flags)
    y = _named(names, values)
    capacity = _cells(table, outputs, spec.capacity, "Capacity", keys)
    _check_capacity(values, flags, capacity, names)
    if flags is not None:
        return Observations.from_flags(y, _named(names, flags), side=spec.side)
    if capacity is not None:
        return Observations.from_capacity(y, np.stack(capacity, axis=1))
    return Observations.exact(y)


def _named(names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, cells, strict=True))


def _values(table: Opened, label: Any, bounded: bool) -> Numbers:
    """Recorded values; an output that has bounds alone need not have a column of its own."""
    if bounded and not table.has(label):
        return np.full(len(table), np.nan)
    return table.numbers(label, "Output")


def _flags(
    table: Opened, outputs: Sequence[Any], spec: Spec, values: Sequence[Numbers]
) -> list[Numbers] | None:
    """Flags of each output, -1, 0, 1 or NaN; 0 throughout where none is named."""
    if spec.censored is None:
        return None
    by_output = _by_output(table, outputs, spec.censored, "Censored")
    names = [by_output.get(output) for output in outputs]
    return [
        np.zeros(len(table)) if name is None else _flag(table, name, value, spec.side)
        for name, value in zip(names, values, strict=True)
    ]


def _flag(table: Opened, label: Any, values: Numbers, side: str) -> Numbers:
    column = label if isinstance(label, Column) else table.column(label, "Flag")
    if column.values.dtype.kind in "OUT":
        read = [_in_numbers(value) for value in column.values]
        column = column._replace(values=np.array(read, dtype=object))
    numbers = _numbers_or_words(column)
    numbers = np.where(np.isnan(values), 0.0, numbers)
    unknown = np.isnan(numbers)
    bad = ~np.isin(numbers, ACCEPTED[side]) & ~unknown
    problem = first_problem(bad[:, None], [column.name], "Flag")
    if problem:
        row, _, place = problem
        raise ValueError(
            f"{place}: found {numbers[row]:g}. Accepted are True or 1 (censored) and False or 0 "
            "(exact)" + (", and -1 (at most the value)." if side == "right" else ".")
        )
    if unknown.any():
        _tell_of_unknown(unknown, numbers[~np.isnan(values)], column.name)
    return numbers


def _numbers_or_words(column: Column) -> Numbers:
    """Return flags as numbers, or say which words are accepted."""
    for row, value in enumerate(column.values if column.values.dtype == object else ()):
        if isinstance(value, str):
            raise ValueError(
                f"Flag {column.name!r}, row {row}: found {value!r}. Accepted are true, yes or 1 "
                "(censored) and false, no or 0 (exact). Correct the flag."
            )
    return as_numbers(column, "Flag")


def _tell_of_unknown(unknown: Bool[np.ndarray, " N"], flags: Numbers, name: str) -> None:
    """Warn of values without a flag; refuse flags of values of which none says exact."""
    found = f"Flag {name!r} is missing in {unknown.sum()} row(s), the first of them row "
    found += f"{int(np.argmax(unknown))}"
    if not np.any(flags == 0):
        raise ValueError(
            f"{found}, and nowhere 0. Accepted is a flag for every value: fill in 0 (or False) "
            "where a value is exact."
        )
    warn(
        f"{found}: as it is not known whether these values were censored, they are left out. Fill "
        "in 0 where a value is exact."
    )


def _without_unknown(
    values: Sequence[Numbers], flags: Sequence[Numbers]
) -> tuple[list[Numbers], list[Numbers]]:
    """Take a value whose flag is missing for missing itself.

    For a bound, which it is in any case, it must not be taken: many exact values that are taken for
    lower bounds have nothing to hold what is above them.
    """
    unknown = [np.isnan(flag) for flag in flags]
    pairs = zip(values, flags, unknown, strict=True)
    both = [(np.where(u, np.nan, v), np.where(u, 0.0, f)) for v, f, u in pairs]
    return [value for value, _ in both], [flag for _, flag in both]


def _in_numbers(value: Any) -> Any:
    """Read words such as true and no; everything else stays as it is."""
    return FLAG_WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def _cells(
    table: Opened, outputs: Sequence[Any], given: Any, noun: str, keys: Any
) -> list[Numbers] | None:
    """Return one number for each row and output, NaN where none is given."""
    if given is None:
        return None
    if keys is not None and isinstance(given, Mapping):
        return [_by_key(given, keys, noun)]
    by_output = _by_output(table, outputs, given, noun)
    return [_numbers(table, by_output.get(output), noun) for output in outputs]


def _numbers(table: Opened, given: Any, noun: str) -> Numbers:
    if isinstance(given, Column):
        return as_numbers(given, noun)
    if given is None or (isinstance(given, int | float | np.number) and not table.has(given)):
        return np.full(len(table), np.nan if given is None else float(given))
    return table.numbers(given, noun)


def _by_key(given: Mapping[Any, Any], keys: Sequence[Any], noun: str) -> Numbers:
    """Return numbers by output of a long table, whose outputs are the keys of its rows."""
    unknown = [name for name in given if name not in set(keys)]
    if unknown:
        raise ValueError(
            f"{noun}: found {listed(map(str, unknown))}, which is not an output. The outputs are "
            f"{listed(sorted(set(map(str, keys))))}."
        )
    return np.array([float(given.get(key, np.nan)) for key in keys])


def _by_output(table: Opened, outputs: Sequence[Any], given: Any, noun: str) -> dict[Any, Any]:
    """Return names of columns, numbers or columns themselves, for each output that has one."""
    if isinstance(given, Mapping):
        return _mapped(outputs, given, noun)
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        return dict.fromkeys(outputs, given)
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list | tuple) and given and all(_is_name(each) for each in given):
        if len(given) != len(outputs):
            raise ValueError(
                f"{noun}: found {listed(map(str, given))} for {len(outputs)} output(s) "
                f"({listed(map(str, outputs))}). Accepted is one for each output, in their order "
                "or in a dict by output."
            )
        return dict(zip(outputs, given, strict=True))
    return _arrays(table, outputs, given, noun)


def _is_name(given: Any) -> bool:
    return isinstance(given, str)


def _mapped(outputs: Sequence[Any], given: Mapping[Any, Any], noun: str) -> dict[Any, Any]:
    unknown = [name for name in given if name not in outputs]
    if unknown:
        raise ValueError(
            f"{noun}: found {listed(map(str, unknown))}, which is not an output. The outputs are "
            f"{listed(map(str, outputs))}."
        )
    return dict(given)


def _arrays(table: Opened, outputs: Sequence[Any], given: Any, noun: str) -> dict[Any, Any]:
    """Read an array, a list or a frame: one column for each output, or one number for each."""
    columns = read_table(given, noun=noun, prefix="", alone=str(outputs[0])).columns
    if len(columns) == 1 and len(columns[0].values) == len(outputs) != len(table):
        return dict(zip(outputs, map(float, columns[0].values), strict=True))
    if len(columns) != len(outputs) or len(columns[0].values) != len(table):
        raise ValueError(
            f"{noun}: found {len(columns[0].values)} row(s) and {len(columns)} column(s) for a "
            f"table of {len(table)} row(s) and {len(outputs)} output(s). Accepted are names of "
            "columns, or one value for each row and output."
        )
    named = (c._replace(name=str(o)) for c, o in zip(columns, outputs, strict=True))
    return dict(zip(outputs, named, strict=True))


def _check_capacity(
    values: Sequence[Numbers],
    flags: Sequence[Numbers] | None,
    capacity: Sequence[Numbers] | None,
    names: Sequence[str],
) -> None:
    """Refuse a value that passes its capacity although it is flagged as exact."""
    if flags is None or capacity is None:
        return
    cells, limits = np.stack(values, axis=1), np.stack(capacity, axis=1)
    bad: Bool[np.ndarray, "N D"] = (cells > limits) & (np.stack(flags, axis=1) == 0)
    problem = first_problem(bad, names, "Output")
    if problem:
        row, d, place = problem
        raise ValueError(
            f"{place}: found {cells[row, d]:g}, which is not flagged as censored but above its "
            f"capacity of {limits[row, d]:g}. Accepted are exact values up to the capacity. "
            "Correct the capacity or the flag, or give capacity=... without censored=... to take "
            "every value at or above it as censored."
        )


Whole = Int[np.ndarray, " K"]


def rows_of_long(
    columns: Mapping[Any, Any],
    output: Int[np.ndarray, " K"],
    time: Any = None,
    names: Sequence[Any] = (),
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " K"]]:
    """Return the first row of the table for each row of the model, and the latter for all.

    Rows of one time are one row of the model. Without a time, rows of equal inputs are; if an
    output has several of them, each makes a row of its own.

    >>> first, row = rows_of_long({"t": np.array([1, 0, 1])}, np.array([0, 0, 1]), "t", "ab")
    >>> first, row
    (array([1, 0]), array([1, 0, 1]))
    """
    values = {label: plain(column) for label, column in columns.items()}
    codes = {label: _codes(each, label) for label, each in values.items()}
    if time is None:
        alike = np.stack([*codes.values(), _occurrence([*codes.values(), output])], axis=1)
        _, first, row = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        return first, row.reshape(-1)
    _, first, row = np.unique(codes.pop(time), return_index=True, return_inverse=True)
    _refuse_twice(row, output, time, columns[time], names)
    for label, code in codes.items():
        _refuse_disagreeing(label, values[label], code, first[row], time)
    return first, row


def _occurrence(codes: Sequence[Whole]) -> Whole:
    """Return how often each row's combination of codes came before."""
    _, same = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    order = np.argsort(same.reshape(-1), kind="stable")
    ranks = np.arange(len(order))
    starts = np.r_[True, np.diff(same.reshape(-1)[order]) != 0]
    since = ranks - np.maximum.accumulate(np.where(starts, ranks, 0))
    return since[np.argsort(order, kind="stable")]


def _codes(values: Shaped[np.ndarray, " K"], label: Any) -> Whole:
    """Return whole numbers that are equal where the values of a column are, in their order."""
    if values.dtype == object:
        lost = np.array([is_missing(value) for value in values])
    else:
        lost = values != values  # NaN and NaT, of which none equals itself
    if np.any(lost):
        raise ValueError(
            f"Input {label!r}, row {int(np.argmax(lost))}: found no value. Accepted is one in "
            "every row. Drop the row or fill in the value."
        )
    text = values.astype(str) if values.dtype == object else values
    return np.unique(text, return_inverse=True)[1].astype(np.int64)


def _refuse_twice(row: Whole, output: Whole, time: Any, times: Any, names: Sequence[Any]) -> None:
    """Refuse two rows about one output at one time."""
    pair = row * (int(output.max()) + 1) + output
    _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse] != np.arange(len(pair)))
    if len(again):
        late, early = int(again[0]), int(first[inverse[again[0]]])
        more = f" ({len(again) - 1} more such rows)" if len(again) > 1 else ""
        raise ValueError(
            f"Time {str(time)!r}, row {late}: found {_shown(times, late)} of output "
            f"{names[output[late]]!r} again, after row {early}{more}. Accepted is one row for each "
            "output and time. Drop the doubles, or add them up first."
        )


def _shown(column: Any, row: int) -> str:
    """Return a value as the user's table has it: a time in its own zone."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    return str(series[row])


def _refuse_disagreeing(
    label: Any, values: Shaped[np.ndarray, " K"], code: Whole, first: Whole, time: Any
) -> None:
    """Refuse an input that is not the same for all outputs at one time."""
    other = np.flatnonzero(code != code[first])
    if len(other):
        late, early = int(other[0]), int(first[other[0]])
        raise ValueError(
            f"Input {label!r}, row {late}: found {values[late]!s}, but {values[early]!s} in row "
            f"{early} of the same {time}. Accepted are inputs that are the same for all outputs "
            "at one time. Average them, or give each output an input column of its own."
        )


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
