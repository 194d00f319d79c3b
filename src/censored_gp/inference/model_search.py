"""Search over models: one further kernel by the evidence.

A smooth kernel over time has one lengthscale. Where demand drifts over weeks
and also strays for an afternoon, a fit must choose, and takes the other for noise.
`propose_kernel` tells whether one more kernel of the means is called for. The sites of a fit stand
for Gaussian observations z = h / Lambda of every mean with the noise 1 / Lambda, whose evidence
under a prior covariance K is that of a small Gaussian regression. For a stretch of rows and each
output it compares a further kernel k with more independent noise:

    max over s, a of log N(z; m, K + s / Lambda + a k)  less  the same with I instead of k, or none.

Noise may change on either side, so that only what rows share is a gain. The other kernels stay as
they are, so that one whose lengthscale has not settled may make a further one look needed; a kernel
that was added for nothing gets next to no variance, and costs time.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.linalg import cholesky, solve_triangular

from censored_gp.inference.elbo import Problem, Roles
from censored_gp.inference.sites import Sites
from censored_gp.kernels.base import Kernel
from censored_gp.model.compilation import Inputs, blas_threads_for, bucket, compiled, pad
from censored_gp.model.lmc import LMC, from_free, grams, in_blocks

# Only this role may get a further kernel, as observations say too little of the others.
ROLE = "mean"
# The evidence is computed for this many neighbouring rows.
STRETCH = 384
# Factors s on the noise among which the evidence is maximised.
NOISE = (0.25, 0.5, 1.0, 2.0)
# Variances a of the further kernel, relative to the total variance of an output.
VARIANCES = (0.03, 0.1, 0.3)
# A further kernel must promise at least this gain in evidence (nats).
LEAST_GAIN = 10.0
# Jitter on the diagonal, relative to the total variance of an output.
JITTER = 1e-9


class Growth(NamedTuple):
    """A further kernel, and the variance of each output that it starts with."""

    kernel: Kernel
    variance: Float[np.ndarray, "B D"]


def propose_kernel(
    free: Roles, sites: dict[str, Sites], problem: Problem, spare: Sequence[Kernel]
) -> Growth | None:
    """Return the spare kernel that promises most, if it promises enough."""
    if not spare or ROLE not in sites:
        return None
    lmc = free[ROLE]
    periods = [float(getattr(kernel, "period", 0.0)) for kernel in lmc.kernels]
    precision = np.asarray(sites[ROLE].precision)
    rows = _stretch(problem, spare[0], precision, max(periods))
    own = Sites(*(part[:, rows] for part in sites[ROLE]))
    nugget = None if lmc.nugget is None else lmc.nugget.variance(problem.inputs[rows])
    own = own.marginal(nugget).shifted(lmc.offset(problem.inputs[rows]))
    linear, precision = map(np.asarray, own)
    count = len(rows)
    stretch = pad(problem.inputs[rows], min(bucket(count), STRETCH) - count)
    found = _covariances(lmc, tuple(spare), stretch)
    prior, spares = jax.tree.map(lambda gram: np.asarray(gram)[..., :count, :count], found)
    with blas_threads_for(len(rows)):
        promises = [
            promise(linear[b, :, d], precision[b, :, d], float(lmc.mean[b, d]), prior[b, d], spares)
            for b, d in np.ndindex(prior.shape[:2])
        ]
    gains = np.sum([gain for gain, _ in promises], axis=0)
    best = int(np.argmax(gains))
    # For each coefficient that is added, two nats at least.
    if not gains[best] >= max(LEAST_GAIN, 2.0 * np.size(lmc.mixing[0])):
        return None
    variance = np.array([variances[best] for _, variances in promises])
    return Growth(spare[best], variance.reshape(prior.shape[:2]))


def with_kernel(free: LMC, growth: Growth) -> LMC:
    """Return a role, in free form, with one kernel more; outputs share it as they do the first."""
    first = np.asarray(free.mixing[0])
    length = np.linalg.norm(first, axis=2, keepdims=True)
    even = np.full_like(first, 1.0 / np.sqrt(first.shape[2]))
    direction = np.where(length > 0.0, first / np.where(length > 0.0, length, 1.0), even)
    further = jax.tree.map(np.log, in_blocks(growth.kernel, len(first)))
    return dataclasses.replace(
        free,
        kernels=(*free.kernels, further),
        mixing=(*free.mixing, direction * np.sqrt(growth.variance)[..., None]),
    )


def _stretch(
    problem: Problem, kernel: Kernel, precision: Float[np.ndarray, "B N D"], period: float
) -> Int[np.ndarray, "S"]:
    """Return neighbouring rows in the order of the kernel's columns.

    They are from the middle of all rows, or of the informative ones if few in the middle are. If a
    cycle is longer, they are in up to four runs that are one period apart: within one of them,
    any function could be the cycle's.
    """
    first = problem.inputs[:, kernel.columns[0]]

    def middle_of(order: Int[np.ndarray, "N"]) -> Int[np.ndarray, "S"]:
        start = max(0, (len(order) - STRETCH) // 2)
        x = first[order]
        runs = int(min(4, (x[-1] - x[0]) // period)) if period > 0.0 else 1
        if runs < 2 or x[min(start + STRETCH, len(x)) - 1] - x[start] > period:
            return order[start : start + STRETCH]
        size = STRETCH // runs
        middles = 0.5 * (x[0] + x[-1]) + period * (np.arange(runs) - 0.5 * (runs - 1))
        begins = np.clip(np.searchsorted(x, middles) - size // 2, 0, len(x) - size)
        return order[np.unique(begins[:, None] + np.arange(size))]

    order = np.lexsort(problem.inputs[:, list(kernel.columns)].T[::-1])
    informative = np.any(precision > 0.0, axis=(0, 2))
    middle = middle_of(order)
    if np.mean(informative[middle]) < 0.5:
        middle = middle_of(order[informative[order]])
    return middle


@compiled
def _covariances(
    free: LMC, spare: tuple[Kernel, ...], rows: Inputs
) -> tuple[Float[Array, "B D N N"], tuple[Float[Array, "N N"], ...]]:
    """Return the prior covariance of every output at some rows, Eq. (5), and of spare kernels."""
    lmc = from_free(free)
    total = jnp.zeros((*lmc.mean.shape, len(rows), len(rows)))
    for kernel, variance in zip(lmc.kernels, lmc.variances, strict=True):
        total += variance[..., None, None] * grams(kernel, rows, len(variance))[:, None]
    return total, tuple(kernel(rows, rows) for kernel in spare)


def promise(
    linear: Float[np.ndarray, "N"],
    precision: Float[np.ndarray, "N"],
    mean: float,
    prior: Float[np.ndarray, "N N"],
    spares: Sequence[Float[np.ndarray, "N N"]],
) -> tuple[Float[np.ndarray, "K"], Float[np.ndarray, "K"]]:
    """Return the gain in evidence of each spare kernel for one output, and its best variance."""
    informative = precision > 0.0
    if informative.any():
        informative = precision > 1e-3 * np.median(precision[informative])
    if not informative.any():
        # Not zero, as the gradient in a coefficient of zero is zero.
        little = VARIANCES[0] * float(np.mean(np.diagonal(prior)))
        return np.zeros(len(spares)), np.full(len(spares), little)
    noise, pairs = 1.0 / precision[informative], np.ix_(informative, informative)
    residual, own = linear[informative] * noise - mean, prior[pairs]
    unit = float(np.mean(np.diagonal(own)) + np.median(noise))
    # Smooth kernels are singular to rounding, and noise may be next to none.
    own = own + JITTER * unit * np.eye(len(noise))

    def best(gram: Float[np.ndarray, "K K"], variances: Sequence[float]) -> tuple[float, float]:
        return max(
            (_log_density(residual, own + a * unit * gram + np.diag(s * noise)), a * unit)
            for s, a in itertools.product(NOISE, variances)
        )

    without, _ = best(np.eye(len(noise)), (0.0, *VARIANCES))
    found = [best(gram[pairs], VARIANCES) for gram in spares]
    evidence, variances = (np.array(column) for column in zip(*found, strict=True))
    return evidence - without, variances


def _log_density(residual: Float[np.ndarray, "K"], covariance: Float[np.ndarray, "K K"]) -> float:
    """Return log N(residual; 0, covariance), but for a constant."""
    factor = cholesky(covariance, lower=True, check_finite=False)
    white = solve_triangular(factor, residual, lower=True, check_finite=False)
    return float(-0.5 * white @ white - np.sum(np.log(np.diagonal(factor))))
