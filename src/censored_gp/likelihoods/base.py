"""The contract of a likelihood: one datum Y given its parameters theta, Eq. (2), (3) and (11).

A family writes its density and one tail; probabilities between bounds, quantiles, moments and draws
follow. All methods are elementwise over arrays that broadcast.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float

from censored_gp.likelihoods.links import LINKS, Link, as_link
from censored_gp.likelihoods.quadrature import gauss_hermite
from censored_gp.likelihoods.quantiles import invert
from censored_gp.likelihoods.special.elementary import Batch, Pair, log1mexp, log_ndtr
from censored_gp.likelihoods.special.interval import log_difference
from censored_gp.likelihoods.support import REAL, Support
from censored_gp.likelihoods.truncation import Kind, between, bound_tails, log_mass, where_any

Role = Literal["mean", "scale", "shape"]
Shape = tuple[int, ...]
# Observed values, or bounds, of one output.
Values = Float[np.ndarray, " N"]
# The kinds of cell, besides missing ones.
KINDS = ("exact", "right", "left", "interval")


class Parameter(NamedTuple):
    """One parameter of a family: its name, its default link and the role it has in the model.

    Attributes
    ----------
    domain
        The values it may take: `REAL`, `POSITIVE` or `UNIT`; None is the range of its link.

    Examples
    --------
    >>> Parameter("rate", "exp", "mean").accepted().words
    'a number greater than 0'
    """

    name: str
    link: str
    role: Role
    domain: Support | None = None

    def accepted(self) -> Support:
        """Return the set of values that the parameter may take."""
        return self.domain or as_link(self.link).reach or REAL

    def check(self, link: Link, family: str) -> Link:
        """Return the link, if it keeps the parameter in its domain, as far as is known."""
        domain = self.accepted()

        def leads_there(reach: Support | None) -> bool:
            return reach is None or (domain.lower <= reach.lower and reach.upper <= domain.upper)

        if leads_there(link.reach):
            return link
        others = ", ".join(repr(name) for name, k in LINKS.items() if leads_there(k.reach))
        wanted = f"{domain.words} ({others}), got {link.name!r}."
        raise ValueError(f"{family}: the link of `{self.name}` must lead to {wanted}")


class Likelihood(eqx.Module):
    """One datum Y given theta = (theta_1, ..., theta_J).

    A family gives `parameters`, `support`, `log_density` and one of `log_cdf`, `log_survival` and
    `log_tails` (both tails, to keep the digits far out on both sides). All else is derived, and
    overridden where a closed form is faster or more precise. A class is registered in `FAMILIES`
    by being defined, under `name` or its own name in snake case.

    A link is exchanged by the name of its parameter: `Gaussian(scale="softplus")`.

    Attributes
    ----------
    rescale
        Which change of unit of Y stays within the family.
    product_nodes
        Nodes a side of the quadrature over several parameters; None is enough for any family.
    nugget
        Whether data may be overdispersed: the default mean then has a part that is independent from
        row to row.
    additive
        Whether Y is a sum over the parts of its period, so that it may be observed for a share of
        it (an exposure); such a family writes `exposed`.
    normal
        Whether Y stays in the family if the first parameter is normal: the variance of that is then
        added to the square of the second. Predictions need no nodes for it.

    Examples
    --------
    >>> from censored_gp.likelihoods import Gaussian
    >>> print(f"log P(Y >= 3) = {Gaussian().log_likelihood(3.0, float('inf'), 0.0, 1.0):.2f}")
    log P(Y >= 3) = -6.61
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    support: ClassVar[Support]
    rescale: ClassVar[Literal["affine", "scale", "none"]] = "none"
    product_nodes: ClassVar[int | None] = None
    nugget: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    normal: ClassVar[bool] = False

    links: tuple[Link, ...] = eqx.field(static=True, init=False)

    def __init_subclass__(cls, register: bool = True, **kwargs: Any) -> None:
        """Register the family; refuse one without a tail, or with two parameters of one role."""
        super().__init_subclass__(**kwargs)
        given = set().union(*(vars(c) for c in cls.__mro__[: cls.__mro__.index(Likelihood)]))
        if not given & {"log_cdf", "log_survival", "log_tails"}:
            # Each default would wait for the other.
            raise TypeError(f"{cls.__name__} must define log_cdf, log_survival or log_tails.")
        if "log_density" in vars(cls) and "expected_log_density" not in vars(cls):
            # A closed form is that of one density.
            cls.expected_log_density = Likelihood.expected_log_density
            cls.normal = vars(cls).get("normal", False)
        if not register:
            return
        given = getattr(cls, "parameters", ())
        # A family whose objects differ in their parameters has a property.
        roles = [] if isinstance(given, property) else [parameter.role for parameter in given]
        if len(set(roles)) < len(roles) or not set(roles) <= set(get_args(Role)):
            wanted = f"among {', '.join(get_args(Role))}, each once, got {', '.join(roles)}."
            raise TypeError(f"{cls.__name__}: the roles of parameters must be {wanted}")
        cls.name = vars(cls).get("name") or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        home = getattr(FAMILIES.get(cls.name), "__module__", "")
        if home.startswith("censored_gp.") and home != cls.__module__:
            raise TypeError(f"{cls.name!r} is a built-in family: give {cls.__name__} a `name`.")
        FAMILIES[cls.name] = cls

    def __init__(self, **links: str | Link) -> None:
        family, names = type(self).__name__, [parameter.name for parameter in self.parameters]
        for unknown in set(links) - set(names):
            raise ValueError(f"{family}: links must be for {', '.join(names)}, got {unknown!r}.")
        given = ((p, as_link(links.get(p.name, p.link))) for p in self.parameters)
        self.links = tuple(parameter.check(link, family) for parameter, link in given)

    def __repr__(self) -> str:
        pairs = zip(self.parameters, self.links, strict=True)
        chosen = [f"{p.name}={k.name!r}" for p, k in pairs if k.name != p.link]
        return f"{type(self).__name__}({', '.join(chosen)})"

    # ---- what a family writes: log_density, and one of the tails ----

    def log_density(self, y: Batch, *theta: Batch) -> Batch:
        """Return log p(y | theta): a density, or the probability of y if Y is discrete.

        Like the tails, it need only be right for y in the support: data are checked before they
        are fitted. `log_likelihood` and `log_tails_anywhere` answer for any other y.
        """
        raise NotImplementedError

    def log_cdf(self, y: Batch, *theta: Batch) -> Batch:
        """Return log P(Y <= y)."""
        if type(self).log_tails is not Likelihood.log_tails:
            return self.log_tails(y, *theta)[0]
        return log1mexp(self.log_survival(y, *theta))

    def log_survival(self, y: Batch, *theta: Batch) -> Batch:
        """Return log P(Y > y)."""
        if type(self).log_tails is not Likelihood.log_tails:
            return self.log_tails(y, *theta)[1]
        return log1mexp(self.log_cdf(y, *theta))

    # ---- overridden where a closed form is faster or more precise ----

    def log_tails(self, y: Batch, *theta: Batch) -> Pair:
        """Return (log P(Y <= y), log P(Y > y))."""
        return self.log_cdf(y, *theta), self.log_survival(y, *theta)

    def log_interval(self, lower: Batch, upper: Batch, *theta: Batch) -> Batch:
        """Return log P(lower <= Y <= upper) for finite lower < upper inside the support."""
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        return between(self, bound_tails(self, lower, upper, each), lower, upper, each)

    def expected_log_density(
        self, y: Batch, mean: Sequence[Batch], variance: Sequence[Batch | None]
    ) -> Batch | None:
        """Return E[log p(y | theta)] for independent gamma_j ~ N(mean_j, variance_j).

        Only where there is a closed form; else None, and a fit takes quadrature. A parameter that
        is constant has no variance (None).
        """

    def mean(self, *theta: Batch) -> Batch:
        """Return E[Y | theta]."""
        return self.moments_within(jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf), *theta)[0]

    def variance(self, *theta: Batch) -> Batch:
        """Return Var[Y | theta]."""
        return self.moments_within(jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf), *theta)[1]

    def moments_within(self, lower: Batch, upper: Batch, *theta: Batch, kind: Kind = None) -> Pair:
        """Return mean and variance of Y given lower <= Y <= upper; bounds may be infinite.

        E[g(Y)] = int g(F^-1(Phi(z))) phi(z) dz, by Gauss-Hermite quadrature. `kind` "right" says
        that no cell has an upper bound, "left" that none has a lower one.
        """
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        nodes, weights = gauss_hermite(40)
        z = jnp.asarray(nodes).reshape((-1,) + (1,) * lower.ndim)
        y = self._invert_within(log_ndtr(z), log_ndtr(-z), lower, upper, *each)
        mean = jnp.tensordot(weights, y, axes=1)
        return mean, jnp.tensordot(weights, (y - mean) ** 2, axes=1)

    def quantile(self, u: Batch, *theta: Batch) -> Batch:
        """Return the smallest y with P(Y <= y) >= u."""
        return self._invert(jnp.log(u), jnp.log1p(-jnp.asarray(u)), *theta)

    def sample(self, key: Array, shape: Shape, *theta: Batch) -> Batch:
        """Return independent draws of Y, of a shape the parameters broadcast to."""
        return self.quantile(jax.random.uniform(key, shape, float, minval=1e-300), *theta)

    def rescaled(self, shift: Batch, scale: Batch, *theta: Batch) -> tuple[Batch, ...]:
        """Return the parameters of shift + scale Y, where `rescale` allows it; else they stay.

        By default the mean moves along with Y, the scale does if Y may be shifted too, and a shape
        has no unit.
        """
        moved = {
            "mean": lambda t: t if self.rescale == "none" else shift + scale * t,
            "scale": lambda t: scale * t if self.rescale == "affine" else t,
            "shape": lambda t: t,
        }
        pairs = zip(self.parameters, theta, strict=True)
        return tuple(jnp.asarray(moved[parameter.role](t)) for parameter, t in pairs)

    def exposed(self, share: Batch, *theta: Batch) -> tuple[Batch, ...]:
        """Return the parameters of V, what Y is in a share of its period, 0 < share <= 1."""
        raise NotImplementedError

    def unseen(self, share: Batch, seen: Batch, *theta: Batch) -> tuple[Batch, ...]:
        """Return the parameters of Y - V given V = seen, 0 <= share < 1.

        By default the parts of a period are independent given theta.
        """
        return self.exposed(1.0 - jnp.asarray(share), *theta)

    def log_part(self, seen: Batch, *theta: Batch) -> Batch:
        """Return log S(seen), the likelihood of what Y is in a share that is not known.

        S(v) = int_0^1 p(v | share u) du: every share is as likely.
        """
        raise NotImplementedError

    def start(self, values: Values) -> tuple[float, ...]:
        """Return starting parameters from observed values or bounds, however few or odd."""
        location = self.as_location(finite(values))
        guess = {"mean": float(np.mean(location)), "scale": spread(finite(values)), "shape": 1.0}
        return tuple(guess[p.role] for p in self.parameters)

    def as_location(self, values: Values) -> Values:
        """Return the first parameter that each value alone would suggest, inside its domain."""
        return self.support.nudge(values)

    # ---- derived ----

    @property
    def is_normal(self) -> bool:
        """Whether Y stays in the family if the latent value of its first parameter is normal."""
        return self.normal and self.links[0].name == "identity"

    def theta(self, *gamma: Batch) -> tuple[Batch, ...]:
        """Return the parameters theta_j = g_j(gamma_j) of latent values gamma."""
        return tuple(link(value) for link, value in zip(self.links, gamma, strict=True))

    def log_likelihood(
        self,
        lower: Batch,
        upper: Batch,
        *theta: Batch,
        kind: Kind = None,
        exposure: Batch | None = None,
    ) -> Batch:
        """Return the log likelihood of a cell, Eq. (2), (3) and (11): log P(lower <= Y <= upper).

        exact: log p(lower), lower = upper; right: log P(Y >= lower), upper infinite; left:
        log P(Y <= upper), lower infinite; interval: both bounds finite and different.

        With `kind` all cells are of that kind, with bounds inside the support. Without it each may
        be of any kind, or missing (both bounds infinite), which contributes 0; an interval that
        holds no value of the support gives -inf.

        With an exposure the bounds are those of V, what was seen of Y in that share of its period;
        if `kind` is "unknown", V = lower is of a share that is not known.
        """
        if exposure is not None:
            theta = self.exposed(exposure, *theta)
        if kind == "exact":
            return self.log_density(lower, *theta)
        if kind == "right":
            return self.log_at_least(lower, *theta)
        if kind == "left":
            return self.log_cdf(upper, *theta)
        if kind == "interval":
            return self.log_interval(lower, upper, *theta)
        if kind == "unknown":
            return self.log_part(lower, *theta)
        if kind is not None:
            raise ValueError(f"`kind` must be one of {', '.join(KINDS)} or None, got {kind!r}.")
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        lower, upper = self.support.round_inward(lower, upper)
        exact = (lower == upper) & ~self.support.is_empty(lower, upper)
        at_points = where_any(
            self, exact, lambda y, _, *t: self.log_density(y, *t), lower, upper, each
        )
        return at_points + log_mass(self, lower, upper, *each)

    def log_at_least(self, y: Batch, *theta: Batch) -> Batch:
        """Return log P(Y >= y)."""
        excludes, _ = self.support.excludes(y, y)
        inner = self.support.just_below(jnp.where(excludes, y, self.support.inside[1]))
        return jnp.where(excludes, self.log_survival(inner, *theta), 0.0)

    def log_tails_anywhere(self, y: Batch, *theta: Batch) -> Pair:
        """Return (log P(Y <= y), log P(Y > y)) for any number y, in the support or not."""
        y = jnp.floor(y) if self.support.discrete else jnp.asarray(y)
        under = self.support.is_under(y)
        over = y >= self.support.upper
        cdf, survival = self.log_tails(jnp.where(under | over, self.support.inside[0], y), *theta)
        ends = ((cdf, -jnp.inf, 0.0), (survival, 0.0, -jnp.inf))
        lower, upper = (jnp.where(under, a, jnp.where(over, b, each)) for each, a, b in ends)
        return lower, upper

    def quantile_within(self, u: Batch, lower: Batch, upper: Batch, *theta: Batch) -> Batch:
        """Return the quantile at u of Y given lower <= Y <= upper, right in far tails too."""
        return self._invert_within(jnp.log(u), jnp.log1p(-jnp.asarray(u)), lower, upper, *theta)

    def latent_spread(self, values: Values) -> float:
        """Return a starting standard deviation of the latent function of the first parameter.

        Where the latent has no unit (a log, say) it is at least 0.1, whatever the values.
        """
        latent = np.asarray(self.links[0].inverse(self.as_location(finite(values))))
        least = 0.0 if self.rescale == "affine" else 0.1
        return max(spread(latent[np.isfinite(latent)]), least)

    def _invert(self, log_u: Array, log_rest: Array, *theta: Any) -> Batch:
        """Return y with log P(Y <= y) = log_u and log P(Y > y) = log_rest."""
        log_u, log_rest, *each = jnp.broadcast_arrays(log_u, log_rest, *theta)
        # The search begins at the mean, unless that is itself made of quantiles.
        start = self.mean(*each) if type(self).mean is not Likelihood.mean else None
        leap = None
        if self.support.discrete and type(self).variance is not Likelihood.variance:
            # By Cornish and Fisher, with the skewness of a negative binomial: as a rule it is off
            # by one at most.
            mean, variance = self.mean(*each), self.variance(*each)
            z = ndtri(jnp.exp(jnp.minimum(log_u, log_rest))) * jnp.where(
                log_u < log_rest, 1.0, -1.0
            )
            skew = (z * z - 1.0) * (2.0 * variance / mean - 1.0) / 6.0
            near = mean + z * jnp.sqrt(variance) + skew + 0.5
            start, leap = jnp.where(jnp.isfinite(near), near, mean), jnp.zeros_like(near)
        curves = (lambda y: self.log_tails(y, *each), lambda y: self.log_density(y, *each))
        return invert(*curves, log_u, log_rest, self.support, start, leap)

    def _invert_within(
        self, log_u: Array, log_rest: Array, lower: Any, upper: Any, *theta: Any
    ) -> Batch:
        """Return the quantile of Y given the bounds, its level given as two logs."""
        lower, upper, *each = jnp.broadcast_arrays(lower, upper, *theta)
        lower, upper = self.support.round_inward(lower, upper)
        start, end = bound_tails(self, lower, upper, each)
        mass = log_difference(start, end)
        log_u = jnp.logaddexp(start[0], log_u + mass)
        y = self._invert(log_u, jnp.logaddexp(end[1], log_rest + mass), *each)
        return jnp.where(lower == upper, lower, jnp.clip(y, lower, upper))


# All families by name; a class is added by being defined.
FAMILIES: dict[str, type[Likelihood]] = {}


def as_likelihood(family: str | Likelihood) -> Likelihood:
    """Return the family of that name with its default links, or the likelihood itself.

    >>> as_likelihood("poisson")
    Poisson()
    """
    if isinstance(family, Likelihood):
        return family
    if isinstance(family, str) and family in FAMILIES:
        return FAMILIES[family]()
    names, near = ", ".join(FAMILIES), get_close_matches(str(family).lower(), FAMILIES, 1, 0.76)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"`likelihood` must be one of {names} or a Likelihood, got {family!r}.{hint}")


def finite(values: Values) -> Values:
    """Return the finite values, or a single 0 if there are none."""
    values = np.asarray(values, float).ravel()
    values = values[np.isfinite(values)]
    return values if values.size else np.zeros(1)


def spread(values: Values) -> float:
    """Return the standard deviation, or a hundredth of the mean, or 1: never zero."""
    if values.size and np.std(values) > 1e-9 * np.max(np.abs(values)):
        return float(np.std(values))
    centre = float(np.abs(np.mean(values))) if values.size else 0.0
    return 0.01 * centre if centre > 0 else 1.0
