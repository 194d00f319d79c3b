"""Fixtures that every test shares."""

import os
from pathlib import Path

import jax
import pytest

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def float64():
    """Low layers assume double precision; the package never switches it on for its host."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped, visibly, where it is absent."""
    named = os.environ.get("CENSORED_GP_DATA")
    folder = Path(named) if named else PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real data absent: no folder {folder} (set CENSORED_GP_DATA)")
    return folder
