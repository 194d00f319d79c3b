"""Inputs that are known for the times ahead."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from censored_gp.data.inputs import read_inputs
from censored_gp.estimator.analysis.forecast import known_inputs

TIMES = pd.date_range("2024-06-03", periods=48, freq="h", tz="Europe/Berlin")
TABLE = pd.DataFrame({"time": TIMES, "heat": np.arange(48.0), "sky": ["wet", "dry"] * 24})
AHEAD = pd.date_range("2024-06-05", periods=3, freq="h", tz="Europe/Berlin")
WALL = AHEAD.tz_localize(None).to_numpy().astype("datetime64[s]")
INSTANT = AHEAD.tz_convert("UTC").tz_localize(None).to_numpy().astype("datetime64[s]")
_, COLUMNS = read_inputs(TABLE)


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
MORE = pd.concat([TABLE[["time", "heat"]], GIVEN])


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
        (GIVEN[1:], "no row for time 2024-06-05 00:00:00. .*: 3 from 2024-06-05 00:00:00 to"),
        (GIVEN.assign(time=AHEAD + pd.Timedelta(days=366)), r"00:00:00 \(and 2 more\)"),
        (GIVEN.assign(time=WALL), "Input 'time': got times without"),
        (GIVEN.assign(time=[1, 2, 3]), "Input 'time': got no times.*Berlin"),
        (GIVEN.assign(time=[AHEAD[0], pd.NaT, AHEAD[2]]), "Input 'time', row 1: got a missing"),
        (
            pd.concat([GIVEN, GIVEN.assign(heat=0.0)]),
            "Input 'time', row 3: found the time of row 0 again, with other inputs",
        ),
        (GIVEN.assign(heat=[1.0, np.nan, 2.0]), "Input 'heat', row 1"),
        ({"snow": [1.0]}, "found the columns 'snow'. Accepted are some of 'heat', 'sky'"),
        ({"time": AHEAD}, "Accepted are some of 'heat', 'sky'"),
        ({"heat": [1.0]}, r"found 1 row\(s\) for 3 time"),
        (np.zeros((3, 1)), "inputs: found ndarray"),
    ],
    ids=range(11),
)
def test_inputs_that_do_not_fit_are_refused(table, words):
    with pytest.raises(ValueError, match=words):
        heat(table)


def test_times_that_are_numbers_are_found_too():
    _, columns = read_inputs({"week": [1.0, 2.0, 3.0], "price": [9.0, 8.0, 7.0]})
    ahead = np.array([4.0, 5.0])
    table = {"week": [5, 4], "price": [1.0, 2.0]}
    found = known_inputs(table, columns, "week", ahead, ahead)
    assert (found[:, 1] + columns.origin[1]).tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="no row for week 5"):
        known_inputs({"week": [4], "price": [2.0]}, columns, "week", ahead, ahead)
    with pytest.raises(ValueError, match=r"'week': got times.*no times"):
        known_inputs({"week": [dt.date(2024, 6, 3)], "price": [2.0]}, columns, "week", ahead, ahead)


def test_a_model_without_inputs_needs_no_table():
    _, columns = read_inputs({"week": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="The model has no inputs but the time"):
        known_inputs({"week": [4.0]}, columns, "week", np.array([4.0]), np.array([4.0]))
