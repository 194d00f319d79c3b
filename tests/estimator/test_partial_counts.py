"""Counts that were made until a random moment, from the table to the answer."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from censored_gp import NCGP, CensoredGP, Observations, load
from censored_gp.inference.elbo import collect_terms
from censored_gp.likelihoods import Poisson
from censored_gp.prediction import metrics

pytestmark = pytest.mark.usefixtures("quickly")
HOURS = 24 * 7
X = np.arange(HOURS)[:, None] / 24.0


def counted(seed=0):
    """Demand that peaks every day, counted in part in most of the busy hours."""
    rng = np.random.default_rng(seed)
    rate = np.exp(1.6 + 1.1 * np.sin(2 * np.pi * X[:, 0]))
    truth = rng.poisson(rate).astype(float)
    stopped = (rate > 8) & (rng.uniform(size=HOURS) < 0.8)
    seen = np.where(stopped, np.floor(rng.uniform(size=HOURS) * (truth + 1)), truth)
    return truth, seen, stopped


def model(**settings):
    return CensoredGP("poisson", heteroscedastic=False, random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    truth, seen, stopped = counted()
    sides = {side: model().fit(X, seen, censored=stopped, side=side) for side in ("right", "share")}
    return truth, seen, stopped, sides


def test_a_random_share_is_not_taken_for_a_limit(fitted):
    """A limit says nothing of what is above it, so taking a share for one overestimates."""
    truth, _, stopped, sides = fitted
    total = truth[stopped].sum()
    ratio = {side: each.impute()[stopped].sum() / total for side, each in sides.items()}
    assert ratio["right"] > 1.2
    assert ratio["share"] == pytest.approx(1.0, abs=0.15)


def test_intervals_of_what_was_counted_in_part_hold_the_truth(fitted):
    truth, seen, stopped, sides = fitted
    low, high = sides["share"].impute_interval(0.9)
    assert (low[stopped] >= seen[stopped]).all()
    inside = (low <= truth) & (truth <= high)
    assert inside[stopped].mean() > 0.8
    np.testing.assert_array_equal(low[~stopped], truth[~stopped])


@pytest.mark.slow
def test_draws_and_probabilities_agree_with_the_moments(fitted):
    _, seen, stopped, sides = fitted
    found = sides["share"].imputation(stopped)
    drawn = found.sample(600, 0, joint=False)
    assert (drawn[:, :, 0] >= seen[stopped]).all()
    error = 5 * found.std / np.sqrt(600)
    assert np.mean(np.abs(drawn.mean(axis=0) - found.mean) < error) > 0.95
    upto = found.cdf(found.quantile(0.5))
    assert (upto >= 0.5 - 1e-9).all()


def test_the_lost_demand_is_what_was_not_counted(fitted):
    truth, seen, stopped, sides = fitted
    total = sides["share"].lost_demand(samples=200, random_state=0)[0]
    assert total["lost_low"] <= (truth - seen)[stopped].sum() <= total["lost_high"]


def test_a_share_of_none_is_told_from_nothing_known():
    seen = Observations.from_flags([0.0, 0.0], [True, True], side="share")
    (terms,) = collect_terms(seen, (Poisson(),), {"mean": (0,)})
    assert terms.kind == "share"
    bound = Observations.from_flags([0.0, 0.0], [True, True])
    assert collect_terms(bound, (Poisson(),), {"mean": (0,)}) == ()


def test_a_model_that_takes_records_at_their_word_knows_no_shares():
    _, seen, stopped = counted()
    naive = NCGP("gaussian", max_iterations=1)
    with pytest.warns(ConvergenceWarning):
        naive.fit(X, seen, censored=stopped, side="share")
    assert naive.training_.seen.is_exact.all()
    assert not naive.training_.seen.is_share.any()


@pytest.mark.slow
def test_overdispersed_counts_know_shares_too():
    rng = np.random.default_rng(1)
    truth = rng.negative_binomial(2.0, 2.0 / 14.0, size=HOURS).astype(float)
    stopped = np.arange(HOURS) % 2 == 0
    seen = np.where(stopped, np.floor(rng.uniform(size=HOURS) * (truth + 1)), truth)
    counts = CensoredGP("negative_binomial", heteroscedastic=False, random_state=0)
    filled = counts.fit(X, seen, censored=stopped, side="share").impute()
    assert (filled[stopped] >= seen[stopped]).all()
    assert filled[stopped].sum() == pytest.approx(truth[stopped].sum(), rel=0.15)


def test_other_families_refuse_a_share():
    with pytest.raises(ValueError, match=r"Output 'y', row 1.*share.*Gaussian.*poisson"):
        CensoredGP("gaussian").fit([[0.0], [1.0]], [1.0, 2.0], censored=[0, 1], side="share")
    with pytest.raises(ValueError, match=r"row 1.*2\.5"):
        model().fit([[0.0], [1.0]], [1.0, 2.5], censored=[0, 1], side="share")


def test_tables_say_the_same_as_arrays(fitted):
    _, seen, stopped, sides = fitted
    wide = {"day": X[:, 0], "rides": seen, "stopped": stopped}
    table = model().fit(wide, outputs="rides", time="day", censored="stopped", side="share")
    np.testing.assert_array_equal(table.observations_.is_share[:, 0], stopped)
    np.testing.assert_allclose(table.impute()["rides"], sides["share"].impute(), rtol=1e-6)
    long = {key: np.concatenate([column, column]) for key, column in wide.items()}
    long["place"] = np.repeat(["a", "b"], HOURS)
    both = model(max_iterations=1)
    with pytest.warns(ConvergenceWarning):
        both.fit(long, outputs="rides", by="place", time="day", censored="stopped", side="share")
    np.testing.assert_array_equal(both.observations_.is_share, np.stack([stopped] * 2, axis=1))


def test_a_saved_model_knows_its_shares(fitted, tmp_path):
    share = fitted[-1]["share"]
    again = load(share.save(tmp_path / "model.cgp"))
    np.testing.assert_array_equal(again.observations_.is_share, share.observations_.is_share)
    np.testing.assert_array_equal(again.impute(), share.impute())


def test_scores_leave_shares_out(fitted):
    truth, _, stopped, sides = fitted
    prediction = sides["share"].predict_distribution(X)
    known = np.where(stopped, np.nan, truth)
    scored = metrics.nlpd(prediction, sides["share"].observations_)
    assert scored == pytest.approx(metrics.nlpd(prediction, known))


def test_shares_go_with_their_rows_and_outputs():
    seen = Observations.from_flags([[1, 5], [2, 6]], [[0, 1], [0, 0]], side="share")
    assert seen.is_share.tolist() == [[False, True], [False, False]]
    assert seen.rows([0]).outputs([1]).is_share.tolist() == [[True]]
    assert "1 of the bounds are a share of the truth" in seen.summary()
    missing = Observations.from_flags([np.nan], [1], side="share")
    assert missing.is_missing.all()
    assert not missing.is_share.any()


def test_a_share_is_neither_a_strict_bound_nor_without_a_flag():
    with pytest.raises(ValueError, match=r"strict.*no bound"):
        Observations.from_flags([1, 2], [0, 1], side="share", strict=True)
    with pytest.raises(ValueError, match="without flags"):
        model().fit([[0.0], [1.0]], [1.0, 2.0], capacity=2, side="share")
    with pytest.raises(ValueError, match="shape"):
        Observations([[1.0]], [[np.inf]], is_share=np.ones((3, 1), bool))


def test_only_a_lower_bound_can_be_a_share():
    with pytest.raises(ValueError, match=r"Output 'y', row 0.*not right"):
        Observations([[1.0]], [[2.0]], is_share=np.ones((1, 1), bool))
    with pytest.raises(ValueError, match=r"side.*'whole'"):
        Observations.from_flags([1.0], [1], side="whole")
