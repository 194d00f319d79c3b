"""Sums over rows by lookup tables: what a role asks of its N rows, at the cost of a few passes.

A kernel k_q distinguishes J_q inputs, often few (the 168 hours of a week), and the features of row
n are those of its input: phi_q(x_n) = U_q[j_q(n)], with a table U_q of J_q rows and an index j_q.
All that inference needs of the rows are then sums into tables over the inputs of two kernels. With
sites (h, Lambda) of f, coefficients A_q of Eq. (4) and T_d[j, j'] the sum of Lambda_d(n) over the
rows with j_q(n) = j and j_p(n) = j',

    P_(qi),(pk) = delta + U_q' (sum_d a_{d,q,i} a_{d,p,k} T_d) U_p,
    E_q[f_d] = m_d + sum_q (U_q v_q a_{d,q})[j_q],
    Var_q[f_d] = sum_qp (U_q C_(qi),(pk) U_p')[j_q, j_p] a_{d,q,i} a_{d,p,k},

and derivatives follow from the same tables. One kernel of a long series may have local features:
few are nonzero in a row, its table with itself meets neighbouring blocks of knots, and the
precision is an arrow matrix (see `arrow`). Where outputs are more than products of coefficients,
rows are summed over outputs first: tables T_ik of a_{d,q,i} a_{d,p,k} Lambda_d. The table of a
kernel with itself is diagonal, and a table with more entries than rows is kept sparse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int
from scipy.linalg import get_lapack_funcs, solve_triangular
from scipy.sparse import csr_array, issparse

from censored_gp.data.inputs import distinct
from censored_gp.inference.arrow import Covariance, inverse, solve_arrow
from censored_gp.inference.sites import Sites, Weights
from censored_gp.kernels.base import Kernel, canonical_inputs
from censored_gp.model.compilation import (
    AnyArray,
    Scalar,
    bucket,
    compiled_for_arrays,
    float64,
    pad,
    slices,
)
from censored_gp.model.inducing import Inducing, InducingInputs, Knots, longest
from censored_gp.model.lmc import LMC, Nugget, kernel_blocks

POTRF, PSTRF = get_lapack_funcs(("potrf", "pstrf"), dtype=np.float64)
Matrix = Float[AnyArray, "J M"]
ByOutput = Float[AnyArray, "N D"]
# Up to this many outputs have tables of their own, as their Fisher information needs them.
MOST_BY_OUTPUT = 4
# A kernel with more distinct inputs has them rounded to a grid.
MOST_DISTINCT = 2048
# Steps of such a grid, in each column, for each inducing input of the kernel.
STEPS = 16
# A block of a chain has at least this many knots.
LEAST_KNOTS = 32
# A table of two kernels is sparse if it has more than this many times as many entries as rows.
SPARSE = 16


class Lookup(NamedTuple):
    """The distinct inputs of a kernel, and which of them each row has."""

    inputs: Float[np.ndarray, "J C"]
    index: Int[np.ndarray, "N"]


@compiled_for_arrays
def _matrices(
    free: Kernel, inducing: Inducing, inputs: Matrix, jitter: Scalar
) -> tuple[Array, Array, Array]:
    """Return k(Z, Z), k(Z, x) and diag k(x, x)."""
    return kernel_blocks(jax.tree.map(jnp.exp, free), inducing, inputs, jitter)


@compiled_for_arrays
def _matrices_and_slopes(
    free: Kernel, inducing: Inducing, inputs: Matrix, jitter: Scalar
) -> tuple[tuple[Array, Array, Array], list[tuple[Array, Array, Array]]]:
    """Return the same, and their derivatives in each free hyper-parameter."""
    vector, unravel = ravel_pytree(free)

    def matrices(vector: Float[Array, "L"]) -> tuple[Array, Array, Array]:
        kernel = jax.tree.map(jnp.exp, unravel(vector))
        return kernel_blocks(kernel, inducing, inputs, jitter)

    slopes = [jax.jvp(matrices, (vector,), (one,))[1] for one in np.eye(len(vector))]
    return matrices(vector), slopes


@compiled_for_arrays
def _local_values(
    free: Kernel, away: Matrix, lags: Float[AnyArray, "L"]
) -> tuple[Array, list[Array]]:
    """Return c g(x - z) at distances from knots, and its derivatives; ``lags`` are those of c."""
    vector, unravel = ravel_pytree(free)

    def values(vector: Float[Array, "L"]) -> Float[Array, "J M"]:
        kernel = jax.tree.map(jnp.exp, unravel(vector))
        near, even = (kernel.root(jnp.square(d / kernel.lengthscale)) for d in (away, lags))
        return near / jnp.sqrt(jnp.sum(jnp.square(even)))

    return values(vector), [jax.jvp(values, (vector,), (one,))[1] for one in np.eye(len(vector))]


class Features:
    """Features U = k(x, Z) L^-T of one kernel at its distinct inputs, and their derivatives.

    ``rest`` is the prior variance that they leave out, k(x, x) - |phi(x)|^2. Only with ``slopes``
    have they derivatives.
    """

    def __init__(
        self, free: Kernel, inducing: Inducing, inputs: Matrix, jitter: float, slopes: bool
    ) -> None:
        given, derivatives = (free, inducing, inputs, np.asarray(jitter)), []
        with float64():
            if slopes:
                found, derivatives = _matrices_and_slopes(*given)
            else:
                found = _matrices(*given)
        used = np.flatnonzero(inducing.mask)
        (gram, cross, diagonal), *self.slopes = [
            (np.asarray(gram)[np.ix_(used, used)], np.asarray(cross)[used], np.asarray(diagonal))
            for gram, cross, diagonal in (found, *derivatives)
        ]
        factor, failed = POTRF(gram, lower=1, clean=1)
        if failed:
            factor = np.full_like(factor, np.nan)
        self.factor = factor
        self.phi = self._solve(cross).T
        self._leave_out(diagonal, np.sum(self.phi**2, axis=1))

    def needed(self, share: float) -> Int[np.ndarray, "K"]:
        """Return numbers of inducing inputs that leave out at most a share of the variance."""
        # Inputs at equal distances are equally good: weights decide between them, not rounding.
        weights = 1.0 + 1e-5 * (0.618034 * np.arange(len(self.factor)) % 1.0)
        root = weights[:, None] * self.factor
        gram = root @ root.T
        if not np.all(np.isfinite(gram)):
            return np.arange(len(gram))
        _, pivots, rank, _ = PSTRF(gram, tol=share * np.diagonal(gram).max(), lower=1)
        return pivots[:rank] - 1

    def _leave_out(self, diagonal: Any, carried: Float[np.ndarray, "J"]) -> None:
        """Set the prior variance k(x, x), and what is left of it by the features."""
        self.rest = np.maximum(diagonal - carried, 0.0)
        self.prior, self._left_out = self.rest + carried, self.rest > 0.0

    def _solve(self, right: Matrix, trans: int = 0) -> Matrix:
        return solve_triangular(self.factor, right, trans, lower=True, check_finite=False)

    def gradient(self, d_phi: Matrix, d_rest: Float[np.ndarray, "J"]) -> list[float]:
        """Pull a derivative in features and left-out variance back to the free hyper-parameters.

        Features matter up to a rotation, so that of features which rotate with the kernel serves:

            dphi = L^-1 dk(Z, x) - L^-1 dk(Z, Z) L^-T phi(x) / 2.
        """
        d_rest = np.where(self._left_out, d_rest, 0.0)
        d_cross = self._solve((d_phi - 2.0 * d_rest[:, None] * self.phi).T, trans=1)
        d_gram = -0.5 * self._solve((d_cross @ self.phi).T, trans=1).T
        return [
            float(np.vdot(d_gram, gram) + np.vdot(d_cross, cross) + np.vdot(d_rest, diagonal))
            for gram, cross, diagonal in self.slopes
        ]

    def derivative(self, gram: Matrix, cross: Matrix) -> Matrix:
        """Return the derivative of the features that comes with derivatives of the matrices."""
        inner = self._solve(self._solve(gram).T)
        return (self._solve(cross) - 0.5 * inner @ self.phi.T).T


class LocalFeatures(Features):
    """Features of a kernel on a grid of knots, of which few are nonzero at an input.

    Attributes
    ----------
    block
        The number of knots of a block of the chain: the reach of an input ends in the next block.
    rows
        The inputs whose reach begins in each block but the last.
    crossed
        The number of knots among the inputs.
    """

    def __init__(self, free: Kernel, knots: Knots, inputs: Matrix, width: int) -> None:
        x = np.asarray(free.canonical(np.asarray(inputs)))[:, 0]
        first, spacing = float(knots.first), float(knots.spacing)
        start = np.rint((x - first) / spacing - 0.5 * (width - 1))
        self.start = np.clip(start, 0, knots.size - width).astype(np.intp)
        self.near = np.arange(width)
        away = x[:, None] - first - spacing * (self.start[:, None] + self.near)
        lags = spacing * (self.near - width // 2)
        with float64():
            found = _local_values(free, np.concatenate([away, lags[None]]), lags)
        self._found = [np.asarray(found[0]), *map(np.asarray, found[1])]
        self.values, *slopes = [own[:-1] for own in self._found]
        self.crossed = np.ptp(x) / spacing + 1.0
        self.block = max(LEAST_KNOTS, width)
        self.blocks = max(-(-knots.size // self.block), 2)
        self.size = self.block * self.blocks
        owner = np.minimum(self.start // self.block, self.blocks - 2)
        ends = np.searchsorted(owner, np.arange(self.blocks))
        self.rows = [slice(a, b) for a, b in pairwise(ends)]
        self.phi = self._sparse(self.values)
        self.slopes, self.local_slopes = [self._sparse(own) for own in slopes], slopes
        self._leave_out(1.0, np.sum(self.values**2, axis=1))

    def _sparse(self, values: Matrix) -> csr_array:
        """Return local values as a sparse matrix over all knots."""
        columns = (self.start[:, None] + self.near).astype(np.int32)
        ends = np.arange(len(values) + 1) * len(self.near)
        return csr_array((values.ravel(), columns.ravel(), ends), (len(values), self.size))

    @cached_property
    def dense(self) -> list[tuple[int, slice, Matrix]]:
        """The local values by :meth:`windows`."""
        return list(self.windows(self.values))

    def windows(self, values: Matrix) -> Iterator[tuple[int, slice, Matrix]]:
        """Yield local values as dense matrices over the knots of two neighbouring blocks."""
        for i, rows in enumerate(self.rows):
            if rows.stop > rows.start:
                found = np.zeros((rows.stop - rows.start, 2 * self.block))
                ends = np.arange(0, found.size, 2 * self.block) - i * self.block
                found.ravel()[(self.start[rows] + ends)[:, None] + self.near] = values[rows]
                yield i, rows, found

    def response(self, count: int) -> Float[np.ndarray, "K F"]:
        """Return the features of one knot and their slopes, around a circle of so many knots."""
        found = np.zeros((len(self._found), count))
        found[:, (self.near - len(self.near) // 2) % count] = [own[-1] for own in self._found]
        return found

    def gradient(self, d_slopes: Any, d_rest: Float[np.ndarray, "J"]) -> list[float]:
        """Return derivatives in the hyper-parameters, from those along `slopes` and in the rest."""
        weight = -2.0 * np.where(self._left_out, d_rest, 0.0)[:, None] * self.values
        return [
            float(own + np.vdot(weight, slope))
            for own, slope in zip(d_slopes, self.local_slopes, strict=True)
        ]


class KernelPair:
    """What two kernels q <= p of a block have in common: tables of summed precisions.

    Attributes
    ----------
    coefficients
        a_{d,q,i} a_{d,p,k} of each channel: of an output, or of one product summed over outputs.
    products
        The same of each output and channel, where rows are summed over outputs first.
    tables
        T of each channel: a diagonal, a matrix, or a sparse matrix.
    """

    def __init__(self, block: OutputBlock, q: int, p: int) -> None:
        # No reference to the block: tables are freed as soon as it is.
        self.q, self.p, self.diagonal = q, p, q == p
        self.index = block.index[q], block.index[p]
        self.left, self.right = block.features[q].phi, block.features[p].phi
        self.sides = block.sides[q], block.sides[p]
        products = np.einsum("di,dk->dik", block.mixing[q], block.mixing[p])
        channels = int(np.prod(products.shape[1:]))
        self.products = None if block.by_output else products.reshape(-1, channels)
        self.coefficients = products
        if not block.by_output:
            self.coefficients = np.eye(channels).reshape(channels, *products.shape[1:])
        self.shape = self.left.shape[0], self.right.shape[0]
        rows, entries = len(self.index[0]), self.shape[0] * self.shape[1]
        self.sparse = not self.diagonal and entries > SPARSE * rows
        self.size = self.shape[0] if self.diagonal else rows if self.sparse else entries

    @cached_property
    def sums(self) -> Float[np.ndarray, "K S"]:
        """The entries of the tables, flat: zero until rows are added."""
        return np.zeros((len(self.coefficients), self.size))

    def where(self, rows: slice) -> Int[np.ndarray, "n"]:
        """Return the entry of the flattened table that each row belongs to."""
        first = self.index[0][rows]
        if self.diagonal:
            return first
        return first.astype(np.intp) * self.shape[1] + self.index[1][rows]

    def add(self, precision: ByOutput, rows: slice) -> None:
        """Add the precisions of some rows to the tables."""
        channels = (precision if self.products is None else precision @ self.products).T
        if self.sparse:
            self.sums[:, rows] = channels
            return
        where = self.where(rows)
        for total, channel in zip(self.sums, channels, strict=True):
            total += np.bincount(where, channel, len(total))

    @cached_property
    def tables(self) -> list[Any]:
        """T of each channel, once all rows are in."""
        if self.diagonal:
            return [total[:, None] for total in self.sums]
        if self.sparse:
            return [csr_array((total, self.index), self.shape) for total in self.sums]
        return [total.reshape(self.shape) for total in self.sums]

    def weigh(self, channel: int, right: Matrix) -> Matrix:
        """Return T right of one channel."""
        table = self.tables[channel]
        return table * right if self.diagonal else table @ right

    @cached_property
    def weighted(self) -> list[Matrix]:
        """T U_p of each channel."""
        return [self.weigh(channel, self.right) for channel in range(len(self.sums))]

    @cached_property
    def grams(self) -> Float[np.ndarray, "K M M"]:
        """U_q' T U_p of each channel."""
        return np.stack([self.left.T @ table for table in self.weighted])

    def by_rank(self, grams: Float[np.ndarray, "K M M"]) -> Float[np.ndarray, "W W"]:
        """Return the sum over channels of coefficients times matrices, over the weights."""
        found = np.tensordot(self.coefficients, grams, (0, 0)).swapaxes(1, 2)
        return found.reshape(found.shape[0] * found.shape[1], -1)

    def part(self, matrix: Float[np.ndarray, "W W"]) -> Float[np.ndarray, "R M S M"]:
        """Return a view of the part of a matrix that belongs to the two kernels."""
        (rows, shape, own), (columns, other, theirs) = self.sides
        return matrix[rows, columns].reshape(*shape, *other)[own + theirs]

    def blocks_of(self, moments: Covariance) -> Float[np.ndarray, "R S M M"]:
        """Return the part of a matrix over the weights that belongs to the two kernels."""
        return np.ascontiguousarray(self.part(moments.dense).swapaxes(1, 2))

    def by_channel(self, blocks: Float[np.ndarray, "R S M M"]) -> Float[np.ndarray, "K M M"]:
        """Return the sum over ranks of coefficients times the blocks of a matrix."""
        return np.tensordot(self.coefficients, blocks, 2)

    def pull(self, own: Float[np.ndarray, "K M M"], d_phi: list[Any]) -> None:
        """Subtract the derivative of tr(own P) in the features of both kernels."""
        for table, gram in zip(self.weighted, own, strict=True):
            d_phi[self.q] -= table @ gram.T
        if not self.diagonal:
            for table, gram in zip(self.tables, own, strict=True):
                d_phi[self.p] -= (table.T @ self.left) @ gram

    def prepare(self, covariance: Covariance) -> None:
        """Prepare to look up U_q C U_p' of each channel."""
        self.halves = self.halves_of(self.by_channel(self.blocks_of(covariance)))
        if self.diagonal:
            self.variances = [np.einsum("jm,jm->j", half, self.right) for half in self.halves]
        elif not self.sparse:
            self.variances = [np.ravel(half @ self.right.T) for half in self.halves]

    def halves_of(self, own: Float[np.ndarray, "K M M"]) -> list[Matrix]:
        """Return U_q C of each channel."""
        return [self.left @ part for part in own]

    def meeting(self, first: Any, last: Any) -> tuple[Any, Matrix]:
        """Return where rows are in the halves, and what these are multiplied with there."""
        return first, self.right[last]

    def moments(self, rows: slice) -> Float[np.ndarray, "n K"]:
        """Return phi_q(x_n)' C phi_p(x_n) of each channel at some rows."""
        if not self.sparse:
            where = self.where(rows)
            return np.stack([table[where] for table in self.variances], axis=1)
        first, last = self.index[0][rows], self.index[1][rows]
        found = np.empty((len(first), len(self.halves)))
        # Few rows at a time stay in the cache.
        for part in slices(len(first), 512):
            at, other = self.meeting(first[part], last[part])
            for channel, half in enumerate(self.halves):
                np.einsum("nm,nm->n", half[at], other, out=found[part, channel])
        return found

    def variance(self, rows: slice) -> ByOutput:
        """Return the covariance of what the two kernels add to each output, at some rows."""
        found = self.moments(rows)
        return found if self.products is None else found @ self.products.T


class BorderPair(KernelPair):
    """A dense kernel q and the local features of p."""

    def __init__(self, block: OutputBlock, q: int, p: int) -> None:
        super().__init__(block, q, p)
        self.local: Any = block.features[p]
        self.places = np.ix_(block.places[p].ravel() - block.order, block.places[q].ravel())

    def blocks_of(self, moments: Covariance) -> Float[np.ndarray, "R S M M"]:
        """Return the part of a matrix over the weights that belongs to the two kernels."""
        rank, other = self.coefficients.shape[1:]
        assert moments.across is not None
        own = moments.across[self.places].reshape(other, -1, rank, self.left.shape[1])
        return own.transpose(2, 0, 3, 1)

    def weigh(self, channel: int, right: Any) -> Any:
        """Return T right of one channel: sparse, but where most rows of a kernel meet all knots."""
        found: Any = super().weigh(channel, right)
        return (
            found.toarray() if issparse(found) and 8 * found.nnz > np.prod(found.shape) else found
        )

    def pull(self, own: Float[np.ndarray, "K M M"], d_phi: list[Any]) -> None:
        """Subtract the derivative of tr(own P) in the features of q and along slopes of p."""
        for channel, (table, gram) in enumerate(zip(self.weighted, own, strict=True)):
            d_phi[self.q] -= table @ gram.T
            for at, slope in enumerate(self.local.slopes):
                d_phi[self.p][at] -= np.vdot(gram, self.left.T @ self.weigh(channel, slope))

    def halves_of(self, own: Float[np.ndarray, "K M M"]) -> list[Matrix]:
        """Return U_q C or U_p C' of each channel: whichever leaves fewer products."""
        self.from_left = self.left.size * len(own[0, 0]) <= self.left.shape[1] ** 2 * self.shape[1]
        self.from_left |= not self.sparse
        return super().halves_of(own) if self.from_left else [self.right @ o.T for o in own]

    def meeting(self, first: Any, last: Any) -> tuple[Any, Matrix]:
        """Return where rows are in the halves, and what these are multiplied with there."""
        if self.from_left:
            near = self.local.start[last, None] + self.local.near
            return (first[:, None], near), self.local.values[last]
        return last, self.left[first]


class ChainPair(KernelPair):
    """The local features of a kernel with themselves, by pairs of neighbouring blocks of knots."""

    def __init__(self, block: OutputBlock, q: int, p: int) -> None:
        super().__init__(block, q, p)
        self.local: Any = block.features[q]

    def _grams(self, right: Iterable[Any]) -> Float[np.ndarray, "K n m m"]:
        """Return U' T V of each channel and pair of blocks, for windows of local values V."""
        width = 2 * self.local.block
        found = np.zeros((len(self.sums), self.local.blocks - 1, width, width))
        for (i, rows, left), (_, _, other) in zip(self.local.dense, right, strict=True):
            for channel, table in enumerate(self.sums):
                found[channel, i] = left.T @ (table[rows, None] * other)
        return found

    @cached_property
    def grams(self) -> Float[np.ndarray, "K n m m"]:
        """U_q' T U_q of each channel and pair of neighbouring blocks."""
        return self._grams(self.local.dense)

    def by_rank(self, grams: Float[np.ndarray, "K n m m"]) -> Float[np.ndarray, "n b c"]:
        """Return rows of blocks (S_ii, S_{i,i+1}) of what grams add to the chain's precision."""
        rank = self.coefficients.shape[1]
        wide = np.tensordot(grams, self.coefficients, (0, 0)).transpose(0, 1, 3, 2, 4)
        wide = wide.reshape(len(wide), wide.shape[1] * rank, -1)
        size = self.local.block * rank
        rows = np.zeros((len(wide) + 1, size, 2 * size))
        rows[:-1] = wide[:, :size]
        rows[1:, :, :size] += wide[:, size:, size:]
        return rows

    def blocks_of(self, moments: Covariance) -> Float[np.ndarray, "R S n m m"]:
        """Return the part of a matrix over the weights that belongs to the kernel."""
        assert moments.windows is not None
        rank, count = self.coefficients.shape[1], len(moments.windows)
        own = moments.windows.reshape(count, -1, rank, 2 * self.local.block, rank)
        return own.transpose(2, 4, 0, 1, 3)

    def pull(self, own: Float[np.ndarray, "K n m m"], d_phi: list[Any]) -> None:
        """Subtract the derivative of tr(own P) along slopes of the features."""
        for at, slope in enumerate(self.local.local_slopes):
            d_phi[self.q][at] -= np.vdot(own, self._grams(self.local.windows(slope)))

    def prepare(self, covariance: Covariance) -> None:
        """Prepare to look up U_q C U_q' of each channel."""
        self.variances = list(np.zeros((len(self.coefficients), self.shape[0])))
        own = self.by_channel(self.blocks_of(covariance))
        for i, rows, phi in self.local.dense:
            for total, part in zip(self.variances, own[:, i], strict=True):
                total[rows] = np.einsum("jm,jm->j", phi @ part, phi)


class OutputBlock:
    """One block of a role at given hyper-parameters: tables of its rows, q(v), and derivatives.

    Rows come in slices, twice: :meth:`add` their sites, :meth:`solve`, then ask for
    :meth:`marginals` and :meth:`collect` what the gradient needs.

    Attributes
    ----------
    places
        Which of the weights belong to each kernel.
    sum_precision, sum_hu, sum_lu, sum_luu
        Sums over rows of Lambda_d, of (h_d - Lambda_d m_d) E[u_q], of Lambda_d E[u_q] and, of each
        pair, of Lambda_d E[u_q u_p'].
    """

    def __init__(
        self,
        features: list[Features],
        mixing: list[Float[np.ndarray, "D R"]],
        mean: Float[np.ndarray, "D"],
        lookups: Sequence[Lookup],
        own: Sequence[int] = (),
    ) -> None:
        self.features, self.mixing, self.mean, self.own = features, mixing, mean, own
        self.inputs, self.index = zip(*lookups, strict=True)
        kernels = range(len(features))
        self.long = next((q for q in kernels if isinstance(features[q], LocalFeatures)), None)
        apart = {*own, self.long}
        self.rank = max((a.shape[1] for q, a in enumerate(mixing) if q not in apart), default=0)
        sizes = [0 if q in apart else f.phi.shape[1] for q, f in enumerate(features)]
        ends = np.cumsum([0, *sizes])
        self.columns = [slice(a, b) for a, b in pairwise(ends)]
        self.size, outputs = int(ends[-1]), len(mean)
        self.order = self.rank * self.size
        shared = np.arange(self.order).reshape(self.rank, self.size)
        self.sides: list[Any] = []
        """Where the weights of each dense kernel are: a slice of all, its shape, a part of that."""
        self.places: list[Int[np.ndarray, "R M"]] = []
        """Which of the weights belong to each kernel; those of outputs' own functions are last, but
        for those of the long series, which `order` does not count."""
        for q, (a, f) in enumerate(zip(mixing, features, strict=True)):
            part = slice(a.shape[1]), self.columns[q]
            place, side = shared[part], (slice(shared.size), shared.shape, part)
            if q in own:
                shape = outputs, f.phi.shape[1]
                place = self.order + np.arange(np.prod(shape)).reshape(shape)
                side = slice(self.order, self.order + place.size), shape, (slice(None),) * 2
                self.order += place.size
            self.places.append(place)
            self.sides.append(side)
        self.total = self.order
        if self.long is not None:
            # Knot by knot, all ranks of each.
            shape = features[self.long].phi.shape[1], mixing[self.long].shape[1]
            self.places[self.long] = self.order + np.arange(np.prod(shape)).reshape(shape).T
            self.total += self.places[self.long].size
        self.by_output = bool(own) or outputs <= max(MOST_BY_OUTPUT, self.rank**2)
        pairs = combinations_with_replacement(sorted(kernels, key=lambda q: q == self.long), 2)
        self.pairs = [
            (KernelPair if p != self.long else ChainPair if q == p else BorderPair)(self, q, p)
            for q, p in pairs
        ]
        self.alone = [pair for q in kernels for pair in self.pairs if pair.q == pair.p == q]
        self.variances = np.stack([np.sum(a**2, axis=1) for a in mixing])
        self.linear = [
            np.zeros((outputs if self.by_output else a.shape[1], f.phi.shape[0]))
            for f, a in zip(features, mixing, strict=True)
        ]
        self.d_mean = np.zeros(outputs)
        self.d_variances = np.zeros_like(self.variances)
        self.d_rest = [np.zeros(f.phi.shape[0]) for f in features]
        self.sum_precision = np.zeros(outputs)
        self.sum_hu, self.sum_lu = ([np.zeros(a.shape) for a in mixing] for _ in range(2))
        self.sum_luu = [np.zeros((outputs, *pair.coefficients.shape[1:])) for pair in self.pairs]

    def add(self, linear: ByOutput, precision: ByOutput, rows: slice) -> None:
        """Add the sites of f at some rows to the tables."""
        centred = linear - precision * self.mean
        for pair in self.pairs:
            pair.add(precision, rows)
        for total, index, a in zip(self.linear, self.index, self.mixing, strict=True):
            for own, channel in zip(
                total, (centred if self.by_output else centred @ a).T, strict=True
            ):
                own += np.bincount(index[rows], channel, len(own))

    def solve(self) -> float:
        """Compute q(v) = N(P^-1 b, P^-1); return KL(q(v) || N(0, I))."""
        precision, rows = np.eye(self.order), np.zeros(0)
        across = np.zeros((self.total - self.order, self.order))
        for pair in self.pairs:
            own = pair.by_rank(pair.grams)
            if isinstance(pair, ChainPair):
                rows = own + np.eye(*own.shape[1:])
            elif isinstance(pair, BorderPair):
                across[pair.places] = own.T
            else:
                for matrix in (precision,) if pair.diagonal else (precision, precision.T):
                    part = pair.part(matrix)
                    part += own.reshape(part.shape)
        linear = np.zeros(self.total)
        for total, a, place, features in zip(
            self.linear, self.mixing, self.places, self.features, strict=True
        ):
            linear[place] = (a.T @ total if self.by_output else total) @ features.phi
        if self.long is not None:
            centre, covariance, chain, log_det, trace = solve_arrow(precision, across, rows, linear)
            self.given_chain, _ = inverse(precision)
            self.set_weights(Weights(centre, covariance.dense, chain), covariance)
        else:
            dense, log_det = self.invert(precision) if self.own else inverse(precision)
            centre, trace, self.given_chain = dense @ linear, np.trace(dense), dense
            self.set_weights(Weights(centre, dense))
        return 0.5 * float(trace + centre @ centre - self.total + log_det)

    def invert(self, precision: Float[np.ndarray, "W W"]) -> tuple[np.ndarray, float]:
        """Return P^-1 and log |P|, where the functions of outputs' own meet the shared ones only.

        P = (S B; B' D) with a block of D for each output: W = D^-1 B', C = (S - B W)^-1, and P^-1
        has the parts C, -W C and D^-1 + W C W'.
        """
        at = np.concatenate([self.places[q] for q in self.own], axis=1)
        shared, order = self.rank * self.size, np.append(np.arange(self.rank * self.size), at)
        blocks = precision[at[:, :, None], at[:, None]]
        found = [inverse(block) for block in blocks]
        across = precision[:shared][:, at]
        w = np.concatenate([d @ across[:, k].T for k, (d, _) in enumerate(found)])
        c, log_det = inverse(precision[:shared, :shared] - across.reshape(shared, -1) @ w)
        wc = w @ c
        covariance = np.empty_like(precision)
        covariance[:shared, :shared], covariance[shared:, :shared] = c, -wc
        covariance[:shared, shared:], covariance[shared:, shared:] = -wc.T, wc @ w.T
        for k, (block, own_log_det) in enumerate(found):
            rows = slice(shared + k * len(block), shared + (k + 1) * len(block))
            covariance[rows, rows] += block
            log_det += own_log_det
        back = np.argsort(order)
        straight = np.array_equal(back, np.arange(len(back)))
        return covariance if straight else covariance[np.ix_(back, back)], log_det

    def set_weights(self, weights: Weights, covariance: Covariance | None = None) -> None:
        """Prepare to look up moments under given q(v)."""
        self.weights = weights
        if covariance is None:
            covariance = Covariance(np.asarray(weights.covariance))
            if weights.chain is not None:
                dense, chain = covariance.dense, weights.chain
                covariance = Covariance(dense, -chain.border @ dense, chain.windows(dense))
        self.covariance = covariance
        for pair in self.pairs:
            pair.prepare(covariance)
        centre = np.asarray(weights.mean)
        self.functions = [
            f.phi @ centre[place].T for f, place in zip(self.features, self.places, strict=True)
        ]

    def times_covariance(self, right: Float[np.ndarray, "T K"]) -> Float[np.ndarray, "T K"]:
        """Return P^-1 times some columns."""
        chain, dense = self.weights.chain, self.covariance.dense
        return dense @ right if chain is None else chain.times_covariance(dense, right)

    def functions_of(self, weights: Float[np.ndarray, "S W"]) -> Float[np.ndarray, "S N D"]:
        """Return m + Psi v at all rows for given weights v."""
        found = self.mean + np.zeros((len(weights), len(self.index[0]), 1))
        parts = zip(self.features, self.mixing, self.places, self.index, strict=True)
        for features, a, place, index in parts:
            own = weights[:, place]
            u = (features.phi @ own.reshape(-1, place.shape[1]).T).T.reshape(*own.shape[:2], -1)
            found += np.einsum("srj,dr->sjd", u, a)[:, index]
        return found

    def components(self, rows: slice) -> tuple[Float[np.ndarray, "Q n D"], ...]:
        """Return means and variances of each kernel's share of f - m at some rows."""
        means = [u @ a.T for u, a in zip(self.latent(rows), self.mixing, strict=True)]
        variances = []
        for q, pair in enumerate(self.alone):
            rest = self.features[q].rest[self.index[q][rows], None] * self.variances[q]
            variances.append(np.maximum(pair.variance(rows), 0.0) + rest)
        return np.stack(means), np.stack(variances)

    def latent(self, rows: slice) -> list[Any]:
        """Return the means of the latent functions u_{q,i} at some rows."""
        return [u[index[rows]] for u, index in zip(self.functions, self.index, strict=True)]

    def marginals(self, rows: slice) -> tuple[ByOutput, ByOutput, ByOutput, float]:
        """Return means and variances of f at some rows, and what `left_out` does."""
        mean = self.mean + sum(u @ a.T for u, a in zip(self.latent(rows), self.mixing, strict=True))
        variance = sum((1.0 if p.diagonal else 2.0) * p.variance(rows) for p in self.pairs)
        return mean, np.maximum(variance, 0.0), *self.left_out(rows)

    def left_out(self, rows: slice) -> tuple[ByOutput, float]:
        """Return the prior variance that features leave out at some rows, and its largest share."""
        rest, prior = np.zeros((2, rows.stop - rows.start, len(self.mean)))
        for features, index, own in zip(self.features, self.index, self.variances, strict=True):
            rest += features.rest[index[rows], None] * own
            prior += features.prior[index[rows], None] * own
        return rest, float(np.max(rest / (prior + 1e-300)))

    def collect(self, rows: slice, residual: ByOutput, sites: Sites, d_variance: ByOutput) -> None:
        """Add what the gradient needs of some rows.

        ``residual`` is h - Lambda E[f] of the sites of f, ``d_variance`` the derivative of the
        bound in the variances.
        """
        self.d_mean += residual.sum(axis=0)
        self.sum_precision += sites.precision.sum(axis=0)
        for q, (features, index) in enumerate(zip(self.features, self.index, strict=True)):
            own = index[rows]
            self.d_rest[q] += np.bincount(own, d_variance @ self.variances[q], len(features.rest))
            self.d_variances[q] += features.rest[own] @ d_variance
        if self.by_output:
            return
        latent, centred = self.latent(rows), sites.linear - sites.precision * self.mean
        for q, u in enumerate(latent):
            self.sum_hu[q] += centred.T @ u
            self.sum_lu[q] += sites.precision.T @ u
        for pair, total in zip(self.pairs, self.sum_luu, strict=True):
            products = np.einsum("ni,nk->nik", latent[pair.q], latent[pair.p])
            moments = pair.moments(rows) + products.reshape(len(products), -1)
            total += (sites.precision.T @ moments).reshape(total.shape)

    def gram(self, q: int, p: int, left: Matrix, right: Matrix) -> Float[np.ndarray, "W W"]:
        """Return sum_d of left' Lambda_d right times the coefficients of both kernels."""
        if q > p:
            return self.gram(p, q, right, left).T
        pair = next(pair for pair in self.pairs if (pair.q, pair.p) == (q, p))
        grams = [left.T @ pair.weigh(channel, right) for channel in range(len(pair.sums))]
        return pair.by_rank(np.stack(grams))

    def gradient(self) -> tuple[list[list[float]], list[Matrix], Float[np.ndarray, "D"]]:
        """Return the derivatives in the hyper-parameters of kernels, the mixing and the means.

        They are those of log Z, the log of the integral of the sites under the prior, with
        dlog Z / dP = -(C + v v') / 2 and dlog Z / db = v, and of what the features leave out.
        """
        centre = np.asarray(self.weights.mean)
        second_moment = self.covariance.second_moment(centre)
        if self.by_output:
            for q, (pair, u) in enumerate(zip(self.alone, self.functions, strict=True)):
                self.sum_hu[q], self.sum_lu[q] = self.linear[q] @ u, pair.sums @ u
        d_mixing = [
            f + 2.0 * a * own[:, None]
            for f, a, own in zip(self.sum_hu, self.mixing, self.d_variances, strict=True)
        ]
        d_phi: list[Any] = []
        for q, (total, a, place) in enumerate(
            zip(self.linear, self.mixing, self.places, strict=True)
        ):
            channels = total.T @ a if self.by_output else total.T
            if q != self.long:
                d_phi.append(channels @ centre[place])
            else:
                along = self.features[q].slopes
                d_phi.append([np.vdot(channels, slope @ centre[place].T) for slope in along])
        for at, pair in enumerate(self.pairs):
            blocks = pair.blocks_of(second_moment)
            own = pair.by_channel(blocks)
            if self.by_output:
                flat = blocks.reshape(*blocks.shape[:2], -1)
                grams = pair.grams.reshape(len(pair.grams), -1)
                self.sum_luu[at] = np.tensordot(grams, flat, (1, 2))
            pair.pull(own, d_phi)
            d_mixing[pair.q] -= np.einsum("dik,dk->di", self.sum_luu[at], self.mixing[pair.p])
            if not pair.diagonal:
                d_mixing[pair.p] -= np.einsum("dik,di->dk", self.sum_luu[at], self.mixing[pair.q])
            # The passes are over.
            pair.halves = pair.variances = []
        parts = zip(self.features, d_phi, self.d_rest, strict=True)
        d_mixing = [np.diagonal(d)[:, None] if q in self.own else d for q, d in enumerate(d_mixing)]
        return [f.gradient(phi, rest) for f, phi, rest in parts], d_mixing, self.d_mean


def make_blocks(
    free: LMC,
    inducing: InducingInputs,
    lookups: Sequence[Lookup],
    jitter: float,
    slopes: bool = True,
) -> list[OutputBlock]:
    """Compute the features of a role, given by free hyper-parameters, block by block."""
    found = []
    for b, mean in enumerate(np.asarray(free.mean)):
        own = jax.tree.map(lambda leaf, b=b: leaf[b], free.kernels)
        features: list[Features] = []
        for q, (kernel, z, at) in enumerate(zip(own, inducing, lookups, strict=True)):
            if isinstance(z, Knots):
                # All blocks have chains of one shape.
                width = z.window(np.exp(longest(free.kernels[q])))
                features.append(LocalFeatures(kernel, z, at.inputs, width))
            else:
                features.append(Features(kernel, z, at.inputs, jitter, slopes))
        mixing = [np.asarray(a)[b] for a in free.loadings]
        found.append(OutputBlock(features, mixing, mean, lookups, free.own))
    return found


def look_up(
    part: Kernel | Nugget,
    inputs: Float[np.ndarray, "N C"],
    inducing: int = 0,
    exactly: bool = False,
) -> Lookup:
    """Find the inputs that a kernel distinguishes, padded to a number that other data sets share.

    If they are more than `MOST_DISTINCT`, and than `STEPS` times as many as there are inducing
    inputs, each column is divided into so many equal steps, and the rows of one step count as one
    input: that nearest to its middle; but for ``exactly``.
    """
    canonical = canonical_inputs(part.views(inputs.shape[1]), inputs)
    first, index = distinct(canonical)
    steps = max(MOST_DISTINCT, STEPS * inducing)
    if len(first) > steps and not exactly:
        low, width = canonical.min(axis=0), np.ptp(canonical, axis=0) / steps
        place = (canonical - low) / np.where(width > 0.0, width, 1.0)
        _, index = distinct(np.floor(place))
        order = np.lexsort((np.abs(place % 1.0 - 0.5).sum(axis=1), index))
        first = order[np.searchsorted(index[order], np.arange(index.max() + 1))]
    points = inputs[first]
    narrow = np.int16 if len(points) < 2**15 else np.int32
    return Lookup(pad(points, bucket(len(points)) - len(points)), index.astype(narrow))
