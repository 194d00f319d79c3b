"""Predictions of the true output, Eq. (8) and Eq. (14): p(y*) = int p(y* | gamma) q(gamma) dgamma.

The mixture is a finite one over latent nodes, so everything a user asks of it is a weighted sum
over components of the likelihood's own functions. Bounds may be given: then it is the distribution
of what a censored cell really was. The posterior has seen those bounds already, so the weights of
the components stay and only each component is cut to them.

The nodes are computed by a program for each shape of posterior, what is asked of them by a program
for each likelihood and question alone: it is these, with their tails, that take long to compile,
and all models of a family share them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.shares import given_share
from censored_gp.mixture import Mixture, RoleMean, answers, coarse, drawn_cells, log_cdf, slices
from censored_gp.model import Units
from censored_gp.observations import Observations
from censored_gp.posterior import Latent, Posterior
from censored_gp.runtime import AnyArray, bucket, compiled, in_float64

Cells = Float[np.ndarray, "N D"]
MOST_ROWS = 4096
"""Rows whose nodes are computed at once: what bounds the memory."""


@compiled
def _nodes(
    posterior: Posterior, inputs: Float[AnyArray, "N C"]
) -> tuple[Latent, Float[Array, "S"]]:
    """Return latent values at the inputs by role, and the weights of the nodes."""
    return posterior.nodes(inputs)


@compiled
def _latent(posterior: Posterior, inputs: Float[AnyArray, "N C"]) -> tuple[Latent, Latent]:
    """Return means and variances of the latent parameters by role."""
    return posterior.latent(inputs)


@compiled
def _draw_latent(
    posterior: Posterior, key: Array, inputs: Float[AnyArray, "N C"], count: int
) -> Latent:
    """Draw latent values by role, jointly over rows and outputs."""
    return posterior.draw(key, inputs, count)


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
        self._outputs = tuple(range(len(names)))

    def of_outputs(self, places: Sequence[int]) -> Prediction:
        """Return the same for some of the outputs: what is asked of it costs that much less."""
        chosen = list(places)
        units = Units(self._units.shift[chosen], self._units.scale[chosen])
        names = tuple(self.names[place] for place in chosen)
        bounds = None if self._bounds is None else self._bounds.outputs(chosen)
        some = Prediction(self._posterior, units, self._inputs, names, bounds)
        some._outputs = tuple(self._outputs[place] for place in chosen)
        return some

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs."""
        return len(self._inputs), len(self.names)

    @property
    def discrete(self) -> Bool[np.ndarray, "D"]:
        """Which outputs are counts."""
        return np.array([likelihood.support.discrete for likelihood in self._likelihoods])

    @property
    def _likelihoods(self) -> list[Likelihood]:
        return [self._posterior.model.likelihoods[output] for output in self._outputs]

    @functools.cached_property
    def _moments(self) -> tuple[Cells, Cells]:
        mean, variance = self._answer(Mixture.moments, of_seen=(lambda y: y, np.zeros_like))
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
        found = [
            self._answer(Mixture.quantile, settings=(each,), of_seen=(lambda y: y,))[0]
            for each in levels.ravel()
        ]
        values = self._units.shift + self._units.scale * np.stack(found)
        return values.reshape(*levels.shape, *self.shape)

    def interval(self, probability: float = 0.9) -> tuple[Cells, Cells]:
        """Return the central interval that holds the true output with the given probability."""
        low, high = self.quantile([(1 - probability) / 2, (1 + probability) / 2])
        return low, high

    def cdf(self, y: Cells) -> Cells:
        """Return P(Y <= y)."""
        return np.exp(self._answer(log_cdf, (self._to_units(y),))[0])

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
        self, count: int, random_state: int | np.random.Generator = 0, joint: bool = True
    ) -> Float[np.ndarray, "S N D"]:
        """Draw true outputs jointly over rows and outputs, so that sums of them are right too.

        Not `joint`: every cell on its own, which is cheaper and does for averages over cells.
        """
        random = np.random.default_rng(random_state)
        key, own = jax.random.split(jax.random.key(int(random.integers(2**31))))
        size = len(self._inputs)
        if joint:
            inputs = _pad(self._inputs, bucket(size) - size)
            latent = _draw_latent(self._posterior, own, inputs, count)
        else:
            latent = self._draw_nodes(random, count)
        drawn = np.empty((count, *self.shape))
        if self._bounds is not None:
            # What was seen exactly needs no drawing.
            drawn[:] = self._bounds.lower
        for likelihood, outputs, gamma in self._by_likelihood(latent, size):
            bounds = [np.broadcast_to(b.ravel(), (count, b.size)) for b in self._cut(outputs)]
            cells = drawn[:, :, outputs].reshape(count, -1)
            for family, place in self._by_kind(likelihood, outputs):
                key, own = jax.random.split(key)
                open_ = place & self._open_cells()[:, outputs].ravel()
                parts = [values[:, open_].ravel() for values in (*gamma, *bounds)]
                found = drawn_cells(family, own, parts[: len(gamma)], parts[len(gamma) :])
                cells[:, open_] = found.reshape(count, -1)
            drawn[:, :, outputs] = cells.reshape(count, size, -1)
        return self._units.shift + self._units.scale * drawn

    def _draw_nodes(self, random: np.random.Generator, count: int) -> Latent:
        """Draw latent values of every row among its nodes, by their weights."""
        parts = []
        for rows in slices(len(self._inputs), MOST_ROWS):
            inputs, size = self._padded(rows)
            latent, mass = _nodes(self._posterior, inputs)
            share = np.asarray(mass) / np.sum(mass)
            chosen = random.choice(len(share), size=(count, size), p=share)
            parts.append({r: np.asarray(v)[chosen, np.arange(size)] for r, v in latent.items()})
        return jax.tree.map(lambda *each: np.concatenate(each, axis=1), *parts)

    def _open_cells(self) -> Bool[np.ndarray, "N D"]:
        """Return which cells are not known exactly."""
        if self._bounds is None:
            return np.ones(self.shape, dtype=bool)
        return ~self._bounds.is_exact

    def _cut(
        self, outputs: list[int], rows: slice = slice(None)
    ) -> tuple[Float[np.ndarray, "N O"], ...]:
        """Return the bounds of some cells, if there are any."""
        if self._bounds is None:
            return ()
        return self._bounds.lower[rows][:, outputs], self._bounds.upper[rows][:, outputs]

    def _by_kind(
        self, likelihood: Likelihood, outputs: list[int], rows: slice = slice(None)
    ) -> Iterator[tuple[Likelihood, Bool[np.ndarray, " K"]]]:
        """Yield what the cells of a likelihood are drawn from, with the cells: shares are apart."""
        if self._bounds is None:
            yield likelihood, np.ones(len(self._inputs[rows]) * len(outputs), dtype=bool)
            return
        share = self._bounds.is_share[rows][:, outputs].ravel()
        if not share.all():
            yield likelihood, ~share
        if share.any():
            yield given_share(likelihood), share

    def _by_likelihood(
        self, latent: Latent, size: int
    ) -> Iterator[tuple[Likelihood, list[int], tuple[Float[np.ndarray, "S K"], ...]]]:
        """Yield each likelihood with its outputs and the latent values of their cells, flat."""
        priors, own = self._posterior.model.priors, self._likelihoods
        for likelihood in dict.fromkeys(own):
            outputs = [place for place, other in enumerate(own) if other == likelihood]
            gamma = []
            for parameter in likelihood.parameters:
                among = priors[parameter.role].outputs
                place = [among.index(self._outputs[d]) for d in outputs]
                values = np.asarray(latent[parameter.role])[:, :size][:, :, place]
                gamma.append(values.reshape(len(values), -1))
            yield likelihood, outputs, tuple(gamma)

    @in_float64
    def latent(self) -> tuple[dict[str, Cells], dict[str, Cells]]:
        """Return mean and standard deviation of the latent functions by role.

        They are as the model has them: before the links, and in the units that it computes in,
        in which observed outputs are of size one. `parameters` are in the outputs' own units.
        """
        parts = []
        for rows in slices(len(self._inputs), MOST_ROWS):
            inputs, size = self._padded(rows)
            found = _latent(self._posterior, inputs)
            parts.append(jax.tree.map(lambda a, n=size: np.asarray(a)[:n], found))
        mean, variance = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        return mean, jax.tree.map(np.sqrt, variance)

    def parameters(self) -> dict[str, Cells]:
        """Return posterior means of the likelihoods' parameters by role, NaN where absent.

        They are those of the outputs in their own units: the mean of a Gaussian, say, is that of
        `mean`, and its scale is a standard deviation in the same unit. Shapes have no unit.
        """
        units = (self._units.shift, self._units.scale)
        return {
            role: self._answer(RoleMean(role), units)[0] for role in self._posterior.model.priors
        }

    def _to_units(self, y: Cells) -> Cells:
        return (np.asarray(y, dtype=float) - self._units.shift) / self._units.scale

    @in_float64
    def _answer(
        self,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...] = (),
        settings: tuple[Any, ...] = (),
        of_seen: tuple[Callable[[Cells], Cells], ...] = (),
    ) -> tuple[Cells, ...]:
        """Ask a question about all cells, chunk by chunk of rows.

        `of_seen` has the answers for values that were seen exactly, of which it is not asked.
        """
        settings = tuple(np.asarray(each, dtype=float) for each in settings)
        arguments = tuple(np.broadcast_to(a, self.shape) for a in arguments)
        seen = self._bounds.lower if self._bounds is not None and of_seen else None
        known = () if seen is None else tuple(answer(seen) for answer in of_seen)
        parts = [
            self._answer_rows(rows, question, arguments, settings, known)
            for rows in slices(len(self._inputs), MOST_ROWS)
        ]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _padded(self, rows: slice) -> tuple[Float[np.ndarray, "P C"], int]:
        """Return the inputs of some rows, their number rounded up, and how many they are."""
        size = rows.stop - rows.start
        return _pad(self._inputs[rows], coarse(size) - size), size

    def _answer_rows(
        self,
        rows: slice,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...],
        settings: tuple[Float[np.ndarray, ""], ...],
        known: tuple[Cells, ...],
    ) -> list[Cells]:
        """Ask a question about the cells of some rows, but for those of which all is known."""
        inputs, size = self._padded(rows)
        latent, mass = _nodes(self._posterior, inputs)
        asked = self._open_cells()[rows] if known else np.ones((size, self.shape[1]), dtype=bool)
        found = [answer[rows].copy() for answer in known]
        for likelihood, outputs, gamma in self._by_likelihood(latent, size):
            own = tuple(a[rows][:, outputs].ravel() for a in arguments)
            cut = tuple(b.ravel() for b in self._cut(outputs, rows))
            for family, kind in self._by_kind(likelihood, outputs, rows):
                place = kind & asked[:, outputs].ravel()
                if not place.any():
                    continue
                some, bounds, about = (
                    tuple(a[..., place] for a in each) for each in (gamma, cut, own)
                )
                each = answers(family, some, np.asarray(mass), bounds, question, about, settings)
                found = found or [np.empty((size, self.shape[1])) for _ in each]
                for answer, part in zip(found, each, strict=True):
                    cells = answer[:, outputs].ravel()
                    cells[place] = part
                    answer[:, outputs] = cells.reshape(size, -1)
        return found


def _pad(rows: Float[np.ndarray, "N C"], room: int) -> Float[np.ndarray, "P C"]:
    """Repeat the last row, so that predictions of similar size share a program."""
    return np.pad(rows, ((0, room), (0, 0)), "edge")
