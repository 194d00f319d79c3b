"""Sample data and the demonstration."""

import csv
import re

import pytest

from censored_gp.cli import commands, demonstration


def columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_every_data_set_is_listed(rows):
    found = columns(rows("data"))
    assert found["name"] == list(commands.DATA_SETS)


@pytest.mark.parametrize(
    ("name", "size", "mark", "length"),
    [
        ("bike_share", "--days 3", "_empty", 72),
        ("car_park", "--days 3", "_capacity", 33),
        ("shop", "--days 3", "_sold_out", 3),
        ("water_samples", "--samples 7", "_nondetect", 7),
    ],
)
def test_simulated_data_have_their_truth_beside_them(rows, name, size, mark, length):
    found = rows(f"data {name} {size} --seed 3")
    outputs = [name.removesuffix("_truth") for name in found[0] if name.endswith("_truth")]
    assert len(outputs) == 2
    assert all(output + mark in found[0] for output in outputs)
    assert len(found) == length
    assert found != rows(f"data {name} {size} --seed 4")


def test_data_are_written_to_a_file(run, tmp_path):
    assert run(f"data bike_share --output {tmp_path}/bikes.csv").exit_code == 0
    with (tmp_path / "bikes.csv").open() as lines:
        assert len(list(csv.DictReader(lines))) == 28 * 24


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("data moon", "moon"),
        ("data bike_share --days 0", "--days"),
        ("demo --days 3", "--days"),
    ],
)
def test_wrong_options_are_refused(run, line, option):
    result = run(line)
    assert result.exit_code == 2
    assert option in result.stderr


@pytest.fixture(scope="module")
def small():
    """The demonstration on few days with the simplest likelihood."""
    return demonstration.fit_both(10, 1, "gaussian")


def test_the_held_out_days_are_not_trained_on(small):
    assert small.training == 24 * 3
    assert not small.ran_out[small.training :].any()
    assert [len(model.observations_) for model in small.models] == [24 * 3] * 2


def test_the_demo_prints_a_table_and_draws_a_figure(small, run, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demonstration, "fit_both", lambda *_, **__: small)
    result = run(f"demo --days 15 --figure {tmp_path}/new/demo.png")
    assert result.exit_code == 0, result.output
    assert re.search(r"naive\W+censored\W+truth", result.stdout)
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_is_still_a_table(small, run, monkeypatch, tmp_path):
    def draw(*_):
        raise ImportError("Drawing needs matplotlib")

    monkeypatch.setattr(demonstration, "fit_both", lambda *_, **__: small)
    monkeypatch.setattr(demonstration, "draw_figure", draw)
    result = run(f"demo --figure {tmp_path}/demo.png")
    assert result.exit_code == 0
    assert "Drawing needs matplotlib" in result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("mixed_by_default")
def test_the_censored_model_comes_nearer_to_the_truth():
    small = demonstration.fit_both(16, 1, "poisson")
    table = [values for *_, values in demonstration.figures(small)]
    (seen, filled, truth), (naive, censored, _), *_ = table
    assert truth == pytest.approx(small.world.demand[small.ran_out].mean(), abs=0.05)
    assert abs(filled - truth) < 0.5 * abs(seen - truth)
    assert naive < censored <= 1.1 * truth
    naive, censored, _ = table[3]
    assert censored < 0.9 * naive
    naive, censored, wanted = table[-1]
    assert abs(censored - wanted) < abs(naive - wanted)
