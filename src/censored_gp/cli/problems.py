"""How a command ends: exit codes, and messages on the standard error stream instead of tracebacks.

0: done. 1: it could not be done (an engine failed, the disk is full, a package is missing).
2: the input or the command line is wrong. 130: interrupted by Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import typer

__all__ = ["BadInput", "Interrupted", "explained", "first_failure", "located", "say"]

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
DEBUG_VARIABLE = "CENSORED_GP_DEBUG"
"""Environment variable; if it is set, errors that nobody expected show where they came from."""

ROW = re.compile(r"\brow (\d+)")
"""How the package names a row of a table."""


class BadInput(ValueError):
    """Something is wrong with a file or an option, and the message says what.

    >>> raise BadInput("t.csv, line 3, column 'a': found 'x'.")
    Traceback (most recent call last):
    ...
    censored_gp.cli.problems.BadInput: t.csv, line 3, column 'a': found 'x'.
    """


class Interrupted(Exception):
    """A fit that was stopped by Ctrl-C, of which nothing is to be kept."""


def say(message: str) -> None:
    """Say something to the person at the terminal; results go elsewhere."""
    typer.echo(message, err=True)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """End a command with the right exit code and a message, whatever happens inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except (KeyboardInterrupt, Interrupted):
            raise _end(INTERRUPTED, "Interrupted; nothing was written.") from None
        except (ValueError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
            _debug()
            raise _end(BAD_INPUT, f"Error: {_words(error)}") from None
        except MemoryError:
            raise _end(FAILED, "Error: out of memory. Use fewer rows or outputs.") from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            _debug()
            what = "" if isinstance(error, ImportError | OSError) else f"{type(error).__name__}: "
            raise _end(FAILED, f"Error: {what}{_words(error)}") from None


@contextlib.contextmanager
def located(
    name: str, line_of: Callable[[int], str], only: tuple[str, ...] = ("",)
) -> Iterator[None]:
    """Add the place in a file to errors and warnings that name the row of a table.

    Errors that begin with other words than `only` has are not about the file.

    >>> with located("t.csv", lambda row: f"line {row + 2}"):
    ...     raise ValueError("Output 'a', row 1: found -1.")
    Traceback (most recent call last):
    ...
    censored_gp.cli.problems.BadInput: t.csv, line 3, column 'a': Output 'a': found -1.
    """
    before = warnings.showwarning

    def by_line(message: str) -> str:
        return ROW.sub(lambda found: line_of(int(found[1])), message)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(f"Warning: {name}: {by_line(str(message))}")

    warnings.showwarning = show
    try:
        yield
    except BadInput:
        raise
    except ValueError as error:
        # Imported when asked for: the help must not wait for it.
        from censored_gp.data.errors import DataError

        if not str(error).startswith(only):
            raise
        if isinstance(error, DataError) and error.row is not None:
            raise BadInput(str(error.at(file=name, line=line_of(error.row)))) from error
        raise BadInput(f"{name}: {by_line(str(error))}") from error
    finally:
        warnings.showwarning = before


def first_failure(array: Any, convert: Callable[[Any], Any]) -> int:
    """Return the first row that cannot be converted, by halving.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> first_failure(pa.array(["1", "2", "x", "4"]), lambda some: pc.cast(some, pa.float64()))
    2
    """
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        if _fails(array.slice(low, middle - low), convert):
            high = middle
        else:
            low = middle
    return low


def _fails(array: Any, convert: Callable[[Any], Any]) -> bool:
    import pyarrow as pa

    try:
        convert(array)
    except pa.ArrowInvalid:
        return True
    return False


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"Warning: {message}")


def _end(code: int, message: str) -> typer.Exit:
    say(message)
    return typer.Exit(code)


def _words(error: BaseException) -> str:
    """Return an error's own words; those of the system, with the file they are about."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _debug() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        say(traceback.format_exc())
