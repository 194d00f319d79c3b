"""Public stand-ins for the paper's Copenhagen data: car parks of Birmingham, areas of New York."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.datasets.demand import LimitedDemand
from censored_gp.datasets.folder import data_folder, numbers, read_rows, without_gaps

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
BUSY = 300.0
"""Areas with fewer trips in a day than this are left out of the pairs."""
SUPPLY_DAYS = 14
SUPPLY_MARGIN = 1.2
SUPPLY_SPREAD = 0.1


def car_parks(pair: tuple[str, ...], *, folder: Path | None = None) -> LimitedDemand:
    """Return the hourly occupancy of car parks of Birmingham, from 7:00 to 16:00.

    Supply ran out where occupancy is at least 0.98 of the capacity. Records are half-hourly; the
    first of each hour is kept. An hour without a record is NaN.

    >>> car_parks(("BHMBCCTHL01", "BHMBRCBRG02")).truth.shape  # doctest: +SKIP
    (657, 2)
    """
    rows = read_rows((folder or data_folder()) / PARKING_FILE)
    parks = {name: [row for row in rows if row["car_park"] == name] for name in pair}
    absent = [name for name, own in parks.items() if not own]
    if absent:
        raise ValueError(f"{PARKING_FILE} has no car park {', '.join(map(repr, absent))}.")
    hours = {name: np.array([r["datetime"] for r in own], "datetime64[h]") for name, own in
             parks.items()}  # fmt: skip
    time = np.unique(np.concatenate(list(hours.values())))
    truth = np.full((len(time), len(pair)), np.nan)
    limited = np.zeros(truth.shape, bool)
    for d, name in enumerate(pair):
        kept, at = np.unique(hours[name], return_index=True)
        place = np.searchsorted(time, kept)
        truth[place, d] = numbers(parks[name], "occupancy")[at]
        limited[place, d] = truth[place, d] >= AT_CAPACITY * float(parks[name][0]["capacity"])
    return LimitedDemand(tuple(pair), time, {}, truth, limited)


def hub_pairs(count: int, *, folder: Path | None = None) -> list[tuple[str, str]]:
    """Return pairs of neighbouring busy areas of New York, the nearest first, each area once.

    >>> hub_pairs(1)  # doctest: +SKIP
    [('hub14', 'hub37')]
    """
    folder = folder or data_folder()
    stations = read_rows(folder / HUB_MAP)
    demand = read_rows(folder / HUBS_FILE)
    busy = [h for h in demand[0] if h.startswith("hub") and numbers(demand, h).mean() >= BUSY]
    centre = {h: _centre([s for s in stations if s["hub"] == h]) for h in busy}
    ways = [(float(np.hypot(*(centre[a] - centre[b]))), a, b) for a in busy for b in busy if a < b]
    pairs: list[tuple[str, str]] = []
    for _, a, b in sorted(ways):
        if not {a, b} & {hub for pair in pairs for hub in pair}:
            pairs.append((a, b))
    return pairs[:count]


def hubs(pair: tuple[str, ...], seed: int, *, folder: Path | None = None) -> LimitedDemand:
    """Return the daily demand of areas of New York in 2016, and a draw of when supply ran out.

    The file does not say when it did. So the supply of a day is drawn: 1.2 times the mean demand
    of the 14 days before, give or take a tenth (log-normal). Supply ran out on the days
    on which demand was above it.

    >>> hubs(("hub14", "hub37"), 0).truth.shape  # doctest: +SKIP
    (362, 2)
    """
    rows = read_rows((folder or data_folder()) / HUBS_FILE)
    absent = [name for name in pair if name not in rows[0]]
    if absent:
        raise ValueError(f"{HUBS_FILE} has no area {', '.join(map(repr, absent))}.")
    time = np.array([row["date"] for row in rows], dtype="datetime64[D]")
    truth = np.stack([numbers(rows, name) for name in pair], axis=1)
    weather = {"temperature": without_gaps(numbers(rows, "temp_mean"))}
    return LimitedDemand(tuple(pair), time, weather, truth, _ran_out(truth, seed))


def _ran_out(truth: Float[np.ndarray, "N D"], seed: int) -> Bool[np.ndarray, "N D"]:
    """Draw a supply round the demand of the days before; return where demand was above it."""
    rng = np.random.default_rng(seed)
    noise = np.exp(SUPPLY_SPREAD * rng.standard_normal(truth.shape))
    windows = np.lib.stride_tricks.sliding_window_view(truth, SUPPLY_DAYS, axis=0)[:-1]
    supply = SUPPLY_MARGIN * windows.mean(axis=-1) * noise[SUPPLY_DAYS:]
    limited = np.zeros(truth.shape, bool)
    limited[SUPPLY_DAYS:] = truth[SUPPLY_DAYS:] > supply
    return limited


def _centre(stations: list[dict[str, str]]) -> Float[np.ndarray, " 2"]:
    """Return the centre of stations, in degrees of latitude and as many of longitude."""
    lat, lon = numbers(stations, "lat").mean(), numbers(stations, "lon").mean()
    return np.array([lat, lon * np.cos(np.deg2rad(lat))])
