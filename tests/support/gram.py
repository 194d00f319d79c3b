"""The bound by dense Gram matrices over all rows: the slow twin of `inference.lookup`.

Features of every row, a Gram matrix of every output, derivatives by JAX's automatic
differentiation of the features: O(D N M^2), and obvious.
"""

from functools import partial, reduce
from operator import add
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import linalg
from jaxtyping import Array, Float

from censored_gp.inference.elbo import cell_slopes
from censored_gp.inference.sites import Moments, Sites, Weights
from censored_gp.model.lmc import Geometry, flat, from_free, geometry
from support.quick import quick


class Dense(NamedTuple):
    """What `elbo.evaluate` returns, as the twin computes it."""

    elbo: float
    gradient: dict
    target: dict
    weights: dict


def evaluate(free, sites, problem, jitter):
    """The ELBO, its gradient in the free hyper-parameters and the next sites."""
    bound, states, mean, variance = 0.0, {}, {}, {}
    for role, lmc in free.items():
        if lmc.varies:
            where = problem.inducing[role], np.asarray(problem.inputs), jitter
            divergence, states[role] = quick(role_state)(lmc, sites[role], where)
            bound = bound - divergence
            mean[role], variance[role] = states[role][1:3]
        else:
            mean[role] = lmc.constant(len(problem.inputs))
            variance[role] = np.ones(mean[role].shape)
    # The expectation has twins of its own.
    rows, latent = slice(0, len(problem.inputs)), jax.tree.map(np.asarray, (mean, variance))
    precisions = {role: np.concatenate([*sites[role].precision], axis=1) for role in states}
    value, by_role = cell_slopes(problem.terms, rows, *latent, precisions)
    gradient, target = {}, {}
    for role, lmc in free.items():
        blocks = lmc.mean.shape[0]
        slopes = [blocked(slope, blocks) for slope in by_role[role]]
        if role in states:
            _, centre, _, cotangent, pull = states[role]
            cotangent = cotangent._replace(left_out=slopes[1])
            (gradient[role],) = quick(lambda pull, cotangent: pull(cotangent))(pull, cotangent)
            precision = np.maximum(-2.0 * slopes[1], 0.0)
            target[role] = Sites(slopes[0] + precision * blocked(centre, blocks), precision)
        else:
            zeros = jax.tree.map(np.zeros_like, lmc)
            gradient[role] = eqx.tree_at(lambda m: m.mean, zeros, np.sum(slopes[0], axis=1))
    weights = {role: state[0] for role, state in states.items()}
    return Dense(float(value + bound), gradient, target, weights)


def role_state(free, sites, where):
    """q of a role from its sites; its divergence, marginals, and the derivative of log Z."""
    inducing, inputs, jitter = where
    shape, pull = jax.vjp(lambda f: geometry(from_free(f), inducing, inputs, jitter), free)
    sites_of_f = sites.marginal(shape.nugget)
    weights, divergence = solve_weights(shape, sites_of_f)
    gamma, cotangent = marginals(weights, shape), surrogate_cotangent(shape, weights, sites_of_f)
    if shape.nugget is not None:
        f = gamma._replace(variance=gamma.variance - shape.left_out)
        cotangent = cotangent._replace(nugget=nugget_slope(sites_of_f, f))
        divergence = divergence + nugget_divergence(sites, f, shape.nugget)
        moments = sites.with_nugget(f, shape.nugget)
        gamma = Moments(moments.mean, moments.variance + shape.left_out)
    return divergence, (weights, *map(flat, gamma), cotangent, pull)


def blocked(side_by_side, blocks):
    """Undo `flat`."""
    return np.moveaxis(np.asarray(side_by_side).reshape(len(side_by_side), blocks, -1), 0, 1)


def nugget_divergence(sites, f, nugget):
    """The expected KL divergence of q(e | f) from the prior of e, over all cells."""
    weight = 1.0 + nugget * sites.precision
    residual = sites.linear - sites.precision * f.mean
    squared = residual**2 + sites.precision**2 * f.variance
    return 0.5 * jnp.sum(1.0 / weight - 1.0 + jnp.log(weight) + nugget * squared / weight**2)


def nugget_slope(sites_of_f, f):
    """The derivative of log Z in the nugget's variance at each cell."""
    linear, precision = sites_of_f
    inverse = precision - precision**2 * f.variance
    return 0.5 * ((linear - precision * f.mean) ** 2 - inverse)


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
    centred = sites.linear - sites.precision * mean
    linear = jnp.einsum("bdrm,bdm->brm", loading, jnp.swapaxes(centred, 1, 2) @ phi)
    # One by one: a batched call may deadlock, see `geometry`.
    factor = jax.lax.map(linalg.cholesky, precision)
    solve = partial(linalg.triangular_solve, b=jnp.eye(rank * size), left_side=True, lower=True)
    inverse = jax.lax.map(solve, factor)
    covariance = jnp.swapaxes(inverse, 1, 2) @ inverse
    centre = jnp.einsum("bwu,bu->bw", covariance, linear.reshape(blocks, -1))
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)))
    trace = jnp.sum(jnp.diagonal(covariance, axis1=1, axis2=2))
    divergence = 0.5 * (trace + jnp.sum(centre**2) - centre.size + log_det)
    return Weights(centre, covariance), divergence


def surrogate_cotangent(shape: Geometry, weights: Weights, sites: Sites) -> Geometry:
    """Return the derivative of log Z in the geometry.

    It is written out, as it shares most of its computing with the marginals. With g_d and C_d the
    mean and covariance of output d's coefficients of the features, and residuals r_d,

        d log Z / dphi = sum_d r_d g_d' - Lambda_d phi C_d.
    """
    phi, loading, mean = shape[:3]
    blocks, _, rank, size = loading.shape
    slope, (half, inner) = slopes(weights, shape), covariances(weights, shape)
    gram = output_grams(phi, sites)
    centred = sites.linear - sites.precision * mean
    residual = jnp.asarray(centred - sites.precision * (phi @ jnp.swapaxes(slope, 1, 2)))
    d_phi = residual @ slope - jnp.einsum("bnd,bdnm->bnm", sites.precision, phi[:, None] @ inner)
    v = weights.mean.reshape(blocks, 1, rank, size)
    pulled = jnp.swapaxes(residual, 1, 2) @ phi
    d_loading = v * pulled[:, :, None] - jnp.sum(half * gram[:, :, None], axis=4)
    d_mean = jnp.sum(residual, axis=1, keepdims=True)
    return Geometry(d_phi, d_loading, d_mean, jnp.zeros_like(shape.left_out))


def marginals(weights, shape) -> Moments:
    """Return mean and variance of f_d(x_n) under q: Eq. (9), (10), (15)."""
    mean = shape.mean + shape.phi @ jnp.swapaxes(slopes(weights, shape), 1, 2)
    inner = covariances(weights, shape)[1]
    variance = jnp.sum((shape.phi[:, None] @ inner) * shape.phi[:, None], axis=3)
    return Moments(mean, jnp.maximum(jnp.swapaxes(variance, 1, 2), 0.0) + shape.left_out)


def slopes(weights, shape) -> Float[Array, "B D M"]:
    """Return the mean of each output's coefficients of the features, loading_d * v."""
    blocks, _, rank, size = shape.loading.shape
    return jnp.einsum("bdrm,brm->bdm", shape.loading, weights.mean.reshape(blocks, rank, size))


def covariances(weights, shape) -> tuple[Float[Array, "B D R M M"], Float[Array, "B D M M"]]:
    """Return the covariance of v with each output's coefficients, and that of these alone."""
    blocks, _, rank, size = shape.loading.shape
    square = weights.covariance.reshape(blocks, rank, size, rank, size)
    # Sums over the few ranks one by one: a contraction so short takes far longer.
    a, ranks = shape.loading, range(rank)
    half = reduce(add, (a[:, :, None, None, s] * square[:, None, ..., s, :] for s in ranks))
    return half, reduce(add, (a[:, :, r, :, None] * half[:, :, r] for r in ranks))
