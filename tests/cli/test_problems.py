"""How commands end when something goes wrong."""

import warnings

import pytest
import typer

from censored_gp.cli import problems
from censored_gp.cli.problems import BadInput, Interrupted, explained, located


def ending(error):
    """The exit code that an error leads to."""
    with pytest.raises(typer.Exit) as end, explained():
        raise error
    return end.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (BadInput("t.csv, line 3"), 2, "Error: t.csv, line 3\n"),
        (ValueError("Output 'a'"), 2, "Error: Output 'a'\n"),
        (FileNotFoundError(2, "No such file", "t.csv"), 2, "Error: t.csv: No such file\n"),
        (PermissionError(13, "Permission denied", "t.csv"), 2, "Error: t.csv: Permission denied\n"),
        (OSError(28, "No space left on device"), 1, "Error: No space left on device\n"),
        (ImportError("needs pyarrow"), 1, "Error: needs pyarrow\n"),
        (MemoryError(), 1, "Error: out of memory. Use fewer rows or outputs.\n"),
        (ZeroDivisionError("by zero"), 1, "Error: ZeroDivisionError: by zero\n"),
        (KeyboardInterrupt(), 130, "Interrupted; nothing was written.\n"),
        (Interrupted(), 130, "Interrupted; nothing was written.\n"),
    ],
)
def test_every_error_has_its_exit_code_and_words(error, code, message, capsys, monkeypatch):
    monkeypatch.delenv(problems.DEBUG_VARIABLE, raising=False)
    assert ending(error) == code
    assert capsys.readouterr().err == message


def test_the_place_of_an_error_is_shown_if_asked_for(capsys, monkeypatch):
    monkeypatch.setenv(problems.DEBUG_VARIABLE, "1")
    ending(ValueError("odd"))
    assert "Traceback" in capsys.readouterr().err


def test_warnings_are_said_in_words(capsys):
    with explained():
        warnings.warn("The fit ran out of iterations.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: The fit ran out of iterations.\n"


def test_a_warning_about_a_row_is_told_by_its_line(capsys):
    with explained(), located("t.csv", lambda row: f"line {row + 2}"):
        warnings.warn("Flag 'f' is missing, first in row 5.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: t.csv: Flag 'f' is missing, first in line 7.\n"


def test_a_row_of_a_table_is_told_by_its_line():
    with pytest.raises(BadInput) as found, located("t.csv", lambda row: f"line {row + 2}"):
        raise ValueError(
            "Output 'a', row 7 (and 2 more such cells): found -1. Accepted are counts."
        )
    assert str(found.value) == (
        "t.csv, line 9, column 'a': Output 'a' (and 2 more such cells): found -1. Accepted are "
        "counts."
    )
    with (
        pytest.raises(BadInput, match=r"^t\.csv: Output 'a': found no observed row$"),
        located("t.csv", str),
    ):
        raise ValueError("Output 'a': found no observed row")


@pytest.mark.parametrize(
    "name", ["d'été", 'so-called "a"', "a, row 7", 'it\'s "both"', "back\\slash"]
)
def test_a_column_of_any_name_is_told(name):
    with pytest.raises(BadInput) as found, located("t.csv", lambda row: f"line {row + 2}"):
        raise ValueError(f"Output {name!r}, row 1: found -1.")
    assert str(found.value) == f"t.csv, line 3, column {name!r}: Output {name!r}: found -1."


def test_every_row_that_an_error_names_is_told_by_its_line():
    with pytest.raises(BadInput) as found, located("t.csv", lambda row: f"line {row + 2}"):
        raise ValueError("Input 'rain', row 3: found 2, but 1 in row 0 of the same time.")
    assert str(found.value).endswith("'rain': found 2, but 1 in line 2 of the same time.")


def test_errors_that_are_not_about_the_file_stay_as_they_are():
    with pytest.raises(ValueError, match=r"^until: found") as found, located("t", str, ("Input",)):
        raise ValueError("until: found 'foo'.")
    assert not isinstance(found.value, BadInput)
