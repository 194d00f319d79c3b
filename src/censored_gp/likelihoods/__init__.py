"""Likelihoods of one datum given its parameters: p(y | theta), Eq. (2), (3), (11) and (16).

`base` has the contract and its one evaluation of a cell, `Likelihood.log_likelihood`; `real`,
`positive`, `amounts`, `unit` and `counts` have the families by support, `partial` counts of which
a random share was observed, and `links` the maps from latent functions to parameters. `truncation`,
`quantiles` and `quadrature` are numerics that families share, `special` has tails in log space. A
new family is one more class; defining it registers it. Import families, `Likelihood`, `Parameter`,
supports, `FAMILIES` and `as_likelihood` from here, and special functions from the modules of
`censored_gp.likelihoods.special`.

>>> from censored_gp import likelihoods
>>> likelihoods.FAMILIES["student_t"]()
StudentT()
>>> likelihoods.KINDS
('exact', 'right', 'left', 'interval')
>>> from censored_gp.likelihoods import BINARY, COUNTS, POSITIVE, REAL, UNIT
>>> [bool(support.contains(0.5)) for support in (REAL, POSITIVE, UNIT, COUNTS, BINARY)]
[True, True, True, False, False]
"""

from censored_gp.likelihoods.amounts import Tweedie
from censored_gp.likelihoods.base import FAMILIES, KINDS, Likelihood, Parameter, as_likelihood
from censored_gp.likelihoods.counts import NegativeBinomial, PaperNegativeBinomial, Poisson
from censored_gp.likelihoods.positive import Exponential, Gamma, LogNormal, Weibull
from censored_gp.likelihoods.real import Gaussian, StudentT
from censored_gp.likelihoods.support import (
    BINARY,
    COUNTS,
    NONNEGATIVE,
    POSITIVE,
    REAL,
    UNIT,
    Support,
)
from censored_gp.likelihoods.unit import Bernoulli, Beta

__all__ = [
    "BINARY",
    "COUNTS",
    "FAMILIES",
    "KINDS",
    "NONNEGATIVE",
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
    "Tweedie",
    "Weibull",
    "as_likelihood",
]
