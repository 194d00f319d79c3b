"""The estimator keeps the rules of scikit-learn, by scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from censored_gp import CensoredGP
from censored_gp.kernels import RBF

# One kernel, few inducing inputs, constant noise, few steps: the checks are about the interface.
FEW = {"max_inducing": 32, "max_iterations": 6}


@parametrize_with_checks([CensoredGP(kernels=RBF(), heteroscedastic=False, **FEW)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.usefixtures("mixed_by_default")
@parametrize_with_checks([CensoredGP()])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learns_own_checks_of_the_default(estimator, check):
    check(estimator)
