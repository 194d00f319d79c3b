"""Held-out cells tell good models from bad ones, and words say so."""

import dataclasses

import numpy as np
import pytest

from censored_gp import CensoredGP, Observations
from censored_gp.estimator.analysis import diagnose
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


def test_an_output_of_which_nothing_is_left_starts_from_all_of_it(model):
    inner, nothing = model._inner, np.ones(model.observations_.shape, dtype=bool)
    (start,) = diagnose._fresh_starts(model, inner, nothing)
    (whole,) = diagnose._fresh_starts(model, inner, ~nothing)
    np.testing.assert_array_equal(start.priors["mean"].mean, whole.priors["mean"].mean)


def test_whole_days_are_held_out_of_each_output():
    known = Observations.exact(np.zeros((24 * 6, 2)))
    times = np.datetime64("2024-06-03T00", "h") + np.arange(24 * 6)
    fold = diagnose.hold_out(known, 3, times)
    by_day = fold.reshape(6, 24, 2)
    assert np.all(by_day == by_day[:, :1])
    assert np.bincount(fold[:, 0]).tolist() == [48, 48, 48]
    assert np.any(fold[:, 0] != fold[:, 1])
    with pytest.raises(ValueError, match="folds: found 1"):
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
    assert any("takes records at their word predicts" in sentence for sentence in said)


def test_a_fit_that_did_not_end_and_data_that_say_little_are_told(model):
    bad = CensoredGP()
    bad.__dict__ |= vars(model)
    bad.report_ = dataclasses.replace(model.report_, status="stuck", message="It is stuck.")
    lower = np.where(np.arange(N)[:, None] < 50, 0.0, model.observations_.lower)
    bad.observations_ = Observations(lower, np.where(np.arange(N)[:, None] < 50, np.inf, lower))
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
