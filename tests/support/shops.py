"""A small fleet of shops, for tests and for the processes that they start."""

import numpy as np
import pandas as pd

from censored_gp import CGP, fit_many
from censored_gp.kernels import RBF, Periodic

HOURS = 27


def shops(names="abcde"):
    """A row for each shop and hour; what was sold, and whether it sold out."""
    tables = []
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        hours = np.arange(HOURS)
        demand = 5.0 + 2.0 * np.sin(hours / 12 * np.pi) + 0.5 * rng.normal(size=HOURS)
        limit = np.where(hours % 3 == 0, 6.0, 20.0)
        tables.append(
            pd.DataFrame(
                {
                    "shop": name,
                    "time": pd.date_range("2024-06-03", periods=HOURS, freq="h"),
                    "sold": np.minimum(demand, limit),
                    "out": demand > limit,
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def model(**settings):
    """A model that is quick to fit, in other processes as well."""
    kernels = [Periodic(24.0, columns="time"), RBF(24.0, columns="time")]
    return CGP(kernels=kernels, random_state=0, **({"hyperparameters": "fixed"} | settings))


def fit_shops(data, folder, by="shop", series=None, n_jobs=1, samples=50, progress=False, **more):
    """Fit the fleet."""
    return fit_many(
        data, model(**more), save=folder, by=by, series=series, n_jobs=n_jobs, samples=samples,
        progress=progress, outputs="sold", time="time", censored="out", periods=3, probability=0.8,
    )  # fmt: skip
