"""Incomplete gamma functions in log space, with derivatives in the shape too.

P(a, x) = int_0^x t^(a-1) e^-t dt / Gamma(a) and Q = 1 - P. The smaller of the two is computed
with full relative precision and the other follows from it: by Temme's uniform expansion for large
shapes, elsewhere by the continued fraction of the incomplete beta function, whose limit this is.
The probabilities of a Poisson count come last.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import digamma
from jaxtyping import Array, Float, Int

from censored_gp.likelihoods.special.beta import HUGE, TINY, beta_fraction
from censored_gp.likelihoods.special.elementary import (
    HALF_LOG_2PI,
    Batch,
    Mask,
    Numbers,
    Pair,
    alike,
    both_slopes,
    both_tails,
    erfcx,
    log1p_curvature,
    log_ratio_excess,
    stirling_error,
    with_slopes,
)

# Powers of 1/a and of eta kept: they leave 2e-13 at the edges of the region of the expansion.
ORDERS, DEGREE = 9, 26


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
    return (a >= 12.0) & (half_square <= 0.5)


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
    a, x = alike(a, x)
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
    """Return log P where `_is_lower`, log Q elsewhere."""
    uniform, lower = in_region(a, x), _is_lower(a, x)
    large = jnp.where(uniform, a, 20.0), jnp.where(uniform, x, 20.0)
    expansion = lax.cond(jnp.any(uniform), log_smaller_tail, lambda a, _: jnp.zeros_like(a), *large)
    a, x = jnp.where(uniform, 1.0, a), jnp.where(uniform, 1.0, x)
    # The arguments of the fraction for b = x / alpha and alpha = 0: x / (1 - x) = alpha x = 0.
    right = jnp.where(lower, 0.0, 1.0)
    reciprocal, gap = jnp.where(lower, 1.0 / a, 0.0), jnp.where(lower, a - x, x - a)
    fraction = beta_fraction(reciprocal, jnp.where(lower, x, a), right, 1.0 - right, gap)
    return jnp.where(uniform, expansion, log_gamma_kernel(a, x) + jnp.log(fraction))


def log_poisson(k: Numbers, mu: Numbers) -> Batch:
    """Return log[mu^k e^-mu / k!], also for counts in the millions."""
    k, mu = alike(k, mu)
    return _log_poisson(k, jnp.maximum(mu, 1e-290))


@with_slopes
def _log_poisson(asked: tuple[bool, bool], k: Batch, mu: Batch) -> tuple[Batch, tuple]:
    in_count = jnp.log(mu) - digamma(k + 1.0) if asked[0] else None
    return log_gamma_kernel(k + 1.0, mu) - jnp.log(mu), (in_count, (k - mu) / mu)
