"""Models in files: arrays in safetensors, all else as JSON in its header; no pickle.

A file names classes by a word, never by an import path: a class of this module's list, or a kernel,
likelihood, link or estimator that is defined in the program. Reading a file runs nothing that it
brings along. Before anything is made of it, it is checked that it is ours, that this release can
read it, and that every byte is as it was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import jax
import numpy as np
from jaxtyping import Shaped
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

import censored_gp
from censored_gp.data.inputs import Columns
from censored_gp.data.layout import Layout, Rows
from censored_gp.data.observations import Observations
from censored_gp.data.tables import Table
from censored_gp.estimator.settings import changed_settings
from censored_gp.estimator.training import TrainingData
from censored_gp.inference.posterior import DrawnPosterior, Posterior, Sites, Weights
from censored_gp.inference.result import FitResult
from censored_gp.kernels import Kernel
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.links import Link
from censored_gp.model.compilation import keep_compiled_programs
from censored_gp.model.inducing import Inducing
from censored_gp.model.lmc import LMC, Nugget
from censored_gp.model.model import Model, Units

FORMAT = "censored-gp model"

VERSION = 2
"""The version of the format, raised when other releases could not read what is written."""

HEADER = "censored_gp"

KIND = "$"
"""The key that tells an encoded value from a plain dict; plain dicts are never written."""

RECORDS = (
    *(Columns, Layout, Rows, Observations, TrainingData, Model, Units, Nugget, LMC, Inducing),
    *(DrawnPosterior, Posterior, Weights, Sites, FitResult),
)
"""The records that a fitted model consists of."""

Arrays = dict[str, Shaped[np.ndarray, "..."]]


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file; the file is there whole, or as it was before."""
    if not hasattr(model, "posterior_"):
        raise ValueError("save needs a fitted model. Call fit first.")
    arrays: Arrays = {}
    kind = type(model)
    state = {name: value for name, value in vars(model).items() if _is_state(kind, name)}
    if callable(state.get("progress")):
        state["progress"] = False
    if dataclasses.is_dataclass(state["engine_settings"]):
        state["engine_settings"] = changed_settings(state["engine_settings"])
    encoded = {name: _encode(value, name, arrays) for name, value in state.items()}
    content = json.dumps({"class": kind.__name__, "state": encoded}, allow_nan=False)
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


def load(path: str | os.PathLike[str], base: type) -> Any:
    """Return the model that a file holds: an object of `base` or of a class derived from it."""
    path = Path(path)
    content, arrays = _read(path)
    keep_compiled_programs()
    try:
        told = json.loads(content)
        kind = _classes(base)[told["class"]]
        model = kind()
        for name, value in told["state"].items():
            if not _is_state(kind, name):
                raise ValueError(f"{name!r} is no attribute of a model")
            setattr(model, name, _decode(value, arrays))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds a model that does not fit together: {error}") from error
    return model


def _is_state(kind: Any, name: str) -> bool:
    """Whether an attribute is a setting or was left by fitting."""
    return name in kind._get_param_names() or (name.endswith("_") and not name.startswith("_"))


def _read(path: Path) -> tuple[str, Arrays]:
    """Return what a file holds, checked; errors of the disk are passed on as they are."""
    with path.open("rb"):
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[HEADER])
            if header["format"] != FORMAT:
                raise KeyError(header["format"])
            # Arrays are read once the header says that they can be understood.
            names = file.keys() if header["version"] == VERSION else ()
            arrays = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is not a model file of censored-gp, or was cut short or damaged ({error}). "
            "Accepted are files that model.save(path) has written."
        ) from error
    if header["version"] != VERSION:
        raise ValueError(
            f"{path} was written by censored-gp {header.get('package')} in version "
            f"{header['version']} of the format; this is censored-gp {censored_gp.__version__}, "
            f"which reads version {VERSION}. Use a release that reads it, or fit and save again."
        )
    content = header.get("content", "")
    if header.get("sha256") != _digest(content, arrays):
        raise ValueError(f"{path} is damaged: its checksum is wrong. Take another copy, or save.")
    return content, arrays


def _digest(content: str, arrays: Arrays) -> str:
    """Return a checksum of all that a file holds."""
    total = hashlib.sha256(content.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft beside a file, which takes its place when all went well and else is deleted."""
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
        with draft.open("rb") as file:
            # After a power cut the file must not be empty under its final name.
            os.fsync(file.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _classes(*bases: type) -> dict[str, type]:
    """Return classes and all that are derived from them by name; the package's own go first."""
    found, queue = [], list(bases)
    while queue:
        found.append(queue.pop(0))
        queue += found[-1].__subclasses__()
    found.sort(key=lambda kind: kind.__module__.startswith("censored_gp."))
    return {kind.__name__: kind for kind in found}


def _known_classes() -> dict[str, type]:
    return _classes(Kernel, Likelihood, Link) | {kind.__name__: kind for kind in RECORDS}


def _encode(value: Any, where: str, arrays: Arrays) -> Any:
    """Return a value as JSON, its arrays put aside under names of their own."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        return _encode_array(value, where, arrays)
    if type(value) in (tuple, list):
        items = [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return items if type(value) is list else {KIND: "tuple", "items": items}
    if type(value) is dict:
        pairs = [
            [_encode(k, where, arrays), _encode(v, f"{where}[{k!r}]", arrays)]
            for k, v in value.items()
        ]
        return {KIND: "dict", "items": pairs}
    if isinstance(value, Table):
        content = _encode_array(value.to_bytes(), where, arrays)
        return {KIND: "table", "content": content, "backend": value.backend}
    name = type(value).__name__
    if _known_classes().get(name) is not type(value):
        _refuse(where, value)
    fields = {k: _encode(v, f"{where}.{k}", arrays) for k, v in _fields(value).items()}
    return {KIND: "object", "class": name, "fields": fields}


def _fields(value: Any) -> dict[str, Any]:
    """Return the arguments that an object can be made from."""
    if isinstance(value, Likelihood):
        # A family is made from its links, by the names of its parameters.
        return {p.name: link for p, link in zip(value.parameters, value.links, strict=True)}
    if isinstance(value, tuple):
        return value._asdict()  # pyright: ignore[reportAttributeAccessIssue]
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}


def _encode_array(value: Any, where: str, arrays: Arrays) -> dict[str, Any]:
    """Put an array aside; times are written as whole numbers and text in the JSON."""
    array = np.array(value, order="C")
    if array.dtype.kind in "OU":
        flat = array.ravel().tolist()
        if not all(isinstance(item, str) for item in flat):
            _refuse(where, value)
        return {KIND: "text", "items": flat, "shape": list(array.shape), "type": array.dtype.kind}
    if array.dtype.kind not in "biufmM":
        _refuse(where, value)
    kind = "scalar" if isinstance(value, np.generic) else "array"
    encoded = {KIND: kind, "name": f"{len(arrays)} {where}"}
    if array.dtype.kind in "mM":
        encoded["type"], array = array.dtype.str, array.view(np.int64)
    arrays[encoded["name"]] = array
    return encoded


def _refuse(where: str, value: Any) -> NoReturn:
    setting = where.split("[")[0].split(".")[0]
    raise ValueError(
        f"save: {where} is of the class {type(value).__qualname__}, which a file cannot hold. "
        "Accepted are numbers, text, arrays, and kernels, likelihoods and links with names of "
        f"their own. model.set_params({setting}=None) exchanges a setting: what was fitted stays."
    )


def _decode(value: Any, arrays: Arrays) -> Any:
    """Return the value that `_encode` has written."""
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, Mapping):
        return value
    kind = value[KIND]
    if kind == "float":
        return float(value["value"])
    if kind == "tuple":
        return tuple(_decode(value["items"], arrays))
    if kind == "dict":
        return {_decode(k, arrays): _decode(v, arrays) for k, v in value["items"]}
    if kind == "table":
        return Table.from_bytes(_decode(value["content"], arrays), value["backend"])
    if kind == "text":
        texts = np.array(value["items"], dtype=object if value["type"] == "O" else str)
        return texts.reshape(value["shape"])
    if kind == "object":
        known = _known_classes().get(value["class"])
        if known is None:
            raise ValueError(
                f"the class {value['class']!r} is not known here. If it is a kernel or a "
                "likelihood of your own, import it before loading."
            )
        return known(**{name: _decode(field, arrays) for name, field in value["fields"].items()})
    array = arrays[value["name"]]
    if "type" in value:
        dtype = np.dtype(value["type"])
        if dtype.kind not in "mM":
            raise ValueError(f"{value['type']!r} is no type of times")
        array = array.view(dtype)
    return array[()] if kind == "scalar" else array
