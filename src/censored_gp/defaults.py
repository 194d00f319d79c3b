"""Kernels for someone who has not chosen any: they decide more than the likelihood does.

A time column gets a part for every cycle that its spacing resolves and its span repeats (day, week,
year) and a slow part; every other column a smooth part of its own. Inputs without a time get one
smooth part over all columns together. Parameters other than means get the simpler half of this.
Means may get one more part over time, faster or slower, if the observations ask for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from censored_gp.inputs import Columns
from censored_gp.kernels import RBF, Kernel, Periodic
from censored_gp.kernels.spacing import spacing
from censored_gp.model import Cycle

HOURS = {"day": 24.0, "week": 168.0, "year": 8766.0}
STEPS_PER_CYCLE = 4
"""A cycle is resolved by at least this many observations of it, ..."""
REPEATS = 2
"""... and known to repeat if the data span it this often."""
SLOW_PARTS = 8
"""The slow part starts with a lengthscale of the span over this."""
FAST_STEPS = 4
"""A fast part starts with a lengthscale of so many steps, ..."""
LENGTHS_CARRIED = 2
"""... more if there are more than so many lengthscales for each inducing input (which then carry
five sixths of its variance), ..."""
FASTER = 4
"""... where the slow part is at least so many times as long."""

MOST_BUMPS = 8
"""Parts of a cycle whose nuggets differ, ..."""
LEAST_BUMPS = 3
"""... with fewer of which there is no cycle to speak of; ..."""
ROWS_A_BUMP = 80
"""... each with at least so many rows to tell its size from."""


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
    cycles: list[Kernel] = [Periodic(period, columns=column) for period in _cycles(hours)]
    if role != "mean" and cycles:
        return cycles[:1]
    return [*cycles, RBF(_slow(hours), columns=column)]


def _cycles(hours: Float[np.ndarray, "N"]) -> list[float]:
    """Return the periods that the spacing of hours resolves and their span repeats."""
    if not len(hours):
        return []
    span, step = float(np.ptp(hours)), spacing(hours)
    return [
        period
        for period in HOURS.values()
        if REPEATS * period <= span + step and STEPS_PER_CYCLE * step <= period
    ]


def default_nugget(columns: Columns, inputs: Float[np.ndarray, "N C"]) -> Cycle:
    """Return over what a nugget of means may change: the shortest cycle of time, if there is one.

    That is what the noise of other families has.
    """
    times = [c for c, is_time in enumerate(columns.is_time) if is_time]
    hours = inputs[:, times[0]] if times else np.zeros(0)
    for period in _cycles(hours)[:1]:
        phase = hours / period % 1.0
        for bumps in range(MOST_BUMPS, LEAST_BUMPS - 1, -1):
            nearest = np.floor(phase * bumps + 0.5).astype(int) % bumps
            if np.bincount(nearest, minlength=bumps).min() >= ROWS_A_BUMP:
                return Cycle(times[0], period, bumps)
    return Cycle()


def _slow(hours: Float[np.ndarray, "N"]) -> float:
    """Return the lengthscale at which a slow part of time starts."""
    return max(float(np.ptp(hours)) / SLOW_PARTS, 2.5 * spacing(hours)) or 1.0


def spare_kernels(
    columns: Columns, inputs: Float[np.ndarray, "N C"], most_inducing: int
) -> tuple[Kernel, ...]:
    """Return parts of the first time column of which the means may get one: fast, middling, slow.

    There are none where time is too short for a fast part to differ from the slow one, or so long
    that inducing inputs would leave too much out of any that does.
    """
    times = [c for c, is_time in enumerate(columns.is_time) if is_time]
    if not times:
        return ()
    hours = inputs[:, times[0]]
    steps = max(FAST_STEPS, len(np.unique(hours)) / (LENGTHS_CARRIED * most_inducing))
    slow, fast = _slow(hours), steps * spacing(hours)
    if not 0.0 < FASTER * fast <= slow:
        return ()
    lengths = (fast, float(np.sqrt(fast * slow)), slow)
    return tuple(RBF(length, columns=times[0]).resolve(columns) for length in lengths)


def freedom_of(
    kernels: Any, columns: Columns, inputs: Float[np.ndarray, "N C"], most_inducing: int
) -> dict[str, Any]:
    """Return what a fit may change of kernels that nobody has chosen, as arguments of a `Task`."""
    if kernels is not None:
        return {}
    return {"explore": True, "spare": spare_kernels(columns, inputs, most_inducing)}
