"""`censored-gp lost-demand`: what was wanted but could not be had."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from censored_gp.cli.fitting import fitted, refuse_unused, source_of
from censored_gp.cli.options import File, Files, Output, Probability, Training, command
from censored_gp.cli.plans import split_names
from censored_gp.cli.problems import BadInput
from censored_gp.cli.writing import check_target, write_table

GROUPS = ("output", "hour", "weekday", "date", "month")


@command(
    "lost-demand",
    "censored-gp lost-demand --load bikes.cgp",
    "censored-gp lost-demand --load bikes.cgp --group output,hour --output lost.csv",
)
def lost_demand(
    training: Training,
    files: Files,
    file: File = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help=f"Groups: {', '.join(GROUPS)}, or columns; several as a,b."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Joint draws behind the intervals.")] = 500,
    probability: Probability = 0.9,
    output: Output = None,
) -> None:
    """Say how much demand was lost where outputs were censored, in all or by group."""
    check_target(output, reads=(file,))
    refuse_unused(file, files)
    names = [] if file is None else source_of(file, files).header()
    groups = list(split_names(group, names))
    columns = [name for name in groups if name not in GROUPS]
    if file is not None:
        for name in columns:
            if name not in names:
                raise BadInput(
                    f"--group: found {name!r}. Accepted are {', '.join(GROUPS)}, and the columns "
                    f"of {file}: {', '.join(map(repr, names))}."
                )
    model, _ = fitted(file, training, files, also=tuple(columns))
    with _by_option():
        lost = model.lost_demand(by=groups or None, probability=probability, samples=samples)
    write_table(lost, output)


@contextlib.contextmanager
def _by_option() -> Iterator[None]:
    """Call an argument by the name that its option has."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("by:"):
            raise
        raise BadInput(f"--group{str(error).removeprefix('by')}") from error
