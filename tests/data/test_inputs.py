import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from censored_gp.data.inputs import MOST_CATEGORIES, read_inputs
from censored_gp.kernels import RBF, Block, Periodic
from censored_gp.kernels.base import distinct_rows
from censored_gp.model.starting_values import default_kernels

FRAMES = {"pandas": lambda d: d, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
BERLIN, UTC = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
EVERY_FRAME = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


def frame(zone=None, start="2018-03-24 22:00", rows=8):
    time = pd.date_range(start, periods=rows, freq="h", tz=zone)
    return pd.DataFrame(
        {"time": time, "rain": 0.5 * np.arange(rows), "holiday": np.arange(rows) % 2 == 0}
    )


def hours(X, columns=None):
    """The first column as it is read."""
    return read_inputs(X, columns)[0][:, 0]


def test_numbers_are_centred_and_keep_their_unit():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1e-6, 1.0, 1e6] + [1e-3, 1.0, 1e9]
    centred, columns = read_inputs(X)
    np.testing.assert_allclose(centred, X - X.mean(axis=0), rtol=1e-9)
    assert columns.names == ("x0", "x1", "x2")
    assert columns.is_time == (False, False, False)
    np.testing.assert_allclose(np.array(columns.origin, dtype=float), X.mean(axis=0))


def test_new_data_use_the_origins_of_the_training_data():
    X = np.random.default_rng(1).normal(size=(20, 2)) + 7.0
    _, columns = read_inputs(X)
    new, same = read_inputs(X[:3] + 1.0, columns)
    np.testing.assert_allclose(new, X[:3] + 1.0 - X.mean(axis=0))
    assert same is columns


@pytest.mark.parametrize(
    "flat",
    [
        [1, 2, 6],
        (1.0, 2.0, 6.0),
        ["1", "2.0", " 6e0 "],
        [Decimal(1), 2, 6.0],
        np.array([1, 2, 6], dtype=np.uint8),
        np.array([[1.0], [2.0], [6.0]], dtype=np.float32),
        pd.Series([1, 2, 6], dtype="Int64"),
        pl.Series([1, 2, 6]),
        pl.Series(["1", "2", "6"]),
        pa.chunked_array([[1, 2], [6]]),
        pd.DataFrame([1, 2, 6]),
        jnp.arange(3.0).at[:].set(jnp.array([1.0, 2.0, 6.0])),
    ],
    ids=lambda flat: type(flat).__name__,
)
def test_every_way_to_give_one_column_of_numbers(flat):
    X, columns = read_inputs(flat)
    np.testing.assert_array_equal(X, [[-2.0], [-1.0], [3.0]])
    assert X.dtype == np.float64
    assert columns.origin == (3.0,)


@pytest.mark.parametrize("flags", [[True, False], pl.Series([True, False]), np.array([1, 0]) > 0])
def test_bools_are_zero_and_one(flags):
    np.testing.assert_array_equal(hours(flags), [0.5, -0.5])


@EVERY_FRAME
def test_frames_of_every_make_read_alike(make):
    X, columns = read_inputs(make(frame()))
    expected = np.stack([np.arange(8.0), 0.5 * np.arange(8) - 1.75, [0.5, -0.5] * 4], axis=1)
    np.testing.assert_array_equal(X, expected)
    assert columns.names == ("time", "rain", "holiday")
    assert columns.is_time == (True, False, False)
    assert columns.origin[0] == np.datetime64("2018-03-24T22:00")


@EVERY_FRAME
def test_new_data_may_be_of_another_make(make):
    _, columns = read_inputs(frame())
    new = frame(start="2018-03-23 22:00", rows=2)
    np.testing.assert_array_equal(hours(make(new), columns), [-24.0, -23.0])


def test_new_data_without_names_go_by_position():
    new = frame(start="2018-03-23 22:00", rows=2).to_numpy()
    columns = read_inputs(frame())[1]
    np.testing.assert_array_equal(hours(new, columns), [-24.0, -23.0])
    new[1, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input 'rain', row 1: got NaN"):
        read_inputs(new, columns)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_every_unit(unit):
    stamps = np.array(["1971-03-04T05:06:07", "2020-05-03T21:22:23"], dtype=f"datetime64[{unit}]")
    exact = stamps.astype("datetime64[s]").astype(np.int64)
    np.testing.assert_array_equal(hours(stamps), (exact - exact[0]) / 3600)


def test_nanoseconds_are_told_apart():
    stamps = np.datetime64("2020-01-01T12:00:00", "ns") + np.arange(3)
    np.testing.assert_allclose(hours(stamps), np.arange(3) / 3.6e12, rtol=1e-12)


@pytest.mark.parametrize("year", [1, 1700, 1969, 2018, 3000, 9998])
@pytest.mark.parametrize("minute", [0, 17])
def test_hourly_times_are_whole_hours_however_far_from_1970(year, minute):
    start = dt.datetime(year, 1, 1, 5, minute, 31)
    stamps = [start + dt.timedelta(hours=n) for n in range(200)]
    np.testing.assert_array_equal(hours(stamps), np.arange(200.0))
    X, _ = read_inputs(np.array(stamps, dtype="datetime64[us]"))
    assert len(distinct_rows(Periodic(24.0, 1.0), X)) == 24


def test_centuries_in_one_column_do_not_overflow():
    _, columns = read_inputs(np.array(["1990-01-01"], dtype="datetime64[ns]"))
    far = np.array(["3990-01-01"], dtype="datetime64[s]")
    days = (dt.date(3990, 1, 1) - dt.date(1990, 1, 1)).days
    assert hours(far, columns) == [24.0 * days]


@pytest.mark.parametrize(
    ("zone", "step"), [(None, "10min"), ("Europe/Berlin", "1h"), ("UTC", "7min")]
)
def test_an_effect_of_the_day_changes_at_midnight_of_the_wall_clock(zone, step):
    """Also in the nights in which clocks change, and where time stamps are no whole hours."""
    for start in ("2018-03-24 22:05", "2018-10-27 20:30"):
        time = pd.date_range(start, periods=60, freq=step, tz=zone)
        X, columns = read_inputs(pd.DataFrame({"time": time}))
        kernel = Block("1d", columns="time").resolve(columns)
        date = time.tz_localize(None).normalize()
        np.testing.assert_array_equal(kernel(X, X), date.to_numpy()[:, None] == date.to_numpy())
        assert len(distinct_rows(kernel, X)) == len(date.unique())


def test_periods_of_numbers_count_from_zero():
    """Whatever the mean that centred them; of several columns each has its own."""
    table = pd.DataFrame({"x": [-0.5, 0.0, 9.5, 10.0, 31.0], "y": [3.0, 3.0, 12.0, 13.0, 99.0]})
    X, columns = read_inputs(table)
    for used in (["x"], ["y"], ["x", "y"]):
        kernel = Block(10.0, columns=used).resolve(columns)
        period = np.floor(table[used].to_numpy() / 10.0)
        same = np.all(period[:, None] == period, axis=2)
        np.testing.assert_array_equal(kernel(X, X), same)
        first = np.flatnonzero(same.argmax(axis=1) == range(len(X)))
        np.testing.assert_array_equal(distinct_rows(kernel, X), first)
        assert kernel.resolve(columns) == kernel


def test_the_origin_is_the_first_time_in_any_order():
    stamps = np.array(["2020-01-03", "2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    np.testing.assert_array_equal(hours(stamps), [48.0, 0.0, 24.0])


NOON = dt.datetime(2020, 5, 3, 12)


@pytest.mark.parametrize(
    "stamps",
    [
        [NOON, NOON + dt.timedelta(days=1)],
        [dt.date(2020, 5, 3), dt.date(2020, 5, 4)],
        np.array([NOON, np.datetime64("2020-05-04T12")], dtype=object),
        pd.Series([NOON, NOON + dt.timedelta(days=1)], dtype=object),
        pd.Series([dt.date(2020, 5, 3), dt.date(2020, 5, 4)]),
        pd.Series([NOON, NOON + dt.timedelta(days=1)], dtype="timestamp[us][pyarrow]"),
        pd.DatetimeIndex([NOON, NOON + dt.timedelta(days=1)]),
        pd.DatetimeIndex([NOON, NOON + dt.timedelta(days=1)]).tz_localize("Europe/Berlin"),
        pl.Series([dt.date(2020, 5, 3), dt.date(2020, 5, 4)]),
        pl.Series([NOON, NOON + dt.timedelta(days=1)], dtype=pl.Datetime("ms")),
        pa.chunked_array([[dt.date(2020, 5, 3)], [dt.date(2020, 5, 4)]]),
        [pd.Timestamp(NOON), pd.Timestamp(NOON) + pd.Timedelta(1, "D")],
    ],
    ids=lambda stamps: type(stamps).__name__,
)
def test_every_way_to_give_one_column_of_times(stamps):
    X, columns = read_inputs(stamps)
    np.testing.assert_array_equal(X, [[0.0], [24.0]])
    assert columns.is_time == (True,)


def test_times_and_numbers_in_one_object_array():
    X, columns = read_inputs([[NOON, 1.0], [NOON + dt.timedelta(hours=6), 3]])
    np.testing.assert_array_equal(X, [[0.0, -1.0], [6.0, 1.0]])
    assert columns.is_time == (True, False)


@EVERY_FRAME
def test_summer_time_follows_the_wall_clock(make):
    spring = hours(make(frame("Europe/Berlin", "2018-03-24 22:00")))
    np.testing.assert_array_equal(spring, [0, 1, 2, 3, 5, 6, 7, 8])
    autumn = hours(make(frame("Europe/Berlin", "2018-10-28 00:00", rows=5)))
    np.testing.assert_array_equal(autumn, [0, 1, 2, 2, 3])


def test_noon_is_noon_in_summer_and_winter():
    noons = pd.Series(pd.date_range("2018-01-01 12:00", "2018-12-31 12:00", tz="Europe/Berlin"))
    np.testing.assert_array_equal(hours(noons) % 24, 0.0)
    elapsed = hours(noons.dt.tz_convert("UTC"))
    assert set(elapsed % 24) == {0.0, 23.0}


@EVERY_FRAME
def test_new_times_in_another_zone_are_converted(make):
    berlin = frame("Europe/Berlin")
    _, columns = read_inputs(make(berlin))
    assert columns.zones == ("Europe/Berlin", None, None)
    in_utc = berlin.assign(time=berlin["time"].dt.tz_convert("UTC"))
    np.testing.assert_array_equal(hours(make(in_utc), columns), hours(make(berlin)))


def test_python_datetimes_with_zones():
    berlin = [dt.datetime(2018, 3, 25, hour, tzinfo=BERLIN) for hour in (0, 1, 3, 4)]
    X, columns = read_inputs(berlin)
    np.testing.assert_array_equal(X[:, 0], [0.0, 1.0, 3.0, 4.0])
    in_utc = [stamp.astimezone(UTC) for stamp in berlin]
    np.testing.assert_array_equal(hours(in_utc, columns), X[:, 0])
    np.testing.assert_array_equal(hours(in_utc), [0.0, 1.0, 2.0, 3.0])


def test_a_fixed_offset_is_kept_but_not_converted_to():
    plus_two, plus_one = (dt.timezone(dt.timedelta(hours=h)) for h in (2, 1))
    stamps = [dt.datetime(2020, 1, day, tzinfo=plus_two) for day in (1, 2)]
    X, columns = read_inputs(stamps)
    np.testing.assert_array_equal(hours(stamps, columns), X[:, 0])
    for foreign in ([stamps[0].astimezone(plus_one)], pl.Series([stamps[0]])):
        with pytest.raises(ValueError, match=r"'.+'.*\+02:00, which is not a named zone"):
            read_inputs(foreign, columns)


TIMES = frame()
BAD = {
    "nan": (
        TIMES.assign(rain=[0, 1, np.nan, 3, np.inf, 5, 6, 7]),
        r"Input 'rain', row 2 \(and 1 more such cell\): got NaN.*finite",
    ),
    "infinity": (np.array([[1.0, 2.0], [3.0, -np.inf]]), r"Input 'x1', row 1: got -inf"),
    "missing integer": (pd.DataFrame({"a": pd.array([1, None])}), r"'a', row 1: got NaN"),
    "null": (pl.DataFrame({"a": [None, 1]}), r"Input 'a', row 0: got NaN"),
    "arrow null": (pa.table({"a": [1, None]}), r"Input 'a', row 1: got NaN"),
    "none": ([1.0, None], r"Input 'x0', row 1: got NaN"),
    "missing object": (pd.Series([1, pd.NA], dtype=object), r"row 1: got NaN"),
    "missing bool": (pl.Series("b", [True, None]), r"Input 'b', row 1: got NaN"),
    "all missing": ([None, None], r"row 0 \(and 1 more such cell\): got NaN"),
    "missing time": (
        TIMES.assign(time=[pd.NaT, *TIMES["time"][1:]]),
        r"Input 'time', row 0: got a missing time",
    ),
    "missing aware time": (
        frame("UTC").assign(time=[*frame("UTC")["time"][1:], pd.NaT]),
        r"Input 'time', row 7: got a missing time",
    ),
    "missing numpy time": (np.array(["2020", "NaT"], dtype="M8[D]"), r"'x0', row 1: got a miss"),
    "missing polars time": (pl.Series("t", [NOON, None]), r"'t', row 1: got a missing time"),
    "missing arrow time": (pa.table({"t": [NOON, None]}), r"'t', row 1: got a missing time"),
    "missing date": ([None, dt.date(2020, 1, 1)], r"'x0', row 0: got a missing time"),
    "text": (
        pd.DataFrame({"city": ["1", "Aarhus"]}),
        r"Input 'city', row 1: got 'Aarhus' \(str\).*Convert text to num",
    ),
    "time as text": (pl.Series("t", ["2020-01-01"]), r"got '2020-01-01'.*or to datetimes"),
    "numpy text": (np.array([["a", "b"]]), r"Input 'x0', row 0: got 'a' \(str\)"),
    "category": (pd.Series(["a"], dtype="category"), r"row 0: got 'a'.*categories to 0/1 col"),
    "duration": (pd.Series(pd.to_timedelta([1], "h")), r"timedelta.*Divide durations by one hour"),
    "clock": (pl.Series("c", [dt.time(12)]), r"Input 'c', row 0: got datetime\.time\(12, 0\)"),
    "period": (pd.Series(pd.period_range("2020", periods=2, freq="M")), r"row 0: got"),
    "complex": (np.array([[1.0, 1j]]), r"row 0: got \(1\+0j\) \(complex\)"),
    "dict": ([{"a": 1}], r"row 0: got \{'a': 1\} \(dict\)"),
    "number among times": ([NOON, 3], r"row 1: got 3 \(int\).*times"),
    "time among numbers": ([3, NOON], r"row 1: got datetime.*numbers"),
    "two zones": (
        [NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=BERLIN)],
        r"'x0', row 1: got a time in zone Europe/Berlin, after times in zone UTC",
    ),
    "some zones": ([NOON.replace(tzinfo=UTC), NOON], r"row 1: got a time in zone None, after"),
    "double names": (
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        r"'a' 2 times",
    ),
    "names that are alike": (pd.DataFrame([[1, 2]], columns=[0, "0"]), r"alike: '0', '0'"),
    "no rows": (np.zeros((0, 2)), r"got no rows or no columns"),
    "no columns": (pd.DataFrame(index=[0, 1]), r"got no rows or no columns"),
    "three axes": (np.zeros((1, 1, 1)), r"got an array of shape \(1, 1, 1\).*Reshape"),
    "text alone": ("abc", r"Input: got str"),
    "nothing": (None, r"Input: got NoneType"),
    "lazy": (pl.LazyFrame({"a": [1]}), r"Input: got LazyFrame.*\.collect\(\)"),
    "ragged": ([[1], [1, 2]], r"1 in row 0 and 2 in row 1"),
}


@pytest.mark.parametrize(("X", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_words(X, message):
    with pytest.raises(ValueError, match=message):
        read_inputs(X)


ALIKE = {
    "fewer columns": (
        TIMES[["time", "rain"]],
        r"got 2 column\(s\): 'time', 'rain'.*3.*'time', 'rain', 'holiday'",
    ),
    "another name": (
        TIMES.rename(columns={"rain": "snow"}),
        r"'time', 'snow', 'holiday'.*'time', 'rain'.*Rename",
    ),
    "another order": (TIMES[["rain", "time", "holiday"]], r"in this order.*Rename or reorder"),
    "numbers for times": (
        TIMES.assign(time=np.arange(8)),
        r"Input 'time': got no times.*training data have times",
    ),
    "times for numbers": (TIMES.assign(rain=TIMES["time"]), r"Input 'rain': got times.*no times"),
    "a zone too many": (
        frame("UTC"),
        r"Input 'time': got times in zone UTC.*without a time zone",
    ),
    "nan": (TIMES.assign(rain=np.nan), r"Input 'rain', row 0 \(and 7 more such cells\): got NaN"),
}


@pytest.mark.parametrize(("X", "message"), ALIKE.values(), ids=ALIKE)
def test_new_data_unlike_the_training_data_are_refused_in_words(X, message):
    with pytest.raises(ValueError, match=message):
        read_inputs(X, read_inputs(TIMES)[1])


def test_a_zone_too_few_is_refused_in_words():
    with pytest.raises(ValueError, match=r"times without a time zone.*in zone UTC"):
        read_inputs(TIMES, read_inputs(frame("UTC"))[1])


def test_columns_without_names():
    _, columns = read_inputs([[0.0, 0.0]])
    assert columns.names == ("x0", "x1")
    assert columns.indices(None) == (0, 1)
    assert columns.indices(["x1", 0]) == (1, 0)
    np.testing.assert_array_equal(read_inputs([[3.0, 4.0]], columns)[0], [[3.0, 4.0]])


SKY = ["wet", "dry", "dry", "snow"]
WORD_TABLES = {
    "dict": lambda d: d,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pandas category": lambda d: pd.DataFrame(d).astype({"sky": "category"}),
    "polars category": lambda d: pl.DataFrame(d).with_columns(pl.col("sky").cast(pl.Categorical)),
}


def words(sky=SKY):
    return {"x": np.arange(float(len(sky))), "sky": list(sky)}


@pytest.mark.parametrize("make", WORD_TABLES.values(), ids=WORD_TABLES)
def test_words_become_centred_columns_of_zero_and_one(make):
    X, columns = read_inputs(make(words()))
    assert columns.names == ("x", "sky=dry", "sky=snow", "sky=wet")
    assert columns.categories == {"sky": ("dry", "snow", "wet")}
    assert columns.groups == {"x": (0,), "sky": (1, 2, 3)}
    ones = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(X[:, 1:], ones - ones.mean(axis=0))


def test_new_data_are_read_by_the_categories_of_the_training_data():
    X, columns = read_inputs(words())
    again, _ = read_inputs(words(SKY[:2]), columns)
    np.testing.assert_array_equal(again[:, 1:], X[:2, 1:])
    with pytest.raises(ValueError, match=r"'sky', row 1: got 'fog'.*'dry', 'snow'"):
        read_inputs(words(["dry", "fog"]), columns)


def test_a_missing_word_is_refused():
    with pytest.raises(ValueError, match=r"Input 'sky', row 1: got no category"):
        read_inputs(words(["dry", None]))


def test_numbers_that_are_declared_categories_are_words():
    frame = pd.DataFrame({"line": pd.Series([4, 5, 4]).astype("category")})
    assert read_inputs(frame)[1].names == ("line=4", "line=5")
    assert read_inputs(pd.DataFrame({"line": ["4", "5", "4"]}))[1].names == ("line",)


@pytest.mark.parametrize(
    "text", [["1", "dry"], ["2024-06-03", "dry"], ["2024-06-03", "2024-06-04"]]
)
def test_text_that_reads_as_something_else_is_no_category(text):
    with pytest.raises(ValueError, match=r"Input 'sky', row \d: got '.*Convert text"):
        read_inputs(pd.DataFrame({"sky": text}))


def test_names_and_free_text_are_refused():
    many = [f"customer {i}" for i in range(MOST_CATEGORIES + 1)]
    with pytest.raises(ValueError, match=r"Input 'sky': got 51 different words"):
        read_inputs(words(many))


def test_a_kernel_looks_at_all_categories_of_a_column():
    _, columns = read_inputs(words())
    assert RBF(columns="sky").resolve(columns).columns == (1, 2, 3)
    assert RBF(columns="sky=wet").resolve(columns).columns == (3,)


def test_by_default_the_categories_of_a_column_share_a_kernel():
    times = np.datetime64("2024-06-03T00", "h") + np.arange(4)
    X, columns = read_inputs({"time": times, "sky": SKY})
    kernels = default_kernels(columns, X, "mean")
    assert kernels[-1].columns == (1, 2, 3)


def test_some_columns_alone():
    _, columns = read_inputs(words())
    only = columns.only(["sky"])
    assert only.names == columns.names[1:]
    assert read_inputs({"sky": ["wet"]}, only)[0].shape == (1, 3)
