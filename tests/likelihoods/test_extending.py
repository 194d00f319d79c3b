"""The family of the documentation, run as it stands there."""

import functools
import re
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.stats

from censored_gp.likelihoods import as_likelihood
from support.quick import quick

PAGE = Path(__file__).parents[2] / "docs" / "extending" / "family.md"
THETA = (1.5, 0.8)
INF = np.inf


@pytest.fixture(scope="module")
def family():
    scope: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec"), scope)
    return scope["Gumbel"]()


@pytest.fixture(scope="module")
def oracle():
    return scipy.stats.gumbel_r(*THETA)


def test_every_kind_of_datum_follows_from_density_and_cdf(family, oracle):
    lower = np.array([2.0, 2.0, -INF, 1.0, 40.0, -INF])
    upper = np.array([2.0, INF, 2.0, 3.0, INF, INF])

    @quick
    def both(*theta):
        total = functools.partial(family.log_likelihood, lower, upper)
        return total(*theta), jax.jacfwd(total, argnums=(0, 1))(*theta)

    values, slopes = both(*THETA)
    between = np.log(oracle.cdf(3.0) - oracle.cdf(1.0))
    expected = [oracle.logpdf(2.0), oracle.logsf(2.0), oracle.logcdf(2.0), between]
    expected += [-(40.0 - THETA[0]) / THETA[1], 0.0]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert np.isfinite(slopes).all()
    assert slopes[0][-1] == slopes[1][-1] == 0.0


def test_moments_and_quantiles_come_by_themselves(family, oracle):
    u = np.array([1e-9, 0.2, 0.5, 0.999])
    np.testing.assert_allclose(quick(family.quantile)(u, *THETA), oracle.ppf(u), rtol=1e-12)
    mean, variance = quick(lambda *theta: (family.mean(*theta), family.variance(*theta)))(*THETA)
    np.testing.assert_allclose(mean, oracle.mean(), rtol=1e-6)
    np.testing.assert_allclose(variance, oracle.var(), rtol=1e-5)


def test_starting_values_follow_the_roles(family, oracle):
    values = oracle.rvs(500, random_state=0)
    np.testing.assert_allclose(family.start(values), [values.mean(), values.std()], rtol=1e-12)


def test_it_is_registered_by_being_defined(family):
    assert as_likelihood("gumbel") == family


def test_a_link_is_exchanged_by_name(family):
    changed = type(family)(scale="softplus")
    np.testing.assert_allclose(changed.theta(0.3, 0.0)[1], np.log(2.0), rtol=1e-14)
    assert repr(changed) == "Gumbel(scale='softplus')"
