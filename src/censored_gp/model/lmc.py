"""The linear model of coregionalization over one parameter role: Eq. (4) and Eq. (5).

A role (all means, all scales, ...) has the parameter functions

    gamma_d(x) = m_d + sum_q sum_i a_{d,q,i} u_{q,i}(x),    u_{q,i} ~ GP(0, k_q),      Eq. (4)

and each latent function is written in whitened weights over inducing inputs of its own kernel,

    u_{q,i}(x) = phi_q(x)' v_{q,i} + e,    phi_q(x) = L_q^-1 k_q(Z_q, x),    v ~ N(0, I),

where e has the variance k_q(x, x) - |phi_q(x)|^2: zero, when Z_q holds every distinct value. The
prior covariance of all outputs is that of Eq. (5), K = sum_q B_q (x) K_q with B_q = A_q A_q'.

A latent function may also be each output's own: kernel q then has D functions, and A_q is diagonal.
Products of a shop share the day's traffic, and each has a trend that no other has.

The level m_d may depend on inputs that are the output's own, such as its price (`Slopes`).

Means may have a nugget besides: noise of the latent value that no other row and no other output
shares. Counts often scatter more than a Poisson allows, and a nugget of the log rate is the
Poisson-lognormal model; without one a fit is overconfident.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax.linalg import cholesky, triangular_solve
from jaxtyping import Array, Float, Int

from censored_gp.kernels.base import Kernel, View
from censored_gp.model.compilation import AnyArray, Inputs, Scalar
from censored_gp.model.inducing import Inducing, InducingInputs

# Prior deviation of what inputs of outputs' own add to all latent values alike.
SLOPE_SPREAD = 1.0
# Prior deviation of what an output's own input adds to its latent value besides.
OWN_SLOPE_SPREAD = 0.5
Kernels = TypeVar("Kernels", Kernel, tuple[Kernel, ...])


class Nugget(eqx.Module):
    """Noise e ~ N(0, c(x)) of a latent value, independent over rows and outputs.

    Its variance c may change over a cycle of time: it is then a sum of cos^2 bumps, equally spaced
    over the cycle, which is constant where all bumps have the same size.

    Attributes
    ----------
    size
        Standard deviations at the centre of each bump; signs are free, like those of the mixing.
    """

    size: Float[AnyArray, "B D J"]
    column: int = eqx.field(static=True, default=0)
    period: float = eqx.field(static=True, default=1.0)

    def bumps(self, inputs: Inputs) -> Float[AnyArray, "N J"]:
        """Return the weight of each bump at the inputs: cos^2, zero from the next centre on."""
        count = np.shape(self.size)[2]
        if count == 1:
            return np.ones((len(inputs), 1))
        xp = np if isinstance(inputs, np.ndarray) else jnp
        phase = inputs[:, self.column, None] * (count / self.period)
        apart = xp.abs((phase - np.arange(count) + count / 2) % count - count / 2)
        return xp.cos(0.5 * np.pi * xp.minimum(apart, 1.0)) ** 2

    def views(self, number: int) -> set[View]:
        """What c depends on in a row of ``number`` columns, see `Kernel.views`."""
        return {(self.column, self.period)} if np.shape(self.size)[2] > 1 else set()

    def variance(self, inputs: Inputs) -> Float[Array, "B N D"]:
        """Return the variance c at the inputs."""
        return jnp.einsum("nj,bdj->bnd", self.bumps(inputs), jnp.square(jnp.asarray(self.size)))


class Slopes(eqx.Module):
    """Effects s_{d,k} x_{c(d,k)} of inputs that each output has of its own: the k-th of output d.

    They are fitted like the means. Those of one input are alike a priori (`slope_precision`): what
    a lower price does to most products it does to one whose price has never changed.

    Attributes
    ----------
    columns
        c(d, k): the column of the inputs, for every output of the role and each of its K inputs.
    """

    size: Float[AnyArray, "B D K"]
    columns: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def inputs(self, rows: Inputs) -> Float[AnyArray, "N B D K"]:
        """Return the inputs of each output."""
        return rows[:, np.reshape(self.columns, np.shape(self.size))]


def slope_precision(
    squares: Float[np.ndarray, "B D K"], fourths: Float[np.ndarray, "B D K"]
) -> Float[np.ndarray, "B K D D"]:
    """Return the prior precision of the slopes of each input, from sums of x^2 and of x^4.

    A slope is a common one and the output's own. The size of an input is that of its large values,
    s^2 = sum x^4 / sum x^2, so that a flag which is rare is not a small one. An output whose own
    input hardly moved takes the size that it has elsewhere: its slope is not free to be huge.
    """
    squares, fourths = (np.moveaxis(a, 2, 1) for a in (squares, fourths))
    total = squares.sum(axis=2, keepdims=True)
    size = np.where(total > 0.0, fourths.sum(axis=2, keepdims=True), 1.0)
    size = size / np.where(total > 0.0, total, 1.0)
    own = np.maximum(fourths / np.where(squares > 0.0, squares, 1.0), size)
    identity = np.eye(squares.shape[2])
    covariance = SLOPE_SPREAD**2 / size[..., None] + OWN_SLOPE_SPREAD**2 * identity / own[..., None]
    return np.linalg.inv(covariance)


class LMC(eqx.Module):
    """One parameter role: kernels, coregionalization and means of its outputs.

    The outputs of the role stand in B blocks of D outputs. Coupled: one block. Uncoupled: a
    block for each output, with hyper-parameters of its own. Constant: no kernels at all.
    Every leaf is a hyper-parameter; those of the kernels are positive.

    Attributes
    ----------
    mixing
        Coefficients a_{d,q,i}; of a kernel in `own` those of each output's function, R = 1.
    own
        Kernels of which each output has a function of its own.
    """

    kernels: tuple[Kernel, ...]
    mixing: tuple[Float[AnyArray, "B D R"], ...]
    mean: Float[AnyArray, "B D"]
    outputs: tuple[int, ...] = eqx.field(static=True)
    nugget: Nugget | None = None
    slopes: Slopes | None = None
    own: tuple[int, ...] = eqx.field(static=True, default=())

    @property
    def varies(self) -> bool:
        """Whether the role depends on the input at all."""
        return bool(self.kernels)

    def constant(self, rows: int) -> Float[AnyArray, "N O"]:
        """Return the means at so many rows, the outputs of all blocks side by side."""
        return self.mean.reshape(1, -1) + np.zeros((rows, 1))

    def offset(self, inputs: Inputs) -> Float[AnyArray, "B N D"] | float:
        """Return the effects of each output's own inputs."""
        if self.slopes is None:
            return 0.0
        xp = np if isinstance(inputs, np.ndarray) else jnp
        return xp.einsum("nbdk,bdk->bnd", self.slopes.inputs(inputs), self.slopes.size)

    @property
    def loadings(self) -> tuple[Float[AnyArray, "B D R"], ...]:
        """The matrices A_q of Eq. (4), diagonal where outputs have functions of their own."""
        identity = np.eye(np.shape(self.mean)[1])
        return tuple(a * identity if q in self.own else a for q, a in enumerate(self.mixing))

    @property
    def coregionalization(self) -> tuple[Float[AnyArray, "B D D"], ...]:
        """The matrices B_q = A_q A_q' of Eq. (5)."""
        return tuple(a @ a.swapaxes(1, 2) for a in self.loadings)

    @property
    def variances(self) -> tuple[Float[AnyArray, "B D"], ...]:
        """The diagonals of B_q: the prior variance of each output that a kernel brings."""
        return tuple((a**2).sum(axis=2) for a in self.mixing)


def in_blocks(kernels: Kernels, blocks: int) -> Kernels:
    """Repeat the hyper-parameters of kernels, one copy for each block."""
    return jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf, float)[None], blocks, 0), kernels)


def scale_lengthscales(kernels: Kernels, factor: float) -> Kernels:
    """Return kernels with all their lengthscales multiplied."""

    def scaled(path: tuple, leaf: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        return leaf * factor if "lengthscale" in jax.tree_util.keystr(path) else leaf

    return jax.tree_util.tree_map_with_path(scaled, kernels)


def to_free(lmc: LMC) -> LMC:
    """Replace the positive kernel hyper-parameters by their logarithms: all leaves are free."""
    # In numpy, so that there is nothing to compile; it is never traced.
    return eqx.tree_at(lambda m: m.kernels, lmc, jax.tree.map(np.log, lmc.kernels))


def from_free(lmc: LMC) -> LMC:
    """Undo :func:`to_free`."""
    return eqx.tree_at(lambda m: m.kernels, lmc, jax.tree.map(jnp.exp, lmc.kernels))


def grams(kernel: Kernel, inputs: Inputs, blocks: int) -> Float[Array, "B N N"]:
    """Return k(x, x') of one kernel in every block."""
    gram = eqx.filter_vmap(lambda k: k(inputs, inputs), in_axes=eqx.if_array(0), axis_size=blocks)
    return gram(kernel)


def kernel_blocks(
    kernel: Kernel, inducing: Inducing, inputs: Inputs, jitter: Scalar
) -> tuple[Float[Array, "M M"], Float[Array, "M N"], Float[Array, "N"]]:
    """Return k(Z, Z) with jitter, k(Z, x) and diag k(x, x) of one kernel; padding is masked."""
    mask = jnp.asarray(inducing.mask)
    # One call for both: half as much to compile.
    both = kernel(inducing.points, jnp.concatenate([inducing.points, inputs]))
    gram, cross = both[:, : len(mask)], both[:, len(mask) :]
    scale = jnp.max(jnp.where(mask, jnp.diagonal(gram), 0.0))
    # A linear kernel is zero at all its inputs if they are constant, as they are centred.
    scale = jnp.where(scale > 0.0, scale, 1.0)
    identity = jnp.eye(len(mask))
    # A padding point is made independent of everything, so its feature is zero.
    gram = jnp.where(mask[:, None] & mask[None, :], gram, identity) + jitter * scale * identity
    return gram, jnp.where(mask[:, None], cross, 0.0), kernel.diagonal(inputs)


def loadings(lmc: LMC, inducing: InducingInputs) -> Float[Array, "B D R M"]:
    """Repeat the coefficients a_{d,q,i} over the features: gamma_d = m_d + sum loading phi v.

    Kernels of lower rank than the largest get zeros.
    """
    rank = max(a.shape[2] for a in lmc.loadings)
    wide = [jnp.pad(a, ((0, 0), (0, 0), (0, rank - a.shape[2]))) for a in lmc.loadings]
    pairs = zip(wide, inducing, strict=True)
    return jnp.concatenate([jnp.repeat(a[..., None], len(z.mask), 3) for a, z in pairs], axis=3)


def real_weights(lmc: LMC, inducing: InducingInputs) -> Int[np.ndarray, "W"]:
    """Return which weights of :func:`geometry` are of inducing inputs, and do not only pad."""
    rank = max(np.shape(a)[2] for a in lmc.loadings)
    return np.flatnonzero(np.tile(np.concatenate([z.mask for z in inducing]), rank))


class Geometry(NamedTuple):
    """Psi of one role: gamma_d(x) = mean_d + sum_r phi(x)' (loading_{d,r} * v_r) + e + nugget.

    Attributes
    ----------
    phi
        Features of all kernels side by side, M = sum of the M_q.
    left_out
        Variance of e.
    nugget
        Variance of the nugget.
    """

    phi: Float[Array, "B N M"]
    loading: Float[Array, "B D R M"]
    mean: Float[Array, "B #N D"]
    left_out: Float[Array, "B N D"]
    nugget: Float[Array, "B N D"] | None = None

    def functions(self, weights: Float[AnyArray, "B W"]) -> Float[Array, "B N D"]:
        """Return m + Psi v for given weights v."""
        blocks, _, rank, size = self.loading.shape
        by_rank = weights.reshape(blocks, rank, size)
        drawn = jnp.einsum("bnm,bdrm,brm->bnd", self.phi, self.loading, by_rank)
        return drawn + self.mean


def geometry(lmc: LMC, inducing: InducingInputs, inputs: Inputs, jitter: Scalar) -> Geometry:
    """Compute features phi(x) = L^-1 k(Z, x), loadings and variances of a role that varies.

    The kernels of a block are factorised as one block-diagonal matrix: a single Cholesky factor to
    compile and to differentiate, whatever their number.

    Blocks are gone through one by one, as XLA hands the matrices of a batched LAPACK call to the
    very threads that wait for them. With as many such calls at a time as there are cores the
    program deadlocks (two roles with a block for each output, on two cores; one such call, in a
    process of one thread). Under vmap a loop would become a batched call again: callers loop, too.
    """
    ends = np.cumsum([len(z.mask) for z in inducing])[:-1]

    def block(b: Int[Array, ""]) -> tuple[Float[Array, "N M"], Float[Array, "N Q"]]:
        kernels = jax.tree.map(lambda leaf: jnp.asarray(leaf)[b], lmc.kernels)
        pairs = zip(kernels, inducing, strict=True)
        parts = (kernel_blocks(kernel, z, inputs, jitter) for kernel, z in pairs)
        grams, crosses, diagonals = zip(*parts, strict=True)
        factor = cholesky(jax.scipy.linalg.block_diag(*grams), symmetrize_input=False)
        right = jnp.concatenate(crosses)
        phi = triangular_solve(factor, right, left_side=True, lower=True).T
        explained = [jnp.sum(part**2, axis=1) for part in jnp.split(phi, ends, axis=1)]
        rest = [jnp.maximum(d - e, 0.0) for d, e in zip(diagonals, explained, strict=True)]
        return phi, jnp.stack(rest, axis=1)

    phi, rest = jax.lax.map(block, jnp.arange(len(lmc.mean)))
    left_out = jnp.einsum("bnq,bdq->bnd", rest, jnp.stack(lmc.variances, axis=2))
    nugget = None if lmc.nugget is None else lmc.nugget.variance(inputs)
    mean = jnp.asarray(lmc.mean)[:, None] + lmc.offset(inputs)
    return Geometry(phi, loadings(lmc, inducing), mean, left_out, nugget)


def flat(by_block: Float[AnyArray, "B N D"]) -> Float[Array, "N O"]:
    """Put the outputs of all blocks of a role side by side."""
    return jnp.moveaxis(by_block, 0, 1).reshape(by_block.shape[1], -1)
