"""Fisher information of the hyper-parameters: the curvature of the sites' evidence.

Given the sites, their evidence is that of a Gaussian y ~ N(m, S) with S = Psi Psi' + Lambda^-1, so
the expected curvature in two hyper-parameters is the classical

    F_ij = tr(S^-1 dS_i S^-1 dS_j) / 2 + dm_i' S^-1 dm_j,    dS = dPsi Psi' + Psi dPsi',

which follows from the weights, with C = P^-1 and no matrix over rows:

    tr(S^-1 dS_i S^-1 dS_j) / 2 = tr(A_i A_j) + tr(dPsi_j' S^-1 dPsi_i (I - C)),
    A_i = Psi' S^-1 dPsi_i = C T_i,    dPsi_j' S^-1 dPsi_i = dPsi_j' Lambda dPsi_i - T_j' C T_i,

where T_i = Psi' Lambda dPsi_i. Psi is linear in the mixing coefficients, and a hyper-parameter of a
kernel acts on the columns of that kernel alone, so F is made of sums over the columns of two
kernels at a time.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from censored_gp.inference.elbo import Evaluation, Problem, Roles
from censored_gp.inference.posterior import Sites, Weights
from censored_gp.model.compilation import AnyArray, Scalar, compiled_for_arrays
from censored_gp.model.lmc import LMC, Where, features_and_slopes, loadings, slopes_of

Vector = Float[np.ndarray, "P"]
MOST_COUPLED = 4
"""In a block of more outputs, the information that two outputs share is neglected."""


def to_vector(tree: PyTree) -> Vector:
    """Concatenate all leaves of a tree (in numpy: `ravel_pytree` would compile programs)."""
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)])


def from_vector(vector: Vector, like: PyTree) -> PyTree:
    """Undo :func:`to_vector`."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = np.split(vector, ends)
    shaped = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


class Information(NamedTuple):
    """Fisher information of one role that varies.

    ``loading`` is that of the coefficients c_{d,l,q,r} of output d, in rank r, of the features of
    kernel q (l = 0) and of their derivatives in its hyper-parameters (l > 0), for each pair of
    outputs in ``pairs_of``; ``mean`` is that of the outputs' means.
    """

    loading: Float[AnyArray, "B E L Q R L Q R"]
    mean: Float[AnyArray, "B D D"]


def pairs_of(outputs: int) -> Int[np.ndarray, "E 2"]:
    """Return the pairs of outputs whose information is computed: all, or each with itself."""
    if outputs > MOST_COUPLED:
        return np.repeat(np.arange(outputs)[:, None], 2, axis=1)
    return np.array(list(combinations_with_replacement(range(outputs), 2)))


@compiled_for_arrays
def role_information(free: LMC, sites: Sites, weights: Weights, where: Where) -> Information:
    """Return the information of one role that varies, at given sites and q(v).

    That of its means is 1_d' S^-1 1_e for every pair of outputs.
    """
    inducing, inputs, jitter = where
    wide = features_and_slopes(free, inducing, jnp.asarray(inputs), jitter)
    nugget = None if free.nugget is None else free.nugget.variance(inputs)
    precision = jnp.asarray(sites.marginal(nugget).precision)
    sizes = tuple(len(z.mask) for z in inducing)

    def of_block(wide, loading, precision, covariance) -> Information:  # noqa: ANN001
        about = _loading_information(wide, loading, precision, covariance, sizes)
        inward = (loading * (precision.T @ wide[0])[:, None]).reshape(len(loading), -1)
        mean = jnp.diag(jnp.sum(precision, axis=0)) - inward @ covariance @ inward.T
        return Information(about, mean)

    return jax.vmap(of_block)(wide, loadings(free, inducing), precision, weights.covariance)


def fisher_information(
    free: Roles, sites: dict[str, Sites], evaluation: Evaluation, problem: Problem, jitter: Scalar
) -> Float[np.ndarray, "P P"]:
    """Return the information of all hyper-parameters, in the order of :func:`to_vector`.

    That of the means of roles without kernels is empirical, from the scores of the rows.
    """
    count = len(to_vector(free))
    # Where in the vector each number of every role is.
    places = jax.tree.map(lambda at: at.astype(int), from_vector(np.arange(count), free))
    total = np.zeros((count, count))
    for role, scores in evaluation.scores.items():
        index = places[role].mean.ravel()
        total[index, index] = np.ravel(scores)
    for role, nuggets in evaluation.nuggets.items():
        for at in np.ndindex(nuggets.shape[:2]):
            index = places[role].nugget.size[at]
            total[np.ix_(index, index)] = np.asarray(nuggets)[at]
    for role, weights in evaluation.weights.items():
        where = problem.inducing[role], problem.inputs, jitter
        loading, mean = role_information(free[role], sites[role], weights, where)
        for block, index in enumerate(places[role].mean):
            total += _of_loadings(free[role], places[role], np.asarray(loading), block, count)
            total[np.ix_(index, index)] += np.asarray(mean)[block]
    return total


def _loading_information(
    wide: Float[Array, "L N M"],
    loading: Float[Array, "D R M"],
    precision: Float[Array, "N D"],
    covariance: Float[Array, "W W"],
    sizes: tuple[int, ...],
) -> Float[Array, "E L Q R L Q R"]:
    """Return the information of the coefficients of one block, pair by pair of outputs.

    It is tr(A_i A_j) + tr(dPsi_j' S^-1 dPsi_i (I - C)), summed over the kernels' columns. The
    letters: slope l and rank r of one kernel (column j), slope k and rank s of another (i).
    """
    outputs, rank, size = loading.shape
    rest = (jnp.eye(rank * size) - covariance).reshape(rank, size, rank, size)
    member = np.repeat(np.eye(len(sizes)), sizes, axis=0)

    def of_output(d: Int[Array, ""]) -> tuple[Float[Array, "..."], ...]:
        gram = jnp.einsum("lnm,n,knj->lmkj", wide, precision[:, d], wide)
        inward = loading[d][..., None, None] * gram[0]
        carried = covariance @ inward.reshape(rank * size, -1)
        return gram, inward, carried.reshape(inward.shape)

    def of_pair(pair: Int[Array, "2"]) -> Float[Array, "L Q R L Q R"]:
        d, e = pair
        between = -jnp.einsum("rmlj,rmki->ljki", inward[d], carried[e])
        between = between + jnp.where(d == e, 1.0, 0.0) * gram[d]
        cells = jnp.einsum("silj,rjki->lrksji", carried[d], carried[e])
        cells = cells + jnp.einsum("ljki,rjsi->lrksji", between, rest)
        return jnp.einsum("lrksjp,jq->lqrkps", cells @ member, member)

    gram, inward, carried = jax.lax.map(of_output, jnp.arange(outputs))
    return jax.lax.map(of_pair, jnp.asarray(pairs_of(outputs)))


def _of_loadings(
    lmc: LMC, place: LMC, loading: Float[np.ndarray, "B E ..."], block: int, count: int
) -> Float[np.ndarray, "P P"]:
    """Turn the information of coefficients into that of one block's hyper-parameters."""
    outputs, slopes = lmc.mean.shape[1], loading.shape[2]
    turn = np.zeros((outputs, *loading.shape[2:5], count))
    kernels = zip(place.kernels, lmc.mixing, place.mixing, strict=True)
    for q, (kernel, mixing, at) in enumerate(kernels):
        d, r = np.indices(at[block].shape)
        turn[d, 0, q, r, at[block]] = 1.0
        for slope, position in enumerate(_positions(kernel, block)[: slopes - 1]):
            turn[d, slope + 1, q, r, position] = np.asarray(mixing)[block]
    turn = turn.reshape(outputs, -1, count)
    total = np.zeros((count, count))
    for (d, e), own in zip(pairs_of(outputs), loading[block], strict=True):
        half = turn[d].T @ own.reshape(turn.shape[1], -1) @ turn[e]
        total += half if d == e else half + half.T
    _spread_shared(place, block, total)
    return total


def _positions(kernel: object, block: int) -> Int[np.ndarray, "K"]:
    """Return where in the vector a block's hyper-parameters of one kernel are."""
    leaves = [np.ravel(leaf[block]) for leaf in jax.tree.leaves(kernel)]
    return np.concatenate(leaves) if leaves else np.zeros(0, dtype=int)


def _spread_shared(place: LMC, block: int, total: Float[np.ndarray, "P P"]) -> None:
    """Give each hyper-parameter of a kernel the curvature along all, if only that was computed."""
    positions = [_positions(kernel, block) for kernel in place.kernels]
    most = max(map(len, positions))
    if slopes_of(most) == most:
        return
    for own in positions:
        if len(own):
            curvature = total[own[0], own[0]]
            total[own], total[:, own] = 0.0, 0.0
            total[own, own] = curvature
