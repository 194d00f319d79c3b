"""The paper's engine beside ours: the same runs by stochastic and by natural gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censored_gp.paper import new_york, table1
from censored_gp.paper.page import collect, differences, markdown, shown
from censored_gp.paper.runs import Row, Settings, Study

__all__ = ["DRAWS", "ENGINES", "is_compared", "runs", "section"]

DRAWS = 3
ENGINES = ("natural", "svi")
NEW_YORK_DRAWS = 1
NEW_YORK_MODEL = "CGP"
"""The paper's engine takes many minutes for one output, and hours for two: one draw, of one."""
TEXT = """\
Same data, models, kernels and starting values; only the engine differs. `natural` is this
package's default, `svi` the paper's (three Monte-Carlo samples, RMSprop with a step of 0.001; on
New York it stops by the validation hours). A higher ELBO is a better posterior of the same model.
ELBO and scores are of the draws that both have done, differences paired, svi less natural. Seconds
are medians of wall time over all draws of a model, so that what is compiled for the first of them
does not count where there are many; the machine may have done other work, too."""
NEW_YORK = """\
Station 3711, the paper's kernels, one output. `natural` has the steps and the inducing inputs of
table 4, which leave some of the 1 h kernel out; `svi` has a value for every row, so that its bound
may be the higher one. With two outputs each of its thousands of steps factorises a matrix over the
rows of both: `censored-gp reproduce table4 --engine svi` does it, for who has the time."""


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
        if is_compared(run)
    ]
    return [(table1.STUDY, synthetic), (new_york.STUDY, chosen)]


def section(synthetic: Sequence[Row], real: Sequence[Row]) -> str:
    """Return the comparison, made from the runs that both engines have done.

    >>> section([], []).splitlines()[0]
    '## The engines'
    """
    own = [row for row in real if is_compared(row)]
    parts = ["## The engines", TEXT]
    first = [row for row in synthetic if row["own"] == "block" and row["other"] in ("-", "none")]
    parts += ["Table 1:", _table(first, ["model"], {"nlpd": ("NLPD", 1)})]
    if any(row["engine"] == "svi" for row in own):
        measures = {"r2": ("R²", 3), "nlpd": ("NLPD", 1)}
        parts += [NEW_YORK, _table(own, ["family", "model"], measures)]
    return "\n\n".join(parts)


def is_compared(run: Settings) -> bool:
    """Say whether a run on New York's data is one by which engines are compared.

    >>> [is_compared(run) for run in new_york.runs(1)].count(True)
    3
    """
    return (
        run["station"] == "3711"
        and run["partner"] == "published"
        and run["block"] == "paper"
        and run["data"] == "observed"
        and run["model"] == NEW_YORK_MODEL
    )


def _table(rows: Sequence[Row], name: list[str], measures: dict[str, tuple[str, int]]) -> str:
    """Return means of both engines over the draws that both have done, and medians of times."""
    every = {"elbo": ("ELBO", 1), **measures}
    header, lines = ["model"], []
    for title, _ in every.values():
        header += [*(f"{title}, {engine}" for engine in ENGINES), "difference"]
    header += [*(f"seconds, {engine}" for engine in ENGINES), "times as long"]
    scores = {m: collect(rows, [*name, "engine"], ["draw"], m) for m in (*every, "fit_seconds")}
    for each in dict.fromkeys(" ".join(row[n] for n in name) for row in rows):
        ours, theirs = (f"{each} {engine}" for engine in ENGINES)
        if not {ours, theirs} <= scores["elbo"].keys():
            continue
        cells = [each.replace("_", " ")]
        for measure, (_, digits) in every.items():
            both = scores[measure].get(ours, {}).keys() & scores[measure].get(theirs, {}).keys()
            for engine in (ours, theirs):
                cells.append(shown((scores[measure][engine][k] for k in sorted(both)), digits))
            cells.append(shown(differences(scores[measure], theirs, ours), digits))
        seconds = [np.median([*scores["fit_seconds"].get(e, {}).values()]) for e in (ours, theirs)]
        lines.append([*cells, *(f"{s:.1f}" for s in seconds), f"{seconds[1] / seconds[0]:.0f}"])
    return markdown(header, lines)
