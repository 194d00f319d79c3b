"""`censored-gp report`: everything on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted
from censored_gp.cli.options import MODELS, File, Files, Training, command
from censored_gp.cli.plans import split_names
from censored_gp.cli.problems import BadInput, say
from censored_gp.cli.writing import check_target


@command("report", "censored-gp report --load bikes.cgp --output report.html")
def report(
    training: Training,
    files: Files,
    file: File = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Check on cells held out, in so many parts. Takes longer."),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(help="Compare these models on the page, as ncgp,hmocgp. Takes longer."),
    ] = None,
) -> None:
    """Write one page with what was done and found: it needs no network, and no other file."""
    check_target(str(output), (".html", ".htm"))
    names = [name.upper() for name in split_names(compare)]
    unknown = [name for name in names if name.lower() not in MODELS]
    if unknown:
        raise BadInput(f"--compare: found {unknown[0]!r}. Accepted are {', '.join(MODELS)}.")
    from censored_gp.report import write_report

    model, _ = fitted(file, training, files)
    write_report(model, output, title=title, folds=folds, comparison=names or None)
    say(f"Report: {output}")
