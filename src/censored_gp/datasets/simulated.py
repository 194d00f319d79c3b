"""Simulated worlds, whose truth is known: bikes, car parks, a shop, a river.

`censored_gp.simulate` is this module. It is plain numpy: importing it does not load JAX. A seed
makes a world, and the same seed makes the same world.

>>> from censored_gp import simulate
>>> world = simulate.shop(days=7, seed=1)
>>> world.observations().shape
(7, 2)
>>> simulate.STOCK_AFTER_REBALANCING, simulate.TIME_OF_REBALANCING
(0.7, 4)
>>> simulate.OPENING_HOURS, simulate.DETECTION_LIMITS
((8, 18), (0.5, 1.0, 2.0))
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from censored_gp.data.observations import Observations

# A van fills every bike station to this share of its docks each night.
STOCK_AFTER_REBALANCING = 0.7
# The van comes at this hour of the day.
TIME_OF_REBALANCING = 4
# Cars are counted from the first to the last of these hours.
OPENING_HOURS = (8, 18)
# These are the detection limits of the river's laboratory, newest first.
DETECTION_LIMITS = (0.5, 1.0, 2.0)
_DEMAND_BY_WEEKDAY = np.array([0.8, 0.8, 0.9, 1.0, 1.3, 1.5, 0.7])

Cells = Float[np.ndarray, "N D"]
Flags = Bool[np.ndarray, "N D"]
Column = Shaped[np.ndarray, " N"]
Table = dict[str, Shaped[np.ndarray, " N"]]


@dataclass(frozen=True)
class World:
    """Outputs that are censored in places, with the inputs that explain them.

    Attributes
    ----------
    truth
        What the outputs were, censored or not; NaN where nobody knows.
    observed
        The truth, or its bound where censored; NaN where nothing was recorded.
    exposure
        The share of its hour in which each output could be seen; None: not known.
    mark
        Suffix of the columns that say where an output is censored.
    explaining
        The attributes that are inputs.

    Examples
    --------
    >>> truth, observed, censored = np.array([[2.0]]), np.array([[1.0]]), np.array([[True]])
    >>> World(("a",), truth, observed, censored).observations().upper
    array([[inf]])
    """

    names: tuple[str, ...]
    truth: Cells
    observed: Cells
    censored: Flags

    exposure = None
    mark = "censored"
    explaining = ("time",)

    @property
    def demand(self) -> Cells:
        """The truth, where the outputs are demand."""
        return self.truth

    def inputs(self) -> Table:
        """Return the columns that explain the outputs."""
        return {name: getattr(self, name) for name in self.explaining}

    def marks(self) -> Shaped[np.ndarray, "N D"]:
        """Return what says where an output is censored: flags, unless overridden."""
        return self.censored

    def observations(self, rows: Any = slice(None)) -> Observations:
        """Return the bounds of the outputs (of some rows), `[observed, ∞)` where censored.

        If there is an exposure, it says what the flags say, and more.
        """
        if self.exposure is not None:
            exposed = Observations.exact(self.observed, exposure=self.exposure)
            return dataclasses.replace(exposed, names=self.names).rows(rows)
        missing = np.isnan(self.observed)
        lower = np.where(missing, -np.inf, self.observed)
        upper = np.where(self.censored | missing, np.inf, self.observed)
        return Observations(lower, upper, self.names).rows(rows)

    def table(self, truth: bool = False) -> Table:
        """Return what somebody has who records the outputs, and the truth only if asked for.

        The inputs come first, then for each output its column and the one that says where it is
        censored. The column of the truth ends in `_truth`.

        >>> from censored_gp import simulate
        >>> list(simulate.shop(days=3, products=1).table(truth=True))
        ['time', 'promotion', 'product_1', 'product_1_sold_out', 'product_1_truth']
        """
        cells = {"": self.observed, f"_{self.mark}": self.marks()}
        cells |= {} if self.exposure is None else {"_minutes": 60 * self.exposure}
        cells |= {"_truth": self.truth} if truth else {}
        columns = [
            (f"{name}{end}", cells[end][:, d]) for d, name in enumerate(self.names) for end in cells
        ]
        return self.inputs() | dict(columns)


@dataclass(frozen=True)
class BikeShare(World):
    """Hourly pickups at D stations: the demand, and the pickups that the supply allowed.

    Attributes
    ----------
    time
        Start of each hour, `datetime64[h]`.
    rain
        1 in a wet hour, else 0.
    rate
        Expected demand.
    demand
        The truth: how many people came for a bike, `Poisson(rate)`.
    returned
        How many bikes people brought back in the hour.
    supply
        How many bikes there were to be had in the hour.
    observed
        Pickups, `min(demand, supply)`.
    censored
        Where the station was empty in the end: demand was at least `observed`.
    exposure
        Of a world of minutes, the share of the hour in which there was a bike. Pickups are then
        those who came in that time, and an hour is censored where the station was empty at all.

    Examples
    --------
    >>> world = bike_share(days=2, stations=1)
    >>> bool((world.observed[world.censored] == world.supply[world.censored]).all())
    True
    """

    time: Column
    rain: Float[np.ndarray, " N"]
    rate: Cells
    returned: Cells
    supply: Cells
    exposure: Cells | None = None

    mark = "empty"
    explaining = ("time", "rain")


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
    minutes: bool = False,
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

    By default an hour is all one: what was returned in it can be had in it. With `minutes` people
    come at moments within the hour, those who find no bike go away, and the share of the hour in
    which there was one is known: the `exposure`.

    >>> worlds = [bike_share(days=7, returns_follow_demand=follow) for follow in (True, False)]
    >>> bool((worlds[0].demand == worlds[1].demand).all())
    True
    """
    rng = np.random.default_rng(seed)
    time = np.datetime64(start, "h") + np.arange(24 * days)
    rain = _wet_hours(rng, len(time))
    shocks = shared_shock * _ar1(rng, len(time), 1) + own_shock * _ar1(rng, len(time), stations)
    size = busyness * np.exp(0.2 * rng.standard_normal(stations))
    pattern = _weekly_pattern(time, commuters=rng.uniform(0.6, 1.0, stations))
    regular = size * pattern * np.exp(-rain_effect * rain[:, None])
    rate = regular * np.exp(shocks)
    demand = rng.poisson(rate).astype(float)
    # More bikes come back in the evening than in the morning, when people leave.
    hour = _hour_of_day(time)
    ratio = 0.9 - 0.7 * np.exp(-(((hour - 8) / 3) ** 2)) + 0.2 * np.exp(-(((hour - 19) / 3) ** 2))
    followed = rate if returns_follow_demand else regular
    returned = rng.poisson(followed * ratio[:, None]).astype(float)
    supply = _supply(hour, demand, returned, docks)
    observed, censored, exposure = np.minimum(demand, supply), demand >= supply, None
    if minutes:
        supply, observed, exposure = _by_moments(rng, hour, demand, returned, docks)
        censored = exposure < 1
    names, seen = tuple(f"station_{d + 1}" for d in range(stations)), (observed, censored)
    return BikeShare(names, demand, *seen, time, rain, rate, returned, supply, exposure)


def _wet_hours(rng: np.random.Generator, n: int) -> Float[np.ndarray, " N"]:
    """Return 1 in wet hours: showers begin in one dry hour of 25 and last three hours or so."""
    wet = np.zeros(n)
    for t, u in enumerate(rng.uniform(size=n)):
        wet[t] = u < (0.7 if t and wet[t - 1] else 0.04)
    return wet


def _weekly_pattern(time: Column, commuters: Float[np.ndarray, " D"]) -> Cells:
    """Return relative demand: commuting peaks on weekdays, a broad afternoon, quiet nights."""
    hour = _hour_of_day(time)
    commute = np.exp(-(((hour - 8) / 1.5) ** 2)) + 1.1 * np.exp(-(((hour - 17.5) / 2) ** 2))
    leisure = np.exp(-(((hour - 15) / 4) ** 2))
    share = np.where(_is_weekend(time)[:, None], 0.1, commuters)
    return 0.06 + share * commute[:, None] + 0.6 * (1.1 - share) * leisure[:, None]


def _supply(hours: Column, demand: Cells, returned: Cells, docks: int) -> Cells:
    """Keep the books: bikes at the start of each hour plus those returned in it."""
    filled = round(STOCK_AFTER_REBALANCING * docks)
    stock = np.full(demand.shape[1], filled)
    supply = np.empty_like(demand)
    for t, hour in enumerate(hours):
        if hour == TIME_OF_REBALANCING:
            stock = np.full_like(stock, filled)
        supply[t] = stock + returned[t]
        # Bikes that find no dock go elsewhere.
        stock = np.minimum(supply[t] - np.minimum(demand[t], supply[t]), docks)
    return supply


def _by_moments(
    rng: np.random.Generator, hours: Column, demand: Cells, returned: Cells, docks: int
) -> tuple[Cells, Cells, Cells]:
    """Let people come at moments of their hour; return supply, pickups and share with a bike."""
    filled = round(STOCK_AFTER_REBALANCING * docks)
    supply, taken, share = (np.zeros_like(demand) for _ in range(3))
    for d in range(demand.shape[1]):
        stock = filled
        for t, hour in enumerate(hours):
            stock = filled if hour == TIME_OF_REBALANCING else stock
            supply[t, d], now = stock, 0.0
            changes = np.repeat([-1, 1], [int(demand[t, d]), int(returned[t, d])])
            moments = rng.uniform(size=len(changes))
            order = np.argsort(moments)
            for moment, change in [*zip(moments[order], changes[order], strict=True), (1.0, 0)]:
                share[t, d] += (moment - now) * (stock > 0)
                now = moment
                if change == 1 and stock < docks:
                    stock, supply[t, d] = stock + 1, supply[t, d] + 1
                elif change == -1 and stock > 0:
                    stock, taken[t, d] = stock - 1, taken[t, d] + 1
    # Moments between which there always was a bike add up to one but for rounding.
    return supply, taken, np.where(share > 1 - 1e-9, 1.0, share)


@dataclass(frozen=True)
class CarPark(World):
    """Cars in D car parks, hour by hour: how many would be there, and how many there are.

    Attributes
    ----------
    demand
        The truth: cars that would be parked if there were room for all.
    observed
        Cars parked, `min(demand, capacity)`.
    censored
        Where the car park was full.

    Examples
    --------
    >>> world = car_park(days=2, parks=2)
    >>> world.names, world.demand.shape
    (('park_1', 'park_2'), (22, 2))
    """

    time: Column
    capacity: Float[np.ndarray, " D"]

    mark = "capacity"

    def marks(self) -> Cells:
        """Return the capacities: a car park is full where as many cars are in it."""
        return np.broadcast_to(self.capacity, self.observed.shape)


def car_park(
    days: int = 28,
    parks: int = 2,
    *,
    seed: int = 0,
    spaces: int = 400,
    crowding: float = 1.2,
    start: str = "2024-03-04",
) -> CarPark:
    """Simulate car parks beside each other that fill up on busy days.

    Counts are taken hourly from 8 to 18 h. Demand rises to a peak at noon (later and lower at the
    weekend), times a shock that all car parks share and one of their own, both forgotten in a day
    or so. `crowding` is demand at the peak of a typical working day over the number of `spaces`.

    >>> world = car_park(days=2)
    >>> bool((world.observed <= world.capacity).all())
    True
    """
    rng = np.random.default_rng(seed)
    time = np.datetime64(start, "h") + np.arange(24 * days)
    opens, closes = OPENING_HOURS
    time = time[(_hour_of_day(time) >= opens) & (_hour_of_day(time) <= closes)]
    capacity = np.round(spaces * np.exp(0.3 * rng.standard_normal(parks)))
    shock = 0.12 * _ar1(rng, len(time), 1) + 0.08 * _ar1(rng, len(time), parks)
    crowd = crowding * np.exp(0.1 * rng.standard_normal(parks))
    peak, height = np.where(_is_weekend(time), [[14.0], [0.75]], [[12.5], [1.0]])
    occupancy = 0.1 + (height - 0.1) * np.exp(-(((_hour_of_day(time) - peak) / 3.2) ** 2))
    rate = capacity * crowd * occupancy[:, None] * np.exp(shock)
    demand = np.round(rate + np.sqrt(rate) * rng.standard_normal(rate.shape)).clip(0)
    names = tuple(f"park_{d + 1}" for d in range(parks))
    observed = np.minimum(demand, capacity)
    return CarPark(names, demand, observed, demand >= capacity, time, capacity)


@dataclass(frozen=True)
class Shop(World):
    """Daily sales of D products: what people came for, and what was there for them.

    Attributes
    ----------
    promotion
        1 on days with a leaflet, else 0.
    demand
        The truth: how many pieces people came for.
    stock
        How many pieces there were in the morning.
    observed
        Sales, `min(demand, stock)`.
    censored
        Where the shelf was empty in the evening.

    Examples
    --------
    >>> world = shop(days=14)
    >>> list(world.inputs())
    ['time', 'promotion']
    """

    time: Column
    promotion: Float[np.ndarray, " N"]
    stock: Cells

    mark = "sold_out"
    explaining = ("time", "promotion")


def shop(
    days: int = 120,
    products: int = 2,
    *,
    seed: int = 0,
    busyness: float = 25.0,
    cover: float = 1.4,
    start: str = "2024-01-01",
) -> Shop:
    """Simulate fresh products that are ordered for the day and sell out on good ones.

    Demand is negative binomial around a weekly pattern, times 1.5 on days with a promotion, times
    a slow drift that products share. The shop orders `cover` times the demand it expects, knowing
    the day of the week but not the promotion.

    >>> world = shop(days=14)
    >>> bool((world.observed <= world.stock).all())
    True
    """
    rng = np.random.default_rng(seed)
    time = np.datetime64(start, "D") + np.arange(days)
    # Day 0 of numpy's calendar, 1970-01-01, was a Thursday.
    week = _DEMAND_BY_WEEKDAY[(time.astype(int) + 3) % 7]
    promotion = (rng.uniform(size=days) < 0.15).astype(float)
    drift = 0.2 * _ar1(rng, days, 1, memory=20)
    size = busyness * np.exp(0.3 * rng.standard_normal(products))
    expected = size * week[:, None]
    rate = expected * np.exp(drift + np.log(1.5) * promotion[:, None])
    demand = rng.poisson(rate * rng.gamma(12, 1 / 12, rate.shape)).astype(float)
    stock = rng.poisson(cover * expected).astype(float)
    names = tuple(f"product_{d + 1}" for d in range(products))
    observed, censored = np.minimum(demand, stock), demand >= stock
    return Shop(names, demand, observed, censored, time, promotion, stock)


@dataclass(frozen=True)
class WaterSamples(World):
    """Concentrations of D substances along a river: what is in the water, and what was reported.

    Attributes
    ----------
    distance
        Kilometres downstream of the source.
    truth
        The truth, in micrograms per litre.
    limit
        Detection limit of the day.
    observed
        The concentration, or the limit where nothing was detected.
    censored
        Where nothing was detected: the concentration is at most `observed`.

    Examples
    --------
    >>> known = water_samples(50).observations()
    >>> known.names, bool((known.lower[~known.is_exact] == 0).all())
    (('arsenic', 'lead'), True)
    """

    distance: Float[np.ndarray, " N"]
    year: Float[np.ndarray, " N"]
    limit: Cells

    mark = "nondetect"
    explaining = ("distance", "year")

    def observations(self, rows: Any = slice(None)) -> Observations:
        """Return the bounds of the concentrations, `[0, limit]` where nothing was detected."""
        lower = np.where(self.censored, 0.0, self.observed)
        return Observations(lower, self.observed, self.names).rows(rows)


def water_samples(samples: int = 120, *, seed: int = 0, noise: float = 0.35) -> WaterSamples:
    """Simulate two substances in a river below a mine, measured with changing instruments.

    Both fall off downstream and over the years, together; their logarithms scatter by `noise`.
    Early samples have the highest of three detection limits.

    >>> world = water_samples(50)
    >>> bool((world.truth[world.censored] <= world.limit[world.censored]).all())
    True
    """
    rng = np.random.default_rng(seed)
    distance = np.round(rng.uniform(0, 40, samples), 1)
    year = np.sort(np.round(rng.uniform(2000, 2024, samples), 2))
    plume = 2.4 * np.exp(-((distance / 18) ** 2)) + 0.5 * np.sin(distance / 6)
    trend = -0.05 * (year - 2012)
    log = np.stack([0.4 + plume + trend, -0.2 + 0.8 * plume + 1.2 * trend], axis=1)
    truth = np.exp(log + noise * rng.standard_normal(log.shape))
    era = np.digitize(year, (2008, 2016))
    limit = np.repeat(np.array(DETECTION_LIMITS)[2 - era][:, None], 2, axis=1)
    censored, observed = truth < limit, np.maximum(truth, limit)
    return WaterSamples(("arsenic", "lead"), truth, observed, censored, distance, year, limit)


def _ar1(rng: np.random.Generator, n: int, series: int, memory: float = 12) -> Cells:
    """Return AR(1) noise of unit variance whose correlation falls to 1/e in `memory` steps."""
    kept = np.exp(-1 / memory)
    noise = rng.standard_normal((n, series))
    for t in range(1, n):
        noise[t] = kept * noise[t - 1] + np.sqrt(1 - kept**2) * noise[t]
    return noise


def _hour_of_day(time: Column) -> Float[np.ndarray, " N"]:
    return (time - time.astype("datetime64[D]")) / np.timedelta64(1, "h")


def _is_weekend(time: Column) -> Bool[np.ndarray, " N"]:
    return np.is_busday(time.astype("datetime64[D]"), weekmask="0000011")
