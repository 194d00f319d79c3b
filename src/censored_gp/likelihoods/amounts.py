"""Amounts with exact zeros: the compound Poisson-gamma (Tweedie) family."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from censored_gp.likelihoods.base import Likelihood, Parameter, Shape, Values, finite
from censored_gp.likelihoods.counts import draw_poisson
from censored_gp.likelihoods.links import Link
from censored_gp.likelihoods.special.compound import (
    LEAST,
    exp_curvature,
    log_compound_tails,
    log_jump_sum,
    log_tilted_tails,
)
from censored_gp.likelihoods.special.elementary import Batch, Pair, log1mexp
from censored_gp.likelihoods.special.interval import log_difference
from censored_gp.likelihoods.support import NONNEGATIVE, ONE_TO_TWO
from censored_gp.likelihoods.truncation import Kind, bound_tails, moments_by_powers

PARAMETERS = (
    Parameter("mean", "exp", "mean"),
    Parameter("dispersion", "exp", "scale"),
    Parameter("power", "one_to_two", "shape"),
)


class Tweedie(Likelihood):
    """Y >= 0 of the given mean and variance dispersion mean^power, 1 < power < 2.

    The sum of a Poisson number of gamma amounts, say of the sales of a day, so that Y = 0 has a
    probability: with p the power and phi the dispersion, mean^(2-p) / (phi (2-p)) amounts on
    average, of shape (2-p) / (p-1) and scale phi (p-1) mean^(p-1). Towards p = 1 all amounts are
    the same, towards p = 2 they are many and Y is a gamma amount. Values that are multiples of a
    step lead the power to 1: amounts of one step each. If they were rounded to it instead, say so
    (`rounded`), which takes longer.

    Parameters
    ----------
    power
        A number between 1.01 and 1.99 fixes the power; else it is a parameter to learn, and this is
        its link.

    Examples
    --------
    >>> print(f"log P(Y = 0) = {Tweedie().log_density(0.0, 4.0, 2.0, 1.5):.2f}")
    log P(Y = 0) = -2.00
    >>> print(f"variance {Tweedie().variance(4.0, 2.0, 1.5):.0f}")
    variance 16
    >>> [parameter.name for parameter in Tweedie(power=1.6).parameters]
    ['mean', 'dispersion']
    """

    power: float | None = eqx.field(static=True)
    support = NONNEGATIVE
    rescale = "scale"
    nugget = True
    additive = True
    # As for a negative binomial.
    product_nodes = 6

    def __init__(self, power: float | str | Link | None = None, **links: str | Link) -> None:
        self.power = None if power is None or isinstance(power, str | Link) else float(power)
        if self.power is not None:
            if not ONE_TO_TWO.contains(np.asarray(self.power)):
                found = f"{ONE_TO_TWO.words}, got {power!r}."
                raise ValueError(f"Tweedie: `power` must be {found}")
        elif isinstance(power, str | Link):
            links["power"] = power
        super().__init__(**links)

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore
        """The parameters that are not fixed."""
        return PARAMETERS if self.power is None else PARAMETERS[:2]

    def __repr__(self) -> str:
        return super().__repr__() if self.power is None else f"Tweedie(power={self.power:g})"

    def theta(self, *gamma: Batch) -> tuple[Batch, ...]:
        """Return mean, dispersion and power, which may be fixed."""
        theta = super().theta(*gamma[: len(self.links)])
        return theta if self.power is None else (*theta, jnp.asarray(self.power))

    def log_density(self, y: Batch, mean: Batch, dispersion: Batch, power: Batch) -> Batch:
        """Return log P(Y = 0) or the log density: log R - D - log y, 2 D the deviance.

        D = rate [1 + a y/mean - (1 + a) (y/mean)^(2-p)]. R does not depend on the mean.
        """
        y, b = jnp.asarray(y, float), 2.0 - jnp.asarray(power)
        rate, a, _ = _jumps(mean, dispersion, power)
        positive = jnp.maximum(jnp.where(y > 0, y, 1.0), LEAST)
        log_jumps = b * jnp.log(positive) - jnp.log(dispersion * b)
        t = jnp.log(positive / mean)
        deviance = rate * a * t**2 * (exp_curvature(t) - b * exp_curvature(b * t))
        density = log_jump_sum(jnp.exp(log_jumps), a) - deviance - jnp.log(positive)
        return jnp.where(y > 0, density, -rate)

    def log_tails(self, y: Batch, mean: Batch, dispersion: Batch, power: Batch) -> Pair:
        """Return both tails; P(Y <= 0) = exp(-rate)."""
        y, (rate, a, scale) = jnp.asarray(y, float), _jumps(mean, dispersion, power)
        cdf, survival = log_compound_tails(rate, a, jnp.where(y > 0, y / scale, 1.0))
        zero = jnp.minimum(-rate, -1e-300)
        return jnp.where(y > 0, cdf, zero), jnp.where(y > 0, survival, log1mexp(zero))

    def mean(self, mean: Batch, dispersion: Batch, power: Batch) -> Batch:
        """Return the mean."""
        return mean + jnp.zeros_like(dispersion) + jnp.zeros_like(power)

    def variance(self, mean: Batch, dispersion: Batch, power: Batch) -> Batch:
        """Return dispersion mean^power."""
        return dispersion * jnp.asarray(mean) ** power

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return moments given bounds, from the tails of the density times y and y^2."""
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        order = jnp.arange(1.0, 3.0).reshape((-1,) + (1,) * lower.ndim)

        def tilted(y: Batch, *theta: Batch) -> Pair:
            rate, a, scale = _jumps(*theta)
            cdf, survival = log_tilted_tails(order, rate, a, jnp.where(y > 0, y / scale, 1.0))
            return jnp.where(y > 0, cdf, -jnp.inf), jnp.where(y > 0, survival, 0.0)

        law: Any = SimpleNamespace(support=self.support, log_tails=tilted)
        twice = (jnp.stack([lower, lower]), jnp.stack([upper, upper]))
        whole = log_difference(*bound_tails(self, lower, upper, each))
        masses = [whole, *log_difference(*bound_tails(law, *twice, each))]
        mean, variance = each[0], self.variance(*each)
        raw = jnp.log(mean), jnp.log(mean**2 + variance)
        return moments_by_powers(self, (jnp.maximum(lower, 0.0), upper), each, masses, raw)

    def sample(
        self, key: Array, shape: Shape, mean: Batch, dispersion: Batch, power: Batch
    ) -> Batch:
        """Return sums of Poisson numbers of gamma draws."""
        (rate, a, scale), keys = _jumps(mean, dispersion, power), jax.random.split(key)
        count = draw_poisson(keys[0], rate, shape)
        draws = jax.random.gamma(keys[1], a * jnp.maximum(count, 1.0), shape, float)
        return jnp.where(count > 0, scale * draws, 0.0)

    def rescaled(self, shift: Batch, scale: Batch, *theta: Batch) -> tuple[Batch, ...]:
        """Return the parameters of scale Y."""
        mean, dispersion, power = map(jnp.asarray, theta)
        return scale * mean, scale ** (2.0 - power) * dispersion, power

    def exposed(
        self, share: Batch, mean: Batch, dispersion: Batch, power: Batch
    ) -> tuple[Batch, ...]:
        """Return share mean and a dispersion of the same amounts, of which there are fewer."""
        share = jnp.asarray(share)
        return share * mean, dispersion * share ** (1.0 - jnp.asarray(power)), power

    def as_location(self, values: Values) -> Values:
        """Return the values, with half of a typical amount added to each, as zeros have no log."""
        values = np.maximum(np.asarray(values, float), 0.0)
        return values + 0.5 * (float(np.median(values[values > 0])) if np.any(values > 0) else 1.0)

    def start(self, values: Values) -> tuple[float, ...]:
        """Return the mean, and the dispersion of the same variance, of a power of 1.5."""
        values = np.maximum(finite(values), 0.0)
        power = 1.5 if self.power is None else self.power
        mean = float(np.mean(values)) if np.any(values > 0) else 1.0
        variance = float(np.clip(np.var(values) / mean**2, 0.01, 100.0)) * mean**2
        return mean, variance / mean**power, power


def _jumps(mean: Batch, dispersion: Batch, power: Batch) -> tuple[Batch, Batch, Batch]:
    """Return how many amounts there are on average, and their shape and scale."""
    mean, b = jnp.asarray(mean), 2.0 - jnp.asarray(power)
    scale = dispersion * (1.0 - b) * mean ** (1.0 - b)
    return mean**b / (dispersion * b), b / (1.0 - b), scale
