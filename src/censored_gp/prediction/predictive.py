"""Predictions of the true output, Eq. (8) and Eq. (14): p(y*) = int p(y* | gamma) q(gamma) dgamma.

The mixture is a finite one over latent nodes, so everything a user asks of it is a weighted sum
over components of the likelihood's own functions. Bounds may be given: then it is the distribution
of what a censored cell really was. The posterior has seen those bounds already, so the weights of
the components stay and only each component is cut to them.

A posterior's nodes at given inputs, and how questions are put to them, family by family.

The nodes are computed by a program for each shape of posterior, what is asked of them by a program
for each likelihood and question alone: it is these, with their tails, that take long to compile,
and all models of a family share them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.special import ndtri

from censored_gp.data.observations import Observations
from censored_gp.inference.posterior import Latent, Noise, Posterior, TrainingSites
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import PartialCount
from censored_gp.model.compilation import AnyArray, bucket, compiled, in_float64, pad, slices
from censored_gp.model.model import Units
from censored_gp.prediction.mixture import Mixture, RoleMean, answers, drawn_cells, log_cdf, weighed

Cells = Float[np.ndarray, "N D"]


Bounds = tuple[Float[np.ndarray, " K"], ...]
"""The lower and upper bounds of cells, or nothing."""


MOST_ROWS = 4096
"""Rows whose nodes are computed at once: what bounds the memory."""


MOST_KEPT = 2**20
"""Latent values that are kept for the next question: what is asked once is asked again."""


@compiled
def _nodes(
    posterior: Posterior, inputs: Float[AnyArray, "N C"], seen: TrainingSites
) -> tuple[Latent, Float[Array, "S"]]:
    """Return latent values at the inputs by role, and the weights of the nodes."""
    return posterior.nodes(inputs, seen)


class Nodes:
    """Rows of inputs at which a posterior is asked, bounds of their cells if there are any."""

    def __init__(
        self,
        posterior: Posterior,
        units: Units,
        inputs: Float[np.ndarray, "N C"],
        names: tuple[str, ...],
        bounds: Observations | None = None,
        seen: TrainingSites | None = None,
    ) -> None:
        # How many rows there were in training must not decide what is compiled.
        self._posterior = dataclasses.replace(posterior, sites={})
        self._units, self._inputs = units, inputs
        self.names = names
        self._bounds, self._seen = bounds, seen or {}
        self._outputs = tuple(range(len(names)))
        self._kept: tuple[slice | None, Any] = None, None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5], [3.5]]).shape
        (2, 1)
        """
        return len(self._inputs), len(self.names)

    @property
    def _likelihoods(self) -> list[Likelihood]:
        return [self._posterior.model.likelihoods[output] for output in self._outputs]

    def _to_units(self, y: Cells) -> Cells:
        return (np.asarray(y, dtype=float) - self._units.shift) / self._units.scale

    def _open_cells(self) -> Bool[np.ndarray, "N D"]:
        """Return which cells are not known exactly."""
        if self._bounds is None:
            return np.ones(self.shape, dtype=bool)
        return ~self._bounds.is_exact

    def _by_kind(
        self, likelihood: Likelihood, outputs: list[int], rows: slice = slice(None)
    ) -> Iterator[tuple[Likelihood, Bool[np.ndarray, " K"], Bounds]]:
        """Yield what the cells of a likelihood are drawn from, which they are, and all bounds."""
        known = self._bounds
        if known is None:
            yield likelihood, np.ones(len(self._inputs[rows]) * len(outputs), dtype=bool), ()
            return
        cells = (known.lower, known.upper, known.is_share)
        lower, upper, share = (each[rows][:, outputs].ravel() for each in cells)
        if not share.all():
            yield likelihood, ~share, (lower, upper)
        if share.any():
            yield PartialCount(likelihood), share, (lower, upper)

    def _by_likelihood(
        self, latent: Mapping[str, Float[AnyArray, "S N O"]], size: int
    ) -> Iterator[tuple[Likelihood, list[int], tuple[Float[np.ndarray, "S K"], ...]]]:
        """Yield each likelihood with its outputs and the latent values of their cells, flat."""
        own = self._likelihoods
        for likelihood in dict.fromkeys(own):
            outputs = [place for place, other in enumerate(own) if other == likelihood]
            roles = [parameter.role for parameter in likelihood.parameters]
            yield (
                likelihood,
                outputs,
                tuple(self._of_role(latent[role], role, outputs, size) for role in roles),
            )

    def _of_role(
        self, values: Float[AnyArray, "S N O"], role: str, outputs: list[int], size: int
    ) -> Float[np.ndarray, "S K"]:
        """Return the latent values of a role, of the cells of some outputs, flat."""
        among = self._posterior.model.priors[role].outputs
        place = [among.index(self._outputs[d]) for d in outputs]
        return np.asarray(values)[:, :size][:, :, place].reshape(len(values), -1)

    def _alone(self, likelihood: Likelihood) -> bool:
        """Whether the nodes of cells know nothing yet of what was seen of the cells themselves."""
        return likelihood.nugget and bool(self._seen)

    def _weighed_nodes(
        self, family: Likelihood, outputs: list[int], place: Bool[np.ndarray, " K"], bounds: Bounds
    ) -> tuple[Float[np.ndarray, "S K"], Float[np.ndarray, "S K"]]:
        """Return nodes of the means of some cells, and their weights after the cells were seen."""
        found, roles = [], [parameter.role for parameter in family.parameters]
        for rows in self._chunks():
            size = rows.stop - rows.start
            own, *cut = (a.reshape(-1, len(outputs))[rows].ravel() for a in (place, *bounds))
            if own.any():
                latent, mass = self._nodes_of(rows)
                gamma = [self._of_role(latent[role], role, outputs, size)[:, own] for role in roles]
                share = weighed(family, tuple(gamma), mass[:, None], tuple(b[own] for b in cut))
                found.append((gamma[roles.index("mean")], share))
        nodes, shares = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
        return nodes, shares

    def _draw_nodes(self, random: np.random.Generator, count: int) -> Latent:
        """Draw latent values of every row among its nodes, by their weights."""
        parts = []
        for rows in self._chunks():
            size = rows.stop - rows.start
            latent, mass = self._nodes_of(rows)
            chosen = random.choice(len(mass), size=(count, size), p=mass / np.sum(mass))
            parts.append({r: v[chosen, np.arange(size)] for r, v in latent.items()})
        return jax.tree.map(lambda *each: np.concatenate(each, axis=1), *parts)

    @in_float64
    def _answer(
        self,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...] = (),
        of_seen: tuple[Callable[[Cells], Cells], ...] = (),
    ) -> tuple[Cells, ...]:
        """Ask a question about all cells, chunk by chunk of rows.

        `of_seen` has the answers for values that were seen exactly, of which it is not asked.
        """
        arguments = tuple(np.broadcast_to(a, self.shape) for a in arguments)
        seen = self._bounds.lower if self._bounds is not None and of_seen else None
        known = () if seen is None else tuple(answer(seen) for answer in of_seen)
        parts = [self._answer_rows(rows, question, arguments, known) for rows in self._chunks()]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _answer_rows(
        self,
        rows: slice,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...],
        known: tuple[Cells, ...],
    ) -> list[Cells]:
        """Ask a question about the cells of some rows, but for those of which all is known."""
        size = rows.stop - rows.start
        latent, mass = self._nodes_of(rows)
        asked = self._open_cells()[rows] if known else np.ones((size, self.shape[1]), dtype=bool)
        found = [answer[rows].copy() for answer in known]
        for likelihood, outputs, gamma in self._by_likelihood(latent, size):
            own = tuple(a[rows][:, outputs].ravel() for a in arguments)
            for family, kind, cut in self._by_kind(likelihood, outputs, rows):
                place = kind & asked[:, outputs].ravel()
                if not place.any():
                    continue
                some, bounds, about = (
                    tuple(a[..., place] for a in each) for each in (gamma, cut, own)
                )
                share = mass[:, None]
                if self._alone(likelihood):
                    share = weighed(family, some, share, bounds)
                each = answers(family, some, share, bounds, question, about)
                found = found or [np.empty((size, self.shape[1])) for _ in each]
                for answer, part in zip(found, each, strict=True):
                    cells = answer[:, outputs].ravel()
                    cells[place] = part
                    answer[:, outputs] = cells.reshape(size, -1)
        return found

    def _nodes_of(
        self, rows: slice
    ) -> tuple[dict[str, Float[np.ndarray, "S P O"]], Float[np.ndarray, " S"]]:
        """Return latent values of some rows by role, and the weights of the nodes.

        Those of all rows, if they are few, are kept: a mean, an interval and a score are questions
        about the same.
        """
        kept, found = self._kept
        if kept == rows:
            return found
        inputs, _ = self._padded(rows)
        found = jax.tree.map(
            np.asarray, _nodes(self._posterior, inputs, self._seen_of(rows, len(inputs)))
        )
        whole = rows == slice(0, len(self._inputs))
        if whole and sum(values.size for values in found[0].values()) <= MOST_KEPT:
            self._kept = rows, found
        return found

    def _padded(self, rows: slice) -> tuple[Float[np.ndarray, "P C"], int]:
        """Return the inputs of some rows, their number rounded up, and how many they are."""
        size = rows.stop - rows.start
        return pad(self._inputs[rows], bucket(size, "predictions") - size), size

    def _seen_of(self, rows: slice, room: int) -> TrainingSites:
        """Return what was seen of the cells of some rows, and nothing of those that pad them."""

        def padded(part: Float[AnyArray, "B N D"]) -> Float[np.ndarray, "B P D"]:
            own = np.asarray(part)[:, rows]
            return np.pad(own, ((0, 0), (0, room - own.shape[1]), (0, 0)))

        return jax.tree.map(padded, dict(self._seen))

    def _chunks(self) -> list[slice]:
        """Return the rows in parts whose nodes the memory has room for."""
        return list(slices(len(self._inputs), MOST_ROWS))


ROLE = "mean"
"""The role that may have nuggets."""


QUANTILES_KEPT = 8
"""Levels whose quantiles are remembered, and intervals: pictures of each output, and a table beside
them, ask for the same ones again."""


MOST_DRAWN = 5_000_000
"""Cells drawn at once: what bounds the memory of joint samples."""


@compiled
def _latent(
    posterior: Posterior, inputs: Float[AnyArray, "N C"], seen: TrainingSites
) -> tuple[Latent, Latent]:
    """Return means and variances of the latent parameters by role."""
    return posterior.latent(inputs, seen)


@compiled
def _draw_latent(
    posterior: Posterior,
    noise: Noise,
    inputs: Float[AnyArray, "N C"],
    count: int,
    seen: TrainingSites,
) -> Latent:
    """Draw latent values by role, jointly over rows and outputs."""
    return posterior.draw(noise, inputs, count, seen)


class Prediction(Nodes):
    """The distribution of the true outputs at given inputs, or of censored cells given bounds.

    Every method returns one number for each row and output.

    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> found = model.predict_distribution([[2.5]])
    >>> found.names, found.mean.round(1), found.quantile(0.9).round(1)
    (('y',), array([[3.6]]), array([[4.1]]))
    """

    def of_outputs(self, places: Sequence[int]) -> Prediction:
        """Return the same for some of the outputs: what is asked of it costs that much less.

        >>> from censored_gp import MOCGP
        >>> model = MOCGP(rank=1).fit([[0], [1], [2], [3]], [[1, 9], [2, 7], [3, 8], [2, 9]])
        >>> model.predict_distribution([[2.5]]).of_outputs([1]).names
        ('y1',)
        """
        chosen = list(places)
        units = Units(self._units.shift[chosen], self._units.scale[chosen])
        names = tuple(self.names[place] for place in chosen)
        bounds = None if self._bounds is None else self._bounds.outputs(chosen)
        some = Prediction(self._posterior, units, self._inputs, names, bounds, self._seen)
        some._outputs = tuple(self._outputs[place] for place in chosen)
        some._kept = self._kept
        return some

    @property
    def discrete(self) -> Bool[np.ndarray, "D"]:
        """Which outputs are counts.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).discrete
        array([False])
        """
        return np.array([likelihood.support.discrete for likelihood in self._likelihoods])

    @functools.cached_property
    def _moments(self) -> tuple[Cells, Cells]:
        mean, variance = self._answer(Mixture.moments, of_seen=(lambda y: y, np.zeros_like))
        return self._units.shift + self._units.scale * mean, self._units.scale**2 * variance

    @property
    def mean(self) -> Cells:
        """Expected value of the true output.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).mean.round(1)
        array([[3.6]])
        """
        return self._moments[0]

    @property
    def variance(self) -> Cells:
        """Variance of the true output: noise and uncertainty of the parameters together.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).variance.round(1)
        array([[0.1]])
        """
        return self._moments[1]

    @property
    def std(self) -> Cells:
        """Standard deviation of the true output.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> near, far = model.predict_distribution([[2.5], [9]]).std[:, 0]
        >>> bool(near < far)
        True
        """
        return np.sqrt(self.variance)

    def quantile(self, level: float | list[float]) -> Float[np.ndarray, "... N D"]:
        """Return quantiles; a list of levels gives a leading axis.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).quantile([0.1, 0.5, 0.9]).round(1)[:, 0, 0]
        array([3.2, 3.6, 4.1])
        """
        levels = np.asarray(level, dtype=float)
        if not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"found quantile level {level}; accepted are numbers between 0 and 1")
        values = np.stack([self._remembered(self._quantile, float(p)) for p in levels.ravel()])
        return values.reshape(*levels.shape, *self.shape)

    def _quantile(self, level: float | Cells) -> Cells:
        """Return one quantile of every cell, at the same level or each at its own."""
        levels = np.broadcast_to(np.asarray(level, dtype=float), self.shape)
        found = self._answer(Mixture.quantile, (levels,), of_seen=(lambda y: y,))[0]
        return self._units.shift + self._units.scale * found

    def _remembered(self, find: Callable[[float], Cells], level: float) -> Cells:
        """Return what was found for a level, again if it is not among the few asked for last."""
        kept, key = self._found, (find.__name__, level)
        kept[key] = kept.pop(key) if key in kept else find(level)
        if len(kept) > QUANTILES_KEPT:
            del kept[next(iter(kept))]
        return kept[key]

    @functools.cached_property
    def _found(self) -> dict[tuple[str, float], Cells]:
        return {}

    def interval(self, probability: float = 0.9) -> tuple[Cells, Cells]:
        """Return the central interval that holds the true output with the given probability.

        Of continuous outputs its ends are the quantiles that leave out equally much on either side.
        Of counts the lower end is that quantile, too. But ends count in full, so that less is left
        out below than may be (of small counts, or at a bound, nothing at all); the upper end is
        then the smallest with which the interval holds as much as it should.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> low, high = model.predict_distribution([[2.5]]).interval(0.8)
        >>> low.round(1), high.round(1)
        (array([[3.2]]), array([[4.1]]))
        """
        if not 0 < probability < 1:
            raise ValueError(f"found probability {probability}; accepted is one between 0 and 1")
        low = self.quantile((1 - probability) / 2)
        return low, np.maximum(low, self._remembered(self._upper_end, float(probability)))

    def _upper_end(self, probability: float) -> Cells:
        """Return the upper ends of central intervals."""
        level = np.full(self.shape, (1 + probability) / 2)
        if self.discrete.any():
            below = self.cdf(self.quantile((1 - probability) / 2) - 1.0)
            level = np.where(self.discrete, np.minimum(probability + below, level), level)
        return self._quantile(level)

    def cdf(self, y: Cells) -> Cells:
        """Return P(Y <= y).

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).cdf([[3]]).round(2)
        array([[0.04]])
        """
        return np.exp(self._answer(log_cdf, (self._to_units(y),))[0])

    def log_density(self, y: Cells) -> Cells:
        """Return the log density (or log probability of a count) of true values; NaN stays NaN.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).log_density([[3]]).round(1)
        array([[-1.5]])
        """
        return self.log_probability(y, y)

    def log_probability(self, lower: Cells, upper: Cells) -> Cells:
        """Return log P(lower <= Y <= upper), the log density where they are equal.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> found = model.predict_distribution([[2.5]])
        >>> found.log_probability([[3]], [[float("inf")]]).round(2)
        array([[-0.04]])
        """
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

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5], [3.5]]).sample(100).shape
        (100, 2, 1)
        """
        random = np.random.default_rng(random_state)
        # The first of two: cells that are drawn each on its own stay what they were for a seed.
        key, _ = jax.random.split(jax.random.key(int(random.integers(2**31))))
        size = len(self._inputs)
        # Where nodes are to be weighed by what was seen, they cannot be drawn from as they are.
        if joint or self._seen:
            inputs = pad(self._inputs, bucket(size) - size)
            noise = self._posterior.noise(random, len(inputs), count)
            seen = self._seen_of(slice(size), len(inputs))
            latent = _draw_latent(self._posterior, noise, inputs, count, seen)
        else:
            latent = self._draw_nodes(random, count)
        drawn = np.empty((count, *self.shape))
        if self._bounds is not None:
            # What was seen exactly needs no drawing.
            drawn[:] = self._bounds.lower
        for likelihood, outputs, gamma in self._by_likelihood(latent, size):
            cells = drawn[:, :, outputs].reshape(count, -1)
            for family, place, bounds in self._by_kind(likelihood, outputs):
                key, own = jax.random.split(key)
                open_ = place & self._open_cells()[:, outputs].ravel()
                if self._alone(likelihood):
                    gamma = self._bent(family, outputs, open_, bounds, gamma)
                cut = [np.broadcast_to(bound, (count, bound.size)) for bound in bounds]
                parts = [values[:, open_].ravel() for values in (*gamma, *cut)]
                found = drawn_cells(family, own, parts[: len(gamma)], parts[len(gamma) :])
                cells[:, open_] = found.reshape(count, -1)
            drawn[:, :, outputs] = cells.reshape(count, size, -1)
        return self._units.shift + self._units.scale * drawn

    def _bent(
        self,
        family: Likelihood,
        outputs: list[int],
        open_: Bool[np.ndarray, " K"],
        bounds: Bounds,
        gamma: tuple[Float[np.ndarray, "S K"], ...],
    ) -> tuple[Float[np.ndarray, "S K"], ...]:
        """Bend draws of q to what was seen of cells themselves, where these have a nugget.

        q is a Gaussian, and what is above a bound is not: each draw is exchanged for the quantile,
        at the same level, of the cell's weighed nodes. What cells share stays.
        """
        bounded = np.any([np.isfinite(bound) for bound in bounds], axis=0) & open_
        if not bounded.any():
            return gamma
        nodes, share = self._weighed_nodes(family, outputs, bounded, bounds)
        order = np.argsort(nodes, axis=0, kind="stable")
        nodes, share = (np.take_along_axis(a, order, axis=0) for a in (nodes, share))
        levels = ndtri(np.clip(np.cumsum(share, axis=0) - 0.5 * share, 1e-15, 1 - 1e-15))
        centre, spread = (
            self._of_role(part[ROLE][None], ROLE, outputs, len(self._inputs))[0, bounded]
            for part in self.latent()
        )
        place = [parameter.role for parameter in family.parameters].index(ROLE)
        normal = (gamma[place][:, bounded] - centre) / spread
        bent = gamma[place].copy()
        bent[:, bounded] = np.stack(
            [np.interp(*each) for each in zip(normal.T, levels.T, nodes.T, strict=True)], axis=1
        )
        return *gamma[:place], bent, *gamma[place + 1 :]

    @in_float64
    def latent(self) -> tuple[dict[str, Cells], dict[str, Cells]]:
        """Return mean and standard deviation of the latent functions by role.

        They are as the model has them: before the links, and in the units that it computes in,
        in which observed outputs are of size one. `parameters` are in the outputs' own units.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> mean, std = model.predict_distribution([[2.5]]).latent()
        >>> list(mean), mean["mean"].shape
        (['mean', 'scale'], (1, 1))
        """
        parts = []
        for rows in self._chunks():
            inputs, size = self._padded(rows)
            found = _latent(self._posterior, inputs, self._seen_of(rows, len(inputs)))
            parts.append(jax.tree.map(lambda a, n=size: np.asarray(a)[:n], found))
        mean, variance = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        return mean, jax.tree.map(np.sqrt, variance)

    def parameters(self) -> dict[str, Cells]:
        """Return posterior means of the likelihoods' parameters by role, NaN where absent.

        They are those of the outputs in their own units: the mean of a Gaussian, say, is that of
        `mean`, and its scale is a standard deviation in the same unit. Shapes have no unit.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).parameters()["mean"].round(1)
        array([[3.6]])
        """
        units = (self._units.shift, self._units.scale)
        return {
            role: self._answer(RoleMean(role), units)[0] for role in self._posterior.model.priors
        }


def draws(
    prediction: Prediction, count: int, seed: int | np.random.Generator
) -> Float[np.ndarray, "S N D"]:
    """Draw jointly over rows and outputs, so many draws at a time as the memory has room for."""
    made = np.empty((count, *prediction.shape))
    start = 0
    for part in drawn_in_parts(prediction, count, seed):
        made[start : start + len(part)] = part
        start += len(part)
    return made


def central(drawn: Float[np.ndarray, "S N D"], probability: float) -> tuple[Cells, Cells]:
    """Return both ends of the central intervals of drawn cells, as `Prediction.interval` has them.

    >>> low, high = central(np.repeat([0.0, 1.0, 2.0, 9.0], [50, 30, 15, 5])[:, None, None], 0.9)
    >>> float(low[0, 0]), float(high[0, 0])
    (0.0, 2.0)
    """
    ordered = np.sort(drawn, axis=0)
    # Rounding errors must not make one draw more of it.
    below, inside = (
        max(1, int(np.ceil(len(ordered) * share - 1e-9)))
        for share in ((1 - probability) / 2, probability)
    )
    low = ordered[below - 1]
    upto = np.count_nonzero(ordered < low, axis=0) + inside
    return low, np.take_along_axis(ordered, upto[None] - 1, axis=0)[0]


def drawn_in_parts(
    prediction: Prediction, count: int, seed: int | np.random.Generator
) -> Iterator[Float[np.ndarray, "S N D"]]:
    """Yield joint draws, part by part, for sums that need not have all of them at once."""
    if not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"Draws: found {count!r}. Accepted is a whole number, 1 or more.")
    rows, outputs = prediction.shape
    parts = max(1, -(-count * rows * outputs // MOST_DRAWN))
    size, rng = -(-count // parts), np.random.default_rng(seed)
    for start in range(0, count, size):
        # All parts are of one size, so that they share one compiled program.
        yield prediction.sample(size, rng)[: count - start]
