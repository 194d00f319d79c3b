"""The evidence lower bound, Eq. (6) and Eq. (13): its only home.

    ELBO = E_q[log p(y | gamma)] - KL(q || p).                                      :func:`elbo`

Observed cells are laid out flat, one list (:class:`Terms`) for each likelihood and kind of bound,
as a tail costs far more than a density and a missing cell costs nothing. The expectation is a sum
over nodes of gamma, by quadrature or by samples.

The engine ``natural`` holds q as Gaussian sites over the whitened weights v of each role: one pair
(h, Lambda) for each row, output and parameter, standing for exp(h gamma - Lambda gamma^2 / 2). So

    P = I + sum_d Psi_d' diag(Lambda_d) Psi_d,      b = sum_d Psi_d' (h_d - Lambda_d m_d),
    q(v) = N(P^-1 b, P^-1),      gamma_d = m_d + Psi_d v,      Psi_d = Phi * loading_d,

and :func:`evaluate` returns the ELBO, its gradient in the hyper-parameters and the next sites. A
nugget is integrated out of the sites first, and has a divergence of its own (see `posterior`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from censored_gp.data.observations import Observations
from censored_gp.data.validation import to_support
from censored_gp.inference.posterior import ByBlock, Moments, Sites, Weights, blocked, flat
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import PartialCount
from censored_gp.likelihoods.quadrature import grid
from censored_gp.likelihoods.special.elementary import safe_sqrt
from censored_gp.model.compilation import AnyArray, Scalar, bucket, compiled, compiled_for_arrays
from censored_gp.model.inducing import InducingInputs
from censored_gp.model.linalg import cholesky, inverse_of_product
from censored_gp.model.lmc import LMC, Geometry, Where, from_free, geometry

NO_VARIANCE = 1e-20
"""A latent variance not above this counts as zero, as its derivative would be lost in rounding."""
Roles = dict[str, LMC]
"""The hyper-parameters of every role."""
SideBySide = Float[AnyArray, "N O"]
"""One number for each row and output of a role, the outputs of all blocks side by side."""
ByRole = Mapping[str, SideBySide]
Pair = tuple[ByRole, ByRole]
"""Means and variances, or the derivatives in them."""
Nodes = Callable[["Terms"], tuple[Float[AnyArray, "... S J"], Float[AnyArray, "S"]]]
"""Standardised nodes of the J parameters of some cells, and their weights."""


class Terms(eqx.Module):
    """The cells of one kind under one likelihood.

    Attributes
    ----------
    column
        Where each parameter of the cell's output stands among the outputs of its role.
    weight
        One, or zero for a cell that only pads the shape.
    """

    row: Int[np.ndarray, "K"]
    column: Int[np.ndarray, "K J"]
    lower: Float[np.ndarray, "K"]
    upper: Float[np.ndarray, "K"]
    weight: Float[np.ndarray, "K"]
    likelihood: Likelihood
    roles: tuple[str, ...] = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def log_likelihood(self, *theta: Float[Array, "K S"]) -> Float[Array, "K S"]:
        """Return the log likelihood of every cell given theta."""
        lower, upper = jnp.asarray(self.lower)[:, None], jnp.asarray(self.upper)[:, None]
        return self.likelihood.log_likelihood(lower, upper, *theta, kind=self.kind)

    def gather(self, by_role: ByRole) -> Float[Array, "K J"]:
        """Pick the values of each cell's parameters out of one array for each role."""
        picked = [by_role[r][self.row, self.column[:, j]] for j, r in enumerate(self.roles)]
        return jnp.stack(picked, axis=1)


def collect_terms(
    observations: Observations,
    likelihoods: tuple[Likelihood, ...],
    role_outputs: dict[str, tuple[int, ...]],
) -> tuple[Terms, ...]:
    """Sort the observed cells by likelihood and kind; missing cells are left out.

    Every list is padded by repeating its first cell.
    """
    found, seen = [], to_support(observations, likelihoods)
    masks = {
        "exact": seen.is_exact,
        "right": seen.is_right & ~seen.is_share,
        "left": seen.is_left,
        "interval": seen.is_interval,
        "share": seen.is_share,
    }
    for family, (kind, mask) in product(dict.fromkeys(likelihoods), masks.items()):
        rows, outputs = np.nonzero(mask & np.array([other == family for other in likelihoods]))
        if not len(rows):
            continue
        # How many cells are censored is chance: it must not decide what is compiled.
        room = bucket(len(rows), "cells") - len(rows)
        weight = np.concatenate([np.ones(len(rows)), np.zeros(room)])
        rows, outputs = (np.concatenate([v, np.repeat(v[:1], room)]) for v in (rows, outputs))
        likelihood = PartialCount(family) if kind == "share" else family
        roles = tuple(parameter.role for parameter in likelihood.parameters)
        column = np.stack([np.searchsorted(role_outputs[role], outputs) for role in roles], axis=1)
        bounds = seen.lower[rows, outputs], seen.upper[rows, outputs]
        found.append(Terms(rows, column, *bounds, weight, likelihood, roles, kind))
    return tuple(found)


def deviation(variance: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the standard deviation, with derivative zero where there is no variance.

    At the origin of a linear kernel, for one, the function is known.
    """
    return safe_sqrt(jnp.where(variance > NO_VARIANCE, variance, 0.0))


def quadrature(varies: dict[str, bool]) -> Nodes:
    """Return Gauss-Hermite nodes for the parameters of the roles that vary."""

    def nodes(part: Terms) -> tuple[Float[np.ndarray, "S J"], Float[np.ndarray, "S"]]:
        varying = tuple(varies[role] for role in part.roles)
        return grid(varying, part.likelihood.product_nodes if sum(varying) > 1 else None)

    return nodes


def log_likelihood_at(
    part: Terms, mean: ByRole, variance: ByRole, nodes: Float[AnyArray, "... S J"]
) -> Float[Array, "K S"]:
    """Return log p(y | gamma) of every cell at gamma = mean + deviation * nodes."""
    centre, spread = part.gather(mean), deviation(part.gather(variance))
    gamma = centre[:, None, :] + spread[:, None, :] * nodes
    theta = part.likelihood.theta(*jnp.moveaxis(gamma, 2, 0))
    return part.log_likelihood(*theta)


def log_likelihood(terms: tuple[Terms, ...], latent: ByRole) -> Float[Array, ""]:
    """Return log p(y | gamma) of all cells at given latent values."""
    total = jnp.zeros(())
    for part in terms:
        theta = part.likelihood.theta(*jnp.moveaxis(part.gather(latent)[:, None], 2, 0))
        total += jnp.sum(part.weight * part.log_likelihood(*theta)[:, 0])
    return total


def expected_log_likelihood(
    terms: tuple[Terms, ...], mean: ByRole, variance: ByRole, nodes: Nodes
) -> Float[Array, ""]:
    """Return E_q[log p(y | gamma)], the first term of Eq. (6) and Eq. (13)."""
    total = jnp.zeros(())
    for part in terms:
        points, mass = nodes(part)
        logs = log_likelihood_at(part, mean, variance, points)
        total += jnp.sum(part.weight * (logs @ mass))
    return total


def elbo(
    terms: tuple[Terms, ...], mean: ByRole, variance: ByRole, nodes: Nodes, divergence: Scalar
) -> Float[Array, ""]:
    """Return E_q[log p(y | gamma)] - KL(q || p): Eq. (6), (13)."""
    return expected_log_likelihood(terms, mean, variance, nodes) - divergence


class Problem(eqx.Module):
    """The data of a fit as arrays: inputs, inducing inputs, cells.

    Attributes
    ----------
    rows
        How many rows are real; the others only pad the shape.
    """

    inputs: Float[np.ndarray, "N C"]
    inducing: dict[str, InducingInputs]
    terms: tuple[Terms, ...]
    rows: Int[np.ndarray, ""]

    @property
    def inducing_size(self) -> int:
        """The number of inducing inputs of all roles and kernels."""
        return sum(z.size for role in self.inducing.values() for z in role)

    @property
    def cells(self) -> float:
        """The number of observed cells."""
        return float(sum(np.sum(part.weight) for part in self.terms))

    def order(self, role: str, lmc: LMC) -> int:
        """Return the number of weights of a role: the order of its largest matrix."""
        rank = max((np.shape(a)[2] for a in lmc.mixing), default=0)
        return rank * sum(len(z.mask) for z in self.inducing[role])


class Evaluation(NamedTuple):
    """One evaluation of the bound: value, gradient and the sites that a full step leads to.

    Attributes
    ----------
    left_out
        Largest share of a role's prior variance that its features leave out.
    scores
        Squared derivatives in the means of the roles without kernels, summed over rows: as these
        are independent draws of the score, its empirical Fisher information.
    nuggets
        Fisher information of the nuggets, of the roles that have some.
    """

    elbo: Scalar
    gradient: Roles
    target: dict[str, Sites]
    weights: dict[str, Weights]
    left_out: Scalar
    scores: dict[str, Float[AnyArray, "B D"]]
    nuggets: dict[str, Float[Array, "B D J J"]]


class Totals(NamedTuple):
    """The bound as far as it is computed, and the largest share that features leave out."""

    bound: Scalar
    left_out: Scalar


class RoleState(NamedTuple):
    """q of one role at given sites, and what the gradient in its hyper-parameters is made of.

    Attributes
    ----------
    cotangent
        Derivative of log Z in the geometry; that in ``left_out`` comes from the cells.
    pull
        Turns a derivative in the geometry into one in the free hyper-parameters.
    nugget
        Fisher information of the nuggets.
    """

    weights: Weights
    mean: Float[Array, "N O"]
    variance: Float[Array, "N O"]
    cotangent: Geometry
    pull: Callable[[Geometry], tuple[LMC, ...]]
    nugget: Float[Array, "B D J J"] | None = None


def evaluate(free: Roles, sites: dict[str, Sites], problem: Problem, jitter: Scalar) -> Evaluation:
    """Return the ELBO with its gradient in the free hyper-parameters, and the next sites.

    Its stages are compiled one by one. What takes long to compile depends on little: the cells on
    their likelihood and number alone, a role on its own kernels and inducing inputs alone. Models
    that differ elsewhere share these programs.
    """
    totals = Totals(np.zeros(()), np.zeros(()))
    states: dict[str, RoleState] = {}
    mean, variance = {}, {}
    for role, lmc in free.items():
        if lmc.varies:
            where = problem.inducing[role], problem.inputs, jitter
            totals, states[role] = role_state(totals, lmc, sites[role], where)
            mean[role], variance[role] = states[role].mean, states[role].variance
        else:
            rows = (len(problem.inputs), lmc.mean.size)
            mean[role] = np.broadcast_to(np.reshape(lmc.mean, (1, -1)), rows)
            variance[role] = np.ones(rows)  # has no effect
    zeros = {role: np.zeros(level.shape) for role, level in mean.items()}
    bound, slopes = totals.bound, (zeros, zeros)
    for part in problem.terms:
        bound, slopes = add_cells(bound, slopes, part, (mean, variance), tuple(states))
    gradient, target, scores = {}, {}, {}
    for role, lmc in free.items():
        d_mean, d_variance = slopes[0][role], slopes[1][role]
        if role in states:
            gradient[role], target[role] = role_ascent(states[role], d_mean, d_variance)
        else:
            gradient[role], scores[role] = constant_ascent(lmc, d_mean)
    weights = {role: state.weights for role, state in states.items()}
    nuggets = {role: state.nugget for role, state in states.items() if state.nugget is not None}
    return Evaluation(bound, gradient, target, weights, totals.left_out, scores, nuggets)


@compiled_for_arrays
def role_state(totals: Totals, free: LMC, sites: Sites, where: Where) -> tuple[Totals, RoleState]:
    """Compute q of a role that varies from its sites, and subtract its divergence from the bound.

    The gradient is that of the conjugate surrogate log Z = log of the integral of the sites under
    the prior, which is the gradient of the ELBO itself when the sites have converged; its adjoint
    is closed, d log Z / dP = -(P^-1 + v v') / 2 and d log Z / db = v, so neither a Cholesky factor
    nor an inverse is differentiated.
    """
    inducing, inputs, jitter = where[0], jnp.asarray(where[1]), where[2]
    shape, pull = jax.vjp(lambda f: geometry(from_free(f), inducing, inputs, jitter), free)
    sites_of_f = sites.marginal(shape.nugget)
    weights, divergence = solve_weights(shape, sites_of_f)
    gamma, cotangent = weights.marginals(shape), surrogate_cotangent(shape, weights, sites_of_f)
    information = None
    if free.nugget is not None and shape.nugget is not None:
        f = gamma._replace(variance=gamma.variance - shape.left_out)
        slope, information_of_rows = sites.nugget_slope(f, shape.nugget)
        cotangent = cotangent._replace(nugget=slope)
        information = free.nugget.information(inputs, information_of_rows)
        divergence = divergence + sites.nugget_divergence(f, shape.nugget)
        mean, variance = sites.with_nugget(f, shape.nugget)
        gamma = Moments(mean, variance + shape.left_out)
    left_out = jnp.maximum(totals.left_out, largest_share_left_out(shape))
    mean, variance = map(flat, gamma)
    state = RoleState(weights, mean, variance, cotangent, pull, information)
    return Totals(totals.bound - divergence, left_out), state


@compiled
def add_cells(
    bound: Scalar, slopes: Pair, part: Terms, moments: Pair, varying: tuple[str, ...]
) -> tuple[Float[Array, ""], Pair]:
    """Add the expected log likelihood of some cells to the bound, and dE/dm, dE/dV to slopes."""
    nodes = quadrature({role: role in varying for role in moments[0]})
    gradient_of_elbo = jax.value_and_grad(elbo, argnums=(1, 2))
    value, gradient = gradient_of_elbo((part,), *moments, nodes, -jnp.asarray(bound))
    return value, jax.tree.map(jnp.add, slopes, gradient)


@compiled_for_arrays
def role_ascent(state: RoleState, d_mean: SideBySide, d_variance: SideBySide) -> tuple[LMC, Sites]:
    """Return the gradient in a role's free hyper-parameters, and its next sites."""
    blocks = len(state.cotangent.phi)
    d_mean, d_variance = blocked(d_mean, blocks), blocked(d_variance, blocks)
    gradient = state.pull(state.cotangent._replace(left_out=d_variance))[0]
    return gradient, next_sites(blocked(state.mean, blocks), d_mean, d_variance)


@compiled_for_arrays
def constant_ascent(free: LMC, d_mean: SideBySide) -> tuple[LMC, Float[Array, "B D"]]:
    """Return the gradient of a role without kernels, and its empirical Fisher information."""
    by_row = blocked(d_mean, free.mean.shape[0])
    gradient = eqx.tree_at(lambda m: m.mean, free, jnp.sum(by_row, axis=1))
    return gradient, jnp.sum(by_row**2, axis=1)


def output_grams(phi: Float[Array, "B N M"], sites: Sites) -> Float[Array, "B D M M"]:
    """Return phi' diag(Lambda_d) phi of every output."""
    weighted = phi[:, None] * jnp.moveaxis(sites.precision, 2, 1)[..., None]
    return jnp.swapaxes(weighted, 2, 3) @ phi[:, None]


def solve_weights(shape: Geometry, sites: Sites) -> tuple[Weights, Float[Array, ""]]:
    """Return q(v) = N(P^-1 b, P^-1) and KL(q(v) || N(0, I)), summed over the blocks.

    The Gram matrices are per output, so the cost is O(D N M^2) however large the rank is.
    """
    phi, loading, mean = shape[:3]
    blocks, _, rank, size = loading.shape
    half = loading[:, :, None] * output_grams(phi, sites)[:, :, :, None, :]
    precision = jnp.einsum("bdrm,bdmsk->brmsk", loading, half)
    precision = precision.reshape(blocks, rank * size, rank * size) + jnp.eye(rank * size)
    centred = sites.linear - sites.precision * mean[:, None]
    linear = jnp.einsum("bdrm,bdm->brm", loading, jnp.swapaxes(centred, 1, 2) @ phi)
    factor = cholesky(precision)
    covariance = inverse_of_product(factor)
    centre = jnp.einsum("bwu,bu->bw", covariance, linear.reshape(blocks, -1))
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)))
    trace = jnp.sum(jnp.diagonal(covariance, axis1=1, axis2=2))
    divergence = 0.5 * (trace + jnp.sum(centre**2) - centre.size + log_det)
    return Weights(centre, covariance), divergence


def largest_share_left_out(shape: Geometry) -> Float[Array, ""]:
    """Return the largest share of prior variance that the features of a role leave out."""
    carried = jnp.einsum("bnm,bdrm->bnd", shape.phi**2, shape.loading**2)
    return jnp.max(shape.left_out / (carried + shape.left_out + 1e-300))


def surrogate_cotangent(shape: Geometry, weights: Weights, sites: Sites) -> Geometry:
    """Return the derivative of log Z in the geometry.

    It is written out, as it shares most of its computing with the marginals. With g_d and C_d the
    mean and covariance of output d's coefficients of the features, and residuals r_d,

        d log Z / dphi = sum_d r_d g_d' - Lambda_d phi C_d.
    """
    phi, loading, mean = shape[:3]
    blocks, _, rank, size = loading.shape
    slope, (half, inner) = weights.slopes(shape), weights.covariances(shape)
    gram = output_grams(phi, sites)
    centred = sites.linear - sites.precision * mean[:, None]
    residual = jnp.asarray(centred - sites.precision * (phi @ jnp.swapaxes(slope, 1, 2)))
    d_phi = residual @ slope - jnp.einsum("bnd,bdnm->bnm", sites.precision, phi[:, None] @ inner)
    v = weights.mean.reshape(blocks, 1, rank, size)
    pulled = jnp.swapaxes(residual, 1, 2) @ phi
    d_loading = v * pulled[:, :, None] - jnp.sum(half * gram[:, :, None], axis=4)
    return Geometry(d_phi, d_loading, jnp.sum(residual, axis=1), jnp.zeros_like(shape.left_out))


def next_sites(mean: ByBlock, d_mean: ByBlock, d_variance: ByBlock) -> Sites:
    """Return the sites of a full natural-gradient step: Lambda = -2 dE/dV, h = dE/dm + Lambda m.

    The precision is zero where it would be negative (the expected log likelihood is convex there),
    so that q stays proper.
    """
    precision = jnp.maximum(-2.0 * d_variance, 0.0)
    return Sites(d_mean + precision * mean, precision)
