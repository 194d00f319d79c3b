"""What is known of the outputs: a closed interval `[lower, upper]` per row and output, Eq. (1).

`lower == upper` is exact, `upper = inf` right-censored, `lower = -inf` left-censored, both finite
and different interval-censored, both infinite missing. There is no NaN inside: flags, NaN,
capacities and detection limits become bounds at the edge, for arrays and tables alike (`bounds`).

Values and bounds may have been recorded in steps. A reading v in steps of h is a value between
v - h/2 and v + h/2; "at most v" is a value below v + h/2, "at least v" one above v - h/2. `step`
says so, and `within_steps` does it.

An output that is a sum over its period (a count, an amount) may be seen for a part of it: its
`exposure` is that share, from 0 (missing) to 1 (the whole period), NaN if it is not known. The
bounds are then of V, what came while it was seen, not of Y, what came in the whole period.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from censored_gp.data.bounds import (
    Cells,
    check_flags,
    open_ends,
    read_bounds,
    read_only,
    read_values,
    size,
    spread,
    with_missing,
)
from censored_gp.data.errors import DataError, listed, refuse

if TYPE_CHECKING:
    from censored_gp.likelihoods.support import Support

# What may be known of a cell, in words and in the order in which it is told.
KINDS = {
    "exact": "exact",
    "right": "at least a bound (right-censored)",
    "left": "at most a bound (left-censored)",
    "interval": "between two bounds",
    "partial": "seen for a part of the period",
    "missing": "missing",
}

# The mean of all periods counts for this share of one, beside what was seen of a period.
PRIOR_SHARE = 0.2

# How far from a whole number of steps a value may be.
WHOLE = 1e-6

# Fewer values do not show in which steps they were recorded: by chance all of them are even.
FEWEST = 10

# Steps below this part of the interquartile range make no difference and are not looked for.
FINEST = 0.01

# Steps above this part of the interquartile range matter to exact values.
COARSE = 0.125

# So do steps where more than this share of the values is one and the same.
ATOM = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """Closed intervals `[lower, upper]`, N rows by D outputs, with the names of the outputs.

    Use a builder (`exact`, `from_flags`, `from_bounds`, `from_capacity`, `from_detection_limit`,
    `from_rounding`) unless you have both bounds, without NaN, already. The arrays are read-only.

    Attributes
    ----------
    lower, upper : array (N, D)
        The bounds; -inf and inf where there is none. A flat array is one output.
    names : tuple of str
        The outputs; by default y, or y0, y1, ...
    flat : bool
        Whether they came as a flat array: results for them are then flat, too.
    exposure : array (N, D)
        The share of its period in which an output could be seen, from 0 (missing) to 1, NaN where
        it is not known (of counts, which average over it); one number stands for all. Below 1 the
        bounds are of what was seen in that share.
    step : array (D,)
        In which steps the values of each output were recorded, 0 if not in steps, NaN if that is to
        be found from the values; one number stands for all. See `rounded`.

    Examples
    --------

    >>> from censored_gp import Observations
    >>> Observations([1.0, 4.0], [1.0, float("inf")])
    Observations: 2 rows of 1 output
      y: 1 exact, 1 at least a bound (right-censored)
    >>> Observations([1.0, 4.0], [1.0, 4.0], exposure=[1.0, 0.5])
    Observations: 2 rows of 1 output
      y: 1 exact, 1 seen for a part of the period
    """

    lower: Cells
    upper: Cells
    names: tuple[str, ...] = ()
    flat: bool | None = None
    exposure: Cells = field(default_factory=lambda: np.ones((1, 1)))
    step: Float[np.ndarray, " D"] = field(default_factory=lambda: np.full(1, np.nan))

    def __post_init__(self) -> None:
        flat = np.ndim(self.lower) == 1 if self.flat is None else self.flat
        lower, upper = _as_cells(self.lower), _as_cells(self.upper)
        number = lower.shape[1]
        default = ("y",) if number == 1 else tuple(f"y{d}" for d in range(number))
        names = tuple(map(str, self.names)) or default
        if lower.shape != upper.shape:
            said = f"the lower bounds have {size(lower)}, the upper bounds {size(upper)}."
            raise DataError(said, "Outputs")
        if len(names) != number or len(set(names)) != len(names):
            said = f"got the names {listed(names)} for {number} output(s)."
            raise DataError(said + " There must be one per output, all different.", "Outputs")
        hint = "There must be lower <= upper, -inf for no lower and inf for no upper bound."
        if np.isnan(lower).any() or np.isnan(upper).any():
            hint += " Use Observations.from_bounds, which reads NaN as not known."
        bad = ~(lower <= upper) | np.isposinf(lower) | np.isneginf(upper)
        refuse(bad, names, "Output", "got lower {:g} and upper {:g}.", lower, upper, hint=hint)
        exposure = np.array(self.exposure, dtype=float)
        exposure = exposure.reshape(-1, 1) if exposure.ndim < 2 else exposure
        if np.all(exposure == 1.0):
            # As nearly always: one number stands for all.
            exposure = np.ones((1, 1))
        else:
            exposure = np.broadcast_to(exposure, lower.shape)
            said = "got {:g}. There must be shares of the period, from 0 to 1, NaN if unknown."
            refuse((exposure < 0) | (exposure > 1), names, "Exposure of output", said, exposure)
            lower, upper = open_ends(exposure == 0, lower, upper)
            missing = np.isneginf(lower) & np.isposinf(upper)
            exposure = np.where(missing & (exposure != 0), 1.0, exposure)
            bad, said = np.isnan(exposure) & (lower < upper), "got lower {:g} and upper {:g}."
            hint = "A count whose exposure is unknown must be exact, or have an exposure."
            refuse(bad, names, "Output", said, lower, upper, hint=hint)
        exposure = np.broadcast_to(exposure, lower.shape)
        step = np.broadcast_to(np.asarray(self.step, dtype=np.float64), number)
        bad = (step < 0) | np.isinf(step)
        refuse(bad[None], names, "Step of output", "got {:g}. It must be 0 or more.", step)
        # Of a frozen class fields are set so.
        vars(self).update(lower=read_only(lower), upper=read_only(upper), names=names, flat=flat)
        vars(self).update(exposure=exposure, step=step)

    @classmethod
    def exact(cls, y: Any, *, exposure: Any = None) -> Observations:
        """Values seen as they are; NaN is missing, and text such as "<0.5" a bound.

        An exposure, the share of the period in which each could be seen, has the shapes of a
        capacity (see `from_capacity`).

        >>> Observations.exact([1.5, float("nan")]).is_missing[:, 0]
        array([False,  True])
        >>> Observations.exact(["<0.5", 1.2]).upper[:, 0]
        array([0.5, 1.2])
        >>> Observations.exact([3, 5], exposure=[1, 0.5]).is_exact[:, 0]
        array([ True, False])
        """
        return cls(*read_bounds(read_values(y, bounds=True), exposure=exposure))

    @classmethod
    def from_flags(
        cls,
        y: Any,
        censored: Any,
        *,
        side: str = "right",
        strict: bool = False,
        exposure: Any = None,
    ) -> Observations:
        """Values with a flag each: 0 or False exact, 1 or True "at least y", -1 "at most y".

        With `side="left"`, 1 or True is "at most y" (and -1 nothing). NaN in y is missing; a value
        whose flag is missing is left out. With `strict`, of whole numbers, it is "more than y" and
        "less than y": less than 7 is at most 6.

        >>> Observations.from_flags([3, 5], [0, 1]).upper[:, 0]
        array([ 3., inf])

        An exposure says more than a flag: y is then what was seen in that share of the period, and
        no bound. It may be unknown (NaN or "unknown") where a count is flagged: counting stopped at
        some moment, and every share was equally likely. Without a flag NaN is 1.

        >>> Observations.from_flags([3, 1, 5], [0, 1, 1], exposure=[1, 0.25, 1])
        Observations: 3 rows of 1 output
          y: 1 exact, 1 at least a bound (right-censored), 1 seen for a part of the period
        """
        given = {"censored": censored, "side": side, "exposure": exposure}
        seen = cls(*read_bounds(read_values(y, bounds=True), **given))
        if not strict:
            return seen
        values = seen.values()
        bad = (seen.is_left | seen.is_right) & (values != np.round(values))
        said = "got {:g}. With strict=True, values must be whole; use strict=False for others."
        refuse(bad, seen.names, "Output", said, values)
        lower, upper = seen.lower + seen.is_right, seen.upper - seen.is_left
        return dataclasses.replace(seen, lower=lower, upper=upper)

    @classmethod
    def from_bounds(cls, lower: Any, upper: Any, *, exposure: Any = None) -> Observations:
        """Both ends of every interval; NaN is an end that is not known.

        With an exposure they are of what was seen in that share of the period.

        >>> Observations.from_bounds([1, float("nan")], [2, 4]).lower[:, 0]
        array([  1., -inf])
        """
        seen = read_values(lower, "Lower bound").unknown
        return cls(*read_bounds(seen, lower=lower, upper=upper, exposure=exposure))

    @classmethod
    def from_capacity(cls, y: Any, capacity: Any) -> Observations:
        """Values that could not pass a capacity, Eq. (1): "at least y" where y >= capacity.

        The capacity (or threshold) is one number, one per output (a list or a dict by name), one
        per row, or one per row and output; NaN is no limit. NaN in y is missing.

        >>> Observations.from_capacity([3, 8], 8).is_right[:, 0]
        array([False,  True])
        """
        return cls(*read_bounds(read_values(y, bounds=True), capacity=capacity))

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
            raise DataError("Give limit=..., nondetect=... or both: got neither a limit nor flags.")
        seen = read_values(y)
        limits = seen.values if limit is None else spread(limit, seen, "Limit").values
        below = seen.values <= limits
        if nondetect is not None:
            flags = spread(nondetect, seen, "Flag")
            below = check_flags(flags, np.zeros(seen.values.shape), "left") == 1
        lowest = np.nan_to_num(spread(floor, seen, "Floor").values, nan=-np.inf, neginf=-np.inf)
        upper = np.where(below, limits, seen.values)
        return cls(
            *with_missing(seen._replace(values=upper), np.where(below, lowest, upper), upper)
        )

    @classmethod
    def from_rounding(cls, y: Any, unit: Any) -> Observations:
        """Values rounded to a multiple of `unit`: between y - unit/2 and y + unit/2.

        The unit has the shapes of a capacity (see `from_capacity`); NaN or 0 is not rounded. This
        makes intervals of them; a unit that all rows share is better said by `rounded`.

        >>> found = Observations.from_rounding([20, 30], 10)
        >>> found.lower[:, 0], found.upper[:, 0]
        (array([15., 25.]), array([25., 35.]))
        """
        seen = read_values(y)
        units = np.nan_to_num(spread(unit, seen, "Unit").values, nan=0.0, posinf=np.inf)
        bad = ~(np.isfinite(units) & (units >= 0))
        refuse(bad, seen.names, "Unit of output", "got {:g}. There must be units >= 0.", units)
        ends = with_missing(seen, seen.values - units / 2, seen.values + units / 2)
        return cls(*ends, step=np.zeros(1))

    def rounded(self, step: Any = None) -> Observations:
        """Return the same cells, recorded in steps: to the nearest multiple of `step`.

        A reading of 6 in steps of 1 is a value between 5.5 and 6.5, "at most 6" one below 6.5 and
        "at least 6" one above 5.5. A bound that is no multiple of the step is one of its own and
        taken at its word. Counts are what they are: a step does not concern them.

        Parameters
        ----------
        step : number, list with one for each output, dict by output, or None
            0 or False: not in steps. None, True or "auto": found from the values, where a model is
            fitted. Outputs that a dict leaves out are as they were.

        Examples
        --------
        >>> Observations.from_flags([8, 6], [0, 1], side="left").rounded(1)
        Observations: 2 rows of 1 output
          y: 1 exact, 1 at most a bound (left-censored); in steps of 1
        """
        steps: dict[Any, Any] = dict(zip(self.names, self.step, strict=True))
        if isinstance(step, Mapping):
            steps |= {str(name): each for name, each in step.items()}
        elif isinstance(step, Sequence | np.ndarray) and not isinstance(step, str):
            steps = dict(enumerate(step))
        else:
            steps = dict.fromkeys(self.names, step)
        if len(steps) != len(self.names):
            said = f"must be one number, or one for each of {listed(self.names)}, got {step!r}."
            raise DataError(said, argument="rounded")
        for name, each in steps.items():
            if each is None or each is True or each == "auto":
                steps[name] = np.nan
            elif not isinstance(each, int | float | np.number | np.bool_) or each < 0:
                said = f'must be a number, 0 (not rounded) or more, or "auto", got {each!r}.'
                raise DataError(said, argument="rounded")
        return dataclasses.replace(self, step=np.array([*steps.values()], dtype=float))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, D).

        >>> Observations.exact([[1, 2], [3, 4], [5, 6]]).shape
        (3, 2)
        """
        return self.lower.shape[0], self.lower.shape[1]

    @property
    def is_exact(self) -> Bool[np.ndarray, "N D"]:
        """Where the value itself is known, that of the whole period.

        >>> Observations.from_flags([3, 5], [0, 1]).is_exact[:, 0]
        array([ True, False])
        """
        return (self.lower == self.upper) & (self.exposure == 1)

    @property
    def is_right(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is at least a bound.

        >>> Observations.from_flags([3, 5], [0, 1]).is_right[:, 0]
        array([False,  True])
        """
        return np.isfinite(self.lower) & np.isposinf(self.upper) & (self.exposure == 1)

    @property
    def is_left(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is at most a bound.

        >>> Observations.from_flags([3, 5], [0, -1]).is_left[:, 0]
        array([False,  True])
        """
        return np.isneginf(self.lower) & np.isfinite(self.upper) & (self.exposure == 1)

    @property
    def is_interval(self) -> Bool[np.ndarray, "N D"]:
        """Where the value is between two different bounds.

        >>> Observations.from_bounds([3, 5], [3, 6]).is_interval[:, 0]
        array([False,  True])
        """
        between = np.isfinite(self.lower) & np.isfinite(self.upper) & (self.lower < self.upper)
        return between & (self.exposure == 1)

    @property
    def is_partial(self) -> Bool[np.ndarray, "N D"]:
        """Where the output was seen for a part of its period, known or not.

        >>> Observations.exact([3, 5, 0], exposure=[1, 0.5, 0]).is_partial[:, 0]
        array([False,  True, False])
        """
        return (self.exposure != 1) & (self.exposure != 0)

    @property
    def falls_short(self) -> Bool[np.ndarray, "N D"]:
        """Where the truth may exceed the record: right-censored, or seen in part or not at all.

        >>> Observations.from_flags([3, 5, 2], [0, 1, 0], exposure=[1, 1, 0.5]).falls_short[:, 0]
        array([False,  True,  True])
        """
        recorded = (self.lower == self.upper) | np.isposinf(self.upper)
        return np.isfinite(self.lower) & recorded & ~self.is_exact | (self.exposure == 0)

    @property
    def recorded(self) -> Cells:
        """The lower bound; 0 where the exposure is 0.

        >>> Observations.exact([3, 5, 0], exposure=[1, 0.5, 0]).recorded[:, 0]
        array([3., 5., 0.])
        """
        return np.where(self.exposure == 0, 0.0, self.lower)

    @property
    def is_missing(self) -> Bool[np.ndarray, "N D"]:
        """Where nothing is known.

        >>> Observations.exact([3, None]).is_missing[:, 0]
        array([False,  True])
        """
        return np.isneginf(self.lower) & np.isposinf(self.upper)

    def values(self) -> Cells:
        """One number per cell: what was recorded, the finite bound or the middle; NaN if missing.

        >>> Observations.from_bounds([3, 5, 7], [3, 6, None]).values()[:, 0]
        array([3. , 5.5, 7. ])
        """
        low = np.where(np.isfinite(self.lower), self.lower, self.upper)
        high = np.where(np.isfinite(self.upper), self.upper, low)
        # The middle is formed so that two huge bounds do not overflow.
        return np.where(self.is_missing, np.nan, np.where(low == high, low, low / 2 + high / 2))

    def full_values(self) -> Cells:
        """One number per cell, as `values`, those of a part of a period scaled up to the whole.

        With m the mean of all periods (the sum of records over the sum of exposures) and k(e) =
        0.2 (1 - e) it is (V + k m) / (e + k): V / e unless e is small. An unknown e is one half.

        >>> Observations.exact([4, 4], exposure=[1, 0.5]).full_values()[:, 0].round(1)
        array([4. , 7.6])
        """
        values = self.values()
        if not self.is_partial.any():
            return values
        share = np.where(np.isnan(self.exposure), 0.5, self.exposure)
        known = np.isfinite(values)
        total = np.where(known, values, 0.0).sum(axis=0)
        mean = total / np.maximum(np.where(known, share, 0.0).sum(axis=0), 1e-300)
        prior = PRIOR_SHARE * (1.0 - share)
        return np.where(share == 1, values, (values + prior * mean) / (share + prior))

    def counts(self) -> dict[str, Int[np.ndarray, " D"]]:
        """How many rows of each output are exact, right, left, interval, partial and missing.

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
        cells = self.lower[index], self.upper[index]
        return Observations(*cells, self.names, self.flat, self.exposure[index], self.step)

    def outputs(self, places: Sequence[int]) -> Observations:
        """Some of the outputs, by their positions.

        >>> Observations([[1.0, 2.0]], [[1.0, 2.0]], ("a", "b")).outputs([1]).names
        ('b',)
        """
        names, some = tuple(self.names[d] for d in places), list(places)
        lower, upper, exposure = (c[:, some] for c in (self.lower, self.upper, self.exposure))
        return Observations(lower, upper, names, exposure=exposure, step=self.step[some])

    def summary(self) -> str:
        """What is known, in words, output by output.

        >>> print(Observations.from_flags([3, 5, 5], [0, 1, 1]).summary())
        3 rows of 1 output
          y: 1 exact, 2 at least a bound (right-censored)
        """
        (number, outputs), counts = self.shape, self.counts()
        lines = [f"{number} rows of {outputs} output{'s' if outputs > 1 else ''}"]
        for d, name in enumerate(self.names):
            known = [f"{counts[k][d]} {words}" for k, words in KINDS.items() if counts[k][d]]
            told = f"; in steps of {self.step[d]:g}" if self.step[d] > 0 else ""
            lines.append(f"  {name}: {', '.join(known) or 'no rows'}{told}")
        return "\n".join(lines)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Observations:
        """Some of the rows, as `rows`; this is how scikit-learn makes folds."""
        return self.rows(index[0] if isinstance(index, tuple) else index)

    def __repr__(self) -> str:
        return f"Observations: {self.summary()}"


def _as_cells(bound: Any) -> Cells:
    """Return bounds as rows by outputs, a copy if they could be changed; a flat array is one."""
    fixed = isinstance(bound, np.ndarray) and not bound.flags.writeable
    cells = np.array(bound, dtype=np.float64, copy=None if fixed else True)
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or cells.shape[1] == 0:
        said = f"got bounds of shape {cells.shape}. There must be rows and one output or more."
        raise DataError(said, "Outputs")
    return cells


def step_of(values: Float[np.ndarray, " K"]) -> float:
    """Return the largest step of which all values are multiples, 0 if there is none that matters.

    >>> whole = np.array([3.0, 9, 4, 12, 7, 7, 5, 10, 6, 8])
    >>> step_of(whole), step_of(whole / 10), step_of(np.sqrt(whole)), step_of(whole[:5])
    (1.0, 0.1, 0.0, 0.0)
    """
    # Zeros are multiples of anything.
    seen = np.abs(values[values != 0.0])
    if len(seen) < FEWEST or len(np.unique(values)) < 3:
        return 0.0
    spread = np.ptp(np.quantile(values, [0.25, 0.75]))
    finest = max(FINEST * spread, WHOLE * seen.max())
    for power in range(math.floor(math.log10(seen.min())), math.ceil(math.log10(finest)) - 3, -1):
        unit = 10.0**power if power >= 0 else 1 / 10.0**-power
        if np.all(_on_grid(seen, unit)):
            factor = int(np.gcd.reduce(np.round(seen / unit).astype(np.int64)))
            step = factor * unit if power >= 0 else factor / 10.0**-power
            # Next to a large level, steps wider than all differences are seen in any values.
            return step if finest <= step <= np.ptp(values) else 0.0
    return 0.0


def find_steps(observations: Observations, supports: Sequence[Support]) -> Observations:
    """Return the observations with the steps that were to be found; counts have none.

    An output with bounds between steps, as `from_rounding` makes them, or with values that its
    family cannot produce has none either, unless it is stated. Nor have amounts with exact zeros:
    sums of packs that were sold are multiples of a pack without having been rounded.
    """
    steps = np.where([support.discrete for support in supports], 0.0, observations.step)
    steps[np.isnan(steps) & [support.atom for support in supports]] = 0.0
    for d in np.flatnonzero(np.isnan(steps)).tolist():
        exact, both = observations.is_exact[:, d], observations.is_interval[:, d]
        values, step = observations.lower[exact, d], step_of(observations.lower[exact, d])
        ends = np.append(observations.lower[both, d], observations.upper[both, d])
        sound = step and np.all(_on_grid(ends, step)) and np.all(supports[d].contains(values))
        steps[d] = step if sound else 0.0
    return dataclasses.replace(observations, step=steps)


def within_steps(observations: Observations, supports: Sequence[Support]) -> Observations:
    """Return bounds half a step further out, where they are multiples of their output's step.

    "At most 6" is below 6.5 in steps of 1. Where 6 itself is the lowest of the exact values, what
    is flagged was lower than that: below 5.5. An exact value that the family cannot produce, such
    as a concentration of 0, is within half a step, too.

    >>> from censored_gp.likelihoods.support import REAL
    >>> seen = Observations.from_flags([6, 20, 9], [-1, 1, 0]).rounded(1)
    >>> found = within_steps(seen, [REAL])
    >>> found.lower[:, 0].tolist(), found.upper[:, 0].tolist()
    ([-inf, 19.5, 9.0], [6.5, inf, 9.0])
    """
    if not observations.step.any():
        return observations
    lower, upper, step = observations.lower, observations.upper, observations.step
    possible = [s.contains(values) for s, values in zip(supports, lower.T, strict=True)]
    kept = (lower == upper) & np.stack(possible, axis=1)
    lowest = np.min(np.where(observations.is_exact, lower, np.inf), axis=0)
    below, above = (np.where(_on_grid(end, step) & ~kept, step / 2, 0) for end in (lower, upper))
    above = np.where((lower < upper) & (np.isclose(upper, lowest, 1e-12, 0)), -above, above)
    return dataclasses.replace(observations, lower=lower - below, upper=upper + above)


def widen_exact(observations: Observations) -> Observations:
    """Return exact values as intervals of a step, where steps are coarse against their spread.

    Elsewhere the density hardly changes within a step, and its integral is the density itself.

    >>> seen = Observations.exact([0.0, 0.0, 3.0, 1.0]).rounded(1)
    >>> widen_exact(seen).lower[:, 0].tolist()
    [-0.5, -0.5, 2.5, 0.5]
    """
    exact, step = observations.is_exact, observations.step.copy()
    for d in np.flatnonzero(step):
        if not len(values := observations.lower[exact[:, d], d]):
            continue
        spread, count = np.ptp(np.quantile(values, [0.25, 0.75])), np.unique_counts(values).counts
        if step[d] < COARSE * spread and count.max() <= ATOM * len(values):
            step[d] = 0.0
    if not step.any():
        return observations
    point = (observations.lower == observations.upper) & ~np.isnan(observations.exposure)
    wide = np.where(point, step / 2, 0.0)
    lower, upper = observations.lower - wide, observations.upper + wide
    return dataclasses.replace(observations, lower=lower, upper=upper)


def _on_grid(values: Any, step: Any) -> Bool[np.ndarray, "..."]:
    """Return which values are finite multiples of a step, as far as float32 can tell."""
    with np.errstate(invalid="ignore", divide="ignore"):
        steps = values / step
        return np.isfinite(steps) & (np.abs(steps - np.round(steps)) < WHOLE * (1 + abs(steps) / 8))
