"""Table files that can be read, and those that cannot: told by file, line and column."""

import gzip
import itertools

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from censored_gp import CensoredGP
from censored_gp.data.layout import read_training

GOOD = "time,a,full\n2024-06-03T01:00,1,0\n\n2024-06-03T02,2.5,TRUE\n2024-06-03 03:00,NA,\n"
OPTIONS = "--outputs a --time time --censored full"


@pytest.fixture
def read(run, tmp_path, monkeypatch):
    """Write a file, fit it, and return what the model was given: inputs and observations."""

    def read(content, name="table.csv", options=OPTIONS):
        given = {}

        def fit(self, table, **arguments):
            arguments.pop("rounded")  # how values were recorded is no role of a column
            given["data"] = read_training(table, **arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(CensoredGP, "fit", fit)
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        result = run(f"fit {path} {options}")
        assert result.exit_code == 130, result.output
        return given["data"]

    return read


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        ("\ufeff" + GOOD, "a.csv", ""),
        (GOOD.replace("\n", "\r\n"), "a.csv", ""),
        (GOOD.replace(",", "\t"), "a.tsv", ""),
        (GOOD.replace(",", ";"), "a.txt", "--delimiter ';'"),
        (GOOD.replace(",", "\t"), "a.csv", r"--delimiter '\t'"),
        # Without mtime the name of the test would be another one in every worker.
        (gzip.compress(GOOD.encode(), mtime=0), "a.csv.gz", ""),
        (GOOD.encode("utf-16"), "a.csv", "--encoding utf-16"),
        (GOOD.replace("a,full", '"a", full').replace("2.5", " 2.5 "), "a.csv", ""),
        (GOOD.replace(",", ";").replace("2.5", "2,5"), "a.csv", "--delimiter ';' --decimal ,"),
    ],
    ids=itertools.count(),
)
def test_all_ways_to_write_a_table_are_read_alike(read, content, name, options):
    expected, found = read(GOOD), read(content, name, f"{OPTIONS} {options}")
    assert found.inputs.arrow.equals(expected.inputs.arrow)
    for end in ("lower", "upper"):
        np.testing.assert_array_equal(
            getattr(found.observations, end), getattr(expected.observations, end)
        )
    np.testing.assert_array_equal(expected.observations.lower[:2, 0], [1.0, 2.5])
    np.testing.assert_array_equal(expected.observations.upper[:2, 0], [1.0, np.inf])


BAD = {
    "empty": ("", ["empty"]),
    "blank": ("\n\n", ["empty"]),
    "no rows": ("time,a,full\n", ["no rows"]),
    "delimiter": (GOOD.replace(",", ";"), ["line 1", ";"]),
    "latin": (GOOD.encode() + b"2024,\xe9,0\n", ["line 6", "UTF-8", "latin-1"]),
    "utf-16": (GOOD.encode("utf-16"), ["line 1", "utf-16"]),
    "binary": (b"time,a,full\n1,2,0\n\0\0", ["line 3"]),
    "doubled": ("time,a,a,full\n1,2,3,0\n", ["line 1", "'a'", "2 times"]),
    "text": ("time,a,full\n1,2,0\n\n2,many,0\n", ["line 4", "column 'a'", "'many'"]),
    "comma": ('time,a,full\n1,"2,5",0\n', ["line 2", "column 'a'", "'2,5'"]),
    "quoted lines": ('time,a,full\n"1","2",0\n2,"x\ny",0\n', ["line 4", "column 'a'"]),
    "short": ("time,a,full\n1,2,0\n2,3\n", ["line 3", "2 fields", "'full'"]),
    "long": ("time,a,full\n1,2,0\n2,3,0,9\n", ["line 3", "4 fields", "'9'"]),
    "flag": ("time,a,full\n1,2,0\n2,3,maybe\n", ["line 3", "column 'full'", "'maybe'"]),
    "flag 2": ("time,a,full\n1,2,2\n", ["line 2", "column 'full'", "2"]),
    "absent": ("time,b,full\n1,2,0\n", ["'a'", "'time', 'b', 'full'"]),
    "near": ("Time,a,full\n1,2,0\n", ["Did you mean 'Time'"]),
    "day": ("time,a,full\n2024-06-31,2,0\n", ["line 2", "column 'time'", "2024-06-31"]),
    "american": ("time,a,full\n06/03/2024,2,0\n", ["line 2", "column 'time'"]),
    "zones": (
        "time,a,full\n2024-06-03T01+02:00,1,0\n2024-12-03T01+01:00,2,0\n",
        ["line 3", "column 'time'", "+01:00"],
    ),
    "infinite": ("time,a,full\n1,2,0\n2,inf,0\n", ["line 3", "column 'a'", "inf"]),
}


@pytest.mark.parametrize(("content", "words"), BAD.values(), ids=list(BAD))
def test_a_bad_file_is_refused_by_file_line_and_column(run, tmp_path, content, words):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run(f"fit {path} {OPTIONS} --save {tmp_path}/m.cgp --output {tmp_path}/m.txt")
    assert result.exit_code == 2, result.output
    assert all(word in result.stderr for word in ["table.csv", *words]), result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    ("line", "column", "value"), [(6, "rain", ""), (7, "station_1", "inf"), (8, "time", "x")]
)
def test_a_bad_cell_is_told_by_line_and_column(here, run, line, column, value):
    lines = [text.split(",") for text in (here / "bikes.csv").read_text().splitlines()]
    lines[line - 1][lines[0].index(column)] = value
    (here / "changed.csv").write_text("\n".join(map(",".join, lines)))
    result = run("fit changed.csv --load bikes.cgp --save x.cgp")
    assert result.exit_code == 2
    assert f"changed.csv, line {line}, column '{column}'" in result.stderr
    assert not (here / "x.cgp").exists()


def test_an_exact_value_above_its_capacity_is_told(run, tmp_path):
    (tmp_path / "t.csv").write_text("t,a,full\n1,2,1\n2,0,0\n3,2,0\n")
    result = run(f"fit {tmp_path}/t.csv --outputs a --time t --censored full --capacity 1")
    assert result.exit_code == 2
    assert "t.csv, line 4, column 'a'" in result.stderr


LONG = """time;station;n;full
2024-06-03T00:00+02:00;north;4;0
2024-06-03T00:00+02:00;south;3;0
2024-06-03T01:00+02:00;north;2;0
2024-06-03T01:00+02:00;south;{south};0
2024-06-03T0{hour}:00+02:00;north;1;0
"""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"south": -5, "hour": 2}, ["line 5", "column 'n'", "-5"]),
        ({"south": 5, "hour": 1}, ["line 6", "column 'time'", "north", "after line 4"]),
    ],
    ids=["a value", "a time twice"],
)
def test_errors_about_a_long_table_name_its_own_lines(tmp_path, run, values, words):
    (tmp_path / "long.csv").write_text(LONG.format(**values))
    options = "--delimiter ';' --outputs n --by station --time time --likelihood gamma"
    result = run(f"fit {tmp_path}/long.csv {options}")
    assert result.exit_code == 2
    assert all(word in result.stderr for word in words), result.stderr


def test_warnings_name_lines_of_the_file(run, tmp_path):
    (tmp_path / "t.csv").write_text("t,a,full,part\n1,2,0,1\n1,n/a,0,1\n2,3,,1\n3,1,0,0\n4,2,0,\n")
    line = f"fit {tmp_path}/t.csv --outputs a --time t --censored full --iterations 1"
    said = run(line).stderr
    assert "row(s), the first of them line 4" in said
    assert "such as line 2 and line 3" in said
    said = run(f"{line} --exposure part --likelihood poisson").stderr
    assert "the first of them in line 5 (1)" in said


def test_chosen_rows_keep_their_lines(run, tmp_path):
    (tmp_path / "t.csv").write_text("t,s,a\n1,x,1\n\n1,y,no\n1,z,2\n2,x,5\n2,z,bad\n")
    line = f"fit {tmp_path}/t.csv --outputs a --time t"
    assert "line 4" in run(f"{line} --where s=y").stderr
    chosen = run(f"{line} --by s --only x,z").stderr
    assert "line 7, column 'a'" in chosen
    assert "'5'" in run(f"{line} --by s --only 5").stderr
    assert "'hail'" in run(f"{line} --where s=hail").stderr
    assert "'shop'" in run(f"{line} --where shop=1").stderr


def test_a_bad_packed_file_is_refused(run, tmp_path):
    packed = gzip.compress(GOOD.encode() * 50)
    middle = len(packed) // 2
    for bad in (packed[:middle], GOOD.encode(), packed[:middle] + b"12345" + packed[middle + 5 :]):
        (tmp_path / "a.csv.gz").write_bytes(bad)
        result = run(f"fit {tmp_path}/a.csv.gz {OPTIONS}")
        assert (result.exit_code, "a.csv.gz" in result.stderr) == (2, True)


def test_a_bad_parquet_file_is_refused(run, tmp_path):
    path = tmp_path / "b.parquet"
    path.write_text("PAR1 and nothing else")
    assert "b.parquet" in run(f"fit {path} {OPTIONS}").stderr
    parquet.write_table(pa.table({"time": [1, 2], "a": ["1", "x"], "full": [True, False]}), path)
    result = run(f"fit {path} {OPTIONS}")
    assert result.exit_code == 2
    assert "b.parquet, row 2, column 'a'" in result.stderr


def test_files_of_other_kinds_and_absent_ones_are_refused(run, tmp_path):
    (tmp_path / "a.xlsx").touch()
    for name in ("a.xlsx", "none.csv"):
        result = run(f"fit {tmp_path}/{name} {OPTIONS}")
        assert (result.exit_code, name in result.stderr) == (2, True)


def test_the_standard_input_is_named(run):
    result = run(f"fit - {OPTIONS}", input="time,a,full\n1,2,0\n2,many,0\n")
    assert result.exit_code == 2
    assert "standard input, line 3, column 'a'" in result.stderr
    assert "empty" in run(f"fit - {OPTIONS}", input="").stderr


def test_a_zone_resolves_repeated_hours_and_refuses_skipped_ones(read, run, tmp_path):
    options = "--outputs a --time time --zone Europe/Copenhagen"
    hours = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]
    lines = [f"2024-10-27 {hour},{row}" for row, hour in enumerate(hours)]
    data = read("\n".join(["time,a", *lines]), "autumn.csv", options)
    times = data.rows.index.arrow["time"]
    assert [str(time)[-6:] for time in times.to_pylist()] == ["+02:00"] * 3 + ["+01:00"] * 3
    (tmp_path / "t.csv").write_text("time,a\n2024-03-31 01:00,1\n2024-03-31 02:00,2\n")
    result = run(f"fit {tmp_path}/t.csv {options}")
    assert result.exit_code == 2
    assert "t.csv, line 3, column 'time'" in result.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [("delimiter", ";;"), ("delimiter", "x"), ("decimal", "x"), ("encoding", "morse")],
)
def test_ways_of_reading_that_cannot_be_are_refused(run, tmp_path, option, value):
    (tmp_path / "t.csv").write_text(GOOD)
    result = run(f"fit {tmp_path}/t.csv {OPTIONS} --{option} '{value}'")
    assert (result.exit_code, f"--{option}" in result.stderr) == (2, True)
