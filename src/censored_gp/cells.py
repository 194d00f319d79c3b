"""Cells of outputs and of what goes with them (flags, bounds, limits), out of what a user has.

Everything is brought to one number for each row and output; what cannot be is refused by name of
the output and number of the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.tables import as_numbers, first_problem, listed, read_table, shape_of

__all__ = [
    "ACCEPTED",
    "Cells",
    "Seen",
    "check_same_names",
    "check_side",
    "read",
    "read_flags",
    "read_like",
    "read_values",
    "refuse_where",
    "size_in_words",
    "spread_out",
]

Cells = Float[np.ndarray, "N D"]
SHARES = ("share", "share_or_limit")
"""Sides of which flags alone can tell where they are."""
ACCEPTED = {"right": (-1, 0, 1), "left": (0, 1), **dict.fromkeys(SHARES, (0, 1))}
"""Flags by what a plain one says."""
MEANING = {-1: "-1 (at most)", 0: "0 or False (exact)", 1: "1 or True (censored)"}


class Seen(NamedTuple):
    """Cells as read, NaN where missing; `named` tells whether the names are the user's."""

    values: Cells
    names: tuple[str, ...]
    named: bool
    flat: bool
    """Whether it was a flat array, and no column of a table."""


def read(data: Any, noun: str = "Output") -> Seen:
    """Cells of a table, an array, or anything that reads as one.

    >>> read([1.0, None]).values.tolist()
    [[1.0], [nan]]
    """
    table = read_table(data, noun=noun, prefix="y", alone="y")
    if not table.columns:
        raise ValueError(f"{noun}s: found no column. Accepted is at least one.")
    columns = [as_numbers(column, noun) for column in table.columns]
    flat = len(shape_of(data, noun)) == 1
    return Seen(np.stack(columns, axis=1), table.names, table.named, flat)


def read_values(y: Any) -> Seen:
    """Outputs that are finite or missing."""
    seen = read(y)
    refuse_where(
        np.isinf(seen.values),
        seen.names,
        seen.values,
        "Accepted are finite numbers, and NaN for missing ones. Use Observations.from_bounds for "
        "what is only bounded.",
    )
    return seen


def read_like(data: Any, seen: Seen, noun: str) -> Cells:
    """Cells of the same rows and outputs as those already read."""
    other = read(data, noun)
    if other.values.shape != seen.values.shape:
        raise ValueError(
            f"The {noun.lower()}s have {size_in_words(other.values)}, the outputs "
            f"{size_in_words(seen.values)} ({listed(seen.names)}). Accepted is one value for each "
            "row and output."
        )
    check_same_names(other, seen, f"{noun.lower()}s")
    return other.values


def read_flags(data: Any, seen: Seen, accepted: tuple[int, ...]) -> Cells:
    """Flags of the accepted values; at a missing value the flag does not matter."""
    flags = read_like(data, seen, "Flag")
    flags = np.where(np.isnan(seen.values) & np.isnan(flags), 0.0, flags)
    refuse_where(
        ~np.isin(flags, accepted),
        seen.names,
        flags,
        f"Accepted flags are {', '.join(MEANING[flag] for flag in accepted)}.",
        noun="Flag of output",
    )
    return flags


def check_side(side: str) -> None:
    """Refuse a side that is none."""
    if side not in ACCEPTED:
        raise ValueError(
            f'side: found {side!r}. Accepted is "right" (a censored value is at least what was '
            'recorded), "left" (at most), "share" (a random share of the truth was counted) or '
            '"share_or_limit" (a share or "at least": it is not known which).'
        )


def spread_out(limit: Any, seen: Seen, what: str) -> Cells:
    """One number per cell from one in all, per output, per row, or per row and output."""
    if isinstance(limit, Mapping):
        _check_known(limit, seen, what)
        limit = [[limit.get(name, np.nan) for name in seen.names]]
    noun = f"{what.capitalize()} value"
    other = read([[limit]] if shape_of(limit, noun) == () else limit, noun)
    values, (rows, outputs), flat = other.values, seen.values.shape, other.flat
    if flat and len(values) == rows == outputs > 1:
        raise ValueError(
            f"The {what} has {rows} values, which could be one per row or one per output. Give an "
            f"array of shape ({rows}, 1) for rows, (1, {outputs}) or a dict by name for outputs."
        )
    if flat and len(values) == outputs:
        values = values.T
    if not all(have in (1, want) for have, want in zip(values.shape, (rows, outputs), strict=True)):
        raise ValueError(
            f"The {what} has {size_in_words(values)}, the outputs {size_in_words(seen.values)} "
            f"({listed(seen.names)}). Accepted is one number, one per output (a list, or a dict by "
            "name), one per row, or one per row and output."
        )
    if values.shape[1] == outputs:
        check_same_names(other, seen, what)
    return np.broadcast_to(values, seen.values.shape)


def _check_known(limit: Mapping[str, Any], seen: Seen, what: str) -> None:
    unknown = [name for name in limit if name not in seen.names]
    if unknown:
        raise ValueError(
            f"The {what} names {listed(map(str, unknown))}, which is not an output. The "
            f"outputs are {listed(seen.names)}."
        )


def check_same_names(other: Seen, seen: Seen, what: str) -> None:
    """Refuse columns of what goes with the outputs that are named or ordered otherwise."""
    # One column cannot be mistaken for another, and is usually called something else.
    several = len(seen.names) > 1 and len(other.names) > 1
    if several and other.named and seen.named and other.names != seen.names:
        raise ValueError(
            f"The {what} have the columns {listed(other.names)}, the outputs {listed(seen.names)}. "
            "Accepted are the same names in the same order: rename or reorder the columns."
        )


def refuse_where(
    bad: Bool[np.ndarray, "N D"],
    names: Sequence[str],
    found: Cells,
    accepted: str,
    noun: str = "Output",
) -> None:
    """Refuse the first cell that is bad, if any is."""
    problem = first_problem(bad, names, noun)
    if problem:
        row, column, place = problem
        raise ValueError(f"{place}: found {found[row, column]:g}. {accepted}")


def size_in_words(cells: Cells) -> str:
    """How many rows and columns there are."""
    return f"{cells.shape[0]} row(s) and {cells.shape[1]} column(s)"
