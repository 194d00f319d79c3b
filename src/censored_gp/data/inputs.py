"""From tables and arrays to the centred float64 matrix that kernels see, and back.

Times become hours since the first training time, by the local wall clock: people keep their habits
by the clock on the wall, so that is what daily and weekly patterns follow. A time zone with summer
time therefore has one hour twice in autumn and one never in spring; for elapsed time convert to
UTC first. Numbers are shifted by their training mean and keep the user's unit. Words become one
0/1 column for each category that the training data have.

`Columns` and the helpers about spread and phase are all that kernels need of this package: whoever
computes does not load pyarrow, which is why `read_inputs` imports the tables itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from censored_gp.data.errors import DataError, did_you_mean, listed, quoted, reads_as, refuse

if TYPE_CHECKING:
    from censored_gp.data.tables import Column

# More than these are names or free text, from which nothing can be learned about new rows.
MOST_CATEGORIES = 50

# Phases closer than this fraction of the period are one and the same: far above rounding error,
# far below anything a kernel can tell apart.
PHASE_TOLERANCE = 1e-9

# Digits of a number that was shifted by the training mean and back: the rest is rounding.
DIGITS = 12

# Squares of numbers up to this, and of their differences, are finite; of its inverse, not 0.
LARGEST = 1e150


FILL_IN = "Drop the row or fill in the value (outputs may be missing, inputs not)."


def per_column(values: Float[np.ndarray, " K"]) -> Float[np.ndarray, "*L"]:
    """One value per column, or a plain number where there is one column only."""
    return values.reshape(()) if len(values) == 1 else values


def spread(X: Float[np.ndarray, "N K"]) -> Float[np.ndarray, "*L"]:
    """√K standard deviations per column (one where the column is constant).

    The √K keeps typical rows alike when the distances of many columns add up.
    """
    scale = np.sqrt(X.shape[1]) * np.std(X, axis=0)
    return per_column(np.where(np.ptp(X, axis=0) > 0.0, scale, 1.0))


def spacing(x: Float[np.ndarray, " N"]) -> float:
    """The typical (median) step between neighbouring distinct values; zero if there are none."""
    steps = np.diff(np.unique(x))
    return float(np.median(steps)) if len(steps) else 0.0


def phase(x: Float[np.ndarray, " N"], period: float) -> Float[np.ndarray, " N"]:
    """x modulo the period, equal for all x that differ by whole periods up to rounding.

    Neighbouring phases are merged rather than rounded to a grid: on a grid, two copies of a value
    that happens to lie on the border of two cells would be told apart.
    """
    cell = max(PHASE_TOLERANCE * period, 4.0 * float(np.spacing(np.max(np.abs(x), initial=0.0))))
    remainder = np.mod(x, period)
    # Just below a whole period is just below zero.
    remainder = np.where(remainder > period - cell, remainder - period, remainder)
    order = np.argsort(remainder)
    ordered = remainder[order]
    starts = np.diff(ordered, prepend=-np.inf) > cell
    merged = np.empty_like(remainder)
    merged[order] = np.round(ordered[starts] / cell)[np.cumsum(starts) - 1] * cell
    return np.maximum(merged, 0.0)


class Whole(NamedTuple):
    """What a kernel sees of a column of which only the number of whole periods counts."""

    period: float
    start: Any

    def number(self, x: Any) -> Any:
        """How many whole periods x is from the start; one complete up to rounding counts."""
        return ((x - self.start) / self.period + PHASE_TOLERANCE) // 1.0


def distinct(
    columns: Float[np.ndarray, "N K"],
) -> tuple[Int[np.ndarray, "J"], Int[np.ndarray, "N"]]:
    """Return the first row of each kind, kinds in their order, and the kind of every row.

    >>> first, kind = distinct(np.array([[2.0, 1.0], [1.0, 3.0], [2.0, 1.0]]))
    >>> first.tolist(), kind.tolist()
    ([1, 0], [1, 0, 1])
    """
    first, kind = np.zeros(min(1, len(columns)), dtype=int), np.zeros(len(columns), dtype=int)
    # Column by column: numbers sort many times faster than rows do.
    for c, column in enumerate(columns.T):
        code = column
        if c > 0:
            levels, code = np.unique(column, return_inverse=True)
            code = kind * len(levels) + code
        _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return first, kind


def hours_since(times: Shaped[np.ndarray, " N"], origin: np.datetime64) -> Float[np.ndarray, " N"]:
    """Hours from the origin to each time.

    Whole days and the time of day are subtracted apart, so that no unit overflows and hourly times
    are whole hours, however far from 1970.
    """
    days, first_day = times.astype("datetime64[D]"), origin.astype("datetime64[D]")
    time_of_day = (times - days) - (origin - first_day)
    return 24.0 * (days - first_day).astype(np.int64) + time_of_day / np.timedelta64(1, "h")


@dataclass(frozen=True)
class Columns:
    """What the columns of the inputs are called, which are times, and where each has its zero.

    The origin of a time is the first time stamp of the training data, on the wall clock of its
    zone (None for times without one); that of a number is its training mean (of integers
    that have more digits than float64, the median). `named` tells whether the names are the user's
    own, to be found again in new data. A column of words is as many columns here as it has
    categories; `levels` then has the user's column and the category.
    """

    names: tuple[str, ...]
    is_time: tuple[bool, ...]
    origin: tuple[int | float | np.datetime64, ...]
    zones: tuple[str | None, ...] = ()
    named: bool = False
    levels: tuple[tuple[str, str] | None, ...] = ()

    def __post_init__(self) -> None:
        # Most inputs have no time zone and are not words, so that it need not be said.
        for name in ("zones", "levels"):
            object.__setattr__(self, name, getattr(self, name) or (None,) * len(self.names))

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Positions of each of the user's columns, by name and in their order."""
        found: dict[str, tuple[int, ...]] = {}
        for c, (name, level) in enumerate(zip(self.names, self.levels, strict=True)):
            source = name if level is None else level[0]
            found[source] = (*found.get(source, ()), c)
        return found

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The categories of each of the user's columns that is made of words."""
        found: dict[str, tuple[str, ...]] = {}
        for level in self.levels:
            if level is not None:
                found[level[0]] = (*found.get(level[0], ()), level[1])
        return found

    def only(self, sources: Iterable[str]) -> Columns:
        """Some of the user's columns, in their order."""
        kept = [c for source in sources for c in self.groups[source]]
        each = ("names", "is_time", "origin", "zones", "levels")
        some = {field: tuple(getattr(self, field)[c] for c in kept) for field in each}
        return Columns(**some, named=self.named)

    def values(self, source: str, inputs: Float[np.ndarray, "N C"]) -> Shaped[np.ndarray, " N"]:
        """What one of the user's columns held, from the inputs that were made of it.

        >>> inputs, columns = read_inputs({"sky": ["wet", "dry"], "heat": [1.5, 2.0]})
        >>> columns.values("sky", inputs).tolist(), columns.values("heat", inputs).tolist()
        (['wet', 'dry'], [1.5, 2.0])
        """
        places = list(self.groups[source])
        if self.levels[places[0]] is not None:
            origin = np.array([float(self.origin[c]) for c in places])
            return np.array(self.categories[source])[np.argmax(inputs[:, places] + origin, axis=1)]
        first = self.origin[places[0]]
        if isinstance(first, np.datetime64):
            since = np.round(inputs[:, places[0]] * 3.6e9).astype("timedelta64[us]")
            return first.astype("datetime64[us]") + since
        if isinstance(first, int):
            return np.round(inputs[:, places[0]]).astype(np.int64) + first
        numbers = inputs[:, places[0]] + float(first)
        return np.array([float(f"{number:.{DIGITS}g}") for number in numbers])

    def indices(
        self, wanted: Iterable[int | str] | None, *, asked_by: str = "a kernel"
    ) -> tuple[int, ...]:
        """The positions of the wanted columns, given by name or index; all of them for None."""
        if wanted is None:
            return tuple(range(len(self.names)))
        return tuple(c for column in wanted for c in self._places(column, asked_by))

    def require_times(self, index: Iterable[int], *, asked_by: str, duration: str) -> None:
        """Refuse a duration on a column that is not a time."""
        for c in index:
            if not self.is_time[c]:
                times = [name for i, name in enumerate(self.names) if self.is_time[i]]
                raise DataError(
                    f"{asked_by} gives the duration {duration!r}, but column {self.names[c]!r} "
                    f"holds numbers, not times. Give a number in the unit of the column, or look "
                    f"at a column of times ({listed(times)}) with columns=..."
                )

    def _places(self, column: int | str, asked_by: str) -> tuple[int, ...]:
        """The position of a column, or those of all categories of a column of words."""
        if isinstance(column, str) and column in self.names:
            return (self.names.index(column),)
        if isinstance(column, str) and column in self.groups:
            return self.groups[column]
        if not isinstance(column, str | bool) and column in range(len(self.names)):
            return (int(column),)
        shown = quoted(column) if isinstance(column, str) else column
        said = f"{asked_by} looks at column {shown}, which is not there. The inputs have "
        said += f"{listed(self.names)}. Give a name, or an index from 0 to {len(self.names) - 1}."
        raise DataError(said, hint=did_you_mean(column, self.names))


def read_inputs(X: Any, columns: Columns | None = None) -> tuple[Float[np.ndarray, "N C"], Columns]:
    """Return the centred inputs, and what is needed to read new data in the same way.

    Without `columns` these are training data, which set the origins; with them, new data are
    checked against the training data and use the origins of those. A flat array is one column.
    """
    from censored_gp.data.tables import read_columns

    zones = [] if columns is None else [columns.zones[c[0]] for c in columns.groups.values()]
    found, named = read_columns(X, "Input", zones=zones)
    if not found or not len(found[0].values):
        raise DataError("got no rows or no columns. There must be at least one.", "Inputs")
    if columns is None:
        levels = {c.name: _levels(c) for c in found if named and _are_words(c)}
    else:
        found, levels = _checked_against(columns, found, named), columns.categories
    least = 1 / LARGEST if columns is None else 0.0
    parts = [(c, level, values) for c in found for level, values in _encode(c, levels, least)]
    if columns is None:
        columns = Columns(
            tuple(c.name if level is None else f"{c.name}={level}" for c, level, _ in parts),
            tuple(values.dtype.kind == "M" for *_, values in parts),
            tuple(_origin(values) for *_, values in parts),
            tuple(c.zone for c, *_ in parts),
            named,
            tuple(None if level is None else (c.name, level) for c, level, _ in parts),
        )
    centred = [
        hours_since(values, origin) if isinstance(origin, np.datetime64) else values - origin
        for (*_, values), origin in zip(parts, columns.origin, strict=True)
    ]
    return np.stack(centred, axis=1, dtype=np.float64), columns


def _are_words(column: Column) -> bool:
    """Whether a column is categories, or text of which nothing reads as a number or a date."""
    if column.is_category or not column.is_text:
        return column.is_category
    words = {value.strip() for value in column.values if value is not None}
    readers = (float, datetime.datetime.fromisoformat)
    return bool(words) and not any(reads_as(reader, word) for word in words for reader in readers)


def _levels(column: Column) -> tuple[str, ...]:
    """Return the categories of a training column, sorted."""
    found = sorted({value for value in column.values if value is not None})
    if len(found) > MOST_CATEGORIES:
        said = f"got {len(found)} different words, such as {listed(found[:3])}. There may be at "
        said += f"most {MOST_CATEGORIES} categories. Put rare ones together, or convert the column."
        raise DataError(said, "Input", column.name)
    return tuple(found)


def _encode(column: Column, levels: dict[str, Any], least: float) -> list[tuple[str | None, Any]]:
    """Return times, finite numbers, or 0/1 for each category, which is named before it."""
    name, values = column.name, column.values
    if name in levels:
        known = levels[name]
        if not column.is_text:
            # A number is the category that reads as the same number; True and False are 1 and 0.
            words = {float(word): word for word in known if reads_as(float, word)}
            words |= {float(word == "True"): word for word in known if word in ("True", "False")}
            found = [None if np.isnan(v) else words.get(v, f"{v:g}") for v in values]
            values = np.array(found, dtype=object)
        missing, accepted = values == None, f"The training data have {listed(known)}."  # noqa: E711
        refuse(missing, name, "Input", "got no category.", hint=FILL_IN)
        other = ~np.isin(values.astype(str), known)
        refuse(other, name, "Input", "got {!r:.80}.", values, hint=accepted)
        return [(level, (values == level).astype(np.float64)) for level in known]
    if column.is_time:
        refuse(np.isnat(values), name, "Input", "got a missing time.", hint=FILL_IN)
        return [(None, values)]
    numbers = values if values.dtype.kind == "i" else column.numbers("Input")
    shown = np.where(np.isnan(numbers), "NaN", numbers.astype(str))
    said = "got {}. There must be finite numbers."
    refuse(~np.isfinite(numbers), name, "Input", said, shown, hint=FILL_IN)
    refuse_extreme(numbers, name, "Input", least)
    return [(None, numbers)]


def refuse_extreme(values: Any, names: Any, noun: str, least: float = 1 / LARGEST) -> None:
    """Refuse columns whose largest number is too large or too small to compute with."""
    size = np.where(np.isfinite(values), np.abs(values), 0.0)
    largest = size.max(axis=0, initial=0.0)
    bad = (size > LARGEST) | ((largest > 0) & (largest < least) & (size == largest))
    said = "got {:g}. The largest number of a column must be between 1e-150 and 1e150, or 0."
    refuse(bad, names, noun, said, values, hint="Choose another unit.")


def _origin(values: Any) -> Any:
    """Return the first of times, the mean of numbers, the median of integers of many digits."""
    if values.dtype.kind == "f":
        return float(values.mean())
    return values.min() if values.dtype.kind == "M" else int(np.sort(values)[len(values) // 2])


def _checked_against(columns: Columns, found: Sequence[Column], named: bool) -> list[Column]:
    """Return new columns under the names of the training data; other ones are refused."""
    groups, names = columns.groups, [column.name for column in found]
    if len(found) != len(groups) or (named and columns.named and names != list(groups)):
        said = f"got {len(found)} column(s): {listed(names)}. The training data have {len(groups)}"
        hint = "Rename or reorder the columns."
        raise DataError(f"{said}, in this order: {listed(groups)}.", "Inputs", hint=hint)
    renamed = [c._replace(name=name) for c, name in zip(found, groups, strict=True)]
    for column, places in zip(renamed, groups.values(), strict=True):
        require_kind(column, columns.is_time[places[0]], columns.zones[places[0]])
    return renamed


def require_kind(column: Column, was_time: bool, zone: str | None) -> None:
    """Refuse times where the training data have numbers, and the like; and a zone they lack."""

    def words(is_time: bool, zone: str | None) -> str:
        at = "without a time zone" if zone is None else f"in zone {zone}"
        return f"times {at}" if is_time else "no times but numbers or categories"

    if column.is_time != was_time or (column.zone is None) != (zone is None):
        said = f"got {words(column.is_time, column.zone)}. The training data have "
        raise DataError(f"{said}{words(was_time, zone)}.", "Input", column.name)
