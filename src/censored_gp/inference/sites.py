"""Gaussian sites that stand for the likelihood, and q over the weights that follows from them.

A Gaussian site exp(h gamma - Lambda gamma^2 / 2) stands for the likelihood of one cell. With a
nugget gamma = f + e, with e ~ N(0, c) independent over rows. Given the sites everything is
Gaussian, and e is integrated out row by row:

    site of f:         Lambda / w  and  h / w,                            w = 1 + c Lambda,
    gamma given f:     N((f + c h) / w, c / w),
    divergence of e:   (1 / w - 1 + log w + c E[(h - Lambda f)^2] / w^2) / 2.

So a nugget costs next to nothing; as a kernel (`White`) it would need an inducing input per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from censored_gp.inference.arrow import Chain
from censored_gp.model.compilation import AnyArray

# One number for each block, row and output of a role.
ByBlock = Float[AnyArray, "... N D"]


class Moments(NamedTuple):
    """Means and variances of latent values at the rows: of f, or of gamma = f + e."""

    mean: Float[AnyArray, "... N D"]
    variance: Float[AnyArray, "... N D"]


class Sites(NamedTuple):
    """Gaussian sites of one role: exp(h gamma - Lambda gamma^2 / 2) for each cell."""

    linear: Float[AnyArray, "B N D"]
    precision: Float[AnyArray, "B N D"]

    def marginal(self, nugget: ByBlock | None) -> Sites:
        """Return the sites of f: those of gamma = f + e with e integrated out."""
        if nugget is None:
            return self
        weight = 1.0 + nugget * self.precision
        return Sites(self.linear / weight, self.precision / weight)

    def shifted(self, offset: ByBlock | float) -> Sites:
        """Return the sites of f - offset; the number 0 stands for none."""
        if np.ndim(offset) == 0:
            return self
        return Sites(self.linear - self.precision * offset, self.precision)

    def with_nugget(self, f: Moments, nugget: ByBlock) -> Moments:
        """Return moments of gamma = f + e at cells with these sites."""
        weight = 1.0 + nugget * self.precision
        mean = (f.mean + nugget * self.linear) / weight
        return Moments(mean, f.variance / weight**2 + nugget / weight)

    def cavity(self, f: Moments, nugget: ByBlock) -> Moments:
        """Return leave-one-out (cavity) moments of gamma: q with the cell's own site removed."""
        linear, precision = self.marginal(nugget)
        # At least a small share of the precision of f stays.
        rest = np.maximum(1.0 - precision * f.variance, 1e-9)
        return Moments((f.mean - f.variance * linear) / rest, f.variance / rest + nugget)

    def nugget_divergence(self, f: Moments, nugget: ByBlock) -> float:
        """Return the expected KL divergence of q(e | f) from the prior of e, over all cells."""
        weight = 1.0 + nugget * self.precision
        squared = (self.linear - self.precision * f.mean) ** 2 + self.precision**2 * f.variance
        terms = 1.0 / weight - 1.0 + np.log(weight) + nugget * squared / weight**2
        return 0.5 * float(np.sum(terms))

    def nugget_slope(self, f: Moments) -> tuple[ByBlock, ByBlock]:
        """Return the derivative of log Z in c, and the Fisher information of c, at each cell.

        These are the sites of f. With S the covariance of their pseudo-observations under the prior
        and alpha = S^-1 times the residuals they are (alpha^2 - S^-1_nn) / 2 and (S^-1_nn)^2 / 2.
        """
        alpha = self.linear - self.precision * f.mean
        inverse = self.precision - self.precision**2 * f.variance
        return 0.5 * (alpha**2 - inverse), 0.5 * inverse**2


# Sites of the training cells, of the roles with a nugget: noise of one row is not in the features.
# Empty or None for new inputs.
TrainingSites = Mapping[str, Sites] | None


class Weights(NamedTuple):
    """q(v) of one role, block by block: W = R M weights, rank by rank.

    Those of a long series come after the dense ones; the covariance is that of the dense ones.
    """

    mean: Float[AnyArray, "... W"]
    covariance: Float[AnyArray, "... W W"]
    chain: Chain | None = None

    def draw(self, normals: Float[np.ndarray, "S B T"]) -> Float[np.ndarray, "S B T"]:
        """Return draws of the weights, from standard normal ones."""
        order = np.shape(self.covariance)[1]
        try:
            factor = np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError:
            # What data tell all but exactly has a variance that is lost in rounding.
            values, vectors = np.linalg.eigh(self.covariance)
            if not np.all(values[..., 0] >= -1e-8 * values[..., -1]):
                raise
            factor = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        dense = np.einsum("bwu,sbu->sbw", factor, normals[..., :order], optimize=True)
        if self.chain is None:
            return self.mean + dense
        drawn = np.concatenate([self.mean[:, :order] + dense, normals[..., order:]], axis=2)
        for b in range(len(self.mean)):
            own = Chain(*(part[b] for part in self.chain))
            mean, noise = np.asarray(self.mean[b, order:]), normals[:, b, order:]
            drawn[:, b, order:] = own.draw(mean, dense[:, b], noise)
        return drawn
