"""Cells as mixtures over latent nodes, and what can be asked of them or drawn from them.

A program is compiled for each likelihood and question and for few numbers of cells, whatever the
posterior is like: all models of a family share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import PartialCount
from censored_gp.likelihoods.quantiles import Density, Tails, invert
from censored_gp.likelihoods.special.interval import log_difference
from censored_gp.likelihoods.support import Support
from censored_gp.likelihoods.truncation import bound_tails
from censored_gp.model.compilation import AnyArray, bucket, compiled, pad, shapes, slices

MOST_COMPONENTS = 2**16
"""Components times cells of which a question is asked at once: the temporaries fit a cache."""


LEAP = 0.1
"""How far off a guess at a quantile may be, in standard deviations."""


NARROW = 1e-9
"""Width of bounds, in standard deviations, up to which a density is constant between them."""


class Mixture(eqx.Module):
    """K cells of one likelihood as mixtures over S latent nodes, perhaps cut to bounds."""

    likelihood: Likelihood
    theta: tuple[Float[Array, "S K"], ...]
    mass: Float[Array, "S #K"]
    lower: Float[Array, "K"] | None = None
    upper: Float[Array, "K"] | None = None
    kind: str | None = eqx.field(static=True, default=None)
    """"right" if no cell has an upper bound, "left" if none has a lower one: less to compile."""

    def average(self, values: Float[Array, "S K"]) -> Float[Array, "K"]:
        """Return the mean over components."""
        return jnp.sum(self.mass * values, axis=0)

    def log_average(self, logs: Float[Array, "S K"]) -> Float[Array, "K"]:
        """Return the log of the mean over components, from logs."""
        return jax.scipy.special.logsumexp(logs, axis=0, b=self.mass)

    def moments(self) -> tuple[Float[Array, "K"], Float[Array, "K"]]:
        """Return mean and variance, by the laws of total expectation and variance."""
        if self.lower is None or self.upper is None:
            mean, variance = (
                self.likelihood.mean(*self.theta),
                self.likelihood.variance(*self.theta),
            )
        else:
            mean, variance = self.likelihood.moments_within(
                self.lower, self.upper, *self.theta, kind=self.kind
            )
        centre = self.average(mean)
        return centre, self.average(variance) + self.average((mean - centre) ** 2)

    def log_probability(
        self, lower: Float[Array, "K"], upper: Float[Array, "K"]
    ) -> Float[Array, "K"]:
        """Return log P(lower <= Y <= upper), the log density where they are equal."""
        log_likelihood = self.likelihood.log_likelihood
        if self.lower is None or self.upper is None:
            return self.log_average(log_likelihood(lower, upper, *self.theta))
        low, high = jnp.maximum(lower, self.lower), jnp.minimum(upper, self.upper)
        empty = low > high
        if not self.likelihood.support.discrete:
            # Two intervals that only touch have a point in common, which has no mass.
            empty |= (low == high) & (lower < upper) & (self.lower < self.upper)
        # An empty interval is replaced by a harmless one; its answer is not used.
        low, high = jnp.where(empty, self.lower, low), jnp.where(empty, self.upper, high)
        inside = log_likelihood(low, high, *self.theta)
        whole = log_likelihood(self.lower, self.upper, *self.theta)
        return jnp.where(empty, -jnp.inf, self.log_average(inside - whole))

    def log_tails(self, y: Float[Array, "K"]) -> tuple[Float[Array, "K"], Float[Array, "K"]]:
        """Return log P(Y <= y) and log P(Y > y)."""
        if self.lower is None or self.upper is None:
            below, above = self.likelihood.log_tails_anywhere(y, *self.theta)
            return self.log_average(below), self.log_average(above)
        below = self.log_probability(jnp.full_like(y, -jnp.inf), y)
        next_up = jnp.floor(y) + 1.0 if self.likelihood.support.discrete else y
        above = self.log_probability(next_up, jnp.full_like(y, jnp.inf))
        return below, jnp.where(y >= self.upper, -jnp.inf, above)

    def quantile(self, level: Float[Array, "K"]) -> Float[Array, "K"]:
        """Return the smallest y with P(Y <= y) >= level."""
        narrow = self._narrow()
        log_tails, log_density = self._curves(narrow)
        found = invert(
            log_tails,
            log_density,
            jnp.log(level),
            jnp.log1p(-level),
            self.likelihood.support,
            *self._guess(level),
        )
        if self.lower is None or self.upper is None:
            return found
        # Where a density is as good as constant.
        width = jnp.where(narrow, self.upper - self.lower, 0.0)
        between = jnp.clip(found, self.lower, self.upper)
        return jnp.where(narrow, self.lower + level * width, between)

    def _narrow(self) -> Bool[Array, "K"]:
        """Return where bounds are so near each other that the tails at them are the same."""
        if self.lower is None or self.upper is None:
            return jnp.zeros(self.theta[0].shape[1:], dtype=bool)
        if self.likelihood.support.discrete:
            return self.lower == self.upper
        spread = jnp.sqrt(self.average(self.likelihood.variance(*self.theta)))
        return self.upper - self.lower <= NARROW * jnp.where(jnp.isfinite(spread), spread, 0.0)

    def _curves(self, narrow: Bool[Array, "K"]) -> tuple[Tails, Density]:
        """Return the log tails and the log density as functions to search a quantile with.

        What the bounds have to do with it is computed once, not at every step of the search.
        """
        family, theta = self.likelihood, self.theta
        if self.lower is None or self.upper is None:
            return self.log_tails, lambda y: self.log_average(family.log_density(y, *theta))
        lower = jnp.where(narrow, -jnp.inf, self.lower)
        upper = jnp.where(narrow, jnp.inf, self.upper)
        start, end = bound_tails(family, lower, upper, theta)
        whole = log_difference(start, end)

        def log_tails(y: Float[Array, "K"]) -> tuple[Float[Array, "K"], Float[Array, "K"]]:
            here = family.log_tails_anywhere(y, *theta)
            below, above = log_difference(start, here), log_difference(here, end)
            return self.log_average(below - whole), self.log_average(above - whole)

        return log_tails, lambda y: self.log_average(family.log_density(y, *theta) - whole)

    def _guess(self, level: Float[Array, "K"]) -> tuple[Float[Array, "K"], Float[Array, "K"]]:
        """Return a guess at a quantile, inside the bounds if there are any, and how far off it is.

        It is that of a simple variable of the same mean and variance, between the bounds.
        """
        mean = self.likelihood.mean(*self.theta)
        centre = self.average(mean)
        # A variance that is made of quantiles itself would take longer than it saves.
        own = type(self.likelihood).variance is not Likelihood.variance
        noise = self.average(self.likelihood.variance(*self.theta)) if own else 0.0
        spread = jnp.sqrt(noise + self.average((mean - centre) ** 2))
        spread = jnp.where(jnp.isfinite(spread), spread, 0.0)
        gaussian = _straightened(self.likelihood.support, centre, spread)
        if self.lower is None or self.upper is None:
            return gaussian.quantile(ndtri(level)), LEAP * spread
        low = jnp.where(jnp.isfinite(self.lower), self.lower, self.upper - 2.0 * spread)
        high = jnp.where(jnp.isfinite(self.upper), self.upper, self.lower + 2.0 * spread)
        known = jnp.isfinite(low) & jnp.isfinite(high)
        inside = (centre > self.lower) & (centre < self.upper) | ~known
        start = jnp.where(inside, centre, 0.5 * (low + high))
        ends = [gaussian.cdf(jnp.asarray(b)) for b in (self.lower, self.upper)]
        cut = gaussian.quantile(ndtri(ends[0] + level * (ends[1] - ends[0])))
        usable = jnp.isfinite(cut) & (cut >= self.lower) & (cut <= self.upper)
        return jnp.where(usable, cut, start), jnp.where(usable, LEAP * spread, spread)


class _Straightened(eqx.Module):
    """A variable that is Gaussian as it is, or its cube root is; counts are rounded ones."""

    centre: Float[Array, "K"]
    spread: Float[Array, "K"]
    cubed: bool = eqx.field(static=True)
    rounded: float = eqx.field(static=True)

    def quantile(self, z: Float[Array, "K"]) -> Float[Array, "K"]:
        """Return the quantile at the level of which z is that of a standard Gaussian."""
        straight = self.centre + z * self.spread
        return (jnp.maximum(straight, 0.0) ** 3 if self.cubed else straight) + self.rounded

    def cdf(self, y: Float[Array, "K"]) -> Float[Array, "K"]:
        """Return P(Y <= y)."""
        return ndtr(((jnp.cbrt(y) if self.cubed else y) - self.centre) / self.spread)


def _straightened(
    support: Support, mean: Float[Array, "K"], std: Float[Array, "K"]
) -> _Straightened:
    """Return a variable of given moments: what is never negative is skewed, its cube root hardly.

    The moments of the cube root are those that Wilson and Hilferty found for Gamma variables.
    """
    half = 0.5 if support.discrete else 0.0
    if support.lower != 0.0 or np.isfinite(support.upper):
        return _Straightened(mean, std, False, half)
    root, part = jnp.cbrt(mean), std / (3.0 * mean)
    return _Straightened(root * (1.0 - part**2), root * part, True, half)


def log_cdf(mixture: Mixture, y: Float[Array, "K"]) -> Float[Array, "K"]:
    """Return log P(Y <= y)."""
    return mixture.log_tails(y)[0]


class RoleMean(eqx.Module):
    """The question for the posterior mean of the parameter of one role, in given units."""

    role: str = eqx.field(static=True)

    def __call__(
        self, mixture: Mixture, shift: Float[Array, "K"], scale: Float[Array, "K"]
    ) -> Float[Array, "K"]:
        """Return the mean, NaN where the likelihood has no parameter of the role."""
        roles = [parameter.role for parameter in mixture.likelihood.parameters]
        if self.role not in roles:
            return jnp.full(mixture.theta[0].shape[1:], jnp.nan)
        theta = mixture.likelihood.rescaled(shift, scale, *mixture.theta)
        return mixture.average(theta[roles.index(self.role)])


@compiled
def _ask(
    likelihood: Likelihood,
    gamma: tuple[Float[AnyArray, "S K"], ...],
    mass: Float[AnyArray, "S #K"],
    bounds: tuple[Float[AnyArray, "K"], ...],
    kind: str | None,
    question: Callable[..., Any],
    arguments: tuple[Float[AnyArray, "K"], ...],
) -> tuple[Float[Array, "K"], ...]:
    """Answer a question about the mixtures of the cells of one likelihood."""
    theta = likelihood.theta(*(jnp.asarray(values) for values in gamma))
    cut, own = ([jnp.asarray(values) for values in each] for each in (bounds, arguments))
    answer = question(Mixture(likelihood, theta, jnp.asarray(mass), *cut, kind=kind), *own)
    return answer if isinstance(answer, tuple) else (answer,)


@compiled
def _weigh(
    likelihood: Likelihood,
    gamma: tuple[Float[AnyArray, "S K"], ...],
    mass: Float[AnyArray, "S 1"],
    bounds: tuple[Float[AnyArray, "K"], ...],
) -> Float[Array, "S K"]:
    """Return the weights of nodes after cells were seen to be within bounds, or shares."""
    theta = likelihood.theta(*(jnp.asarray(values) for values in gamma))
    lower, upper = (jnp.asarray(bound) for bound in bounds)
    kind = "share" if isinstance(likelihood, PartialCount) else None
    seen = likelihood.log_likelihood(lower, upper, *theta, kind=kind)
    return jax.nn.softmax(jnp.log(jnp.asarray(mass)) + seen, axis=0)


@compiled
def _draw_cells(
    likelihood: Likelihood,
    key: Array,
    gamma: tuple[Float[AnyArray, "K"], ...],
    bounds: tuple[Float[AnyArray, "K"], ...],
) -> Float[Array, "K"]:
    """Draw outputs given their latent values, within bounds if there are any."""
    theta = likelihood.theta(*(jnp.asarray(values) for values in gamma))
    if not bounds:
        return likelihood.sample(key, theta[0].shape, *theta)
    uniform = jax.random.uniform(key, theta[0].shape, minval=1e-12)
    lower, upper = (jnp.asarray(bound) for bound in bounds)
    return likelihood.quantile_within(uniform, lower, upper, *theta)


def answers(
    likelihood: Likelihood,
    gamma: tuple[Float[np.ndarray, "S K"], ...],
    mass: Float[np.ndarray, "S #K"],
    bounds: tuple[Float[np.ndarray, "K"], ...],
    question: Callable[..., Any],
    arguments: tuple[Float[np.ndarray, "K"], ...],
) -> list[Float[np.ndarray, "K"]]:
    """Ask a question about cells, chunk by chunk, every chunk padded to one of few shapes."""
    parts = []
    own_mass = mass.shape[1] > 1
    shape, chunks = shapes(gamma[0].shape[1], MOST_COMPONENTS // len(mass))
    # Of all questions it is the moments that have less to compile for a bound that is not there.
    kind = _common_kind(*bounds) if bounds and question is Mixture.moments else None
    for cells in chunks:
        size = cells.stop - cells.start
        room = shape - size
        values, cut, own = (
            tuple(pad(a[..., cells], room, axis=-1) for a in each)
            for each in (gamma, bounds, arguments)
        )
        share = pad(mass[:, cells], room, axis=-1) if own_mass else mass
        found = _ask(likelihood, values, share, cut, kind, question, own)
        parts.append([np.asarray(part)[:size] for part in found])
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def weighed(
    likelihood: Likelihood,
    gamma: tuple[Float[np.ndarray, "S K"], ...],
    mass: Float[np.ndarray, "S 1"],
    bounds: tuple[Float[np.ndarray, "K"], ...],
) -> Float[np.ndarray, "S K"]:
    """Return the weights of every cell's nodes after it was seen, chunk by chunk of cells."""
    parts = []
    shape, chunks = shapes(gamma[0].shape[1], MOST_COMPONENTS // len(mass))
    for cells in chunks:
        size = cells.stop - cells.start
        room = shape - size
        values, cut = (tuple(pad(a[..., cells], room, axis=-1) for a in e) for e in (gamma, bounds))
        parts.append(np.asarray(_weigh(likelihood, values, mass, cut))[:, :size])
    return np.concatenate(parts, axis=1)


def _common_kind(lower: Float[np.ndarray, "K"], upper: Float[np.ndarray, "K"]) -> str | None:
    """Return "right" if only lower bounds are finite, "left" if only upper ones are, else None."""
    bounded = bool(np.isfinite(lower).any()), bool(np.isfinite(upper).any())
    return {(True, False): "right", (False, True): "left"}.get(bounded)


def drawn_cells(
    likelihood: Likelihood,
    key: Array,
    gamma: list[Float[np.ndarray, "K"]],
    bounds: list[Float[np.ndarray, "K"]],
) -> Float[np.ndarray, "K"]:
    """Draw cells, chunk by chunk, every chunk padded to one of few shapes."""
    parts = [np.zeros(0)]
    total = len(gamma[0])
    for cells in slices(total, MOST_COMPONENTS):
        key, own = jax.random.split(key)
        size = cells.stop - cells.start
        room = bucket(min(total, MOST_COMPONENTS), "predictions") - size
        values, cut = (tuple(pad(a[cells], room) for a in each) for each in (gamma, bounds))
        parts.append(np.asarray(_draw_cells(likelihood, own, values, cut))[:size])
    return np.concatenate(parts)
