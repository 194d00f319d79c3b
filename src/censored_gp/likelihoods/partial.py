"""What a count was, given how much of it was counted until a random moment, or perhaps a limit.

Any share is equally likely to be seen, so P(Y = y | v was seen) is proportional to P(y) / (y + 1)
for y >= v: a distribution of its own, cut to what was seen like any other. If v may as well have
been a limit, which has nothing to do with y, it is proportional to P(y) (1 / (y + 1) + odds): a
mixture of that distribution and of the family itself, both cut to what was seen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax, nn
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods.base import Likelihood, Values
from censored_gp.likelihoods.counts import Poisson
from censored_gp.likelihoods.quantiles import Density, Tails, invert
from censored_gp.likelihoods.special.elementary import log1mexp
from censored_gp.likelihoods.support import COUNTS

__all__ = ["GivenShare", "given_share", "knows_shares", "log_share_or_limit"]

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
    """P(y) (1 / (y + 1) + odds), scaled to a sum of one, in the parameters of the whole."""

    whole: Likelihood
    log_odds: Float[Array, " K"] | None
    """Of limits, one for each cell; None is as good as -inf."""

    def __init__(self, whole: Likelihood, log_odds: Float[Array, " K"] | None = None) -> None:
        self.whole, self.links, self.log_odds = whole, whole.links, log_odds

    def log_seen(self, v: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log S(v), the log probability but for a constant that v was seen.

        It is the sum of P(y) (1 / (y + 1) + odds) over y >= v.
        """
        if self.log_odds is None:
            return self.whole.log_share(v, *theta)
        return log_share_or_limit(self.whole, v, self.log_odds, *theta)

    def log_density(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log P(y) + log(1 / (y + 1) + odds), scaled."""
        return self._log_term(y, *theta) - self._scale(*theta)

    def _log_term(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return the log of a term of the sum S."""
        weight = -jnp.log1p(y)
        if self.log_odds is not None:
            weight = jnp.logaddexp(weight, self.log_odds)
        return self.whole.log_density(y, *theta) + weight

    def log_cdf(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return what the other tail leaves: of a probability below 1e-9 only that it is small."""
        return self.log_tails(y, *theta)[0]

    def log_survival(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log S(y + 1) - log S(0)."""
        y, *each = jnp.broadcast_arrays(y, *theta)
        # Both in one call: half the code to compile.
        above, all_ = self.log_seen(
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
        whole = self.log_seen(lower, *theta)

        def log_tails(y: Float[Array, "*#batch"]) -> Moments:
            survival = jnp.minimum(self.log_seen(jnp.floor(y) + 1.0, *theta) - whole, 0.0)
            survival = jnp.where(y < lower, 0.0, survival)
            return _both_tails(survival, y < lower)

        def log_density(y: Float[Array, "*#batch"]) -> Float[Array, "*#batch"]:
            return self._log_term(y, *theta) - whole

        return log_tails, log_density

    def quantile_within(
        self, u: Values, lower: Values, upper: Values, *theta: Values
    ) -> Float[Array, "*#batch"]:
        """Return the quantile at u of what is at least `lower`: there is no upper bound."""
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
        """Return E[Y]: of shares it is 1 / S(0) - 1."""
        return self._moments(*theta)[0]

    def variance(self, *theta: Values) -> Float[Array, "*#batch"]:
        """Return Var[Y]: of shares it is (E + 1) (E[whole] - E)."""
        return self._moments(*theta)[1]

    def _moments(self, *theta: Values) -> Moments:
        """Return E and Var of all counts."""
        share, whole = self.whole.log_share(jnp.zeros(()), *theta), self.whole.mean(*theta)
        own = _moments_of_share(jnp.expm1(-share), whole)
        if self.log_odds is None:
            return own
        part = nn.sigmoid(self.log_odds - share)
        return _mixed(part, own, (whole, self.whole.variance(*theta)))

    def moments_within(self, lower: Values, upper: Values, *theta: Values) -> Moments:
        """Return E and Var of what is at least `lower`: there is no upper bound."""
        lower, *each = jnp.broadcast_arrays(_whole_number(lower), *theta)
        of_whole = self.whole.log_tails_anywhere(lower - 1.0, *each)[1]
        share = self.whole.log_share(lower, *each)
        no_bound: Any = jnp.inf
        whole = self.whole.moments_within(lower, no_bound, *each)
        own = _moments_of_share(jnp.maximum(jnp.expm1(of_whole - share), lower), whole[0])
        if self.log_odds is None:
            return own
        return _mixed(nn.sigmoid(self.log_odds + of_whole - share), own, whole)

    def _scale(self, *theta: Any) -> Float[Array, "*#batch"]:
        """Return log S(0)."""
        return self.log_seen(jnp.zeros(()), *theta)


def log_share_or_limit(
    likelihood: Likelihood, v: Values, log_odds: Values, *theta: Values
) -> Float[Array, "*#batch"]:
    """Return the log probability, but for a constant, of a record that may be either.

    >>> import numpy as np
    >>> from censored_gp.likelihoods import Poisson
    >>> bool(log_share_or_limit(Poisson(), 2.0, -np.inf, 3.0) == Poisson().log_share(2.0, 3.0))
    True
    """
    # Of none at all families need not know what lies below.
    _, limit = likelihood.log_tails_anywhere(likelihood.just_below(v), *theta)
    return jnp.logaddexp(likelihood.log_share(v, *theta), log_odds + limit)


def _moments_of_share(mean: Float[Array, "*#batch"], of_whole: Float[Array, "*#batch"]) -> Moments:
    """Return E and Var, from it and the mean of the whole.

    Sums of (y + 1) and of y (y + 1) times P(y) / (y + 1) are those of the whole.
    """
    return mean, jnp.maximum((mean + 1.0) * (of_whole - mean), 0.0)


def _mixed(part: Float[Array, "*#batch"], one: Moments, other: Moments) -> Moments:
    """Return mean and variance of a mixture, of which a part is of the other kind."""
    apart = other[0] - one[0]
    mean = one[0] + part * apart
    return mean, (1.0 - part) * one[1] + part * other[1] + part * (1.0 - part) * apart**2


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


def given_share(likelihood: Likelihood, log_odds: Float[Array, " K"] | None = None) -> GivenShare:
    """Return the distribution of a count given that a share of it was counted, or a limit seen.

    Cut to `lower=v` it is that of a count of which v was seen.

    >>> from censored_gp.likelihoods import Poisson
    >>> float(given_share(Poisson()).mean(1.0)) < 1.0
    True
    """
    return _class_for(type(likelihood))(likelihood, log_odds)
