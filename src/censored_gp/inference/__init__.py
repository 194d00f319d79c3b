"""Engines: a task (model, observations, inputs) becomes a posterior; each is one file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from censored_gp.inference.report import Report
from censored_gp.inference.task import Task
from censored_gp.posterior import Posterior

ENGINES = ("natural", "svi", "nuts")
"""Each is a module of this package with ``fit(task, settings) -> (posterior, report)``."""

__all__ = ["ENGINES", "Report", "Task", "infer"]


def infer(engine: str, task: Task, settings: Any = None) -> tuple[Posterior, Report]:
    """Run an engine by name, with settings of its own kind or its defaults."""
    if engine not in ENGINES:
        raise ValueError(f"found engine={engine!r}; accepted are {', '.join(map(repr, ENGINES))}")
    # Imported when asked for: an engine's optional dependencies are needed by its users only.
    return import_module(f"censored_gp.inference.{engine}").fit(task, settings)
