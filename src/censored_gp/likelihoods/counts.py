"""Families of counts: Poisson and negative binomial (Eq. 16)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from censored_gp.likelihoods.base import Likelihood, Parameter, Shape, Values, finite
from censored_gp.likelihoods.partial import log_share
from censored_gp.likelihoods.special.beta import log_negative_binomial, log_odds_tails
from censored_gp.likelihoods.special.elementary import Batch, Pair
from censored_gp.likelihoods.special.gamma import log_gamma_tails, log_poisson
from censored_gp.likelihoods.support import COUNTS, REAL
from censored_gp.likelihoods.truncation import Kind, moments_by_stein

# JAX draws in single precision, which shows above this rate; by Cornish and Fisher, with the
# skewness, draws are then as good as exact.
LARGE = 1e4


def draw_poisson(key: Array, rate: Batch, shape: Shape) -> Batch:
    """Return Poisson draws of any finite rate, as floating-point numbers; of others NaN."""
    rate = jnp.asarray(rate)
    small = rate <= LARGE
    few = jax.random.poisson(key, jnp.where(small, rate, 1.0), shape, dtype=int)
    z = jax.random.normal(key, shape, float)
    many = jnp.floor(rate + jnp.sqrt(rate) * z + (z**2 - 1.0) / 6.0 + 0.5)
    return jnp.where(small, few, many)


class Poisson(Likelihood):
    """Y ~ Poisson(rate).

    >>> print(f"log P(Y >= 100) = {Poisson().log_at_least(100.0, 0.5):.2f}")
    log P(Y >= 100) = -433.55
    """

    parameters = (Parameter("rate", "exp", "mean"),)
    support = COUNTS
    nugget = True
    additive = True

    def log_density(self, y: Batch, rate: Batch) -> Batch:
        """Return y log(rate) - rate - log(y!)."""
        return log_poisson(y, rate)

    def log_tails(self, y: Batch, rate: Batch) -> Pair:
        """Return both tails, which are the incomplete gamma functions of shape y + 1."""
        survival, cdf = log_gamma_tails(jnp.asarray(y) + 1.0, rate)
        return cdf, survival

    def expected_log_density(
        self, y: Batch, mean: Sequence[Batch], variance: Sequence[Batch | None]
    ) -> Batch | None:
        """Return log p(y | r) - r (exp(v / 2) - 1), r = exp(m), of the exponential link."""
        if self.links[0].name != "exp" or variance[0] is None:
            return None
        (rate,) = self.theta(*mean)
        return self.log_density(y, rate) - rate * jnp.expm1(0.5 * variance[0])

    def mean(self, rate: Batch) -> Batch:
        """Return the rate."""
        return jnp.asarray(rate)

    def variance(self, rate: Batch) -> Batch:
        """Return the rate."""
        return jnp.asarray(rate)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return E and Var given bounds; the Stein kernel is the rate."""
        return moments_by_stein(self, (lower, upper), theta, 0.0, kind)

    def sample(self, key: Array, shape: Shape, rate: Batch) -> Batch:
        """Return Poisson draws."""
        return draw_poisson(key, rate, shape)

    def exposed(self, share: Batch, rate: Batch) -> tuple[Batch, ...]:
        """Return share rate."""
        return (share * jnp.asarray(rate),)

    def log_part(self, seen: Batch, rate: Batch) -> Batch:
        """Return log S(seen): P(k) / (k + 1) = P(k + 1) / rate."""
        return self.log_survival(seen, rate) - jnp.log(rate)

    def start(self, values: Values) -> tuple[float, ...]:
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

    parameters = (Parameter("mean", "exp", "mean"), Parameter("dispersion", "exp", "scale"))
    support = COUNTS
    # Its log probability is all but straight where the latent functions are large or small.
    product_nodes = 6
    additive = True

    def log_density(self, y: Batch, mean: Batch, dispersion: Batch) -> Batch:
        """Return log P(y)."""
        return log_negative_binomial(y, self.mean(mean, dispersion), dispersion)

    def log_tails(self, y: Batch, mean: Batch, dispersion: Batch) -> Pair:
        """Return both tails: log I_p(r, y + 1) and log I_(1-p)(y + 1, r)."""
        mean = self.mean(mean, dispersion)
        survival, cdf = log_odds_tails(jnp.asarray(y) + 1.0, mean, dispersion)
        return cdf, survival

    def mean(self, mean: Batch, dispersion: Batch) -> Batch:
        """Return the mean, of which all else is made."""
        return mean + jnp.zeros_like(dispersion)

    def variance(self, mean: Batch, dispersion: Batch) -> Batch:
        """Return mean + dispersion mean^2."""
        mean = self.mean(mean, dispersion)
        return mean + dispersion * jnp.square(mean)

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return E and Var given bounds; the Stein kernel is mean (1 + dispersion k)."""
        mean, dispersion = self.mean(*theta), jnp.asarray(theta[1])
        own = mean, dispersion
        return moments_by_stein(NegativeBinomial(), (lower, upper), own, mean * dispersion, kind)

    def sample(self, key: Array, shape: Shape, mean: Batch, dispersion: Batch) -> Batch:
        """Return Poisson draws whose rates are Gamma draws."""
        rate_key, count_key = jax.random.split(key)
        mean, r = self.mean(mean, dispersion), 1.0 / jnp.asarray(dispersion)
        rate = mean * jax.random.gamma(rate_key, r, shape, float) / r
        return draw_poisson(count_key, rate, shape)

    def exposed(self, share: Batch, mean: Batch, dispersion: Batch) -> tuple[Batch, ...]:
        """Return share mean and the same dispersion: the rate of the whole period is one Gamma."""
        return share * jnp.asarray(mean), dispersion

    def unseen(
        self, share: Batch, seen: Batch, mean: Batch, dispersion: Batch
    ) -> tuple[Batch, ...]:
        """Return those of the rest: given V the rate is a Gamma of shape 1 / dispersion + seen."""
        growth = 1.0 + dispersion * jnp.asarray(seen)
        rate = mean * growth / (1.0 + dispersion * share * mean)
        return (1.0 - jnp.asarray(share)) * rate, dispersion / growth

    def log_part(self, seen: Batch, mean: Batch, dispersion: Batch) -> Batch:
        """Return log S(seen), an integral over the share."""
        return log_share(seen, self.mean(mean, dispersion), dispersion)

    def start(self, values: Values) -> tuple[float, ...]:
        """Return the mean count and the dispersion of the same variance, within bounds."""
        values = finite(values)
        mean = max(float(np.mean(values)), 0.1)
        return mean, float(np.clip((np.var(values) - mean) / mean**2, 0.05, 5.0))


class PaperNegativeBinomial(NegativeBinomial):
    """The paper's own parameterisation, literally: r = 1/dispersion, log-odds of p = mu dispersion.

    P(k) = C(k + r - 1, k) p^r (1 - p)^k, Eq. (16), so that the mean
    exp(-mu dispersion) / dispersion falls as mu grows. Kept for comparison;
    `NegativeBinomial` has the mean as its parameter.

    >>> print(f"mean {PaperNegativeBinomial().mean(0.0, 0.5):.0f}")
    mean 2
    >>> print(f"mean {PaperNegativeBinomial().mean(2.0, 0.5):.2f}")
    mean 0.74
    """

    parameters = (Parameter("mu", "exp", "mean", REAL), Parameter("dispersion", "exp", "scale"))
    product_nodes = None
    additive = False

    def mean(self, mean: Batch, dispersion: Batch) -> Batch:
        """Return r (1 - p) / p = exp(-mu dispersion) / dispersion."""
        return jnp.exp(-jnp.asarray(mean) * dispersion) / dispersion

    def as_location(self, values: Values) -> Values:
        """Return the mu that gives each count as its mean, at the starting dispersion."""
        _, dispersion = self.start(values)
        largest = np.exp(-0.1) / dispersion
        return -np.log(np.minimum(self.support.nudge(values), largest) * dispersion) / dispersion

    def start(self, values: Values) -> tuple[float, ...]:
        """Return mu and dispersion of the observed mean; mu > 0 needs dispersion < 1 / mean."""
        mean, dispersion = super().start(values)
        dispersion = min(dispersion, np.exp(-1.0) / mean)
        return float(-np.log(mean * dispersion) / dispersion), float(dispersion)
