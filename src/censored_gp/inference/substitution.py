"""Substitution: who finds one output sold out takes another.

A row has own demands d_1, ..., d_D and limits. The excess of output i, e_i = max(d_i - L_i, 0),
tries one other output: the share T_ij of it goes to j, and what is left of a row of T goes nowhere.

    V_j = min(d_j + sum_i T_ij e_i, L_j)

is recorded. A record below its limit has no excess. With F the outputs at their limits, hence,

    d_j = V_j - sum_(i in F) T_ij e_i              (j not in F),
    d_i + sum_(k in F) T_ki e_k >= L_i             (i in F).

A high record of j speaks of the excess of i, and the own demands of both are uncertain together.
The likelihoods are of single cells. So each cell gets a Gaussian message of what its row says of
it, by expectation propagation: the moments of d given the row, with every cell at its cavity
(`own_demand`), divided by the cavity. A message N(d; y, w) is what is known of a Gaussian cell that
was seen for the share s^2 / (s^2 + w) of its period, s^2 being the variance of its noise.
`Observations` with exposures carry the messages, and engines and predictions take them as they are.

Letters: V records, m and v mean and variance of d before the row is looked at, T shares.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_ndtr, ndtri_exp

from censored_gp.data.observations import Observations
from censored_gp.inference.elbo import RoleState, Terms
from censored_gp.inference.natural import NaturalSettings, State, best_climbs
from censored_gp.inference.result import Task
from censored_gp.inference.sites import Moments, Sites
from censored_gp.likelihoods import Gaussian, Likelihood
from censored_gp.likelihoods.quadrature import gauss_legendre
from censored_gp.likelihoods.special.elementary import HALF_LOG_2PI, Batch
from censored_gp.model.compilation import blas_threads_for
from censored_gp.model.model import Units

Cells = Float[np.ndarray, "... N D"]
Mask = Bool[np.ndarray, "N D"]
Matrix = Float[np.ndarray, "D D"]

# Quantiles of own demand on either side of a limit, more of them the further away.
NODES, WEIGHTS = gauss_legendre(24, 0)
LEVELS = 1.0 - (0.5 - 0.5 * NODES) ** 3
LOG_WEIGHTS = np.log(1.5 * WEIGHTS * (0.5 - 0.5 * NODES) ** 2)
# How often the outputs of a row at their limits are gone through, until they agree.
SWEEPS = 4
# The share of an excess that moves, before it is learned.
FIRST_SHARE = 0.5
# A message and a cavity have at least this share of the precision of what they are parts of.
LEAST_INFORMATION = 1e-6
# The change of shares that tells the curvature of the evidence.
DIFFERENCE = 0.05
# The prior precision of shares: that of a number that may be anything between 0 and 1.
SHARE_PRECISION = 12.0
# Messages are settled when means move by less than so many standard deviations of noise, and
# shares by less than this.
SETTLED = 0.02


class Plan(NamedTuple):
    """The shares T, and what of them is learned.

    Attributes
    ----------
    distances
        If given, T_ij = moving exp(-distance_ij / decay) / sum_(k != i) exp(-distance_ik / decay).
    learned
        "shares" (each on its own), "moving" and "decay", if they are learned; what the plan says of
        them is then where they start.
    """

    shares: Matrix
    distances: Matrix | None = None
    moving: float = FIRST_SHARE
    decay: float = 1.0
    learned: tuple[str, ...] = ()

    @property
    def free(self) -> Float[np.ndarray, " P"]:
        """What is learned, as a vector: the shares, or the share that moves and the log decay."""
        if self.distances is None:
            return self.shares.ravel()
        return np.array([self.moving, np.log(self.decay)])

    def at(self, free: Float[np.ndarray, " P"]) -> Plan:
        """Return the plan with other values of what is learned, the nearest that may be."""
        if self.distances is None:
            return self._replace(shares=feasible(free.reshape(self.shares.shape)))
        moving, decay = float(np.clip(free[0], 1e-3, 1.0)), float(np.exp(free[1]))
        apart = np.where(np.eye(len(self.distances)) > 0, np.inf, self.distances)
        near = np.exp((apart.min(axis=1, keepdims=True) - apart) / decay)
        shares = moving * near / near.sum(axis=1, keepdims=True)
        return self._replace(shares=shares, moving=moving, decay=decay)

    @property
    def precision(self) -> Float[np.ndarray, " P"]:
        """The prior precision of each number that may be learned."""
        if self.distances is None:
            return np.full(self.shares.size, SHARE_PRECISION)
        return np.array([SHARE_PRECISION, 1.0])

    @property
    def directions(self) -> Float[np.ndarray, "P D D"]:
        """The derivatives of the shares in each number that may be learned; 0 if it is not."""
        size = len(self.shares)
        if self.distances is None:
            off = ~np.eye(size, dtype=bool) * ("shares" in self.learned)
            return np.diag(off.ravel().astype(float)).reshape(-1, size, size)
        # In log decay, T_ij grows by T_ij (a_ij - sum_k T_ik a_ik / moving), a being distances
        # over the decay.
        apart, weight = self.distances / self.decay, self.shares / self.moving
        further = self.shares * (apart - np.sum(weight * apart, axis=1, keepdims=True))
        known = [name in self.learned for name in ("moving", "decay")]
        return np.stack([weight, further]) * np.reshape(known, (2, 1, 1))

    def step(self, rise: Float[np.ndarray, " P"], curvature: Float[np.ndarray, "P P"]) -> Plan:
        """Return the plan that a quadratic approximation of the evidence says is best."""
        start = self.free
        free, rate = start, 1.0 / np.linalg.norm(curvature, 2)
        # Projected gradients, to the best shares that may be.
        for _ in range(300):
            free = self.at(free + rate * (rise - curvature @ (free - start))).free
        # The approximation holds near by.
        return self.at(start + np.clip(free - start, -0.5, 0.5))


class Records(NamedTuple):
    """Records of rows: values, where they are at their limits, and where they are below them."""

    value: Cells
    full: Mask
    below: Mask

    @classmethod
    def of(cls, observations: Observations) -> Records:
        """Return the records of observations, 0 where there is none. Right-censored is full."""
        full, below = observations.is_right, observations.is_exact
        return cls(np.where(full | below, observations.lower, 0.0), full, below)

    def rows(self, index: Any) -> Records:
        """Return some of the rows."""
        return Records(*(part[index] for part in self))

    def touched(self, pattern: Bool[np.ndarray, "D D"]) -> Mask:
        """Return the cells whose own demand other records of their row say something of."""
        recorded = self.full | self.below
        return self.full @ pattern & recorded | self.full & (recorded @ pattern.T)


def _above(level: Cells, start: Cells) -> Cells:
    """Return quantiles of a standard normal Z given Z >= start."""
    return -ndtri_exp(np.log1p(-level) + log_ndtr(-start))


def own_demand(
    records: Records, mean: Cells, variance: Cells, shares: Matrix
) -> tuple[Cells, Cells, Matrix]:
    """Return moments of own demand given the records of its row, from m and v without them.

    Also return the slope of the log evidence of all rows in the shares.

    A single output at its limit is integrated out by quadrature. Several are gone through in turn,
    each given mean and variance of the excess of the others.
    """
    value, full, below = records
    found, spread = value.copy(), np.zeros_like(value)
    excess, doubt = np.zeros_like(value), np.zeros_like(value)
    several, fills = full.sum(axis=1) > 1, np.zeros_like(shares)
    for sweep in range(SWEEPS + 1):
        # First without regard to each other.
        T = shares if sweep else np.zeros_like(shares)
        for i in np.flatnonzero(full.any(axis=0)):
            at = full[:, i] & (several | (sweep < 2))
            others = np.arange(len(T)) != i
            inflow = excess[at][:, others] @ T[others]
            doubts = doubt[at][:, others] @ T[others] ** 2
            noise, gap = variance[at] + doubts, value[at] - mean[at] - inflow
            # Exact records of the row say exp(B e - A e^2 / 2) of the excess e.
            lead, s = (mean - value)[at, i, None], np.sqrt(variance)[at, i, None]
            out = below[at] * T[i]
            precision = s**-2.0 + np.sum(out**2 / noise, axis=1, keepdims=True)
            pull = lead / s**2 + np.sum(out * np.where(out > 0, gap, 0.0) / noise, 1, keepdims=True)
            root = np.sqrt(precision)
            z = pull / root
            over = np.maximum((z + _above(LEVELS, -z)) / root, 0.0)
            mass_over = 0.5 * (z**2 - (lead / s) ** 2) - np.log(root * s) + log_ndtr(z)
            # Below its limit an output is full by its inflow alone.
            under = np.maximum(s * _above(LEVELS, lead / s) - lead, 0.0)
            into, unsure = inflow[:, i, None], np.sqrt(doubts[:, i, None])
            reached = (into - under) / np.where(unsure > 0, unsure, 1.0)
            mass_under = np.where(into > 0, log_ndtr(-lead / s) + log_ndtr(reached), -np.inf)
            logs = np.concatenate([LOG_WEIGHTS + mass_over, LOG_WEIGHTS + mass_under], axis=1)
            d, filled = np.concatenate([over, -under], axis=1), {}
            e = np.maximum(d, 0.0)
            for k in np.flatnonzero((T[i] > 0) & full[at].any(axis=0)):
                # The excess of i may be what fills k.
                filled[k] = (T[i, k] * e - gap[:, k, None]) / np.sqrt(noise[:, k, None])
                logs += np.where(full[at, k, None], log_ndtr(filled[k]), 0.0)
            weight = np.exp(logs - logs.max(axis=1, keepdims=True))
            weight /= weight.sum(axis=1, keepdims=True)
            centre, excess[at, i] = np.sum(weight * d, axis=1), np.sum(weight * e, axis=1)
            doubt[at, i] = np.sum(weight * (e - excess[at, i, None]) ** 2, axis=1)
            found[at, i] = value[at, i] + centre
            spread[at, i] = np.sum(weight * (d - centre[:, None]) ** 2, axis=1)
            if sweep == SWEEPS or sweep == 1:
                for k, x in filled.items():
                    ratio = np.exp(-0.5 * x**2 - HALF_LOG_2PI - log_ndtr(x))
                    slope = np.sum(weight * ratio * e, axis=1) / np.sqrt(noise[:, k])
                    fills[i, k] = np.sum(np.where(full[at, k], slope, 0.0))
    inflow = excess @ shares
    scaled, gap = below / variance, np.where(below, value - mean - inflow, 0.0)
    slope = fills + excess.T @ (gap * scaled) - shares * (doubt.T @ scaled)
    found = np.where(below, value - inflow, found)
    spread = np.where(below, doubt @ shares**2, spread)
    return found, spread, slope


def feasible(shares: Matrix) -> Matrix:
    """Return the nearest shares that are at least 0 and sum to at most 1, with none to oneself."""
    shares = np.where(np.eye(len(shares)) > 0, 0.0, np.maximum(shares, 0.0))
    ordered = -np.sort(-shares, axis=1)
    levels = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, len(shares) + 1)
    last = np.maximum(np.sum(ordered > levels, axis=1) - 1, 0)[:, None]
    nearest = np.maximum(shares - np.take_along_axis(levels, last, axis=1), 0.0)
    return np.where(shares.sum(axis=1, keepdims=True) > 1.0, nearest, shares)


class Measured(Gaussian, register=False):
    """A Gaussian Y of which a value y = Y + N(0, w) was measured: y ~ N(mean, scale^2 + w).

    Cells that were seen in part come with one number each, the share of their period, which makes
    their distribution another (`exposed`). Here that number is w: a share that says as much of the
    mean would say too much of the scale.
    """

    def exposed(self, share: Batch, mean: Batch, scale: Batch) -> tuple[Batch, ...]:
        """Return the mean, and the scale of Y and the error together; `share` is w."""
        return mean, jnp.sqrt(jnp.square(scale) + share)


def accelerated(path: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the next point of a fixed-point iteration, from pairs x, g(x) (Anderson, 1965)."""
    points, ends = (
        np.stack([part.ravel() for part in own], axis=1) for own in zip(*path, strict=True)
    )
    rest = ends - points
    dx, dr = np.diff(points, axis=1), np.diff(rest, axis=1)
    weights = np.linalg.lstsq(dr, rest[:, -1], rcond=1e-6)[0] if len(path) > 1 else np.zeros(0)
    # Seven tenths of the way: whole steps may overshoot.
    found = points[:, -1] - dx @ weights + 0.7 * (rest[:, -1] - dr @ weights)
    return found.reshape(path[-1][0].shape)


class Exchange:
    """The messages that cells of a row send each other, in the outputs' own units.

    Attributes
    ----------
    rows, own
        The rows in which cells have messages, and these cells.
    precision, place, share
        Of the messages N(d; y, w): 1 / w, y, and the share of a period that says as much of f.
    slope, curvature
        The derivative of the log evidence in the shares, and less its second derivatives in what is
        learned, both with messages that follow the shares.
    """

    def __init__(
        self, seen: Observations, units: Units, plan: Plan, likelihoods: Sequence[Likelihood]
    ) -> None:
        self.seen, self.units, self.plan = seen, units, plan
        self.links = [likelihood.links[1] for likelihood in likelihoods]
        records = Records.of(seen)
        self.pattern = plan.shares > 0
        if "shares" in plan.learned:
            self.pattern = ~np.eye(len(plan.shares), dtype=bool)
        touched = records.touched(self.pattern)
        self.rows = np.flatnonzero(touched.any(axis=1))
        self.own = touched[self.rows]
        self.records = records.rows(self.rows)
        self.share = self.precision = np.zeros_like(self.records.value)
        self.place = self.records.value
        self.mean, self.slope = self.records.value, np.zeros_like(plan.shares)
        self.centre, self.curvature = plan.free, np.zeros((0, 0))

    def settle(self, state: State) -> tuple[dict[str, Sites], bool]:
        """Pass messages at given hyper-parameters and learn shares; return sites with them.

        Also return whether they were settled from the beginning.
        """
        start, learn = self.plan.free, bool(self.plan.learned)
        sites, first = self.pass_messages(state, state.sites["mean"])
        # Newton steps, between two climbs.
        for _ in range(6 if learn else 0):
            if not self.curvature.size:
                self.curvature = self.differentiate(state, sites)
            before, rise = self.plan.free, self.rise
            self.plan = self.plan.step(rise, self.curvature)
            step = self.plan.free - before
            if np.abs(step).max() < SETTLED:
                break
            sites, _ = self.pass_messages(state, sites)
            change, expected = rise - self.rise, self.curvature @ step
            if change @ step > 0.1 * expected @ step:
                # The slope changed enough to tell: the secant's curvature (Broyden, Fletcher,
                # Goldfarb, Shanno).
                self.curvature += np.outer(change, change) / (change @ step)
                self.curvature -= np.outer(expected, expected) / (expected @ step)
        # A climb at which the first messages hardly moved means needs no further one.
        settled = first < 0.1 and np.abs(self.plan.free - start).max() < SETTLED
        return state.sites | {"mean": sites}, settled

    def pass_messages(self, state: State, sites: Sites) -> tuple[Sites, float]:
        """Return sites with messages at given shares, and how far the first ones moved means."""
        rows, own, units, value = self.rows, self.own, self.units, self.records.value
        latent = _moments(state, "scale", state.sites.get("scale")).mean[rows]
        scale = [np.asarray(g(x)) for g, x in zip(self.links, latent.T, strict=True)]
        deviation = units.scale * np.stack(scale, axis=1)
        noise, path, first = deviation**2, [], 0.0
        sites = Sites(*(np.array(part) for part in sites))
        for number in range(40):
            # A message says as much of f as a record of a share of the period.
            share = noise * self.precision / (1.0 + noise * self.precision)
            latent = _moments(state, "mean", sites)
            f = units.shift + units.scale * latent.mean[rows]
            variance = units.scale**2 * latent.variance[rows]
            # The cavity is q without the message; before the first, bounds stay where they are.
            left = np.maximum(1.0 - variance * share / noise, LEAST_INFORMATION)
            mean = (f - variance * share / noise * self.place) / left
            spread = variance / left + noise
            found, known, slope = own_demand(self.records, mean, spread, self.plan.shares)
            known = np.maximum(known, LEAST_INFORMATION * noise)
            precision = np.maximum(1.0 / known - 1.0 / spread, LEAST_INFORMATION / spread)
            place = (found / known - mean / spread) / precision
            new = noise * precision / (1.0 + noise * precision)
            ends = [
                (part, part * (y - value) / deviation)
                for part, y in ((share, self.place), (new, place))
            ]
            now, ahead = (np.stack(end)[:, own] for end in ends)
            path = [*path, (now, ahead)][-4:]
            if share.any():
                ahead = accelerated(path)
            share, lead = np.zeros(own.shape), np.zeros(own.shape)
            share[own] = np.clip(ahead[0], LEAST_INFORMATION, 1.0 - LEAST_INFORMATION)
            lead[own] = ahead[1]
            self.precision = share / (1.0 - share) / noise
            self.place, self.share = value + lead * deviation / np.where(own, share, 1.0), share
            # Sites of f in model units, side by side, and back in their blocks.
            weight = units.scale * share / noise
            parts = weight * (self.place - units.shift), weight * units.scale
            for old, part in zip(sites, parts, strict=True):
                blocks = np.stack(np.split(part, len(old), axis=1))
                where = np.stack(np.split(own, len(old), axis=1))
                old[:, rows] = np.where(where, blocks, old[:, rows])
            moved = np.max(np.abs(found - self.mean) / deviation, where=own, initial=0.0)
            self.mean, self.slope, first = found, slope, first if number else moved
            # Messages at which the evidence is differentiated must be ten times as exact.
            if moved < (0.1 * SETTLED if self.plan.learned else SETTLED):
                break
        return sites, first

    @property
    def observations(self) -> Observations:
        """What is known of own demand: messages, as records of a share of the period.

        At first these are bounds that hold whatever the shares are: in a row with an output at its
        limit, own demand for another is at most its record.
        """
        rows, own, exposure = self.rows, self.own, np.array(self.seen.exposure)
        lower, upper = np.array(self.seen.lower), np.array(self.seen.upper)
        if self.share.any():
            for end in (lower, upper):
                end[rows] = np.where(own, self.share * self.place, end[rows])
            exposure[rows] = np.where(own, self.share, exposure[rows])
        else:
            lower[rows] = np.where(own & self.records.below, -np.inf, lower[rows])
        return dataclasses.replace(self.seen, lower=lower, upper=upper, exposure=exposure)

    @property
    def rise(self) -> Float[np.ndarray, " P"]:
        """The derivative of the log evidence and the log prior in what is learned."""
        prior = self.plan.precision * (self.centre - self.plan.free)
        return np.sum(self.plan.directions * self.slope, axis=(1, 2)) + prior

    def differentiate(self, state: State, sites: Sites) -> Float[np.ndarray, "P P"]:
        """Return less the second derivatives of the log evidence in what is learned.

        The evidence has its derivative from the rows, with messages held, as expectation
        propagation makes it stationary in these. Its second derivatives are differences of the
        first, with messages that have followed: what is known of an excess only by where it went
        is then not taken for known.
        """
        rows, (sites, _) = [], self.pass_messages(state, sites)
        for way in self.plan.directions:
            near = copy.copy(self)
            near.plan = self.plan._replace(shares=self.plan.shares + DIFFERENCE * way)
            if way.any():
                near.pass_messages(state, sites)
            change = np.sum(self.plan.directions * (self.slope - near.slope), axis=(1, 2))
            rows.append(change / DIFFERENCE)
        values, vectors = np.linalg.eigh(0.5 * (np.stack(rows) + np.stack(rows).T))
        return (vectors * np.maximum(values, 0.0)) @ vectors.T + np.diag(self.plan.precision)

    @property
    def errors(self) -> Matrix:
        """Standard errors of shares that are learned, given hyper-parameters; 0 of others."""
        ways = self.plan.directions
        if not self.curvature.size:
            return np.zeros_like(self.plan.shares)
        return np.sqrt(np.einsum("pij,pq,qij->ij", ways, np.linalg.inv(self.curvature), ways))

    def told(self, task: Task) -> Task:
        """Return a task with what is known of own demand as its observations."""
        return dataclasses.replace(task, observations=self.units.apply(self.observations))

    def terms(self, task: Task) -> tuple[Terms, ...]:
        """Return the cells of a climb: those with messages as measured with an error."""
        y, w = np.zeros((2, *self.seen.shape))
        y[self.rows], w[self.rows] = self.place, 1.0 / np.where(self.own, self.precision, 1.0)
        y, w = (y - self.units.shift) / self.units.scale, w / self.units.scale**2
        found = []
        for part in self.told(task).cells:
            if part.exposure is not None:
                at, links = (part.row, part.column[:, 0]), part.likelihood.links
                part = dataclasses.replace(
                    part,
                    lower=y[at],
                    upper=y[at],
                    exposure=w[at],
                    likelihood=Measured(**dict(zip(("mean", "scale"), links, strict=True))),
                )
            found.append(part)
        return tuple(found)


def _moments(state: State, role: str, sites: Sites | None) -> Moments:
    """Return means and variances of a role's latent values at all rows, side by side."""
    free, problem = state.free[role], state.problem
    if sites is None:
        mean = free.constant(len(problem.inputs))
        return Moments(mean, np.zeros_like(mean))
    q = RoleState(free, sites, problem, role, state.jitter)
    parts = [
        np.concatenate([np.stack(own.gamma) for own in q.marginals(rows)], axis=2)
        for rows in problem.stretches
    ]
    return Moments(*np.concatenate(parts, axis=1))


def allocate_demand(
    task: Task, exchange: Exchange, settings: NaturalSettings
) -> tuple[Task, tuple[str, ...]]:
    """Fit a model to own demand, by messages and climbs of the engine in turn.

    Return the task of the model that was found, with its messages as observations, and notes.
    """
    climbs, most = best_climbs(exchange.told(task), settings), 8
    state, sites, settled = climbs.best, climbs.best.sites, False
    with blas_threads_for(max(state.problem.order(r, lmc) for r, lmc in state.free.items())):
        for _ in range(most):
            sites, settled = exchange.settle(state)
            if settled or climbs.status == "interrupted":
                break
            # With messages held, a few steps of the engine.
            climbs.left = 8
            problem = dataclasses.replace(climbs.whole, terms=exchange.terms(task))
            state = climbs.climb(problem, state.free, sites, state.jitter)
        if exchange.plan.learned:
            exchange.curvature = exchange.differentiate(state, sites["mean"])
    said = (
        f"What moved between the outputs was not settled after {most} climbs: take own demand in "
        "rows with several censored outputs for less certain than it is said to be."
    )
    parts = {"model": climbs.model(state.free), "candidates": (), "explore": False, "spare": ()}
    return dataclasses.replace(exchange.told(task), **parts), () if settled else (said,)


def draw_own_demand(
    random: np.random.Generator, records: Records, mean: Cells, noise: Cells, shares: Matrix
) -> Cells:
    """Draw own demand given the records of its row, for draws of mean and variance of each cell.

    Outputs at their limits are drawn in turn, each given the others (Gibbs sampling).
    """
    value, full, below = records
    shape = np.shape(mean)
    own = np.broadcast_to(value, shape).copy()
    several = full.sum(axis=1) > 1
    # Rows with one output at its limit need one sweep.
    for sweep in range(13):
        T = shares if sweep else np.zeros_like(shares)
        for i in np.flatnonzero(full.any(axis=0)):
            at = full[:, i] & (several | (sweep < 2))
            d, limit = own[:, at], value[at]
            e = np.where(full[at], np.maximum(d - limit, 0.0), 0.0)
            e[..., i] = 0.0
            inflow, m, v = e @ T, mean[:, at], noise[:, at]
            lead, s, out = m[..., i] - limit[:, i], np.sqrt(v[..., i]), below[at] * T[i]
            gap = np.where(out > 0, limit - m - inflow, 0.0)
            root = np.sqrt(s**-2.0 + np.sum(out**2 / v, axis=-1))
            z = (lead / s**2 + np.sum(out * gap / v, axis=-1)) / root
            # Another output that is full must be so: by its own demand, or by enough from here.
            lacks = np.where(full[at] & (T[i] > 0), limit - d - inflow, -np.inf)
            lacks[..., i] = -np.inf
            with np.errstate(divide="ignore", invalid="ignore"):
                least = np.where(np.isfinite(lacks), lacks / T[i], -np.inf).max(axis=-1)
            start = np.maximum(least, 0.0)
            above = _above(random.uniform(size=lead.shape), start * root - z)
            over = np.maximum((z + above) / root, start)
            mass = 0.5 * (z**2 - (lead / s) ** 2) - np.log(root * s) + log_ndtr(z - start * root)
            # Below its limit: by no more than flows in.
            tail = log_ndtr(-lead / s), log_ndtr((-inflow[..., i] - lead) / s)
            can = (inflow[..., i] > 0) & (least <= 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                width = np.where(
                    can, np.log(-np.expm1(np.minimum(tail[1] - tail[0], 0.0))), -np.inf
                )
                level = np.log(random.uniform(size=lead.shape))
                log_cdf = np.logaddexp(tail[1], tail[0] + width + level)
            under = np.clip(
                m[..., i] + s * ndtri_exp(np.where(can, log_cdf, -1.0)) - limit[:, i],
                -inflow[..., i],
                0.0,
            )
            lower = np.log(random.uniform(size=lead.shape)) < -np.logaddexp(
                0.0, mass - np.where(can, tail[0] + width, -np.inf)
            )
            own[:, at, i] = limit[:, i] + np.where(can & lower, under, over)
    excess = np.where(full, np.maximum(own - value, 0.0), 0.0)
    return np.where(below, value - excess @ shares, own)


def lost_of(records: Records, own: Cells, shares: Matrix) -> Cells:
    """Return what of the excess of each cell was not served elsewhere: sums are those of d - V.

    Where inflow exceeds the room that is left, those who came have equal chances. What moved to a
    record that is missing counts as lost.
    """
    value, full, below = records
    excess = np.where(full, np.maximum(own - value, 0.0), 0.0)
    inflow, room = excess @ shares, np.where(full, np.maximum(value - own, 0.0), 0.0)
    served = np.where(below, 1.0, np.minimum(1.0, room / np.where(inflow > 0, inflow, np.inf)))
    return excess * (1.0 - served @ shares.T)
