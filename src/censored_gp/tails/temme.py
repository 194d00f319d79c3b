"""Temme's uniform expansion of the incomplete gamma functions for large shapes."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from censored_gp.tails.elementary import erfcx, log1p_curvature, log_ratio_excess

MINIMUM_SHAPE = 12.0
MAXIMUM_ETA = 1.0
ORDERS = 9
"""Powers of 1/a kept; with `DEGREE` this leaves 2e-13 at the edges of the region of use."""
DEGREE = 26


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


def in_region(a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]) -> Array:
    """Return where the expansion has full precision: a >= 12 and |eta| <= 1."""
    half_square = -log_ratio_excess(x / a, (x - a) / a)
    return (a >= MINIMUM_SHAPE) & (half_square <= 0.5 * MAXIMUM_ETA**2)


def log_smaller_tail(
    a: Float[Array, "*#batch"], x: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
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


def _curvature(mu: Float[Array, "*#batch"]) -> Float[Array, "*#batch"]:
    """Return (log(1 + mu) - mu) / mu^2 on the whole region."""
    near = jnp.abs(mu) < 0.3
    outer = jnp.where(near, 1.0, mu)
    direct = (jnp.log1p(outer) - outer) / outer**2
    return jnp.where(near, log1p_curvature(jnp.where(near, mu, 0.0)), direct)


def _corrections(
    a: Float[Array, "*#batch"], eta: Float[Array, "*#batch"]
) -> Float[Array, "*#batch"]:
    """Return sum_k C_k(eta) a^-k by Horner's rule in both, a loop over k to compile quickly."""
    table = jnp.asarray(coefficients()[::-1])

    def add_order(k: Int[Array, ""], total: Float[Array, "*#batch"]) -> Float[Array, "*#batch"]:
        polynomial = jnp.full_like(eta, table[k, -1])
        for n in reversed(range(DEGREE - 1)):
            polynomial = table[k, n] + eta * polynomial
        return polynomial + total / a

    return lax.fori_loop(0, ORDERS, add_order, jnp.zeros_like(a))
