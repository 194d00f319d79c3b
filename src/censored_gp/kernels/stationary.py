"""Stationary kernels: k(x, z) depends on the scaled distance alone, and is one at distance zero."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from censored_gp.kernels.base import Kernel, hyperparameter
from censored_gp.likelihoods.special.elementary import safe_sqrt


class Stationary(Kernel):
    """k(x, z) = correlation(s), s = Σ_c (x_c - z_c)² / lengthscale_c².

    >>> class Cauchy(Stationary):
    ...     def correlation(self, s):
    ...         return 1 / (1 + s)
    >>> print(Cauchy(2.0)([[0.0]], [[0.0], [2.0], [6.0]]))
    [[1.  0.5 0.1]]
    """

    lengthscale: Any = hyperparameter(None, in_input_units=True)

    @abstractmethod
    def correlation(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """The correlation at squared scaled distance s; one at s = 0."""

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """correlation(Σ_c (x_c - z_c)² / lengthscale_c²)."""
        return self.correlation(jnp.sum(jnp.square((self.own(x) - self.own(z)) / self.lengthscale)))


class RBF(Stationary):
    """k = exp(-s / 2): very smooth functions.

    >>> print(RBF(lengthscale=2.0)([[0.0]], [[0.0], [2.0]]).round(3))
    [[1.    0.607]]
    """

    def correlation(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """exp(-s / 2)."""
        return jnp.exp(-0.5 * s)

    def root(self, s: Float[Array, "*B"]) -> Float[Array, "*B"]:
        """exp(-s): k is proportional to ∫ root(x - t) root(t - z) dt, in one column."""
        return jnp.exp(-s)


class Matern12(Stationary):
    """k = exp(-r), r = √s: continuous, rough functions (Ornstein-Uhlenbeck).

    >>> print(Matern12(lengthscale=2.0)([[0.0]], [[0.0], [2.0]]).round(3))
    [[1.    0.368]]
    """

    def correlation(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """exp(-r)."""
        return jnp.exp(-safe_sqrt(s))


class Matern32(Stationary):
    """k = (1 + √3 r) exp(-√3 r), r = √s: functions with one derivative.

    >>> print(Matern32(lengthscale=2.0)([[0.0]], [[0.0], [2.0]]).round(3))
    [[1.    0.483]]
    """

    def correlation(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """(1 + √3 r) exp(-√3 r)."""
        r = safe_sqrt(3.0 * s)
        return (1.0 + r) * jnp.exp(-r)


class Matern52(Stationary):
    """k = (1 + √5 r + 5 r² / 3) exp(-√5 r), r = √s: functions with two derivatives.

    >>> print(Matern52(lengthscale=2.0)([[0.0]], [[0.0], [2.0]]).round(3))
    [[1.    0.524]]
    """

    def correlation(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """(1 + √5 r + 5 r² / 3) exp(-√5 r)."""
        r = safe_sqrt(5.0 * s)
        return (1.0 + r + r * r / 3.0) * jnp.exp(-r)


class RationalQuadratic(Stationary):
    """k = (1 + s / 2α)^(-α): RBFs of many lengthscales, the RBF itself as α grows.

    >>> X = [[0.0], [2.0]]
    >>> print(RationalQuadratic(2.0, alpha=1.0)(X, X)[0].round(3))
    [1.    0.667]
    >>> print(RationalQuadratic(2.0, alpha=1e6)(X, X)[0].round(3))
    [1.    0.607]
    """

    alpha: Any = hyperparameter(1.0)

    def correlation(self, s: Float[Array, ""]) -> Float[Array, ""]:
        """(1 + s / 2α)^(-α)."""
        return jnp.exp(-self.alpha * jnp.log1p(s / (2.0 * self.alpha)))
