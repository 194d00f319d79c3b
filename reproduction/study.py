"""Many independent fits: each is a row of a CSV file, so that a study stops and resumes at will.

A run is identified by its settings. Runs that are in the file are not done again; those that failed
are rows with an error, and are tried again the next time.
"""

from __future__ import annotations

import csv
import itertools
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import joblib
import pandas as pd
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

import censored_gp

Settings = dict[str, Any]
"""What identifies a run: names and small values, which a CSV file can hold."""

OUTCOME = ("seconds", "error", "version", "finished")
ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",
}
"""Environment of workers, beside joblib's own limit on BLAS threads: XLA has thread pools too."""
RUNS_PER_CACHE = 40
"""Runs after which a worker drops its compiled programs (copies are on disk). Those of one fit take
a thousand memory maps, of which a process may have some 65,000."""


@dataclass(frozen=True)
class Study:
    """A kind of run: what it takes, what it gives, and the function that does it."""

    name: str
    """Name of the CSV file, without its ending."""
    settings: tuple[str, ...]
    results: tuple[str, ...]
    run: Callable[[Settings], dict[str, float]]
    """A function of a module, so that workers can import it."""

    @property
    def columns(self) -> list[str]:
        """The columns of the file."""
        return [*self.settings, *self.results, *OUTCOME]

    def path(self, folder: Path) -> Path:
        """Return the file of this study in a folder."""
        return folder / f"{self.name}.csv"

    def key(self, run: Settings) -> tuple[str, ...]:
        """Return what identifies a run."""
        return tuple(str(run[name]) for name in self.settings)

    def read(self, folder: Path) -> pd.DataFrame:
        """Return the rows of the file, the last of each run; settings and errors are text."""
        path = self.path(folder)
        if not path.is_file():
            return pd.DataFrame(columns=self.columns)
        text = dict.fromkeys((*self.settings, "error", "version", "finished"), str)
        absent = {name: ["", "nan"] for name in (*self.results, "seconds", "finished")}
        rows = pd.read_csv(path, dtype=text, keep_default_na=False, na_values=absent)
        if list(rows.columns) != self.columns:
            raise ValueError(
                f"{path} has the columns {', '.join(rows.columns)}, expected "
                f"{', '.join(self.columns)}. Move the file away, or choose another folder."
            )
        # A line that was cut off by a crash lacks its last column.
        complete = rows.dropna(subset=["finished"])
        return complete.drop_duplicates(list(self.settings), keep="last", ignore_index=True)


def finished(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of runs that did not fail."""
    return rows[rows["error"] == ""]


def complete(
    study: Study,
    wanted: Sequence[Settings],
    folder: Path,
    *,
    jobs: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Do the wanted runs that the file lacks; return the rows of all wanted ones.

    `jobs` is the number of worker processes, None for one per core. Rows are appended as they
    come, so that an interrupted study loses only what was under way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done = {study.key(row) for row in finished(study.read(folder)).to_dict("records")}
    missing = {study.key(run): run for run in wanted if study.key(run) not in done}
    jobs = max(1, min(jobs or os.cpu_count() or 1, len(missing)))
    if jobs > 1:
        for name, value in ONE_THREAD.items():
            os.environ.setdefault(name, value)
    with (
        _appending(study, folder) as file,
        _bar(study.name, len(missing), progress) as advance,
        warnings.catch_warnings(),
        joblib.parallel_config("loky", inner_max_num_threads=1),
    ):
        # joblib replaces workers whose memory has grown, as it does with compiled programs.
        warnings.filterwarnings("ignore", message="A worker stopped")
        pool = joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)
        writer = csv.DictWriter(file, study.columns, restval="", lineterminator="\n")
        for row in pool(joblib.delayed(_row)(study, run) for run in missing.values()):
            writer.writerow(row)
            file.flush()
            advance()
    asked = {study.key(run) for run in wanted}
    rows = study.read(folder)
    return rows[[study.key(row) in asked for row in rows.to_dict("records")]]


_count = itertools.count(1)


def _row(study: Study, run: Settings) -> dict[str, Any]:
    """Do one run; a failure becomes part of its row."""
    if next(_count) % RUNS_PER_CACHE == 0:
        jax.clear_caches()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result: dict[str, Any] = {name: f"{v:.6g}" for name, v in study.run(run).items()}
        except Exception as problem:
            result = {"error": " ".join(f"{type(problem).__name__}: {problem}".split())[:300]}
    return run | result | {
        "seconds": f"{time.perf_counter() - start:.3f}",
        "version": censored_gp.__version__,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip


def _appending(study: Study, folder: Path) -> Any:
    """Return the study's file, opened so that what is written next is a line of its own."""
    path = study.path(folder)
    start = path.read_bytes()[-1:] if path.exists() else b""
    file = path.open("a", encoding="utf-8", newline="")
    if not start:
        file.write(",".join(study.columns) + "\n")
    elif start != b"\n":
        file.write("\n")
    return file


class _bar(Progress):
    """A progress bar on the terminal, entered as a function that advances it by one run."""

    def __init__(self, name: str, total: int, wanted: bool) -> None:
        columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=Console(stderr=True), disable=not (wanted and total))
        self._line = self.add_task(name, total=total)

    def __enter__(self) -> Callable[[], None]:
        super().__enter__()
        return lambda: self.advance(self._line)
