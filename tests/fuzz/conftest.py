"""What the fuzz tests share: how many cases, what may be raised, and one small fitted model.

``make fuzz`` (``pytest tests/fuzz --cases 10000``) tries at least so many cases in all, other ones
each time; the default suite tries a few hundred, always the same.
"""

import contextlib
import signal
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from censored_gp import CensoredGP
from censored_gp.kernels import RBF, Periodic

SHARES = {
    "frames": 0.35, "bounds": 0.2, "kernels": 0.1, "queries": 0.1, "files": 0.1, "contents": 0.1,
    "command_lines": 0.08, "fits": 0.01,
}  # fmt: skip
"""What part of the cases each test gets."""
LONG = 60
"""Seconds after which a case counts as one that hangs."""
DOCUMENTED = (ValueError, TypeError)
"""What may be raised for bad input; `DataError` and `NotFittedError` are a ValueError."""


def pytest_collection_modifyitems(items):
    """Give every test here its share of the cases."""
    for item in items:
        test = getattr(getattr(item, "function", None), "hypothesis", None)
        share = next((s for n, s in SHARES.items() if item.name.endswith(n)), None)
        if test is None or share is None:
            continue
        cases = item.config.getoption("--cases")
        chosen = settings(
            max_examples=max(3, int(np.ceil(share * cases))),
            derandomize=cases < 1000,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        item.function._hypothesis_internal_use_settings = chosen


@contextlib.contextmanager
def refusing():
    """Let documented errors pass; fail on others, and where nothing comes back."""

    def hangs(*_):
        pytest.fail(f"nothing came back within {LONG} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(LONG)
    words = "none"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DOCUMENTED as error:
        words = str(error)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert 0 < len(words) < 5000, "an error without words, or of too many"


HOURS = np.datetime64("2024-05-01T00", "h") + np.arange(24)


def table():
    """A day of two outputs with every kind of cell."""
    day = np.round(3 + 2 * np.sin(np.arange(24) / 4))
    return {
        "time": HOURS, "rain": np.linspace(0, 1, 24), "a": day, "b": np.where(day > 4, np.nan, day),
        "a_empty": day >= 5, "b_empty": day < 2,
    }  # fmt: skip


@pytest.fixture(scope="session")
def model():
    """The one model that every query is put to."""
    kernels = {"mean": [Periodic("1d", 0.8, columns="time"), RBF(0.5, columns="rain")]}
    made = CensoredGP("poisson", kernels=kernels, heteroscedastic=False, max_iterations=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(
            table(), outputs=["a", "b"], time="time", inputs="rain", censored=["a_empty", "b_empty"]
        )
