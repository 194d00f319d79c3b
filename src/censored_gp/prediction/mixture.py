"""The posterior predictive as a finite mixture, Eq. (14): p(y) = sum_s w_s p(y | gamma_s).

The nodes gamma_s and weights w_s come from the posterior, so everything is a weighted sum over
components of the likelihood's own functions. Between bounds every component is truncated.

A cell that was seen for a part of its period is what was seen plus the rest, Y = V + U. Given
gamma_s and V the rest is of the same family, so that it is a mixture again, of components that
begin at V. Where V has bounds, each component is divided by quantiles of V between them.

Programs are compiled for a likelihood, a query and few numbers of cells, whatever the posterior is
like: all models of a family share them. That matters, as tails take long to compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import PartialCount
from censored_gp.likelihoods.quadrature import gauss_legendre
from censored_gp.likelihoods.quantiles import Density, Tails, invert
from censored_gp.likelihoods.special.interval import log_difference
from censored_gp.likelihoods.truncation import bound_tails, log_mass
from censored_gp.model.compilation import bucket, compiled, pad, shapes, slices

# One number for each of K cells, inside a program.
PerCell: TypeAlias = Float[Array, "K"]
# One number for each of S nodes of K cells, inside a program.
PerNode: TypeAlias = Float[Array, "S K"]
# Latent values of K cells at S nodes, or S draws of them, one array for each parameter.
Gamma: TypeAlias = tuple[Float[np.ndarray, "S K"], ...]
# Lower and upper bounds of K cells, or an empty tuple where nothing is truncated.
Bounds: TypeAlias = tuple[Float[np.ndarray, "K"], ...]

# One call of a program covers at most this many components times cells: they fit a cache.
MOST_COMPONENTS = 2**16
# The guess at a quantile is taken to be wrong by this many standard deviations.
LEAP = 0.1
# Quantiles of what was seen of a cell in a part of its period, if that has bounds itself.
PART_NODES = 32
# Between bounds that are this many standard deviations apart a density counts as constant.
NARROW = 1e-9


class Mixture(eqx.Module):
    """K cells of one likelihood as mixtures over S nodes, truncated where there are bounds.

    Attributes
    ----------
    kind
        "right" if no cell has an upper bound, "left" if none has a lower one: less to compile.
    seen
        What was seen of Y, of which the components are the rest; there are no bounds then.
    """

    likelihood: Likelihood
    theta: tuple[PerNode, ...]
    weights: Float[Array, "S #K"]
    bounds: tuple[PerCell, ...] = ()
    kind: str | None = eqx.field(static=True, default=None)
    seen: Float[Array, "#S K"] | float = 0.0

    def average(self, values: PerNode) -> PerCell:
        """Return the mean over components."""
        return jnp.sum(self.weights * values, axis=0)

    def log_average(self, logs: PerNode) -> PerCell:
        """Return the log of the mean over components, from logs."""
        return jax.scipy.special.logsumexp(logs, axis=0, b=self.weights)

    def moments(self) -> tuple[PerCell, PerCell]:
        """Return mean and variance, by the laws of total expectation and variance."""
        family, theta = self.likelihood, self.theta
        if self.bounds:
            mean, variance = family.moments_within(*self.bounds, *theta, kind=self.kind)
        else:
            mean, variance = self.seen + family.mean(*theta), family.variance(*theta)
        centre = self.average(mean)
        return centre, self.average(variance) + self.average((mean - centre) ** 2)

    def log_probability(self, lower: PerCell, upper: PerCell) -> PerCell:
        """Return log P(lower <= Y <= upper), the log density where they are equal."""
        log_likelihood = self.likelihood.log_likelihood
        if not self.bounds:
            ends = lower - self.seen, upper - self.seen
            return self.log_average(log_likelihood(*ends, *self.theta))
        start, end = self.bounds
        low, high = jnp.maximum(lower, start), jnp.minimum(upper, end)
        empty = low > high
        # Two intervals that only touch have a point in common, which has no mass as a rule.
        touching = (low == high) & (lower < upper) & (start < end)
        empty |= touching & ~self.likelihood.support.has_mass(low)
        # An empty interval is replaced by a harmless one; its result is not used.
        low, high = jnp.where(empty, start, low), jnp.where(empty, end, high)
        # In one call, as tails take long to compile.
        ends = (jnp.stack([low, start])[:, None], jnp.stack([high, end])[:, None])
        inside, whole = log_likelihood(*ends, *self.theta)
        return jnp.where(empty, -jnp.inf, self.log_average(inside - whole))

    def log_tails(self, y: PerCell) -> tuple[PerCell, PerCell]:
        """Return log P(Y <= y) and log P(Y > y) without regard to bounds."""
        below, above = self.likelihood.log_tails_anywhere(y - self.seen, *self.theta)
        return self.log_average(below), self.log_average(above)

    def log_cdf(self, y: PerCell) -> PerCell:
        """Return log P(Y <= y)."""
        if self.bounds:
            return self.log_probability(jnp.full_like(y, -jnp.inf), y)
        return self.log_tails(y)[0]

    def quantile(self, level: PerCell, log_level: PerCell) -> PerCell:
        """Return the smallest y with P(Y <= y) >= level, which comes with its logarithm."""
        narrow, support = self._narrow(), self.likelihood.support
        levels = log_level, jnp.log1p(-level)
        found = invert(*self._curves(narrow), *levels, support, *self._guess(level))
        if not self.bounds:
            return found
        lower, upper = self.bounds
        width = jnp.where(narrow, upper - lower, 0.0)
        return jnp.where(narrow, lower + level * width, jnp.clip(found, lower, upper))

    def _narrow(self) -> Bool[Array, "K"]:
        """Return where bounds are so near each other that the tails at them are the same."""
        if not self.bounds:
            return jnp.zeros(self.theta[0].shape[1:], dtype=bool)
        lower, upper = self.bounds
        if self.likelihood.support.discrete:
            return lower == upper
        spread = jnp.sqrt(self.average(self.likelihood.variance(*self.theta)))
        return upper - lower <= NARROW * jnp.where(jnp.isfinite(spread), spread, 0.0)

    def _curves(self, narrow: Bool[Array, "K"]) -> tuple[Tails, Density]:
        """Return the log tails and the log density as functions to search a quantile with.

        The tails at the bounds are computed once, not at every step of the search.
        """
        family, theta = self.likelihood, self.theta
        if not self.bounds:
            return self.log_tails, self._log_density
        lower = jnp.where(narrow, -jnp.inf, self.bounds[0])
        upper = jnp.where(narrow, jnp.inf, self.bounds[1])
        start, end = bound_tails(family, lower, upper, theta)
        whole = log_difference(start, end)

        def log_tails(y: PerCell) -> tuple[PerCell, PerCell]:
            here = family.log_tails_anywhere(y, *theta)
            below, above = log_difference(start, here), log_difference(here, end)
            return self.log_average(below - whole), self.log_average(above - whole)

        return log_tails, lambda y: self.log_average(family.log_density(y, *theta) - whole)

    def _log_density(self, y: PerCell) -> PerCell:
        """Return the log density, without regard to bounds."""
        rest, support = y - self.seen, self.likelihood.support
        inside = rest > support.lower
        rest = jnp.where(inside, rest, support.inside[0])
        logs = self.likelihood.log_density(rest, *self.theta)
        return self.log_average(jnp.where(inside, logs, -jnp.inf))

    def _guess(self, level: PerCell) -> tuple[PerCell, PerCell]:
        """Return a guess at a quantile, inside the bounds, and by how much it may be wrong.

        It is that of a truncated Gaussian of the mean and variance without bounds. A positive
        variable has about a Gaussian cube root, by the moments of Wilson and Hilferty.
        """
        mean, support = self.seen + self.likelihood.mean(*self.theta), self.likelihood.support
        centre = self.average(mean)
        # A variance that is made of quantiles itself would take longer than it saves.
        own = type(self.likelihood).variance is not Likelihood.variance
        noise = self.average(self.likelihood.variance(*self.theta)) if own else 0.0
        std = jnp.sqrt(noise + self.average((mean - centre) ** 2))
        std = jnp.where(jnp.isfinite(std), std, 0.0)
        scale, root, power = std, jnp.asarray, jnp.asarray
        if support.lower == 0.0 and not np.isfinite(support.upper):
            part, root, power = std / (3.0 * centre), jnp.cbrt, lambda r: jnp.maximum(r, 0.0) ** 3
            centre, scale = root(centre) * (1.0 - part**2), root(centre) * part
        lower, upper = self.bounds or (-np.inf, np.inf)
        below, above = (ndtr((root(bound) - centre) / scale) for bound in (lower, upper))
        guess = power(centre + scale * ndtri(below + level * (above - below)))
        # Far out both tails are the same: there the quantile is near the bound.
        guess = jnp.where(jnp.isfinite(guess), guess, jnp.where(jnp.isfinite(lower), lower, upper))
        return jnp.clip(guess + 0.5 * support.discrete, lower, upper), LEAP * std


class ParameterMean(eqx.Module):
    """The query for the posterior mean of the parameter of one role, in given units."""

    role: str = eqx.field(static=True)

    def __call__(self, mixture: Mixture, shift: PerCell, scale: PerCell) -> PerCell:
        """Return the mean, NaN where the likelihood has no parameter of the role."""
        roles = [parameter.role for parameter in mixture.likelihood.parameters]
        if self.role not in roles:
            return jnp.full(mixture.theta[0].shape[1:], jnp.nan)
        theta = mixture.likelihood.rescaled(shift, scale, *mixture.theta)
        return mixture.average(theta[roles.index(self.role)])


class Nodes(NamedTuple):
    """Nodes of K cells of one likelihood: latent values by parameter, their weights, and bounds.

    Attributes
    ----------
    exposure
        The share of its period in which each cell was seen, of which the bounds are; None: all.
        The bounds are then points at all of these cells, or at none.
    spread
        The variance of a normal location, of which gamma has the mean; None: gamma is all.
    """

    likelihood: Likelihood
    gamma: Gamma
    weights: Float[np.ndarray, "S #K"]
    bounds: Bounds
    exposure: Float[np.ndarray, "K"] | None = None
    spread: Float[np.ndarray, "S K"] | None = None

    @property
    def kind(self) -> str | None:
        """Which bound the cells have, if none has the other; "exact": points of a part."""
        if not self.bounds:
            return None
        if self.exposure is not None:
            return "exact" if np.all(self.bounds[0] == self.bounds[1]) else None
        lower, upper = (np.isfinite(bound).any() for bound in self.bounds)
        return None if lower == upper else "right" if lower else "left"


def _partial_mixture(
    likelihood: Likelihood,
    theta: tuple[PerNode, ...],
    weights: Float[Array, "S #K"],
    bounds: tuple[PerCell, ...],
    exposure: PerCell,
    kind: str | None,
) -> Mixture:
    """Return Y = V + U given the bounds of V; U is the rest of the period."""
    seen: Any = bounds[0][None]
    if kind != "exact":
        points, mass = map(jnp.asarray, gauss_legendre(PART_NODES, 2))
        levels, shape = 0.5 * (points + 1.0), (-1, seen.shape[1])
        seen = likelihood.quantile_within(levels, *bounds, *likelihood.exposed(exposure, *theta))
        theta = tuple(jnp.broadcast_to(t, seen.shape).reshape(shape) for t in theta)
        weights = (0.5 * mass * weights).reshape(-1, weights.shape[1])
        seen = seen.reshape(shape)
    rest = likelihood.unseen(exposure, seen, *theta)
    return Mixture(likelihood, tuple(jnp.asarray(t) for t in rest), weights, seen=seen)


@compiled
def _evaluate(
    likelihood: Likelihood,
    query: Callable[..., Any],
    kind: str | None,
    weights: Float[Array, "S #K"],
    gamma: tuple[PerNode, ...],
    bounds: tuple[PerCell, ...],
    exposure: PerCell | None,
    spread: PerNode | None,
    arguments: tuple[PerCell, ...],
) -> tuple[PerCell, ...]:
    """Evaluate a query of the mixtures of cells of one likelihood."""
    theta = likelihood.theta(*gamma)
    if spread is not None:
        theta = theta[0], jnp.sqrt(theta[1] ** 2 + spread)
    if exposure is None or isinstance(query, ParameterMean):
        mixture = Mixture(likelihood, theta, weights, bounds, kind)
    else:
        mixture = _partial_mixture(likelihood, theta, weights, bounds, exposure, kind)
    result = query(mixture, *arguments)
    return result if isinstance(result, tuple) else (result,)


@compiled
def _reweight(
    likelihood: Likelihood, kind: str | None, weights: Any, gamma: Any, bounds: Any, exposure: Any
) -> Float[Array, "P S K"]:
    """Return w_s p(record | gamma_s), normalised over both axes of nodes."""
    theta = likelihood.theta(*gamma)
    if isinstance(likelihood, PartialCount):
        record = likelihood.family.log_likelihood(*bounds, *theta, kind="unknown")
    elif kind is None or exposure is not None:
        record = likelihood.log_likelihood(*bounds, *theta, kind=kind, exposure=exposure)
    else:
        record = log_mass(likelihood, *bounds, *theta, kind=kind)
    return jax.nn.softmax(jnp.log(weights) + record, axis=(0, 1))


@compiled
def _draw(
    likelihood: Likelihood, kind: str | None, key: Array, gamma: Any, bounds: Any, exposure: Any
) -> PerCell:
    """Draw outputs given their latent values, by inversion where there are bounds."""
    theta = likelihood.theta(*gamma)
    if not bounds:
        return likelihood.sample(key, theta[0].shape, *theta)
    uniform = jax.random.uniform(key, theta[0].shape, minval=1e-12)
    if exposure is None:
        return likelihood.quantile_within(uniform, *bounds, *theta)
    seen = bounds[0]
    if kind != "exact":
        part = likelihood.exposed(exposure, *theta)
        seen = likelihood.quantile_within(uniform, *bounds, *part)
    rest = likelihood.unseen(exposure, seen, *theta)
    return seen + likelihood.sample(jax.random.fold_in(key, 1), seen.shape, *rest)


def _in_chunks(
    program: Callable[..., Any], size: int, chunks: list[slice], cells: tuple[Any, ...]
) -> Any:
    """Call a program with chunks of cells, the last axis of all arrays, padded to one size."""

    def call(chunk: slice) -> Any:
        count = chunk.stop - chunk.start
        padded = jax.tree.map(lambda a: pad(a[..., chunk], size - count, axis=-1), cells)
        return jax.tree.map(lambda a: np.asarray(a)[..., :count], program(*padded))

    return jax.tree.map(lambda *parts: np.concatenate(parts, axis=-1), *map(call, chunks))


def evaluate(
    nodes: Nodes, query: Callable[..., Any], *arguments: Float[np.ndarray, "K"]
) -> tuple[Float[np.ndarray, "K"], ...]:
    """Evaluate a query, a function of a `Mixture` and of arguments per cell, for all cells."""
    likelihood, gamma, weights, bounds, exposure, spread = nodes
    kind = nodes.kind if query is Mixture.moments or exposure is not None else None
    program: Any = functools.partial(_evaluate, likelihood, query, kind)
    cells: tuple[Any, ...] = (weights, gamma, bounds, exposure, spread, arguments)
    if weights.shape[1] == 1:
        program, cells = functools.partial(program, weights), cells[1:]
    components = len(weights) * (PART_NODES if exposure is not None and kind is None else 1)
    most = max(1, MOST_COMPONENTS // components)
    return _in_chunks(program, *shapes(gamma[0].shape[1], most), cells)


def reweight(nodes: Nodes) -> Nodes:
    """Return cavity nodes with their posterior weights, given the record of each cell."""
    likelihood, gamma, weights, bounds, exposure, _ = nodes
    shape, runs = gamma[0].shape, [1 + np.count_nonzero(np.diff(g, axis=0).any(1)) for g in gamma]
    # Constants are the same at all nodes of a design point: what depends on them is computed once.
    points = max(
        (count for count in runs if len(weights) % count == 0 and count < shape[0]), default=1
    )
    apart = (g.reshape(points, -1, shape[1]) for g in gamma)
    gamma = tuple(g[:, :1] if np.all(g == g[:, :1]) else g for g in apart)
    program = functools.partial(_reweight, likelihood, nodes.kind, weights.reshape(points, -1, 1))
    chunks = shapes(shape[1], MOST_COMPONENTS // len(weights))
    found = _in_chunks(program, *chunks, (gamma, bounds, exposure))
    return nodes._replace(weights=found.reshape(shape))


def draw(nodes: Nodes, key: Array) -> Any:
    """Draw each cell once for each of its S latent values, and return an array like those."""
    likelihood, gamma, _, bounds, exposure, _ = nodes
    shape, total = gamma[0].shape, gamma[0].size
    finite = np.isfinite(bounds).any(axis=0) if bounds and exposure is None else np.ones(1)
    free = np.asarray(finite == 0)
    if free.all():
        # Without a bound there is nothing to invert, which takes long for some families.
        bounds = ()
    elif free.any():
        drawn = np.empty(shape)
        for some, own in ((free, jax.random.fold_in(key, 1)), (~free, key)):
            each = tuple(np.broadcast_to(g, shape)[:, some] for g in gamma)
            part = nodes._replace(gamma=each, bounds=tuple(b[some] for b in bounds))
            drawn[:, some] = draw(part, own)
        return drawn
    kind = None if exposure is None else nodes.kind

    def program(*cells: Any) -> PerCell:
        nonlocal key
        key, own = jax.random.split(key)
        return _draw(likelihood, kind, own, *cells)

    cells = jax.tree.map(lambda a: np.broadcast_to(a, shape).ravel(), (gamma, bounds, exposure))
    size = bucket(min(total, MOST_COMPONENTS), "predictions")
    return _in_chunks(program, size, slices(total, MOST_COMPONENTS), cells).reshape(shape)
