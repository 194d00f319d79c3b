"""The kernels of the package: each docstring is the equation, the body is that equation."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from censored_gp.inputs import Columns
from censored_gp.kernels.base import Kernel, hyperparameter
from censored_gp.kernels.spacing import per_column, spacing


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


class Periodic(Kernel):
    """k = exp(-2 Σ_c sin²(π (x_c - z_c) / period) / lengthscale_c²).

    The lengthscale is in radians of phase: a pattern with details of width w (same unit as the
    period) needs 2π w / period. A duration given as lengthscale is such a w.

    >>> daily = Periodic(24.0, lengthscale=1.0)
    >>> print(daily([[0.0]], [[12.0], [24.0], [36.0]]).round(3))
    [[0.135 1.    0.135]]
    """

    period: Any = hyperparameter(in_input_units=True, static=True)
    lengthscale: Any = hyperparameter(None, in_input_units=True)

    def __check_init__(self) -> None:
        if self.period is None:
            raise ValueError(
                "Periodic: period is None, and cannot be chosen from the inputs. Accepted is a "
                'positive, finite number, or a duration such as "7d" on a column of times.'
            )

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """exp(-2 Σ_c sin²(π (x_c - z_c) / period) / lengthscale_c²)."""
        sine = jnp.sin(np.pi * (self.own(x) - self.own(z)) / self.period)
        return jnp.exp(-2.0 * jnp.sum(jnp.square(sine / self.lengthscale)))

    def resolve(self, columns: Columns) -> Self:
        """As for every kernel; a duration as lengthscale also becomes radians of phase."""
        resolved = super().resolve(columns)
        if not isinstance(self.lengthscale, str | tuple):
            return resolved
        radians = 2.0 * np.pi * resolved.lengthscale / resolved.period
        given = (self.lengthscale,) if isinstance(self.lengthscale, str) else self.lengthscale
        is_duration = np.array([isinstance(part, str) for part in given])
        return dataclasses.replace(
            resolved, lengthscale=per_column(np.where(is_duration, radians, resolved.lengthscale))
        )

    def starting_values(self, X: Float[np.ndarray, "N K"]) -> dict[str, np.ndarray]:
        """A lengthscale of 2.5 typical spacings, so that a pattern from row to row can be followed.

        At lengthscale 1 a weekly kernel cannot follow an hourly pattern, and gradient steps from
        there do not find the one that can.
        """
        radians = 2.0 * np.pi * 2.5 * np.array([spacing(column) for column in X.T]) / self.period
        return {"lengthscale": per_column(np.clip(radians, 0.05, 1.0))}

    def views(self, number: int) -> set[tuple[int, float | None]]:
        """The phases of its columns only."""
        return {(column, self.period) for column, _ in super().views(number)}


class Linear(Kernel):
    """k = Σ_c x_c z_c / scale_c²: straight lines through the origin of the centred inputs.

    >>> print(Linear(scale=2.0)([[1.0]], [[2.0], [4.0]]))
    [[0.5 1. ]]
    """

    scale: Any = hyperparameter(None, in_input_units=True)

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """Σ_c x_c z_c / scale_c²."""
        return jnp.sum((self.own(x) / self.scale) * (self.own(z) / self.scale))

    def starting_values(self, X: Float[np.ndarray, "N K"]) -> dict[str, np.ndarray]:
        """The root mean square of the inputs: variance one on average."""
        size = np.sqrt(np.mean(np.square(X), axis=0) * X.shape[1])
        return {"scale": per_column(np.where(size > 0.0, size, 1.0))}


class Constant(Kernel):
    """k = variance: one unknown level.

    >>> print(Constant(3.0)([[1.0]], [[2.0], [4.0]]))
    [[3. 3.]]
    """

    variance: Any = hyperparameter(1.0)

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """The variance, whatever the rows."""
        return jnp.asarray(self.variance)

    def resolve(self, columns: Columns) -> Self:
        """As for every kernel, but there is nothing to look at."""
        return dataclasses.replace(super().resolve(columns), columns=None)

    def views(self, number: int) -> set[tuple[int, float | None]]:
        """Nothing of a row."""
        return set()


class White(Kernel):
    """k = 1 where x = z in every column looked at, else 0: a value of its own per distinct row.

    >>> print(White()([[1.0]], [[1.0], [4.0]]))
    [[1. 0.]]
    """

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """1 if x = z else 0."""
        return jnp.all(self.own(x) == self.own(z)).astype(x.dtype)


def safe_sqrt(s: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """√s with derivative zero, not NaN, at s = 0: every distance from a row to itself."""
    positive = s > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, s, 1.0)), 0.0)
