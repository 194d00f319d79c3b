"""Fixtures that every test shares."""

from pathlib import Path

import jax
import pytest


@pytest.fixture(autouse=True)
def float64():
    """Low layers assume double precision; the package never switches it on for its host."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped, visibly, where it is absent."""
    from censored_gp import datasets

    try:
        return datasets.data_folder()
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
