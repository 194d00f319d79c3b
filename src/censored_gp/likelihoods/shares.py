"""What a count was, given how much of it was counted until a random moment.

Any share is equally likely to be seen, so P(Y = y | v was seen) is proportional to P(y) / (y + 1)
for y >= v: a distribution of its own, cut to what was seen like any other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods.base import Likelihood, Values
from censored_gp.likelihoods.counts import Poisson
from censored_gp.likelihoods.inverse import Density, Tails, invert
from censored_gp.likelihoods.support import COUNTS
from censored_gp.tails import log1mexp

__all__ = ["GivenShare", "given_share", "knows_shares"]

SMALLEST = 1e-16
"""Of a lower tail: it is a difference of upper ones, which are exact to 1e-9."""
MOST_ADDED, FEW_ADDED = 256, 16
"""Counts that are added up, one by one, in search of a quantile."""
NEARLY_ALL = 1.0 - 1e-7
"""Level from which on a quantile is searched for by its upper tail."""
Moments = tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]


def knows_shares(likelihood: Likelihood) -> bool:
    """Whether a family says how likely a share of its counts is.

    >>> from censored_gp.likelihoods import Gaussian, Poisson
    >>> knows_shares(Poisson()), knows_shares(Gaussian())
    (True, False)
    """
    return type(likelihood).log_share is not Likelihood.log_share


class GivenShare(Likelihood):
    """P(y) / (y + 1), scaled to a sum of one, in the parameters of the whole."""

    whole: Likelihood

    def __init__(self, whole: Likelihood) -> None:
        self.whole, self.links = whole, whole.links

    def log_density(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log P(y) - log(y + 1), scaled."""
        return self.whole.log_density(y, *theta) - jnp.log1p(y) - self._scale(*theta)

    def log_cdf(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return what the other tail leaves: of a probability below 1e-9 only that it is small."""
        return self.log_tails(y, *theta)[0]

    def log_survival(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log S(y + 1) - log S(0), with S as in `Likelihood.log_share`."""
        y, *each = jnp.broadcast_arrays(y, *theta)
        # Both in one call: half the code to compile.
        above, all_ = self.whole.log_share(
            jnp.stack([jnp.maximum(y, -1.0) + 1.0, jnp.zeros_like(y)]), *each
        )
        return jnp.minimum(above - all_, 0.0)

    def log_tails(self, y: Values, *theta: Values) -> Moments:
        """Return both tails, one from the other."""
        return _both_tails(self.log_survival(y, *theta), jnp.asarray(y) < 0)

    def curves_from(self, lower: Values, *theta: Values) -> tuple[Tails, Density]:
        """Return log tails and log density of what is at least `lower`, as functions of y.

        It is they that quantiles are searched with: the sum of everything is taken once.
        """
        lower = _whole_number(lower)
        whole = self.whole.log_share(lower, *theta)

        def log_tails(y: Float[Array, "*#batch"]) -> Moments:
            survival = jnp.minimum(self.whole.log_share(jnp.floor(y) + 1.0, *theta) - whole, 0.0)
            survival = jnp.where(y < lower, 0.0, survival)
            return _both_tails(survival, y < lower)

        def log_density(y: Float[Array, "*#batch"]) -> Float[Array, "*#batch"]:
            return self.whole.log_density(y, *theta) - jnp.log1p(y) - whole

        return log_tails, log_density

    def quantile_within(
        self, u: Values, lower: Values, upper: Values, *theta: Values
    ) -> Float[Array, "*#batch"]:
        """Return the quantile at u of what is at least `lower`: a share has no upper bound."""
        u, lower, *each = jnp.broadcast_arrays(u, _whole_number(lower), *theta)
        return self.searched_from(
            lower,
            u,
            *self.curves_from(lower, *each),
            lambda: (jnp.maximum(self.whole.mean(*each), lower), None),
        )

    def searched_from(
        self,
        lower: Float[Array, "*#batch"],
        level: Float[Array, "*#batch"],
        log_tails: Tails,
        log_density: Density,
        guess: Callable[[], tuple[Float[Array, "*#batch"], Float[Array, "*#batch"] | None]],
    ) -> Float[Array, "*#batch"]:
        """Return the smallest count, from `lower` on, whose lower tail reaches the level.

        Counts are added up, one by one: some take less time than one sum over all that are above.
        What is not found so is searched for, from a guess on.
        """
        # One sum takes as long as forty counts, but of a Poisson, whose tails are known, as three.
        most = FEW_ADDED if isinstance(self.whole, Poisson) else MOST_ADDED
        added, reached = _added_up(log_density, lower, level, most)

        def searched() -> Float[Array, "*#batch"]:
            both = jnp.log(level), jnp.log1p(-level)
            found = invert(log_tails, log_density, *both, COUNTS, *guess())
            return jnp.where(reached, added, found)

        return lax.cond(jnp.all(reached), lambda: added, searched)

    def mean(self, *theta: Values) -> Float[Array, "*#batch"]:
        """Return 1 / S(0) - 1."""
        return jnp.expm1(-self._scale(*theta))

    def variance(self, *theta: Values) -> Float[Array, "*#batch"]:
        """Return (E + 1) (E[whole] - E)."""
        mean = self.mean(*theta)
        return jnp.maximum((mean + 1.0) * (self.whole.mean(*theta) - mean), 0.0)

    def moments_within(self, lower: Values, upper: Values, *theta: Values) -> Moments:
        """Return E and Var of what is at least `lower`: a share has no upper bound.

        Sums of (y + 1) and of y (y + 1) times this are those of the whole.
        """
        lower, *each = jnp.broadcast_arrays(_whole_number(lower), *theta)
        of_whole = self.whole.log_tails_anywhere(lower - 1.0, *each)[1]
        own = self.whole.log_share(lower, *each)
        mean = jnp.maximum(jnp.expm1(of_whole - own), lower)
        no_bound: Any = jnp.inf
        more = self.whole.moments_within(lower, no_bound, *each)[0]
        return mean, jnp.maximum((mean + 1.0) * (more - mean), 0.0)

    def _scale(self, *theta: Any) -> Float[Array, "*#batch"]:
        """Return log S(0), the sum of P(y) / (y + 1) over all y."""
        return self.whole.log_share(jnp.zeros(()), *theta)


def _added_up(
    log_density: Density,
    lower: Float[Array, "*#batch"],
    level: Float[Array, "*#batch"],
    most: int,
) -> tuple[Float[Array, "*#batch"], Bool[Array, "*#batch"]]:
    """Return quantiles by adding up counts from the lower bound on, and which were found."""

    def unfinished(state: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        return (state[0] < most) & jnp.any(state[2] < level)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, y, total = state
        following = jnp.where(total < level, y + 1.0, y)
        more = jnp.where(total < level, jnp.exp(log_density(following)), 0.0)
        return count + 1, following, total + more

    start = jnp.asarray(0), lower, jnp.exp(log_density(lower))
    _, found, total = lax.while_loop(unfinished, step, start)
    # The total has the error of the sum over everything: it cannot tell what is nearly all.
    return found, (total >= level) & (level < NEARLY_ALL)


def _whole_number(lower: Values) -> Float[Array, "*#batch"]:
    """Return the least count that is not below a bound."""
    return jnp.ceil(jnp.maximum(jnp.asarray(lower, float), 0.0))


def _both_tails(survival: Float[Array, "*#batch"], below: Bool[Array, "*#batch"]) -> Moments:
    """Return both log tails, from the upper one and where nothing is left of the lower one."""
    # Two tails that were both lost would differ by NaN.
    cdf = log1mexp(jnp.minimum(survival, -SMALLEST))
    return jnp.where(below, -jnp.inf, cdf), survival


@functools.cache
def _class_for(family: type[Likelihood]) -> type[GivenShare]:
    """Return the class for a family, which has its parameters and support."""
    own = {
        "parameters": family.parameters,
        "support": family.support,
        "__doc__": GivenShare.__doc__,
    }
    return type(f"{family.__name__}GivenShare", (GivenShare,), own)


def given_share(likelihood: Likelihood) -> Likelihood:
    """Return the distribution of a count given that a share of it was counted.

    Cut to `lower=v` it is that of a count of which v was seen.

    >>> from censored_gp.likelihoods import Poisson
    >>> float(given_share(Poisson()).mean(1.0)) < 1.0
    True
    """
    return _class_for(type(likelihood))(likelihood)
