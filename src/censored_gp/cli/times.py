"""Times in text: ISO 8601, with or without a zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from censored_gp.cli.arrow import compute
from censored_gp.cli.problems import BadInput, first_failure

__all__ = ["Place", "as_days", "as_times", "check_zone", "in_zone", "refuse_unread"]

DAY = r"^((?:18|19|20|21)\d{2})([01]\d)([0-3]\d)$"
"""A day without signs between its parts, of a year from 1800 to 2199."""

ISO = (
    r"^(?P<local>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}(?::\d{2}(?::\d{2}(?:\.\d+)?)?)?)?)"
    r"\s*(?P<zone>Z|z|[+-]\d{2}(?::?\d{2})?)?$"
)
ACCEPTED = (
    "Accepted are ISO 8601 times, such as 2024-06-03 or 2024-06-03T14:30, with or without a zone "
    "(Z, +02:00)."
)
Place = Callable[[int], str]
"""Where a row of values stands, in words."""


def check_zone(zone: str | None) -> None:
    """Refuse the name of a time zone that nobody knows.

    >>> check_zone("Europe/Copenhagen")
    """
    try:
        ZoneInfo(zone or "UTC")
    except (KeyError, ValueError, OSError) as error:
        raise BadInput(
            f"--zone: found {zone!r}. Accepted is the name of a time zone, such as UTC or "
            "Europe/Copenhagen."
        ) from error


def as_times(text: Any, place: Place, zone: str | None = None, groups: Any = None) -> Any:
    """Return times from a pyarrow array of text; `zone`, if given, is the zone they are read in.

    Times that bear different offsets are of one zone only if the user says which.

    >>> import pyarrow as pa
    >>> str(as_times(pa.array(["2024-06-03T14:30+02:00"]), str)[0])
    '2024-06-03 14:30:00+02:00'
    """
    pc = compute()
    parts = pc.extract_regex(text, ISO)
    refuse_unread(text, parts, place, ACCEPTED)
    local = _as_local(pc.struct_field(parts, "local"), place)
    # Text without a zone has the empty text there; a missing time has none.
    zones = pc.struct_field(parts, "zone")
    kinds = [kind for kind in pc.unique(zones).to_pylist() if kind is not None]
    if kinds in ([], [""]):
        return local if zone is None else in_zone(local, place, zone, groups)
    _refuse_mixed(zones, kinds, place, zone)
    minutes = {kind: _minutes(kind) for kind in kinds}
    return _shifted(local, zones, minutes, zone or _name_of(next(iter(minutes.values()))))


def refuse_unread(text: Any, read: Any, place: Place, accepted: str) -> None:
    """Refuse the first text that could not be read: that has none beside it.

    >>> import pyarrow as pa
    >>> refuse_unread(pa.array(["1", None]), pa.array([1, None]), str, "Accepted are numbers.")
    """
    pc = compute()
    row = pc.index(pc.and_(pc.is_valid(text), pc.is_null(read)), True).as_py()
    if row >= 0:
        raise BadInput(f"{place(row)}: found {text[row].as_py()!r}. {accepted}")


def _as_local(text: Any, place: Place) -> Any:
    import pyarrow as pa

    pc = compute()
    spelled = pc.replace_substring(text, " ", "T")
    spelled = pc.replace_substring_regex(spelled, r"(\.\d{6})\d+", r"\1")
    try:
        return pc.cast(spelled, pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        row = first_failure(spelled, lambda some: pc.cast(some, pa.timestamp("us")))
        raise BadInput(
            f"{place(row)}: found {text[row].as_py()!r}, which is no day or time that exists."
        ) from error


def _refuse_mixed(zones: Any, kinds: list[str], place: Place, zone: str | None) -> None:
    """Refuse times with and without a zone, and several zones of which none is named."""
    pc = compute()
    same_offset = "" not in kinds and len({_minutes(kind) for kind in kinds}) == 1
    if same_offset or (zone is not None and "" not in kinds):
        return
    row = next(
        pc.index(zones, k).as_py() for k in kinds if not k or _minutes(k) != _minutes(kinds[0])
    )
    first = pc.index(zones, kinds[0] if kinds[0] else kinds[1]).as_py()
    later, earlier = max(row, first), min(row, first)
    found = zones[later].as_py() or "no zone"
    raise BadInput(
        f"{place(later)}: found a time with {found}, where {place(earlier)} has "
        f"{zones[earlier].as_py() or 'no zone'}. Accepted is one time zone for the column: "
        + (
            "add the zone to every time, or to none."
            if "" in kinds
            else "name the zone, as --zone Europe/Copenhagen, and all times are converted to it."
        )
    )


def _minutes(kind: str) -> int:
    """Return the minutes by which a zone such as +02:00 is ahead of UTC."""
    if kind in ("", "Z", "z"):
        return 0
    digits = kind[1:].replace(":", "").ljust(4, "0")
    ahead = 60 * int(digits[:2]) + int(digits[2:])
    return -ahead if kind[0] == "-" else ahead


def _name_of(minutes: int) -> str:
    size = abs(minutes)
    return "UTC" if not size else f"{'-' if minutes < 0 else '+'}{size // 60:02}:{size % 60:02}"


def _shifted(local: Any, zones: Any, minutes: dict[str, int], name: str) -> Any:
    """Return local times with their offsets taken off, marked as times of a zone."""
    import pyarrow as pa

    pc = compute()
    each = pc.index_in(zones, pa.array(list(minutes)))
    ahead = pa.array([60_000_000 * m for m in minutes.values()], pa.duration("us"))
    utc = pc.subtract(local, pc.take(ahead, each))
    return pc.cast(utc, pa.timestamp("us", tz=name))


def in_zone(local: Any, place: Place, zone: str, groups: Any = None) -> Any:
    """Return wall-clock times as times of a zone.

    Of the hour that is there twice in autumn the second comes second, in the order of rows (of
    each group, if there are groups). The hour that is left out in spring is refused.

    >>> import pyarrow as pa
    >>> from datetime import datetime
    >>> twice = pa.array([datetime(2024, 10, 27, 2)] * 2, pa.timestamp("us"))
    >>> [str(time) for time in in_zone(twice, str, "Europe/Copenhagen")]
    ['2024-10-27 02:00:00+02:00', '2024-10-27 02:00:00+01:00']
    """
    import pyarrow as pa

    pc = compute()
    try:
        first = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise")
    except pa.ArrowInvalid as error:
        _refuse_skipped(local, place, zone, error)
        raise
    second = pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="raise")
    doubled = pc.not_equal(first, second)
    if not pc.any(doubled).as_py():
        return first
    return pc.if_else(_come_second(local, doubled, groups), second, first)


def _refuse_skipped(local: Any, place: Place, zone: str, error: Exception) -> None:
    """Refuse a time at which no clock of the zone ever stood."""
    pc = compute()
    before, after = (
        pc.cast(pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent=side), "int64")
        for side in ("earliest", "latest")
    )
    row = pc.index(pc.not_equal(before, after), True).as_py()
    if row >= 0:
        raise BadInput(
            f"{place(row)}: found {local[row].as_py().isoformat(' ')}, which clocks of {zone} "
            "leave out, as summer time begins. Delete the row; or leave --zone out, if the times "
            "are not by these clocks."
        ) from error


def _come_second(local: Any, doubled: Any, groups: Any) -> Any:
    """Return which of the times that a zone has twice are the second of the two.

    Rows that share a time all year round (of several places, for example) are no sign of it: a
    time comes second when it has been there as often as any other time is.
    """
    import pyarrow as pa

    names = [None] * len(local) if groups is None else groups.to_pylist()
    rows = list(zip(names, local.to_pylist(), doubled.to_pylist(), strict=True))
    usual = Counter((name, time) for name, time, twice in rows if twice is False)
    often, met = max(usual.values(), default=1), Counter[Any]()
    late = []
    for name, time, twice in rows:
        late.append(bool(twice) and met[name, time] >= often)
        met[name, time] += bool(twice)
    return pa.array(late)


def as_days(column: Any) -> Any:
    """Return a column in which every cell is a day such as 20240603 as times; else None.

    >>> import pyarrow as pa
    >>> str(as_days(pa.array(["20240603"]))[0]), as_days(pa.array(["20240603", "20241345"]))
    ('2024-06-03 00:00:00', None)
    """
    import pyarrow as pa

    pc = compute()
    if pa.types.is_integer(column.type):
        column = pc.cast(column, pa.string())
    if not pa.types.is_string(column.type):
        return None
    text = pc.utf8_trim_whitespace(column)
    if text.null_count == len(text) or not pc.all(pc.match_substring_regex(text, DAY)).as_py():
        return None
    spelled = pc.replace_substring_regex(text, DAY, r"\1-\2-\3")
    try:
        return pc.cast(spelled, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None
