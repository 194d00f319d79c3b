"""Hyper-parameters as a part of the posterior: a weak prior, and design points around the mode.

Taking the fitted hyper-parameters for certain makes intervals too narrow where data are few or
mostly censored. So they get a prior p(theta), the fit climbs to the mode of ELBO + log p, and the
posterior is approximated there by a Gaussian,

    theta ~ N(mode, (F + P)^-1),        F: the Fisher information, P: the precision of the prior,

of which a few points are drawn. Predictions are mixtures over the posteriors at these points.

The prior is around the starting values of the model. These are taken from the spread of inputs and
outputs, so it has no unit. Logarithms of lengthscales, of other hyper-parameters of kernels, and of
the deviation |a| that a kernel gives an output (or of a nugget) are Gaussian; so are the levels.
The bumps of a nugget over its cycle are around a common size: a few weeks say little of each alone,
and noise that is not there would follow single counts. The directions of coefficients a, which are
the couplings, are uniform. Steps from the mode change |a| by a factor, so that it stays positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from censored_gp.inference.elbo import Roles
from censored_gp.inference.fisher import Vector, from_vector, positions, to_vector
from censored_gp.inference.result import Task
from censored_gp.model.compilation import AnyArray
from censored_gp.model.lmc import LMC

POINTS = 16
"""The number of design points."""
MOST_CELLS = 5000
"""With more observed cells the hyper-parameters hardly matter: by default they are fixed."""
MOST_NUMBERS = 2**24
"""The covariances of the weights at all design points together have at most this many numbers."""
KERNEL_SPREAD = 1.0
"""Prior deviation of the logarithms of lengthscales and other hyper-parameters of kernels."""
SIZE_SPREAD = 1.0
"""Prior deviation of the logarithm of an output's deviation by one kernel, or of a nugget."""
BUMP_SPREAD = 0.5
"""Prior deviation of the logarithm of one bump of a nugget from their mean."""
MEAN_SPREAD = 3.0
"""Prior deviation of the level of a mean, times the deviation that its function starts with."""
LEVEL_SPREAD = 2.0
"""Prior deviation of the level of the other roles, which are logarithms or nearly so."""
CERTAIN = 1e-6
"""The deviation of what is not to move at all: nuggets that start at zero, and rotations."""
MOST_LEVELS = 12
"""The curvature of the levels is a difference of gradients if there are at most so many."""
LEAST_FACTOR = 0.1
"""A step from the mode is shortened to this share of it at most."""
MOST_FACTOR = 1.5
"""A step from the mode is lengthened by this factor at most."""


def mixes(hyperparameters: str, engine: Any, task: Task) -> bool:
    """Tell whether a fit mixes over hyper-parameters: as told, or where it matters and is cheap."""
    if hyperparameters == "auto":
        return engine == "natural" and int(np.sum(~task.observations.is_missing)) <= MOST_CELLS
    return hyperparameters in ("mixed", "given") and engine in ("natural", "nuts")


class LogPrior(NamedTuple):
    """log p(theta) at some hyper-parameters, its gradient, and its curvature."""

    value: float
    gradient: Vector
    curvature: Float[np.ndarray, "P P"]


def level_deviation(role: str, start: LMC) -> Float[AnyArray, "B D"]:
    """Return the prior deviations of the means of a role."""
    if role == "mean" and start.varies:
        return MEAN_SPREAD * sum(start.variances) ** 0.5
    return np.full(np.shape(start.mean), LEVEL_SPREAD)


def log_prior(free: Roles, start: Roles, hold: bool = False) -> LogPrior:
    """Return the log prior of free hyper-parameters, around those that a fit starts with.

    If kernels and their coefficients are held, they are certain.
    """
    value, places, size = 0.0, positions(free), len(to_vector(free))
    gradient, curvature, joint = np.zeros(size), np.zeros(size), np.zeros((size, size))
    for role, lmc in free.items():
        first, place = start[role], places[role]
        plain = [(lmc.mean, first.mean, place.mean, level_deviation(role, first))]
        leaves = map(jax.tree.leaves, (lmc.kernels, first.kernels, place.kernels))
        for parts in zip(*leaves, strict=True):
            plain.append((*parts, np.full(np.shape(parts[0]), CERTAIN if hold else KERNEL_SPREAD)))
        for a, centre, at in _coefficients(lmc, first, place):
            if hold or not np.any(centre):
                plain.append((a, centre, at, np.full(len(a), CERTAIN)))
                continue
            # Coefficients that have vanished are infinitely unlikely, not an error.
            square = max(float(a @ a), 1e-300)
            away = 0.5 * np.log(square / float(centre @ centre)) / SIZE_SPREAD
            value -= 0.5 * away**2
            gradient[at] -= away / SIZE_SPREAD * a / square
            # Directions are uniform. A radian or so is as far as they can turn.
            curvature[at] += 1.0 / (SIZE_SPREAD**2 * square)
        for a, centre, at in _bumps(lmc, first, place):
            if hold or not np.any(centre):
                plain.append((a, centre, at, np.full(len(a), CERTAIN)))
                continue
            even, away = np.full((len(a), len(a)), 1.0 / len(a)), np.log(np.abs(a / centre))
            precision = (np.eye(len(a)) - even) / BUMP_SPREAD**2
            precision += even / (len(a) * SIZE_SPREAD**2)
            value -= 0.5 * float(away @ precision @ away)
            gradient[at] -= precision @ away / a
            joint[np.ix_(at, at)] += precision / np.outer(a, a)
        for here, centre, at, deviation in plain:
            away, at = np.ravel((here - centre) / deviation), np.ravel(at)
            value -= 0.5 * float(away @ away)
            gradient[at] -= away / np.ravel(deviation)
            curvature[at] += np.ravel(deviation) ** -2.0
    return LogPrior(value, gradient, joint + np.diag(curvature))


def amplitudes(*lmcs: LMC) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the coefficients of every output and kernel, and every bump, of several LMCs."""
    yield from _coefficients(*lmcs)
    for several in _bumps(*lmcs):
        yield from zip(*(np.reshape(sizes, (-1, 1)) for sizes in several), strict=True)


def _coefficients(*lmcs: LMC) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the coefficients of every output and kernel, of several LMCs."""
    for several in zip(*(lmc.mixing for lmc in lmcs), strict=True):
        for b, d in np.ndindex(np.shape(several[0])[:2]):
            yield tuple(np.asarray(a)[b, d] for a in several)


def _bumps(*lmcs: LMC) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the sizes of the bumps of every output's nugget, of several LMCs."""
    nuggets = [np.asarray(lmc.nugget.size) for lmc in lmcs if lmc.nugget is not None]
    for b, d in np.ndindex(nuggets[0].shape[:2]) if nuggets else ():
        yield tuple(sizes[b, d] for sizes in nuggets)


def rotations(free: Roles) -> Float[np.ndarray, "T P"]:
    """Return the directions in which the mixing of a kernel is rotated, which change nothing."""
    places, found = positions(free), []
    for role, lmc in free.items():
        for a, at in zip(lmc.mixing, places[role].mixing, strict=True):
            for b, i, j in np.ndindex(len(a), a.shape[2], a.shape[2]):
                if i < j:
                    direction = np.zeros(len(to_vector(free)))
                    direction[at[b, :, i]] = a[b, :, j]
                    direction[at[b, :, j]] = -a[b, :, i]
                    length = np.linalg.norm(direction)
                    found += [direction / length] if length > 0.0 else []
    return np.reshape(found, (len(found), len(to_vector(free))))


def displaced(free: Roles, change: Vector) -> Roles:
    """Return hyper-parameters moved by a change; what of it alters a size acts on its logarithm.

    A row of coefficients a moves to |a| exp(d' a / |a|^2) times the direction of a + t, where t is
    the part of its change d that is orthogonal to a.
    """
    moved, places = to_vector(free) + change, positions(free)
    for role, lmc in free.items():
        for a, at in amplitudes(lmc, places[role]):
            length = float(np.linalg.norm(a))
            if length > 0.0:
                along = float(change[at] @ a) / length**2
                turned = a + change[at] - along * a
                moved[at] = turned * (np.exp(along) * length / np.linalg.norm(turned))
    return from_vector(moved, free)


def standard_points(count: int, dimension: int) -> Float[np.ndarray, "K P"]:
    """Return a Latin hypercube of standard normal points, a sample of mean 0 and variance 1."""
    levels = np.tile(ndtri((np.arange(count) + 0.5) / count), (dimension, 1))
    return np.random.default_rng(0).permuted(levels / levels[0].std(), axis=1).T


def principal_directions(
    free: Roles,
    information: Float[np.ndarray, "P P"],
    prior: Float[np.ndarray, "P P"],
    at: Callable[..., tuple[float, Vector]],
) -> Float[np.ndarray, "P R"]:
    """Return principal directions of N(0, (F + P)^-1), each as long as its deviation.

    `at` evaluates the log posterior and its gradient at a displacement, with adapted sites or (in
    directions that hardly change them) not. The Fisher information
    holds sites and other roles fixed; so the curvature of the levels, on which sums depend most, is
    a difference of gradients instead. Rotations, and what is certain, are left out. Coefficients
    that have vanished have no information, although the evidence falls as they grow: where the
    information is less than the prior's, a direction is as long as the drop over it tells, which
    is 1/2 over a deviation.
    """
    across, (value, slope) = rotations(free), at(np.zeros(len(prior)))
    levels = np.concatenate([np.ravel(lmc.mean) for lmc in positions(free).values()])
    precision = information + prior
    if len(levels) <= MOST_LEVELS:
        steps = 0.5 / np.sqrt(np.diagonal(precision))
        columns = [(slope - at(np.eye(len(prior))[i] * steps[i])[1]) / steps[i] for i in levels]
        if np.all(np.isfinite(columns)):
            precision[levels], precision[:, levels] = columns, np.transpose(columns)
            within = np.ix_(levels, levels)
            precision[within] = 0.5 * (precision[within] + precision[within].T)
    values, vectors = np.linalg.eigh(precision)
    # The prior of slopes is a part of the bound.
    least = 0.5 * np.diagonal(prior)[np.diagonal(prior) > 0.0].min()
    precision = (vectors * np.maximum(values, least)) @ vectors.T
    values, vectors = np.linalg.eigh(precision + across.T @ across / CERTAIN**2)
    kept = values < 0.5 * CERTAIN**-2.0
    # Next to what is certain, a small precision is rounded.
    values, vectors = np.maximum(values[kept], least), vectors[:, kept]
    found = vectors / np.sqrt(values)
    told = values - np.einsum("pi,pq,qi->i", vectors, prior, vectors)
    for i in np.flatnonzero(told < 0.5 * values):
        found[:, i] *= radial_factor(0.5, value - at(found[:, i], False)[0]) or LEAST_FACTOR
    return found


def radial_factor(promised: float, fallen: float) -> float:
    """Return by how much a step from the mode is to be longer, to fall by what was promised.

    The log posterior is taken to be quadratic along the step. Zero: it is not finite there.
    """
    if not np.isfinite(fallen):
        return 0.0
    ratio = np.sqrt(promised / max(fallen, 1e-9))
    return float(np.clip(ratio, LEAST_FACTOR, MOST_FACTOR))
