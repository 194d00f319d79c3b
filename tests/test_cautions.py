"""Of which outputs, and of which hours of the week, records tell too little."""

import dataclasses

import numpy as np
import pytest

from censored_gp.cautions import of_censoring
from censored_gp.observations import Observations

MONDAY = np.datetime64("2024-06-03T00")
HOURS = MONDAY + np.arange(24 * 28)
WORKING = (np.arange(24 * 28) // 24 % 7 < 5) & np.isin(np.arange(24 * 28) % 24, [8, 17])


def observed(censored, flag=1):
    return Observations.from_flags(np.full(len(censored), 3.0), flag * np.asarray(censored, int))


def test_hours_that_are_censored_in_every_week_are_told():
    (said,) = of_censoring(observed(WORKING), HOURS)
    assert said.startswith("Output 'y': 10 of 168 hours of the week are censored in every week")
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


def test_one_week_tells_nothing_of_every_week():
    assert of_censoring(observed(WORKING[:168]), HOURS[:168]) == []
    # Nor do two records of one hour of it.
    halves = MONDAY.astype("datetime64[m]") + 30 * np.arange(336)
    assert of_censoring(observed(np.repeat(WORKING[:168], 2)), halves) == []


def test_few_such_hours_are_not_worth_a_word():
    few = WORKING & (np.arange(24 * 28) % 24 == 8) & (np.arange(24 * 28) // 24 % 7 < 4)
    assert of_censoring(observed(few), HOURS) == []


def test_shares_speak_of_the_level():
    known = observed(WORKING)
    assert of_censoring(dataclasses.replace(known, is_share=known.is_right), HOURS) == []


def test_days_of_the_week_are_days():
    days = np.datetime64("2024-06-03") + np.arange(28)
    saturday = np.arange(28) % 7 == 5
    (said,) = of_censoring(observed(saturday, -1), days)
    assert said.startswith("Output 'y': 1 of 7 days of the week are censored in every week")
    assert "Saturday" in said
    assert "share" not in said, "what is at most so much is no share"


@pytest.mark.parametrize("times", [None, HOURS])
def test_an_output_that_is_mostly_censored_is_told_once(times):
    (said,) = of_censoring(observed(np.arange(24 * 28) % 3 > 0), times)
    assert "67% of its cells are censored" in said


def test_nothing_censored_is_nothing_to_tell():
    assert of_censoring(observed(np.zeros(24 * 28)), HOURS) == []
