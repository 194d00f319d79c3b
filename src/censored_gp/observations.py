"""What is known of the outputs: a closed interval `[lower, upper]` per row and output.

`lower == upper` is exact, `upper = inf` right-censored, `lower = -inf` left-censored, both finite
and different interval-censored, both infinite missing. There is no NaN inside: flags, NaN,
capacities and detection limits become bounds here, at the edge.

A right-censored count may be more than a bound: if counting stopped at a random moment, what was
counted is a random share of the truth, and speaks of it. Such cells, and no others, have a mark,
and odds if they may as well be limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from censored_gp.bounds import (
    as_cells,
    as_odds,
    as_shares,
    check_bounds,
    check_shapes,
    default_names,
    odds_of_limits,
)
from censored_gp.cells import (
    ACCEPTED,
    SHARES,
    Cells,
    Seen,
    check_side,
    read,
    read_flags,
    read_like,
    read_values,
    refuse_where,
    spread_out,
)
from censored_gp.tables import listed

__all__ = ["Observations"]

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
