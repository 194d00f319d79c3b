"""Bounds that can be: shapes that match, lower ends that are not above the upper ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from censored_gp.cells import Cells, size_in_words
from censored_gp.tables import first_problem, listed

__all__ = [
    "as_cells",
    "as_odds",
    "as_shares",
    "check_bounds",
    "check_shapes",
    "default_names",
    "odds_of_limits",
]


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
