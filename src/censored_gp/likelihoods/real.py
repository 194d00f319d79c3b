"""Families on the whole line: Gaussian and Student's t."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array

from censored_gp.likelihoods.base import Likelihood, Parameter, Shape, Values, finite, spread
from censored_gp.likelihoods.special.beta import log_student, log_student_tails
from censored_gp.likelihoods.special.elementary import HALF_LOG_2PI, Batch, Pair, log_ndtr
from censored_gp.likelihoods.special.normal import log_normal_interval
from censored_gp.likelihoods.support import REAL
from censored_gp.likelihoods.truncation import Kind, moments_by_stein

# Bounds further out than this (in standard deviations) have tails near the least numbers.
FAR = 20.0


def expected_normal(
    family: Likelihood,
    log_density: Batch,
    y: Batch,
    mean: Sequence[Batch],
    variance: Sequence[Batch | None],
) -> Batch | None:
    """Return log N(y | m, s^2) + [(y - m)^2 - ((y - m)^2 + v) exp(2 w)] / (2 s^2), s = exp(g).

    Here m, v and g, w are means and variances of location and log scale, and the log density at
    their means is given. None for other links.
    """
    location, scale = (link.name for link in family.links)
    if location != "identity" or scale != "exp":
        return None
    v, w = (jnp.asarray(0.0) if own is None else own for own in variance)
    square = jnp.square(y - mean[0])
    return log_density - 0.5 * (square * jnp.expm1(2.0 * w) + v * jnp.exp(2.0 * w)) * jnp.exp(
        -2.0 * jnp.asarray(mean[1])
    )


class Gaussian(Likelihood):
    """Y ~ N(mean, scale^2).

    >>> print(f"log P(Y >= 40) = {Gaussian().log_at_least(40.0, 0.0, 1.0):.2f}")
    log P(Y >= 40) = -804.61
    """

    parameters = (Parameter("mean", "identity", "mean"), Parameter("scale", "exp", "scale"))
    support = REAL
    rescale = "affine"
    additive = True
    normal = True

    def log_density(self, y: Batch, mean: Batch, scale: Batch) -> Batch:
        """Return -(y - mean)^2 / (2 scale^2) - log(scale sqrt(2 pi))."""
        return -0.5 * ((y - mean) / scale) ** 2 - jnp.log(scale) - HALF_LOG_2PI

    def log_tails(self, y: Batch, mean: Batch, scale: Batch) -> Pair:
        """Return log Phi(z) and log Phi(-z) at z = (y - mean) / scale."""
        z = (y - mean) / scale
        return log_ndtr(z), log_ndtr(-z)

    def log_interval(self, lower: Batch, upper: Batch, mean: Batch, scale: Batch) -> Batch:
        """Return log P of Z = (Y - mean) / scale between the ends: far quicker than two tails."""
        half = (0.5 * upper - 0.5 * lower) / scale
        return log_normal_interval((lower - mean) / scale, (upper - mean) / scale, half)

    def expected_log_density(
        self, y: Batch, mean: Sequence[Batch], variance: Sequence[Batch | None]
    ) -> Batch | None:
        """Return `expected_normal` of y."""
        return expected_normal(self, self.log_density(y, *self.theta(*mean)), y, mean, variance)

    def mean(self, mean: Batch, scale: Batch) -> Batch:
        """Return the mean."""
        return mean + jnp.zeros_like(scale)

    def variance(self, mean: Batch, scale: Batch) -> Batch:
        """Return scale^2."""
        return jnp.square(scale) + jnp.zeros_like(mean)

    def quantile(self, u: Batch, mean: Batch, scale: Batch) -> Batch:
        """Return mean + scale Phi^-1(u)."""
        return mean + scale * ndtri(u)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return the moments of the truncated normal; its Stein kernel is scale^2."""
        return moments_by_stein(self, (lower, upper), theta, 0.0, kind)

    def quantile_within(self, u: Batch, lower: Batch, upper: Batch, *theta: Batch) -> Batch:
        """Return it from the smaller of two tails in closed form; far out, by the search."""
        u, lower, upper, mean, scale = jnp.broadcast_arrays(u, lower, upper, *theta)
        a, b = (lower - mean) / scale, (upper - mean) / scale
        mass = jnp.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        below, above = ndtr(a) + u * mass, ndtr(-b) + (1.0 - u) * mass
        tail = ndtri(jnp.minimum(below, above))
        y = jnp.clip(mean + scale * jnp.where(below < above, tail, -tail), lower, upper)
        far, search = jnp.maximum(a, -b) > FAR, super().quantile_within
        return jax.lax.cond(
            jnp.any(far), lambda: jnp.where(far, search(u, lower, upper, mean, scale), y), lambda: y
        )

    def sample(self, key: Array, shape: Shape, mean: Batch, scale: Batch) -> Batch:
        """Return normal draws."""
        return mean + scale * jax.random.normal(key, shape, float)

    def exposed(self, share: Batch, mean: Batch, scale: Batch) -> tuple[Batch, ...]:
        """Return share mean and sqrt(share) scale: a Brownian motion with drift."""
        return share * jnp.asarray(mean), jnp.sqrt(share) * scale


class StudentT(Likelihood):
    """Y = location + scale T, T of Student's t with df degrees of freedom: bears outliers.

    By its link df stays above 1, so that there always is a mean; there is a variance above 2 only.

    >>> print(f"log P(Y >= 6) = {StudentT().log_at_least(6.0, 0.0, 1.0, 3.0):.2f}")
    log P(Y >= 6) = -5.37
    """

    parameters = (
        Parameter("location", "identity", "mean"),
        Parameter("scale", "exp", "scale"),
        Parameter("df", "exp_above_one", "shape"),
    )
    support = REAL
    rescale = "affine"

    def log_density(self, y: Batch, location: Batch, scale: Batch, df: Batch) -> Batch:
        """Return log f(t) - log(scale) at t = (y - location) / scale."""
        return log_student((y - location) / scale, df) - jnp.log(scale)

    def log_tails(self, y: Batch, location: Batch, scale: Batch, df: Batch) -> Pair:
        """Return both tails of T at t = (y - location) / scale."""
        return log_student_tails((y - location) / scale, df)

    def mean(self, location: Batch, scale: Batch, df: Batch) -> Batch:
        """Return the location; there is no mean unless df > 1."""
        # The link's 1 + exp(f) is rounded to 1 where f is far below zero.
        return jnp.where(jnp.asarray(df) >= 1, location, jnp.nan) + jnp.zeros_like(scale)

    def variance(self, location: Batch, scale: Batch, df: Batch) -> Batch:
        """Return scale^2 df / (df - 2), infinite unless df > 2."""
        df = jnp.asarray(df)
        finite_variance = jnp.square(scale) * df / jnp.where(df > 2, df - 2.0, 1.0)
        return jnp.where(df > 2, finite_variance, jnp.inf) + jnp.zeros_like(location)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return moments given bounds: a closed form where there is one bound, else the integral.

        The variance is infinite where either side is open and df is not above 2.
        """
        lower, upper, location, scale, df = jnp.broadcast_arrays(lower, upper, *theta)
        both = super().moments_within(lower, upper, *theta) if kind is None else (location, scale)
        above, below = jnp.isinf(upper), jnp.isinf(lower)
        end = jnp.where(above, lower - location, location - upper) / scale
        # Mirrored, an upper bound is a lower one.
        one = _student_beyond(jnp.where(above ^ below, end, 0.0), df)
        mean = location + jnp.where(above, scale, -scale) * one[0]
        mean = jnp.where(above ^ below, mean, jnp.where(above, self.mean(*theta), both[0]))
        spread = jnp.where(above ^ below, jnp.square(scale) * one[1], both[1])
        return mean, jnp.where(above & below, self.variance(*theta), spread)

    def sample(self, key: Array, shape: Shape, location: Batch, scale: Batch, df: Batch) -> Batch:
        """Return draws of Student's t."""
        return location + scale * jax.random.t(key, df, shape, float)

    def start(self, values: Values) -> tuple[float, ...]:
        """Return median, standard deviation and 5 degrees of freedom."""
        values = finite(values)
        return float(np.median(values)), spread(values), 5.0


def _student_beyond(a: Batch, df: Batch) -> Pair:
    """Return mean and variance of Student's T given T >= a.

    With g(t) = df / (df - 1) (1 + t^2 / df) f(t), whose slope is -t f(t), the mean is
    h = g(a) / P(T > a), and E[T^2 | T >= a] = (df - 1) / (df - 2) a h + df / (df - 2).
    """
    some, two = df > 1.0, df > 2.0
    less = jnp.where(some, df - 1.0, 1.0)
    log_ratio = log_student(a, df) - log_student_tails(a, df)[1] + jnp.log1p(a**2 / df)
    mean = df / less * jnp.exp(log_ratio)
    spread = (less * a * mean + df) / jnp.where(two, df - 2.0, 1.0) - mean**2
    return jnp.where(some, mean, jnp.inf), jnp.where(two, jnp.maximum(spread, 0.0), jnp.inf)
