"""Columns of a file as what they are for: numbers, flags, times, labels or inputs of any kind."""

from __future__ import annotations

from typing import Any

from censored_gp.cli.arrow import compute
from censored_gp.cli.problems import BadInput, first_failure
from censored_gp.cli.times import Place, as_days, as_times, in_zone, refuse_unread

__all__ = ["as_flags", "as_input", "as_labels", "as_numbers", "as_time", "with_points"]

DECIMAL_COMMA = r"^(\s*[+-]?\d*),(\d*(?:[eE][+-]?\d+)?\s*)$"
"""A number with a decimal comma: what is before and what is behind it."""


def as_numbers(column: Any, place: Place) -> Any:
    """Return numbers, NaN and empty cells as nulls; text that is no number is refused.

    >>> import pyarrow as pa
    >>> as_numbers(pa.array(["1.5", None]), str).to_pylist()
    [1.5, None]
    """
    import pyarrow as pa

    pc = compute()
    column = _plain(column)
    text = pa.types.is_string(column.type)
    if not text and not _is_numeric(column.type):
        raise BadInput(f"{place(0)}: found the type {column.type}. Accepted are numbers.")
    column = pc.utf8_trim_whitespace(column) if text else column
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.string())  # as numbers at once they would be off by a last bit
    try:
        return pc.cast(column, pa.float64())
    except pa.ArrowInvalid as error:
        row = first_failure(column, lambda some: pc.cast(some, pa.float64()))
        found = column[row].as_py()
        point = found.replace(",", ".", 1) if isinstance(found, str) else ""
        advice = " Write decimals with a point, or give --decimal ','." if _is_number(point) else ""
        raise BadInput(
            f"{place(row)}: found {found!r}. Accepted are numbers, and nothing (or NA) where the "
            f"value is missing.{advice}"
        ) from error


def as_flags(column: Any, place: Place) -> Any:
    """Return flags as 0, 1 and -1.

    >>> import pyarrow as pa
    >>> as_flags(pa.array(["yes", "0", None]), str).to_pylist()
    [1.0, 0.0, None]
    """
    import pyarrow as pa

    # Imported when asked for: the help must not wait for it.
    from censored_gp.data.tables import FLAG_WORDS

    pc = compute()
    column = _plain(column)
    words = pc.cast(column, pa.string())
    small = pc.utf8_lower(pc.utf8_trim_whitespace(words))
    found = pc.index_in(small, pa.array(list(FLAG_WORDS)))
    refuse_unread(
        words,
        found,
        place,
        "Accepted as a flag are true, yes or 1 (censored) and false, no or 0 (exact).",
    )
    return pc.take(pa.array(list(FLAG_WORDS.values()), pa.float64()), found)


def with_points(column: Any, place: Place, numbers: bool) -> Any:
    """Return text whose decimal commas are points; `numbers`: nothing else is in the column.

    >>> import pyarrow as pa
    >>> with_points(pa.array(["1,5", "dry, cold"]), str, False).to_pylist()
    ['1.5', 'dry, cold']
    """
    pc = compute()
    column = _plain(column)
    pointed = pc.match_substring_regex(column, r"^\s*[+-]?[\d.]*\.[\d.,]*\s*$")
    row = pc.index(pointed, True).as_py() if numbers else -1
    if row >= 0:
        raise BadInput(
            f"{place(row)}: found {column[row].as_py()!r}. With --decimal , accepted are numbers "
            "without a point, as 1234,5."
        )
    return pc.replace_substring_regex(column, DECIMAL_COMMA, r"\1.\2")


def as_time(column: Any, place: Place, zone: str | None, groups: Any = None) -> Any:
    """Return times or, if the first cell is a number, numbers; 20240603 is a day.

    Of an hour that a zone has twice the second comes second, among the rows of a group.

    >>> import pyarrow as pa
    >>> as_time(pa.array(["2024-06-03"]), str, None).to_pylist()
    [datetime.datetime(2024, 6, 3, 0, 0)]
    """
    import pyarrow as pa

    pc = compute()
    column = _plain(column)
    if pa.types.is_temporal(column.type):
        return _of_zone(column, place, zone, groups)
    days = as_days(column)
    if days is not None:
        return days if zone is None else in_zone(days, place, zone, groups)
    if not pa.types.is_string(column.type) or _is_number(_first(column)):
        return as_numbers(column, place)
    return as_times(pc.utf8_trim_whitespace(column), place, zone, groups)


def _of_zone(times: Any, place: Place, zone: str | None, groups: Any) -> Any:
    import pyarrow as pa

    pc = compute()
    if zone is None:
        return times
    if getattr(times.type, "tz", None) is None:
        return in_zone(pc.cast(times, pa.timestamp("us")), place, zone, groups)
    return pc.cast(times, pa.timestamp(times.type.unit, tz=zone))


def as_labels(column: Any, place: Place) -> Any:
    """Return names of outputs as they stand; none may be missing.

    >>> import pyarrow as pa
    >>> as_labels(pa.array([" north", "south"]), str).to_pylist()
    ['north', 'south']
    """
    import pyarrow as pa

    pc = compute()
    column = _plain(column)
    row = pc.index(pc.is_null(column), True).as_py()
    if row >= 0:
        raise BadInput(f"{place(row)}: found nothing. Accepted is the name of an output.")
    return pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column


def as_input(column: Any, place: Place) -> Any:
    """Return numbers, or categories if the first cell is text that is no number.

    >>> import pyarrow as pa
    >>> [as_input(pa.array([text]), str)[0].as_py() for text in ("dry", "1")]
    ['dry', 1.0]
    """
    import pyarrow as pa

    column = _plain(column)
    words = pa.types.is_string(column.type) and _first(column) not in (None, "")
    if pa.types.is_temporal(column.type) or (words and not _is_number(_first(column))):
        return column
    return as_numbers(column, place)


def _plain(column: Any) -> Any:
    """Return one array instead of chunks, and text of one type."""
    import pyarrow as pa

    pc = compute()
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.cast(array, pa.string())
    return pc.cast(array, pa.float64()) if pa.types.is_null(kind) else array


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _first(column: Any) -> Any:
    """Return the first cell that is not empty."""
    pc = compute()
    row = pc.index(pc.is_valid(column), True).as_py()
    return column[row].as_py() if row >= 0 else None


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True
