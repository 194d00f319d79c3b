"""Incomplete beta functions in log space, with derivatives in the shapes too.

I_x(a, b) is written in terms of (a, mu, alpha) with b = 1 / alpha and x / (1 - x) = alpha mu:
the terms of the negative binomial, in which nothing cancels and the limit alpha = 0 is the
incomplete gamma function P(a, mu). With y = 1 - x = 1 / (1 + alpha mu),

    kernel = x^a y^b / B(a, b) = dI / dlog mu.

Student's t follows, smooth down to the normal limit 1 / df = 0, and the negative binomial
probabilities, smooth down to the Poisson limit alpha = 0.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from censored_gp.likelihoods.special.elementary import (
    HALF_LOG_2PI,
    Batch,
    Mask,
    Numbers,
    Pair,
    alike,
    both_slopes,
    both_tails,
    log1p_curvature,
    log1p_ratio,
    log_ratio_excess,
    steed,
    stirling_error,
    with_slopes,
)

# Shapes are clipped to this range, so that products of several of them stay finite.
TINY, HUGE = 1e-30, 1e30


def log_beta_tails(a: Numbers, b: Numbers, x: Numbers, y: Numbers) -> Pair:
    """Return (log I_x(a, b), log I_y(b, a)), y = 1 - x, at the cost of one of them."""
    b, x, y = (jnp.asarray(value, float) for value in (b, x, y))
    return log_odds_tails(a, b * x / y, 1.0 / b)


def log_odds_tails(a: Numbers, mu: Numbers, alpha: Numbers) -> Pair:
    """Return the logs of I_x(a, 1/alpha) and of its complement, x / (1 - x) = alpha mu.

    With a = k + 1 these are P(Y > k) and P(Y <= k) of a negative binomial count Y of mean mu
    and dispersion alpha, a Poisson count if alpha = 0.
    """
    a, mu, alpha = alike(a, mu, alpha)
    alpha = jnp.minimum(alpha, HUGE)
    return _log_tails(jnp.clip(a, TINY, HUGE), jnp.clip(mu, 1e-290, 1e120), alpha)


def log_odds_kernel(a: Batch, mu: Batch, alpha: Batch) -> Batch:
    """Return log[x^a y^b / B(a, b)] by its deviance from the mode, in which nothing cancels."""
    y = 1.0 / (1.0 + alpha * mu)
    growth = (1.0 + alpha * a) * y
    first = a * log_ratio_excess(mu / a * growth, (mu - a) * y / a)
    # The second deviance is divided by alpha, which may be 0: one power of it is taken out.
    gap = (a - mu) * y
    near = jnp.abs(alpha * gap) < 0.3
    inner = jnp.where(near, alpha * gap, 0.0)
    outer_alpha = jnp.where(near, 1.0, alpha)
    outer = (jnp.log(jnp.where(near, 1.0, growth)) - outer_alpha * gap) / outer_alpha
    second = jnp.where(near, gap * inner * log1p_curvature(inner), outer)
    errors = (
        stirling_error(alpha / (1.0 + alpha * a)) - stirling_error(1.0 / a) - stirling_error(alpha)
    )
    return first + second + errors + 0.5 * jnp.log(a / (1.0 + alpha * a)) - HALF_LOG_2PI


@with_slopes
def _log_tails(asked: tuple[bool, ...], a: Batch, mu: Batch, alpha: Batch) -> tuple[Pair, tuple]:
    shapes, lower = [i for i in (0, 2) if asked[i]], _is_lower(a, mu, alpha)
    slopes: list[Any] = [None, None, None]

    def along(direction: Float[Array, " 3"]) -> tuple[Pair, Pair]:
        tangents = tuple(jnp.full_like(a, direction[i]) for i in (0, 2))
        return jax.jvp(lambda s, t: _log_smaller(s, mu, t), (a, alpha), tangents)

    if shapes:
        directions = jnp.eye(3)[jnp.array(shapes)]
        (smaller, kernel), (rises, _) = jax.vmap(along, out_axes=(None, 0))(directions)
        for i, rise in zip(shapes, rises, strict=True):
            slopes[i] = both_slopes(smaller, rise, lower)
    else:
        smaller, kernel = _log_smaller(a, mu, alpha)
    tails = both_tails(smaller, lower)
    slopes[1] = jnp.exp(kernel - tails[0]) / mu, -jnp.exp(kernel - tails[1]) / mu
    return tails, tuple(slopes)


def _is_lower(a: Batch, mu: Batch, alpha: Batch) -> Mask:
    """Return where I_x(a, b) is computed and its complement derived: x < (a+1) / (a+b+2)."""
    return a + 1.0 > mu * (1.0 + alpha)


@jax.jit
def _log_smaller(a: Batch, mu: Batch, alpha: Batch) -> Pair:
    """Return log I_x(a, b) where `_is_lower`, log I_y(b, a) elsewhere, and the log kernel."""
    lower = _is_lower(a, mu, alpha)
    y = 1.0 / (1.0 + alpha * mu)
    x = alpha * mu * y
    gap = jnp.where(lower, a - mu, mu - a) * y
    fraction = beta_fraction(
        jnp.where(lower, 1.0 / a, alpha),
        jnp.where(lower, mu, a) * y,
        jnp.where(lower, x, y),
        jnp.where(lower, y, x),
        gap,
    )
    kernel = log_odds_kernel(a, mu, alpha)
    return kernel + jnp.log(fraction), kernel


def beta_fraction(s: Batch, v: Batch, x: Batch, y: Batch, gap: Batch) -> Batch:
    """Return I_x(a, b) / kernel by the fraction of Didonato and Morris (TOMS 708, BFRAC).

    Its arguments s = 1/a, v = b x, x, y = 1 - x and gap = a y - b x stay finite, and its terms
    smooth, as either shape goes to infinity.
    """

    def coefficients(n: Float[Array, ""]) -> Pair:
        # BFRAC divides by p_n = 1 + (2n - 1) s; multiplying b_n by p_n p_(n+1), and a_n to match,
        # leaves the fraction as it is and no division but the algorithm's own.
        before = 1.0 + jnp.where(n > 1.0, 2.0 * n - 3.0, 0.0) * s
        here, after = 1.0 + (2.0 * n - 1.0) * s, 1.0 + (2.0 * n + 1.0) * s
        rest, weight = n * (v - n * x), 1.0 + (n - 1.0) * s
        numerator = rest * weight * (weight * x + v * s) * (before * after)
        slope = (1.0 + n * s) * (gap + 1.0 + n * (1.0 + y))
        return numerator, (n * here + rest * s) * after + slope * here

    return (1.0 + s) * steed(coefficients, 1.0 / (gap + 1.0))


def log_student(t: Numbers, df: Numbers) -> Batch:
    """Return the log density at t of Student's t with df degrees of freedom.

    log f = log[Gamma((df+1)/2) / (sqrt(pi df) Gamma(df/2))] - (df+1)/2 log(1 + t^2/df).
    """
    alpha, h = 2.0 / jnp.asarray(df), 0.5 * jnp.square(t)
    errors = stirling_error(alpha / (1.0 + 0.5 * alpha)) - stirling_error(alpha)
    normaliser = errors + log1p_ratio(alpha, 0.5) - 0.5 - HALF_LOG_2PI
    return normaliser - (1.0 + 0.5 * alpha) * log1p_ratio(alpha, h)


def log_student_tails(t: Numbers, df: Numbers) -> Pair:
    """Return (log P(T <= t), log P(T > t)) at the cost of one of them.

    The smaller is half of P(|T| > |t|), an incomplete beta function of t^2.
    """
    return _log_student_tails(*alike(t, df))


@with_slopes
def _log_student_tails(asked: tuple[bool, bool], t: Batch, df: Batch) -> tuple[Pair, tuple]:
    def tails(df: Batch) -> Pair:
        outside = log_odds_tails(0.5, 0.5 * jnp.square(t), 2.0 / df)[1] - math.log(2.0)
        return both_tails(outside, t < 0)

    in_df, density = None, log_student(t, df)
    if asked[1]:
        both, in_df = jax.jvp(tails, (df,), (jnp.ones_like(df),))
    else:
        both = tails(df)
    # The slope in t^2 is infinite at t = 0, so that direction is left to the density.
    return both, ((jnp.exp(density - both[0]), -jnp.exp(density - both[1])), in_df)


def log_negative_binomial(k: Numbers, mu: Numbers, alpha: Numbers) -> Batch:
    """Return log P(Y = k) for a count of mean mu and variance mu + alpha mu^2.

    P(k) = C(k + r - 1, k) p^r (1 - p)^k with r = 1/alpha and p = 1 / (1 + alpha mu). It is written
    as its maximum over mu, at mu = k, less a deviance: what depends on k and alpha alone is not
    computed again for every mu that they are broadcast with.
    """
    k, mu, alpha = (jnp.asarray(value, float) for value in (k, mu, alpha))
    mu, alpha = jnp.clip(mu, 1e-290, 1e120), jnp.minimum(alpha, HUGE)
    peak, some = jnp.where(k > 0.0, k, 1.0), k > 0.0
    odds = jnp.log1p(alpha * peak) - jnp.log1p(alpha * k) - jnp.log(peak)
    largest = jnp.where(some, log_odds_kernel(peak + 1.0, peak, alpha) + odds, 0.0)
    ratio = jnp.where(some, k * jnp.log(jnp.where(some, mu / peak, 1.0)), 0.0)
    return largest + ratio - _log_power(k, mu, alpha)


@with_slopes
def _log_power(asked: tuple[bool, ...], k: Batch, mu: Batch, alpha: Batch) -> tuple[Batch, tuple]:
    """Return (k + 1/alpha) log[(1 + alpha mu) / (1 + alpha k)], which is mu - k at alpha = 0."""
    growth = 1.0 + alpha * k
    h = (mu - k) / growth
    product = alpha * h
    near = jnp.abs(product) < 0.3
    curvature = log1p_curvature(jnp.where(near, product, 0.0))
    outer_alpha = jnp.where(near, 1.0, alpha)
    # Where a count is far above its mean, one plus the product would cancel.
    far = jnp.log((1.0 + alpha * mu) / growth) / outer_alpha
    ratio = jnp.where(near, h + h * product * curvature, far)
    in_mu = growth / (1.0 + alpha * mu)
    in_alpha = None
    if asked[2]:
        outer = (ratio - h * in_mu) / outer_alpha
        in_alpha = -jnp.where(near, jnp.square(h) * (curvature + in_mu), outer)
    return growth * ratio, (alpha * ratio - 1.0, in_mu, in_alpha)
