"""Predictions of the true output, Eq. (8) and Eq. (14): p(y*) = int p(y* | gamma) q(gamma) dgamma.

The mixture is a finite one over latent nodes, so everything a user asks of it is a weighted sum
over components of the likelihood's own functions. Bounds may be given: then it is the distribution
of what a censored cell really was. The posterior has seen those bounds already, so the weights of
the components stay and only each component is cut to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.inverse import invert
from censored_gp.model import Model, Units, draw_outputs, output_parameters
from censored_gp.observations import Observations
from censored_gp.posterior import Posterior
from censored_gp.runtime import AnyArray, bucket, compiled, in_float64

Cells = Float[np.ndarray, "N D"]
MOST_CELLS = 4_000_000
"""Components times cells computed at once: what bounds the memory of a prediction."""


class Mixture(eqx.Module):
    """Outputs of one likelihood as mixtures over S latent nodes, perhaps cut to bounds."""

    likelihood: Likelihood
    theta: tuple[Float[Array, "S N D"], ...]
    mass: Float[Array, "S"]
    lower: Float[Array, "N D"] | None = None
    upper: Float[Array, "N D"] | None = None

    def average(self, values: Float[Array, "S N D"]) -> Float[Array, "N D"]:
        """Return the mean over components."""
        return jnp.tensordot(self.mass, values, axes=1)

    def log_average(self, logs: Float[Array, "S N D"]) -> Float[Array, "N D"]:
        """Return the log of the mean over components, from logs."""
        return jax.scipy.special.logsumexp(logs, axis=0, b=self.mass[:, None, None])

    def moments(self) -> tuple[Float[Array, "N D"], Float[Array, "N D"]]:
        """Return mean and variance, by the laws of total expectation and variance."""
        if self.lower is None or self.upper is None:
            mean, variance = (
                self.likelihood.mean(*self.theta),
                self.likelihood.variance(*self.theta),
            )
        else:
            mean, variance = self.likelihood.moments_within(self.lower, self.upper, *self.theta)
        centre = self.average(mean)
        return centre, self.average(variance) + self.average((mean - centre) ** 2)

    def log_probability(
        self, lower: Float[Array, "N D"], upper: Float[Array, "N D"]
    ) -> Float[Array, "N D"]:
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

    def log_tails(self, y: Float[Array, "N D"]) -> tuple[Float[Array, "N D"], Float[Array, "N D"]]:
        """Return log P(Y <= y) and log P(Y > y)."""
        if self.lower is None or self.upper is None:
            below, above = self.likelihood.log_tails(y, *self.theta)
            return self.log_average(below), self.log_average(above)
        below = self.log_probability(jnp.full_like(y, -jnp.inf), y)
        next_up = y + 1.0 if self.likelihood.support.discrete else y
        above = self.log_probability(next_up, jnp.full_like(y, jnp.inf))
        return below, jnp.where(y >= self.upper, -jnp.inf, above)

    def quantile(self, level: Float[Array, ""]) -> Float[Array, "N D"]:
        """Return the smallest y with P(Y <= y) >= level."""
        shape = self.theta[0].shape[1:]
        return invert(
            self.log_tails,
            lambda y: self.log_probability(y, y),
            jnp.full(shape, jnp.log(level)),
            jnp.full(shape, jnp.log1p(-level)),
            self.likelihood.support,
        )


def _groups(model: Model) -> dict[Likelihood, list[int]]:
    """Return the outputs of each likelihood."""
    found: dict[Likelihood, list[int]] = {}
    for output, likelihood in enumerate(model.likelihoods):
        found.setdefault(likelihood, []).append(output)
    return found


@compiled
def _ask(
    posterior: Posterior,
    inputs: Float[AnyArray, "N C"],
    bounds: tuple[Float[AnyArray, "N D"], ...] | None,
    question: Callable[..., Any],
    arguments: tuple[Float[AnyArray, "N D"], ...],
    settings: tuple[Float[AnyArray, ""], ...],
) -> tuple[Float[Array, "N D"], ...]:
    """Answer a question about the mixture of every likelihood; one compiled program for each."""
    latent, mass = posterior.nodes(inputs)
    answers = []
    order = []
    for likelihood, outputs in _groups(posterior.model).items():
        each = [output_parameters(posterior.model, latent, d) for d in outputs]
        theta = tuple(jnp.stack(column, axis=-1) for column in zip(*each, strict=True))
        own = [jnp.asarray(a)[:, np.array(outputs)] for a in (*(bounds or ()), *arguments)]
        cut, own = (own[:2], own[2:]) if bounds else ((), own)
        answer = question(Mixture(likelihood, theta, mass, *cut), *own, *settings)
        answers.append(answer if isinstance(answer, tuple) else (answer,))
        order.extend(outputs)
    place = np.argsort(order)
    return tuple(jnp.concatenate(part, axis=1)[:, place] for part in zip(*answers, strict=True))


class Prediction:
    """The distribution of the true outputs at given inputs, or of censored cells given bounds.

    Every method returns one number for each row and output.
    """

    def __init__(
        self,
        posterior: Posterior,
        units: Units,
        inputs: Float[np.ndarray, "N C"],
        names: tuple[str, ...],
        bounds: Observations | None = None,
    ) -> None:
        self._posterior, self._units, self._inputs = posterior, units, inputs
        self.names = names
        self._bounds = bounds

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs."""
        return len(self._inputs), len(self.names)

    @property
    def discrete(self) -> Bool[np.ndarray, "D"]:
        """Which outputs are counts."""
        return np.array([k.support.discrete for k in self._posterior.model.likelihoods])

    @functools.cached_property
    def _moments(self) -> tuple[Cells, Cells]:
        mean, variance = self._answer(Mixture.moments)
        return self._units.shift + self._units.scale * mean, self._units.scale**2 * variance

    @property
    def mean(self) -> Cells:
        """Expected value of the true output."""
        return self._moments[0]

    @property
    def variance(self) -> Cells:
        """Variance of the true output: noise and uncertainty of the parameters together."""
        return self._moments[1]

    @property
    def std(self) -> Cells:
        """Standard deviation of the true output."""
        return np.sqrt(self.variance)

    def quantile(self, level: float | list[float]) -> Float[np.ndarray, "... N D"]:
        """Return quantiles; a list of levels gives a leading axis."""
        levels = np.asarray(level, dtype=float)
        if not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"found quantile level {level}; accepted are numbers between 0 and 1")
        found = [self._answer(Mixture.quantile, settings=(each,))[0] for each in levels.ravel()]
        values = self._units.shift + self._units.scale * np.stack(found)
        return values.reshape(*levels.shape, *self.shape)

    def interval(self, probability: float = 0.9) -> tuple[Cells, Cells]:
        """Return the central interval that holds the true output with the given probability."""
        low, high = self.quantile([(1 - probability) / 2, (1 + probability) / 2])
        return low, high

    def cdf(self, y: Cells) -> Cells:
        """Return P(Y <= y)."""
        return np.exp(self._answer(_log_cdf, (self._to_units(y),))[0])

    def log_density(self, y: Cells) -> Cells:
        """Return the log density (or log probability of a count) of true values; NaN stays NaN."""
        return self.log_probability(y, y)

    def log_probability(self, lower: Cells, upper: Cells) -> Cells:
        """Return log P(lower <= Y <= upper), the log density where they are equal."""
        lower, upper = np.broadcast_arrays(*(np.asarray(b, dtype=float) for b in (lower, upper)))
        unknown = np.isnan(lower) | np.isnan(upper)
        low = np.where(unknown, -np.inf, self._to_units(lower))
        high = np.where(unknown, np.inf, self._to_units(upper))
        found = self._answer(Mixture.log_probability, (low, high))[0]
        per_unit = np.where(lower == upper, np.log(self._units.scale), 0.0)
        return np.where(unknown, np.nan, found - per_unit)

    @in_float64
    def sample(
        self, count: int, random_state: int | np.random.Generator = 0
    ) -> Float[np.ndarray, "S N D"]:
        """Draw true outputs jointly over rows and outputs, so that sums of them are right too."""
        seed = np.random.default_rng(random_state).integers(2**31)
        latent_key, output_key = jax.random.split(jax.random.key(int(seed)))
        bounds = None if self._bounds is None else (self._bounds.lower, self._bounds.upper)
        drawn = _draw(self._posterior, latent_key, output_key, self._inputs, bounds, count)
        return self._units.shift + self._units.scale * np.asarray(drawn)

    @in_float64
    def latent(self) -> tuple[dict[str, Cells], dict[str, Cells]]:
        """Return mean and standard deviation of the latent functions by role, in model units."""
        mean, variance = eqx.filter_jit(Posterior.latent)(self._posterior, self._inputs)
        return (
            {role: np.asarray(m) for role, m in mean.items()},
            {role: np.sqrt(np.asarray(v)) for role, v in variance.items()},
        )

    def parameters(self) -> dict[str, Cells]:
        """Return posterior means of the likelihoods' parameters by role, NaN where absent."""
        return {role: self._answer(_RoleMean(role))[0] for role in self._posterior.model.priors}

    def _to_units(self, y: Cells) -> Cells:
        return (np.asarray(y, dtype=float) - self._units.shift) / self._units.scale

    @in_float64
    def _answer(
        self,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...] = (),
        settings: tuple[Any, ...] = (),
    ) -> tuple[Cells, ...]:
        """Ask a question chunk by chunk of rows, every chunk padded to a shared shape."""
        bounds = None if self._bounds is None else (self._bounds.lower, self._bounds.upper)
        parts = []
        settings = tuple(np.float64(each) for each in settings)
        for rows in self._chunks():
            size = rows.stop - rows.start
            room = bucket(size) - size
            own = tuple(_pad(np.broadcast_to(a, self.shape)[rows], room) for a in arguments)
            cut = None if bounds is None else tuple(_pad(b[rows], room) for b in bounds)
            inputs = _pad(self._inputs[rows], room)
            found = _ask(self._posterior, inputs, cut, question, own, settings)
            parts.append([np.asarray(part)[:size] for part in found])
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _chunks(self) -> Iterator[slice]:
        """Yield slices of rows small enough for the memory."""
        step = max(1, MOST_CELLS // (256 * max(1, self.shape[1])))
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))


def _pad(cells: Float[np.ndarray, "N K"], room: int) -> Float[np.ndarray, "P K"]:
    """Repeat the last row, so that predictions of similar size share a program."""
    return np.pad(cells, ((0, room), (0, 0)), "edge")


def _log_cdf(mixture: Mixture, y: Float[Array, "N D"]) -> Float[Array, "N D"]:
    """Return log P(Y <= y)."""
    return mixture.log_tails(y)[0]


class _RoleMean(eqx.Module):
    """The question for the posterior mean of the parameter of one role."""

    role: str = eqx.field(static=True)

    def __call__(self, mixture: Mixture) -> Float[Array, "N D"]:
        roles = [parameter.role for parameter in mixture.likelihood.parameters]
        if self.role not in roles:
            return jnp.full(mixture.theta[0].shape[1:], jnp.nan)
        return mixture.average(mixture.theta[roles.index(self.role)])


@compiled
def _draw(
    posterior: Posterior,
    latent_key: Array,
    output_key: Array,
    inputs: Float[AnyArray, "N C"],
    bounds: tuple[Float[AnyArray, "N D"], ...] | None,
    count: int,
) -> Float[Array, "S N D"]:
    """Draw latent parameters jointly, then outputs given them (within bounds, if given)."""
    latent = posterior.draw(latent_key, jnp.asarray(inputs), count)
    if bounds is None:
        return draw_outputs(output_key, posterior.model, latent)
    drawn = []
    for output, key in enumerate(jax.random.split(output_key, len(posterior.model.likelihoods))):
        theta = output_parameters(posterior.model, latent, output)
        uniform = jax.random.uniform(key, theta[0].shape, minval=1e-12)
        lower, upper = (jnp.asarray(b)[:, output] for b in bounds)
        likelihood = posterior.model.likelihoods[output]
        drawn.append(likelihood.quantile_within(uniform, lower, upper, *theta))
    return jnp.stack(drawn, axis=-1)
