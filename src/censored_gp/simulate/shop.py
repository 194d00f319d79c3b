"""A shop whose shelves run empty: sales stop where demand goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.simulate.common import Cells, Times, persistent_noise
from censored_gp.simulate.world import Demand, Table

WEEK = np.array([0.8, 0.8, 0.9, 1.0, 1.3, 1.5, 0.7])
"""Relative demand from Monday to Sunday."""


@dataclass(frozen=True)
class Shop(Demand):
    """Daily sales of D products: what people came for, and what was there for them.

    >>> world = shop(days=14)
    >>> list(world.inputs())
    ['time', 'promotion']
    """

    names: tuple[str, ...]
    time: Times
    promotion: Float[np.ndarray, " N"]
    """1 on days with a leaflet, else 0."""
    demand: Cells
    """The truth: how many pieces people came for."""
    stock: Cells
    """How many pieces there were in the morning."""
    observed: Cells
    """Sales, `min(demand, stock)`."""
    censored: Bool[np.ndarray, "N D"]
    """Where the shelf was empty in the evening."""

    mark = "sold_out"

    def inputs(self) -> Table:
        """Return the columns that explain demand: time and promotion."""
        return {"time": self.time, "promotion": self.promotion}


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
    week = WEEK[(time.astype(int) + 3) % 7]
    promotion = (rng.uniform(size=days) < 0.15).astype(float)
    drift = 0.2 * persistent_noise(rng, days, 1, memory=20)
    size = busyness * np.exp(0.3 * rng.standard_normal(products))
    expected = size * week[:, None]
    rate = expected * np.exp(drift + np.log(1.5) * promotion[:, None])
    demand = rng.poisson(rate * rng.gamma(12, 1 / 12, rate.shape)).astype(float)
    stock = rng.poisson(cover * expected).astype(float)
    names = tuple(f"product_{d + 1}" for d in range(products))
    return Shop(names, time, promotion, demand, stock, np.minimum(demand, stock), demand >= stock)
