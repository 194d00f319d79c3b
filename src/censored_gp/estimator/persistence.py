"""Model files: arrays in safetensors, everything else as JSON in its header; no pickle.

A file names classes by a word, never by an import path: a class of `RECORDS`, or a kernel,
likelihood, link or estimator that is defined in the program. Loading executes no code from the
file. The format, its version and a checksum are verified before anything is decoded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from censored_gp.estimator.training import TrainingData
from censored_gp.inference.arrow import Chain
from censored_gp.inference.posterior import DrawnPosterior, MixedPosterior, Posterior
from censored_gp.inference.result import FitResult
from censored_gp.inference.sites import Sites, Weights
from censored_gp.kernels import Kernel
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.links import Link
from censored_gp.model.compilation import keep_compiled_programs
from censored_gp.model.inducing import Inducing, Knots
from censored_gp.model.lmc import LMC, Nugget, Slopes
from censored_gp.model.model import Model, Units

# The version of the format, raised when other releases could not read what is written.
VERSION = 6

# The key of the metadata of a safetensors file that our header is under.
HEADER = "censored_gp"


# The classes that a fitted model consists of, beside kernels, likelihoods and links.
RECORDS = (
    *(Columns, Layout, Rows, Observations, TrainingData, Model, Units, Nugget, Slopes, LMC),
    *(Inducing, Knots, Chain, DrawnPosterior, MixedPosterior, Posterior, Weights, Sites, FitResult),
)

Arrays = dict[str, Shaped[np.ndarray, "..."]]


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file, atomically: if writing fails, an older file stays."""
    if not hasattr(model, "posterior_"):
        raise ValueError("save needs a fitted model. Call fit first.")
    arrays: Arrays = {}
    kind = type(model)
    state = {name: value for name, value in vars(model).items() if _is_state(kind, name)}
    if callable(state.get("progress")):
        state["progress"] = False
    encoded = {name: _encode(value, name, arrays) for name, value in state.items()}
    content = json.dumps({"class": kind.__name__, "state": encoded})
    header = {
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
    """Whether an attribute is a parameter or a fitted attribute."""
    return name in kind._get_param_names() or (name.endswith("_") and not name.startswith("_"))


def _read(path: Path) -> tuple[str, Arrays]:
    """Return the verified content and arrays of a file; errors of the disk are passed on."""
    with path.open("rb"):
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})[HEADER])
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
    """Return a checksum of the content and of the arrays: their names, types, shapes and bytes."""
    return hashlib.sha256(content.encode() + to_bytes(arrays)).hexdigest()


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
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(target.parent))
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with contextlib.suppress(OSError):
            # What a killed process left behind: another may have written to it in this hour.
            if time.time() - left.stat().st_mtime > 3600:
                left.unlink()
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
    found = list(bases)
    for kind in found:
        found += kind.__subclasses__()
    found.sort(key=lambda kind: kind.__module__.startswith("censored_gp."))
    return {kind.__name__: kind for kind in found}


def _known_classes() -> dict[str, type]:
    return _classes(Kernel, Likelihood, Link, *RECORDS)


def _encode(value: Any, where: str, arrays: Arrays) -> Any:
    """Return a value as JSON, its arrays put aside under names of their own.

    The key "$" tells the kind of what is no number or text; plain dicts are never written.
    """
    kind = type(value)
    if value is None or kind in (bool, str, int, float):
        return value
    if kind in (tuple, list):
        items = [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return items if kind is list else {"$": "tuple", "items": items}
    if kind is dict:
        keys = [_encode(key, where, arrays) for key in value]
        values = [_encode(item, f"{where}[{key!r}]", arrays) for key, item in value.items()]
        return {"$": "dict", "keys": keys, "values": values}
    if isinstance(value, datetime.date):
        # Labels of a long table.
        return {"$": "time", "clock": isinstance(value, datetime.datetime), "text": str(value)}
    if isinstance(value, Table):
        content = _encode(value.to_bytes(), where, arrays)
        return {"$": "table", "content": content, "backend": value.backend}
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        array = np.array(value, order="C")
        encoded = {"$": "array", "type": array.dtype.str, "scalar": isinstance(value, np.generic)}
        if array.dtype.kind in "OU" and all(isinstance(item, str) for item in array.flat):
            return encoded | {"text": array.tolist()}
        if array.dtype.kind in "biufmM":
            name = f"{len(arrays)} {where}"
            # safetensors has no type of times.
            arrays[name] = array.view(np.int64) if array.dtype.kind in "mM" else array
            if array.ndim > 1 and np.array_equal(array, np.swapaxes(array, -1, -2)):
                # Covariances are most of a file, and have everything twice.
                half = arrays[name][..., *np.tril_indices(array.shape[-1])]
                arrays[name] = np.ascontiguousarray(half)
                return encoded | {"$": "symmetric", "name": name}
            return encoded | {"name": name}
    if _known_classes().get(kind.__name__) is kind:
        fields = {k: _encode(v, f"{where}.{k}", arrays) for k, v in _fields(value).items()}
        return {"$": "object", "class": kind.__name__, "fields": fields}
    setting = where.split("[")[0].split(".")[0]
    raise ValueError(
        f"save: {where} is of the class {kind.__qualname__}, which a file cannot hold. "
        "Accepted are numbers, text, arrays, and kernels, likelihoods and links with names of "
        f"their own. model.set_params({setting}=None) exchanges a setting: the fit stays."
    )


def _fields(value: Any) -> dict[str, Any]:
    """Return the arguments that an object can be made from."""
    if isinstance(value, Likelihood):
        # A family is made from its links, by the names of its parameters, and from what is fixed.
        links = {p.name: link for p, link in zip(value.parameters, value.links, strict=True)}
        fields = (f.name for f in dataclasses.fields(value) if f.init)
        return {name: getattr(value, name) for name in fields} | links
    if isinstance(value, tuple):
        return value._asdict()  # pyright: ignore[reportAttributeAccessIssue]
    return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}


def _decode(value: Any, arrays: Arrays) -> Any:
    """Return the value that `_encode` has written."""
    match value:
        case list():
            return [_decode(item, arrays) for item in value]
        case {"$": "tuple", "items": items}:
            return tuple(_decode(items, arrays))
        case {"$": "dict", "keys": keys, "values": values}:
            return dict(zip(_decode(keys, arrays), _decode(values, arrays), strict=True))
        case {"$": "time", "clock": clock, "text": text}:
            return (datetime.datetime if clock else datetime.date).fromisoformat(text)
        case {"$": "table", "content": content, "backend": backend}:
            return Table.from_bytes(_decode(content, arrays), backend)
        case {"$": "array", "type": dtype, "text": text}:
            return np.array(text, dtype=dtype)
        case {"$": "array", "type": dtype, "name": name, "scalar": scalar}:
            array = arrays[name].view(dtype)
            return array[()] if scalar else array
        case {"$": "symmetric", "type": dtype, "name": name}:
            half = arrays[name].view(dtype)
            # Of n rows, n (n + 1) / 2 numbers.
            order = math.isqrt(2 * half.shape[-1])
            array = np.empty((*half.shape[:-1], order, order), dtype)
            rows, columns = np.tril_indices(order)
            array[..., rows, columns] = array[..., columns, rows] = half
            return array
        case {"$": "object", "class": name, "fields": fields}:
            known = _known_classes().get(name)
            if known is None:
                raise ValueError(
                    f"the class {name!r} is not known here. If it is a kernel or a likelihood of "
                    "your own, import it before loading."
                )
            return known(**{field: _decode(item, arrays) for field, item in fields.items()})
        case dict():
            raise ValueError(f"{value} is of no known kind")
    return value
