"""The demonstration: what it shows, and that it says so in the terminal."""

import re

import numpy as np
import pytest

from censored_gp import demo
from censored_gp.cli.options import COMMANDS


@pytest.fixture(scope="module")
def small():
    """The demonstration on few days with the simplest family of counts."""
    return demo.fit_both(days=10, likelihood="poisson")


@pytest.mark.slow
def test_knowing_where_bikes_ran_out_brings_the_models_nearer_to_the_truth():
    small = demo.fit_both(days=16, likelihood="poisson")
    table = {row[0]: [float(cell.strip("%").replace(",", "")) for cell in row[1:]]
             for row in demo.table_rows(small)}  # fmt: skip
    seen, filled, truth = table["Demand per hour where bikes ran out, filled in"]
    assert truth == pytest.approx(small.world.demand[small.ran_out].mean(), abs=0.05)
    assert seen == pytest.approx(small.world.observed[small.ran_out].mean(), abs=0.05)
    assert abs(filled - truth) < 0.5 * abs(seen - truth)
    naive, censored, truth = table["the same, predicted"]
    assert naive < censored <= 1.1 * truth
    naive, censored, _ = table["Mean error where bikes ran out"]
    assert censored < 0.9 * naive
    naive, censored, wanted = table["90% intervals right where bikes ran out"]
    assert abs(censored - wanted) < abs(naive - wanted)


def test_the_unseen_days_are_not_trained_on(small):
    assert small.training == 24 * 3
    assert not small.ran_out[small.training :].any()
    assert len(small.censored.mean) == 24 * 10


def test_the_days_drawn_are_those_with_most_to_show():
    ran_out = np.zeros(24 * 8, bool)
    ran_out[[30, 130, 140, 160]] = True
    assert demo._busiest(ran_out) == 72
    assert demo._busiest(np.zeros(24, bool)) == 0


def test_a_table_is_printed_and_a_figure_drawn(small, run, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    asked = {}
    monkeypatch.setattr(demo, "fit_both", lambda **settings: asked.update(settings) or small)
    monkeypatch.chdir(tmp_path)
    result = run(COMMANDS["demo"].examples[0])
    assert result.exit_code == 0, result.output
    assert asked == {"days": 15, "seed": 1, "likelihood": "poisson", "progress": True}
    assert re.search(r"naive\W+censored\W+truth", result.stdout)
    assert "Bikes ran out in" in result.stdout
    assert "Simulating 15 days" in result.stderr
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_without_matplotlib_there_is_still_a_table(small, run, monkeypatch, tmp_path):
    def draw(*_):
        raise ImportError("Drawing needs matplotlib")

    monkeypatch.setattr(demo, "fit_both", lambda **_: small)
    monkeypatch.setattr(demo, "draw_figure", draw)
    result = run(f"demo --figure {tmp_path}/picture.png")
    assert result.exit_code == 0
    assert "No figure. Drawing needs matplotlib" in result.stderr


def test_too_few_days_are_refused(run):
    assert run("demo --days 3").exit_code == 2
