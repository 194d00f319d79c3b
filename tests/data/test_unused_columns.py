"""Columns that a model does not use, and kinds of pandas columns that pyarrow does not know."""

import datetime

import numpy as np
import pandas as pd
import pytest

from censored_gp.data.errors import DataError
from censored_gp.data.inputs import read_inputs
from censored_gp.data.layout import read_training
from censored_gp.data.tables import read_table

FRAME = pd.DataFrame({"t": np.arange(6), "a": [1.0, 2, 3, 4, 5, 6]})
NOTES = {
    "mixed": ["x", 3, datetime.date(2024, 1, 1), None, None, None],
    "lists": [[1, 2]] * 6,
    "complex": [1j] * 6,
}


@pytest.mark.parametrize("values", NOTES.values(), ids=NOTES)
@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: dict(frame.items())])
def test_a_column_that_cannot_be_read_is_refused_only_where_it_is_used(make, values):
    table = make(FRAME.assign(note=pd.Series(values, dtype=object)))
    found = read_training(table, "a", time="t").observations
    np.testing.assert_array_equal(found.lower[:, 0], FRAME.a)
    with pytest.raises(DataError) as caught:
        read_training(table, "a", time="t", inputs="note")[2].column("note", "Input")
    assert caught.value.column == "note"


def test_sparse_columns_are_read():
    found = read_table(FRAME.assign(a=pd.arrays.SparseArray(FRAME.a))).numbers("a", "Output")
    np.testing.assert_array_equal(found, FRAME.a)


def test_periods_are_the_times_they_begin():
    frame = FRAME.assign(t=pd.period_range("2024-01-01", periods=6, freq="D"))
    times = read_table(frame).column("t", "Time").values
    np.testing.assert_array_equal(times, np.datetime64("2024-01-01") + np.arange(6))


def test_an_index_of_mixed_kinds_is_refused_with_advice():
    with pytest.raises(DataError, match="reset_index"):
        read_table(FRAME.set_index(pd.Index([1, "x"] * 3)))


@pytest.mark.parametrize("values", [[1.0, 2.5], [12345678, 7], [True, False]])
def test_numbers_are_recognised_as_categories(values):
    inputs, columns = read_inputs(pd.DataFrame({"k": pd.Categorical(values * 3)}))
    again, _ = read_inputs(pd.DataFrame({"k": values * 3}), columns)
    np.testing.assert_array_equal(again, inputs)
