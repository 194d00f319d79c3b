"""`censored-gp required-supply`: how much would have been enough, or will be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from censored_gp.cli.fitting import Fitted, fitted, refuse_unused, source_of
from censored_gp.cli.held import inputs_of
from censored_gp.cli.options import File, Files, Output, Training, command
from censored_gp.cli.problems import BadInput, located
from censored_gp.cli.writing import check_target, write_table


@command(
    "required-supply",
    "censored-gp required-supply --load bikes.cgp --window 1d",
    "censored-gp required-supply --load bikes.cgp --future next_week.csv --probability 0.9",
)
def required_supply(
    training: Training,
    files: Files,
    file: File = None,
    future: Annotated[
        Path | None,
        typer.Option(help="Table of the rows to supply: times and inputs; else those fitted to."),
    ] = None,
    probability: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="How surely it must be enough.")
    ] = 0.95,
    window: Annotated[
        str | None, typer.Option(help="Duration, as 6h or 1d; none: all rows together.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Joint draws behind the answer.")] = 500,
    output: Output = None,
) -> None:
    """Say how much supply would meet demand with a probability, by output and window of time.

    The column peak is enough for the busiest row of a window, the column sum for all of its rows
    together.
    """
    check_target(output, reads=(file, future))
    _check_window(window)
    refuse_unused(future or file, files)
    done = fitted(file, training, files)
    rows, place = _rows(done, future, files)
    with place:
        found = done.model.required_supply(rows, probability, window, samples)
    write_table(found, output)


def _check_window(window: str | None) -> None:
    """Refuse what is no duration, before any time is spent."""
    from censored_gp.data.time import duration_hours

    try:
        if window is not None and duration_hours(window) * 3600 < 1:
            raise ValueError(f"{window!r} is shorter than a second.")
    except ValueError as error:
        raise BadInput(f"--window: {error}") from error


def _rows(done: Fitted, future: Path | None, files: Files) -> tuple[Any, Any]:
    """Return the rows that are to be supplied, and what tells where errors in them are."""
    if future is None:
        return inputs_of(done.model), located("The model's own table", lambda row: f"row {row + 1}")
    wanted = source_of(future, files).read(done.plan.roles_of_new(), not files.ignore_memory)
    return wanted.table, located(wanted.name, wanted.line_of)
