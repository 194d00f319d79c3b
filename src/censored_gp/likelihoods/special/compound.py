"""A sum Y of a Poisson number of gamma jumps, in log space: density, tails and partial moments.

There are N ~ Poisson(rate) jumps of a Gamma law of the given shape a and unit scale, so that
E[e^(s Y)] = exp(rate (w^-a - 1)) with w = 1 - s. The density at x > 0 is a sum over the number of
jumps (Dunn and Smyth 2005); probabilities are integrals over w on a parabola through the saddle
point, to full relative precision however far out.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from censored_gp.likelihoods.special.elementary import (
    Batch,
    Numbers,
    Pair,
    alike,
    log1mexp,
    log_ratio_excess,
    stirling_error,
    with_slopes,
)

# A sum over the number of jumps ends when its terms are below this part of the total.
NEGLIGIBLE = 1e-14
# Its strides in standard deviations, where it is long: the error is exp(-2 pi^2 / STRIDE^2).
STRIDE = 0.8
# The logarithm of one over the relative error of an integral.
DIGITS = 30.0
# Up to so many jumps on average, at the saddle point, zero is left out of the integral.
FEW = 0.3
MAXIMUM_STEPS = 2000
# Smaller amounts are taken for this.
LEAST = 1e-290


def exp_curvature(x: Numbers) -> Batch:
    """Return (exp(x) - 1 - x) / x^2, smooth through x = 0."""
    x = jnp.asarray(x, float)
    near = jnp.abs(x) < 0.7
    inner, outer = jnp.where(near, x, 0.0), jnp.where(near, 1.0, x)
    series = jnp.zeros_like(x)
    for k in reversed(range(16)):
        series = 1.0 / math.factorial(k + 2) + inner * series
    return jnp.where(near, series, (jnp.expm1(outer) - outer) / outer**2)


def log_jump_sum(jumps: Numbers, shape: Numbers) -> Batch:
    """Return log R, R = sum_j>0 P(j; n) K(a j; a n), for n = `jumps` and a = `shape`.

    P(j; n) = n^j e^-n / j! and K(c; x) = x^c e^-x / Gamma(c). With n the likeliest number of jumps
    given x, the density of Y is R e^-D / x, where D is half the deviance.
    """
    return _log_jump_sum(jnp.maximum(jnp.asarray(jumps, float), LEAST), jnp.asarray(shape, float))


@with_slopes
def _log_jump_sum(asked: tuple[bool, bool], n: Batch, a: Batch) -> tuple[Batch, tuple]:
    value, excess, in_shape = _jump_sums(n, a, asked[1])
    return value, ((1.0 + a) * (excess / n), in_shape)


def _jump_sums(n: Batch, a: Batch, in_shape: bool) -> tuple[Batch, ...]:
    """Return log R, the mean of j - n under its terms, and d log R / da.

    The terms are exp[(1 + a) j E - e(j) - e(a j)] with E = log(n / j) - n / j + 1 and e the error
    of Stirling's formula. The sum goes from the likeliest j to both sides, over every j or, where
    that is long and smooth, in strides of a part of its spread, which is as exact. The shape may be
    an array of fewer axes than n: what depends on it alone is computed once.
    """
    stride = STRIDE * jnp.sqrt(n / (1.0 + a))
    # Strides are as exact if the term of zero is negligible.
    smooth = ((1.0 + a) * n > 34.0) & (stride > 1.0)
    centre = jnp.where(smooth, n, jnp.maximum(jnp.round(n), 1.0))
    step = jnp.where(smooth, stride, 1.0)

    def log_term(j: Batch) -> Batch:
        return j * log_ratio_excess(n / j, (n - j) / j)

    top = (1.0 + a) * log_term(centre)

    def beside(sums: tuple, k: Any) -> tuple[Batch, tuple]:
        """Add the terms that are k steps away from the centre."""
        possible = centre + k * step > 1e-3 * n
        j = jnp.where(possible, centre + k * step, centre)

        def error(a: Batch) -> Batch:
            return stirling_error(1.0 / j) + stirling_error(1.0 / (a * j))

        # digamma(a j) = log(a j) - 1 / (2 a j) + e'(a j).
        errors, slope = jax.jvp(error, (a,), (jnp.ones_like(a),)) if in_shape else (error(a), 0.0)
        drop = log_term(j)
        term = jnp.where(possible, jnp.exp((1.0 + a) * drop - top - errors), 0.0)
        each = term, term * (j - n), term * (drop + (0.5 / a - slope))
        return term, tuple(s + new for s, new in zip(sums, each, strict=True))

    def advance(state: tuple) -> tuple:
        k, _, sums = state
        left, sums = beside(sums, -k)
        right, sums = beside(sums, k)
        return k + 1.0, left + right > NEGLIGIBLE * sums[0], sums

    def unfinished(state: tuple) -> Bool[Array, ""]:
        return (state[0] < MAXIMUM_STEPS) & jnp.any(state[1])

    _, start = beside((jnp.zeros(smooth.shape),) * 3, 0.0)
    state = (1.0, jnp.ones(smooth.shape, bool), start)
    total, excess, slope = lax.while_loop(unfinished, advance, state)[2]
    log_sum = top + jnp.log(step * total) + 0.5 * jnp.log(a) - math.log(2.0 * math.pi)
    return log_sum, excess / total, slope / total


def log_compound_tails(rate: Numbers, shape: Numbers, x: Numbers) -> Pair:
    """Return (log P(Y <= x), log P(Y > x)) for x > 0."""
    rate, shape, x = alike(rate, shape, jnp.maximum(x, LEAST))
    below, _, log_jumps = _path(rate, shape, x)
    part = _log_part(rate, shape, x)
    # Of few jumps the part is without the probability of zero.
    few = below & (log_jumps < math.log(FEW))
    zero, whole = -rate, log1mexp(-rate)
    cdf = jnp.where(few, jnp.logaddexp(zero, part), part)
    larger = few & (cdf > -0.7)
    rest = whole + log1mexp(jnp.minimum(jnp.where(larger, part - whole, -1.0), -1e-300))
    other = log1mexp(jnp.minimum(jnp.where(below, cdf, part), -1e-300))
    survival = jnp.where(below, jnp.where(larger, rest, other), part)
    last = log1mexp(jnp.minimum(jnp.where(larger, rest, -1.0), -1e-300))
    return jnp.where(below, jnp.where(larger, last, cdf), other), survival


def log_tilted_tails(order: Numbers, rate: Numbers, shape: Numbers, x: Numbers) -> Pair:
    """Return both log tails of the density of Y times x^order / E[Y^order], of order 1 or 2.

    They have no derivatives.
    """
    arguments = alike(rate, shape, jnp.maximum(x, LEAST), order)
    below, part = _path(*arguments)[0], _integrals(*arguments)[0]
    other = log1mexp(jnp.minimum(part, -1e-300))
    return jnp.where(below, part, other), jnp.where(below, other, part)


@with_slopes
def _log_part(_: tuple[bool, ...], rate: Batch, a: Batch, x: Batch) -> tuple[Batch, tuple]:
    value, *slopes = _integrals(rate, a, x)
    return value, tuple(slopes)


def _path(rate: Batch, a: Batch, x: Batch, order: Batch | None = None) -> tuple[Batch, ...]:
    """Return where the lower tail is computed, x w0, and the log of rate w0^-a.

    The path crosses the real line at w0, about the saddle point, but not nearer to the pole than a
    standard deviation of the integrand, which falls by exp(-4 u^2) at least.
    """
    log_jumps = (jnp.log(rate) + a * jnp.log(x / a)) / (1.0 + a)
    saddle = a * jnp.exp(jax.nn.softplus((1.0 + a) * log_jumps) / (1.0 + a))
    saddle = saddle if order is None else saddle + a + order
    below, peak = x < jnp.maximum(saddle, 1.5), jnp.maximum(saddle, 4.0)
    gap = jnp.minimum(_spread(rate * (x / peak) ** a, a, peak), 0.3)
    beside = x / (1.0 - jnp.where(below, gap, -gap)) ** 2
    peak = jnp.where(below, jnp.maximum(peak, beside), jnp.minimum(peak, beside))
    return below, peak, jnp.log(rate) + a * jnp.log(x / peak)


def _spread(jumps: Batch, a: Batch, peak: Batch) -> Batch:
    """Return the standard deviation, in u, of the integrand."""
    return 1.0 / jnp.sqrt(2.0 * peak + 2.0 * a + 2.0 * a * (2.0 * a + 1.0) * jumps)


def _integrals(
    rate: Batch, a: Batch, x: Batch, order: Batch | None = None
) -> tuple[Batch, Batch, Batch, Batch]:
    """Return the log of a tail, and its slopes in rate, shape and x.

    P(Y <= x) = 1 / (2 pi i) int exp(rate w^-a + x w - rate - x) dw / (w - 1) on a path that passes
    the pole w = 1 on its right; one that passes on its left has -P(Y > x). Without zero it is
    exp(rate w^-a) - 1. The trapezoid rule on w = w0 (1 + i u)^2, with steps h of u, is corrected
    for the pole at u = i d by a part 1 / (exp(2 pi d / h) - 1) of the residue.
    """
    below, peak, log_jumps = _path(rate, a, x, order)
    w, side = peak / x, jnp.where(below, 1.0, -1.0)
    log_w, jumps = jnp.log(w), jnp.exp(log_jumps)
    few = (jumps < FEW) & (order is None)
    less, more = jnp.where(few, jumps, 0.0), jnp.where(few, 0.0, jumps)
    spread = _spread(jumps, a, peak)
    # The error of steps h is exp(G(t) - 2 pi t / h) if the integrand grows by exp(G) to u = +-i t.
    t = jnp.stack([jnp.minimum(far * spread, 0.85) for far in (1.0, 2.0, 4.0, 6.0, 8.0)])
    shift = jnp.stack([-t, t])
    log_z = -2.0 * a * jnp.log1p(shift)
    growth = jumps * jnp.expm1(log_z) + jnp.where(few, log_z, 0.0) + peak * shift * (2.0 + shift)
    steps = 2.0 * math.pi * t / (DIGITS + jnp.maximum(growth, 0.0))
    best = jnp.max(steps, axis=1)
    step = jnp.min(best, axis=0)
    # How far off the path, on the side of the pole, that error is the one.
    towards = jnp.where(below, steps[0], steps[1])
    reach = jnp.max(jnp.where(towards == jnp.where(below, best[0], best[1]), t, 0.0), axis=0)
    tilt = rate * a * w**-a

    def terms(u: Batch) -> tuple[Batch, ...]:
        root, log_root = lax.complex(jnp.ones_like(u), u), 0.5 * jnp.log1p(u**2)
        log_root = lax.complex(log_root, jnp.arctan(u))
        square = root * root
        z = jnp.exp(-2.0 * a * log_root)
        value = side * root * jnp.exp(peak * (square - 1.0) + more * (z - 1.0))
        if order is None:
            # (exp(q) - 1) / q at q = rate w^-a, where that is small.
            q, series = less * z, jnp.zeros_like(z)
            for k in reversed(range(11)):
                series = 1.0 / math.factorial(k + 1) + q * series
            rise = value * jnp.where(few, z * (1.0 + q * series), jumps * z)
            value = value * jnp.where(few, z * series, 1.0)
        else:
            twice = (tilt * z + (a + 1.0)) / (tilt + (a + 1.0)) / square
            value = value * z / square * jnp.where(order == 1, 1.0, twice)
            rise = jnp.zeros_like(value)
        pole = 1.0 / (w * square - 1.0)
        rise = rise * pole
        slope = -rise * (log_w + 2.0 * log_root)
        return tuple(jnp.real(each) for each in (value * pole, rise, slope, value))

    def advance(state: tuple) -> tuple:
        k, sums = state
        return k + 1.0, tuple(s + new for s, new in zip(sums, terms(k * step), strict=True))

    def unfinished(state: tuple) -> Bool[Array, ""]:
        square = (state[0] * step) ** 2
        left = more * jnp.expm1(-a * jnp.log1p(square)) - peak * square
        return (state[0] < MAXIMUM_STEPS) & jnp.any(left > -DIGITS)

    start = tuple(0.5 * term for term in terms(jnp.zeros_like(x)))
    total, rise, slope, value = lax.while_loop(unfinished, advance, (1.0, start))[1]
    # rate (w0^-a - 1) + x (w0 - 1), less what was taken out of the integrand.
    log_scale = rate * (-a * log_w + (a * log_w) ** 2 * exp_curvature(-a * log_w))
    log_scale = log_scale + x * (log_w + log_w**2 * exp_curvature(log_w))
    log_scale = log_scale + jnp.where(few, log_jumps - jumps, 0.0)
    log_scale = log_scale + jnp.log(2.0 * w * step / math.pi)
    if order is not None:
        second = jnp.log((rate * a + (a + 1.0)) / (tilt + (a + 1.0))) + log_w
        log_scale = log_scale - (a + 1.0) * log_w - jnp.where(order == 1, 0.0, second)
    gap = jnp.abs(1.0 - 1.0 / jnp.sqrt(w))
    near = gap < reach
    part = jnp.exp(-jnp.where(near, log_scale, 0.0)) / jnp.expm1(2.0 * math.pi * gap / step)
    part = jnp.where(near, part, 0.0)
    total = total - part * jnp.where(few, -jnp.expm1(-rate), 1.0)
    rise = rise - part * rate
    return log_scale + jnp.log(total), rise / total / rate - 1.0, slope / total, value / total
