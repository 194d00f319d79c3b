"""What sites say where part of a latent value is its row's own, against Gaussians by hand."""

import numpy as np

from censored_gp.inference.posterior import (
    Sites,
    Spread,
    before_seen,
    nugget_divergence,
    nugget_slope,
    of_functions,
    with_nugget,
)

F = Spread(np.full((1, 1, 1), 0.7), np.full((1, 1, 1), 0.3))
SITES = Sites(np.full((1, 1, 1), 2.0), np.full((1, 1, 1), 1.6))


def variance(value):
    return np.full((1, 1, 1), value)


def test_a_nugget_of_nothing_changes_nothing():
    nothing = variance(0.0)
    for own, given in zip(of_functions(SITES, nothing), SITES, strict=True):
        np.testing.assert_allclose(own, given)
    for own, given in zip(with_nugget(F, SITES, nothing), F, strict=True):
        np.testing.assert_allclose(own, given)
    assert float(nugget_divergence(F, SITES, nothing)) == 0.0


def test_under_a_large_nugget_a_cell_says_nothing_of_the_function_and_all_of_itself():
    large = variance(1e12)
    assert of_functions(SITES, large).precision.item() < 1e-11
    found = with_nugget(F, SITES, large)
    np.testing.assert_allclose(found.mean, SITES.linear / SITES.precision)
    np.testing.assert_allclose(found.variance, 1 / SITES.precision)


def test_a_cell_that_was_not_seen_has_the_nugget_of_a_new_one():
    unseen = Sites(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
    found = with_nugget(F, unseen, variance(0.4))
    np.testing.assert_allclose(found.mean, F.mean)
    np.testing.assert_allclose(found.variance, F.variance + 0.4)
    assert float(nugget_divergence(F, unseen, variance(0.4))) == 0.0


def test_moments_and_divergence_are_those_of_draws():
    """f from q, e given f from its Gaussian: their sum, and the mean divergence of e."""
    c, precision, linear = 0.4, 1.6, 2.0
    rng = np.random.default_rng(0)
    f = 0.7 + np.sqrt(0.3) * rng.standard_normal(400_000)
    spread = 1 / (1 / c + precision)
    centre = spread * (linear - precision * f)
    gamma = f + centre + np.sqrt(spread) * rng.standard_normal(len(f))
    found = with_nugget(F, SITES, variance(c))
    np.testing.assert_allclose(found.mean, gamma.mean(), atol=0.005)
    np.testing.assert_allclose(found.variance, gamma.var(), atol=0.005)
    divergence = 0.5 * (spread / c - 1 + centre**2 / c + np.log(c / spread))
    found = nugget_divergence(F, SITES, variance(c))
    np.testing.assert_allclose(found, divergence.mean(), atol=0.003)


def test_slope_is_that_of_the_evidence_of_one_cell():
    """A lone site of f ~ N(m, k) is an observation h / Lambda with variance k + c + 1 / Lambda."""
    m, k, c, (linear, precision) = 0.2, 0.9, 0.4, (2.0, 1.6)

    def evidence(c):
        total = k + c + 1 / precision
        return -0.5 * np.log(total) - 0.5 * (linear / precision - m) ** 2 / total

    own = of_functions(SITES, variance(c))
    after = 1 / (1 / k + own.precision.item())
    q = Spread(variance(after * (m / k + own.linear.item())), variance(after))
    slope, information = nugget_slope(q, SITES, variance(c))
    step = 1e-5
    np.testing.assert_allclose(slope, (evidence(c + step) - evidence(c - step)) / (2 * step), 1e-6)
    np.testing.assert_allclose(information, 0.5 / (k + c + 1 / precision) ** 2)


def test_what_was_known_before_a_cell_was_seen_and_its_site_are_what_is_known():
    """Precisions add up, whatever the nugget; without a site nothing has changed."""
    for c in (0.0, 0.4, 30.0):
        before, after = before_seen(F, SITES, variance(c)), with_nugget(F, SITES, variance(c))
        np.testing.assert_allclose(1 / before.variance + SITES.precision, 1 / after.variance)
        both = before.mean / before.variance + SITES.linear
        np.testing.assert_allclose(both, after.mean / after.variance)
    unseen = Sites(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)))
    np.testing.assert_allclose(before_seen(F, unseen, variance(0.4)).variance, F.variance + 0.4)
