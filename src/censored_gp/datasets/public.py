"""Public data sets with real censoring, downloaded: bike trips, car parks, fresh retail."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.datasets.download import data_folder, fetch, import_pooch, read_columns
from censored_gp.datasets.simulated import Cells, Column, Table, World, columns_of

TRIPS = "https://s3.amazonaws.com/tripdata"
TRIP_FILES = ("{month}-citibike-tripdata.csv.zip", "{month}-citibike-tripdata.zip",
              "{year}-citibike-tripdata.zip")  # fmt: skip
"""A month was published under these names, over the years."""
TRIP_ENDS = (
    (("starttime", "startedat"), ("startstationid",)),
    (("stoptime", "endedat"), ("endstationid",)),
)
"""Columns of time and station at both ends of a trip, without case, spaces and underscores."""
PARKING = "https://archive.ics.uci.edu/static/public/482/parking+birmingham.zip"
AT_CAPACITY = 0.98
"""A car park is full from this share of its capacity on."""
HUGGING_FACE = "https://huggingface.co/datasets"
RETAIL = f"{HUGGING_FACE}/Dingdong-Inc/FreshRetailNet-50K/resolve/main/data/train.parquet"


@dataclass(frozen=True)
class CensoredSeries(World):
    """Series of D outputs with real censoring: the truth is not known.

    Attributes
    ----------
    observed
        What was recorded, NaN where nothing was.
    censored
        Where supply ran out: demand was at least `observed`.
    """

    time: Column
    mark: str = "censored"


@dataclass(frozen=True)
class StationHours:
    """Pickups and dropoffs by hour (rows) and station (columns)."""

    names: tuple[str, ...]
    time: Column
    pickups: Cells
    dropoffs: Cells

    def table(self) -> Table:
        """Return the time, and for each station its pickups and its dropoffs."""
        flows = {"": self.pickups, "_dropoffs": self.dropoffs}
        return {"time": self.time} | columns_of(self.names, flows)


def birmingham_parking(
    car_parks: Sequence[str], *, folder: Path | None = None, progress: bool = True
) -> CensoredSeries:
    """Download UCI's Birmingham car parks; return half-hourly occupancy of those asked for.

    A record is censored where occupancy is at least 0.98 of the capacity. Times are rounded down
    to the half hour; the last record of one counts.

    >>> birmingham_parking(("BHMBCCTHL01",)).names  # doctest: +SKIP
    ('BHMBCCTHL01',)
    """
    path = fetch(PARKING, name="parking_birmingham.zip", folder=folder, progress=progress)
    with zipfile.ZipFile(path) as archive:
        [name, *_] = [name for name in archive.namelist() if name.endswith(".csv")]
        with archive.open(name) as file:
            records = read_columns(file)
    minute = records["LastUpdated"].astype("datetime64[m]")
    time = minute - minute.astype(int) % 30
    observed = records["Occupancy"].astype(float)
    full = observed >= AT_CAPACITY * records["Capacity"]
    park = records["SystemCodeNumber"]
    return _pivot(tuple(car_parks), park, time, observed, full, "full", path.name)


def fresh_retail(
    store: int, products: Sequence[int], *, folder: Path | None = None, progress: bool = True
) -> CensoredSeries:
    """Download FreshRetailNet; return hourly sales of products in a store, censored if sold out.

    The file is large.

    >>> fresh_retail(235, (70,)).names  # doctest: +SKIP
    ('70',)
    """
    from pyarrow import parquet

    path = fetch(RETAIL, name="freshretailnet_train.parquet", folder=folder, progress=progress)
    days = parquet.read_table(
        path,
        columns=["product_id", "dt", "hours_sale", "hours_stock_status"],
        filters=[("store_id", "==", store), ("product_id", "in", list(products))],
    ).to_pydict()
    day = np.array([str(day)[:10] for day in days["dt"]], "datetime64[h]")
    time = (day[:, None] + np.arange(24)).ravel()
    sold = np.array(days["hours_sale"], float).ravel()
    out = np.array(days["hours_stock_status"], bool).ravel()
    product = np.repeat(np.array(days["product_id"], str), 24)
    names = tuple(map(str, products))
    return _pivot(names, product, time, sold, out, "sold_out", f"{path.name}, store {store}")


def _pivot(
    names: tuple[str, ...],
    series: Column,
    time: Column,
    observed: Float[np.ndarray, " N"],
    censored: Bool[np.ndarray, " N"],
    mark: str,
    source: str,
) -> CensoredSeries:
    """Pivot records of some series, in any order, to a row for each time."""
    absent = [name for name in names if name not in series]
    if absent:
        raise ValueError(f"{source} has no {', '.join(map(repr, absent))}.")
    times = np.unique(time[np.isin(series, names)])
    values = np.full((len(times), len(names)), np.nan)
    flags = np.zeros(values.shape, bool)
    for d, name in enumerate(names):
        own = series == name
        rows = np.searchsorted(times, time[own])
        values[rows, d], flags[rows, d] = observed[own], censored[own]
    return CensoredSeries(names, np.full_like(values, np.nan), values, flags, times, mark)


def citibike(
    months: Sequence[str],
    stations: Sequence[str] | None = None,
    *,
    folder: Path | None = None,
    progress: bool = True,
) -> StationHours:
    """Download trip files of months ("2018-06") and count trips by station and hour.

    `stations` are those wanted, None for all. Stations are known by the ids in the files, which
    changed in 2021.

    >>> citibike(["2018-06"], ["3711", "366"]).pickups.shape  # doctest: +SKIP
    (720, 2)
    """
    first = np.sort(np.array(months, "datetime64[M]"))
    time = np.concatenate([np.arange(m, m + 1, dtype="datetime64[h]") for m in first])
    counts: list[list[Any]] = [[], []]
    for month in months:
        path = _trip_file(month, folder or data_folder(), progress)
        compact = month.replace("-", "")
        # A year's file holds its months one by one.
        for name, table in _tables(path, "" if path.name.startswith(compact) else compact):
            for flow, counted in zip(counts, _count_trips(table, name), strict=True):
                flow.append(counted)
    flows = [[np.concatenate(column) for column in zip(*flow, strict=True)] for flow in counts]
    found = np.unique(np.concatenate([station for station, _, _ in flows]))
    wanted = tuple(map(str, found if stations is None else stations))
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ValueError(f"No trips from or to station {', '.join(absent)} in {', '.join(months)}.")
    cells = np.zeros((2, len(time), len(wanted)))
    order = np.argsort(wanted)
    for flow, (station, hour, count) in zip(cells, flows, strict=True):
        # Trips that began or ended outside the months are in the files too.
        kept = np.isin(hour, time) & np.isin(station, wanted)
        column = order[np.searchsorted(np.sort(wanted), station[kept])]
        np.add.at(flow, (np.searchsorted(time, hour[kept]), column), count[kept])
    return StationHours(wanted, time, *cells)


def _trip_file(month: str, folder: Path, progress: bool) -> Path:
    """Return the file that holds a month, under whichever name it was published."""
    names = [name.format(month=month.replace("-", ""), year=month[:4]) for name in TRIP_FILES]
    ask = import_pooch().HTTPDownloader()
    # What is there already needs no look at the web.
    for name in sorted(names, key=lambda name: not (folder / name).is_file()):
        if (folder / name).is_file() or ask(f"{TRIPS}/{name}", None, None, check_only=True):
            return fetch(f"{TRIPS}/{name}", folder=folder, progress=progress)
    raise FileNotFoundError(f"{TRIPS} has no trips of {month}; tried {', '.join(names)}.")


def _tables(path: Path | IO[bytes], part: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield CSV files whose name has this part, from an archive and from archives inside it."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if part not in name or "__MACOSX" in name:
                continue
            with archive.open(name) as file:
                if name.endswith(".csv"):
                    yield name, file
                elif name.endswith(".zip"):
                    yield from _tables(io.BytesIO(file.read()), "")


def _count_trips(file: IO[bytes], name: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield stations, hours and counts of the pickups, and then of the dropoffs."""
    import pyarrow as pa
    from pyarrow import csv

    header = file.readline().decode("utf-8-sig").strip()
    columns = [c.strip('" ').lower().replace(" ", "").replace("_", "") for c in header.split(",")]
    ends = [[next(filter(columns.__contains__, names), None) for names in end] for end in TRIP_ENDS]
    if None in (column for end in ends for column in end):
        raise ValueError(f"{name} lacks columns of a trip's times and stations, found {header!r}.")
    types = {time: pa.timestamp("us") for time, _ in ends} | {at: pa.string() for _, at in ends}
    options = csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        strings_can_be_null=True,
        null_values=["", "NULL", "null", "\\N", "nan", "NaN"],
        timestamp_parsers=[csv.ISO8601, "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M"],
    )
    try:
        trips = csv.read_csv(file, csv.ReadOptions(column_names=columns), convert_options=options)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name}: {error}") from None
    for time, station in ends:
        hour = trips[time].to_numpy().astype("datetime64[h]")
        counts = pa.table({"at": trips[station], "hour": hour.astype("datetime64[s]")}).drop_null()
        counts = counts.group_by(["at", "hour"]).aggregate([([], "count_all")]).to_pydict()
        # Some files write station 366 as 366.0.
        at = np.array([name.removesuffix(".0") for name in counts["at"]], str)
        yield at, np.array(counts["hour"], "datetime64[h]"), np.array(counts["count_all"])
