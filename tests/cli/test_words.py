"""Messages of the library in words of the command line."""

import warnings

import numpy as np
import pytest

from censored_gp.cli.problems import BadInput, located
from censored_gp.cli.words import in_options, of_options
from censored_gp.data.validation import warn_of_shared_times


def test_options_are_named_instead_of_arguments():
    assert of_options("raise max_iterations.") == "raise --iterations."
    assert of_options("Output 'a': found 3.") == "Output 'a': found 3."


def test_a_long_table_taken_for_a_wide_one_is_told_of_the_option():
    with pytest.warns(UserWarning, match="by=") as caught:
        warn_of_shared_times(np.zeros((20, 1)), "hour")
    assert of_options(str(caught[0].message)).endswith(
        "name the column that says which one: --by COLUMN."
    )


def test_warnings_inside_of_a_place_are_told_in_options(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with located("t.csv", lambda row: f"line {row + 2}"), in_options():
            warnings.warn("row 1: raise max_iterations", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: t.csv: line 3: raise --iterations\n"


def test_errors_are_told_in_options_and_those_of_commands_as_they_are():
    with pytest.raises(ValueError, match="--seed: found"), in_options():
        raise ValueError("random_state: found -1")
    with pytest.raises(BadInput, match="random_state"), in_options():
        raise BadInput("column 'random_state' is not there")
