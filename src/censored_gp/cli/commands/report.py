"""`censored-gp report`: everything on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted
from censored_gp.cli.options import File, Files, Training, command
from censored_gp.cli.problems import say
from censored_gp.cli.writing import check_target


@command("report", "censored-gp report --load bikes.cgp --output report.html")
def report(
    training: Training,
    files: Files,
    file: File = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page.")] = Path(
        "report.html"
    ),
) -> None:
    """Write one page with what was done and found: it needs no network, and no other file."""
    check_target(str(output), (".html", ".htm"))
    from censored_gp.report import write_report

    model, _ = fitted(file, training, files)
    write_report(model, output)
    say(f"Report: {output}")
