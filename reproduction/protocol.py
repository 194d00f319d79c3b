"""The paper's New York data: two bike stations, and the rule that hides part of their demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from censored_gp.datasets.simulated import Cells, Column, Flags, Table, World
from reproduction.files import data_folder, read_columns

NEW_YORK_FILE = "citibike_3711_366_2018.csv.gz"
"""The file holds hourly flows and weather of stations 3711 and 366 in 2018."""
NEW_YORK_START = "2018-06-01T00"
"""The paper's data start at this hour."""
NEW_YORK_SPLIT = (732, 293, 440)
"""The paper trains on so many hours, validates on the next ones and tests on the last."""
OFFSET = 5.0
"""The paper censors an hour with probability `1 - sigmoid(dropoffs - pickups + 5)`."""
WEATHER = ("temperature", "dew_point_temperature", "precip_prob", "humidity", "wind_speed")
WET = ("rain", "snow", "sleet")


@dataclass(frozen=True)
class CensoredDemand(World):
    """Hourly demand at D stations of which part was hidden on purpose, so that the truth is known.

    Rows are in the order of time: first those to train on, then to validate, then to test.

    Attributes
    ----------
    time
        Start of each hour, `datetime64[h]`.
    weather
        Weather by name, without gaps; `rain` is 1 in a wet hour, else 0.
    observed
        The truth, or less where censored.
    split
        How many rows there are to train on, to validate and to test.

    Examples
    --------
    >>> time = np.datetime64("2018-06-01T00") + np.arange(4)
    >>> truth = np.array([[3.0], [5.0], [4.0], [6.0]])
    >>> hidden = np.array([[False], [True], [False], [False]])
    >>> demand = CensoredDemand(("a",), truth, truth - hidden, hidden, time, {}, (2, 1, 1))
    >>> demand.observations(demand.train).upper[:, 0]
    array([ 3., inf])
    """

    time: Column
    weather: dict[str, Float[np.ndarray, " N"]]
    split: tuple[int, int, int]

    @property
    def train(self) -> slice:
        """The rows to train on."""
        return slice(0, self.split[0])

    @property
    def validation(self) -> slice:
        """The rows to decide on when to stop."""
        return slice(self.split[0], self.split[0] + self.split[1])

    @property
    def test(self) -> slice:
        """The rows to score."""
        return slice(self.split[0] + self.split[1], sum(self.split))

    def inputs(self, *weather: str, rows: slice = slice(None)) -> Table:
        """Return the columns of inputs: the time and the weather asked for by name."""
        absent = [name for name in weather if name not in self.weather]
        if absent:
            raise ValueError(f"No weather column {absent}; there are {list(self.weather)}.")
        columns = {"time": self.time} | {name: self.weather[name] for name in weather}
        return {name: column[rows] for name, column in columns.items()}


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
    Both stations are censored. `seed` makes the draw. The file lies in `folder`, by default
    `data_folder()`.

    Counts are as the paper used them. Those of station 366 are twice what they should be:
    `corrected` halves them.

    >>> new_york(0).names  # doctest: +SKIP
    ('3711', '366')
    """
    table = read_columns((folder or data_folder()) / NEW_YORK_FILE)
    by_station = {
        str(station): {name: column[table["station"] == station] for name, column in table.items()}
        for station in dict.fromkeys(table["station"])
    }
    suffix = "_corrected" if corrected else ""
    pickups, dropoffs = (
        np.stack([own[name + suffix] for own in by_station.values()], axis=1).astype(float)
        for name in ("pickups", "dropoffs")
    )
    first = next(iter(by_station.values()))
    time = first["datetime"].astype("datetime64[h]")
    start = int(np.searchsorted(time, np.datetime64(NEW_YORK_START)))
    rows = slice(start, start + sum(NEW_YORK_SPLIT))
    before = slice(rows.start - 1, rows.stop - 1)
    probability = censoring_probability(dropoffs[before], pickups[before])
    truth = pickups[rows]
    observed, censored = censor(truth, probability, seed, whole_numbers=whole_numbers)
    weather = {name: without_gaps(first[name][rows]) for name in WEATHER}
    weather["rain"] = np.isin(first["icon"][rows].astype(str), WET).astype(float)
    names = tuple(by_station)
    return CensoredDemand(names, truth, observed, censored, time[rows], weather, NEW_YORK_SPLIT)


def censor(
    truth: Float[np.ndarray, "N D"],
    probability: Float[np.ndarray, "N D"],
    seed: int,
    *,
    whole_numbers: bool = True,
) -> tuple[Cells, Flags]:
    """Hide part of the truth: return what is then observed, and where it is censored.

    Each cell is censored with its probability, and then shows a uniform draw from 0 to the truth.

    >>> observed, censored = censor(np.full((3, 1), 9.0), np.array([[0.0], [0.0], [1.0]]), seed=0)
    >>> censored[:, 0], bool(observed[2, 0] <= 9.0)
    (array([False, False,  True]), True)
    """
    rng = np.random.default_rng(seed)
    censored = rng.uniform(size=truth.shape) < probability
    share = rng.uniform(size=truth.shape)
    shown = np.floor(share * (truth + 1)) if whole_numbers else share * truth
    return np.where(censored, shown, truth), censored


def censoring_probability(
    inflow: Float[np.ndarray, "N D"], outflow: Float[np.ndarray, "N D"]
) -> Cells:
    """Return the paper's `1 - sigmoid(inflow - outflow + 5)` of the flows of the hour before."""
    return 1.0 - expit(inflow - outflow + OFFSET)


def without_gaps(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return the values with missing ones interpolated."""
    rows, finite = np.arange(len(values)), np.isfinite(values)
    return np.interp(rows, rows[finite], values[finite])
