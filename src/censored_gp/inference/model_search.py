"""Whether the means lack a kernel: what a further one would add to the evidence.

A smooth kernel over time has one lengthscale. Where demand drifts over weeks and also strays for an
afternoon, a fit must choose; what it does not choose is taken for noise, and drift that is lost
makes bad guesses of days that were not seen. A fit therefore looks, once it has found its way,
whether one more kernel is called for.

The sites of a fit stand for Gaussian observations z = h / Lambda of every mean, with the noise
1 / Lambda. Their evidence under a prior covariance K is that of a small Gaussian regression. It is
computed for a stretch of rows, output by output, with a further kernel k and without one:

    max over s, a of log N(z; m, K + s / Lambda + a k)  less  the same with I instead of k, or none.

Noise may change on either side, so that only what rows share is a gain. The other kernels stay as
they are: one whose lengthscale is still on its way may make a further one look needed. What was
taken up for nothing is given next to no variance by the climb, and costs time.

Which of several models to keep, where the data may be too few for the largest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.linalg import cholesky, solve_triangular

from censored_gp.inference.elbo import Problem, Roles
from censored_gp.inference.posterior import Posterior, Sites, of_functions
from censored_gp.inference.result import Report, Task
from censored_gp.kernels import Kernel
from censored_gp.model.compilation import AnyArray, blas_threads_for, compiled
from censored_gp.model.lmc import LMC, from_free, grams, in_blocks
from censored_gp.model.model import Model
from censored_gp.model.starting_values import coefficients

UNFINISHED = "The fit was interrupted before a model of more latent functions was tried."


def best_fit(
    run: Callable[..., tuple[Posterior, Report]],
    task: Task,
    models: Sequence[Model],
    settings: Any = None,
) -> tuple[Posterior, Report]:
    """Fit models by an engine; return that of the highest bound less its coefficients.

    This is Akaike's criterion, for models that differ in how many coefficients they have.
    """
    fits: list[tuple[Posterior, Report]] = []
    for model in models:
        try:
            fits.append(run(dataclasses.replace(task, model=model), settings))
        except KeyboardInterrupt:
            # What was fitted before is whole.
            if not fits:
                raise
            last = dataclasses.replace(fits[-1][1], status="interrupted", message=UNFINISHED)
            fits[-1] = (fits[-1][0], last)
        if fits[-1][1].status == "interrupted":
            break
    return max(fits, key=_merit)


def _merit(fit: tuple[Posterior, Report]) -> float:
    posterior, report = fit
    return report.elbo - coefficients(posterior.model) if np.isfinite(report.elbo) else -np.inf


ROLE = "mean"
"""The role that may grow: what is observed says too little of the others."""


STRETCH = 384
"""Rows that are looked at, in the order of time: enough to see what neighbours share."""


NOISE = (0.25, 0.5, 1.0, 2.0)
"""Factors s on the noise."""


VARIANCES = (0.03, 0.1, 0.3)
"""Variances a of the further kernel, in units of all variance of an output."""


CERTAIN = 10.0
"""Nats that a further kernel must promise at least, ..."""


WORTH_GROWING = 2.0
"""... and for each coefficient that it adds to the model: less may be chance."""


MANY_INFORMATIVE = 0.5
"""Share of the rows in the middle that must tell anything for these to be looked at."""


LEAST_INFORMATIVE = 1e-3
"""Precision of a site, relative to the median, below which its cell tells next to nothing."""


JITTER = 1e-9
"""Added to the diagonal, in units of all variance of an output."""


class Growth(NamedTuple):
    """A further kernel, and the variance that each output should have of it."""

    kernel: Kernel
    variance: Float[np.ndarray, "B D"]


class Promise(NamedTuple):
    """What each of the spare kernels would add to the evidence of one output."""

    gains: Float[np.ndarray, "K"]
    variances: Float[np.ndarray, "K"]


def lacking(
    free: Roles, sites: dict[str, Sites], problem: Problem, spare: Sequence[Kernel]
) -> Growth | None:
    """Return the spare kernel that promises most, if it promises enough."""
    if not spare or ROLE not in sites:
        return None
    own = free[ROLE].nugget
    nugget = None if own is None else own.variance(problem.inputs)
    linear, precision = map(np.asarray, of_functions(sites[ROLE], nugget))
    rows = _stretch(problem, spare[0], precision)
    prior, spares = _covariances(free[ROLE], tuple(spare), problem.inputs[rows])
    prior, spares = np.asarray(prior), [np.asarray(gram) for gram in spares]
    places = list(np.ndindex(prior.shape[:2]))
    with blas_threads_for(len(rows)):
        promises = [
            promise(
                linear[b, rows, d],
                precision[b, rows, d],
                float(free[ROLE].mean[b, d]),
                prior[b, d],
                spares,
            )
            for b, d in places
        ]
    gains = np.sum([own.gains for own in promises], axis=0)
    best = int(np.argmax(gains))
    if not gains[best] >= max(CERTAIN, WORTH_GROWING * np.size(free[ROLE].mixing[0])):
        return None
    variance = np.array([own.variances[best] for own in promises])
    return Growth(spare[best], variance.reshape(prior.shape[:2]))


def grown(free: LMC, growth: Growth) -> LMC:
    """Return a role, in free form, with one kernel more. Outputs share it as they do the first."""
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
    problem: Problem, kernel: Kernel, precision: Float[np.ndarray, "B N D"]
) -> Int[np.ndarray, "S"]:
    """Return neighbouring rows, in the order of what the kernel looks at; padding, if few.

    They are from the middle of all rows; of those that tell anything, if few in the middle do.
    """
    room, count = len(problem.inputs), int(problem.rows)
    order = np.lexsort(problem.inputs[:count, list(kernel.columns)].T[::-1])
    informative = np.any(precision > 0.0, axis=(0, 2))
    middle = _middle(order)
    if np.mean(informative[middle]) < MANY_INFORMATIVE:
        middle = _middle(order[informative[order]])
    # As many as there is room for, so that the shape is that of other data: padding tells nothing.
    padding = np.arange(count, room)[: STRETCH - len(middle)]
    return np.concatenate([middle, padding])


def _middle(order: Int[np.ndarray, "N"]) -> Int[np.ndarray, "S"]:
    start = max(0, (len(order) - STRETCH) // 2)
    return order[start : start + STRETCH]


@compiled
def _covariances(
    free: LMC, spare: tuple[Kernel, ...], rows: Float[AnyArray, "N C"]
) -> tuple[Float[Array, "B D N N"], tuple[Float[Array, "N N"], ...]]:
    """Return the prior covariance of every output at some rows, and that of spare kernels."""
    lmc = from_free(free)
    total = jnp.zeros((*lmc.mean.shape, len(rows), len(rows)))
    for kernel, mixing in zip(lmc.kernels, lmc.mixing, strict=True):
        own = jnp.sum(jnp.asarray(mixing) ** 2, axis=2)
        total += own[..., None, None] * grams(kernel, rows, len(own))[:, None]
    return total, tuple(kernel(rows, rows) for kernel in spare)


def promise(
    linear: Float[np.ndarray, "N"],
    precision: Float[np.ndarray, "N"],
    mean: float,
    prior: Float[np.ndarray, "N N"],
    spares: Sequence[Float[np.ndarray, "N N"]],
) -> Promise:
    """Return what each spare kernel would add to the evidence of an output with given sites."""
    informative = precision > 0.0
    if informative.any():
        informative = precision > LEAST_INFORMATIVE * np.median(precision[informative])
    if not informative.any():
        # A little of it, as from none at all a coefficient would not move.
        little = VARIANCES[0] * float(np.mean(np.diagonal(prior)))
        return Promise(np.zeros(len(spares)), np.full(len(spares), little))
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
    return Promise(evidence - without, variances)


def _log_density(residual: Float[np.ndarray, "K"], covariance: Float[np.ndarray, "K K"]) -> float:
    """Return log N(residual; 0, covariance), but for a constant."""
    factor = cholesky(covariance, lower=True, check_finite=False)
    white = solve_triangular(factor, residual, lower=True, check_finite=False)
    return float(-0.5 * white @ white - np.sum(np.log(np.diagonal(factor))))
