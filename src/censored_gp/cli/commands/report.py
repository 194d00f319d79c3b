"""`censored-gp report`: everything on one page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, refuse_unused
from censored_gp.cli.options import MODELS, File, Files, Training, command
from censored_gp.cli.plans import split_names
from censored_gp.cli.problems import BadInput, say
from censored_gp.cli.writing import check_target, write_text


@command("report", "censored-gp report --load bikes.cgp --output report.html")
def report(
    training: Training,
    files: Files,
    file: File = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where to write the page; - is stdout.")
    ] = "report.html",
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
    check_target(output, (".html", ".htm"), reads=(file,))
    refuse_unused(file, files)
    names = [name.upper() for name in split_names(compare)]
    unknown = [name for name in names if name.lower() not in MODELS]
    if unknown:
        raise BadInput(f"--compare: found {unknown[0]!r}. Accepted are {', '.join(MODELS)}.")
    from censored_gp.reporting import write_report

    model, _ = fitted(file, training, files)
    asked = {"title": title, "folds": folds, "comparison": names or None}
    if output == "-":
        with tempfile.TemporaryDirectory() as folder:
            page = write_report(model, Path(folder, "report.html"), **asked)
            write_text(page.read_text(encoding="utf-8"), output)
        return
    write_report(model, output, **asked)
    say(f"Report: {output}")
