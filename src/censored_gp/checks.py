"""What the estimator is given: inputs and settings, checked before any computing."""

from __future__ import annotations

import dataclasses
import datetime
import numbers
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from censored_gp.defaults import default_kernels
from censored_gp.inference import ENGINES
from censored_gp.inputs import Columns, read_inputs
from censored_gp.kernels import Kernel
from censored_gp.likelihoods import Likelihood, as_likelihood
from censored_gp.model import Design
from censored_gp.tables import is_missing, listed, shape_of

__all__ = [
    "design_for",
    "engine_settings",
    "kernels_by_role",
    "likelihood_of_each",
    "refuse_without_outputs",
    "refuse_y",
    "validated_inputs",
]

ROLES = ("mean", "scale", "shape")


def validated_inputs(
    estimator: BaseEstimator, X: Any, columns: Columns | None = None
) -> tuple[Float[np.ndarray, "N C"], Columns]:
    """Read inputs in scikit-learn's way: names and number of columns are kept and compared.

    A flat array of numbers could be one row or one column, and is refused; a flat array of times
    is one column.
    """
    _refuse_unreadable(X)
    shape = shape_of(X, "Input")
    if isinstance(X, Mapping) or len(shape) == 1:
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
    if not isinstance(X, Mapping) and not any(read_inputs(X)[1].is_time):
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


def design_for(
    settings: Mapping[str, Any],
    likelihoods: tuple[Likelihood, ...],
    columns: Columns,
    inputs: Float[np.ndarray, "N C"],
) -> Design:
    """Put likelihoods and kernels together as an estimator's settings say, kernels in numbers.

    Inputs are looked at, outputs never.
    """
    present = [p.role for likelihood in likelihoods for p in likelihood.parameters]
    wanted = kernels_by_role(settings["kernels"], present, settings["heteroscedastic"])
    kernels = {
        role: default_kernels(columns, inputs, role)
        if given is None
        else tuple(k.resolve(columns).fill_lengthscales(inputs) for k in given)
        for role, given in wanted.items()
    }
    return Design(likelihoods, kernels, settings["coupled"], settings["rank"])


def kernels_by_role(
    kernels: Any, present: Sequence[str], heteroscedastic: bool
) -> dict[str, tuple[Kernel, ...] | None]:
    """Return the kernels asked for in each role; None: to be chosen, empty: the role is constant.

    Means vary. Scales vary if heteroscedastic, shapes only if kernels are given for them by name.
    """
    by_role = kernels if isinstance(kernels, Mapping) else dict.fromkeys(("mean", "scale"), kernels)
    unknown = [role for role in by_role if role not in ROLES]
    if unknown:
        raise ValueError(
            f"kernels: found the role(s) {listed(map(str, unknown))}. Accepted are {listed(ROLES)}."
        )
    wanted: dict[str, Any] = {"mean": None, "scale": None, "shape": ()} | dict(by_role)
    if not heteroscedastic:
        wanted |= {"scale": (), "shape": ()}
    return {role: _as_kernels(wanted[role], role) for role in ROLES if role in present}


def _as_kernels(kernels: Any, role: str) -> tuple[Kernel, ...] | None:
    if kernels is None:
        return None
    several = (kernels,) if isinstance(kernels, Kernel) else kernels
    good = isinstance(several, Sequence) and all(isinstance(kernel, Kernel) for kernel in several)
    if not good or isinstance(several, str) or (role == "mean" and not several):
        raise ValueError(
            f"kernels: found {kernels!r} for role {role!r}. Accepted is a Kernel, a list of them, "
            'a dict of these by role ("mean", "scale", "shape"), or None to have them chosen.'
        )
    return tuple(several)


def engine_settings(engine: Any, max_iterations: int | None, given: Any, seed: int) -> Any:
    """Return the settings of an engine; fields that are not given keep their defaults."""
    if engine not in ENGINES:
        raise ValueError(f"engine: found {engine!r}. Accepted are {listed(ENGINES)}.")
    module = vars(import_module(f"censored_gp.inference.{engine}"))
    kind = next(kind for name, kind in module.items() if name.lower() == f"{engine}settings")
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(
            f"engine_settings: found {given!r}. Accepted is a dict, a {kind.__name__} or None."
        )
    fields = [field.name for field in dataclasses.fields(kind)]
    changes = dict(given or {})
    if max_iterations is not None:
        _check_whole("max_iterations", max_iterations)
        changes.setdefault("max_iterations", max_iterations)
    unknown = [name for name in changes if name not in fields]
    if unknown:
        raise ValueError(
            f"engine_settings: found {listed(map(str, unknown))}. The engine {engine!r} has "
            f"{listed(fields)}."
        )
    if "seed" in fields:
        changes.setdefault("seed", seed)
    return kind(**changes)


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: found {value!r}. Accepted is a whole number, 1 or more.")


def check_rank(rank: Any) -> None:
    """Refuse a rank that is not a count."""
    if rank is not None:
        _check_whole("rank", rank)


def check_inducing(tolerance: Any, most: Any) -> None:
    """Refuse settings of the inducing inputs that mean nothing."""
    if not isinstance(tolerance, numbers.Real) or not 0 <= float(tolerance) < 1:
        raise ValueError(
            f"inducing_tolerance: found {tolerance!r}. Accepted is a number from 0 (exact where "
            "max_inducing allows) to less than 1."
        )
    _check_whole("max_inducing", most)
