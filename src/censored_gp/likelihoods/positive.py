"""Families of positive numbers: log-normal, gamma, exponential and Weibull."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, ndtri
from jaxtyping import Array

from censored_gp.likelihoods.base import Likelihood, Parameter, Shape, Values, finite, spread
from censored_gp.likelihoods.real import expected_normal
from censored_gp.likelihoods.special.elementary import HALF_LOG_2PI, Batch, Pair, log1mexp, log_ndtr
from censored_gp.likelihoods.special.gamma import log_gamma_kernel, log_gamma_tails
from censored_gp.likelihoods.special.normal import log_normal_interval
from censored_gp.likelihoods.support import POSITIVE
from censored_gp.likelihoods.truncation import Kind, log_mass, moments_by_powers


class LogNormal(Likelihood):
    """log Y ~ N(location, scale^2).

    >>> print(f"log P(Y <= 1) = {LogNormal().log_cdf(1.0, 0.0, 0.5):.2f}")
    log P(Y <= 1) = -0.69
    """

    parameters = (Parameter("location", "identity", "mean"), Parameter("scale", "exp", "scale"))
    support = POSITIVE
    rescale = "scale"
    normal = True

    def log_density(self, y: Batch, location: Batch, scale: Batch) -> Batch:
        """Return the normal log density of log y, less log y."""
        z = (jnp.log(y) - location) / scale
        return -0.5 * z**2 - HALF_LOG_2PI - jnp.log(scale) - jnp.log(y)

    def log_tails(self, y: Batch, location: Batch, scale: Batch) -> Pair:
        """Return log Phi(z) and log Phi(-z) at z = (log y - location) / scale."""
        z = (jnp.log(y) - location) / scale
        return log_ndtr(z), log_ndtr(-z)

    def log_interval(self, lower: Batch, upper: Batch, location: Batch, scale: Batch) -> Batch:
        """Return that of Z = (log Y - location) / scale between the ends."""
        lower, upper, location, scale = jnp.broadcast_arrays(lower, upper, location, scale)
        ends = jnp.log(lower), jnp.log(upper)
        # Ends that are near each other have logs that cancel, and far ones a ratio that overflows.
        near = upper < 2.0 * lower
        excess = jnp.where(near, upper - lower, 0.0) / lower
        half = 0.5 * jnp.where(near, jnp.log1p(excess), ends[1] - ends[0]) / scale
        return log_normal_interval(*((end - location) / scale for end in ends), half)

    def expected_log_density(
        self, y: Batch, mean: Sequence[Batch], variance: Sequence[Batch | None]
    ) -> Batch | None:
        """Return `expected_normal` of log y."""
        at = self.log_density(y, *self.theta(*mean))
        return expected_normal(self, at, jnp.log(y), mean, variance)

    def mean(self, location: Batch, scale: Batch) -> Batch:
        """Return exp(location + scale^2 / 2)."""
        return jnp.exp(location + 0.5 * jnp.square(scale))

    def variance(self, location: Batch, scale: Batch) -> Batch:
        """Return (exp(scale^2) - 1) exp(2 location + scale^2)."""
        square = jnp.square(scale)
        return jnp.expm1(square) * jnp.exp(2.0 * jnp.asarray(location) + square)

    def quantile(self, u: Batch, location: Batch, scale: Batch) -> Batch:
        """Return exp(location + scale Phi^-1(u))."""
        return jnp.exp(location + scale * ndtri(u))

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return moments given bounds: a power m moves the location by m scale^2."""
        lower, upper, location, scale = jnp.broadcast_arrays(lower, upper, *theta)
        square = jnp.square(scale)
        moved = jnp.stack([location + m * square for m in range(3)])
        masses = log_mass(self, lower, upper, moved, scale, kind=kind)
        raw = [m * location + 0.5 * m**2 * square for m in (1, 2)]
        return moments_by_powers(self, (lower, upper), (location, scale), masses, raw)

    def rescaled(self, shift: Batch, scale: Batch, *theta: Batch) -> tuple[Batch, ...]:
        """Return the parameters of scale Y: the location is that of a logarithm."""
        location, own = theta
        return location + jnp.log(scale), jnp.asarray(own)

    def as_location(self, values: Values) -> Values:
        """Return the logs of the values."""
        return np.log(self.support.nudge(values))

    def start(self, values: Values) -> tuple[float, ...]:
        """Return mean and standard deviation of the logs."""
        logs = self.as_location(finite(values))
        return float(np.mean(logs)), max(spread(logs), 0.05)


class Gamma(Likelihood):
    """Y ~ Gamma of the given mean and shape; its variance is mean^2 / shape.

    >>> print(f"variance {Gamma().variance(6.0, 4.0):.1f}")
    variance 9.0
    >>> print(f"log P(Y >= 600) = {Gamma().log_at_least(600.0, 6.0, 4.0):.2f}")
    log P(Y >= 600) = -383.81
    """

    parameters = (Parameter("mean", "exp", "mean"), Parameter("shape", "exp", "scale"))
    support = POSITIVE
    rescale = "scale"

    def log_density(self, y: Batch, mean: Batch, shape: Batch) -> Batch:
        """Return shape log(x) - x - log Gamma(shape) - log y at x = shape y / mean."""
        return log_gamma_kernel(jnp.asarray(shape), shape * (y / mean)) - jnp.log(y)

    def expected_log_density(
        self, y: Batch, mean: Sequence[Batch], variance: Sequence[Batch | None]
    ) -> Batch | None:
        """Return log p(y | m) - x (exp(v / 2) - 1) at x = shape y / m, if the shape is constant."""
        if self.links[0].name != "exp" or variance[0] is None or variance[1] is not None:
            return None
        own, shape = self.theta(*mean)
        excess = shape * (y / own) * jnp.expm1(0.5 * variance[0])
        return self.log_density(y, own, shape) - excess

    def log_tails(self, y: Batch, mean: Batch, shape: Batch) -> Pair:
        """Return both tails, which are the incomplete gamma functions."""
        return log_gamma_tails(shape, shape * (y / mean))

    def mean(self, mean: Batch, shape: Batch) -> Batch:
        """Return the mean."""
        return mean + jnp.zeros_like(shape)

    def variance(self, mean: Batch, shape: Batch) -> Batch:
        """Return mean^2 / shape."""
        return jnp.square(mean) / shape

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return moments given bounds: a power m adds m to the shape."""
        lower, upper, mean, shape = jnp.broadcast_arrays(lower, upper, *theta)
        growth = jnp.stack([1.0 + m / shape for m in range(3)])
        masses = log_mass(self, lower, upper, mean * growth, shape * growth, kind=kind)
        raw = jnp.log(mean), 2.0 * jnp.log(mean) + jnp.log(growth[1])
        return moments_by_powers(self, (lower, upper), (mean, shape), masses, raw)

    def sample(self, key: Array, shape: Shape, mean: Batch, concentration: Batch) -> Batch:
        """Return Gamma draws."""
        return mean * jax.random.gamma(key, concentration, shape, float) / concentration

    def start(self, values: Values) -> tuple[float, ...]:
        """Return the mean and the shape of the same variance, within bounds."""
        values = self.as_location(finite(values))
        mean = float(np.mean(values))
        return mean, float(np.clip((mean / spread(values)) ** 2, 0.1, 100.0))


class Exponential(Likelihood):
    """Y ~ Exponential of the given mean.

    >>> print(f"log P(Y >= 3000) = {Exponential().log_at_least(3000.0, 2.0):.0f}")
    log P(Y >= 3000) = -1500
    """

    parameters = (Parameter("mean", "exp", "mean"),)
    support = POSITIVE
    rescale = "scale"

    def log_density(self, y: Batch, mean: Batch) -> Batch:
        """Return -y / mean - log(mean)."""
        return -jnp.asarray(y) / mean - jnp.log(mean)

    def log_survival(self, y: Batch, mean: Batch) -> Batch:
        """Return -y / mean."""
        return -jnp.asarray(y) / mean

    def mean(self, mean: Batch) -> Batch:
        """Return the mean."""
        return jnp.asarray(mean)

    def variance(self, mean: Batch) -> Batch:
        """Return mean^2."""
        return jnp.square(mean)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return those of a Gamma of shape 1, which is the same law."""
        return Gamma().moments_within(lower, upper, *theta, jnp.ones(()), kind=kind)

    def quantile(self, u: Batch, mean: Batch) -> Batch:
        """Return -mean log(1 - u)."""
        return -mean * jnp.log1p(-jnp.asarray(u))


class Weibull(Likelihood):
    """Y with P(Y > y) = exp(-(y / scale)^shape).

    >>> print(f"log P(Y >= 6) = {Weibull().log_at_least(6.0, 2.0, 1.5):.2f}")
    log P(Y >= 6) = -5.20
    """

    parameters = (Parameter("scale", "exp", "mean"), Parameter("shape", "exp", "scale"))
    support = POSITIVE
    rescale = "scale"

    def log_density(self, y: Batch, scale: Batch, shape: Batch) -> Batch:
        """Return log(shape / y) + log H - H with H = (y / scale)^shape."""
        log_hazard = shape * jnp.log(y / scale)
        return jnp.log(shape) - jnp.log(y) + log_hazard - jnp.exp(log_hazard)

    def log_tails(self, y: Batch, scale: Batch, shape: Batch) -> Pair:
        """Return log(1 - exp(-H)), which is log H - H/2 where H is tiny, and -H."""
        log_hazard = shape * jnp.log(y / scale)
        tiny, hazard = log_hazard < -20.0, jnp.exp(log_hazard)
        ordinary = log1mexp(-jnp.where(tiny, 1.0, hazard))
        return jnp.where(tiny, log_hazard - 0.5 * hazard, ordinary), -hazard

    def mean(self, scale: Batch, shape: Batch) -> Batch:
        """Return scale Gamma(1 + 1/shape)."""
        return scale * jnp.exp(gammaln(1.0 + 1.0 / jnp.asarray(shape)))

    def variance(self, scale: Batch, shape: Batch) -> Batch:
        """Return scale^2 [Gamma(1 + 2/shape) - Gamma(1 + 1/shape)^2]."""
        reciprocal = 1.0 / jnp.asarray(shape)
        log_mean = gammaln(1.0 + reciprocal)
        log_square = gammaln(1.0 + 2.0 * reciprocal)
        return jnp.square(scale * jnp.exp(log_mean)) * jnp.expm1(log_square - 2.0 * log_mean)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return moments given bounds, by those of H = (Y / scale)^shape ~ Gamma of shape 1."""
        lower, upper, scale, shape = jnp.broadcast_arrays(lower, upper, *theta)
        ends = [(jnp.maximum(end, 0.0) / scale) ** shape for end in (lower, upper)]
        powers = jnp.stack([1.0 + m / shape for m in range(3)])
        masses = log_mass(Gamma(), *ends, powers, powers, kind=kind)
        raw = [m * jnp.log(scale) + gammaln(powers[m]) for m in (1, 2)]
        return moments_by_powers(self, (lower, upper), (scale, shape), masses, raw)

    def quantile(self, u: Batch, scale: Batch, shape: Batch) -> Batch:
        """Return scale (-log(1 - u))^(1/shape)."""
        return scale * (-jnp.log1p(-jnp.asarray(u))) ** (1.0 / jnp.asarray(shape))

    def start(self, values: Values) -> tuple[float, ...]:
        """Return the mean and the shape that gives the logs their spread, pi / sqrt(6) / shape."""
        values = self.as_location(finite(values))
        shape = np.pi / np.sqrt(6.0) / spread(np.log(values))
        return float(np.mean(values)), float(np.clip(shape, 0.3, 10.0))
