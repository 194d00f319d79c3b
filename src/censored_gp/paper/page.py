"""The results page in Markdown: means with standard errors, paired differences, and verdicts.

Words and numbers are made from the rows of runs; only the paper's own figures come from elsewhere.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from censored_gp.paper.runs import Row, good

__all__ = [
    "Scores",
    "bold_best",
    "bulleted",
    "collect",
    "differences",
    "effort",
    "markdown",
    "shown",
    "verdict",
    "versions",
]

Scores = dict[str, dict[tuple[str, ...], float]]
"""A score by row of the table and then by draw."""
PACKAGES = ("censored-gp", "jax", "equinox", "numpy", "scipy", "scikit-learn")
ENOUGH = 2.0
"""Standard errors from which on a mean difference is called clear."""


def collect(rows: Iterable[Row], name: Sequence[str], key: Sequence[str], score: str) -> Scores:
    """Sort a score of the runs that did not fail by table row and draw; of several, the mean.

    >>> rows = [{"model": "CGP", "draw": "0", "r2": 0.5, "error": ""}]
    >>> collect(rows, ["model"], ["draw"], "r2")
    {'CGP': {('0',): 0.5}}
    """
    found: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for row in good(list(rows)):
        own = found.setdefault(" ".join(str(row[n]) for n in name), {})
        own.setdefault(tuple(str(row[k]) for k in key), []).append(row[score])
    return {
        each: {k: float(np.mean(values)) for k, values in own.items()}
        for each, own in found.items()
    }


def shown(values: Iterable[float], digits: int = 3) -> str:
    """Return a mean with its standard error.

    >>> shown([1.0, 2.0, 3.0], 2), shown([1.5], 1), shown([])
    ('2.00 ± 0.58', '1.5', '-')
    """
    known = np.array([value for value in values if np.isfinite(value)])
    if not len(known):
        return "-"
    mean = f"{known.mean():.{digits}f}"
    return mean if len(known) < 2 else f"{mean} ± {_error(known):.{digits}f}"


def differences(scores: Scores, row: str, reference: str) -> list[float]:
    """Return the differences of a row from another, draw by draw.

    >>> differences({"a": {("0",): 3.0}, "b": {("0",): 1.0, ("1",): 2.0}}, "a", "b")
    [2.0]
    """
    ours, theirs = scores.get(row, {}), scores.get(reference, {})
    return [ours[key] - theirs[key] for key in ours if key in theirs]


def verdict(
    scores: Scores, champion: str, *, high_is_good: bool, digits: int = 3, what: str = ""
) -> str:
    """Say in words whether the champion is the best row, and if not, which row is and how clearly.

    >>> scores = {"CGP": {("0",): 3.0}, "HMOCGP": {("0",): 1.0}}
    >>> verdict(scores, "HMOCGP", high_is_good=False, what="Table 1")
    'Table 1: HMOCGP is the best row.'
    """
    known = {row: own for row, own in scores.items() if own}
    if champion not in known or len(known) < 2:
        return f"{what}: too few runs for a verdict."
    sign = 1.0 if high_is_good else -1.0
    ahead = {row: _mean(sign * d for d in differences(known, row, champion)) for row in known}
    best = max(ahead, key=lambda row: ahead[row])
    if best == champion or ahead[best] <= 0:
        return f"{what}: {champion} is the best row."
    gaps = np.array(differences(known, best, champion))
    clear = len(gaps) > 1 and abs(gaps.mean()) > ENOUGH * _error(gaps)
    sure = "a clear difference" if clear else "not more than chance would make"
    return (
        f"{what}: {champion} is **not** the best row. {best} is, by "
        f"{shown(np.abs(gaps) if len(gaps) == 1 else sign * gaps, digits)} ({sure})."
    )


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    >>> print(markdown(["model", "R²"], [["CGP", "0.5"]]))
    | model | R² |
    |---|---|
    | CGP | 0.5 |
    """
    lines = [header, ["---"] * len(header), *rows]
    text = ["| " + " | ".join(cells) + " |" for cells in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


def bulleted(lines: Iterable[str]) -> str:
    """Return lines as a list.

    >>> bulleted(["one", "two"])
    '- one\\n- two'
    """
    return "\n".join(f"- {line}" for line in lines)


def bold_best(
    rows: Sequence[str], scores: Mapping[str, Mapping[Any, float]], high_is_good: bool
) -> Callable[[str, str], str]:
    """Return a function that puts the text of the best row in bold.

    >>> bold_best(["a", "b"], {"a": {0: 1.0}, "b": {0: 2.0}}, True)("b", "2.0")
    '**2.0**'
    """
    sign = 1.0 if high_is_good else -1.0
    means = {row: sign * _mean(scores[row].values()) for row in rows if scores.get(row)}
    best = max(means, key=lambda row: means[row]) if means else None
    return lambda row, text: f"**{text}**" if row == best else text


def effort(rows: Sequence[Row]) -> str:
    """Say how long the runs took, how many failed, and when they were done.

    >>> effort([{"seconds": 2.0, "error": "", "finished": "2026-11-16T15:00:25Z"}])
    '1 run, 0 min of one core in all, 2.0 s each in the middle; none failed. Done on 2026-11-16.'
    """
    if not rows:
        return "No run yet."
    seconds = [row["seconds"] for row in rows]
    failed = len(rows) - len(good(rows))
    return (
        f"{len(rows)} run{'s' * (len(rows) > 1)}, {sum(seconds) / 60:.0f} min of one core in all, "
        f"{np.median(seconds):.1f} s each in the middle; "
        f"{f'{failed} failed' if failed else 'none failed'}. Done {_days(rows)}."
    )


def _days(rows: Sequence[Row]) -> str:
    """Say when runs were done: a table that is made on several days is made by several states.

    >>> _days([{"finished": f"2026-11-1{day}T15:00:25Z"} for day in (6, 4, 5)])
    'from 2026-11-14 to 2026-11-16'
    """
    days = sorted({row["finished"].partition("T")[0] for row in rows})
    return f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"


def versions() -> str:
    """Say what computed all this.

    >>> versions().startswith("Python")
    True
    """
    return ", ".join(
        [f"Python {platform.python_version()}"] + [f"{name} {_version(name)}" for name in PACKAGES]
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else -np.inf


def _error(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
