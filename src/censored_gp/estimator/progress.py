"""A progress bar for long fits: on a terminal, and only when asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from censored_gp.inference.result import Progress, silent


@contextlib.contextmanager
def progress_bar(wanted: Any) -> Iterator[Progress]:
    """Yield a function that engines tell of their steps.

    `wanted` is True for a bar on the standard error stream (nothing, if that is no terminal),
    False for silence, or such a function itself.
    """
    if callable(wanted):
        yield cast(Progress, wanted)
        return
    # Imported when asked for: rich is slow to load.
    from rich.console import Console

    console = Console(stderr=True) if wanted else None
    if console is None or not console.is_terminal:
        yield silent
        return
    with _bar(console) as tell:
        yield tell


@contextlib.contextmanager
def _bar(console: Any) -> Iterator[Progress]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[bound]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        line = bar.add_task("starting", total=None, bound="")

        def tell(stage: str, done: int, most: int, bound: float) -> None:
            said = f"{done}/{most}, ELBO {bound:.1f}"
            bar.update(line, description=stage, completed=done, total=most, bound=said)

        yield tell
