"""`censored-gp predict`: the true outputs at new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, source_of
from censored_gp.cli.held import new_keys, told_apart
from censored_gp.cli.options import Files, Output, Probability, Training, command
from censored_gp.cli.problems import BadInput, located
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
    check_target(output, reads=(file, train))
    if train is None and training.load is None:
        raise BadInput(
            "predict: found no --load and no --train. Give a model file, or a table to fit first: "
            "FILE has the rows to predict at."
        )
    source = source_of(file, files)
    source.header()
    model, plan = fitted(train, training, files)
    wanted = source.read(plan.roles_of_new(), not files.ignore_memory)
    with located(wanted.name, wanted.line_of):
        mean = model.predict(wanted.table)
    low, high = model.interval(wanted.table, probability)
    tables = {"": mean, "_low": low, "_high": high}
    write_table(told_apart(model, tables, new_keys(model, wanted.table)), output)
