"""Two outputs drawn from the paper's own model, censored in places: the world of its table 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.simulate.common import Cells
from censored_gp.simulate.world import Table, World

Window: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class SyntheticPair(World):
    """Two correlated outputs with input-dependent noise, drawn from the paper's own model.

    >>> world = synthetic_pair(50)
    >>> world.truth.shape, world.censored.any(axis=0).tolist()
    ((50, 2), [True, False])
    """

    names: tuple[str, ...]
    x: Float[np.ndarray, " N"]
    mean: Cells
    """The latent mean f."""
    scale: Cells
    """The standard deviation exp(g) of the noise."""
    truth: Cells
    """The outputs before censoring, `N(mean, scale²)`."""
    observed: Cells
    """The truth, or less where censored."""
    censored: Bool[np.ndarray, "N D"]

    def inputs(self) -> Table:
        """Return the column that explains the outputs."""
        return {"x": self.x}


def synthetic_pair(
    n: int = 100,
    *,
    seed: int = 0,
    windows: tuple[Sequence[Window], Sequence[Window]] = (((1.3, 5.5),), ()),
    depth: float = 1.0,
    lengthscales: Sequence[float] = (0.7, 2.0),
    noise_lengthscales: Sequence[float] = (2.5,),
    correlation: float = 0.9,
    noise: float = 0.2,
    noise_spread: float = 0.5,
) -> SyntheticPair:
    """Draw the world of the paper's table 1: N equally spaced inputs on [0, 10], two outputs.

    `f = Σ_q A u_q` and `g = log(noise) + noise_spread Σ_q A v_q` are linear models of
    coregionalization (Eq. 4) over the mean and the log scale, with RBF kernels of the given
    lengthscales and `A Aᵀ = [[1, correlation], [correlation, 1]]`. The outputs are censored
    inside their `windows`. How far, the paper leaves open: here a censored value is the truth
    less a uniform amount on `[0, 2 depth]` standard deviations of its output.

    >>> world = synthetic_pair(50, windows=(((2.0, 4.0),), ()))
    >>> bool((world.observed <= world.truth).all()), int(world.censored.sum())
    (True, 10)
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 10.0, n)
    mean = _coregionalized(rng, x, lengthscales, correlation)
    log_scale = _coregionalized(rng, x, noise_lengthscales, correlation)
    scale = noise * np.exp(noise_spread * log_scale)
    truth = mean + scale * rng.standard_normal((n, 2))
    censored = np.stack([_inside(x, spans) for spans in windows], axis=1)
    hidden = rng.uniform(0.0, 2.0 * depth, (n, 2)) * truth.std(axis=0)
    observed = np.where(censored, truth - hidden, truth)
    return SyntheticPair(("y1", "y2"), x, mean, scale, truth, observed, censored)


def _coregionalized(
    rng: np.random.Generator,
    x: Float[np.ndarray, " N"],
    lengthscales: Sequence[float],
    correlation: float,
) -> Cells:
    """Draw two functions of unit variance from an LMC whose kernels all correlate them alike."""
    # Imported when a pair is drawn: it brings JAX, which no other world needs.
    from censored_gp.model.compilation import blas_threads_for

    mixing = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    total = np.zeros((len(x), 2))
    for lengthscale in lengthscales:
        kernel = np.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2)
        with blas_threads_for(len(x)):
            values, vectors = np.linalg.eigh(kernel)
        # Rounding leaves tiny negative eigenvalues, which a Cholesky factor would refuse.
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        total += root @ rng.standard_normal((len(x), 2)) @ mixing.T
    return total / np.sqrt(len(lengthscales))


def _inside(x: Float[np.ndarray, " N"], spans: Sequence[Window]) -> Bool[np.ndarray, " N"]:
    inside = np.zeros(len(x), bool)
    for start, stop in spans:
        inside |= (x >= start) & (x <= stop)
    return inside
