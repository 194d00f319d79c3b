"""From values, flags, capacities, bounds and exposures, however given, to the bounds of each cell.

Whatever says how far outputs were seen is one number, one for each output, row or cell, or (with a
table) the name of a column. `spread` makes numbers for each cell of it, and `read_bounds` the
closed intervals of Eq. (1), of arrays and of tables alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.data.errors import DataError, did_you_mean, listed, refuse, warn

if TYPE_CHECKING:
    from censored_gp.data.tables import Table

Cells = Float[np.ndarray, "N D"]

# Flags that each side accepts.
ACCEPTED = {"right": (-1, 0, 1), "left": (0, 1)}

MEANING = {-1: "-1 (at most)", 0: "0 or False (exact)", 1: "1 or True (censored)"}

# The exposure of counts whose flag says that counting stopped, at a moment that nobody knows.
UNKNOWN = "unknown"

# An exposure in words: a column, over the length of the period, and perhaps "1 - " before it.
SHARE = re.compile(r"(?P<rest>1\s*-\s*)?(?P<column>.+?)(\s*/\s*(?P<period>[0-9]+(\.[0-9]+)?))?")

# What holds for outputs that are not named, where others are: exact, and seen throughout.
DEFAULT = {"Flag": 0.0, "Exposure": 1.0}

# How far a sum of parts of a period may be from the period.
ROUNDING = 1e-6


class Seen(NamedTuple):
    """Numbers for each cell as read, NaN where missing.

    Attributes
    ----------
    values, names : array (N, D), tuple of str
        The numbers and what their columns are called.
    named : bool
        Whether the names are the user's.
    flat : bool
        Whether it was a flat array, and no column of a table.
    table : Table, optional
        The table, in which text then names columns.
    keys : sequence, optional
        Of a long table the outputs by row, to which a dict of capacities refers.
    flags : array (N, D), optional
        Where text says that a value is a bound ("<0.5"): -1 at most, 1 at least, 0 exact.
    """

    values: Cells
    names: tuple[str, ...]
    named: bool = False
    flat: bool = False
    table: Table | None = None
    keys: Sequence[Any] | None = None
    flags: Cells | None = None

    @property
    def unknown(self) -> Seen:
        """The same cells, all missing."""
        return self._replace(values=np.full(self.values.shape, np.nan), flags=None)

    def place(self, row: int) -> str:
        """Return where a row stands, in words."""
        return f"row {row}" if self.table is None else self.table.place(row)


# The arguments of `Observations`: lower and upper bounds, names, `flat`, and the exposures that the
# bounds are about.
Bounds = tuple[Cells, Cells, tuple[str, ...], bool, Any]


def read_values(y: Any, noun: str = "Output", *, flags: bool = False, bounds: bool = False) -> Seen:
    """Return the cells of a table, an array, or anything that reads as one.

    They may be `flags` in words or, if asked for, `bounds` in text.

    >>> read_values([1.0, None]).values.tolist()
    [[1.0], [nan]]
    >>> read_values(["<0.5", 2.0], bounds=True).flags.tolist()
    [[-1.0], [0.0]]
    """
    from censored_gp.data.tables import read_columns, shape_of

    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise DataError("Complex data not supported.", noun)
    columns, named = read_columns(y, noun, prefix="y", alone="y")
    if not columns:
        raise DataError("got no column. There must be at least one.", noun)
    names, flat = tuple(column.name for column in columns), len(shape_of(y, noun)) == 1
    if bounds:
        read = zip(*(column.readings(noun) for column in columns), strict=True)
        values, at = (np.stack(each, axis=1) for each in read)
        return Seen(values, names, named, flat, flags=at)
    parsed = [column.flags(noun) if flags else column.numbers(noun) for column in columns]
    return Seen(np.stack(parsed, axis=1), names, named, flat)


def read_bounds(
    seen: Seen,
    *,
    censored: Any = None,
    capacity: Any = None,
    lower: Any = None,
    upper: Any = None,
    exposure: Any = None,
    side: str = "right",
) -> Bounds:
    """Return what values, flags, a capacity or bounds say of each cell.

    They are about what was seen in the share of the period that is the exposure. An end that is not
    given (or NaN) is the value itself, and open where that is missing.
    """
    if side not in ACCEPTED:
        said = f'must be "right" (a flag: at least the value) or "left" (at most), got {side!r}.'
        hint = did_you_mean(side, ACCEPTED)
        if side == "share":
            hint = 'For counts that stopped at some moment give exposure="unknown".'
        raise DataError(said, argument="side", hint=hint)
    bounded = lower is not None or upper is not None
    if bounded and (censored is not None or capacity is not None):
        said = "got bounds and flags or a capacity as well. Give lower=... and upper=..., or "
        raise DataError(said + "censored=... and capacity=...", "Outputs")
    values, names = seen.values, seen.names
    said = "got {:g}. There must be finite numbers, NaN where missing."
    hint = "Use Observations.from_bounds for what is only bounded."
    refuse(np.isinf(values), names, "Output", said, values, hint=hint)
    shares = _read_exposure(exposure, seen)
    if seen.flags is not None and seen.flags.any():
        if bounded or censored is not None or capacity is not None:
            row, d = np.argwhere(seen.flags)[0].tolist()
            said = "got a bound in text, such as <0.5, and flags, a capacity or bounds as well. "
            raise DataError(said + "Give one of them.", "Output", names[d], row)
        censored, side, seen = seen.flags, "right", seen._replace(flags=None)
    if bounded:
        return _without_unknown(_join(seen, lower, upper), shares, seen)
    limits = spread(capacity, seen, "Capacity").values
    if censored is None:
        full = np.where(values >= limits, np.inf, values)
        return _without_unknown(with_missing(seen, values, full), shares, seen)
    flags = check_flags(spread(censored, seen, "Flag"), values, side, seen.table)
    said = "got {:g}, which is not flagged as censored but above its capacity of {:g}."
    hint = "Correct one of them, or leave out the flags."
    refuse((values > limits) & (flags == 0), names, "Output", said, values, limits, hint=hint)
    # A value with a missing flag is treated as missing: were it a lower bound, many exact values
    # would be lower bounds, and estimates would have nothing to hold them down.
    seen = seen._replace(values=np.where(np.isnan(flags), np.nan, values))
    flags = -flags if side == "left" else flags
    shares = np.where(np.isnan(shares) & (flags != 1), 1.0, shares)
    # Below an exposure of 1 the record is what came while it was seen. As a lower bound of that as
    # well, it would count the loss twice.
    bound = (flags == 1) & (shares == 1)
    low, high = np.where(flags == -1, -np.inf, values), np.where(bound, np.inf, values)
    return with_missing(seen, low, high, shares)


def with_missing(seen: Seen, lower: Cells, upper: Cells, exposure: Any = 1.0) -> Bounds:
    """Return the bounds, open on both sides where the value is missing."""
    return *open_ends(np.isnan(seen.values), lower, upper), seen.names, seen.flat, exposure


def open_ends(where: Bool[np.ndarray, "N D"], lower: Cells, upper: Cells) -> tuple[Cells, Cells]:
    """Return bounds that are open on both sides in some cells."""
    return read_only(np.where(where, -np.inf, lower)), read_only(np.where(where, np.inf, upper))


def read_only(array: Any) -> Any:
    """Return an array that is not to be changed, which `Observations` need not copy."""
    array.setflags(write=False)
    return array


def _join(seen: Seen, *given: Any) -> Bounds:
    """Join values and bounds: a bound where there is one, else the value, else open."""
    ends = []
    for noun, each in zip(("Lower bound", "Upper bound"), given, strict=True):
        end = spread(each, seen, noun)
        seen = seen if seen.named or not end.named else seen._replace(names=end.names, named=True)
        ends.append(end.values)
    (low, high), values, names = ends, seen.values, seen.names
    outside = (low <= high) & ((values < low) | (values > high))
    said = "got {:g}, which is not between its bounds, {:g} and {:g}."
    hint = "Correct them, or make the value NaN."
    refuse(outside, names, "Output", said, values, low, high, hint=hint)
    low, high = (np.where(np.isnan(end), values, end) for end in ends)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return low, high, names, seen.flat, 1.0


def _without_unknown(found: Bounds, shares: Cells, seen: Seen) -> Bounds:
    """Return bounds with their exposures; values without one are left out, as no flag is there."""
    lower, upper, names, flat, _ = found
    unknown, known = np.isnan(shares), np.isfinite(lower) | np.isfinite(upper)
    unsaid = unknown & known
    if unsaid.any():
        said = "got an unknown exposure, and no flag. Fill in 1 where it was seen throughout,"
        hint = "or give flags (censored) that say where it was not."
        refuse(unsaid & np.all(unknown | ~known, axis=0), names, "Output", said, hint=hint)
        row, d = np.argwhere(unsaid)[0].tolist()
        warn(
            f"The exposure of output {names[d]!r} is missing in {seen.place(row)}, and of "
            f"{unsaid.sum()} values in all: as it is not known for how long they were seen, they "
            "are left out. Fill in 1 where an output was seen throughout."
        )
        lower, upper = open_ends(unsaid, lower, upper)
    return lower, upper, names, flat, np.where(unknown, 1.0, shares)


def _read_exposure(given: Any, seen: Seen) -> Cells:
    """Return the exposure of each cell, NaN where it is unknown.

    With a table text names columns, perhaps over the length of the period: "minutes/60", and of
    the time in which nothing could be seen "1 - minutes/60".
    """
    if given is None:
        return np.ones((1, 1))
    is_word = isinstance(given, str) and given == UNKNOWN and seen.table is None
    read = spread(np.nan if is_word else given, seen, "Exposure")
    # A sum of parts of a period may exceed it by rounding.
    near = np.abs(read.values - 0.5) < 0.5 + ROUNDING
    shares = np.where(near, np.clip(read.values, 0.0, 1.0), read.values)
    noun = "Exposure" if read.named else "Exposure of output"
    if np.any(bad := (shares < 0) | (shares > 1)):
        name, hint = read.names[np.argwhere(bad)[0][1]], "Divide by the length of the period."
        if seen.table is not None and name not in seen.names:
            # Said is what the column holds.
            shares = np.broadcast_to(seen.table.numbers(name, noun)[:, None], bad.shape)
            hint = f'Name the length of the period, as "{name}/60" for minutes of an hour, or '
            hint += f'"1 - {name}/60" if these are the minutes in which nothing could be seen.'
        said = "got {:g}. An exposure is a share of the period, from 0 to 1."
        refuse(bad, read.names, noun, said, shares, hint=hint)
    unseen = (shares == 0) & (np.abs(seen.values) > 0)
    if unseen.any():
        row, d = np.argwhere(unseen)[0].tolist()
        warn(
            f"The exposure of output {seen.names[d]!r} is 0 in {unseen.sum()} cell(s) of which "
            f"something was recorded, the first of them in {seen.place(row)} "
            f"({seen.values[row, d]:g}): they are left out, as missing."
        )
    return shares


def share_term(text: str, columns: Sequence[str]) -> tuple[str, float, bool]:
    """Return the column of an exposure in words, the period it is divided by, and if it is "1 -".

    >>> share_term("1 - empty/60", ["empty"]), share_term("share", ["share"])
    (('empty', 60.0, True), ('share', 1.0, False))
    """
    match = None if text in columns else SHARE.fullmatch(text.strip())
    if match is None:
        return text, 1.0, False
    return match["column"], float(match["period"] or 1.0), match["rest"] is not None


def check_flags(given: Seen, values: Cells, side: str, table: Table | None = None) -> Cells:
    """Return flags of accepted values, NaN where one is missing that should be there."""
    flags = np.where(np.isnan(values), 0.0, given.values)
    unknown = np.isnan(flags)
    noun = "Flag" if given.named else "Flag of output"
    hint = f"Accepted flags are {', '.join(MEANING[flag] for flag in ACCEPTED[side])}."
    bad = ~np.isin(flags, ACCEPTED[side]) & ~unknown
    refuse(bad, given.names, noun, "got {:g}.", flags, hint=hint)
    for d in np.flatnonzero(unknown.any(axis=0)):
        row, name = int(np.argmax(unknown[:, d])), given.names[d]
        place = given._replace(table=table).place(row)
        found = f"is missing in {unknown[:, d].sum()} row(s), the first of them {place}"
        if not np.any(flags[~np.isnan(values[:, d]), d] == 0):
            said = f"{found}, and nowhere 0. Fill in 0 (or False) where a value is exact."
            raise DataError(said, "Flag", name, row)
        warn(
            f"Flag {name!r} {found}: as it is not known whether these values were censored, they "
            "are left out. Fill in 0 where a value is exact."
        )
    return flags


def spread(given: Any, seen: Seen, noun: str) -> Seen:
    """Return one number for each cell, `DEFAULT` or NaN where none is given.

    Given is one number, one per output (a list or a dict by name), per row, or per row and output;
    with a table also the name of a column, or one per output. Flags and bounds that are arrays have
    one value for each row and output. The names of the result are those that messages should use.
    """
    (rows, outputs), names, flags = seen.values.shape, seen.names, noun == "Flag"
    if given is None:
        return seen.unknown._replace(named=False)
    if isinstance(given, int | float | np.number) and not flags:
        return Seen(np.full((rows, outputs), float(given)), names)
    if columns := column_names(given) if seen.table is not None else []:
        # A column that is no flag may be that of all outputs.
        columns = columns * outputs if len(columns) == 1 and not flags else columns
        if len(columns) != outputs:
            said = f"got {listed(columns)} for {outputs} output(s) ({listed(names)})."
            raise DataError(said, noun, hint="Give one for each output, or a dict by output.")
        given, seen = dict(zip(names, columns, strict=True)), seen._replace(keys=None)
    if isinstance(given, Mapping):
        # Of arrays under other names a dict is a table.
        each = noun == "Exposure" or any(np.ndim(value) == 0 for value in given.values())
        if each or seen.table is not None or not set(names).isdisjoint(given):
            return _by_output(given, seen, noun)
    other = read_values(given, noun, flags=flags)
    values, own = other.values, other.named
    if not flags and not noun.endswith("bound"):
        if other.flat and len(values) == rows == outputs > 1:
            said = f"got {rows} values, which could be one per row or one per output."
            hint = f"Give an array of shape ({rows}, 1) or (1, {outputs}), or a dict by name."
            raise DataError(said, noun, hint=hint)
        values = values.T if other.flat and len(values) == outputs else values
        own &= values.shape[1] == outputs
        if values.shape[0] in (1, rows) and values.shape[1] in (1, outputs):
            values = np.broadcast_to(values, (rows, outputs))
    if values.shape != (rows, outputs):
        said = f"got {size(other.values)}, where the outputs ({listed(names)}) have "
        raise DataError(f"{said}{size(seen.values)}.", noun, hint="Give one for each cell.")
    # One column cannot be mistaken for another, and is usually called something else.
    own_names = other.named and not (other.flat or set(names).isdisjoint(other.names))
    if outputs > 1 and (own or own_names) and seen.named and other.names != names:
        said = f"got the columns {listed(other.names)}, where the outputs are {listed(names)}."
        raise DataError(said, noun, hint="Rename or reorder the columns.")
    return Seen(values, other.names if own else names, own)


def size(cells: Cells) -> str:
    """Return how many rows and columns there are, in words."""
    return f"{cells.shape[0]} row(s) and {cells.shape[1]} column(s)"


def column_names(given: Any) -> list[str]:
    """Return the names of columns that one text or a list of text gives, else none."""
    several = [given] if isinstance(given, str) else given
    is_text = isinstance(several, list | tuple) and all(isinstance(name, str) for name in several)
    return list(several) if is_text else []


def _by_output(given: Mapping[Any, Any], seen: Seen, noun: str) -> Seen:
    """Return numbers or columns that are given by name of the output (of long tables, by key)."""
    table, default = seen.table, DEFAULT.get(noun, np.nan)
    columns = () if table is None else table.names
    # Labels of a long table may be numbers, which a command line has as text.
    given = {str(name): each for name, each in given.items()}
    known = [*map(str, seen.names if seen.keys is None else dict.fromkeys(seen.keys))]
    for name in given:
        if name not in known:
            said = f"got {name!r}, which is not an output. The outputs are {listed(known)}."
            raise DataError(said, noun, hint=did_you_mean(name, known))
    if noun == "Exposure" and UNKNOWN not in columns:
        words = {name for name, value in given.items() if isinstance(value, str)}
        given = {n: np.nan if n in words and v == UNKNOWN else v for n, v in given.items()}
    if seen.keys is not None:
        for each in given.values():
            if isinstance(each, str) or np.ndim(each):
                found = repr(each) if isinstance(each, str) else type(each).__name__
                said = f"got {found} for one output of a long table. There must be a number."
                raise DataError(
                    said, noun, hint="Or name one column, which is that of all outputs."
                )
        numbers = {key: np.nan if each is None else float(each) for key, each in given.items()}
        values = np.array([numbers.get(str(key), default) for key in seen.keys])
        return Seen(values[:, None], seen.names)
    values, labels = np.full(seen.values.shape, default), list(seen.names)
    for name, value in given.items():
        d = seen.names.index(name)
        if isinstance(value, str) and table is not None and noun == "Exposure":
            labels[d], period, rest = share_term(value, columns)
            share = table.numbers(labels[d], noun) / period
            values[:, d] = 1.0 - share if rest else share
        elif isinstance(value, str) and table is not None:
            labels[d], read = value, table.flags if noun == "Flag" else table.numbers
            values[:, d] = read(value, noun)
        elif np.ndim(value) == 0 and not isinstance(value, str):
            values[:, d] = np.nan if value is None else float(value)
        else:
            alone = Seen(seen.values[:, [d]], (name,))
            values[:, d] = spread(value, alone, noun).values[:, 0]
    return Seen(values, tuple(labels), named=table is not None)
