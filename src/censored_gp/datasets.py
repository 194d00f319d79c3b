"""Real data sets, read from a folder: none of them comes with the package."""

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.special import expit

from censored_gp.observations import Observations

Cells: TypeAlias = Float[np.ndarray, "N D"]
Column: TypeAlias = Shaped[np.ndarray, " N"]

FOLDER_VARIABLE = "CENSORED_GP_DATA"
NEW_YORK_FILE = "citibike_3711_366_2018.csv.gz"
NEW_YORK_START = "2018-06-01T00"
NEW_YORK_SPLIT = (732, 293, 440)
WEATHER = ("temperature", "dew_point_temperature", "precip_prob", "humidity", "wind_speed")
WET = ("rain", "snow", "sleet")


@dataclass(frozen=True)
class CensoredDemand:
    """Hourly demand at D stations of which part was hidden on purpose, so that the truth is known.

    Rows are in the order of time: first those to train on, then to validate, then to test.
    """

    names: tuple[str, ...]
    time: Column
    """Start of each hour, `datetime64[h]`."""
    weather: dict[str, Float[np.ndarray, " N"]]
    """Weather by name, without gaps; `rain` is 1 in a wet hour, else 0."""
    truth: Cells
    observed: Cells
    """The truth, or less where censored."""
    censored: Bool[np.ndarray, "N D"]
    split: tuple[int, int, int]
    """How many rows there are to train on, to validate and to test."""

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

    def inputs(
        self, *weather: str, rows: slice = slice(None)
    ) -> dict[str, Shaped[np.ndarray, " N"]]:
        """Return the columns of inputs: the time and the weather asked for by name."""
        absent = [name for name in weather if name not in self.weather]
        if absent:
            raise ValueError(f"No weather column {absent}; there are {list(self.weather)}.")
        columns = {"time": self.time} | {name: self.weather[name] for name in weather}
        return {name: column[rows] for name, column in columns.items()}

    def observations(self, rows: slice = slice(None)) -> Observations:
        """Return what was seen of demand, as bounds."""
        upper = np.where(self.censored, np.inf, self.observed)
        return Observations(self.observed[rows], upper[rows], self.names)


def data_folder() -> Path:
    """Return the folder of real data, or say how to provide it.

    It is the one that the environment variable `CENSORED_GP_DATA` names, or else `shared/data`
    beside the project.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    project = Path(__file__).resolve().parents[2]
    folder = Path(named) if named else project.parent / "shared" / "data"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"No real data: there is no folder {folder}. Set the environment variable "
            f"{FOLDER_VARIABLE} to the folder that holds the data files."
        )
    return folder


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
    """
    rows = _rows((folder or data_folder()) / NEW_YORK_FILE)
    stations = tuple(dict.fromkeys(row["station"] for row in rows))
    suffix = "_corrected" if corrected else ""
    counts = {
        name: np.stack([_numbers(rows, name + suffix, s) for s in stations], axis=1)
        for name in ("pickups", "dropoffs")
    }
    first = [row for row in rows if row["station"] == stations[0]]
    time = np.array([row["datetime"] for row in first], dtype="datetime64[h]")
    start = int(np.searchsorted(time, np.datetime64(NEW_YORK_START)))
    wanted = slice(start, start + sum(NEW_YORK_SPLIT))
    truth = counts["pickups"][wanted]
    before = (counts["dropoffs"] - counts["pickups"])[start - 1 : wanted.stop - 1]
    observed, censored = censor(truth, 1 - expit(before + 5), seed, whole_numbers=whole_numbers)
    weather = {name: _without_gaps(_numbers(first[wanted], name)) for name in WEATHER}
    weather["rain"] = np.array([float(row["icon"] in WET) for row in first[wanted]])
    return CensoredDemand(
        stations, time[wanted], weather, truth, observed, censored, NEW_YORK_SPLIT
    )


def censor(
    truth: Float[np.ndarray, "N D"],
    probability: Float[np.ndarray, "N D"],
    seed: int,
    *,
    whole_numbers: bool = True,
) -> tuple[Float[np.ndarray, "N D"], Bool[np.ndarray, "N D"]]:
    """Hide part of the truth: return what is then observed, and where it is censored.

    Each cell is censored with its probability, and then shows a uniform draw from 0 to the truth.
    """
    rng = np.random.default_rng(seed)
    censored = rng.uniform(size=truth.shape) < probability
    share = rng.uniform(size=truth.shape)
    shown = np.floor(share * (truth + 1)) if whole_numbers else share * truth
    return np.where(censored, shown, truth), censored


def _rows(path: Path) -> list[dict[str, str]]:
    """Read a compressed table of comma-separated values."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.parent} does not hold {path.name}. Put the file there, or set the environment "
            f"variable {FOLDER_VARIABLE} to the folder that holds it."
        )
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _numbers(
    rows: list[dict[str, str]], column: str, station: str | None = None
) -> Float[np.ndarray, " N"]:
    """Return a column as numbers, of one station or of all rows; NaN where it is empty."""
    chosen = (row for row in rows if station is None or row["station"] == station)
    return np.array([float(row[column] or "nan") for row in chosen])


def _without_gaps(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Interpolate over missing hours."""
    hours, good = np.arange(len(values)), np.isfinite(values)
    return np.interp(hours, hours[good], values[good])
