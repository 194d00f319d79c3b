"""Predictions of the true output, Eq. (8) and (14): p(y*) = int p(y* | gamma) q(gamma) dgamma.

The posterior gives nodes gamma_s and weights w_s at every row, and the integral becomes a finite
mixture over them (`mixture`). What a user asks for is a query of these mixtures.

With bounds it is the distribution of what a censored cell really was. The posterior has seen these
bounds, so the weights stay and each component is truncated. Only where a cell has a nugget, noise
that no other row shares, does the posterior give the nodes of its cavity, and they are reweighted
by the likelihood of the cell's own record. Of a cell that was seen for a part of its period the
bounds are those of the part, and what is predicted is the whole.

One program is compiled for each query and likelihood; all models of a family share them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri

from censored_gp.data.errors import quoted, reads_as, warn
from censored_gp.data.observations import Observations
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.sites import TrainingSites
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import PartialCount
from censored_gp.likelihoods.support import JUST
from censored_gp.model.compilation import AnyArray, float64, slices
from censored_gp.model.model import Units
from censored_gp.prediction.mixture import (
    Gamma,
    Mixture,
    Nodes,
    ParameterMean,
    draw,
    evaluate,
    reweight,
)

Cells: TypeAlias = Float[np.ndarray, "N D"]
Mask: TypeAlias = Bool[np.ndarray, "N D"]
# Rows and outputs of K cells.
Index: TypeAlias = tuple[Int[np.ndarray, "K"], Int[np.ndarray, "K"]]

# Nodes are computed for at most this many rows at once, which bounds the memory.
MOST_ROWS = 4096
# Nodes of at most this many latent values are kept for the next query.
MOST_KEPT = 2**23
# At most this many cells are drawn jointly at once, which bounds the memory.
MOST_DRAWN = 5_000_000


class Transform(NamedTuple):
    """Maps draws of a latent value under q to draws of its cell's reweighted mixture.

    q is Gaussian, but a latent value given a bound of its own cell is not. A draw is replaced by
    the quantile, at its own level under q, of the reweighted nodes. The copula stays.
    """

    centre: Float[np.ndarray, "K"]
    spread: Float[np.ndarray, "K"]
    levels: Float[np.ndarray, "S K"]
    nodes: Float[np.ndarray, "S K"]

    def of(self, drawn: Float[np.ndarray, "R K"]) -> Float[np.ndarray, "R K"]:
        """Return the quantiles of draws, the levels of which are those of standard normals."""
        normal = (drawn - self.centre) / self.spread
        curves = zip(normal.T, self.levels.T, self.nodes.T, strict=True)
        return np.stack([np.interp(*each) for each in curves], axis=1)


class Prediction:
    """The distribution of the true outputs at given inputs, or of censored cells given bounds.

    Bounds are in model units; `rows` are the training rows that they are of.
    Every method returns one number for each row and output.

    >>> found = model.predict_distribution([[2.5]])
    >>> found.names, found.mean.round(1), found.quantile(0.9).round(1)
    (('y',), array([[3.6]]), array([[4.]]))
    """

    def __init__(
        self,
        posterior: Posterior,
        units: Units,
        inputs: Float[np.ndarray, "N C"],
        names: tuple[str, ...],
        bounds: Observations | None = None,
        rows: Int[np.ndarray, "N"] | None = None,
        outputs: tuple[int, ...] | None = None,
    ) -> None:
        self._posterior = posterior
        self._units, self._inputs, self.names = units, inputs, names
        self._observed, self._rows, sites = bounds, rows, {} if rows is None else posterior.sites
        self._sites = jax.tree.map(lambda a: np.asarray(a)[..., rows, :], dict(sites or {}))
        self._outputs = tuple(range(len(names))) if outputs is None else outputs
        self._likelihoods = [posterior.model.likelihoods[output] for output in self._outputs]
        nowhere = np.zeros(self.shape, dtype=bool)
        self._exact = nowhere if bounds is None else bounds.is_exact
        self._exposure = np.ones(self.shape) if bounds is None else bounds.exposure
        self._bounds = ()
        if bounds is not None:
            # A count is at least what was seen of it in an unknown share.
            upper = np.where(np.isnan(bounds.exposure), np.inf, bounds.upper)
            self._bounds = bounds.lower, upper
        self._nodes: dict[str | None, Any] = {}
        self._levels: dict[tuple[str, float], Cells] = {}
        self._transforms: dict[int, Transform] = {}

    def of_outputs(self, places: Sequence[int]) -> Prediction:
        """Return the same for some of the outputs: queries of it cost that much less.

        >>> model.predict_distribution([[2.5]]).of_outputs([0]).names
        ('y',)
        """
        chosen = list(places)
        units = Units(self._units.shift[chosen], self._units.scale[chosen])
        names = tuple(self.names[place] for place in chosen)
        bounds = None if self._observed is None else self._observed.outputs(chosen)
        outputs = tuple(self._outputs[place] for place in chosen)
        some = Prediction(self._posterior, units, self._inputs, names, bounds, self._rows, outputs)
        some._nodes = self._nodes
        return some

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs.

        >>> model.predict_distribution([[2.5], [3.5]]).shape
        (2, 1)
        """
        return len(self._inputs), len(self.names)

    @property
    def discrete(self) -> Bool[np.ndarray, "D"]:
        """Which outputs are counts.

        >>> model.predict_distribution([[2.5]]).discrete
        array([False])
        """
        return np.array([likelihood.support.discrete for likelihood in self._likelihoods])

    @property
    def mean(self) -> Cells:
        """Expected value of the true output.

        >>> model.predict_distribution([[2.5]]).mean.round(1)
        array([[3.6]])
        """
        return self._moments[0]

    @property
    def variance(self) -> Cells:
        """Variance of the true output: noise and uncertainty of the parameters together.

        >>> model.predict_distribution([[2.5]]).variance.round(1)
        array([[0.1]])
        """
        return self._moments[1]

    @property
    def std(self) -> Cells:
        """Standard deviation of the true output.

        >>> near, far = model.predict_distribution([[2.5], [9]]).std[:, 0]
        >>> bool(near < far)
        True
        """
        return np.sqrt(self.variance)

    @functools.cached_property
    def _moments(self) -> tuple[Cells, Cells]:
        mean, variance = self._evaluate(Mixture.moments, results=2, skip_exact=True)
        return self._units.shift + self._units.scale * mean, self._units.scale**2 * variance

    def quantile(self, level: float | list[float]) -> Float[np.ndarray, "... N D"]:
        """Return quantiles; a list of levels gives a leading axis.

        >>> model.predict_distribution([[2.5]]).quantile([0.1, 0.5, 0.9]).round(1)[:, 0, 0]
        array([3.2, 3.6, 4. ])
        """
        levels = np.asarray(level, dtype=float) if reads_as(np.float64, level) else np.zeros(1)
        if levels.ndim > 1 or not levels.size or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"`levels` must be one or more between 0 and 1, got {level!r}.")
        values = np.stack([self._keep(self._quantile, float(p)) for p in levels.ravel()])
        return values.reshape(*levels.shape, *self.shape)

    def interval(self, probability: float = 0.9) -> tuple[Cells, Cells]:
        """Return the central interval that holds the true output with the given probability.

        Of continuous outputs its ends are the quantiles that leave out equally much on either side.
        Of counts, and of amounts that may be zero, the lower end is that quantile, too. But ends
        count in full, so that less is left out below than may be (of small counts, or at a bound,
        nothing at all); the upper end is then the smallest with which the interval holds as much as
        it should.

        >>> low, high = model.predict_distribution([[2.5]]).interval(0.8)
        >>> low.round(1), high.round(1)
        (array([[3.2]]), array([[4.]]))
        """
        check_probability(probability)
        low = self.quantile((1 - probability) / 2)
        return low, np.maximum(low, self._keep(self._upper_end, float(probability)))

    def _quantile(self, level: float | Cells) -> Cells:
        """Return one quantile of every cell, at the same level or each at its own."""
        level = np.asarray(level, dtype=float)
        # Programs take the smallest numbers for zero: the logarithm is computed before.
        found = self._evaluate(Mixture.quantile, level, np.log(level), skip_exact=True)[0]
        return self._units.shift + self._units.scale * found

    def _upper_end(self, probability: float) -> Cells:
        """Return the upper ends of central intervals."""
        level = np.full(self.shape, (1 + probability) / 2)
        supports = [likelihood.support for likelihood in self._likelihoods]
        lumps = np.array([support.discrete or support.atom for support in supports])
        if lumps.any():
            step = np.where(self.discrete, 1.0, JUST)
            low = self._in_model_units(self.quantile((1 - probability) / 2) - step)
            # Of exact cells, which are skipped, no level is used.
            log_below = self._evaluate(Mixture.log_cdf, low, skip_exact=True)[0]
            below = np.exp(np.minimum(log_below, 0.0))
            level = np.where(lumps, np.minimum(probability + below, level), level)
        return self._quantile(level)

    def _keep(self, find: Callable[[float], Cells], level: float) -> Cells:
        """Return `find(level)`, from a cache of the levels used last."""
        kept, key = self._levels, (find.__name__, level)
        kept[key] = kept.pop(key) if key in kept else find(level)
        # Plots and tables share a few.
        if len(kept) > 8:
            del kept[next(iter(kept))]
        return kept[key]

    def cdf(self, y: Cells) -> Cells:
        """Return P(Y <= y).

        >>> model.predict_distribution([[2.5]]).cdf([[3]]).round(2)
        array([[0.03]])
        """
        return np.exp(self._evaluate(Mixture.log_cdf, self._in_model_units(y))[0])

    def log_density(self, y: Cells) -> Cells:
        """Return the log density (or log probability of a count) of true values; NaN stays NaN.

        >>> model.predict_distribution([[2.5]]).log_density([[3]]).round(1)
        array([[-1.5]])
        """
        return self.log_probability(y, y)

    def log_probability(self, lower: Cells, upper: Cells) -> Cells:
        """Return log P(lower <= Y <= upper), the log density where they are equal.

        >>> found = model.predict_distribution([[2.5]])
        >>> found.log_probability([[3]], [[float("inf")]]).round(2)
        array([[-0.03]])
        """
        lower, upper = np.broadcast_arrays(*(np.asarray(b, dtype=float) for b in (lower, upper)))
        unknown = np.isnan(lower) | np.isnan(upper)
        low = np.where(unknown, -np.inf, self._in_model_units(lower))
        high = np.where(unknown, np.inf, self._in_model_units(upper))
        masses = [k.support.has_mass(lower[:, d]) for d, k in enumerate(self._likelihoods)]
        per_unit = np.where(
            (lower == upper) & ~np.stack(masses, axis=1), np.log(self._units.scale), 0.0
        )
        found = self._evaluate(Mixture.log_probability, low, high)[0]
        return np.where(unknown, np.nan, found - per_unit)

    def parameters(self) -> dict[str, Cells]:
        """Return posterior means of the likelihoods' parameters by role, NaN where absent.

        They are those of the outputs in their own units: the mean of a Gaussian, say, is that of
        `mean`, and its scale is a standard deviation in the same unit. Shapes have no unit.

        >>> model.predict_distribution([[2.5]]).parameters()["mean"].round(1)
        array([[3.6]])
        """
        roles, units = self._posterior.model.priors, self._units
        return {
            role: self._evaluate(ParameterMean(role), units.shift, units.scale)[0] for role in roles
        }

    @float64()
    def latent(self) -> tuple[dict[str, Cells], dict[str, Cells]]:
        """Return mean and standard deviation of the latent functions by role.

        They are as the model has them: before the links, and in the units that it computes in,
        in which observed outputs are of size one. `parameters` are in the outputs' own units.

        >>> mean, std = model.predict_distribution([[2.5]]).latent()
        >>> list(mean), mean["mean"].shape
        (['mean', 'scale'], (1, 1))
        """
        parts = []
        for rows in slices(len(self._inputs), MOST_ROWS):
            parts.append(self._posterior.latent(*self._part(rows)))
        mean, variance = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        return mean, jax.tree.map(np.sqrt, variance)

    def sample(
        self, count: int, random_state: int | np.random.Generator = 0
    ) -> Float[np.ndarray, "S N D"]:
        """Draw true outputs jointly over rows and outputs, so that sums of them are right too.

        >>> model.predict_distribution([[2.5], [3.5]]).sample(100).shape
        (100, 2, 1)
        """
        check_draws(count, "count", math.prod(self.shape))
        drawn, start = np.empty((count, *self.shape)), 0
        for part in self.sample_in_chunks(count, random_state):
            drawn[start : start + len(part)] = part
            start += len(part)
        return drawn

    def sample_in_chunks(
        self, count: int, random_state: int | np.random.Generator = 0
    ) -> Iterator[Float[np.ndarray, "S N D"]]:
        """Return the draws of `sample` part by part, for sums over them.

        >>> found = model.predict_distribution([[2.5], [3.5]])
        >>> [len(part) for part in found.sample_in_chunks(100)]
        [100]
        """
        check_draws(count, "count", 1)
        parts = max(1, -(-count * self.shape[0] * self.shape[1] // MOST_DRAWN))
        size, random = -(-count // parts), np.random.default_rng(random_state)
        starts = range(0, count, size)
        # All parts are of one size, so that they share one compiled program.
        return (self._sample(size, random)[: count - start] for start in starts)

    @float64()
    def _sample(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "S N D"]:
        """Draw latent values, then outputs given them, within their bounds if they have any."""
        # Only the first key is used; without the split, the draws of a given seed would change.
        key, _ = jax.random.split(jax.random.key(int(random.integers(2**31))))
        everything = slice(0, len(self._inputs))
        inputs, sites = self._part(everything)
        latent = self._posterior.draw(random, inputs, count, sites)
        drawn = np.empty((count, *self.shape))
        if self._bounds:
            drawn[:] = self._bounds[0]
        for k, (family, cells, exposure) in enumerate(self._by_family(everything, ~self._exact)):
            key, own = jax.random.split(key)
            if not cells[0].size:
                continue
            gamma, bounds = (
                self._gamma(latent, family, cells),
                tuple(b[cells] for b in self._bounds),
            )
            bounded = np.isfinite(bounds).any(axis=0)
            if self._has_cavity(family) and bounded.any():
                if k not in self._transforms:
                    some = cells[0][bounded], cells[1][bounded]
                    self._transforms[k] = self._transform(family, some)
                mean = [parameter.role for parameter in family.parameters].index("mean")
                gamma[mean][:, bounded] = self._transforms[k].of(gamma[mean][:, bounded])
            nodes = Nodes(family, gamma, np.ones((1, 1)), bounds, exposure)
            drawn[:, cells[0], cells[1]] = draw(nodes, own)
        self._warn_of_nan(drawn)
        return self._units.shift + self._units.scale * drawn

    def _transform(self, family: Likelihood, cells: Index) -> Transform:
        """Return the quantile transforms of the latent means of bounded cells."""
        wanted = np.zeros(self.shape, dtype=bool)
        wanted[cells] = True
        mean = [parameter.role for parameter in family.parameters].index("mean")
        parts = [
            (nodes.gamma[mean], nodes.weights)
            for rows in slices(len(self._inputs), MOST_ROWS)
            for _, nodes in self._mixtures(rows, wanted)
        ]
        nodes, weights = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        order = np.argsort(nodes, axis=0, kind="stable")
        nodes, weights = (np.take_along_axis(a, order, axis=0) for a in (nodes, weights))
        levels = ndtri(np.clip(np.cumsum(weights, axis=0) - 0.5 * weights, 1e-15, 1 - 1e-15))
        latent = ({role: v[None] for role, v in part.items()} for part in self.latent())
        centre, spread = (self._gamma(part, family, cells)[mean][0] for part in latent)
        return Transform(centre, spread, levels, nodes)

    @float64()
    def _evaluate(
        self, query: Callable[..., Any], *arguments: Any, results: int = 1, skip_exact: bool = False
    ) -> Float[np.ndarray, "R N D"]:
        """Evaluate a query of the mixtures of all cells, which has so many results.

        With `skip_exact` cells that are known exactly are not queried: the first result of theirs
        is their value, the others are zero.
        """
        arguments = tuple(np.broadcast_to(a, self.shape) for a in arguments)
        found = np.zeros((results, *self.shape))
        skipped = self._exact & skip_exact
        if self._bounds:
            found[0] = np.where(skipped, self._bounds[0], 0.0)
        for rows in slices(len(self._inputs), MOST_ROWS):
            closed = not isinstance(query, ParameterMean)
            for cells, nodes in self._mixtures(rows, ~skipped, closed):
                found[:, *cells] = evaluate(nodes, query, *(a[cells] for a in arguments))
        if not isinstance(query, ParameterMean):
            self._warn_of_nan(found, np.isnan(arguments).any(axis=0) if arguments else False)
        return found

    def _warn_of_nan(self, found: Float[np.ndarray, "R N D"], unknown: Any = False) -> None:
        """Warn of results that are no numbers, where the question was one."""
        bad = np.isnan(found).any(axis=0) & ~np.asarray(unknown)
        if bad.any():
            row, output = np.argwhere(bad)[0].tolist()
            cells = f"Output {quoted(self.names[output])}, row {row} ({bad.sum()} cells in all)"
            warn(f"{cells}: the prediction is NaN. See how the fit ended.", RuntimeWarning)

    def _mixtures(
        self, rows: slice, wanted: Mask, closed: bool = False
    ) -> Iterator[tuple[Index, Nodes]]:
        """Yield the wanted cells of some rows, family by family, and their nodes.

        With `closed` a normal location is integrated in closed form where there are no bounds.
        """
        nodes_of = functools.cache(lambda held: self._nodes_of(rows, held))
        for family, every, exposure in self._by_family(rows, wanted):
            free = np.full(len(every[0]), closed and exposure is None and family.is_normal)
            for bound in self._bounds:
                free &= np.isinf(bound[every])
            for some, held in ((free, family.parameters[0].role), (~free, None)):
                if not some.any():
                    continue
                cells = every[0][some], every[1][some]
                latent, weights, spread = nodes_of(held)
                places = cells[0] - rows.start, cells[1]
                gamma = self._gamma(latent, family, places)
                own = None if exposure is None else exposure[some]
                bounds = () if held else tuple(bound[cells] for bound in self._bounds)
                spread = None if spread is None else self._at(spread, held, places)
                nodes = Nodes(family, gamma, weights[:, None], bounds, own, spread)
                yield cells, reweight(nodes) if bounds and self._has_cavity(family) else nodes

    def _by_family(
        self, rows: slice, wanted: Mask
    ) -> Iterator[tuple[Likelihood, Index, Float[np.ndarray, "K"] | None]]:
        """Yield each family that some rows have, its wanted cells, and their exposures if below 1.

        The counts of a likelihood that were seen for an unknown share are a family of their own.
        """
        exposure = self._exposure[rows]
        whole, unknown = (exposure == 1) | (exposure == 0), np.isnan(exposure)
        point = whole if not self._bounds else np.equal(*(b[rows] for b in self._bounds))
        for likelihood in dict.fromkeys(self._likelihoods):
            same = np.array([other == likelihood for other in self._likelihoods])
            for family, kind in (
                (likelihood, whole),
                (PartialCount(likelihood), unknown),
                (likelihood, ~whole & ~unknown & point),
                (likelihood, ~whole & ~unknown & ~point),
            ):
                cells = same & kind
                if cells.any():
                    row, output = np.nonzero(cells & wanted[rows])
                    own = None if kind is whole or kind is unknown else exposure[row, output]
                    yield family, (row + rows.start, output), own

    def _gamma(
        self, latent: Mapping[str, Float[AnyArray, "S N O"]], family: Likelihood, cells: Index
    ) -> Gamma:
        """Return the latent values of the parameters of a family, at some cells."""
        roles = [parameter.role for parameter in family.parameters]
        return tuple(self._at(latent[role], role, cells) for role in roles)

    def _at(
        self, values: Float[AnyArray, "S N O"], role: Any, cells: Index
    ) -> Float[np.ndarray, "S K"]:
        """Return values of the outputs of a role, at some cells."""
        outputs = self._posterior.model.priors[role].outputs
        # Outputs of other families may lack the role.
        places = np.array([outputs.index(d) if d in outputs else -1 for d in self._outputs])
        values = np.asarray(values)
        flat = cells[0] * values.shape[2] + places[cells[1]]
        return np.take(values.reshape(len(values), -1), flat, axis=1)

    def _nodes_of(self, rows: slice, held: str | None = None) -> Any:
        """Return what `Posterior.nodes` does, of some rows.

        Those of all rows, if they are few, are kept for the next query.
        """
        everything = rows == slice(0, len(self._inputs))
        if everything and held in self._nodes:
            return self._nodes[held]
        found = self._posterior.nodes(*self._part(rows), held)
        if everything and sum(a.size for a in found[0].values()) <= MOST_KEPT:
            self._nodes[held] = found
        return found

    def _part(self, rows: slice) -> tuple[Float[np.ndarray, "n C"], TrainingSites]:
        """Return inputs and sites of some rows."""
        return self._inputs[rows], jax.tree.map(lambda a: a[..., rows, :], self._sites)

    def _has_cavity(self, family: Likelihood) -> bool:
        """Whether the nodes of training cells are those of the cavity, to be reweighted."""
        own = family.family if isinstance(family, PartialCount) else family
        return own.nugget and bool(self._sites)

    def _in_model_units(self, y: Cells) -> Cells:
        return (np.asarray(y, dtype=float) - self._units.shift) / self._units.scale


def check_probability(probability: Any) -> None:
    """Refuse what is no probability of an interval."""
    number = isinstance(probability, Real) and not isinstance(probability, bool)
    if not number or not reads_as(float, probability) or not 0 < float(probability) < 1:
        raise ValueError(f"`probability` must be between 0 and 1, got {probability!r}.")


def check_draws(count: Any, argument: str, cells: int | None = None) -> None:
    """Refuse what is no number of draws: of a summary, or of so many cells that are all kept."""
    # The error of a summary is then a thousandth of a standard deviation; a sample takes 16 GB.
    most = 10**6 if cells is None else 2 * 10**9 // cells
    number = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not number or not 1 <= count <= most:
        raise ValueError(f"`{argument}` must be a positive integer up to {most:,}, got {count!r}.")


def central_interval(drawn: Float[np.ndarray, "S N D"], probability: float) -> tuple[Cells, Cells]:
    """Return both ends of the central intervals of drawn cells, as `Prediction.interval` has them.

    >>> drawn = np.repeat([0.0, 1.0, 2.0, 9.0], [50, 30, 15, 5])[:, None, None]
    >>> low, high = central_interval(drawn, 0.9)
    >>> float(low[0, 0]), float(high[0, 0])
    (0.0, 2.0)
    """
    ordered = np.sort(drawn, axis=0)
    # Rounding errors must not add a draw to the interval.
    below, inside = (
        max(1, int(np.ceil(len(ordered) * share - 1e-9)))
        for share in ((1 - probability) / 2, probability)
    )
    low = ordered[below - 1]
    upto = np.count_nonzero(ordered < low, axis=0) + inside
    return low, np.take_along_axis(ordered, upto[None] - 1, axis=0)[0]
