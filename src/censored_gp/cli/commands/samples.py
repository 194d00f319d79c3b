"""Commands that write sample data and show what the models do with them."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.console import bad_option, progress, say
from censored_gp.cli.options import OutputOption, command

app = typer.Typer(rich_markup_mode=None)


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which part of a data set is wanted."""

    seed: Annotated[int | None, typer.Option(min=0, help="Random seed; 0 by default.")] = None
    days: Annotated[int | None, typer.Option(min=1, help="Days to simulate.")] = None
    samples: Annotated[int | None, typer.Option(min=1, help="Water samples to simulate.")] = None
    names: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Stations, car parks or products, as 3711,366."),
    ] = None
    months: Annotated[
        list[str] | None, typer.Option(metavar="MONTHS", help="As 2018-06,2018-07.")
    ] = None
    store: Annotated[int | None, typer.Option(help="Store of the retail data.")] = None


@command(app, "data", "censored-gp data", "censored-gp data bike_share --output bikes.csv")
def data(
    choice: Choice,
    name: Annotated[str | None, typer.Argument(help="Data set; without it, the list.")] = None,
    output: OutputOption = None,
) -> None:
    """List the sample data sets, or write one as a table.

    A download is kept in the folder that CENSORED_GP_DATA names, or else in the user's cache.
    """
    from censored_gp.cli.demonstration import DATA_SETS, sample
    from censored_gp.cli.output import check_target, write_table
    from censored_gp.data.errors import did_you_mean

    check_target(output)
    given = {k: v for k, v in dataclasses.asdict(choice).items() if v not in (None, [])}
    if name is None:
        if given:
            raise bad_option(f"--{next(iter(given))}", "name a data set, as data bike_share.")
        rows = [{"name": n, "kind": d.kind, "what": d.text} for n, d in DATA_SETS.items()]
        write_table(rows, output)
        return
    if name not in DATA_SETS:
        hint = did_you_mean(name, DATA_SETS)
        raise bad_option("NAME", f"{name!r} is not one of {', '.join(DATA_SETS)}. {hint}")
    write_table(sample(name, given), output)


@command(app, "demo", "censored-gp demo --days 15 --likelihood poisson --figure demo.png")
def demo(
    days: Annotated[int, typer.Option(min=15, help="Days to simulate; 7 are held out.")] = 28,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    likelihood: Annotated[str, typer.Option(help="Likelihood of counts.")] = "negative_binomial",
    figure: Annotated[Path, typer.Option(help="File for the figure.")] = Path("out/demo.png"),
) -> None:
    """Fit a bike share that runs out of bikes: truth is known.

    The naive model takes pickups for demand. The censored model takes them for a lower bound of
    it wherever a station ran out of bikes.
    """
    from rich.console import Console
    from rich.table import Table

    from censored_gp.cli import demonstration

    started = time.perf_counter()
    say(f"Simulating {days} days of a bike share and fitting two models ...")
    found = demonstration.fit_both(days, seed, likelihood, progress=progress())
    hours, of = int(found.ran_out.sum()), found.ran_out[: found.training].size
    table = Table(
        title=f"Bikes ran out in {hours} of {of} station hours",
        caption="naive: pickups taken for demand (NCGP). censored: pickups in those hours taken "
        "for a lower bound (HMOCGP).",
    )
    table.add_column()
    for column, style in (("naive", "red"), ("censored", "green"), ("truth", "bold")):
        table.add_column(column, justify="right", style=style)
    for row in demonstration.table_rows(found):
        table.add_row(*row)
    Console().print(table)
    try:
        demonstration.draw_figure(found, figure)
        say(f"Figure: {figure}")
    except ImportError as error:
        say(f"No figure. {error}")
    say(f"{time.perf_counter() - started:.0f} s")
