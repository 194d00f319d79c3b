"""Data sets to try models on: simulated ones, and public ones to download.

`simulated` holds worlds whose truth is known (`censored_gp.simulate` is that module), `public` data
sets with real censoring. No data come with the package: they are downloaded to `data_folder()`.
Import the names below from here, and simulated worlds from `censored_gp.simulate`. Nothing here
loads JAX.

>>> from censored_gp import datasets
>>> datasets.birmingham_parking.__name__
'birmingham_parking'
"""

from censored_gp.datasets.public import birmingham_parking, data_folder, fresh_retail

__all__ = ["birmingham_parking", "data_folder", "fresh_retail"]
