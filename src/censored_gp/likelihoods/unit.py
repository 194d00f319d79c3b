"""Families between 0 and 1: Beta for fractions, Bernoulli for yes or no."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from censored_gp.likelihoods.base import Likelihood, Parameter, Shape, Values, finite, spread
from censored_gp.likelihoods.special.beta import log_beta_tails, log_odds_kernel
from censored_gp.likelihoods.special.elementary import Batch, Pair
from censored_gp.likelihoods.support import BINARY, UNIT
from censored_gp.likelihoods.truncation import Kind

# The largest precision of a Beta: the work of a tail grows with its square root.
MOST_PRECISE = 1e6


class Beta(Likelihood):
    """Y ~ Beta(a, b) with a + b = precision and a / b = odds.

    The mean is m = odds / (1 + odds): with the exp link, logistic in the latent. The variance is
    m (1 - m) / (1 + precision). Odds, unlike m, keep their digits at both ends. A precision is told
    apart up to L = 1e6, a standard deviation of 1e-3 times that of a coin.

    >>> print(f"mean {Beta().mean(3.0, 4.0):.2f}")
    mean 0.75
    >>> print(f"log P(Y <= 0.001) = {Beta().log_cdf(0.001, 3.0, 4.0):.2f}")
    log P(Y <= 0.001) = -20.72
    """

    parameters = (Parameter("odds", "exp", "mean"), Parameter("precision", "exp", "scale"))
    support = UNIT

    def log_density(self, y: Batch, odds: Batch, precision: Batch) -> Batch:
        """Return (a - 1) log y + (b - 1) log(1 - y) - log B(a, b)."""
        a, b = self.shapes(odds, precision)
        rest = 1.0 - jnp.asarray(y)
        kernel = log_odds_kernel(a, b * (y / rest), 1.0 / b)
        return kernel - jnp.log(y) - jnp.log(rest)

    def log_tails(self, y: Batch, odds: Batch, precision: Batch) -> Pair:
        """Return both tails, which are incomplete beta functions."""
        return log_beta_tails(*self.shapes(odds, precision), y, 1.0 - jnp.asarray(y))

    def mean(self, odds: Batch, precision: Batch) -> Batch:
        """Return odds / (1 + odds)."""
        return odds / (1.0 + jnp.asarray(odds)) + jnp.zeros_like(precision)

    def variance(self, odds: Batch, precision: Batch) -> Batch:
        """Return m (1 - m) / (1 + precision)."""
        return odds / jnp.square(1.0 + jnp.asarray(odds)) / (1.0 + self.bounded(precision))

    def sample(self, key: Array, shape: Shape, odds: Batch, precision: Batch) -> Batch:
        """Return Beta draws, kept inside the open interval."""
        draws = jax.random.beta(key, *self.shapes(odds, precision), shape, float)
        return jnp.clip(draws, 1e-300, 1.0 - 2.0**-53)

    def shapes(self, odds: Batch, precision: Batch) -> Pair:
        """Return a = precision odds / (1 + odds) and b = precision / (1 + odds)."""
        b = self.bounded(precision) / (1.0 + jnp.asarray(odds))
        return odds * b, b

    def bounded(self, precision: Batch) -> Batch:
        """Return the precision p (1 + (p / L)^8)^(-1/8): smooth, and never above L.

        The density of an output that never varies would grow with p without end.
        """
        excess = jnp.log(precision) - np.log(MOST_PRECISE)
        return precision * jnp.exp(-jax.nn.softplus(8.0 * excess) / 8.0)

    def as_location(self, values: Values) -> Values:
        """Return the odds y / (1 - y)."""
        values = self.support.nudge(values)
        return values / (1.0 - values)

    def start(self, values: Values) -> tuple[float, ...]:
        """Return the odds of the mean and the precision of the same variance."""
        values = self.support.nudge(finite(values))
        mean = float(np.mean(values))
        precision = mean * (1.0 - mean) / spread(values) ** 2 - 1.0
        return mean / (1.0 - mean), float(np.clip(precision, 0.5, 1000.0))


class Bernoulli(Likelihood):
    """Y is 1 with probability odds / (1 + odds), else 0; with the exp link, logistic.

    >>> print(f"log P(Y = 1) = {Bernoulli().log_density(1.0, 3.0):.2f}")
    log P(Y = 1) = -0.29
    """

    parameters = (Parameter("odds", "exp", "mean"),)
    support = BINARY

    def log_density(self, y: Batch, odds: Batch) -> Batch:
        """Return -log(1 + 1/odds) at 1 and -log(1 + odds) at 0."""
        odds = jnp.asarray(odds)
        return -jnp.log1p(jnp.where(jnp.asarray(y) > 0.5, 1.0 / odds, odds))

    def log_tails(self, y: Batch, odds: Batch) -> Pair:
        """Return log P(0) and log P(1) at 0; nothing is above 1."""
        zero, one = self.log_density(jnp.zeros(()), odds), self.log_density(jnp.ones(()), odds)
        some = jnp.asarray(y) < 1
        return jnp.where(some, zero, 0.0), jnp.where(some, one, -jnp.inf)

    def mean(self, odds: Batch) -> Batch:
        """Return odds / (1 + odds)."""
        return odds / (1.0 + jnp.asarray(odds))

    def variance(self, odds: Batch) -> Batch:
        """Return odds / (1 + odds)^2."""
        return odds / jnp.square(1.0 + jnp.asarray(odds))

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return the value itself if the bounds leave only one, else mean and variance."""
        zero, one = jnp.asarray(upper) < 1, jnp.asarray(lower) > 0
        mean = jnp.where(zero, 0.0, jnp.where(one, 1.0, self.mean(*theta)))
        return mean, jnp.where(zero | one, 0.0, self.variance(*theta))

    def as_location(self, values: Values) -> Values:
        """Return odds of 3 for a one and of 1/3 for a zero."""
        return np.where(np.asarray(values, float) > 0.5, 3.0, 1.0 / 3.0)

    def start(self, values: Values) -> tuple[float, ...]:
        """Return the odds of one, with half a case added to either side."""
        ones = finite(values) > 0.5
        return (float((ones.sum() + 0.5) / ((~ones).sum() + 0.5)),)
