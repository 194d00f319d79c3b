"""`censored-gp fit`: from a table to a model file."""

from __future__ import annotations

from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, refuse_unused
from censored_gp.cli.options import File, Files, Training, command
from censored_gp.cli.problems import say
from censored_gp.cli.words import of_options
from censored_gp.cli.writing import check_target, write_text


@command(
    "fit",
    "censored-gp fit bikes.csv --outputs station_1,station_2 --time time --inputs rain \\\n"
    "    --censored station_1_empty,station_2_empty --likelihood poisson --save bikes.cgp",
)
def fit(
    training: Training,
    files: Files,
    file: File = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File for the summary; - is stdout.")
    ] = None,
) -> None:
    """Fit a model to a table, say what was found, and keep it in a file (--save).

    With --load and no FILE, say what was found when that model was fitted.
    """
    check_target(output, (".txt", ".md"), reads=(file,))
    refuse_unused(file, files)
    done = fitted(file, training, files)
    if training.save is None and file is not None:
        say("The model is not kept: use --save model.cgp, and other commands can --load it.")
    write_text(of_options(done.model.summary()), output)
