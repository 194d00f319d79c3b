"""Models in files: arrays in safetensors, all else as JSON in its header; no pickle.

A file names classes by a word from a fixed list (or one that `register` has added in this very
program), never by an import path, so that reading one runs nothing that it brings along. What it
holds is checked before anything is made of it: that it is ours, that this release can read it,
and that every byte is as it was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Shaped
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

import censored_gp
from censored_gp.data.tables import Table
from censored_gp.likelihoods import Likelihood
from censored_gp.model.compilation import keep_compiled_programs

FORMAT = "censored-gp model"


VERSION = 2
"""Raised when older releases could not read, or would misread, what is written."""


HEADER = "censored_gp"


KIND = "$"
"""The key that tells an encoded value from a plain dict; plain dicts are never written."""


HOMES = {
    "kernels": (
        *("Constant", "Linear", "Matern12", "Matern32", "Matern52", "Periodic", "Product", "RBF"),
        *("RationalQuadratic", "Sum", "White"),
    ),
    "likelihoods": (
        *("Bernoulli", "Beta", "Exponential", "Gamma", "Gaussian", "LogNormal"),
        *("NegativeBinomial", "PaperNegativeBinomial", "Poisson", "StudentT", "Weibull"),
    ),
    "likelihoods.links": ("Exp", "ExpAboveOne", "Identity", "Logistic", "Softplus"),
    "data.inputs": ("Columns",),
    "data.layout": ("Layout", "Rows"),
    "data.observations": ("Observations",),
    "model.model": ("Model", "Units"),
    "model.lmc": ("Nugget", "LMC"),
    "model.inducing": ("Inducing",),
    "inference.posterior": ("DrawnPosterior", "Posterior", "Weights", "Sites"),
    "inference.result": ("FitResult",),
    "inference.natural": ("NaturalSettings",),
    "inference.svi": ("SVISettings",),
    "inference.nuts": ("NutsSettings",),
}
"""The classes that a file may name, by the module they live in."""


MODULES = {name: f"censored_gp.{home}" for home, names in HOMES.items() for name in names}


OWN: dict[str, type] = {}
"""Classes that the user has registered."""


Class = TypeVar("Class", bound=type)


Arrays = dict[str, Shaped[np.ndarray, "..."]]


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted `CensoredGP` to a file; the file is there whole, or as it was before.

    >>> import tempfile
    >>> from censored_gp import CGP, load
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> path = save(model, tempfile.mkdtemp() + "/bikes.cgp")
    >>> bool(load(path).predict([[2.5]]) == model.predict([[2.5]]))
    True
    """
    _check_fitted(model)
    arrays: Arrays = {}
    state = {name: _encode(value, name, arrays) for name, value in _state(model).items()}
    content = json.dumps(state, allow_nan=False)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "package": censored_gp.__version__,
        "sha256": _digest(content, arrays),
        "content": content,
    }
    with replacing(path) as draft:
        draft.write_bytes(to_bytes(arrays, {HEADER: json.dumps(header)}))
    return Path(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the `CensoredGP` that a file holds, or say what is wrong with the file.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
    >>> _ = path.write_text("not a model")
    >>> load(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: ...notes.txt is not a model file of censored-gp, or was cut short...
    """
    path = Path(path)
    header, arrays = _read(path)
    _check_version(path, header)
    content = header.get("content", "")
    if header.get("sha256") != _digest(content, arrays):
        raise ValueError(f"{path} is damaged: its checksum is wrong. Take another copy, or save.")
    model = _estimator()()
    keep_compiled_programs()
    try:
        for name, value in json.loads(content).items():
            setattr(model, _checked_name(name), _decode(value, arrays))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds a model that does not fit together: {error}") from error
    return model


def register(kind: Class) -> Class:
    """Let files hold a class of your own, such as a kernel or a family; use it as a decorator.

    The class must be registered in the program that saves and in the one that loads. Its fields
    are written by name, and it is made anew from them.

    >>> from censored_gp.kernels import RBF
    >>> @register
    ... class Mine(RBF):
    ...     "A kernel of my own."
    """
    name = kind.__name__
    if name in MODULES or not _is_made_of_fields(kind):
        reason = "is the name of one of the package" if name in MODULES else "has no fields"
        raise ValueError(
            f"register: {name} {reason}. Accepted are classes with fields (dataclasses, named "
            "tuples, kernels, likelihoods, links) and a name of their own."
        )
    OWN[name] = kind
    return kind


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft beside a file, which takes its place when all went well and else is deleted.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answer.txt")
    >>> with replacing(path) as draft:
    ...     _ = draft.write_text("42")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('42', 1)
    """
    given = Path(path)
    if given.exists() and not given.is_file():
        # A device or a pipe has nothing that could be replaced, and often no other name.
        yield given
        return
    # A link keeps pointing to the file, whose contents are replaced.
    target = Path(os.path.realpath(given))
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        draft.touch()
        if target.exists():
            shutil.copymode(target, draft)
        yield draft
        _flush(draft)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Bring a file to the disk: after a power cut it must not be empty under its final name."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _estimator() -> type:
    """Return the class of the models, which lives above this module and uses it."""
    return import_module("censored_gp.estimator.censored_gp").CensoredGP


def _check_fitted(model: Any) -> None:
    if type(model) is not _estimator():
        raise ValueError(
            f"save: found a {type(model).__name__}. Accepted is a CensoredGP (the presets make "
            "one), not a class derived from it or a pipeline around it."
        )
    if not hasattr(model, "posterior_"):
        raise ValueError("save: found a model that is not fitted. Call fit first.")


def _state(model: Any) -> dict[str, Any]:
    """Return the attributes of a model; a function that shows progress is not part of it."""
    state = dict(vars(model))
    if callable(state.get("progress")):
        state["progress"] = False
    return state


def _checked_name(name: str) -> str:
    """Return the name of an attribute, if it is a setting or something that fitting leaves."""
    settings = _estimator()._get_param_names()
    if name in settings or (not name.startswith("__") and "_" in (name[0], name[-1])):
        return name
    raise ValueError(f"{name!r} is no attribute of a model")


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays; errors of the disk are passed on as they are."""
    with path.open("rb"):
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[HEADER])
            if header["format"] != FORMAT:
                raise KeyError(header["format"])
            # An array is read when the header says that it can be understood.
            names = file.keys() if header["version"] == VERSION else ()
            return header, {name: file.get_tensor(name) for name in names}
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a model file of censored-gp, or was cut short or damaged ({error}). "
            "Accepted are files that model.save(path) has written."
        ) from error


def _check_version(path: Path, header: dict[str, Any]) -> None:
    if header["version"] != VERSION:
        raise ValueError(
            f"{path} was written by censored-gp {header.get('package')} in version "
            f"{header['version']} of the format; this is censored-gp {censored_gp.__version__}, "
            f"which reads version {VERSION}. Use a release that reads it, or fit and save again."
        )


def _digest(content: str, arrays: Arrays) -> str:
    """Return a checksum of all that a file holds."""
    total = hashlib.sha256(content.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _encode(value: Any, where: str, arrays: Arrays) -> Any:
    """Return a value as JSON, its arrays put aside under names of their own."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        return _encode_array(value, where, arrays)
    if isinstance(value, Table):
        content = _encode_array(value.to_bytes(), where, arrays)
        return {KIND: "table", "content": content, "backend": value.backend}
    if type(value) in (tuple, list):
        items = [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return items if type(value) is list else {KIND: "tuple", "items": items}
    if type(value) is dict:
        pairs = [
            [_encode(k, where, arrays), _encode(v, f"{where}[{k!r}]", arrays)]
            for k, v in value.items()
        ]
        return {KIND: "dict", "items": pairs}
    return _encode_object(value, where, arrays)


def _encode_array(value: Any, where: str, arrays: Arrays) -> dict[str, Any]:
    """Put an array aside; times are written as whole numbers and text in the JSON."""
    kind = "scalar" if isinstance(value, np.generic) else "array"
    array = np.array(value, order="C")
    if array.dtype.kind in "OU":
        flat = array.ravel().tolist()
        if not all(isinstance(item, str) for item in flat):
            _refuse(where, value)
        return {KIND: "text", "items": flat, "shape": list(array.shape), "type": array.dtype.kind}
    encoded = {KIND: kind, "name": f"{len(arrays)} {where}"}
    if array.dtype.kind in "mM":
        encoded["type"], array = array.dtype.str, array.view(np.int64)
    elif array.dtype.kind not in "biuf":
        _refuse(where, value)
    arrays[encoded["name"]] = array
    return encoded


def _encode_object(value: Any, where: str, arrays: Arrays) -> dict[str, Any]:
    """Write an object of a known class as its fields."""
    name = type(value).__name__
    if _known_class(name) is not type(value):
        _refuse(where, value)
    if isinstance(value, Likelihood):
        # A family is made from its links, by the names of its parameters.
        pairs = zip(value.parameters, value.links, strict=True)
        fields = {parameter.name: link for parameter, link in pairs}
    else:
        fields = {field: getattr(value, field) for field in _field_names(type(value))}
    encoded = {k: _encode(v, f"{where}.{k}", arrays) for k, v in fields.items()}
    return {KIND: "object", "class": name, "fields": encoded}


def _refuse(where: str, value: Any) -> None:
    kind = type(value)
    setting = where.split("[")[0].split(".")[0]
    raise ValueError(
        f"save: {where} is of the class {kind.__module__}.{kind.__qualname__}, which a file cannot "
        f"hold. Register your own kernels, likelihoods and links with "
        f"censored_gp.estimator.persistence.register({kind.__name__}), where you save and where "
        "you load. Other "
        f"settings can be exchanged before saving, as model.set_params({setting}=None): what "
        "was fitted stays."
    )


def _decode(value: Any, arrays: Arrays) -> Any:
    """Return the value that `_encode` has written."""
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, Mapping):
        return value
    return _DECODERS[value[KIND]](value, arrays)


def _decode_array(value: Mapping[str, Any], arrays: Arrays) -> Any:
    array = arrays[value["name"]]
    array = array.view(_time_type(value["type"])) if "type" in value else array
    return array[()] if value[KIND] == "scalar" else array


def _time_type(text: str) -> np.dtype:
    kind = np.dtype(text)
    if kind.kind not in "mM":
        raise ValueError(f"{text!r} is no type of times")
    return kind


def _decode_text(value: Mapping[str, Any], _: Arrays) -> Shaped[np.ndarray, "..."]:
    kind = object if value["type"] == "O" else str
    return np.array(value["items"], dtype=kind).reshape(value["shape"])


def _decode_object(value: Mapping[str, Any], arrays: Arrays) -> Any:
    kind = _known_class(value["class"])
    if kind is None:
        raise ValueError(
            f"the class {value['class']!r} is not known here. If it is one of your own, call "
            "censored_gp.estimator.persistence.register on it before loading."
        )
    return kind(**{name: _decode(field, arrays) for name, field in value["fields"].items()})


_DECODERS = {
    "float": lambda value, _: float(value["value"]),
    "tuple": lambda value, arrays: tuple(_decode(value["items"], arrays)),
    "dict": lambda value, arrays: {
        _decode(k, arrays): _decode(v, arrays) for k, v in value["items"]
    },
    "array": _decode_array,
    "scalar": _decode_array,
    "text": _decode_text,
    "object": _decode_object,
    "table": lambda value, arrays: Table.from_bytes(
        _decode(value["content"], arrays), value["backend"]
    ),
}


@functools.cache
def _class_of_package(name: str) -> type | None:
    """Return a class of the fixed list; its module is loaded when it is first met."""
    return getattr(import_module(MODULES[name]), name) if name in MODULES else None


def _known_class(name: str) -> type | None:
    return OWN.get(name) or _class_of_package(name)


def _is_made_of_fields(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _field_names(kind: type) -> list[str]:
    """Return the fields that an object of a class can be made from."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.init]
    return list(getattr(kind, "_fields", ()))
