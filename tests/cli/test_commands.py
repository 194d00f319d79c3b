"""The commands from beginning to end, on one small table and one model fitted to it."""

import csv
import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import censored_gp
from censored_gp import cli
from censored_gp.cli import fitting
from censored_gp.cli.options import COMMANDS
from censored_gp.estimator.analysis import compare as comparison

pa = pytest.importorskip("pyarrow")


def rows(text):
    return list(csv.DictReader(text.splitlines()))


def table(path):
    return rows(path.read_text())


def numbers(table, name):
    return np.array([float(row[name]) for row in table])


def succeeded(result):
    assert result.exit_code == 0, result.output
    return result


def test_it_says_its_version(run):
    assert run("--version").output.split() == ["censored-gp", censored_gp.__version__]


def test_it_is_a_module_to_run_too():
    command = [sys.executable, "-m", "censored_gp", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["censored-gp", censored_gp.__version__]


def test_without_a_command_it_says_what_there_is(run):
    shown = run("").output
    assert all(name in shown for name in cli.NAMES)
    assert set(cli.NAMES) == set(COMMANDS)


@pytest.mark.parametrize("name", cli.NAMES)
def test_the_help_of_a_command_shows_its_examples_whole(run, name):
    shown = [line.strip() for line in succeeded(run(f"{name} --help")).output.splitlines()]
    assert COMMANDS[name].examples
    for example in COMMANDS[name].examples:
        assert all(line.strip() in shown for line in example.splitlines())


def test_the_shell_can_complete_commands(run):
    assert "--install-completion" in run("--help").output
    shown = run(
        "", env={"_CENSORED_GP_COMPLETE": "complete_bash", "COMP_WORDS": "censored-gp fo",
                 "COMP_CWORD": "1"},
        prog_name="censored-gp",
    ).output  # fmt: skip
    assert shown.split() == ["forecast"]


def test_fit_says_what_it_found_and_keeps_the_model(here, fitted):
    assert "48 rows of 2 outputs" in fitted.stdout
    assert "right-censored" in fitted.stdout
    assert "Fitting 48 rows" in fitted.stderr
    assert "Model: bikes.cgp" in fitted.stderr
    model = censored_gp.load("bikes.cgp")
    assert model.output_names_ == ("station_1", "station_2")
    assert model.random_state == 0
    assert model.observations_.is_right.sum() == sum(
        row[f"station_{d}_empty"] == "True" for row in table(here / "bikes.csv") for d in (1, 2)
    )


def test_what_was_found_can_be_told_again(here, fitted, run):
    assert succeeded(run("fit --load bikes.cgp")).output == fitted.stdout


@pytest.mark.slow
def test_the_example_of_fit_makes_a_model_of_counts(folder, run, tmp_path, monkeypatch):
    (tmp_path / "bikes.csv").write_text((folder / "bikes.csv").read_text())
    monkeypatch.chdir(tmp_path)
    assert "Poisson()" in succeeded(run(COMMANDS["fit"].examples[0])).stdout
    assert (tmp_path / "bikes.cgp").exists()


def test_predict_gives_a_value_and_an_interval_for_each_row(here, run):
    result = succeeded(run(COMMANDS["predict"].examples[0]))
    assert result.stdout == ""
    found = table(here / "predicted.csv")
    assert [row["time"] for row in found][:2] == ["2024-06-05T00:00:00", "2024-06-05T01:00:00"]
    assert len(found) == 24
    low, mean, high = (numbers(found, f"station_1{end}") for end in ("_low", "", "_high"))
    assert np.all(low <= high)
    assert np.all((low - 1 <= mean) & (mean <= high))


def test_predictions_are_those_of_the_model(here, run):
    found = rows(succeeded(run("predict next_week.csv --load bikes.cgp")).stdout)
    model = censored_gp.load("bikes.cgp")
    ahead = [(row["time"], float(row["rain"])) for row in table(here / "next_week.csv")]
    times, rain = zip(*ahead, strict=True)
    new = {"time": np.array(times, "datetime64[m]"), "rain": np.array(rain)}
    np.testing.assert_array_equal(numbers(found, "station_2"), model.predict(new)["station_2"])


def test_impute_leaves_what_was_seen_and_fills_the_rest(here, run):
    succeeded(run(COMMANDS["impute"].examples[0]))
    seen, found = table(here / "bikes.csv"), table(here / "imputed.csv")
    assert [row["time"][:16] for row in found] == [row["time"] for row in seen]
    for name in ("station_1", "station_2"):
        before, after = numbers(seen, name), numbers(found, name)
        empty = np.array([row[f"{name}_empty"] == "True" for row in seen])
        assert empty.any()
        np.testing.assert_array_equal(after[~empty], before[~empty])
        assert np.all(after[empty] >= before[empty])
        assert np.all(numbers(found, f"{name}_high") >= numbers(found, f"{name}_low"))


@pytest.mark.slow
def test_a_table_of_detection_limits_is_imputed_in_one_go(run, tmp_path, monkeypatch):
    depth = np.linspace(0, 5, 48)
    lead = 1 + np.sin(depth)
    lines = [
        f"{d},{max(v, 0.5)},{'yes' if v < 0.5 else 'no'}" for d, v in zip(depth, lead, strict=True)
    ]
    (tmp_path / "tanks.csv").write_text("\n".join(["depth,lead,below", *lines]))
    monkeypatch.chdir(tmp_path)
    found = rows(succeeded(run(COMMANDS["impute"].examples[1])).stdout)
    below = lead < 0.5
    assert np.all(numbers(found, "lead")[below] <= 0.5)
    assert np.all(numbers(found, "lead")[~below] == lead[~below])


def test_results_are_of_the_format_their_name_says(here, run):
    from pyarrow import parquet

    succeeded(run("predict next_week.csv --load bikes.cgp -o p.json"))
    succeeded(run("predict next_week.csv --load bikes.cgp -o p.parquet"))
    first = json.loads((here / "p.json").read_text())[0]
    assert parquet.read_table(here / "p.parquet").to_pylist()[0]["station_1"] == first["station_1"]


def test_a_fit_can_be_repeated_on_another_table(here, run):
    result = succeeded(run("fit bikes.csv --load bikes.cgp --save again.cgp --output again.txt"))
    assert result.stdout == ""
    assert (here / "again.cgp").read_bytes() == (here / "bikes.cgp").read_bytes()
    assert "48 rows" in (here / "again.txt").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("impute", "Found no FILE and no --load"),
        ("fit", "Found no FILE and no --load"),
        ("impute --load bikes.csv", "bikes.csv is not a model file of censored-gp"),
        ("impute --load none.cgp", "none.cgp: No such file"),
        ("impute --load bikes.cgp --outputs a", "--outputs and --load"),
        ("lost-demand --load bikes.cgp --side left", "--side and --load"),
        ("fit bikes.csv --load bikes.cgp --likelihood gaussian", "--likelihood and --load"),
        ("fit bikes.csv --load bikes.cgp --model ncgp", "--model and --load"),
        ("impute --load bikes.cgp --iterations 3", "--iterations and --load"),
        ("impute --load bikes.cgp --where rain=0", "--where is about a table, and none is given"),
        ("impute --load bikes.cgp --decimal ,", "--decimal is about a table, and none is given"),
        ("impute --load bikes.cgp --output x.xls", "x.xls: found the ending '.xls'"),
        ("impute --load bikes.cgp --probability 1.5", "--probability"),
        ("fit bikes.csv --outputs station_1 --time time --model gp", "--model: found 'gp'"),
        ("fit bikes.csv --outputs station_1 --time time --likelihood normal", "--likelihood"),
        ("fit bikes.csv --time time", "--outputs is missing: say which columns to model"),
        ("fit bikes.csv --outputs station_1 --time time --save no/m.cgp", "--save: no/m.cgp"),
        ("fit bikes.csv --outputs station_1 --time time --save bikes.csv", "--save: found bikes"),
        ("fit bikes.csv --outputs station_1 --time time --side up", "Error: --side: found 'up'"),
        ("fit bikes.csv --outputs station_1 --time time --likelihood b=poisson", "Error: bikes"),
        ("fit bikes.csv --outputs station_1 --time time --delimiter ;;", "--delimiter: found"),
        ("impute bikes.csv --load bikes.cgp --output bikes.csv", "--output: found bikes.csv"),
        ("lost-demand --load bikes.cgp --group planet", "--group: found 'planet'"),
        ("forecast --load bikes.cgp", "Give --periods or --until"),
        ("compare bikes.csv --load bikes.cgp --models gp", "--models: found 'gp'"),
        ("compare", "Found no FILE and no --load"),
        ("compare --load bikes.cgp --save x.cgp", "--save: compare keeps no model"),
        ("compare --load bikes.cgp --model cgp", "--model: compare has --models"),
        ("required-supply --load bikes.cgp --window long", "--window: 'long' is not a duration"),
        ("correlations --load bikes.cgp --role scale", "--role: found 'scale'"),
        ("report --load bikes.cgp --output r.pdf", "r.pdf: found the ending '.pdf'"),
        ("data moon", "data: found 'moon'"),
        ("data bike_share --samples 3", "--samples: bike_share has no such choice"),
        ("data --days 3", "--days: say which data"),
        ("predict bikes.csv", "predict: found no --load and no --train"),
        ("nonsense", "No such command"),
    ],
)  # fmt: skip
def test_bad_usage_is_told_with_exit_code_2(here, run, line, message):
    before = sorted(p.name for p in here.iterdir())
    result = run(line)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""
    assert "Fitting" not in result.stderr
    assert sorted(p.name for p in here.iterdir()) == before


def changed(here, run, line, column, value):
    """What fitting the table says after one change in a line."""
    lines = [text.split(",") for text in (here / "bikes.csv").read_text().splitlines()]
    lines[line - 1][lines[0].index(column)] = value
    (here / "changed.csv").write_text("\n".join(map(",".join, lines)))
    result = run("fit changed.csv --load bikes.cgp --save x.cgp")
    assert not (here / "x.cgp").exists()
    return result


def test_what_the_model_finds_wrong_is_told_by_line_and_column(here, run):
    bad = changed(here, run, 6, "rain", "")
    assert bad.exit_code == 2
    assert "changed.csv, line 6, column 'rain': Input 'rain': found NaN" in bad.stderr
    bad = changed(here, run, 7, "station_1", "inf")
    assert bad.exit_code == 2
    assert "changed.csv, line 7, column 'station_1': Output 'station_1': found inf" in bad.stderr


def test_a_capacity_below_an_exact_value_is_told(here, run):
    line = "fit bikes.csv --outputs station_1 --time time --censored station_1_empty --capacity 1"
    result = run(line)
    assert result.exit_code == 2
    exact = [row["station_1_empty"] == "False" and float(row["station_1"]) > 1
             for row in table(here / "bikes.csv")]  # fmt: skip
    assert f"bikes.csv, line {exact.index(True) + 2}, column 'station_1'" in result.stderr
    assert "capacity" in result.stderr


def test_an_interrupted_fit_keeps_nothing(here, run, monkeypatch):
    def interrupted(self, *_, **__):
        self.report_ = types.SimpleNamespace(status="interrupted")
        return self

    monkeypatch.setattr(censored_gp.CensoredGP, "fit", interrupted)
    result = run("fit bikes.csv --load bikes.cgp --save x.cgp")
    assert result.exit_code == 130
    assert not (here / "x.cgp").exists()

    def press(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(censored_gp.CensoredGP, "fit", press)
    assert run("fit bikes.csv --load bikes.cgp --save x.cgp").exit_code == 130


def test_options_describe_the_model():
    training = fitting.Training(model="CGP", likelihood="a=poisson", seed=3, iterations=5)
    model = fitting._unfitted(training)
    assert (model.coupled, model.heteroscedastic, model.use_censoring) == (False, False, True)
    assert (model.likelihood, model.random_state, model.max_iterations) == ({"a": "poisson"}, 3, 5)


def test_data_are_listed_and_written(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = rows(succeeded(run(COMMANDS["data"].examples[0])).stdout)
    assert "bike_share" in [row["name"] for row in listed]
    succeeded(run(COMMANDS["data"].examples[1]))
    bikes = table(tmp_path / "bikes.csv")
    names = {"time", "rain", "station_1", "station_1_empty", "station_1_truth"}
    assert names <= set(bikes[0])
    short = [float(r["station_1"]) < float(r["station_1_truth"]) for r in bikes]
    assert all(r["station_1_empty"] == "True" for r, less in zip(bikes, short, strict=True) if less)


@pytest.fixture
def asked(monkeypatch):
    """Put in place of methods of the model that take long: what they are asked, and an answer."""
    found = {}

    def replace(owner, name):
        def answer(*arguments, **settings):
            found[name] = (
                arguments[1:] if owner is censored_gp.CensoredGP else arguments,
                settings,
            )
            return pa.table({"lost": [1.5]})

        monkeypatch.setattr(owner, name, answer, raising=False)
        return found

    return replace


def test_lost_demand_is_asked_by_group(here, run, asked):
    found = asked(censored_gp.CensoredGP, "lost_demand")
    usual = {"probability": 0.9, "samples": 500}
    assert succeeded(run(COMMANDS["lost-demand"].examples[0])).stdout == "lost\n1.5\n"
    assert found["lost_demand"][1] == {"by": None, **usual}
    succeeded(run(COMMANDS["lost-demand"].examples[1]))
    assert found["lost_demand"][1] == {"by": ["output", "hour"], **usual}
    assert (here / "lost.csv").read_text() == "lost\n1.5\n"


def test_forecast_is_asked_for_periods_or_a_time(here, run, asked):
    found = asked(censored_gp.CensoredGP, "forecast")
    succeeded(run(COMMANDS["forecast"].examples[0]))
    assert found["forecast"] == ((24,), {"until": None, "inputs": None, "probability": 0.9})
    succeeded(run("forecast --load bikes.cgp --until 2024-06-06 --future next_week.csv"))
    (periods,), settings = found["forecast"]
    assert (periods, settings["until"]) == (None, "2024-06-06")
    assert settings["inputs"].column_names == ["time", "rain"]


def test_compare_is_asked_for_models_and_likelihoods(here, run, asked):
    found = asked(comparison, "compare")
    succeeded(run(COMMANDS["compare"].examples[0]))
    _, settings = found["compare"]
    assert len(settings["X"]) == 48
    assert settings["models"] == ["NCGP", "MOCGP"]
    assert settings["likelihoods"] == ["gaussian"]
    assert settings["outputs"] == ["station_1", "station_2"]
    assert (settings["folds"], settings["random_state"]) == (2, 0)
    succeeded(run("compare bikes.csv --load bikes.cgp --likelihoods poisson,gaussian"))
    assert found["compare"][1]["likelihoods"] == ["poisson", "gaussian"]
    assert len(found["compare"][1]["models"]) == 6


def test_compare_takes_table_and_settings_from_a_model_file(here, run, asked, tmp_path):
    model = censored_gp.load("bikes.cgp")
    model.set_params(rank=1, engine="svi", max_iterations=7, random_state=5).save(
        tmp_path / "other.cgp"
    )
    found = asked(comparison, "compare")
    succeeded(run(f"compare --load {tmp_path}/other.cgp --models cgp"))
    given = found["compare"][1]
    assert given["X"].column_names == ["time", "rain"]
    assert given["y"].names == ("station_1", "station_2")
    kept = {name: given["settings"][name] for name in ("rank", "engine", "max_iterations")}
    assert kept == {"rank": 1, "engine": "svi", "max_iterations": 7}
    assert not {"likelihood", "coupled", "use_censoring"} & set(given["settings"])
    assert given["random_state"] == 5
    succeeded(run("compare bikes.csv --load bikes.cgp --seed 3 --iterations 4"))
    assert found["compare"][1]["random_state"] == 3
    assert found["compare"][1]["settings"]["max_iterations"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lost-demand", "forecast", "diagnose", "compare", "report"])
def test_examples_of_long_commands_run(here, run, name):
    if name == "report":
        pytest.importorskip("censored_gp.reporting")
    for example in COMMANDS[name].examples:
        succeeded(run(example))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo"])
def test_examples_of_the_longest_commands_run(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    succeeded(run(COMMANDS[name].examples[0]))


def test_report_hands_the_model_over(here, run, monkeypatch):
    asked = []

    def write(model, path, **_):
        asked.append((model.output_names_, str(path)))
        if Path(path).name != path:
            Path(path).write_text("<html>", encoding="utf-8")
        return path

    module = types.ModuleType("censored_gp.reporting")
    module.write_report = write
    monkeypatch.setitem(sys.modules, "censored_gp.reporting", module)
    result = succeeded(run(COMMANDS["report"].examples[0]))
    assert asked == [(("station_1", "station_2"), "report.html")]
    assert "Report: report.html" in result.stderr
    before = sorted(here.iterdir())
    assert succeeded(run("report --load bikes.cgp --output -")).stdout == "<html>\n"
    assert sorted(here.iterdir()) == before
