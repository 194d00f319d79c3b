"""Real data sets, read from a folder or downloaded: none of them comes with the package.

The folder is that of the environment variable `FOLDER_VARIABLE`. `NEW_YORK_FILE` is the paper's
file; of its rows from `NEW_YORK_START` on, `NEW_YORK_SPLIT` are for training, validation and test.

>>> from censored_gp import datasets
>>> datasets.FOLDER_VARIABLE, datasets.NEW_YORK_FILE
('CENSORED_GP_DATA', 'citibike_3711_366_2018.csv.gz')
>>> datasets.NEW_YORK_START, datasets.NEW_YORK_SPLIT
('2018-06-01T00', (732, 293, 440))
"""

from censored_gp.datasets.areas import car_parks, hub_pairs, hubs
from censored_gp.datasets.demand import (
    CensoredDemand,
    LimitedDemand,
    censor,
    probability_of_running_out,
    with_independent_limits,
)
from censored_gp.datasets.download import cache_folder, fetch
from censored_gp.datasets.folder import FOLDER_VARIABLE, data_folder
from censored_gp.datasets.public import birmingham_parking, fresh_retail
from censored_gp.datasets.stations import (
    NEW_YORK_FILE,
    NEW_YORK_SPLIT,
    NEW_YORK_START,
    new_york,
    new_york_2016,
    station_pairs,
    two_stations,
)
from censored_gp.datasets.trips import (
    StationHours,
    citibike,
    count_trips,
    four_stations,
    with_partner,
)

__all__ = [
    "FOLDER_VARIABLE",
    "NEW_YORK_FILE",
    "NEW_YORK_SPLIT",
    "NEW_YORK_START",
    "CensoredDemand",
    "LimitedDemand",
    "StationHours",
    "birmingham_parking",
    "cache_folder",
    "car_parks",
    "censor",
    "citibike",
    "count_trips",
    "data_folder",
    "fetch",
    "four_stations",
    "fresh_retail",
    "hub_pairs",
    "hubs",
    "new_york",
    "new_york_2016",
    "probability_of_running_out",
    "station_pairs",
    "two_stations",
    "with_independent_limits",
    "with_partner",
]
