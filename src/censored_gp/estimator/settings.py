"""What the estimator is given: inputs and settings, checked before any computing."""

from __future__ import annotations

import dataclasses
import datetime
import numbers
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args, get_type_hints

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from censored_gp.data.errors import listed
from censored_gp.data.inputs import Columns, read_inputs
from censored_gp.data.tables import Table, is_missing, shape_of
from censored_gp.inference import ENGINES
from censored_gp.likelihoods import Likelihood, as_likelihood
from censored_gp.model.starting_values import (
    ROLES,
)


def validated_inputs(
    estimator: BaseEstimator, X: Any, columns: Columns | None = None
) -> tuple[Float[np.ndarray, "N C"], Columns]:
    """Read inputs in scikit-learn's way: names and number of columns are kept and compared.

    A flat array of numbers could be one row or one column, and is refused; a flat array of times
    is one column.
    """
    _refuse_unreadable(X)
    shape = shape_of(X, "Input")
    if isinstance(X, Mapping | Table) or len(shape) == 1:
        return _flat_or_mapping(estimator, X, columns)
    if len(shape) == 2 and shape[1] == 0:
        raise ValueError(
            f"Inputs: found 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
    validate_data(estimator, X, reset=columns is None, skip_check_array=True)
    return read_inputs(X, columns)


def refuse_without_outputs(given: Mapping[str, Any]) -> None:
    """Refuse names of columns where no outputs are named."""
    named = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    if named:
        raise ValueError(
            f"Found {', '.join(named)} but no outputs=... Accepted with names of columns is a "
            "table whose outputs are named, too; with arrays, X and y alone."
        )


def refuse_y(y: Any) -> None:
    """Refuse outputs that are given beside the names of outputs in a table."""
    if y is not None:
        raise ValueError(
            "Found y and outputs=... as well. Accepted is one: inputs X with outputs y, or a table "
            "X with outputs=... naming its columns."
        )


def _flat_or_mapping(
    estimator: Any, X: Any, columns: Columns | None
) -> tuple[Float[np.ndarray, "N C"], Columns]:
    if not isinstance(X, Mapping | Table) and not any(read_inputs(X)[1].is_time):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {len(X)} number(s) as inputs. Reshape your "
            "data with .reshape(-1, 1) if it has one column, .reshape(1, -1) if it has one row."
        )
    inputs, known = read_inputs(X, columns)
    if columns is None:
        estimator.n_features_in_ = len(known.groups)
        vars(estimator).pop("feature_names_in_", None)
        if known.named:
            estimator.feature_names_in_ = np.array(list(known.groups), dtype=object)
    return inputs, known


def _refuse_unreadable(X: Any) -> None:
    """Refuse what no column can be made of, in the words scikit-learn's users know."""
    if hasattr(X, "tocsr"):
        raise TypeError(
            "Inputs: found sparse data. Accepted are dense arrays and data frames: use .toarray()."
        )
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise ValueError("Inputs: Complex data not supported. Accepted are real numbers.")
    if isinstance(X, np.ndarray) and X.dtype == object:
        for (row, *column), value in np.ndenumerate(X):
            if not (isinstance(value, READABLE) or is_missing(value)):
                raise TypeError(
                    f"Input column {column[0] if column else 0}, row {row}: found {value!r} "
                    f"({type(value).__name__}). An argument must be a time, a string that reads as "
                    "a number, or a number."
                )


READABLE = (str, bytes, numbers.Number, np.generic, datetime.date, datetime.timedelta)


def likelihood_of_each(likelihood: Any, names: tuple[str, ...]) -> tuple[Likelihood, ...]:
    """Return one likelihood for each output: one for all, one each, or by name of the output."""
    if isinstance(likelihood, str | Likelihood):
        return (as_likelihood(likelihood),) * len(names)
    if isinstance(likelihood, Mapping):
        unknown, absent = set(likelihood) - set(names), set(names) - set(likelihood)
        if unknown or absent:
            raise ValueError(
                f"likelihood: found {listed(map(str, likelihood))}. Accepted is one for each "
                f"output by name: {listed(names)}."
            )
        likelihood = [likelihood[name] for name in names]
    if not isinstance(likelihood, Sequence) or len(likelihood) != len(names):
        raise ValueError(
            f"likelihood: found {likelihood!r}. Accepted is a name or a Likelihood for all "
            f"outputs, or one for each of the {len(names)} ({listed(names)}) in a list or a dict."
        )
    return tuple(map(as_likelihood, likelihood))


def engine_of(engine: Any) -> Callable[..., Any]:
    """Return the function that an engine is, from its name or as it was given."""
    if callable(engine):
        return engine
    if engine not in ENGINES:
        raise ValueError(
            f"engine: found {engine!r}. Accepted are {listed(ENGINES)}, or a function "
            "fit(task, settings) of your own."
        )
    # Imported when asked for: an engine's optional dependencies are needed by its users only.
    return import_module(f"censored_gp.inference.{engine}").fit


def engine_settings(engine: Any, max_iterations: Any, given: Any, random_state: Any) -> Any:
    """Return the settings of an engine, of the class that the signature of its `fit` names.

    What is not given keeps its default; `max_iterations` and `random_state` stand for fields that
    are not given. Without a class there are no settings: None.
    """
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    kind = _settings_class(_hints(engine_of(engine)).get("settings"))
    if max_iterations is not None:
        _check_whole("max_iterations", max_iterations)
    if kind is None:
        _refuse_settings(engine, max_iterations, given)
        return None
    settings = _made(kind, given, engine)
    fields, said = dataclasses.fields(kind), _said(settings, given)
    if "seed" in (field.name for field in fields) and "seed" not in said:
        # An object has a seed, if only by default, and need not change from run to run.
        kept = isinstance(given, kind) and random_state is None
        settings = settings if kept else dataclasses.replace(settings, seed=seed)
    if max_iterations is not None and "max_iterations" not in said:
        settings = _with_most(settings, max_iterations, engine)
    _check_values(settings)
    return settings


def _hints(thing: Any) -> dict[str, Any]:
    try:
        return get_type_hints(thing)
    except TypeError:  # a partial function, or an object that can be called
        return {}
    except NameError as error:
        raise ValueError(
            f"engine: the types that {thing.__qualname__} names could not be found ({error}). "
            "Accepted are names of its own module."
        ) from error


def _settings_class(hint: Any) -> Any:
    """Return the dataclass that a type hint such as `Settings | None` names, if it does."""
    return next((k for k in (hint, *get_args(hint)) if dataclasses.is_dataclass(k)), None)


def _refuse_settings(engine: Any, max_iterations: Any, given: Any) -> None:
    """Refuse settings of an engine that has none."""
    found = {"max_iterations": max_iterations, "engine_settings": given}
    for name, value in found.items():
        if value is not None and value != {}:
            raise ValueError(f"{name}: found {value!r}, but the engine {engine!r} has no settings.")


def _made(kind: Any, given: Any, engine: Any) -> Any:
    """Return settings from a dict of some, from such settings themselves, or from nothing."""
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(
            f"engine_settings: found {given!r}. Accepted is a dict, a {kind.__name__} or None."
        )
    changes, fields = dict(given or {}), [field.name for field in dataclasses.fields(kind)]
    unknown = [name for name in changes if name not in fields]
    if unknown:
        raise ValueError(
            f"engine_settings: found {listed(map(str, unknown))}. The engine {engine!r} has "
            f"{listed(fields)}."
        )
    for name, value in changes.items():
        inner = _settings_class(_hints(kind)[name])
        if inner is not None and value is not None:
            changes[name] = _made(inner, value, name)
    return kind(**changes)


def _said(settings: Any, given: Any) -> set[str]:
    """Return the names of settings that were given: of an object, those that are no defaults."""
    if isinstance(given, Mapping) or given is None:
        return set(map(str, given or {}))
    fields = dataclasses.fields(settings)
    return {f.name for f in fields if not _same(getattr(settings, f.name), f.default)}


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _with_most(settings: Any, most: int, engine: Any) -> Any:
    """Return settings with at most so many steps, which may be those of a first part."""
    fields = [field.name for field in dataclasses.fields(settings)]
    if "max_iterations" in fields:
        return dataclasses.replace(settings, max_iterations=most)
    if "natural" in fields:
        # A sampler takes its hyper-parameters from this engine, whose steps can be limited.
        inner = settings.natural or _settings_class(_hints(type(settings))["natural"])()
        same = "max_iterations" in _said(inner, inner)
        changed = inner if same else dataclasses.replace(inner, max_iterations=most)
        return dataclasses.replace(settings, natural=changed)
    raise ValueError(
        f"max_iterations: found {most}, but the engine {engine!r} has no such setting. It has "
        f"{listed(fields)}: give these as engine_settings."
    )


def _check_values(settings: Any) -> None:
    """Refuse values that are not of the kind of their defaults."""
    for field in dataclasses.fields(settings):
        value, name = getattr(settings, field.name), f"engine_settings, {field.name}"
        if dataclasses.is_dataclass(value):
            _check_values(value)
        elif isinstance(field.default, bool):
            _check_switch(name, value)
        elif isinstance(field.default, int):
            _check_whole(name, value, least=int(field.name not in MAY_BE_ZERO))
        elif isinstance(field.default, float):
            _check_positive(name, value, field.name in MAY_BE_ZERO)


MAY_BE_ZERO = ("seed", "tolerance", "tolerance_per_cell", "warm_up", "warmup")
"""Settings of engines that need not be positive."""


def _check_positive(name: str, value: Any, zero: bool) -> None:
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or not (0 < float(value) < np.inf or (zero and float(value) == 0)):
        accepted = "0 or more" if zero else "greater than 0"
        raise ValueError(f"{name}: found {value!r}. Accepted is a number, {accepted}.")


def _check_whole(name: str, value: Any, least: int = 1) -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:
        raise ValueError(f"{name}: found {value!r}. Accepted is a whole number, {least} or more.")


def _check_switch(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}: found {value!r}. Accepted is True or False.")


def _by_role(name: str, value: Any) -> list[Any]:
    """Return a setting, or what it is for each role, if it is a dict of these."""
    if not isinstance(value, Mapping):
        return [value]
    unknown = [role for role in value if role not in ROLES]
    if unknown:
        raise ValueError(
            f"{name}: found the role {unknown[0]!r}. Accepted are {', '.join(map(repr, ROLES))}."
        )
    return list(value.values())


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of an estimator that mean nothing, whatever the data."""
    for name in ("heteroscedastic", "use_censoring"):
        _check_switch(name, settings[name])
    for switch in _by_role("coupled", settings["coupled"]):
        _check_switch("coupled", switch)
    for given in _by_role("rank", settings["rank"]):
        for rank in given if isinstance(given, list | tuple) else [given]:
            if rank is not None:
                _check_whole("rank", rank)
    tolerance = settings["inducing_tolerance"]
    if not isinstance(tolerance, numbers.Real) or not 0 <= float(tolerance) < 1:
        raise ValueError(
            f"inducing_tolerance: found {tolerance!r}. Accepted is a number from 0 (exact where "
            "max_inducing allows) to less than 1."
        )
    _check_whole("max_inducing", settings["max_inducing"])


def check_probability(probability: Any) -> None:
    """Refuse what is no probability of an interval.

    >>> check_probability(95)
    Traceback (most recent call last):
    ...
    ValueError: probability: found 95. Accepted is a number between 0 and 1; 95% is 0.95.
    """
    number = isinstance(probability, numbers.Real) and not isinstance(probability, bool)
    if not number or not 0 < float(probability) < 1:
        percent = number and 1 < float(probability) < 100
        hint = f"; {probability:g}% is {probability / 100:g}" if percent else ", such as 0.9"
        raise ValueError(
            f"probability: found {probability!r}. Accepted is a number between 0 and 1{hint}."
        )
