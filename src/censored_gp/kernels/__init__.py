"""Kernels: what is alike in two rows of inputs.

>>> from censored_gp import kernels
>>> kernels.RBF("3h", columns="time") + kernels.Linear(columns="price")
RBF(lengthscale='3h', columns=('time',)) + Linear(scale=None, columns=('price',))
"""

from censored_gp.kernels.base import (
    Combination,
    Kernel,
    Product,
    Sum,
    distinct_rows,
    hyperparameter,
)
from censored_gp.kernels.others import Constant, Linear, Periodic, White
from censored_gp.kernels.stationary import (
    RBF,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Stationary,
)

__all__ = [
    "RBF",
    "Combination",
    "Constant",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Stationary",
    "Sum",
    "White",
    "distinct_rows",
    "hyperparameter",
]
