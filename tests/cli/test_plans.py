"""Which column is what, in the words of the command line."""

from types import SimpleNamespace

import pytest

from censored_gp.cli.fitting import _likelihood
from censored_gp.cli.options import SIDES, Training
from censored_gp.cli.plans import Plan, plan_of_layout, plan_of_options
from censored_gp.cli.problems import BadInput
from censored_gp.data.layout import Layout
from censored_gp.data.observations import ACCEPTED

NAMES = ["t", "a", "b", "a_full", "b_full", "docks", "x,y", "16"]


def plan(**options):
    given = {k: [v] if k not in ("time", "by", "side") else v for k, v in options.items()}
    return plan_of_options(Training(**({"outputs": ["a,b"], "time": "t"} | given)), NAMES)


def test_names_are_separated_by_commas_unless_a_column_is_called_so():
    found = plan(inputs="x,y")
    assert found.outputs == ("a", "b")
    assert found.inputs == ("x,y",)
    assert found.arguments()["outputs"] == ["a", "b"]


def test_flags_are_in_the_order_of_outputs_or_by_output():
    assert plan(censored="a_full,b_full").censored == {"a": "a_full", "b": "b_full"}
    assert plan(censored="b=b_full").censored == {"b": "b_full"}
    assert plan(outputs="a", censored="a_full").censored == "a_full"


def test_all_that_a_flag_can_mean_can_be_said():
    assert set(SIDES) == set(ACCEPTED)
    assert [plan(censored="a_full,b_full", side=side).side for side in SIDES] == list(SIDES)


def test_a_capacity_is_a_number_or_a_column():
    assert plan(capacity="20").capacity == 20.0
    assert plan(capacity="16").capacity == {"a": "16", "b": "16"}
    assert plan(capacity="docks").capacity == {"a": "docks", "b": "docks"}
    assert plan(capacity="12.5,docks").capacity == {"a": 12.5, "b": "docks"}
    assert plan(capacity="b=9").capacity == {"b": 9.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": ""}, "--outputs is missing"),
        ({"only": "a"}, "--only is for tables .* give --by as well"),
        ({"time": None}, "--time and --inputs are missing"),
        ({"censored": "c_full"}, "--censored: found 'c_full', which is not a column. .*'docks'"),
        ({"capacity": "many"}, "--capacity: found 'many', which is not a column or a number"),
        ({"capacity": "1,2,3"}, r"--capacity: found 3 for 2 output\(s\)"),
        ({"capacity": "a=1,2"}, "--capacity: found a=1,2. Accepted is a=x for all or none"),
    ],
)
def test_what_is_not_understood_is_told(options, message):
    with pytest.raises(BadInput, match=message):
        plan(**options)


def test_only_the_columns_that_are_needed_are_read():
    roles = plan(censored="a=a_full", capacity="docks", inputs="x,y").roles()
    assert set(roles.columns) == {"t", "a", "b", "a_full", "docks", "x,y"}
    assert roles.flags == ("a_full",)
    assert plan(lower="a_full,b_full").roles().optional == {"a", "b"}
    assert plan(outputs="a", by="b").roles_of_new().optional == {"b"}


def test_a_model_file_says_the_same_as_the_options_did():
    layout = Layout(("a", "b"), "t", ("x,y",), censored={"a": "a_full"}, side="left")
    found = plan_of_layout(SimpleNamespace(layout_=layout), "m.cgp")
    assert found == Plan(("a", "b"), "t", ("x,y",), censored={"a": "a_full"}, side="left")
    long = Layout(("one", "two"), "t", (), "b", "a")
    found = plan_of_layout(SimpleNamespace(layout_=long), "m.cgp")
    assert (found.outputs, found.only) == (("a",), ("one", "two"))
    with pytest.raises(BadInput, match=r"m\.cgp was fitted to arrays"):
        plan_of_layout(SimpleNamespace(layout_=None), "m.cgp")


def test_likelihoods_are_one_for_all_or_by_output():
    assert _likelihood("poisson") == "poisson"
    assert _likelihood("a=poisson, b=gamma") == {"a": "poisson", "b": "gamma"}
    for wrong in ("normal", "a=normal", "poisson,gamma"):
        with pytest.raises(BadInput, match="--likelihood: found"):
            _likelihood(wrong)
