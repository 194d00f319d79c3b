"""Incomplete gamma functions in log space, with derivatives in the shape too.

P(a, x) = int_0^x t^(a-1) e^-t dt / Gamma(a) and Q = 1 - P. The smaller of the two is computed
with full relative precision and the other follows from it: by a power series below x = a + 1, by
Legendre's continued fraction above, and by Temme's uniform expansion for large shapes. The
probabilities of a Poisson count come last.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import digamma, gammaln, xlogy
from jaxtyping import Array, Bool, Float, Int

from censored_gp.likelihoods.special.elementary import (
    HALF_LOG_2PI,
    TOLERANCE,
    Batch,
    Mask,
    Numbers,
    Pair,
    both_slopes,
    both_tails,
    erfcx,
    log1p_curvature,
    log_ratio_excess,
    steed,
    stirling_error,
    with_slopes,
)

MINIMUM_SHAPE, MAXIMUM_ETA = 12.0, 1.0
"""Temme's expansion is used from this shape on and up to this |eta|."""
ORDERS, DEGREE = 9, 26
"""Powers of 1/a and of eta kept: they leave 2e-13 at the edges of that region."""
MAXIMUM_STEPS = 2000
TINY, HUGE = 1e-30, 1e30
"""Shapes are clipped to this range, so that products of several of them stay finite."""
FEW = 16.0
"""Counts below this take their factorial from the log-gamma function."""


@functools.cache
def coefficients() -> Float[np.ndarray, "orders degree"]:
    """Return d[k, n] with C_k(eta) = sum_n d[k, n] eta^n (DLMF 8.12.9 to 8.12.12).

    The recurrences cancel heavily, so they are run in exact fractions.
    """
    count = DEGREE + 2 * ORDERS + 3
    alpha = [Fraction(0), Fraction(1), Fraction(1, 3)]
    for n in range(3, count + 1):
        inner = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    first = [Fraction(-1, 3)] + [(n + 2) * alpha[n + 2] for n in range(1, count - 1)]
    rows, row, double_factorial = [first], first, 1
    for k in range(1, ORDERS):
        double_factorial *= 2 * k + 1
        stirling = (-1) ** k * double_factorial * alpha[2 * k + 1]
        row = [stirling * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        rows.append(row)
    return np.array([[float(d) for d in row[:DEGREE]] for row in rows])


def in_region(a: Batch, x: Batch) -> Array:
    """Return where the expansion has full precision: a >= 12 and |eta| <= 1."""
    half_square = -log_ratio_excess(x / a, (x - a) / a)
    return (a >= MINIMUM_SHAPE) & (half_square <= 0.5 * MAXIMUM_ETA**2)


def log_smaller_tail(a: Batch, x: Batch) -> Batch:
    """Return log P(a, x) where x < a and log Q(a, x) elsewhere (DLMF 8.12.3 and 8.12.4).

    Q = erfc(eta sqrt(a/2)) / 2 + exp(-a eta^2 / 2) / sqrt(2 pi a) sum_k C_k(eta) a^-k with
    eta^2 / 2 = x/a - 1 - log(x/a); the exponential is taken out so that nothing underflows.
    """
    mu = (x - a) / a
    eta = mu * jnp.sqrt(-2.0 * _curvature(mu))
    sign = jnp.where(mu < 0, -1.0, 1.0)
    correction = sign * _corrections(a, eta) / jnp.sqrt(2.0 * math.pi * a)
    scaled = 0.5 * erfcx(sign * eta * jnp.sqrt(0.5 * a)) + correction
    return -0.5 * a * eta**2 + jnp.log(scaled)


def _curvature(mu: Batch) -> Batch:
    """Return (log(1 + mu) - mu) / mu^2 on the whole region."""
    near = jnp.abs(mu) < 0.3
    outer = jnp.where(near, 1.0, mu)
    direct = (jnp.log1p(outer) - outer) / outer**2
    return jnp.where(near, log1p_curvature(jnp.where(near, mu, 0.0)), direct)


def _corrections(a: Batch, eta: Batch) -> Batch:
    """Return sum_k C_k(eta) a^-k by Horner's rule in both, a loop over k to compile quickly."""
    table = jnp.asarray(coefficients()[::-1])

    def add_order(k: Int[Array, ""], total: Batch) -> Batch:
        polynomial = jnp.full_like(eta, table[k, -1])
        for n in reversed(range(DEGREE - 1)):
            polynomial = table[k, n] + eta * polynomial
        return polynomial + total / a

    return lax.fori_loop(0, ORDERS, add_order, jnp.zeros_like(a))


def log_gamma_tails(a: Numbers, x: Numbers) -> Pair:
    """Return (log P(a, x), log Q(a, x)) for a > 0 and x >= 0 at the cost of one of them."""
    a, x = jnp.broadcast_arrays(jnp.asarray(a, float), jnp.asarray(x, float))
    return _log_tails(jnp.clip(a, TINY, HUGE), jnp.clip(x, 1e-290, 1e120))


def log_gamma_kernel(a: Batch, x: Batch) -> Batch:
    """Return log[x^a e^-x / Gamma(a)] = dP / dlog x, without subtracting large numbers."""
    deviance = a * log_ratio_excess(x / a, (x - a) / a)
    return deviance + 0.5 * jnp.log(a) - HALF_LOG_2PI - stirling_error(1.0 / a)


@with_slopes
def _log_tails(asked: tuple[bool, bool], a: Batch, x: Batch) -> tuple[Pair, tuple]:
    lower, in_shape, in_x = _is_lower(a, x), None, None
    if asked[0]:
        smaller, slope = jax.jvp(lambda shape: _log_smaller(shape, x), (a,), (jnp.ones_like(a),))
        in_shape = both_slopes(smaller, slope, lower)
    else:
        smaller = _log_smaller(a, x)
    tails = both_tails(smaller, lower)
    if asked[1]:
        kernel = log_gamma_kernel(a, x)
        in_x = jnp.exp(kernel - tails[0]) / x, -jnp.exp(kernel - tails[1]) / x
    return tails, (in_shape, in_x)


def _is_lower(a: Batch, x: Batch) -> Mask:
    """Return where P is computed and Q derived; past x = a + 1 it is the other way round."""
    return jnp.where(in_region(a, x), x < a, x < a + 1.0)


@jax.jit
def _log_smaller(a: Batch, x: Batch) -> Batch:
    """Return log P where `_is_lower`, log Q elsewhere, each by what converges fast there."""
    uniform, lower = in_region(a, x), _is_lower(a, x)
    expansion = log_smaller_tail(jnp.where(uniform, a, 20.0), jnp.where(uniform, x, 20.0))
    below, above = lower & ~uniform, ~lower & ~uniform
    series = _power_series(jnp.where(below, a, 1.0), jnp.where(below, x, 0.0)) / a
    fraction = _legendre_fraction(jnp.where(above, a, 1.0), jnp.where(above, x, 1.0))
    a, x = jnp.where(uniform, 1.0, a), jnp.where(uniform, 1.0, x)
    looped = log_gamma_kernel(a, x) + jnp.log(jnp.where(below, series, fraction))
    return jnp.where(uniform, expansion, looped)


def _power_series(a: Batch, x: Batch) -> Batch:
    """Return 1 + x/(a+1) + x^2/((a+1)(a+2)) + ... = a P / kernel (DLMF 8.11.4)."""

    def step(state: tuple) -> tuple:
        n, term, total = state
        term = term * (x / (a + n + 1.0))
        return n + 1.0, term, total + term

    def unfinished(state: tuple) -> Bool[Array, ""]:
        n, term, total = state
        return (n < MAXIMUM_STEPS) & jnp.any(term > TOLERANCE * total)

    return lax.while_loop(unfinished, step, (0.0, jnp.ones_like(x), jnp.ones_like(x)))[2]


def _legendre_fraction(a: Batch, x: Batch) -> Batch:
    """Return Q / kernel = 1/(x+1-a + 1(a-1)/(x+3-a + 2(a-2)/(x+5-a + ...))) (DLMF 8.9.2)."""

    def coefficients(n: Float[Array, ""]) -> Pair:
        return n * (a - n), x - a + (2.0 * n + 1.0)

    return steed(coefficients, 1.0 / (x - a + 1.0))


def log_poisson(k: Numbers, mu: Numbers) -> Batch:
    """Return log[mu^k e^-mu / k!], also for counts in the millions."""
    k, mu = jnp.broadcast_arrays(jnp.asarray(k, float), jnp.asarray(mu, float))
    return _log_poisson(k, jnp.maximum(mu, 1e-290))


@with_slopes
def _log_poisson(asked: tuple[bool, bool], k: Batch, mu: Batch) -> tuple[Batch, tuple]:
    few = jnp.where(k < FEW, k, 0.0)
    direct = xlogy(few, mu) - mu - gammaln(few + 1.0)
    many = jnp.where(k < FEW, FEW, k)
    deviance = many * log_ratio_excess(mu / many, (mu - many) / many)
    saddle = deviance - 0.5 * jnp.log(many) - HALF_LOG_2PI - stirling_error(1.0 / many)
    in_count = jnp.log(mu) - digamma(k + 1.0) if asked[0] else None
    return jnp.where(k < FEW, direct, saddle), (in_count, (k - mu) / mu)
