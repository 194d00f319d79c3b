"""Tables of any kind become columns, and results go back to what came."""

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from censored_gp import Observations
from censored_gp.data.errors import DataError
from censored_gp.data.inputs import read_inputs
from censored_gp.data.layout import inputs_table, read_training
from censored_gp.data.tables import Table, as_arrow, read_table, times_like, with_intervals

DAYS = [dt.date(2024, 6, 3), dt.date(2024, 6, 4)]
NOON = np.array(["2024-06-03T12", "2024-06-04T12"], dtype="datetime64[s]")


def test_whoever_computes_loads_no_data_frames():
    code = (
        "import sys, censored_gp.model.model, censored_gp.kernels, censored_gp.inference.natural, "
        "censored_gp.prediction.metrics; "
        "print([m for m in ('pyarrow', 'narwhals', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_decimals_are_the_numbers_they_stand_for():
    texts = [f"{number / 1000:.3f}" for number in range(0, 9000, 7)]
    cells = pa.array([Decimal(text) for text in texts], pa.decimal128(9, 3))
    for column in (cells, cells.cast(pa.string())):
        read = read_training(pa.table({"x": range(len(texts)), "y": column}), "y", inputs="x")
        np.testing.assert_array_equal(read.observations.lower[:, 0], list(map(float, texts)))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"t": NOON, "n": pd.array([1, None], "Int64"), "w": ["x", "y"], "d": DAYS}),
        pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])),
        pd.DataFrame({"a": [1, 2]}, index=pd.DatetimeIndex(NOON, name="when", tz="+02:00")),
        pd.DataFrame({"c": pd.Categorical(["x", "y"]), "z": pd.to_datetime(NOON, utc=True)}),
        pl.DataFrame({"t": NOON.astype("M8[us]"), "w": ["x", "y"], "d": DAYS}),
        pa.table({"t": NOON, "w": ["x", "y"], "d": DAYS}),
    ],
    ids=["pandas", "levels", "offset", "category", "polars", "pyarrow"],
)
def test_a_table_comes_back_as_it_was(frame):
    table = read_table(frame)
    for again in (table.native(), Table.from_bytes(table.to_bytes(), table.backend).native()):
        assert type(again) is type(frame)
        if isinstance(frame, pd.DataFrame):
            pd.testing.assert_frame_equal(again, frame, check_index_type="equiv")
        else:
            assert again.equals(frame)


def test_rows_of_a_dict_come_back_as_arrays():
    zoned = [dt.datetime(2024, 6, 3, 8, tzinfo=dt.timezone(dt.timedelta(hours=2)))] * 2
    back = read_table({"n": [1, 2], "w": ["x", "y"], "d": DAYS, "z": zoned}).native()
    assert back["n"].tolist() == [1, 2]
    assert back["w"].tolist() == ["x", "y"]
    assert back["d"].tolist() == DAYS
    assert [time.isoformat() for time in back["z"]] == ["2024-06-03T08:00:00+02:00"] * 2


def test_new_times_are_like_the_old_ones():
    whole = NOON.astype("datetime64[D]").astype("datetime64[s]")
    assert times_like(pa.array(DAYS), whole, whole, None).type == pa.date32()
    assert times_like(pa.array(DAYS), NOON, NOON, None).type == pa.timestamp("us")
    own = pa.array([None], pa.timestamp("ms", "Europe/Berlin"))
    made = times_like(own, NOON, NOON - np.timedelta64(2, "h"), "Europe/Berlin")
    assert made.type == own.type
    assert str(made[0]) == "2024-06-03 12:00:00+02:00"


MIXED = {
    "text and times": (["a", NOON[0]], "'c', row 1: got .*datetime"),
    "times and numbers": ([DAYS[0], None, 3], "'c', row 2: got 3"),
    "something else": ([1, {"a": 1}], r"'c', row 1: got \{'a': 1\} \(dict\)"),
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
@pytest.mark.parametrize(("values", "words"), MIXED.values(), ids=MIXED)
def test_columns_that_mix_kinds_are_refused_by_column_and_row(make, values, words):
    table = read_table(make({"c": pd.Series(values, dtype=object)}))
    with pytest.raises(DataError, match=words):
        table.column("c", "Input")


def test_masked_cells_are_missing():
    y = np.ma.masked_array([1.0, 999.0], mask=[False, True])
    assert Observations.exact(y).is_missing[:, 0].tolist() == [False, True]
    times = np.ma.masked_array(NOON, mask=[False, True])
    for X in (np.ma.masked_array([[1], [999]], mask=[[False], [True]]), times, {"x": times}):
        with pytest.raises(DataError, match=r"row 1: got (NaN|a missing)"):
            read_inputs(X)


def test_near_misses_of_names_are_told_and_long_names_are_cut():
    with pytest.raises(DataError, match=r"no column 'bike'.*Did you mean 'bikes'"):
        read_table({"bikes": [1]}).array("bike", "Output")
    with pytest.raises(DataError) as caught:
        read_table({"x" * 100_000: [1]}).array("y" * 100_000, "Output")
    assert len(str(caught.value)) < 400


def test_an_error_moves_to_another_place_and_keeps_what_it_says():
    error = DataError("got -1.", "Output", "a", 3, more=2, hint="Correct it.")
    assert str(error) == "Output 'a', row 3 (and 2 more such cells): got -1. Correct it."
    moved = error.at(file="t.csv", line="line 5")
    assert str(moved) == "t.csv, line 5, column 'a' (and 2 more such cells): got -1. Correct it."
    assert (moved.row, moved.column, error.file) == (3, "a", None)


def test_numbers_in_digits_are_days_in_files_only():
    table = read_table({"day": [20240603, 20240604]})
    assert table.with_times("day").array("day", "").to_pylist() == [20240603, 20240604]


def test_inputs_come_back_from_the_matrix_that_was_made_of_them():
    zoned = pa.array(NOON).cast(pa.timestamp("us", "Europe/Copenhagen"))
    table = pa.table({"t": zoned, "depth": [0.1, 1 / 3], "sky": ["dry", "wet"]})
    again = inputs_table(*reversed(read_inputs(table))).arrow
    assert again["t"].to_pylist() == table["t"].to_pylist()
    assert again["depth"].to_pylist() == pytest.approx([0.1, 1 / 3], rel=1e-11)
    assert again["sky"].to_pylist() == ["dry", "wet"]


def test_no_output_is_overwritten_by_the_interval_of_another():
    found = with_intervals({}, {"a": (1.0, 0.5, 1.5), "a_low": (9.0, 8.5, 9.5)})
    assert (found["a"], found["a_low"]) == (1.0, 9.0)
    assert (found["a_interval_low"], found["a_low_interval_low"]) == (0.5, 8.5)


@pytest.mark.parametrize("make", ["pandas", "polars", "pyarrow"])
def test_rows_of_result_tables_of_every_make(make):
    expected = [{"group": "a", "lost": 1.5}, {"group": "b", "lost": 2.5}]
    columns = {"group": ["a", "b"], "lost": [1.5, 2.5]}
    module = pytest.importorskip(make)
    table = module.table(columns) if make == "pyarrow" else module.DataFrame(columns)
    for each in (table, columns, expected):
        assert as_arrow(each).to_pylist() == expected


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_numbers_in_place_of_text_stay_numbers(make):
    table = read_table(make({"y": ["<1", "2"], "x": [1, 2]}))
    found = table.with_column("y", np.array([0.5, 2.0])).native()
    np.testing.assert_array_equal(np.asarray(found["y"], dtype=object), [0.5, 2.0])
