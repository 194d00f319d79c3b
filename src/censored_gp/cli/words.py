"""What the library says of its arguments, said of the options of a command."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from censored_gp.cli.problems import BadInput

__all__ = ["in_options", "of_options"]

OPTIONS = {
    "max_iterations": "--iterations",
    "heteroscedastic=True": "--model hmocgp",
    "compare(...)": "the command compare",
    "use_censoring=False": "a model that ignores censoring (ncgp, moncgp)",
    "random_state": "--seed",
    "fit(table, outputs=[...], time=...)": "fit FILE --outputs ... --time ...",
    "model.save(path)": "--save",
    "role: found": "--role: found",
    "by='...'": "--by COLUMN",
}
"""Options by what they are called in Python."""


def of_options(text: str) -> str:
    """Return a message of the library in words of the command line.

    >>> of_options("The fit ran out of iterations; raise max_iterations.")
    'The fit ran out of iterations; raise --iterations.'
    """
    for python, option in OPTIONS.items():
        text = text.replace(python, option)
    return text


@contextlib.contextmanager
def in_options() -> Iterator[None]:
    """Say errors and warnings of the library in words of the command line.

    >>> with in_options():
    ...     raise ValueError("max_iterations: found 0.")
    Traceback (most recent call last):
    ...
    ValueError: --iterations: found 0.
    """
    before = warnings.showwarning

    def show(message: Warning | str, *more: Any, **named: Any) -> None:
        before(of_options(str(message)), *more, **named)  # type: ignore[arg-type]

    warnings.showwarning = show
    try:
        yield
    except BadInput:
        # It was meant for the command line from the beginning.
        raise
    except ValueError as error:
        said = of_options(str(error))
        if said == str(error):
            raise
        raise ValueError(said) from error
    finally:
        warnings.showwarning = before
