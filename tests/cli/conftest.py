"""What tests of the command line share: one small table, and one model fitted to it."""

import csv
import shlex

import pytest
from typer.testing import CliRunner

from censored_gp import simulate
from censored_gp.cli import app
from censored_gp.cli.output import write

FIT = (
    "fit bikes.csv --outputs station_1,station_2 --time time --inputs rain "
    "--censored station_1_empty,station_2_empty --model mocgp --save bikes.cgp"
)
HOURS = 48


@pytest.fixture(scope="module", autouse=True)
def quickly(quickly):
    """Every test here compiles quickly."""
    return quickly


@pytest.fixture(scope="session")
def run():
    """Run a command line as a shell would, and return how it ended."""

    def run(line, **settings):
        return CliRunner().invoke(app, shlex.split(line), **settings)

    return run


@pytest.fixture(scope="session")
def rows(run):
    """Run a command that must succeed, and return the rows of the CSV on its standard output."""

    def rows(line):
        result = run(line)
        assert result.exit_code == 0, result.output
        return list(csv.DictReader(result.stdout.splitlines()))

    return rows


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with two days of a bike share, and the inputs of the day after."""
    folder = tmp_path_factory.mktemp("bikes")
    table = simulate.bike_share(days=3, seed=1).table(truth=True)
    table["time"] = table["time"].astype("datetime64[us]")
    write({k: v[:HOURS] for k, v in table.items()}, str(folder / "bikes.csv"))
    ahead = {name: table[name][HOURS:] for name in ("time", "rain")}
    write(ahead, str(folder / "next_week.csv"))
    return folder


@pytest.fixture(scope="session")
def fitted(folder, run):
    """How fitting the table ended; the model is in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run(FIT)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def here(folder, fitted, monkeypatch):
    """The folder, with the model in it, as the working directory."""
    monkeypatch.chdir(folder)
    return folder
