"""The set of values a datum may take, and what bounds mean on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

# Zero less this is just below zero, in any unit: programs take the smallest numbers for zero.
JUST = 1e-200


@dataclass(frozen=True)
class Support:
    """The set of values a datum may take, from `lower` to `upper`.

    A continuous support does not contain its ends, but for a lower end with an atom; a discrete one
    is made of the whole numbers between them, ends included. Bounds may be arrays of numpy or of
    JAX.

    Attributes
    ----------
    atom
        Whether the lower end of a continuous support has a probability of its own.
    inside
        Two typical values, used in place of arguments that are not needed.

    Examples
    --------
    >>> COUNTS.contains([2.0, 2.5, -1.0])
    array([ True, False, False])
    >>> UNIT.words
    'a number strictly between 0 and 1'
    """

    words: str
    lower: float
    upper: float
    inside: tuple[float, float]
    discrete: bool = False
    atom: bool = False

    def contains(self, values: Float[np.ndarray, "*#batch"]) -> Bool[np.ndarray, "*#batch"]:
        """Return which values a datum may take. Infinities and NaN it may not."""
        values = np.asarray(values, float)
        whole = (np.floor(values) == values) | (not self.discrete)
        return np.isfinite(values) & whole & ~np.asarray(self.is_empty(values, values))

    def round_inward(self, lower: Any, upper: Any) -> tuple[Any, Any]:
        """Return bounds at whole numbers if the support is discrete: 2.5 to 4.5 is 3 to 4."""
        if not self.discrete:
            return lower, upper
        xp = jnp if isinstance(lower, jax.Array) or isinstance(upper, jax.Array) else np
        return xp.ceil(lower), xp.floor(upper)

    def is_empty(self, lower: Any, upper: Any) -> Any:
        """Return where no value lies between bounds that were rounded inward."""
        nothing = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
        if self.discrete:
            return nothing | (upper < self.lower) | (lower > self.upper)
        return nothing | self.is_under(upper) | (lower >= self.upper)

    def is_under(self, y: Any) -> Any:
        """Return where nothing lies at or below y."""
        return y < self.lower if self.discrete or self.atom else y <= self.lower

    def has_mass(self, y: Any) -> Any:
        """Return where y, a value of the support, has a probability rather than a density."""
        return (y == self.lower) & self.atom | self.discrete

    def excludes(self, lower: Any, upper: Any) -> tuple[Any, Any]:
        """Return where the lower, and where the upper bound excludes any value at all."""
        return lower > self.lower, upper < self.upper

    def just_below(self, y: Any) -> Any:
        """Return the largest value less than y, as far as probabilities go."""
        return y - 1.0 * self.has_mass(y)

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


REAL = Support("any finite number", -np.inf, np.inf, (0.0, 1.0))
POSITIVE = Support("a number greater than 0", 0.0, np.inf, (1.0, 2.0))
NONNEGATIVE = Support("a number, 0 or more", 0.0, np.inf, (1.0, 2.0), atom=True)
ABOVE_ONE = Support("a number greater than 1", 1.0, np.inf, (2.0, 5.0))
ONE_TO_TWO = Support("a number between 1.01 and 1.99", 1.01, 1.99, (1.3, 1.7))
UNIT = Support("a number strictly between 0 and 1", 0.0, 1.0, (0.25, 0.75))
COUNTS = Support("a whole number, 0 or more", 0.0, np.inf, (1.0, 2.0), discrete=True)
BINARY = Support("0 or 1", 0.0, 1.0, (0.0, 1.0), discrete=True)
