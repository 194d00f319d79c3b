"""Families of counts."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key

from censored_gp.likelihoods.base import Likelihood, Parameter, finite
from censored_gp.likelihoods.support import COUNTS, Support
from censored_gp.tails import log_gamma_tails, log_poisson


class Poisson(Likelihood):
    """Y ~ Poisson(rate)."""

    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("rate", "exp", "mean"),)
    support: ClassVar[Support] = COUNTS

    def log_density(
        self, y: Float[ArrayLike, "..."], rate: Float[ArrayLike, "..."]
    ) -> Float[Array, "..."]:
        """Return y log(rate) - rate - log(y!)."""
        return log_poisson(y, rate)

    def log_cdf(
        self, y: Float[ArrayLike, "..."], rate: Float[ArrayLike, "..."]
    ) -> Float[Array, "..."]:
        """Return log Q(y + 1, rate)."""
        return self.log_tails(y, rate)[0]

    def log_survival(
        self, y: Float[ArrayLike, "..."], rate: Float[ArrayLike, "..."]
    ) -> Float[Array, "..."]:
        """Return log P(y + 1, rate)."""
        return self.log_tails(y, rate)[1]

    def log_tails(
        self, y: Float[ArrayLike, "..."], rate: Float[ArrayLike, "..."]
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Return both tails, which are the incomplete gamma functions of shape y + 1."""
        y = jnp.asarray(y)
        survival, cdf = log_gamma_tails(jnp.maximum(y, 0.0) + 1.0, rate)
        return jnp.where(y < 0, -jnp.inf, cdf), jnp.where(y < 0, 0.0, survival)

    def mean(self, rate: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Return the rate."""
        return jnp.asarray(rate)

    def variance(self, rate: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Return the rate."""
        return jnp.asarray(rate)

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...], rate: Float[ArrayLike, "..."]
    ) -> Float[Array, "..."]:
        """Return Poisson draws."""
        return jax.random.poisson(key, rate, shape, dtype=int).astype(float)

    def start(self, values: Float[np.ndarray, "n"]) -> tuple[float, ...]:
        """Return the mean count, not less than a tenth."""
        return (max(float(np.mean(finite(values))), 0.1),)
