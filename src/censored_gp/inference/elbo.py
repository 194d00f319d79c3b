"""The evidence lower bound, Eq. (6) and Eq. (13): its only home.

    ELBO = E_q[log p(y | gamma)] - KL(q || p).                                      :func:`elbo`

Observed cells are laid out flat, one list (:class:`Terms`) for each likelihood and kind of bound,
as a tail costs far more than a density and a missing cell costs nothing. The expectation is a sum
over nodes of gamma, by quadrature or by samples.

The engine ``natural`` holds q as Gaussian sites over the whitened weights v of each role: one pair
(h, Lambda) for each row, output and parameter, standing for exp(h gamma - Lambda gamma^2 / 2). So

    P = I + sum_d Psi_d' diag(Lambda_d) Psi_d,      b = sum_d Psi_d' (h_d - Lambda_d m_d),
    q(v) = N(P^-1 b, P^-1),      gamma_d = m_d + Psi_d v,      Psi_d = Phi * loading_d,

and :func:`evaluate` returns the ELBO, its gradient in the hyper-parameters and the next sites, from
sums over the rows (see `lookup`). A nugget is integrated out of the sites first, and has a
divergence of its own (see `sites`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from censored_gp.data.observations import Observations
from censored_gp.data.storage import allocate
from censored_gp.data.validation import to_support
from censored_gp.inference.lookup import Lookup, OutputBlock, make_blocks
from censored_gp.inference.sites import ByBlock, Moments, Sites, Weights
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.quadrature import grid
from censored_gp.likelihoods.special.elementary import safe_sqrt
from censored_gp.model.compilation import AnyArray, Scalar, bucket, compiled, slices
from censored_gp.model.inducing import InducingInputs, Knots
from censored_gp.model.lmc import LMC, slope_precision

# A latent variance not above this counts as zero, as its derivative would be lost in rounding.
NO_VARIANCE = 1e-20
# A compiled program takes at most this many cells at a time, which caches can hold.
CELLS_OF_A_PROGRAM = 8192
# A pass over the rows takes about this many cells at a time.
CELLS_AT_A_TIME = 2**18
# Latent deviations up to this, and up to this over the root of the precision of the site, leave log
# likelihoods so smooth that fewer nodes are as exact.
NARROW = 0.35
# Nodes of cells with narrow q, in fits that take more than one program's cells.
NODES_OF_NARROW = 8
# Sites of more cells are kept in single precision: any sites make a q, and a bound.
MOST_DOUBLE = 2**23
# A pass takes at least this many rows at a time.
LEAST_ROWS = 1024
# The hyper-parameters of every role.
Roles = dict[str, LMC]
# One number for each row and output of a role, the outputs of all blocks side by side.
SideBySide = Float[AnyArray, "N O"]
# One number for each cell and parameter of its likelihood.
ByCell = Float[AnyArray, "K J"]
ByRole = Mapping[str, SideBySide]
# Standardised nodes of the J parameters of some cells, and their weights.
Nodes = Callable[["Terms"], tuple[Float[AnyArray, "... S J"], Float[AnyArray, "S"]]]


class Terms(eqx.Module):
    """The cells of one kind under one likelihood.

    Attributes
    ----------
    column
        Where each parameter of the cell's output stands among the outputs of its role.
    weight
        One, or zero for a cell that only pads the shape.
    exposure
        What `Likelihood.exposed` takes of each cell: the share of its period in which it was seen
        (of `substitution.Measured` the variance of an error of measurement); None: all was seen.
    """

    row: Int[np.ndarray, "K"]
    column: Int[np.ndarray, "K J"]
    lower: Float[np.ndarray, "K"]
    upper: Float[np.ndarray, "K"]
    weight: Float[np.ndarray, "K"]
    likelihood: Likelihood
    roles: tuple[str, ...] = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    exposure: Float[np.ndarray, "K"] | None = None

    def log_likelihood(self, *theta: Float[Array, "K S"]) -> Float[Array, "K S"]:
        """Return the log likelihood of every cell given theta."""
        wide = (slice(None), *(None,) * (theta[0].ndim - 1))
        lower, upper = jnp.asarray(self.lower)[wide], jnp.asarray(self.upper)[wide]
        share = None if self.exposure is None else jnp.asarray(self.exposure)[wide]
        return self.likelihood.log_likelihood(lower, upper, *theta, kind=self.kind, exposure=share)

    @property
    def program_size(self) -> int:
        """How many cells a compiled program takes at a time.

        How many cells are censored is chance: it must not decide what is compiled.
        """
        calls = -(-len(self.row) // CELLS_OF_A_PROGRAM)
        return bucket(-(-len(self.row) // calls), "cells")

    def padded(self, size: int, start: int = 0, stop: int | None = None) -> Terms:
        """Return some of the cells, padded to a size by weightless copies of the first."""
        count = (len(self.row) if stop is None else stop) - start
        index: Any = slice(start, start + count)
        weight = self.weight[index]
        if count < size:
            index = np.full(size, start)
            index[:count] += np.arange(count)
            weight = np.where(np.arange(size) < count, self.weight[index], 0.0)
        own = self.row[index], self.column[index], self.lower[index], self.upper[index], weight
        exposure = None if self.exposure is None else self.exposure[index]
        return Terms(*own, self.likelihood, self.roles, self.kind, exposure)

    def gather(self, by_role: ByRole) -> Float[Array, "K J"]:
        """Pick the values of each cell's parameters out of one array for each role."""
        picked = [by_role[r][self.row, self.column[:, j]] for j, r in enumerate(self.roles)]
        return jnp.stack(picked, axis=1)


def collect_terms(
    observations: Observations,
    likelihoods: tuple[Likelihood, ...],
    role_outputs: dict[str, tuple[int, ...]],
) -> tuple[Terms, ...]:
    """Sort the observed cells by likelihood and kind, in the order of their rows.

    Those seen for a part of their period are apart, as others cost less without an exposure.
    """
    families, kinds = list(dict.fromkeys(likelihoods)), ("exact", "right", "left", "interval")
    sorts = [*product(kinds, (False, True)), ("unknown", False)]
    found: dict[Any, list[Any]] = {(family, *sort): [] for family in families for sort in sorts}
    for stretch in slices(len(observations), CELLS_AT_A_TIME):
        seen = to_support(observations.rows(stretch), likelihoods)
        partial, unknown = seen.is_partial, np.isnan(seen.exposure)
        # The kind of an exposed cell is that of the bounds of what was seen.
        bounds = dataclasses.replace(seen, exposure=np.ones((1, 1)))
        masks = {k: getattr(bounds, f"is_{k}") & ~unknown for k in kinds} | {"unknown": unknown}
        for family, kind, exposed in found:
            part = masks[kind] if kind == "unknown" else masks[kind] & (partial == exposed)
            own = part & np.array([other == family for other in likelihoods])
            rows, outputs = np.nonzero(own)
            places = (stretch.start + rows).astype(np.int32), outputs.astype(np.int32)
            exposure = seen.exposure[own] if exposed else np.zeros(0)
            cells = *places, seen.lower[own], seen.upper[own], exposure
            found[family, kind, exposed].append(cells)
    terms = []
    for family, kind, exposed in list(found):
        row, output, lower, upper, exposure = map(
            np.concatenate, zip(*found.pop((family, kind, exposed)), strict=True)
        )
        if not len(row):
            continue
        # Numbers that are the same for all cells, or there already, take no memory.
        below, above = (np.broadcast_to(end, len(row)) for end in (-np.inf, np.inf))
        ends = {"right": (lower, above), "left": (below, upper), "interval": (lower, upper)}
        lower, upper = ends.get(kind, (lower, lower))
        roles = tuple(parameter.role for parameter in family.parameters)
        places = [np.searchsorted(role_outputs[role], range(len(likelihoods))) for role in roles]
        column = np.stack(places, axis=1, dtype=np.int32)[output]
        weight = np.broadcast_to(1.0, len(row))
        own = row, column, lower, upper, weight, family, roles, kind
        terms.append(Terms(*own, exposure if exposed else None))
    return tuple(terms)


def deviation(variance: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the standard deviation, with derivative zero where there is no variance.

    At the origin of a linear kernel, for one, the function is known.
    """
    return safe_sqrt(jnp.where(variance > NO_VARIANCE, variance, 0.0))


def quadrature(varies: dict[str, bool], count: int | None = None) -> Nodes:
    """Return Gauss-Hermite nodes of the roles that vary; ``count`` is that of a single one."""

    def nodes(part: Terms) -> tuple[Float[np.ndarray, "S J"], Float[np.ndarray, "S"]]:
        varying = tuple(varies[role] for role in part.roles)
        return grid(varying, part.likelihood.product_nodes if sum(varying) > 1 else count)

    return nodes


def log_likelihood_at(
    part: Terms,
    centre: ByCell,
    variance: ByCell,
    nodes: Float[AnyArray, "... S J"],
) -> Float[Array, "K S"]:
    """Return log p(y | gamma) of every cell at gamma = centre + deviation * nodes.

    Of a product grid each parameter has an axis of nodes of its own (that of a constant has length
    one): what depends on some parameters only is computed once for each node of theirs.
    """
    mesh = [nodes[..., j] for j in range(len(part.roles))]
    if isinstance(nodes, np.ndarray) and nodes.ndim == 2:
        sizes = tuple(len(np.unique(own)) for own in mesh)
        axes = range(len(sizes))
        mesh = [
            own.reshape(sizes)[tuple(slice(None if k == j else 1) for k in axes)]
            for j, own in enumerate(mesh)
        ]
    wide = (slice(None), *(None,) * (mesh[0].ndim - (nodes.ndim - 2)))
    gamma = []
    for j, own in enumerate(mesh):
        constant = isinstance(own, np.ndarray) and not own.any()
        away = 0.0 if constant else deviation(jnp.asarray(variance[:, j]))[wide] * own
        gamma.append(centre[:, j][wide] + away)
    logs = part.log_likelihood(*part.likelihood.theta(*gamma))
    shape = np.broadcast_shapes(*(np.shape(own) for own in gamma))
    logs = jnp.broadcast_to(logs, shape).reshape(len(part.row), -1)
    return jnp.broadcast_to(logs, (len(part.row), nodes.shape[-2]))


def log_likelihood(terms: tuple[Terms, ...], latent: ByRole) -> Float[Array, ""]:
    """Return log p(y | gamma) of all cells at given latent values."""
    return expected_log_likelihood(terms, latent, latent, quadrature(dict.fromkeys(latent, False)))


def expected_log_likelihood(
    terms: tuple[Terms, ...], mean: ByRole, variance: ByRole, nodes: Nodes
) -> Float[Array, ""]:
    """Return E_q[log p(y | gamma)], the first term of Eq. (6) and Eq. (13)."""
    total = jnp.zeros(())
    for part in terms:
        points, mass = nodes(part)
        logs = log_likelihood_at(part, part.gather(mean), part.gather(variance), points)
        total += jnp.sum(part.weight * (logs @ mass))
    return total


def elbo(
    terms: tuple[Terms, ...], mean: ByRole, variance: ByRole, nodes: Nodes, divergence: Scalar
) -> Float[Array, ""]:
    """Return E_q[log p(y | gamma)] - KL(q || p): Eq. (6), (13)."""
    return expected_log_likelihood(terms, mean, variance, nodes) - divergence


class Problem(eqx.Module):
    """The data of a fit as arrays: inputs, inducing inputs, distinct inputs, cells.

    Attributes
    ----------
    lookups
        The distinct inputs of each kernel of a role and which of them each row has; those of the
        nugget come last.
    """

    inputs: Float[np.ndarray, "N C"]
    inducing: dict[str, InducingInputs]
    lookups: dict[str, tuple[Lookup, ...]]
    terms: tuple[Terms, ...]
    outputs: int = eqx.field(static=True)

    @property
    def inducing_size(self) -> int:
        """The number of inducing inputs of all roles and kernels."""
        return sum(z.size for role in self.inducing.values() for z in role)

    @property
    def cells(self) -> float:
        """The number of observed cells."""
        return float(sum(np.sum(part.weight) for part in self.terms))

    @property
    def stretches(self) -> list[slice]:
        """The slices of rows that a pass takes at a time."""
        return slices(len(self.inputs), max(LEAST_ROWS, CELLS_AT_A_TIME // self.outputs))

    def thinned(self, blocks: Mapping[str, Sequence[OutputBlock]], share: float) -> Problem:
        """Return the problem with as few of the inducing inputs as leave out at most a share.

        The features are those of the blocks of each role, which were made with all of them.
        """
        inducing = dict(self.inducing)
        for role, several in blocks.items():
            inducing[role] = tuple(
                z
                if isinstance(z, Knots)
                else z.only([block.features[q].needed(share) for block in several])
                for q, z in enumerate(inducing[role])
            )
        return dataclasses.replace(self, inducing=inducing)

    def order(self, role: str, lmc: LMC) -> int:
        """Return the number of weights of a role: the order of its largest matrix."""
        sizes = [z.width for z in self.inducing[role]]
        ranks = [np.shape(a)[2] for q, a in enumerate(lmc.mixing) if q not in lmc.own]
        own = sum(sizes[q] for q in lmc.own)
        return max(ranks, default=0) * (sum(sizes) - own) + np.shape(lmc.mean)[1] * own


class Evaluation(NamedTuple):
    """One evaluation of the bound: value, gradient and the sites that a full step leads to.

    Attributes
    ----------
    gradient
        Empty if it was not asked for.
    states
        q of every role that varies, with the tables it was computed from.
    scores
        Squared derivatives in the means of the roles without kernels, summed over rows: as these
        are independent draws of the score, its empirical Fisher information.
    """

    elbo: float
    gradient: Roles
    target: dict[str, Sites]
    states: dict[str, RoleState]
    scores: dict[str, Float[np.ndarray, "B D"]]

    @property
    def weights(self) -> dict[str, Weights]:
        """q(v) of every role that varies."""
        return {role: state.weights for role, state in self.states.items()}

    @property
    def left_out(self) -> float:
        """The largest share of a role's prior variance that its features leave out."""
        return max((state.left_out for state in self.states.values()), default=0.0)


class RowMoments(NamedTuple):
    """Some rows of one block: sites of f, and moments of f and of gamma.

    Gamma is f with what its features leave out, and with the nugget.
    """

    sites_of_f: Sites
    f: Moments
    gamma: Moments


class RoleState:
    """q of one role that varies, at given sites, and the derivatives in its hyper-parameters.

    The gradient is that of the conjugate surrogate log Z = log of the integral of the sites under
    the prior, which is the gradient of the ELBO itself when the sites have converged.
    """

    def __init__(
        self,
        free: LMC,
        sites: Sites,
        problem: Problem,
        role: str,
        jitter: float,
    ) -> None:
        self.free, self.sites, self.lookups = free, sites, problem.lookups[role]
        self.inputs, stretches = problem.inputs, problem.stretches
        shared = self.lookups[: len(free.kernels)]
        self.blocks = make_blocks(free, problem.inducing[role], shared, jitter)
        self.divergence, self.left_out = 0.0, 0.0
        kept = np.float64 if np.size(sites.linear) <= MOST_DOUBLE else np.float32
        self.target = Sites(*(allocate(np.shape(part), kept) for part in sites))
        if free.nugget is not None:
            self.bumps = np.asarray(free.nugget.bumps(self.lookups[-1].inputs))
            self.nugget = np.einsum("nj,bdj->bnd", self.bumps, np.square(free.nugget.size))
            self.d_nugget = np.zeros_like(self.nugget)
            self.nugget_information = np.zeros_like(self.nugget)
        if free.slopes is not None:
            size = np.asarray(free.slopes.size)
            squares, fourths = np.zeros((2, *size.shape))
            for rows in stretches:
                square = free.slopes.inputs(self.inputs[rows]) ** 2
                squares, fourths = squares + square.sum(axis=0), fourths + (square**2).sum(axis=0)
            prior = slope_precision(np.asarray(squares), np.asarray(fourths))
            pulled = np.einsum("bkde,bek->bdk", prior, size)
            self.divergence += 0.5 * float(np.sum(size * pulled))
            self.d_slopes = -pulled
            each = np.eye(size.shape[2])
            self.slope_information = np.einsum("bkde,kl->bdkel", prior, each)
        for rows in stretches:
            for b, block in enumerate(self.blocks):
                block.add(*self._sites(b, rows)[1].shifted(self._offset(b, rows)), rows)
        self.divergence += sum(block.solve() for block in self.blocks)

    @property
    def weights(self) -> Weights:
        """q(v), block by block."""
        return jax.tree.map(lambda *parts: np.stack(parts), *(b.weights for b in self.blocks))

    def _sites(self, b: int, rows: slice) -> tuple[Sites, Sites, Float[np.ndarray, "n D"] | None]:
        """Return the sites of gamma and of f at some rows, and the variance of the nugget."""
        sites = Sites(*(np.asarray(part[b, rows], dtype=float) for part in self.sites))
        bare = self.free.nugget is None
        nugget = None if bare else self.nugget[b, self.lookups[-1].index[rows]]
        return sites, sites.marginal(nugget), nugget

    def _offset(self, b: int, rows: slice) -> Any:
        """Return the effects of the inputs that outputs have of their own."""
        offset: Any = self.free.offset(self.inputs[rows])
        return 0.0 if self.free.slopes is None else offset[b]

    def marginals(self, rows: slice) -> list[RowMoments]:
        """Return the moments of f and gamma at some rows, block by block; add to the divergence."""
        found = []
        for b, block in enumerate(self.blocks):
            sites, sites_of_f, nugget = self._sites(b, rows)
            mean, variance, rest, share = block.marginals(rows)
            f = gamma = Moments(mean + self._offset(b, rows), variance)
            self.left_out = max(self.left_out, share)
            if nugget is not None:
                gamma = sites.with_nugget(f, nugget)
                self.divergence += sites.nugget_divergence(f, nugget)
            gamma = gamma._replace(variance=gamma.variance + rest)
            found.append(RowMoments(sites_of_f, f, gamma))
        return found

    def ascend(self, rows: slice, moments: list[RowMoments], slopes: Moments) -> None:
        """Compute the next sites of some rows, from dE/dm and dE/dV."""
        parts = (np.split(slope, len(self.blocks), axis=1) for slope in slopes)
        for b, (own, *by_block) in enumerate(zip(moments, *parts, strict=True)):
            new = next_sites(own.gamma.mean, *by_block)
            self.target.linear[b, rows], self.target.precision[b, rows] = new

    def collect(self, rows: slice, moments: list[RowMoments], slopes: Moments) -> None:
        """Add some rows to the gradient and to the information."""
        d_variance = np.split(slopes.variance, len(self.blocks), axis=1)
        for b, (block, own) in enumerate(zip(self.blocks, moments, strict=True)):
            linear, precision = own.sites_of_f
            residual = linear - precision * own.f.mean
            shifted = own.sites_of_f.shifted(self._offset(b, rows))
            block.collect(rows, residual, shifted, d_variance[b])
            if self.free.slopes is not None:
                x = self.free.slopes.inputs(self.inputs[rows])[:, b]
                self.d_slopes[b] += np.einsum("nd,ndk->dk", residual, x)
                d = np.arange(x.shape[1])
                own_information = np.einsum("nd,ndk,ndl->dkl", precision, x, x)
                self.slope_information[b, d, :, d] += own_information
            if self.free.nugget is not None:
                slope, information = own.sites_of_f.nugget_slope(own.f)
                index, size = self.lookups[-1].index[rows], self.nugget.shape[1]
                sums = (self.d_nugget, slope), (self.nugget_information, information)
                for total, by_row in sums:
                    for d, column in enumerate(by_row.T):
                        total[b, :, d] += np.bincount(index, column, size)

    def gradient(self) -> LMC:
        """Return the gradient in the free hyper-parameters, once all rows are in."""
        kernels, mixing, mean = zip(*(block.gradient() for block in self.blocks), strict=True)
        d_kernels = []
        for q, kernel in enumerate(self.free.kernels):
            leaves, structure = jax.tree.flatten(kernel)
            by_block = np.array([own[q] for own in kernels])
            ends = np.cumsum([np.size(leaf[0]) for leaf in leaves])[:-1]
            parts = zip(np.split(by_block, ends, axis=1), leaves, strict=True) if leaves else ()
            shaped = [part.reshape(np.shape(leaf)) for part, leaf in parts]
            d_kernels.append(jax.tree.unflatten(structure, shaped))
        nugget = self.free.nugget
        if nugget is not None:
            size = (
                2.0 * np.asarray(nugget.size) * np.einsum("bnd,nj->bdj", self.d_nugget, self.bumps)
            )
            nugget = dataclasses.replace(nugget, size=size)
        slopes = self.free.slopes
        if slopes is not None:
            slopes = dataclasses.replace(slopes, size=self.d_slopes)
        d_mixing = tuple(map(np.stack, zip(*mixing, strict=True)))
        parts = {"mixing": d_mixing, "mean": np.stack(mean), "nugget": nugget, "slopes": slopes}
        return dataclasses.replace(self.free, kernels=tuple(d_kernels), **parts)


def evaluate(
    free: Roles, sites: dict[str, Sites], problem: Problem, jitter: float, slopes: bool = True
) -> Evaluation:
    """Return the ELBO, with ``slopes`` its gradient in the free hyper-parameters, and next sites.

    JAX computes kernels and likelihoods, whose programs are small and shared by models that differ
    elsewhere; sums over rows and linear algebra are numpy's.
    """
    stretches = problem.stretches
    states = {
        role: RoleState(lmc, sites[role], problem, role, jitter)
        for role, lmc in free.items()
        if lmc.varies
    }
    bound = 0.0
    d_mean = {role: np.zeros(np.shape(lmc.mean)) for role, lmc in free.items()}
    scores = {role: np.zeros(np.shape(lmc.mean)) for role, lmc in free.items() if not lmc.varies}
    for rows in stretches:
        moments = {role: state.marginals(rows) for role, state in states.items()}
        mean, variance = {}, {}
        for role, lmc in free.items():
            if role in states:
                gammas = zip(*(own.gamma for own in moments[role]), strict=True)
                mean[role], variance[role] = (np.concatenate(parts, axis=1) for parts in gammas)
            else:
                size = rows.stop - rows.start, lmc.mean.size
                mean[role] = np.broadcast_to(np.reshape(lmc.mean, (1, -1)), size)
                variance[role] = np.zeros(size)
        precisions = {
            role: np.concatenate([*sites[role].precision[:, rows]], axis=1) for role in states
        }
        value, by_role = cell_slopes(problem.terms, rows, mean, variance, precisions)
        bound += value
        for role, slope in by_role.items():
            if role in states:
                states[role].ascend(rows, moments[role], slope)
                if slopes:
                    states[role].collect(rows, moments[role], slope)
            else:
                d_mean[role] += slope.mean.sum(axis=0).reshape(d_mean[role].shape)
                scores[role] += np.sum(slope.mean**2, axis=0).reshape(d_mean[role].shape)
    bound -= sum(state.divergence for state in states.values())
    gradient = {
        role: states[role].gradient()
        if role in states
        else dataclasses.replace(lmc, mean=d_mean[role])
        for role, lmc in free.items()
        if slopes
    }
    target = {role: state.target for role, state in states.items()}
    return Evaluation(bound, gradient, target, states, scores)


def cell_slopes(
    terms: tuple[Terms, ...], rows: slice, mean: ByRole, variance: ByRole, precisions: ByRole
) -> tuple[float, dict[str, Moments]]:
    """Return E_q[log p(y | gamma)] of the cells of some rows, and dE/dm, dE/dV by role.

    ``precisions`` are those of the sites, of the roles that vary.
    """
    total, slopes = 0.0, {role: Moments(*np.zeros((2, *m.shape))) for role, m in mean.items()}
    varying = tuple(precisions)
    widths = {role: variance[role] * np.maximum(own, 1.0) for role, own in precisions.items()}
    for part in terms:
        first, last = np.searchsorted(part.row, (rows.start, rows.stop))
        for start in range(first, last, part.program_size):
            stop = min(start + part.program_size, last)
            own = part.padded(part.program_size, start, stop)
            at = [
                (role, own.row - rows.start, own.column[:, j]) for j, role in enumerate(own.roles)
            ]
            centre = np.stack([mean[role][row, column] for role, row, column in at], axis=1)
            spread = np.stack([variance[role][row, column] for role, row, column in at], axis=1)
            many, nodes = len(part.row) > CELLS_OF_A_PROGRAM, None
            if many and all(
                widths[role][row, column].max() < NARROW**2
                for role, row, column in at
                if role in varying
            ):
                nodes = NODES_OF_NARROW
            value, (d_mean, d_variance) = expected_cells(own, centre, spread, varying, nodes)
            d_mean, d_variance = np.asarray(d_mean), np.asarray(d_variance)
            total, count = total + float(value), stop - start
            for j, (role, row, column) in enumerate(at):
                where = row[:count], column[:count]
                slopes[role].mean[where] = d_mean[:count, j]
                slopes[role].variance[where] = d_variance[:count, j]
    return total, slopes


@compiled
def expected_cells(
    part: Terms, centre: ByCell, variance: ByCell, varying: tuple[str, ...], count: int | None
) -> tuple[Float[Array, ""], tuple[Float[Array, "K J"], Float[Array, "K J"]]]:
    """Return E_q[log p(y | gamma)] of some cells, and its derivatives in means and variances.

    It has a closed form, or is by quadrature.
    """
    points, mass = quadrature({role: role in varying for role in part.roles}, count)(part)

    def expected(centre: ByCell, variance: ByCell) -> Float[Array, ""]:
        by_cell = None
        if part.kind == "exact" and part.exposure is None:
            pairs = zip(part.roles, jnp.asarray(variance).T, strict=True)
            moments = tuple(centre.T), [own if role in varying else None for role, own in pairs]
            by_cell = part.likelihood.expected_log_density(jnp.asarray(part.lower), *moments)
        if by_cell is None:
            by_cell = log_likelihood_at(part, centre, variance, points) @ mass
        return jnp.sum(part.weight * by_cell)

    return jax.value_and_grad(expected, argnums=(0, 1))(centre, variance)


def next_sites(mean: ByBlock, d_mean: ByBlock, d_variance: ByBlock) -> Sites:
    """Return the sites of a full natural-gradient step: Lambda = -2 dE/dV, h = dE/dm + Lambda m.

    The precision is zero where it would be negative (the expected log likelihood is convex there),
    so that q stays proper.
    """
    precision = np.maximum(-2.0 * d_variance, 0.0)
    return Sites(d_mean + precision * mean, precision)
