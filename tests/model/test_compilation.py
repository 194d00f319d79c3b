"""Sizes and padding, and what the package does to JAX and BLAS, and undoes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from censored_gp.model import compilation
from censored_gp.model.compilation import (
    blas_threads_for,
    bucket,
    cache_folder,
    compiled,
    float64,
    heed_ctrl_c,
    interruptible,
    pad,
    shapes,
)


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_precision_is_double_inside_only():
    with jax.enable_x64(False):
        with float64():
            assert jnp.ones(1).dtype == jnp.float64
        assert jnp.ones(1).dtype == jnp.float32


def test_precision_is_given_back_after_an_error():
    @float64()
    def fails():
        assert jnp.ones(1).dtype == jnp.float64
        raise RuntimeError

    with jax.enable_x64(False):
        with pytest.raises(RuntimeError):
            fails()
        assert jnp.ones(1).dtype == jnp.float32


def test_a_decorated_function_keeps_its_name_and_result():
    @float64()
    def third(of):
        """Divide by three."""
        return of / 3

    assert third(of=jnp.asarray(1.0)) == 1 / 3
    assert third.__name__ == "third"


def test_small_matrices_get_one_thread_and_the_host_its_own_back():
    before = blas_threads()
    with blas_threads_for(10):
        assert blas_threads() == {1}
    with blas_threads_for(compilation.LARGE_MATRIX + 1):
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
    source = Path(compilation.__file__).resolve().parent.parent
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "{1}"


def test_buckets_hold_what_they_must_and_little_more_and_are_few():
    for size in [*range(1, 200), 732, 1000, 12_345]:
        room = bucket(size)
        assert size <= room <= max(8, size + 7, 1.126 * size)
        assert bucket(room) == room
    assert len({bucket(size) for size in range(1, 2000)}) < 80


def test_the_folder_of_compiled_programs_is_the_users_choice(monkeypatch, tmp_path):
    monkeypatch.setenv(compilation.CACHE_VARIABLE, str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv(compilation.CACHE_VARIABLE, "0")
    assert cache_folder() is None
    monkeypatch.delenv(compilation.CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "censored-gp" / "compiled"


def test_a_user_without_a_home_keeps_no_programs(monkeypatch):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    monkeypatch.delenv(compilation.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/censored-gp/compiled")


def test_arrays_of_either_make_are_arrays():
    assert isinstance(np.ones(1), compilation.AnyArray)
    assert isinstance(jnp.ones(1), compilation.AnyArray)


@pytest.fixture
def fresh_options():
    """Options are looked up once in a process."""
    compilation.compiler_options.cache_clear()
    yield
    compilation.compiler_options.cache_clear()


@pytest.mark.usefixtures("fresh_options")
def test_a_chosen_level_of_optimisation_is_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=3")
    assert "xla_backend_optimization_level" not in compilation.compiler_options()
    compilation.compiler_options.cache_clear()
    monkeypatch.setenv("XLA_FLAGS", "")
    options = compilation.compiler_options()
    assert options == compilation.QUICKER_TO_COMPILE
    assert float(jax.jit(lambda x: x + 1, compiler_options=options)(1.0)) == 2.0


@pytest.mark.usefixtures("fresh_options")
def test_options_that_the_compiler_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    known = dict(compilation.QUICKER_TO_COMPILE)
    monkeypatch.setattr(compilation, "QUICKER_TO_COMPILE", known | {"xla_of_tomorrow": True})
    assert compilation.compiler_options() == known


@pytest.mark.parametrize("size", [1, 16, 17, 1000])
def test_numbers_of_cells_are_rounded_up_to_few(size):
    assert bucket(size, "predictions") >= size
    assert np.log2(bucket(size, "predictions")) % 1 == 0


def test_all_small_numbers_of_cells_share_four_shapes():
    assert {bucket(size, "predictions") for size in range(1, 1025)} == {16, 64, 256, 1024}


@pytest.mark.parametrize("most", [1, 20, 512, 2048, 65536])
def test_all_cells_are_asked_about_once_and_few_only_pad_a_shape(most):
    for total in (1, 15, 16, 17, 100, 440, 1023, 1025, 3000):
        size, chunks = shapes(total, most)
        covered = np.concatenate([np.arange(total)[cells] for cells in chunks])
        np.testing.assert_array_equal(covered, np.arange(total))
        assert all(0 < cells.stop - cells.start <= size for cells in chunks)
        assert size == 16 or size <= min(total, most)
        assert len(chunks) * size < 2 * total or total < 16


@pytest.mark.parametrize(("of", "largest"), [("cells", 1.51), ("inducing", 1.5)])
def test_cells_and_inducing_inputs_are_padded_by_little(of, largest):
    for size in (9, 24, 33, 100, 168, 264, 300, 700, 5000):
        room = bucket(size, of)
        assert size <= room <= max(16, largest * size)
        assert bucket(room, of) == room
    assert [bucket(size, "inducing") for size in (24, 168)] == [24, 168]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_padding_repeats_the_last_entry(axis):
    array = np.arange(6.0).reshape(3, 2)
    padded = pad(array, 4, axis)
    size = array.shape[axis]
    np.testing.assert_array_equal(np.take(padded, np.arange(size), axis), array)
    for more in range(size, size + 4):
        np.testing.assert_array_equal(np.take(padded, more, axis), np.take(array, -1, axis))


@pytest.fixture(autouse=True)
def usual_handler():
    """Hear Ctrl-C, also where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressed_before(*calls):
    """Press Ctrl-C in a block that defers it, call functions, and return how many came back."""
    back = []
    with pytest.raises(KeyboardInterrupt):
        _press_and_call(calls, back)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    heed_ctrl_c()
    return len(back)


def _press_and_call(calls, back):
    with interruptible():
        signal.raise_signal(signal.SIGINT)
        for call in calls:
            call()
            back.append(call)


def test_ctrl_c_waits_for_a_safe_place_and_is_never_lost():
    assert pressed_before(int, heed_ctrl_c, int) == 1
    assert pressed_before(int) == 1
    assert pressed_before(lambda: int("no number")) == 0


def test_a_second_ctrl_c_does_not_wait():
    assert pressed_before(int, lambda: signal.raise_signal(signal.SIGINT), int) == 1


def test_ctrl_c_is_heeded_before_the_next_program_and_never_within_one():
    @compiled
    def pressed_within(x):
        signal.raise_signal(signal.SIGINT)
        return 2 * x

    @compiled
    def program(x):
        return 3 * x

    @interruptible()
    def both():
        found.append(pressed_within(1.0))
        found.append(program(1.0))

    found = []
    with pytest.raises(KeyboardInterrupt):
        both()
    assert found == [2.0]
    assert program(1.0) == 3.0


def test_ctrl_c_is_left_alone_in_other_threads_and_under_other_handlers():
    def handlers():
        with interruptible():
            found.append(signal.getsignal(signal.SIGINT))

    found = []
    thread = threading.Thread(target=handlers)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        handlers()
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [before, signal.SIG_IGN]


def test_programs_give_the_same_with_and_without_deferring_and_pass_their_errors_on():
    @compiled
    def program(x, fail):
        if fail:
            raise ZeroDivisionError
        return x / 3

    with interruptible():
        value = program(1.0, False)
        with pytest.raises(ZeroDivisionError):
            program(1.0, True)
    assert value == program(1.0, False) == 1 / 3
