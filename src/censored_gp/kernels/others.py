"""Kernels that are no functions of a distance: periodic, linear, Brownian, constant, white."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from censored_gp.data.inputs import Columns, Whole, hours_since, per_column, spacing
from censored_gp.kernels.base import Kernel, View, hyperparameter


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
                "`period` of Periodic must be a positive, finite number, or a duration such as "
                '"7d" on a column of times, got None: it cannot be chosen from the inputs.'
            )

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """exp(-2 Σ_c sin²(π (x_c - z_c) / period) / lengthscale_c²)."""
        sine = jnp.sin(np.pi * (self.own(x) - self.own(z)) / self.period)
        return jnp.exp(-2.0 * jnp.sum(jnp.square(sine / self.lengthscale)))

    def resolve(self, columns: Columns) -> Self:
        """The kernel in numbers; a duration as lengthscale becomes radians of phase."""
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

    def views(self, number: int) -> set[View]:
        """The phases of its columns."""
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


class Brownian(Kernel):
    """k = Σ_c (|x_c| + |z_c| - |x_c - z_c|) / (2 scale_c): a level that walks at random.

    It starts at zero where the input is zero (of times: at the first one), and its variance grows
    by one with every `scale` on either side. Beyond the data it stays where it was last seen, as it
    has no mean to return to, and becomes ever less certain.

    >>> print(Brownian(2.0)([[1.0]], [[-1.0], [1.0], [4.0]]))
    [[0.  0.5 0.5]]
    """

    scale: Any = hyperparameter(None, in_input_units=True)

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """Σ_c (|x_c| + |z_c| - |x_c - z_c|) / (2 scale_c)."""
        x, z = self.own(x), self.own(z)
        return jnp.sum((jnp.abs(x) + jnp.abs(z) - jnp.abs(x - z)) / (2.0 * self.scale))

    def starting_values(self, X: Float[np.ndarray, "N K"]) -> dict[str, np.ndarray]:
        """The mean distance from zero: variance one on average."""
        size = np.mean(np.abs(X), axis=0) * X.shape[1]
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
        """The kernel in numbers; it uses no column."""
        return dataclasses.replace(super().resolve(columns), columns=None)

    def views(self, number: int) -> set[View]:
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


class Block(Kernel):
    """k = 1 where x and z are in the same period, else 0: a value of its own for each period.

    `Block("1d", columns="time")` is an effect of the day. Periods of times count from midnight,
    those of numbers from zero; `resolve` sets `start` to where that is in the centred inputs.

    >>> print(Block(24.0)([[1.0]], [[4.0], [25.0]]))
    [[1. 0.]]
    """

    every: Any = hyperparameter(in_input_units=True, static=True)
    start: Any = eqx.field(default=0.0, static=True)

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """1 if x and z are the same number of whole periods from the start, else 0."""
        whole = Whole(self.every, np.asarray(self.start))
        return jnp.all(whole.number(self.own(x)) == whole.number(self.own(z))).astype(x.dtype)

    def resolve(self, columns: Columns) -> Self:
        """The kernel in numbers; the start is midnight of the first time, or minus the mean."""
        return super().resolve(columns).aligned(columns)

    def aligned(self, columns: Columns) -> Self:
        """The kernel with its start where that is in inputs with these origins."""
        starts = tuple(
            float(hours_since(zero.astype("datetime64[D]"), zero))
            if isinstance(zero, np.datetime64)
            else 0.0 - float(zero)
            for zero in (columns.origin[c] for c in columns.indices(self.columns))
        )
        return dataclasses.replace(self, start=starts[0] if len(starts) == 1 else starts)

    def views(self, number: int) -> set[View]:
        """The number of whole periods of its columns."""
        index = range(number) if self.columns is None else self.columns
        starts = np.broadcast_to(self.start, len(index)).tolist()
        return {(c, Whole(self.every, start)) for c, start in zip(index, starts, strict=True)}
