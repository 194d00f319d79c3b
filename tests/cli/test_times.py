"""Times by the clock of a zone, which stands at some hours twice and at others never."""

import pytest

from censored_gp.cli.problems import BadInput
from censored_gp.cli.reading import Roles, Source

pa = pytest.importorskip("pyarrow")

ZONE = "Europe/Copenhagen"


@pytest.fixture
def read(tmp_path):
    """Write times (and other columns) to a file, and read the times."""

    def read(lines, header="time,a", zone=ZONE, by=None):
        path = tmp_path / "t.csv"
        path.write_text("\n".join([header, *lines]) + "\n")
        table = Source(path, zone=zone).read(Roles(numbers=("a",), time="time", by=by)).table
        return [str(time) for time in table["time"].to_pylist()]

    return read


def offsets(times):
    return [time[-6:] for time in times]


def test_of_a_doubled_hour_the_second_row_is_the_second_hour(read):
    clock = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]
    found = read([f"2024-10-27 {time},1" for time in clock])
    assert offsets(found) == ["+02:00"] * 3 + ["+01:00"] * 3
    assert found[3] == "2024-10-27 02:00:00+01:00"


@pytest.mark.parametrize("order", ["by place", "by time"])
def test_rows_are_told_apart_within_their_output(read, order):
    rows = [(hour, s) for hour in ("01", "02", "02", "03") for s in "xy"]
    if order == "by place":
        rows = [(hour, s) for s in "xy" for hour in ("01", "02", "02", "03")]
    found = read([f"2024-10-27 {hour}:00,{s},1" for hour, s in rows], "time,s,a", by="s")
    twice = [place for place, (hour, _) in enumerate(rows) if hour == "02"]
    late = {place for place in twice if found[place].endswith("+01:00")}
    assert late == ({twice[1], twice[3]} if order == "by place" else set(twice[2:]))


def test_rows_that_share_their_times_all_day_are_no_second_hours(read):
    found = read([f"2024-10-27 {hour}:00,1" for hour in ("01", "01", "02", "02", "03", "03")])
    assert offsets(found) == ["+02:00"] * 4 + ["+01:00"] * 2


def test_times_of_parquet_files_are_told_apart_too(tmp_path):
    from pyarrow import parquet

    hours = pa.array(["2024-10-27 02:00", "2024-10-27 02:00"]).cast(pa.timestamp("s"))
    parquet.write_table(pa.table({"time": hours, "a": [1, 2]}), tmp_path / "t.parquet")
    source = Source(tmp_path / "t.parquet", zone=ZONE)
    table = source.read(Roles(numbers=("a",), time="time")).table
    assert offsets(map(str, table["time"].to_pylist())) == ["+02:00", "+01:00"]


def test_an_hour_that_a_zone_leaves_out_is_refused(read):
    lines = ["2024-03-31 01:00,1", "2024-03-31 02:00,2", "2024-03-31 03:00,3"]
    message = r"t\.csv, line 3, column 'time': found 2024-03-31 02:00:00, which clocks of Europe/C"
    with pytest.raises(BadInput, match=message):
        read(lines)
    assert len(read(lines, zone=None)) == 3


def test_days_without_signs_are_days(read):
    assert read(["20240601,1", "20240602,2"], zone=None)[1] == "2024-06-02 00:00:00"
    assert read(["20240601,1", ",2"])[0] == "2024-06-01 00:00:00+02:00"
    # One that is no day makes all of them numbers.
    assert read(["20240601,1", "20240631,2"], zone=None) == ["20240601.0", "20240631.0"]
    assert read(["12345678,1"], zone=None) == ["12345678.0"]
