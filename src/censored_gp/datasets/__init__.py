"""Real data sets, read from a folder or downloaded: none of them comes with the package."""

from censored_gp.datasets.areas import car_parks, hub_pairs, hubs
from censored_gp.datasets.demand import (
    CensoredDemand,
    LimitedDemand,
    censor,
    probability_of_running_out,
)
from censored_gp.datasets.folder import FOLDER_VARIABLE, data_folder
from censored_gp.datasets.stations import (
    NEW_YORK_FILE,
    NEW_YORK_SPLIT,
    NEW_YORK_START,
    new_york,
    new_york_2016,
)

__all__ = [
    "FOLDER_VARIABLE",
    "NEW_YORK_FILE",
    "NEW_YORK_SPLIT",
    "NEW_YORK_START",
    "CensoredDemand",
    "LimitedDemand",
    "car_parks",
    "censor",
    "data_folder",
    "hub_pairs",
    "hubs",
    "new_york",
    "new_york_2016",
    "probability_of_running_out",
]
