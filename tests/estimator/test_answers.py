"""What training cells were: several ways to ask, one answer; and nothing is asked of exact rows."""

import numpy as np
import pytest

from censored_gp import CensoredGP
from censored_gp.estimator import censored_gp as answers
from censored_gp.kernels import RBF
from censored_gp.prediction.predictive import Prediction
from censored_gp.reporting.content import drawn_series

N = 24
ROWS = {
    "slice": slice(4, 14),
    "mask": np.isin(np.arange(N), range(4, 14)),
    "positions": np.arange(4, 14),
    "list": list(range(4, 14)),
}


@pytest.fixture(scope="module")
def model():
    """Two outputs with every kind of cell, from a table."""
    x = np.linspace(0.0, 6.0, N)
    y = np.round(20 + 5 * np.stack([np.sin(x), np.sin(x + 0.4)], axis=1), 1)
    lower, upper = y.copy(), y.copy()
    upper[[4, 5], 0] = upper[[6], 1] = np.inf
    lower[[9, 10], 0] = -np.inf
    lower[12, 1], upper[12, 1] = y[12, 1] - 1, y[12, 1] + 1
    lower[15, 0], upper[15, 0] = -np.inf, np.inf
    ends = {f"{name}_{end}": bound[:, d] for end, bound in (("low", lower), ("high", upper))
            for d, name in enumerate("ab")}  # fmt: skip
    values = {name: np.where(lower == upper, y, np.nan)[:, d] for d, name in enumerate("ab")}
    return CensoredGP(kernels=RBF(1.5), heteroscedastic=False).fit(
        {"x": x, **values, **ends},
        outputs=["a", "b"], inputs="x", lower=["a_low", "b_low"], upper=["a_high", "b_high"],
    )  # fmt: skip


def cells(table):
    return np.stack([table[name] for name in "ab"], axis=1)


@pytest.fixture
def asked(monkeypatch):
    """How many rows each prediction was made for."""
    seen, make = [], Prediction.__init__

    def spied(self, posterior, units, inputs, *others):
        seen.append(len(inputs))
        make(self, posterior, units, inputs, *others)

    monkeypatch.setattr(Prediction, "__init__", spied)
    return seen


@pytest.mark.parametrize("kind", ROWS)
def test_rows_may_be_chosen_in_any_way(model, kind):
    every, some = model.imputation(), model.imputation(ROWS[kind])
    np.testing.assert_allclose(some.mean, every.mean[4:14], rtol=1e-9)
    np.testing.assert_allclose(some.std, every.std[4:14], rtol=1e-6, atol=1e-9)
    for part, whole in zip(model._filled(ROWS[kind]), model._filled(), strict=True):
        np.testing.assert_allclose(part, whole[4:14], rtol=1e-9)


def test_all_ways_to_fill_gaps_agree(model):
    mean, std = (cells(table) for table in model.impute(return_std=True))
    exact, found = model.observations_.is_exact, model.imputation()
    np.testing.assert_allclose(mean, found.mean, rtol=1e-9)
    np.testing.assert_allclose(std[~exact], found.std[~exact], rtol=1e-6)
    assert np.all(std[exact] == 0)
    np.testing.assert_array_equal(mean[exact], model.observations_.lower[exact])
    for d, drawn in enumerate(drawn_series(model, 0.9, N).columns):
        np.testing.assert_allclose(drawn["e"], mean[:, d], rtol=1e-4)


def test_intervals_are_of_the_same_distribution(model):
    ends = model.impute_interval(0.8)
    assert list(ends[0]) == list(ends[1]) == list(model.impute())
    known = model.observations_
    open_ = ~known.is_exact.all(axis=1)
    twins = model.imputation(open_).interval(0.8)
    low, high = map(cells, ends)
    for end, twin in zip((low, high), twins, strict=True):
        np.testing.assert_array_equal(end[known.is_exact], known.lower[known.is_exact])
        np.testing.assert_allclose(end[open_], twin, rtol=1e-9)
        assert np.all((known.lower <= end) & (end <= known.upper))
    assert np.all((low < high)[~known.is_exact])


def test_nothing_is_computed_for_rows_that_are_exact(model, asked, monkeypatch):
    monkeypatch.setattr(answers, "MOST_ROWS", 10)
    model.impute()
    model.impute_interval(0.8)
    assert asked == [7, 7]
    exact = np.flatnonzero(model.observations_.is_exact.all(axis=1))
    mean, std = model._filled(exact)
    assert asked == [7, 7]
    np.testing.assert_array_equal(mean, model.observations_.lower[exact])
    assert np.all(std == 0)


def test_lost_demand_asks_only_rows_of_which_something_may_be_lost(model, asked):
    model.lost_demand(samples=20, random_state=8)
    assert asked == [3]


@pytest.mark.slow
def test_draws_from_the_prior_have_its_variance():
    """Gaussian, one kernel: variance of an output is that of the kernel and of the noise."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 24)[:, None]
    y = 5 + np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=24)
    model = CensoredGP(heteroscedastic=False).fit(X, y)
    drawn = model.sample_prior(X, 100, random_state=1)
    priors, scale = model.posterior_.model.priors, model.units_.scale[0]
    latent = sum(float((np.asarray(a) ** 2).sum()) for a in priors["mean"].mixing)
    noise = float(np.exp(2 * np.asarray(priors["scale"].mean)[0, 0]))
    np.testing.assert_allclose(drawn.var(axis=0).mean(), scale**2 * (latent + noise), rtol=0.4)
    assert np.array_equal(drawn[:3], model.sample_prior(X, 3, random_state=1))
