"""How training inputs lie on their columns: spread, spacing and phase. Set-up code, in numpy."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

# Phases closer than this fraction of the period are one and the same: far above rounding error,
# far below anything a kernel can tell apart.
PHASE_TOLERANCE = 1e-9


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
