"""A bike share in which bikes run out, with docks, returns and a van at night."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Shaped

from censored_gp.simulate.common import Cells, Times, hour_of_day, is_weekend, persistent_noise
from censored_gp.simulate.world import Demand, Table

TIME_OF_REBALANCING = 4
STOCK_AFTER_REBALANCING = 0.7


@dataclass(frozen=True)
class BikeShare(Demand):
    """Hourly pickups at D stations: what was wanted, and what was seen of it.

    >>> world = bike_share(days=2, stations=1)
    >>> bool((world.observed[world.censored] == world.supply[world.censored]).all())
    True
    """

    names: tuple[str, ...]
    time: Times
    """Start of each hour, `datetime64[h]`."""
    rain: Float[np.ndarray, " N"]
    """1 in a wet hour, else 0."""
    rate: Cells
    """Expected demand."""
    demand: Cells
    """The truth: how many people came for a bike, `Poisson(rate)`."""
    returned: Cells
    """How many bikes people brought back in the hour."""
    supply: Cells
    """How many bikes there were to be had in the hour."""
    observed: Cells
    """Pickups, `min(demand, supply)`."""
    censored: Bool[np.ndarray, "N D"]
    """Where the station was empty in the end: demand was at least `observed`."""

    mark = "empty"

    def inputs(self) -> Table:
        """Return the columns that explain demand: time and rain."""
        return {"time": self.time, "rain": self.rain}


def bike_share(
    days: int = 28,
    stations: int = 2,
    *,
    seed: int = 0,
    docks: int = 16,
    busyness: float = 12.0,
    rain_effect: float = 0.7,
    shared_shock: float = 0.25,
    own_shock: float = 0.15,
    returns_follow_demand: bool = True,
    start: str = "2024-06-03",
) -> BikeShare:
    """Simulate a bike share in which bikes run out, so that pickups understate demand.

    Demand is Poisson with log rate = station + daily and weekly pattern - `rain_effect` in rain
    + a shock that all stations share + one of their own (both AR(1), given by their standard
    deviations). People also return bikes, fewer in the morning and more in the evening. A van
    fills every station to seven tenths of its `docks` each night. `busyness` is the demand per
    hour at the peak of a typical station.

    An empty station has no more bikes than come back to it. By default more come back when more
    are wanted, so that its supply tells of demand what time and rain do not. With
    `returns_follow_demand=False` returns know the pattern and the rain but not the shocks, and
    supply is independent of demand given the inputs. The demand of a seed is the same either way.

    >>> worlds = [bike_share(days=7, returns_follow_demand=follow) for follow in (True, False)]
    >>> bool((worlds[0].demand == worlds[1].demand).all())
    True
    """
    rng = np.random.default_rng(seed)
    time = np.datetime64(start, "h") + np.arange(24 * days)
    rain = _wet_hours(rng, len(time))
    shocks = shared_shock * persistent_noise(rng, len(time), 1)
    shocks = shocks + own_shock * persistent_noise(rng, len(time), stations)
    size = busyness * np.exp(0.2 * rng.standard_normal(stations))
    pattern = _weekly_pattern(time, commuters=rng.uniform(0.6, 1.0, stations))
    regular = size * pattern * np.exp(-rain_effect * rain[:, None])
    rate = regular * np.exp(shocks)
    demand = rng.poisson(rate)
    followed = rate if returns_follow_demand else regular
    returned = rng.poisson(followed * _return_ratio(time)[:, None])
    supply = _supply(time, demand, returned, docks)
    return BikeShare(
        names=tuple(f"station_{d + 1}" for d in range(stations)),
        time=time,
        rain=rain,
        rate=rate,
        demand=demand.astype(float),
        returned=returned.astype(float),
        supply=supply.astype(float),
        observed=np.minimum(demand, supply).astype(float),
        censored=demand >= supply,
    )


def _wet_hours(rng: np.random.Generator, n: int) -> Float[np.ndarray, " N"]:
    """Return 1 in wet hours: showers begin in one dry hour of 25 and last three hours or so."""
    wet = np.zeros(n)
    for t, u in enumerate(rng.uniform(size=n)):
        wet[t] = u < (0.7 if t and wet[t - 1] else 0.04)
    return wet


def _weekly_pattern(time: Times, commuters: Float[np.ndarray, " D"]) -> Cells:
    """Return relative demand: commuting peaks on weekdays, a broad afternoon, quiet nights."""
    hour = hour_of_day(time)
    commute = np.exp(-(((hour - 8) / 1.5) ** 2)) + 1.1 * np.exp(-(((hour - 17.5) / 2) ** 2))
    leisure = np.exp(-(((hour - 15) / 4) ** 2))
    share = np.where(is_weekend(time)[:, None], 0.1, commuters)
    return 0.06 + share * commute[:, None] + 0.6 * (1.1 - share) * leisure[:, None]


def _return_ratio(time: Times) -> Float[np.ndarray, " N"]:
    """Return how many bikes come back per bike wanted: people leave in the morning."""
    hour = hour_of_day(time)
    return 0.9 - 0.7 * np.exp(-(((hour - 8) / 3) ** 2)) + 0.2 * np.exp(-(((hour - 19) / 3) ** 2))


def _supply(
    time: Times,
    demand: Shaped[np.ndarray, "N D"],
    returned: Shaped[np.ndarray, "N D"],
    docks: int,
) -> Shaped[np.ndarray, "N D"]:
    """Keep the books: bikes at the start of each hour plus those returned in it."""
    filled = round(STOCK_AFTER_REBALANCING * docks)
    stock = np.full(demand.shape[1], filled)
    supply = np.empty_like(demand)
    for t, hour in enumerate(hour_of_day(time)):
        if hour == TIME_OF_REBALANCING:
            stock = np.full_like(stock, filled)
        supply[t] = stock + returned[t]
        # Bikes that find no dock go elsewhere.
        stock = np.minimum(supply[t] - np.minimum(demand[t], supply[t]), docks)
    return supply
