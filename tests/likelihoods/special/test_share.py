"""The probability of what is counted until a random moment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from censored_gp.likelihoods.special.beta import log_negative_binomial
from censored_gp.likelihoods.special.gamma import log_gamma_tails
from censored_gp.likelihoods.special.share import log_share as share

MEANS = np.array([1e-3, 0.3, 4.0, 37.0, 900.0])
SEEN = np.array([[0.0], [1.0], [7.0], [60.0]])
log_share = jax.jit(share)
slopes = jax.jit(jax.grad(lambda *a: share(*a).sum(), argnums=(1, 2)))


def negative_binomial(mean, dispersion):
    return stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))


def table(dispersion):
    """Return what was seen, means and a dispersion, for every pair of the first two."""
    return np.broadcast_arrays(SEEN, MEANS, dispersion)


@pytest.mark.parametrize("dispersion", [1e-3, 0.2, 0.7, 0.999, 1.0, 1.3, 6.0])
def test_it_is_the_sum_over_what_the_count_may_have_been(dispersion):
    y = np.arange(100_000.0)
    expected = np.empty((len(SEEN), len(MEANS)))
    for column, mean in enumerate(MEANS):
        terms = negative_binomial(mean, dispersion).logpmf(y) - np.log1p(y)
        expected[:, column] = [np.logaddexp.reduce(terms[int(v) :]) for v in SEEN[:, 0]]
    np.testing.assert_allclose(log_share(*table(dispersion)), expected, atol=2e-6, rtol=1e-9)


def test_without_dispersion_it_is_closed():
    """P(k) / (k + 1) = P(k + 1) / mean of a Poisson count."""
    v, mean, none = table(0.0)
    expected = log_gamma_tails(v + 1.0, mean)[0] - np.log(mean)
    np.testing.assert_allclose(log_share(v, mean, none), expected, atol=1e-6, rtol=1e-9)


def test_what_is_seen_adds_up_to_one():
    seen = log_share(np.arange(3000.0), 25.0, 0.4)
    assert float(jnp.exp(seen).sum()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("dispersion", [0.0, 0.3, 1.0, 2.5])
def test_its_slopes_are_right(dispersion):
    """In the log of the mean it is P(v) / S(v) - 1; in the dispersion it is that of the sum."""
    v, mean, alpha = table(dispersion)
    along_mean, along = slopes(v, mean, alpha)
    mass = log_negative_binomial(v, mean, alpha) - log_share(v, mean, alpha)
    np.testing.assert_allclose(mean * along_mean, jnp.expm1(mass), atol=1e-5)
    step = 1e-4
    ends = [log_share(v, mean, alpha + k * step) for k in ((1, 0), (1, -1))[dispersion > 0]]
    tolerance = 1e-3 if dispersion else 1e-1
    np.testing.assert_allclose(
        along, (ends[0] - ends[1]) / (step * (1 + (dispersion > 0))), rtol=tolerance, atol=tolerance
    )


def test_it_agrees_with_counting_until_a_random_moment():
    rng = np.random.default_rng(0)
    truth = negative_binomial(6.0, 0.5).rvs(400_000, random_state=rng)
    seen = rng.binomial(truth, rng.uniform(size=truth.size))
    expected = np.exp(log_share(np.arange(12.0), 6.0, 0.5))
    found = np.bincount(seen, minlength=12)[:12] / truth.size
    np.testing.assert_allclose(found, expected, atol=5 * np.sqrt(0.25 / truth.size))
