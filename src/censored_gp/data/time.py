"""The times that come next, and inputs for them when nobody knows what those will be."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.data.inputs import spacing
from censored_gp.data.tables import is_missing, zone_rules

Times = Shaped[np.ndarray, " N"]


MOST_AHEAD = 100_000


DAY, WEEK = 86_400, 604_800


YEAR_OR_MONTH = re.compile(r"\d{4}(-\d{2})?")


class Until(NamedTuple):
    """The last time that is wanted: by the wall clock, or (with a zone of its own) in UTC."""

    time: np.datetime64
    by_wall: bool = True

    def is_past(self, wall: np.datetime64, instant: np.datetime64) -> bool:
        """Whether a time is after it."""
        return bool((wall if self.by_wall else instant) > self.time)


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
    last = Until(np.datetime64("9999", "s")) if until is None else _read_until(until, zone)
    step = round(3600 * spacing(times.astype(np.int64) / 3600.0))
    if step <= 0:
        _refuse_one_time()
    found: list[tuple[Any, Any]] = []
    for wall, instant in _candidates(times, step, zone):
        if len(found) >= wanted or last.is_past(wall, instant):
            break
        found.append((wall, instant))
    else:
        _refuse_too_far(until)
    if not found:
        _refuse_nothing(times.max(), until)
    walls, instants = zip(*found, strict=True)
    return np.array(walls, dtype="datetime64[s]"), np.array(instants, dtype="datetime64[s]")


def _candidates(times: Times, step: int, zone: str | None) -> Iterator[tuple[Any, Any]]:
    """Yield times after the last one that are of the usual times of the day or week."""
    keep = _usual(times, step)
    for number in range(1, MOST_AHEAD + 2):
        wall, instant = _after(times.max(), number * step, zone, step)
        if keep is None or _slot(wall, keep[0]) in keep[1]:
            yield wall, instant


def numbers_ahead(
    numbers: Float[np.ndarray, " N"], periods: Any = None, until: Any = None
) -> Float[np.ndarray, " H"]:
    """Return what comes after the last of times that are numbers, at their usual spacing.

    >>> numbers_ahead(np.array([0.0, 0.5, 1.0]), until=2.2)
    array([1.5, 2. ])
    """
    wanted, step, last = _checked_periods(periods, until), spacing(numbers), numbers.max()
    if step <= 0:
        _refuse_one_time()
    if until is not None:
        if isinstance(until, bool) or not _is_number(until):
            raise ValueError(
                f"until: found {until!r}, where the times of the training data are numbers. "
                "Accepted is a number."
            )
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
    except (TypeError, ValueError):
        return False


def _checked_periods(periods: Any, until: Any) -> int:
    """Return how many times are wanted at most."""
    if (periods is None) == (until is None):
        raise ValueError(
            f"forecast: found periods={periods!r} and until={until!r}. Accepted is one: how many "
            "times ahead, or up to which time."
        )
    if periods is None:
        return MOST_AHEAD + 1
    count = float(periods) if _is_number(periods) and not isinstance(periods, bool | str) else 0.0
    if not count.is_integer() or not 1 <= count <= MOST_AHEAD:
        raise ValueError(
            f"periods: found {periods!r}. Accepted is a whole number from 1 to {MOST_AHEAD}: how "
            "many times ahead."
        )
    return int(count)


def _read_until(until: Any, zone: str | None) -> Until:
    """Read the last time that is wanted, in whatever way it is given."""
    when = _as_datetime(until)
    if when.tzinfo is None:
        return Until(np.datetime64(when, "s"))
    if zone is None:
        raise ValueError(
            f"until: found {str(until)!r}, a time with a zone, where the times of the training "
            "data have none. Accepted is a time without a zone."
        )
    utc = when.astimezone(datetime.UTC).replace(tzinfo=None)
    return Until(np.datetime64(utc, "s"), by_wall=False)


def _as_datetime(until: Any) -> datetime.datetime:
    if isinstance(until, datetime.datetime) and not is_missing(until):
        return until
    if isinstance(until, np.datetime64):
        until = until.astype("datetime64[s]")
    text = str(until).strip()
    try:
        if YEAR_OR_MONTH.fullmatch(text):
            text = str(np.datetime64(text, "s"))
        return datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            f"until: found {text!r}. Accepted is a time, such as 2024-06-03, 2024-06-03T08:00 or "
            "2024-06-03T08:00+02:00."
        ) from error


def _refuse_one_time() -> None:
    raise ValueError("forecast: found one time only. Accepted are two or more to go on from.")


def _refuse_nothing(last: Any, until: Any) -> None:
    raise ValueError(
        f"until: found no time after {last} up to {until}. Accepted is a time after the training "
        "data."
    )


def _refuse_too_far(until: Any) -> None:
    asked = "periods" if until is None else f"until: found {until}, which"
    raise ValueError(
        f"{asked} is further ahead than {MOST_AHEAD} steps. Accepted is something nearer."
    )


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
    rules, utc = zone_rules(zone), datetime.UTC
    if step >= DAY:
        return later, in_utc(later, rules)
    began = _wall(last).replace(tzinfo=rules).astimezone(utc)
    instant = began + datetime.timedelta(seconds=seconds)
    later = np.datetime64(instant.astimezone(rules).replace(tzinfo=None), "s")
    return later, np.datetime64(instant.replace(tzinfo=None), "s")


def in_utc(wall: np.datetime64, rules: datetime.tzinfo) -> np.datetime64:
    """Return a time by the wall clock of a zone in UTC; of an hour that comes twice, the first.

    >>> in_utc(np.datetime64("2024-06-03T08:00:00"), zone_rules("Europe/Berlin"))
    np.datetime64('2024-06-03T06:00:00')
    """
    instant = _wall(wall).replace(tzinfo=rules).astimezone(datetime.UTC)
    return np.datetime64(instant.replace(tzinfo=None), "s")


def _wall(time: np.datetime64) -> datetime.datetime:
    return datetime.datetime.fromisoformat(str(time.astype("datetime64[s]")))
