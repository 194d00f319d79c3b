"""From options to the arguments of `CensoredGP.fit`."""

from types import SimpleNamespace

import pytest
import typer

from censored_gp.cli.fitting import _likelihood, fit_arguments, unfitted, where_pairs
from censored_gp.cli.options import FIT, Given
from censored_gp.data.layout import columns_used

NAMES = ["t", "a", "b", "a_full", "b_full", "docks", "x,y", "16"]
SOURCE = SimpleNamespace(name="t.csv", header=NAMES)


def options(**given):
    return Given(**{name: info.default for name, (_, info) in FIT.items()} | given)


def arguments(**given):
    given = {k: [v] if k not in ("time", "by", "side") else v for k, v in given.items()}
    return fit_arguments(options(**({"outputs": ["a,b"], "time": "t"} | given)), SOURCE)


def test_names_are_separated_by_commas_unless_a_column_has_one():
    found = arguments(inputs="x,y")
    assert (found["outputs"], found["inputs"]) == (["a", "b"], ["x,y"])


def test_flags_are_in_the_order_of_outputs_or_by_output():
    assert arguments(censored="a_full,b_full")["censored"] == {"a": "a_full", "b": "b_full"}
    assert arguments(censored="b=b_full")["censored"] == {"b": "b_full"}
    assert arguments(outputs="a", censored="a_full")["censored"] == "a_full"


@pytest.mark.parametrize("side", ["right", "left"])
def test_every_side_is_passed_on(side):
    assert arguments(censored="a_full,b_full", side=side)["side"] == side
    assert arguments()["side"] == "right"


def test_a_capacity_is_a_number_or_a_column():
    assert arguments(capacity="20")["capacity"] == 20.0
    assert arguments(capacity="16")["capacity"] == "16"
    assert arguments(capacity="docks")["capacity"] == "docks"
    assert arguments(capacity="12.5,docks")["capacity"] == {"a": 12.5, "b": "docks"}
    assert arguments(capacity="b=9")["capacity"] == {"b": 9.0}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"outputs": ""}, "--outputs"),
        ({"by": "b"}, "--outputs"),
        ({"only": "a"}, "--only"),
        ({"time": None}, "--time / --inputs"),
        ({"capacity": "1,2,3"}, "--capacity"),
        ({"capacity": "a=1,2"}, "--capacity"),
    ],
)
def test_what_is_not_understood_is_refused(options, option):
    with pytest.raises(typer.BadParameter) as found:
        arguments(**options)
    assert found.value.param_hint == option


def test_only_the_columns_that_are_named_are_read():
    found = columns_used(arguments(censored="a=a_full", capacity="docks", inputs="x,y"), NAMES)
    assert set(found) == {"t", "a", "b", "a_full", "docks", "x,y"}
    bounds = arguments(outputs="c", lower="a", upper="b")
    assert set(columns_used(bounds, NAMES)) == {"t", "a", "b"}


def test_likelihoods_are_one_for_all_or_by_output():
    assert _likelihood("poisson") == "poisson"
    assert _likelihood("a=poisson, b=gamma") == {"a": "poisson", "b": "gamma"}
    for wrong in ("normal", "a=normal", "poisson,gamma"):
        with pytest.raises(typer.BadParameter):
            _likelihood(wrong)


def test_options_describe_the_model():
    model = unfitted(options(model="cgp", likelihood="a=poisson", seed=3, iterations=5))
    assert (model.coupled, model.heteroscedastic, model.use_censoring) == (False, False, True)
    assert (model.likelihood, model.random_state, model.max_iterations) == ({"a": "poisson"}, 3, 5)


def test_rows_are_chosen_by_pairs():
    assert where_pairs(["store = 235", "a=b=c"]) == [("store", "235"), ("a", "b=c")]
    for wrong in ("store", "=3"):
        with pytest.raises(typer.BadParameter):
            where_pairs([wrong])
