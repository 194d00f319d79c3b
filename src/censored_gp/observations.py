"""What is known of the outputs: a closed interval `[lower, upper]` per row and output.

`lower == upper` is exact, `upper = inf` right-censored, `lower = -inf` left-censored, both finite
and different interval-censored, both infinite missing. There are no flags and no NaN inside:
flags, NaN, capacities and detection limits become bounds here, at the edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from censored_gp.tables import as_numbers, first_problem, listed, read_table

__all__ = ["Observations"]

Cells = Float[np.ndarray, "N D"]
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
    """

    lower: Cells
    upper: Cells
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lower, upper = (_as_cells(bound) for bound in (self.lower, self.upper))
        names = tuple(map(str, self.names)) or _default_names(lower.shape[1])
        _check_shapes(lower, upper, names)
        _check_bounds(lower, upper, names)
        for name, value in (("lower", lower), ("upper", upper), ("names", names)):
            object.__setattr__(self, name, value)

    @classmethod
    def exact(cls, y: Any) -> Observations:
        """Values seen as they are; NaN is missing."""
        seen = _read_values(y)
        return cls(*_with_missing(seen.values, seen.values, seen.values), seen.names)

    @classmethod
    def from_flags(cls, y: Any, censored: Any, *, strict: bool = False) -> Observations:
        """Values with a flag each: 0 or False exact, 1 or True "at least y", -1 "at most y".

        NaN in y is missing. With `strict`, for counts, 1 is "more than y" and -1 "less than y".
        """
        seen = _read_values(y)
        flags = _read_flags(censored, seen, accepted=(-1, 0, 1))
        if strict:
            _check_whole(seen, flags)
        lower = np.where(flags == -1, -np.inf, seen.values + (strict & (flags == 1)))
        upper = np.where(flags == 1, np.inf, seen.values - (strict & (flags == -1)))
        return cls(*_with_missing(seen.values, lower, upper), seen.names)

    @classmethod
    def from_bounds(cls, lower: Any, upper: Any) -> Observations:
        """Both ends of every interval; NaN is an end that is not known."""
        low = _read(lower)
        high = _read_like(upper, low, "Upper bound")
        return cls(
            np.where(np.isnan(low.values), -np.inf, low.values),
            np.where(np.isnan(high), np.inf, high),
            low.names,
        )

    @classmethod
    def from_capacity(cls, y: Any, capacity: Any) -> Observations:
        """Values that could not pass a capacity, Eq. (1): "at least y" where y >= capacity.

        The capacity (or threshold) is one number, one per output (a list or a dict by name), one
        per row, or one per row and output; NaN is no limit. NaN in y is missing.
        """
        seen = _read_values(y)
        full = seen.values >= _spread_out(capacity, seen, "capacity")
        upper = np.where(full, np.inf, seen.values)
        return cls(*_with_missing(seen.values, seen.values, upper), seen.names)

    @classmethod
    def from_detection_limit(
        cls, y: Any, limit: Any = None, nondetect: Any = None, *, floor: Any = -np.inf
    ) -> Observations:
        """Values that are only known to lie between `floor` and a limit where not detected.

        Not detected is where the `nondetect` flags say so or, without flags, where y <= limit.
        The limit has the shapes of a capacity (see `from_capacity`); without one it is the value
        recorded at the flag. NaN in y is missing, unless it is flagged and the limit is known.
        """
        if nondetect is None and limit is None:
            raise ValueError(
                "from_detection_limit: found neither a limit nor flags of what was not detected. "
                "Give limit=..., nondetect=... or both."
            )
        seen = _read_values(y)
        limits = seen.values if limit is None else _spread_out(limit, seen, "limit")
        flags = None if nondetect is None else _read_flags(nondetect, seen, accepted=(0, 1))
        below = seen.values <= limits if flags is None else flags == 1
        lowest = np.nan_to_num(_spread_out(floor, seen, "floor"), nan=-np.inf, neginf=-np.inf)
        upper = np.where(below, limits, seen.values)
        return cls(*_with_missing(upper, np.where(below, lowest, upper), upper), seen.names)

    @classmethod
    def from_rounding(cls, y: Any, unit: Any) -> Observations:
        """Values rounded to a multiple of `unit`: between y - unit/2 and y + unit/2.

        The unit has the shapes of a capacity (see `from_capacity`); NaN or 0 is not rounded.
        """
        seen = _read_values(y)
        units = np.nan_to_num(_spread_out(unit, seen, "unit"), nan=0.0, posinf=np.inf)
        _refuse_where(
            ~(np.isfinite(units) & (units >= 0)),
            seen.names,
            units,
            "Accepted are units >= 0.",
            "Unit of output",
        )
        lower, upper = seen.values - units / 2, seen.values + units / 2
        return cls(*_with_missing(seen.values, lower, upper), seen.names)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, D)."""
        return self.lower.shape[0], self.lower.shape[1]

    @property
    def is_exact(self) -> Bool[np.ndarray, "N D"]:
        """Where the value itself is known."""
        return self.lower == self.upper

    @property
    def is_right(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is at least a bound."""
        return np.isfinite(self.lower) & np.isposinf(self.upper)

    @property
    def is_left(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is at most a bound."""
        return np.isneginf(self.lower) & np.isfinite(self.upper)

    @property
    def is_interval(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is between two different bounds."""
        return np.isfinite(self.lower) & np.isfinite(self.upper) & (self.lower < self.upper)

    @property
    def is_missing(self) -> Bool[np.ndarray, "N D"]:
        """Where nothing is known."""
        return np.isneginf(self.lower) & np.isposinf(self.upper)

    def values(self) -> Cells:
        """One number per cell: the exact value, the finite bound or the middle; NaN if missing."""
        low = np.where(np.isfinite(self.lower), self.lower, self.upper)
        high = np.where(np.isfinite(self.upper), self.upper, low)
        # The middle is formed so that two huge bounds do not overflow.
        return np.where(self.is_missing, np.nan, np.where(low == high, low, low / 2 + high / 2))

    def counts(self) -> dict[str, Int[np.ndarray, " D"]]:
        """How many rows of each output are exact, right, left, interval and missing."""
        return {kind: getattr(self, f"is_{kind}").sum(axis=0) for kind in KINDS}

    def rows(self, index: Any) -> Observations:
        """Some of the rows: a slice, an array of positions or a mask."""
        index = [index] if isinstance(index, int | np.integer) else index
        return Observations(self.lower[index], self.upper[index], self.names)

    def summary(self) -> str:
        """What is known, in words, output by output."""
        number, outputs = self.shape
        counts = self.counts()
        lines = [f"{number} rows of {outputs} output{'s' if outputs > 1 else ''}"]
        for d, name in enumerate(self.names):
            known = [f"{counts[k][d]} {words}" for k, words in KINDS.items() if counts[k][d]]
            lines.append(f"  {name}: {', '.join(known) or 'no rows'}")
        return "\n".join(lines)

    def require_observed(self) -> None:
        """Refuse an output of which nothing at all is known."""
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


class _Seen(NamedTuple):
    """Cells as read, NaN where missing; `named` tells whether the names are the user's."""

    values: Cells
    names: tuple[str, ...]
    named: bool


def _read(data: Any, noun: str = "Output") -> _Seen:
    table = read_table(data, noun=noun, prefix="y", alone="y")
    if not table.columns:
        raise ValueError(f"{noun}s: found no column. Accepted is at least one.")
    columns = [as_numbers(column, noun) for column in table.columns]
    return _Seen(np.stack(columns, axis=1), table.names, table.named)


def _read_values(y: Any) -> _Seen:
    """Outputs that are finite or missing."""
    seen = _read(y)
    _refuse_where(
        np.isinf(seen.values),
        seen.names,
        seen.values,
        "Accepted are finite numbers, and NaN for missing ones. Use Observations.from_bounds for "
        "what is only bounded.",
    )
    return seen


def _read_like(data: Any, seen: _Seen, noun: str) -> Cells:
    """Cells of the same rows and outputs as those already read."""
    other = _read(data, noun)
    if other.values.shape != seen.values.shape:
        raise ValueError(
            f"The {noun.lower()}s have {_size(other.values)}, the outputs {_size(seen.values)} "
            f"({listed(seen.names)}). Accepted is one value for each row and output."
        )
    _check_same_names(other, seen, f"{noun.lower()}s")
    return other.values


def _read_flags(data: Any, seen: _Seen, accepted: tuple[int, ...]) -> Cells:
    """Flags of the accepted values; at a missing value the flag does not matter."""
    flags = _read_like(data, seen, "Flag")
    flags = np.where(np.isnan(seen.values) & np.isnan(flags), 0.0, flags)
    meaning = {-1: "-1 (at most)", 0: "0 or False (exact)", 1: "1 or True (censored)"}
    _refuse_where(
        ~np.isin(flags, accepted),
        seen.names,
        flags,
        f"Accepted flags are {', '.join(meaning[flag] for flag in accepted)}.",
        noun="Flag of output",
    )
    return flags


def _spread_out(limit: Any, seen: _Seen, what: str) -> Cells:
    """One number per cell from one in all, per output, per row, or per row and output."""
    if isinstance(limit, Mapping):
        _check_known(limit, seen, what)
        limit = [[limit.get(name, np.nan) for name in seen.names]]
    if np.ndim(limit) == 0:
        limit = [[limit]]
    other = _read(limit, what.capitalize())
    values, (rows, outputs) = other.values, seen.values.shape
    flat = values.shape[1] == 1 and np.ndim(limit) == 1
    if flat and len(values) == rows == outputs > 1:
        raise ValueError(
            f"The {what} has {rows} values, which could be one per row or one per output. Give an "
            f"array of shape ({rows}, 1) for rows, (1, {outputs}) or a dict by name for outputs."
        )
    if flat and len(values) == outputs:
        values = values.T
    if not all(have in (1, want) for have, want in zip(values.shape, (rows, outputs), strict=True)):
        raise ValueError(
            f"The {what} has {_size(values)}, the outputs {_size(seen.values)} "
            f"({listed(seen.names)}). Accepted is one number, one per output (a list, or a dict by "
            "name), one per row, or one per row and output."
        )
    if values.shape[1] == outputs:
        _check_same_names(other, seen, what)
    return np.broadcast_to(values, seen.values.shape)


def _check_known(limit: Mapping[str, Any], seen: _Seen, what: str) -> None:
    unknown = [name for name in limit if name not in seen.names]
    if unknown:
        raise ValueError(
            f"The {what} names {listed(map(str, unknown))}, which is not an output. The "
            f"outputs are {listed(seen.names)}."
        )


def _check_same_names(other: _Seen, seen: _Seen, what: str) -> None:
    # One column cannot be mistaken for another, and is usually called something else.
    several = len(seen.names) > 1 and len(other.names) > 1
    if several and other.named and seen.named and other.names != seen.names:
        raise ValueError(
            f"The {what} have the columns {listed(other.names)}, the outputs {listed(seen.names)}. "
            "Accepted are the same names in the same order: rename or reorder the columns."
        )


def _check_whole(seen: _Seen, flags: Cells) -> None:
    counted = np.isnan(seen.values) | (seen.values == np.round(seen.values)) | (flags == 0)
    _refuse_where(
        ~counted,
        seen.names,
        seen.values,
        "Accepted with strict=True are counts (whole numbers). Use strict=False for other values.",
    )


def _with_missing(values: Cells, lower: Cells, upper: Cells) -> tuple[Cells, Cells]:
    """The bounds, open on both sides where the value is missing."""
    missing = np.isnan(values)
    return np.where(missing, -np.inf, lower), np.where(missing, np.inf, upper)


def _refuse_where(
    bad: Bool[np.ndarray, "N D"],
    names: Sequence[str],
    found: Cells,
    accepted: str,
    noun: str = "Output",
) -> None:
    problem = first_problem(bad, names, noun)
    if problem:
        row, column, place = problem
        raise ValueError(f"{place}: found {found[row, column]:g}. {accepted}")


def _as_cells(bound: Any) -> Cells:
    cells = np.array(bound, dtype=np.float64)
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or cells.shape[1] == 0:
        raise ValueError(
            f"Bounds: found an array of shape {cells.shape}. Accepted are rows by outputs, with at "
            "least one output."
        )
    return cells


def _default_names(number: int) -> tuple[str, ...]:
    return ("y",) if number == 1 else tuple(f"y{d}" for d in range(number))


def _check_shapes(lower: Cells, upper: Cells, names: tuple[str, ...]) -> None:
    if lower.shape != upper.shape:
        raise ValueError(
            f"The lower bounds have {_size(lower)}, the upper bounds {_size(upper)}. Accepted is "
            "one of each for every row and output."
        )
    if len(names) != lower.shape[1] or len(set(names)) != len(names):
        raise ValueError(
            f"Outputs: found the names {listed(names)} for {lower.shape[1]} output(s). Accepted is "
            "one name per output, all different."
        )


def _check_bounds(lower: Cells, upper: Cells, names: tuple[str, ...]) -> None:
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


def _size(cells: Cells) -> str:
    return f"{cells.shape[0]} row(s) and {cells.shape[1]} column(s)"
