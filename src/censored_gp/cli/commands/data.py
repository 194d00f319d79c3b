"""`censored-gp data`: tables to try the other commands on."""

from __future__ import annotations

from typing import Annotated

import typer

from censored_gp.cli.arrow import require_pyarrow
from censored_gp.cli.options import Output, command
from censored_gp.cli.problems import BadInput
from censored_gp.cli.worlds import WORLDS, Choice, listing, table_of
from censored_gp.cli.writing import check_target, write_table


@command("data", "censored-gp data", "censored-gp data bike_share --output bikes.csv")
def data(
    choice: Choice,
    name: Annotated[str | None, typer.Argument(help="Which data; none: the list.")] = None,
    output: Output = None,
) -> None:
    """List the data sets there are, or write one as a table.

    A download is kept in the folder that CENSORED_GP_DATA names, or else in the user's cache.
    """
    require_pyarrow()
    check_target(output)
    if name is None and choice.given:
        raise BadInput(f"--{choice.given[0]}: say which data, as data bike_share.")
    if name is None:
        write_table(listing(), output)
        return
    if name not in WORLDS:
        raise BadInput(f"data: found {name!r}. Accepted are {', '.join(WORLDS)}.")
    write_table(table_of(name, choice), output)
