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

Where many outputs share latent functions, what two outputs have in common is neglected, and so is
what mixing and kernels have in common: the information of one output's coefficients and mean is
that of a regression on the latent functions, sum_n Lambda_d(n) E[u u'], if these were observed.

The function of a long series (see `LocalFeatures`) and the others are taken for known to each
other. With precisions Lambda_d of a knot that are the same at all knots it is stationary, and its
information is Whittle's: a sum over frequencies, with the spectral density s(w) = G(w)^2 of the
features' response G, of tr(S^-1 dS_i S^-1 dS_j) / 2 for the D x D matrices S = A s A' + Lambda^-1.
"""

from __future__ import annotations

import dataclasses
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PyTree

from censored_gp.inference.elbo import Evaluation, Roles
from censored_gp.inference.lookup import MOST_BY_OUTPUT, Features, OutputBlock
from censored_gp.model.lmc import LMC

Vector = Float[np.ndarray, "P"]
Matrix = Float[np.ndarray, "P P"]
# A kernel with more hyper-parameters gets one derivative of its features, along all of them.
MOST_SLOPES = 2
# The number of frequencies of Whittle's information.
FREQUENCIES = 512


def to_vector(tree: PyTree) -> Vector:
    """Concatenate all leaves of a tree (in numpy: `ravel_pytree` would compile programs)."""
    leaves = [np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def from_vector(vector: Vector, like: PyTree) -> PyTree:
    """Undo :func:`to_vector`."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = np.split(vector, ends)
    shaped = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


def positions(like: PyTree) -> Any:
    """Return where in the vector of a tree each of its numbers is, in the tree's own form."""
    places = from_vector(np.arange(len(to_vector(like))), like)
    return jax.tree.map(lambda at: at.astype(int), places)


# Blocks of the information: places of hyper-parameters in the vector, and their matrix.
Information = list[tuple[Int[np.ndarray, "K"], Float[np.ndarray, "K K"]]]


def fisher_information(free: Roles, evaluation: Evaluation) -> Information:
    """Return the information of all hyper-parameters, placed in the order of :func:`to_vector`.

    That of the means of roles without kernels is empirical, from the scores of the rows.
    """
    places = positions(free)
    found: Information = [
        (np.array([at]), np.array([[score]]))
        for role, scores in evaluation.scores.items()
        for at, score in zip(places[role].mean.ravel(), scores.ravel(), strict=True)
    ]
    for role, state in evaluation.states.items():
        if (nugget := free[role].nugget) is not None:
            for b, d in np.ndindex(nugget.size.shape[:2]):
                size = 2.0 * np.asarray(nugget.size)[b, d]
                rows = state.bumps.T * state.nugget_information[b, :, d]
                found.append(
                    (places[role].nugget.size[b, d], rows @ state.bumps * np.outer(size, size))
                )
        if free[role].slopes is not None:
            for at, matrix in zip(places[role].slopes.size, state.slope_information, strict=True):
                found.append((at.ravel(), matrix.reshape(at.size, at.size)))
        for b, block in enumerate(state.blocks):
            place = jax.tree.map(lambda at, b=b: at[b], places[role])
            many = len(block.mean) > MOST_BY_OUTPUT or bool(block.own)
            q = block.long
            if q is not None:
                found.append(_of_long(block, q, place, many))
                if not many:
                    mixing = place.mixing[:q] + place.mixing[q + 1 :]
                    place = dataclasses.replace(place, mixing=mixing)
                place = dataclasses.replace(
                    place, kernels=place.kernels[:q] + place.kernels[q + 1 :]
                )
            found += _of_many(block, place) if many else [_of_few(block, place)]
    return found


def to_dense(information: Information, count: int) -> Matrix:
    """Return the information as one matrix."""
    total = np.zeros((count, count))
    for index, matrix in information:
        total[np.ix_(index, index)] += matrix
    return total


def _of_few(block: OutputBlock, place: LMC) -> tuple[Int[np.ndarray, "K"], Matrix]:
    """Return the information of a block of few outputs.

    It is that of the coefficients c_{d,l,q,r} of output d, in rank r, of the features of kernel q
    (l = 0) and of their derivatives in its hyper-parameters (l > 0), turned into that of the
    hyper-parameters; and 1_d' S^-1 1_e of the means.
    """
    dense = [q for q in range(len(block.features)) if q != block.long]
    pairs = [pair for pair in block.pairs if pair.p != block.long]
    wide = {q: [block.features[q].phi, *_slopes(block.features[q])] for q in dense}
    width, order = max((len(own) for own in wide.values()), default=1), block.order
    outputs, covariance = len(block.mean), block.given_chain
    rest = (np.eye(order) - covariance).reshape(block.rank, block.size, block.rank, block.size)
    kernels = [block.columns[q] for q in dense]
    loading = np.zeros((outputs, block.rank, block.size))
    for q in dense:
        a = block.mixing[q]
        loading[:, : a.shape[1], block.columns[q]] = a[..., None]
    grams, inward, carried = [], [], []
    for d in range(outputs):
        gram = np.zeros((width, block.size, width, block.size))
        for pair in pairs:
            rows, columns = block.columns[pair.q], block.columns[pair.p]
            for k, right in enumerate(wide[pair.p]):
                weighted = pair.weigh(d, right) if k else pair.weighted[d]
                for j, left in enumerate(wide[pair.q]):
                    own = left.T @ weighted
                    gram[j, rows, k, columns], gram[k, columns, j, rows] = own, own.T
        grams.append(gram)
        # Psi' Lambda dPsi, but for the coefficients of its rows.
        inward.append(gram[0].reshape(block.size, width * block.size))
        by_rank = covariance.reshape(order, block.rank, block.size)
        carried.append(np.einsum("wrm,rm->wm", by_rank, loading[d]) @ inward[d])
    index = np.concatenate([to_vector(place.kernels), to_vector(place.mixing), place.mean])
    index = index.astype(int)
    turn = _turn(block, dense, place, index, width)
    total = np.zeros((len(index), len(index)))
    for d, e in combinations_with_replacement(range(outputs), 2):
        by_rank = carried[e].reshape(block.rank, block.size, width * block.size)
        between = -inward[d].T @ np.einsum("rm,rmc->mc", loading[d], by_rank)
        between = between.reshape(grams[d].shape) + (grams[d] if d == e else 0.0)
        first, last = (
            c.reshape(block.rank, block.size, width, block.size) for c in (carried[d], carried[e])
        )
        own = np.empty((width, len(dense), block.rank) * 2)
        for (q, x), (p, y) in product(enumerate(kernels), repeat=2):
            # Sums over the columns x of q and y of p, for each rank (r, s) and slope (j, k).
            crossed = _sums(last[:, x, :, y], first[:, y, :, x].transpose(0, 3, 2, 1))
            straight = _sums(between[:, x, :, y], rest[:, x, :, y])
            own[:, q, :, :, p] = crossed.transpose(3, 0, 1, 2) + straight.swapaxes(1, 2)
        half = turn[d].T @ own.reshape(turn.shape[1], turn.shape[1]) @ turn[e]
        total += half if d == e else half + half.T
    _spread_shared([block.features[q] for q in dense], total)
    flat = np.zeros((outputs, block.total))
    for q, pair in enumerate(block.alone):
        sums = pair.sums @ pair.left
        flat[:, block.places[q]] = block.mixing[q][..., None] * sums[:, None]
    means = np.diag(block.pairs[0].sums.sum(axis=1)) - flat @ block.times_covariance(flat.T)
    total[-outputs:, -outputs:] += means
    return index, total


def _sums(
    left: Float[np.ndarray, "A X B Y"], right: Float[np.ndarray, "C X D Y"]
) -> Float[np.ndarray, "A B C D"]:
    """Return sums of products over X and Y."""
    flat = [part.swapaxes(1, 2).reshape(len(part) * part.shape[2], -1) for part in (left, right)]
    shape = len(left), left.shape[2], len(right), right.shape[2]
    return (flat[0] @ flat[1].T).reshape(shape)


def _of_long(
    block: OutputBlock, q: int, place: LMC, many: bool
) -> tuple[Int[np.ndarray, "K"], Matrix]:
    """Return the information of the long series' kernel, and of its coefficients of few outputs."""
    features: Any = block.features[q]
    a, precision = block.mixing[q], block.sum_precision / features.crossed
    response, *slopes = np.fft.rfft(features.response(FREQUENCIES)).real
    density = response**2
    index = to_vector(place.kernels[q]).astype(int)
    if many:
        # S^-1 A = Lambda A (I + s B)^-1, with B = A' Lambda A.
        inner = (a * precision[:, None]).T @ a
        changes = [2.0 * response * slope for slope in slopes]
        root = np.linalg.solve(np.eye(len(inner)) + density[:, None, None] * inner, inner[None])
        found = [change[:, None, None] * root for change in changes]
    else:
        index = np.concatenate([index, place.mixing[q].ravel()])
        shared = a @ a.T
        changes = [(2.0 * response * slope)[:, None, None] * shared for slope in slopes]
        for d, r in np.ndindex(a.shape):
            change = np.zeros((len(a), len(a)))
            change[d] += a[:, r]
            change[:, d] += a[:, r]
            changes.append(density[:, None, None] * change)
        weight = np.diag(precision)
        root = np.linalg.solve(
            np.eye(len(a)) + density[:, None, None] * weight @ shared, weight[None]
        )
        found = [root @ change for change in changes]
    # Frequencies 0 to pi, those between stand for two.
    twice = np.r_[1.0, np.full(len(density) - 2, 2.0), 1.0] * features.crossed / FREQUENCIES
    matrix = np.array([[0.5 * np.einsum("w,wij,wji->", twice, x, y) for y in found] for x in found])
    return index.astype(int), matrix


def _turn(
    block: OutputBlock, dense: list[int], place: LMC, index: Int[np.ndarray, "K"], width: int
) -> Float[np.ndarray, "D C K"]:
    """Return the derivative of the coefficients c_{d,l,q,r} in the hyper-parameters."""
    outputs, kernels, rank = len(block.mean), len(dense), block.rank
    turn = np.zeros((outputs, width, kernels, rank, int(index.max()) + 1))
    mixing = [block.mixing[q] for q in dense]
    for q, (kernel, a, at) in enumerate(zip(place.kernels, mixing, place.mixing, strict=True)):
        d, r = np.indices(at.shape)
        turn[d, 0, q, r, at] = 1.0
        for slope, position in enumerate(to_vector(kernel)[: width - 1].astype(int)):
            turn[d, slope + 1, q, r, position] = a
    return turn[..., index].reshape(outputs, -1, len(index))


def _slopes(features: Features) -> list[Any]:
    """Return derivatives of the features: in each hyper-parameter, or one along all of many."""
    slopes = [slope[:2] for slope in features.slopes]
    if len(slopes) > MOST_SLOPES:
        slopes = [tuple(np.sum(parts, axis=0) for parts in zip(*slopes, strict=True))]
    return [features.derivative(*slope) for slope in slopes]


def _spread_shared(kernels: list[Features], total: Matrix) -> None:
    """Give each hyper-parameter of a kernel the curvature along all, if only that was computed."""
    ends = np.cumsum([0, *(len(features.slopes) for features in kernels)])
    for start, end in pairwise(ends):
        if end - start > MOST_SLOPES:
            curvature, own = total[start, start], np.arange(start, end)
            total[own], total[:, own] = 0.0, 0.0
            total[own, own] = curvature


def _of_many(block: OutputBlock, place: LMC) -> Information:
    """Return the information of a block of many outputs: of its kernels, and of each output."""
    found: Information = [(to_vector(place.kernels).astype(int), _of_kernels(block))]
    for d in range(len(block.mean)):
        latent = [at[d] for at in place.mixing]
        index = np.concatenate([*latent, place.mean[d, None]])
        ends = np.cumsum([0, *map(len, latent)])
        matrix = np.zeros((len(index), len(index)))
        # Of functions that outputs have of their own, this output's.
        functions = [[d] if q in block.own else slice(None) for q in range(len(latent))]
        for pair, second in zip(block.pairs, block.sum_luu, strict=True):
            rows, columns = (slice(ends[q], ends[q + 1]) for q in (pair.q, pair.p))
            own = second[d][functions[pair.q]][:, functions[pair.p]]
            matrix[rows, columns] = own
            matrix[columns, rows] = own.T
        firsts = [first[d][f] for first, f in zip(block.sum_lu, functions, strict=True)]
        matrix[-1, :-1] = matrix[:-1, -1] = np.concatenate(firsts)
        matrix[-1, -1] = block.sum_precision[d]
        found.append((index, matrix))
    return found


def _of_kernels(block: OutputBlock) -> Matrix:
    """Return the information of the hyper-parameters of kernels that many outputs share.

    For hyper-parameters i of kernel q and j of kernel p it is tr(A_i A_j) + tr(B_ij (I - C)), with
    sums over the columns of p and q alone.
    """
    covariance = block.given_chain
    rest = np.eye(block.order) - covariance
    dense = [(q, features) for q, features in enumerate(block.features) if q != block.long]
    own = [(q, slope) for q, features in dense for slope in _slopes(features)]
    columns = [place.ravel() for place in block.places]
    inward = [np.zeros((block.order, len(columns[q]))) for q, _ in own]
    for (q, slope), total in zip(own, inward, strict=True):
        for p, features in dense:
            total[columns[p]] = block.gram(p, q, features.phi, slope)
    carried = [covariance @ total for total in inward]
    matrix = np.zeros((len(own), len(own)))
    for (i, (q, left)), (j, (p, right)) in combinations_with_replacement(enumerate(own), 2):
        between = block.gram(p, q, right, left) - inward[j].T @ carried[i]
        both = np.sum(carried[i][columns[p]] * carried[j][columns[q]].T)
        matrix[i, j] = matrix[j, i] = both + np.sum(between * rest[np.ix_(columns[p], columns[q])])
    counts = [len(f.slopes) if len(f.slopes) > MOST_SLOPES else 1 for f in block.features]
    if max(counts) > 1:
        # One derivative along all hyper-parameters of a kernel stands for each of them.
        matrix = np.diag(np.repeat(np.diag(matrix), [counts[q] for q, _ in own]))
    return matrix
