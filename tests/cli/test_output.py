"""Results as files: each ending its format, whole or not at all."""

import datetime
import json
import os
import subprocess
import sys
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
import typer
from pyarrow import parquet

from censored_gp.cli import output
from censored_gp.cli.output import check_target, write
from censored_gp.estimator import persistence

NOON = datetime.datetime(2024, 6, 3, 12, tzinfo=ZoneInfo("Europe/Copenhagen"))
TABLE = {"time": [NOON, None], "a": [1 / 3, float("nan")], "who": ["x,y", 'say "z"'], "n": [1, 2]}
CSV = """time,a,who,n
2024-06-03T12:00:00+02:00,0.3333333333333333,"x,y",1
,,"say ""z\""",2
"""


@pytest.fixture
def table():
    return pa.table(TABLE)


def test_csv_has_iso_times_all_digits_and_few_quotes(table, tmp_path, capsys):
    write(table, str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == CSV
    for target in ("-", None):
        write(table, target)
        assert capsys.readouterr().out == CSV


def test_json_is_a_list_of_rows_with_nulls(table, tmp_path):
    write(table, str(tmp_path / "t.json"))
    first, second = json.loads((tmp_path / "t.json").read_text())
    assert first == {"time": "2024-06-03T12:00:00+02:00", "a": 1 / 3, "who": "x,y", "n": 1}
    assert second == {"time": None, "a": None, "who": 'say "z"', "n": 2}


def test_parquet_keeps_types_and_zone(table, tmp_path):
    write(table, str(tmp_path / "t.parquet"))
    assert parquet.read_table(tmp_path / "t.parquet").schema.equals(table.schema)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames_are_written(package, capsys):
    write(pytest.importorskip(package).DataFrame({"a": [1.5], "b": ["x"]}), "-")
    assert capsys.readouterr().out == "a,b\n1.5,x\n"


def test_lists_of_rows_and_dicts_of_columns_are_written(capsys):
    write([{"a": 1, "b": "x"}], "-")
    write({"a": [1], "b": ["x"]}, "-")
    assert capsys.readouterr().out == "a,b\n1,x\n" * 2


def test_a_name_is_no_formula_in_a_spreadsheet(capsys):
    write({"=1+1": [-1.5, 2.0], "who": ["@SUM(A1)", "x=y"]}, "-")
    assert capsys.readouterr().out == "'=1+1,who\n-1.5,'@SUM(A1)\n2.0,x=y\n"


def test_what_was_there_stays_when_writing_fails(table, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("before")
    full = lambda _: (_ for _ in ()).throw(OSError("disk full"))  # noqa: E731
    monkeypatch.setattr(persistence.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write(table, str(path))
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_terminal_shows_the_first_rows(capsys, monkeypatch):
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True, raising=False)
    write(pa.table({"a": [1 / 3] * 45, "b": [None] * 45}), None)
    shown = capsys.readouterr()
    assert shown.out.count("0.3333") == output.ROWS_SHOWN
    assert "5 more rows" in shown.err


@pytest.mark.parametrize("name", ["t.xlsx", "t", "none/t.csv", "sub.csv"])
def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path, name):
    (tmp_path / "sub.csv").mkdir()
    with pytest.raises(typer.BadParameter, match=name.split("/")[0]):
        check_target(str(tmp_path / name))


def test_good_targets_are_accepted(tmp_path):
    for target in (None, "-", os.devnull, str(tmp_path / "t.PARQUET")):
        check_target(target)


def test_a_file_that_is_read_is_not_written(tmp_path):
    path = tmp_path / "t.csv"
    check_target(str(path), reads=(path, None))
    path.touch()
    (tmp_path / "link.csv").symlink_to(path)
    for name in ("t.csv", "link.csv"):
        with pytest.raises(typer.BadParameter, match=name):
            check_target(str(tmp_path / name), reads=(path,))


def test_text_is_written_as_utf_8(tmp_path, capsys):
    write("Größe", str(tmp_path / "t.txt"))
    assert (tmp_path / "t.txt").read_text(encoding="utf-8") == "Größe\n"
    write("Größe", None)
    assert capsys.readouterr().out == "Größe\n"


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no /dev/stdout")
def test_a_device_is_written_to():
    code = (
        "from censored_gp.cli.output import check_target, write\n"
        "check_target('/dev/stdout'); write([{'a': 1}], '/dev/stdout')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "a\n1\n"
