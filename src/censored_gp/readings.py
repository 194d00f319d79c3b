"""What a table says of the outputs: values, flags, capacities and bounds, by name of column.

A table is read as it stands, one row at a time, so that whatever is wrong with a cell is told by
the name of its column and its row in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.cells import ACCEPTED, SHARES, check_side
from censored_gp.natives import Opened
from censored_gp.observations import Observations
from censored_gp.tables import (
    FLAG_WORDS,
    Column,
    as_numbers,
    first_problem,
    listed,
    read_table,
)
from censored_gp.targets import read_targets, refuse_share_without_flags, warn

__all__ = ["Spec", "read_cells"]

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
