"""What every row has of its own, in no other row's likeness.

Counts often scatter more than a Poisson allows: a nugget of their log rates takes that up. Without
one a fit is too sure of itself, as its family has no other noise.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from censored_gp.runtime import AnyArray

__all__ = ["Nugget"]


class Nugget(eqx.Module):
    """Independent from row to row, and from output to output: its standard deviations.

    The variance may change over a cycle of time. It is then a sum of bumps, equally spaced over the
    cycle, that add up to one where they are of equal size.
    """

    size: Float[AnyArray, "B D J"]
    """Standard deviations at the middle of each bump; signs are free, like those of the mixing."""
    column: int = eqx.field(static=True, default=0)
    period: float = eqx.field(static=True, default=1.0)

    def bumps(self, inputs: Float[AnyArray, "N C"]) -> Float[Array, "N J"]:
        """Return by how much each bump counts at the inputs: cos^2, and nought beyond the next."""
        count = np.shape(self.size)[2]
        if count == 1:
            return jnp.ones((len(inputs), 1))
        phase = jnp.asarray(inputs)[:, self.column, None] * (count / self.period)
        apart = jnp.abs((phase - np.arange(count) + count / 2) % count - count / 2)
        return jnp.cos(0.5 * jnp.pi * jnp.minimum(apart, 1.0)) ** 2

    def variance(self, inputs: Float[AnyArray, "N C"]) -> Float[Array, "B N D"]:
        """Return the variance at the inputs."""
        return jnp.einsum("nj,bdj->bnd", self.bumps(inputs), jnp.square(jnp.asarray(self.size)))

    def information(
        self, inputs: Float[AnyArray, "N C"], rows: Float[Array, "B N D"]
    ) -> Float[Array, "B D J J"]:
        """Return the information about the sizes, from that of each row about its variance."""
        bumps, size = self.bumps(inputs), 2.0 * jnp.asarray(self.size)
        pairs = jnp.einsum("nj,nk,bnd->bdjk", bumps, bumps, rows)
        return pairs * size[..., None] * size[..., None, :]
