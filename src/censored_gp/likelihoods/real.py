"""Families on the whole line."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from censored_gp.likelihoods.base import Likelihood, Parameter
from censored_gp.likelihoods.support import REAL, Support
from censored_gp.tails import log_ndtr
from censored_gp.tails.elementary import HALF_LOG_2PI


class Gaussian(Likelihood):
    """Y ~ N(mean, scale^2)."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mean", "identity", "mean"),
        Parameter("scale", "exp", "scale"),
    )
    support: ClassVar[Support] = REAL
    rescale: ClassVar = "affine"

    def log_density(
        self,
        y: Float[ArrayLike, "..."],
        mean: Float[ArrayLike, "..."],
        scale: Float[ArrayLike, "..."],
    ) -> Float[Array, "..."]:
        """Return -(y - mean)^2 / (2 scale^2) - log(scale sqrt(2 pi))."""
        return -0.5 * ((y - mean) / scale) ** 2 - jnp.log(scale) - HALF_LOG_2PI

    def log_cdf(
        self,
        y: Float[ArrayLike, "..."],
        mean: Float[ArrayLike, "..."],
        scale: Float[ArrayLike, "..."],
    ) -> Float[Array, "..."]:
        """Return log Phi((y - mean) / scale)."""
        return log_ndtr((y - mean) / scale)

    def log_survival(
        self,
        y: Float[ArrayLike, "..."],
        mean: Float[ArrayLike, "..."],
        scale: Float[ArrayLike, "..."],
    ) -> Float[Array, "..."]:
        """Return log Phi((mean - y) / scale)."""
        return log_ndtr((mean - y) / scale)

    def mean(
        self, mean: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]
    ) -> Float[Array, "..."]:
        """Return the mean."""
        return mean + jnp.zeros_like(scale)

    def variance(
        self, mean: Float[ArrayLike, "..."], scale: Float[ArrayLike, "..."]
    ) -> Float[Array, "..."]:
        """Return scale^2."""
        return jnp.square(scale) + jnp.zeros_like(mean)

    def quantile(
        self,
        u: Float[ArrayLike, "..."],
        mean: Float[ArrayLike, "..."],
        scale: Float[ArrayLike, "..."],
    ) -> Float[Array, "..."]:
        """Return mean + scale Phi^-1(u)."""
        return mean + scale * ndtri(u)

    def sample(
        self,
        key: Key[Array, ""],
        shape: tuple[int, ...],
        mean: Float[ArrayLike, "..."],
        scale: Float[ArrayLike, "..."],
    ) -> Float[Array, "..."]:
        """Return normal draws."""
        return mean + scale * jax.random.normal(key, shape, float)
