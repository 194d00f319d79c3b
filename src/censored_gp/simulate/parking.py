"""Car parks that fill up: who finds them full is counted nowhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.simulate.common import Cells, Times, hour_of_day, is_weekend, persistent_noise
from censored_gp.simulate.world import Demand, Table

OPEN = (8, 18)
"""First and last hour in which cars are counted."""


@dataclass(frozen=True)
class CarPark(Demand):
    """Cars in D car parks, hour by hour: how many would be there, and how many there are.

    >>> world = car_park(days=2, parks=2)
    >>> world.names, world.demand.shape
    (('park_1', 'park_2'), (22, 2))
    """

    names: tuple[str, ...]
    time: Times
    demand: Cells
    """The truth: cars that would be parked if there were room for all."""
    capacity: Float[np.ndarray, " D"]
    observed: Cells
    """Cars parked, `min(demand, capacity)`."""
    censored: Bool[np.ndarray, "N D"]
    """Where the car park was full."""

    mark = "capacity"

    def inputs(self) -> Table:
        """Return the column that explains demand: time."""
        return {"time": self.time}

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
    hours = np.datetime64(start, "h") + np.arange(24 * days)
    time = hours[(hour_of_day(hours) >= OPEN[0]) & (hour_of_day(hours) <= OPEN[1])]
    size = np.round(spaces * np.exp(0.3 * rng.standard_normal(parks)))
    shock = 0.12 * persistent_noise(rng, len(time), 1) + 0.08 * persistent_noise(
        rng, len(time), parks
    )
    peak = crowding * np.exp(0.1 * rng.standard_normal(parks))
    rate = size * peak * _occupancy(time)[:, None] * np.exp(shock)
    demand = np.round(rate + np.sqrt(rate) * rng.standard_normal(rate.shape)).clip(0)
    names = tuple(f"park_{d + 1}" for d in range(parks))
    return CarPark(names, time, demand, size, np.minimum(demand, size), demand >= size)


def _occupancy(time: Times) -> Float[np.ndarray, " N"]:
    """Return how full car parks are at each hour, one at the peak of a working day."""
    hour, weekend = hour_of_day(time), is_weekend(time)
    peak, height = np.where(weekend, 14.0, 12.5), np.where(weekend, 0.75, 1.0)
    return 0.1 + (height - 0.1) * np.exp(-(((hour - peak) / 3.2) ** 2))
