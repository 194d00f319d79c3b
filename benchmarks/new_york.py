"""Test R² of true demand on the paper's New York data (its table 4, station 3711).

    python benchmarks/new_york.py [--draws 5] [--kernels paper|own|both] [--only NAME]

Means over draws of the paper's censoring rule with standard errors, the paper's own figures beside
them. Models see what was observed in the 732 training hours only; the validation hours are unused.
The rows are those of `censored-gp reproduce table4`, done afresh.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from censored_gp.paper import new_york
from censored_gp.paper.page import collect, shown
from censored_gp.paper.runs import Row, Settings, complete, good
from censored_gp.paper.table4 import PAPER


def label(run: Settings) -> str:
    """Return what a row of the table is called."""
    if run["family"] == "-":
        return f"{run['model']}, {run['data']}"
    return f"{run['block']} kernels: {run['family']} {run['model']}"


def wanted(draws: int, kernels: str, only: str) -> list[Settings]:
    """Return the runs asked for: simple methods, and models that saw what was observed."""
    blocks = {"both": new_york.BLOCKS}.get(kernels, (kernels,))
    rows = [run for run in new_york.runs(draws)
            if run["station"] == "3711" and run["partner"] == "published"]  # fmt: skip
    simple = [run for run in rows if run["family"] == "-"]
    models = [run for run in rows if run["block"] in blocks and run["data"] == "observed"]
    return [run for run in simple + sorted(models, key=_place) if only in label(run)]


def _place(run: Settings) -> tuple[bool, int]:
    order = [*new_york.ROWS, *((family, new_york.IGNORING) for family in new_york.CHAMPIONS)]
    return run["block"] == "own", order.index((run["family"], run["model"]))


def report(rows: list[Row]) -> None:
    """Print one line for the draws of one row."""
    first = rows[0]
    values = collect(rows, ["model"], ["draw"], "r2").get(first["model"], {}).values()
    paper = PAPER.get((first["family"], first["model"]))
    seconds = [row["fit_seconds"] for row in good(rows)]
    cells = (
        f"{label(first):44s}",
        shown(values),
        f"{paper[0]:.3f}" if paper else "-",
        f"{np.median(seconds):5.1f}" if seconds else rows[0]["error"],
    )
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Run all rows and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--kernels", choices=("paper", "own", "both"), default="both")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    chosen = parser.parse_args()
    print("| test R² of true demand, station 3711 | mean ± s.e. | paper | seconds per fit |")
    print("|---|---|---|---|")
    by_row: dict[str, list[Settings]] = {}
    for run in wanted(chosen.draws, chosen.kernels, chosen.only):
        by_row.setdefault(label(run), []).append(run)
    # A fresh folder: this measures the code as it is now, so nothing is taken from earlier runs.
    with tempfile.TemporaryDirectory() as folder:
        for runs in by_row.values():
            report(complete(new_york.STUDY, runs, Path(folder), jobs=1, progress=False))


if __name__ == "__main__":
    main()
