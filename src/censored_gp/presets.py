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

from censored_gp.estimator import CensoredGP

__all__ = ["CGP", "HCGP", "HMOCGP", "MOCGP", "MONCGP", "NCGP"]


def NCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a non-censored Gaussian process: single outputs, records taken at their word."""
    return CensoredGP(
        likelihood, kernels, coupled=False, heteroscedastic=False, use_censoring=False, **settings
    )


def MONCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a multi-output non-censored Gaussian process: records taken at their word."""
    return CensoredGP(
        likelihood, kernels, coupled=True, heteroscedastic=False, use_censoring=False, **settings
    )


def CGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a censored Gaussian process: single outputs, constant noise."""
    return CensoredGP(
        likelihood, kernels, coupled=False, heteroscedastic=False, use_censoring=True, **settings
    )


def HCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a heteroscedastic censored Gaussian process: single outputs, varying noise."""
    return CensoredGP(
        likelihood, kernels, coupled=False, heteroscedastic=True, use_censoring=True, **settings
    )


def MOCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return a multi-output censored Gaussian process: constant noise."""
    return CensoredGP(
        likelihood, kernels, coupled=True, heteroscedastic=False, use_censoring=True, **settings
    )


def HMOCGP(likelihood: Any = "gaussian", kernels: Any = None, **settings: Any) -> CensoredGP:
    """Return the heteroscedastic multi-output censored Gaussian process."""
    return CensoredGP(
        likelihood, kernels, coupled=True, heteroscedastic=True, use_censoring=True, **settings
    )
