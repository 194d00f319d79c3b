"""The terminal: `censored-gp`, with a module for each command."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

import censored_gp
from censored_gp.cli.options import COMMANDS

NAMES = (
    *("demo", "data", "fit", "predict", "impute", "lost-demand", "forecast", "required-supply"),
    *("correlations", "diagnose", "compare", "report"),
)
"""The commands, in the order of the help."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Regression for outputs that were only partly seen: true demand from censored records.",
)

__all__ = ["app"]


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
    """Regression for outputs that were only partly seen: true demand from censored records."""


for _name in NAMES:
    # They import what is heavy when they run.
    import_module(f"censored_gp.cli.commands.{_name.replace('-', '_')}")
    _made = COMMANDS[_name]
    app.command(_name, help=_made.text, cls=_made.shown)(_made.run)
