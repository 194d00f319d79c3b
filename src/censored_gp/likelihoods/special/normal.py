"""The log probability that a standard normal lies in an interval, with all of its slopes."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from censored_gp.likelihoods.special.elementary import HALF_LOG_2PI, Batch, erfcx, with_slopes

# Half width, alone and times the centre, up to which Gauss-Legendre is right to the last digit.
NARROW = 0.5
NODES = 6
Parts = tuple[Batch, Batch, Batch]


@with_slopes
def log_normal_interval(
    asked: tuple[bool, ...], lower: Batch, upper: Batch, half: Batch
) -> tuple[Batch, Parts]:
    """Return log P(lower <= Z <= upper) for finite lower < upper, and its slopes.

    ``half`` is half their distance, which the caller may know to more digits than they have. It
    keeps its digits however far out the interval lies and however narrow it is, and takes far
    less time than the general rule with the tails of a normal. The slopes of a narrow interval are
    in its centre, with which both ends move, and in its half width; those of a wide one are in each
    end.
    """
    # Symmetric about zero: turned so that the centre is not negative.
    turned = lower + upper < 0
    a, b = jnp.where(turned, -upper, lower), jnp.where(turned, -lower, upper)
    centre = 0.5 * a + 0.5 * b
    narrow = (half < NARROW) & (centre * half < NARROW)
    # Each formula gets harmless arguments where the other is used.
    summed, by_centre, by_half = _summed(jnp.where(narrow, centre, 0.0), jnp.minimum(half, NARROW))
    wide = [jnp.where(narrow, other, own) for own, other in ((a, -1.0), (b, 1.0), (half, 1.0))]
    # Values in steps are narrow throughout, and tails take several times as long.
    nothing = (jnp.zeros_like(summed),) * 3
    value, at_a, at_b = jax.lax.cond(
        jnp.all(narrow), lambda *_: nothing, lambda *ends: _from_tails(*ends), *wide
    )
    by_a, by_b = (jnp.where(narrow, 0.5 * by_centre, own) for own in (-at_a, at_b))
    ends = jnp.where(turned, -by_b, by_a), jnp.where(turned, -by_a, by_b)
    return jnp.where(narrow, summed, value), (*ends, jnp.where(narrow, by_half, 0.0))


def _summed(centre: Batch, half: Batch) -> Parts:
    """Integrate the density over its value at the centre, exp(-centre t - t^2 / 2).

    Returns the log of the mass, and its slopes in the centre and in the half width.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    total, first = jnp.zeros_like(centre), jnp.zeros_like(centre)
    # Nodes t and -t share an exponential; what depends on the width alone has no axis of nodes.
    for node, weight in zip(nodes[NODES // 2 :], weights[NODES // 2 :], strict=True):
        t = half * node
        even, rise = weight * jnp.exp(-0.5 * t**2), jnp.exp(t * centre)
        total, first = total + even * (rise + 1.0 / rise), first + t * even * (1.0 / rise - rise)
    mass, rise = half * total, jnp.exp(centre * half)
    ends = jnp.exp(-0.5 * half**2) * (rise + 1.0 / rise)
    return jnp.log(mass) - 0.5 * centre**2 - HALF_LOG_2PI, -centre - first / total, ends / mass


def _from_tails(a: Batch, b: Batch, half: Batch) -> Parts:
    """Subtract tails on the side where both are small; -b <= a < b.

    Returns the log of the mass, and the densities at both ends over it. With scaled tails
    e(z) = exp(z^2 / 2) 2 P(Z > z) nothing underflows.
    """
    scaled_a, scaled_b = (erfcx(jnp.abs(z) * math.sqrt(0.5)) for z in (a, b))
    across = a < 0
    # Not across zero: what is beyond b, and the density there, over those at a.
    fallen = jnp.exp(-half * (a + b))
    left = jnp.where(across, 1.0, 1.0 - fallen * scaled_b / scaled_a)
    beyond = jnp.log(0.5 * scaled_a * left) - 0.5 * a**2
    density = math.sqrt(2.0 / math.pi) / (scaled_a * left)
    # Across zero: all but two tails.
    near, far = jnp.exp(-0.5 * jnp.where(across, a, 0.0) ** 2), jnp.exp(-0.5 * b**2)
    outside = jnp.where(across, 0.5 * (scaled_a * near + scaled_b * far), 0.0)
    at_a, at_b = (d * math.exp(-HALF_LOG_2PI) / (1.0 - outside) for d in (near, far))
    return (
        jnp.where(across, jnp.log1p(-outside), beyond),
        jnp.where(across, at_a, density),
        jnp.where(across, at_b, density * fallen),
    )
