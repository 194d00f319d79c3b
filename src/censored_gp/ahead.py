"""The times that come next, and inputs for them when nobody knows what those will be."""

from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Float, Int, Shaped

from censored_gp.inputs import Columns, hours_since, read_inputs
from censored_gp.kernels.spacing import spacing
from censored_gp.tables import listed

__all__ = ["known_inputs", "scenarios", "times_ahead"]

Times = Shaped[np.ndarray, " N"]
MOST_AHEAD = 100_000
DAY, WEEK = 86_400, 604_800


def times_ahead(
    times: Times, periods: int | None = None, until: Any = None, zone: str | None = None
) -> tuple[Times, Times]:
    """Return the times after the last one at the usual spacing, by the wall clock and in UTC.

    Only times of the day (of the week, once two weeks are known) that the past has are there:
    nothing is forecast for the hours in which a car park is closed.

    >>> past = np.datetime64("2024-06-03T08", "s") + np.arange(3) * np.timedelta64(3600, "s")
    >>> print(times_ahead(past, 2)[0])
    ['2024-06-03T11:00:00' '2024-06-03T12:00:00']
    """
    if (periods is None) == (until is None):
        raise ValueError(
            f"forecast: found periods={periods!r} and until={until!r}. Accepted is one: how many "
            "times ahead, or up to which time."
        )
    step = round(3600 * spacing(times.astype(np.int64) / 3600.0))
    if step <= 0:
        raise ValueError("forecast: found one time only. Accepted are two or more to go on from.")
    last = np.datetime64("9999") if until is None else np.datetime64(until, "s")
    wanted = MOST_AHEAD if periods is None else int(periods)
    keep = _usual(times, step)
    found: list[tuple[Any, Any]] = []
    for number in range(1, MOST_AHEAD):
        wall, instant = _after(times.max(), number * step, zone, step)
        if len(found) >= wanted or wall > last:
            break
        if keep is None or _slot(wall, keep[0]) in keep[1]:
            found.append((wall, instant))
    if not found:
        raise ValueError(
            f"forecast: found no time after {times.max()} up to {until or periods}. Accepted is at "
            "least one period, or a later time."
        )
    walls, instants = zip(*found, strict=True)
    return np.array(walls, dtype="datetime64[s]"), np.array(instants, dtype="datetime64[s]")


def _usual(times: Times, step: int) -> tuple[int, set[int]] | None:
    """Return the cycle and its times that the past has; None if they are irregular, or all."""
    span = int((times.max() - times.min()).astype(np.int64))
    cycle = WEEK if span >= 2 * WEEK else DAY
    slots = {_slot(time, cycle) for time in np.unique(times)}
    irregular = len(slots) > cycle // step
    return None if irregular or step >= cycle or span < 2 * cycle else (cycle, slots)


def _slot(time: np.datetime64, cycle: int) -> int:
    return int(time.astype("datetime64[s]").astype(np.int64)) % cycle


def _after(
    last: np.datetime64, seconds: int, zone: str | None, step: int
) -> tuple[np.datetime64, np.datetime64]:
    """Return a time by the wall clock and in UTC; days are days, also when the clock changes."""
    later = last + np.timedelta64(seconds, "s")
    if zone is None:
        return later, later
    rules, utc = ZoneInfo(zone), datetime.UTC
    if step >= DAY:
        instant = _wall(later).replace(tzinfo=rules).astimezone(utc)
    else:
        began = _wall(last).replace(tzinfo=rules).astimezone(utc)
        instant = began + datetime.timedelta(seconds=seconds)
        later = np.datetime64(instant.astimezone(rules).replace(tzinfo=None), "s")
    return later, np.datetime64(instant.replace(tzinfo=None), "s")


def _wall(time: np.datetime64) -> datetime.datetime:
    return datetime.datetime.fromisoformat(str(time.astype("datetime64[s]")))


def known_inputs(X: Any, columns: Columns, rows: int) -> Float[np.ndarray, "N C"]:
    """Return the inputs that a table gives for the times ahead, NaN where it has no such column."""
    matrix = np.full((rows, len(columns.names)), np.nan)
    if X is None:
        return matrix
    given = {str(name): X[name] for name in (X if isinstance(X, dict) else _names(X))}
    used = [source for source in columns.groups if source in given]
    if not used:
        raise ValueError(
            f"inputs: found the columns {listed(given)}. Accepted are some of "
            f"{listed(columns.groups)}."
        )
    values, _ = read_inputs({source: given[source] for source in used}, columns.only(used))
    if len(values) != rows:
        raise ValueError(
            f"inputs: found {len(values)} row(s) for {rows} time(s) ahead. Accepted is one row for "
            "each of them, in their order."
        )
    matrix[:, [c for source in used for c in columns.groups[source]]] = values
    return matrix


def _names(X: Any) -> list[Any]:
    names = getattr(X, "column_names", None)
    return list(X.columns if names is None else names)


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
    filled = np.repeat(matrix[None], count, axis=0)
    open_ = np.flatnonzero(np.isnan(matrix).any(axis=0))
    own, days = past.astype("datetime64[D]"), ahead.astype("datetime64[D]")
    choices, weekday = np.unique(own), _weekday(np.unique(own))
    for day in np.unique(days):
        rows = np.flatnonzero(days == day)
        alike = choices[weekday == _weekday(day)]
        pool = alike if len(alike) >= 2 else choices
        for k, source in enumerate(rng.choice(pool, size=count)):
            like = _nearest(past, np.flatnonzero(own == source), ahead[rows])
            filled[k][np.ix_(rows, open_)] = inputs[np.ix_(like, open_)]
    return np.where(np.isnan(matrix), filled, matrix)


def _weekday(days: Any) -> Any:
    return (np.asarray(days).astype(np.int64) + 3) % 7


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
