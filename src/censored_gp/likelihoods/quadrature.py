"""Grids for expectations under independent Gaussians: Gauss-Hermite, or evenly spaced."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float

# Nodes per dimension: fewer where the grid is a product of several.
NODES = {0: 1, 1: 20, 2: 10, 3: 8}
# Nodes per dimension of each of several shifted grids, and how far they are apart.
SHIFTED = {0: (1, 1.0), 1: (10, 0.8), 2: (6, 1.1), 3: (4, 1.5)}
# The same where the nodes of one dimension will be reweighted: they reach further out.
WIDE = (18, 0.9)

# Nodes, S or S for each of J parameters, and their weights.
Rule = tuple[Float[np.ndarray, "..."], Float[np.ndarray, "S"]]


@functools.cache
def gauss_hermite(count: int) -> Rule:
    """Return nodes z and weights w with sum(w f(z)) = E[f(Z)], Z ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def gauss_legendre(count: int, axes: int) -> Rule:
    """Return nodes and weights on [-1, 1], along an axis that precedes so many others."""
    shape = (-1,) + (1,) * axes
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes.reshape(shape), weights.reshape(shape)


@functools.cache
def even() -> Rule:
    """Return evenly spaced nodes and weights: as exact for smooth functions, and nowhere far apart.

    A mixture over these nodes is smooth even where its components are narrow.
    """
    nodes = np.linspace(-8.0, 8.0, 128)
    weights = np.exp(-0.5 * nodes**2)
    return nodes, weights / weights.sum()


def grid(varying: tuple[bool, ...], count: int | None = None, evenly: bool = False) -> Rule:
    """Return a product grid over J standard normals of which only some vary.

    A parameter that is a plain constant has no variance to integrate over: its nodes are zero
    and it costs nothing. The nodes of a single one may be spaced evenly.
    """
    number = sum(varying)
    if number not in NODES:
        raise ValueError(
            f"a likelihood with {number} varying parameters is too wide for quadrature "
            "(at most 3): give some of their roles no kernels, which makes them constant"
        )
    nodes, weights = even() if evenly and number == 1 else gauss_hermite(count or NODES[number])
    axes = [nodes if vary else np.zeros(1) for vary in varying]
    masses = [weights if vary else np.ones(1) for vary in varying]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(varying))
    return mesh, functools.reduce(np.multiply.outer, masses).reshape(-1)


@functools.cache
def shifted_grids(varying: tuple[bool, ...], count: int, wide: bool = False) -> Rule:
    """Return `count` evenly spaced grids over J standard normals, each with a shift of its own.

    A grid of few nodes is exact enough for smooth functions. Together the nodes of many are close,
    so that a mixture over them all is smooth even where its components are narrow.
    """
    number = sum(varying)
    nodes, step = WIDE if wide and number == 1 else SHIFTED[number]
    places = (np.arange(nodes) - 0.5 * (nodes - 1)) * step
    # Of every dimension another irrational number: the shifts are spread evenly over all.
    golden = np.array([0.618, 0.755, 0.82])[max(number, 1) - 1] ** np.arange(1, len(varying) + 1)
    shifts = (np.arange(1, count + 1)[:, None] * golden + 0.5) % 1.0 - 0.5
    moved = places + step * np.where(varying, shifts, 0.0)[..., None]
    meshes = [
        np.meshgrid(*(m if vary else np.zeros(1) for m, vary in zip(own, varying, strict=True)))
        for own in moved
    ]
    mesh = np.stack([np.stack(axes, axis=-1).reshape(-1, len(varying)) for axes in meshes])
    mass = np.exp(-0.5 * np.sum(mesh**2, axis=2))
    return mesh, mass / mass.sum(axis=1, keepdims=True)
