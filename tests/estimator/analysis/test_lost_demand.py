"""Lost demand, required supply and forecasts: sums of joint draws, checked against hand counts."""

import copy
import gc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from censored_gp import CensoredGP, Observations, load, simulate
from censored_gp.estimator.analysis import lost_demand as demand
from censored_gp.estimator.training import read_training
from censored_gp.kernels import RBF, Periodic

TIMES = np.datetime64("2024-06-02T22", "h") + np.arange(6)  # from Sunday into Monday
KNOWN = Observations.from_flags(
    {"a": [1.0, 3.0, 5.0, 2.0, 1.0, 0.0], "b": [2.0, np.nan, 4.0, 2.0, 1.0, 3.0]},
    [[0, 1], [1, 0], [0, 0], [1, 1], [0, 0], [0, 0]],
)

NAMED: Any = {"outputs": ["station_1", "station_2"], "time": "time", "inputs": "rain"}


TRAINING = read_training(CensoredGP(), {"time": TIMES}, KNOWN)


def groups(by, training=TRAINING):
    return demand.group_cells(training, by)


def lost(by, draws=None, probability=0.9):
    cells = int(KNOWN.is_right.sum())
    drawn = np.arange(1.0, cells + 1) + np.zeros((4, 1)) if draws is None else draws
    return demand.summarise(KNOWN, [drawn[:1], drawn[1:]], groups(by), probability)


def test_the_parts_of_a_total_add_up_to_it():
    total = lost(None)
    assert {name: float(column[0]) for name, column in total.items()} == pytest.approx(
        {
            "observed": 24.0, "demand": 34.0, "lost": 10.0, "lost_low": 10.0, "lost_high": 10.0,
            "share": 10 / 34, "share_low": 10 / 34, "share_high": 10 / 34,
            "cells": 11, "censored": 4,
        }
    )  # fmt: skip
    for by in ("output", "hour", "weekday", "date", "month", ["output", "weekday"], list("xxyyzz")):
        found = lost(by)
        for name in ("observed", "demand", "lost", "cells", "censored"):
            assert found[name].sum() == pytest.approx(total[name][0])


def test_a_share_is_between_none_and_all_or_has_no_meaning():
    known = Observations.from_flags({"a": [-4.0, 1.0], "b": [-1.0, 2.0]}, [[0, 0], [1, 1]])
    training = read_training(CensoredGP(), {"time": TIMES[:2]}, known)
    found = demand.summarise(known, [np.full((5, 2), 1.5)], groups("output", training))
    np.testing.assert_array_equal(found["lost"], [1.5, 1.5])
    for name in ("share", "share_low", "share_high"):
        np.testing.assert_allclose(found[name], [np.nan, 1.5 / 2.5])


def test_labels_of_groups():
    assert lost("output")["output"].tolist() == ["a", "b"]
    assert lost("hour")["hour"].tolist() == [0, 1, 2, 3, 22, 23]
    assert lost("weekday")["weekday"].tolist() == ["Monday", "Sunday"]
    assert lost("month")["month"].tolist() == ["2024-06"]
    both = lost(["weekday", "output"])
    assert list(zip(both["weekday"], both["output"], strict=True))[1] == ("Monday", "b")
    assert lost(list("xxyyzz"))["group"].tolist() == ["x", "y", "z"]
    long = {"time": [0, 1, 0, 1], "station": [*"aabb"], "n": [1.0, 2, 3, 4]}
    told = read_training(CensoredGP(), long, outputs="n", by="station", time="time")
    assert list(groups("station", told).labels) == list(groups("output", told).labels)
    assert groups(["station", "time"], told).count == 4
    np.testing.assert_array_equal(groups([*"xyyz"], told).code, [[0, 1], [1, 2]])


def test_the_interval_of_a_sum_is_that_of_joint_draws():
    """Two cells that rise and fall together make a wider sum than two that do not."""
    rng = np.random.default_rng(0)
    shared, own = rng.exponential(size=(4000, 1)), rng.exponential(size=(4000, 4))
    together = lost(None, np.repeat(shared, 4, axis=1))
    apart = lost(None, own)
    assert together["lost"][0] == pytest.approx(apart["lost"][0], rel=0.05)
    widths = [t["lost_high"][0] - t["lost_low"][0] for t in (together, apart)]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.2)


def test_nothing_censored_nothing_lost():
    known = Observations.exact([[0.0], [0.0]])
    single = groups(None, read_training(CensoredGP(), [[0.0], [1.0]], known))
    found = demand.summarise(known, [np.zeros((1, 0))], single)
    assert found["lost"][0] == found["share"][0] == found["demand"][0] == 0


@pytest.mark.parametrize(
    ("by", "words"),
    [("minute", "`by`.*'output', 'hour'.*'minute'"), ([1, 2], "one label for each of the 6")],
)
def test_unknown_groups_are_refused(by, words):
    with pytest.raises(ValueError, match=words):
        groups(by)


def test_without_times_there_are_no_hours():
    told = read_training(CensoredGP(), np.arange(6.0)[:, None], KNOWN)
    with pytest.raises(ValueError, match="no input that is a time"):
        groups("hour", told)
    with pytest.raises(ValueError, match="no input that is a time"):
        demand.windows_of("6h", told.times, 6)


def test_windows_start_at_midnight():
    labels, code = demand.windows_of("6h", TIMES.astype("M8[s]"), 6)
    assert [str(label)[:13] for label in labels] == ["2024-06-02T18", "2024-06-03T00"]
    assert code.tolist() == [0, 0, 1, 1, 1, 1]
    with pytest.raises(ValueError, match="one label for each of the 6 rows"):
        demand.windows_of([1, 2], None, 6)


def test_peaks_and_sums_by_window():
    rng = np.random.default_rng(1)
    drawn = rng.poisson(4.0, size=(300, 6, 2)).astype(float)
    _, code = demand.windows_of(list("yxxyyy"), None, 6)
    every = np.ones((6, 2), dtype=bool)
    peaks, sums = demand.peaks_and_sums([drawn[:100], drawn[100:]], code, every)
    assert peaks.shape == sums.shape == (300, 2, 3)
    np.testing.assert_array_equal(peaks[:, 1, 1], drawn[:, [0, 3, 4, 5], 1].max(axis=1))
    np.testing.assert_array_equal(peaks[:, 0, 2], drawn[:, 1:3].sum(axis=2).max(axis=1))
    np.testing.assert_array_equal(sums[:, 0, 2], drawn[:, 1:3].sum(axis=(1, 2)))


def test_only_outputs_that_were_asked_for_need_supply():
    asked = np.zeros((6, 2), dtype=bool)
    asked[:3, 1] = True
    _, sums = demand.peaks_and_sums([np.ones((5, 6, 2))], np.zeros(6, dtype=int), asked)
    np.testing.assert_array_equal(sums, np.full((5, 1, 1), 3.0))


@pytest.fixture(scope="module")
def world():
    return simulate.bike_share(days=4, stations=2, seed=3)


@pytest.fixture(scope="module")
def frame(world):
    return pd.DataFrame(
        {
            "time": pd.Series(world.time).dt.tz_localize("Europe/Berlin"),
            "rain": world.rain,
            "sky": np.where(world.rain > 0, "wet", None),
            "crew": np.arange(len(world.time)) % 3,
            "hour": "mine",
            "lost": 0,
            **{name: world.observed[:, d] for d, name in enumerate(world.names)},
        }
    )


@pytest.fixture(scope="module")
def model(world, frame):
    kernels = [Periodic("1d", columns="time"), RBF(columns="rain")]
    estimator = CensoredGP("poisson", kernels, heteroscedastic=False, hyperparameters="mixed")
    return estimator.fit(frame, **NAMED, censored=world.censored)


def test_a_model_tells_what_was_lost(world, model):
    total = model.lost_demand(samples=300)
    assert isinstance(total, pd.DataFrame)
    truth = (world.demand - world.observed).sum()
    assert 0.4 * truth < total["lost"][0] < 2 * truth
    by_output = model.lost_demand("output", samples=300)
    assert by_output["output"].tolist() == list(world.names)
    # The same draws, grouped otherwise.
    assert by_output["lost"].sum() == pytest.approx(total["lost"][0])
    # The sum of intervals is wider than the interval of the sum.
    parts = by_output["lost_high"] - by_output["lost_low"]
    assert parts.sum() > total["lost_high"][0] - total["lost_low"][0]
    again = model.lost_demand(samples=300, random_state=5)
    assert again["lost"][0] != total["lost"][0]


def test_any_column_of_the_table_makes_groups(world, frame, model, tmp_path):
    by_crew = model.lost_demand("crew", samples=50)
    assert by_crew["crew"].tolist() == [0, 1, 2]
    per_row = model.lost_demand(frame["crew"], samples=50)
    np.testing.assert_array_equal(by_crew["lost"], per_row["lost"])
    both = model.lost_demand(["output", "sky"], samples=50)
    assert both[["output", "sky"]].value_counts().max() == 1
    assert set(both["sky"]) == {"wet", "missing"}
    assert both["cells"].sum() == by_crew["cells"].sum()
    by_rain = model.lost_demand("rain", samples=50)
    assert by_rain["rain"].tolist() == sorted(frame["rain"].unique())
    # Words go before columns of the same name, whose values can be given.
    assert len(model.lost_demand("hour", samples=50)) == 24
    assert model.lost_demand(frame["hour"], samples=50)["group"].tolist() == ["mine"]
    with pytest.raises(ValueError, match=r"`by`.*a name that a column of the answer has"):
        model.lost_demand("lost")
    loaded = load(model.save(tmp_path / "m"))
    again = loaded.lost_demand("rain", samples=50)
    pd.testing.assert_frame_equal(again, by_rain)
    with pytest.raises(ValueError, match=r"of a model from a file.*'crew'"):
        loaded.lost_demand("crew")


def test_a_column_of_a_long_table_has_labels_of_its_own_for_each_cell(world, frame):
    parts = [frame.assign(station=name, n=frame[name], id=d) for d, name in enumerate(world.names)]
    long = pd.concat(parts).assign(full=world.censored.T.reshape(-1)).sample(frac=1, random_state=0)
    told = read_training(
        CensoredGP("poisson"), long, outputs="n", by="station", time="time", inputs="rain",
        censored="full",
    )  # fmt: skip
    found = groups("id", told)
    order = [list(world.names).index(name) for name in told.observations.names]
    assert (found.labels["id"][found.code] == order).all()
    by_rain = groups("rain", told)
    np.testing.assert_array_equal(by_rain.labels["rain"][by_rain.code][:, 0], world.rain)


def lost_at_once(model, **settings):
    """What was lost, from draws of one seed."""
    return float(model.lost_demand(samples=300, random_state=2, **settings)["lost"][0])


def test_draws_of_what_was_lost_are_kept_beside_their_model(model, monkeypatch):
    attributes = set(vars(model))
    first = lost_at_once(model)
    assert set(vars(model)) == attributes, "a file would hold the draws"
    monkeypatch.setattr(CensoredGP, "imputation", None)  # what is kept need not be drawn
    assert lost_at_once(model, probability=0.5) == first
    with pytest.raises(TypeError):
        lost_at_once(copy.copy(model))


def test_a_model_that_is_fitted_anew_does_not_tell_what_was_lost_before(world, frame, model):
    again = copy.copy(model)
    before = lost_at_once(again)
    twice = frame.assign(**{name: 2 * frame[name] for name in world.names})
    again.fit(twice, **NAMED, censored=world.censored)
    after = lost_at_once(again)
    assert after > 1.2 * before
    assert after == lost_at_once(copy.copy(again))
    assert lost_at_once(model) == before


def test_draws_go_with_the_model_that_they_are_of(model):
    brief = copy.copy(model)
    lost_at_once(brief)
    assert brief in demand.LATEST
    count = len(demand.LATEST)
    del brief
    gc.collect()
    assert len(demand.LATEST) < count


def test_what_is_left_out_of_the_sums_is_said(model):
    known = Observations([5.0, -np.inf, 1, 2, 3], [np.inf, 4, 1.5, 2, 3])
    fitted = CensoredGP(likelihood="gaussian", hyperparameters="fixed")
    fitted.fit(np.arange(5.0)[:, None], known)
    with pytest.warns(UserWarning, match=r"^2 cell"):
        found = fitted.lost_demand()
    assert [found[0][name] for name in ("cells", "censored", "observed")] == [3, 1, 10]


def test_a_model_that_ignores_bounds_has_lost_nothing(model):
    naive = CensoredGP(use_censoring=False)
    vars(naive).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    with pytest.raises(ValueError, match="use_censoring=False"):
        naive.lost_demand()


def test_a_forecast_goes_on_by_the_wall_clock(world, model):
    dry = model.forecast(3, inputs={"rain": [0.0, 0.0, 0.0]})
    assert list(dry.columns)[:4] == ["time", "station_1", "station_1_low", "station_1_high"]
    assert str(dry["time"].dtype) == "datetime64[s, Europe/Berlin]"
    assert dry["time"][0] == pd.Timestamp("2024-06-07 00:00", tz="Europe/Berlin")
    frame = pd.DataFrame({"time": dry["time"], "rain": 0.0})
    np.testing.assert_allclose(dry["station_2"], model.predict(frame)["station_2"])
    _, high = model.interval(frame, 0.9)
    np.testing.assert_array_equal(dry["station_1_high"], high["station_1"])


def test_unknown_inputs_are_drawn_from_the_past(world, model):
    unknown = model.forecast(3, random_state=0)
    dry, wet = (model.forecast(3, inputs={"rain": [r] * 3}) for r in (0.0, 1.0))
    between = np.sort(np.stack([dry["station_1"], wet["station_1"]]), axis=0)
    assert np.all(unknown["station_1"] >= between[0] - 1e-9)
    assert np.all(unknown["station_1"] <= between[1] + 1e-9)
    with pytest.raises(ValueError, match=r"3 times ahead.*2 rows"):
        model.forecast(3, inputs={"rain": [0.0, 0.0]})


def test_supply_for_a_forecast(world, model):
    with pytest.raises(ValueError, match="`probability`"):
        model.required_supply(None, 95)
    with pytest.raises(ValueError, match="`probability`"):
        model.lost_demand(probability=90)
    ahead = model.forecast(24, inputs={"rain": [0.0] * 24})
    needed = model.required_supply(ahead.assign(rain=0.0), 0.9, "1d", samples=200, random_state=0)
    assert needed["output"].tolist() == [*world.names, demand.EVERY]
    assert (needed["peak"] >= needed["expected_peak"]).all()
    assert (needed["sum"] > needed["peak"]).all()
    # A peak of both together is at most the sum of their peaks, and enough supply is whole.
    assert needed["expected_peak"][2] <= needed["expected_peak"][:2].sum()
    assert (needed["peak"] % 1 == 0).all()


def test_correlations_come_as_a_table(model):
    table = model.correlations()
    assert list(table.columns) == ["output", "station_1", "station_2"]
    np.testing.assert_allclose(np.diag(table[["station_1", "station_2"]]), 1.0)
