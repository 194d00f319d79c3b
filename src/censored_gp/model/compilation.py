"""Cells in parts: how many a program is for, and which of them it is asked about at a time.

How the package uses JAX: float64 inside only, few BLAS threads, compiled code kept on disk.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float
from threadpoolctl import ThreadpoolController

Args = ParamSpec("Args")


Result = TypeVar("Result")


AnyArray = Array | np.ndarray
"""Arrays of either make: a compiled function takes both."""


CACHE_VARIABLE = "CENSORED_GP_CACHE"
"""Environment variable naming the folder for what takes long to make, such as compiled programs;
``0`` keeps none."""


LARGE_MATRIX = 1500
"""Order of a matrix above which a second BLAS thread pays even on a busy machine."""


QUICKER_TO_COMPILE = {
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}
"""Options by which programs compile in half the time and run as fast: most of what they do is done
by libraries that are compiled already."""


@functools.cache
def compiler_options() -> dict[str, Any]:
    """Return those options that this release of the compiler knows.

    Who has chosen one of them for the whole process keeps it.
    """
    chosen = os.environ.get("XLA_FLAGS", "")
    wanted = {name: value for name, value in QUICKER_TO_COMPILE.items() if name not in chosen}
    if _are_known(wanted):
        return wanted
    return {name: value for name, value in wanted.items() if _are_known({name: value})}


def _are_known(options: dict[str, Any]) -> bool:
    """Whether the compiler knows options; it says so only when they are used."""
    try:
        with jax.ensure_compile_time_eval():
            jax.jit(lambda x: x, compiler_options=options)(0.0)
    except (RuntimeError, ValueError):
        return False
    return True


def _when_called(
    make: Callable[..., Any], function: Callable[Args, Result], **choices: Any
) -> Callable[Args, Result]:
    """Compile a function by ``make``, which is called at the first call: importing stays quick."""

    @functools.cache
    def program() -> Any:
        return make(function, compiler_options=compiler_options(), **choices)

    @functools.wraps(function)
    def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        return program()(*args, **kwargs)

    return called


def compiled(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile a function of arrays and other things at its first call for each of their shapes."""
    return _when_called(eqx.filter_jit, function)


def compiled_for_arrays(
    function: Callable[Args, Result], static: tuple[str, ...] = ()
) -> Callable[Args, Result]:
    """Compile a function of trees of arrays, but for the ``static`` arguments, by name.

    To call it takes a third of the time of what :func:`compiled` returns.
    """
    return _when_called(jax.jit, function, static_argnames=static)


@contextlib.contextmanager
def float64() -> Iterator[None]:
    """Compute in double precision inside the block only, whatever the host program has set."""
    with jax.enable_x64(True):
        yield


def in_float64(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Run a function inside :func:`float64`."""

    @functools.wraps(function)
    def wrapped(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def cache_folder() -> Path | None:
    """Return the folder for what takes long to make, or None where the user wants none."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return None if chosen in {"", "0"} else Path(chosen)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return home / "censored-gp" / "compiled"


@functools.cache
def keep_compiled_programs() -> None:
    """Keep compiled programs on disk, unless the host program has chosen its own folder."""
    folder = cache_folder()
    if folder is None or jax.config.values.get("jax_compilation_cache_dir") is not None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@functools.cache
def _blas() -> ThreadpoolController:
    """Return the controller of the loaded BLAS libraries (looking them up is slow: once)."""
    # JAX computes with scipy's BLAS and loads it at its first factorisation: too late to be found.
    import_module("scipy.linalg.cython_lapack")
    return ThreadpoolController()


@contextlib.contextmanager
def blas_threads_for(order: int) -> Iterator[None]:
    """Use one BLAS thread for matrices of small order: more only wait for each other."""
    if order > LARGE_MATRIX:
        yield
        return
    with _blas().limit(limits=1, user_api="blas"):
        yield


def bucket(size: int, smallest: int = 8, steps: int = 8) -> int:
    """Round a size up to one of few values (at most 1/8 more), so that programs are shared.

    There are so many ``steps`` from one power of two to the next.

    >>> [bucket(n) for n in (3, 8, 100, 732)]
    [8, 8, 104, 768]
    >>> bucket(732, steps=2)
    768
    """
    if size <= smallest:
        return smallest
    step = max(smallest, 2 ** int(np.log2(size)) // steps)
    return -(-size // step) * step


def shapes(total: int, most: int) -> tuple[int, list[slice]]:
    """Return how many cells a program is for, and the cells that are asked of it at a time.

    Not more than there are, unless these are very few: cells that only pad a shape take as long as
    real ones, and another call of the same program takes no time.

    >>> shapes(440, 512)
    (256, [slice(0, 256, None), slice(256, 440, None)])
    >>> shapes(5, 512), shapes(100, 20)[0]
    ((16, [slice(0, 5, None)]), 16)
    """
    wanted = max(1, min(total, most))
    size = coarse(wanted)
    if size > wanted:
        size = max(16, size // 4 if size <= 1024 else size // 2)
    return size, list(slices(total, size))


def coarse(size: int) -> int:
    """Round a number of cells up to a power of four, from 1024 on of two: few shapes, few programs.

    So few cells as there are below take no time, and a program takes seconds to compile.

    >>> [coarse(n) for n in (1, 16, 17, 1000, 1025)]
    [16, 16, 64, 1024, 2048]
    """
    digits = max(size - 1, 15).bit_length()
    return 1 << (digits + digits % 2 if size <= 1024 else digits)


def slices(size: int, most: int) -> Iterator[slice]:
    """Yield slices that are not longer than so many.

    >>> list(slices(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, size, most):
        yield slice(start, min(start + most, size))


def pad_last(cells: Float[np.ndarray, "... K"], room: int) -> Float[np.ndarray, "... P"]:
    """Repeat the last cell.

    >>> pad_last(np.array([1.0, 2.0]), 2)
    array([1., 2., 2., 2.])
    """
    return np.pad(cells, [(0, 0)] * (cells.ndim - 1) + [(0, room)], "edge")
