"""Two more public data sets with real censoring, downloaded: car parks and fresh retail."""

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from censored_gp.datasets.areas import AT_CAPACITY
from censored_gp.datasets.demand import LimitedDemand
from censored_gp.datasets.download import fetch

__all__ = ["birmingham_parking", "fresh_retail"]

PARKING = "https://archive.ics.uci.edu/static/public/482/parking+birmingham.zip"
PARKING_COLUMNS = ("SystemCodeNumber", "Capacity", "Occupancy", "LastUpdated")
RETAIL = (
    "https://huggingface.co/datasets/Dingdong-Inc/FreshRetailNet-50K/resolve/main/data/"
    "train.parquet"
)
RETAIL_COLUMNS = ("store_id", "product_id", "dt", "hours_sale", "hours_stock_status")
HOURS = 24


def birmingham_parking(
    car_parks: tuple[str, ...],
    *,
    address: str = PARKING,
    checksum: str | None = None,
    folder: Path | None = None,
    progress: bool = True,
) -> LimitedDemand:
    """Download UCI's Birmingham car parks; return half-hourly occupancy of those asked for.

    Supply ran out where occupancy is at least 0.98 of the capacity. Times are rounded down to
    the half hour; the last record of one counts.

    >>> birmingham_parking(("BHMBCCTHL01",)).names  # doctest: +SKIP
    ('BHMBCCTHL01',)
    """
    path = fetch(address, name="parking_birmingham.zip", checksum=checksum, folder=folder,
                 progress=progress)  # fmt: skip
    rows = [row for row in _parking_rows(path) if row[0] in car_parks]
    absent = [name for name in car_parks if name not in {row[0] for row in rows}]
    if absent:
        raise ValueError(f"{path.name} has no car park {', '.join(map(repr, absent))}.")
    time = np.unique([row[3] for row in rows])
    truth = np.full((len(time), len(car_parks)), np.nan)
    limited = np.zeros(truth.shape, bool)
    for name, capacity, occupancy, when in rows:
        cell = np.searchsorted(time, when), car_parks.index(name)
        truth[cell], limited[cell] = occupancy, occupancy >= AT_CAPACITY * capacity
    return LimitedDemand(car_parks, time, {}, truth, limited)


def fresh_retail(
    store: int,
    products: tuple[int, ...],
    *,
    address: str = RETAIL,
    checksum: str | None = None,
    folder: Path | None = None,
    progress: bool = True,
) -> LimitedDemand:
    """Download FreshRetailNet; return hourly sales of products in a store, limited when sold out.

    Needs pyarrow. The file is large.

    >>> fresh_retail(235, (70,)).names  # doctest: +SKIP
    ('70',)
    """
    path = fetch(address, name="freshretailnet_train.parquet", checksum=checksum, folder=folder,
                 progress=progress)  # fmt: skip
    rows = _retail_rows(path, store)
    found = [_series(rows, product, store, path.name) for product in products]
    time = np.unique(np.concatenate([when for when, _, _ in found]))
    truth = np.full((len(time), len(products)), np.nan)
    limited = np.zeros(truth.shape, bool)
    for d, (when, sold, out) in enumerate(found):
        place = np.searchsorted(time, when)
        truth[place, d], limited[place, d] = sold, out
    return LimitedDemand(tuple(map(str, products)), time, {}, truth, limited)


def _parking_rows(path: Path) -> list[tuple[str, float, float, Any]]:
    """Return car park, capacity, occupancy and half hour of every record."""
    with zipfile.ZipFile(path) as archive:
        name = next((n for n in archive.namelist() if n.endswith(".csv")), None)
        if name is None:
            raise ValueError(f"{path.name} holds no table (.csv): {archive.namelist()}.")
        with archive.open(name) as file:
            reader = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8", newline=""))
            return [_parking_row(row, name) for row in reader]


def _parking_row(row: dict[str, str], name: str) -> tuple[str, float, float, Any]:
    absent = [column for column in PARKING_COLUMNS if column not in row]
    if absent:
        raise ValueError(f"{name}: no column {', '.join(absent)}; found {', '.join(row)}.")
    park, capacity, occupancy, when = (row[column] for column in PARKING_COLUMNS)
    minute = np.datetime64(when.replace(" ", "T"), "m")
    half_hour = minute - (minute.astype(int) % 30).astype("timedelta64[m]")
    return park, float(capacity), float(occupancy), half_hour


def _retail_rows(path: Path, store: int) -> list[dict[str, Any]]:
    """Return the days of one store."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError("FreshRetailNet is a Parquet file: pip install pyarrow.") from None
    table = parquet.read_table(
        path, columns=list(RETAIL_COLUMNS), filters=[("store_id", "==", store)]
    )
    return table.to_pylist()


def _series(
    rows: list[dict[str, Any]], product: int, store: int, name: str
) -> tuple[Shaped[np.ndarray, " N"], Float[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """Return hours, sales and whether the product was sold out, of one product."""
    own = sorted((row for row in rows if row["product_id"] == product), key=lambda r: str(r["dt"]))
    if not own:
        raise ValueError(f"{name} has no product {product} in store {store}.")
    days = np.array([str(row["dt"])[:10] for row in own], dtype="datetime64[D]")
    hours = days.astype("datetime64[h]")[:, None] + np.arange(HOURS)
    sold = np.array([row["hours_sale"] for row in own], float)
    out = np.array([row["hours_stock_status"] for row in own], bool)
    return hours.ravel(), sold.ravel(), out.ravel()
