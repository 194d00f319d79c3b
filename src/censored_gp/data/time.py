"""Times: durations, time zones, the wall clock, calendar parts, and the time stamps that come next.

Models see the local wall clock: people keep their habits by it. An instant is a time in UTC. A zone
is the name of one ("Europe/Copenhagen") or an offset ("+02:00").
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.errors import DataError, did_you_mean, reads_as
from censored_gp.data.inputs import spacing

Times = Shaped[np.ndarray, " N"]

# Hours of each unit of a duration.
HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}

DAY, WEEK = 86_400, 604_800

# Time stamps that a forecast may have at most.
MOST_AHEAD = 100_000

# How zones with a fixed offset from UTC are named.
OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})(?::?\d{2})?|pytz.FixedOffset\((-?\d+)\)")

YEAR_OR_MONTH = re.compile(r"\d{4}(-\d{2})?")

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def duration_hours(duration: str) -> float:
    """The hours of a duration such as `"30min"`, `"1d"` or `"1.5h"`."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", str(duration))
    if match is None or match[2] not in HOURS:
        said = f"{duration!r} is not a duration. Give a number followed by one of "
        raise DataError(said + f'{", ".join(HOURS)}, such as "30min", "1d" or "7d".')
    return float(match[1]) * HOURS[match[2]]


def weekday(times: Times) -> Int[np.ndarray, " N"]:
    """Return the day of the week, 0 for Monday to 6 for Sunday."""
    # 1970 began on a Thursday.
    return (np.asarray(times).astype("datetime64[D]").astype(np.int64) + 3) % 7


# Calendar parts of times: the part of each, and the labels that it numbers (None: the parts
# themselves).
CALENDAR: dict[str, Callable[[Times], tuple[Any, Any]]] = {
    "hour": lambda times: (
        (times - times.astype("datetime64[D]")).astype("timedelta64[h]").astype(int),
        range(24),
    ),
    "weekday": lambda times: (weekday(times), WEEKDAYS),
    "date": lambda times: (times.astype("datetime64[D]"), None),
    "month": lambda times: (np.datetime_as_string(times, unit="M"), None),
}


def is_holiday(times: Times, country: str) -> Float[np.ndarray, " N"]:
    """Return 1 for times of public holidays of a country, or of a part of one ("US-NY"), else 0.

    >>> is_holiday(np.array(["2024-12-25T08", "2024-12-28T08"], "datetime64[h]"), "DK").tolist()
    [1.0, 0.0]
    """
    try:
        import holidays
    except ImportError as error:
        raise ImportError("holidays=... needs a library: install censored-gp[holidays].") from error
    code, _, part = str(country).partition("-")
    days = times.astype("datetime64[D]")
    years = np.unique(days.astype("datetime64[Y]").astype(int) + 1970)
    try:
        known = holidays.country_holidays(code, part or None, years=years.tolist())
    except NotImplementedError as error:
        said = f'must be a country such as "DK", or a part of one as "US-NY", got {country!r}.'
        raise DataError(said, argument="holidays") from error
    return np.isin(days, np.array(list(known), "datetime64[D]")).astype(float)


def zone_rules(zone: str) -> datetime.tzinfo:
    """Return the rules of a time zone: a named one, or a fixed offset from UTC.

    >>> [str(zone_rules(name)) for name in ("+02:00", "UTC-03:30", "Europe/Berlin")]
    ['UTC+02:00', 'UTC-03:30', 'Europe/Berlin']
    """
    fixed = OFFSET.fullmatch(zone)
    if fixed is not None:
        minutes = int(fixed[4] or 60 * int(fixed[2] or 0) + int(fixed[3] or 0))
        signed = -minutes if fixed[1] == "-" else minutes
        return datetime.timezone(datetime.timedelta(minutes=signed))
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        said = 'must be a name such as "Europe/Copenhagen" or an offset such as "+02:00", got '
        said += f"{zone!r}. {did_you_mean(zone, available_timezones())}"
        raise DataError(said, argument="zone") from error


def zone_name(rules: datetime.tzinfo) -> str:
    """Return the name of a zone, an offset as "+02:00"."""
    name = str(rules)
    if OFFSET.fullmatch(name) is None:
        return name
    midnight = datetime.datetime(2000, 1, 1, tzinfo=zone_rules(name))
    return midnight.isoformat()[-6:]


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


def _seconds(times: Times) -> Int[np.ndarray, " N"]:
    return times.astype("datetime64[s]").astype(np.int64)


def skipped(walls: Times, zone: str) -> Bool[np.ndarray, " N"]:
    """Return which times no clock of the zone shows, as summer time begins."""
    return ~np.isnat(walls) & (wall_clock(to_utc(walls, zone), zone) != walls)


def resolve_repeated(walls: Times, zone: str, groups: Any = None) -> Times:
    """Return wall-clock times as instants; of an hour that comes twice, in the order of rows.

    Rows that share a time all year round (of several places) are no sign of a repeated hour: a time
    is the second of two when it has come as often as any other time does (in each group of rows).
    """
    first, second = to_utc(walls, zone), to_utc(walls, zone, fold=1)
    twice = second > first
    if not twice.any():
        return first
    group = np.zeros(len(walls)) if groups is None else np.asarray(groups, dtype=str)
    codes = [np.unique(each, return_inverse=True)[1] for each in (walls, group)]
    rank, counts = occurrence(np.stack(codes, axis=1))
    usual = counts[~twice].max(initial=1)
    return np.where(twice & (rank >= usual), second, first)


def occurrence(
    codes: Int[np.ndarray, "N K"],
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    """Return how often each row has come before, and how often it comes in all."""
    _, group, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank, counts[group.reshape(-1)]


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
    if (periods is None) == (until is None):
        said = "Give either `periods`, how many times ahead, or `until`, up to which time; got "
        raise DataError(said + f"periods={periods!r} and until={until!r}.")
    step = round(spacing(_seconds(times)))
    if step <= 0:
        raise DataError("A forecast needs two different times or more to go on from, got one.")
    number = 0 if periods is None else periods
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if periods is not None and not (whole and 1 <= number <= MOST_AHEAD):
        said = f"must be a whole number from 1 to {MOST_AHEAD}, got {periods!r}."
        raise DataError(said, argument="periods")
    end, is_aware = (None, False) if until is None else _last_time(until, zone)
    span = int((times.max() - times.min()).astype("timedelta64[s]").astype(np.int64))
    cycle = WEEK if span >= 2 * WEEK else DAY
    usual = np.unique(_seconds(times) % cycle)
    # Irregular times have more slots than a cycle has steps, and say nothing of closed hours.
    every = len(usual) > cycle // step or step >= cycle or span < 2 * cycle
    # Time zones are slow: most forecasts need few steps.
    for steps in (100, 3000, MOST_AHEAD + 1):
        walls, instants = _after(times.max(), step, steps, zone)
        open_then = every | np.isin(_seconds(walls) % cycle, usual)
        walls, instants = walls[open_then], instants[open_then]
        if end is not None:
            past = np.flatnonzero((instants if is_aware else walls) > end)
            number = int(past[0]) if len(past) else len(walls) + 1
        if number <= len(walls):
            break
    else:
        said = f"must be at most {MOST_AHEAD} steps ahead, got {periods or until}."
        raise DataError(said, argument="until" if periods is None else "periods")
    if not number:
        said = f"must be after the last training time, {times.max()}, got {until}."
        raise DataError(said, argument="until")
    return walls[:number], instants[:number]


def _after(last: np.datetime64, step: int, steps: int, zone: str | None) -> tuple[Times, Times]:
    """Return times by the wall clock and in UTC; days are days, also when the clock changes."""
    later = (step * np.arange(1, steps + 1)).astype("timedelta64[s]")
    walls = last.astype("datetime64[s]") + later
    if zone is None:
        return walls, walls
    if step >= DAY:
        return walls, to_utc(walls, zone)
    instants = to_utc(walls[:1] - later[:1], zone) + later
    return wall_clock(instants, zone), instants


def _last_time(until: Any, zone: str | None) -> tuple[np.datetime64, bool]:
    """Return the last time that is wanted; whether it is an instant, else by the wall clock."""
    text = str(until).strip()
    if isinstance(until, np.datetime64):
        text = str(until.astype("datetime64[s]"))
    elif YEAR_OR_MONTH.fullmatch(text):
        text = str(np.datetime64(text, "s"))
    if not reads_as(datetime.datetime.fromisoformat, text):
        said = f"must be a time such as 2024-06-03 or 2024-06-03T08:00+02:00, got {text!r}."
        raise DataError(said, argument="until")
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        return np.datetime64(time, "s"), False
    if zone is None:
        said = f"must be without a zone, as the times of the training data are, got {until}."
        raise DataError(said, argument="until")
    return np.datetime64(time.astimezone(datetime.UTC).replace(tzinfo=None), "s"), True
