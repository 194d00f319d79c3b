"""Of a count, the probability that so much was counted until a random moment.

Whoever counts arrivals until a moment that is uniform on the period sees each of the Y arrivals
with a probability U that is uniform on [0, 1]: what is seen is equally likely to be 0, 1, ..., Y,

    S(v) = sum_(y >= v) P(y) / (y + 1) = int_0^1 P(v; u mean) du,

since the part that is seen of a negative binomial count is one again, of mean u mean and the same
dispersion. The integrand, in log u, is log-concave: it rises, perhaps stays level for long (if the
dispersion is near one), and falls. Gauss-Legendre quadrature on these three pieces, as far as the
points where it has become negligible.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float

from censored_gp.likelihoods.special.beta import log_negative_binomial
from censored_gp.likelihoods.special.elementary import log1p_ratio

NEGLIGIBLE = 23.0
"""Fall of the log integrand after which what follows does not matter."""
NODES = (22, 14, 16)
"""On the three pieces."""
SEARCH = 10
"""Newton steps towards either end; they come from outside, so that few only cost accuracy."""
NO_WIDTH = 1e-300
"""Of a piece that is not there: its log must not be infinite."""

Batch = Float[Array, "*#batch"]


def log_share(
    v: Float[ArrayLike, "*#batch"],
    mean: Float[ArrayLike, "*#batch"],
    dispersion: Float[ArrayLike, "*#batch"],
) -> Float[Array, "*#batch"]:
    """Return log S(v) of a negative binomial count; Poisson is that of no dispersion.

    >>> found = jax.jit(log_share)(0.0, 2.0, 0.0)
    >>> bool(abs(np.exp(found) - (1 - np.exp(-2.0)) / 2.0) < 1e-6)
    True
    """
    v, mean, alpha = jnp.broadcast_arrays(*(jnp.asarray(x, float) for x in (v, mean, dispersion)))
    # Nodes are shares of the mean: their range does not depend on it, so nor need they.
    log_u, log_weight = jax.tree.map(lax.stop_gradient, _nodes(v, mean, alpha))
    rest = mean * -jnp.expm1(log_u) / (1.0 + alpha * mean * jnp.exp(log_u))
    # P(v; u mean) / P(v; mean), without a logarithm of a quotient near one.
    ratio = v * log_u + (1.0 + alpha * v) * log1p_ratio(alpha, rest)
    total = jax.scipy.special.logsumexp(ratio + log_weight, axis=0)
    return log_negative_binomial(v, mean, alpha) + total


def _nodes(v: Batch, mean: Batch, alpha: Batch) -> tuple[Array, Array]:
    """Return log u of the nodes and the logs of their weights, along a first axis."""

    def height(t: Batch) -> tuple[Batch, Batch]:
        """Return log P(v; e^t mean) + t but for a constant, and its slope."""
        w = mean * jnp.exp(t)
        value = (v + 1.0) * t - (1.0 + alpha * v) * log1p_ratio(alpha, w)
        return value, v + 1.0 - (1.0 + alpha * v) * w / (1.0 + alpha * w)

    # Both are at the end, u = 1, if they would be beyond it.
    below = (1.0 - alpha) * mean > v + 1.0
    peak = _log_share_of(v + 1.0, (1.0 - alpha) * mean)
    shoulder = _log_share_of(v + 1.0, (1.0 + alpha * v) * mean)
    target = height(peak)[0] - NEGLIGIBLE

    def towards(t: Batch, inward: Batch) -> Batch:
        """Go from a point outside to where the integrand is negligible, never beyond."""

        def step(_: Any, t: Batch) -> Batch:
            value, slope = height(t)
            return jnp.where(inward & (value < target), t - (value - target) / slope, t)

        # A loop, though a short one: it is a fraction of the code to compile.
        return lax.fori_loop(0, SEARCH, step, t)

    everywhere = jnp.ones_like(below)
    # The line (v + 1) t lies above the curve.
    start = towards(target / (v + 1.0), everywhere)
    end = towards(jnp.zeros_like(peak), below)
    turn = jnp.clip(shoulder, start, peak)
    return _on_pieces((start, turn, peak, end))


def _on_pieces(ends: tuple[Batch, ...]) -> tuple[Array, Array]:
    """Return log u of the nodes of the pieces between points, and the logs of their weights."""
    log_u, width = [], []
    for a, b, count in zip(ends[:-1], ends[1:], NODES, strict=True):
        points, weights = (x.reshape((-1,) + (1,) * a.ndim) for x in _legendre(count))
        log_u.append(a + (b - a) * points)
        width.append(weights * jnp.maximum(b - a, NO_WIDTH))
    nodes = jnp.concatenate(log_u)
    return nodes, jnp.log(jnp.concatenate(width)) + nodes


def _log_share_of(part: Batch, whole: Batch) -> Batch:
    """Return log(part / whole), or 0 where that would be positive."""
    less = part < whole
    return jnp.where(less, jnp.log(part / jnp.where(less, whole, part)), 0.0)


@functools.cache
def _legendre(count: int) -> tuple[Float[np.ndarray, "Q"], Float[np.ndarray, "Q"]]:
    """Return nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1.0) / 2.0, weights / 2.0
