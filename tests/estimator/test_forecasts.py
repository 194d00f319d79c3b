"""Forecasts and required supply in the user's own way: zones, days, indices, numbers as times."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from censored_gp import CensoredGP, load
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


def test_numbers_can_be_the_time():
    table = pd.DataFrame({"week": np.arange(N), "price": np.arange(N) % 2 / 2, "a": WAVE})
    model = fitted(table, time="week", inputs="price")
    ahead = model.forecast(2, inputs={"week": [49, 48], "price": [0.5, 0.0]})
    assert ahead["week"].tolist() == [48, 49]
    assert ahead["week"].dtype == table["week"].dtype
    same = model.predict(pd.DataFrame({"week": [48, 49], "price": [0.0, 0.5]}))
    np.testing.assert_allclose(ahead["a"], same["a"])
    assert len(model.forecast(until=50)) == 3


def test_without_a_time_there_is_no_forecast():
    model = fitted({"x": np.arange(float(N)), "a": WAVE}, time=None, inputs="x")
    with pytest.raises(ValueError, match=r"forecast: found the inputs 'x', none of them a time"):
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
