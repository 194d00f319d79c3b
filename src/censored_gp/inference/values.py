"""A Gaussian over the function values at the training rows, Eq. (7) and Eq. (12).

Every parameter function gamma_{d,j} has at the N training rows the distribution

    q(gamma_{d,j}) = N(mu, S),      S = (A T)(A T)',      mu = m + A nu,

with T lower triangular, and A the Cholesky factor of its own prior covariance (``whitened``; so A T
is the Cholesky factor of S) or A = I. The divergence is from the joint prior of all outputs of a
role, N(m, K) with K of Eq. (5): summed output by output, as the paper prints it, it would know
nothing of their coupling.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from censored_gp.linalg import cholesky, inverse_of_product, solve_lower
from censored_gp.posterior import Weights
from censored_gp.prior import LMC, Geometry, grams, positive_scale


class Values(NamedTuple):
    """q of one role in free form: B blocks of G Gaussians over P function values (G P = D N)."""

    location: Float[Array, "B G P"]
    """nu."""
    factor: Float[Array, "B G P P"]
    """T below the diagonal, and on the diagonal the logarithms of T's."""


class Gaussians(NamedTuple):
    """q of one role in its own terms: mu - m and a factor F of S = F F', with the divergence."""

    shift: Float[Array, "B G P"]
    factor: Float[Array, "B G P P"]
    divergence: Float[Array, ""]


def covariance(
    lmc: LMC, inputs: Float[Array, "N C"], jitter: Float[Array, ""] | float
) -> Float[Array, "B P P"]:
    """Return K = sum_q B_q (x) K_q of every block, Eq. (5), output by output (P = D N)."""
    blocks, outputs = lmc.mean.shape
    order = outputs * len(inputs)
    matrix = jnp.zeros((blocks, order, order))
    for kernel, own in zip(lmc.kernels, lmc.coregionalization, strict=True):
        gram = grams(kernel, inputs, blocks)
        matrix += jnp.einsum("bde,bnm->bdnem", own, gram).reshape(matrix.shape)
    return matrix + jitter * mean_variance(matrix)[:, None, None] * jnp.eye(order)


def mean_variance(joint: Float[Array, "B P P"]) -> Float[Array, "B"]:
    """Return the mean of every matrix' diagonal, what its jitter is relative to."""
    return positive_scale(jnp.mean(jnp.diagonal(joint, axis1=1, axis2=2), axis=1))


def separate(joint: Float[Array, "B GP GP"], groups: int) -> Float[Array, "B G P P"]:
    """Return the G diagonal blocks of every matrix."""
    points = joint.shape[1] // groups
    return jnp.einsum("bgpgq->bgpq", joint.reshape(len(joint), groups, points, groups, points))


def together(parts: Float[Array, "B G P P"]) -> Float[Array, "B GP GP"]:
    """Undo :func:`separate`: put the G matrices along a diagonal."""
    blocks, groups, points, _ = parts.shape
    spread = jnp.einsum("bgpq,gh->bgphq", parts, jnp.eye(groups))
    return spread.reshape(blocks, groups * points, groups * points)


def starting_values(joint: Float[Array, "B GP GP"], groups: int, whitened: bool) -> Values:
    """Return q equal to the prior of each of the groups."""
    points = joint.shape[1] // groups
    location = jnp.zeros((len(joint), groups, points))
    if whitened:
        return Values(location, jnp.zeros((*location.shape, points)))
    factor, diagonal = cholesky(separate(joint, groups)), np.arange(points)
    logs = jnp.log(jnp.diagonal(factor, axis1=2, axis2=3))
    return Values(location, factor.at[..., diagonal, diagonal].set(logs))


def triangular(factor: Float[Array, "B G P P"]) -> Float[Array, "B G P P"]:
    """Return T from its free form."""
    diagonal = jnp.exp(jnp.diagonal(factor, axis1=2, axis2=3))
    return jnp.tril(factor, -1) + diagonal[..., None] * jnp.eye(factor.shape[-1])


def gaussians(values: Values, joint: Float[Array, "B GP GP"], whitened: bool) -> Gaussians:
    """Return q over the function values, less their mean m, and KL(q || N(m, K)), K = ``joint``."""
    groups = values.location.shape[1]
    own, log_own = triangular(values.factor), jnp.diagonal(values.factor, axis1=2, axis2=3).sum()
    if not whitened:
        root = cholesky(joint)
        return Gaussians(values.location, own, _divergence(root, values.location, own, log_own))
    prior = cholesky(separate(joint, groups))
    shift, factor = jnp.einsum("bgpq,bgq->bgp", prior, values.location), prior @ own
    if groups == 1:
        # The prior's own factor cancels: KL(N(nu, T T') || N(0, I)).
        whole = jnp.sum(own**2) + jnp.sum(values.location**2) - values.location.size
        return Gaussians(shift, factor, 0.5 * whole - log_own)
    root = cholesky(joint)
    log_factor = log_own + _log_diagonal(prior)
    return Gaussians(shift, factor, _divergence(root, shift, factor, log_factor))


def _divergence(
    root: Float[Array, "B GP GP"],
    shift: Float[Array, "B G P"],
    factor: Float[Array, "B G P P"],
    log_factor: Float[Array, ""],
) -> Float[Array, ""]:
    """Return (|C^-1 F|^2 + |C^-1 (mu - m)|^2 - D N) / 2 + log|C| - log|F| with C C' = K."""
    both = jnp.concatenate([together(factor), shift.reshape(len(root), -1, 1)], axis=2)
    solved = solve_lower(root, both)
    return 0.5 * (jnp.sum(solved**2) - shift.size) + _log_diagonal(root) - log_factor


def _log_diagonal(factor: Float[Array, "... P P"]) -> Float[Array, ""]:
    """Return half the log determinant of all the matrices factorised."""
    return jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)))


def marginals_of_values(
    lmc: LMC, q: Gaussians
) -> tuple[Float[Array, "B N D"], Float[Array, "B N D"]]:
    """Return mean and variance of gamma_d(x_n) under q."""
    variance = jnp.sum(q.factor**2, axis=3)
    shift, variance = (
        jnp.swapaxes(part.reshape(*lmc.mean.shape, -1), 1, 2) for part in (q.shift, variance)
    )
    return jnp.asarray(lmc.mean)[:, None] + shift, variance


def weights_of_values(q: Gaussians, shape: Geometry, noise: Float[Array, "B"]) -> Weights:
    """Return q(v) = int p(v | gamma) q(gamma) dgamma: Eq. (9), (10), (15) for all inputs at once.

    With gamma = m + Psi v + e, e ~ N(0, s), and P = I + Psi' Psi / s, the weights given gamma are
    N(G (gamma - m), P^-1), G = P^-1 Psi' / s; under q they are N(G (mu - m), P^-1 + G S G').
    """
    psi = _stacked_features(shape)
    left_out = jnp.swapaxes(shape.left_out, 1, 2).reshape(psi.shape[:2])
    scaled = jnp.swapaxes(psi / (left_out + noise[:, None])[..., None], 1, 2)
    conditional = inverse_of_product(cholesky(scaled @ psi + jnp.eye(psi.shape[2])))
    gain = conditional @ scaled
    mean = jnp.einsum("bwp,bp->bw", gain, q.shift.reshape(len(psi), -1))
    spread = gain @ together(q.factor)
    return Weights(mean, conditional + spread @ jnp.swapaxes(spread, 1, 2))


def _stacked_features(shape: Geometry) -> Float[Array, "B P W"]:
    """Return Psi, the outputs one below the other: gamma = m + Psi v."""
    psi = jnp.einsum("bnm,bdrm->bdnrm", shape.phi, shape.loading)
    blocks, outputs, rows, rank, size = psi.shape
    return psi.reshape(blocks, outputs * rows, rank * size)
