"""Water samples with concentrations below what the laboratory can detect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.data.observations import Observations
from censored_gp.simulate.common import Cells
from censored_gp.simulate.world import Table, World

LIMITS = (0.5, 1.0, 2.0)
"""Detection limits over which the laboratory's instruments got better, newest first."""


@dataclass(frozen=True)
class WaterSamples(World):
    """Concentrations of D substances along a river: what is in the water, and what was reported.

    >>> known = water_samples(50).observations()
    >>> known.names, bool((known.lower[~known.is_exact] == 0).all())
    (('arsenic', 'lead'), True)
    """

    names: tuple[str, ...]
    distance: Float[np.ndarray, " N"]
    """Kilometres downstream of the source."""
    year: Float[np.ndarray, " N"]
    truth: Cells
    """The truth, in micrograms per litre."""
    limit: Cells
    """Detection limit of the day."""
    observed: Cells
    """The concentration, or the limit where nothing was detected."""
    censored: Bool[np.ndarray, "N D"]
    """Where nothing was detected: the concentration is at most `observed`."""

    mark = "nondetect"

    def inputs(self) -> Table:
        """Return the columns that explain concentrations: distance and year."""
        return {"distance": self.distance, "year": self.year}

    def observations(self, rows: Any = slice(None)) -> Observations:
        """Return what is known of the concentrations (of some samples), as bounds."""
        lower = np.where(self.censored, 0.0, self.observed)
        return Observations(lower, self.observed, self.names).rows(rows)


def water_samples(samples: int = 120, *, seed: int = 0, noise: float = 0.35) -> WaterSamples:
    """Simulate two substances in a river below a mine, measured with changing instruments.

    Both fall off downstream and over the years, together; their logarithms scatter by `noise`.
    Early samples have the highest of three detection limits.

    >>> world = water_samples(50)
    >>> bool((world.truth[world.censored] <= world.limit[world.censored]).all())
    True
    """
    rng = np.random.default_rng(seed)
    distance = np.round(rng.uniform(0, 40, samples), 1)
    year = np.sort(np.round(rng.uniform(2000, 2024, samples), 2))
    plume = 2.4 * np.exp(-((distance / 18) ** 2)) + 0.5 * np.sin(distance / 6)
    trend = -0.05 * (year - 2012)
    log = np.stack([0.4 + plume + trend, -0.2 + 0.8 * plume + 1.2 * trend], axis=1)
    truth = np.exp(log + noise * rng.standard_normal(log.shape))
    era = np.digitize(year, (2008, 2016))
    limit = np.repeat(np.array(LIMITS)[2 - era][:, None], 2, axis=1)
    censored = truth < limit
    names = ("arsenic", "lead")
    return WaterSamples(
        names, distance, year, truth, limit, np.where(censored, limit, truth), censored
    )
