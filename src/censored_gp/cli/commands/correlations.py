"""`censored-gp correlations`: which outputs inform each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from censored_gp.cli.fitting import fitted, refuse_unused
from censored_gp.cli.options import File, Files, Output, Training, command
from censored_gp.cli.writing import check_target, write_table


@command("correlations", "censored-gp correlations --load bikes.cgp")
def correlations(
    training: Training,
    files: Files,
    file: File = None,
    role: Annotated[
        str, typer.Option(help="Of what: mean, or scale where the noise varies.")
    ] = "mean",
    output: Output = None,
) -> None:
    """Say how far outputs inform each other: correlations of what lies behind them.

    A model whose outputs are not coupled (cgp, hcgp, ncgp) takes them for unrelated.
    """
    check_target(output, reads=(file,))
    refuse_unused(file, files)
    model, _ = fitted(file, training, files)
    write_table(_named(model, model.correlations(role)), output)


def _named(model: Any, found: Any) -> Any:
    """Return a table with the names of the outputs, which a model of arrays does not add."""
    if model.layout_ is not None:
        return found
    names = list(map(str, model.output_names_))
    return {"output": names} | {name: found[:, d] for d, name in enumerate(names)}
