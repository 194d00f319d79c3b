"""Files are downloaded once, and tried again; tables are read with their types."""

import gzip

import numpy as np
import pytest

from censored_gp.datasets.public import data_folder, fetch, read_columns

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def address(web):
    (web.folder / "data.bin").write_bytes(CONTENT)
    return f"{web.address}/data.bin"


def test_a_file_is_downloaded_once(address, web, tmp_path):
    path = fetch(address, "data.bin", tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(address, "data.bin", path.parent) == path
    assert web.requests == ["GET /data.bin 200"]
    named = fetch(address, "other.bin", path.parent)
    assert named.name == "other.bin"
    assert named.read_bytes() == CONTENT


def test_a_download_that_failed_is_tried_again(address, web, tmp_path, monkeypatch):
    (web.folder / "data.bin").rename(web.folder / "late.bin")
    waited = []

    def wait(seconds):
        waited.append(seconds)
        (web.folder / "late.bin").rename(web.folder / "data.bin")

    monkeypatch.setattr("pooch.core.time.sleep", wait)
    assert fetch(address, "data.bin", tmp_path).read_bytes() == CONTENT
    assert len(waited) == 1


def test_what_is_not_there_or_not_reached_is_an_error_that_names_it(web, tmp_path):
    with pytest.raises(OSError, match=r"404.*other\.bin"):
        fetch(f"{web.address}/other.bin", "other.bin", tmp_path)
    with pytest.raises(OSError, match=r"data\.bin"):
        fetch("http://127.0.0.1:9/data.bin", "data.bin", tmp_path)
    assert not list(tmp_path.glob("*.bin"))


def test_the_folder_is_the_one_named_or_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CENSORED_GP_DATA", str(tmp_path / "named"))
    assert data_folder() == tmp_path / "named"
    monkeypatch.delenv("CENSORED_GP_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "censored-gp" / "downloads"


def test_tables_are_read_with_numbers_times_and_gaps(tmp_path):
    path = tmp_path / "demand.csv.gz"
    path.write_bytes(gzip.compress(b"hour,pickups,icon\n2018-06-01 08:00:00,12,rain\n,,\n"))
    table = read_columns(path)
    np.testing.assert_array_equal(table["hour"], np.array(["2018-06-01T08", "NaT"], "M8[s]"))
    np.testing.assert_array_equal(table["pickups"], [12, np.nan])
    assert table["icon"][0] == "rain"
    with pytest.raises(FileNotFoundError, match=r"absent\.csv.*CENSORED_GP_DATA"):
        read_columns(tmp_path / "absent.csv")
