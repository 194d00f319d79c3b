"""Fixtures of the engines' tests."""

import pytest

from censored_gp.model.compilation import blas_threads_for


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Matrices are small: two threads would only wait for each other."""
    with blas_threads_for(1):
        yield
