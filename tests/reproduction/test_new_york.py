"""The New York protocol of the paper, on the real file where it is there, and on one made here."""

import gzip

import numpy as np
import pytest
from scipy.special import expit

from reproduction import protocol

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
    with gzip.open(tmp_path / protocol.NEW_YORK_FILE, "wt") as file:
        file.write("\n".join(lines) + "\n")
    return tmp_path


def test_the_split_is_the_papers(made_folder):
    data = protocol.new_york(0, folder=made_folder)
    assert data.names == ("3711", "366")
    assert data.time[0] == np.datetime64("2018-06-01T00")
    assert data.time[-1] == np.datetime64("2018-08-01T00")
    sizes = [len(data.time[rows]) for rows in (data.train, data.validation, data.test)]
    assert sizes == [732, 293, 440]
    assert data.test.stop == len(data.time) == len(data.truth)


def test_inputs_have_the_weather_asked_for_without_gaps(made_folder):
    data = protocol.new_york(0, folder=made_folder)
    inputs = data.inputs("rain", "wind_speed", rows=data.train)
    assert list(inputs) == ["time", "rain", "wind_speed"]
    assert all(len(column) == 732 for column in inputs.values())
    np.testing.assert_array_equal(inputs["rain"], inputs["time"].astype(int) % 24 == 7)
    np.testing.assert_array_equal(inputs["wind_speed"], 4.0)
    with pytest.raises(ValueError, match="hail"):
        data.inputs("hail")


def test_only_censored_hours_are_changed_and_only_downwards(made_folder):
    data = protocol.new_york(1, folder=made_folder)
    np.testing.assert_array_equal(data.observed[~data.censored], data.truth[~data.censored])
    assert np.all(data.observed <= data.truth)
    assert np.all(data.observed == np.round(data.observed))
    seen = data.observations(data.train)
    assert np.all(seen.lower <= data.truth[data.train])
    np.testing.assert_array_equal(np.isinf(seen.upper), data.censored[data.train])


def test_censoring_has_the_probability_of_the_hour_before(made_folder):
    draws = [protocol.new_york(seed, folder=made_folder) for seed in range(40)]
    share = np.mean([d.censored for d in draws], axis=0)
    truth = draws[0].truth
    # The first hour follows the last of May, which the file holds but the data do not.
    with gzip.open(made_folder / protocol.NEW_YORK_FILE, "rt") as file:
        rows = [line.split(",") for line in file][1:]
    flow = np.array([float(r[3]) - float(r[2]) for r in rows]).reshape(2, -1).T
    probability = 1 - expit(flow[23:-1] + 5)
    assert truth.shape == probability.shape
    deviation = (share - probability) / np.sqrt(probability * (1 - probability) / 40)
    assert abs(deviation.mean()) < 0.1
    assert np.corrcoef(share.ravel(), probability.ravel())[0, 1] > 0.95


def test_hidden_values_are_uniform_from_nought_to_the_truth():
    truth = np.full((30_000, 1), 4.0)
    whole, everywhere = protocol.censor(truth, np.ones_like(truth), seed=0)
    assert everywhere.all()
    np.testing.assert_allclose(np.bincount(whole.astype(int).ravel()) / 30_000, 0.2, atol=0.01)
    real, _ = protocol.censor(truth, np.ones_like(truth), seed=0, whole_numbers=False)
    assert real.mean() == pytest.approx(2.0, abs=0.03)
    assert real.max() < 4.0


def test_a_seed_makes_a_draw(made_folder):
    first, again, other = (protocol.new_york(s, folder=made_folder) for s in (5, 5, 6))
    np.testing.assert_array_equal(first.observed, again.observed)
    assert np.any(first.censored != other.censored)
    np.testing.assert_array_equal(first.truth, other.truth)


def test_corrected_counts_are_half_of_those_published(made_folder):
    published = protocol.new_york(0, folder=made_folder)
    corrected = protocol.new_york(0, folder=made_folder, corrected=True)
    np.testing.assert_array_equal(published.truth[:, 0], corrected.truth[:, 0])
    np.testing.assert_array_equal(published.truth[:, 1], 2 * corrected.truth[:, 1])


def test_an_absent_file_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("CENSORED_GP_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"citibike_3711.*CENSORED_GP_DATA"):
        protocol.new_york(0)


def test_the_real_file_reads_as_the_paper_says(data_folder):
    data = protocol.new_york(0, folder=data_folder)
    assert len(data.time) == 1465
    assert np.all(np.diff(data.time) == np.timedelta64(1, "h"))
    assert np.all(data.truth[:, 1] % 2 == 0), "station 366 is published doubled"
    assert all(np.isfinite(column).all() for column in data.weather.values())
    # The draw that the tables of the documentation are about.
    totals = [part.sum() for part in (data.truth, data.observed, data.censored)]
    assert totals == [20844, 17460, 494]
