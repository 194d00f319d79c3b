"""Forecasts and required supply in the user's own way: zones, days, indices."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from censored_gp import CensoredGP, load
from censored_gp.data.inputs import read_inputs
from censored_gp.estimator.analysis.forecast import known_inputs, scenarios
from censored_gp.kernels import RBF

N = 48
WAVE = 3 + np.sin(np.arange(N) / 4)


@pytest.fixture(scope="module", autouse=True)
def quickly(quickly):
    """Every test here compiles quickly."""
    return quickly


def fitted(table, **names):
    names = {"outputs": "a", "time": "time"} | names
    model = CensoredGP(kernels=RBF(24.0), heteroscedastic=False, max_iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table, **names)


def hourly(zone=None):
    time = pd.date_range("2024-04-01", periods=N, freq="h", tz=zone)
    return pd.DataFrame({"time": time, "a": WAVE})


@pytest.mark.parametrize("zone", ["UTC+02:00", "Europe/Berlin", None])
@pytest.mark.parametrize("make", ["pandas", "pyarrow", "dict"])
def test_the_zone_comes_back_after_a_file_too(zone, make, tmp_path):
    frame = hourly(zone)
    first = pd.Timestamp("2024-04-03", tz=zone)
    table = frame
    if make == "pyarrow":
        table = pa.table({"time": pa.array(frame["time"]), "a": WAVE})
    elif make == "dict":
        table = {"time": list(frame["time"].dt.to_pydatetime()), "a": WAVE}
    model = fitted(table)
    for each in [model, load(model.save(tmp_path / "m"))] if make != "dict" else [model]:
        supply = each.required_supply(table, window="1d", samples=20)
        for found, start in ((each.forecast(2)["time"], 0), (supply["window"], -48)):
            value = found[0].as_py() if make == "pyarrow" else found[0]
            assert pd.Timestamp(value) == first + pd.Timedelta(hours=start)
            assert pd.Timestamp(value).utcoffset() == first.utcoffset()


@pytest.mark.parametrize("name", ["time", None])
def test_a_time_that_was_the_index_is_the_index(name, tmp_path):
    table = hourly("Europe/Berlin").set_index("time").rename_axis(name)
    model = fitted(table, time=name or "index")
    for each in (model, load(model.save(tmp_path / "m"))):
        found = each.forecast(2)
        assert list(found.columns) == ["a", "a_low", "a_high"]
        assert found.index.dtype == table.index.dtype
        assert found.index.name == name
        assert found.index[0] == pd.Timestamp("2024-04-03", tz="Europe/Berlin")


def test_a_time_among_the_inputs_is_a_column():
    found = fitted(hourly(), time=None, inputs="time").forecast(2)
    assert list(found.columns) == ["time", "a", "a_low", "a_high"]
    assert found["time"][0] == pd.Timestamp("2024-04-03")


def test_days_come_back_as_days(tmp_path):
    days = list(pd.date_range("2024-04-01", periods=N).date)
    tables = [
        pl.DataFrame({"time": days, "a": WAVE}),
        pa.table({"time": pa.array(days, pa.date32()), "a": WAVE}),
        pd.DataFrame({"time": days, "a": WAVE}),
        {"time": days, "a": WAVE},
    ]
    for table in tables:
        model = fitted(table)
        each = [model] if isinstance(table, dict) else [model, load(model.save(tmp_path / "m"))]
        for one in each:
            times = one.forecast(2)["time"]
            assert str(times[0]) == "2024-05-19"
            if not isinstance(table, dict):
                assert times.dtype == table["time"].dtype if hasattr(times, "dtype") else True
                assert type(one.impute()["time"][0]) is type(times[0])


def test_the_unit_of_times_comes_back():
    table = pl.from_pandas(hourly()).with_columns(pl.col("time").dt.cast_time_unit("ms"))
    assert fitted(table).forecast(1).schema["time"] == pl.Datetime("ms")


def test_without_a_time_there_is_no_forecast():
    table = hourly().rename(columns={"time": "opened"}).assign(x=np.arange(float(N)))
    for names in (
        {"time": None, "inputs": "x"},
        {"time": "x"},
        # The time that goes on is the one so named, and no other column of times.
        {"time": "x", "inputs": "opened"},
    ):
        model = fitted(table, **names)
        with pytest.raises(ValueError, match=r"forecast.*time.*'x'"):
            model.forecast(2)


def test_the_same_question_has_the_same_answer(tmp_path):
    table = hourly().assign(rain=np.random.default_rng(0).uniform(size=N))
    model = fitted(table, inputs="rain")
    again = load(model.save(tmp_path / "m"))
    for other in (model, again):
        pd.testing.assert_frame_equal(model.forecast(3), other.forecast(3))
        one, two = (m.required_supply(table, window="1d", samples=20) for m in (model, other))
        pd.testing.assert_frame_equal(one, two)
    assert not model.forecast(3, random_state=1).equals(model.forecast(3))


def test_no_output_is_written_over_by_an_interval():
    table = hourly().assign(a_low=5 + WAVE)
    found = fitted(table, outputs=["a", "a_low"]).forecast(1)
    ends = ["", "_interval_low", "_interval_high"]
    assert list(found.columns)[1:] == [f"{n}{end}" for n in ("a", "a_low") for end in ends]
    assert found["a_low"][0] > 5


def test_an_index_of_several_levels_comes_back_from_a_file(tmp_path):
    index = pd.MultiIndex.from_arrays(
        [["x", "y"] * (N // 2), hourly("Europe/Berlin")["time"]], names=["site", "when"]
    )
    model = fitted(hourly().set_index(index))
    pd.testing.assert_index_equal(model.impute().index, index)
    loaded = load(model.save(tmp_path / "m")).impute().index
    pd.testing.assert_index_equal(loaded, index, exact="equiv")


TIMES = pd.date_range("2024-06-03", periods=48, freq="h", tz="Europe/Berlin")
DAYS = pd.DataFrame({"time": TIMES, "heat": np.arange(48.0), "sky": ["wet", "dry"] * 24})
AHEAD = pd.date_range("2024-06-05", periods=3, freq="h", tz="Europe/Berlin")
WALL = AHEAD.tz_localize(None).to_numpy().astype("datetime64[s]")
INSTANT = AHEAD.tz_convert("UTC").tz_localize(None).to_numpy().astype("datetime64[s]")
_, COLUMNS = read_inputs(DAYS)


def heat(table):
    found = known_inputs(table, COLUMNS, "time", WALL, INSTANT)
    assert np.isnan(found[:, 0]).all()
    return (found[:, 1] + COLUMNS.origin[1]).tolist()


@pytest.mark.parametrize("make", [dict, pl.DataFrame])
def test_inputs_that_are_given_are_used(make):
    matrix = known_inputs(make({"sky": ["wet", "dry", "dry"]}), COLUMNS, "time", WALL, INSTANT)
    assert np.isnan(matrix[:, :2]).all()
    np.testing.assert_allclose(matrix[0, 2:] - matrix[1, 2:], [-1.0, 1.0])


GIVEN = pd.DataFrame({"time": AHEAD, "heat": [5.0, 6.0, 7.0]})
MORE = pd.concat([DAYS[["time", "heat"]], GIVEN])


@pytest.mark.parametrize(
    "table",
    [
        GIVEN,
        GIVEN[::-1],
        pl.from_pandas(GIVEN)[::-1],
        GIVEN.assign(time=AHEAD.tz_convert("Asia/Tokyo"))[::-1],
        {"time": [str(time) for time in AHEAD[::-1]], "heat": [7.0, 6.0, 5.0]},
        {"time": list(AHEAD[::-1].to_pydatetime()), "heat": [7.0, 6.0, 5.0]},
        GIVEN.set_index("time")[::-1],
        MORE,
        pd.concat([GIVEN, GIVEN]),
        {"heat": [5.0, 6.0, 7.0]},
    ],
    ids=range(10),
)
def test_rows_are_found_by_their_times(table):
    assert heat(table) == [5.0, 6.0, 7.0]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (GIVEN[1:], "3 times.*none for time 2024-06-05T00"),
        (GIVEN.assign(time=AHEAD + pd.Timedelta(days=366)), "3 missing"),
        (GIVEN.assign(time=WALL), "Input 'time'.*without a.*zone"),
        (GIVEN.assign(time=[1, 2, 3]), "Input 'time'.*no times"),
        (GIVEN.assign(time=[AHEAD[0], pd.NaT, AHEAD[2]]), "Input 'time', row 1.*missing"),
        (
            pd.concat([GIVEN, GIVEN.assign(heat=0.0)]),
            "Input 'time', row 3.*the time of row 0",
        ),
        (GIVEN.assign(heat=[1.0, np.nan, 2.0]), "Input 'heat', row 1"),
        ({"snow": [1.0]}, "'heat', 'sky', got 'snow'"),
        ({"time": AHEAD}, "among 'heat', 'sky'"),
        ({"heat": [1.0]}, "3 times ahead.*1 rows"),
        (np.zeros((3, 1)), "`inputs`.*ndarray"),
    ],
    ids=range(11),
)
def test_inputs_that_do_not_fit_are_refused(table, words):
    with pytest.raises(ValueError, match=words):
        heat(table)


def test_a_model_without_inputs_needs_no_table():
    _, columns = read_inputs({"time": TIMES})
    with pytest.raises(ValueError, match=r"`inputs`.*no inputs"):
        known_inputs({"time": AHEAD}, columns, "time", WALL, INSTANT)


def hours_from(start, hours):
    return np.datetime64(start, "s") + np.arange(hours) * np.timedelta64(3600, "s")


PAST = {
    "time": hours_from("2024-06-03T00", 24 * 15),
    "heat": np.arange(24.0 * 15),
    "sky": ["wet" if day % 2 else "dry" for day in range(15) for _ in range(24)],
}


def test_unknown_inputs_come_from_one_day_of_the_past_at_the_same_hour():
    inputs, columns = read_inputs(PAST)
    ahead = hours_from("2024-06-18T06", 30)  # a Tuesday, of which the past has two
    matrix = np.full((30, inputs.shape[1]), np.nan)
    matrix[:, 0] = 0.0
    found = scenarios(PAST["time"], inputs, ahead, matrix, 20, np.random.default_rng(0))
    heat = found[:, :, 1] + columns.origin[1]
    np.testing.assert_array_equal(heat[:, :18] % 24, np.tile(np.arange(6.0, 24.0), (20, 1)))
    day = heat[:, :18] // 24
    assert np.all(day == day[:, :1])
    assert set(day[:, 0]) == {1.0, 8.0}
    assert np.all(found[:, :, 0] == 0.0)
