"""Files that can be read, and files that cannot: which message each gets."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from censored_gp.cli.problems import BadInput
from censored_gp.cli.reading import Roles, Source

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("error")

GOOD = "time,a,full\n2024-06-03T01:00,1,0\n\n2024-06-03T02,2.5,TRUE\n2024-06-03 03:00,NA,\n"
ROLES = Roles(numbers=("a",), flags=("full",), time="time")
OPTIONS = "--outputs a --time time --censored full"


@pytest.fixture
def read(tmp_path):
    """Write a file and read it."""

    def read(content, name="table.csv", roles=ROLES, **settings):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Source(path, **settings).read(roles).table

    return read


def cells(table):
    return [list(map(str, row.values())) for row in table.to_pylist()]


EXPECTED = [
    ["2024-06-03 01:00:00", "1.0", "0.0"],
    ["2024-06-03 02:00:00", "2.5", "1.0"],
    ["2024-06-03 03:00:00", "None", "None"],
]


@pytest.mark.parametrize(
    ("content", "name", "settings"),
    [
        (GOOD, "a.csv", {}),
        ("\ufeff" + GOOD, "a.csv", {}),
        (GOOD.replace("\n", "\r\n"), "a.csv", {}),
        (GOOD.replace(",", "\t"), "a.tsv", {}),
        (GOOD.replace(",", ";"), "a.txt", {"delimiter": ";"}),
        (GOOD.replace(",", "\t"), "a.csv", {"delimiter": "\\t"}),
        # The time in a gzip header would be in the test's name, another one in every worker.
        (gzip.compress(GOOD.encode(), mtime=0), "a.csv.gz", {}),
        (GOOD.encode("utf-16"), "a.csv", {"encoding": "utf-16"}),
        (GOOD.replace("a,full", '"a", full').replace("2.5", " 2.5 "), "a.csv", {}),
    ],
)
def test_all_ways_to_write_the_same_table_are_read_alike(read, content, name, settings):
    assert cells(read(content, name, **settings)) == EXPECTED


def test_parquet_is_read_like_csv(read, tmp_path):
    from pyarrow import parquet

    table = read(GOOD)
    words = table.set_column(2, "full", pa.array(["no", "yes", None]).dictionary_encode())
    for number, each in enumerate((table, words)):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(each, path)
        assert cells(Source(path).read(ROLES).table) == EXPECTED


def test_columns_that_nobody_asked_for_may_hold_anything(read):
    table = read('note,time,a,full\nanything,1,2,0\n"x\ny",2,3,1\n')
    assert table.column_names == ["time", "a", "full"]
    assert table["a"].to_pylist() == [2, 3]


def test_inputs_are_numbers_or_words(read):
    roles = Roles(numbers=("a",), inputs=("x", "w"), by="s")
    table = read("s,a,x,w\n 7,1,0.5,dry\n8,2,,wet\n", roles=roles)
    assert table["w"].to_pylist() == ["dry", "wet"]
    assert table["x"].to_pylist() == [0.5, None]
    assert table["s"].to_pylist() == ["7", "8"]
    with pytest.raises(BadInput, match=r"line 3, column 'x': found 'much'"):
        read("s,a,x,w\n7,1,0.5,dry\n8,2,much,wet\n", roles=roles)
    with pytest.raises(BadInput, match=r"line 3, column 's': found nothing"):
        read("s,a,x,w\n7,1,0.5,dry\n,2,1,wet\n", roles=roles)


def test_some_outputs_of_a_long_table_keep_their_lines(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("s,t,a\n7,1,1\n\n8,1,2\n9,1,3\n8,2,4\n")
    wanted = Source(path).read(Roles(numbers=("a",), time="t", by="s")).only("s", ["8", "9"])
    assert wanted.table["a"].to_pylist() == [2, 3, 4]
    assert [wanted.line_of(row) for row in range(3)] == ["line 4", "line 5", "line 6"]
    with pytest.raises(BadInput, match=r"long\.csv, column 's': found no '5', but '8', '9'"):
        wanted.only("s", ["5"])


TIMES = {
    "2024-06-03": "2024-06-03 00:00:00",
    "2024-06-03T05:30:01.25": "2024-06-03 05:30:01.250000",
    "2024-06-03 05:30:01.1234567": "2024-06-03 05:30:01.123456",
    "2024-06-03T05:30Z": "2024-06-03 05:30:00+00:00",
    "2024-06-03T05:30+02:00": "2024-06-03 05:30:00+02:00",
    "2024-06-03T05:30-0330": "2024-06-03 05:30:00-03:30",
    "2024-06-03 05:30 +02": "2024-06-03 05:30:00+02:00",
    "17.5": "17.5",
}


@pytest.mark.parametrize(("text", "value"), TIMES.items())
def test_times_are_iso_8601_or_numbers(read, text, value):
    assert cells(read(f"time,a,full\n{text},1,0\n"))[0][0] == value


def test_a_named_zone_takes_in_all_offsets(read):
    summer, winter = "2024-06-03T14:00+02:00", "2024-12-03T14:00+01:00"
    table = read(f"time,a,full\n{summer},1,0\n{winter},2,0\n", zone="Europe/Copenhagen")
    assert [str(t.as_py())[11:] for t in table["time"]] == ["14:00:00+02:00", "14:00:00+01:00"]
    local = read("time,a,full\n2024-06-03T14:00,1,0\n", zone="Europe/Copenhagen")
    assert str(local["time"][0].as_py()) == "2024-06-03 14:00:00+02:00"


BAD = {
    "empty": ("", "table.csv: the file is empty"),
    "blank": ("\n\n", "table.csv: the file is empty"),
    "no rows": ("time,a,full\n", "table.csv: found column names but no rows"),
    "delimiter": (GOOD.replace(",", ";"), "line 1: found one column, .*use --delimiter ';'"),
    "tabs": (GOOD.replace(",", "\t"), r"line 1: found one column, .*use --delimiter '\\t'"),
    "latin": (GOOD.encode() + b"2024,\xe9,0\n", "line 6: .*not UTF-8 text.*--encoding latin-1"),
    "utf-16": (GOOD.encode("utf-16"), "line 1: .*not UTF-8 text.*--encoding utf-16"),
    "binary": (b"time,a,full\n1,2,0\n\0\0", "line 3: .*not UTF-8 text"),
    "doubled": ("time,a,a,full\n1,2,3,0\n", "line 1: found column 'a' 2 times"),
    "text": ("time,a,full\n1,2,0\n\n2,many,0\n", "line 4, column 'a': found 'many'"),
    "comma": ('time,a,full\n1,"2,5",0\n', "line 2, column 'a': found '2,5'.*decimals with a point"),
    "quoted lines": ('time,a,full\n"1","2",0\n2,"x\ny",0\n', "line 4, column 'a'"),
    "short": ("time,a,full\n1,2,0\n2,3\n", "line 3: found 2 fields, no value for 'full'"),
    "long": ("time,a,full\n1,2,0\n2,3,0,9\n", "line 3: found 4 fields, the surplus '9'"),
    "flag": ("time,a,full\n1,2,0\n2,3,maybe\n", "line 3, column 'full': found 'maybe'"),
    "flag 2": ("time,a,full\n1,2,2\n", "line 2, column 'full': found '2'"),
    "absent": ("time,b,full\n1,2,0\n", "found no column 'a'; there are 'time', 'b', 'full'"),
    "near": ("Time,a,full\n1,2,0\n", "Did you mean 'Time'"),
    "day": ("time,a,full\n2024-06-31,2,0\n", "line 2, column 'time': found '2024-06-31'.*exists"),
    "american": ("time,a,full\n06/03/2024,2,0\n", "line 2, column 'time'.*ISO 8601"),
    "zones": (
        "time,a,full\n2024-06-03T01+02:00,1,0\n2024-12-03T01+01:00,2,0\n",
        r"line 3, column 'time': found a time with \+01:00.*line 2.*\+02:00.*--zone",
    ),
    "some zones": (
        "time,a,full\n2024-06-03T01,1,0\n2024-06-03T02Z,2,0\n",
        "line 3, column 'time': found a time with Z, where .*line 2.* has no zone",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_a_bad_file_is_told_by_file_line_and_column(read, content, message):
    with pytest.raises(BadInput, match=f"table.csv.*{message.removeprefix('table.csv')}"):
        read(content)


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_a_bad_file_ends_the_command_and_leaves_nothing(run, tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run(f"fit {path} {OPTIONS} --save {tmp_path}/m.cgp --output {tmp_path}/m.txt")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_a_bad_packed_file_is_told(read):
    packed = gzip.compress(GOOD.encode() * 50)
    middle = len(packed) // 2
    for bad in (packed[:middle], GOOD.encode(), packed[:middle] + b"12345" + packed[middle + 5 :]):
        with pytest.raises(BadInput, match=r"a\.csv\.gz: the file is damaged or cut short"):
            read(bad, "a.csv.gz")


def test_rows_are_counted_without_being_read(tmp_path):
    path = tmp_path / "t.csv"
    for end in ("", "\n"):
        path.write_text("a\n1\n2\n3" + end)
        assert Source(path).count_rows() == 3


def test_a_bad_parquet_file_is_told(read, tmp_path):
    from pyarrow import parquet

    with pytest.raises(BadInput, match=r"a\.parquet: not a Parquet file, or damaged"):
        read("PAR1 and nothing else", "a.parquet")
    table = pa.table({"time": [1, 2], "a": ["1", "x"], "full": [True, False]})
    parquet.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(BadInput, match=r"b\.parquet, row 2, column 'a': found 'x'"):
        Source(tmp_path / "b.parquet").read(ROLES)
    raw = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(BadInput, match=r"b\.parquet: not a Parquet file, or damaged"):
        Source(tmp_path / "b.parquet").read(ROLES)


def test_what_cannot_be_a_number_is_told(tmp_path):
    from pyarrow import parquet

    table = pa.table({"time": [1], "a": [np.datetime64("2024-01-01", "us")], "full": [True]})
    parquet.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(BadInput, match="column 'a': found the type timestamp"):
        Source(tmp_path / "b.parquet").read(ROLES)


def test_settings_for_reading_are_checked(read):
    with pytest.raises(BadInput, match="--zone: found 'Mars'"):
        read(GOOD, zone="Mars")
    with pytest.raises(BadInput, match="--encoding: found 'morse'"):
        read(GOOD, encoding="morse")
    with pytest.raises(BadInput, match=r"a\.xlsx: found a file whose name does not end in \.csv"):
        read(GOOD, "a.xlsx")


def test_a_file_that_is_not_there_is_told(run, tmp_path):
    result = run(f"fit {tmp_path}/none.csv {OPTIONS}")
    assert result.exit_code == 2
    assert "none.csv: No such file" in result.stderr


def test_without_pyarrow_it_says_what_to_install(run, tmp_path, monkeypatch):
    from censored_gp.cli import arrow

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(arrow, "import_module", absent)
    (tmp_path / "table.csv").write_text(GOOD)
    result = run(f"fit {tmp_path}/table.csv {OPTIONS}")
    assert result.exit_code == 1
    assert "pip install 'censored-gp[data]'" in result.stderr


def test_without_pyarrow_a_model_of_such_a_table_says_it_too(run, here, monkeypatch):
    from censored_gp.cli import arrow

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(arrow, "import_module", absent)
    result = run("lost-demand --load bikes.cgp")
    assert result.exit_code == 1
    assert "pip install 'censored-gp[data]'" in result.stderr


def test_rows_are_chosen_by_the_value_of_a_column_and_keep_their_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("t,store,a\n2024-06-03,1,5\n2024-06-03,2,no\n2024-06-04,1,x\n")
    roles = Roles(numbers=("a",), time="t")
    with pytest.raises(BadInput, match=r"line 4, column 'a'.*'x'"):
        Source(path, where=(("store", "1"),)).read(roles)
    path.write_text("t,store,a\n2024-06-03,1,5\n2024-06-03,2,no\n2024-06-04,1,6\n")
    wanted = Source(path, where=(("store", "1"),)).read(roles)
    assert wanted.table["a"].to_pylist() == [5.0, 6.0]
    assert wanted.table.column_names == ["t", "a"]
    assert wanted.line_of(1) == "line 4"
    with pytest.raises(BadInput, match=r"column 'store': found no '7', but '1', '2'"):
        Source(path, where=(("store", "7"),)).read(roles)
    with pytest.raises(BadInput, match="found no column 'shop'"):
        Source(path, where=(("shop", "1"),)).read(roles)


def test_decimal_commas_are_read(read):
    roles = Roles(numbers=("a",), inputs=("x", "w"), flags=("full",), time="time")
    text = "time;a;full;x;w\n1,5;1234,5;1,0;-,5;dry, cold\n2;7;0;1e-3;wet\n"
    table = read(text, roles=roles, delimiter=";", decimal=",")
    assert table["a"].to_pylist() == [1234.5, 7]
    assert table["time"].to_pylist() == [1.5, 2]
    assert table["full"].to_pylist() == [1, 0]
    assert table["x"].to_pylist() == [-0.5, 0.001]
    assert table["w"].to_pylist() == ["dry, cold", "wet"]
    with pytest.raises(BadInput, match=r"line 2, column 'a': found '1\.234,5'\. With --decimal ,"):
        read("time;a;full\n1;1.234,5;0\n", delimiter=";", decimal=",")
    with pytest.raises(BadInput, match="--decimal: found 'x'"):
        read(GOOD, decimal="x")


def test_columns_without_a_name_do_no_harm(read):
    trailing = "\n".join(line + ",," for line in GOOD.splitlines() if line)
    assert cells(read(trailing)) == EXPECTED


def test_a_table_may_come_from_the_standard_input(run, tmp_path):
    result = run(f"fit - {OPTIONS}", input="time,a,full\n1,2,0\n2,many,0\n")
    assert result.exit_code == 2
    assert "standard input, line 3, column 'a': found 'many'" in result.stderr
    assert "standard input: the file is empty" in run(f"fit - {OPTIONS}", input="").stderr
    source = Source(Path("-"), content=GOOD.encode())
    assert cells(source.read(ROLES).table) == EXPECTED


@pytest.mark.parametrize("sign", [";;", "§", "x", '"'])
def test_a_delimiter_is_one_sign(read, sign):
    with pytest.raises(BadInput, match=f"--delimiter: found '{sign}'"):
        read(GOOD, delimiter=sign)
