"""Gauss-Hermite grids for expectations under independent Gaussians."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float

NODES = {0: 1, 1: 20, 2: 10, 3: 8}
"""Nodes per dimension: fewer where the grid is a product of several."""


@functools.cache
def gauss_hermite(count: int) -> tuple[Float[np.ndarray, "S"], Float[np.ndarray, "S"]]:
    """Return nodes z and weights w with sum(w f(z)) = E[f(Z)], Z ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def grid(
    varying: tuple[bool, ...], count: int | None = None
) -> tuple[Float[np.ndarray, "S J"], Float[np.ndarray, "S"]]:
    """Return a product grid over J standard normals of which only some vary.

    A parameter that is a plain constant has no variance to integrate over: its nodes are zero
    and it costs nothing.
    """
    number = sum(varying)
    if number not in NODES:
        raise ValueError(
            f"a likelihood with {number} varying parameters is too wide for quadrature "
            "(at most 3): give some of their roles no kernels, which makes them constant"
        )
    nodes, weights = gauss_hermite(count or NODES[number])
    axes = [nodes if vary else np.zeros(1) for vary in varying]
    masses = [weights if vary else np.ones(1) for vary in varying]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(varying))
    mass = functools.reduce(np.multiply.outer, masses).reshape(-1)
    return mesh, mass
