"""The estimator keeps the rules of scikit-learn, by scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from censored_gp import CensoredGP
from censored_gp.kernels import RBF


# One kernel, few inducing inputs and constant noise: the checks are about the interface.
@parametrize_with_checks([CensoredGP(kernels=RBF(), max_inducing=32, heteroscedastic=False)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CensoredGP()])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learns_own_checks_of_the_default(estimator, check):
    check(estimator)
