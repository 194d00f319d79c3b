"""The contract for one datum given its parameters, and all that follows from it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from censored_gp.likelihoods.links import LINKS, Link, as_link
from censored_gp.likelihoods.quadrature import gauss_hermite
from censored_gp.likelihoods.quantiles import invert
from censored_gp.likelihoods.special.elementary import log1mexp, log_ndtr
from censored_gp.likelihoods.special.interval import (
    log_count_interval,
    log_difference,
    log_interval,
)
from censored_gp.likelihoods.support import ABOVE_ONE, POSITIVE, REAL, UNIT, Support
from censored_gp.likelihoods.truncation import KINDS, bound_tails, log_between

Values = Float[Array, "*#batch"]
"""Numbers that broadcast with one another."""
Role = Literal["mean", "scale", "shape"]
MOMENT_NODES = 40


class Parameter(NamedTuple):
    """One parameter of a family: what it is called, its default link and what it governs.

    >>> Parameter("rate", "exp", "mean").accepted().describe()
    'a number greater than 0'
    """

    name: str
    link: str
    role: Role
    domain: Support | None = None
    """What it may be: `REAL`, `POSITIVE` or `UNIT`. None: what its default link can make it."""

    def accepted(self) -> Support:
        """Return what the parameter may be."""
        low, high = as_link(self.link).reach or (REAL.lower, REAL.upper)
        known = {(s.lower, s.upper): s for s in (REAL, POSITIVE, ABOVE_ONE, UNIT)}
        other = Support(f"a number between {low:g} and {high:g}", low, high, (low, high))
        return self.domain or known.get((low, high), other)

    def check(self, link: Link, family: str) -> Link:
        """Return a link that keeps the parameter in its domain; refuse another."""
        accepted = self.accepted()
        if _within(link, accepted):
            return link
        others = ", ".join(repr(name) for name in LINKS if _within(as_link(name), accepted))
        raise ValueError(
            f"{family}: found the link {link.name!r}, which does not keep {self.name} to what "
            f"it must be, {accepted.describe()}. Accepted are {others}."
        )


def _within(link: Link, domain: Support) -> bool:
    """Return whether a link stays in a domain, as far as is known."""
    reach = link.reach
    return reach is None or (domain.lower <= reach[0] and reach[1] <= domain.upper)


class Likelihood(eqx.Module):
    """One datum Y given theta = (theta_1, ..., theta_J).

    A family gives `parameters`, `support`, `log_density`, and `log_cdf` or `log_survival` (both,
    if it is to be right far out in both tails). Everything else follows, and is overridden only
    where a closed form is better. All methods are elementwise over broadcasting arrays.

    A link may be exchanged by naming its parameter: `Gaussian(scale="softplus")`.

    >>> from censored_gp.likelihoods import Gaussian
    >>> print(f"log P(Y >= 3) = {Gaussian().log_likelihood(3.0, float('inf'), 0.0, 1.0):.2f}")
    log P(Y >= 3) = -6.61
    """

    parameters: ClassVar[tuple[Parameter, ...]]
    support: ClassVar[Support]
    rescale: ClassVar[Literal["affine", "scale", "none"]] = "none"
    """Which change of unit of Y stays within the family."""
    product_nodes: ClassVar[int | None] = None
    """Nodes a side of the quadrature over several parameters; None: enough for any family."""
    nugget: ClassVar[bool] = False
    """Whether data may well scatter more than the family allows for: its mean then has a part that
    is independent from row to row, if nobody has chosen kernels."""

    links: tuple[Link, ...] = eqx.field(static=True, init=False)

    def __init__(self, **links: str | Link) -> None:
        names = [parameter.name for parameter in self.parameters]
        unknown = sorted(set(links) - set(names))
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}: links can be given "
                f"for {', '.join(names)}"
            )
        self.links = tuple(
            p.check(as_link(links.get(p.name, p.link)), type(self).__name__)
            for p in self.parameters
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a family without a tail, and parameters that the model could not tell apart."""
        super().__init_subclass__(**kwargs)
        given = set().union(*(vars(c) for c in cls.__mro__[: cls.__mro__.index(Likelihood)]))
        if not given & {"log_cdf", "log_survival"}:
            # Each default would wait for the other.
            raise TypeError(f"{cls.__name__} must define log_cdf or log_survival")
        roles = [parameter.role for parameter in getattr(cls, "parameters", ())]
        if len(set(roles)) < len(roles) or not set(roles) <= set(get_args(Role)):
            raise TypeError(
                f"{cls.__name__}: found parameters of the roles {', '.join(roles)}. Accepted are "
                f"{', '.join(get_args(Role))}, each once: a role has one latent function for each "
                "output."
            )

    def __repr__(self) -> str:
        pairs = zip(self.parameters, self.links, strict=True)
        chosen = [f"{p.name}={k.name!r}" for p, k in pairs if k.name != p.link]
        return f"{type(self).__name__}({', '.join(chosen)})"

    def theta(self, *gamma: Values) -> tuple[Float[Array, "*#batch"], ...]:
        """Return the parameters theta_j = g_j(gamma_j) of latent values gamma."""
        return tuple(link(value) for link, value in zip(self.links, gamma, strict=True))

    def rescaled(
        self, shift: Values, scale: Values, *theta: Values
    ) -> tuple[Float[Array, "*#batch"], ...]:
        """Return the parameters of shift + scale Y, where `rescale` allows it; else they stay.

        By default the first moves along with Y, and a scale does if Y may be shifted too; what is
        left has no unit.
        """
        moved = {
            "mean": lambda t: t if self.rescale == "none" else shift + scale * t,
            "scale": lambda t: scale * t if self.rescale == "affine" else t,
            "shape": lambda t: t,
        }
        pairs = zip(self.parameters, theta, strict=True)
        return tuple(jnp.asarray(moved[parameter.role](t)) for parameter, t in pairs)

    def log_density(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log p(y | theta): a density, or the probability of y if Y is discrete.

        Like the tails, it need only be right for y in the support: data are checked before they
        are fitted. `log_likelihood` and `log_tails_anywhere` answer for any other y.
        """
        raise NotImplementedError

    def log_cdf(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log P(Y <= y)."""
        return log1mexp(self.log_survival(y, *theta))

    def log_survival(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log P(Y > y)."""
        return log1mexp(self.log_cdf(y, *theta))

    def log_tails(
        self, y: Values, *theta: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return (log P(Y <= y), log P(Y > y)); overridden where one gives the other."""
        return self.log_cdf(y, *theta), self.log_survival(y, *theta)

    def log_tails_anywhere(
        self, y: Values, *theta: Values
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return (log P(Y <= y), log P(Y > y)) for any number y, in the support or not."""
        y = jnp.floor(y) if self.support.discrete else jnp.asarray(y)
        under = y < self.support.lower if self.support.discrete else y <= self.support.lower
        over = y >= self.support.upper
        cdf, survival = self.log_tails(jnp.where(under | over, self.support.inside[0], y), *theta)
        ends = ((cdf, -jnp.inf, 0.0), (survival, 0.0, -jnp.inf))
        lower, upper = (jnp.where(under, a, jnp.where(over, b, each)) for each, a, b in ends)
        return lower, upper

    def log_at_least(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log P(Y >= y)."""
        return self.log_survival(self.just_below(y), *theta)

    def log_share(self, y: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return log P(y was counted) of a count of which any share is equally likely to be.

        That is the sum of P(k) / (k + 1) over k >= y. Families of counts may know it; data that
        need it are refused by others.
        """
        raise NotImplementedError

    def log_interval(
        self,
        lower: Values,
        upper: Values,
        *theta: Values,
    ) -> Float[Array, "*#batch"]:
        """Return log P(lower <= Y <= upper) for finite lower < upper inside the support."""
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        # Both ends in one call: half the code to compile.
        ends = jnp.stack([self.just_below(lower), upper])
        cdf, survival = self.log_tails(ends, *each)
        tails = (cdf[0], survival[0]), (cdf[1], survival[1])
        rule = log_count_interval if self.support.discrete else log_interval
        return rule(lambda y: self.log_density(y, *each), *tails, lower, upper)

    def log_likelihood(
        self,
        lower: Values,
        upper: Values,
        *theta: Values,
        kinds: tuple[str, ...] = KINDS,
    ) -> Float[Array, "*#batch"]:
        """Return log P(lower <= Y <= upper), the log density at a point: Eq. (2), (3), (11).

        Either bound may be infinite; both infinite is missing and contributes 0. Bounds between
        which Y cannot lie give -inf. `kinds` may name the kinds of interval that occur, so that
        no others are compiled.
        """
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        lower, upper = self.to_support(lower, upper)
        point, below, above = self.knowledge(lower, upper)
        never = self._impossible(lower, upper)
        open_ = (below | above) & ~point & ~never
        between = functools.partial(log_between, self, open_ & below & above)
        if "interval" not in kinds:
            between = self._log_one_sided
        cases: list[tuple[set[str], Array, Callable]] = [
            ({"exact"}, point & ~never, lambda a, b, *t: self.log_density(a, *t)),
            ({"right", "left", "interval"}, open_, between),
        ]
        total = jnp.zeros(lower.shape)
        for names, mask, term in cases:
            if names & set(kinds):
                total = total + self._where(mask, term, lower, upper, each)
        return jnp.where(never, -jnp.inf, total)

    def mean(self, *theta: Values) -> Float[Array, "*#batch"]:
        """Return E[Y | theta], by default the integral of the quantile function."""
        return self.moments_within(*_everything(), *theta)[0]

    def variance(self, *theta: Values) -> Float[Array, "*#batch"]:
        """Return Var[Y | theta], by default from the integral of the quantile function."""
        return self.moments_within(*_everything(), *theta)[1]

    def quantile(self, u: Values, *theta: Values) -> Float[Array, "*#batch"]:
        """Return the smallest y with P(Y <= y) >= u."""
        return self._quantile(jnp.log(u), jnp.log1p(-jnp.asarray(u)), *theta)

    def quantile_within(
        self,
        u: Values,
        lower: Values,
        upper: Values,
        *theta: Values,
    ) -> Float[Array, "*#batch"]:
        """Return the quantile at u of Y given lower <= Y <= upper, right in far tails too."""
        return self._quantile_within(jnp.log(u), jnp.log1p(-jnp.asarray(u)), lower, upper, *theta)

    def moments_within(
        self,
        lower: Values,
        upper: Values,
        *theta: Values,
    ) -> tuple[Float[Array, "*#batch"], Float[Array, "*#batch"]]:
        """Return mean and variance of Y given lower <= Y <= upper; bounds may be infinite.

        One that no cell has is a plain infinite number.

        E[g(Y)] = int g(F^-1(Phi(z))) phi(z) dz, by Gauss-Hermite quadrature.
        """
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        nodes, weights = gauss_hermite(MOMENT_NODES)
        z = jnp.asarray(nodes).reshape((-1,) + (1,) * lower.ndim)
        y = self._quantile_within(log_ndtr(z), log_ndtr(-z), lower, upper, *each)
        mean = jnp.tensordot(weights, y, axes=1)
        return mean, jnp.tensordot(weights, (y - mean) ** 2, axes=1)

    def sample(
        self, key: Key[Array, ""], shape: tuple[int, ...], *theta: Values
    ) -> Float[Array, "*#batch"]:
        """Return independent draws of Y, of a shape the parameters broadcast to."""
        return self.quantile(jax.random.uniform(key, shape, float, minval=1e-300), *theta)

    def start(self, values: Float[np.ndarray, " N"]) -> tuple[float, ...]:
        """Return starting parameters from observed values or bounds, however few or odd."""
        location = self.as_location(finite(values))
        guess = {"mean": float(np.mean(location)), "scale": spread(finite(values)), "shape": 1.0}
        return tuple(guess[p.role] for p in self.parameters)

    def as_location(self, values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Return the first parameter that each value alone would suggest, inside its domain."""
        return self.support.nudge(values)

    def latent_spread(self, values: Float[np.ndarray, " N"]) -> float:
        """Return a starting standard deviation of the latent function of the first parameter.

        Where the latent has no unit (a log, say) it is at least 0.1, whatever the values.
        """
        latent = np.asarray(self.links[0].inverse(self.as_location(finite(values))))
        least = 0.0 if self.rescale == "affine" else 0.1
        return max(spread(latent[np.isfinite(latent)]), least)

    def just_below(self, y: Values) -> Float[Array, "*#batch"]:
        """Return the largest value less than y, as far as probabilities go."""
        return jnp.asarray(y) - 1.0 if self.support.discrete else jnp.asarray(y)

    def to_support(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return bounds at whole numbers for a discrete Y: 2.5 to 4.5 is 3 to 4."""
        return (jnp.ceil(lower), jnp.floor(upper)) if self.support.discrete else (lower, upper)

    def knowledge(self, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
        """Return where Y is a point, bounded below, and bounded above.

        A bound that excludes nothing of the support is no bound.
        """
        return lower == upper, lower > self.support.lower, upper < self.support.upper

    def _impossible(self, lower: Array, upper: Array) -> Bool[Array, "*#batch"]:
        """Return where no value of the support lies between bounds (whole ones, if discrete)."""
        nothing = (lower > upper) | (lower == jnp.inf) | (upper == -jnp.inf)
        if self.support.discrete:
            return nothing | (upper < self.support.lower) | (lower > self.support.upper)
        return nothing | (upper <= self.support.lower) | (lower >= self.support.upper)

    def _log_one_sided(self, lower: Array, upper: Array, *theta: Any) -> Float[Array, "*#batch"]:
        """Return log P(Y >= lower) or log P(Y <= upper), whichever bound there is."""
        below = lower > self.support.lower
        cdf, survival = self.log_tails(jnp.where(below, self.just_below(lower), upper), *theta)
        return jnp.where(below, survival, cdf)

    def _where(
        self, mask: Bool[Array, "*#batch"], term: Callable, lower: Array, upper: Array, theta: list
    ) -> Float[Array, "*#batch"]:
        """Return the term where mask, 0 elsewhere; skipped at run time if there is no such cell.

        Elsewhere its arguments are replaced by harmless ones: an infinite bound or parameter
        there must not make a NaN of a gradient that is multiplied by zero.
        """
        inside = self.support.inside
        lower, upper = jnp.where(mask, lower, inside[0]), jnp.where(mask, upper, inside[1])
        harmless = self.theta(*(jnp.zeros(()) for _ in theta))
        theta = [jnp.where(mask, t, h) for t, h in zip(theta, harmless, strict=True)]
        value = lax.cond(
            jnp.any(mask), lambda: term(lower, upper, *theta), lambda: jnp.zeros(mask.shape)
        )
        return jnp.where(mask, value, 0.0)

    def _quantile(self, log_u: Array, log_rest: Array, *theta: Any) -> Float[Array, "*#batch"]:
        """Return y with log P(Y <= y) = log_u and log P(Y > y) = log_rest."""
        log_u, log_rest, *each = jnp.broadcast_arrays(log_u, log_rest, *theta)
        return invert(
            lambda y: self.log_tails(y, *each),
            lambda y: self.log_density(y, *each),
            log_u,
            log_rest,
            self.support,
            self._centre(*each),
        )

    def _centre(self, *theta: Any) -> Float[Array, "*#batch"] | None:
        """Return the mean to begin a search at, unless it is itself made of quantiles."""
        return None if type(self).mean is Likelihood.mean else self.mean(*theta)

    def _quantile_within(
        self, log_u: Array, log_rest: Array, lower: Any, upper: Any, *theta: Any
    ) -> Float[Array, "*#batch"]:
        """Return the quantile of Y given the bounds, its level given as two logs."""
        lower, upper = self.to_support(jnp.asarray(lower, float), jnp.asarray(upper, float))
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        start, end = bound_tails(self, lower, upper, each)
        mass = log_difference(start, end)
        y = self._quantile(
            jnp.logaddexp(start[0], log_u + mass), jnp.logaddexp(end[1], log_rest + mass), *each
        )
        return jnp.where(lower == upper, lower, jnp.clip(y, lower, upper))


def _everything() -> tuple[Array, Array]:
    """Return bounds that exclude nothing."""
    return jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf)


def finite(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return the finite values, or a single 0 if there are none."""
    values = np.asarray(values, float).ravel()
    values = values[np.isfinite(values)]
    return values if values.size else np.zeros(1)


def spread(values: Float[np.ndarray, " N"]) -> float:
    """Return the standard deviation, or a hundredth of the mean, or 1: never zero."""
    if values.size and np.std(values) > 1e-9 * np.max(np.abs(values)):
        return float(np.std(values))
    centre = float(np.abs(np.mean(values))) if values.size else 0.0
    return 0.01 * centre if centre > 0 else 1.0
