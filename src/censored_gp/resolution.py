"""Values that were recorded in steps, where many of them are one and the same.

A density has no largest value at a number that many records share: a scale that may vary would
become nought there, and the bound infinite. What is recorded as 0 in steps of 1 was between -1/2
and 1/2; said so, it is a probability, which is one at most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from censored_gp.observations import Observations

__all__ = ["step_of", "within_steps"]

ATOM = 0.25
"""Share of the values from which on the most common one is more than a coincidence."""
WHOLE = 1e-6
"""How far from a whole number of steps a value may be, by rounding."""


def step_of(values: Float[np.ndarray, " K"]) -> float:
    """Return the step in which values were recorded if many are the same, else 0.

    >>> step_of(np.array([0.0, 0.0, 2.0, 6.0])), step_of(np.array([0.0, 0.3, 0.7, 1.5, 1.9]))
    (2.0, 0.0)
    """
    distinct, count = np.unique(values, return_counts=True)
    if len(distinct) < 2 or count.max() <= ATOM * len(values):
        return 0.0
    step = np.diff(distinct).min()
    steps = (distinct - distinct[0]) / step
    # Steps so small that they are lost in the size of the values are no steps.
    return float(step) if np.all(np.abs(steps - np.round(steps)) < WHOLE) else 0.0


def within_steps(observations: Observations, outputs: Sequence[int]) -> Observations:
    """Say of some outputs that their exact values are known to within half a step.

    >>> seen = Observations([[0.0], [0.0], [3.0], [1.0]], [[0.0], [0.0], [np.inf], [1.0]])
    >>> within_steps(seen, [0]).lower[:, 0].tolist()
    [-0.5, -0.5, 3.0, 0.5]
    """
    half = np.zeros(observations.lower.shape[1])
    for output in outputs:
        exact = observations.is_exact[:, output]
        half[output] = 0.5 * step_of(observations.lower[exact, output])
    wide = np.where(observations.is_exact, half, 0.0)
    return dataclasses.replace(
        observations, lower=observations.lower - wide, upper=observations.upper + wide
    )
