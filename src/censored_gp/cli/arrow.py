"""pyarrow, which reads and writes tables: imported when it is needed, as not everybody has it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["compute", "require_pyarrow"]


def require_pyarrow() -> Any:
    """Return pyarrow, or say how to get it.

    >>> require_pyarrow().array([1, 2]).to_pylist()
    [1, 2]
    """
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError(
            "Reading and writing tables needs pyarrow: pip install 'censored-gp[data]'"
        ) from error


def compute() -> Any:
    """Return pyarrow's functions: they are made when it is loaded, and no type checker sees them.

    >>> compute().sum([1, 2]).as_py()
    3
    """
    return import_module("pyarrow.compute")
