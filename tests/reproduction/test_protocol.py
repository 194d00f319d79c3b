"""What models are fitted to and how they are scored: the protocol of the four tables."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, poisson

from reproduction import areas, engines, models, new_york, synthetic, trips
from reproduction.study import complete


class Prediction:
    """Independent values of a known distribution, for scores that are known."""

    def __init__(self, distribution, shape, discrete=False):
        self._made, self.shape = distribution, shape
        self.mean = np.broadcast_to(distribution.mean(), shape)
        self.names, self.discrete = ("a", "b")[: shape[1]], np.full(shape[1], discrete)

    def of_outputs(self, chosen):
        assert chosen == [0]
        if self.shape[1] == 1:
            return self
        mean, scale = (array[:, :1] for array in self._made.args)
        return Prediction(norm(mean, scale), (self.shape[0], 1))

    def cdf(self, y):
        return self._made.cdf(y)

    def log_probability(self, lower, upper):
        return self._made.logpdf(lower)

    def interval(self, level):
        ends = self._made.ppf((1 - level) / 2), self._made.ppf((1 + level) / 2)
        return tuple(np.broadcast_to(end, self.shape) for end in ends)


@pytest.fixture(scope="module")
def normal():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(4000, 2))
    prediction = Prediction(norm(mean, np.full((4000, 2), 2.0)), (4000, 2))
    return prediction, mean[:, 0] + 2.0 * rng.normal(size=4000)


def test_scores_are_those_of_the_first_output(normal):
    found = models.scores(*normal)
    # The mean of a quadratic form: log(2 sqrt(2 pi)) + 1/2.
    assert found["nlpd_per_point"] == pytest.approx(np.log(2 * np.sqrt(2 * np.pi)) + 0.5, abs=0.03)
    assert found["nlpd"] == pytest.approx(4000 * found["nlpd_per_point"])
    assert found["coverage"] == pytest.approx(0.9, abs=0.02)
    assert found["mae"] == pytest.approx(2 * np.sqrt(2 / np.pi), abs=0.05)


def test_unknown_truth_is_not_scored(normal):
    prediction, truth = normal
    half = np.where(np.arange(4000) < 2000, truth, np.nan)
    found, whole = models.scores(prediction, half), models.scores(prediction, truth)
    assert found["nlpd"] < 0.6 * whole["nlpd"]
    assert found["coverage"] == pytest.approx(0.9, abs=0.02)


def test_counts_under_a_gaussian_are_rounded_values():
    truth = np.array([-2.0, 2.0, 3.0, np.nan])
    prediction = Prediction(norm(0.0, 1.0), (4, 1))
    # 1.64 lies among what rounds to 2, but not among what rounds to 3.
    assert models.coverage(prediction, truth) == pytest.approx(2 / 3)
    assert models.coverage(prediction, truth + 0.1) == 0.0


def test_intervals_of_counts_hold_more_of_their_own_draws_than_they_promise():
    counts = Prediction(poisson(0.8), (5, 1), discrete=True)
    expected = models.expected_coverage(counts, np.zeros(5))
    assert expected == pytest.approx(poisson.cdf(2, 0.8))
    assert expected > 0.9


def test_models_of_one_output_see_one_output():
    seen = synthetic.world(0, synthetic.WINDOWS["block"]).observations()
    for name in models.MODELS:
        names = models.training_data(name, seen).names
        assert names == (("y1",) if name in models.SINGLE else ("y1", "y2"))


def test_the_world_of_a_draw_is_that_of_the_paper():
    pair = synthetic.world(3, *(synthetic.WINDOWS[name] for name in synthetic.TABLE_1))
    assert (len(pair.x), pair.x[0], pair.x[-1]) == (100, 0.0, 10.0)
    hidden = pair.censored[:, 0]
    np.testing.assert_array_equal(hidden, (pair.x >= 1.3) & (pair.x <= 5.5))
    assert not pair.censored[:, 1].any()
    down = (pair.truth - pair.observed)[:, 0] / pair.truth[:, 0].std()
    np.testing.assert_array_equal(down[~hidden], 0.0)
    low, high = synthetic.RANGES["depth"]
    assert low < down[hidden].min() <= down[hidden].max() < high


@pytest.mark.parametrize(
    ("name", "share"), [("0 %", 0.0), ("50 %", 0.5), ("100 %-M", 1.0), ("100 %-H", 1.0)]
)
def test_scenarios_overlap_as_much_as_they_say(name, share):
    spans = (synthetic.WINDOWS[window] for window in synthetic.TABLE_2[name])
    first, second = synthetic.world(0, *spans).censored.T
    assert (first & second).sum() / first.sum() == pytest.approx(share, abs=0.04)


def test_only_oracles_are_fitted_to_the_truth(data_folder):
    data = new_york.demand("3711", "published", 0)
    seen = new_york.fitted_to({"model": "HMOCGP", "data": "observed"}, data)
    np.testing.assert_array_equal(seen.lower, data.observed[data.train])
    np.testing.assert_array_equal(np.isinf(seen.upper), data.censored[data.train])
    truth = new_york.fitted_to({"model": "HMOCGP", "data": "truth"}, data)
    np.testing.assert_array_equal(truth.lower, data.truth[data.train])
    assert truth.is_exact.all()


def test_independent_limits_come_from_other_training_days(data_folder):
    rule = new_york.demand("3711", "published", 0)
    found = new_york.demand("3711", "published", 0, limits=True)
    assert not (found.censored & ~rule.censored).any()
    assert (found.observed[found.censored] < found.truth[found.censored]).all()
    np.testing.assert_array_equal(found.observed[~found.censored], found.truth[~found.censored])
    most = new_york.MOST_SUPPLY * rule.truth[rule.train].max(axis=0)
    assert (found.observed <= np.where(found.censored, most, np.inf)).all()


def test_simple_methods_do_what_they_say(data_folder):
    data = new_york.demand("3711", "published", 0)
    use = np.arange(len(data.time)) < data.split[0]
    truth = data.truth[data.test, 0]
    weekly = new_york.hour_of_week_mean(data, data.truth[:, 0], use)[data.test]
    assert models.point_scores(weekly, truth)["r2"] == pytest.approx(0.605, abs=0.001)
    boosted = new_york.boosting(data, data.truth[:, 0], use)[data.test]
    assert models.point_scores(boosted, truth)["r2"] > 0.6


def test_runs_are_distinct_and_further_stations_are_not_those_of_the_table(data_folder):
    runs = new_york.runs(3)
    assert len({new_york.STUDY.key(run) for run in runs}) == len(runs)
    more = {run["station"] for run in runs} | {run["partner"] for run in runs} - {
        "published", "corrected"}  # fmt: skip
    more -= set(new_york.STATIONS)
    assert len(more) >= new_york.MORE_STATIONS
    assert not more & set(new_york.KNOWN_STATIONS)


def test_engines_are_compared_on_the_same_runs():
    for study, runs in engines.runs(1):
        by_engine = [
            {study.key(run | {"engine": "-"}) for run in runs if run["engine"] == engine}
            for engine in engines.ENGINES
        ]
        assert by_engine[0] == by_engine[1]
        assert by_engine[0]


def test_a_limit_hides_part_of_the_record():
    time = np.array(["2016-10-04", "2016-10-05", "2016-10-06"], "datetime64[D]")
    truth = np.array([[10.0], [4.0], [np.nan]])
    park = areas.LimitedDemand(("a",), {"time": time}, truth, truth >= 10)
    seen = park.observations(0.8)
    np.testing.assert_allclose(seen.lower[:, 0], [2.0, 4.0, -np.inf])
    np.testing.assert_allclose(seen.upper[:, 0], [np.inf, 4.0, np.inf])


@pytest.mark.parametrize("make", [lambda: areas.car_parks(areas.PARK_PAIRS[0]),
                                  lambda: areas.hubs(("hub14", "hub37"), 0)])  # fmt: skip
def test_folds_are_whole_days_and_hold_every_day_once(data_folder, make):
    data = make()
    folds = np.stack([data.in_fold(k, 0) for k in range(areas.FOLDS)])
    np.testing.assert_array_equal(folds.sum(axis=0), 1)
    days = data.inputs["time"].astype("datetime64[D]")
    assert not set(days[folds[1]]) & set(days[~folds[1]])
    assert 0 < data.limited.mean() < 0.5
    assert len(areas.runs(1)) == (6 + 6) * 6 * 3 * 5


TRIPS = """starttime,stoptime,start station id,end station id
2018-06-01 08:05:00.1,2018-06-01 09:01:00.2,3711,366.0
2018-06-01 08:55:00.1,2018-06-01 09:31:00.2,3711,379
"""


def test_trips_are_counted_in_nested_archives(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("201806-citibike-tripdata_1.csv", TRIPS)
        archive.writestr("__MACOSX/._201806-citibike-tripdata_1.csv", "x")
    with zipfile.ZipFile(tmp_path / "year.zip", "w") as archive:
        archive.writestr("2018/201806-citibike-tripdata.zip", inner.getvalue())
        archive.writestr("2018/201807-citibike-tripdata.csv", TRIPS)
    pickups, dropoffs = trips.count_trips(tmp_path / "year.zip", "201806")
    assert pickups.to_dict() == {(pd.Timestamp("2018-06-01T08"), "3711"): 2}
    hour = pd.Timestamp("2018-06-01T09")
    assert dropoffs.to_dict() == {(hour, "366"): 1, (hour, "379"): 1}


def test_a_station_gets_the_partner_that_its_records_resemble():
    hours = pd.date_range("2018-06-01", periods=49, freq="h")
    wave = np.sin(np.arange(49.0))[:, None]
    flow = pd.DataFrame(wave * [1.0, -1.0, 0.5, 0.0] + 3.0, index=hours, columns=list("abcd"))
    # Far more bikes come back than are taken: nothing is censored.
    found = trips.with_partner(flow, flow + 50, "a", 0, "2018-06-01T01", (24, 12, 12))
    assert found.names == ("a", "c")
    assert not found.censored.any()
    assert found.time[0] == np.datetime64("2018-06-01T01")


def test_a_real_run_is_done_once_and_gives_sane_scores(tmp_path):
    every = synthetic.runs(1, [synthetic.TABLE_1])
    wanted = [run for run in every if run["model"] in ("NCGP", "CGP")]
    rows = complete(synthetic.STUDY, wanted, tmp_path, jobs=1)
    assert list(rows["error"]) == ["", ""]
    ignoring, heeding = rows["nlpd"]
    assert rows["nlpd_floor"].iloc[0] < heeding < ignoring
    pd.testing.assert_frame_equal(complete(synthetic.STUDY, wanted, tmp_path, jobs=1), rows)
