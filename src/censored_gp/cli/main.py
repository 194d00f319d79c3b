"""The group of commands: each is imported when it is called."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import censored_gp

SUMMARIES = {
    "demo": "Fit a bike share that runs out of bikes: truth is known.",
    "data": "List the sample data sets, or write one as a table.",
    "fit": "Fit a model to a table, and save it.",
    "predict": "Predict the true outputs at new rows, with intervals.",
    "impute": "Fill in censored and missing cells of a table.",
    "lost-demand": "Estimate the demand lost to censoring, by group.",
    "forecast": "Forecast the true outputs after the last time.",
    "required-supply": "Compute the supply that meets demand with a probability.",
    "correlations": "Show how the latent functions of outputs correlate.",
    "diagnose": "Score a model on held-out cells, and warn of problems.",
    "compare": "Compare models and likelihoods by cross-validation.",
    "fleet": "Fit a model to each of many groups, such as stores.",
    "report": "Write a self-contained HTML page about a model.",
}
"""The commands in the order of the help, with the first line of each one's own help."""
PATIENCE = 1.5
"""Seconds after Ctrl-C in which a command may end by itself."""


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called, not when it is listed."""

    listing = False
    """Whether only names and summaries are wanted."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(SUMMARIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or only its summary while commands are listed."""
        if self.listing:
            return TyperCommand(cmd_name, help=SUMMARIES[cmd_name])
        match cmd_name:
            case "fit" | "predict" | "impute" | "compare" | "report" | "fleet":
                from censored_gp.cli.commands import modelling as module
            case "demo" | "data":
                from censored_gp.cli.commands import samples as module
            case name if name in SUMMARIES:
                from censored_gp.cli.commands import analyses as module
            case _:
                return None
        return typer.main.get_group(module.app).commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands of the help."""
        self.listing = True
        super().format_commands(ctx, formatter)
        self.listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands that begin with what was typed."""
        self.listing = True
        found = super().shell_complete(ctx, incomplete)
        self.listing = False
        return found


app = typer.Typer(
    cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"censored-gp {censored_gp.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Gaussian-process regression for censored data: true demand from incomplete records."""


def run() -> None:
    """Run the command line; after Ctrl-C it ends within two seconds, whatever it is doing.

    The interpreter handles a signal between two of its steps, and so not while XLA compiles.
    """
    asked, (receiver, sender) = threading.Event(), socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno())

    def watch() -> None:
        receiver.recv(1)
        asked.set()
        time.sleep(PATIENCE)
        os.write(2, b"Interrupted.\n")
        os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
    try:
        app()
    except BaseException:
        if not asked.is_set():
            raise
        # What had to be written is written.
        sys.stdout.flush()
        os._exit(130)
