"""Families of counts."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from censored_gp.likelihoods.base import Likelihood, Parameter, Values, finite
from censored_gp.likelihoods.special.beta import log_negative_binomial, log_odds_tails
from censored_gp.likelihoods.special.gamma import log_gamma_tails, log_poisson
from censored_gp.likelihoods.special.share import log_share
from censored_gp.likelihoods.support import COUNTS, REAL, Support
from censored_gp.likelihoods.truncation import Moments, moments_between, open_kinds


class Poisson(Likelihood):
    """Y ~ Poisson(rate).

    >>> print(f"log P(Y >= 100) = {Poisson().log_at_least(100.0, 0.5):.2f}")
    log P(Y >= 100) = -433.55
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("rate", "exp", "mean"),)
    support: ClassVar[Support] = COUNTS
    nugget: ClassVar[bool] = True

    def log_density(self, y: Values, rate: Values) -> Float[Array, "*#batch"]:
        """Return y log(rate) - rate - log(y!)."""
        return log_poisson(y, rate)

    def log_cdf(self, y: Values, rate: Values) -> Float[Array, "*#batch"]:
        """Return log Q(y + 1, rate)."""
        return self.log_tails(y, rate)[0]

    def log_survival(self, y: Values, rate: Values) -> Float[Array, "*#batch"]:
        """Return log P(y + 1, rate)."""
        return self.log_tails(y, rate)[1]

    def log_tails(
        self, y: Values, rate: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return both tails, which are the incomplete gamma functions of shape y + 1."""
        survival, cdf = log_gamma_tails(jnp.maximum(y, 0.0) + 1.0, rate)
        return _from_zero(y, cdf, survival)

    def log_share(self, y: Values, rate: Values) -> Float[Array, "*#batch"]:
        """Return log P(Y > y) - log(rate), since P(k) / (k + 1) = P(k + 1) / rate."""
        return self.log_survival(y, rate) - jnp.log(rate)

    def mean(self, rate: Values) -> Float[Array, "*#batch"]:
        """Return the rate."""
        return jnp.asarray(rate)

    def variance(self, rate: Values) -> Float[Array, "*#batch"]:
        """Return the rate."""
        return jnp.asarray(rate)

    def moments_within(self, lower: Values, upper: Values, rate: Values) -> Moments:
        """Return E and Var by k P(k) = rate P(k - 1), applied once and twice."""
        kinds = open_kinds(lower, upper)
        lower, upper, rate = jnp.broadcast_arrays(lower, upper, rate)
        # In one call, as tails take long to compile.
        ends = (jnp.stack([b, b - 1.0, b - 2.0]) for b in (lower, upper))
        masses = [*self.log_likelihood(*ends, rate, kinds=kinds)]
        return moments_between(
            lambda k: self.log_density(k, rate),
            lower,
            upper,
            masses,
            (jnp.log(rate), 2.0 * jnp.log(rate)),
            jnp.floor(rate),
            lambda k: 1.0 / (k + 1.0),
        )

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...], rate: Values
    ) -> Float[Array, "*#batch"]:
        """Return Poisson draws."""
        return jax.random.poisson(key, rate, shape, dtype=int).astype(float)

    def start(self, values: Float[np.ndarray, " N"]) -> tuple[float, ...]:
        """Return the mean count, not less than a tenth."""
        return (max(float(np.mean(finite(values))), 0.1),)


class NegativeBinomial(Likelihood):
    """Y ~ negative binomial of the given mean and dispersion: variance mean + dispersion mean^2.

    P(k) = C(k + r - 1, k) p^r (1 - p)^k with r = 1 / dispersion and p = 1 / (1 + dispersion mean).
    The limit of no dispersion is Poisson, and is reached without loss of digits.

    >>> print(f"variance {NegativeBinomial().variance(4.0, 0.5):.0f}")
    variance 12
    >>> print(f"log P(Y = 0) = {NegativeBinomial().log_density(0.0, 4.0, 0.5):.2f}")
    log P(Y = 0) = -2.20
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mean", "exp", "mean"),
        Parameter("dispersion", "exp", "scale"),
    )
    support: ClassVar[Support] = COUNTS
    # Its log probability is all but straight where the latent functions are large or small.
    product_nodes: ClassVar[int | None] = 6

    def log_density(self, y: Values, mean: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return log P(y)."""
        return log_negative_binomial(y, mean, dispersion)

    def log_cdf(self, y: Values, mean: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return log I_p(r, y + 1)."""
        return self.log_tails(y, mean, dispersion)[0]

    def log_survival(self, y: Values, mean: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return log I_(1-p)(y + 1, r)."""
        return self.log_tails(y, mean, dispersion)[1]

    def log_tails(
        self, y: Values, mean: Values, dispersion: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return both tails, which are incomplete beta functions."""
        survival, cdf = log_odds_tails(jnp.maximum(y, 0.0) + 1.0, mean, dispersion)
        return _from_zero(y, cdf, survival)

    def log_share(self, y: Values, mean: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return the log of the probability of y averaged over the shares of the mean."""
        return log_share(y, mean, dispersion)

    def mean(self, mean: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return the mean."""
        return mean + jnp.zeros_like(dispersion)

    def variance(self, mean: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return mean + dispersion mean^2."""
        return mean + dispersion * jnp.square(mean)

    def moments_within(
        self, lower: Values, upper: Values, mean: Values, dispersion: Values
    ) -> Moments:
        """Return E and Var by k P_r(k) = mean P_(r+1)(k - 1), applied once and twice."""
        kinds = open_kinds(lower, upper)
        lower, upper, mean, dispersion = jnp.broadcast_arrays(lower, upper, mean, dispersion)
        growth = jnp.stack([jnp.ones_like(dispersion), 1.0 + dispersion, 1.0 + 2.0 * dispersion])
        ends = (jnp.stack([b, b - 1.0, b - 2.0]) for b in (lower, upper))
        # In one call, as tails take long to compile.
        theta = mean * growth, dispersion / growth
        masses = [*self.log_likelihood(*ends, *theta, kinds=kinds)]
        first = jnp.log(mean)
        return moments_between(
            lambda k: self.log_density(k, mean, dispersion),
            lower,
            upper,
            masses,
            (first, 2.0 * first + jnp.log1p(dispersion)),
            jnp.floor(jnp.maximum(mean * (1.0 - dispersion), 0.0)),
            lambda k: 1.0 / (k + 1.0) - dispersion / (1.0 + dispersion * k),
        )

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...], mean: Values, dispersion: Values
    ) -> Float[Array, "*#batch"]:
        """Return Poisson draws whose rates are Gamma draws."""
        rate_key, count_key = jax.random.split(key)
        r = 1.0 / jnp.asarray(dispersion)
        rate = mean * jax.random.gamma(rate_key, r, shape, float) / r
        return jax.random.poisson(count_key, rate, shape, dtype=int).astype(float)

    def start(self, values: Float[np.ndarray, " N"]) -> tuple[float, ...]:
        """Return the mean count and the dispersion of the same variance, within bounds."""
        values = finite(values)
        mean = max(float(np.mean(values)), 0.1)
        return mean, float(np.clip((np.var(values) - mean) / mean**2, 0.05, 5.0))


class PaperNegativeBinomial(Likelihood):
    """The paper's own parameterisation, literally: r = 1/dispersion, log-odds of p = mu dispersion.

    P(k) = C(k + r - 1, k) p^r (1 - p)^k, Eq. (16), so that the mean
    exp(-mu dispersion) / dispersion falls as mu grows. Kept for comparison;
    `NegativeBinomial` has the mean as its parameter.

    >>> print(f"mean {PaperNegativeBinomial().mean(0.0, 0.5):.0f}")
    mean 2
    >>> print(f"mean {PaperNegativeBinomial().mean(2.0, 0.5):.2f}")
    mean 0.74
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mu", "exp", "mean", REAL),
        Parameter("dispersion", "exp", "scale"),
    )
    support: ClassVar[Support] = COUNTS

    def log_density(self, y: Values, mu: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return log P(y)."""
        return log_negative_binomial(y, self.mean(mu, dispersion), dispersion)

    def log_cdf(self, y: Values, mu: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return log I_p(r, y + 1)."""
        return self.log_tails(y, mu, dispersion)[0]

    def log_survival(self, y: Values, mu: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return log I_(1-p)(y + 1, r)."""
        return self.log_tails(y, mu, dispersion)[1]

    def log_tails(
        self, y: Values, mu: Values, dispersion: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return both tails, which are incomplete beta functions."""
        return NegativeBinomial().log_tails(y, self.mean(mu, dispersion), dispersion)

    def log_share(self, y: Values, mu: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return that of the same count in its other parameters."""
        return log_share(y, self.mean(mu, dispersion), dispersion)

    def mean(self, mu: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return r (1 - p) / p = exp(-mu dispersion) / dispersion."""
        return jnp.exp(-jnp.asarray(mu) * dispersion) / dispersion

    def variance(self, mu: Values, dispersion: Values) -> Float[Array, "*#batch"]:
        """Return E[Y] + dispersion E[Y]^2."""
        return NegativeBinomial().variance(self.mean(mu, dispersion), dispersion)

    def moments_within(
        self, lower: Values, upper: Values, mu: Values, dispersion: Values
    ) -> Moments:
        """Return the moments of the same count in its other parameters."""
        mean = self.mean(mu, dispersion)
        return NegativeBinomial().moments_within(lower, upper, mean, dispersion)

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...], mu: Values, dispersion: Values
    ) -> Float[Array, "*#batch"]:
        """Return draws of the same count in its other parameters."""
        return NegativeBinomial().sample(key, shape, self.mean(mu, dispersion), dispersion)

    def as_location(self, values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Return the mu that gives each count as its mean, at the starting dispersion."""
        _, dispersion = self.start(values)
        largest = np.exp(-0.1) / dispersion
        return -np.log(np.minimum(self.support.nudge(values), largest) * dispersion) / dispersion

    def start(self, values: Float[np.ndarray, " N"]) -> tuple[float, ...]:
        """Return mu and dispersion of the observed mean; mu > 0 needs dispersion < 1 / mean."""
        mean, dispersion = NegativeBinomial().start(values)
        dispersion = min(dispersion, np.exp(-1.0) / mean)
        return float(-np.log(mean * dispersion) / dispersion), float(dispersion)


def _from_zero(
    y: Values, cdf: Float[Array, "*#batch"], survival: Float[Array, "*#batch"]
) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
    """Return the log tails of a count, which is never below zero."""
    below = jnp.asarray(y) < 0
    return jnp.where(below, -jnp.inf, cdf), jnp.where(below, 0.0, survival)
