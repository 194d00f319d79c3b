"""Inputs in words: one 0/1 column for each category that the training data have."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from censored_gp.data import inputs as categories
from censored_gp.data.inputs import read_inputs
from censored_gp.kernels import RBF
from censored_gp.model.starting_values import default_kernels

SKY = ["wet", "dry", "dry", "snow"]
MAKES = {
    "dict": lambda d: d,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pandas category": lambda d: pd.DataFrame(d).astype({"sky": "category"}),
    "polars category": lambda d: pl.DataFrame(d).with_columns(pl.col("sky").cast(pl.Categorical)),
}


def table(sky=SKY):
    return {"x": np.arange(float(len(sky))), "sky": list(sky)}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_words_become_centred_columns_of_zero_and_one(make):
    X, columns = read_inputs(make(table()))
    assert columns.names == ("x", "sky=dry", "sky=snow", "sky=wet")
    assert columns.categories == {"sky": ("dry", "snow", "wet")}
    assert columns.groups == {"x": (0,), "sky": (1, 2, 3)}
    ones = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(X[:, 1:], ones - ones.mean(axis=0))


def test_new_data_are_read_by_the_categories_of_the_training_data():
    X, columns = read_inputs(table())
    again, _ = read_inputs(table(SKY[:2]), columns)
    np.testing.assert_array_equal(again[:, 1:], X[:2, 1:])
    with pytest.raises(ValueError, match=r"'sky', row 1: found the category 'fog'.*'dry', 'snow'"):
        read_inputs(table(["dry", "fog"]), columns)


def test_a_missing_word_is_refused():
    with pytest.raises(ValueError, match=r"Input 'sky', row 1: found no category"):
        read_inputs(table(["dry", None]))


def test_numbers_that_are_declared_categories_are_words():
    frame = pd.DataFrame({"line": pd.Series([4, 5, 4]).astype("category")})
    assert read_inputs(frame)[1].names == ("line=4", "line=5")
    assert read_inputs(pd.DataFrame({"line": ["4", "5", "4"]}))[1].names == ("line",)


@pytest.mark.parametrize(
    "text", [["1", "dry"], ["2024-06-03", "dry"], ["2024-06-03", "2024-06-04"]]
)
def test_text_that_reads_as_something_else_is_no_category(text):
    with pytest.raises(ValueError, match=r"Input 'sky', row \d: found '.*Convert text"):
        read_inputs(pd.DataFrame({"sky": text}))


def test_names_and_free_text_are_refused():
    many = [f"customer {i}" for i in range(categories.MOST_CATEGORIES + 1)]
    with pytest.raises(ValueError, match=r"Input 'sky': found 51 different words"):
        read_inputs(table(many))


def test_a_kernel_looks_at_all_categories_of_a_column():
    _, columns = read_inputs(table())
    assert RBF(columns="sky").resolve(columns).columns == (1, 2, 3)
    assert RBF(columns="sky=wet").resolve(columns).columns == (3,)


def test_by_default_the_categories_of_a_column_share_a_kernel():
    times = np.datetime64("2024-06-03T00", "h") + np.arange(4)
    X, columns = read_inputs({"time": times, "sky": SKY})
    kernels = default_kernels(columns, X, "mean")
    assert kernels[-1].columns == (1, 2, 3)


def test_some_columns_alone():
    _, columns = read_inputs(table())
    only = columns.only(["sky"])
    assert only.names == columns.names[1:]
    assert read_inputs({"sky": ["wet"]}, only)[0].shape == (1, 3)
