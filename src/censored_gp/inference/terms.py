"""The observed cells, sorted by likelihood and by kind, so that each is computed once and cheaply.

A tail costs far more than a density, and a missing cell costs nothing: cells are therefore laid
out flat, one list for every pair of likelihood and kind (exact, right, left, interval, share, and
what is a share or a limit).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from censored_gp.kernels.families import safe_sqrt
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.shares import log_share_or_limit
from censored_gp.observations import Observations
from censored_gp.quadrature import grid
from censored_gp.runtime import AnyArray, bucket

KINDS = ("exact", "right", "left", "interval", "share", "share_or_limit")
MANY_CELLS = 512
"""Cells from which on it takes long to compute those that only pad the shape."""
NO_VARIANCE = 1e-20
"""A latent variance not above this is none: its slope would be lost in rounding, or be infinite."""


class Terms(eqx.Module):
    """The cells of one kind under one likelihood."""

    row: Int[np.ndarray, "K"]
    column: Int[np.ndarray, "K J"]
    """Where each parameter of the cell's output stands among the outputs of its role."""
    lower: Float[np.ndarray, "K"]
    upper: Float[np.ndarray, "K"]
    weight: Float[np.ndarray, "K"]
    """One, or zero for a cell that only pads the shape."""
    likelihood: Likelihood
    roles: tuple[str, ...] = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    log_odds: Float[np.ndarray, "K"] | None = None
    """Of limits; only what may be a share as well has them."""

    def log_likelihood(self, *theta: Float[Array, "K S"]) -> Float[Array, "K S"]:
        """Return the log probability, given theta, of what was seen of every cell."""
        lower, upper = jnp.asarray(self.lower)[:, None], jnp.asarray(self.upper)[:, None]
        if self.kind == "exact":
            return self.likelihood.log_density(lower, *theta)
        if self.kind == "right":
            return self.likelihood.log_at_least(lower, *theta)
        if self.kind == "left":
            return self.likelihood.log_cdf(upper, *theta)
        if self.kind == "share":
            return self.likelihood.log_share(lower, *theta)
        if self.log_odds is not None:
            odds = jnp.asarray(self.log_odds)[:, None]
            return log_share_or_limit(self.likelihood, lower, odds, *theta)
        return self.likelihood.log_interval(lower, upper, *theta)

    def gather(self, by_role: dict[str, Float[Array, "N D"]]) -> Float[Array, "K J"]:
        """Pick the values of each cell's parameters out of one array for each role."""
        picked = [by_role[r][self.row, self.column[:, j]] for j, r in enumerate(self.roles)]
        return jnp.stack(picked, axis=1)


def collect_terms(
    observations: Observations,
    likelihoods: tuple[Likelihood, ...],
    role_outputs: dict[str, tuple[int, ...]],
) -> tuple[Terms, ...]:
    """Sort the observed cells by likelihood and kind; missing cells are left out."""
    found = []
    seen = within_support(observations, likelihoods)
    right, either = seen.is_right & ~seen.is_share, seen.is_share_or_limit
    share = seen.is_share & ~either
    masks = (seen.is_exact, right, seen.is_left, seen.is_interval, share, either)
    for likelihood in dict.fromkeys(likelihoods):
        members = np.array([other == likelihood for other in likelihoods])
        for kind, mask in zip(KINDS, masks, strict=True):
            rows, outputs = np.nonzero(mask & members)
            if len(rows):
                found.append(_terms(seen, likelihood, role_outputs, kind, rows, outputs))
    return tuple(found)


def within_support(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> Observations:
    """Say the same with bounds that each output's family can reach.

    Those of counts are whole numbers, and there are none where the support itself ends.
    """
    supports = [likelihood.support for likelihood in likelihoods]
    discrete = np.array([support.discrete for support in supports])
    lower = np.where(discrete, np.ceil(observations.lower), observations.lower)
    upper = np.where(discrete, np.floor(observations.upper), observations.upper)
    exact = lower == upper
    first, last = (np.array([getattr(s, end) for s in supports]) for end in ("lower", "upper"))
    # Of a share, none at all says something too.
    lower = np.where(~exact & ~observations.is_share & (lower <= first), -np.inf, lower)
    upper = np.where(~exact & (upper >= last), np.inf, upper)
    return dataclasses.replace(observations, lower=lower, upper=upper)


def _terms(
    observations: Observations,
    likelihood: Likelihood,
    role_outputs: dict[str, tuple[int, ...]],
    kind: str,
    rows: Int[np.ndarray, "K"],
    outputs: Int[np.ndarray, "K"],
) -> Terms:
    """Build the list of one likelihood and kind, padded by repeating its first cell."""
    # How many cells are censored is chance: it must not decide what is compiled.
    room = bucket(len(rows), steps=2 if len(rows) < MANY_CELLS else 4) - len(rows)
    weight = np.concatenate([np.ones(len(rows)), np.zeros(room)])
    rows, outputs = (np.concatenate([v, np.repeat(v[:1], room)]) for v in (rows, outputs))
    roles = tuple(parameter.role for parameter in likelihood.parameters)
    column = np.stack([np.searchsorted(role_outputs[role], outputs) for role in roles], axis=1)
    lower, upper = observations.lower[rows, outputs], observations.upper[rows, outputs]
    odds = observations.limit_odds[rows, outputs]
    log_odds = np.log(odds) if kind == "share_or_limit" else None
    return Terms(rows, column, lower, upper, weight, likelihood, roles, kind, log_odds)


def deviation(variance: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return the standard deviation, its slope zero where there is no variance.

    Such is a row at the origin of a linear kernel: the function is known there.
    """
    return safe_sqrt(jnp.where(variance > NO_VARIANCE, variance, 0.0))


def expected_log_likelihood(
    terms: tuple[Terms, ...],
    mean: dict[str, Float[Array, "N D"]],
    variance: dict[str, Float[Array, "N D"]],
    varies: dict[str, bool],
) -> Float[Array, ""]:
    """Return E_q[log p(y | gamma)], the first term of Eq. (6) and Eq. (13), by quadrature."""
    total = jnp.zeros(())
    for part in terms:
        varying = tuple(varies[role] for role in part.roles)
        several = part.likelihood.product_nodes if sum(varying) > 1 else None
        nodes, mass = grid(varying, several)
        centre, spread = part.gather(mean), deviation(part.gather(variance))
        gamma = centre[:, None, :] + spread[:, None, :] * nodes
        theta = part.likelihood.theta(*jnp.moveaxis(gamma, 2, 0))
        total += jnp.sum(part.weight * (part.log_likelihood(*theta) @ mass))
    return total


def pad_rows(inputs: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "P C"]:
    """Round the number of rows up; no cell refers to the rows added, so they carry no weight."""
    room = bucket(len(inputs)) - len(inputs)
    return np.concatenate([inputs, np.repeat(inputs[-1:], room, axis=0)])


gradient_of_expectation = jax.value_and_grad(expected_log_likelihood, argnums=(1, 2))
"""The value with dE/dm and dE/dV: what a natural-gradient step is made of."""

Slopes = tuple[Mapping[str, Float[AnyArray, "N D"]], Mapping[str, Float[AnyArray, "N D"]]]
"""Slopes of the expected log likelihood in the means and the variances of every role."""


def none_yet(mean: dict[str, Float[Array, "N D"]]) -> Slopes:
    """Return slopes to which nothing was added."""
    zeros = {role: np.zeros(own.shape) for role, own in mean.items()}
    return zeros, zeros


def add_expectation(
    bound: Float[AnyArray, ""],
    slopes: Slopes,
    part: Terms,
    mean: dict[str, Float[Array, "N D"]],
    variance: dict[str, Float[Array, "N D"]],
    varying: tuple[str, ...],
) -> tuple[Float[Array, ""], Slopes]:
    """Add the expected log likelihood of some cells to a bound, and its slopes to others."""
    varies = {role: role in varying for role in mean}
    value, own = gradient_of_expectation((part,), mean, variance, varies)
    return bound + value, jax.tree.map(jnp.add, slopes, own)
