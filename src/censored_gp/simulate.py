"""Small worlds whose truth is known: a bike share that runs out of bikes, and the paper's table 1.

Plain numpy. A seed makes a world; the same seed makes the same world.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Shaped

from censored_gp.observations import Observations
from censored_gp.runtime import blas_threads_for

Cells: TypeAlias = Float[np.ndarray, "N D"]
Window: TypeAlias = tuple[float, float]

TIME_OF_REBALANCING = 4
STOCK_AFTER_REBALANCING = 0.7


@dataclass(frozen=True)
class BikeShare:
    """Hourly pickups at D stations: what was wanted, and what was seen of it."""

    names: tuple[str, ...]
    time: Shaped[np.ndarray, " N"]
    """Start of each hour, `datetime64[h]`."""
    rain: Float[np.ndarray, " N"]
    """1 in a wet hour, else 0."""
    rate: Cells
    """Expected demand."""
    demand: Cells
    """The truth: how many people came for a bike, `Poisson(rate)`."""
    supply: Cells
    """How many bikes there were to be had in the hour."""
    observed: Cells
    """Pickups, `min(demand, supply)`."""
    censored: Bool[np.ndarray, "N D"]
    """Where the station was empty in the end: demand was at least `observed`."""

    def inputs(self) -> dict[str, Shaped[np.ndarray, " N"]]:
        """Return the columns that explain demand: time and rain."""
        return {"time": self.time, "rain": self.rain}

    def observations(self) -> Observations:
        """Return what an operator knows of demand, as bounds."""
        upper = np.where(self.censored, np.inf, self.observed)
        return Observations(self.observed, upper, self.names)


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
    start: str = "2024-06-03",
) -> BikeShare:
    """Simulate a bike share in which bikes run out, so that pickups understate demand.

    Demand is Poisson with log rate = station + daily and weekly pattern - `rain_effect` in rain
    + a shock that all stations share + one of their own (both AR(1), given by their standard
    deviations). People also return bikes, fewer in the morning and more in the evening. A van
    fills every station to seven tenths of its `docks` each night. `busyness` is the demand per
    hour at the peak of a typical station.
    """
    rng = np.random.default_rng(seed)
    time = np.datetime64(start, "h") + np.arange(24 * days)
    rain = _wet_hours(rng, len(time))
    shocks = shared_shock * _persistent_noise(rng, len(time), 1)
    shocks = shocks + own_shock * _persistent_noise(rng, len(time), stations)
    size = busyness * np.exp(0.2 * rng.standard_normal(stations))
    pattern = _weekly_pattern(time, commuters=rng.uniform(0.6, 1.0, stations))
    rate = size * pattern * np.exp(shocks - rain_effect * rain[:, None])
    demand = rng.poisson(rate)
    returned = rng.poisson(rate * _return_ratio(time)[:, None])
    supply = _supply(time, demand, returned, docks)
    return BikeShare(
        names=tuple(f"station_{d + 1}" for d in range(stations)),
        time=time,
        rain=rain,
        rate=rate,
        demand=demand.astype(float),
        supply=supply.astype(float),
        observed=np.minimum(demand, supply).astype(float),
        censored=demand >= supply,
    )


@dataclass(frozen=True)
class SyntheticPair:
    """Two correlated outputs with input-dependent noise, drawn from the paper's own model."""

    names: tuple[str, ...]
    x: Float[np.ndarray, " N"]
    mean: Cells
    """The latent mean f."""
    scale: Cells
    """The standard deviation exp(g) of the noise."""
    truth: Cells
    """The outputs before censoring, `N(mean, scale²)`."""
    observed: Cells
    """The truth, or less where censored."""
    censored: Bool[np.ndarray, "N D"]

    def observations(self) -> Observations:
        """Return what was seen of the outputs, as bounds."""
        upper = np.where(self.censored, np.inf, self.observed)
        return Observations(self.observed, upper, self.names)


def synthetic_pair(
    n: int = 100,
    *,
    seed: int = 0,
    windows: tuple[Sequence[Window], Sequence[Window]] = (((1.3, 5.5),), ()),
    depth: float = 1.0,
    lengthscales: Sequence[float] = (0.7, 2.0),
    noise_lengthscales: Sequence[float] = (2.5,),
    correlation: float = 0.9,
    noise: float = 0.2,
    noise_spread: float = 0.5,
) -> SyntheticPair:
    """Draw the world of the paper's table 1: N equally spaced inputs on [0, 10], two outputs.

    `f = Σ_q A u_q` and `g = log(noise) + noise_spread Σ_q A v_q` are linear models of
    coregionalization (Eq. 4) over the mean and the log scale, with RBF kernels of the given
    lengthscales and `A Aᵀ = [[1, correlation], [correlation, 1]]`. The outputs are censored
    inside their `windows`. How far, the paper leaves open: here a censored value is the truth
    less a uniform amount on `[0, 2 depth]` standard deviations of its output.
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 10.0, n)
    mean = _coregionalized(rng, x, lengthscales, correlation)
    log_scale = _coregionalized(rng, x, noise_lengthscales, correlation)
    scale = noise * np.exp(noise_spread * log_scale)
    truth = mean + scale * rng.standard_normal((n, 2))
    censored = np.stack([_inside(x, spans) for spans in windows], axis=1)
    hidden = rng.uniform(0.0, 2.0 * depth, (n, 2)) * truth.std(axis=0)
    observed = np.where(censored, truth - hidden, truth)
    return SyntheticPair(("y1", "y2"), x, mean, scale, truth, observed, censored)


def _wet_hours(rng: np.random.Generator, n: int) -> Float[np.ndarray, " N"]:
    """Return 1 in wet hours: showers begin in one dry hour of 25 and last three hours or so."""
    wet = np.zeros(n)
    for t, u in enumerate(rng.uniform(size=n)):
        wet[t] = u < (0.7 if t and wet[t - 1] else 0.04)
    return wet


def _persistent_noise(rng: np.random.Generator, n: int, series: int) -> Cells:
    """Return AR(1) noise of unit variance that is forgotten in half a day."""
    memory = np.exp(-1 / 12)
    noise = rng.standard_normal((n, series))
    for t in range(1, n):
        noise[t] = memory * noise[t - 1] + np.sqrt(1 - memory**2) * noise[t]
    return noise


def _weekly_pattern(time: Shaped[np.ndarray, " N"], commuters: Float[np.ndarray, " D"]) -> Cells:
    """Return relative demand: commuting peaks on weekdays, a broad afternoon, quiet nights."""
    hour = _hour_of_day(time)
    weekend = np.is_busday(time.astype("datetime64[D]"), weekmask="0000011")
    commute = np.exp(-(((hour - 8) / 1.5) ** 2)) + 1.1 * np.exp(-(((hour - 17.5) / 2) ** 2))
    leisure = np.exp(-(((hour - 15) / 4) ** 2))
    share = np.where(weekend[:, None], 0.1, commuters)
    return 0.06 + share * commute[:, None] + 0.6 * (1.1 - share) * leisure[:, None]


def _return_ratio(time: Shaped[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return how many bikes come back per bike wanted: people leave in the morning."""
    hour = _hour_of_day(time)
    return 0.9 - 0.7 * np.exp(-(((hour - 8) / 3) ** 2)) + 0.2 * np.exp(-(((hour - 19) / 3) ** 2))


def _hour_of_day(time: Shaped[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    return (time - time.astype("datetime64[D]")).astype(float)


def _supply(
    time: Shaped[np.ndarray, " N"],
    demand: Shaped[np.ndarray, "N D"],
    returned: Shaped[np.ndarray, "N D"],
    docks: int,
) -> Shaped[np.ndarray, "N D"]:
    """Keep the books: bikes at the start of each hour plus those returned in it."""
    filled = round(STOCK_AFTER_REBALANCING * docks)
    stock = np.full(demand.shape[1], filled)
    supply = np.empty_like(demand)
    for t, hour in enumerate(_hour_of_day(time)):
        if hour == TIME_OF_REBALANCING:
            stock = np.full_like(stock, filled)
        supply[t] = stock + returned[t]
        # Bikes that find no dock go elsewhere.
        stock = np.minimum(supply[t] - np.minimum(demand[t], supply[t]), docks)
    return supply


def _coregionalized(
    rng: np.random.Generator,
    x: Float[np.ndarray, " N"],
    lengthscales: Sequence[float],
    correlation: float,
) -> Cells:
    """Draw two functions of unit variance from an LMC whose kernels all correlate them alike."""
    mixing = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    total = np.zeros((len(x), 2))
    for lengthscale in lengthscales:
        kernel = np.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2)
        with blas_threads_for(len(x)):
            values, vectors = np.linalg.eigh(kernel)
        # Rounding leaves tiny negative eigenvalues, which a Cholesky factor would refuse.
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        total += root @ rng.standard_normal((len(x), 2)) @ mixing.T
    return total / np.sqrt(len(lengthscales))


def _inside(x: Float[np.ndarray, " N"], spans: Sequence[Window]) -> Bool[np.ndarray, " N"]:
    inside = np.zeros(len(x), bool)
    for start, stop in spans:
        inside |= (x >= start) & (x <= stop)
    return inside
