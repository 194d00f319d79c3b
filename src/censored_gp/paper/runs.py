"""Many independent fits: every run a row of a CSV file, so that a study stops and resumes at will.

A run is known by its settings. What is in the file already is not run again; what failed is tried
again the next time. Workers compute with one thread each and share compiled programs on disk; as
even to load these takes longer than many a fit, a worker does runs of one program in a row, until
the others have nothing left to do.
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
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import censored_gp

__all__ = ["Row", "Settings", "Study", "complete", "read_runs"]

Settings = dict[str, Any]
"""What makes a run what it is: names and small values, which a CSV file can hold."""
Row = dict[str, Any]
"""Settings as text, results as numbers, and how the run went."""

AHEAD = 2
"""Runs that a worker has been given at a time, so that it need not wait for the next one."""
MOST_PIECES = 0.5
"""Share of the pieces of memory that a process may have, after which a worker forgets what it has
compiled (it is kept on disk): a program takes hundreds of them, and the one too many is fatal."""
MANY_PROGRAMS = 12
"""The same where the system does not tell of pieces: programs of runs."""
WENT = ("seconds", "error", "version", "finished")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    # How many threads the compiler's run time starts, which would wait for each other's cores.
    "NPROC": "1",
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
    varied: tuple[str, ...] = ()
    """Settings that differ between runs of one and the same program: draws, say."""

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

    def program(self, run: Settings) -> tuple[str, ...]:
        """Return what the programs of a run are known by."""
        return tuple(str(run[name]) for name in self.settings if name not in self.varied)


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
    _same_columns(study, study.path(folder))
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
    figures = {name: float(row.get(name) or "nan") for name in (*study.results, "seconds")}
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


def _same_columns(study: Study, path: Path) -> None:
    """Refuse a file with other columns: figures would end up under the wrong heading."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as lines:
        found = tuple(next(csv.reader(lines), ()))
    if found and found != study.columns:
        raise ValueError(
            f"{path}: found the columns {', '.join(found)}; these runs have "
            f"{', '.join(study.columns)}. Move the file away, or choose another folder."
        )


class _Text(list[str]):
    """A list that takes what a CSV writer writes."""

    def write(self, text: str) -> None:
        self.append(text)


def _as_line(cells: Sequence[Any]) -> str:
    text = _Text()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return "".join(text)


_programs: set[tuple[str, ...]] = set()
"""Programs of the runs that this process has done since it forgot the last ones."""


def _do(study: Study, run: Settings) -> Row:
    """Do one run; a failure becomes part of its row."""
    if study.program(run) not in _programs and _holds_much():
        _forget_programs()
    _programs.add(study.program(run))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found: Row = {name: f"{value:.6g}" for name, value in study.run(run).items()}
        except Exception as problem:
            found = {"error": _one_line(problem)}
    return run | found | _went(time.perf_counter() - start)


def _holds_much() -> bool:
    """Return whether this process has nearly as many pieces of memory as it may have."""
    try:
        most = int(Path("/proc/sys/vm/max_map_count").read_text())
        return Path("/proc/self/maps").read_bytes().count(b"\n") > MOST_PIECES * most
    except (OSError, ValueError):
        return len(_programs) >= MANY_PROGRAMS


def _forget_programs() -> None:
    """Free the memory of compiled programs: a process may have only so many pieces of it."""
    # Imported when asked for: whoever only reads results needs no JAX.
    import jax

    jax.clear_caches()
    gc.collect()
    _programs.clear()


def _went(seconds: float) -> Row:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"seconds": f"{seconds:.3f}", "version": censored_gp.__version__, "finished": stamp}


def _one_line(problem: BaseException) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]


def _one_by_one(study: Study, runs: Sequence[Settings]) -> Generator[Row, None, None]:
    for run in runs:
        yield _do(study, run)


def _in_a_pool(study: Study, runs: Sequence[Settings], jobs: int) -> Generator[Row, None, None]:
    """Yield rows as workers finish them; each worker does one stretch of runs after the other."""
    waiting = iter(_stretches(study, runs))
    with _environment(ONE_THREAD):
        workers = [_Worker(study) for _ in range(jobs)]
        try:
            while _hand_out(workers, waiting):
                under_way = [future for worker in workers for future in worker.under_way]
                wait(under_way, return_when=FIRST_COMPLETED)
                for worker in workers:
                    yield from worker.finished()
        finally:
            for worker in workers:
                worker.end()


def _stretches(study: Study, runs: Sequence[Settings]) -> list[list[Settings]]:
    """Return runs in stretches of one program, these in the order of their first runs."""
    groups: dict[tuple[str, ...], list[Settings]] = {}
    for run in runs:
        groups.setdefault(study.program(run), []).append(run)
    return [*groups.values()]


def _hand_out(workers: Sequence[_Worker], waiting: Iterator[list[Settings]]) -> bool:
    """Give every worker something to do, as long as there is; return whether there was."""
    # Each has one before any has two.
    for busy, worker in itertools.product(range(AHEAD), workers):
        if len(worker.under_way) <= busy:
            worker.own = worker.own or next(waiting, []) or _half_of_most(workers)
            if worker.own:
                worker.take(worker.own.pop(0))
    return any(worker.under_way for worker in workers)


def _half_of_most(workers: Sequence[_Worker]) -> list[Settings]:
    """Take over half of what is kept for the worker that has most of it."""
    most = max((worker.own for worker in workers), key=len)
    keep = len(most) // 2
    taken = most[keep:]
    del most[keep:]
    return taken


class _Worker:
    """A process, the runs it has been given, and those that are kept for it."""

    def __init__(self, study: Study) -> None:
        self.study, self.own = study, list[Settings]()
        self.under_way = dict[Future[Row], Settings]()
        self._pool = self._start()

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        # Forked processes would share locks that JAX holds.
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, mp_context=spawn, initializer=_end_with_parent)

    def take(self, run: Settings) -> None:
        """Do a run, after those that were given before."""
        try:
            future = self._pool.submit(_do, self.study, run)
        except BrokenExecutor:
            # Whoever had the run before is gone.
            self._pool = self._start()
            future = self._pool.submit(_do, self.study, run)
        self.under_way[future] = run

    def finished(self) -> Iterator[Row]:
        """Yield the rows of the runs that are done."""
        for future in [future for future in self.under_way if future.done()]:
            run, problem = self.under_way.pop(future), future.exception()
            # A worker that dies takes its runs with it: they are tried again the next time.
            failed = run | {"error": _one_line(problem)} | _went(0) if problem else None
            yield failed or future.result()

    def end(self) -> None:
        """Do no more than what has begun."""
        self._pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Make a worker end when the process that asked for its runs is gone, however that ended."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
