"""How the package uses JAX: float64 inside only, few shapes, few BLAS threads, a cache on disk.

A program takes seconds to compile and is compiled for fixed shapes. Sizes are therefore rounded up
by one policy, :func:`bucket`, and arrays padded to them by :func:`pad`: data sets of similar size
share programs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Shaped
from threadpoolctl import ThreadpoolController

Args = ParamSpec("Args")
Result = TypeVar("Result")
# Arrays of JAX or numpy: a compiled function takes both.
AnyArray = Array | np.ndarray
# Rows of inputs: N rows of C columns.
Inputs = Float[AnyArray, "N C"]
# The same in numpy, outside of compiled functions.
Rows = Float[np.ndarray, "N C"]
# One number, as an array: a compiled function does not depend on its value.
Scalar = Float[AnyArray, ""]
# Environment variable that names the folder of compiled programs; ``0`` means none.
CACHE_VARIABLE = "CENSORED_GP_CACHE"
# Matrices of a larger order are worth a second BLAS thread. With smaller ones a fit takes a tenth
# less time on an idle machine, and three times as long on a busy one.
LARGE_MATRIX = 4000
# These options halve the time to compile; programs run as fast, as BLAS and LAPACK do the work.
QUICKER_TO_COMPILE = {
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}


@functools.cache
def compiler_options() -> dict[str, Any]:
    """Return the options that this release of XLA knows and ``XLA_FLAGS`` does not set."""
    chosen = os.environ.get("XLA_FLAGS", "")
    wanted = {name: value for name, value in QUICKER_TO_COMPILE.items() if name not in chosen}
    if _are_known(wanted):
        return wanted
    return {name: value for name, value in wanted.items() if _are_known({name: value})}


def _are_known(options: dict[str, Any]) -> bool:
    """Whether XLA accepts the options; it can be found out only by compiling with them."""
    try:
        with jax.ensure_compile_time_eval():
            jax.jit(lambda x: x, compiler_options=options)(0.0)
    except (RuntimeError, ValueError):
        return False
    return True


class CtrlC:
    """What became of Ctrl-C during a fit; there is one main thread, and so one of these."""

    asked = False
    """Whether the user has asked for the end, and the fit has not heard it yet."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Have Ctrl-C end a fit before its next program or step; a second one raises at once.

    An exception in the middle of JAX may be swallowed by a callback, and what it leaves half done
    may crash the interpreter as it exits. In other threads, and where the host program handles the
    signal itself, nothing changes.
    """
    usual = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return

    def hear(*details: Any) -> None:
        if CtrlC.asked:
            CtrlC.asked = False
            usual(*details)
        CtrlC.asked = True

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        heed_ctrl_c()


def heed_ctrl_c() -> None:
    """Raise `KeyboardInterrupt` here if the user has asked for it."""
    if CtrlC.asked and threading.current_thread() is threading.main_thread():
        CtrlC.asked = False
        raise KeyboardInterrupt


def _when_called(
    make: Callable[..., Any], function: Callable[Args, Result], **choices: Any
) -> Callable[Args, Result]:
    """Delay ``make`` (a kind of jit) until the first call, to keep imports fast."""

    @functools.cache
    def program() -> Any:
        return make(function, **{"compiler_options": compiler_options()} | choices)

    @functools.wraps(function)
    def called(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        heed_ctrl_c()
        return program()(*args, **kwargs)

    return called


def compiled(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile a function whose arguments may hold other things than arrays (`eqx.filter_jit`)."""
    return _when_called(eqx.filter_jit, function)


def compiled_to_run_long(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile like :func:`compiled`, with all optimisations: for programs that run for seconds."""
    return _when_called(eqx.filter_jit, function, compiler_options=None)


def compiled_for_arrays(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile a function of pytrees of arrays: a call takes a third of the time of the above."""
    return _when_called(jax.jit, function)


@contextlib.contextmanager
def float64() -> Iterator[None]:
    """Compute in double precision inside a block or function only, whatever the host has set."""
    with jax.enable_x64(True):
        yield


def cache_folder() -> Path | None:
    """Return the folder of compiled programs, or None where the user wants none."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return None if chosen in {"", "0"} else Path(chosen)
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        # A user without a home, as in some containers.
        return None
    return home / "censored-gp" / "compiled"


@functools.cache
def keep_compiled_programs() -> None:
    """Cache compiled programs on disk, unless the host program has chosen its own folder."""
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
    """Use one BLAS thread for matrices of small order, where more only wait for each other."""
    if order > LARGE_MATRIX:
        yield
        return
    with _blas().limit(limits=1, user_api="blas"):
        yield


def bucket(size: int, of: Literal["rows", "cells", "inducing", "predictions"] = "rows") -> int:
    """Round a size up to one of few values, so that data sets of similar size share programs.

    - rows: 8 sizes between powers of two;
    - cells of one kind in a fit: 2 sizes, from 512 on 4. How many cells are censored is chance,
      and must not decide what is compiled;
    - inducing inputs: finer, as time grows with the cube of their number; the 24 hours of a day and
      the 168 of a week are sizes;
    - cells or rows of a prediction: powers of four, from 1024 on of two, as a pass over few cells
      takes no time.

    >>> [bucket(n) for n in (3, 8, 100, 732)]
    [8, 8, 104, 768]
    >>> [bucket(n, "inducing") for n in (2, 24, 40, 168, 250, 300)]
    [8, 24, 48, 168, 264, 304]
    >>> [bucket(n, "predictions") for n in (1, 17, 1000, 1025)]
    [16, 64, 1024, 2048]
    """
    if of == "predictions":
        digits = max(size - 1, 15).bit_length()
        return 1 << (digits + digits % 2 if size <= 1024 else digits)
    steps = {"rows": 8, "cells": 2 if size < 512 else 4, "inducing": 16}[of]
    step = max(8, 2 ** (max(size, 1).bit_length() - 1) // steps)
    if of == "inducing" and size <= 264:
        step = 8 if size <= 32 else 16 if size <= 128 else 24
    return max(8, -(-size // step) * step)


def pad(array: Shaped[np.ndarray, "..."], room: int, axis: int = 0) -> Shaped[np.ndarray, "..."]:
    """Repeat the last entry of an axis ``room`` times."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, room)
    return np.pad(array, widths, "edge")


def shapes(total: int, most: int) -> tuple[int, list[slice]]:
    """Return the size of a program for ``total`` cells, and the slices it is called with in turn.

    A program of the next smaller size is called more than once instead of padding a larger one:
    cells that only pad take as long as real ones, and another call takes no time.

    >>> shapes(440, 512)
    (256, [slice(0, 256, None), slice(256, 440, None)])
    >>> shapes(5, 512), shapes(100, 20)[0]
    ((16, [slice(0, 5, None)]), 16)
    """
    wanted = max(1, min(total, most))
    size = bucket(wanted, "predictions")
    if size > wanted:
        size = max(16, size // 4 if size <= 1024 else size // 2)
    return size, slices(total, size)


def slices(total: int, most: int) -> list[slice]:
    """Split ``range(total)`` into slices of at most ``most``."""
    return [slice(start, min(start + most, total)) for start in range(0, total, most)]
