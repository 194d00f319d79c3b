"""Commands about what lies ahead and what was lost; errors that name the user's own lines."""

import pyarrow as pa
import pytest

from censored_gp.cli.tabulate import side_by_side


def succeeded(result):
    assert result.exit_code == 0, result.output
    return result


def test_inputs_ahead_are_found_by_their_times(here, run):
    lines = (here / "next_week.csv").read_text().splitlines()
    header, rows = lines[0], lines[1:]
    orders = {"sorted": rows, "turned": rows[::-1], "short": rows[1:], "gap": [*rows]}
    orders["gap"][4] = orders["gap"][4].split(",")[0] + ","
    for name, each in orders.items():
        (here / f"{name}.csv").write_text("\n".join([header, *each]) + "\n")
    (here / "times.csv").write_text("\n".join(["time,snow", *rows]) + "\n")
    line = "forecast --load bikes.cgp --periods 6 --output - --future "
    answers = [succeeded(run(line + name)).stdout for name in ("sorted.csv", "turned.csv")]
    assert answers[0] == answers[1]
    for name, words in {
        "short": "short.csv: inputs: found no row for time 2024-06-05 00:00:00.",
        "gap": "gap.csv, line 6, column 'rain': Input 'rain': found NaN.",
        "times": "times.csv: inputs: found the columns 'time'. Accepted are some of 'rain'.",
    }.items():
        result = run(f"{line}{name}.csv")
        assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("foo", "Error: --until: found 'foo'. Accepted is a time, such as 2024-06-03"),
        ("2020-01-01", "Error: --until: found no time after 2024-06-04T23:00:00"),
        ("2024-06-06T00:00+02:00", "--until: found '2024-06-06T00:00+02:00', a time with a zone"),
    ],
)
def test_a_last_time_that_cannot_be_is_told_by_its_option(here, run, until, words):
    result = run(f"forecast --load bikes.cgp --until {until} --future next_week.csv")
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


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
        ({"south": -5, "hour": 2}, "line 5, column 'n': Output 'south' in column 'n': found -5."),
        (
            {"south": 5, "hour": 1},
            "line 6, column 'time': Time 'time': found 2024-06-03 01:00:00+02:00 of output 'north' "
            "again, after line 4.",
        ),
    ],
    ids=["a value", "twice"],
)
def test_errors_about_a_long_table_are_told_by_its_own_lines(tmp_path, run, values, words):
    path = tmp_path / "long.csv"
    path.write_text(LONG.format(**values))
    options = "--delimiter ';' --outputs n --by station --time time --likelihood gamma"
    result = run(f"fit {path} {options} --save {tmp_path / 'm.cgp'}")
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


def test_a_column_that_is_not_there_is_told_with_its_file(here, run):
    result = run("fit bikes.csv --outputs station_1 --time time --censored full --save m.cgp")
    assert "'full', which is not a column. bikes.csv has 'time', 'rain'" in result.stderr


def test_no_output_is_written_over_by_the_interval_of_another():
    first, low = pa.table({"a": [1.0], "a_low": [9.0]}), pa.table({"a": [0.5], "a_low": [8.0]})
    found = side_by_side((), {"": first, "_low": low, "_high": low}).to_pylist()[0]
    assert (found["a"], found["a_low"]) == (1.0, 9.0)
    assert (found["a_interval_low"], found["a_low_interval_low"]) == (0.5, 8.0)


@pytest.mark.slow
def test_lost_demand_can_be_grouped_by_columns(here, run):
    line = "lost-demand bikes.csv --outputs station_1 --time time --censored station_1_empty "
    line += "--model cgp --iterations 1 --samples 5 --group weekday,rain --output -"
    result = succeeded(run(line))
    header, *rows = result.stdout.splitlines()
    assert header.startswith("weekday,rain,observed")
    rain = {line.split(",")[1] for line in (here / "bikes.csv").read_text().splitlines()[1:]}
    assert len({row.split(",")[1] for row in rows}) == len(rain)
    after = succeeded(run("lost-demand --load bikes.cgp --group time --samples 5 --output -"))
    assert len(after.stdout.splitlines()) == 49
    for given in ("bikes.csv --outputs station_1 --time time", "--load bikes.cgp"):
        refused = run(f"lost-demand {given} --group crew")
        assert refused.exit_code == 2
        assert "Error: --group: found 'crew'. Accepted are" in refused.stderr
