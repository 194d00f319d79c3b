"""Fixtures that every test shares."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

# Most tests run a program once: what compiles quickly is done sooner than what runs quickly. To be
# said before JAX is imported, which is why only fixtures import it here.
QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false"
)
os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)

# A shell starts programs in the background deaf to Ctrl-C, and so would be all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Real data may lie beside the project.
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("CENSORED_GP_DATA", str(BESIDE))


def pytest_addoption(parser):
    parser.addoption(
        "--tries", type=int, default=34, help="random moments of each test that presses Ctrl-C"
    )
    parser.addoption("--cases", type=int, default=300, help="cases that the fuzz tests try")


@pytest.fixture(autouse=True)
def float64():
    """Low layers assume double precision; the package never switches it on for its host."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session", autouse=True)
def at_the_mode():
    """Fits stay at the mode of the hyper-parameters, unless a test asks for them to be mixed.

    Sixteen fits instead of one take long; what is tested is seldom the mixture.
    """
    from censored_gp.inference import hyperparameters

    with pytest.MonkeyPatch.context() as patch:
        limits = ("MOST_CELLS", "MOST_OF_ALL")
        usual = {name: getattr(hyperparameters, name) for name in limits}
        for name in limits:
            patch.setattr(hyperparameters, name, 0)
        yield usual


@pytest.fixture
def mixed_by_default(at_the_mode, monkeypatch):
    """Small fits mix hyper-parameters, as they do for users."""
    from censored_gp.inference import hyperparameters

    for name, usual in at_the_mode.items():
        monkeypatch.setattr(hyperparameters, name, usual)


@pytest.fixture(scope="module")
def quickly():
    """Compile quickly: what is tested is not how fast programs run."""
    from support.quick import compiling_quickly

    with compiling_quickly():
        yield


@pytest.fixture
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped, visibly, where it is absent."""
    named = os.environ.get("CENSORED_GP_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("CENSORED_GP_DATA does not name a folder of real data")
    return Path(named)


class Caught(Exception):
    """What an engine would have been given."""


@pytest.fixture
def begin(monkeypatch):
    """Fit up to the point where computing begins, and return the task and the settings."""
    import censored_gp.estimator.censored_gp

    def infer(engine, task, settings):
        raise Caught(task, settings)

    def fit(model, *args, **keywords) -> Any:
        with pytest.raises(Caught) as caught:
            model.fit(*args, **keywords)
        return caught.value.args

    monkeypatch.setattr(censored_gp.estimator.censored_gp, "infer", infer)
    return fit
