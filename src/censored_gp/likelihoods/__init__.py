"""Likelihoods of one datum, and the families that are built in."""

from censored_gp.likelihoods.base import KINDS, Likelihood, Parameter
from censored_gp.likelihoods.counts import Poisson
from censored_gp.likelihoods.real import Gaussian
from censored_gp.likelihoods.support import BINARY, COUNTS, POSITIVE, REAL, UNIT, Support

FAMILIES: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "poisson": Poisson,
}
"""The families that can be asked for by name."""


def as_likelihood(family: str | Likelihood) -> Likelihood:
    """Return the family of that name with its default links, or the likelihood itself."""
    if isinstance(family, Likelihood):
        return family
    if isinstance(family, str) and family in FAMILIES:
        return FAMILIES[family]()
    raise ValueError(
        f"unknown likelihood {family!r}: give one of {', '.join(FAMILIES)}, "
        "or a Likelihood instance"
    )


__all__ = [
    "BINARY",
    "COUNTS",
    "FAMILIES",
    "KINDS",
    "POSITIVE",
    "REAL",
    "UNIT",
    "Gaussian",
    "Likelihood",
    "Parameter",
    "Poisson",
    "Support",
    "as_likelihood",
]
