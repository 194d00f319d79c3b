"""Many independent fits: every run a row of a CSV file, so that a study stops and resumes at will.

A run is known by its settings. What is in the file already is not run again; what failed is tried
again the next time. Workers compute with one thread each and share compiled programs on disk.
"""

from __future__ import annotations

import contextlib
import csv
import gc
import itertools
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import censored_gp

__all__ = ["Row", "Settings", "Study", "complete", "read_runs"]

Settings = dict[str, Any]
"""What makes a run what it is: names and small values, which a CSV file can hold."""
Row = dict[str, Any]
"""Settings as text, results as numbers, and how the run went."""

MANY_RUNS = 15
"""Runs after which a worker forgets the programs that it has compiled (they are kept on disk)."""
WENT = ("seconds", "error", "version", "finished")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class Study:
    """A kind of run: what it takes, what it gives, and the function that does it.

    >>> study = Study("squares", ("x",), ("square",), lambda s: {"square": s["x"] ** 2})
    >>> study.columns[:2]
    ('x', 'square')
    """

    name: str
    """Name of the CSV file, without its ending."""
    settings: tuple[str, ...]
    results: tuple[str, ...]
    run: Callable[[Settings], dict[str, float]]
    """A function of a module, so that workers find it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file."""
        return (*self.settings, *self.results, *WENT)

    def path(self, folder: Path) -> Path:
        """Return the file of this study in a folder."""
        return folder / f"{self.name}.csv"

    def key(self, run: Settings) -> tuple[str, ...]:
        """Return what a run is known by."""
        return tuple(str(run[name]) for name in self.settings)


def complete(
    study: Study,
    wanted: Sequence[Settings],
    folder: Path,
    *,
    jobs: int | None = None,
    progress: bool = True,
) -> list[Row]:
    """Do all runs that are wanted and not yet in the file; return the rows of all wanted ones.

    >>> import tempfile
    >>> study = Study("squares", ("x",), ("square",), lambda s: {"square": s["x"] ** 2})
    >>> folder = Path(tempfile.mkdtemp())
    >>> [row["square"] for row in complete(study, [{"x": 2}, {"x": 3}], folder, jobs=1)]
    [4.0, 9.0]
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = _missing(study, wanted, folder)
    jobs = max(1, min(jobs or os.cpu_count() or 1, len(missing)))
    finished = _one_by_one(study, missing) if jobs == 1 else _in_a_pool(study, missing, jobs)
    with _bar(study.name, len(missing), progress) as tell, contextlib.closing(finished):
        for row in finished:
            _append(study, folder, row)
            tell()
    found = {study.key(row): row for row in read_runs(study, folder)}
    return [found[study.key(run)] for run in wanted if study.key(run) in found]


def read_runs(study: Study, folder: Path) -> list[Row]:
    """Return the rows of a study's file, the last of each run; none where there is no file.

    >>> read_runs(Study("nothing", ("x",), (), lambda s: {}), Path("nowhere"))
    []
    """
    path = study.path(folder)
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        # A line that was cut off by a crash lacks its last column.
        rows = [row for row in csv.DictReader(lines) if row.get("finished")]
    return list({study.key(row): _typed(study, row) for row in rows}.values())


def good(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of runs that did not fail.

    >>> good([{"error": ""}, {"error": "ValueError: no"}])
    [{'error': ''}]
    """
    return [row for row in rows if not row["error"]]


def _missing(study: Study, wanted: Sequence[Settings], folder: Path) -> list[Settings]:
    """Return the wanted runs that are not in the file or failed, each once."""
    done = {study.key(row) for row in good(read_runs(study, folder))}
    return list({study.key(run): run for run in wanted if study.key(run) not in done}.values())


def _typed(study: Study, row: dict[str, str]) -> Row:
    """Return a row with its results as numbers."""
    figures = {name: float(row[name] or "nan") for name in (*study.results, "seconds")}
    return {**row, **figures}


def _append(study: Study, folder: Path, row: Row) -> None:
    """Add a row in one write, with the header before it if the file is new."""
    path = study.path(folder)
    lines = [] if path.exists() else [study.columns]
    lines.append(tuple(row.get(name, "") for name in study.columns))
    # A file that was cut off in the middle of a line gets the rest of that line first.
    start = "\n" if path.exists() and not path.read_bytes().endswith(b"\n") else ""
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(start + "".join(_as_line(cells) for cells in lines))
        file.flush()
        os.fsync(file.fileno())


class _Text(list[str]):
    """A list that takes what a CSV writer writes."""

    def write(self, text: str) -> None:
        self.append(text)


def _as_line(cells: Sequence[Any]) -> str:
    text = _Text()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return "".join(text)


_number = itertools.count(1)
"""Numbers of the runs of this process."""


def _do(study: Study, run: Settings) -> Row:
    """Do one run; a failure becomes part of its row."""
    if next(_number) % MANY_RUNS == 0:
        _forget_programs()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found: Row = {name: f"{value:.6g}" for name, value in study.run(run).items()}
        except Exception as problem:
            found = {"error": _one_line(problem)}
    return run | found | _went(time.perf_counter() - start)


def _forget_programs() -> None:
    """Free the memory of compiled programs: a process may have only so many pieces of it."""
    # Imported when asked for: whoever only reads results needs no JAX.
    import jax

    jax.clear_caches()
    gc.collect()


def _went(seconds: float) -> Row:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"seconds": f"{seconds:.3f}", "version": censored_gp.__version__, "finished": stamp}


def _one_line(problem: BaseException) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]


def _one_by_one(study: Study, runs: Sequence[Settings]) -> Generator[Row, None, None]:
    for run in runs:
        yield _do(study, run)


def _in_a_pool(study: Study, runs: Sequence[Settings], jobs: int) -> Generator[Row, None, None]:
    """Yield rows as workers finish them; runs are handed out in order, as workers come free."""
    waiting, under_way = iter(runs), dict[Future[Row], Settings]()
    # Forked processes would share locks that JAX holds.
    spawn = multiprocessing.get_context("spawn")
    workers = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_parent)
    with _environment(ONE_THREAD), workers as pool:
        try:
            for run in waiting:
                under_way[pool.submit(_do, study, run)] = run
                if len(under_way) >= 2 * jobs:
                    yield from _finished(under_way)
            while under_way:
                yield from _finished(under_way)
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Make a worker end when the process that asked for its runs is gone, however that ended."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _finished(under_way: dict[Future[Row], Settings]) -> Iterator[Row]:
    """Wait for at least one run, and yield the rows of those that are done."""
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        run, problem = under_way.pop(future), future.exception()
        # A worker that dies takes its runs with it: they are tried again the next time.
        yield future.result() if problem is None else run | {"error": _one_line(problem)} | _went(0)


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _bar(name: str, total: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """Yield a function to be called after each run, which moves a bar on a terminal."""
    # Imported when asked for: rich is slow to load.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, quiet=not wanted)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    columns = (*columns, TimeElapsedColumn(), TextColumn("to go"), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        line = bar.add_task(name, total=total)
        yield lambda: bar.advance(line)
