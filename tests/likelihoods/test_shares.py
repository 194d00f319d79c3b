"""Counts of which a share was counted."""

import jax
import numpy as np
import pytest

from censored_gp.likelihoods import (
    Gaussian,
    Likelihood,
    NegativeBinomial,
    PaperNegativeBinomial,
    Poisson,
)
from censored_gp.likelihoods.partial import given_share, knows_shares

COUNTS = np.arange(3000.0)
CASES = [
    (Poisson(), (5.0,)),
    (NegativeBinomial(), (6.0, 0.4)),
    (PaperNegativeBinomial(), (0.7, 1.4)),
]
pytestmark = pytest.mark.usefixtures("quickly")


# The paper's own negative binomial is the other one in other parameters.
@pytest.fixture(
    params=[
        *((*case, 0.0) for case in CASES[:2]),
        *((*case, 0.07) for case in CASES[:2]),
        pytest.param((*CASES[2], 0.0), marks=pytest.mark.slow),
    ],
    ids=lambda case: f"{case[0]} {case[1]} odds {case[2]}",
)
def case(request):
    """What a count was, the parameters, and P(y) (1 / (y + 1) + odds) of every count."""
    likelihood, theta, odds = request.param
    weight = np.exp(np.asarray(likelihood.log_density(COUNTS, *theta))) * (1 / (COUNTS + 1) + odds)
    return given_share(likelihood, np.log(odds) if odds else None), theta, weight


def test_the_probability_of_what_was_seen_is_the_sum(case):
    given, theta, weight = case
    seen = np.array([0, 1, 4, 25])
    expected = [np.log(weight[v:].sum()) for v in seen]
    found = jax.jit(given.log_seen)(seen.astype(float), *theta)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_the_count_was_is_weighed_by_how_likely_its_share_is(case):
    given, theta, weight = case
    share = weight / weight.sum()
    density = np.exp(np.asarray(jax.jit(given.log_density)(COUNTS, *theta)))
    np.testing.assert_allclose(density, share, rtol=1e-5, atol=1e-12)
    cdf, survival = (
        np.exp(np.asarray(tail)) for tail in jax.jit(given.log_tails)(COUNTS[:40], *theta)
    )
    np.testing.assert_allclose(cdf, np.cumsum(share)[:40], atol=1e-6)
    np.testing.assert_allclose(survival, 1 - np.cumsum(share)[:40], atol=1e-6)
    mean = (share * COUNTS).sum()
    found = jax.jit(lambda *t: (given.mean(*t), given.variance(*t)))(*theta)
    expected = mean, (share * (COUNTS - mean) ** 2).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_given_what_was_seen_moments_and_quantiles_are_those_of_the_counts_above(case):
    given, theta, weight = case
    seen, levels = np.array([0.0, 3.0, 14.0]), np.array([0.03, 0.97])

    @jax.jit
    def answers(*theta):
        within = given.quantile_within(levels[:, None], seen, np.inf, *theta)
        return *given.moments_within(seen, np.inf, *theta), within

    for mean, variance, low, high, v in zip(
        *answers(*theta)[:2], *answers(*theta)[2], seen, strict=True
    ):
        share = np.where(v <= COUNTS, weight, 0.0) / weight[int(v) :].sum()
        expected = (share * COUNTS).sum()
        assert mean == pytest.approx(expected, rel=1e-5, abs=1e-5)
        spread = (share * (COUNTS - expected) ** 2).sum()
        assert variance == pytest.approx(spread, rel=1e-3, abs=1e-4)
        assert [low, high] == list(np.searchsorted(np.cumsum(share), levels))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=str)
def test_intervals_of_low_counts_have_a_probability_however_large_the_mean(likelihood):
    theta = (200.0, 1e-4)[: len(likelihood.parameters)]
    lower, upper = np.array([0.0, 2.0, 2.0, 150.0]), np.array([4.0, 8.0, 30.0, 260.0])
    found = np.exp(jax.jit(given_share(likelihood).log_likelihood)(lower, upper, *theta))
    weight = np.exp(np.asarray(likelihood.log_density(COUNTS, *theta))) / (COUNTS + 1)
    share = weight / weight.sum()
    expected = [share[int(a) : int(b) + 1].sum() for a, b in zip(lower, upper, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=1e-6)


def test_it_has_the_parameters_of_the_whole():
    given = given_share(NegativeBinomial(mean="softplus"))
    assert given.parameters == NegativeBinomial.parameters
    assert given.links == NegativeBinomial(mean="softplus").links
    assert given_share(Poisson()) == given_share(Poisson())


def test_families_say_whether_they_know():
    assert all(knows_shares(likelihood) for likelihood, _ in CASES)
    assert not knows_shares(Gaussian())
    with pytest.raises(NotImplementedError):
        Likelihood.log_share(Gaussian(), 1.0, 0.0, 1.0)


@pytest.mark.parametrize("log_odds", [None, -700.0, 0.0])
def test_it_can_be_differentiated_far_out(log_odds):
    for likelihood, theta in ((Poisson(), (1e-3,)), (NegativeBinomial(), (1e-3, 3.0))):
        given = given_share(likelihood, log_odds)
        slopes = jax.jit(jax.grad(lambda t, f=given: f.log_seen(300.0, *t)))(theta)
        assert np.isfinite(slopes).all()


@pytest.mark.parametrize(("likelihood", "theta"), CASES[:2], ids=str)
def test_between_a_share_and_a_limit_there_are_both(likelihood, theta):
    """With no odds it is a share, with endless ones the family cut to the bound."""
    seen = np.array([0.0, 3.0, 14.0])

    @jax.jit
    def moments(log_odds):
        return given_share(likelihood, log_odds).moments_within(seen, np.inf, *theta)

    few, between, many = (np.array(moments(odds)) for odds in (-60.0, -3.0, 60.0))
    share, limit = (
        np.array(jax.jit(lambda *t, f=f: f.moments_within(seen, np.inf, *t))(*theta))
        for f in (given_share(likelihood), likelihood)
    )
    np.testing.assert_allclose(few, share, rtol=1e-12)
    np.testing.assert_allclose(many, limit, rtol=1e-12)
    assert ((share[0] < between[0]) & (between[0] < limit[0])).all()
