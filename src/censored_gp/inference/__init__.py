"""Engines: a task (model, observations, inputs) becomes a posterior; each is one file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from censored_gp.inference.posterior import Posterior
from censored_gp.inference.result import FitResult, Task

ENGINES = ("natural", "svi", "nuts")
"""Each is a module of this package with ``fit(task, settings) -> (posterior, report)``."""

__all__ = ["ENGINES", "FitResult", "Task", "infer"]


def infer(engine: str, task: Task, settings: Any = None) -> tuple[Posterior, FitResult]:
    """Run an engine by name, with settings of its own kind or its defaults."""
    if engine not in ENGINES:
        raise ValueError(f"found engine={engine!r}; accepted are {', '.join(map(repr, ENGINES))}")
    # Imported when asked for: an engine's optional dependencies are needed by its users only.
    return import_module(f"censored_gp.inference.{engine}").fit(task, settings)
