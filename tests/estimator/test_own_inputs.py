"""Inputs that are one output's own, in long and wide tables and in arrays; and holidays."""

import csv
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from censored_gp import MOCGP, load
from censored_gp.cli import app
from censored_gp.cli.output import write

ROWS = 40
RNG = np.random.default_rng(3)
HOURS = np.arange(ROWS) * 1.0
PRICES = RNG.normal(size=(ROWS, 2))
SALES = np.sin(HOURS / 6)[:, None] + PRICES * [-1.0, 0.5] + 0.1 * RNG.normal(size=(ROWS, 2))
WIDE = {
    "hour": HOURS, "a": SALES[:, 0], "b": SALES[:, 1], "price a": PRICES[:, 0],
    "price b": PRICES[:, 1],
}  # fmt: skip
LONG = {
    "hour": np.repeat(HOURS, 2),
    "shop": np.tile(["a", "b"], ROWS),
    "sold": SALES.ravel(),
    "price": PRICES.ravel(),
}
BY_OUTPUT = {"b": "price b", "a": ["price a"]}


def new_model():
    return MOCGP(hyperparameters="fixed", max_iterations=30)


@pytest.fixture(scope="module")
def wide():
    return new_model().fit(WIDE, outputs=["a", "b"], time="hour", own_inputs=BY_OUTPUT)


def test_slopes_are_learned(wide):
    slopes = np.ravel(wide.posterior_.model.priors["mean"].slopes.size)
    np.testing.assert_allclose(slopes * wide.units_.scale, [-1.0, 0.5], atol=0.1)


def test_the_summary_has_what_a_unit_of_an_own_input_adds(wide):
    """That is the difference of predictions, wherever they are."""
    told = dict(re.findall(r"price . on (\w) (\S+?)(?:,|\n)", wide.summary()))
    for name in ("a", "b"):
        other = wide.predict(WIDE | {f"price {name}": PRICES[:, 0] + 1})[name]
        added = other - wide.predict(WIDE | {f"price {name}": PRICES[:, 0]})[name]
        np.testing.assert_allclose(added, float(told[name]), rtol=0.01)


def test_long_tables_and_arrays_give_the_same(wide):
    long = new_model().fit(LONG, outputs="sold", by="shop", time="hour", own_inputs="price")
    arrays = new_model().fit(np.column_stack([HOURS, PRICES]), SALES, own_inputs=[1, 2])
    some = {name: column[10:16] for name, column in LONG.items()}
    expected = wide.predict({name: column[5:8] for name, column in WIDE.items()})
    found = np.reshape(long.predict(some)["sold"], (3, 2))
    np.testing.assert_allclose(found, np.column_stack([expected["a"], expected["b"]]), atol=1e-4)
    # Arrays of numbers have no time column, so that only the slopes are alike.
    slopes = np.ravel(arrays.posterior_.model.priors["mean"].slopes.size)
    np.testing.assert_allclose(slopes * arrays.units_.scale, [-1.0, 0.5], atol=0.15)


def test_saved_models_keep_them(wide, tmp_path):
    again = load(wide.save(tmp_path / "model.safetensors"))
    for name in ("a", "b"):
        np.testing.assert_array_equal(again.predict(WIDE)[name], wide.predict(WIDE)[name])


DAYS = np.datetime64("2024-03-01") + np.arange(ROWS)
DATED = LONG | {"hour": np.repeat(DAYS, 2), "shop": np.tile([7, 8], ROWS)}
AHEAD = {"hour": np.repeat(DAYS[-1] + [1, 2], 2), "shop": [7, 8, 8, 7], "price": [-1.0, 0, 1, 2]}


@pytest.fixture(scope="module")
def dated():
    return new_model().fit(DATED, outputs="sold", by="shop", time="hour", own_inputs="price")


def test_forecasts_of_long_tables_take_them_of_each_output(dated):
    found, at_rows = dated.forecast(2, inputs=AHEAD), dated.predict(AHEAD)["sold"]
    np.testing.assert_allclose(found["sold"], np.asarray(at_rows)[[0, 1, 3, 2]])
    alone = {"hour": DAYS[-1] + [1, 2], "price": np.array([1.0, -1.0])}
    at_rows = dated.predict(alone)["sold"]
    np.testing.assert_allclose(dated.forecast(2, inputs=alone)["sold"], at_rows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({n: column[:3] for n, column in AHEAD.items()}, "must have rows of all.*none of '7'"),
        ({"price": [1.0, 2.0, 3.0, np.nan]}, "'price', row 3.*no value"),
        ({n: [*column, column[-1]] for n, column in AHEAD.items()} | {"price": range(5)}, "row 4"),
    ],
)
def test_own_inputs_ahead_that_do_not_fit_are_refused(dated, change, words):
    with pytest.raises(ValueError, match=words):
        dated.forecast(2, inputs=AHEAD | change)


def test_commands_take_them_and_holidays_from_the_columns_of_a_table(tmp_path, monkeypatch):
    pytest.importorskip("holidays")
    monkeypatch.chdir(tmp_path)
    model = new_model().fit(
        DATED, outputs="sold", by="shop", time="hour", own_inputs="price", holidays="DK"
    )
    model.save("shops.cgp")
    write(AHEAD, "ahead.csv")
    for command in ("predict ahead.csv", "forecast --periods 2 --future ahead.csv"):
        result = CliRunner().invoke(app, [*command.split(), "--load", "shops.cgp"])
        assert result.exit_code == 0, result.output
        found = sorted(float(row["sold"]) for row in csv.DictReader(result.stdout.splitlines()))
        np.testing.assert_allclose(found, np.sort(model.predict(AHEAD)["sold"]))
    for more in ([], ["--future", "ahead.csv"]):
        result = CliRunner().invoke(app, ["required-supply", "--load", "shops.cgp", *more])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("given", [["price a"], {"a": "price a"}, {"a": "x", "b": ["y", "z"]}])
def test_every_output_has_as_many(given):
    with pytest.raises(ValueError, match="as many columns for each"):
        new_model().fit(WIDE, outputs=["a", "b"], time="hour", own_inputs=given)


def test_other_engines_do_not_know_them():
    with pytest.raises(ValueError, match='needs engine="natural"'):
        MOCGP(engine="svi").fit(WIDE, outputs=["a", "b"], time="hour", own_inputs=BY_OUTPUT)


def test_holidays_are_an_input_of_fits_and_forecasts():
    pytest.importorskip("holidays")
    days = np.datetime64("2024-03-01") + np.arange(69)
    closed = np.isin(days, np.array(["2024-03-28", "2024-03-29", "2024-04-01"], "datetime64[D]"))
    table = {"day": days, "sold": 10.0 + 0.2 * RNG.normal(size=69) - 6.0 * closed}
    model = new_model().fit(table, outputs="sold", time="day", holidays="DK")
    assert model.columns_.names == ("day", "holiday")
    # The first day ahead, 9 May 2024, is Ascension Day.
    ahead = model.forecast(2)["sold"]
    assert ahead[0] < 7.0 < 9.0 < ahead[1]
    for country in ("Atlantis", ["DK"]):
        with pytest.raises(ValueError, match="must be a country"):
            new_model().fit(table, outputs="sold", time="day", holidays=country)
    with pytest.raises(ValueError, match="needs a time column"):
        new_model().fit(WIDE, outputs="a", time="hour", holidays="DK")
    given = table | {"holiday": closed}
    with pytest.raises(ValueError, match="'holiday', which a column has"):
        new_model().fit(given, outputs="sold", time="day", inputs="holiday", holidays="DK")
