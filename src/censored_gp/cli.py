"""The terminal: `censored-gp demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import censored_gp
from censored_gp.demo import Demo, draw_figure, fit_both, table_rows

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Regression for outputs that were partly seen."
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"censored-gp {censored_gp.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Regression for outputs that were only partly seen."""


@app.command()
def demo(
    days: Annotated[int, typer.Option(min=15, help="Days to simulate, the last 7 unseen.")] = 28,
    seed: Annotated[int, typer.Option(min=0, help="Which world to simulate.")] = 1,
    likelihood: Annotated[str, typer.Option(help="How counts scatter.")] = "negative_binomial",
    figure: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("out/demo.png"),
) -> None:
    """Fit a bike share that runs out of bikes, and compare with the true demand."""
    console, started = Console(), time.perf_counter()
    console.print(f"Simulating {days} days of a bike share and fitting both models ...")
    found = fit_both(days=days, seed=seed, likelihood=likelihood, progress=True)
    console.print(_table(found))
    try:
        console.print(f"Figure: {draw_figure(found, figure)}", soft_wrap=True)
    except ImportError as absent:
        console.print(f"No figure. {absent}")
    console.print(f"{time.perf_counter() - started:.0f} s")


def _table(found: Demo) -> Table:
    """Return the table naive / censored / truth."""
    hours = int(found.ran_out.sum())
    table = Table(
        title=f"Bikes ran out in {hours} of {found.ran_out[: found.training].size} station hours",
        caption="naive: pickups taken for demand (NCGP). censored: pickups in those hours taken "
        "for a lower bound (HMOCGP).",
    )
    table.add_column()
    for column, style in (("naive", "red"), ("censored", "green"), ("truth", "bold")):
        table.add_column(column, justify="right", style=style)
    for row in table_rows(found):
        table.add_row(*row)
    return table
