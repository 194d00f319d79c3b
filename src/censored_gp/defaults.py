"""Kernels for someone who has not chosen any: they decide more than the likelihood does.

A time column gets a part for every cycle that its spacing resolves and its span repeats (day, week,
year) and a slow part; every other column a smooth part of its own. Inputs without a time get one
smooth part over all columns together. Parameters other than means get the simpler half of this.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from censored_gp.inputs import Columns
from censored_gp.kernels import RBF, Kernel, Periodic
from censored_gp.kernels.spacing import spacing

HOURS = {"day": 24.0, "week": 168.0, "year": 8766.0}
STEPS_PER_CYCLE = 4
"""A cycle is resolved by at least this many observations of it, ..."""
REPEATS = 2
"""... and known to repeat if the data span it this often."""
SLOW_PARTS = 8
"""The slow part starts with a lengthscale of the span over this."""


def default_kernels(
    columns: Columns, inputs: Float[np.ndarray, "N C"], role: str
) -> tuple[Kernel, ...]:
    """Choose kernels and starting lengthscales from the training inputs alone."""
    times = [c for c, is_time in enumerate(columns.is_time) if is_time]
    # The 0/1 columns of one input in words share a kernel.
    others = [places for places in columns.groups.values() if not columns.is_time[places[0]]]
    if not times:
        return (RBF().resolve(columns).fill_lengthscales(inputs),)
    chosen = [kernel for c in times for kernel in _time_kernels(c, inputs[:, c], role)]
    if role == "mean":
        chosen += [RBF(columns=c) for c in others if np.any(np.ptp(inputs[:, c], axis=0) > 0)]
    return tuple(kernel.resolve(columns).fill_lengthscales(inputs) for kernel in chosen)


def _time_kernels(column: int, hours: Float[np.ndarray, "N"], role: str) -> list[Kernel]:
    """Return the cycles of a time column and a slow part; but for means only the shortest cycle.

    An observation says far less of its noise than of its mean, and a flexible noise would make
    itself nought wherever the mean happens to meet the data (counts of zero at night).
    """
    span, step = float(np.ptp(hours)), spacing(hours)
    cycles: list[Kernel] = [
        Periodic(period, columns=column)
        for period in HOURS.values()
        if REPEATS * period <= span + step and STEPS_PER_CYCLE * step <= period
    ]
    if role != "mean" and cycles:
        return cycles[:1]
    slow = max(span / SLOW_PARTS, 2.5 * step) or 1.0
    return [*cycles, RBF(slow, columns=column)]
