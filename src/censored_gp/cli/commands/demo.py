"""`censored-gp demo`: a bike share whose true demand is known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from censored_gp.cli.options import command
from censored_gp.cli.problems import say

if TYPE_CHECKING:
    from rich.table import Table

    from censored_gp.demo import Demo


@command("demo", "censored-gp demo --days 15 --likelihood poisson --figure demo.png")
def demo(
    days: Annotated[int, typer.Option(min=15, help="Days to simulate, the last 7 unseen.")] = 28,
    seed: Annotated[int, typer.Option(min=0, help="Which world to simulate.")] = 1,
    likelihood: Annotated[str, typer.Option(help="How counts scatter.")] = "negative_binomial",
    figure: Annotated[Path, typer.Option(help="Where to write the figure.")] = Path("out/demo.png"),
) -> None:
    """Fit a bike share that runs out of bikes, and compare with the true demand."""
    from rich.console import Console

    from censored_gp.demo import draw_figure, fit_both

    started = time.perf_counter()
    say(f"Simulating {days} days of a bike share and fitting both models ...")
    found = fit_both(days=days, seed=seed, likelihood=likelihood, progress=True)
    Console().print(_table(found))
    try:
        say(f"Figure: {draw_figure(found, figure)}")
    except ImportError as absent:
        say(f"No figure. {absent}")
    say(f"{time.perf_counter() - started:.0f} s")


def _table(found: Demo) -> Table:
    """Return the table naive / censored / truth."""
    from rich.table import Table

    from censored_gp.demo import table_rows

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
