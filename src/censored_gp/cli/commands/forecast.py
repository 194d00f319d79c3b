"""`censored-gp forecast`: the true outputs ahead of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from censored_gp.cli.fitting import fitted, source_of
from censored_gp.cli.options import File, Files, Output, Probability, Training, command
from censored_gp.cli.plans import Plan
from censored_gp.cli.problems import BadInput
from censored_gp.cli.reading import Roles
from censored_gp.cli.writing import check_target, write_table


@command("forecast", "censored-gp forecast --load bikes.cgp --periods 24 --output ahead.csv")
def forecast(
    training: Training,
    files: Files,
    file: File = None,
    periods: Annotated[int | None, typer.Option(min=1, help="Steps ahead.")] = None,
    until: Annotated[str | None, typer.Option(help="Last time, instead of --periods.")] = None,
    future: Annotated[
        Path | None, typer.Option(help="Table of the inputs ahead; else drawn from the past.")
    ] = None,
    probability: Probability = 0.9,
    output: Output = None,
) -> None:
    """Forecast the true outputs ahead of the last time of the table, at its spacing."""
    check_target(output)
    if (periods is None) == (until is None):
        raise BadInput("Give --periods or --until, one of them.")
    model, plan = fitted(file, training, files)
    known = None if future is None else _ahead(future, files, plan)
    ahead = model.forecast(periods, until=until, inputs=known, probability=probability)
    write_table(ahead, output)


def _ahead(future: Path, files: Files, plan: Plan) -> Any:
    """Return the table of what is known of the time ahead."""
    roles = Roles(inputs=plan.inputs, time=plan.time)
    return source_of(future, files).read(roles).table
