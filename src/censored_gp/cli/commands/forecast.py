"""`censored-gp forecast`: the true outputs ahead of the table."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, refuse_unused, source_of
from censored_gp.cli.options import File, Files, Output, Probability, Training, command
from censored_gp.cli.plans import Plan
from censored_gp.cli.problems import BadInput, located
from censored_gp.cli.reading import Roles, Wanted
from censored_gp.cli.writing import check_target, write_table


@command("forecast", "censored-gp forecast --load bikes.cgp --periods 24 --output ahead.csv")
def forecast(
    training: Training,
    files: Files,
    file: File = None,
    periods: Annotated[int | None, typer.Option(min=1, help="Steps ahead.")] = None,
    until: Annotated[
        str | None, typer.Option(help="Last time, instead of --periods; may have a zone.")
    ] = None,
    future: Annotated[
        Path | None,
        typer.Option(help="Table of times and inputs ahead; inputs not in it are drawn."),
    ] = None,
    probability: Probability = 0.9,
    output: Output = None,
) -> None:
    """Forecast the true outputs ahead of the last time of the table, at its spacing."""
    check_target(output, reads=(file, future))
    refuse_unused(file or future, files)
    if (periods is None) == (until is None):
        raise BadInput("Give --periods or --until, one of them.")
    model, plan = fitted(file, training, files)
    known = None if future is None else _ahead(future, files, plan)
    with _located(known):
        table = None if known is None else known.table
        ahead = model.forecast(periods, until=until, inputs=table, probability=probability)
    write_table(ahead, output)


def _ahead(future: Path, files: Files, plan: Plan) -> Wanted:
    """Return the table of what is known of the time ahead; inputs may be left out of it."""
    roles = Roles(inputs=plan.inputs, time=plan.time, optional=frozenset(plan.inputs))
    source = source_of(future, files)
    if any(name not in source.header() for name, _ in source.where):
        # What tells the rows of the past apart need not be known of those ahead.
        source = source_of(future, dataclasses.replace(files, where=[]))
    return source.read(roles)


@contextlib.contextmanager
def _located(known: Wanted | None) -> Iterator[None]:
    """Say of an error which file and line, or which option, it is about."""
    try:
        if known is None:
            yield
        else:
            with located(known.name, known.line_of, only=("Input", "inputs")):
                yield
    except ValueError as error:
        if not str(error).startswith(("until:", "periods:")):
            raise
        raise BadInput(f"--{error}") from error
