"""Times that come next, and inputs for them."""

import numpy as np
import polars as pl
import pytest

from censored_gp.ahead import known_inputs, scenarios, times_ahead
from censored_gp.inputs import read_inputs


def hourly(start, hours, step=1):
    return np.datetime64(start, "s") + np.arange(0, hours, step) * np.timedelta64(3600, "s")


def test_times_go_on_at_the_usual_spacing():
    wall, instant = times_ahead(hourly("2024-06-03T00", 10), periods=3)
    np.testing.assert_array_equal(wall, hourly("2024-06-03T10", 3))
    np.testing.assert_array_equal(instant, wall)
    until, _ = times_ahead(hourly("2024-06-03T00", 10), until="2024-06-03T12:30")
    np.testing.assert_array_equal(until, wall)


def test_a_gap_does_not_change_the_spacing():
    times = np.delete(hourly("2024-06-03T00", 20), [3, 4, 5, 11])
    assert times_ahead(times, 1)[0][0] == np.datetime64("2024-06-03T20", "s")


def test_nothing_is_forecast_for_hours_that_the_past_does_not_have():
    days = [hourly(f"2024-06-{day:02d}T08", 9) for day in range(3, 8)]
    wall, _ = times_ahead(np.concatenate(days), 10)
    assert wall[0] == np.datetime64("2024-06-08T08", "s")
    assert wall[9] == np.datetime64("2024-06-09T08", "s")


def test_nothing_is_forecast_for_days_that_weeks_do_not_have():
    days = [hourly(f"2024-06-{d:02d}T08", 9) for d in range(3, 29) if (d - 3) % 7 < 5]
    wall, _ = times_ahead(np.concatenate(days), 1)
    assert wall[0] == np.datetime64("2024-07-01T08", "s")  # a Monday, after Friday the 28th


def test_hours_are_hours_and_days_are_days_when_the_clock_changes():
    # Clocks in Berlin go back at 3:00 on 27 October 2024.
    wall, instant = times_ahead(hourly("2024-10-26T00", 25), 4, zone="Europe/Berlin")
    assert [str(time)[11:13] for time in wall] == ["01", "02", "02", "03"]
    assert np.all(np.diff(instant) == np.timedelta64(3600, "s"))
    daily, instant = times_ahead(hourly("2024-10-24T00", 72, 24), 3, zone="Europe/Berlin")
    assert {str(time)[11:] for time in daily} == {"00:00:00"}
    assert set(np.diff(instant).astype(int) // 3600) == {24, 25}


@pytest.mark.parametrize("given", [{}, {"periods": 1, "until": "2025"}, {"until": "2020"}])
def test_how_far_must_be_said(given):
    with pytest.raises(ValueError, match="forecast: found"):
        times_ahead(hourly("2024-06-03T00", 10), **given)


def test_one_time_has_no_spacing():
    with pytest.raises(ValueError, match="one time only"):
        times_ahead(hourly("2024-06-03T00", 1), 2)


TABLE = {
    "time": hourly("2024-06-03T00", 24 * 15),
    "heat": np.arange(24.0 * 15),
    "sky": ["wet" if day % 2 else "dry" for day in range(15) for _ in range(24)],
}


@pytest.mark.parametrize("make", [dict, pl.DataFrame])
def test_inputs_that_are_given_are_used(make):
    _, columns = read_inputs(TABLE)
    matrix = known_inputs(make({"sky": ["wet", "dry"]}), columns, 2)
    assert np.isnan(matrix[:, :2]).all()
    np.testing.assert_allclose(matrix[0, 2:] - matrix[1, 2:], [-1.0, 1.0])
    with pytest.raises(ValueError, match="found the columns 'snow'"):
        known_inputs({"snow": [1.0]}, columns, 1)


def test_unknown_inputs_come_from_one_day_of_the_past_at_the_same_hour():
    inputs, columns = read_inputs(TABLE)
    ahead = hourly("2024-06-18T06", 30)  # a Tuesday, of which the past has two
    matrix = np.full((30, inputs.shape[1]), np.nan)
    matrix[:, 0] = 0.0
    found = scenarios(TABLE["time"], inputs, ahead, matrix, 20, np.random.default_rng(0))
    heat = found[:, :, 1] + columns.origin[1]
    np.testing.assert_array_equal(heat[:, :18] % 24, np.tile(np.arange(6.0, 24.0), (20, 1)))
    day = heat[:, :18] // 24
    assert np.all(day == day[:, :1])
    assert set(day[:, 0]) == {1.0, 8.0}
    assert np.all(found[:, :, 0] == 0.0)
