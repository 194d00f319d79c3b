"""Citi Bike's public trip files, counted by station and hour, in their old and new layouts."""

import csv
import functools
import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.datasets.demand import CensoredDemand, censor, probability_of_running_out
from censored_gp.datasets.download import NotThere, cache_folder, fetch

__all__ = ["StationHours", "citibike", "count_trips", "four_stations", "with_partner"]

ADDRESS = "https://s3.amazonaws.com/tripdata"
FILES = ("{month}-citibike-tripdata.csv.zip", "{month}-citibike-tripdata.zip",
         "{year}-citibike-tripdata.zip")  # fmt: skip
"""Names under which a month was published, over the years."""
COLUMNS = {
    "start": ("starttime", "startedat"),
    "stop": ("stoptime", "endedat"),
    "from": ("startstationid",),
    "to": ("endstationid",),
}
"""Columns by what they say, in the old and the new layout, without spaces, underscores and case."""
NOWHERE = ("", "null", "\\n", "nan")
FORMATS = ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M")
"""Ways of writing a time that are not ISO's."""
PAPER_STATIONS = ("3386", "2002", "3711", "379")
PAPER_MONTHS = ("2018-05", "2018-06", "2018-07", "2018-08")

Counts = Counter[tuple[str, str]]
"""How often, by station and hour (`2018-06-01T08`)."""
_Series = dict[str, Float[np.ndarray, " N"]]
"""Counts by station, in the order of time."""


@dataclass(frozen=True)
class StationHours:
    """Pickups and dropoffs by hour (rows) and station (columns).

    >>> time = np.datetime64("2018-06-01T00") + np.arange(2)
    >>> StationHours(("3711",), time, np.ones((2, 1)), np.zeros((2, 1))).names
    ('3711',)
    """

    names: tuple[str, ...]
    time: Shaped[np.ndarray, " N"]
    pickups: Float[np.ndarray, "N D"]
    dropoffs: Float[np.ndarray, "N D"]


def citibike(
    months: Sequence[str],
    stations: Iterable[str] | None = None,
    *,
    address: str = ADDRESS,
    checksums: dict[str, str] | None = None,
    folder: Path | None = None,
    progress: bool = True,
) -> StationHours:
    """Download trip files of months ("2018-06") and count trips by station and hour.

    Downloads and counts are kept: a month that was counted is not read again. `stations` are
    those wanted, None for all. `checksums` are SHA-256 sums by name of file. Stations are known
    by the ids in the files, which changed in 2021.

    >>> citibike(["2018-06"], ["3711", "366"]).pickups.shape  # doctest: +SKIP
    (720, 2)
    """
    folder = folder or cache_folder()
    time = np.concatenate([_hours_of(month) for month in months])
    flows: tuple[_Series, _Series] = ({}, {})
    for month in months:
        path = _month(month, address, checksums or {}, folder, progress)
        for series, counts in zip(flows, _counted(path, month, folder), strict=True):
            _add(series, counts, time)
    found = sorted(flows[0].keys() | flows[1].keys())
    wanted = tuple(found if stations is None else stations)
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ValueError(f"No trips from or to station {', '.join(absent)} in {', '.join(months)}.")
    none = np.zeros(len(time))
    pickups, dropoffs = (
        np.stack([series.get(name, none) for name in wanted], axis=1) for series in flows
    )
    return StationHours(wanted, time, pickups, dropoffs)


def count_trips(file: IO[str], name: str = "trips") -> tuple[Counts, Counts]:
    """Count pickups and dropoffs by station and hour in one table of trips.

    >>> new = "started_at,ended_at,start_station_id,end_station_id"
    >>> trip = "2018-06-01 08:05:00,2018-06-01 09:01:00,3711,366"
    >>> count_trips(io.StringIO(f"{new}\\n{trip}\\n"))[0]
    Counter({('3711', '2018-06-01T08'): 1})
    """
    rows = csv.reader(file)
    place = _places(next(rows, []), name)
    pickups, dropoffs = Counts(), Counts()
    for row in rows:
        if not row:
            continue
        for counts, at, when in ((pickups, "from", "start"), (dropoffs, "to", "stop")):
            station = _station(row[place[at]])
            if station and row[place[when]]:
                counts[station, _hour(row[place[when]], name)] += 1
    return pickups, dropoffs


def with_partner(
    hours: StationHours, station: str, seed: int, start: str, split: tuple[int, int, int]
) -> CensoredDemand:
    """Censor all stations by the paper's rule; return one with the one it is most correlated with.

    The correlation is that of the training hours after censoring, as in the paper.

    >>> time = np.datetime64("2018-06-01T00") + np.arange(49)
    >>> flow = np.sin(time.astype(int))[:, None] * [1.0, 0.1, -1.0] + 2.0
    >>> hours = StationHours(("a", "b", "c"), time, flow, flow)
    >>> with_partner(hours, "a", 0, "2018-06-01T01", (24, 12, 12)).names
    ('a', 'b')
    """
    first = int(np.searchsorted(hours.time, np.datetime64(start)))
    rows = slice(first, first + sum(split))
    before = slice(first - 1, rows.stop - 1)
    if first < 1 or len(hours.time[rows]) < sum(split):
        raise ValueError(
            f"The hours from {hours.time[0]} to {hours.time[-1]} do not hold {sum(split)} hours "
            f"from {start} and the one before: give more months."
        )
    probability = probability_of_running_out(hours.dropoffs[before], hours.pickups[before])
    truth = hours.pickups[rows]
    observed, censored = censor(truth, probability, seed)
    own = hours.names.index(station)
    pair = [own, _most_correlated(observed[: split[0]], own)]
    return CensoredDemand(
        tuple(hours.names[d] for d in pair), hours.time[rows], {}, truth[:, pair],
        observed[:, pair], censored[:, pair], split,
    )  # fmt: skip


def four_stations(
    seed: int, *, folder: Path | None = None, progress: bool = True
) -> dict[str, CensoredDemand]:
    """Download the paper's months; return its four stations, each with its partner.

    Needs the internet the first time: four files, hundreds of megabytes in all.

    >>> list(four_stations(0))  # doctest: +SKIP
    ['3386', '2002', '3711', '379']
    """
    hours = _papers_hours(folder or cache_folder(), progress)
    return {
        station: with_partner(hours, station, seed, "2018-06-01T00", (732, 293, 440))
        for station in PAPER_STATIONS
    }


@functools.lru_cache(1)
def _papers_hours(folder: Path, progress: bool) -> StationHours:
    """Return all stations in the paper's months; reading them takes a while, so they are kept."""
    return citibike(PAPER_MONTHS, folder=folder, progress=progress)


def _month(
    month: str, address: str, checksums: dict[str, str], folder: Path, progress: bool
) -> Path:
    """Return the file that holds a month, under whichever name it was published."""
    names = [each.format(month=month.replace("-", ""), year=month[:4]) for each in FILES]
    # What is there already needs no look at the web.
    for name in sorted(names, key=lambda each: not (folder / each).is_file()):
        try:
            return fetch(f"{address}/{name}", checksum=checksums.get(name), folder=folder,
                         progress=progress)  # fmt: skip
        except NotThere:
            continue
    raise NotThere(f"{address} has no trips of {month}; tried {', '.join(names)}.")


def _counted(path: Path, month: str, folder: Path) -> tuple[Counts, Counts]:
    """Return the counts of a month, from an earlier time if there are."""
    kept = folder / f"{path.name}.{month}.counts.csv"
    if kept.is_file() and kept.stat().st_mtime >= path.stat().st_mtime:
        return _read_counts(kept)
    pickups, dropoffs = Counts(), Counts()
    for name, table in _tables(path):
        # A year's file holds its months one by one.
        if path.name.startswith(month.replace("-", "")) or month.replace("-", "") in name:
            for total, part in zip((pickups, dropoffs), count_trips(table, name), strict=True):
                total.update(part)
    _write_counts(kept, pickups, dropoffs)
    return pickups, dropoffs


def _tables(path: Path | IO[bytes]) -> Iterator[tuple[str, IO[str]]]:
    """Yield the tables in an archive, and in archives inside it."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if "__MACOSX" in name or name.rsplit("/", 1)[-1].startswith("."):
                continue
            with archive.open(name) as file:
                if name.endswith(".csv"):
                    yield name, io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
                elif name.endswith(".zip"):
                    yield from _tables(io.BytesIO(file.read()))


def _places(header: list[str], name: str) -> dict[str, int]:
    """Return where the columns are that are needed."""
    plain = [cell.strip().lower().replace(" ", "").replace("_", "") for cell in header]
    found = {}
    for what, names in COLUMNS.items():
        there = [plain.index(each) for each in names if each in plain]
        if not there:
            raise ValueError(
                f"{name}: no column for {what!r}. Found {', '.join(header) or 'nothing'}. Accepted "
                f"is one of {', '.join(names)}, whatever the case, spaces and underscores."
            )
        found[what] = there[0]
    return found


def _station(text: str) -> str:
    """Return a station's id, "" where there is none; some files write 366 as 366.0."""
    text = text.strip()
    return "" if text.lower() in NOWHERE else text.removesuffix(".0")


def _hour(text: str, name: str) -> str:
    """Return the hour of a time as `2018-06-01T08`."""
    if text[4:5] == "-":
        return f"{text[:10]}T{text[11:13]}"
    for form in FORMATS:
        try:
            return datetime.strptime(text, form).strftime("%Y-%m-%dT%H")
        except ValueError:
            continue
    raise ValueError(
        f"{name}: found the time {text!r}. Accepted is 2018-06-01 08:05:00 or 6/1/2016 08:05:00."
    )


def _hours_of(month: str) -> Shaped[np.ndarray, " N"]:
    first = np.datetime64(month, "M")
    return np.arange(first.astype("datetime64[h]"), (first + 1).astype("datetime64[h]"))


def _add(series: _Series, counts: Counts, time: Shaped[np.ndarray, " N"]) -> None:
    """Add counts to the series of their stations."""
    hours = {str(hour): row for row, hour in enumerate(time)}
    for (station, hour), count in counts.items():
        # Trips that began or ended outside the months are in the files too.
        if hour in hours:
            series.setdefault(station, np.zeros(len(time)))[hours[hour]] += count


def _most_correlated(seen: Float[np.ndarray, "N D"], own: int) -> int:
    """Return the other output that is most correlated with one; constants are with none."""
    centred = seen - seen.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0))
    alike = centred.T @ centred[:, own] / np.where(size > 0, size, np.inf)
    alike[own] = -np.inf
    return int(np.argmax(alike))


def _write_counts(path: Path, pickups: Counts, dropoffs: Counts) -> None:
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for kind, counts in (("pickups", pickups), ("dropoffs", dropoffs)):
            writer.writerows((kind, *key, count) for key, count in sorted(counts.items()))
    new.replace(path)


def _read_counts(path: Path) -> tuple[Counts, Counts]:
    found = {"pickups": Counts(), "dropoffs": Counts()}
    with path.open(encoding="utf-8", newline="") as file:
        for kind, station, hour, count in csv.reader(file):
            found[kind][station, hour] = int(count)
    return found["pickups"], found["dropoffs"]
