"""Trip files in both layouts, car parks and fresh retail, in small files of the same formats."""

import io
import zipfile
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from censored_gp import datasets
from censored_gp.datasets import public

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
def counted(web, tmp_path, monkeypatch):
    """Count the trips of June 2018 in the files that the web has."""
    monkeypatch.setattr(public, "TRIPS", web.address)
    return partial(public.citibike, ["2018-06"], folder=tmp_path / "kept")


@pytest.mark.parametrize(("header", "row"), [(OLD, old_row), (NEW, new_row)])
def test_both_layouts_count_the_same(web, counted, header, row):
    text = "\n".join([header, *(row(*trip) for trip in TRIPS)])
    archive(
        web.folder / "201806-citibike-tripdata.csv.zip", **{"201806-citibike-tripdata.csv": text}
    )
    found = counted(stations=["3711", "366"])
    assert found.names == ("3711", "366")
    assert found.time[0] == np.datetime64("2018-06-01T00")
    assert len(found.time) == 30 * 24
    np.testing.assert_array_equal(found.pickups.sum(axis=0), [2, 2])
    np.testing.assert_array_equal(found.pickups[0], [2, 0])
    np.testing.assert_array_equal(found.dropoffs[1], [0, 1])
    # The last trip ended in July, which was not asked for.
    np.testing.assert_array_equal(found.dropoffs.sum(axis=0), [1, 2])


def test_times_as_americans_write_them_count_too(web, counted):
    rows = [old_row(us_time(a), us_time(b), *ends) for a, b, *ends in TRIPS]
    capital = OLD.replace("starttime", "Start Time").replace("stoptime", "Stop Time")
    archive(
        web.folder / "201806-citibike-tripdata.zip", **{"june.csv": "\n".join([capital, *rows])}
    )
    np.testing.assert_array_equal(counted(stations=["3711"]).pickups[:2, 0], [2, 0])


def test_a_months_parts_and_a_years_months_are_found(web, counted):
    half = [new_row(*trip) for trip in TRIPS]
    inner = io.BytesIO()
    archive(inner, **{"201806-citibike-tripdata_1.csv": "\n".join([NEW, *half[:2]]),
                      "201806-citibike-tripdata_2.csv": "\n".join([NEW, *half[2:]]),
                      "__MACOSX/._201806-citibike-tripdata_1.csv": "junk"})  # fmt: skip
    other = "\n".join([NEW, new_row("2018-07-05 08:00:00", "2018-07-05 08:10:00", "9", "9")])
    year = {"201806-citibike-tripdata.zip": inner.getvalue(), "201807-citibike-tripdata.csv": other}
    archive(web.folder / "2018-citibike-tripdata.zip", **year)
    found = counted()
    assert found.names == ("366", "3711")
    assert found.pickups.sum() == 4


def test_trips_from_or_to_nowhere_count_at_one_end(web, counted):
    rows = [new_row(*TRIPS[0][:2], "3711", ""), new_row(*TRIPS[0][:2], "NULL", "3711.0")]
    archive(web.folder / "201806-citibike-tripdata.zip", **{"june.csv": "\n".join([NEW, *rows])})
    found = counted()
    assert found.names == ("3711",)
    assert found.pickups[0, 0] == found.dropoffs[0, 0] == 1


def test_fractions_of_seconds_and_months_out_of_order_are_read(web, counted):
    for month in ("06", "07"):
        row = old_row(f"2018-{month}-01 05:00:00.1230", f"2018-{month}-01 06:10:20.5140", 1, 2)
        name = f"2018{month}-citibike-tripdata"
        archive(web.folder / f"{name}.csv.zip", **{f"{name}.csv": f"\ufeff{OLD}\n{row}\n"})
    found = public.citibike(["2018-07", "2018-06"], **counted.keywords)
    assert np.all(np.diff(found.time) == np.timedelta64(1, "h"))
    assert len(found.time) == 61 * 24
    assert np.argwhere(found.pickups).tolist() == [[5, 0], [725, 0]]
    assert np.argwhere(found.dropoffs).tolist() == [[6, 1], [726, 1]]
    assert found.table()["2_dropoffs"].sum() == 2


def test_a_month_that_is_there_is_not_looked_for(web, counted):
    archive(
        web.folder / "2018-citibike-tripdata.zip", **{"201806.csv": f"{NEW}\n{new_row(*TRIPS[0])}"}
    )
    first, asked = counted(), len(web.requests)
    assert first.names == counted().names == ("366", "3711")
    assert len(web.requests) == asked == 4


def test_what_is_wrong_with_trips_is_said(web, counted):
    with pytest.raises(FileNotFoundError, match=r"2018-06.*201806"):
        counted()
    path = web.folder / "201806-citibike-tripdata.zip"

    def refused(text, match):
        archive(path, **{"june.csv": text})
        for kept in counted.keywords["folder"].glob("*"):
            kept.unlink()
        with pytest.raises(ValueError, match=match):
            counted(stations=["42"])

    refused("when,where\n1,2\n", r"june\.csv.*when,where")
    refused(f"{NEW}\n{new_row('yesterday', TRIPS[0][1], '1', '2')}", r"june\.csv.*yesterday")
    refused(f"{NEW}\n{new_row(*TRIPS[0])}", "station 42")


def test_birmingham_car_parks_are_censored_at_capacity(web, tmp_path, monkeypatch):
    text = (
        "SystemCodeNumber,Capacity,Occupancy,LastUpdated\n"
        "P1,100,50,2016-10-04 07:59:42\nP1,100,98,2016-10-04 08:25:42\n"
        "P2,200,140,2016-10-04 07:31:42\nP2,200,150,2016-10-04 07:59:42\n"
        "P3,10,1,2016-10-04 06:59:42\n"
    )
    archive(web.folder / "parking.zip", **{"dataset.csv": text})
    monkeypatch.setattr(public, "PARKING", f"{web.address}/parking.zip")
    found = datasets.birmingham_parking(("P2", "P1"), folder=tmp_path)
    np.testing.assert_array_equal(found.observed, [[150, 50], [np.nan, 98]])
    np.testing.assert_array_equal(found.censored, [[False, False], [False, True]])
    assert list(found.time) == list(np.array(["2016-10-04T07:30", "2016-10-04T08:00"], "M8[m]"))
    known = found.observations()
    np.testing.assert_array_equal(known.lower, [[150, 50], [-np.inf, 98]])
    np.testing.assert_array_equal(known.upper, [[150, 50], [np.inf, np.inf]])
    assert list(found.table()) == ["time", "P2", "P2_full", "P1", "P1_full"]
    with pytest.raises(ValueError, match="'P9'"):
        datasets.birmingham_parking(("P9",), folder=tmp_path)


def test_fresh_retail_is_censored_when_sold_out(web, tmp_path, monkeypatch):
    sale, out = [0.5] * 24, [0] * 22 + [1, 1]
    rows = [
        {"store_id": s, "product_id": p, "dt": d, "hours_sale": sale, "hours_stock_status": out}
        for s in (1, 2)
        for p in (7, 8)
        for d in ("2024-03-29", "2024-03-28")
    ]
    parquet.write_table(pa.Table.from_pylist(rows), web.folder / "train.parquet")
    monkeypatch.setattr(public, "RETAIL", f"{web.address}/train.parquet")
    found = datasets.fresh_retail(1, (7, 8), folder=tmp_path)
    assert found.names == ("7", "8")
    assert found.time[0] == np.datetime64("2024-03-28T00")
    assert found.observed.shape == (48, 2)
    np.testing.assert_array_equal(found.censored[:, 0], np.arange(48) % 24 >= 22)
    assert list(found.table())[2] == "7_sold_out"
    with pytest.raises(ValueError, match=r"store 1.*'9'"):
        datasets.fresh_retail(1, (9,), folder=tmp_path)
