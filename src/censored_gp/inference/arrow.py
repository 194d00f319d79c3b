"""Linear algebra of arrow matrices: block-tridiagonal, with a dense border.

Weights of a long series meet only those of neighbouring knots, and the dense weights of the other
kernels. Their precision is

    P = (D B'; B S),    S = U' U,    W = S^-1 B,    C = (D - B' W)^-1,

with upper block-bidiagonal U, so that P^-1 has the parts C, -W C and S^-1 + W C W', of which only
the diagonal blocks and their neighbours are ever needed. All costs are linear in the length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_lapack_funcs

POTRF, POTRI, TRTRI = get_lapack_funcs(("potrf", "potri", "trtri"), dtype=np.float64)
Blocks = Float[np.ndarray, "*B n b b"]


def inverse(precision: Float[np.ndarray, "W W"]) -> tuple[np.ndarray, float]:
    """Return the inverse of a positive definite matrix and the log of its determinant, or NaN."""
    if not len(precision):
        return precision, 0.0
    # The transpose is in the order of LAPACK.
    factor, failed = POTRF(precision.T, lower=1)
    if failed:
        factor[:] = np.nan
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(factor))))
    lower, _ = POTRI(factor, lower=1, overwrite_c=1)
    found = lower + lower.T
    np.fill_diagonal(found, np.diagonal(lower))
    return found, log_det


class Covariance(NamedTuple):
    """A covariance (or second moment) of all weights, as far as it is ever needed.

    Attributes
    ----------
    dense
        That of the dense weights.
    across
        That of the chain with these.
    windows
        Those of two neighbouring blocks of the chain.
    """

    dense: Float[np.ndarray, "W W"]
    across: Float[np.ndarray, "V W"] | None = None
    windows: Float[np.ndarray, "n c c"] | None = None

    def second_moment(self, mean: Float[np.ndarray, "T"]) -> Covariance:
        """Return E[v v'], with this as the covariance."""
        order = len(self.dense)
        dense = self.dense + np.outer(mean[:order], mean[:order])
        if self.across is None or self.windows is None:
            return Covariance(dense)
        chain = mean[order:]
        parts = chain.reshape(len(self.windows) + 1, -1)
        pairs = np.concatenate([parts[:-1], parts[1:]], axis=1)
        windows = self.windows + pairs[:, :, None] * pairs[:, None]
        return Covariance(dense, self.across + np.outer(chain, mean[:order]), windows)


class Chain(NamedTuple):
    """q of a chain given the dense weights: N(m - W (v - E[v]), S^-1).

    Attributes
    ----------
    inverse
        Inverses of the diagonal blocks of U.
    above
        The blocks of U above them, U_{i,i+1}; the last one is zero.
    border
        W.
    """

    inverse: Blocks
    above: Blocks
    border: Float[np.ndarray, "*B V W"]

    @classmethod
    def factorised(cls, rows: Float[np.ndarray, "n b c"], border: np.ndarray) -> Chain:
        """Factorise S, given as rows of blocks (S_ii, S_{i,i+1}), upper triangles; solve for W."""
        size = rows.shape[1]
        inverse, above = np.zeros((2, len(rows), size, size))
        carried = np.zeros((size, size))
        for i, row in enumerate(rows):
            upper, failed = POTRF(row[:, :size] - carried, lower=0)
            if failed:
                upper[:] = np.nan
            inverse[i] = np.triu(TRTRI(upper, lower=0)[0])
            above[i] = inverse[i].T @ row[:, size:]
            carried = above[i].T @ above[i]
        chain = cls(inverse, above, border)
        return chain._replace(border=chain.solve(border))

    @property
    def log_det(self) -> float:
        """The log of the determinant of S."""
        return -2.0 * float(np.sum(np.log(np.diagonal(self.inverse, axis1=1, axis2=2))))

    def solve(self, right: Float[np.ndarray, "V K"]) -> Float[np.ndarray, "V K"]:
        """Return S^-1 times some columns."""
        found = np.array(right, dtype=float).reshape(*self.inverse.shape[:2], -1)
        for i, inverse in enumerate(self.inverse):
            if i:
                found[i] -= self.above[i - 1].T @ found[i - 1]
            found[i] = inverse.T @ found[i]
        return self._backwards(found).reshape(np.shape(right))

    def _backwards(self, found: Float[np.ndarray, "n b K"]) -> Float[np.ndarray, "n b K"]:
        """Solve U x = y in place."""
        for i in range(len(found) - 1, -1, -1):
            if i + 1 < len(found):
                found[i] -= self.above[i] @ found[i + 1]
            found[i] = self.inverse[i] @ found[i]
        return found

    def times_covariance(
        self, dense: Float[np.ndarray, "W W"], right: Float[np.ndarray, "T K"]
    ) -> Float[np.ndarray, "T K"]:
        """Return P^-1 times some columns, where ``dense`` is C."""
        first, last = right[: len(dense)], right[len(dense) :]
        found = dense @ (first - self.border.T @ last)
        return np.concatenate([found, self.solve(last) - self.border @ found])

    def windows(self, dense: Float[np.ndarray, "W W"]) -> Float[np.ndarray, "n c c"]:
        """Return the covariances of neighbouring blocks, S^-1 + W C W', where C is ``dense``."""
        count, size = self.inverse.shape[:2]
        found, corner = np.empty((count - 1, 2 * size, 2 * size)), np.zeros((size, size))
        parts = self.border.reshape(count, size, -1)
        carried = parts @ dense
        for i in range(count - 1, -1, -1):
            step = self.inverse[i] @ self.above[i]
            across, later = -step @ corner, corner
            corner = self.inverse[i] @ self.inverse[i].T - across @ step.T
            if i + 1 < count:
                two = slice(i, i + 2)
                wide = carried[two].reshape(2 * size, -1) @ parts[two].reshape(2 * size, -1).T
                found[i] = np.block([[corner, across], [across.T, later]]) + wide
        return found

    def draw(
        self, mean: Float[np.ndarray, "V"], away: np.ndarray, normals: np.ndarray
    ) -> Float[np.ndarray, "S V"]:
        """Draw the chain, where the dense weights are ``away`` from their means (S, W)."""
        count, size = self.inverse.shape[:2]
        noise = self._backwards(normals.T.reshape(count, size, -1).copy())
        return mean + noise.reshape(len(mean), -1).T - away @ self.border.T


def solve_arrow(
    corner: Float[np.ndarray, "W W"],
    across: Float[np.ndarray, "V W"],
    rows: Float[np.ndarray, "n b c"],
    linear: Float[np.ndarray, "T"],
) -> tuple[Float[np.ndarray, "T"], Covariance, Chain, float, float]:
    """Return the mean P^-1 b, parts of P^-1, the chain, log |P| and the trace of P^-1."""
    chain = Chain.factorised(rows, across)
    border = chain.border
    dense, log_det = inverse(corner - across.T @ border)
    mean = chain.times_covariance(dense, linear[:, None])[:, 0]
    covariance = Covariance(dense, -border @ dense, chain.windows(dense))
    size = rows.shape[1]
    assert covariance.windows is not None
    diagonal = np.diagonal(covariance.windows, axis1=1, axis2=2)
    trace = np.trace(dense) + diagonal[:, :size].sum() + diagonal[-1, size:].sum()
    return mean, covariance, chain, log_det + chain.log_det, float(trace)
