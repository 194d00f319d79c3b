"""Settings of the estimator and of its engine, checked before any computing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from censored_gp.data.errors import not_among
from censored_gp.inference import Engine, Task, find_engine
from censored_gp.inference.hyperparameters import POINTS, mixes
from censored_gp.inference.natural import NaturalSettings
from censored_gp.model.starting_values import ROLES

POSITIVE = Interval(Integral, 1, None, closed="left")

# What the parameters of `CensoredGP` may be, as scikit-learn's estimators declare it.
#
# Likelihoods, kernels and substitution are checked when the outputs and inputs are known.
CONSTRAINTS: dict[str, Any] = {
    "likelihood": "no_validation",
    "kernels": "no_validation",
    "coupled": ["boolean", Mapping],
    "heteroscedastic": ["boolean"],
    "use_censoring": ["boolean"],
    "rank": [POSITIVE, Mapping, None],
    "engine": [str, callable, Engine],
    "max_iterations": [POSITIVE, None],
    "engine_settings": "no_validation",
    "inducing_tolerance": [Interval(Real, 0, 1, closed="left")],
    "max_inducing": [POSITIVE],
    "hyperparameters": [StrOptions({"auto", "mixed", "given", "fixed"})],
    "substitution": "no_validation",
    "random_state": ["random_state"],
    "progress": ["boolean", callable],
}


def check_settings(model: Any) -> Any:
    """Check the parameters of an estimator; return the settings of its engine."""
    model._validate_params()
    for name, constraint in (("coupled", ["boolean"]), ("rank", [POSITIVE, None])):
        given = getattr(model, name)
        for role, values in given.items() if isinstance(given, Mapping) else ():
            if role not in ROLES:
                raise not_among(name, role, ROLES, ", if it is a dict by role")
            for value in values if isinstance(values, list | tuple) else [values]:
                what = f"{name}[{role!r}]"
                validate_parameter_constraints({what: constraint}, {what: value}, "CensoredGP")
    return engine_settings(
        model.engine, model.engine_settings, model.max_iterations, model.random_state
    )


def engine_settings(
    engine: Any, given: Any = None, max_iterations: int | None = None, random_state: Any = None
) -> Any:
    """Return the settings of an engine: as given, then `max_iterations` and a seed, then defaults.

    An engine that declares no class of settings is given what the user gives.
    """
    kind = find_engine(engine).settings
    names = {field.name for field in dataclasses.fields(kind)} if kind is not None else set()
    if max_iterations is not None and not names & {"max_iterations", "natural"}:
        raise ValueError(f"`max_iterations` is no setting of the engine {engine!r}.")
    if kind is None:
        return given
    if not isinstance(given, Mapping | None):
        raise ValueError(f"`engine_settings` must be a dict or None, got {given!r}.")
    chosen = dict(given or {})
    if "seed" in names:
        chosen.setdefault("seed", int(check_random_state(random_state).randint(2**31 - 1)))
    if max_iterations is not None and "max_iterations" in names:
        chosen.setdefault("max_iterations", max_iterations)
    elif max_iterations is not None:
        # A sampler takes its hyper-parameters from this engine, whose steps can be limited.
        chosen["natural"] = {"max_iterations": max_iterations, **(chosen.get("natural") or {})}
    return _build(kind, chosen)


def _build(kind: Any, chosen: dict[str, Any]) -> Any:
    """Return settings of a class from some of its fields, each of the type of its default."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    for unknown in set(chosen) - set(defaults):
        raise not_among("engine_settings", unknown, defaults)
    constraints = {name: _constraint(name, default) for name, default in defaults.items()}
    validate_parameter_constraints(constraints, chosen, kind.__name__)
    if isinstance(chosen.get("natural"), Mapping):
        chosen = {**chosen, "natural": _build(find_engine("natural").settings, chosen["natural"])}
    return kind(**chosen)


def _constraint(name: str, default: Any) -> Any:
    zero = name in ("seed", "tolerance", "tolerance_per_cell", "warm_up", "warmup", "points")
    if isinstance(default, bool):
        return ["boolean"]
    if isinstance(default, int):
        return [Interval(Integral, int(not zero), None, closed="left")]
    if isinstance(default, float):
        return [Interval(Real, 0, None, closed="left" if zero else "neither")]
    return "no_validation"


def with_points(chosen: Any, hyperparameters: str, engine: Any, task: Task) -> Any:
    """Return settings of an engine with design points, where `hyperparameters` asks for them."""
    if mixes(hyperparameters, engine, task):
        chosen = dataclasses.replace(chosen, points=chosen.points or POINTS)
    if engine == "natural":
        hold, optional = (hyperparameters == name for name in ("given", "auto"))
        prior = chosen.prior or hyperparameters != "fixed"
        chosen = dataclasses.replace(chosen, prior=prior, hold=hold, optional=optional)
    elif engine == "nuts" and hyperparameters == "given":
        before = dataclasses.replace(chosen.natural or NaturalSettings(), hold=True)
        chosen = dataclasses.replace(chosen, natural=before)
    return chosen


def seed_of(*candidates: Any) -> int | np.random.Generator:
    """Return a seed from the first candidate that is not None."""
    chosen = next((each for each in candidates if each is not None), None)
    if isinstance(chosen, np.random.Generator):
        return chosen
    return int(check_random_state(chosen).randint(2**31 - 1))
