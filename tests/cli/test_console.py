"""How commands end, and what they say."""

import warnings

import pytest
import typer

from censored_gp.cli import console
from censored_gp.cli.console import explain, explained


def ending(error):
    """The exit code that an error leads to."""
    with pytest.raises(typer.Exit) as end, explained():
        raise error
    return end.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("Output 'a'"), 2, "Output 'a'"),
        (FileNotFoundError(2, "No such file", "t.csv"), 2, "t.csv: No such file"),
        (PermissionError(13, "Permission denied", "t.csv"), 2, "t.csv: Permission denied"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (ImportError("needs jinja2"), 1, "needs jinja2"),
        (MemoryError(), 1, "out of memory"),
        (ZeroDivisionError("by zero"), 1, "ZeroDivisionError: by zero"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
)
def test_every_error_has_its_exit_code_and_a_message(error, code, words, capsys, monkeypatch):
    monkeypatch.delenv(console.DEBUG_VARIABLE, raising=False)
    assert ending(error) == code
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_a_traceback_is_shown_if_asked_for(capsys, monkeypatch):
    monkeypatch.setenv(console.DEBUG_VARIABLE, "1")
    ending(ValueError("odd"))
    assert "Traceback" in capsys.readouterr().err


def test_warnings_are_messages(capsys):
    with explained():
        warnings.warn("The fit stopped early.", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: The fit stopped early.\n"


def test_messages_keep_their_words_and_name_the_option():
    text = "The fit ran out of iterations; raise max_iterations."
    assert explain(text).startswith(text)
    assert "--iterations" in explain(text)
    assert explain("The fit converged.") == "The fit converged."


def test_an_option_that_is_wrong_is_named(capsys):
    with pytest.raises(typer.BadParameter) as found, explained():
        raise console.bad_option("--side", "it is wrong")
    assert found.value.param_hint == "--side"
