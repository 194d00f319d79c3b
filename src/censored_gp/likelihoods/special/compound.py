"""A sum Y of a Poisson number of gamma jumps, in log space: density, tails and partial moments.

There are N ~ Poisson(rate) jumps of a Gamma law of the given shape a and unit scale, so that
E[e^(s Y)] = exp(rate (w^-a - 1)) with w = 1 - s. The density at x > 0 is a sum over the number of
jumps (Dunn and Smyth 2005); probabilities are integrals over w on a parabola through the saddle
point, to full relative precision however far out.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.scipy.special import digamma
from jaxtyping import Array, Bool

from censored_gp.likelihoods.special.elementary import (
    Batch,
    Numbers,
    Pair,
    log1mexp,
    log_ratio_excess,
    stirling_error,
)

TERMS = 1e-16
"""A sum ends when its terms are below this part of the total."""
MAXIMUM_STEPS = 2000
SMOOTH = 40.0
"""If no jump at all is less likely than exp(-this), the sum over their number may take strides."""
STRIDE = 0.72
"""Its strides in standard deviations: the error of such a sum is exp(-2 pi^2 / STRIDE^2)."""


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
    jumps, shape = jnp.broadcast_arrays(jnp.asarray(jumps, float), jnp.asarray(shape, float))
    return _log_jump_sum(jnp.maximum(jumps, 1e-290), shape)


@jax.custom_jvp
def _log_jump_sum(n: Batch, a: Batch) -> Batch:
    return _jump_sums(n, a)[0]


def _log_jump_sum_jvp(primals: tuple, tangents: tuple) -> Pair:
    (n, a), (dn, da) = primals, tangents
    value, excess, slope = _jump_sums(n, a, not isinstance(da, SymbolicZero))
    change = jnp.zeros_like(value)
    if not isinstance(dn, SymbolicZero):
        change = change + (1.0 + a) * (excess / n) * dn
    if not isinstance(da, SymbolicZero):
        change = change + slope * da
    return value, change


_log_jump_sum.defjvp(_log_jump_sum_jvp, symbolic_zeros=True)


def _jump_sums(n: Batch, a: Batch, in_shape: bool = False) -> tuple[Batch, Batch, Batch]:
    """Return log R, the mean of j - n under its terms, and d log R / da.

    The terms are summed from the largest outwards. Where they are many they change slowly, and
    strides of a part of their spread are as exact as a sum over every j.
    """
    smooth = (1.0 + a) * n > SMOOTH
    spread = jnp.sqrt(n / (1.0 + a))
    stride = jnp.where(smooth, jnp.maximum(STRIDE * spread, 1.0), 1.0)
    peak = jnp.where(stride > 1.0, n, jnp.maximum(jnp.round(n), 1.0))

    def log_term(j: Batch) -> Batch:
        errors = stirling_error(1.0 / j) + stirling_error(1.0 / (a * j))
        return (1.0 + a) * j * log_ratio_excess(n / j, (n - j) / j) - errors

    def slope(j: Batch) -> Batch:
        if not in_shape:
            return jnp.zeros_like(j)
        direct = j * log_ratio_excess(n / j, (n - j) / j)
        return direct + j * (jnp.log(a * j) - digamma(a * j))

    top = log_term(peak)

    def step(state: tuple) -> tuple:
        k, _, sums = state
        new, sides = jnp.zeros_like(n), (peak - k * stride, peak + k * stride)
        for j in sides:
            possible = j > 0.5 * jnp.minimum(stride, 1.0)
            j = jnp.where(possible, j, peak)
            term = jnp.where(possible, jnp.exp(log_term(j) - top), 0.0)
            sums = tuple(s + term * g for s, g in zip(sums, (1.0, j - n, slope(j)), strict=True))
            new = new + term
        return k + 1.0, new, sums

    def unfinished(state: tuple) -> Bool[Array, ""]:
        k, new, sums = state
        return (k < MAXIMUM_STEPS) & jnp.any(new > TERMS * sums[0])

    first = jnp.ones_like(n), peak - n, slope(peak)
    _, _, (total, excess, change) = lax.while_loop(unfinished, step, (1.0, first[0], first))
    log_sum = top + jnp.log(stride * total) + 0.5 * jnp.log(a) - math.log(2.0 * math.pi)
    return log_sum, excess / total, change / total


def log_compound_tails(rate: Numbers, shape: Numbers, x: Numbers, order: Numbers = 0.0) -> Pair:
    """Return (log P(Y <= x), log P(Y > x)) for x > 0.

    With an `order` m of 1 or 2 they are those of the law that has the density of Y times
    x^m / E[Y^m], without derivatives.
    """
    every = (jnp.asarray(each, float) for each in (rate, shape, x, order))
    rate, shape, x, order = jnp.broadcast_arrays(*every)
    below, part = _is_below(rate, shape, x, order), _log_part(rate, shape, x, order)
    # The probability of zero, and of all else.
    zero = jnp.where(order > 0, -jnp.inf, -rate)
    whole = jnp.where(order > 0, 0.0, log1mexp(-rate))
    cdf = jnp.logaddexp(zero, part)
    small = below & (cdf < -0.7)
    rest = whole + log1mexp(jnp.minimum(jnp.where(below, part - whole, -1.0), -1e-300))
    survival = jnp.where(below, jnp.where(small, log1mexp(jnp.where(small, cdf, -1.0)), rest), part)
    return jnp.where(small, cdf, log1mexp(jnp.minimum(survival, -1e-300))), survival


def _saddle(rate: Batch, a: Batch, x: Batch, order: Batch) -> Batch:
    """Return x w at the saddle point, where w = 1 would be that of the mean."""
    log_jumps = (jnp.log(rate) + a * jnp.log(x / a)) / (1.0 + a)
    jumps = jnp.exp(jax.nn.softplus((1.0 + a) * log_jumps) / (1.0 + a))
    return a * jumps + jnp.where(order > 0, a + order, 0.0)


def _is_below(rate: Batch, a: Batch, x: Batch, order: Batch) -> Array:
    """Return where the lower tail is computed and the upper one derived."""
    return x < jnp.maximum(_saddle(rate, a, x, order), 1.5)


@jax.custom_jvp
def _log_part(rate: Batch, a: Batch, x: Batch, order: Batch) -> Batch:
    return _integrals(rate, a, x, order)[0]


def _log_part_jvp(primals: tuple, tangents: tuple) -> Pair:
    value, *slopes = _integrals(*primals)
    pairs = zip(slopes, tangents, strict=False)
    return value, sum(
        (s * t for s, t in pairs if not isinstance(t, SymbolicZero)), jnp.zeros_like(value)
    )


_log_part.defjvp(_log_part_jvp, symbolic_zeros=True)


def _integrals(rate: Batch, a: Batch, x: Batch, order: Batch) -> tuple[Batch, ...]:
    """Return the log of a tail, and its slopes in rate, shape and x.

    P(0 < Y <= x) = 1 / (2 pi i) int [exp(rate w^-a) - 1] exp(x w - rate - x) dw / (w - 1) on a
    path that passes the pole w = 1 on its right; one that passes on its left has -P(Y > x). The
    trapezoid rule on w = w0 (1 + i u)^2, with steps h of u, is corrected for the pole at u = i d,
    by a part 1 / (exp(2 pi d / h) - 1) of its residue.
    """
    below, peak = _is_below(rate, a, x, order), _saddle(rate, a, x, order)
    peak = jnp.maximum(peak, FLOOR)

    def spread(peak: Batch) -> Batch:
        jumps = rate * (x / peak) ** a
        return 1.0 / jnp.sqrt(2.0 * peak + 2.0 * a + 2.0 * a * (2.0 * a + 1.0) * jumps)

    gap = jnp.minimum(GAP * spread(peak), 0.3)
    beside = x / (1.0 - jnp.where(below, gap, -gap)) ** 2
    peak = jnp.where(below, jnp.maximum(peak, beside), jnp.minimum(peak, beside))
    w = peak / x
    log_w = jnp.log(w)
    log_jumps = jnp.log(rate) - a * log_w
    jumps = jnp.exp(log_jumps)
    side = jnp.where(below, 1.0, -1.0)
    # Up to this number of jumps exp(jumps) - 1 is computed as such, and relative to its size.
    many, few = jumps > 30.0, jnp.clip(jumps, 1e-30, 30.0)
    # The error of steps h is exp(G(t) - 2 pi t / h) if the integrand grows by exp(G) to u = +-i t.
    step = jnp.full_like(x, jnp.inf)
    for sign in (-1.0, 1.0):
        best = jnp.zeros_like(x)
        for share in SHIFTS:
            t = jnp.minimum(share * spread(peak), 0.85)
            log_z = -2.0 * a * jnp.log1p(sign * t)
            growth = jumps * jnp.expm1(log_z) + jnp.where(many, 0.0, log_z)
            growth = growth + peak * sign * t * (2.0 + sign * t)
            best = jnp.maximum(best, 2.0 * math.pi * t / (DIGITS + jnp.maximum(growth, 0.0)))
        step = jnp.minimum(step, best)
    size = jnp.where(many, 1.0, -jnp.expm1(-few))
    log_size = jnp.where(jumps < 1e-20, log_jumps, jnp.log(size))
    plain = order == 0
    tilt = rate * a / w**a
    log_size = jnp.where(
        plain,
        log_size,
        -(a + 1.0) * log_w
        - jnp.where(order == 1, 0.0, log_w + jnp.log((rate * a + a + 1.0) / (tilt + a + 1.0))),
    )

    def terms(u: Batch) -> tuple[Batch, ...]:
        root, log_root = 1.0 + 1j * u, 0.5 * jnp.log1p(u**2) + 1j * jnp.arctan(u)
        z = jnp.exp(-2.0 * a * log_root)
        grown = jnp.exp(jumps * (z - 1.0))
        less = jnp.where(many, grown, jnp.expm1(few * z) * jnp.exp(-few)) / size
        once, twice = grown * z / root**2, (tilt * z + a + 1.0) / (tilt + a + 1.0) / root**2
        less = jnp.where(plain, less, jnp.where(order == 1, once, once * twice))
        value = root * jnp.exp(peak * (root**2 - 1.0)) * side
        pole = value / (w * root**2 - 1.0)
        rise = pole * jnp.where(many, jumps, few) / size * z * grown
        slope = -rise * (log_w + 2.0 * log_root)
        return tuple(jnp.real(each) for each in (pole * less, rise, slope, value * less))

    def advance(state: tuple) -> tuple:
        k, sums = state
        return k + 1.0, tuple(s + new for s, new in zip(sums, terms(k * step), strict=True))

    def unfinished(state: tuple) -> Bool[Array, ""]:
        square = (state[0] * step) ** 2
        left = jumps * jnp.expm1(-a * jnp.log1p(square)) - peak * square
        return (state[0] < MAXIMUM_STEPS) & jnp.any(left > math.log(TERMS))

    start = tuple(0.5 * term for term in terms(jnp.zeros_like(x)))
    total, rise, slope, value = lax.while_loop(unfinished, advance, (1.0, start))[1]
    log_scale = rate * (-a * log_w + (a * log_w) ** 2 * exp_curvature(-a * log_w))
    log_scale = log_scale + x * (log_w + log_w**2 * exp_curvature(log_w))
    log_scale = log_scale + log_size + jnp.log(2.0 * w * step / math.pi)
    gap = jnp.abs(1.0 - 1.0 / jnp.sqrt(w))
    near = gap < jnp.minimum(NEAR * spread(peak), 0.6)
    part = jnp.exp(-jnp.where(near, log_scale, 0.0)) / jnp.expm1(2.0 * math.pi * gap / step)
    part = jnp.where(near, part, 0.0)
    total = total - part * jnp.where(plain, -jnp.expm1(-rate), 1.0)
    rise = rise - part * rate
    return log_scale + jnp.log(total), rise / total / rate - 1.0, slope / total, value / total


GAP, FLOOR, NEAR, DIGITS, SHIFTS = 1.0, 4.0, 3.0, 33.0, (1.0, 2.0, 4.0, 6.0, 8.0)
