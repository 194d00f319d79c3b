"""Where a family's data may lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True)
class Support:
    """The set of values a datum may take, from `lower` to `upper`.

    A continuous support does not contain its ends; a discrete one is made of the whole numbers
    between them, ends included.

    >>> COUNTS.contains([2.0, 2.5, -1.0])
    array([ True, False, False])
    >>> UNIT.describe()
    'a number strictly between 0 and 1'
    """

    words: str
    lower: float
    upper: float
    inside: tuple[float, float]
    """Two typical values, used in place of arguments that are not needed."""
    discrete: bool = False

    def contains(self, values: Float[np.ndarray, "*#batch"]) -> Bool[np.ndarray, "*#batch"]:
        """Return which values a datum may take. Infinities and NaN it may not."""
        values = np.asarray(values, float)
        if self.discrete:
            within = (values >= self.lower) & (values <= self.upper)
            return within & np.isfinite(values) & (np.floor(values) == values)
        return (values > self.lower) & (values < self.upper) & np.isfinite(values)

    def nudge(self, values: Float[np.ndarray, "*#batch"]) -> Float[np.ndarray, "*#batch"]:
        """Return the values moved inside the open interval, by a little of their own scale."""
        values = np.asarray(values, float)
        if self.discrete:
            return np.maximum(values, 0.0) + 0.5
        if np.isfinite(self.upper):
            return np.clip(values, 1e-3, 1.0 - 1e-3)
        if np.isfinite(self.lower):
            positive = values[values > 0]
            typical = float(np.median(positive)) if positive.size else 1.0
            return np.maximum(values, 1e-3 * typical)
        return values

    def describe(self) -> str:
        """Return the accepted values in words."""
        return self.words


REAL = Support("any finite number", -np.inf, np.inf, (0.0, 1.0))
POSITIVE = Support("a number greater than 0", 0.0, np.inf, (1.0, 2.0))
ABOVE_ONE = Support("a number greater than 1", 1.0, np.inf, (2.0, 5.0))
UNIT = Support("a number strictly between 0 and 1", 0.0, 1.0, (0.25, 0.75))
COUNTS = Support("a whole number, 0 or more", 0.0, np.inf, (1.0, 2.0), discrete=True)
BINARY = Support("0 or 1", 0.0, 1.0, (0.0, 1.0), discrete=True)
