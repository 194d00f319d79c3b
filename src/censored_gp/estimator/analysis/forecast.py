"""Inputs that are known for the times ahead: from a table whose rows are found by their times."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from censored_gp.data.errors import listed, refuse
from censored_gp.data.inputs import Columns, hours_since, read_inputs, require_kind
from censored_gp.data.tables import Table, is_table, read_table
from censored_gp.data.time import DAY, Times, weekday


def scenarios(
    past: Times,
    inputs: Float[np.ndarray, "N C"],
    ahead: Times,
    matrix: Float[np.ndarray, "H C"],
    count: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "K H C"]:
    """Fill what is not known of the inputs ahead with what it was on days of the past.

    Each day ahead takes all of its inputs from one day of the past, of the same weekday if there
    are two such days or more, at the nearest time of the day: weather lasts, so hours are not
    drawn one by one.
    """
    filled, open_ = _unfilled(matrix, count)
    own, days = past.astype("datetime64[D]"), ahead.astype("datetime64[D]")
    choices = np.unique(own)
    for day in np.unique(days):
        rows = np.flatnonzero(days == day)
        alike = choices[weekday(choices) == weekday(day)]
        pool = alike if len(alike) >= 2 else choices
        for k, source in enumerate(rng.choice(pool, size=count)):
            like = _nearest(past, np.flatnonzero(own == source), ahead[rows])
            filled[k][np.ix_(rows, open_)] = inputs[np.ix_(like, open_)]
    return np.where(np.isnan(matrix), filled, matrix)


def drawn_stretches(
    past: Float[np.ndarray, " N"],
    inputs: Float[np.ndarray, "N C"],
    matrix: Float[np.ndarray, "H C"],
    count: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "K H C"]:
    """Fill what is not known of the inputs ahead with a stretch of the past that starts anywhere.

    For times that are numbers, of which nobody knows what a day is. The past begins again where a
    stretch passes its end.
    """
    filled, open_ = _unfilled(matrix, count)
    order, rows = np.argsort(past, kind="stable"), np.arange(len(matrix))
    for k, start in enumerate(rng.integers(len(past), size=count)):
        like = order[(start + rows) % len(past)]
        filled[k][np.ix_(rows, open_)] = inputs[np.ix_(like, open_)]
    return np.where(np.isnan(matrix), filled, matrix)


def _unfilled(
    matrix: Float[np.ndarray, "H C"], count: int
) -> tuple[Float[np.ndarray, "K H C"], Int[np.ndarray, " U"]]:
    """Return copies of the inputs ahead, and the columns of which something is not known."""
    unknown = np.flatnonzero(np.isnan(matrix).any(axis=0))
    return np.repeat(matrix[None], count, axis=0), unknown


def _nearest(past: Times, rows: Int[np.ndarray, " K"], ahead: Times) -> Int[np.ndarray, " H"]:
    """Return the rows of one day of the past at the times of the day nearest to those ahead."""

    def of_day(times: Times) -> Int[np.ndarray, " N"]:
        return times.astype("datetime64[s]").astype(np.int64) % DAY

    apart = np.abs(of_day(ahead)[:, None] - of_day(past[rows])[None, :])
    return rows[np.argmin(apart, axis=1)]


def in_hours(columns: Columns, times: Times) -> dict[int, Float[np.ndarray, " H"]]:
    """Return times as the model has them, for each of its columns of times."""
    return {
        c: hours_since(times, origin)
        for c, origin in enumerate(columns.origin)
        if isinstance(origin, np.datetime64)
    }


def known_inputs(
    X: Any, columns: Columns, time: Any, wall: Times, instant: Times
) -> Float[np.ndarray, "H C"]:
    """Return the inputs that a table gives for the times ahead, NaN where it has no such column.

    A table with the column `time` has its rows in any order, and may have more than are needed.
    One without has a row for each time ahead, in their order.

    >>> past = np.array(["2024-06-03", "2024-06-04"], dtype="datetime64[s]")
    >>> _, columns = read_inputs({"day": past, "rain": [0.0, 0.0]})
    >>> later, rain = past + np.timedelta64(2, "D"), {"rain": [5.0, 6.0]}
    >>> known_inputs({"day": later[::-1], **rain}, columns, "day", later, later)[:, 1]
    array([6., 5.])
    """
    matrix = np.full((len(wall), len(columns.names)), np.nan)
    if X is None:
        return matrix
    if not is_table(X):
        raise ValueError(
            f"inputs: found {type(X).__name__}. Accepted is a data frame or a dict of columns by "
            "name."
        )
    table = read_table(X)
    used = _used(table, columns, time)
    values, _ = read_inputs(
        {source: table.array(source, "Input") for source in used}, columns.only(used)
    )
    rows = _rows(table, columns, time, wall, instant, values)
    matrix[:, [c for source in used for c in columns.groups[source]]] = values[rows]
    return matrix


def _used(table: Table, columns: Columns, time: Any) -> list[str]:
    """Return the inputs that a table has, in the order of the model."""
    accepted = [source for source in columns.groups if source != str(time)]
    used = [source for source in accepted if table.has(source)]
    if not used:
        few = "The model has no inputs but the time: leave the table out."
        raise ValueError(
            f"inputs: found the columns {listed(table.names)}. "
            + (f"Accepted are some of {listed(accepted)}." if accepted else few)
        )
    return used


def _rows(
    table: Table,
    columns: Columns,
    time: Any,
    wall: Times,
    instant: Times,
    values: Float[np.ndarray, "K C"],
) -> Int[np.ndarray, " H"]:
    """Return the row of a table for each time ahead."""
    if time is None or not table.has(time):
        if len(values) != len(wall):
            raise ValueError(
                f"inputs: found {len(values)} row(s) for {len(wall)} time(s) ahead. Accepted is "
                "one row for each of them, in their order, or a column of their times."
            )
        return np.arange(len(wall))
    given = _instants(table, time, columns)
    places = {moment: row for row, moment in reversed(list(enumerate(given.tolist())))}
    _refuse_disagreeing(given.tolist(), places, values, time)
    wanted = instant.astype(given.dtype).tolist()
    lost = [k for k, moment in enumerate(wanted) if moment not in places]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise ValueError(
            f"inputs: found no row for {time} {_shown(wall[lost[0]])}{more}. Accepted is a row for "
            f"each time ahead: {len(wall)} from {_shown(wall[0])} to {_shown(wall[-1])}. Add the "
            "rows, or ask for fewer times."
        )
    return np.array([places[moment] for moment in wanted])


def _shown(time: Any) -> str:
    return str(time).replace("T", " ") if isinstance(time, np.datetime64) else f"{time:g}"


def _instants(table: Table, time: Any, columns: Columns) -> Shaped[np.ndarray, " K"]:
    """Return the times of a table: in UTC, without a zone if the training data have none."""
    place = columns.names.index(str(time))
    zone = columns.zones[place]
    column = table.with_times(time).column(time, "Input", zone and "UTC")
    require_kind(column, columns.is_time[place], zone)
    if not columns.is_time[place]:
        # To the sixth digit of a step and beyond they agree or are different times.
        return np.round(column.numbers("Input"), 9)
    refuse(np.isnat(column.values), column.name, "Input", "got a missing time.")
    return column.values.astype("datetime64[s]")


def _refuse_disagreeing(
    given: list[Any], places: dict[Any, int], values: Float[np.ndarray, "K C"], time: Any
) -> None:
    """Refuse two rows of one time whose inputs differ; a long table has many that do not."""
    first = np.array([places[moment] for moment in given])
    other = np.flatnonzero(np.any(values != values[first], axis=1))
    if len(other):
        late = int(other[0])
        raise ValueError(
            f"Input {str(time)!r}, row {late}: found the time of row {first[late]} again, with "
            "other inputs. Accepted is one row for each time. Drop one of them."
        )
