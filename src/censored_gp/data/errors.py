"""`DataError`: what is wrong with data, as fields, worded in one place.

Whoever finds a problem says what was found and what is accepted. Whoever knows more about the
place (the row of a long table, the file and its line) moves the error there with `at`.
"""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool

# Letters of a name that are shown in a message at most.
LONGEST_NAME = 80

# What is longer is no word, and no path of a file.
LONGEST_WORD = 1000

# Names that are listed in a message at most.
MOST_NAMES = 20


@dataclass(eq=False, repr=False)
class DataError(ValueError):
    """Bad data: where it stands, what was found, what is accepted.

    Parameters
    ----------
    problem : str
        What was found and what is accepted, as whole sentences.
    noun, column, row : str; str or None; int or None
        What the column is ("Output", "Input", "Flag"), its name, and the row, counted from 0.
    more : int
        How many other cells have the same problem.
    hint : str
        What to do about it.
    argument : str, optional
        The argument that is wrong, if it is one; the problem then begins with a verb.
    file, line : str, optional
        The file, and where in it the row stands ("line 4"), in place of the row.

    Examples
    --------
    >>> print(DataError("got -1.", noun="Output", column="bikes", row=3, more=2))
    Output 'bikes', row 3 (and 2 more such cells): got -1.
    >>> print(DataError("must be 1 or more, got 0.", argument="periods"))
    `periods` must be 1 or more, got 0.
    """

    problem: str
    noun: str = ""
    column: str | None = None
    row: int | None = None
    _: KW_ONLY
    more: int = 0
    hint: str = ""
    argument: str | None = None
    file: str | None = None
    line: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.problem)  # what pickle makes a copy from

    def at(self, **changes: Any) -> DataError:
        """Return the same problem at another place: other values of the fields.

        >>> print(DataError("got 'x'.", column="a", row=1).at(file="t.csv", line="line 3"))
        t.csv, line 3, column 'a': got 'x'.
        """
        return replace(self, **changes).with_traceback(self.__traceback__)

    def __str__(self) -> str:
        column = "" if self.column is None else quoted(self.column)
        if self.file is not None:
            what = f"column {column}" if column else self.noun.lower()
            parts = [self.file, self.line or "", what]
        else:
            row = "" if self.row is None else f"row {self.row}"
            parts = [f"{self.noun} {column}".strip(), row]
        place = ", ".join(part for part in parts if part)
        if self.more:
            place += f" (and {self.more} more such cell{'s' if self.more > 1 else ''})"
        said = self.problem if self.argument is None else f"`{self.argument}` {self.problem}"
        said = f"{place}: {said}" if place else said
        return shortened(f"{said} {self.hint}" if self.hint else said)


def refuse(
    bad: Bool[np.ndarray, "N *D"],
    names: Sequence[str] | str,
    noun: str,
    problem: str,
    *values: Any,
    hint: str = "",
) -> None:
    """Raise a `DataError` at the first cell that is bad, if any is.

    `bad` has a row and column for each cell, or is flat for a single column. The fields of
    `problem`, such as `{:g}`, are filled with what each of `values` has at that cell. Names that
    the user gave may contain braces: they go into `values` or the hint.
    """
    if not np.any(bad):
        return
    row, *d = np.argwhere(bad)[0].tolist()
    filled = [np.broadcast_to(v, bad.shape)[row, d[0]] if d else v[row] for v in values]
    column = names if isinstance(names, str) else str(names[d[0]])
    more = int(np.sum(bad)) - 1
    raise DataError(problem.format(*filled), noun, column, row, more=more, hint=hint)


def reads_as(reader: Callable[[Any], Any], value: Any) -> bool:
    """Return whether a function such as `float` accepts a value."""
    try:
        reader(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def shortened(text: str) -> str:
    """Return a text with endless words cut, such as a name of 100,000 letters.

    >>> len(shortened("got " + 100_000 * "x"))
    84
    """
    return re.sub(rf"(\S{{{LONGEST_NAME - 3}}})\S{{{LONGEST_WORD},}}", r"\1...", text)


def quoted(name: Any) -> str:
    """Return a name in quotes, cut if it is very long."""
    text = str(name)
    return repr(text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "...")


def listed(names: Iterable[Any]) -> str:
    """Return names in quotes, separated by commas."""
    each = list(names)
    rest = f" and {len(each) - MOST_NAMES} more" if len(each) > MOST_NAMES else ""
    return (", ".join(map(quoted, each[:MOST_NAMES])) or "none") + rest


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    """Return a question after the nearest of the names, or nothing if none is near."""
    lower = {str(n).lower(): n for n in names}
    near = difflib.get_close_matches(str(name)[:LONGEST_NAME].lower(), lower, 1)
    return f"Did you mean {quoted(lower[near[0]])}?" if near else ""


def not_among(argument: str, given: Any, accepted: Iterable[Any], more: str = "") -> ValueError:
    """Return the error about an argument that is none of the accepted names, nor `more`."""
    names = list(accepted)
    said = f"`{argument}` must be among {listed(names)}{more}, got {given!r}."
    return ValueError(f"{said} {did_you_mean(given, names)}".strip())


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's that led here: the first that is not of this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("censored_gp."):
        frame, level = frame.f_back, level + 1
    warnings.warn(shortened(message), kind, stacklevel=max(level, 2))
