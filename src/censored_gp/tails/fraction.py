"""Continued fractions by Steed's algorithm."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

TOLERANCE = 1e-14
MAXIMUM_STEPS = 200_000


def steed(
    coefficients: Callable[
        [Float[Array, ""]], tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]
    ],
    first: Float[Array, "*#batch"],
) -> Float[Array, "*#batch"]:
    """Return 1/(b_0 + a_1/(b_1 + a_2/(b_2 + ...))), given first = 1 / b_0.

    `coefficients(n)` gives (a_n, b_n). Steed's form needs one division a step and never
    overflows: D_n = 1/(b_n + a_n D_{n-1}), h_n = h_{n-1} + (b_n D_n - 1)(h_{n-1} - h_{n-2}).
    The loop ends when every element has converged.
    """

    def step(state: tuple) -> tuple:
        n, inverse, change, total = state
        a, b = coefficients(n + 1.0)
        inverse = 1.0 / (b + a * inverse)
        change = (b * inverse - 1.0) * change
        return n + 1.0, inverse, change, total + change

    def unfinished(state: tuple) -> Bool[Array, ""]:
        n, _, change, total = state
        return (n < MAXIMUM_STEPS) & jnp.any(jnp.abs(change) > TOLERANCE * jnp.abs(total))

    return lax.while_loop(unfinished, step, (0.0, first, first, first))[3]
