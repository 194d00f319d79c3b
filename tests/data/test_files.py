"""Files that can be read, and files that cannot: what is told by file, line and column."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from censored_gp.data.errors import DataError
from censored_gp.data.files import File
from censored_gp.data.layout import read_new, read_training, result

pytestmark = pytest.mark.filterwarnings("error")

GOOD = "time,a,full\n2024-06-03T01:00,1,0\n\n2024-06-03T02,2.5,TRUE\n2024-06-03 03:00,NA,\n"
NAMES = {"outputs": "a", "time": "time", "censored": "full"}
ZONE = "Europe/Copenhagen"


def read_file(path, columns=None, where=(), **settings):
    return File(path, **settings).read(columns, where)


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def train(write):
    """Write a file, and read it for training."""

    def train(content, name="table.csv", names=NAMES, **settings):
        return read_training(read_file(write(content, name), **settings), **names)

    return train


def assert_good(read):
    times = read.inputs.array("time", "")
    assert [str(time) for time in times] == [f"2024-06-03 0{hour}:00:00" for hour in (1, 2, 3)]
    assert read.observations.lower[:, 0].tolist() == [1.0, 2.5, -np.inf]
    assert read.observations.upper[:, 0].tolist() == [1.0, np.inf, np.inf]


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
        ("\n".join(line + ",," for line in GOOD.splitlines() if line), "a.csv", {}),
    ],
)
def test_all_ways_to_write_the_same_table_are_read_alike(train, content, name, settings):
    assert_good(train(content, name, **settings))


def test_parquet_is_read_like_csv(train, tmp_path):
    times = train(GOOD).inputs.array("time", "")
    for flags in (pa.array([0, 1, None]), pa.array(["no", "yes", None]).dictionary_encode()):
        path = tmp_path / "a.parquet"
        table = pa.table({"time": times, "a": [1.0, 2.5, None], "full": flags})
        parquet.write_table(table, path)
        assert_good(read_training(read_file(path), **NAMES))
        assert File(path).header == ["time", "a", "full"]


def test_a_path_is_a_table_and_results_have_its_times(write):
    read = read_training(write(GOOD), **NAMES)
    back = result(read.layout, read.rows, np.zeros((3, 1)))
    assert type(back).__module__.startswith("pandas")
    assert back["time"].dtype.kind == "M"
    new, _ = read_new(str(write("time\n2024-06-04\n", "new.csv")), read.layout)
    assert str(new.array("time", "")[0]) == "2024-06-04 00:00:00"


def test_columns_that_nobody_asked_for_may_hold_anything(write):
    path = write('note,time,a,full\nanything,1,2,0\n"x\ny",2,3,1\n')
    assert File(path).header == ["note", "time", "a", "full"]
    table = read_file(path, columns=["time", "a", "full"])
    assert table.names == ("time", "a", "full")
    assert read_training(table, **NAMES).observations.lower[:, 0].tolist() == [2, 3]


def test_inputs_are_numbers_or_words_and_outputs_have_names(write):
    table = read_file(write("s,a,x,w\n 07,1,0.5,dry\n8,2,,wet\n"))
    assert table.labels("s").tolist() == ["07", "8"]
    assert table.column("w", "Input").values.tolist() == ["dry", "wet"]
    np.testing.assert_array_equal(table.numbers("x", "Input"), [0.5, np.nan])
    with pytest.raises(DataError, match="row 1: got no value"):
        read_file(write("s,a\n7,1\n,2\n")).labels("s")


def test_rows_are_chosen_by_the_value_of_a_column_and_keep_their_lines(write):
    path = write("t,store,a\n2024-06-03,1,5\n\n2024-06-03,2,no\n2024-06-04,1,x\n")
    with pytest.raises(DataError, match=r"table\.csv, line 5, column 'a': got 'x'"):
        read_training(read_file(path, where=[("store", "1")]), "a", time="t")
    path = write("t,store,a\n2024-06-03,1,5\n2024-06-03,2,no\n2024-06-04,1,6\n")
    table = read_file(path, columns=["t", "a"], where=[("store", "1")])
    assert table.names == ("t", "a")
    assert table.numbers("a", "").tolist() == [5.0, 6.0]
    assert table.only("a", ["6"]).locate(DataError("", row=0)).line == "line 4"
    with pytest.raises(DataError, match=r"table\.csv, column 'store': .*'7', .*'1', '2'"):
        read_file(path, where=[("store", "7")])
    with pytest.raises(DataError, match=r"no column 'stor'.*Did you mean 'store'"):
        read_file(path, where=[("stor", "1")])


def test_a_form_feed_in_a_cell_ends_no_line(write):
    for sign in "\x0c\x1c\x85\u2028":
        path = write(f"a,b\n1,x{sign}y\n2,z\n")
        table = read_file(path)
        assert table.column("b", "Input").values.tolist() == [f"x{sign}y", "z"]
        assert table.locate(DataError("", row=1)).line == "line 3"
        with pytest.raises(DataError, match=r"line 3: got 3 fields, the surplus"):
            read_file(write(f"a,b\n1,x\n,{sign}y,\n"))


BAD = {
    "empty": ("", "the file is empty"),
    "blank": ("\n\n", "the file is empty"),
    "no rows": ("time,a,full\n", "column names but no rows"),
    "delimiter": (GOOD.replace(",", ";"), "line 1: got one column.* delimiter ';'"),
    "tabs": (GOOD.replace(",", "\t"), r"line 1: got one column.* delimiter '\\t'"),
    "latin": (GOOD.encode() + b"2024,\xe9,0\n", "line 6: .*not UTF-8 text.*latin-1"),
    "utf-16": (GOOD.encode("utf-16"), "line 1: .*not UTF-8 text.*utf-16"),
    "binary": (b"time,a,full\n1,2,0\n\0\0", "line 3: got 1 fields"),
    "doubled": ("time,a,a,full\n1,2,3,0\n", "line 1: got column 'a' 2 times"),
    "text": ("time,a,full\n1,2,0\n\n2,many,0\n", "line 4, column 'a': got 'many'"),
    "comma": ('time,a,full\n1,"2,5",0\n', "line 2, column 'a': got '2,5'.*decimals with a point"),
    "quoted lines": ('time,a,full\n"1","2",0\n2,"x\ny",0\n', "line 4, column 'a'"),
    "short": ("time,a,full\n1,2,0\n2,3\n", "line 3: got 2 fields, no value for 'full'"),
    "long": ("time,a,full\n1,2,0\n2,3,0,9\n", "line 3: got 4 fields, the surplus '9'"),
    "flag": ("time,a,full\n1,2,0\n2,3,maybe\n", "line 3, column 'full': got 'maybe'"),
    "flag 2": ("time,a,full\n1,2,2\n", "line 2, column 'full': got '2'"),
    "absent": ("time,b,full\n1,2,0\n", "no column 'a'.* 'time', 'b', 'full'"),
    "near": ("Time,a,full\n1,2,0\n", "Did you mean 'Time'"),
    "day": ("time,a,full\n2024-06-31,2,0\n", "line 2, column 'time': got '2024-06-31'.*exist"),
    "american": ("time,a,full\n06/03/2024,2,0\n", "line 2, column 'time'.*ISO 8601"),
    "zones": (
        "time,a,full\n2024-06-03T01+02:00,1,0\n2024-12-03T01+01:00,2,0\n",
        r"line 3, column 'time': got a time in zone \+01:00.*\+02:00.*named zone",
    ),
    "some zones": (
        "time,a,full\n2024-06-03T01,1,0\n2024-06-03T02Z,2,0\n",
        "line 3, column 'time': got a time in zone UTC, after .*None",
    ),
    "twice": (
        "time,by,a,full\n1,x,2,0\n2,x,2,0\n\n1,x,3,0\n", "line 5, column 'time': .*'x' again",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=list(BAD))
def test_a_bad_file_is_told_by_file_line_and_column(train, content, message):
    names = NAMES | ({"by": "by"} if "by," in str(content) else {})
    with pytest.raises(DataError, match=f"table.csv.*{message}"):
        train(content, names=names)


def test_an_error_about_no_single_column_says_what_it_is_about(write):
    table = read_file(write(GOOD))
    for given, noun in (({"censored": ["full"] * 2}, "flag"), ({"capacity": {"b": 1}}, "capacity")):
        with pytest.raises(DataError, match=rf"table\.csv, {noun}: got"):
            read_training(table, "a", time="time", **given)


def test_a_bad_packed_file_is_told(train):
    packed = gzip.compress(GOOD.encode() * 50)
    middle = len(packed) // 2
    for bad in (packed[:middle], GOOD.encode(), packed[:middle] + b"12345" + packed[middle + 5 :]):
        with pytest.raises(DataError, match=r"a\.csv\.gz: the file is damaged or cut short"):
            train(bad, "a.csv.gz")


def test_a_bad_parquet_file_is_told(write, tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet: not a Parquet file, or damaged"):
        read_file(write("PAR1 and nothing else", "a.parquet"))
    path = tmp_path / "b.parquet"
    parquet.write_table(pa.table({"time": [1, 2], "a": ["1", "x"], "full": [True, False]}), path)
    with pytest.raises(DataError, match=r"b\.parquet, row 2, column 'a': got 'x'"):
        read_training(read_file(path), **NAMES)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"b\.parquet: not a Parquet file, or damaged"):
        read_file(path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"encoding": "morse"}, "encoding.*'morse'"), ({"decimal": "x"}, "decimal.*'x'")]
    + [({"delimiter": sign}, f"delimiter.*'{sign}'") for sign in (";;", "§", "x", '"')],
)
def test_settings_for_reading_are_checked(write, settings, words):
    with pytest.raises(DataError, match=words) as caught:
        read_file(write(GOOD), **settings)
    assert caught.value.argument in settings


def test_other_files_are_refused(write):
    with pytest.raises(DataError, match=r"a\.feather: got a name that does not end in \.csv"):
        read_file(write(GOOD, "a.feather"))
    for name in ("a.xlsx", "a.csv"):
        # A workbook is a zip file, whatever its name is.
        with pytest.raises(DataError, match=r"workbook.*CSV"):
            read_file(write(b"PK\3\4\x14\0\xff\xfe", name))
    with pytest.raises(FileNotFoundError):
        read_file(Path("there is none.csv"))


def test_a_file_may_be_what_the_standard_input_held():
    assert_good(read_training(File(Path("-"), content=GOOD.encode()).read(), **NAMES))
    bad = File(Path("-"), content=b"time,a,full\n1,2,0\n2,many,0\n").read()
    with pytest.raises(DataError, match="standard input, line 3, column 'a': got 'many'"):
        read_training(bad, **NAMES)


def test_decimal_commas_are_read(train, write):
    text = "time;a;full;x;w\n1,5;1234,5;1,0;-,5;dry, cold\n2;7;0;1e-3;wet\n"
    read = train(text, names=NAMES | {"inputs": ["x", "w"]}, delimiter=";", decimal=",")
    assert read.observations.lower[:, 0].tolist() == [1234.5, 7]
    assert read.observations.is_right[:, 0].tolist() == [True, False]
    assert read.inputs.numbers("time", "").tolist() == [1.5, 2]
    assert read.inputs.numbers("x", "").tolist() == [-0.5, 0.001]
    assert read.inputs.column("w", "").values.tolist() == ["dry, cold", "wet"]
    for pointed in ("1.234,5", "1.234"):
        with pytest.raises(DataError, match=rf"line 2, column 'a': got '{pointed}'"):
            train(f"time;a;full\n1;{pointed};0\n", delimiter=";", decimal=",")


def test_detection_limits_are_read_from_a_file_with_decimal_commas(train):
    for text in ("time;a;full\n1;<0,5;0\n2;2,5;0\n", "time;a;full\n1;2,5;0\n2;> 3,5;0\n"):
        found = train(text, names={"outputs": "a", "time": "time"}, delimiter=";", decimal=",")
        bound = found.observations
        ends = (bound.lower[:, 0].tolist(), bound.upper[:, 0].tolist())
        inf = float("inf")
        assert ends == (([-inf, 2.5], [0.5, 2.5]) if "<" in text else ([2.5, 3.5], [2.5, inf]))


def test_commas_of_thousands_are_not_taken_for_decimal_ones_in_silence(train):
    for text in ("1,204", "-1,204,567"):
        with pytest.raises(DataError, match=rf"line 2, column 'a': got '{text}'.*thousands"):
            train(f'time,a,full\n1,"{text}",0\n')
    settings = {"delimiter": ";", "decimal": ","}
    with pytest.warns(UserWarning, match=r"'a'.*1,204.*1\.204"):
        read = train("time;a;full\n1;1,204;0\n2;7;0\n", **settings)
    assert read.observations.lower[:, 0].tolist() == [1.204, 7]
    train("time;a;full\n1;1,204;0\n2;7,5;0\n", **settings)


def test_times_are_read_as_the_format_says(train):
    text = "time,a,full\n03/06/2024 01:00,1,0\n13/06/2024 02:00,2,0\n"
    read = train(text, time_format="%d/%m/%Y %H:%M")
    times = [str(time) for time in read.inputs.array("time", "")]
    assert times == ["2024-06-03 01:00:00", "2024-06-13 02:00:00"]
    with pytest.raises(DataError, match=r"line 3, column 'time': got '13/06/2024.*%m/%d"):
        train(text, time_format="%m/%d/%Y %H:%M")
    with pytest.raises(DataError, match=r"line 2, column 'time'.*got '03/06/2024.*--time-format"):
        train(text)
    days = train("time,a,full\n3062024,1,0\n4062024,2,0\n", time_format="%d%m%Y")
    assert str(days.inputs.array("time", "")[1]) == "2024-06-04 00:00:00"


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


@pytest.fixture
def times(write):
    """Write times (and other columns) to a file, and read the times."""

    def times(lines, head="time,a", zone=None, by=None):
        table = read_file(write("\n".join([head, *lines]) + "\n"))
        try:
            read = table.with_times("time", zone, by)
        except DataError as error:
            raise table.locate(error) from error
        return [str(time) for time in read.array("time", "").to_pylist()]

    return times


@pytest.mark.parametrize(("text", "value"), TIMES.items())
def test_times_are_iso_8601_or_numbers(times, text, value):
    assert times([f"{text},1"]) == [value]


def test_days_without_signs_are_days(times):
    assert times(["20240601,1", "20240602,2"])[1] == "2024-06-02 00:00:00"
    assert times(["20240601,1", ",2"], zone=ZONE)[0] == "2024-06-01 00:00:00+02:00"
    # One that is no day makes all of them numbers.
    assert times(["20240601,1", "20240631,2"]) == ["20240601.0", "20240631.0"]
    assert times(["12345678,1"]) == ["12345678.0"]


def test_a_named_zone_takes_in_all_offsets(times):
    found = times(["2024-06-03T14:00+02:00,1", "2024-12-03T14:00+01:00,2"], zone=ZONE)
    assert [time[11:] for time in found] == ["14:00:00+02:00", "14:00:00+01:00"]
    assert times(["2024-06-03T14:00,1"], zone=ZONE) == ["2024-06-03 14:00:00+02:00"]
    with pytest.raises(DataError, match=r"zone.*'Mars'"):
        times(["2024-06-03T14:00,1"], zone="Mars")


def offsets(found):
    return [time[-6:] for time in found]


def test_of_a_doubled_hour_the_second_row_is_the_second_hour(times):
    clock = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]
    found = times([f"2024-10-27 {time},1" for time in clock], zone=ZONE)
    assert offsets(found) == ["+02:00"] * 3 + ["+01:00"] * 3
    assert found[3] == "2024-10-27 02:00:00+01:00"


@pytest.mark.parametrize("order", ["by place", "by time"])
def test_rows_are_told_apart_within_their_output(times, order):
    rows = [(hour, s) for hour in ("01", "02", "02", "03") for s in "xy"]
    if order == "by place":
        rows = [(hour, s) for s in "xy" for hour in ("01", "02", "02", "03")]
    lines = [f"2024-10-27 {hour}:00,{s},1" for hour, s in rows]
    found = times(lines, "time,s,a", ZONE, by="s")
    twice = [place for place, (hour, _) in enumerate(rows) if hour == "02"]
    late = {place for place in twice if found[place].endswith("+01:00")}
    assert late == ({twice[1], twice[3]} if order == "by place" else set(twice[2:]))


def test_rows_that_share_their_times_all_day_are_no_second_hours(times):
    hours = ("01", "01", "02", "02", "03", "03")
    found = times([f"2024-10-27 {hour}:00,1" for hour in hours], zone=ZONE)
    assert offsets(found) == ["+02:00"] * 4 + ["+01:00"] * 2


def test_times_of_parquet_files_are_told_apart_too(tmp_path):
    hours = pa.array(["2024-10-27 02:00", "2024-10-27 02:00"]).cast(pa.timestamp("s"))
    parquet.write_table(pa.table({"time": hours, "a": [1, 2]}), tmp_path / "t.parquet")
    table = read_file(tmp_path / "t.parquet").with_times("time", ZONE)
    assert offsets(map(str, table.array("time", "").to_pylist())) == ["+02:00", "+01:00"]


def test_an_hour_that_a_zone_skips_is_refused(times):
    lines = ["2024-03-31 01:00,1", "2024-03-31 02:00,2", "2024-03-31 03:00,3"]
    message = (
        r"table\.csv, line 3, column 'time': got 2024-03-31 02:00:00, which clocks of Europe/C"
    )
    with pytest.raises(DataError, match=message):
        times(lines, zone=ZONE)
    assert len(times(lines)) == 3


def test_rows_of_parquet_files_are_those_of_the_whole_file(tmp_path):
    """Columns that were not read before, and those that were exchanged, are taken alike."""
    whole = pa.table({"time": [3, 1, 2], "a": [0.5, 1.5, 2.5]})
    parquet.write_table(whole, tmp_path / "t.parquet")
    table = read_file(tmp_path / "t.parquet").with_column("a", np.array([5.0, 6.0, 7.0]))
    some = table.take(np.array([2, 0]))
    assert some.numbers("time", "Time").tolist() == [2.0, 3.0]
    assert some.numbers("a", "Output").tolist() == [7.0, 5.0]
    assert some.place(0) == "row 3"
