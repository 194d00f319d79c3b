"""`censored-gp diagnose`: whether to believe a model."""

from __future__ import annotations

from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, refuse_unused
from censored_gp.cli.options import File, Files, Output, Training, command
from censored_gp.cli.problems import say
from censored_gp.cli.words import of_options
from censored_gp.cli.writing import check_target, write_table

ALL_WELL = "Nothing is wrong as far as held-out cells can tell."


@command("diagnose", "censored-gp diagnose --load bikes.cgp --folds 2 --output scores.csv")
def diagnose(
    training: Training,
    files: Files,
    file: File = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 3,
    output: Output = None,
) -> None:
    """Hold out cells, predict them, and say how well that went, and what is wrong.

    The table has scores by output of this model, of one that ignores censoring and of one that
    sees exact cells only. What to think of them is said in words on the standard error stream.
    """
    check_target(output, reads=(file,))
    refuse_unused(file, files)
    model, _ = fitted(file, training, files)
    say(f"Predicting cells held out, in {folds} parts ...")
    found = model.diagnose(folds)
    write_table(found.rows, output)
    for words in map(of_options, found.warnings or (ALL_WELL,)):
        say(words)
