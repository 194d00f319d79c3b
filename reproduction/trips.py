"""The paper's own four stations, from Citi Bike's trip files of 2018, which are downloaded."""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from scipy.special import expit

from reproduction.protocol import CensoredDemand, censor

ADDRESS = "https://s3.amazonaws.com/tripdata"
FILES = ("{month}-citibike-tripdata.csv.zip", "2018-citibike-tripdata.zip")
"""Names under which a month was published; the second holds the whole year."""
MONTHS = ("201805", "201806", "201807", "201808")
FOUR_STATIONS = ("3711", "379", "3386", "2002")
START = "2018-06-01T00"
SPLIT = (732, 293, 440)


def four_stations(seed: int) -> dict[str, CensoredDemand]:
    """Return the paper's four stations with one draw of its censoring, each with its partner."""
    pickups, dropoffs = hourly_counts()
    return {name: with_partner(pickups, dropoffs, name, seed) for name in FOUR_STATIONS}


@functools.lru_cache(1)
def hourly_counts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Download the trips of the paper's months; count pickups and dropoffs by hour and station."""
    counts = [count_trips(month_file(month), month) for month in MONTHS]
    flows = (pd.concat(flow).groupby(level=[0, 1]).sum() for flow in zip(*counts, strict=True))
    pickups, dropoffs = (flow.unstack(fill_value=0) for flow in flows)
    hours = pd.date_range("2018-05-01", "2018-09-01", freq="h", inclusive="left")
    stations = pickups.columns.union(dropoffs.columns)
    return (pickups.reindex(hours, columns=stations, fill_value=0),
            dropoffs.reindex(hours, columns=stations, fill_value=0))  # fmt: skip


def month_file(month: str) -> Path:
    """Return the downloaded file that holds a month, under whichever name it was published."""
    import pooch

    problem: Exception | None = None
    for name in (each.format(month=month) for each in FILES):
        try:
            path = pooch.retrieve(f"{ADDRESS}/{name}", known_hash=None, fname=name,
                                  path=pooch.os_cache("censored-gp"))  # fmt: skip
            return Path(path)
        except OSError as absent:
            problem = absent
    raise FileNotFoundError(f"{ADDRESS} has no trips of {month}.") from problem


def count_trips(path: Path, month: str) -> tuple[Any, Any]:
    """Count the pickups and dropoffs of a month by hour and station."""
    wanted = ("starttime", "startstationid", "stoptime", "endstationid")
    counts: list[list[pd.Series]] = [[], []]
    for table in _tables(path, month):
        trips = pd.read_csv(table, dtype=str).rename(columns=lambda c: c.lower().replace(" ", ""))
        trips = trips[list(wanted)]
        for flow, (when, where) in zip(counts, (wanted[:2], wanted[2:]), strict=True):
            hour = pd.to_datetime(trips[when]).dt.floor("h")
            station = trips[where].str.removesuffix(".0")
            flow.append(trips.groupby([hour, station]).size())
    pickups, dropoffs = (pd.concat(flow) for flow in counts)
    return pickups, dropoffs


def _tables(path: Path | IO[bytes], month: str) -> Iterator[IO[bytes]]:
    """Yield the tables of a month in an archive, and in archives inside it."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if month in name and "__MACOSX" not in name:
                with archive.open(name) as file:
                    if name.endswith(".csv"):
                        yield file
                    elif name.endswith(".zip"):
                        yield from _tables(io.BytesIO(file.read()), month)


def with_partner(
    pickups: pd.DataFrame,
    dropoffs: pd.DataFrame,
    station: str,
    seed: int,
    start: str = START,
    split: tuple[int, int, int] = SPLIT,
) -> CensoredDemand:
    """Censor all stations by the paper's rule; return one with the one it is most correlated with.

    An hour is censored with probability `1 - sigmoid(dropoffs - pickups + 5)` of the hour before.
    The correlation is that of the training hours after censoring, as in the paper.
    """
    first = pickups.index.get_loc(pd.Timestamp(start))
    rows = slice(first, first + sum(split))
    before = slice(rows.start - 1, rows.stop - 1)
    truth = pickups.to_numpy(float)[rows]
    balance = dropoffs.to_numpy(float)[before] - pickups.to_numpy(float)[before]
    observed, censored = censor(truth, 1.0 - expit(balance + 5.0), seed)
    here = pickups.columns.get_loc(station)
    with np.errstate(invalid="ignore"):
        alike = np.corrcoef(observed[: split[0]].T)[here]
    alike[here] = np.nan
    pair = [here, int(np.nanargmax(alike))]
    return CensoredDemand(
        tuple(pickups.columns[pair]), truth[:, pair], observed[:, pair], censored[:, pair],
        pickups.index.to_numpy("datetime64[h]")[rows], {}, split,
    )  # fmt: skip
