"""Bike stations of New York with a draw of censoring: the paper's own, and others of 2016."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.datasets.demand import CensoredDemand, censor, probability_of_running_out
from censored_gp.datasets.folder import Rows, data_folder, numbers, read_rows, without_gaps

NEW_YORK_FILE = "citibike_3711_366_2018.csv.gz"
NEW_YORK_START = "2018-06-01T00"
NEW_YORK_SPLIT = (732, 293, 440)
WEATHER = ("temperature", "dew_point_temperature", "precip_prob", "humidity", "wind_speed")
WET = ("rain", "snow", "sleet")

PAIRS_FILE = "citibike_nyc_2016_pairs_hourly_pickups.csv.gz"
PAIRS = ("379", "3386", "366")
"""The pairs of 2016 by the station that is looked at."""
MANY_FILE = "citibike_nyc_2016-06_07_hourly_pickups_493stations.csv.gz"
BUSY = 1.0
"""Pickups in an hour, in the mean, from which on a station is among those to choose pairs from."""
HOURS_OF_RETURNS = 24
TYPICAL_PICKUPS = 7.6
"""Mean pickups in an hour at the paper's station 3711: flows elsewhere are put on its scale."""


def new_york(
    seed: int,
    *,
    corrected: bool = False,
    whole_numbers: bool = True,
    folder: Path | None = None,
) -> CensoredDemand:
    """Return the paper's New York data, stations 3711 and 366, with one draw of its censoring.

    Hourly pickups from 2018-06-01: 732 hours to train on, 293 to validate, 440 to test. An hour
    is censored with probability `1 - sigmoid(dropoffs - pickups + 5)` of the hour before, and
    then shows a uniform draw from 0 to the truth (a whole one, unless `whole_numbers` is False).
    Both stations are censored. `seed` makes the draw.

    Counts are as the paper used them. Those of station 366 are twice what they should be:
    `corrected` halves them.

    >>> new_york(0).names  # doctest: +SKIP
    ('3711', '366')
    """
    rows = read_rows((folder or data_folder()) / NEW_YORK_FILE)
    stations = _by_station(rows)
    suffix = "_corrected" if corrected else ""
    pickups, dropoffs = (_cells(stations, name + suffix) for name in ("pickups", "dropoffs"))
    first = next(iter(stations.values()))
    time = np.array([row["datetime"] for row in first], dtype="datetime64[h]")
    start = int(np.searchsorted(time, np.datetime64(NEW_YORK_START)))
    wanted = slice(start, start + sum(NEW_YORK_SPLIT))
    before = slice(start - 1, wanted.stop - 1)
    probability = probability_of_running_out(dropoffs[before], pickups[before])
    truth = pickups[wanted]
    observed, censored = censor(truth, probability, seed, whole_numbers=whole_numbers)
    weather = {name: without_gaps(numbers(first[wanted], name)) for name in WEATHER}
    weather["rain"] = np.array([float(row["icon"] in WET) for row in first[wanted]])
    return CensoredDemand(
        tuple(stations), time[wanted], weather, truth, observed, censored, NEW_YORK_SPLIT
    )


def new_york_2016(pair: str, seed: int, *, folder: Path | None = None) -> CensoredDemand:
    """Return a pair of stations of 2016 ("379", "3386" or "366") with one draw of censoring.

    Hourly pickups of two months: 732 hours to train on, 293 to validate and the rest to test.
    Dropoffs are not in these files, so the paper's rule has another driver: bikes are taken to
    come back evenly, as many in an hour as were picked up in the mean of the 24 hours up to it.
    Flows are put on the scale of the paper's station 3711, or a quiet station would never run
    out. Then as in `new_york`: an hour is censored with probability
    `1 - sigmoid(returns - pickups + 5)` of the hour before, and shows a uniform draw.

    >>> new_york_2016("379", 0).names  # doctest: +SKIP
    ('379', '523')
    """
    rows = [row for row in read_rows((folder or data_folder()) / PAIRS_FILE) if row["pair"] == pair]
    if not rows:
        raise ValueError(f"{PAIRS_FILE} has no pair {pair!r}; accepted are {', '.join(PAIRS)}.")
    stations = _by_station(rows)
    first = next(iter(stations.values()))
    return _with_returns(tuple(stations), first, _cells(stations, "pickups"), seed)


def two_stations(pair: tuple[str, str], seed: int, *, folder: Path | None = None) -> CensoredDemand:
    """Return any two stations of June and July 2016, censored like `new_york_2016`.

    >>> two_stations(("497", "285"), 0).names  # doctest: +SKIP
    ('497', '285')
    """
    rows = read_rows((folder or data_folder()) / MANY_FILE)
    absent = [name for name in pair if not name.isdigit() or name not in rows[0]]
    if absent:
        raise ValueError(f"{MANY_FILE} has no station {', '.join(map(repr, absent))}.")
    pickups = np.stack([numbers(rows, name) for name in pair], axis=1)
    return _with_returns(pair, rows, pickups, seed)


def station_pairs(
    count: int, *, without: Sequence[str] = (), folder: Path | None = None
) -> list[tuple[str, str]]:
    """Return stations of 2016, from busy to quiet, each with the one most correlated with it.

    Of all stations with at least one pickup an hour in the mean, in the order of their demand,
    `count` are taken at equal steps. Partners are of the same stations, by the correlation of all
    hours; one may be the partner of several. `without` are left out of both.

    >>> station_pairs(1)  # doctest: +SKIP
    [('385', '147')]
    """
    rows = read_rows((folder or data_folder()) / MANY_FILE)
    names = [name for name in rows[0] if name.isdigit() and name not in without]
    pickups = np.stack([numbers(rows, name) for name in names], axis=1)
    mean = pickups.mean(axis=0)
    busy = [place for place in np.argsort(-mean, kind="stable") if mean[place] >= BUSY]
    if not 1 <= count <= len(busy):
        raise ValueError(f"count: found {count}. Accepted is a whole number from 1 to {len(busy)}.")
    alike = np.corrcoef(pickups[:, busy].T) - 2.0 * np.eye(len(busy))
    steps = (np.arange(count) + 0.5) * len(busy) / count
    return [(names[busy[i]], names[busy[int(np.argmax(alike[i]))]]) for i in steps.astype(int)]


def _with_returns(
    names: tuple[str, ...], rows: Rows, pickups: Float[np.ndarray, "N D"], seed: int
) -> CensoredDemand:
    """Censor pickups by the paper's rule, driven by bikes that come back evenly."""
    flows = pickups * TYPICAL_PICKUPS / pickups.mean(axis=0)
    # The first day is used up by the mean of the day before.
    before = slice(HOURS_OF_RETURNS - 1, len(flows) - 1)
    probability = probability_of_running_out(_mean_of_a_day(flows)[:-1], flows[before])
    wanted = slice(HOURS_OF_RETURNS, None)
    observed, censored = censor(pickups[wanted], probability, seed)
    time = np.array([row["datetime"] for row in rows[wanted]], dtype="datetime64[h]")
    weather = {"temperature": without_gaps(numbers(rows[wanted], "temp_mean"))}
    train, validation = NEW_YORK_SPLIT[:2]
    split = (train, validation, len(time) - train - validation)
    return CensoredDemand(names, time, weather, pickups[wanted], observed, censored, split)


def _by_station(rows: Rows) -> dict[str, Rows]:
    """Return the rows of each station, in the order of the file."""
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row["station"], []).append(row)
    return found


def _cells(stations: dict[str, Rows], column: str) -> Float[np.ndarray, "N D"]:
    return np.stack([numbers(rows, column) for rows in stations.values()], axis=1)


def _mean_of_a_day(values: Float[np.ndarray, "N D"]) -> Shaped[np.ndarray, "M D"]:
    """Return means over windows of a day, the first of which ends with the first day."""
    windows = np.lib.stride_tricks.sliding_window_view(values, HOURS_OF_RETURNS, axis=0)
    return windows.mean(axis=-1)
