"""How good is a prediction? The scores of the paper's appendix, and proper scores of distributions.

Every function takes the truth as an array, in which NaN means unknown and is left out, or as
`Observations`, of which a cell may be known only up to an interval `[lower, upper]`. What a score
means for such a cell is said in its docstring; for an exact cell it is the textbook score.
Missing cells never count, nor do those that were seen for a part of their period. Every other cell
counts: a truth of predictive probability zero makes the NLPD infinite.
Functions that end in `_cells` give one figure per cell, NaN where nothing is known; the others give
one figure, or one per output with `per_output=True`.

A predictive distribution is a `Prediction`, or any object with `names`, `discrete`, `mean`,
`quantile(p)`, `interval(probability)`, `cdf(y)` and `log_probability(lower, upper)` like its own.
For `mae`, `rmse` and `r2` an array of predicted values will do.

>>> from censored_gp import Observations, metrics
>>> metrics.mae([2.0, 3.0], Observations.from_flags([1.0, 5.0], [0, 1]))
1.5
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import ArrayLike, Bool, Float
from scipy.optimize import minimize
from scipy.special import log_ndtr

from censored_gp.data.observations import Observations
from censored_gp.likelihoods.special.interval import gauss_for_sums
from censored_gp.likelihoods.support import JUST

Cells: TypeAlias = Float[np.ndarray, "N D"]
Mask: TypeAlias = Bool[np.ndarray, "N D"]
Rule: TypeAlias = tuple[Float[np.ndarray, "S N D"], Float[np.ndarray, "S N D"]]
Limits: TypeAlias = tuple[Float[ArrayLike, "*#N"], Float[ArrayLike, "*#N"]]
PerOutput: TypeAlias = Any  # a float, or a Float[np.ndarray, " D"] with per_output=True
Truth: TypeAlias = Any  # Observations, or anything numpy reads as an (N,) or (N, D) array

# Each panel of the CRPS integral takes a quadrature rule of this many nodes.
PANEL_NODES = 7
# The CRPS integral is cut into panels at these quantiles. Beyond them it is below 1e-8.
PANEL_PROBABILITIES = (1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4)
# For counts it is also cut this far above the first quantile, where no polynomial follows F.
FIRST_COUNTS = (7, 40, 250)


def nlpd(
    prediction: Any, truth: Truth, *, per_point: bool = False, per_output: bool = False
) -> PerOutput:
    """Negative log predictive density, the paper's sum `-Σ log p(y)`.

    A censored cell contributes `-log P(lower <= Y <= upper)`. A cell that the prediction holds
    impossible (a negative count, say) makes the sum infinite. With `per_point` the sum is
    divided by the number of known cells.

    >>> found = model.predict_distribution([[2.5]])
    >>> from censored_gp import Observations
    >>> print(f"{nlpd(found, [[3.0]]):.1f}, {nlpd(found, Observations.from_flags([3.0], [1])):.2f}")
    1.5, 0.03
    """
    known = _bounds(truth, prediction)[2]
    return (mean_of if per_point else _sum)(nlpd_cells(prediction, truth), known, per_output)


def nlpd_cells(prediction: Any, truth: Truth) -> Float[np.ndarray, "N D"]:
    """Return the terms of `nlpd`, one per cell.

    >>> found = model.predict_distribution([[2.5]])
    >>> nlpd_cells(found, [[3.0]]).round(1)
    array([[1.5]])
    """
    lower, upper, known = _bounds(truth, prediction)
    return np.where(known, -prediction.log_probability(lower, upper), np.nan)


def mae(prediction: Any, truth: Truth, *, per_output: bool = False) -> PerOutput:
    """Mean absolute error of the predictive mean, or of an array: `mean |ŷ - y|`.

    For a censored cell the error is the distance to its interval, the least it can have been:
    the figure is then a lower bound of the error against the truth.

    >>> mae([2.0, 5.0], [1.0, 3.0])
    1.5
    >>> from censored_gp import Observations
    >>> mae([2.0, 5.0], Observations.from_flags([1.0, 3.0], [0, 1]))
    0.5
    """
    errors, known = _errors(prediction, truth)
    return mean_of(np.abs(errors), known, per_output)


def rmse(prediction: Any, truth: Truth, *, per_output: bool = False) -> PerOutput:
    """Root mean squared error `sqrt(mean (ŷ - y)²)`, with the errors that `mae` has.

    >>> rmse([4.0, 5.0], [1.0, 1.0]) == 12.5**0.5
    True
    """
    errors, known = _errors(prediction, truth)
    root = np.sqrt(mean_of(errors**2, known, per_output))
    return root if per_output else float(root)


def _errors(prediction: Any, truth: Truth) -> tuple[Cells, Mask]:
    """Return the signed distance of the point prediction from the interval of each known cell."""
    point, (lower, upper, known) = _point(prediction), _bounds(truth, prediction)
    return np.where(known, point - np.clip(point, lower, upper), np.nan), known


def r2(prediction: Any, truth: Truth, *, per_output: bool = False) -> PerOutput:
    """Coefficient of determination `1 - Σ (y - ŷ)² / Σ (y - ȳ)²` per output, or their mean.

    Only exact cells count, because a variance needs values. It is NaN for an output whose
    exact cells are fewer than two or all equal.

    >>> r2([1.0, 2.0, 2.0], [1.0, 2.0, 3.0])
    0.5
    """
    y, upper, known = _bounds(truth, prediction)
    exact = known & (y == upper)
    left = _sum((y - _point(prediction)) ** 2, exact, True)
    total = _sum((y - mean_of(y, exact, True)) ** 2, exact, True)
    values = np.where(total > 0, 1 - left / np.where(total > 0, total, 1.0), np.nan)
    return values if per_output else mean_of(values, total > 0, False)


def likelihood_r2(
    prediction: Any, truth: Observations, sample_weight: Any = None
) -> Float[np.ndarray, " D"]:
    """Cox and Snell's R² = 1 - exp(2 (l0 - l)) of every output; bounds count by their probability.

    l is the mean log density of exact cells and log probability of censored ones, l0 that of the
    normal distribution which explains them best, one for all rows. Of exact cells and a normal
    prediction with the variance of its errors it is the usual R². The usual R² of exact cells alone
    favours models that ignore censoring: where demand was high, they are the low ones.

    >>> found = model.predict_distribution([[0.5], [1.5], [2.5], [4.5]])
    >>> truth = Observations.from_flags([1.4, 2.5, 3, 1.6], [0, 0, 1, 0])
    >>> bool(0.5 < likelihood_r2(found, truth)[0] < 1)
    True
    """
    logs = -nlpd_cells(prediction, truth)
    weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, float)
    found = np.full(logs.shape[1], np.nan)
    for d, known in enumerate(~np.isnan(logs.T)):
        if known.any():
            null = _best_normal(truth.lower[known, d], truth.upper[known, d], weight[known])
            found[d] = 1 - np.exp(2 * (null - np.average(logs[known, d], weights=weight[known])))
    return found


def _best_normal(lower: Float[np.ndarray, " K"], upper: Any, weight: Any) -> float:
    """Return the largest mean log probability of intervals under one normal distribution."""
    exact, finite = lower == upper, np.where(np.isfinite(lower), lower, upper)
    middle, unit = np.mean(finite), max(np.std(finite), 1e-8 * np.max(np.abs(finite)), 1e-300)
    ends = (lower - middle) / unit, (upper - middle) / unit

    def negative(theta: Float[np.ndarray, "2"]) -> float:
        a, b = ((end - theta[0]) / np.exp(theta[1]) for end in ends)
        density = -0.5 * a**2 - theta[1] - 0.5 * np.log(2 * np.pi)
        # Tails are subtracted on the side where both are small.
        small, large = log_ndtr(np.where(a > 0, -b, a)), log_ndtr(np.where(a > 0, -a, b))
        between = large + np.log1p(-np.exp(np.minimum(small - large, -1e-12)))
        return -float(np.average(np.where(exact, density, between), weights=weight))

    best = minimize(negative, [0.0, 0.0], bounds=[(-10.0, 10.0), (-20.0, 5.0)]).fun
    return -best - float(np.average(exact, weights=weight)) * np.log(unit)


def crps(
    prediction: Any, truth: Truth, *, within: Limits | None = None, per_output: bool = False
) -> PerOutput:
    """Continuous ranked probability score, the mean of `∫ (F(x) - 1{y <= x})² dx`.

    For a censored cell the integral runs over the x where the indicator is known:
    `∫_{x < lower} F(x)² dx + ∫_{x >= upper} (1 - F(x))² dx`. That alone is not a proper score,
    because cells seen exactly are still scored beyond the limits that hid the others. Where the
    limits of all cells are known, pass them as `within = (low, high)`: every cell is then scored
    between them only (threshold-weighted CRPS), which is proper.

    >>> found = model.predict_distribution([[2.5]])
    >>> crps(found, [[3.6]]) < crps(found, [[3.0]]) < crps(found, [[2.0]])
    True
    """
    cells = crps_cells(prediction, truth, within=within)
    return mean_of(cells, _bounds(truth, prediction)[2], per_output)


def crps_cells(
    prediction: Any, truth: Truth, *, within: Limits | None = None
) -> Float[np.ndarray, "N D"]:
    """Return the terms of `crps`, one per cell: `∫ F(x)² dx` on the left, `∫ (1 - F(x))² dx` after.

    The range is cut at quantiles and at the bounds, so that each panel is smooth and as wide as its
    part of the distribution. A panel takes a Gauss-Legendre rule, or for counts, whose F is a step
    function, a sum. It takes at most 84 calls of the cdf. Relative errors: 1e-8 for a Gaussian and
    a Poisson, 2e-5 for a log-normal of log scale 1.5, 4e-4 for a Student-t of 1.5 degrees of
    freedom and for a negative binomial of mean 50 and dispersion 20.

    >>> found = model.predict_distribution([[2.5]])
    >>> crps_cells(found, [[3.6]]).round(1)
    array([[0.1]])
    """
    lower, upper, known = _bounds(truth, prediction)
    low, high = (np.asarray(limit, float) for limit in within or (-np.inf, np.inf))
    left, right = np.minimum(lower, high), np.maximum(upper, low)
    total, discrete = np.zeros_like(left), np.asarray(prediction.discrete)
    quantiles = prediction.quantile(list(PANEL_PROBABILITIES))
    first, last = quantiles[0], quantiles[-1]
    ends = [np.where(np.isfinite(end), end, first) for end in (left, right)]
    ends += [np.where(discrete, np.minimum(first + n, last), first) for n in FIRST_COUNTS]
    edges = np.clip(np.sort(np.concatenate([quantiles, ends]), axis=0), low, high)
    for start, stop in pairwise(np.where(discrete, np.ceil(edges), edges)):
        is_left, is_right = stop <= left, start >= right
        nodes, weights = _panel_rule(start, stop, discrete)
        for node, weight in zip(nodes, weights * (is_left | is_right), strict=True):
            # A call of the cdf is dear, and many nodes of narrow sums go unused.
            if np.any(weight):
                below = prediction.cdf(node)
                total += weight * np.where(is_left, below, 1 - below) ** 2
    return np.where(known, total, np.nan)


def _panel_rule(start: Cells, stop: Cells, discrete: Bool[np.ndarray, " D"]) -> Rule:
    """Return nodes and weights for the integral over `[start, stop)` of a smooth or a step F."""
    t, w = np.polynomial.legendre.leggauss(PANEL_NODES)
    half = (stop - start) / 2
    nodes, weights = start + np.multiply.outer(1 + t, half), np.multiply.outer(w, half)
    if np.any(discrete):
        counts, shares = _lattice_rule(start, stop)
        nodes, weights = np.where(discrete, counts, nodes), np.where(discrete, shares, weights)
    return nodes, weights


def _lattice_rule(start: Cells, stop: Cells) -> Rule:
    """Return whole-number nodes and weights for the sum over `start, start + 1, ..., stop - 1`.

    With fewer counts than nodes it is the sum itself. Else the nodes are equally spaced, and the
    weights w solve `Σ_i w_i t_i^m = Σ_k t_k^m` for every power m below the number of nodes,
    where t maps the panel to [-1, 1]; the right-hand side is a Gauss rule's.
    """
    width = stop - start
    i = np.arange(PANEL_NODES).reshape(-1, 1, 1)
    wide = np.maximum(width, PANEL_NODES)
    steps = np.round(i * (wide - 1) / (PANEL_NODES - 1))
    t = np.moveaxis((2 * steps + 1) / wide - 1, 0, -1)
    powers = t[..., None, :] ** np.arange(PANEL_NODES)[:, None]
    points, masses = gauss_for_sums(wide)
    gauss = np.moveaxis(2 * points / wide, 0, -1)[..., None, :] ** np.arange(PANEL_NODES)[:, None]
    solved = np.linalg.solve(powers, gauss @ np.moveaxis(masses, 0, -1)[..., None])[..., 0]
    few = width < PANEL_NODES
    weights = np.where(few, i < width, np.moveaxis(solved, -1, 0))
    return start + np.where(few, np.minimum(i, width), steps), weights


class Coverage(NamedTuple):
    """Share of cells inside an interval of prediction: bounds on it, and its expectation.

    >>> Coverage(lower=0.5, upper=1.0, expected=0.9).expected
    0.9
    """

    lower: PerOutput
    upper: PerOutput
    expected: PerOutput


def coverage(
    prediction: Any, truth: Truth, level: float = 0.9, *, per_output: bool = False
) -> Coverage:
    """Share of the truth inside the central prediction interval `[a, b]` of the given level.

    An exact cell is inside or not. A censored one is surely inside if all of its interval is,
    surely outside if none is, and else open. `lower` counts the sure ones, `upper` the open ones
    too, and `expected` counts an open one as `P(a <= Y <= b | lower <= Y <= upper)` under the
    prediction, which comes out near the level if the prediction is calibrated (of counts, both
    ends of whose intervals count in full, somewhat above it).

    >>> found = model.predict_distribution([[2.5]])
    >>> coverage(found, [[3.5]]).expected, coverage(found, [[9.0]]).expected
    (1.0, 0.0)
    """
    cells, known = coverage_cells(prediction, truth, level), _bounds(truth, prediction)[2]
    return Coverage(*(mean_of(share, known, per_output) for share in cells))


def coverage_cells(prediction: Any, truth: Truth, level: float) -> tuple[Cells, ...]:
    """Return per cell whether it is surely, possibly and how probably inside the interval."""
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, got {level}.")
    lower, upper, known = _bounds(truth, prediction)
    a, b = prediction.interval(level)
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


class PIT(NamedTuple):
    """Probability integral transform of every cell, an interval `[lower, upper]` of [0, 1].

    >>> one_exact_one_censored = PIT(np.array([[0.2], [0.6]]), np.array([[0.2], [1.0]]))
    >>> one_exact_one_censored.mid()[:, 0]
    array([0.2, 0.8])
    """

    lower: Cells
    upper: Cells

    def mid(self) -> Cells:
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


def pit(prediction: Any, truth: Truth) -> PIT:
    """Probability integral transform: the interval `[P(Y < lower), P(Y <= upper)]` per cell.

    It is a point for an exact cell of a continuous output, `[F(y - 1), F(y)]` for a count,
    `[0, F(0)]` for an amount of zero and `[P(Y < y), 1]` for a right-censored cell; NaN where
    nothing is known.

    >>> found = model.predict_distribution([[2.5]])
    >>> pit(found, [[3.0]]).mid().round(2)
    array([[0.03]])
    """
    lower, upper, known = _bounds(truth, prediction)

    def cdf(y: Cells) -> Cells:
        finite = np.isfinite(y)
        below = prediction.cdf(np.where(finite, y, prediction.mean))
        return np.where(known, np.where(finite, below, y > 0), np.nan)

    return PIT(cdf(lower - np.where(prediction.discrete, 1.0, JUST)), cdf(upper))


def pit_histogram(pit: PIT, bins: int = 10) -> Float[np.ndarray, " B"]:
    """Return the density of the PIT in each of equally wide bins; 1 everywhere if calibrated.

    >>> pit_histogram(PIT(np.array([[0.0]]), np.array([[1.0]])), bins=4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return np.diff(pit.cdf(np.arange(1, bins + 1) / bins), prepend=0.0) * bins


def pit_coverage(pit: PIT, levels: Any) -> Float[np.ndarray, " L"]:
    """Return the share of cells in central intervals, `P(|U - 1/2| <= level / 2)`.

    A censored cell counts by its probability of being inside, given its bounds.

    >>> pit_coverage(PIT(np.array([[0.0]]), np.array([[1.0]])), [0.5, 0.9]).round(3).tolist()
    [0.5, 0.9]
    """
    half = np.asarray(levels, dtype=float) / 2
    return pit.cdf(0.5 + half) - pit.cdf(0.5 - half)


def scores(prediction: Any, truth: Truth, level: float = 0.9) -> dict[str, dict[str, float]]:
    """All scores at once: `{output name: {score: value}}`, with a last row named "all".

    `coverage` is the expected one and `pit_deviation` is `PIT.deviation`. In the last row `nlpd`
    is the sum over outputs, `r2` the mean of theirs, and the rest pool all cells.
    `pandas.DataFrame(scores(...)).T` makes a data frame of it.

    >>> found = model.predict_distribution([[2.5]])
    >>> list(scores(found, [[3.5]]))
    ['y', 'all']
    """
    log_scores, ranked = nlpd_cells(prediction, truth), crps_cells(prediction, truth)
    known = _bounds(truth, prediction)[2]
    inside, uniform = coverage_cells(prediction, truth, level)[2], pit(prediction, truth)

    def summary(per_output: bool) -> dict[str, Any]:
        return {
            "cells": known.sum(axis=0 if per_output else None),
            "nlpd": _sum(log_scores, known, per_output),
            "nlpd_per_point": mean_of(log_scores, known, per_output),
            "mae": mae(prediction, truth, per_output=per_output),
            "rmse": rmse(prediction, truth, per_output=per_output),
            "r2": r2(prediction, truth, per_output=per_output),
            "crps": mean_of(ranked, known, per_output),
            "coverage": mean_of(inside, known, per_output),
        }

    each, table = summary(True), {}
    for d, name in enumerate(prediction.names):
        own = PIT(uniform.lower[:, d : d + 1], uniform.upper[:, d : d + 1])
        table[name] = {k: float(v[d]) for k, v in each.items()} | {"pit_deviation": own.deviation()}
    overall = {k: float(v) for k, v in summary(False).items()}
    table["all"] = overall | {"pit_deviation": uniform.deviation()}
    return table


def _bounds(truth: Truth, prediction: Any) -> tuple[Cells, Cells, Mask]:
    """Return the bounds of the truth, infinite where it is unknown, and where it is known."""
    if isinstance(truth, Observations):
        # What was seen in a part of a period is no value of the whole.
        lower = np.where(truth.is_partial, -np.inf, truth.lower)
        upper = np.where(truth.is_partial, np.inf, truth.upper)
    else:
        values = _as_columns(truth)
        unknown = np.isnan(values)
        lower, upper = np.where(unknown, -np.inf, values), np.where(unknown, np.inf, values)
    shape = _point(prediction).shape
    if lower.shape != shape:
        raise ValueError(
            f"The truth has shape {lower.shape} but the prediction has shape {shape}: "
            "give one row per predicted row and one column per output."
        )
    return lower, upper, np.isfinite(lower) | np.isfinite(upper)


def _as_columns(values: Any) -> Cells:
    """Return an array of numbers with one column per output."""
    array = np.asarray(values, float)
    return array[:, None] if array.ndim == 1 else array


def _point(prediction: Any) -> Cells:
    """Return the predictive mean, or the array itself where the prediction is an array."""
    mean = getattr(prediction, "mean", None)
    # Arrays and data frames have a mean too, but theirs is a method.
    return _as_columns(prediction if mean is None or callable(mean) else mean)


def _sum(cells: Cells, known: Mask, per_output: bool) -> PerOutput:
    """Return the sum over known cells; an infinite or NaN term shows."""
    total = np.where(known, cells, 0.0).sum(axis=0 if per_output else None)
    return total if per_output else float(total)


def mean_of(cells: Cells, known: Mask, per_output: bool) -> PerOutput:
    """Return the mean over known cells; NaN, without a warning, where there is none."""
    count = known.sum(axis=0 if per_output else None)
    mean = np.where(count > 0, _sum(cells, known, per_output) / np.maximum(count, 1), np.nan)
    return mean if per_output else float(mean)
