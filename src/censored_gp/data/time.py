"""Times: durations, time zones, the wall clock, calendar parts, and the time stamps that come next.

Models see the local wall clock: people keep their habits by it. An instant is a time in UTC. A zone
is the name of one ("Europe/Copenhagen") or an offset ("+02:00").
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.errors import DataError

Times = Shaped[np.ndarray, " N"]

HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
"""Hours of each unit of a duration."""

DAY, WEEK = 86_400, 604_800

MOST_AHEAD = 100_000
"""Time stamps that a forecast may have at most."""

OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})(?::?\d{2})?|pytz.FixedOffset\((-?\d+)\)")
"""How zones with a fixed offset from UTC are named."""

YEAR_OR_MONTH = re.compile(r"\d{4}(-\d{2})?")

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def duration_hours(duration: str) -> float:
    """The hours of a duration such as `"30min"`, `"1d"` or `"1.5h"`."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", str(duration))
    if match is None or match[2] not in HOURS:
        said = f"{duration!r} is not a duration. Give a number followed by one of "
        raise DataError(said + f'{", ".join(HOURS)}, such as "30min", "1d" or "7d".')
    return float(match[1]) * HOURS[match[2]]


def spacing(x: Float[np.ndarray, " N"]) -> float:
    """The typical (median) step between neighbouring distinct values; zero if there are none."""
    steps = np.diff(np.unique(x))
    return float(np.median(steps)) if len(steps) else 0.0


def weekday(times: Times) -> Int[np.ndarray, " N"]:
    """Return the day of the week, 0 for Monday to 6 for Sunday."""
    # 1970 began on a Thursday.
    return (np.asarray(times).astype("datetime64[D]").astype(np.int64) + 3) % 7


CALENDAR: dict[str, Callable[[Times], tuple[Any, Any]]] = {
    "hour": lambda times: (
        (times - times.astype("datetime64[D]")).astype("timedelta64[h]").astype(int),
        range(24),
    ),
    "weekday": lambda times: (weekday(times), WEEKDAYS),
    "date": lambda times: (times.astype("datetime64[D]"), None),
    "month": lambda times: (np.datetime_as_string(times, unit="M"), None),
}
"""Calendar parts of times: the part of each, and the labels that it numbers (None: the parts
themselves)."""


def zone_rules(zone: str) -> datetime.tzinfo:
    """Return the rules of a time zone: a named one, or a fixed offset from UTC.

    >>> [str(zone_rules(name)) for name in ("+02:00", "UTC-03:30", "Europe/Berlin")]
    ['UTC+02:00', 'UTC-03:30', 'Europe/Berlin']
    """
    fixed = OFFSET.fullmatch(zone)
    if fixed is not None:
        minutes = int(fixed[4] or 60 * int(fixed[2] or 0) + int(fixed[3] or 0))
        return datetime.timezone(
            datetime.timedelta(minutes=-minutes if fixed[1] == "-" else minutes)
        )
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        said = 'must be a name such as "Europe/Copenhagen" or an offset such as "+02:00", got '
        raise DataError(f"{said}{zone!r}.", argument="zone") from error


def zone_name(rules: datetime.tzinfo) -> str:
    """Return the name of a zone, an offset as "+02:00"."""
    fixed = OFFSET.fullmatch(str(rules))
    if fixed is None:
        return str(rules)
    offset = zone_rules(str(rules)).utcoffset(None)
    assert offset is not None
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def wall_clock(instants: Times, zone: str) -> Times:
    """Return what the clocks of a zone show at each instant."""
    rules = zone_rules(zone)
    return instants + _offsets(instants, lambda time: time.replace(tzinfo=datetime.UTC), rules)


def to_utc(walls: Times, zone: str, fold: int = 0) -> Times:
    """Return the instant at which the clocks of a zone show each time.

    An hour that comes twice is the first of the two, or the second with `fold=1`.
    """
    rules = zone_rules(zone)
    return walls - _offsets(walls, lambda time: time.replace(tzinfo=rules, fold=fold), rules)


def _offsets(times: Times, aware: Callable[[Any], Any], rules: datetime.tzinfo) -> Times:
    """Return the offset from UTC at each time; offsets change at quarters of an hour only."""
    quarters = _seconds(times) // 900
    distinct, place = np.unique(np.where(np.isnat(times), 0, quarters), return_inverse=True)
    starts = (900 * distinct).astype("datetime64[s]").tolist()
    offsets = [aware(start).astimezone(rules).utcoffset() for start in starts]
    return np.array(offsets, dtype="timedelta64[s]")[place]


def skipped(walls: Times, zone: str) -> Bool[np.ndarray, " N"]:
    """Return which times no clock of the zone shows, as summer time begins."""
    there = ~np.isnat(walls)
    return there & (wall_clock(to_utc(walls, zone), zone) != walls)


def resolve_repeated(walls: Times, zone: str, groups: Any = None) -> Times:
    """Return wall-clock times as instants; of an hour that comes twice, in the order of rows.

    Rows that share a time all year round (of several places) are no sign of a repeated hour: a time
    is the second of two when it has come as often as any other time does (in each group of rows).
    """
    first, second = to_utc(walls, zone), to_utc(walls, zone, fold=1)
    twice = second > first
    if not twice.any():
        return first
    keys = np.stack([walls.astype("datetime64[us]").astype(np.int64), _codes(groups, walls)], 1)
    _, key, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    key = key.reshape(-1)
    usual = counts[key[~twice]].max(initial=1)
    order = np.argsort(key, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rank = np.empty(len(walls), dtype=np.int64)
    rank[order] = np.arange(len(walls)) - starts[key[order]]
    return np.where(twice & (rank >= usual), second, first)


def _codes(groups: Any, walls: Times) -> Int[np.ndarray, " N"]:
    if groups is None:
        return np.zeros(len(walls), dtype=np.int64)
    return np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1]


def times_ahead(
    times: Times, periods: Any = None, until: Any = None, zone: str | None = None
) -> tuple[Times, Times]:
    """Return the times after the last one at the usual spacing, by the wall clock and in UTC.

    Only times of the day (of the week, once two weeks are known) that the past has are there:
    nothing is forecast for the hours in which a car park is closed.

    >>> past = np.datetime64("2024-06-03T08", "s") + np.arange(3) * np.timedelta64(3600, "s")
    >>> print(times_ahead(past, 2)[0])
    ['2024-06-03T11:00:00' '2024-06-03T12:00:00']
    """
    wanted = _checked_periods(periods, until)
    is_past = (lambda *_: False) if until is None else _is_past(until, zone)
    step = round(spacing(_seconds(times)))
    if step <= 0:
        raise DataError("A forecast needs two different times or more to go on from, got one.")
    found: list[tuple[Any, Any]] = []
    for wall, instant in _candidates(times, step, zone):
        if len(found) >= wanted or is_past(wall, instant):
            break
        found.append((wall, instant))
    else:
        _refuse_too_far(until)
    if len(found) > MOST_AHEAD:
        _refuse_too_far(until)
    if not found:
        _refuse_nothing(times.max(), until)
    walls, instants = zip(*found, strict=True)
    return np.array(walls, dtype="datetime64[s]"), np.array(instants, dtype="datetime64[s]")


def numbers_ahead(
    numbers: Float[np.ndarray, " N"], periods: Any = None, until: Any = None
) -> Float[np.ndarray, " H"]:
    """Return what comes after the last of times that are numbers, at their usual spacing.

    >>> numbers_ahead(np.array([0.0, 0.5, 1.0]), until=2.2)
    array([1.5, 2. ])
    """
    wanted, step, last = _checked_periods(periods, until), spacing(numbers), numbers.max()
    if step <= 0:
        raise DataError("A forecast needs two different times or more to go on from, got one.")
    if until is not None:
        if isinstance(until, bool) or not _is_number(until):
            said = f"must be a number, as the times of the training data are, got {until!r}."
            raise DataError(said, argument="until")
        # A hair is allowed for, as steps such as 0.1 do not add up to the last bit.
        wanted = int(np.floor((float(until) - last) / step + 1e-9))
        if wanted > MOST_AHEAD:
            _refuse_too_far(until)
    if wanted < 1:
        _refuse_nothing(last, until)
    return last + step * np.arange(1, wanted + 1)


def _is_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _checked_periods(periods: Any, until: Any) -> int:
    """Return how many times are wanted at most."""
    if (periods is None) == (until is None):
        said = "Give either `periods`, how many times ahead, or `until`, up to which time; got "
        raise DataError(said + f"periods={periods!r} and until={until!r}.")
    if periods is None:
        return MOST_AHEAD + 1
    count = float(periods) if _is_number(periods) and not isinstance(periods, bool | str) else 0.0
    if not count.is_integer() or not 1 <= count <= MOST_AHEAD:
        said = f"must be a whole number from 1 to {MOST_AHEAD}, got {periods!r}."
        raise DataError(said, argument="periods")
    return int(count)


def _is_past(until: Any, zone: str | None) -> Callable[[Any, Any], bool]:
    """Return whether a time (by the wall clock, in UTC) is after the last one that is wanted."""
    when = _as_datetime(until)
    if when.tzinfo is None:
        last = np.datetime64(when, "s")
        return lambda wall, _: bool(wall > last)
    if zone is None:
        said = f"must be without a zone, as the times of the training data are, got {until}."
        raise DataError(said, argument="until")
    moment = np.datetime64(when.astimezone(datetime.UTC).replace(tzinfo=None), "s")
    return lambda _, instant: bool(instant > moment)


def _as_datetime(until: Any) -> datetime.datetime:
    text = str(until).strip()
    if isinstance(until, datetime.datetime) and text != "NaT":
        return until
    if isinstance(until, np.datetime64):
        text = str(until.astype("datetime64[s]"))
    try:
        if YEAR_OR_MONTH.fullmatch(text):
            text = str(np.datetime64(text, "s"))
        return datetime.datetime.fromisoformat(text)
    except ValueError as error:
        said = f"must be a time such as 2024-06-03 or 2024-06-03T08:00+02:00, got {text!r}."
        raise DataError(said, argument="until") from error


def _refuse_nothing(last: Any, until: Any) -> None:
    raise DataError(f"must be after the last training time, {last}, got {until}.", argument="until")


def _refuse_too_far(until: Any) -> None:
    given = "periods" if until is None else "until"
    raise DataError(f"must be at most {MOST_AHEAD} steps ahead, got {until}.", argument=given)


def _candidates(times: Times, step: int, zone: str | None) -> Iterator[tuple[Any, Any]]:
    """Yield times after the last one that are of the usual times of the day or week."""
    span = int((times.max() - times.min()).astype("timedelta64[s]").astype(np.int64))
    cycle = WEEK if span >= 2 * WEEK else DAY
    usual = np.unique(_seconds(times) % cycle)
    # Irregular times have more slots than a cycle has steps, and say nothing of closed hours.
    everything = len(usual) > cycle // step or step >= cycle or span < 2 * cycle
    for start in range(1, MOST_AHEAD + 100, 100):
        later = (step * np.arange(start, start + 100)).astype("timedelta64[s]")
        walls, instants = _after(times.max(), later, zone, step)
        keep = everything | np.isin(_seconds(walls) % cycle, usual)
        yield from zip(walls[keep], instants[keep], strict=True)


def _seconds(times: Times) -> Int[np.ndarray, " N"]:
    return times.astype("datetime64[s]").astype(np.int64)


def _after(
    last: np.datetime64, later: Shaped[np.ndarray, " N"], zone: str | None, step: int
) -> tuple[Times, Times]:
    """Return times by the wall clock and in UTC; days are days, also when the clock changes."""
    walls = last + later
    if zone is None:
        return walls, walls
    if step >= DAY:
        return walls, to_utc(walls, zone)
    instants = to_utc(np.array([last]), zone) + later
    return wall_clock(instants, zone), instants
