"""What scores are made of: the truth as far as it is known, errors, and means over known cells."""

from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.observations import Observations

__all__ = ["errors_of", "known_cells", "mean_of", "point_of", "read_truth", "sum_of"]

Cells: TypeAlias = Float[np.ndarray, "N D"]
PerOutput: TypeAlias = Any  # a float, or a Float[np.ndarray, " D"] with per_output=True
Truth: TypeAlias = Any  # Observations, or anything numpy reads as an (N,) or (N, D) array


def read_truth(truth: Truth, like: Cells) -> tuple[Cells, Cells, Bool[np.ndarray, "N D"]]:
    """Return the bounds of the truth, infinite where it is unknown, and where it is known."""
    if isinstance(truth, Observations):
        # P(Y >= v) is not the probability that v was counted.
        lower, upper = np.where(truth.is_share, -np.inf, truth.lower), truth.upper
    else:
        values = as_columns(truth)
        lower = np.where(np.isnan(values), -np.inf, values)
        upper = np.where(np.isnan(values), np.inf, values)
    if lower.shape != like.shape:
        raise ValueError(
            f"The truth has shape {lower.shape} but the prediction has shape {like.shape}: "
            "give one row per predicted row and one column per output."
        )
    return lower, upper, np.isfinite(lower) | np.isfinite(upper)


def known_cells(prediction: Any, truth: Truth) -> Bool[np.ndarray, "N D"]:
    """Return where something is known of the truth."""
    return read_truth(truth, point_of(prediction))[2]


def as_columns(values: Any) -> Cells:
    """Return an array of numbers with one column per output."""
    array = np.asarray(values, float)
    return array[:, None] if array.ndim == 1 else array


def point_of(prediction: Any) -> Cells:
    """Return the predictive mean, or the array itself where the prediction is an array."""
    mean = getattr(prediction, "mean", None)
    # Arrays and data frames have a mean too, but theirs is a method.
    return as_columns(prediction if mean is None or callable(mean) else mean)


def errors_of(prediction: Any, truth: Truth) -> Cells:
    """Return the signed distance of the point prediction from the interval of each known cell."""
    point = point_of(prediction)
    lower, upper, known = read_truth(truth, point)
    return np.where(known, point - np.clip(point, lower, upper), np.nan)


def sum_of(cells: Cells, known: Bool[np.ndarray, "N D"], per_output: bool) -> PerOutput:
    """Return the sum over what is known, where it may be infinite or NaN and then shows."""
    total = np.where(known, cells, 0.0).sum(axis=0 if per_output else None)
    return total if per_output else float(total)


def mean_of(cells: Cells, known: Bool[np.ndarray, "N D"], per_output: bool) -> PerOutput:
    """Return the mean of the known cells; NaN, without a warning, where there is none."""
    count = known.sum(axis=0 if per_output else None)
    total = sum_of(cells, known, per_output)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean if per_output else float(mean)
