"""Links: from an unbounded latent value to a parameter in its domain, and back."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float


class Link(eqx.Module):
    """An increasing, smooth map theta = g(f). Has no arrays, so it may be a static field."""

    name: ClassVar[str]
    reach: ClassVar[tuple[float, float] | None] = None
    """Between which numbers theta lies, so that a parameter can refuse what it cannot be.
    None: not known, and not checked."""

    def __call__(self, f: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return the parameter theta = g(f)."""
        raise NotImplementedError

    def inverse(self, theta: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return the latent f = g^-1(theta)."""
        raise NotImplementedError


class Identity(Link):
    """theta = f, for parameters on the whole line."""

    name: ClassVar[str] = "identity"
    reach: ClassVar = (-np.inf, np.inf)

    def __call__(self, f: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return f itself."""
        return jnp.asarray(f)

    def inverse(self, theta: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return theta itself."""
        return jnp.asarray(theta)


class Exp(Link):
    """theta = exp(f), for positive parameters whose effects multiply."""

    name: ClassVar[str] = "exp"
    reach: ClassVar = (0.0, np.inf)

    def __call__(self, f: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return exp(f)."""
        return jnp.exp(f)

    def inverse(self, theta: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return log(theta)."""
        return jnp.log(theta)


class Softplus(Link):
    """theta = log(1 + exp(f)), for positive parameters that are linear in f when large."""

    name: ClassVar[str] = "softplus"
    reach: ClassVar = (0.0, np.inf)

    def __call__(self, f: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return log(1 + exp(f))."""
        return jax.nn.softplus(f)

    def inverse(self, theta: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return log(exp(theta) - 1) = theta + log(1 - exp(-theta))."""
        theta = jnp.asarray(theta)
        return theta + jnp.log(-jnp.expm1(-theta))


class Logistic(Link):
    """theta = 1 / (1 + exp(-f)), for parameters between 0 and 1."""

    name: ClassVar[str] = "logistic"
    reach: ClassVar = (0.0, 1.0)

    def __call__(self, f: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return 1 / (1 + exp(-f))."""
        return jax.nn.sigmoid(f)

    def inverse(self, theta: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return log(theta / (1 - theta))."""
        return jnp.log(theta) - jnp.log1p(-jnp.asarray(theta))


class ExpAboveOne(Link):
    """theta = 1 + exp(f), for degrees of freedom: there is a mean only where they are above 1."""

    name: ClassVar[str] = "exp_above_one"
    reach: ClassVar = (1.0, np.inf)

    def __call__(self, f: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return 1 + exp(f)."""
        return 1.0 + jnp.exp(f)

    def inverse(self, theta: Float[ArrayLike, "*#batch"]) -> Float[Array, "*#batch"]:
        """Return log(theta - 1)."""
        return jnp.log(jnp.asarray(theta) - 1.0)


LINKS: dict[str, type[Link]] = {
    kind.name: kind for kind in (Identity, Exp, Softplus, Logistic, ExpAboveOne)
}
"""The links that can be asked for by name."""


def as_link(link: str | Link) -> Link:
    """Return the link of that name, or the link itself."""
    if isinstance(link, Link):
        return link
    if isinstance(link, str) and link in LINKS:
        return LINKS[link]()
    raise ValueError(f"unknown link {link!r}: give one of {', '.join(LINKS)}, or a Link instance")
