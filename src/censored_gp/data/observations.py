"""Values that were recorded in steps, where many of them are one and the same.

A density has no largest value at a number that many records share: a scale that may vary would
become nought there, and the bound infinite. What is recorded as 0 in steps of 1 was between -1/2
and 1/2; said so, it is a probability, which is one at most.

Cells of outputs and of what goes with them (flags, bounds, limits), out of what a user has.

Everything is brought to one number for each row and output; what cannot be is refused by name of
the output and number of the row.

Bounds that can be: shapes that match, lower ends that are not above the upper ones.

What is known of the outputs: a closed interval `[lower, upper]` per row and output.

`lower == upper` is exact, `upper = inf` right-censored, `lower = -inf` left-censored, both finite
and different interval-censored, both infinite missing. There is no NaN inside: flags, NaN,
capacities and detection limits become bounds here, at the edge.

A right-censored count may be more than a bound: if counting stopped at a random moment, what was
counted is a random share of the truth, and speaks of it. Such cells, and no others, have a mark,
and odds if they may as well be limits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.tables import as_numbers, first_problem, listed, read_table, shape_of

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


def as_cells(bound: Any) -> Cells:
    """Return bounds as rows by outputs; a flat array is one output."""
    cells = np.array(bound, dtype=np.float64)
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or cells.shape[1] == 0:
        raise ValueError(
            f"Bounds: found an array of shape {cells.shape}. Accepted are rows by outputs, with at "
            "least one output."
        )
    return cells


def _as_marks(marks: Any, kind: type) -> Shaped[np.ndarray, "R C"]:
    """Return marks as rows by outputs: one alone stands for all, a flat array is of one output."""
    found = np.array(marks, dtype=kind)
    return found.reshape(-1, 1) if found.ndim < 2 else found


def as_shares(
    share: Any, lower: Cells, upper: Cells, names: tuple[str, ...]
) -> Bool[np.ndarray, "N D"]:
    """Return which cells are shares; only right-censored ones can be."""
    share = _as_marks(share, bool)
    if share.shape not in ((1, 1), lower.shape):
        raise ValueError(
            f"Shares: found {size_in_words(share)}. Accepted is one flag for each row and output, "
            f"{size_in_words(lower)}."
        )
    found = np.broadcast_to(share, lower.shape)
    problem = first_problem(found & ~(np.isfinite(lower) & np.isposinf(upper)), names, "Output")
    if problem:
        raise ValueError(
            f"{problem[2]}: found a share that is not right-censored. Accepted are lower bounds."
        )
    return found


def as_odds(odds: Any, share: Bool[np.ndarray, "N D"], names: tuple[str, ...]) -> Cells:
    """Return the odds of a limit, of cells that may be shares; only these can have any."""
    cells = _as_marks(odds, np.float64)
    if cells.shape not in ((1, 1), share.shape):
        raise ValueError(
            f"Odds of limits: found {size_in_words(cells)}. Accepted is one number for each row "
            f"and output, {size_in_words(share)}."
        )
    found = np.where(share, cells, 0.0) if cells.size == 1 else cells
    bad = ~(np.isfinite(found) & (found >= 0)) | ((found > 0) & ~share)
    problem = first_problem(bad, names, "Output")
    if problem:
        row, column, place = problem
        raise ValueError(
            f"{place}: found the odds {found[row, column]:g} of a limit. Accepted are 0 and, where "
            "is_share, positive numbers."
        )
    return found


def odds_of_limits(values: Cells, share: Bool[np.ndarray, "N D"]) -> Cells:
    """Return what is added to 1 / (y + 1) if a record is as likely to be a share as a limit.

    A limit is not known to depend on anything. Of all distributions on 0, 1, ... that have the mean
    of the output's own records it is thought to have the one that says least: the geometric one.

    >>> odds_of_limits(np.array([[0.0], [2.0], [5.0]]), np.array([[True], [True], [False]]))
    array([[0.5  ],
           [0.125],
           [0.   ]])
    """
    some = np.where(share, np.maximum(values, 0.0), 0.0)
    mean = some.sum(axis=0) / np.maximum(share.sum(axis=0), 1)
    log_ratio = np.log1p(1.0 / np.where(mean > 0, mean, 1.0))
    chance = np.exp(-some * log_ratio) / (1.0 + mean)
    # So large a record would otherwise have no odds at all, and be a share for certain.
    return np.where(share, np.maximum(chance, np.finfo(float).tiny), 0.0)


def default_names(number: int) -> tuple[str, ...]:
    """Return names for outputs that have none."""
    return ("y",) if number == 1 else tuple(f"y{d}" for d in range(number))


def check_shapes(lower: Cells, upper: Cells, names: tuple[str, ...]) -> None:
    """Refuse bounds of unlike shapes, and names that are not one for each output."""
    if lower.shape != upper.shape:
        raise ValueError(
            f"The lower bounds have {size_in_words(lower)}, the upper bounds "
            f"{size_in_words(upper)}. Accepted is one of each for every row and output."
        )
    if len(names) != lower.shape[1] or len(set(names)) != len(names):
        raise ValueError(
            f"Outputs: found the names {listed(names)} for {lower.shape[1]} output(s). Accepted is "
            "one name per output, all different."
        )


def check_bounds(lower: Cells, upper: Cells, names: tuple[str, ...]) -> None:
    """Refuse intervals that hold nothing, and NaN."""
    ends = "Accepted are lower <= upper, -inf for no lower and inf for no upper bound"
    empty = ~(lower <= upper) | np.isposinf(lower) | np.isneginf(upper)
    problem = first_problem(empty, names, "Output")
    if problem:
        row, column, place = problem
        found = f"lower {lower[row, column]:g} and upper {upper[row, column]:g}"
        advice = "Swap or correct the bounds"
        if np.isnan(lower[row, column]) or np.isnan(upper[row, column]):
            advice = "Use Observations.from_bounds, which reads NaN as not known"
        raise ValueError(f"{place}: found {found}. {ends}. {advice}.")


# Right-censored and so on in words, in the order in which they are told.
KINDS = {
    "exact": "exact",
    "right": "at least a bound (right-censored)",
    "left": "at most a bound (left-censored)",
    "interval": "between two bounds",
    "missing": "missing",
}


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """Closed intervals `[lower, upper]`, N rows by D outputs, with the names of the outputs.

    Use a builder (`exact`, `from_flags`, `from_bounds`, `from_capacity`, `from_detection_limit`,
    `from_rounding`) unless you have both bounds, without NaN, already.

    >>> from censored_gp import Observations
    >>> Observations([1.0, 4.0], [1.0, float("inf")])
    Observations: 2 rows of 1 output
      y: 1 exact, 1 at least a bound (right-censored)
    """

    lower: Cells
    upper: Cells
    names: tuple[str, ...] = ()
    flat: bool | None = None
    """Whether they came as a flat array: results for them are then flat, too."""
    is_share: Bool[np.ndarray, "N D"] = field(default_factory=lambda: np.zeros((1, 1), dtype=bool))
    """Where a right-censored count is, or may be, a random share of the truth; one flag stands for
    all."""
    limit_odds: Cells = field(default_factory=lambda: np.zeros((1, 1)))
    """Where a share may be a limit instead: what is added to 1 / (y + 1), the probability of having
    seen so much of y; 0 is a share for certain, and one number stands for all shares."""

    def __post_init__(self) -> None:
        lower, upper = (as_cells(bound) for bound in (self.lower, self.upper))
        names = tuple(map(str, self.names)) or default_names(lower.shape[1])
        check_shapes(lower, upper, names)
        check_bounds(lower, upper, names)
        flat = np.ndim(self.lower) == 1 if self.flat is None else self.flat
        share = as_shares(self.is_share, lower, upper, names)
        odds = as_odds(self.limit_odds, share, names)
        values = {"lower": lower, "upper": upper, "names": names, "flat": flat}
        values |= {"is_share": share, "limit_odds": odds}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def exact(cls, y: Any) -> Observations:
        """Values seen as they are; NaN is missing.

        >>> Observations.exact([1.5, float("nan")]).is_missing[:, 0]
        array([False,  True])
        """
        seen = read_values(y)
        return cls(*_with_missing(seen, seen.values, seen.values))

    @classmethod
    def from_flags(
        cls, y: Any, censored: Any, *, side: str = "right", strict: bool = False
    ) -> Observations:
        """Values with a flag each: 0 or False exact, 1 or True "at least y", -1 "at most y".

        With `side="left"`, 1 or True is "at most y" (and -1 nothing). NaN in y is missing. With
        `strict`, for counts, it is "more than y" and "less than y".

        >>> Observations.from_flags([3, 5], [0, 1]).upper[:, 0]
        array([ 3., inf])

        With `side="share"`, 1 or True is a count that was made until a moment that had nothing to
        do with demand, somewhere in its own period (a counter failed within the hour): any share of
        the truth was equally likely to be seen. A low figure then speaks of a low truth. Periods
        after that moment are no shares of 0 but missing: NaN.

        >>> Observations.from_flags([3, 1], [0, 1], side="share").is_share[:, 0]
        array([False,  True])

        With `side="share_or_limit"` it may be that or a limit, "at least y": both are thought to
        be equally likely, and limits to be distributed as the output's flagged values are, on the
        whole. A low figure then speaks of a low truth as far as it may be a share.

        >>> Observations.from_flags([3, 1], [0, 1], side="share_or_limit").limit_odds[:, 0]
        array([0.  , 0.25])
        """
        check_side(side)
        seen = read_values(y)
        flags = read_flags(censored, seen, ACCEPTED[side])
        flags = -flags if side == "left" else flags
        if strict and side in SHARES:
            raise ValueError(f'strict: found True with side="{side}". A share is no bound.')
        if strict:
            _check_whole(seen, flags)
        lower = np.where(flags == -1, -np.inf, seen.values + (strict & (flags == 1)))
        upper = np.where(flags == 1, np.inf, seen.values - (strict & (flags == -1)))
        share = (flags == 1) & (side in SHARES) & ~np.isnan(seen.values)
        odds = odds_of_limits(seen.values, share) if side == "share_or_limit" else np.zeros((1, 1))
        return cls(*_with_missing(seen, lower, upper), is_share=share, limit_odds=odds)

    @classmethod
    def from_bounds(cls, lower: Any, upper: Any) -> Observations:
        """Both ends of every interval; NaN is an end that is not known.

        >>> Observations.from_bounds([1, float("nan")], [2, 4]).lower[:, 0]
        array([  1., -inf])
        """
        low = read(lower)
        high = read_like(upper, low, "Upper bound")
        return cls(
            np.where(np.isnan(low.values), -np.inf, low.values),
            np.where(np.isnan(high), np.inf, high),
            low.names,
            low.flat,
        )

    @classmethod
    def from_capacity(cls, y: Any, capacity: Any) -> Observations:
        """Values that could not pass a capacity, Eq. (1): "at least y" where y >= capacity.

        The capacity (or threshold) is one number, one per output (a list or a dict by name), one
        per row, or one per row and output; NaN is no limit. NaN in y is missing.

        >>> Observations.from_capacity([3, 8], 8).is_right[:, 0]
        array([False,  True])
        """
        seen = read_values(y)
        full = seen.values >= spread_out(capacity, seen, "capacity")
        upper = np.where(full, np.inf, seen.values)
        return cls(*_with_missing(seen, seen.values, upper))

    @classmethod
    def from_detection_limit(
        cls, y: Any, limit: Any = None, nondetect: Any = None, *, floor: Any = -np.inf
    ) -> Observations:
        """Values that are only known to lie between `floor` and a limit where not detected.

        Not detected is where the `nondetect` flags say so or, without flags, where y <= limit.
        The limit has the shapes of a capacity (see `from_capacity`); without one it is the value
        recorded at the flag. NaN in y is missing, unless it is flagged and the limit is known.

        >>> found = Observations.from_detection_limit([0.7, 0.2], 0.5, floor=0)
        >>> found.lower[:, 0], found.upper[:, 0]
        (array([0.7, 0. ]), array([0.7, 0.5]))
        """
        if nondetect is None and limit is None:
            raise ValueError(
                "from_detection_limit: found neither a limit nor flags of what was not detected. "
                "Give limit=..., nondetect=... or both."
            )
        seen = read_values(y)
        limits = seen.values if limit is None else spread_out(limit, seen, "limit")
        flags = None if nondetect is None else read_flags(nondetect, seen, accepted=(0, 1))
        below = seen.values <= limits if flags is None else flags == 1
        lowest = np.nan_to_num(spread_out(floor, seen, "floor"), nan=-np.inf, neginf=-np.inf)
        upper = np.where(below, limits, seen.values)
        known = seen._replace(values=upper)
        return cls(*_with_missing(known, np.where(below, lowest, upper), upper))

    @classmethod
    def from_rounding(cls, y: Any, unit: Any) -> Observations:
        """Values rounded to a multiple of `unit`: between y - unit/2 and y + unit/2.

        The unit has the shapes of a capacity (see `from_capacity`); NaN or 0 is not rounded.

        >>> found = Observations.from_rounding([20, 30], 10)
        >>> found.lower[:, 0], found.upper[:, 0]
        (array([15., 25.]), array([25., 35.]))
        """
        seen = read_values(y)
        units = np.nan_to_num(spread_out(unit, seen, "unit"), nan=0.0, posinf=np.inf)
        refuse_where(
            ~(np.isfinite(units) & (units >= 0)),
            seen.names,
            units,
            "Accepted are units >= 0.",
            "Unit of output",
        )
        lower, upper = seen.values - units / 2, seen.values + units / 2
        return cls(*_with_missing(seen, lower, upper))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, D).

        >>> Observations.exact([[1, 2], [3, 4], [5, 6]]).shape
        (3, 2)
        """
        return self.lower.shape[0], self.lower.shape[1]

    @property
    def is_exact(self) -> Bool[np.ndarray, "N D"]:
        """Where the value itself is known.

        >>> Observations.from_flags([3, 5], [0, 1]).is_exact[:, 0]
        array([ True, False])
        """
        return self.lower == self.upper

    @property
    def is_right(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is at least a bound.

        >>> Observations.from_flags([3, 5], [0, 1]).is_right[:, 0]
        array([False,  True])
        """
        return np.isfinite(self.lower) & np.isposinf(self.upper)

    @property
    def is_left(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is at most a bound.

        >>> Observations.from_flags([3, 5], [0, -1]).is_left[:, 0]
        array([False,  True])
        """
        return np.isneginf(self.lower) & np.isfinite(self.upper)

    @property
    def is_interval(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is between two different bounds.

        >>> Observations.from_bounds([3, 5], [3, 6]).is_interval[:, 0]
        array([False,  True])
        """
        return np.isfinite(self.lower) & np.isfinite(self.upper) & (self.lower < self.upper)

    @property
    def is_share_or_limit(self) -> Bool[np.ndarray, "N D"]:
        """Where a count may be a share of the truth, and may be a limit.

        >>> Observations.from_flags([3, 1], [0, 1], side="share_or_limit").is_share_or_limit[:, 0]
        array([False,  True])
        """
        return self.limit_odds > 0

    @property
    def is_missing(self) -> Bool[np.ndarray, "N D"]:
        """Where nothing is known.

        >>> Observations.exact([3, None]).is_missing[:, 0]
        array([False,  True])
        """
        return np.isneginf(self.lower) & np.isposinf(self.upper)

    def values(self) -> Cells:
        """One number per cell: the exact value, the finite bound or the middle; NaN if missing.

        >>> Observations.from_bounds([3, 5, 7], [3, 6, None]).values()[:, 0]
        array([3. , 5.5, 7. ])
        """
        low = np.where(np.isfinite(self.lower), self.lower, self.upper)
        high = np.where(np.isfinite(self.upper), self.upper, low)
        # The middle is formed so that two huge bounds do not overflow.
        return np.where(self.is_missing, np.nan, np.where(low == high, low, low / 2 + high / 2))

    def counts(self) -> dict[str, Int[np.ndarray, " D"]]:
        """How many rows of each output are exact, right, left, interval and missing.

        >>> Observations.from_flags([3, 5, 5], [0, 1, 1]).counts()["right"]
        array([2])
        """
        return {kind: getattr(self, f"is_{kind}").sum(axis=0) for kind in KINDS}

    def rows(self, index: Any) -> Observations:
        """Some of the rows: a slice, an array of positions or a mask.

        >>> Observations.exact([3, 5, 7]).rows([2, 0]).values()[:, 0]
        array([7., 3.])
        """
        index = [index] if isinstance(index, int | np.integer) else index
        ends = self.lower[index], self.upper[index]
        marks = self.is_share[index], self.limit_odds[index]
        return Observations(*ends, self.names, self.flat, *marks)

    def outputs(self, places: Sequence[int]) -> Observations:
        """Some of the outputs, by their positions.

        >>> Observations([[1.0, 2.0]], [[1.0, 2.0]], ("a", "b")).outputs([1]).names
        ('b',)
        """
        chosen = list(places)
        names = tuple(self.names[place] for place in chosen)
        cells = (self.lower, self.upper, self.is_share, self.limit_odds)
        lower, upper, share, odds = (each[:, chosen] for each in cells)
        return Observations(lower, upper, names, is_share=share, limit_odds=odds)

    def summary(self) -> str:
        """What is known, in words, output by output.

        >>> print(Observations.from_flags([3, 5, 5], [0, 1, 1]).summary())
        3 rows of 1 output
          y: 1 exact, 2 at least a bound (right-censored)
        """
        number, outputs = self.shape
        counts = self.counts()
        lines = [f"{number} rows of {outputs} output{'s' if outputs > 1 else ''}"]
        for d, name in enumerate(self.names):
            known = [f"{counts[k][d]} {words}" for k, words in KINDS.items() if counts[k][d]]
            told = "".join(_told_of_shares(self.is_share[:, d], self.is_share_or_limit[:, d]))
            lines.append(f"  {name}: {', '.join(known) or 'no rows'}{told}")
        return "\n".join(lines)

    def require_observed(self) -> None:
        """Refuse an output of which nothing at all is known.

        >>> Observations.exact([[3, None], [5, None]]).require_observed()
        Traceback (most recent call last):
        ValueError: Output 'y1': found no observed row among 2. Every output needs ...
        """
        missing = np.all(self.is_missing, axis=0).tolist()
        empty = [name for d, name in enumerate(self.names) if missing[d]]
        if empty:
            raise ValueError(
                f"Output {listed(empty)}: found no observed row among {len(self)}. Every output "
                "needs at least one row that is not missing. Drop the output or add a row."
            )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Observations:
        """Some of the rows, as `rows`; this is how scikit-learn makes folds."""
        return self.rows(index[0] if isinstance(index, tuple) else index)

    def __repr__(self) -> str:
        return f"Observations: {self.summary()}"


def _told_of_shares(share: Bool[np.ndarray, " N"], either: Bool[np.ndarray, " N"]) -> Iterator[str]:
    if sure := int(np.sum(share & ~either)):
        yield f"; {sure} of the bounds are a share of the truth"
    if either.any():
        yield f"; {either.sum()} of the bounds are a share of the truth or a limit"


def _check_whole(seen: Seen, flags: Cells) -> None:
    counted = np.isnan(seen.values) | (seen.values == np.round(seen.values)) | (flags == 0)
    refuse_where(
        ~counted,
        seen.names,
        seen.values,
        "Accepted with strict=True are counts (whole numbers). Use strict=False for other values.",
    )


def _with_missing(
    seen: Seen, lower: Cells, upper: Cells
) -> tuple[Cells, Cells, tuple[str, ...], bool]:
    """The bounds, open on both sides where the value is missing, with what else is known."""
    missing = np.isnan(seen.values)
    lower, upper = np.where(missing, -np.inf, lower), np.where(missing, np.inf, upper)
    return lower, upper, seen.names, seen.flat


ATOM = 0.25
"""Share of the values from which on the most common one is more than a coincidence."""


WHOLE = 1e-6
"""How far from a whole number of steps a value may be, by rounding."""


def step_of(values: Float[np.ndarray, " K"]) -> float:
    """Return the step in which values were recorded if many are the same, else 0.

    >>> step_of(np.array([0.0, 0.0, 2.0, 6.0])), step_of(np.array([0.0, 0.3, 0.7, 1.5, 1.9]))
    (2.0, 0.0)
    """
    distinct, count = np.unique(values, return_counts=True)
    if len(distinct) < 2 or count.max() <= ATOM * len(values):
        return 0.0
    step = np.diff(distinct).min()
    steps = (distinct - distinct[0]) / step
    # Steps so small that they are lost in the size of the values are no steps.
    return float(step) if np.all(np.abs(steps - np.round(steps)) < WHOLE) else 0.0


def within_steps(observations: Observations, outputs: Sequence[int]) -> Observations:
    """Say of some outputs that their exact values are known to within half a step.

    >>> seen = Observations([[0.0], [0.0], [3.0], [1.0]], [[0.0], [0.0], [np.inf], [1.0]])
    >>> within_steps(seen, [0]).lower[:, 0].tolist()
    [-0.5, -0.5, 3.0, 0.5]
    """
    half = np.zeros(observations.lower.shape[1])
    for output in outputs:
        exact = observations.is_exact[:, output]
        half[output] = 0.5 * step_of(observations.lower[exact, output])
    wide = np.where(observations.is_exact, half, 0.0)
    return dataclasses.replace(
        observations, lower=observations.lower - wide, upper=observations.upper + wide
    )
