"""The results page in Markdown: means with standard errors, paired differences, and verdicts.

Words and numbers are made from the rows of runs; only the paper's own figures come from elsewhere.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy.stats import t

from censored_gp.paper.runs import Row, good

__all__ = [
    "Scores",
    "bold_best",
    "bulleted",
    "collect",
    "differences",
    "effort",
    "is_clear",
    "markdown",
    "shown",
    "standing",
    "verdict",
    "versions",
]

Scores = dict[str, dict[tuple[str, ...], float]]
"""A score by row of the table and then by draw."""
PACKAGES = ("censored-gp", "jax", "equinox", "numpy", "scipy", "scikit-learn")


def collect(rows: Iterable[Row], name: Sequence[str], key: Sequence[str], score: str) -> Scores:
    """Sort a score of the runs that did not fail by table row and draw; of several, the mean.

    A score that a run cannot have is NaN, and does not count where another one has it.

    >>> rows = [{"model": "CGP", "draw": "0", "r2": 0.5, "error": ""}]
    >>> collect(rows, ["model"], ["draw"], "r2")
    {'CGP': {('0',): 0.5}}
    """
    found: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for row in good(list(rows)):
        own = found.setdefault(" ".join(str(row[n]) for n in name), {})
        own.setdefault(tuple(str(row[k]) for k in key), []).append(row[score])
    return {
        each: {k: _mean_of_known(values) for k, values in own.items()}
        for each, own in found.items()
    }


def _mean_of_known(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


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


def standing(scores: Scores, champion: str, *, high_is_good: bool) -> tuple[str, list[float]]:
    """Return the best other row, and by how much the champion is ahead of it, draw by draw.

    >>> scores = {"CGP": {("0",): 3.0}, "HMOCGP": {("0",): 1.0}}
    >>> standing(scores, "HMOCGP", high_is_good=False)
    ('CGP', [2.0])
    """
    sign = 1.0 if high_is_good else -1.0
    rivals = {
        row: [sign * d for d in differences(scores, champion, row)]
        for row, own in scores.items()
        if own and row != champion
    }
    known = {row: gaps for row, gaps in rivals.items() if gaps}
    if not known:
        return "", []
    best = min(known, key=lambda row: _mean(known[row]))
    return best, known[best]


def is_clear(gaps: Sequence[float]) -> bool:
    """Say whether a mean difference is more than chance would make, by Student's t at 95 %.

    >>> is_clear([1.0, 1.1, 0.9]), is_clear([1.0, -0.5, 0.9]), is_clear([1.0])
    (True, False, False)
    """
    if len(gaps) < 2:
        return False
    return abs(float(np.mean(gaps))) > float(t.ppf(0.975, len(gaps) - 1)) * _error(gaps)


def verdict(
    scores: Scores, champion: str, *, high_is_good: bool, digits: int = 3, what: str = ""
) -> str:
    """Say in words whether the champion is the best row, and how clearly it or another one is.

    >>> scores = {"CGP": {("0",): 3.0}, "HMOCGP": {("0",): 1.0}}
    >>> verdict(scores, "HMOCGP", high_is_good=False, what="Table 1")
    'Table 1: HMOCGP is the best row, ahead of CGP by 2.000 (which chance may have made).'
    """
    rival, ahead = standing(scores, champion, high_is_good=high_is_good)
    if not rival:
        return f"{what}: too few runs for a verdict."
    sure = "a clear difference" if is_clear(ahead) else "which chance may have made"
    if np.mean(ahead) >= 0:
        by = shown(ahead, digits)
        return f"{what}: {champion} is the best row, ahead of {rival} by {by} ({sure})."
    by = shown([-gap for gap in ahead], digits)
    return f"{what}: {champion} is **not** the best row. {rival} is, by {by} ({sure})."


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
    known = {row: mean for row, mean in means.items() if np.isfinite(mean)}
    best = max(known, key=lambda row: known[row]) if known else None
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
        f"{f'{failed} failed' if failed else 'none failed'}. Done {_days(rows)}{_at_a_go(rows)}."
    )


LONGEST_REST = 15 * 60
"""Seconds without the end of a run after which a study was not done at a go."""


def _at_a_go(rows: Sequence[Row]) -> str:
    """Say how long it took from the first run to the last, if nothing came between.

    >>> done = [{"seconds": 20.0, "finished": f"2026-11-16T15:0{m}:25Z"} for m in range(5)]
    >>> _at_a_go(done)
    ', in 4 min from first to last'
    """
    minutes = minutes_at_a_go(rows)
    return "" if np.isnan(minutes) else f", in {minutes:.0f} min from first to last"


def minutes_at_a_go(rows: Sequence[Row]) -> float:
    """Return how long it took from the start of the first run, NaN if something came between.

    >>> done = [{"seconds": 30.0, "finished": f"2026-11-16T15:0{m}:25Z"} for m in range(5)]
    >>> minutes_at_a_go(done)
    4.5
    """
    ends = np.array([np.datetime64(row["finished"].rstrip("Z")).astype(int) for row in rows])
    if len(ends) < 2 or np.diff(np.sort(ends)).max() > LONGEST_REST:
        return float("nan")
    starts = ends - np.array([row["seconds"] for row in rows])
    return float(ends.max() - starts.min()) / 60


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
