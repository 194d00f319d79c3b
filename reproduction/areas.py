"""Table 3: public stand-ins for the paper's Copenhagen data, and the cross-validation on them.

Car parks of Birmingham with their real capacity, and areas of New York with a simulated supply.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Shaped

from censored_gp import Observations
from reproduction.files import data_folder
from reproduction.models import MODELS, NATURAL, build, point_scores, training_data
from reproduction.study import Settings, Study

DRAWS = 1
FOLDS = 5
INTENSITIES = (0.2, 0.5, 0.8)
STEPS = NATURAL | {"max_iterations": 80}
"""Settings of the natural engine: many fits of the car parks need more steps than others."""

PARKING_FILE = "birmingham_parking_30car_parks.csv.gz"
PARK_PAIRS = (
    ("BHMBRCBRG01", "BHMBRCBRG02"),
    ("BHMBCCTHL01", "BHMBRCBRG02"),
    ("BHMNCPNHS01", "BHMNCPRAN01"),
    ("BHMBRCBRG02", "BHMBRCBRG03"),
    ("BHMBCCSNH01", "BHMNCPHST01"),
    ("BHMEURBRD02", "BHMEURBRD01"),
)
"""The six car parks that are full most often (5 to 21 % of the hours), each with the one that is
most correlated with it. Records of several car parks together are not among them."""
AT_CAPACITY = 0.98
"""A car park is full from this share of its capacity on, as in the published flags."""

HUBS_FILE = "citibike_nyc_2016_daily_40hubs.csv.gz"
HUB_MAP = "citibike_nyc_2016_hub_map.csv"
HUB_PAIRS = 6
BUSY = 300.0
"""Areas with fewer trips in a day than this are left out of the pairs."""
SUPPLY_DAYS = 14
SUPPLY_MARGIN = 1.2
SUPPLY_SPREAD = 0.1


@dataclass(frozen=True)
class LimitedDemand:
    """Demand of D areas and the cells in which supply ran out.

    The records are taken for the truth, as in the paper; `observations` hides part of them.
    """

    names: tuple[str, ...]
    inputs: dict[str, Shaped[np.ndarray, " N"]]
    """The column `time`, and the weather if there is any."""
    truth: Float[np.ndarray, "N D"]
    """The records, NaN where there is none."""
    limited: Bool[np.ndarray, "N D"]
    """Where supply ran out."""

    def observations(self, intensity: float) -> Observations:
        """Return the lower bound `(1 - intensity) truth` where supply ran out, else the truth."""
        low = np.where(self.limited, (1.0 - intensity) * self.truth, self.truth)
        high = np.where(self.limited, np.inf, self.truth)
        missing = np.isnan(self.truth)
        return Observations(
            np.where(missing, -np.inf, low), np.where(missing, np.inf, high), self.names
        )

    def in_fold(self, fold: int, seed: int) -> Bool[np.ndarray, " N"]:
        """Return the rows of a fold: whole days, dealt out at random."""
        days, day = np.unique(self.inputs["time"].astype("datetime64[D]"), return_inverse=True)
        dealt = np.random.default_rng([seed, 3]).permutation(len(days)) % FOLDS
        return dealt[day] == fold


def car_parks(pair: tuple[str, ...]) -> LimitedDemand:
    """Return the hourly occupancy of two car parks of Birmingham, from 7:00 to 16:00.

    Records are half-hourly; the first of each hour is kept.
    """
    rows = pd.read_csv(data_folder() / PARKING_FILE, parse_dates=["datetime"])
    rows["hour"] = rows["datetime"].dt.floor("h")
    rows = rows[rows["car_park"].isin(pair)].drop_duplicates(["car_park", "hour"])
    truth = rows.pivot(index="hour", columns="car_park", values="occupancy")[list(pair)]
    capacity = rows.groupby("car_park")["capacity"].first()[list(pair)]
    limited = truth >= AT_CAPACITY * capacity
    hours = truth.index.to_numpy("datetime64[h]")
    return LimitedDemand(pair, {"time": hours}, truth.to_numpy(float), limited.to_numpy())


def hub_pairs(count: int) -> list[tuple[str, str]]:
    """Return pairs of neighbouring busy areas of New York, the nearest first, each area once."""
    demand = pd.read_csv(data_folder() / HUBS_FILE).filter(regex="^hub")
    busy = [name for name in demand if demand[name].mean() >= BUSY]
    centre = pd.read_csv(data_folder() / HUB_MAP).groupby("hub")[["lat", "lon"]].mean()
    # A degree of longitude is shorter than one of latitude.
    centre["lon"] *= np.cos(np.deg2rad(centre["lat"]))
    ways = [(float(np.hypot(*(centre.loc[a] - centre.loc[b]))), a, b) for a in busy for b in busy
            if a < b]  # fmt: skip
    pairs: list[tuple[str, str]] = []
    for _, a, b in sorted(ways):
        if not {a, b} & {hub for pair in pairs for hub in pair}:
            pairs.append((a, b))
    return pairs[:count]


def hubs(pair: tuple[str, ...], seed: int) -> LimitedDemand:
    """Return the daily demand of two areas of New York in 2016, and a draw of when supply ran out.

    The supply of a day is 1.2 times the mean demand of the 14 days before, times log-normal noise.
    Supply ran out on the days on which demand was above it.
    """
    rows = pd.read_csv(data_folder() / HUBS_FILE, parse_dates=["date"])
    truth = rows[list(pair)].to_numpy(float)
    noise = np.exp(SUPPLY_SPREAD * np.random.default_rng(seed).standard_normal(truth.shape))
    before = np.lib.stride_tricks.sliding_window_view(truth, SUPPLY_DAYS, axis=0)[:-1].mean(axis=-1)
    limited = np.zeros(truth.shape, bool)
    limited[SUPPLY_DAYS:] = truth[SUPPLY_DAYS:] > SUPPLY_MARGIN * before * noise[SUPPLY_DAYS:]
    temperature = rows["temp_mean"].interpolate(limit_direction="both").to_numpy()
    inputs = {"time": rows["date"].to_numpy("datetime64[D]"), "temperature": temperature}
    return LimitedDemand(pair, inputs, truth, limited)


def run(settings: Settings) -> dict[str, float]:
    """Fit one model to all folds but one; score the first area in that fold."""
    pair, draw = tuple(settings["pair"].split("+")), int(settings["draw"])
    data = car_parks(pair) if settings["data"] == "car parks" else hubs(pair, draw)
    test = data.in_fold(int(settings["fold"]), draw)
    train, hidden = ({name: column[rows] for name, column in data.inputs.items()}
                     for rows in (~test, test))  # fmt: skip
    seen = data.observations(float(settings["intensity"])).rows(~test)
    start = time.perf_counter()
    model = build(settings["model"], random_state=draw, engine_settings=STEPS)
    model.fit(train, training_data(settings["model"], seen))
    seconds = time.perf_counter() - start
    predicted = model.predict_distribution(hidden).mean[:, 0]
    truth, limited = data.truth[test, 0], data.limited[test, 0]
    return point_scores(predicted, truth) | {
        "r2_lasted": point_scores(predicted, np.where(limited, np.nan, truth))["r2"],
        "converged": float(model.report_.converged),
        "fit_seconds": seconds,
    }


STUDY = Study(
    "table3",
    ("data", "pair", "draw", "intensity", "fold", "model", "engine"),
    ("r2", "mae", "r2_lasted", "converged", "fit_seconds"),
    run,
)


def runs(draws: int = DRAWS) -> list[Settings]:
    """Return the runs of the table, one for each fold."""
    pairs = [("car parks", "+".join(pair)) for pair in PARK_PAIRS]
    pairs += [("hubs", "+".join(pair)) for pair in hub_pairs(HUB_PAIRS)]
    return [
        {"data": data, "pair": pair, "draw": draw, "intensity": c, "fold": fold, "model": model,
         "engine": "natural"}
        for draw in range(draws) for model in MODELS for c in INTENSITIES for fold in range(FOLDS)
        for data, pair in pairs
    ]  # fmt: skip
