"""Held-out cells tell good models from bad ones; outputs and hours seldom seen are told."""

import dataclasses

import numpy as np
import pytest

from censored_gp import CensoredGP, Observations
from censored_gp.estimator.analysis import diagnose
from censored_gp.estimator.analysis.diagnose import censoring_cautions as cautions
from censored_gp.kernels import RBF
from censored_gp.prediction import metrics

N = 60


@pytest.fixture(scope="module")
def data():
    """A noisy wave that is cut at its crests."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 12, N)[:, None]
    truth = np.sin(X[:, 0]) + 0.2 * rng.normal(size=N)
    return X, truth, 0.5


@pytest.fixture(scope="module")
def model(data):
    X, truth, cap = data
    estimator = CensoredGP(kernels=RBF(1.0), heteroscedastic=False)
    return estimator.fit(X, np.minimum(truth, cap), capacity=cap)


@pytest.fixture(scope="module")
def found(model):
    return model.diagnose(folds=3)


def test_bounds_are_worth_their_while(found):
    scores = {name: table["all"] for name, table in found.scores.items()}
    assert list(scores) == [diagnose.THIS, diagnose.NAIVE, diagnose.EXACT]
    assert scores[diagnose.THIS]["nlpd"] < scores[diagnose.NAIVE]["nlpd"]
    assert scores[diagnose.THIS]["nlpd"] < scores[diagnose.EXACT]["nlpd"]
    assert 0.8 <= scores[diagnose.THIS]["coverage"] <= 1.0
    assert all(row["cells"] == N for row in scores.values())


def test_a_good_model_has_nothing_said_against_it(found):
    assert found.warnings == ()
    assert "Nothing is wrong" in str(found)
    assert found.rows[0]["model"] == diagnose.THIS
    assert found.pit.deviation() == pytest.approx(
        found.scores[diagnose.THIS]["all"]["pit_deviation"]
    )


def test_every_cell_is_predicted_by_a_model_that_has_not_seen_it(model):
    """Refits of the estimator itself, cells missing, are the slow and obvious twin."""
    fold = diagnose.hold_out(model.observations_, 3)
    fast = diagnose.cross_predict(model, fold).mean
    hidden = fold == 1
    known = model.observations_
    part = Observations(
        np.where(hidden, -np.inf, known.lower), np.where(hidden, np.inf, known.upper), known.names
    )
    slow = CensoredGP(kernels=RBF(1.0), heteroscedastic=False)
    slow.fit(np.linspace(0, 12, N)[:, None], part)
    mean = slow.predict_distribution(np.linspace(0, 12, N)[:, None]).mean
    np.testing.assert_allclose(fast[hidden], mean[hidden], atol=0.1)


def test_what_is_held_out_leaves_no_trace(model, data):
    """Neither the cells themselves nor hyper-parameters that were fitted to them matter."""
    fold = diagnose.hold_out(model.observations_, 3)
    known, hidden = model.observations_, fold == 1
    moved = np.where(hidden, np.where(known.is_exact, -known.lower, 0.1), known.lower)
    other = CensoredGP(kernels=RBF(1.0), heteroscedastic=False)
    other.fit(data[0], Observations(moved, np.where(known.is_exact, moved, known.upper)))
    assert other.elbo_ != pytest.approx(model.elbo_, abs=1)
    other.units_ = model.units_
    found, again = (diagnose.cross_predict(one, fold).mean for one in (model, other))
    np.testing.assert_allclose(found[hidden], again[hidden], rtol=1e-6)
    assert np.any(np.abs(found - again)[~hidden] > 0.01)


def test_an_output_of_which_nothing_is_left_starts_from_all_of_it(model, monkeypatch):
    starts, nothing = [], np.ones(model.observations_.shape, dtype=bool)

    def keep(run, task, models, settings):
        starts.append(models[-1])
        return model.posterior_, model.report_

    monkeypatch.setattr(diagnose, "best_fit", keep)
    for hidden in (nothing, ~nothing):
        diagnose._refit(model, hidden, use_censoring=True)
    np.testing.assert_array_equal(starts[0].priors["mean"].mean, starts[1].priors["mean"].mean)


def test_whole_days_are_held_out_of_each_output():
    known = Observations.exact(np.zeros((24 * 6, 2)))
    times = np.datetime64("2024-06-03T00", "h") + np.arange(24 * 6)
    fold = diagnose.hold_out(known, 3, times)
    by_day = fold.reshape(6, 24, 2)
    assert np.all(by_day == by_day[:, :1])
    assert np.bincount(fold[:, 0]).tolist() == [48, 48, 48]
    assert np.any(fold[:, 0] != fold[:, 1])
    with pytest.raises(ValueError, match="`folds`"):
        diagnose.hold_out(known, 1)


class Fixed:
    """Standard normal cells, shifted and scaled."""

    names, discrete = ("y",), np.array([False])

    def __init__(self, shift=0.0, scale=1.0):
        self.shift, self.scale = shift, scale

    def _z(self, y):
        return (np.asarray(y) - self.shift) / self.scale

    @property
    def mean(self):
        return np.full((400, 1), self.shift)

    def quantile(self, levels):
        from scipy.stats import norm

        z = norm.ppf(np.asarray(levels))
        return self.shift + self.scale * z[:, None, None] * np.ones((1, 400, 1))

    def interval(self, probability):
        return tuple(self.quantile([(1 - probability) / 2, (1 + probability) / 2]))

    def cdf(self, y):
        from scipy.stats import norm

        return norm.cdf(self._z(y))

    def log_probability(self, lower, upper):
        from scipy.stats import norm

        a, b = self._z(lower), self._z(upper)
        inside = np.log(np.maximum(norm.cdf(b) - norm.cdf(a), 1e-300))
        return np.where(a == b, norm.logpdf(a) - np.log(self.scale), inside)


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        (Fixed(), None),
        (Fixed(scale=0.5), "too narrow"),
        (Fixed(scale=2.0), "too wide"),
        (Fixed(shift=-0.6), "too low on the whole"),
        (Fixed(shift=0.6), "too high on the whole"),
    ],
    ids=["right", "narrow", "wide", "low", "high"],
)
def test_what_is_wrong_is_said_in_words_even_if_cells_are_censored(prediction, words):
    y = np.random.default_rng(0).normal(size=(400, 1))
    known = Observations.from_capacity({"y": np.minimum(y[:, 0], 0.8)}, 0.8)
    assert known.is_right.any()
    row = diagnose.scored(prediction, known)["y"]
    said = diagnose._of_row(row | {"r2": 0.5}, 0.9, discrete=False)
    assert (not said) if words is None else any(words in sentence for sentence in said)


@pytest.mark.parametrize(
    ("exact", "shares", "told"), [(400, 0, True), (100, 0, False), (400, 400, False)]
)
def test_a_mean_is_a_rival_only_where_little_is_censored(exact, shares, told):
    row = metrics_row() | {"cells": 400, "exact": exact, "r2": -0.1}
    said = diagnose._of_row(row, 0.9, False, shares)
    assert any("by their mean" in words for words in said) is told


def test_rivals_that_do_better_are_named(found, model):
    swapped = dict(found.scores)
    swapped[diagnose.THIS], swapped[diagnose.NAIVE] = (
        swapped[diagnose.NAIVE],
        swapped[diagnose.THIS],
    )
    said = diagnose.warnings_of(swapped, model)
    assert any("ignores censoring predicts" in sentence for sentence in said)


def test_a_fit_that_did_not_end_and_data_that_say_little_are_told(model):
    bad = CensoredGP()
    bad.__dict__ |= vars(model)
    bad.report_ = dataclasses.replace(model.report_, status="stuck", message="It is stuck.")
    lower = np.where(np.arange(N)[:, None] < 50, 0.0, model.observations_.lower)
    known = Observations(lower, np.where(np.arange(N)[:, None] < 50, np.inf, lower))
    bad.training_ = dataclasses.replace(model.training_, observations=known)
    said = diagnose.warnings_of({diagnose.THIS: {"y": metrics_row(), "all": metrics_row()}}, bad)
    assert said[0] == "It is stuck."
    assert "83% of its cells are censored" in said[1]


def metrics_row():
    return dict.fromkeys(("cells", "exact", "nlpd", "mae", "r2"), 1.0) | {
        "coverage": 0.9, "pit_mean": 0.5, "pit_deviation": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(("cells", "said"), [(0.0, True), (1.0, False)])
def test_that_nothing_could_be_scored_is_no_good_news(model, cells, said):
    row = metrics_row() | {"cells": cells}
    told = diagnose.warnings_of({diagnose.THIS: {"y": row, "all": row}}, model)
    assert any("No cell could be scored" in sentence for sentence in told) == said


def test_scores_are_those_of_the_metrics(found):
    row = found.scores[diagnose.THIS]["all"]
    assert row["nlpd"] == pytest.approx(metrics.nlpd(found.prediction, found.truth, per_point=True))
    exact = np.where(found.truth.is_exact, found.truth.lower, np.nan)
    assert row["mae"] == pytest.approx(metrics.mae(found.prediction, exact))


MONDAY = np.datetime64("2024-06-03T00")
HOURS = MONDAY + np.arange(24 * 28)
WORKING = (np.arange(24 * 28) // 24 % 7 < 5) & np.isin(np.arange(24 * 28) % 24, [8, 17])


def observed(censored, flag=1):
    return Observations.from_flags(np.full(len(censored), 3.0), flag * np.asarray(censored, int))


def test_hours_that_are_censored_in_every_week_are_told():
    (said,) = cautions(observed(WORKING), HOURS)
    assert said.startswith("Output 'y': 10 of 168 hours of the week are censored every time")
    assert "such as Monday 8:00" in said
    assert 'exposure="unknown"' in said


def test_a_single_week_in_which_an_hour_was_seen_is_enough():
    seen = WORKING & ~(np.arange(24 * 28) < 168)
    assert cautions(observed(seen), HOURS) == []


def test_what_is_missing_was_not_seen():
    known = observed(WORKING)
    gone = (WORKING & (np.arange(24 * 28) < 168))[:, None]
    lower, upper = np.where(gone, -np.inf, known.lower), np.where(gone, np.inf, known.upper)
    (said,) = cautions(dataclasses.replace(known, lower=lower, upper=upper), HOURS)
    assert "10 of 168" in said


def test_two_weeks_tell_nothing_of_every_week():
    assert cautions(observed(WORKING[:336]), HOURS[:336]) == []
    # Nor do four records of each hour of them.
    quarters = MONDAY.astype("datetime64[m]") + 15 * np.arange(4 * 336)
    assert cautions(observed(np.repeat(WORKING[:336], 4)), quarters) == []


def test_few_such_hours_are_not_worth_a_word():
    few = WORKING & (np.arange(24 * 28) % 24 == 8) & (np.arange(24 * 28) // 24 % 7 < 4)
    assert cautions(observed(few), HOURS) == []


def test_parts_of_periods_speak_of_the_level_and_so_do_two_bounds():
    known = observed(WORKING)
    part = Observations.exact(known.lower, exposure=np.where(WORKING, 0.5, 1.0))
    assert cautions(part, HOURS) == []
    rounded = Observations.from_rounding(np.full(len(HOURS), 5.0), np.where(WORKING, 1.0, 0.0))
    assert cautions(rounded, HOURS) == []
    assert cautions(Observations.from_rounding(np.full(len(HOURS), 5.0), 1.0), HOURS) == []


@pytest.mark.parametrize("share", [0.2, 0.3, 0.45])
@pytest.mark.parametrize("times", [HOURS[: 24 * 21], HOURS, np.unique(HOURS.astype("M8[D]"))])
def test_flags_dealt_at_random_are_no_pattern(share, times):
    told = 0
    for seed in range(40):
        flags = np.random.default_rng(seed).uniform(size=len(times)) < share
        told += any("every time" in said for said in cautions(observed(flags), times))
    assert told <= 4


def test_times_now_and_then_are_no_weeks():
    rng = np.random.default_rng(0)
    times = np.sort(MONDAY + rng.integers(0, 24 * 730, 400))
    assert cautions(observed(rng.uniform(size=400) < 0.3), times) == []


def test_days_of_the_week_are_days():
    days = np.datetime64("2024-06-03") + np.arange(28)
    saturday = np.arange(28) % 7 == 5
    (said,) = cautions(observed(saturday, -1), days)
    assert said.startswith("Output 'y': 1 of 7 days of the week is censored every time")
    assert "Saturday" in said
    assert "exposure" not in said, "what is at most so much is no part"


@pytest.mark.parametrize("times", [None, HOURS])
def test_an_output_that_is_mostly_censored_is_told_once(times):
    (said,) = cautions(observed(np.arange(24 * 28) % 3 > 0), times)
    assert "67% of its cells are censored" in said


def test_nothing_censored_is_nothing_to_tell():
    assert cautions(observed(np.zeros(24 * 28)), HOURS) == []
