"""`censored-gp predict`: the true outputs at new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, source_of
from censored_gp.cli.options import Files, Output, Probability, Training, command
from censored_gp.cli.problems import located
from censored_gp.cli.tabulate import side_by_side
from censored_gp.cli.writing import check_target, write_table


@command(
    "predict",
    "censored-gp predict next_week.csv --load bikes.cgp --output predicted.csv",
)
def predict(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Rows to predict at: times and inputs.")
    ],
    training: Training,
    files: Files,
    train: Annotated[
        Path | None, typer.Option(help="Table to fit first, if no model is loaded.")
    ] = None,
    probability: Probability = 0.9,
    output: Output = None,
) -> None:
    """Predict the true outputs at new rows, with an interval for each.

    The columns a, a_low and a_high are the expected value of output a, and the ends of the
    interval that holds it with the given probability.
    """
    check_target(output)
    source = source_of(file, files)
    source.header()
    model, plan = fitted(train, training, files)
    wanted = source.read(plan.roles_of_new(), not files.ignore_memory)
    with located(wanted.name, wanted.line_of):
        mean = model.predict(wanted.table)
    low, high = model.interval(wanted.table, probability)
    keys = model.layout_.keys
    write_table(side_by_side(keys, {"": mean, "_low": low, "_high": high}), output)
