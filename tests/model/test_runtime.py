"""What the package does to JAX and BLAS, and undoes."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from censored_gp.model import compilation as runtime
from censored_gp.model.compilation import (
    blas_threads_for,
    bucket,
    cache_folder,
    float64,
    in_float64,
)


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_precision_is_double_inside_only():
    with jax.enable_x64(False):
        with float64():
            assert jnp.ones(1).dtype == jnp.float64
        assert jnp.ones(1).dtype == jnp.float32


def test_precision_is_given_back_after_an_error():
    @in_float64
    def fails():
        assert jnp.ones(1).dtype == jnp.float64
        raise RuntimeError

    with jax.enable_x64(False):
        with pytest.raises(RuntimeError):
            fails()
        assert jnp.ones(1).dtype == jnp.float32


def test_a_decorated_function_keeps_its_name_and_result():
    @in_float64
    def third(of):
        """Divide by three."""
        return of / 3

    assert third(of=jnp.asarray(1.0)) == 1 / 3
    assert third.__name__ == "third"


def test_small_matrices_get_one_thread_and_the_host_its_own_back():
    before = blas_threads()
    with blas_threads_for(10):
        assert blas_threads() == {1}
    with blas_threads_for(runtime.LARGE_MATRIX + 1):
        assert blas_threads() == before
    assert blas_threads() == before


def test_the_library_jax_computes_with_is_limited_from_the_first_fit_on():
    """JAX loads it late; a look at the loaded libraries before that would miss it."""
    code = (
        "from censored_gp.model.compilation import blas_threads_for\n"
        "import jax.numpy as jnp\n"
        "with blas_threads_for(1):\n"
        "    jnp.linalg.cholesky(jnp.eye(3))\n"
        "    from threadpoolctl import threadpool_info\n"
        "    print({i['num_threads'] for i in threadpool_info() if i['user_api'] == 'blas'})"
    )
    source = Path(runtime.__file__).resolve().parent.parent
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "{1}"


@pytest.mark.parametrize("size", [*range(1, 200), 732, 1000, 12_345])
def test_buckets_hold_what_they_must_and_little_more(size):
    room = bucket(size)
    assert size <= room <= max(8, size + 7, 1.126 * size)
    assert bucket(room) == room


def test_buckets_are_few():
    assert len({bucket(size) for size in range(1, 2000)}) < 80


def test_the_folder_of_compiled_programs_is_the_users_choice(monkeypatch, tmp_path):
    monkeypatch.setenv(runtime.CACHE_VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv(runtime.CACHE_VARIABLE, "0")
    assert cache_folder() is None
    monkeypatch.delenv(runtime.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "censored-gp" / "compiled"


def test_arrays_of_either_make_are_arrays():
    assert isinstance(np.ones(1), runtime.AnyArray)
    assert isinstance(jnp.ones(1), runtime.AnyArray)


@pytest.fixture
def fresh_options():
    """Options are looked up once in a process."""
    runtime.compiler_options.cache_clear()
    yield
    runtime.compiler_options.cache_clear()


@pytest.mark.usefixtures("fresh_options")
def test_a_chosen_level_of_optimisation_is_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert "xla_backend_optimization_level" not in runtime.compiler_options()
    runtime.compiler_options.cache_clear()
    monkeypatch.setenv("XLA_FLAGS", "")
    options = runtime.compiler_options()
    assert options == runtime.QUICKER_TO_COMPILE
    assert float(jax.jit(lambda x: x + 1, compiler_options=options)(1.0)) == 2.0


@pytest.mark.usefixtures("fresh_options")
def test_options_that_the_compiler_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    known = dict(runtime.QUICKER_TO_COMPILE)
    monkeypatch.setattr(runtime, "QUICKER_TO_COMPILE", known | {"xla_of_tomorrow": True})
    assert runtime.compiler_options() == known
