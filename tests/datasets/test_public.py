"""Car parks and fresh retail, in small files of the same formats."""

import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from censored_gp import datasets
from censored_gp.datasets import public


def archive(path, **tables):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in tables.items():
            file.writestr(name, text)


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
