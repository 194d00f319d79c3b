"""Axes to draw on, and the small model, compiled quickly."""

import pytest

from support import fitted


@pytest.fixture(scope="module", autouse=True)
def quickly(quickly):
    """Every test here compiles quickly."""
    return quickly


@pytest.fixture
def model(quickly):
    return fitted.model()


@pytest.fixture
def ax():
    return pytest.importorskip("matplotlib.figure").Figure().subplots()
