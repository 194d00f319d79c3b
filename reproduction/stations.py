"""Pairs of bike stations of New York in 2016, with a draw of the paper's censoring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from censored_gp.datasets.simulated import Column
from reproduction.files import data_folder, read_columns
from reproduction.protocol import (
    NEW_YORK_SPLIT,
    CensoredDemand,
    censor,
    censoring_probability,
    without_gaps,
)

PAIRS_FILE = "citibike_nyc_2016_pairs_hourly_pickups.csv.gz"
PAIRS = ("379", "3386", "366")
"""The pairs of 2016 by the station that is looked at."""
MANY_FILE = "citibike_nyc_2016-06_07_hourly_pickups_493stations.csv.gz"
BUSY = 1.0
"""Stations with fewer pickups an hour, in the mean, are left out of the pairs."""
HOURS_OF_RETURNS = 24
TYPICAL_PICKUPS = 7.6
"""Mean pickups in an hour at the paper's station 3711: flows elsewhere are put on its scale."""


def new_york_2016(pair: str, seed: int) -> CensoredDemand:
    """Return a pair of stations of 2016 ("379", "3386" or "366") with one draw of censoring.

    Hourly pickups of two months: 732 hours to train on, 293 to validate and the rest to test.
    Dropoffs are not in these files, so the paper's rule has another driver: bikes are taken to
    come back evenly, as many in an hour as were picked up in the mean of the 24 hours up to it.
    Flows are put on the scale of the paper's station 3711, or a quiet station would never run
    out. Then as in `new_york`: an hour is censored with probability
    `1 - sigmoid(returns - pickups + 5)` of the hour before, and shows a uniform draw.
    """
    table = read_columns(data_folder() / PAIRS_FILE)
    table = {name: column[table["pair"].astype(str) == pair] for name, column in table.items()}
    if not len(table["pair"]):
        raise ValueError(f"{PAIRS_FILE} has no pair {pair!r}; accepted are {', '.join(PAIRS)}.")
    stations = list(dict.fromkeys(table["station"]))
    pickups = np.stack([table["pickups"][table["station"] == s] for s in stations], axis=1)
    first = table["station"] == stations[0]
    names = tuple(map(str, stations))
    return _with_returns(names, table["datetime"][first], table["temp_mean"][first], pickups, seed)


def two_stations(pair: tuple[str, str], seed: int) -> CensoredDemand:
    """Return any two stations of June and July 2016, censored like `new_york_2016`."""
    table = read_columns(data_folder() / MANY_FILE)
    absent = [name for name in pair if not name.isdigit() or name not in table]
    if absent:
        raise ValueError(f"{MANY_FILE} has no station {', '.join(map(repr, absent))}.")
    pickups = np.stack([table[name] for name in pair], axis=1)
    return _with_returns(pair, table["datetime"], table["temp_mean"], pickups, seed)


def station_pairs(count: int, *, without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return stations of 2016, from busy to quiet, each with the one most correlated with it.

    Of all stations with at least one pickup an hour in the mean, in the order of their demand,
    `count` are taken at equal steps. Partners are of the same stations, by the correlation of all
    hours; one may be the partner of several. `without` are left out of both.
    """
    table = read_columns(data_folder() / MANY_FILE)
    names = [name for name in table if name.isdigit() and name not in without]
    pickups = np.stack([table[name] for name in names], axis=1).astype(float)
    mean = pickups.mean(axis=0)
    busy = [place for place in np.argsort(-mean, kind="stable") if mean[place] >= BUSY]
    if not 1 <= count <= len(busy):
        raise ValueError(f"`count` must be an integer from 1 to {len(busy)}, got {count}.")
    alike = np.corrcoef(pickups[:, busy].T) - 2.0 * np.eye(len(busy))
    steps = (np.arange(count) + 0.5) * len(busy) / count
    return [(names[busy[i]], names[busy[int(np.argmax(alike[i]))]]) for i in steps.astype(int)]


def _with_returns(
    names: tuple[str, ...],
    time: Column,
    temperature: Float[np.ndarray, " N"],
    pickups: Column,
    seed: int,
) -> CensoredDemand:
    """Censor pickups by the paper's rule, driven by bikes that come back evenly."""
    pickups = pickups.astype(float)
    flows = pickups * TYPICAL_PICKUPS / pickups.mean(axis=0)
    windows = np.lib.stride_tricks.sliding_window_view(flows, HOURS_OF_RETURNS, axis=0)
    returns = windows.mean(axis=-1)
    # The first day is used up by the mean of the day before.
    probability = censoring_probability(returns[:-1], flows[HOURS_OF_RETURNS - 1 : -1])
    rows = slice(HOURS_OF_RETURNS, None)
    truth, time = pickups[rows], time[rows].astype("datetime64[h]")
    observed, censored = censor(truth, probability, seed)
    train, validation = NEW_YORK_SPLIT[:2]
    split = (train, validation, len(time) - train - validation)
    weather = {"temperature": without_gaps(temperature[rows])}
    return CensoredDemand(names, truth, observed, censored, time, weather, split)
