"""What a command says on the standard error stream, and how it ends.

Exit codes: 0, done. 1, it could not be done (the computation failed, the disk is full, a package is
missing). 2, the input or the command line is wrong. 130, interrupted by Ctrl-C.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import typer

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
# If this environment variable is set, errors come with a traceback.
DEBUG_VARIABLE = "CENSORED_GP_DEBUG"

# The option or command for each Python name that a message of the library may mention.
OPTIONS = {
    "max_iterations": "--iterations",
    "random_state": "--seed",
    "heteroscedastic=True": "--model hmocgp or hcgp",
    "use_censoring=False": "--model ncgp or moncgp",
    "model.save(": "--save",
    "by='...'": "--by",
    "`by`": "--group",
}


def say(message: str) -> None:
    """Write a message to the standard error stream; results go to the standard output."""
    from censored_gp.data.errors import shortened

    typer.echo(shortened(message), err=True)


def bad_option(option: str, problem: str) -> typer.BadParameter:
    """Return the error about an option, to be raised."""
    return typer.BadParameter(problem, param_hint=option)


def option_of(name: str) -> str:
    """Return the option of an argument.

    >>> option_of("time_format")
    '--time-format'
    """
    return f"--{name.replace('_', '-')}"


def explain(message: object) -> str:
    """Return a message of the library, with the options for the Python names in it.

    >>> explain("The fit stopped early; raise max_iterations.")
    'The fit stopped early; raise max_iterations. (Here max_iterations is --iterations.)'
    """
    text = str(message)
    named = [f"{name.strip('(')} is {option}" for name, option in OPTIONS.items() if name in text]
    return f"{text} (Here {', '.join(named)}.)" if named else text


def import_whole(module: str) -> None:
    """Import a module; Ctrl-C is heeded afterwards, as JAX crashes if it is interrupted there."""
    pressed: list[bool] = []
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        importlib.import_module(module)
    finally:
        if heard:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """End a command with a message and an exit code instead of a traceback."""
    # Imported here: numpy takes longer than help may.
    from censored_gp.data.errors import DataError

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            kept = str(error) or "no file is half written."
            raise _end(INTERRUPTED, f"Interrupted; {kept}") from None
        except MemoryError:
            raise _end(FAILED, "Error: out of memory. Use fewer rows or outputs.") from None
        except DataError as error:
            if error.argument is not None:
                raise bad_option(option_of(error.argument), error.problem) from error
            raise _end(BAD_INPUT, f"Error: {error}") from None
        except Exception as error:
            if os.environ.get(DEBUG_VARIABLE):
                say(traceback.format_exc())
            raise _end(*_ending(error)) from None


def _ending(error: Exception) -> tuple[int, str]:
    """Return the exit code of an error, and its message."""
    bad = (ValueError, FileNotFoundError, IsADirectoryError, PermissionError)
    code = BAD_INPUT if isinstance(error, bad) else FAILED
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return code, f"Error: {place}{error.strerror}"
    if isinstance(error, (*bad, ImportError, OSError)) and str(error):
        return code, f"Error: {explain(error)}"
    return code, f"Error: {type(error).__name__}: {error}"


def _end(code: int, message: str) -> typer.Exit:
    say(message)
    return typer.Exit(code)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"Warning: {explain(message)}")
