"""Every oracle that is installed agrees."""

import warnings

import pytest

from oracles.agreement import ORACLES, Absent

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mixed_by_default")]


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_agrees(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rows = list(ORACLES[name]())
        except Absent as absent:
            pytest.skip(str(absent))
    assert rows
    assert not [row for row in rows if not row[1] <= row[2]]
