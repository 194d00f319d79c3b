"""Problems of the data that can be told from what a model was fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Shaped

from censored_gp.estimator.analysis.diagnose import of_censoring

__all__ = ["data_problems"]

MANY = 0.5
"""Share of missing cells that is worth a word."""


def data_problems(model: Any) -> list[str]:
    """Return what was found, in sentences: gaps in time, cells that say little, a fit that failed.

    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=50)
    >>> y[::3] = y[1::3] = np.nan
    >>> data_problems(CensoredGP(heteroscedastic=False).fit(X, y))
    ["Output 'y': 68% of its 50 rows are missing."]
    """
    times = model._clock() if any(model.columns_.is_time) else None
    found = [note for d in range(len(model.output_names_)) for note in _of_output(model, d)]
    # Who takes records at their word goes nowhere beyond them.
    found += of_censoring(model.observations_, times if model.use_censoring else None)
    if times is not None:
        found += _of_times(times)
    report = model.report_
    return found + ([] if report.converged else [report.message]) + list(report.notes)


def _of_output(model: Any, d: int) -> list[str]:
    known, name = model.observations_, model.output_names_[d]
    missing = float(known.is_missing[:, d].mean())
    found = []
    if missing > MANY:
        found.append(f"Output {name!r}: {missing:.0%} of its {len(known)} rows are missing.")
    values = known.lower[known.is_exact[:, d], d]
    if len(values) > 1 and np.ptp(values) == 0:
        found.append(f"Output {name!r}: all of its exact values are {values[0]:g}.")
    return found


def _of_times(times: Shaped[np.ndarray, " N"]) -> list[str]:
    """Return whether times are there twice, or whether some are left out."""
    distinct, counts = np.unique(times, return_counts=True)
    found = []
    if (counts > 1).any():
        first = np.datetime_as_string(distinct[counts > 1][0], unit="m").replace("T", " ")
        found.append(f"{int((counts > 1).sum())} times are there more than once, first {first}.")
    if len(distinct) < 3:
        return found
    steps = np.diff(distinct) / np.timedelta64(1, "s")
    usual = float(np.median(steps))
    gaps = steps > 1.5 * usual
    if gaps.any():
        at = int(np.argmax(np.where(gaps, steps, 0)))
        start = np.datetime_as_string(distinct[at], unit="m").replace("T", " ")
        found.append(
            f"Times are {_span(usual)} apart but for {int(gaps.sum())} gap(s); the longest is "
            f"{_span(steps[at])}, after {start}."
        )
    return found


def _span(seconds: float) -> str:
    for size, word in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            number = f"{seconds / size:.3g}"
            return f"{number} {word}{'' if number == '1' else 's'}"
    return f"{seconds:.3g} seconds"
