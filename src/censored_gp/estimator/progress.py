"""Progress of what takes long, on the standard error stream."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(wanted: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function to call with what is done, in words, how much it is, and of how much.

    It shows a bar on a terminal, else a line every few seconds; nothing if it is not wanted.
    """
    if not wanted:
        yield lambda words, done, total: None
        return
    # Imported on demand: rich is slow to load.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn

    console, last = Console(stderr=True), time.monotonic()
    lines = not console.is_terminal
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=lines) as bar:
        task = bar.add_task("starting", total=None)

        def tell(words: str, done: int, total: int) -> None:
            nonlocal last
            bar.update(task, description=words, completed=done, total=total)
            if lines and (done == total or time.monotonic() - last >= 5):
                last = time.monotonic()
                print(words, file=sys.stderr, flush=True)

        yield tell
