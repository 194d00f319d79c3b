"""The New York protocol of the paper, on the real file where it is there, and on one made here."""

import gzip
import os

import numpy as np
import pytest
from scipy.special import expit

from censored_gp import datasets
from censored_gp.datasets.folder import read_rows
from censored_gp.datasets.stations import MANY_FILE

HEADER = (
    "station,datetime,pickups,dropoffs,pickups_corrected,dropoffs_corrected,temperature,"
    "dew_point_temperature,precip_prob,humidity,wind_speed,sunrise,icon"
)


@pytest.fixture
def made_folder(tmp_path):
    """A folder with a file of the same format, from the last day of May on."""
    time = np.datetime64("2018-05-31T00", "s") + np.arange(24 + 1465) * np.timedelta64(3600, "s")
    rng = np.random.default_rng(0)
    lines = [HEADER]
    for station, factor in (("3711", 1), ("366", 2)):
        for t, (pickups, dropoffs) in zip(time, rng.poisson(6, (len(time), 2)), strict=True):
            wind = "" if str(t) == "2018-06-02T03:00:00" else "4.0"
            icon = "rain" if str(t).endswith("T07:00:00") else "clear"
            counts = f"{pickups * factor},{dropoffs * factor},{pickups},{dropoffs}"
            stamp = str(t).replace("T", " ")
            lines.append(f"{station},{stamp},{counts},20.0,10.0,0.0,0.5,{wind},1,{icon}")
    with gzip.open(tmp_path / datasets.NEW_YORK_FILE, "wt") as file:
        file.write("\n".join(lines) + "\n")
    return tmp_path


def test_the_split_is_the_papers(made_folder):
    data = datasets.new_york(0, folder=made_folder)
    assert data.names == ("3711", "366")
    assert data.time[0] == np.datetime64("2018-06-01T00")
    assert data.time[-1] == np.datetime64("2018-08-01T00")
    sizes = [len(data.time[rows]) for rows in (data.train, data.validation, data.test)]
    assert sizes == [732, 293, 440]
    assert data.test.stop == len(data.time) == len(data.truth)


def test_inputs_have_the_weather_asked_for_without_gaps(made_folder):
    data = datasets.new_york(0, folder=made_folder)
    inputs = data.inputs("rain", "wind_speed", rows=data.train)
    assert list(inputs) == ["time", "rain", "wind_speed"]
    assert all(len(column) == 732 for column in inputs.values())
    np.testing.assert_array_equal(inputs["rain"], inputs["time"].astype(int) % 24 == 7)
    np.testing.assert_array_equal(inputs["wind_speed"], 4.0)
    with pytest.raises(ValueError, match="hail"):
        data.inputs("hail")


def test_only_censored_hours_are_changed_and_only_downwards(made_folder):
    data = datasets.new_york(1, folder=made_folder)
    np.testing.assert_array_equal(data.observed[~data.censored], data.truth[~data.censored])
    assert np.all(data.observed <= data.truth)
    assert np.all(data.observed == np.round(data.observed))
    seen = data.observations(data.train)
    assert np.all(seen.lower <= data.truth[data.train])
    np.testing.assert_array_equal(np.isinf(seen.upper), data.censored[data.train])


def test_censoring_has_the_probability_of_the_hour_before(made_folder):
    draws = [datasets.new_york(seed, folder=made_folder) for seed in range(40)]
    share = np.mean([d.censored for d in draws], axis=0)
    truth = draws[0].truth
    # The first hour follows the last of May, which the file holds but the data do not.
    with gzip.open(made_folder / datasets.NEW_YORK_FILE, "rt") as file:
        rows = [line.split(",") for line in file][1:]
    flow = np.array([float(r[3]) - float(r[2]) for r in rows]).reshape(2, -1).T
    probability = 1 - expit(flow[23:-1] + 5)
    assert truth.shape == probability.shape
    deviation = (share - probability) / np.sqrt(probability * (1 - probability) / 40)
    assert abs(deviation.mean()) < 0.1
    assert np.corrcoef(share.ravel(), probability.ravel())[0, 1] > 0.95


def test_hidden_values_are_uniform_from_nought_to_the_truth():
    truth = np.full((30_000, 1), 4.0)
    whole, everywhere = datasets.censor(truth, np.ones_like(truth), seed=0)
    assert everywhere.all()
    np.testing.assert_allclose(np.bincount(whole.astype(int).ravel()) / 30_000, 0.2, atol=0.01)
    real, _ = datasets.censor(truth, np.ones_like(truth), seed=0, whole_numbers=False)
    assert real.mean() == pytest.approx(2.0, abs=0.03)
    assert real.max() < 4.0


def test_a_seed_makes_a_draw(made_folder):
    first, again, other = (datasets.new_york(s, folder=made_folder) for s in (5, 5, 6))
    np.testing.assert_array_equal(first.observed, again.observed)
    assert np.any(first.censored != other.censored)
    np.testing.assert_array_equal(first.truth, other.truth)


def test_corrected_counts_are_half_of_those_published(made_folder):
    published = datasets.new_york(0, folder=made_folder)
    corrected = datasets.new_york(0, folder=made_folder, corrected=True)
    np.testing.assert_array_equal(published.truth[:, 0], corrected.truth[:, 0])
    np.testing.assert_array_equal(published.truth[:, 1], 2 * corrected.truth[:, 1])


def test_absent_data_are_said_to_be_absent(tmp_path, monkeypatch):
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"nowhere.*CENSORED_GP_DATA"):
        datasets.data_folder()
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path))
    assert datasets.data_folder() == tmp_path
    with pytest.raises(FileNotFoundError, match=r"citibike_3711.*CENSORED_GP_DATA"):
        datasets.new_york(0)


def test_a_file_that_has_changed_is_read_anew_and_rows_are_the_callers_own(tmp_path):
    path = tmp_path / "demand.csv"
    path.write_text("hour,pickups\n8,12\n")
    rows = read_rows(path)
    rows[0]["pickups"] = "0"
    rows.clear()
    assert read_rows(path) == [{"hour": "8", "pickups": "12"}]
    path.write_text("hour,pickups\n8,12\n9,7\n")
    assert len(read_rows(path)) == 2
    path.write_text("hour,pickups\n8,12\n9,8\n")
    os.utime(path, (1, 1))
    assert read_rows(path)[1]["pickups"] == "8"


def test_the_real_file_reads_as_the_paper_says(data_folder):
    data = datasets.new_york(0, folder=data_folder)
    assert len(data.time) == 1465
    assert np.all(np.diff(data.time) == np.timedelta64(1, "h"))
    assert np.all(data.truth[:, 1] % 2 == 0), "station 366 is published doubled"
    assert all(np.isfinite(column).all() for column in data.weather.values())
    assert 0.05 < data.censored[data.train].mean() < 0.5


@pytest.fixture
def many_stations(tmp_path):
    """A file of five stations: 10 and 30 are alike, and so are 20 and 40; 50 is a quiet one."""
    rng = np.random.default_rng(0)
    time = np.datetime64("2016-06-01T00", "s") + np.arange(1464) * np.timedelta64(3600, "s")
    a, b, c = rng.poisson(((9,), (5,), (0.2,)), (3, len(time)))
    counts = np.stack([a, b, 3 * a, 2 * b, c], axis=1)
    lines = ["datetime,temp_mean,10,20,30,40,50"]
    for t, own in zip(time, counts, strict=True):
        lines.append(f"{str(t).replace('T', ' ')},20.0,{','.join(map(str, own))}")
    with gzip.open(tmp_path / MANY_FILE, "wt") as file:
        file.write("\n".join(lines) + "\n")
    return tmp_path


def test_stations_are_taken_from_busy_to_quiet_each_with_its_like(many_stations):
    found = datasets.station_pairs(4, folder=many_stations)
    assert found == [("30", "10"), ("40", "20"), ("10", "30"), ("20", "40")]
    assert datasets.station_pairs(1, folder=many_stations) == [("10", "30")], "the middle one"
    some = datasets.station_pairs(3, without=["40"], folder=many_stations)
    assert [station for station, _ in some] == ["30", "10", "20"]
    assert "40" not in {partner for _, partner in some}


def test_any_two_stations_are_censored_alike(many_stations):
    data = datasets.two_stations(("10", "30"), 0, folder=many_stations)
    assert data.names == ("10", "30")
    assert data.split == (732, 293, 415)
    assert 0.05 < data.censored.mean() < 0.95
    assert np.all(data.observed <= data.truth)
    # Flows are put on one scale, so that the busier one does not run out more often.
    few, many = data.censored.mean(axis=0)
    assert few == pytest.approx(many, abs=0.1)
    for other in ("77", "temp_mean"):
        with pytest.raises(ValueError, match=f"has no station '{other}'"):
            datasets.two_stations(("10", other), 0, folder=many_stations)
    with pytest.raises(
        ValueError, match=r"count: found 5\. Accepted is a whole number from 1 to 4"
    ):
        datasets.station_pairs(5, folder=many_stations)


def test_two_files_tell_the_same_of_a_pair(data_folder):
    one, other = datasets.new_york_2016("379", 3), datasets.two_stations(("379", "523"), 3)
    np.testing.assert_array_equal(one.observed, other.observed)
    np.testing.assert_array_equal(one.time, other.time)
    np.testing.assert_array_equal(one.weather["temperature"], other.weather["temperature"])
