"""Memory that will not be enough is told before anything is computed."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from censored_gp.cli import memory
from censored_gp.cli.problems import BadInput

MODEL = SimpleNamespace(coupled=True, heteroscedastic=True)
ALONE = SimpleNamespace(coupled=False, heteroscedastic=False)


@pytest.fixture
def free(monkeypatch):
    """Pretend that so many gigabytes are free."""
    return lambda size: monkeypatch.setattr(memory, "available", lambda: size * 1e9)


def test_what_is_free_is_read_from_the_system(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  2000000 kB\n")
    monkeypatch.setattr(memory, "MEMORY_FILE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "LIMIT_FILES", ())
    assert memory.available() == 2000000 * 1024
    (tmp_path / "max").write_text("900\n")
    (tmp_path / "current").write_text("500\n")
    monkeypatch.setattr(memory, "LIMIT_FILES", ((tmp_path / "max", tmp_path / "current"),))
    assert memory.available() == 400
    (tmp_path / "max").write_text("max\n")
    monkeypatch.setattr(memory, "MEMORY_FILE", tmp_path / "absent")
    assert memory.available() == float("inf")


def test_ten_million_rows_need_more_than_there_is(free):
    free(8)
    with pytest.raises(BadInput, match=r"t\.csv: fitting 10,000,000 rows of 2 .*GB .*8\.0 GB are"):
        memory.check_fitting("t.csv", (10**7, 2), MODEL)
    free(0.5)
    with pytest.raises(BadInput, match=r"t\.csv: reading 10,000,000 rows .*--ignore-memory"):
        memory.check_reading(Path("t.csv"), 10**7, 4)


def test_the_estimate_is_that_of_fits_that_were_measured(free):
    # 9,600 hours of two stations took 2.1 GB in all, of which 0.3 GB before the fit.
    free(1.5)
    with pytest.raises(BadInput):
        memory.check_fitting("t.csv", (9600, 2), MODEL)
    free(3)
    memory.check_fitting("t.csv", (9600, 2), MODEL)
    memory.check_fitting("t.csv", (9600, 2), ALONE)


def test_who_knows_better_may_go_on(free):
    free(0)
    memory.check_fitting("t.csv", (10**7, 2), MODEL, wanted=False)
    memory.check_reading(Path("t.csv"), 10**7, 4, wanted=False)


def test_a_command_stops_with_exit_code_2(run, folder, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e6)
    line = f"fit {folder}/bikes.csv --outputs station_1 --time time"
    result = run(line)
    assert result.exit_code == 2
    assert "bikes.csv: fitting 48 rows of 1 output(s) needs about 0.7 GB" in result.stderr
    monkeypatch.setattr(memory, "available", lambda: 1e3)
    long = f"fit {folder}/bikes.csv --outputs station_1 --by rain --time time"
    assert "bikes.csv: reading 49 rows of 3 columns" in run(long).stderr


def test_rows_that_are_not_read_need_no_memory(run, tmp_path, free, monkeypatch):
    path = tmp_path / "t.csv"
    lines = [f"{row},{row % 1000},{row}" for row in range(200_000)]
    path.write_text("\n".join(["t,store,a", *lines]))
    free(2)
    asked = []
    monkeypatch.setattr(memory, "check_fitting", lambda name, shape, *_: asked.append(shape))
    monkeypatch.setattr("censored_gp.CensoredGP.fit", lambda *_, **__: (_ for _ in ()).throw(
        ValueError("far enough")))  # fmt: skip
    line = f"fit {path} --outputs a --time t"
    assert "far enough" in run(f"{line} --where store=7").stderr
    assert asked == [(200, 1)]
