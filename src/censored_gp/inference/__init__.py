"""Inference engines: from a task (model, observations, inputs) to a posterior.

`natural` (natural-gradient steps on the sites, the default), `svi` (the paper's stochastic
variational inference) and `nuts` (sampling) are the engines, one file each; an engine is a function
`fit(task, settings) -> (posterior, result)`. `lookup` has the tables in which rows are looked up,
`arrow` the arrow matrices of long series, `sites` the Gaussian sites of the cells, `elbo` the
evidence lower bound and its gradient, `fisher` the Fisher information of the hyper-parameters,
`hyperparameters` their prior and the design points that answers are mixed over, `model_search` the
choice of the rank and of a further kernel, `substitution` own demand where excess moves between
outputs, `posterior` the posterior with its marginals and draws, and `result` the task and its
outcome. Import `infer` (runs an engine, by name or as given), `find_engine` (with the class of its
settings), `Task` and `FitResult` from here, `Posterior` from `posterior`, `Sites` from `sites`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from censored_gp.data.errors import not_among
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.result import FitResult, Task
from censored_gp.model.compilation import heed_ctrl_c

# The names of the engines that are built in.
ENGINES = ("natural", "svi", "nuts")

__all__ = ["ENGINES", "Engine", "FitResult", "Task", "find_engine", "infer"]


class Engine(NamedTuple):
    """A function that fits, and the dataclass of its settings if it has any."""

    fit: Callable[..., tuple[Posterior, FitResult]]
    settings: Any = None


def find_engine(engine: Any) -> Engine:
    """Return an engine from its name, from a function of the user's own, or as it is."""
    if isinstance(engine, Engine):
        return engine
    if callable(engine):
        return Engine(cast(Callable[..., Any], engine))
    # Imported on demand: the optional dependencies of an engine are needed by its users only.
    if engine == "natural":
        from censored_gp.inference.natural import NaturalSettings, fit

        return Engine(fit, NaturalSettings)
    if engine == "svi":
        from censored_gp.inference.svi import SVISettings, fit

        return Engine(fit, SVISettings)
    if engine == "nuts":
        from censored_gp.inference.nuts import NutsSettings, fit

        return Engine(fit, NutsSettings)
    raise not_among("engine", engine, ENGINES, ", or a function")


def infer(engine: Any, task: Task, settings: Any = None) -> tuple[Posterior, FitResult]:
    """Run an engine with settings of its own kind, or its defaults."""

    def progress(stage: str, done: int, most: int, bound: float) -> None:
        task.progress(stage, done, most, bound)
        heed_ctrl_c()

    return find_engine(engine).fit(dataclasses.replace(task, progress=progress), settings)
