"""Links: from an unbounded latent value to a parameter in its domain, and back."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from censored_gp.likelihoods.special.elementary import Batch, Numbers
from censored_gp.likelihoods.support import ABOVE_ONE, ONE_TO_TWO, POSITIVE, REAL, UNIT, Support


class Link(eqx.Module):
    """An increasing, smooth map theta = g(f). Has no arrays, so it may be a static field.

    Attributes
    ----------
    reach
        The set of all theta, so that a parameter can refuse a link that leaves its domain. None is
        not known, and not checked.
    """

    name: ClassVar[str]
    reach: ClassVar[Support | None] = None

    def __call__(self, f: Numbers) -> Batch:
        """Return the parameter theta = g(f)."""
        raise NotImplementedError

    def inverse(self, theta: Numbers) -> Batch:
        """Return the latent f = g^-1(theta)."""
        raise NotImplementedError


class Identity(Link):
    """theta = f, for parameters on the whole line."""

    name = "identity"
    reach = REAL

    def __call__(self, f: Numbers) -> Batch:
        """Return f itself."""
        return jnp.asarray(f)

    def inverse(self, theta: Numbers) -> Batch:
        """Return theta itself."""
        return jnp.asarray(theta)


class Exp(Link):
    """theta = exp(f), for positive parameters whose effects multiply."""

    name = "exp"
    reach = POSITIVE

    def __call__(self, f: Numbers) -> Batch:
        """Return exp(f)."""
        return jnp.exp(f)

    def inverse(self, theta: Numbers) -> Batch:
        """Return log(theta)."""
        return jnp.log(theta)


class Softplus(Link):
    """theta = log(1 + exp(f)), for positive parameters that are linear in f when large."""

    name = "softplus"
    reach = POSITIVE

    def __call__(self, f: Numbers) -> Batch:
        """Return log(1 + exp(f))."""
        return jax.nn.softplus(f)

    def inverse(self, theta: Numbers) -> Batch:
        """Return log(exp(theta) - 1) = theta + log(1 - exp(-theta))."""
        theta = jnp.asarray(theta)
        return theta + jnp.log(-jnp.expm1(-theta))


class Logistic(Link):
    """theta = 1 / (1 + exp(-f)), for parameters between 0 and 1."""

    name = "logistic"
    reach = UNIT

    def __call__(self, f: Numbers) -> Batch:
        """Return 1 / (1 + exp(-f))."""
        return jax.nn.sigmoid(f)

    def inverse(self, theta: Numbers) -> Batch:
        """Return log(theta / (1 - theta))."""
        return jnp.log(theta) - jnp.log1p(-jnp.asarray(theta))


class ExpAboveOne(Link):
    """theta = 1 + exp(f), for degrees of freedom: there is a mean only where they are above 1."""

    name = "exp_above_one"
    reach = ABOVE_ONE

    def __call__(self, f: Numbers) -> Batch:
        """Return 1 + exp(f)."""
        return 1.0 + jnp.exp(f)

    def inverse(self, theta: Numbers) -> Batch:
        """Return log(theta - 1)."""
        return jnp.log(jnp.asarray(theta) - 1.0)


class OneToTwo(Link):
    """theta = 1.01 + 0.98 / (1 + exp(-f)), for the power of a Tweedie distribution."""

    name = "one_to_two"
    reach = ONE_TO_TWO

    def __call__(self, f: Numbers) -> Batch:
        """Return 1.01 + 0.98 / (1 + exp(-f))."""
        return ONE_TO_TWO.lower + (ONE_TO_TWO.upper - ONE_TO_TWO.lower) * jax.nn.sigmoid(f)

    def inverse(self, theta: Numbers) -> Batch:
        """Return log((theta - 1.01) / (1.99 - theta))."""
        theta = jnp.asarray(theta)
        return jnp.log(theta - ONE_TO_TWO.lower) - jnp.log(ONE_TO_TWO.upper - theta)


# The links that can be asked for by name.
LINKS: dict[str, type[Link]] = {
    k.name: k for k in (Identity, Exp, Softplus, Logistic, ExpAboveOne, OneToTwo)
}


def as_link(link: str | Link) -> Link:
    """Return the link of that name, or the link itself."""
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in LINKS:
        return LINKS[link]()
    raise ValueError(f"A link must be one of {', '.join(LINKS)} or a `Link`, got {link!r}.")
