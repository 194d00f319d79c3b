"""Trip files in both layouts, car parks and fresh retail, in small files of the same formats."""

import io
import zipfile

import numpy as np
import pytest

from censored_gp import datasets
from censored_gp.datasets.download import NotThere

OLD = (
    '"tripduration","starttime","stoptime","start station id","start station name",'
    '"start station latitude","start station longitude","end station id","end station name",'
    '"end station latitude","end station longitude","bikeid","usertype","birth year","gender"'
)
NEW = (
    "ride_id,rideable_type,started_at,ended_at,start_station_name,start_station_id,"
    "end_station_name,end_station_id,start_lat,start_lng,end_lat,end_lng,member_casual"
)
# start, stop, from, to
TRIPS = [
    ("2018-06-01 00:10:00", "2018-06-01 00:40:00", "3711", "366"),
    ("2018-06-01 00:50:00", "2018-06-01 01:05:00", "3711", "366"),
    ("2018-06-01 05:00:00", "2018-06-01 05:30:00", "366", "3711"),
    ("2018-06-30 23:50:00", "2018-07-01 00:10:00", "366", "3711"),
]


def old_row(start, stop, a, b):
    return f'600,"{start}","{stop}",{a},"A",40.7,-73.9,{b},"B",40.7,-73.9,1,"Subscriber",1980,1'


def new_row(start, stop, a, b):
    return f"X1,classic_bike,{start},{stop},A,{a},B,{b},40.7,-73.9,40.7,-73.9,member"


def us_time(text):
    day, clock = text.split()
    year, month, number = day.split("-")
    return f"{int(month)}/{int(number)}/{year} {clock}"


def archive(path, **tables):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in tables.items():
            file.writestr(name, text)


@pytest.fixture
def web(tmp_path):
    """A folder that stands for the web, and one for downloads."""
    (tmp_path / "web").mkdir()
    return tmp_path / "web", tmp_path / "kept"


def counted(web, **wanted):
    folder, kept = web
    return datasets.citibike(["2018-06"], address=folder.as_uri(), folder=kept, **wanted)


@pytest.mark.parametrize(("header", "row"), [(OLD, old_row), (NEW, new_row)])
def test_both_layouts_count_the_same(web, header, row):
    text = "\n".join([header, *(row(*trip) for trip in TRIPS)])
    archive(web[0] / "201806-citibike-tripdata.csv.zip", **{"201806-citibike-tripdata.csv": text})
    found = counted(web, stations=["3711", "366"])
    assert found.names == ("3711", "366")
    assert found.time[0] == np.datetime64("2018-06-01T00")
    assert len(found.time) == 30 * 24
    np.testing.assert_array_equal(found.pickups.sum(axis=0), [2, 2])
    np.testing.assert_array_equal(found.pickups[0], [2, 0])
    np.testing.assert_array_equal(found.dropoffs[1], [0, 1])
    # The last trip ended in July, which was not asked for.
    np.testing.assert_array_equal(found.dropoffs.sum(axis=0), [1, 2])


def test_times_as_americans_write_them_count_too(web):
    rows = [old_row(us_time(a), us_time(b), *ends) for a, b, *ends in TRIPS]
    capital = OLD.replace("starttime", "Start Time").replace("stoptime", "Stop Time")
    archive(web[0] / "201806-citibike-tripdata.zip", **{"june.csv": "\n".join([capital, *rows])})
    np.testing.assert_array_equal(counted(web, stations=["3711"]).pickups[:2, 0], [2, 0])


def test_a_months_parts_and_a_years_months_are_found(web):
    half = [new_row(*trip) for trip in TRIPS]
    inner = io.BytesIO()
    archive(inner, **{"201806-citibike-tripdata_1.csv": "\n".join([NEW, *half[:2]]),
                      "201806-citibike-tripdata_2.csv": "\n".join([NEW, *half[2:]]),
                      "__MACOSX/._201806-citibike-tripdata_1.csv": "junk"})  # fmt: skip
    other = "\n".join([NEW, new_row("2018-07-05 08:00:00", "2018-07-05 08:10:00", "9", "9")])
    year = {"201806-citibike-tripdata.zip": inner.getvalue(), "201807-citibike-tripdata.csv": other}
    archive(web[0] / "2018-citibike-tripdata.zip", **year)
    found = counted(web)
    assert found.names == ("366", "3711")
    assert found.pickups.sum() == 4


def test_trips_from_or_to_nowhere_count_at_one_end(web):
    rows = [new_row(*TRIPS[0][:2], "3711", ""), new_row(*TRIPS[0][:2], "NULL", "3711.0")]
    archive(web[0] / "201806-citibike-tripdata.zip", **{"june.csv": "\n".join([NEW, *rows])})
    found = counted(web)
    assert found.names == ("3711",)
    assert found.pickups[0, 0] == found.dropoffs[0, 0] == 1


def test_a_month_that_was_counted_is_not_read_again(web):
    text = "\n".join([NEW, *(new_row(*trip) for trip in TRIPS)])
    archive(web[0] / "201806-citibike-tripdata.zip", **{"june.csv": text})
    first = counted(web)
    (counts,) = web[1].glob("*.counts.csv")
    counts.write_text(counts.read_text() + "pickups,7,2018-06-01T03,5\n")
    assert "7" not in first.names
    assert counted(web, stations=["7"]).pickups.sum() == 5


def test_what_is_wrong_with_trips_is_said(web):
    with pytest.raises(NotThere, match=r"no trips of 2018-06; tried 201806"):
        counted(web)
    with pytest.raises(ValueError, match=r"bad\.csv: no column for 'start'.*when.*starttime"):
        datasets.count_trips(io.StringIO("when,where\n1,2\n"), "bad.csv")
    bad = "\n".join([NEW, new_row("yesterday", "today", "1", "2")])
    with pytest.raises(ValueError, match="found the time 'yesterday'"):
        datasets.count_trips(io.StringIO(bad))
    archive(web[0] / "201806-citibike-tripdata.zip", **{"a.csv": f"{NEW}\n{new_row(*TRIPS[0])}"})
    with pytest.raises(ValueError, match="station 42"):
        counted(web, stations=["42"])


def test_a_station_is_paired_with_the_one_it_moves_with():
    rng = np.random.default_rng(0)
    rate = 4 + 3 * np.sin(np.arange(200) * 2 * np.pi / 24)
    pickups = np.stack([rng.poisson(rate), rng.poisson(4, 200), rng.poisson(3 * rate)], axis=1)
    time = np.datetime64("2018-06-01T00") + np.arange(200)
    hours = datasets.StationHours(("a", "b", "c"), time, pickups.astype(float), pickups + 0.0)
    found = datasets.with_partner(hours, "a", 0, "2018-06-01T05", (100, 40, 55))
    assert found.names == ("a", "c")
    assert found.time[0] == np.datetime64("2018-06-01T05")
    assert np.all(found.observed <= found.truth)
    with pytest.raises(ValueError, match="give more months"):
        datasets.with_partner(hours, "a", 0, "2018-06-01T05", (100, 40, 60))


def test_birmingham_car_parks_are_limited_at_capacity(web):
    text = (
        "SystemCodeNumber,Capacity,Occupancy,LastUpdated\n"
        "P1,100,50,2016-10-04 07:59:42\nP1,100,98,2016-10-04 08:25:42\n"
        "P2,200,150,2016-10-04 07:59:42\nP3,10,1,2016-10-04 07:59:42\n"
    )
    archive(web[0] / "parking.zip", **{"dataset.csv": text})
    address = (web[0] / "parking.zip").as_uri()
    found = datasets.birmingham_parking(("P1", "P2"), address=address, folder=web[1])
    np.testing.assert_array_equal(found.truth, [[50, 150], [98, np.nan]])
    np.testing.assert_array_equal(found.limited, [[False, False], [True, False]])
    assert list(found.time) == list(np.array(["2016-10-04T07:30", "2016-10-04T08:00"], "M8[m]"))
    seen = found.observations(0.5)
    np.testing.assert_array_equal(seen.lower, [[50, 150], [49, -np.inf]])
    np.testing.assert_array_equal(seen.upper, [[50, 150], [np.inf, np.inf]])
    with pytest.raises(ValueError, match="'P9'"):
        datasets.birmingham_parking(("P9",), address=address, folder=web[1])


def test_fresh_retail_is_limited_when_sold_out(web):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sale, out = [0.5] * 24, [0] * 22 + [1, 1]
    rows = [
        {"store_id": s, "product_id": p, "dt": d, "hours_sale": sale, "hours_stock_status": out}
        for s in (1, 2)
        for p in (7, 8)
        for d in ("2024-03-29", "2024-03-28")
    ]
    path = web[0] / "train.parquet"
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    found = datasets.fresh_retail(1, (7, 8), address=path.as_uri(), folder=web[1])
    assert found.names == ("7", "8")
    assert found.time[0] == np.datetime64("2024-03-28T00")
    assert found.truth.shape == (48, 2)
    assert found.limited.sum() == 8
    with pytest.raises(ValueError, match="no product 9 in store 1"):
        datasets.fresh_retail(1, (9,), address=path.as_uri(), folder=web[1])
