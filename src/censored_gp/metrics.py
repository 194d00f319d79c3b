"""How good is a prediction? The scores of the paper's appendix, and proper scores of distributions.

Every function takes the truth as an array, in which NaN means unknown and is left out, or as
`Observations`, of which a cell may be known only up to an interval `[lower, upper]`. What a score
means for such a cell is said in its docstring; for an exact cell it is the textbook score.
Missing cells never count, nor do those of which a random share was counted; other known ones always
do: a truth that the prediction holds impossible makes the NLPD infinite. Functions that end in
`_cells` give one figure per cell, NaN where nothing is known; the others give one figure, or one
per output with `per_output=True`.

>>> from censored_gp import Observations, metrics
>>> metrics.mae([2.0, 3.0], Observations.from_flags([1.0, 5.0], [0, 1]))
1.5
"""

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from censored_gp.crps import PANEL_PROBABILITIES, crps_integral
from censored_gp.observations import Observations

Cells: TypeAlias = Float[np.ndarray, "N D"]
PerOutput: TypeAlias = Any  # a float, or a Float[np.ndarray, " D"] with per_output=True
Truth: TypeAlias = Any  # Observations, or anything numpy reads as an (N,) or (N, D) array
Limits: TypeAlias = tuple[Float[ArrayLike, "*#N"], Float[ArrayLike, "*#N"]]


class Distribution(Protocol):
    """What a score asks of a predictive distribution over N rows and D outputs."""

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs' names."""
        ...

    @property
    def discrete(self) -> Bool[np.ndarray, " D"]:
        """Which outputs take whole numbers only."""
        ...

    @property
    def mean(self) -> Float[np.ndarray, "N D"]:
        """The predictive mean."""
        ...

    def quantile(self, p: Any, /) -> Float[np.ndarray, "P N D"]:
        """The quantiles at a list of P probabilities."""
        ...

    def cdf(self, y: Float[np.ndarray, "N D"], /) -> Float[np.ndarray, "N D"]:
        """P(Y <= y)."""
        ...

    def log_probability(
        self, lower: Float[np.ndarray, "N D"], upper: Float[np.ndarray, "N D"], /
    ) -> Float[np.ndarray, "N D"]:
        """log P(lower <= Y <= upper); the log density where the two are equal."""
        ...


class Coverage(NamedTuple):
    """Share of cells inside an interval of prediction: bounds on it, and its expectation."""

    lower: PerOutput
    upper: PerOutput
    expected: PerOutput


class PIT(NamedTuple):
    """Probability integral transform of every cell, an interval `[lower, upper]` of [0, 1]."""

    lower: Cells
    upper: Cells

    def mid(self) -> Float[np.ndarray, "N D"]:
        """Return the middle of each interval: the mid-PIT of discrete outputs."""
        return (self.lower + self.upper) / 2

    def randomised(self, seed: int) -> Float[np.ndarray, "N D"]:
        """Draw uniformly from each interval: uniform on [0, 1] where the prediction is right."""
        u = np.random.default_rng(seed).uniform(size=self.lower.shape)
        return self.lower + u * (self.upper - self.lower)

    def cdf(self, u: Float[ArrayLike, " P"]) -> Float[np.ndarray, " P"]:
        """Mean over cells of `P(U <= u | U in the cell's interval)`; u itself if calibrated.

        This is the non-randomised PIT of Czado, Gneiting and Held (2009), which serves censored
        cells as it serves discrete ones.
        """
        known = ~np.isnan(self.lower)
        lower, upper = self.lower[known], self.upper[known]
        u = np.asarray(u, float)[:, None]
        width = np.where(upper > lower, upper - lower, 1.0)
        inside = np.clip((u - lower) / width, 0.0, 1.0)
        return np.where(upper > lower, inside, u >= upper).mean(axis=1)

    def deviation(self) -> float:
        """Greatest distance between `cdf(u)` and u on a grid of hundredths: 0 if calibrated."""
        if np.isnan(self.lower).all():
            return float("nan")
        u = np.linspace(0.01, 0.99, 99)
        return float(np.abs(self.cdf(u) - u).max())


def nlpd(
    prediction: Distribution, truth: Truth, *, per_point: bool = False, per_output: bool = False
) -> PerOutput:
    """Negative log predictive density, the paper's sum `-Σ log p(y)`.

    A censored cell contributes `-log P(lower <= Y <= upper)`. A cell that the prediction holds
    impossible (a negative count, say) makes the sum infinite. With `per_point` the sum is
    divided by the number of known cells.
    """
    cells, known = nlpd_cells(prediction, truth), _known(prediction, truth)
    return (_mean if per_point else _sum)(cells, known, per_output)


def nlpd_cells(prediction: Distribution, truth: Truth) -> Float[np.ndarray, "N D"]:
    """Return the terms of `nlpd`, one per cell."""
    lower, upper, known = _read(truth, prediction.mean)
    return np.where(known, -prediction.log_probability(lower, upper), np.nan)


def mae(prediction: Any, truth: Truth, *, per_output: bool = False) -> PerOutput:
    """Mean absolute error of the predictive mean, or of an array: `mean |ŷ - y|`.

    For a censored cell the error is the distance to its interval, the least it can have been:
    the figure is then a lower bound of the error against the truth.
    """
    errors = np.abs(_errors(prediction, truth))
    return _mean(errors, _known(prediction, truth), per_output)


def rmse(prediction: Any, truth: Truth, *, per_output: bool = False) -> PerOutput:
    """Root mean squared error `sqrt(mean (ŷ - y)²)`, with the errors that `mae` has."""
    squared = _mean(_errors(prediction, truth) ** 2, _known(prediction, truth), per_output)
    return np.sqrt(squared) if per_output else float(np.sqrt(squared))


def r2(prediction: Any, truth: Truth, *, per_output: bool = False) -> PerOutput:
    """Coefficient of determination `1 - Σ (y - ŷ)² / Σ (y - ȳ)²` per output, or their mean.

    Only exact cells count, because a variance needs values. It is NaN for an output whose
    exact cells are fewer than two or all equal.
    """
    point = _point(prediction)
    y, upper, known = _read(truth, point)
    exact = known & (y == upper)
    left = _sum((y - point) ** 2, exact, True)
    total = _sum((y - _mean(y, exact, True)) ** 2, exact, True)
    values = np.where(total > 0, 1 - left / np.where(total > 0, total, 1.0), np.nan)
    return values if per_output else _mean(values, total > 0, False)


def crps(
    prediction: Distribution,
    truth: Truth,
    *,
    within: Limits | None = None,
    per_output: bool = False,
) -> PerOutput:
    """Continuous ranked probability score, the mean of `∫ (F(x) - 1{y <= x})² dx`.

    For a censored cell the integral runs over the x where the indicator is known:
    `∫_{x < lower} F(x)² dx + ∫_{x >= upper} (1 - F(x))² dx`. That alone is not a proper score,
    because cells seen exactly are still scored beyond the limits that hid the others. Where the
    limits of all cells are known, pass them as `within = (low, high)`: every cell is then scored
    between them only (threshold-weighted CRPS), which is proper.
    """
    cells = crps_cells(prediction, truth, within=within)
    return _mean(cells, _known(prediction, truth), per_output)


def crps_cells(
    prediction: Distribution, truth: Truth, *, within: Limits | None = None
) -> Float[np.ndarray, "N D"]:
    """Return the terms of `crps`, one per cell."""
    lower, upper, known = _read(truth, prediction.mean)
    low, high = (-np.inf, np.inf) if within is None else within
    quantiles = prediction.quantile(list(PANEL_PROBABILITIES))
    total = crps_integral(
        prediction.cdf, quantiles, prediction.discrete, (lower, upper), (low, high)
    )
    return np.where(known, total, np.nan)


def coverage(
    prediction: Distribution, truth: Truth, level: float = 0.9, *, per_output: bool = False
) -> Coverage:
    """Share of the truth inside the central prediction interval `[a, b]` of the given level.

    An exact cell is inside or not. A censored one is surely inside if all of its interval is,
    surely outside if none is, and else open. `lower` counts the sure ones, `upper` the open ones
    too, and `expected` counts an open one as `P(a <= Y <= b | lower <= Y <= upper)` under the
    prediction, which comes out near the level if the prediction is calibrated.
    """
    cells, known = _coverage_cells(prediction, truth, level), _known(prediction, truth)
    return Coverage(*(_mean(share, known, per_output) for share in cells))


def pit(prediction: Distribution, truth: Truth) -> PIT:
    """Probability integral transform: the interval `[P(Y < lower), P(Y <= upper)]` per cell.

    It is a point for an exact cell of a continuous output, `[F(y - 1), F(y)]` for a count and
    `[P(Y < y), 1]` for a right-censored cell; NaN where nothing is known.
    """
    lower, upper, known = _read(truth, prediction.mean)
    ends = (lower - np.asarray(prediction.discrete, float), upper)
    return PIT(*(np.where(known, _cdf(prediction, end), np.nan) for end in ends))


def scores(
    prediction: Distribution, truth: Truth, level: float = 0.9
) -> dict[str, dict[str, float]]:
    """All scores at once: `{output name: {score: value}}`, with a last row named "all".

    `coverage` is the expected one and `pit_deviation` is `PIT.deviation`. In the last row `nlpd`
    is the sum over outputs, `r2` the mean of theirs, and the rest pool all cells.
    `pandas.DataFrame(scores(...)).T` makes a data frame of it.
    """
    log_scores, ranked = nlpd_cells(prediction, truth), crps_cells(prediction, truth)
    known = _known(prediction, truth)
    inside, uniform = _coverage_cells(prediction, truth, level)[2], pit(prediction, truth)

    def summary(per_output: bool) -> dict[str, Any]:
        return {
            "cells": known.sum(axis=0 if per_output else None),
            "nlpd": _sum(log_scores, known, per_output),
            "nlpd_per_point": _mean(log_scores, known, per_output),
            "mae": mae(prediction, truth, per_output=per_output),
            "rmse": rmse(prediction, truth, per_output=per_output),
            "r2": r2(prediction, truth, per_output=per_output),
            "crps": _mean(ranked, known, per_output),
            "coverage": _mean(inside, known, per_output),
        }

    each, table = summary(True), {}
    for d, name in enumerate(prediction.names):
        own = PIT(uniform.lower[:, d : d + 1], uniform.upper[:, d : d + 1])
        table[name] = {k: float(v[d]) for k, v in each.items()} | {"pit_deviation": own.deviation()}
    overall = {k: float(v) for k, v in summary(False).items()}
    table["all"] = overall | {"pit_deviation": uniform.deviation()}
    return table


def _read(truth: Truth, like: Cells) -> tuple[Cells, Cells, Bool[np.ndarray, "N D"]]:
    """Return the bounds of the truth, infinite where it is unknown, and where it is known."""
    if isinstance(truth, Observations):
        # P(Y >= v) is not the probability that v was counted.
        lower, upper = np.where(truth.is_share, -np.inf, truth.lower), truth.upper
    else:
        values = _columns(truth)
        lower = np.where(np.isnan(values), -np.inf, values)
        upper = np.where(np.isnan(values), np.inf, values)
    if lower.shape != like.shape:
        raise ValueError(
            f"The truth has shape {lower.shape} but the prediction has shape {like.shape}: "
            "give one row per predicted row and one column per output."
        )
    return lower, upper, np.isfinite(lower) | np.isfinite(upper)


def _known(prediction: Any, truth: Truth) -> Bool[np.ndarray, "N D"]:
    """Return where something is known of the truth."""
    return _read(truth, _point(prediction))[2]


def _columns(values: Any) -> Cells:
    """Return an array of numbers with one column per output."""
    array = np.asarray(values, float)
    return array[:, None] if array.ndim == 1 else array


def _point(prediction: Any) -> Cells:
    """Return the predictive mean, or the array itself where the prediction is an array."""
    mean = getattr(prediction, "mean", None)
    # Arrays and data frames have a mean too, but theirs is a method.
    return _columns(prediction if mean is None or callable(mean) else mean)


def _errors(prediction: Any, truth: Truth) -> Cells:
    """Return the signed distance of the point prediction from the interval of each known cell."""
    point = _point(prediction)
    lower, upper, known = _read(truth, point)
    return np.where(known, point - np.clip(point, lower, upper), np.nan)


def _sum(cells: Cells, known: Bool[np.ndarray, "N D"], per_output: bool) -> PerOutput:
    """Return the sum over what is known, where it may be infinite or NaN and then shows."""
    total = np.where(known, cells, 0.0).sum(axis=0 if per_output else None)
    return total if per_output else float(total)


def _mean(cells: Cells, known: Bool[np.ndarray, "N D"], per_output: bool) -> PerOutput:
    """Return the mean of the known cells; NaN, without a warning, where there is none."""
    count = known.sum(axis=0 if per_output else None)
    total = _sum(cells, known, per_output)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean if per_output else float(mean)


def _cdf(prediction: Distribution, y: Cells) -> Cells:
    """Return P(Y <= y) for finite and infinite y."""
    finite = np.isfinite(y)
    below = prediction.cdf(np.where(finite, y, prediction.mean))
    return np.where(finite, below, y > 0)


def _coverage_cells(prediction: Distribution, truth: Truth, level: float) -> tuple[Cells, ...]:
    """Return per cell whether it is surely, possibly and how probably inside the interval."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; give the share to be covered, between 0 and 1.")
    lower, upper, known = _read(truth, prediction.mean)
    a, b = prediction.quantile([(1 - level) / 2, (1 + level) / 2])
    sure = (lower >= a) & (upper <= b)
    possible = sure | ((upper >= a) & (lower <= b))
    # One shared point has no probability for a continuous output, though it has a density.
    start, stop = np.maximum(lower, a), np.minimum(upper, b)
    open_ = possible & ~sure & ((stop > start) | prediction.discrete)
    inner = prediction.log_probability(
        *(np.where(open_, e, w) for e, w in ((start, lower), (stop, upper)))
    )
    whole = prediction.log_probability(lower, upper)
    # A cell that cannot be has no share in anything: it is outside.
    share = np.exp(np.minimum(inner - np.where(whole == -np.inf, np.inf, whole), 0.0))
    expected = np.where(open_, share, sure)
    return tuple(np.where(known, x, np.nan) for x in (sure, possible, expected))
