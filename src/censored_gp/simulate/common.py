"""What the simulated worlds share: shapes, clocks and noise that lasts."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Shaped

Cells: TypeAlias = Float[np.ndarray, "N D"]
Times: TypeAlias = Shaped[np.ndarray, " N"]


def persistent_noise(rng: np.random.Generator, n: int, series: int, memory: float = 12) -> Cells:
    """Return AR(1) noise of unit variance that is forgotten in so many steps."""
    kept = np.exp(-1 / memory)
    noise = rng.standard_normal((n, series))
    for t in range(1, n):
        noise[t] = kept * noise[t - 1] + np.sqrt(1 - kept**2) * noise[t]
    return noise


def hour_of_day(time: Shaped[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return the hours since midnight."""
    return (time - time.astype("datetime64[D]")) / np.timedelta64(1, "h")


def is_weekend(time: Times) -> Shaped[np.ndarray, " N"]:
    """Tell which times are on a Saturday or Sunday."""
    return np.is_busday(time.astype("datetime64[D]"), weekmask="0000011")
