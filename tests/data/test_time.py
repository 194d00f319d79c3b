"""Times that come next, and inputs for them."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from censored_gp.data.time import times_ahead


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


@pytest.mark.parametrize("zone", ["+02:00", "UTC+02:00", "pytz.FixedOffset(120)"])
def test_a_zone_may_be_an_offset(zone):
    wall, instant = times_ahead(hourly("2024-04-01T00", 10), 1, zone=zone)
    assert (str(wall[0]), str(instant[0])) == ("2024-04-01T10:00:00", "2024-04-01T08:00:00")


def test_a_zone_that_nobody_knows_is_told():
    with pytest.raises(ValueError, match=r"zone.* got 'tzlocal\(\)\'"):
        times_ahead(hourly("2024-04-01T00", 10), 1, zone="tzlocal()")


@pytest.mark.parametrize(
    "until",
    [
        "2024-04-01T12:30",
        "2024-04-01T11:30+01:00",
        "2024-04-01 10:30Z",
        dt.datetime(2024, 4, 1, 10, 30, tzinfo=dt.UTC),
        pd.Timestamp("2024-04-01T12:30", tz="+02:00"),
        np.datetime64("2024-04-01T12:30:00", "ns"),
    ],
    ids=str,
)
def test_a_last_time_with_a_zone_is_that_moment(until):
    wall, _ = times_ahead(hourly("2024-04-01T00", 10), until=until, zone="+02:00")
    assert str(wall[-1]) == "2024-04-01T12:00:00"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "got periods=None and until=None"),
        ({"periods": 1, "until": "2025"}, "got periods=1"),
        ({"until": "2020"}, "until.*after .*2024-06-03T09:00:00, got 2020"),
        ({"until": "foo"}, "until.*2024-06-03.* got 'foo'"),
        ({"until": pd.NaT}, "until.* got 'NaT'"),
        ({"until": "2024-06-04T00:00+02:00"}, "until.*without a zone"),
        ({"until": "3024-06"}, "until.*100000 steps"),
        ({"periods": 2.5}, "periods.*whole number.*got 2.5"),
        ({"periods": 0}, "periods.* got 0"),
        ({"periods": "3"}, "periods.* got '3'"),
        ({"periods": 10**9}, "periods.* got 1000000000"),
    ],
    ids=str,
)
def test_how_far_must_be_said(given, words):
    with pytest.raises(ValueError, match=words):
        times_ahead(hourly("2024-06-03T00", 10), **given)


def test_one_time_has_no_spacing():
    with pytest.raises(ValueError, match="two different times"):
        times_ahead(hourly("2024-06-03T00", 1), 2)
