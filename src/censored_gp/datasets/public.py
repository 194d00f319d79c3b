"""Public data sets with real censoring, downloaded: car parks and fresh retail."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.datasets.simulated import Column, Table, World

FOLDER_VARIABLE = "CENSORED_GP_DATA"
"""This environment variable names the folder of data files."""
RETRIES = 2
"""A download that failed is tried again so many times."""
PARKING = "https://archive.ics.uci.edu/static/public/482/parking+birmingham.zip"
AT_CAPACITY = 0.98
"""A car park is full from this share of its capacity on."""
HUGGING_FACE = "https://huggingface.co/datasets"
RETAIL = f"{HUGGING_FACE}/Dingdong-Inc/FreshRetailNet-50K/resolve/main/data/train.parquet"


def data_folder() -> Path:
    """Return the folder of data files, to which downloads go as well.

    It is the one that the environment variable `CENSORED_GP_DATA` names, or else
    `censored-gp/downloads` in the user's cache.

    >>> import os
    >>> os.environ["CENSORED_GP_DATA"] = "."
    >>> str(data_folder())
    '.'
    >>> del os.environ["CENSORED_GP_DATA"]
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(FOLDER_VARIABLE) or cache / "censored-gp" / "downloads")


def fetch(address: str, name: str, folder: Path | None = None) -> Path:
    """Download a file under a name, unless it is there already, and return its path."""
    try:
        import pooch
    except ImportError:
        raise ImportError("Downloads need pooch: pip install 'censored-gp[data]'.") from None
    pooch.get_logger().setLevel("WARNING")
    known = {"registry": {name: None}, "urls": {name: address}, "retry_if_failed": RETRIES}
    files = pooch.create(folder or data_folder(), "", **known)
    return Path(files.fetch(name, progressbar=sys.stderr.isatty()))


def read_columns(file: Path | IO[bytes]) -> Table:
    """Read a CSV file, compressed or not, into columns; missing numbers are NaN."""
    # Imported when a table is read: simulated worlds should not wait for it.
    from pyarrow import csv

    if isinstance(file, Path) and not file.is_file():
        raise FileNotFoundError(
            f"{file.parent} does not hold {file.name}. Put the file there, or set the environment "
            f"variable {FOLDER_VARIABLE} to the folder that holds it."
        )
    table = csv.read_csv(file)
    return {name: table[name].to_numpy() for name in table.column_names}


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


def birmingham_parking(names: Sequence[str], *, folder: Path | None = None) -> CensoredSeries:
    """Download UCI's Birmingham car parks; return half-hourly occupancy of those asked for.

    A record is censored where occupancy is at least 0.98 of the capacity. Times are rounded down
    to the half hour; the last record of one counts.

    >>> birmingham_parking(("BHMBCCTHL01",)).names  # doctest: +SKIP
    ('BHMBCCTHL01',)
    """
    path = fetch(PARKING, "parking_birmingham.zip", folder)
    with zipfile.ZipFile(path) as archive:
        [name, *_] = [name for name in archive.namelist() if name.endswith(".csv")]
        with archive.open(name) as file:
            records = read_columns(file)
    minute = records["LastUpdated"].astype("datetime64[m]")
    time = minute - minute.astype(int) % 30
    observed = records["Occupancy"].astype(float)
    full = observed >= AT_CAPACITY * records["Capacity"]
    park = records["SystemCodeNumber"]
    return _pivot(tuple(names), park, time, observed, full, "full", path.name)


def fresh_retail(
    store: int, names: Sequence[int | str], *, folder: Path | None = None
) -> CensoredSeries:
    """Download FreshRetailNet; return hourly sales of products in a store, censored if sold out.

    `names` are numbers of products. The file is large.

    >>> fresh_retail(235, (70,)).names  # doctest: +SKIP
    ('70',)
    """
    from pyarrow import parquet

    path = fetch(RETAIL, "freshretailnet_train.parquet", folder)
    days = parquet.read_table(
        path,
        columns=["product_id", "dt", "hours_sale", "hours_stock_status"],
        filters=[("store_id", "==", store), ("product_id", "in", list(map(int, names)))],
    ).to_pydict()
    day = np.array([str(day)[:10] for day in days["dt"]], "datetime64[h]")
    time = (day[:, None] + np.arange(24)).ravel()
    sold = np.array(days["hours_sale"], float).ravel()
    out = np.array(days["hours_stock_status"], bool).ravel()
    product = np.repeat(np.array(days["product_id"], str), 24)
    source = f"{path.name}, store {store}"
    return _pivot(tuple(map(str, names)), product, time, sold, out, "sold_out", source)


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
