"""Steps uphill in the hyper-parameters: Newton's, with the expected curvature, within reason.

The sites change along with the hyper-parameters, so there is no line search to be exact about: a
step is taken, looked at once, and taken back if the bound fell. How far the curvature is believed
is learned from what the steps promised and what they brought (Levenberg and Marquardt).
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from censored_gp.inference.elbo import Roles
from censored_gp.inference.vectors import Vector, to_vector

MIXING_UNIT = 0.5
"""How far a mixing coefficient goes while others (logarithms, or of order 1) go by one."""
LONGEST_STEP = 1.0
"""Most that any hyper-parameter may move in one step, in these units."""
LEAST_DAMPING = 1.0
"""Curvature (nats per squared unit) below which a direction is not worth running after."""


class Step(NamedTuple):
    """A step, and by how much it should raise the bound."""

    change: Vector
    promised: float


class Ascent:
    """Turns gradients and information into steps, and learns how far to trust them."""

    def __init__(self) -> None:
        self.damping = LEAST_DAMPING

    def step(self, free: Roles, gradient: Vector, information: Float[np.ndarray, "P P"]) -> Step:
        """Return (F + D)^-1 g, cut where it would lead too far."""
        vector, mixing = to_vector(free), _is_mixing(free)
        unit = np.where(mixing, MIXING_UNIT, 1.0)
        # The covariance has mixing coefficients as squares. One that falls to nought has the
        # curvature g / a besides the information, which itself vanishes there.
        falls = mixing & (gradient * vector < 0)
        bent = np.abs(gradient) / np.where(falls, np.abs(vector), np.inf)
        curvature = information + np.diag(bent + self.damping / unit**2)
        change = np.linalg.solve(curvature, gradient)
        change *= min(1.0, LONGEST_STEP / np.abs(change / unit).max(initial=1e-300))
        return Step(change, float(gradient @ change - 0.5 * change @ curvature @ change))

    def learn(self, step: Step, gain: float) -> None:
        """Trust the curvature more after a step that kept its promise, less after one that did not.

        >>> ascent = Ascent()
        >>> ascent.learn(Step(np.zeros(1), promised=2.0), gain=-1.0)
        >>> ascent.damping
        4.0
        """
        if not gain > 0.1 * step.promised:
            self.damping *= 4.0
        elif gain > 0.5 * step.promised:
            self.damping = max(self.damping / 2.0, LEAST_DAMPING)


def _is_mixing(free: Roles) -> Bool[np.ndarray, "P"]:
    """Tell which hyper-parameters are coefficients of the mixing, or nuggets."""
    marked = {
        role: eqx.tree_at(
            lambda m: (m.mixing, m.nugget),
            jax.tree.map(np.zeros_like, lmc),
            jax.tree.map(np.ones_like, (lmc.mixing, lmc.nugget)),
            is_leaf=lambda node: node is None,
        )
        for role, lmc in free.items()
    }
    return to_vector(marked) > 0
