"""Columns out of whatever a user has."""

from decimal import Decimal

import numpy as np
import pyarrow as pa

from censored_gp.cli.columns import as_numbers
from censored_gp.data.layout import read_training


def test_decimals_are_the_numbers_they_stand_for():
    texts = [f"{number / 1000:.3f}" for number in range(0, 9000, 7)]
    cells = pa.array([Decimal(text) for text in texts], pa.decimal128(9, 3))
    for column in (as_numbers(cells, str), cells):
        read = read_training(pa.table({"x": range(len(texts)), "y": column}), "y", inputs="x")
        np.testing.assert_array_equal(read.observations.lower[:, 0], list(map(float, texts)))
