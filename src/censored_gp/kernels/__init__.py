"""Kernels: prior covariances k(x, x') of the latent functions of Eq. (4).

`base` has the contract, sums and products: a kernel is written for one pair of rows, and the base
class adds batching, columns and units. `stationary` and `others` have the kernels, one class each.
A new kernel is one more class; models that use it can be saved and loaded. Users import the names
below from here; other packages of the library import a name from the module that defines it.

>>> from censored_gp import kernels
>>> kernels.RBF("3h", columns="time") + kernels.Linear(columns="price")
RBF(lengthscale='3h', columns=('time',)) + Linear(scale=None, columns=('price',))
"""

from censored_gp.kernels.base import Combination, Kernel, Product, Sum, hyperparameter
from censored_gp.kernels.others import Block, Brownian, Constant, Linear, Periodic, White
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
    "Block",
    "Brownian",
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
    "hyperparameter",
]
