"""The six models of the paper by name: settings of `CensoredGP`, not classes.

| model    | the noise varies | outputs are coupled | bounds are used |
|----------|------------------|---------------------|-----------------|
| `NCGP`   | no               | no                  | no              |
| `MONCGP` | no               | yes                 | no              |
| `CGP`    | no               | no                  | yes             |
| `HCGP`   | yes              | no                  | yes             |
| `MOCGP`  | no               | yes                 | yes             |
| `HMOCGP` | yes              | yes                 | yes             |

Each takes the other settings of `CensoredGP`.
"""

from __future__ import annotations

from typing import Any

from censored_gp.estimator.censored_gp import CensoredGP


def NCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a non-censored Gaussian process: single outputs, records taken at their word.

    >>> from censored_gp import CGP, NCGP
    >>> X, y = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
    >>> full, ignored = (kind().fit(X, y, capacity=3).predict([[2.5]])[0] for kind in (CGP, NCGP))
    >>> bool(ignored < full)
    True
    """
    return CensoredGP(
        likelihood, kernels, coupled=False, heteroscedastic=False, use_censoring=False, **settings
    )


def MONCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a multi-output non-censored Gaussian process: records taken at their word.

    >>> from censored_gp import MONCGP
    >>> model = MONCGP(rank=1)
    >>> model.coupled, model.use_censoring
    (True, False)
    """
    return CensoredGP(
        likelihood, kernels, coupled=True, heteroscedastic=False, use_censoring=False, **settings
    )


def CGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a censored Gaussian process: single outputs, constant noise.

    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> model.impute().round(1)
    array([1. , 2. , 3.4, 3.4, 2. , 1. ])
    """
    return CensoredGP(
        likelihood, kernels, coupled=False, heteroscedastic=False, use_censoring=True, **settings
    )


def HCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a heteroscedastic censored Gaussian process: single outputs, varying noise.

    >>> from censored_gp import HCGP
    >>> model = HCGP("student_t")
    >>> model.coupled, model.heteroscedastic
    (False, True)
    """
    return CensoredGP(
        likelihood, kernels, coupled=False, heteroscedastic=True, use_censoring=True, **settings
    )


def MOCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a multi-output censored Gaussian process: constant noise.

    >>> from censored_gp import MOCGP
    >>> MOCGP("poisson", rank=2)
    CensoredGP(heteroscedastic=False, likelihood='poisson', rank=2)
    """
    return CensoredGP(
        likelihood, kernels, coupled=True, heteroscedastic=False, use_censoring=True, **settings
    )


def HMOCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return the heteroscedastic multi-output censored Gaussian process.

    >>> from censored_gp import HMOCGP
    >>> HMOCGP("negative_binomial")
    CensoredGP(likelihood='negative_binomial')
    """
    return CensoredGP(
        likelihood, kernels, coupled=True, heteroscedastic=True, use_censoring=True, **settings
    )
