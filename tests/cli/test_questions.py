"""The commands that ask a model: what would be enough, who informs whom, whether to believe it."""

import csv
import json

import numpy as np
import pytest

import censored_gp
from censored_gp.cli.options import COMMANDS
from censored_gp.estimator.analysis.diagnose import Diagnosis

pa = pytest.importorskip("pyarrow")


def rows(result):
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(result.stdout.splitlines()))


def test_required_supply_is_told_by_window(here, run):
    found = rows(run(COMMANDS["required-supply"].examples[0]))
    names = [(row["window"][:10], row["output"]) for row in found]
    outputs = ("station_1", "station_2", "all outputs")
    assert names == [(day, output) for day in ("2024-06-03", "2024-06-04") for output in outputs]
    assert all(float(row["peak"]) >= float(row["expected_peak"]) for row in found)
    assert all(float(row["sum"]) > float(row["peak"]) for row in found)


def test_required_supply_of_rows_ahead_is_that_of_the_model(here, run):
    found = rows(run(COMMANDS["required-supply"].examples[1] + " --samples 50"))
    with (here / "next_week.csv").open() as lines:
        ahead = list(csv.DictReader(lines))
    new = {
        "time": np.array([row["time"] for row in ahead], "datetime64[m]"),
        "rain": np.array([float(row["rain"]) for row in ahead]),
    }
    model = censored_gp.load("bikes.cgp")
    expected = model.required_supply(new, 0.9, samples=50)
    np.testing.assert_allclose([float(row["sum"]) for row in found], expected["sum"].to_numpy())
    assert found[0]["window"] == "all rows"


def test_correlations_are_a_table_by_output(here, run):
    run(COMMANDS["correlations"].examples[0] + " --output c.json")
    first, second = json.loads((here / "c.json").read_text())
    assert first["output"] == "station_1"
    assert first["station_1"] == 1
    assert first["station_2"] == second["station_1"]
    assert rows(run(COMMANDS["correlations"].examples[0]))[0]["station_1"] == "1.0"


@pytest.mark.parametrize("warnings", [("Try heteroscedastic=True.",), ()])
def test_a_diagnosis_is_a_table_and_sentences(here, run, monkeypatch, warnings):
    asked = []

    def diagnose(self, folds):
        asked.append(folds)
        return Diagnosis(pa.table({"nlpd": [1.5]}), warnings, {}, None, self.observations_)

    monkeypatch.setattr(censored_gp.CensoredGP, "diagnose", diagnose)
    result = run(COMMANDS["diagnose"].examples[0])
    assert (result.exit_code, asked) == (0, [2])
    assert (here / "scores.csv").read_text() == "nlpd\n1.5\n"
    said = "Try --model hmocgp." if warnings else "Nothing is wrong"
    assert said in result.stderr
