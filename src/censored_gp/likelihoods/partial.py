"""A count of unknown exposure: what was counted is a random share of it.

Whoever counts arrivals until a moment that is uniform on the period sees each of the Y arrivals
with a probability U that is uniform on [0, 1]: the record v is equally likely to be 0, 1, ..., Y,

    S(v) = P(v | theta) = sum_(y >= v) P(y) / (y + 1) = int_0^1 P(v; u mean) du,

since the seen part of a negative binomial count is one again, of mean u mean and the same
dispersion. Given v, P(Y = y | v) is proportional to P(y) / (y + 1) for y >= v: a distribution of
its own, `PartialCount`, truncated to y >= v like any other.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from censored_gp.likelihoods.base import Likelihood, Parameter
from censored_gp.likelihoods.quadrature import gauss_legendre
from censored_gp.likelihoods.special.beta import log_negative_binomial
from censored_gp.likelihoods.special.elementary import (
    Batch,
    Numbers,
    Pair,
    alike,
    log1mexp,
    log1p_ratio,
)
from censored_gp.likelihoods.support import COUNTS
from censored_gp.likelihoods.truncation import Kind

# Where the log integrand is this far below its peak, the integral ends.
NEGLIGIBLE = 23.0
# Gauss-Legendre nodes on the three pieces of the integral.
NODES = (22, 14, 16)


def averages_exposure(likelihood: Likelihood) -> bool:
    """Return whether S(v) of a family is known."""
    return likelihood.additive and type(likelihood).log_part is not Likelihood.log_part


class PartialCount(Likelihood, register=False):
    """The distribution of a count given that a share of it was counted: P(y) / (y + 1) / S(0)."""

    family: Likelihood

    def __init__(self, family: Likelihood) -> None:
        self.family, self.links = family, family.links

    support = COUNTS  # pyright: ignore

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore
        """The parameters of the whole count."""
        return self.family.parameters

    def log_density(self, y: Batch, *theta: Batch) -> Batch:
        """Return log P(y) - log(y + 1) - log S(0)."""
        whole = self.family.log_part(jnp.zeros(()), *theta)
        return self.family.log_density(y, *theta) - jnp.log1p(y) - whole

    def log_tails(self, y: Batch, *theta: Batch) -> Pair:
        """Return the upper tail S(y + 1) / S(0), and what it leaves for the lower one."""
        y, *each = jnp.broadcast_arrays(y, *theta)
        # Both in one call: half the code to compile.
        above, whole = self.family.log_part(jnp.stack([y + 1.0, jnp.zeros_like(y)]), *each)
        survival = jnp.minimum(above - whole, 0.0)
        # The lower tail is a difference of upper ones, which are exact to 1e-9. If both were lost,
        # it must not be NaN.
        return log1mexp(jnp.minimum(survival, -1e-16)), survival

    def mean(self, *theta: Batch) -> Batch:
        """Return 1 / S(0) - 1."""
        return jnp.expm1(-self.family.log_part(jnp.zeros(()), *theta))

    def variance(self, *theta: Batch) -> Batch:
        """Return (E + 1) (E[whole] - E)."""
        mean = self.mean(*theta)
        return jnp.maximum((mean + 1.0) * (self.family.mean(*theta) - mean), 0.0)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return E and Var of counts from `lower` on; a record has no upper bound.

        Sums of (y + 1) and of y (y + 1) times P(y) / (y + 1) are those of the whole count.
        """
        lower, *each = jnp.broadcast_arrays(jnp.ceil(jnp.maximum(lower, 0.0)), *theta)
        endless = jnp.full_like(lower, jnp.inf)
        whole = self.family.moments_within(lower, endless, *each, kind="right")
        above = self.family.log_at_least(lower, *each) - self.family.log_part(lower, *each)
        mean = jnp.maximum(jnp.expm1(above), lower)
        return mean, jnp.maximum((mean + 1.0) * (whole[0] - mean), 0.0)


def log_share(v: Numbers, mean: Numbers, dispersion: Numbers) -> Batch:
    """Return log S(v) of a negative binomial count; Poisson is that of no dispersion.

    The integrand of S, in log u, is log-concave: it rises, perhaps stays level for long (if the
    dispersion is near one), and falls. Gauss-Legendre quadrature on these three pieces.
    """
    v, mean, alpha = alike(v, mean, dispersion)
    # Nodes are shares of the mean: their range does not depend on it, so nor need they.
    log_u, log_weight = jax.tree.map(lax.stop_gradient, _nodes(v, mean, alpha))
    rest = mean * -jnp.expm1(log_u) / (1.0 + alpha * mean * jnp.exp(log_u))
    # P(v; u mean) / P(v; mean), without a logarithm of a quotient near one.
    ratio = v * log_u + (1.0 + alpha * v) * log1p_ratio(alpha, rest)
    total = jax.scipy.special.logsumexp(ratio + log_weight, axis=0)
    return log_negative_binomial(v, mean, alpha) + total


def _nodes(v: Batch, mean: Batch, alpha: Batch) -> tuple[Array, Array]:
    """Return log u of the nodes and the logs of their weights, along a first axis."""

    def height(t: Batch) -> Pair:
        """Return log P(v; e^t mean) + t but for a constant, and its slope."""
        w = mean * jnp.exp(t)
        value = (v + 1.0) * t - (1.0 + alpha * v) * log1p_ratio(alpha, w)
        return value, v + 1.0 - (1.0 + alpha * v) * w / (1.0 + alpha * w)

    def log_share_of(whole: Batch) -> Batch:
        """Return log((v + 1) / whole), or 0, the end u = 1, where that would be positive."""
        less = v + 1.0 < whole
        return jnp.where(less, jnp.log((v + 1.0) / jnp.where(less, whole, v + 1.0)), 0.0)

    def towards(t: Batch, inward: Any) -> Batch:
        """Go from a point outside to where the integrand is negligible, never beyond."""

        def step(_: Any, t: Batch) -> Batch:
            value, slope = height(t)
            return jnp.where(inward & (value < target), t - (value - target) / slope, t)

        # A loop, though a short one: it is a fraction of the code to compile. Newton's steps come
        # from outside, so that few only cost accuracy.
        return lax.fori_loop(0, 10, step, t)

    peak = log_share_of((1.0 - alpha) * mean)
    target = height(peak)[0] - NEGLIGIBLE
    # The line (v + 1) t lies above the curve.
    start = towards(target / (v + 1.0), True)
    end = towards(jnp.zeros_like(peak), (1.0 - alpha) * mean > v + 1.0)
    turn = jnp.clip(log_share_of((1.0 + alpha * v) * mean), start, peak)
    log_u, width = [], []
    for a, b, count in zip((start, turn, peak), (turn, peak, end), NODES, strict=True):
        points, weights = gauss_legendre(count, a.ndim)
        log_u.append(a + (b - a) * 0.5 * (points + 1.0))
        # The log of an empty piece must not be infinite.
        width.append(0.5 * weights * jnp.maximum(b - a, 1e-300))
    nodes = jnp.concatenate(log_u)
    return nodes, jnp.log(jnp.concatenate(width)) + nodes
