"""Elementary functions without cancellation, and continued fractions by Steed's algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.scipy.special import erfc
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

# Arrays that broadcast with one another.
Batch = Float[Array, "*#batch"]
# Arrays or plain numbers that broadcast with one another.
Numbers = Float[ArrayLike, "*#batch"]
Mask = Bool[Array, "*#batch"]
# Two such arrays: the logs of both tails, or mean and variance.
Pair = tuple[Batch, Batch]

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# A series or fraction ends when its last term is below this part of the total.
TOLERANCE = 1e-14
MAXIMUM_STEPS = 200_000
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def alike(*values: Numbers) -> list[Batch]:
    """Return numbers as arrays of float64 and of one shape."""
    return jnp.broadcast_arrays(*(jnp.asarray(value, float) for value in values))


def with_slopes(rule: Callable[..., tuple[Any, tuple]]) -> Callable[..., Any]:
    """Make a differentiable function of a rule that knows its own slopes.

    `rule(asked, *arguments)` returns the value, an array or several, and for each argument the
    slope of the value in it; where `asked` says that one is not asked for, it may be anything.
    """

    @jax.custom_jvp
    @jax.jit
    def function(*arguments: Batch) -> Any:
        return rule((False,) * len(arguments), *arguments)[0]

    def jvp(arguments: tuple, tangents: tuple) -> tuple[Any, Any]:
        asked = tuple(not isinstance(tangent, SymbolicZero) for tangent in tangents)
        value, slopes = rule(asked, *arguments)
        change = jax.tree.map(jnp.zeros_like, value)
        for wanted, slope, tangent in zip(asked, slopes, tangents, strict=True):
            if wanted:
                change = jax.tree.map(lambda c, s, t=tangent: c + s * t, change, slope)
        return value, change

    function.defjvp(jvp, symbolic_zeros=True)
    return function


@jax.custom_jvp
def log1mexp(x: Numbers) -> Batch:
    """Return log(1 - exp(x)) for x <= 0: the log of one minus a probability given as a log."""
    x = jnp.asarray(x)
    near = x > -math.log(2.0)
    small = jnp.log(-jnp.expm1(jnp.where(near, x, -1.0)))
    return jnp.where(near, small, jnp.log1p(-jnp.exp(jnp.where(near, -1.0, x))))


# At x = 0 the slope is infinite; zero there keeps an unused branch from spreading NaN.
log1mexp.defjvps(
    lambda dx, _, x: jnp.where(x < 0, -1.0 / jnp.expm1(-jnp.where(x < 0, x, -1.0)), 0.0) * dx
)


def log_ratio_excess(ratio: Numbers, excess: Numbers) -> Batch:
    """Return log(ratio) - excess where excess = ratio - 1 is given without cancellation."""
    near = jnp.abs(excess) < 0.3
    inner = jnp.where(near, excess, 0.0)
    outer = jnp.log(jnp.where(near, 1.0, ratio)) - excess
    return jnp.where(near, inner**2 * log1p_curvature(inner), outer)


def log1p_curvature(x: Batch) -> Batch:
    """Return (log(1 + x) - x) / x^2 for |x| < 0.3, smooth through x = 0.

    With r = x / (2 + x), log(1 + x) = 2 atanh(r) = 2 r (1 + r^2/3 + r^4/5 + ...).
    """
    square = (x / (2.0 + x)) ** 2
    series = jnp.zeros_like(square)
    for k in reversed(range(10)):
        series = 1.0 / (2 * k + 3) + square * series
    return (2.0 * x * series / (2.0 + x) ** 2 - 1.0) / (2.0 + x)


def log1p_ratio(alpha: Numbers, h: Numbers) -> Batch:
    """Return log(1 + alpha h) / alpha, which is h at alpha = 0."""
    product = jnp.asarray(alpha * h)
    near = jnp.abs(product) < 0.3
    inner = h + h * product * log1p_curvature(jnp.where(near, product, 0.0))
    outer = jnp.log1p(product) / jnp.where(near, 1.0, alpha)
    return jnp.where(near, inner, outer)


def stirling_error(reciprocal: Numbers) -> Batch:
    """Return log Gamma(z) - [(z - 1/2) log z - z + log(2 pi) / 2] at z = 1 / reciprocal.

    Taking 1 / z lets a shape go to infinity (reciprocal 0) with all its derivatives. A small z
    is moved up by Gamma(z + 8) = z (z + 1) ... (z + 7) Gamma(z).
    """
    reciprocal = jnp.asarray(reciprocal)
    large = reciprocal < 1 / 16
    small = jnp.where(large, 1.0, reciprocal)
    growth = 1.0 + 8.0 * small
    product = jnp.ones_like(small)
    for j in range(1, 8):
        product = product * (1.0 + j * small)
    shift = (1.0 / small + 7.5) * jnp.log(growth) - jnp.log(product) - 8.0
    w = jnp.where(large, reciprocal, small / growth)
    square, series = w * w, jnp.zeros_like(w)
    for coefficient in reversed(STIRLING):
        series = coefficient + square * series
    return w * series + jnp.where(large, 0.0, shift)


def erfcx(w: Numbers) -> Batch:
    """Return exp(w^2) erfc(w) for w >= 0, without underflow or overflow."""
    w = jnp.asarray(w)
    near = w < 10.0
    inner = jnp.where(near, w, 1.0)
    outer = jnp.where(near, 10.0, w)
    square, series = -0.5 / outer**2, jnp.ones_like(w)
    for k in reversed(range(1, 12)):
        series = 1.0 + (2 * k - 1) * square * series
    asymptotic = series / (outer * math.sqrt(math.pi))
    return jnp.where(near, jnp.exp(inner**2) * erfc(inner), asymptotic)


@jax.custom_jvp
def log_ndtr(z: Numbers) -> Batch:
    """Return log Phi(z), the log of the standard normal cdf, right in both tails."""
    z = jnp.asarray(z)
    below = jnp.where(z < 0, -z, 0.0)
    above = jnp.where(z < 0, 0.0, z)
    lower = jnp.log(0.5 * erfcx(below * math.sqrt(0.5))) - 0.5 * below**2
    return jnp.where(z < 0, lower, jnp.log1p(-0.5 * erfc(above * math.sqrt(0.5))))


log_ndtr.defjvps(lambda dz, _, z: normal_hazard(-z) * dz)


def normal_hazard(z: Numbers) -> Batch:
    """Return phi(z) / Phi(-z), the slope of -log P(Z > z); 0 at either infinity."""
    z = jnp.where(jnp.isfinite(z), z, -100.0)
    above = jnp.where(z > 0, z, 0.0)
    below = jnp.where(z > 0, 0.0, z)
    upper = math.sqrt(2.0 / math.pi) / erfcx(above * math.sqrt(0.5))
    density = jnp.exp(-0.5 * below**2 - HALF_LOG_2PI)
    return jnp.where(z > 0, upper, density / (0.5 * erfc(below * math.sqrt(0.5))))


def both_tails(smaller: Batch, is_lower: Mask) -> Pair:
    """Return (log lower tail, log upper tail) given the log of the smaller one."""
    larger = log1mexp(jnp.minimum(smaller, -1e-300))
    return jnp.where(is_lower, smaller, larger), jnp.where(is_lower, larger, smaller)


def both_slopes(smaller: Batch, slope: Batch, is_lower: Mask) -> Pair:
    """Return the slopes of both log tails given that of the smaller one."""
    other = -slope / jnp.expm1(-jnp.minimum(smaller, -1e-300))
    return jnp.where(is_lower, slope, other), jnp.where(is_lower, other, slope)


def steed(coefficients: Callable[[Float[Array, ""]], Pair], first: Batch) -> Batch:
    """Return 1/(b_0 + a_1/(b_1 + a_2/(b_2 + ...))), given first = 1 / b_0.

    `coefficients(n)` gives (a_n, b_n). Steed's form needs one division a step and never
    overflows: D_n = 1/(b_n + a_n D_{n-1}), h_n = h_{n-1} + (b_n D_n - 1)(h_{n-1} - h_{n-2}).
    The loop ends when every element has converged.
    """

    def step(state: tuple) -> tuple:
        n, inverse, change, total = state
        a, b = coefficients(n + 1.0)
        inverse = 1.0 / (b + a * inverse)
        change = (b * inverse - 1.0) * change
        return n + 1.0, inverse, change, total + change

    def unfinished(state: tuple) -> Bool[Array, ""]:
        n, _, change, total = state
        return (n < MAXIMUM_STEPS) & jnp.any(jnp.abs(change) > TOLERANCE * jnp.abs(total))

    return lax.while_loop(unfinished, step, (0.0, first, first, first))[3]


def safe_sqrt(s: Float[Array, "*B"]) -> Float[Array, "*B"]:
    """Return √s, with derivative zero instead of infinity at s = 0."""
    positive = s > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, s, 1.0)), 0.0)
