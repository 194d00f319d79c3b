"""Compilation for tests, which run a function once: with next to no optimisation.

Compiling the tail functions takes the compiler far longer than running them takes; what is tested
is the mathematics, which the level of optimisation does not change.
"""

import contextlib
import functools

import jax

from censored_gp.model.compilation import keep_compiled_programs

OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


@functools.cache
def accepted() -> dict:
    """The options, or none where this release of the compiler does not know them."""
    keep_compiled_programs()
    try:
        jax.jit(lambda x: x + 1, compiler_options=OPTIONS)(0.0)
    except Exception:
        return {}
    return OPTIONS


def quick(function, **kwargs):
    """`jax.jit` for a function that is run once."""
    return jax.jit(function, compiler_options=accepted(), **kwargs)


@contextlib.contextmanager
def compiling_quickly():
    """Have the package's own programs compiled that way too."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)
