"""Quantiles of any family from its log tails."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int

from censored_gp.likelihoods.special.elementary import Batch, Mask, Pair
from censored_gp.likelihoods.support import Support

LARGEST_COUNT = 2.0**53
MAXIMUM_STEPS = 200
# The relative error of a log tail, or of the value, below which a Newton step is the last.
SETTLED = 1e-13
# The slack of the comparison for counts: the quantile at P(Y <= k) must be k, not k + 1.
ROUNDING = 1e-13

Tails = Callable[[Batch], Pair]
Density = Callable[[Batch], Batch]


def invert(
    log_tails: Tails,
    log_density: Density,
    log_lower: Batch,
    log_upper: Batch,
    support: Support,
    start: Batch | None = None,
    leap: Batch | None = None,
) -> Batch:
    """Return the smallest y whose lower tail reaches exp(log_lower), in the given support.

    The level comes as the logs of both tails, exp(log_lower) + exp(log_upper) = 1; the smaller
    of the two is solved for, so that quantiles far out on either side keep their digits. A good
    ``start`` saves steps of the search, and for counts to know by how much it may be wrong: a
    ``leap``, else that of a Poisson count from its mean.
    """
    below = log_lower < log_upper
    target = jnp.where(below, log_lower, log_upper)
    first = jnp.full_like(target, support.inside[0])
    if start is not None:
        usable = (start > support.lower) & (start < support.upper) & jnp.isfinite(start)
        first = jnp.where(usable, start, first)
    if support.discrete:
        far = jnp.sqrt(jnp.maximum(first, 0.0)) if leap is None else leap
        return _invert_counts(log_tails, below, target, support, first, 1.0 + jnp.floor(far))
    return _invert_continuous((log_tails, log_density), below, target, support, first)


def _invert_counts(
    log_tails: Tails, below: Mask, target: Batch, support: Support, start: Batch, leap: Batch
) -> Batch:
    """Return the smallest whole number at which the level is reached.

    From the start on in leaps, each longer than the last, until it lies between two numbers that
    were tried; then by bisection.
    """
    lowest, highest = support.lower - 1.0, min(support.upper, LARGEST_COUNT)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        failing, reached, leap = state
        middle = _between_counts(failing, reached)
        middle = jnp.where(failing == lowest, jnp.maximum(reached - leap, lowest + 1.0), middle)
        middle = jnp.where(reached == highest, jnp.minimum(failing + leap, highest - 1.0), middle)
        untried = (failing == lowest) & (reached == highest)
        middle = jnp.where(untried, jnp.clip(jnp.floor(start), lowest + 1.0, highest - 1.0), middle)
        lower, upper = log_tails(middle)
        slack = ROUNDING * (1.0 + jnp.abs(target))
        enough = jnp.where(below, lower >= target - slack, upper <= target + slack)
        found = reached - failing <= 1.0
        enough, middle = enough | found, jnp.where(found, reached, middle)
        longer = jnp.where(untried, leap, 3.0 * leap)
        return jnp.where(enough, failing, middle), jnp.where(enough, middle, reached), longer

    ends = jnp.full_like(target, lowest), jnp.full_like(target, highest)
    return lax.while_loop(lambda s: jnp.any(s[1] - s[0] > 1.0), step, (*ends, leap))[1]


def _between_counts(failing: Batch, reached: Batch) -> Batch:
    """Return a whole number half-way, of numbers far apart half-way between their exponents."""
    wide = reached > 4.0 * (failing + 2.0)
    geometric = jnp.sqrt((failing + 2.0) * reached)
    return jnp.floor(jnp.where(wide, geometric, 0.5 * (failing + reached)))


def _invert_continuous(
    curves: tuple[Tails, Density], below: Mask, target: Batch, support: Support, start: Batch
) -> Batch:
    """Return the root by Newton steps on the log tail, kept inside a shrinking bracket.

    Where a Newton step leaves the bracket, or does not halve the step before last, the bracket is
    bisected in the order of floating-point numbers, which finds any root to the last digit in 64
    steps whatever its magnitude.
    """
    (log_tails, log_density), sign = curves, jnp.where(below, 1.0, -1.0)
    at_atom = jnp.zeros_like(below)
    if support.atom:
        lower, upper = log_tails(jnp.full_like(target, support.lower))
        at_atom = jnp.where(below, lower >= target, upper <= target)

    def step(state: tuple) -> tuple:
        count, low, high, y, last, before, _ = state
        lower, upper = log_tails(y)
        tail = jnp.where(below, lower, upper)
        residual = sign * (tail - target)
        low, high = jnp.where(residual < 0, y, low), jnp.where(residual < 0, high, y)
        change = residual * jnp.exp(tail - log_density(y))
        newton = y - change
        if support.lower == 0.0:
            # Towards zero a tail is a power of y, whose logarithm is straight in log y.
            newton = jnp.where(below, y * jnp.exp(-change / y), newton)
        middle = _middle(low, high)
        quick = (newton > low) & (newton < high) & (jnp.abs(newton - y) <= 0.5 * before)
        following = jnp.where(quick, newton, middle)
        # At the root the bracket is as narrow as rounding errors are wide: no step is of use there.
        near = jnp.abs(residual) <= SETTLED * (1.0 + jnp.abs(target))
        following = jnp.where(near & ~quick, y, following)
        moved = ~near & ~at_atom & (jnp.abs(following - y) > SETTLED * jnp.abs(y))
        # After a bisection Newton's steps are trusted anew.
        own = jnp.where(quick, jnp.abs(following - y), jnp.inf)
        return count + 1, low, high, following, own, last, moved

    low, high = (jnp.full_like(target, end) for end in (support.lower, support.upper))
    endless = jnp.full_like(target, jnp.inf)
    state = (0, low, high, start, endless, endless, ~at_atom)
    found = lax.while_loop(lambda s: (s[0] < MAXIMUM_STEPS) & jnp.any(s[6]), step, state)[3]
    return jnp.where(at_atom, support.lower, found)


def _middle(low: Batch, high: Batch) -> Batch:
    """Return the number half-way from low to high in the order of float64 numbers."""

    def turned(bits: Int[Array, "*#batch"]) -> Int[Array, "*#batch"]:
        """Return the rank of a float64 of these bits among all others, or the bits of a rank."""
        return jnp.where(bits < 0, np.int64(-(2**63)) - bits, bits)

    a, b = (turned(lax.bitcast_convert_type(x, jnp.int64)) for x in (low, high))
    return lax.bitcast_convert_type(turned((a >> 1) + (b >> 1) + (a & b & 1)), jnp.float64)
