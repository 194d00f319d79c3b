"""`censored-gp reproduce`: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.options import command
from censored_gp.cli.problems import say


@command("reproduce", "censored-gp reproduce table1 --draws 1 --folder out")
def reproduce(
    what: Annotated[
        str, typer.Argument(help="table1, table2, table3, table4, figures, engines or all.")
    ] = "all",
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
    from censored_gp.paper import reproduce as compute

    say(f"Page: {compute(what, folder, draws=draws, jobs=jobs, engine=engine)}")
