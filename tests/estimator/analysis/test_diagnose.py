"""Cells censored anew and held out tell good models from bad ones, in words."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from censored_gp import CensoredGP, Observations
from censored_gp.estimator.analysis import diagnose
from censored_gp.estimator.analysis.compare import cross_validate
from censored_gp.estimator.analysis.diagnose import censoring_cautions as cautions
from censored_gp.estimator.settings import seed_of
from censored_gp.kernels import RBF
from censored_gp.likelihoods import as_likelihood
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
    estimator = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, hyperparameters="mixed")
    return estimator.fit(X, np.minimum(truth, cap), capacity=cap)


@pytest.fixture(scope="module")
def found(model):
    return model.diagnose(folds=3)


def test_nothing_but_the_capacity_is_said_against_a_good_model(model, found):
    """No record tells what was beyond it, however good the model is."""
    first, why, *_ = found.verdict
    assert "capacity" in first
    assert ";" not in first
    assert why.startswith("Output 'y' (0.5)")
    assert found.warnings == ()
    assert found.pit.deviation() == pytest.approx(found.scores["y"]["pit_deviation"])
    own, *simple = found.rows
    assert own["method"] == diagnose.THIS
    assert all(own["error"] < row["error"] for row in simple)


def test_the_table_is_about_cells_censored_anew(model, found):
    """The estimates are those of the estimator itself, fitted to the same observations."""
    known, rng = model.observations_, np.random.default_rng(seed_of(None, None, 0))
    held_out = diagnose.hold_out(known, 3, None, rng) == 0
    expected = diagnose._imputed_now(model)
    again = diagnose.censor_anew(model, known.is_exact & ~held_out, expected, rng)
    anew = (known.is_exact & ~again.is_exact)[:, 0]
    own, truth = found.rows[0], known.lower[anew, 0]
    assert own["cells"] == anew.sum()
    slow = clone(model).fit(np.linspace(0, 12, N)[:, None], diagnose._without(again, held_out))
    filled = slow.impute()[anew]
    assert own["error"] == pytest.approx(np.abs(filled - truth).mean(), rel=0.2)
    assert own["ratio"] == pytest.approx(filled.sum() / truth.sum(), abs=0.1)
    assert own["lost"] == pytest.approx(np.sum(model.impute() - known.lower[:, 0]))


def hour_of_week(times):
    return (times - MONDAY).astype("m8[h]").astype(int) % 168


@pytest.mark.parametrize(
    ("likelihood", "flag"), [("gaussian", 1), ("gamma", 1), ("poisson", 1), ("gamma", -1)]
)
def test_cells_are_censored_anew_as_the_real_ones_are(likelihood, flag):
    """At the same hours, on the same side, at the same distance or share of the value."""
    rng, flagged = np.random.default_rng(0), WORKING & (np.arange(24 * 28) >= 168)
    y = rng.poisson(5, 24 * 28) + 1.0
    known = Observations.from_flags(y, flag * flagged.astype(int))
    training = SimpleNamespace(
        observations=known, times=HOURS.astype("M8[s]"), inputs=None, seen=known,
        likelihoods=(as_likelihood(likelihood),),
    )  # fmt: skip
    expected = y + 2 if likelihood == "gaussian" else y * 2.0**flag
    model = SimpleNamespace(training_=training)
    again = diagnose.censor_anew(model, known.is_exact, expected[:, None], rng)
    anew = (known.is_exact & ~again.is_exact)[:, 0]
    hours = hour_of_week(HOURS) % 24
    assert set(hours[anew]) == set(hours[flagged])
    for hour in set(hours[flagged]):
        kept = known.is_exact[:, 0] & (hours == hour)
        assert anew[kept].sum() <= kept.sum() / 2
    bound, truth = again.values()[anew, 0], y[anew]
    if likelihood == "poisson":
        assert np.all(np.abs(bound - truth / 2) <= 0.5)
    else:
        np.testing.assert_allclose(
            bound, truth - 2 if likelihood == "gaussian" else truth * 2.0**-flag
        )
    assert np.all(again.is_right[anew] if flag > 0 else again.is_left[anew])
    np.testing.assert_array_equal(again.lower[~anew], known.lower[~anew])


def test_exact_counts_are_thinned_as_those_seen_for_a_part_of_their_period():
    rng = np.random.default_rng(0)
    y, part = np.full(24 * 28, 400.0), np.where(np.arange(24 * 28) < 300, 0.25, 1.0)
    part[:10] = 0.0
    known = Observations.exact(np.where(part < 1, 400 * part, y), exposure=part)
    training = SimpleNamespace(
        observations=known, times=HOURS.astype("M8[s]"), inputs=None, seen=known,
        likelihoods=(as_likelihood("poisson"),),
    )  # fmt: skip
    model = SimpleNamespace(training_=training)
    again = diagnose.censor_anew(model, known.is_exact, y[:, None], rng)
    anew = (known.is_exact & ~again.is_exact)[:, 0]
    seen = anew & (again.exposure[:, 0] > 0)
    assert seen.sum() > 30
    assert np.all(again.exposure[seen] == 0.25)
    # A mean of binomial counts of 400 at 0.25, and five of its standard errors.
    assert again.lower[seen].mean() == pytest.approx(100, abs=5 * np.sqrt(75 / seen.sum()))
    mean, _ = diagnose.simple_estimates(
        again, SimpleNamespace(times=training.times, inputs=np.zeros((len(y), 1)))
    ).values()
    np.testing.assert_allclose(mean[seen], 400, rtol=0.1)


@pytest.mark.parametrize("flag", [1, -1])
def test_what_is_exact_was_within_its_limit(flag):
    """Limits that hold for exact cells bound those censored anew from the other side."""
    rng, y = np.random.default_rng(0), np.linspace(1, 9, 24 * 28)
    limit = 7.0 if flag > 0 else 3.0
    cut = flag * (y - limit) >= 0
    known = Observations.from_flags(np.where(cut, limit, y), flag * cut.astype(int))
    training = SimpleNamespace(
        observations=known, times=HOURS.astype("M8[s]"), inputs=None, seen=known,
        likelihoods=(as_likelihood("gaussian"),),
    )  # fmt: skip
    expected = np.full(known.shape, limit + flag)
    again = diagnose.censor_anew(SimpleNamespace(training_=training), known.is_exact, expected, rng)
    anew = known.is_exact & ~again.is_exact
    near, far = (again.lower, again.upper) if flag > 0 else (again.upper, again.lower)
    np.testing.assert_allclose(near[anew], known.lower[anew] - flag)
    assert np.all(far[anew] == limit)


@pytest.mark.parametrize("reached", [False, True])
def test_exact_counts_under_a_capacity_are_below_it_unless_one_has_reached_it(reached):
    rng = np.random.default_rng(0)
    y = np.minimum(rng.poisson(5, 24 * 28), 6.0)
    full = y == 6
    full[np.argmax(full)] = not reached
    known = Observations.from_flags(y, full.astype(int))
    training = SimpleNamespace(
        observations=known, times=HOURS.astype("M8[s]"), inputs=None, seen=known,
        likelihoods=(as_likelihood("poisson"),),
    )  # fmt: skip
    expected = np.full(known.shape, 8.0)
    again = diagnose.censor_anew(SimpleNamespace(training_=training), known.is_exact, expected, rng)
    anew = known.is_exact & ~again.is_exact
    assert np.all(again.upper[anew] == (6 if reached else 5))


def test_simple_methods_learn_from_exact_cells_and_keep_to_the_bounds():
    rng, hour = np.random.default_rng(0), np.arange(24 * 28) % 168
    missing = hour == 100
    y = np.where(missing, np.nan, rng.uniform(0, 9, len(HOURS)))
    known = Observations.from_flags(y, WORKING.astype(int))
    training = SimpleNamespace(times=HOURS.astype("M8[s]"), inputs=np.arange(len(y))[:, None])
    mean, boosted = diagnose.simple_estimates(known, training).values()
    # No Friday 4:00 was seen, but those of other working days.
    alike = (np.arange(len(y)) % 24 == 4) & (hour < 120) & ~missing
    np.testing.assert_allclose(mean[missing, 0], y[alike].mean())
    assert np.all((boosted[missing] > 0) & (boosted[missing] < 9))
    assert all(np.all(cells[WORKING, 0] >= y[WORKING]) for cells in (mean, boosted))
    exact = known.is_exact[:, 0]
    np.testing.assert_array_equal(mean[exact, 0], y[exact])


def test_busy_neighbours_are_told_from_usual_ones():
    values = np.ones((24 * 28, 3))
    values[500] = 2.0
    found = diagnose.busyness(Observations.exact(values), HOURS.astype("M8[s]"))
    np.testing.assert_allclose(found[[500, 501]], [[5 / 3] * 3, [4 / 3] * 3])
    np.testing.assert_allclose(found[499], 1.0)


def verdict(ratio=1.0, error=1.0, y=None, flags=None, reading=None, outlier=None):
    """The verdict on two weeks of hourly counts, with given figures of the cells censored anew."""
    rng = np.random.default_rng(0)
    y = rng.poisson(9, 336) + 1.0 if y is None else y
    flags = rng.uniform(size=336) < 0.3 if flags is None else flags
    known = Observations.from_flags(y, flags.astype(int))
    anew = known.is_exact & (rng.uniform(size=known.shape) < 0.3)
    truth = known.lower.copy()
    noise = rng.choice([-1.0, 1.0], truth.shape)
    own = ratio * truth + error * noise
    if outlier is not None:
        place = tuple(np.argwhere(anew)[0])
        truth[place], own[place] = outlier, 0.0
        known = dataclasses.replace(known, lower=truth, upper=np.where(anew, truth, known.upper))
    estimates = {diagnose.THIS: own, "simple": truth + noise}
    rows = [
        {"method": name, "output": "y", "cells": int(anew.sum()), "lost": 5.0,
         "ratio": cells[anew].sum() / truth[anew].sum(),
         "error": np.abs(cells - truth)[anew].mean()}
        for name, cells in estimates.items()
    ]  # fmt: skip
    training = SimpleNamespace(
        times=HOURS[:336].astype("M8[s]"), likelihoods=(as_likelihood("poisson"),)
    )
    model = SimpleNamespace(
        observations_=known, training_=training, use_censoring=True, substitution_=None
    )
    reading = truth + 1 if reading is None else reading
    return diagnose.verdict_of(model, rows, estimates, {diagnose.THIS: reading}, anew)


def test_what_speaks_against_estimates_comes_first():
    count = np.random.default_rng(1).poisson(9, 336) + 1.0
    flagged = np.random.default_rng(2).uniform(size=336) < 0.3
    assert verdict(y=0.8 * count) == ()
    for given, words in (
        ({"ratio": 1.3}, "overestimated by"),
        ({"ratio": 0.7}, "underestimated by"),
        ({"error": 3.0}, "simple method does better"),
        ({"reading": np.full((336, 1), 99.0)}, "far beyond"),
        ({"y": np.where(flagged, 1.5, 1) * count, "flags": flagged}, "go with demand"),
        ({"y": np.where(flagged, 0.3, 1) * count, "flags": flagged}, "broken off"),
    ):
        first, *rest = verdict(**{"y": 0.8 * count, **given})
        assert first.startswith("Do not trust")
        assert words in first
        assert any("5 by this model, 5 by simple" in line for line in rest)
        assert any("exposure" in line for line in rest)


def test_one_day_says_nothing_of_the_others():
    """A single cell may hold most of the truth, whose estimates are right everywhere else."""
    count = np.random.default_rng(1).poisson(9, 336) + 1.0
    assert verdict(y=0.8 * count, outlier=1000.0)[0].startswith("It cannot be told")
    assert verdict(y=0.8 * count, outlier=1000.0, ratio=0.7)


def test_every_cell_is_predicted_by_a_model_that_has_not_seen_it(model):
    """Refits of the estimator itself, cells missing, are the slow and obvious twin."""
    fold = diagnose.hold_out(model.observations_, 3)
    fast = cross_validate(model, fold)["mean"]
    hidden = fold == 1
    known = model.observations_
    part = Observations(
        np.where(hidden, -np.inf, known.lower), np.where(hidden, np.inf, known.upper), known.names
    )
    slow = clone(model).fit(np.linspace(0, 12, N)[:, None], part)
    mean = slow.predict_distribution(np.linspace(0, 12, N)[:, None]).mean
    np.testing.assert_allclose(fast[hidden], mean[hidden], atol=0.1)


def test_what_is_held_out_leaves_no_trace(model, data):
    """Neither the cells themselves nor hyper-parameters that were fitted to them matter."""
    fold = diagnose.hold_out(model.observations_, 3)
    known, hidden = model.observations_, fold == 1
    moved = np.where(hidden, np.where(known.is_exact, -known.lower, 0.1), known.lower)
    other = clone(model)
    other.fit(data[0], Observations(moved, np.where(known.is_exact, moved, known.upper)))
    assert other.elbo_ != pytest.approx(model.elbo_, abs=1)
    other.units_ = model.units_
    found, again = (cross_validate(one, fold)["mean"] for one in (model, other))
    np.testing.assert_allclose(found[hidden], again[hidden], rtol=1e-6)
    assert np.any(np.abs(found - again)[~hidden] > 0.01)


def test_an_output_of_which_nothing_is_left_starts_from_all_of_it(model, monkeypatch):
    starts, nothing = [], np.ones(model.observations_.shape, dtype=bool)

    def keep(engine, task, settings):
        starts.append(task.model)
        return model.posterior_, model.report_

    monkeypatch.setattr(diagnose, "infer", keep)
    seen = model.units_.apply(model.training_.seen)
    for hidden in (nothing, ~nothing):
        diagnose.refit(model, seen, hidden, afresh=True)
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
    row = diagnose.scored(diagnose.cell_scores(prediction, known), known)["y"]
    said = diagnose._of_row(row | {"r2": 0.5}, discrete=False)
    assert (not said) if words is None else any(words in sentence for _, sentence in said)


@pytest.mark.parametrize(("exact", "told"), [(400, True), (100, False)])
def test_a_mean_is_a_rival_only_where_little_is_censored(exact, told):
    row = metrics_row() | {"cells": 400, "exact": exact, "r2": -0.1}
    said = diagnose._of_row(row, False)
    assert any("by their mean" in words for _, words in said) is told


def test_a_fit_that_did_not_end_and_data_that_say_little_are_told(model):
    bad = CensoredGP()
    bad.__dict__ |= vars(model)
    bad.report_ = dataclasses.replace(model.report_, status="stuck", message="It is stuck.")
    lower = np.where(np.arange(N)[:, None] < 50, 0.0, model.observations_.lower)
    known = Observations(lower, np.where(np.arange(N)[:, None] < 50, np.inf, lower))
    bad.training_ = dataclasses.replace(model.training_, observations=known)
    said = diagnose.warnings_of(bad, {"y": metrics_row()})
    assert said[0] == "It is stuck."
    assert said[1].startswith("Output 'y' (83%): most cells are censored")


def metrics_row():
    return dict.fromkeys(("cells", "exact", "nlpd", "mae", "r2"), 1.0) | {
        "coverage": 0.9, "pit_mean": 0.5, "pit_deviation": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(("cells", "said"), [(0.0, True), (1.0, False)])
def test_that_nothing_could_be_scored_is_no_good_news(model, cells, said):
    row = metrics_row() | {"cells": cells}
    told = diagnose.warnings_of(model, {"y": row})
    assert any("No cell could be scored" in sentence for sentence in told) == said


def test_scores_are_those_of_the_metrics(found):
    row = found.scores["all"]
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
    assert said.startswith("Output 'y' (10 of 168 hours of the week, such as Monday 8:00): ")
    assert "censored every time" in said


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
    assert said.startswith("Output 'y' (1 of 7 days of the week, such as Saturday): ")


@pytest.mark.parametrize("times", [None, HOURS])
def test_an_output_that_is_mostly_censored_is_told_once(times):
    (said,) = cautions(observed(np.arange(24 * 28) % 3 > 0), times)
    assert said.startswith("Output 'y' (67%): most cells are censored")


def test_what_is_wrong_with_several_outputs_is_said_once():
    flags = np.stack([np.arange(24 * 28) % 3 > 0] * 7, axis=1)
    (said,) = cautions(Observations.from_flags(np.ones(flags.shape), flags), HOURS)
    assert said.startswith("Outputs 'y0' (67%), 'y1' (67%)")
    assert "and 2 more: " in said


def test_nothing_censored_is_nothing_to_tell():
    assert cautions(observed(np.zeros(24 * 28)), HOURS) == []


@pytest.mark.parametrize("varies", [False, True])
def test_varying_noise_is_advised_only_where_noise_is_constant(varies):
    row = metrics_row() | {"cells": 400, "exact": 400, "r2": 0.5, "coverage": 0.5}
    said = diagnose._of_row(row, False, heteroscedastic=varies)
    assert any("heteroscedastic" in words for _, words in said) is not varies
