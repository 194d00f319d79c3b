"""Likelihoods of one datum, and the families that are built in.

`FAMILIES` has the families by name, `KINDS` what may be known of a datum; `REAL`, `POSITIVE`,
`UNIT`, `COUNTS` and `BINARY` are where data of a family may lie.

>>> from censored_gp import likelihoods
>>> list(likelihoods.FAMILIES)[:4]
['gaussian', 'student_t', 'log_normal', 'gamma']
>>> likelihoods.KINDS
('exact', 'right', 'left', 'interval')
>>> from censored_gp.likelihoods import BINARY, COUNTS, POSITIVE, REAL, UNIT
>>> [bool(support.contains(0.5)) for support in (REAL, POSITIVE, UNIT, COUNTS, BINARY)]
[True, True, True, False, False]
"""

from censored_gp.likelihoods.base import Likelihood, Parameter
from censored_gp.likelihoods.counts import NegativeBinomial, PaperNegativeBinomial, Poisson
from censored_gp.likelihoods.positive import Exponential, Gamma, LogNormal, Weibull
from censored_gp.likelihoods.real import Gaussian, StudentT
from censored_gp.likelihoods.support import BINARY, COUNTS, POSITIVE, REAL, UNIT, Support
from censored_gp.likelihoods.truncation import KINDS
from censored_gp.likelihoods.unit import Bernoulli, Beta

FAMILIES: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "student_t": StudentT,
    "log_normal": LogNormal,
    "gamma": Gamma,
    "exponential": Exponential,
    "weibull": Weibull,
    "beta": Beta,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "paper_negative_binomial": PaperNegativeBinomial,
    "bernoulli": Bernoulli,
}
"""The families that can be asked for by name."""


def as_likelihood(family: str | Likelihood) -> Likelihood:
    """Return the family of that name with its default links, or the likelihood itself.

    >>> as_likelihood("poisson")
    Poisson()
    >>> as_likelihood(Gaussian(scale="softplus"))
    Gaussian(scale='softplus')
    """
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
    "Bernoulli",
    "Beta",
    "Exponential",
    "Gamma",
    "Gaussian",
    "Likelihood",
    "LogNormal",
    "NegativeBinomial",
    "PaperNegativeBinomial",
    "Parameter",
    "Poisson",
    "StudentT",
    "Support",
    "Weibull",
    "as_likelihood",
]
