"""Table 2: both outputs are censored, more or less at the same places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censored_gp.paper import page, synthetic
from censored_gp.paper.models import MODELS
from censored_gp.paper.runs import Row, Settings

__all__ = ["DRAWS", "PAPER", "SCENARIOS", "STUDY", "is_run_of", "runs", "section"]

DRAWS = 50
STUDY = synthetic.STUDY
CHAMPION = "HMOCGP"
SCENARIOS = {
    "0 %": ("block", "elsewhere"),
    "50 %": ("broken", "half"),
    "100 %-M": ("broken", "broken"),
    "100 %-H": ("block", "block"),
}
"""How the first and the second output are censored."""
PAPER = {
    "NCGP": (589.82, 256.78, 256.78, 589.82),
    "MONCGP": (364.13, 129.02, 140.97, 398.54),
    "CGP": (88.89, 32.36, 32.36, 88.89),
    "HCGP": (83.29, 27.92, 27.92, 83.29),
    "MOCGP": (86.23, 25.59, 25.35, 109.05),
    "HMOCGP": (78.53, 19.33, 23.63, 103.65),
}
PROTOCOL = """\
The worlds of table 1, with both outputs censored. Output 1 is censored on [1.3, 5.5] (0 %,
100 %-H) or on four pieces of unit length (50 %, 100 %-M: {broken}); output 2 on {elsewhere} (0 %),
on the same four pieces half a unit later (50 %), on the same pieces (100 %-M) or on [1.3, 5.5]
(100 %-H). NLPD is that of all {n} true values of output 1. A model of one output does not see the
other, so one and the same run serves all columns in which output 1 is censored alike."""

WHY = f"""\
The paper finds {CHAMPION} behind HCGP at 100 %-H, and the best row elsewhere. There both
outputs hide the same stretch, at which nothing is known of either: a second output has nothing to
add to the first, and coefficients by which it could have are learned all the same."""


def runs(draws: int = DRAWS, engine: str = "natural") -> list[Settings]:
    """Return the runs of the table; those that serve two columns are there once.

    >>> len(runs(50))
    900
    """
    every = synthetic.runs(draws, SCENARIOS.values(), engine)
    return list({STUDY.key(run): run for run in every}.values())


def section(rows: Sequence[Row], engine: str = "natural") -> str:
    """Return the table with its protocol, made from the rows of runs.

    >>> "too few runs for a verdict" in section([])
    True
    """
    own = [row for row in rows if row["engine"] == engine]
    columns = {name: _scores(own, *pair) for name, pair in SCENARIOS.items()}
    judged = (
        page.verdict(scores, CHAMPION, high_is_good=False, digits=1, what=f"Overlap {name}")
        for name, scores in columns.items()
    )
    return "\n\n".join(
        [
            f"## Table 2: overlap of censoring, engine {engine}",
            _protocol() if engine == "natural" else "The protocol is that of the table above.",
            _table(columns),
            f"NLPD less that of {CHAMPION}, paired:",
            _paired(columns),
            "Medians over draws, as a fit that goes astray makes a mean:",
            _medians(columns),
            page.bulleted(judged),
            WHY,
            page.effort([row for row in own if _belongs(row)]),
        ]
    )


def _protocol() -> str:
    spans = {name: ", ".join(f"[{a}, {b}]" for a, b in synthetic.WINDOWS[name]) for name in
             ("broken", "elsewhere")}  # fmt: skip
    return PROTOCOL.format(n=synthetic.N, **spans)


def is_run_of(row: Row) -> bool:
    """Say whether a run belongs to this table and to no other.

    >>> is_run_of({"own": "block", "other": "none"})
    False
    """
    return (row["own"], row["other"]) in SCENARIOS.values()


def _belongs(row: Row) -> bool:
    pair = (row["own"], row["other"])
    return any(pair in {(own, other), (own, "-")} for own, other in SCENARIOS.values())


def _scores(rows: Sequence[Row], own: str, other: str) -> page.Scores:
    """Return NLPD by model and draw in one column of the table."""
    seen = [row for row in rows if row["own"] == own and row["other"] in ("-", other)]
    return page.collect(seen, ["model"], ["draw"], "nlpd")


def _table(columns: dict[str, page.Scores]) -> str:
    best = {name: page.bold_best(MODELS, scores, False) for name, scores in columns.items()}
    header = ["model"] + [cell for name in columns for cell in (f"paper's {name}", name)]
    lines = [
        [model]
        + [
            cell
            for (name, scores), paper in zip(columns.items(), PAPER[model], strict=True)
            for cell in (
                f"{paper:.2f}",
                best[name](model, page.shown(scores.get(model, {}).values(), 1)),
            )
        ]
        for model in MODELS
    ]
    return page.markdown(header, lines)


def _medians(columns: dict[str, page.Scores]) -> str:
    lines = [
        [model, *(f"{np.median([*s.get(model, {}).values()] or [np.nan]):.1f}" for s in
                  columns.values())]
        for model in MODELS
    ]  # fmt: skip
    return page.markdown(["model", *columns], lines)


def _paired(columns: dict[str, page.Scores]) -> str:
    rivals = [model for model in MODELS if model != CHAMPION]
    lines = [
        [model, *(page.shown(page.differences(s, model, CHAMPION), 1) for s in columns.values())]
        for model in rivals
    ]
    return page.markdown(["model", *columns], lines)
