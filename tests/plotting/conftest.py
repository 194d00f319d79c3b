"""Axes to draw on, and the small model, compiled quickly."""

import jax
import pytest

import fitted


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Compile quickly: what is tested is not how fast programs run."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def model(quick):
    return fitted.model()


@pytest.fixture
def ax():
    return pytest.importorskip("matplotlib.figure").Figure().subplots()
