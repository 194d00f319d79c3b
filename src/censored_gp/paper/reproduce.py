"""One command for all of the paper: runs what is missing, then writes the page from all runs."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from censored_gp.datasets import four_stations
from censored_gp.paper import (
    aims,
    brief,
    elsewhere,
    engines,
    gaps,
    new_york,
    page,
    shares,
    synthetic,
    table1,
    table2,
    table3,
    table4,
)
from censored_gp.paper.runs import Settings, Study, complete, read_runs

__all__ = ["WHAT", "reproduce", "write_page"]

TABLES = {"table1": table1, "table2": table2, "table3": table3, "table4": table4}
ALL = (*TABLES, "gaps", "elsewhere", "figures", "engines")
"""What needs no internet."""
WHAT = (*ALL, "stations", "all")
FEW = {"table1": 3, "table2": 3, "figures": 3}
"""Draws of the paper's engine, which takes minutes for a fit; of what is not here, one."""
INTRODUCTION = """\
# Results

Made by `censored-gp reproduce`; every number below comes from the runs in the CSV files beside this
page, but for those of the paper. Means are over draws, with standard errors; differences between
models are paired, draw by draw. The best row is in bold.

Computed with {versions}."""


def reproduce(
    what: str,
    folder: str | Path,
    *,
    draws: int | None = None,
    jobs: int | None = None,
    engine: str = "natural",
    progress: bool = True,
) -> Path:
    """Reproduce a table, the figures, the comparison of engines, or all; return the page.

    Runs that are in the folder's CSV files are not done again. The page has every table of which
    there are runs.

    Parameters
    ----------
    what : "table1" to "table4", "gaps", "elsewhere", "figures", "engines", "stations" or "all"
        "gaps" tells what censoring costs in table 4, and what its rule has to do with it;
        "elsewhere" does so at stations that were not looked at while defaults were settled
        (not part of "all" by "svi", which would take days for it).
        "stations" is table 4 with the paper's own four stations, from trip files that are
        downloaded; it is not part of "all".
    folder : where the page, the figures and the CSV files go
    draws : how many draws; None: as many as each table is meant to have, few of "svi"
    jobs : how many fits at a time; None: as many as there are cores
    engine : "natural", or "svi" for the paper's
    progress : whether to show a bar on a terminal

    Examples
    --------
    >>> reproduce("table1", "out", draws=5)  # doctest: +SKIP
    PosixPath('out/results.md')
    """
    if what not in WHAT:
        raise ValueError(f"what: found {what!r}. Accepted are {', '.join(map(repr, WHAT))}.")
    if engine not in engines.ENGINES:
        known = ", ".join(map(repr, engines.ENGINES))
        raise ValueError(f"engine: found {engine!r}. Accepted are {known}.")
    if draws is not None and draws < 1:
        raise ValueError(f"draws: found {draws}. Accepted is a whole number from 1 on.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part in _parts(what, engine):
        for study, wanted in _wanted(part, draws, engine):
            complete(study, wanted, folder, jobs=jobs, progress=progress)
        if part == "figures":
            _draw(folder)
    return write_page(folder)


def write_page(folder: Path) -> Path:
    """Write the page from the runs and figures that a folder holds; return its path.

    >>> import tempfile
    >>> write_page(Path(tempfile.mkdtemp())).name
    'results.md'
    """
    both = [read_runs(study, folder) for study in (synthetic.STUDY, table4.STUDY)]
    parts = [INTRODUCTION.format(versions=page.versions())]
    if table := brief.brief(*both):
        parts += ["## In one table", table]
    parts += aims.section(both[1], both[0])
    for table in TABLES.values():
        rows = read_runs(table.STUDY, folder)
        for engine in engines.ENGINES:
            if _has(table, rows, engine):
                parts.append(table.section(rows, engine))
    if any(row["engine"] == "svi" for rows in both for row in rows):
        parts.append(engines.section(*both))
    parts += _pictures(folder)
    _list_draws(folder)
    path = folder / "results.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _parts(what: str, engine: str) -> list[str]:
    """Return the parts asked for; of "all", without what the paper's engine would take days for."""
    if what != "all":
        return [what]
    return [part for part in ALL if engine == "natural" or part != "elsewhere"]


def _wanted(part: str, draws: int | None, engine: str) -> list[tuple[Study, list[Settings]]]:
    """Return the runs of a part, by study."""
    if engine == "svi":
        draws = draws or FEW.get(part, 1)
    if part == "engines":
        return engines.runs(min(draws or engines.DRAWS, engines.DRAWS))
    if part == "gaps":
        return [(table4.STUDY, gaps.runs(draws or table4.DRAWS, engine))]
    if part == "elsewhere":
        return [(table4.STUDY, elsewhere.runs(draws or elsewhere.DRAWS, engine))]
    if part == "stations":
        # Once before the workers start, or each of them would download the files.
        four_stations(0)
        return [(table4.STUDY, new_york.downloaded_runs(draws or table4.DRAWS, engine))]
    if part == "figures":
        return [(shares.STUDY, shares.runs(draws or shares.DRAWS, engine))]
    table = TABLES[part]
    return [(table.STUDY, table.runs(draws or table.DRAWS, engine))]


def _has(table: Any, rows: list[dict[str, Any]], engine: str) -> bool:
    """Say whether there are runs of a table by an engine; tables 1 and 2 share a file."""
    own = [row for row in rows if row["engine"] == engine]
    if table is table4 and engine != "natural":
        # These have a table of their own.
        own = [row for row in own if not engines.is_compared(row)]
    belongs: Callable[[Any], bool] = getattr(table, "is_run_of", lambda row: True)
    return any(belongs(row) for row in own)


def _draw(folder: Path) -> None:
    # Imported when asked for: it needs matplotlib.
    from censored_gp.paper import figures

    figures.draw_all(folder)


def _pictures(folder: Path) -> list[str]:
    """Return the figures that the folder holds, with what they show."""
    from censored_gp.paper.captions import CAPTIONS

    there = [name for name in CAPTIONS if (folder / f"{name}.png").is_file()]
    if not there:
        return []
    lines = ["## Figures"]
    for name in there:
        lines += [f"![{name}]({name}.png)", f"{CAPTIONS[name]} ([SVG]({name}.svg))"]
    return lines


def _list_draws(folder: Path) -> None:
    """Write the hyper-parameters of the synthetic worlds that were used."""
    used = sorted({int(row["draw"]) for row in read_runs(synthetic.STUDY, folder)})
    if not used:
        return
    with (folder / "draws.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["draw", *synthetic.RANGES])
        for draw in used:
            chosen = synthetic.world_settings(draw)
            writer.writerow([draw, *(f"{value:.4f}" for value in chosen.values())])
