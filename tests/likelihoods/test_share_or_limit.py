"""Counts that may be a share of the truth or a limit, from the table to the answer."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import poisson
from sklearn.exceptions import ConvergenceWarning

from censored_gp import NCGP, CensoredGP, Observations, load
from censored_gp.data.validation import warn_of_little
from censored_gp.estimator.analysis.diagnose import of_censoring
from censored_gp.inference.elbo import collect_terms
from censored_gp.likelihoods import COUNTS, Likelihood, Parameter, Poisson
from censored_gp.likelihoods.partial import log_share_or_limit
from censored_gp.prediction import metrics

pytestmark = pytest.mark.usefixtures("quickly")
HOURS = 24 * 7
X = np.arange(HOURS)[:, None] / 24.0
EITHER = "share_or_limit"


def model(**settings):
    return CensoredGP("poisson", heteroscedastic=False, random_state=0, **settings)


def records(world, seed=0):
    """Demand that peaks every day, hidden in busy hours by a broken counter or by empty docks."""
    rng = np.random.default_rng(seed)
    rate = np.exp(1.6 + 1.1 * np.sin(2 * np.pi * X[:, 0]))
    truth = rng.poisson(rate).astype(float)
    chosen = (rate > 8) & (rng.uniform(size=HOURS) < 0.8)
    if world == "share":
        hidden, bound = chosen, np.floor(rng.uniform(size=HOURS) * (truth + 1))
    else:
        bound = np.floor(rng.uniform(size=HOURS) * 1.2 * rng.permutation(truth[rate > 8]).mean())
        hidden = chosen & (bound <= truth)
    return truth, np.where(hidden, bound, truth), hidden


@pytest.fixture(scope="module", params=["share", "right"])
def fitted(request):
    truth, seen, hidden = records(request.param)
    sides = ("right", "share", EITHER)
    return (
        request.param,
        truth,
        hidden,
        {side: model().fit(X, seen, censored=hidden, side=side) for side in sides},
    )


def test_it_is_less_wrong_than_the_wrong_one_of_the_two(fitted):
    world, truth, hidden, sides = fitted
    wrong = {"share": "right", "right": "share"}[world]
    error = {s: np.mean(np.abs(m.impute() - truth)[hidden]) for s, m in sides.items()}
    assert error[EITHER] < error[wrong]
    low, high = sides[EITHER].impute_interval(0.9)
    assert np.mean(((low <= truth) & (truth <= high))[hidden]) > 0.75


def test_answers_lie_between_those_of_a_share_and_of_a_limit(fitted):
    *_, hidden, sides = fitted
    total = {side: each.impute()[hidden].sum() for side, each in sides.items()}
    assert total["share"] < total[EITHER] < total["right"]


def test_probabilities_add_up_to_one_and_to_the_mean(fitted):
    _, _, hidden, sides = fitted
    counts, cells = np.arange(120.0), np.flatnonzero(hidden)[:4]
    found = sides[EITHER].imputation(np.repeat(cells, len(counts)))
    each = np.tile(counts, len(cells))[:, None]
    parts = np.exp(found.log_probability(each, each)).reshape(len(cells), -1)
    np.testing.assert_allclose(parts.sum(axis=1), 1.0, atol=1e-6)
    means = found.mean.reshape(len(cells), -1)
    np.testing.assert_allclose(parts @ counts, means[:, 0], rtol=1e-5)
    upto = found.cdf(each).reshape(len(cells), -1)
    np.testing.assert_allclose(upto, np.cumsum(parts, axis=1), atol=1e-6)
    middle = found.quantile(0.5).reshape(len(cells), -1)[:, 0]
    np.testing.assert_array_equal(middle, np.argmax(upto >= 0.5, axis=1))


@pytest.mark.slow
def test_draws_agree_with_the_moments(fitted):
    """In total: cell by cell their error would hide which distribution they are from."""
    _, _, hidden, sides = fitted
    found = sides[EITHER].imputation(hidden)
    drawn = found.sample(400, 0, joint=False)
    assert (drawn[:, :, 0] >= sides[EITHER].observations_.lower[hidden, 0]).all()
    error = np.sqrt(np.sum(found.std**2) / 400)
    assert np.sum(drawn.mean(axis=0)) == pytest.approx(np.sum(found.mean), abs=4 * error)
    told = sides["share"].imputation(hidden)
    assert abs(np.sum(found.mean) - np.sum(told.mean)) > 10 * error, "else it would tell nothing"


def test_nodes_are_weighed_by_what_was_seen():
    """With noise of their own cells say something of it, which depends on what they may be."""
    rng = np.random.default_rng(3)
    wave = np.sin(2 * np.pi * X[:, 0])
    truth = rng.poisson(np.exp(2.2 + 1.1 * wave + 0.6 * rng.normal(size=HOURS))).astype(float)
    hidden = (wave > 0.3) & (rng.uniform(size=HOURS) < 0.7)
    seen = np.where(hidden, np.floor(rng.uniform(size=HOURS) * (truth + 1)), truth)
    either = model().fit(X, seen, censored=hidden, side=EITHER)
    known, counts = either._inner, np.arange(150.0)
    cell = int(np.flatnonzero(hidden & (seen > 0))[0])

    def probability(odds):
        either._inner = dataclasses.replace(known, limit_odds=odds)
        found = either.imputation(np.full(len(counts), cell))
        return np.exp(found.log_probability(counts[:, None], counts[:, None]))[:, 0]

    odds, above = known.limit_odds[cell, 0], slice(int(seen[cell]), int(seen[cell]) + 40)
    share, both = probability(0.0), probability(known.limit_odds)
    # Bayes: what was seen weighs what the count was, whatever else is known of it.
    ratio = both[above] / share[above] / (1 + odds * (counts[above] + 1))
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    found = either.imputation(hidden)
    drawn = found.sample(4000, 0, joint=False)
    error = np.sqrt(np.sum(found.std**2) / 4000)
    assert np.sum(drawn.mean(axis=0)) == pytest.approx(np.sum(found.mean), abs=4 * error)


def test_limits_are_those_of_the_same_output():
    y, flags = np.array([[1.0, 40.0], [3.0, 60.0], [9.0, 7.0]]), [[1, 1], [1, 1], [0, 0]]
    both = Observations.from_flags(y, flags, side=EITHER)
    for d, column in enumerate(y.T):
        alone = Observations.from_flags(column, np.array(flags)[:, d], side=EITHER)
        np.testing.assert_array_equal(both.limit_odds[:, d], alone.limit_odds[:, 0])
    # Limits have the geometric distribution of mean 2: 1/3, 2/9, 4/27, ...
    np.testing.assert_allclose(both.limit_odds[:, 0], [2 / 9, 8 / 81, 0.0])
    assert not Observations.from_flags(y, flags, side="share").limit_odds.any()


def test_odds_are_numbers_whatever_was_seen():
    zeros = Observations.from_flags([0.0, 0.0, 5.0], [1, 1, 0], side=EITHER)
    np.testing.assert_array_equal(zeros.limit_odds[:, 0], [1.0, 1.0, 0.0])
    far = Observations.from_flags([*[0.0] * 10**4, 1e6], [1] * (10**4 + 1), side=EITHER)
    assert (far.limit_odds > 0).all()
    none = Observations.from_flags([1.0, np.nan], [0, 1], side=EITHER)
    assert not none.limit_odds.any()


def test_long_tables_wide_ones_and_arrays_say_the_same():
    _, seen, hidden = records("share")
    both = Observations.from_flags(
        np.stack([seen, 3 * seen], axis=1), np.stack([hidden] * 2, axis=1), side=EITHER
    )
    long = {
        "day": np.tile(X[:, 0], 2),
        "place": np.repeat(["a", "b"], HOURS),
        "rides": np.concatenate([seen, 3 * seen]),
        "stopped": np.tile(hidden, 2),
    }
    stacked = model(max_iterations=1)
    with pytest.warns(ConvergenceWarning):
        stacked.fit(long, outputs="rides", by="place", time="day", censored="stopped", side=EITHER)
    np.testing.assert_array_equal(stacked.observations_.is_share, both.is_share)
    np.testing.assert_allclose(stacked.observations_.limit_odds, both.limit_odds)


def test_odds_go_with_their_rows_outputs_and_files(fitted, tmp_path):
    either = fitted[-1][EITHER]
    seen = either.observations_
    some = seen.rows([5, 3]).outputs([0])
    np.testing.assert_array_equal(some.limit_odds, seen.limit_odds[[5, 3]])
    again = load(either.save(tmp_path / "model.cgp"))
    np.testing.assert_array_equal(again.observations_.limit_odds, seen.limit_odds)
    np.testing.assert_array_equal(again.impute(), either.impute())


def test_a_record_of_none_is_told_from_nothing_known():
    seen = Observations.from_flags([0.0, 2.0], [True, True], side=EITHER)
    (terms,) = collect_terms(seen, (Poisson(),), {"mean": (0,)})
    assert terms.kind == EITHER
    np.testing.assert_allclose(np.exp(terms.log_odds[:2]), [0.5, 0.125])
    with jax.enable_x64(True):
        found = terms.log_likelihood(np.full((len(terms.lower), 1), 3.0))[:2, 0]
    counts = np.arange(100)
    chance = poisson.pmf(counts, 3.0)[:, None] * (1 / (counts[:, None] + 1) + [0.5, 0.125])
    expected = [np.sum(chance[0:, 0]), np.sum(chance[2:, 1])]
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-10)


class Geometric(Likelihood):
    """A family of the user's own, whose methods are right inside the support and nowhere else."""

    parameters = (Parameter("mean", "exp", "mean"),)
    support = COUNTS

    def log_density(self, y, *theta):
        (mean,) = theta
        return jnp.where(y >= 0, y * jnp.log(mean / (1 + mean)) - jnp.log1p(mean), jnp.nan)

    def log_survival(self, y, *theta):
        (mean,) = theta
        return jnp.where(y >= 0, (y + 1) * jnp.log(mean / (1 + mean)), jnp.nan)

    def log_share(self, y, *theta):
        counts = jnp.asarray(y)[..., None] + jnp.arange(400.0)
        each = self.log_density(counts, jnp.asarray(theta[0])[..., None]) - jnp.log1p(counts)
        return jax.scipy.special.logsumexp(each, axis=-1)


def test_families_of_the_user_s_own_need_not_know_what_lies_below_none():
    with jax.enable_x64(True):
        found = jax.jit(lambda m: log_share_or_limit(Geometric(), np.zeros(1), -1.0, m))(2.0)
        slope = jax.grad(lambda m: log_share_or_limit(Geometric(), 0.0, -1.0, m))(2.0)
    counts = np.arange(400)
    expected = np.sum((2 / 3) ** counts / 3 * (1 / (counts + 1) + np.exp(-1.0)))
    assert np.exp(found[0]) == pytest.approx(expected)
    assert np.isfinite(slope)


def test_limits_shares_and_what_may_be_either_stand_side_by_side():
    _, seen, hidden = records("share")
    lower, upper = seen[:, None], np.where(hidden, np.inf, seen)[:, None]
    each = np.arange(HOURS) % 3
    share = (hidden & (each > 0))[:, None]
    odds = np.where(share & (each == 2)[:, None], 0.05, 0.0)
    mixed = Observations(lower, upper, is_share=share, limit_odds=odds)
    filled = model().fit(X, mixed).impute()[:, 0]
    assert (filled[hidden] > seen[hidden]).all()
    np.testing.assert_array_equal(filled[~hidden], seen[~hidden])


def test_who_takes_records_at_their_word_takes_these_too():
    _, seen, hidden = records("share")
    word = {side: NCGP("poisson", max_iterations=3) for side in (EITHER, "right")}
    with pytest.warns(ConvergenceWarning):
        found = [m.fit(X, seen, censored=hidden, side=s).predict(X) for s, m in word.items()]
    np.testing.assert_array_equal(*found)


def test_much_that_may_be_a_limit_is_told():
    y = np.full(12, 3.0)
    said = of_censoring(Observations.from_flags(y, np.ones(12), side=EITHER))
    assert "100% of its cells are censored" in said[0]
    assert of_censoring(Observations.from_flags(y, np.ones(12), side="share")) == []
    with pytest.warns(UserWarning, match="is censored in all of its 12 observed row"):
        warn_of_little(Observations.from_flags(y, np.ones(12), side=EITHER))


def test_scores_leave_them_out(fitted):
    _, truth, hidden, sides = fitted
    prediction = sides[EITHER].predict_distribution(X)
    scored = metrics.nlpd(prediction, sides[EITHER].observations_)
    assert scored == pytest.approx(metrics.nlpd(prediction, np.where(hidden, np.nan, truth)))


def test_they_are_told_in_words(fitted):
    either = fitted[-1][EITHER].observations_
    assert f"{either.is_share.sum()} of the bounds are a share of the truth or a limit" in str(
        either.summary()
    )
    facts = type("Facts", (), {"model": fitted[-1][EITHER]})()
    told = _bounds(facts)  # pyright: ignore[reportArgumentType]
    assert "may be a limit or a random share" in told
    assert "counting stopped" not in told


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r'strict.*side="share_or_limit".*no bound'):
        Observations.from_flags([1, 2], [0, 1], side=EITHER, strict=True)
    with pytest.raises(ValueError, match=r'"share_or_limit" without flags'):
        model().fit([[0.0], [1.0]], [1.0, 2.0], capacity=2, side=EITHER)
    with pytest.raises(ValueError, match=r"Output 'y': found 1 row.*Gaussian.*poisson"):
        CensoredGP("gaussian").fit([[0.0], [1.0]], [1.0, 2.0], censored=[0, 1], side=EITHER)
    limit = Observations.from_flags([1.0, 2.0], [1, 1])
    with pytest.raises(ValueError, match=r"row 0.*found the odds 2 of a limit.*is_share"):
        dataclasses.replace(limit, limit_odds=np.full((2, 1), 2.0))
    share = Observations.from_flags([1.0, 2.0], [1, 1], side="share")
    with pytest.raises(ValueError, match=r"found the odds -1 of a limit"):
        dataclasses.replace(share, limit_odds=[[-1.0]])
    with pytest.raises(ValueError, match=r"Odds of limits: found 3 row"):
        dataclasses.replace(share, limit_odds=np.ones((3, 1)))


def test_one_number_stands_for_all_shares():
    seen = Observations.from_flags([1.0, 2.0, 3.0], [1, 0, 1], side="share")
    again = dataclasses.replace(seen, limit_odds=0.3)
    assert again.limit_odds[:, 0].tolist() == [0.3, 0.0, 0.3]
    assert Observations([1.0, 2.0], [np.inf, np.inf], is_share=True).is_share.all()
