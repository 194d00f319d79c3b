"""Quantiles from tails: to the last digit, in far tails, within bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from censored_gp.likelihoods import Gamma, Gaussian, LogNormal, Poisson, StudentT
from censored_gp.likelihoods.quantiles import _middle, invert
from support.quick import quick

INF = np.inf


def test_the_middle_of_floats_is_between_them_whatever_their_size():
    x = jnp.array([-INF, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1e-300, 2.0, INF])
    np.testing.assert_array_equal(_middle(x, x), x)
    middle = _middle(x[:-1], x[1:])
    assert np.all((x[:-1] <= middle) & (middle <= x[1:]))
    middle = _middle(jnp.array([-INF, 1.0]), jnp.array([INF, 1e300]))
    assert middle[0] == 0.0
    assert 1e148 < middle[1] < 1e152


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_location_and_scale_of_any_size(scale):
    # A Student's t has no closed quantile, so that this is the inversion at work.
    theta = (1e3 * scale, scale, 3.0)
    u = np.array([1e-12, 0.3, 0.999])
    family = StudentT()

    @quick
    def there_and_back(u, *theta):
        return family.log_cdf(family.quantile(u, *theta), *theta)

    np.testing.assert_allclose(there_and_back(u, *theta), np.log(u), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "theta"), [(Gamma(), (1e-3, 0.3)), (StudentT(), (1.0, 2, 3))])
def test_the_search_ends_where_rounding_errors_begin(family, theta, monkeypatch):
    calls = []
    tails = type(family).log_tails
    monkeypatch.setattr(type(family), "log_tails", lambda *args: [calls.append(1), tails(*args)][1])
    # Without a compiler the steps of the loop are calls that can be counted.
    with jax.disable_jit():
        family.quantile(np.array([1e-6, 0.02, 0.5, 0.97, 1 - 1e-9]), *theta)
    assert 2 < len(calls) <= 25


def test_within_bounds_far_in_the_tail():
    # Beyond 40 sigma the excess over the bound is exponential of rate 40 to first order.
    u = np.array([0.05, 0.5, 0.95])
    y = quick(lambda u: Gaussian().quantile_within(u, 40.0, INF, 0.0, 1.0))(u)
    log_ratio = Gaussian().log_survival(y, 0.0, 1.0) - Gaussian().log_survival(40.0, 0.0, 1.0)
    np.testing.assert_allclose(log_ratio, np.log1p(-u), rtol=1e-9)
    np.testing.assert_allclose(y - 40.0, -np.log1p(-u) / 40.0, rtol=2e-2)


@pytest.mark.parametrize(
    ("family", "theta", "bounds"),
    [
        (Gamma(), (2.0, 1.5), (0.7, 3.0)),
        (Gaussian(), (2.0, 1.5), (0.7, 3.0)),
        (Gaussian(), (2.0, 1.5), (23.0, 90.0)),
        (Gaussian(), (2.0, 1.5), (-80.0, -33.0)),
    ],
)
def test_within_bounds_the_level_is_the_share_of_the_interval(family, theta, bounds):
    u = np.array([1e-6, 0.25, 0.5, 0.99])
    y = quick(lambda u: family.quantile_within(u, *bounds, *theta))(u)
    lower, upper = np.full(5, bounds[0]), jnp.append(y, bounds[1])
    log_mass = quick(lambda a, b: family.log_likelihood(a, b, *theta))(lower, upper)
    share = log_mass[:-1] - log_mass[-1]
    np.testing.assert_allclose(share, np.log(u), rtol=1e-9)


def test_a_point_is_its_own_quantile_and_bounds_hold():
    family = LogNormal()
    lower, upper = np.array([2.0, 2.0, 5.0]), np.array([2.0, 2.0 + 1e-9, INF])
    y = quick(lambda u: family.quantile_within(u, lower, upper, 0.0, 0.5))(0.5)
    assert y[0] == 2.0
    assert np.all((y >= lower) & (y <= upper))


def test_counts_invert_to_the_smallest_that_reaches_the_level():
    family, rate = Poisson(), 30.0
    k = np.arange(5.0, 60.0)
    level = np.exp(quick(family.log_cdf)(k, rate))
    quantile = quick(lambda u: family.quantile(u, rate))
    np.testing.assert_array_equal(quantile(level[:-10]), k[:-10])
    np.testing.assert_array_equal(quantile(level[:-10] * (1 + 1e-9)), k[:-10] + 1.0)


@pytest.mark.parametrize("with_leap", [True, False])
def test_counts_are_found_from_any_start(with_leap):
    family, rate = Poisson(), 30.0
    levels, starts, leaps = np.meshgrid(
        [1e-9, 0.05, 0.5, 0.95, 1 - 1e-9],
        [0.0, 7.0, 30.0, 1e4, 1e12, -3.0, INF, np.nan],
        [0.0, 5.0, 1e6] if with_leap else [np.nan],
    )

    def inverted(level, start, leap):
        return invert(
            lambda y: family.log_tails(y, rate),
            lambda y: family.log_density(y, rate),
            jnp.log(level),
            jnp.log1p(-level),
            family.support,
            start,
            leap if with_leap else None,
        )

    found = quick(inverted)(levels, starts, leaps)
    np.testing.assert_array_equal(found, stats.poisson.ppf(levels, rate))


def test_counts_in_the_billions():
    rate = 1e9
    found = quick(lambda u: Poisson().quantile(u, rate))(np.array([0.02275013194817921, 0.5]))
    np.testing.assert_allclose(found, rate - np.array([2.0, 0.0]) * np.sqrt(rate), atol=3.0)


def test_counts_within_bounds_are_whole_and_inside():
    u = np.array([0.01, 0.5, 0.99])
    y = quick(lambda u: Poisson().quantile_within(u, 50.0, 90.0, 3.0))(u)
    np.testing.assert_array_equal(y, [50.0, 50.0, 51.0])
