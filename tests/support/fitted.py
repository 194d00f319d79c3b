"""One small fitted model with every kind of cell, shared by the tests of pictures and reports."""

import functools
import warnings

import numpy as np

from censored_gp import CensoredGP, simulate
from censored_gp.kernels import RBF, Periodic

NAMES = ("<script>alert('x')</script> & $co$", "station_2")
"""A name as a user might have it who means no good."""
DAYS = 7


@functools.cache
def world():
    """The world behind the model."""
    return simulate.bike_share(days=DAYS, stations=2, seed=1)


def table():
    """Bounds of both outputs: exact, at least, at most, between and missing."""
    seen = world().observed.astype(float)
    lower, upper = seen.copy(), np.where(world().censored, np.inf, seen)
    lower[40:45, 0], upper[40:45, 0] = -np.inf, seen[40:45, 0] + 1
    lower[60:64, 0], upper[60:64, 0] = seen[60:64, 0], seen[60:64, 0] + 4
    lower[80:90, 0], upper[80:90, 0] = -np.inf, np.inf
    ends = {f"{name}_low": lower[:, d] for d, name in enumerate(NAMES)}
    ends |= {f"{name}_high": upper[:, d] for d, name in enumerate(NAMES)}
    values = {name: np.where(lower == upper, lower, np.nan)[:, d] for d, name in enumerate(NAMES)}
    return {"time": world().time, "rain": world().rain, **values, **ends}


@functools.cache
def model():
    """A heteroscedastic model of two outputs, stopped early: what is tested is how it is shown."""
    kernels = {
        "mean": [Periodic("1d", 0.8, columns=["time"]), RBF("1d", columns=["time"]),
                 RBF(0.5, columns=["rain"])],
        "scale": [Periodic("1d", 1.0, columns=["time"])],
    }  # fmt: skip
    settings = {"max_iterations": 4, "max_inducing": 32, "hyperparameters": "fixed"}
    made = CensoredGP(kernels=kernels, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(
            table(),
            outputs=list(NAMES),
            time="time",
            inputs=["rain"],
            lower=[f"{name}_low" for name in NAMES],
            upper=[f"{name}_high" for name in NAMES],
        )
