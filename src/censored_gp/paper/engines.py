"""The paper's engine beside ours: the same runs by stochastic and by natural gradients."""

from __future__ import annotations

from collections.abc import Sequence

from censored_gp.paper import new_york, table1
from censored_gp.paper.page import collect, differences, markdown, shown
from censored_gp.paper.runs import Row, Settings, Study

__all__ = ["DRAWS", "ENGINES", "runs", "section"]

DRAWS = 3
ENGINES = ("natural", "svi")
NEW_YORK_DRAWS = 1
"""The paper's engine takes minutes on these: few draws."""
TEXT = """\
Same data, models, kernels and starting values; only the engine differs. `natural` is this
package's default, `svi` the paper's (three Monte-Carlo samples, RMSprop with a step of 0.001; on
New York it stops by the validation hours). A higher ELBO is a better posterior of the same model;
differences are paired, svi less natural. Seconds are of wall time: those of the first draw hold
compiling, and the machine may have done other work, too."""


NOT_YET = """\
On New York's hours a fit by `svi` takes an hour and more, as each of its thousands of steps
factorises matrices over all rows and outputs: none is among these runs. `censored-gp reproduce
engines` does them, too."""


def runs(draws: int = DRAWS) -> list[tuple[Study, list[Settings]]]:
    """Return the runs of both engines, by study.

    >>> [len(wanted) for _, wanted in runs(2)]
    [24, 6]
    """
    synthetic = [run for engine in ENGINES for run in table1.runs(draws, engine)]
    chosen = [
        run
        for engine in ENGINES
        for run in new_york.runs(min(draws, NEW_YORK_DRAWS), engine)
        if _is_champion(run)
    ]
    return [(table1.STUDY, synthetic), (new_york.STUDY, chosen)]


def section(synthetic: Sequence[Row], real: Sequence[Row]) -> str:
    """Return the comparison, made from the runs that both engines have done.

    >>> section([], []).splitlines()[0]
    '## The engines'
    """
    own = [row for row in real if _is_champion(row)]
    parts = ["## The engines", TEXT]
    first = [row for row in synthetic if row["own"] == "block" and row["other"] in ("-", "none")]
    parts += ["Table 1:", _table(first, ["model"], {"nlpd": ("NLPD", 1)})]
    if any(row["engine"] == "svi" for row in own):
        parts += [
            "Station 3711, the paper's kernels:",
            _table(own, ["family", "model"], {"r2": ("R²", 3), "nlpd": ("NLPD", 1)}),
        ]
    else:
        parts.append(NOT_YET)
    return "\n\n".join(parts)


def _is_champion(run: Settings) -> bool:
    return (
        run["station"] == "3711"
        and run["partner"] == "published"
        and run["block"] == "paper"
        and run["data"] == "observed"
        and new_york.CHAMPIONS.get(run["family"]) == run["model"]
    )


def _table(rows: Sequence[Row], name: list[str], measures: dict[str, tuple[str, int]]) -> str:
    """Return means of both engines over the draws that both have done."""
    every = {"elbo": ("ELBO", 1), **measures, "fit_seconds": ("seconds per fit", 1)}
    header, lines = ["model"], []
    for title, _ in every.values():
        header += [*(f"{title}, {engine}" for engine in ENGINES), "difference"]
    scores = {m: collect(rows, [*name, "engine"], ["draw"], m) for m in every}
    for each in dict.fromkeys(" ".join(row[n] for n in name) for row in rows):
        cells = [each.replace("_", " ")]
        for measure, (_, digits) in every.items():
            ours, theirs = (f"{each} {engine}" for engine in ENGINES)
            both = scores[measure].get(ours, {}).keys() & scores[measure].get(theirs, {}).keys()
            for engine in (ours, theirs):
                cells.append(shown((scores[measure][engine][k] for k in sorted(both)), digits))
            cells.append(shown(differences(scores[measure], theirs, ours), digits))
        lines.append(cells)
    return markdown(header, lines)
