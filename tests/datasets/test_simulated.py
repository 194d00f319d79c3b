"""The worlds keep the promises that their docstrings make."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from censored_gp import simulate


def test_a_seed_makes_the_world_that_it_made_before():
    """Figures in the documentation are of these worlds."""
    world = simulate.bike_share(seed=1)
    seen = (world.rain, world.demand, world.supply, world.observed, world.censored)
    assert [part.sum() for part in seen] == [86, 4681, 11314, 3922, 306]
    assert world.rate.sum() == pytest.approx(4652.66371745)
    world = simulate.bike_share(days=2, seed=1)
    assert world.demand[6:10].tolist() == [[2, 2], [3, 9], [9, 8], [4, 1]]
    assert world.supply[6:10].tolist() == [[11, 13], [11, 14], [12, 11], [4, 4]]


def test_returns_follow_the_shocks_of_demand_only_if_told_to():
    pattern = simulate.bike_share(days=200, shared_shock=0.0, own_shock=0.0).rate
    for follow in (True, False):
        world = simulate.bike_share(days=200, returns_follow_demand=follow)
        shock = np.log(world.rate / pattern)
        more = [world.returned[part].sum() / pattern[part].sum() for part in (shock > 0, shock < 0)]
        assert more[0] / more[1] == pytest.approx(1.6 if follow else 1.0, abs=0.1)
        assert world.returned.sum() == pytest.approx(0.84 * pattern.sum(), rel=0.1)


def test_a_world_cannot_be_changed_and_has_one_row_per_hour():
    world = simulate.bike_share(days=5, stations=3)
    assert world.demand.shape == world.censored.shape == world.rate.shape == (120, 3)
    assert world.names == ("station_1", "station_2", "station_3")
    assert np.all(np.diff(world.time) == np.timedelta64(1, "h"))
    assert list(world.inputs()) == ["time", "rain"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.rain = world.rain


def test_pickups_fall_short_of_demand_only_where_the_flag_says_so():
    world = simulate.bike_share()
    np.testing.assert_array_equal(world.observed, np.minimum(world.demand, world.supply))
    np.testing.assert_array_equal(world.observed[~world.censored], world.demand[~world.censored])
    assert np.all(world.observed[world.censored] <= world.demand[world.censored])
    short = world.observed < world.demand
    assert np.all(world.censored[short])
    assert 0.15 < world.censored.mean() < 0.4
    assert short.sum() > 0.5 * world.censored.sum()


def test_bikes_are_conserved():
    world = simulate.bike_share(days=7, docks=20)
    left = world.supply - world.observed
    hour = world.time.astype(int) % 24
    following = np.flatnonzero(hour[1:] != simulate.TIME_OF_REBALANCING)
    # The supply of an hour is what was left, as far as it fits, plus what came back.
    kept = np.minimum(left, 20)[following]
    np.testing.assert_array_equal(world.supply[following + 1], kept + world.returned[following + 1])
    night = hour == simulate.TIME_OF_REBALANCING
    filled = round(20 * simulate.STOCK_AFTER_REBALANCING)
    np.testing.assert_array_equal(world.supply[night], filled + world.returned[night])


def test_demand_is_poisson_about_its_rate():
    world = simulate.bike_share(days=200)
    z = (world.demand - world.rate) / np.sqrt(world.rate)
    assert abs(z.mean()) < 0.03
    assert z.var() == pytest.approx(1.0, abs=0.05)


def test_rain_keeps_people_away_and_mornings_are_busy_on_weekdays():
    world = simulate.bike_share(days=100, shared_shock=0.0, own_shock=0.0)
    hour = world.time.astype(int) % 24
    weekday = np.is_busday(world.time.astype("datetime64[D]"))
    dry, wet = (world.rate[(hour == 8) & weekday & (world.rain == r)].mean() for r in (0, 1))
    assert wet / dry == pytest.approx(np.exp(-0.7))
    assert dry > 2 * world.rate[(hour == 8) & ~weekday].mean()
    assert 0.05 < world.rain.mean() < 0.25


def test_stations_share_their_shocks():
    world = simulate.bike_share(days=100, shared_shock=0.5, own_shock=0.0, rain_effect=0.0)
    ratio = world.rate[:, 0] / world.rate[:, 1]
    hour_of_week = world.time.astype(int) % 168
    for hour in (5, 60, 150):
        assert np.ptp(ratio[hour_of_week == hour]) < 1e-9


WORLDS = {
    "bikes": simulate.bike_share,
    "car parks": simulate.car_park,
    "shop": simulate.shop,
    "water": simulate.water_samples,
}


@pytest.mark.parametrize("world", WORLDS)
def test_worlds_keep_the_truth_behind_what_is_seen(world):
    found, again, other = (WORLDS[world](seed=s) for s in (3, 3, 4))
    truth = found.truth
    np.testing.assert_array_equal(found.observed, again.observed)
    assert not np.array_equal(found.observed, other.observed)
    np.testing.assert_array_equal(found.observed[~found.censored], truth[~found.censored])
    assert 0.08 < found.censored.mean() < 0.6
    known = found.observations()
    assert known.names == found.names
    np.testing.assert_array_equal(~known.is_exact, found.censored)
    assert np.all((known.lower <= truth) & (truth <= known.upper))
    some = found.observations(slice(3, 9))
    np.testing.assert_array_equal(some.lower, known.lower[3:9])
    np.testing.assert_array_equal(some.upper, known.upper[3:9])


MARKS = {
    "bikes": "_empty",
    "car parks": "_capacity",
    "shop": "_sold_out",
    "water": "_nondetect",
}


@pytest.mark.parametrize("world", WORLDS)
def test_a_table_has_what_was_seen_and_the_truth_only_if_asked_for(world):
    found, mark = WORLDS[world](seed=1), MARKS[world]
    ends = ("", mark, "_truth")
    table, told = found.table(), found.table(truth=True)
    assert list(told) == [*found.inputs(), *(f"{n}{end}" for n in found.names for end in ends)]
    assert list(table) == [name for name in told if not name.endswith("_truth")]
    for d, name in enumerate(found.names):
        np.testing.assert_array_equal(table[name], found.observed[:, d])
        np.testing.assert_array_equal(told[f"{name}_truth"], found.truth[:, d])
        marks = table[f"{name}{mark}"]
        full = table[name] >= marks if mark == "_capacity" else marks
        np.testing.assert_array_equal(full, found.censored[:, d])


def test_importing_worlds_is_cheap():
    code = """
import sys
from censored_gp import datasets, simulate
print([name for name in ("jax", "scipy", "pyarrow", "pooch") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_car_parks_are_full_where_more_would_come_and_counted_in_opening_hours():
    world = simulate.car_park(days=7, parks=3, spaces=100)
    np.testing.assert_array_equal(world.censored, world.demand >= world.capacity)
    hours = world.time.astype("datetime64[h]").astype(int) % 24
    assert (hours.min(), hours.max()) == simulate.OPENING_HOURS
    assert np.corrcoef(world.demand.T)[0, 1] > 0.7


def test_promotions_sell_and_sell_out():
    world = simulate.shop(days=600, seed=1)
    on = world.promotion == 1
    assert world.demand[on].mean() > 1.3 * world.demand[~on].mean()
    assert world.censored[on].mean() > world.censored[~on].mean()
    weekday = (world.time.astype(int) + 3) % 7
    assert world.demand[weekday == 5].mean() > 1.5 * world.demand[weekday == 6].mean()


def test_detection_limits_fall_over_the_years():
    world = simulate.water_samples(300)
    assert np.all(np.diff(world.limit[:, 0]) <= 0)
    assert set(world.limit.ravel()) == set(simulate.DETECTION_LIMITS)
