"""Files that the tests of the terminal share: one small table, and one model fitted to it."""

import shlex

import pytest
from typer.testing import CliRunner

from censored_gp import cli, simulate
from censored_gp.cli.options import COMMANDS

HOURS = 48


@pytest.fixture(scope="module", autouse=True)
def quickly(quickly):
    """Every test here compiles quickly."""
    return quickly


@pytest.fixture(scope="session")
def run():
    """Run a command line as a shell would, and return how it ended."""

    def run(line, **settings):
        words = shlex.split(line.replace("\\\n", " ").removeprefix("censored-gp"))
        return CliRunner().invoke(cli.app, words, **settings)

    return run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The files that the examples of the help speak of."""
    folder = tmp_path_factory.mktemp("bikes")
    world = simulate.bike_share(days=3, seed=1)
    names = [f"{n}{end}" for n in world.names for end in ("", "_empty", "_truth")]
    lines = [",".join(["time", "rain", *names])]
    for i in range(HOURS + 24):
        columns = (world.observed[i], world.censored[i], world.demand[i])
        cells = [str(column[d]) for d in range(2) for column in columns]
        lines.append(",".join([f"{world.time[i]}:00", str(world.rain[i]), *cells]))
    (folder / "bikes.csv").write_text("\n".join(lines[: HOURS + 1]) + "\n")
    ahead = [",".join(line.split(",")[:2]) for line in [lines[0], *lines[HOURS + 1 :]]]
    (folder / "next_week.csv").write_text("\n".join(ahead) + "\n")
    return folder


@pytest.fixture(scope="session")
def fitted(folder, run):
    """What fitting the simplest model of the table said; the file of the model is in the folder."""
    line = COMMANDS["fit"].examples[0].replace("--likelihood poisson", "--model mocgp")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run(line)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def here(folder, fitted, monkeypatch):
    """The folder, with a model in it, as the working directory."""
    monkeypatch.chdir(folder)
    return folder
