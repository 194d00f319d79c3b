"""The results in one table: ours beside the paper's, and beside what ignores censoring."""

from __future__ import annotations

from collections.abc import Sequence

from censored_gp.paper import page, table1, table4
from censored_gp.paper.new_york import BLOCK_NAMES, CHAMPIONS
from censored_gp.paper.runs import Row

__all__ = ["brief"]

STATION = "3711"
"""The one whose data are the paper's own."""
IGNORES = "MONCGP"
HEADER = ("", "the paper", "censored-gp", "ignoring censoring")


def brief(synthetic: Sequence[Row], stations: Sequence[Row]) -> str:
    """Return the table, made from the runs of tables 1 and 4; lines without runs are left out.

    >>> brief([], [])
    ''
    """
    lines = [*_of_table1(synthetic), *_of_table4(stations)]
    return page.markdown(HEADER, lines) if lines else ""


def _of_table1(rows: Sequence[Row]) -> list[list[str]]:
    own = [row for row in rows if row["engine"] == "natural" and table1.is_run_of(row)]
    nlpd = page.collect(own, ["model"], ["draw"], "nlpd")
    champion = table1.CHAMPION
    if champion not in nlpd:
        return []
    name = f"Synthetic data, {champion}: NLPD (table 1, lower is better)"
    ours, ignoring = (page.shown(nlpd[m].values(), 1) for m in (champion, IGNORES))
    return [[name, f"{table1.PAPER[champion]:.1f}", ours, ignoring]]


def _of_table4(rows: Sequence[Row]) -> list[list[str]]:
    own = [row for row in rows if row["station"] == STATION and row["partner"] == "published"]
    lines = []
    for block, kernels in BLOCK_NAMES.items():
        r2 = _r2(own, block, "observed", ["family", "model"])
        for family, champion in CHAMPIONS.items():
            ours = r2.get(f"{family} {champion}", {})
            name = f"Bike demand, {family.replace('_', ' ')} {champion}, {kernels}: R² (table 4)"
            known = f"{table4.PAPER[family, champion][0]:.3f}" if block == "paper" else ""
            if ours:
                ignoring = page.shown(r2.get(f"{family} {IGNORES}", {}).values())
                lines.append([name, known, page.shown(ours.values()), ignoring])
    truth, seen = (_r2(own, "-", data, ["model"]) for data in ("truth", "observed"))
    for method, values in truth.items():
        name = f"Beside it, {method} that saw the truth: R²"
        # The truth is the same in all draws.
        once = page.shown([*values.values()][:1])
        lines.append([name, "", once, page.shown(seen.get(method, {}).values())])
    return lines


def _r2(rows: Sequence[Row], block: str, data: str, name: Sequence[str]) -> page.Scores:
    chosen = [row for row in rows if row["block"] == block and row["data"] == data
              and row["engine"] in ("natural", "-")]  # fmt: skip
    return page.collect(chosen, name, ["draw"], "r2")
