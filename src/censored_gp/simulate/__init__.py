"""Small worlds whose truth is known: bikes, car parks, a shop, a river, and the paper's table 1.

Plain numpy. A seed makes a world; the same seed makes the same world. Bikes are brought to
`STOCK_AFTER_REBALANCING` of the docks each night at the hour `TIME_OF_REBALANCING`.

>>> from censored_gp import simulate
>>> world = simulate.shop(days=7, seed=1)
>>> world.observations().shape
(7, 2)
>>> simulate.STOCK_AFTER_REBALANCING, simulate.TIME_OF_REBALANCING
(0.7, 4)
"""

from censored_gp.simulate.bikes import (
    STOCK_AFTER_REBALANCING,
    TIME_OF_REBALANCING,
    BikeShare,
    bike_share,
)
from censored_gp.simulate.chemistry import WaterSamples, water_samples
from censored_gp.simulate.pair import SyntheticPair, synthetic_pair
from censored_gp.simulate.parking import CarPark, car_park
from censored_gp.simulate.shop import Shop, shop

__all__ = [
    "STOCK_AFTER_REBALANCING",
    "TIME_OF_REBALANCING",
    "BikeShare",
    "CarPark",
    "Shop",
    "SyntheticPair",
    "WaterSamples",
    "bike_share",
    "car_park",
    "shop",
    "synthetic_pair",
    "water_samples",
]
