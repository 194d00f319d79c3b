"""Of which outputs, and of which hours of the week, records tell too little."""

import dataclasses

import numpy as np
import pytest

from censored_gp.data.observations import Observations
from censored_gp.estimator.analysis.diagnose import of_censoring

MONDAY = np.datetime64("2024-06-03T00")
HOURS = MONDAY + np.arange(24 * 28)
WORKING = (np.arange(24 * 28) // 24 % 7 < 5) & np.isin(np.arange(24 * 28) % 24, [8, 17])


def observed(censored, flag=1):
    return Observations.from_flags(np.full(len(censored), 3.0), flag * np.asarray(censored, int))


def test_hours_that_are_censored_in_every_week_are_told():
    (said,) = of_censoring(observed(WORKING), HOURS)
    assert said.startswith("Output 'y': 10 of 168 hours of the week are censored every time")
    assert "such as Monday 8:00" in said
    assert 'side="share"' in said


def test_a_single_week_in_which_an_hour_was_seen_is_enough():
    seen = WORKING & ~(np.arange(24 * 28) < 168)
    assert of_censoring(observed(seen), HOURS) == []


def test_what_is_missing_was_not_seen():
    known = observed(WORKING)
    gone = (WORKING & (np.arange(24 * 28) < 168))[:, None]
    lower, upper = np.where(gone, -np.inf, known.lower), np.where(gone, np.inf, known.upper)
    (said,) = of_censoring(dataclasses.replace(known, lower=lower, upper=upper), HOURS)
    assert "10 of 168" in said


def test_two_weeks_tell_nothing_of_every_week():
    assert of_censoring(observed(WORKING[:336]), HOURS[:336]) == []
    # Nor do four records of each hour of them.
    quarters = MONDAY.astype("datetime64[m]") + 15 * np.arange(4 * 336)
    assert of_censoring(observed(np.repeat(WORKING[:336], 4)), quarters) == []


def test_few_such_hours_are_not_worth_a_word():
    few = WORKING & (np.arange(24 * 28) % 24 == 8) & (np.arange(24 * 28) // 24 % 7 < 4)
    assert of_censoring(observed(few), HOURS) == []


def test_shares_speak_of_the_level_and_so_do_two_bounds():
    known = observed(WORKING)
    assert of_censoring(dataclasses.replace(known, is_share=known.is_right), HOURS) == []
    rounded = Observations.from_rounding(np.full(len(HOURS), 5.0), np.where(WORKING, 1.0, 0.0))
    assert of_censoring(rounded, HOURS) == []
    assert of_censoring(Observations.from_rounding(np.full(len(HOURS), 5.0), 1.0), HOURS) == []


@pytest.mark.parametrize("share", [0.2, 0.3, 0.45])
@pytest.mark.parametrize("times", [HOURS[: 24 * 21], HOURS, np.unique(HOURS.astype("M8[D]"))])
def test_flags_dealt_at_random_are_no_pattern(share, times):
    told = 0
    for seed in range(40):
        flags = np.random.default_rng(seed).uniform(size=len(times)) < share
        told += any("every time" in said for said in of_censoring(observed(flags), times))
    assert told <= 4


def test_times_now_and_then_are_no_weeks():
    rng = np.random.default_rng(0)
    times = np.sort(MONDAY + rng.integers(0, 24 * 730, 400))
    assert of_censoring(observed(rng.uniform(size=400) < 0.3), times) == []


def test_days_of_the_week_are_days():
    days = np.datetime64("2024-06-03") + np.arange(28)
    saturday = np.arange(28) % 7 == 5
    (said,) = of_censoring(observed(saturday, -1), days)
    assert said.startswith("Output 'y': 1 of 7 days of the week is censored every time")
    assert "Saturday" in said
    assert "share" not in said, "what is at most so much is no share"


@pytest.mark.parametrize("times", [None, HOURS])
def test_an_output_that_is_mostly_censored_is_told_once(times):
    (said,) = of_censoring(observed(np.arange(24 * 28) % 3 > 0), times)
    assert "67% of its cells are censored" in said


def test_nothing_censored_is_nothing_to_tell():
    assert of_censoring(observed(np.zeros(24 * 28)), HOURS) == []
