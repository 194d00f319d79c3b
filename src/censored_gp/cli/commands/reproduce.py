"""`censored-gp reproduce`: the paper's tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.options import command


@command("reproduce", "censored-gp reproduce table1 --folder out")
def reproduce(
    what: Annotated[str, typer.Argument(help="What to compute anew, or all.")] = "all",
    folder: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("out"),
) -> None:
    """Compute the results of the paper anew, and set them beside the published ones."""
    from censored_gp.paper import reproduce as compute

    compute(what, folder)
