"""The evidence lower bound, Eq. (6) and Eq. (13): its only home.

q is a Gaussian over the whitened weights v of each role, kept as Gaussian sites: one pair
(h, Lambda) for each row, output and parameter, standing for exp(h gamma - Lambda gamma^2 / 2). So

    P = I + sum_d Psi_d' diag(Lambda_d) Psi_d,      b = sum_d Psi_d' (h_d - Lambda_d m_d),
    q(v) = N(P^-1 b, P^-1),      gamma_d = m_d + Psi_d v,      Psi_d = Phi * loading_d,

and ELBO = E_q[log p(y | gamma)] - sum over roles of KL(q(v) || N(0, I)). A nugget is integrated out
of the sites first, and has a divergence of its own (see `sites`).

The observed cells, sorted by likelihood and by kind, so that each is computed once and cheaply.

A tail costs far more than a density, and a missing cell costs nothing: cells are therefore laid
out flat, one list for every pair of likelihood and kind (exact, right, left, interval, share, and
what is a share or a limit).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from censored_gp.data.observations import Observations
from censored_gp.data.validation import to_support
from censored_gp.inference.posterior import (
    Sites,
    Spread,
    Weights,
    flat,
    marginals,
    nugget_divergence,
    nugget_slope,
    of_functions,
    output_covariances,
    output_slopes,
    with_nugget,
)
from censored_gp.kernels.stationary import safe_sqrt
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import log_share_or_limit
from censored_gp.likelihoods.quadrature import grid
from censored_gp.model.compilation import AnyArray, bucket
from censored_gp.model.inducing import Inducing
from censored_gp.model.linalg import cholesky, inverse_of_product
from censored_gp.model.lmc import LMC, Geometry, from_free, geometry

KINDS = ("exact", "right", "left", "interval", "share")


MANY_CELLS = 512
"""Cells from which on it takes long to compute those that only pad the shape."""


NO_VARIANCE = 1e-20
"""A latent variance not above this is none: its slope would be lost in rounding, or be infinite."""


class Terms(eqx.Module):
    """The cells of one kind under one likelihood."""

    row: Int[np.ndarray, "K"]
    column: Int[np.ndarray, "K J"]
    """Where each parameter of the cell's output stands among the outputs of its role."""
    lower: Float[np.ndarray, "K"]
    upper: Float[np.ndarray, "K"]
    weight: Float[np.ndarray, "K"]
    """One, or zero for a cell that only pads the shape."""
    likelihood: Likelihood
    roles: tuple[str, ...] = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    log_odds: Float[np.ndarray, "K"] | None = None
    """Of limits; only what may be a share as well has them."""

    def log_likelihood(self, *theta: Float[Array, "K S"]) -> Float[Array, "K S"]:
        """Return the log probability, given theta, of what was seen of every cell."""
        lower, upper = jnp.asarray(self.lower)[:, None], jnp.asarray(self.upper)[:, None]
        if self.kind == "exact":
            return self.likelihood.log_density(lower, *theta)
        if self.kind == "right":
            return self.likelihood.log_at_least(lower, *theta)
        if self.kind == "left":
            return self.likelihood.log_cdf(upper, *theta)
        if self.kind == "share":
            return self.likelihood.log_share(lower, *theta)
        if self.log_odds is not None:
            odds = jnp.asarray(self.log_odds)[:, None]
            return log_share_or_limit(self.likelihood, lower, odds, *theta)
        return self.likelihood.log_interval(lower, upper, *theta)

    def gather(self, by_role: dict[str, Float[Array, "N D"]]) -> Float[Array, "K J"]:
        """Pick the values of each cell's parameters out of one array for each role."""
        picked = [by_role[r][self.row, self.column[:, j]] for j, r in enumerate(self.roles)]
        return jnp.stack(picked, axis=1)


def collect_terms(
    observations: Observations,
    likelihoods: tuple[Likelihood, ...],
    role_outputs: dict[str, tuple[int, ...]],
) -> tuple[Terms, ...]:
    """Sort the observed cells by likelihood and kind; missing cells are left out."""
    found = []
    seen = to_support(observations, likelihoods)
    right = seen.is_right & ~seen.is_share
    masks = (seen.is_exact, right, seen.is_left, seen.is_interval, seen.is_share)
    for likelihood in dict.fromkeys(likelihoods):
        members = np.array([other == likelihood for other in likelihoods])
        for kind, mask in zip(KINDS, masks, strict=True):
            rows, outputs = np.nonzero(mask & members)
            if len(rows):
                found.append(_terms(seen, likelihood, role_outputs, kind, rows, outputs))
    return tuple(found)


def _terms(
    observations: Observations,
    likelihood: Likelihood,
    role_outputs: dict[str, tuple[int, ...]],
    kind: str,
    rows: Int[np.ndarray, "K"],
    outputs: Int[np.ndarray, "K"],
) -> Terms:
    """Build the list of one likelihood and kind, padded by repeating its first cell."""
    # How many cells are censored is chance: it must not decide what is compiled.
    room = bucket(len(rows), steps=2 if len(rows) < MANY_CELLS else 4) - len(rows)
    weight = np.concatenate([np.ones(len(rows)), np.zeros(room)])
    rows, outputs = (np.concatenate([v, np.repeat(v[:1], room)]) for v in (rows, outputs))
    roles = tuple(parameter.role for parameter in likelihood.parameters)
    column = np.stack([np.searchsorted(role_outputs[role], outputs) for role in roles], axis=1)
    lower, upper = observations.lower[rows, outputs], observations.upper[rows, outputs]
    return Terms(rows, column, lower, upper, weight, likelihood, roles, kind)


def deviation(variance: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the standard deviation, its slope zero where there is no variance.

    Such is a row at the origin of a linear kernel: the function is known there.
    """
    return safe_sqrt(jnp.where(variance > NO_VARIANCE, variance, 0.0))


def expected_log_likelihood(
    terms: tuple[Terms, ...],
    mean: dict[str, Float[Array, "N D"]],
    variance: dict[str, Float[Array, "N D"]],
    varies: dict[str, bool],
) -> Float[Array, ""]:
    """Return E_q[log p(y | gamma)], the first term of Eq. (6) and Eq. (13), by quadrature."""
    total = jnp.zeros(())
    for part in terms:
        varying = tuple(varies[role] for role in part.roles)
        several = part.likelihood.product_nodes if sum(varying) > 1 else None
        nodes, mass = grid(varying, several)
        centre, spread = part.gather(mean), deviation(part.gather(variance))
        gamma = centre[:, None, :] + spread[:, None, :] * nodes
        theta = part.likelihood.theta(*jnp.moveaxis(gamma, 2, 0))
        total += jnp.sum(part.weight * (part.log_likelihood(*theta) @ mass))
    return total


def pad_rows(inputs: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "P C"]:
    """Round the number of rows up; no cell refers to the rows added, so they carry no weight."""
    room = bucket(len(inputs)) - len(inputs)
    return np.concatenate([inputs, np.repeat(inputs[-1:], room, axis=0)])


gradient_of_expectation = jax.value_and_grad(expected_log_likelihood, argnums=(1, 2))
"""The value with dE/dm and dE/dV: what a natural-gradient step is made of."""


Slopes = tuple[Mapping[str, Float[AnyArray, "N D"]], Mapping[str, Float[AnyArray, "N D"]]]
"""Slopes of the expected log likelihood in the means and the variances of every role."""


def none_yet(mean: dict[str, Float[Array, "N D"]]) -> Slopes:
    """Return slopes to which nothing was added."""
    zeros = {role: np.zeros(own.shape) for role, own in mean.items()}
    return zeros, zeros


def add_expectation(
    bound: Float[AnyArray, ""],
    slopes: Slopes,
    part: Terms,
    mean: dict[str, Float[Array, "N D"]],
    variance: dict[str, Float[Array, "N D"]],
    varying: tuple[str, ...],
) -> tuple[Float[Array, ""], Slopes]:
    """Add the expected log likelihood of some cells to a bound, and its slopes to others."""
    varies = {role: role in varying for role in mean}
    value, own = gradient_of_expectation((part,), mean, variance, varies)
    return bound + value, jax.tree.map(jnp.add, slopes, own)


Roles = dict[str, LMC]


class Problem(eqx.Module):
    """What a fit is about, apart from the hyper-parameters: inputs, inducing inputs, cells."""

    inputs: Float[np.ndarray, "N C"]
    inducing: dict[str, tuple[Inducing, ...]]
    terms: tuple[Terms, ...]
    rows: Int[np.ndarray, ""]
    """How many rows are real; the others only pad the shape."""

    @property
    def real_rows(self) -> Bool[np.ndarray, "N"]:
        """Which rows are real."""
        return np.arange(len(self.inputs)) < self.rows

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
    """One evaluation of the bound: value, gradient and the sites that a full step leads to."""

    elbo: Float[AnyArray, ""]
    gradient: Roles
    target: dict[str, Sites]
    weights: dict[str, Weights]
    left_out: Float[AnyArray, ""]
    """Largest share of a role's prior variance that its features leave out."""
    scores: dict[str, Float[Array, "B D"]]
    """Squared slopes in the means of the roles without kernels, summed over rows: as these are
    independent draws of the score, its empirical information."""
    nuggets: dict[str, Float[Array, "B D J J"]]
    """The information about the nuggets of the roles that have some."""


def output_grams(phi: Float[Array, "B N M"], sites: Sites) -> Float[Array, "B D M M"]:
    """Return phi' diag(Lambda_d) phi of every output."""
    weighted = phi[:, None] * jnp.moveaxis(sites.precision, 2, 1)[..., None]
    return jnp.swapaxes(weighted, 2, 3) @ phi[:, None]


def natural_parameters(
    shape: Geometry, sites: Sites
) -> tuple[Float[Array, "B W W"], Float[Array, "B W"], Float[Array, ""]]:
    """Return P, b and the constant sum(h m - Lambda m^2 / 2) of the sites' product with the prior.

    The Gram matrices are per output, so the cost is O(D N M^2) however large the rank is.
    """
    phi, loading, mean = shape[:3]
    blocks, _, rank, size = loading.shape
    gram = output_grams(phi, sites)
    half = loading[:, :, None] * gram[:, :, :, None, :]
    precision = jnp.einsum("bdrm,bdmsk->brmsk", loading, half)
    precision = precision.reshape(blocks, rank * size, rank * size) + jnp.eye(rank * size)
    centred = sites.linear - sites.precision * mean[:, None]
    linear = jnp.einsum("bdrm,bdm->brm", loading, jnp.swapaxes(centred, 1, 2) @ phi)
    constant = jnp.sum((sites.linear - 0.5 * sites.precision * mean[:, None]) * mean[:, None])
    return precision, linear.reshape(blocks, -1), constant


def solve_weights(
    precision: Float[Array, "B W W"], linear: Float[Array, "B W"]
) -> tuple[Weights, Float[Array, ""]]:
    """Return q(v) = N(P^-1 b, P^-1) and KL(q(v) || N(0, I)), summed over the blocks."""
    factor = cholesky(precision)
    covariance = inverse_of_product(factor)
    mean = jnp.einsum("bwu,bu->bw", covariance, linear)
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)))
    trace = jnp.sum(jnp.diagonal(covariance, axis1=1, axis2=2))
    divergence = 0.5 * (trace + jnp.sum(mean**2) - mean.size + log_det)
    return Weights(mean, covariance), divergence


def blocked(side_by_side: Float[Array, "N O"], blocks: int) -> Float[Array, "B N D"]:
    """Undo :func:`flat`."""
    rows = len(side_by_side)
    return jnp.moveaxis(side_by_side.reshape(rows, blocks, -1), 0, 1)


class Totals(NamedTuple):
    """What is added up on the way: the bound, and the largest share that features leave out."""

    bound: Float[AnyArray, ""]
    left_out: Float[AnyArray, ""]


class RoleState(NamedTuple):
    """q of one role at given sites, and what the slopes of its hyper-parameters are made of."""

    weights: Weights
    mean: Float[Array, "N O"]
    variance: Float[Array, "N O"]
    cotangent: Geometry
    """Derivative of log Z in the geometry; that in what is left out is not known yet."""
    pull: Callable[[Geometry], tuple[LMC, ...]]
    """Turns a derivative in the geometry into one in the free hyper-parameters."""
    nugget: Float[Array, "B D J J"] | None = None
    """The information about the nuggets."""


def role_state(
    totals: Totals,
    free: LMC,
    sites: Sites,
    inducing: tuple[Inducing, ...],
    inputs: Float[AnyArray, "N C"],
    jitter: Float[AnyArray, ""],
) -> tuple[Totals, RoleState]:
    """Find q of a role that varies from its sites; its divergence is taken from the bound.

    The gradient is that of the conjugate surrogate log Z = log of the integral of the sites under
    the prior, which is the gradient of the ELBO itself when the sites have converged; its adjoint
    is closed, d log Z / dP = -(P^-1 + v v') / 2 and d log Z / db = v, so neither a Cholesky factor
    nor an inverse is differentiated.
    """
    inputs = jnp.asarray(inputs)
    shape, pull = jax.vjp(lambda f: geometry(from_free(f), inducing, inputs, jitter), free)
    own = of_functions(sites, shape.nugget)
    precision, linear, _ = natural_parameters(shape, own)
    weights, divergence = solve_weights(precision, linear)
    gamma, cotangent = Spread(*marginals(shape, weights)), surrogate_cotangent(shape, weights, own)
    information = None
    if free.nugget is not None and shape.nugget is not None:
        f = gamma._replace(variance=gamma.variance - shape.left_out)
        slope, of_rows = nugget_slope(f, sites, shape.nugget)
        cotangent = cotangent._replace(nugget=slope)
        information = free.nugget.information(inputs, of_rows)
        divergence = divergence + nugget_divergence(f, sites, shape.nugget)
        mean, variance = with_nugget(f, sites, shape.nugget)
        gamma = Spread(mean, variance + shape.left_out)
    left_out = jnp.maximum(totals.left_out, largest_share_left_out(shape))
    totals = Totals(totals.bound - divergence, left_out)
    mean, variance = (flat(part) for part in gamma)
    return totals, RoleState(weights, mean, variance, cotangent, pull, information)


def role_ascent(
    state: RoleState, slopes: tuple[Float[AnyArray, "N O"], Float[AnyArray, "N O"]]
) -> tuple[LMC, Sites]:
    """Return the gradient in a role's free hyper-parameters, and its next sites.

    ``slopes`` are those of the expected log likelihood in the means and variances of q.
    """
    blocks = len(state.cotangent.phi)
    d_mean, d_variance = (blocked(jnp.asarray(slope), blocks) for slope in slopes)
    gradient = state.pull(state.cotangent._replace(left_out=d_variance))[0]
    return gradient, next_sites(blocked(state.mean, blocks), d_mean, d_variance)


def constant_state(free: LMC, rows: int) -> tuple[Float[Array, "N O"], Float[Array, "N O"]]:
    """Return the marginals of a role without kernels; its variance is never looked at."""
    mean = free.constant(rows)
    return mean, jnp.ones_like(mean)


def constant_ascent(free: LMC, slope: Float[AnyArray, "N O"]) -> tuple[LMC, Float[Array, "B D"]]:
    """Return the gradient of a role without kernels, and its empirical information."""
    by_row = blocked(jnp.asarray(slope), free.mean.shape[0])
    gradient = eqx.tree_at(lambda m: m.mean, free, jnp.sum(by_row, axis=1))
    return gradient, jnp.sum(by_row**2, axis=1)


class Stages(NamedTuple):
    """The parts of an evaluation, each of which may be compiled on its own.

    What takes long to compile depends on little: the likelihoods on the number of cells alone, and
    a role on its own kernels and inducing inputs alone. Models that differ elsewhere share it.
    """

    state: Callable[..., tuple[Totals, RoleState]] = role_state
    ascent: Callable[..., tuple[LMC, Sites]] = role_ascent
    constant_state: Callable[..., Any] = constant_state
    constant_ascent: Callable[..., Any] = constant_ascent
    expectation: Callable[..., Any] = add_expectation


AT_ONCE = Stages()
"""Nothing compiled here: for what is compiled as a whole."""


def evaluate(
    free: Roles,
    sites: dict[str, Sites],
    problem: Problem,
    jitter: Float[AnyArray, ""],
    stages: Stages = AT_ONCE,
) -> Evaluation:
    """Return the ELBO with its gradient in the free hyper-parameters, and the next sites."""
    rows = len(problem.inputs)
    totals = Totals(np.zeros(()), np.zeros(()))
    states: dict[str, RoleState] = {}
    mean, variance = {}, {}
    for role, lmc in free.items():
        if lmc.varies:
            own = (lmc, sites[role], problem.inducing[role], problem.inputs, jitter)
            totals, states[role] = stages.state(totals, *own)
            mean[role], variance[role] = states[role].mean, states[role].variance
        else:
            mean[role], variance[role] = stages.constant_state(lmc, rows)
    bound, slopes = totals.bound, none_yet(mean)
    for part in problem.terms:
        bound, slopes = stages.expectation(bound, slopes, part, mean, variance, tuple(states))
    gradient, target, scores = {}, {}, {}
    for role, lmc in free.items():
        if role in states:
            own = slopes[0][role], slopes[1][role]
            gradient[role], target[role] = stages.ascent(states[role], own)
        else:
            gradient[role], scores[role] = stages.constant_ascent(lmc, slopes[0][role])
    weights = {role: state.weights for role, state in states.items()}
    nuggets = {role: state.nugget for role, state in states.items() if state.nugget is not None}
    return Evaluation(bound, gradient, target, weights, totals.left_out, scores, nuggets)


def largest_share_left_out(shape: Geometry) -> Float[Array, ""]:
    """Return the largest share of prior variance that the features of a role leave out."""
    carried = jnp.einsum("bnm,bdrm->bnd", shape.phi**2, shape.loading**2)
    return jnp.max(shape.left_out / (carried + shape.left_out + 1e-300))


def surrogate_cotangent(shape: Geometry, weights: Weights, sites: Sites) -> Geometry:
    """Return the derivative of log Z in the geometry.

    Written out, as most of it is what the marginals are made of and is computed only once: with
    g_d = loading_d v and C_d the mean and the covariance of the factors by which output d sees the
    features, its precisions Lambda pull them by -(C_d + g_d g_d') and its residuals r_d by g_d.
    """
    phi, loading, mean = shape[:3]
    blocks, _, rank, size = loading.shape
    slope, (half, inner) = output_slopes(shape, weights), output_covariances(shape, weights)
    gram = output_grams(phi, sites)
    centred = sites.linear - sites.precision * mean[:, None]
    residual = jnp.asarray(centred - sites.precision * (phi @ jnp.swapaxes(slope, 1, 2)))
    d_phi = residual @ slope - jnp.einsum("bnd,bdnm->bnm", sites.precision, phi[:, None] @ inner)
    own = weights.mean.reshape(blocks, 1, rank, size)
    pulled = jnp.swapaxes(residual, 1, 2) @ phi
    d_loading = own * pulled[:, :, None] - jnp.sum(half * gram[:, :, None], axis=4)
    return Geometry(d_phi, d_loading, jnp.sum(residual, axis=1), jnp.zeros_like(shape.left_out))


def next_sites(
    mean: Float[Array, "B N D"], d_mean: Float[Array, "B N D"], d_variance: Float[Array, "B N D"]
) -> Sites:
    """Return the sites of a full natural-gradient step: Lambda = -2 dE/dV, h = dE/dm + Lambda m.

    Where the expected log likelihood is convex the precision would be negative and q improper:
    there it is zero.
    """
    precision = jnp.maximum(-2.0 * d_variance, 0.0)
    return Sites(d_mean + precision * mean, precision)
