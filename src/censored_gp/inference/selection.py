"""Which of several models to keep, where the data may be too few for the largest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from censored_gp.inference.report import Report
from censored_gp.inference.task import Task
from censored_gp.model import Model, coefficients
from censored_gp.posterior import Posterior

__all__ = ["best_fit"]

UNFINISHED = "The fit was interrupted before a model of more latent functions was tried."


def best_fit(
    run: Callable[..., tuple[Posterior, Report]],
    task: Task,
    models: Sequence[Model],
    settings: Any = None,
) -> tuple[Posterior, Report]:
    """Fit models by an engine; return that of the highest bound less its coefficients.

    This is Akaike's criterion, for models that differ in how many coefficients they have.
    """
    fits: list[tuple[Posterior, Report]] = []
    for model in models:
        try:
            fits.append(run(dataclasses.replace(task, model=model), settings))
        except KeyboardInterrupt:
            # What was fitted before is whole.
            if not fits:
                raise
            last = dataclasses.replace(fits[-1][1], status="interrupted", message=UNFINISHED)
            fits[-1] = (fits[-1][0], last)
        if fits[-1][1].status == "interrupted":
            break
    return max(fits, key=_merit)


def _merit(fit: tuple[Posterior, Report]) -> float:
    posterior, report = fit
    return report.elbo - coefficients(posterior.model) if np.isfinite(report.elbo) else -np.inf
