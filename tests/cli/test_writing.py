"""Results as files: each ending its format, whole or not at all."""

import datetime
import json
import os
import subprocess
import sys
from zoneinfo import ZoneInfo

import pytest

from censored_gp.cli import writing
from censored_gp.cli.problems import BadInput
from censored_gp.cli.writing import check_target, write_table, write_text
from censored_gp.estimator import persistence as files

pa = pytest.importorskip("pyarrow")

NOON = datetime.datetime(2024, 6, 3, 12, tzinfo=ZoneInfo("Europe/Copenhagen"))
TABLE = {"time": [NOON, None], "a": [1 / 3, float("nan")], "who": ["x,y", 'say "z"'], "n": [1, 2]}


@pytest.fixture
def table():
    return pa.table(TABLE)


CSV = """time,a,who,n
2024-06-03T12:00:00+02:00,0.3333333333333333,"x,y",1
,,"say ""z\""",2
"""


def test_csv_has_iso_times_all_digits_and_few_quotes(table, tmp_path, capsys):
    write_table(table, str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == CSV
    write_table(table, "-")
    assert capsys.readouterr().out == CSV


def test_json_is_a_list_of_rows_with_nulls(table, tmp_path):
    write_table(table, str(tmp_path / "t.json"))
    first, second = json.loads((tmp_path / "t.json").read_text())
    assert first == {"time": "2024-06-03T12:00:00+02:00", "a": 1 / 3, "who": "x,y", "n": 1}
    assert second == {"time": None, "a": None, "who": 'say "z"', "n": 2}


def test_parquet_keeps_types_and_zone(table, tmp_path):
    from pyarrow import parquet

    write_table(table, str(tmp_path / "t.parquet"))
    again = parquet.read_table(tmp_path / "t.parquet")
    assert again.schema.equals(table.schema)
    assert again["time"].type.tz == "Europe/Copenhagen"


@pytest.mark.parametrize("make", ["pandas", "polars"])
def test_tables_of_any_make_are_written(make, capsys):
    package = pytest.importorskip(make)
    write_table(package.DataFrame({"a": [1.5], "b": ["x"]}), "-")
    assert capsys.readouterr().out == "a,b\n1.5,x\n"


def test_lists_of_rows_and_dicts_of_columns_are_tables(capsys):
    write_table([{"a": 1, "b": "x"}], "-")
    write_table({"a": [1], "b": ["x"]}, "-")
    assert capsys.readouterr().out == "a,b\n1,x\n" * 2


def test_what_was_there_stays_when_writing_fails(table, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("before")
    monkeypatch.setattr(files, "_flush", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_table(table, str(path))
    assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_person_sees_a_table_of_which_long_ones_are_cut(capsys, monkeypatch):
    monkeypatch.setattr(writing.sys.stdout, "isatty", lambda: True, raising=False)
    write_table(pa.table({"a": [1 / 3] * 45, "b": [None] * 45}), None)
    shown = capsys.readouterr()
    assert shown.out.count("0.3333") == writing.ROWS_SHOWN
    assert "5 more rows" in shown.err


def test_a_program_gets_csv(table, capsys):
    write_table(table, None)
    assert capsys.readouterr().out == CSV


@pytest.mark.parametrize("name", ["t.xlsx", "t", "none/t.csv", "sub.csv"])
def test_a_place_that_cannot_be_written_to_is_told_at_once(tmp_path, name):
    (tmp_path / "sub.csv").mkdir()
    with pytest.raises(BadInput, match=name.split("/")[0]):
        check_target(str(tmp_path / name))


def test_good_places_are_accepted(tmp_path):
    for target in (None, "-", os.devnull, str(tmp_path / "t.PARQUET")):
        check_target(target)


def test_text_goes_where_it_is_told(tmp_path, capsys):
    write_text("Größe", str(tmp_path / "t.txt"))
    assert (tmp_path / "t.txt").read_text(encoding="utf-8") == "Größe"
    write_text("Größe", None)
    assert capsys.readouterr().out == "Größe\n"


def test_a_pipe_by_the_name_of_the_standard_output_is_written_to(table):
    code = (
        "from censored_gp.cli.writing import check_target, write_table\n"
        "check_target('/dev/stdout'); write_table([{'a': 1}], '/dev/stdout')"
    )
    if not os.path.exists("/dev/stdout"):
        pytest.skip("this system has no /dev/stdout")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "a\n1\n"


def test_a_file_that_is_read_is_not_written_to(tmp_path):
    path = tmp_path / "t.csv"
    check_target(str(path), reads=(path, None))
    path.touch()
    (tmp_path / "link.csv").symlink_to(path)
    for name in ("t.csv", "link.csv"):
        with pytest.raises(BadInput, match=f"{name}, which is read"):
            check_target(str(tmp_path / name), reads=(path,))
