"""Data sets to try models on: simulated, of the paper, and public ones to download.

`simulated` holds worlds whose truth is known (`censored_gp.simulate` is that module), `new_york`
the paper's two bike stations and its censoring rule, `public` data sets with real censoring, and
`download` where files lie and how they are fetched. No data come with the package: they are read
from `data_folder()`, or downloaded to it. Import the names below from here, and simulated worlds
from `censored_gp.simulate`. Nothing here loads JAX.

>>> from censored_gp import datasets
>>> datasets.NEW_YORK_FILE
'citibike_3711_366_2018.csv.gz'
"""

from censored_gp.datasets.download import data_folder, fetch
from censored_gp.datasets.new_york import NEW_YORK_FILE, CensoredDemand, censor, new_york
from censored_gp.datasets.public import birmingham_parking, citibike, fresh_retail

__all__ = [
    "NEW_YORK_FILE",
    "CensoredDemand",
    "birmingham_parking",
    "censor",
    "citibike",
    "data_folder",
    "fetch",
    "fresh_retail",
    "new_york",
]
