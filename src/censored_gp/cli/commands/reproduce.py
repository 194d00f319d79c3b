"""`censored-gp reproduce`: the paper's tables and figures."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.options import command
from censored_gp.cli.problems import FAILED, BadInput, say


def _targets() -> str:
    """Return what can be reproduced, which is known to the package alone."""
    from censored_gp.paper import WHAT

    return f"{', '.join(WHAT[:-1])} or {WHAT[-1]}."


def _engines() -> tuple[str, ...]:
    from censored_gp.paper.engines import ENGINES

    return ENGINES


@command(
    "reproduce",
    "censored-gp reproduce table1 --draws 1 --folder out",
    later={"TARGETS": _targets},
)
def reproduce(
    what: Annotated[str, typer.Argument(help="TARGETS")] = "all",
    folder: Annotated[Path, typer.Option(help="Folder for page, figures and runs.")] = Path("out"),
    draws: Annotated[
        int | None, typer.Option(min=1, help="Draws of each table; none: as it is meant to have.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Fits at a time; none: one for each core.")
    ] = None,
    engine: Annotated[str, typer.Option(help="natural, or svi for the paper's.")] = "natural",
) -> None:
    """Compute the results of the paper anew, and set them beside the published ones.

    Runs that the folder holds are not done again: what was interrupted goes on where it stopped.
    """
    if engine not in _engines():
        raise BadInput(f"--engine: found {engine!r}. Accepted are {', '.join(_engines())}.")
    from censored_gp.paper import reproduce as compute

    before = _runs(folder)
    page = compute(what, folder, draws=draws, jobs=jobs, engine=engine)
    _tell_failures([run for run in _runs(folder) if run not in before])
    say(f"Page: {page}")


def _runs(folder: Path) -> list[dict[str, str]]:
    """Return the runs that a folder holds, of all studies."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row.get("finished")]
        found += [row | {"study": path.stem} for row in rows if "error" in row]
    return found


def _tell_failures(runs: list[dict[str, str]]) -> None:
    """Say which of the runs that were done failed; end the command if all of them did."""
    failed = [run["error"] for run in runs if run["error"]]
    if not failed:
        return
    say(f"{len(failed)} of {len(runs)} runs failed. The first: {failed[0]}")
    if len(failed) == len(runs):
        say("Error: no run succeeded: the page has nothing new. The next time tries them again.")
        raise typer.Exit(FAILED)
