"""Families on the whole line."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Key

from censored_gp.likelihoods.base import Likelihood, Parameter, Values, finite, spread
from censored_gp.likelihoods.support import REAL, Support
from censored_gp.tails import log_ndtr, log_student, log_student_tails
from censored_gp.tails.elementary import HALF_LOG_2PI


class Gaussian(Likelihood):
    """Y ~ N(mean, scale^2)."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mean", "identity", "mean"),
        Parameter("scale", "exp", "scale"),
    )
    support: ClassVar[Support] = REAL
    rescale: ClassVar = "affine"

    def log_density(self, y: Values, mean: Values, scale: Values) -> Float[Array, "*#batch"]:
        """Return -(y - mean)^2 / (2 scale^2) - log(scale sqrt(2 pi))."""
        return -0.5 * ((y - mean) / scale) ** 2 - jnp.log(scale) - HALF_LOG_2PI

    def log_cdf(self, y: Values, mean: Values, scale: Values) -> Float[Array, "*#batch"]:
        """Return log Phi((y - mean) / scale)."""
        return log_ndtr((y - mean) / scale)

    def log_survival(self, y: Values, mean: Values, scale: Values) -> Float[Array, "*#batch"]:
        """Return log Phi((mean - y) / scale)."""
        return log_ndtr((mean - y) / scale)

    def mean(self, mean: Values, scale: Values) -> Float[Array, "*#batch"]:
        """Return the mean."""
        return mean + jnp.zeros_like(scale)

    def variance(self, mean: Values, scale: Values) -> Float[Array, "*#batch"]:
        """Return scale^2."""
        return jnp.square(scale) + jnp.zeros_like(mean)

    def quantile(self, u: Values, mean: Values, scale: Values) -> Float[Array, "*#batch"]:
        """Return mean + scale Phi^-1(u)."""
        return mean + scale * ndtri(u)

    def moments_within(
        self, lower: Values, upper: Values, mean: Values, scale: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return the moments of the truncated normal: the closed form, where it does not cancel."""
        values = jnp.broadcast_arrays(lower, upper, mean, scale)
        a, b = (values[0] - values[2]) / values[3], (values[1] - values[2]) / values[3]
        far = jnp.maximum(a, -b) > 20.0
        bounded = jnp.isfinite(a) | jnp.isfinite(b)
        return lax.cond(
            jnp.any(bounded & (far | (b - a < 0.1))),
            super().moments_within,
            _truncated_normal,
            *values,
        )

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...], mean: Values, scale: Values
    ) -> Float[Array, "*#batch"]:
        """Return normal draws."""
        return mean + scale * jax.random.normal(key, shape, float)


class StudentT(Likelihood):
    """Y = location + scale T, T of Student's t with df degrees of freedom: bears outliers."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("location", "identity", "mean"),
        Parameter("scale", "exp", "scale"),
        Parameter("df", "exp", "shape"),
    )
    support: ClassVar[Support] = REAL
    rescale: ClassVar = "affine"

    def log_density(
        self, y: Values, location: Values, scale: Values, df: Values
    ) -> Float[Array, "*#batch"]:
        """Return log f(t) - log(scale) at t = (y - location) / scale."""
        return log_student((y - location) / scale, df) - jnp.log(scale)

    def log_cdf(
        self, y: Values, location: Values, scale: Values, df: Values
    ) -> Float[Array, "*#batch"]:
        """Return log P(T <= t)."""
        return self.log_tails(y, location, scale, df)[0]

    def log_survival(
        self, y: Values, location: Values, scale: Values, df: Values
    ) -> Float[Array, "*#batch"]:
        """Return log P(T > t)."""
        return self.log_tails(y, location, scale, df)[1]

    def log_tails(
        self, y: Values, location: Values, scale: Values, df: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return both tails of T at t = (y - location) / scale."""
        return log_student_tails((y - location) / scale, df)

    def mean(self, location: Values, scale: Values, df: Values) -> Float[Array, "*#batch"]:
        """Return the location; there is no mean unless df > 1."""
        return jnp.where(jnp.asarray(df) > 1, location, jnp.nan) + jnp.zeros_like(scale)

    def variance(self, location: Values, scale: Values, df: Values) -> Float[Array, "*#batch"]:
        """Return scale^2 df / (df - 2), infinite unless df > 2."""
        df = jnp.asarray(df)
        finite_variance = jnp.square(scale) * df / jnp.where(df > 2, df - 2.0, 1.0)
        return jnp.where(df > 2, finite_variance, jnp.inf) + jnp.zeros_like(location)

    def sample(
        self,
        key: Key[Array, ""],
        shape: tuple[int, ...],
        location: Values,
        scale: Values,
        df: Values,
    ) -> Float[Array, "*#batch"]:
        """Return draws of Student's t."""
        return location + scale * jax.random.t(key, df, shape, float)

    def start(self, values: Float[np.ndarray, " N"]) -> tuple[float, ...]:
        """Return median, standard deviation and 5 degrees of freedom."""
        values = finite(values)
        return float(np.median(values)), spread(values), 5.0


def _truncated_normal(
    lower: Float[Array, "*#batch"],
    upper: Float[Array, "*#batch"],
    mean: Float[Array, "*#batch"],
    scale: Float[Array, "*#batch"],
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return mean + scale (p_a - p_b) and scale^2 (1 + a p_a - b p_b - (p_a - p_b)^2).

    a and b are the standardised bounds, p the normal density there over the mass between.
    """
    log_mass = Gaussian().log_likelihood(lower, upper, mean, scale)
    bounds = []
    for bound in (lower, upper):
        z = jnp.where(jnp.isfinite(bound), (bound - mean) / scale, 0.0)
        weight = jnp.exp(-0.5 * z**2 - HALF_LOG_2PI - log_mass)
        bounds.append((z, jnp.where(jnp.isfinite(bound), weight, 0.0)))
    (a, p), (b, q) = bounds
    return mean + scale * (p - q), scale**2 * (1.0 + a * p - b * q - (p - q) ** 2)
