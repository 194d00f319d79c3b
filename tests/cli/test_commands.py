"""The commands from end to end, on one small table and one model fitted to it."""

import csv
import dataclasses
import json
import types

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

import censored_gp
from censored_gp import CensoredGP, load
from censored_gp.cli import fitting
from censored_gp.estimator.analysis.diagnose import Diagnosis
from censored_gp.kernels import RBF


def table(path):
    with path.open() as lines:
        return list(csv.DictReader(lines))


def numbers(table, name):
    return np.array([float(row[name]) for row in table])


def succeeded(result):
    assert result.exit_code == 0, result.output
    return result


def ahead(here):
    """The inputs of the day after, for Python."""
    rows = table(here / "next_week.csv")
    times = np.array([row["time"] for row in rows], "datetime64[s]")
    return {"time": times, "rain": numbers(rows, "rain")}


def test_fit_prints_a_summary_and_saves_the_model(here, fitted):
    assert "48 rows of 2 outputs" in fitted.stdout
    assert "bikes.cgp" in fitted.stderr
    model = censored_gp.load("bikes.cgp")
    assert model.output_names_ == ("station_1", "station_2")
    assert model.random_state == 0
    assert model.observations_.is_right.sum() == sum(
        row[f"station_{d}_empty"] == "True" for row in table(here / "bikes.csv") for d in (1, 2)
    )


def test_the_summary_of_a_model_file_is_the_same(here, fitted, run):
    assert succeeded(run("fit --load bikes.cgp")).output == fitted.stdout


def test_a_fit_can_be_repeated_on_another_table(here, run):
    result = succeeded(run("fit bikes.csv --load bikes.cgp --save again.cgp --output again.txt"))
    assert result.stdout == ""
    assert (here / "again.cgp").read_bytes() == (here / "bikes.cgp").read_bytes()
    assert "48 rows" in (here / "again.txt").read_text()


def test_a_table_may_come_from_the_standard_input_or_parquet(here, run, rows, tmp_path):
    text = (here / "bikes.csv").read_text()
    wanted = rows("impute --load bikes.cgp")
    result = succeeded(run("impute - --load bikes.cgp", input=text))
    assert list(csv.DictReader(result.stdout.splitlines())) == wanted
    parquet.write_table(arrow_csv.read_csv(here / "bikes.csv"), tmp_path / "bikes.parquet")
    assert rows(f"impute {tmp_path}/bikes.parquet --load bikes.cgp") == wanted


@pytest.mark.parametrize("asked", ["predict next_week.csv", "impute"])
def test_answers_written_in_parts_are_those_at_once(here, run, rows, monkeypatch, tmp_path, asked):
    line = f"{asked} --load bikes.cgp"
    wanted = rows(line)
    monkeypatch.setattr(fitting, "ROWS_AT_A_TIME", 7)
    parts = rows(line)
    for name in ("p.csv", "p.parquet", "p.json"):
        succeeded(run(f"{line} --output {tmp_path}/{name}"))
    assert table(tmp_path / "p.csv") == parts
    assert [row["time"] for row in parts] == [row["time"] for row in wanted]
    found = parquet.read_table(tmp_path / "p.parquet")
    assert len(json.loads((tmp_path / "p.json").read_text())) == len(wanted)
    for name in ("station_1", "station_1_low", "station_2_high"):
        np.testing.assert_allclose(found[name], numbers(wanted, name), rtol=1e-12)


def test_predictions_are_those_of_the_model(here, run):
    assert succeeded(run("predict next_week.csv --load bikes.cgp -o p.csv")).stdout == ""
    found = table(here / "p.csv")
    model, new = censored_gp.load("bikes.cgp"), ahead(here)
    low, high = model.interval(new, 0.9)
    for name in ("station_1", "station_2"):
        np.testing.assert_array_equal(numbers(found, name), model.predict(new)[name])
        np.testing.assert_array_equal(numbers(found, f"{name}_low"), low[name])
        np.testing.assert_array_equal(numbers(found, f"{name}_high"), high[name])
    assert [row["time"] for row in found][:2] == ["2024-06-05T00:00:00", "2024-06-05T01:00:00"]


def test_impute_keeps_exact_cells_and_fills_the_others(here, run):
    succeeded(run("impute --load bikes.cgp --output imputed.csv"))
    seen, found = table(here / "bikes.csv"), table(here / "imputed.csv")
    assert [row["time"] for row in found] == [row["time"] for row in seen]
    for name in ("station_1", "station_2"):
        before, after = numbers(seen, name), numbers(found, name)
        empty = np.array([row[f"{name}_empty"] == "True" for row in seen])
        assert empty.any()
        np.testing.assert_array_equal(after[~empty], before[~empty])
        assert np.all(after[empty] >= before[empty])
        assert np.all(numbers(found, f"{name}_high") >= numbers(found, f"{name}_low"))


def test_results_have_the_format_of_their_name(here, run):
    succeeded(run("predict next_week.csv --load bikes.cgp -o p.json"))
    succeeded(run("predict next_week.csv --load bikes.cgp -o p.parquet"))
    first = json.loads((here / "p.json").read_text())[0]
    assert parquet.read_table(here / "p.parquet").to_pylist()[0]["station_1"] == first["station_1"]


def test_lost_demand_is_grouped(here, rows):
    total = rows("lost-demand --load bikes.cgp --samples 20")
    assert len(total) == 1
    assert float(total[0]["lost_low"]) < float(total[0]["lost"]) < float(total[0]["lost_high"])
    groups = rows("lost-demand --load bikes.cgp --samples 20 --group output,weekday")
    assert [(row["output"], row["weekday"]) for row in groups] == [
        (output, day) for output in ("station_1", "station_2") for day in ("Monday", "Tuesday")
    ]
    assert numbers(groups, "lost").sum() == pytest.approx(float(total[0]["lost"]))


def test_lost_demand_is_grouped_by_columns_of_the_table(here, rows, tmp_path):
    lines = (here / "bikes.csv").read_text().splitlines()
    crews = ["crew", *("north" if row % 3 else "south" for row in range(len(lines) - 1))]
    pairs = zip(lines, crews, strict=True)
    (tmp_path / "crews.csv").write_text("\n".join(f"{line},{crew}" for line, crew in pairs))
    line = f"lost-demand {tmp_path}/crews.csv --load bikes.cgp --samples 5 --group crew"
    assert [row["crew"] for row in rows(line)] == ["north", "south"]
    assert len(rows("lost-demand --load bikes.cgp --group time --samples 5")) == 48


def test_required_supply_has_a_row_for_each_window_and_output(here, rows):
    found = rows("required-supply --load bikes.cgp --window 1d --samples 50")
    names = [(row["window"][:10], row["output"]) for row in found]
    outputs = ("station_1", "station_2", "all outputs")
    assert names == [(day, output) for day in ("2024-06-03", "2024-06-04") for output in outputs]
    assert np.all(numbers(found, "peak") >= numbers(found, "expected_peak"))
    assert np.all(numbers(found, "sum") > numbers(found, "peak"))


def test_required_supply_of_future_rows_is_that_of_the_model(here, rows):
    line = "required-supply --load bikes.cgp --future next_week.csv --probability 0.9 --samples 50"
    expected = censored_gp.load("bikes.cgp").required_supply(ahead(here), 0.9, samples=50)
    np.testing.assert_allclose(numbers(rows(line), "sum"), np.asarray(expected["sum"]))


def test_correlations_are_a_table_by_output(here, rows):
    first, second = rows("correlations --load bikes.cgp")
    assert (first["output"], first["station_1"]) == ("station_1", "1.0")
    assert first["station_2"] == second["station_1"]


def test_forecasts_take_future_inputs_by_their_times(here, rows, run):
    lines = (here / "next_week.csv").read_text().splitlines()
    (here / "turned.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    line = "forecast --load bikes.cgp --periods 6 --future "
    found = rows(line + "next_week.csv")
    assert len(found) == 6
    assert found == rows(line + "turned.csv")
    assert rows("forecast --load bikes.cgp --until 2024-06-05T05:00 --future turned.csv") == found
    assert len(rows("forecast --load bikes.cgp --periods 3")) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [lines[0], *lines[2:]], ["2024-06-05"]),
        (lambda lines: [*lines[:5], lines[5].split(",")[0] + ","], ["line 6", "'rain'"]),
        (lambda lines: ["time,snow", *lines[1:]], ["'rain'"]),
    ],
    ids=["a time is missing", "an input is missing", "no input is known"],
)
def test_bad_future_inputs_are_refused(here, run, change, words):
    lines = (here / "next_week.csv").read_text().splitlines()
    (here / "future.csv").write_text("\n".join(change(lines)) + "\n")
    result = run("forecast --load bikes.cgp --periods 5 --future future.csv")
    assert result.exit_code == 2
    assert all(word in result.stderr for word in words), result.stderr


@pytest.mark.parametrize("until", ["foo", "2020-01-01", "2024-06-06T00:00+02:00"])
def test_a_last_time_that_cannot_be_is_refused(here, run, until):
    result = run(f"forecast --load bikes.cgp --until {until} --future next_week.csv")
    assert result.exit_code == 2
    assert "until" in result.stderr


@pytest.mark.parametrize("verdict", [("Do not trust it.", "Try heteroscedastic=True."), ()])
def test_a_diagnosis_is_a_verdict_and_a_table(here, run, monkeypatch, verdict):
    asked = []

    def diagnose(self, folds):
        asked.append(folds)
        table = pa.table({"ratio": [1.5]})
        return Diagnosis(verdict, ("A gap.",), table, {}, None, self.observations_)

    monkeypatch.setattr(CensoredGP, "diagnose", diagnose)
    result = succeeded(run("diagnose --load bikes.cgp --folds 2 --output methods.csv"))
    assert asked == [2]
    assert (here / "methods.csv").read_text() == "ratio\n1.5\n"
    said = result.stderr
    assert ("--model hmocgp" if verdict else "Nothing speaks against") in said
    assert said.index("Do not trust" if verdict else "Nothing") < said.index("A gap.")


@pytest.fixture
def compared(monkeypatch):
    """What `compare` was asked for, without the fits."""
    asked = {}

    def compare(**given):
        asked.clear()
        asked.update(given)
        return pa.table({"model": ["CGP"]})

    monkeypatch.setattr("censored_gp.estimator.analysis.compare.compare", compare)
    return asked


def test_compare_is_asked_for_models_and_likelihoods(here, run, compared):
    succeeded(run("compare bikes.csv --load bikes.cgp --models ncgp,mocgp --folds 2"))
    assert len(compared["X"]) == 48
    assert compared["models"] == ["NCGP", "MOCGP"]
    assert compared["likelihoods"] == ["gaussian"]
    assert compared["outputs"] == ["station_1", "station_2"]
    assert (compared["folds"], compared["random_state"]) == (2, 0)
    succeeded(run("compare bikes.csv --load bikes.cgp --likelihoods poisson,gaussian"))
    assert compared["likelihoods"] == ["poisson", "gaussian"]
    assert len(compared["models"]) == 6


def test_compare_takes_table_and_settings_from_a_model_file(here, run, compared, tmp_path):
    model = censored_gp.load("bikes.cgp")
    model.set_params(rank=1, engine="svi", max_iterations=7, random_state=5)
    model.save(tmp_path / "other.cgp")
    succeeded(run(f"compare --load {tmp_path}/other.cgp --models cgp"))
    assert compared["y"].names == ("station_1", "station_2")
    kept = {name: compared["settings"][name] for name in ("rank", "engine", "max_iterations")}
    assert kept == {"rank": 1, "engine": "svi", "max_iterations": 7}
    assert not {"likelihood", "coupled", "use_censoring"} & set(compared["settings"])
    assert compared["random_state"] == 5
    assert compared["own_inputs"] is None
    model.training_ = dataclasses.replace(model.training_, own_inputs=((1,), (1,)))
    model.set_params(engine="natural").save(tmp_path / "own.cgp")
    succeeded(run(f"compare --load {tmp_path}/own.cgp --models cgp"))
    assert compared["own_inputs"] == [["rain"], ["rain"]]


def test_flags_that_were_arrays_are_no_columns_of_another_table(here, run, tmp_path):
    model = censored_gp.load("bikes.cgp")
    layout = dataclasses.replace(model.layout_, censored=None)
    model.training_ = dataclasses.replace(model.training_, layout=layout)
    model.save(tmp_path / "arrays.cgp")
    result = run(f"fit bikes.csv --load {tmp_path}/arrays.cgp")
    assert result.exit_code == 2
    assert "arrays.cgp was fitted to flags or bounds in arrays" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "diagnose --load bikes.cgp --folds 2",
        "compare --load bikes.cgp --models ncgp,mocgp --folds 2",
    ],
)
def test_cross_validation_runs(here, rows, line):
    assert rows(line)


def test_report_writes_a_page(here, run):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    asked = "report --load bikes.cgp --title Bikes --folds 0 --output"
    succeeded(run(f"{asked} report.html"))
    page = (here / "report.html").read_text(encoding="utf-8")
    assert "Bikes" in page
    before = sorted(here.iterdir())
    shown = succeeded(run(f"{asked} -")).stdout
    assert shown.lower().startswith("<!doctype html>")
    assert sorted(here.iterdir()) == before


def quick(table, **known):
    """Fit a small table, stopped at once: what it keeps is what is tested."""
    model = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, max_iterations=1, max_inducing=4)
    return model.fit(table, **known)


DEPTHS = [0.1, 0.3, 0.7, 0.2, 1 / 3, 0.9]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_without_times_are_told_apart_by_their_inputs(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("depth\n0.25\n0.5\n")
    wide = pa.table({"depth": DEPTHS, "lead": [1.0, 3, 2, 5, 4, 2]})
    quick(wide, outputs=["lead"], inputs=["depth"]).save("wide.cgp")
    filled = rows("impute --load wide.cgp")
    assert list(filled[0])[:2] == ["depth", "lead"]
    np.testing.assert_allclose(numbers(filled, "depth"), DEPTHS)
    np.testing.assert_array_equal(
        numbers(rows("predict new.csv --load wide.cgp"), "depth"), [0.25, 0.5]
    )
    long = {"s": ["x", "y", "x", "y"], "depth": [0.1, 0.1, 0.5, 0.9], "v": [1.0, 2, 3, 4]}
    quick(pa.table(long), outputs="v", by="s", inputs="depth").save("long.cgp")
    filled = rows("impute --load long.cgp")
    assert [row["s"] for row in filled] == long["s"]
    np.testing.assert_allclose(numbers(filled, "depth"), long["depth"])
    asked = rows("predict new.csv --load long.cgp")
    assert [(row["depth"], row["s"]) for row in asked] == [
        ("0.25", "x"),
        ("0.25", "y"),
        ("0.5", "x"),
        ("0.5", "y"),
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_of_arrays_answers_commands(rows, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = np.array(DEPTHS)[:, None], np.array([1.0, 3, 2, 5, 4, 2])
    quick(X, y=y, censored=y >= 5).save("m.cgp")
    (tmp_path / "new.csv").write_text("x0\n0.25\n")
    np.testing.assert_allclose(numbers(rows("impute --load m.cgp"), "x0"), DEPTHS)
    assert rows("predict new.csv --load m.cgp")[0]["x0"] == "0.25"
    assert list(rows("correlations --load m.cgp")[0].values()) == ["y", "1.0"]
    assert rows("required-supply --samples 9 --load m.cgp --seed 1")
    result = run("fit new.csv --load m.cgp")
    assert result.exit_code == 2
    assert "arrays" in result.stderr


@pytest.mark.parametrize("by_signal", [False, True])
def test_an_interrupted_fit_saves_nothing(here, run, monkeypatch, by_signal):
    def fit(self, *_, **__):
        if by_signal:
            raise KeyboardInterrupt
        self.report_ = types.SimpleNamespace(status="interrupted")
        return self

    monkeypatch.setattr(CensoredGP, "fit", fit)
    result = run("fit bikes.csv --load bikes.cgp --save x.cgp")
    assert result.exit_code == 130
    assert not list(here.glob("x*"))


def test_an_interrupted_fit_keeps_the_best_so_far_beside_its_place(here, run, monkeypatch):
    fitted = censored_gp.load("bikes.cgp")

    def fit(self, *_, **__):
        vars(self).update(vars(fitted))
        self.report_ = dataclasses.replace(fitted.report_, status="interrupted")
        return self

    monkeypatch.setattr(CensoredGP, "fit", fit)
    result = run("fit bikes.csv --load bikes.cgp --save x.cgp")
    assert result.exit_code == 130
    assert "x.interrupted.cgp" in result.stderr
    assert not (here / "x.cgp").exists()
    assert censored_gp.load("x.interrupted.cgp").report_.status == "interrupted"
    (here / "x.interrupted.cgp").unlink()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("impute", "--load"),
        ("fit", "--load"),
        ("impute --load bikes.csv", "bikes.csv"),
        ("impute --load none.cgp", "none.cgp"),
        ("impute --load bikes.cgp --outputs a", "--outputs"),
        ("impute --load bikes.cgp --own-inputs a", "--own-inputs"),
        ("lost-demand --load bikes.cgp --side left", "--side"),
        ("fit bikes.csv --load bikes.cgp --likelihood gaussian", "--likelihood"),
        ("fit bikes.csv --load bikes.cgp --model ncgp", "--model"),
        ("impute --load bikes.cgp --iterations 3", "--iterations"),
        ("impute --load bikes.cgp --where rain=0", "--where"),
        ("impute --load bikes.cgp --decimal ,", "--decimal"),
        ("impute --load bikes.cgp --time-format %d", "--time-format"),
        ("lost-demand --load bikes.cgp --by hour", "--group hour"),
        ("fit bikes.csv --outputs station_1 --time time --likelihood Poison", "mean 'poisson'"),
        ("compare bikes.csv --load bikes.cgp --models hmocpg", "mean 'hmocgp'"),
        ("data bike_shar", "mean 'bike_share'"),
        ("impute --load bikes.cgp --output x.xls", "x.xls"),
        ("fit bikes.csv --output station_1 --time time", "mean --outputs station_1?"),
        ("impute --load bikes.cgp --probability 1.5", "--probability"),
        ("impute bikes.csv --load bikes.cgp --output bikes.csv", "bikes.csv"),
        ("fit bikes.csv --outputs station_1 --time time --model hmcgp", "mean 'hmocgp'"),
        ("fit bikes.csv --outputs station_1 --time time --likelihood normal", "--likelihood"),
        ("fit bikes.csv --outputs station_1 --time time --likelihood b=poisson", "'b'"),
        ("fit bikes.csv --outputs station_1 --time time --side rigth", "mean 'right'"),
        ("fit bikes.csv --outputs station_1 --time time --side share_or_limit", "--side"),
        ("fit bikes.csv --outputs station_1 --time time --delimiter ;;", "--delimiter"),
        (
            "fit bikes.csv --outputs station_1 --time time --zone Europe/Berlim",
            "mean 'Europe/Berlin'",
        ),
        ("fit bikes.csv --outputs station_1 --time time --where rain", "--where"),
        ("fit bikes.csv --outputs station_1 --time time --where shop=1", "'shop'"),
        ("fit bikes.csv --outputs station_1 --time time --where rain=hail", "'hail'"),
        ("fit bikes.csv --outputs station_1 --time tine", "Did you mean 'time'"),
        ("fit bikes.csv --outputs station_1 --time time --censored full", "'full'"),
        ("fit bikes.csv --outputs station_1 --time time --save no/m.cgp", "no/m.cgp"),
        ("fit bikes.csv --outputs station_1 --time time --save bikes.csv", "bikes.csv"),
        ("fit bikes.csv --time time", "--outputs"),
        ("lost-demand --load bikes.cgp --group huor", "mean 'hour'"),
        ("lost-demand bikes.csv --load bikes.cgp --group planet", "planet"),
        ("forecast --load bikes.cgp", "--periods"),
        ("compare", "--load"),
        ("compare bikes.csv --load bikes.cgp --models gp", "--models"),
        ("compare --load bikes.cgp --save x.cgp", "--save"),
        ("compare --load bikes.cgp --model cgp", "--models"),
        ("required-supply --load bikes.cgp --window long", "--window"),
        ("correlations --load bikes.cgp --role maen", "mean 'mean'"),
        ("report --load bikes.cgp --output r.pdf", "r.pdf"),
        ("report --load bikes.cgp --compare gp", "--compare"),
        ("predict bikes.csv", "--train"),
        ("predict none.csv --load bikes.cgp", "none.csv"),
    ],
)
def test_bad_usage_ends_with_exit_code_2(here, run, line, words):
    before = sorted(path.name for path in here.iterdir())
    result = run(line)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in here.iterdir()) == before


def test_rows_that_cannot_be_read_are_refused_before_the_fit(here, run, tmp_path):
    (tmp_path / "rows.csv").write_text((here / "next_week.csv").read_text() + "2024-06-06\n")
    line = f"predict {tmp_path}/rows.csv --train bikes.csv --outputs station_1 --time time"
    result = run(line)
    assert "got 1 fields" in result.stderr
    assert "Fitting" not in result.stderr


def test_a_model_saved_by_a_command_answers_pandas_users_with_frames(here):
    pd = pytest.importorskip("pandas")
    model = load("bikes.cgp")
    new = pd.read_csv("next_week.csv", parse_dates=["time"])
    answers = [model.impute(), model.forecast(2, inputs=new), model.predict(new)]
    assert all(isinstance(answer, pd.DataFrame) for answer in answers)
    assert answers[0]["time"].dtype.kind == "M"


def test_fleet_fits_a_model_to_each_group(here, run):
    rows = arrow_csv.read_csv("bikes.csv")
    both = [rows.append_column("city", pa.array([name] * len(rows))) for name in ("ribe", "aarhus")]
    (here / "cities").mkdir()
    for name, part in zip("ab", both, strict=True):
        parquet.write_table(part, here / "cities" / f"{name}.parquet")
    line = "--by city --outputs station_1,station_2 --time time --inputs rain --model mocgp "
    line += "--censored station_1_empty,station_2_empty --jobs 1 --periods 2 --save "
    result = succeeded(run(f"fleet cities {line} fleet"))
    assert "2 groups in fleet" in result.stderr
    found = parquet.read_table(here / "fleet" / "imputed")
    imputed = censored_gp.load("bikes.cgp").impute()["station_1"]
    cells = found.filter(pa.compute.field("output") == "station_1")
    of_one = cells.filter(pa.compute.field("city") == "ribe")["value"].to_numpy()
    flags = np.array([row["station_1_empty"] == "True" for row in table(here / "bikes.csv")])
    assert of_one == pytest.approx(np.asarray(imputed)[flags])
    arrow_csv.write_csv(pa.concat_tables(both), here / "cities.csv")
    succeeded(run(f"fleet cities.csv {line} again --where city=ribe"))
    assert set(parquet.read_table(here / "again" / "summary")["city"].to_pylist()) == {"ribe"}
    assert "--by" in run("fleet cities --outputs station_1 --time time --save x").stderr
    assert run(f"fleet cities {line} fleet --probability 0.8").exit_code == 2
