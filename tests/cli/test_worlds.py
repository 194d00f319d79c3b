"""Data sets as tables; downloads are replaced by small ones."""

import numpy as np
import pytest

from censored_gp import datasets
from censored_gp.cli.problems import BadInput
from censored_gp.cli.worlds import WORLDS, Choice, listing, table_of
from censored_gp.datasets.public import CensoredSeries, StationHours

pytest.importorskip("pyarrow")

TIME = np.arange("2018-06-01T00", "2018-06-01T03", dtype="datetime64[h]")
CELLS = np.arange(6.0).reshape(3, 2)


def test_every_data_set_is_listed():
    assert [row["name"] for row in listing()] == list(WORLDS)
    assert {row["kind"] for row in listing()} == {"simulated", "local file", "download"}


def test_a_simulated_world_has_what_was_seen_and_the_truth():
    table = table_of("bike_share", Choice(days=2, seed=3))
    assert len(table) == 48
    seen, truth, empty = (table[f"station_2{end}"].to_numpy() for end in ("", "_truth", "_empty"))
    np.testing.assert_array_equal(seen[~empty], truth[~empty])
    assert np.all(seen <= truth)
    assert not table.equals(table_of("bike_share", Choice(days=2, seed=4)))


MARKS = {
    "bike_share": "_empty",
    "car_park": "_capacity",
    "shop": "_sold_out",
    "water_samples": "_nondetect",
}


def test_all_simulated_worlds_have_their_truth_beside_them():
    assert list(MARKS) == [name for name, world in WORLDS.items() if world.kind == "simulated"]
    for name, mark in MARKS.items():
        size = {"samples": 7} if name == "water_samples" else {"days": 3}
        table = table_of(name, Choice(**size))
        outputs = [n.removesuffix("_truth") for n in table.column_names if n.endswith("_truth")]
        assert len(outputs) == 2
        assert all(output + mark in table.column_names for output in outputs)
        assert len(table) == {"bike_share": 72, "car_park": 33, "shop": 3}.get(name, 7)


def test_a_world_of_which_no_size_is_given_is_large_enough_to_try_things_on():
    assert [len(table_of(name, Choice())) for name in MARKS] == [336, 308, 120, 120]


def test_the_papers_stations_are_there_with_the_weather(data_folder):
    table = table_of("new_york", Choice(seed=1))
    assert {"time", "temperature", "3711", "366_censored", "366_truth"} <= set(table.column_names)


def test_trips_have_a_column_for_each_station_and_way(monkeypatch):
    asked = []

    def citibike(months, stations):
        asked.append((months, stations))
        return StationHours(("a", "b"), TIME, CELLS, CELLS + 10)

    monkeypatch.setattr(datasets, "citibike", citibike)
    table = table_of("citibike", Choice(names=["a,b"], months=["2018-06,2018-07"]))
    assert asked == [(("2018-06", "2018-07"), ("a", "b"))]
    assert table.column_names == ["time", "a", "a_dropoffs", "b", "b_dropoffs"]
    assert table["b_dropoffs"].to_pylist() == [11, 13, 15]


def test_what_filled_up_or_sold_out_is_flagged(monkeypatch):
    found = CensoredSeries(("a", "b"), TIME, CELLS, CELLS > 3, "full")
    monkeypatch.setattr(datasets, "birmingham_parking", lambda names: found)
    monkeypatch.setattr(datasets, "fresh_retail", lambda store, products: found)
    parks = table_of("birmingham_parking", Choice(names=["a,b"]))
    assert parks["b_full"].to_pylist() == [False, False, True]
    assert table_of("fresh_retail", Choice(names=["70,81"], store=235)) == parks


@pytest.mark.parametrize("name", ["citibike", "birmingham_parking", "fresh_retail"])
def test_what_is_not_said_is_asked_for(name):
    with pytest.raises(BadInput, match=r"data: --(names|months) is missing. Give it, as --"):
        table_of(name, Choice())
