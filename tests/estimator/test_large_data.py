"""Tables larger than memory: read by column, kept in files, and answered in parts, all alike."""

import gc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from censored_gp import MOCGP
from censored_gp.data.errors import DataError
from censored_gp.data.files import File
from censored_gp.data.layout import read_training
from censored_gp.data.storage import BUDGET_VARIABLE, Storage, warn_of_need
from censored_gp.inference import elbo, natural

HOURS = 72
FIT = {"outputs": ["a", "b"], "time": "time", "censored": ["full", "full"]}


@pytest.fixture(scope="module")
def frame():
    """Three days of two outputs, and columns that no model asks for."""
    rng, hours = np.random.default_rng(0), np.arange(HOURS)
    level = np.exp(1.0 + 0.7 * np.sin(2 * np.pi * hours / 24))
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-06-03", periods=HOURS, freq="h"),
            "a": rng.poisson(level).astype(float),
            "b": rng.poisson(2 * level).astype(float),
            "full": rng.random(HOURS) < 0.2,
            "sky": np.where(rng.random(HOURS) < 0.5, "wet", "dry"),
        }
    )


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The same rows in three files, one of them in a folder of its own."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "more").mkdir()
    names = ("part-0.parquet", "more/part-1.parquet", "part-2.pq")
    for name, rows in zip(sorted(names), np.array_split(np.arange(HOURS), 3), strict=True):
        parquet.write_table(pa.Table.from_pandas(frame.iloc[rows]), folder / name)
    (folder / "README.txt").write_text("not a table")
    return folder


@pytest.fixture(scope="module")
def fitted(frame):
    """A model of the table in memory."""
    return MOCGP("poisson", max_iterations=6).fit(frame, **FIT)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_folder_of_parquet_files_is_fitted_as_the_table_is(fitted, folder, frame):
    found = MOCGP("poisson", max_iterations=6).fit(folder, **FIT)
    assert found.report_ == fitted.report_
    pd.testing.assert_frame_equal(found.impute(), fitted.impute())
    pd.testing.assert_frame_equal(found.predict(folder), fitted.predict(frame))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_arrays_in_files_are_those_in_memory(fitted, frame, monkeypatch):
    monkeypatch.setenv(BUDGET_VARIABLE, "0")
    monkeypatch.setattr("censored_gp.data.storage.LARGE", 0)
    storage = Storage()
    for module in (elbo, natural):
        monkeypatch.setattr(module, "allocate", storage.allocate)
    model = MOCGP("poisson", max_iterations=6)
    with pytest.warns(UserWarning, match=BUDGET_VARIABLE):
        model.fit(frame, **FIT)
    assert model.report_.trace == fitted.report_.trace


def test_memory_is_counted_as_long_as_it_is_used(monkeypatch):
    monkeypatch.setenv(BUDGET_VARIABLE, "1e-3")
    monkeypatch.setattr("censored_gp.data.storage.LARGE", 0)
    storage = Storage()
    first = storage.allocate((100_000,))
    with pytest.warns(UserWarning, match=r"0\.0 GB"):
        assert isinstance(storage.allocate((100_000,)), np.memmap)
    assert not isinstance(first, np.memmap)
    del first
    gc.collect()
    assert not isinstance(storage.allocate((100_000,)), np.memmap)
    monkeypatch.setenv(BUDGET_VARIABLE, "much")
    with pytest.raises(ValueError, match="much"):
        Storage().allocate((1,))


def test_a_fit_that_needs_too_much_memory_says_how_much(monkeypatch):
    monkeypatch.setattr("censored_gp.data.storage.available", lambda: 4e9)
    with pytest.warns(UserWarning, match=r"100,000,000 rows .* 4\.0 GB"):
        warn_of_need(10**8, 2)
    warn_of_need(10**6, 2)


@pytest.mark.parametrize("by", [None, "place"])
def test_wide_and_long_tables_are_read_alike(frame, tmp_path, by):
    table, roles = frame, FIT | {"inputs": "sky"}
    if by is not None:
        table = frame.melt(["time", "full", "sky"], ["a", "b"], by)
        roles = {"outputs": "value", "by": by, "time": "time", "inputs": "sky", "censored": "full"}
    # Files in folders such as place=a have that column in the folder's name.
    parquet.write_to_dataset(pa.Table.from_pandas(table), tmp_path, partition_cols=by and [by])
    found, expected = (read_training(data, **roles) for data in (tmp_path, table))
    for end in ("lower", "upper"):
        own, wanted = (getattr(read.observations, end) for read in (found, expected))
        np.testing.assert_array_equal(own, wanted)
    for name in ("time", "sky"):
        own, wanted = (read.inputs.column(name, "").values for read in (found, expected))
        np.testing.assert_array_equal(own, wanted)


def test_columns_are_read_when_they_are_asked_for(folder, monkeypatch):
    asked, read = [], File.read_parquet

    def note(self, names, rows=None):
        asked.extend(names)
        return read(self, names, rows)

    monkeypatch.setattr(File, "read_parquet", note)
    found = read_training(folder, **FIT)
    assert "sky" not in asked
    assert len(set(found.rows.table.column("sky", "by").values)) == 2
    assert asked[-1] == "sky"


def test_a_folder_that_holds_no_table_is_refused(tmp_path):
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=tmp_path.name):
        read_training(tmp_path, "a", time="b")


@pytest.mark.parametrize("rows", [slice(0, 10), slice(60, None), slice(5, 5)])
def test_some_rows_are_imputed_as_all_are(fitted, rows):
    every = (fitted.impute(), *fitted.impute_interval(0.8))
    some = (fitted.impute(rows=rows), *fitted.impute_interval(0.8, rows=rows))
    for own, wanted in zip(some, every, strict=True):
        pd.testing.assert_frame_equal(
            own.reset_index(drop=True), wanted.iloc[rows].reset_index(drop=True)
        )
