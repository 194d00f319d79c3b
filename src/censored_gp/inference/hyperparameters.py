"""Hyper-parameters as a part of the posterior: a weak prior, and design points around the mode.

Taking the fitted hyper-parameters for certain makes intervals too narrow where data are few or
mostly censored. So they get a prior p(theta), the fit climbs to the mode of ELBO + log p, and the
posterior is approximated there by a Gaussian,

    theta ~ N(mean, (F + P)^-1),        F: the Fisher information, P: the precision of the prior,

of which a few points are drawn; the mean is that of an expansion around the mode. Predictions are
mixtures over the posteriors at these points.

The prior is around the starting values of the model. These are taken from the spread of inputs and
outputs, so it has no unit. Logarithms of lengthscales, of other hyper-parameters of kernels, and of
the deviation |a| that a kernel gives an output are Gaussian; so are the levels. The deviation of a
nugget is exponential, a prior that shrinks to the simpler model without one (Simpson et al., 2017);
its bumps over a cycle are around a common size. Few cells say little of each alone, and noise that
is not there would follow single counts. The directions of coefficients a, which are the couplings,
are uniform. Steps from the mode change |a| by a factor, so that it stays positive, and add to the
variance of a nugget, of which cells tell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves_with_path
from jaxtyping import Float
from scipy.linalg import block_diag
from scipy.special import ndtri

from censored_gp.inference.elbo import Roles
from censored_gp.inference.fisher import Vector, from_vector, positions, to_vector
from censored_gp.inference.result import Task
from censored_gp.model.compilation import AnyArray
from censored_gp.model.lmc import LMC

# The number of design points.
POINTS = 16
# Up to so many observed cells hyper-parameters are mixed over by default: more say enough of them.
MOST_CELLS = 5000
# Of many outputs each has hyper-parameters of its own: up to so many cells of each, and in all.
MOST_OF_ONE, MOST_OF_ALL = 2500, 50_000
# The covariances of the weights at all design points together have at most this many numbers.
MOST_NUMBERS = 2**24
# Prior deviation of the logarithms of lengthscales and other hyper-parameters of kernels.
KERNEL_SPREAD = 1.0
# Prior deviation of the logarithm of an output's deviation by one kernel.
SIZE_SPREAD = 1.0
# Prior deviation of the logarithm of one bump of a nugget from their mean.
BUMP_SPREAD = 0.5
# Prior deviation of the level of a mean, times the deviation that its function starts with.
MEAN_SPREAD = 3.0
# Prior deviation of the level of the other roles, which are logarithms or nearly so.
LEVEL_SPREAD = 2.0
# The deviation of what is not to move at all: nuggets that start at zero, and rotations.
CERTAIN = 1e-6
# The curvature of the levels is a difference of gradients if there are at most so many.
MOST_LEVELS = 12
# A step leaves a nugget at least this share of its variance.
LEAST_NUGGET = 1e-2
# The mean is at most so many deviations from the mode.
MOST_SHIFT = 1.0
# Of many cells it is not, if along the sum of all levels the curvature agrees with the Fisher
# information to this share.
LEVELS_AGREE = 0.1
# A step from the mode is shortened to this share of it at most.
LEAST_FACTOR = 0.1
# A step from the mode is lengthened by this factor at most.
MOST_FACTOR = 1.5


def mixes(hyperparameters: str, engine: Any, task: Task) -> bool:
    """Tell whether a fit mixes over hyper-parameters: as told, or where it matters and is cheap."""
    if hyperparameters == "auto":
        cells, outputs = int(np.sum(~task.observations.is_missing)), task.observations.shape[1]
        most = max(MOST_CELLS, min(MOST_OF_ONE * outputs, MOST_OF_ALL))
        return engine == "natural" and cells <= most
    return hyperparameters in ("mixed", "given") and engine in ("natural", "nuts")


class LogPrior(NamedTuple):
    """log p of hyper-parameters, its gradient, and its curvature: a matrix, or its diagonal."""

    value: Any
    gradient: Any
    curvature: Any


def level_deviation(role: str, start: LMC) -> Float[AnyArray, "B D"]:
    """Return the prior deviations of the means of a role."""
    if role == "mean" and start.varies:
        return MEAN_SPREAD * sum(start.variances) ** 0.5
    return np.full(np.shape(start.mean), LEVEL_SPREAD)


def log_prior(free: Roles, start: Roles, hold: bool = False) -> LogPrior:
    """Return the log prior of free hyper-parameters, around those that a fit starts with.

    If kernels and their coefficients are held, they are certain.
    """
    parts = prior_parts(free, start, hold)
    value, gradient = sum(float(part.value) for part in parts), [part.gradient for part in parts]
    matrices = [np.diag(c) if c.ndim == 1 else c for _, _, c in parts]
    return LogPrior(value, to_vector(gradient), block_diag(*matrices))


def prior_parts(free: Roles, start: Roles, hold: bool = False) -> list[LogPrior]:
    """Return the log prior leaf by leaf, in numpy or, where leaves are JAX's, to be traced."""
    parts, pairs = [], zip(tree_leaves_with_path(free), jax.tree.leaves(start), strict=True)
    for (path, here), centre in pairs:
        role, name = path[0].key, path[1].name
        if name == "mean":
            parts.append(_normal(here, centre, level_deviation(role, start[role])))
        elif name == "kernels":
            parts.append(_normal(here, centre, CERTAIN if hold else KERNEL_SPREAD))
        elif name == "slopes":
            # Their prior is a part of the bound.
            parts.append(LogPrior(0.0, 0.0 * here, 0.0 * here.ravel()))
        else:
            parts.append(_sizes(here, centre, hold, name == "nugget"))
    return parts


def _normal(here: AnyArray, centre: AnyArray, deviation: Any) -> LogPrior:
    away = (here - centre) / deviation
    curvature = deviation**-2.0 + 0.0 * away
    return LogPrior(-0.5 * (away**2).sum(), -away / deviation, curvature.ravel())


def _sizes(a: AnyArray, centre: AnyArray, hold: bool, bumps: bool) -> LogPrior:
    """Return the log prior of rows of coefficients a, or of bumps; those that start at 0 stay.

    The logarithm of |a| is normal, and directions are uniform: a radian or so is as far as they can
    turn. Of bumps, their geometric mean g has the density exp(-g / g0), with that of the centre as
    g0, and the logarithms are normal around log g.
    """
    xp: Any = jnp if isinstance(a, jax.Array) else np
    certain = xp.all(centre == 0.0, axis=-1, keepdims=True) | hold
    rigid = _normal(xp.where(certain, a, centre), centre, CERTAIN)
    a, centre = (xp.where(certain, 1.0, sizes) for sizes in (a, centre))
    if bumps:
        count = np.shape(a)[-1]
        even = np.full((count, count), 1.0 / count)
        a = np.where(np.abs(a) > 1e-150, a, 1e-150)
        apart = (np.eye(count) - even) / BUMP_SPREAD**2
        away = np.log(np.abs(a / centre))
        pulled, ratio = away @ apart, np.where(certain, 0.0, np.exp(away @ even))
        value = -0.5 * (away * pulled).sum() - np.where(certain, 0.0, ratio[..., :1] - 1.0).sum()
        gradient = -(pulled + ratio / count) / a
        each = zip(a.reshape(-1, count), ratio[..., :1].reshape(-1), certain.ravel(), strict=True)
        blocks = [(apart + r / count * even) / np.outer(s, s) * (not c) for s, r, c in each]
        curvature = block_diag(*blocks) + np.diag(np.where(certain, CERTAIN**-2.0, 0.0 * a).ravel())
    else:
        # Coefficients that have vanished are infinitely unlikely, not an error.
        square = xp.maximum((a**2).sum(axis=-1, keepdims=True), 1e-300)
        away = 0.5 * xp.log(square / (centre**2).sum(axis=-1, keepdims=True)) / SIZE_SPREAD
        value, gradient = -0.5 * (away**2).sum(), -away / SIZE_SPREAD * a / square
        curvature = xp.where(certain, CERTAIN**-2.0, SIZE_SPREAD**-2.0 / square + 0.0 * a).ravel()
    return LogPrior(value + rigid.value, gradient + rigid.gradient, curvature)


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
    the part of its change d that is orthogonal to a. The variance c^2 of a nugget moves by 2 c d.
    """
    changes = from_vector(change, free)
    moved = jax.tree.map(np.add, free, changes)

    def sizes(a: Any, change: Any) -> Any:
        length = np.linalg.norm(a, axis=-1, keepdims=True)
        along = np.sum(change * a, axis=-1, keepdims=True) / np.where(length > 0, length, 1.0) ** 2
        turned = a + change - along * a
        factor = np.exp(along) * length / np.linalg.norm(turned, axis=-1, keepdims=True)
        return turned * np.where(length > 0.0, factor, 1.0)

    for role, lmc in free.items():
        mixing, nugget = tuple(map(sizes, lmc.mixing, changes[role].mixing)), lmc.nugget
        if nugget is not None:
            size, d = np.asarray(nugget.size), changes[role].nugget.size
            square = np.maximum(size**2 + 2.0 * size * d, LEAST_NUGGET * size**2)
            nugget = dataclasses.replace(nugget, size=np.sqrt(square))
        moved[role] = dataclasses.replace(moved[role], mixing=mixing, nugget=nugget)
    return moved


def standard_points(count: int, dimension: int) -> Float[np.ndarray, "K P"]:
    """Return a Latin hypercube of standard normal points, a sample of mean 0 and variance 1."""
    levels = np.tile(ndtri((np.arange(count) + 0.5) / count), (dimension, 1))
    return np.random.default_rng(0).permuted(levels / levels[0].std(), axis=1).T


def principal_directions(
    free: Roles,
    information: Float[np.ndarray, "P P"],
    prior: Float[np.ndarray, "P P"],
    at: Callable[..., tuple[float, Vector]],
    few: bool,
) -> tuple[Float[np.ndarray, "P R"], Float[np.ndarray, "R"]]:
    """Return principal directions of N(0, (F + P)^-1), each as long as its deviation, and a mean.

    `at` evaluates the log posterior at a displacement, with adapted sites, and its gradient unless
    told not to. The Fisher information holds sites and other roles fixed; so the curvature of the
    levels, on which sums depend most, is a difference of gradients instead, if cells are few or the
    two do not agree. Rotations, and what is certain, are left out. Coefficients that have vanished
    have no information, although the evidence falls as they grow: where the information is less
    than the prior's, a direction is as long as the drop over it tells, which is 1/2 over a
    deviation.

    The mean, in these directions, is not the mode: the wider the functions, the less certain are
    the levels l of means, and a mode knows no volume. With third derivatives T of the log posterior

        E[theta] - mode = C t / 2,    t_i = sum_l T_ill C_ll,    C = (F + P)^-1.
    """
    across, (value, slope) = rotations(free), at(np.zeros(len(prior)))
    by_role = {role: np.ravel(lmc.mean) for role, lmc in positions(free).items()}
    levels = np.concatenate([*by_role.values()])
    precision, thirds = information + prior, np.zeros((len(levels), len(prior)))
    steps = 1.0 / np.sqrt(np.diagonal(precision))
    moves = steps[levels, None] * np.eye(len(prior))[levels]
    differ = len(levels) <= MOST_LEVELS
    if differ and not few:
        together = 0.5 * moves.sum(axis=0)
        expected = together @ precision @ together
        bend = (slope - at(together)[1]) @ together
        differ = not abs(bend - expected) < LEVELS_AGREE * expected
    if differ:
        ends = np.array([[at(sign * move)[1] for sign in (-1, 1)] for move in moves])
        if np.all(np.isfinite(ends)):
            (before, after), step = np.moveaxis(ends, 1, 0), steps[levels][:, None]
            columns = 0.5 * (before - after) / step
            thirds = (before + after - 2.0 * slope) / step**2
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
    # Variances of nuggets move in proportion to what cells tell.
    nuggets = [np.ravel(lmc.nugget.size) for lmc in positions(free).values() if lmc.nugget]
    of_nuggets = np.sum(vectors[np.concatenate([levels[:0], *nuggets])] ** 2, axis=0)
    for i in np.flatnonzero((told < 0.5 * values) & (of_nuggets < 0.5)):
        found[:, i] *= radial_factor(0.5, value - at(found[:, i], False)[0]) or LEAST_FACTOR
    of_means = np.isin(levels, by_role.get("mean", ()))
    variances = of_means * np.einsum("pi,pi->p", found, found)[levels]
    mean = 0.5 * found.T @ (variances @ thirds)
    return found, mean * min(1.0, MOST_SHIFT / max(float(np.abs(mean).max(initial=0.0)), 1e-300))


def radial_factor(promised: float, fallen: float) -> float:
    """Return by how much a step from the mode is to be longer, to fall by what was promised.

    The log posterior is taken to be quadratic along the step. Zero: it is not finite there.
    """
    if not np.isfinite(fallen):
        return 0.0
    ratio = np.sqrt(promised / max(fallen, 1e-9))
    return float(np.clip(ratio, LEAST_FACTOR, MOST_FACTOR))
