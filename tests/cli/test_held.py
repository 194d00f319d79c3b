"""The table that a model holds, and results of tables without times."""

import csv

import numpy as np
import pytest

from censored_gp import CensoredGP
from censored_gp.cli.held import inputs_of, new_keys, row_keys, told_apart
from censored_gp.kernels import RBF

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TIMES = np.datetime64("2024-10-26T20:30", "us") + np.arange(6) * np.timedelta64(3, "h")
DEPTHS, SKIES = [0.1, 0.3, 0.7, 0.2, 1 / 3, 0.9], ["dry", "wet"] * 3


def quick(table, **known):
    """Fit a small table, stopped at once: what it holds is what is tested."""
    model = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, max_iterations=1, max_inducing=4)
    return model.fit(table, **known)


def test_inputs_come_back_as_they_were():
    zoned = pa.array(TIMES).cast(pa.timestamp("us", "UTC")).cast(
        pa.timestamp("us", "Europe/Copenhagen")
    )  # fmt: skip
    table = pa.table({"t": zoned, "depth": DEPTHS, "sky": SKIES, "a": [1.0, 3, 2, 5, 4, 2]})
    model = quick(table, outputs=["a"], time="t", inputs=["depth", "sky"])
    again = inputs_of(model)
    assert again["depth"].to_pylist() == pytest.approx(DEPTHS, rel=1e-11)
    assert again["depth"].to_pylist()[:4] == DEPTHS[:4]
    assert again["sky"].to_pylist() == SKIES
    assert again["t"].type.tz == "Europe/Copenhagen"
    # The wall clock is what the model has; the doubled hour is between two of these rows.
    assert again["t"].to_pylist() == table["t"].to_pylist()
    np.testing.assert_allclose(model.predict(again)["a"], model.predict(table)["a"], rtol=1e-9)
    assert row_keys(model) is None


def test_rows_without_times_are_told_apart_by_their_inputs():
    table = pa.table({"depth": DEPTHS, "lead": [1.0, 3, 2, 5, 4, 2]})
    model = quick(table, outputs=["lead"], inputs=["depth"])
    filled = told_apart(model, {"": model.impute()}, row_keys(model))
    assert filled.column_names == ["depth", "lead"]
    assert filled["depth"].to_pylist() == pytest.approx(DEPTHS)
    rows = pa.table({"depth": [0.25, 0.5]})
    new = told_apart(model, {"": model.predict(rows)}, new_keys(model, rows))
    assert new.column_names == ["depth", "lead"]
    assert new["depth"].to_pylist() == [0.25, 0.5]


def test_rows_of_long_tables_too():
    table = pa.table(
        {"s": ["x", "y", "x", "y"], "depth": [0.1, 0.1, 0.5, 0.9], "v": [1.0, 2, 3, 4]}
    )
    model = quick(table, outputs="v", by="s", inputs="depth")
    filled = told_apart(model, {"": model.impute()}, row_keys(model))
    assert filled.column_names == ["depth", "s", "v"]
    assert filled["depth"].to_pylist() == pytest.approx([0.1, 0.1, 0.5, 0.9])
    rows = pa.table({"depth": [0.2, 0.3]})
    new = told_apart(model, {"": model.predict(rows)}, new_keys(model, rows))
    assert list(zip(*new.select(["depth", "s"]).to_pydict().values(), strict=True)) == [
        (0.2, "x"), (0.2, "y"), (0.3, "x"), (0.3, "y"),
    ]  # fmt: skip


def test_a_model_of_arrays_answers_commands(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = np.array(DEPTHS)[:, None], np.array([1.0, 3, 2, 5, 4, 2])
    quick(X, y=y, censored=y >= 5).save("m.cgp")
    (tmp_path / "new.csv").write_text("x0\n0.25\n")
    found = {}
    lines = ("impute", "correlations", "required-supply --samples 9", "predict new.csv")
    for line in lines:
        result = run(f"{line} --load m.cgp --seed 1")
        assert result.exit_code == 0, result.output
        found[line] = list(csv.DictReader(result.stdout.splitlines()))
    assert [float(row["x0"]) for row in found["impute"]] == pytest.approx(DEPTHS)
    assert found["predict new.csv"][0]["x0"] == "0.25"
    assert list(found["correlations"][0].values()) == ["y", "1.0"]
