"""The model as a textbook would write it: explicit matrices and plain loops, numpy and scipy only.

A role here is its whole prior at the rows: mean vector m and covariance K of Eq. (5), the outputs
one below the other. Gaussian sites are pseudo-observations h / Lambda with variance 1 / Lambda.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Normal(NamedTuple):
    """N(mean, covariance) over the stacked values of one role."""

    mean: np.ndarray
    covariance: np.ndarray


def kernel_function(kernel, block):
    """k(x, z) of an RBF or a periodic kernel on the first column, in one block."""
    lengthscale = np.asarray(kernel.lengthscale)[block]
    if hasattr(kernel, "period"):
        return lambda x, z: np.exp(
            -2 * np.sin(np.pi * (x[0] - z[0]) / kernel.period) ** 2 / lengthscale**2
        )
    return lambda x, z: np.exp(-0.5 * (x[0] - z[0]) ** 2 / lengthscale**2)


def matrix(function, X, Z):
    """k(x_n, z_m), one by one."""
    return np.array([[function(x, z) for z in Z] for x in X])


def nugget_variance(nugget, X, block):
    """The variance that each row has of its own: cos^2 of the distance to the bumps beside it."""
    size = np.asarray(nugget.size)[block]
    outputs, count = size.shape
    found = np.zeros((outputs, len(X)))
    for d, n in itertools.product(range(outputs), range(len(X))):
        if count == 1:
            found[d, n] = size[d, 0] ** 2
            continue
        place = X[n][nugget.column] / nugget.period % 1.0 * count
        left, part = int(place) % count, place - int(place)
        right = (left + 1) % count
        found[d, n] = size[d, left] ** 2 * np.cos(np.pi / 2 * part) ** 2
        found[d, n] += size[d, right] ** 2 * np.sin(np.pi / 2 * part) ** 2
    return found.ravel()


def covariance(lmc, X, Z, block):
    """K = sum_q B_q (x) K_q, Eq. (5), of one block; of one and the same rows with their nuggets."""
    parts = []
    for kernel, mixing in zip(lmc.kernels, lmc.mixing, strict=True):
        a = np.asarray(mixing)[block]
        parts.append(np.kron(a @ a.T, matrix(kernel_function(kernel, block), X, Z)))
    if X is Z and lmc.nugget is not None:
        parts.append(np.diag(nugget_variance(lmc.nugget, X, block)))
    return np.sum(parts, axis=0)


def prior(lmc, X, block):
    """N(m, K) of one block."""
    return Normal(np.repeat(np.asarray(lmc.mean)[block], len(X)), covariance(lmc, X, X, block))


def posterior(lmc, X, Z, block, linear, precision):
    """The values at Z given pseudo-observations at X: GP regression with a variance per cell."""
    at_rows = prior(lmc, X, block)
    seen = precision > 0
    pseudo = linear[seen] / precision[seen]
    noisy = at_rows.covariance[np.ix_(seen, seen)] + np.diag(1 / precision[seen])
    cross = covariance(lmc, Z, X, block)[:, seen]
    gain = np.linalg.solve(noisy, cross.T).T
    mean = np.repeat(np.asarray(lmc.mean)[block], len(Z))
    return Normal(
        mean + gain @ (pseudo - at_rows.mean[seen]),
        covariance(lmc, Z, Z, block) - gain @ cross.T,
    )


def divergence(q, at_rows, linear, precision):
    """KL(q || prior) = E_q[log of the sites] - log Z, which holds for a singular K too."""
    seen = precision > 0
    pseudo, variance = linear[seen] / precision[seen], 1 / precision[seen]
    expected = 0.0
    for n in range(seen.sum()):
        mean, own = q.mean[seen][n], q.covariance[seen][:, seen][n, n]
        expected += stats.norm.logpdf(pseudo[n], mean, np.sqrt(variance[n]))
        expected -= 0.5 * own / variance[n]
    marginal = at_rows.covariance[np.ix_(seen, seen)] + np.diag(variance)
    return expected - stats.multivariate_normal.logpdf(pseudo, at_rows.mean[seen], marginal)


def gaussian_divergence(q, p):
    """KL(q || p) as the textbook has it, for a regular p."""
    inverse, shift = np.linalg.inv(p.covariance), q.mean - p.mean
    log_determinants = np.linalg.slogdet(p.covariance)[1] - np.linalg.slogdet(q.covariance)[1]
    quadratic = np.trace(inverse @ q.covariance) + shift @ inverse @ shift
    return 0.5 * (quadratic - len(shift) + log_determinants)


def log_likelihood(family, lower, upper, gamma):
    """log P(lower <= Y <= upper), or the log density, of one cell; links as they are built in."""
    if family == "Gaussian":
        law: Any = stats.norm(gamma[0], np.exp(gamma[1]))
        at_least, density = law.logsf(lower), law.logpdf(lower)
    else:
        law: Any = stats.poisson(np.exp(gamma[0]))
        at_least, density = law.logsf(lower - 1), law.logpmf(lower)
    return density if lower == upper else at_least


def expectation(family, lower, upper, mean, variance, nodes):
    """E[log p(y | gamma)] of one cell, gamma_j independent N(mean_j, variance_j), by loops."""
    points, masses = np.polynomial.hermite_e.hermegauss(nodes)
    masses = masses / masses.sum()
    one = [(0.0, 1.0)]
    axes = [list(zip(points, masses, strict=True)) if v > 0 else one for v in variance]
    total = 0.0
    for combination in itertools.product(*axes):
        gamma = [
            m + z * np.sqrt(v) for m, v, (z, _) in zip(mean, variance, combination, strict=True)
        ]
        mass = np.prod([w for _, w in combination])
        total += mass * log_likelihood(family, lower, upper, gamma)
    return total


def expected_log_likelihood(likelihoods, observations, moments, roles, nodes):
    """E_q[log p(y | gamma)] over all observed cells; moments[role] = (mean, variance), (N, O)."""
    total = 0.0
    for n, d in np.argwhere(~observations.is_missing):
        own = [parameter.role for parameter in likelihoods[d].parameters]
        places = [(role, roles[role].index(d)) for role in own]
        mean = [moments[role][0][n, place] for role, place in places]
        variance = [moments[role][1][n, place] for role, place in places]
        count = nodes[sum(v > 0 for v in variance)]
        bounds = observations.lower[n, d], observations.upper[n, d]
        total += expectation(type(likelihoods[d]).__name__, *bounds, mean, variance, count)
    return total


def stacked(array, block, rows):
    """Sites (B, N, D) of one block, outputs one below the other, real rows only."""
    return np.asarray(array)[block, :rows].T.ravel()


def everything(task, sites, nodes):
    """ELBO, and means and variances (N, O) of every role, of given sites."""
    X, moments, total = task.inputs, {}, 0.0
    for role, lmc in task.model.priors.items():
        blocks, outputs = np.shape(lmc.mean)
        means, variances = [], []
        for block in range(blocks):
            if not lmc.varies:
                means.append(np.tile(np.asarray(lmc.mean)[block], (len(X), 1)))
                variances.append(np.zeros((len(X), outputs)))
                continue
            pair = [stacked(part, block, len(X)) for part in sites[role]]
            q = posterior(lmc, X, X, block, *pair)
            total -= divergence(q, prior(lmc, X, block), *pair)
            means.append(q.mean.reshape(outputs, -1).T)
            variances.append(np.diag(q.covariance).reshape(outputs, -1).T)
        moments[role] = np.concatenate(means, axis=1), np.concatenate(variances, axis=1)
    roles = {role: lmc.outputs for role, lmc in task.model.priors.items()}
    total += expected_log_likelihood(
        task.model.likelihoods, task.observations, moments, roles, nodes
    )
    return total, moments
