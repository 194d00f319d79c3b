"""Fleets: one model for each of many independent groups of rows, such as stores or cities.

The groups are fitted in batches of one padded shape, so that a worker compiles its programs once.
joblib runs the batches: on the cores of one machine or, by `joblib.parallel_config`, on a cluster.
A batch is given paths of Parquet files, of which it reads its own rows. It writes its results to
Parquet files, the summary last and each under its final name only when it is complete: a batch is
done if its summary is there, and a run that was killed goes on from where it was.

The first groups start from values of their own. All others start from the medians of their fitted
kernels, whichever group is finished first: the result does not depend on the order.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import os
import platform
import re
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import joblib
import numpy as np
import pyarrow as pa
from pyarrow import dataset, parquet
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from censored_gp.data.errors import DataError, listed, not_among
from censored_gp.data.files import PARQUET_ENDINGS, open_table
from censored_gp.data.layout import columns_used
from censored_gp.data.tables import Table, is_table, read_columns
from censored_gp.estimator.analysis.diagnose import calendar_means, fill
from censored_gp.estimator.analysis.lost_demand import group_cells, summarise
from censored_gp.estimator.persistence import replacing
from censored_gp.estimator.presets import HMOCGP, load
from censored_gp.estimator.progress import progress_bar
from censored_gp.estimator.settings import check_settings
from censored_gp.estimator.training import read_training
from censored_gp.model.compilation import bucket
from censored_gp.model.starting_values import observed_correlation
from censored_gp.prediction.predictive import check_probability

# The tables of a fleet: each is a folder of Parquet files, one for each batch.
KINDS = ("imputed", "lost_demand", "forecast", "summary")
# Arguments of `CensoredGP.fit` about columns, beside `outputs` and `by`.
COLUMNS = (
    *("time", "inputs", "censored", "capacity", "lower", "upper", "exposure", "side"),
    *("rounded", "own_inputs", "holidays"),
)
# What the summary says of groups without a model: with simple estimates instead, or with none.
NOT_FITTED = ("fallback", "failed")
# The column that tells the groups apart, where they came as a list.
GROUP = "group"
# At most so many groups start from values of their own; the others start from their medians.
PILOTS = 8
# A batch has at most this many cells, or one group: what is lost when a run is killed.
BATCH_CELLS = 20_000
# A worker drops its compiled programs after this many shapes, as they take up memory maps.
MOST_SHAPES = 16
# Options of mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True)
class Fleet:
    """The results of `fit_many`, which are read from its folder.

    - `summary`: a row for each group: how its fit ended, its lost demand, seconds, and words;
    - `imputed`: a row for each cell that is not exact: its bounds, the mean, an interval;
    - `lost_demand`: a row for each group and output, as `CensoredGP.lost_demand` has it;
    - `forecast`: as `CensoredGP.forecast` has it.

    Attributes
    ----------
    folder : path
        Where the results are: a folder of Parquet files for each of these tables.
    backend : str
        What tables are returned as: "pandas", "polars", "pyarrow" or "dict".

    Examples
    --------
    >>> print(Fleet("nowhere"))
    0 groups in nowhere: none is done
    """

    folder: str | Path
    backend: str = "pyarrow"

    def read(self, kind: str = "summary") -> Any:
        """Return one of the tables."""
        if kind not in KINDS:
            raise not_among("kind", kind, KINDS)
        files = sorted(Path(self.folder, kind).glob("*.parquet"))
        nothing = pa.table({"status": pa.array([], pa.string())})
        parts = [parquet.read_table(file) for file in files] or [nothing]
        return Table(pa.concat_tables(parts, promote_options="permissive"), self.backend).native()

    def __str__(self) -> str:
        rows = Fleet(self.folder).read().to_pylist()
        found = Counter(row["status"] for row in rows)
        words = ", ".join(f"{count} {word}" for word, count in sorted(found.items()))
        why = next((row["words"] for row in rows if row["status"] in NOT_FITTED), "")
        why = f". The first that was not fitted: {why}" if why else ""
        return f"{len(rows)} groups in {self.folder}: {words or 'none is done'}{why}"


@dataclass(frozen=True)
class Group:
    """A group of rows: its name and its size."""

    name: Any
    rows: int
    outputs: int

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and padded rows: groups of one shape share compiled programs."""
        return self.outputs, bucket(-(-self.rows // self.outputs))


@dataclass(frozen=True)
class Work:
    """What all batches have in common; `columns` are arguments of `CensoredGP.fit`."""

    model: Any
    columns: Mapping[str, Any]
    by: str
    folder: Path
    paths: tuple[str, ...]
    zone: str | None
    periods: int
    probability: float
    samples: int
    start: Any = None
    parent: tuple[str, int] = (platform.node(), os.getpid())

    def file(self, kind: str, number: int, ending: str = "parquet") -> Path:
        """Return the file of a batch."""
        return self.folder / kind / f"{number:06d}.{ending}"


def fit_many(
    data: Any,
    model: Any = None,
    *,
    save: str | os.PathLike[str],
    outputs: Any,
    by: str | None = None,
    series: str | None = None,
    zone: str | None = None,
    periods: int = 0,
    probability: float = 0.9,
    samples: int = 100,
    n_jobs: int | None = None,
    progress: bool = True,
    **columns: Any,
) -> Fleet:
    """Fit a model to each of many groups of rows; write what they say to a folder.

    A second call with the same arguments does what is left of an earlier one. A group whose fit
    fails is a row of the summary with the reason, and its cells are filled with means of the
    same hour of the week.

    Parameters
    ----------
    data : path, data frame, list of tables, or dict of tables by name
        One table of all groups: a Parquet file, a folder or a list of them, a CSV file, or a data
        frame. Or a table for each group. Parquet files are read where they are, a few row groups at
        a time; sort them by group. Everything else is written to the folder once.
    model : CensoredGP, optional
        The settings of the models; `HMOCGP()` by default.
    save : path
        The folder of the results; it is made if need be.
    outputs : name or list of names
        The columns of outputs; of long tables, the one column of values.
    by : name
        The column that tells the groups apart; without it `data` has a table for each group.
    series : name, optional
        Of long tables, with a row for each output and time: the column that tells outputs apart.
        It is what `CensoredGP.fit` calls `by`.
    zone : str, optional
        Time zone of the times.
    periods : int
        How many times ahead are forecast.
    probability, samples : float, int
        Probability of the intervals, and joint draws behind those of lost demand.
    n_jobs : int, optional
        Worker processes, -1 for one on each core; None: what joblib is configured for, such as
        `joblib.parallel_config(backend="dask")`.
    progress : bool
        Whether to show a bar, or a line every few seconds where there is no terminal.
    **columns
        `time`, `inputs`, `censored`, `capacity`, `lower`, `upper`, `exposure`, `side` and
        `rounded`: names of columns (or numbers), as in `CensoredGP.fit`.

    Examples
    --------
    >>> from censored_gp import CGP
    >>> shops = {"north": {"day": [1.0, 2, 3, 4], "sold": [1.0, 3, 3, 2]},
    ...          "south": {"day": [1.0, 2, 3, 4], "sold": [2.0, 3, 2, 1]}}
    >>> fleet = fit_many(shops, CGP(), save="shops", outputs="sold", time="day", capacity=3,
    ...                  progress=False)
    >>> print(fleet)
    2 groups in shops: 2 converged
    >>> fleet.read("imputed")["group"].tolist(), fleet.read("imputed")["day"].tolist()
    (['north', 'north', 'south'], [2.0, 3.0, 2.0])
    """
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise TypeError(f"fit_many takes columns as {listed(COLUMNS)}, got {listed(unknown)}.")
    if periods and columns.get("time") is None:
        raise ValueError(f"`periods` must be 0 where no `time` is given, got {periods}.")
    check_probability(probability)
    folder, model = Path(save), clone(HMOCGP() if model is None else model)
    check_settings(model.set_params(progress=False))
    if model.substitution is not None:
        raise ValueError("`substitution` must be None in fit_many: fit such groups one by one.")
    for kind in (*KINDS, "pilots"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("**/.*.part"):
        stale.unlink(missing_ok=True)
    columns |= {"outputs": outputs, "by": series}
    paths, backend, content = _as_parquet(data, by, columns, folder)
    answers = zone, periods, probability, samples
    settings = repr((model.get_params(), sorted(columns.items()), by, answers, content))
    # The address of a function differs from process to process.
    settings = re.sub(" at 0x[0-9a-f]+", "", settings)
    if (known := folder / "settings.txt").exists() and known.read_text() != settings:
        raise ValueError(
            "`save` must be a new folder, or that of an earlier run with the same data and "
            f"settings, got {folder}, which holds results of others."
        )
    with replacing(known) as draft:
        draft.write_text(settings)
    work = Work(model, columns, by or GROUP, folder, paths, *answers)
    _run(work, *make_batches(find_groups(work)), n_jobs, progress)
    return Fleet(folder, backend)


def parquet_files(data: Any) -> list[Path]:
    """Return the files of paths and folders, if all of them are Parquet files."""
    several = list(data) if isinstance(data, list | tuple) else [data]
    if not all(isinstance(each, str | os.PathLike) for each in several):
        return []
    found = [sorted(p.rglob("*.parquet")) if p.is_dir() else [p] for p in map(Path, several)]
    paths = [path for some in found for path in some]
    return paths if all(path.suffix.lower() in PARQUET_ENDINGS for path in paths) else []


def _as_parquet(data: Any, by: Any, columns: dict[str, Any], folder: Path) -> tuple[Any, str, Any]:
    """Return the Parquet files of the data, its backend, and what identifies its content."""
    paths = parquet_files(data) if by is not None else []
    if paths:
        return tuple(map(str, paths)), "pyarrow", [(str(p), p.stat().st_size) for p in paths]
    several = dict(enumerate(data)) if isinstance(data, list | tuple) else {0: data}
    if isinstance(data, Mapping) and by is None and all(map(is_table, data.values())):
        several = dict(data)
    if not several or (len(several) == 1 and by is None):
        raise ValueError("`data` must be one table and `by` a column of it, or several tables.")
    parts = []
    for label, each in several.items():
        table = open_table(each)
        for name in table.names:
            # Numbers in text are read here, where it is known how a file writes them.
            is_key = name in (by, columns["by"], columns.get("time"), *table.unreadable)
            if not is_key and pa.types.is_string(table.arrow[name].type):
                with contextlib.suppress(DataError):
                    table = table.with_column(name, _numbers_or_limits(table, name))
        table = table if by else table.with_column(GROUP, pa.array([label] * len(table)))
        parts.append(table.arrow)
    # A column of numbers is text in those tables in which it has limits.
    texts = {f.name for part in parts for f in part.schema if pa.types.is_string(f.type)}
    for k, part in enumerate(parts):
        for place, (name, kind) in enumerate((f.name, f.type) for f in part.schema):
            if name in texts and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                part = part.set_column(place, name, part[name].cast(pa.string()))
        parts[k] = part
    whole = pa.concat_tables(parts, promote_options="permissive").replace_schema_metadata()
    key, table = by or GROUP, Table(whole, table.backend)
    whole = table.with_column(key, pa.array(table.labels(key).tolist())).arrow.sort_by(key)
    digest = hashlib.sha256(Table(whole).to_bytes().tobytes()).hexdigest()
    with replacing(path := folder / f"input-{digest}.parquet") as draft:
        parquet.write_table(whole, draft, row_group_size=BATCH_CELLS)
    return (str(path),), table.backend, digest


def _numbers_or_limits(table: Table, name: str) -> Any:
    """Return text as numbers or, if limits such as <0,5 are among them, with decimal points."""
    values, flags = table.readings(name, "Column")
    if not flags.any():
        return values
    return pa.array([text and text.replace(",", ".") for text in table.arrow[name].to_pylist()])


def find_groups(work: Work) -> list[Group]:
    """Return the groups, in the order of their names."""
    series, wide = work.columns["by"], np.size(work.columns["outputs"])
    source = dataset.dataset(list(work.paths), format="parquet")
    for name in (work.by, series or work.by):
        Table(source.schema.empty_table()).array(name, "Column")
    keys = source.to_table(columns=list(dict.fromkeys([work.by, series or work.by])))
    if keys[work.by].null_count:
        raise DataError("got rows without a value.", "Column", work.by)
    counts = [(series or work.by, "count_distinct"), ([], "count_all")]
    found = keys.group_by(work.by).aggregate(counts)
    rows = zip(*(found[name].to_pylist() for name in found.column_names), strict=True)
    return [Group(name, count, kinds if series else wide) for name, kinds, count in sorted(rows)]


def make_batches(groups: Sequence[Group]) -> tuple[int, list[list[Group]]]:
    """Return how many pilots there are, and batches: the pilots first, then by shape.

    Pilots are spread over all shapes; large groups come early, so that no worker is left with one.

    >>> groups = [Group(name, 100, 1) for name in "abcdefgh"]
    >>> pilots, batches = make_batches(groups)
    >>> pilots, ["".join(group.name for group in batch) for batch in batches]
    (2, ['c', 'g', 'abdefh'])
    """
    ordered = sorted(groups, key=lambda group: group.shape, reverse=True)
    pilots = min(PILOTS, len(ordered) // 4)
    places = [(2 * k + 1) * len(ordered) // (2 * pilots) for k in range(pilots)]
    batches, room = [[ordered[place]] for place in places], 0
    for group in (group for k, group in enumerate(ordered) if k not in places):
        cells = group.shape[0] * group.shape[1]
        if cells > room or batches[-1][0].shape != group.shape:
            batches.append([])
            room = BATCH_CELLS
        batches[-1].append(group)
        room -= cells
    return pilots, batches


def _run(work: Work, pilots: int, batches: list[list[Group]], jobs: Any, wanted: bool) -> None:
    """Do the batches that are not done: the pilots, and then the others."""
    missing = [k for k in range(len(batches)) if not work.file("summary", k).exists()]
    rows = [sum(group.rows for group in batch) for batch in batches]
    began, left, failures = time.monotonic(), sum(rows[k] for k in missing), 0
    done, total = len(batches) - len(missing), left
    with progress_bar(wanted) as tell:
        pool: Any = joblib.Parallel(jobs, return_as="generator_unordered")
        for pilot in (True, False):
            if not pilot:
                work = dataclasses.replace(work, start=median_kernels(work, pilots))
            now = (k for k in missing if (k < pilots) == pilot)
            tasks = (joblib.delayed(_do_batch)(work, k, batches[k], pilot) for k in now)
            for k, failed in pool(tasks):
                done, left, failures = done + 1, left - rows[k], failures + failed
                minutes = (time.monotonic() - began) / 60
                words = f"{done} of {len(batches)} batches, {failures} groups failed, {minutes:.1f}"
                words += f" min, about {minutes * left / (total - left):.1f} min left"
                tell(words, total - left, total)


def median_kernels(work: Work, pilots: int) -> Any:
    """Return medians of the pilots' kernels: of those pilots that have the most common ones."""
    files = [work.file("pilots", k, "cgp") for k in range(pilots)]
    priors = [load(file).posterior_.model.priors for file in files if file.exists()]
    several = [{role: lmc.kernels for role, lmc in each.items()} for each in priors]
    if not several:
        return None
    structures = [jax.tree.structure(kernels) for kernels in several]
    usual = max(structures, key=structures.count)
    alike = [k for k, own in zip(several, structures, strict=True) if own == usual]

    return jax.tree.map(lambda *a: np.exp(np.median(np.log(np.concatenate(a)), axis=0)), *alike)


# The shapes of which this process holds compiled programs.
SHAPES: set[tuple[int, int]] = set()


def _do_batch(work: Work, number: int, groups: list[Group], pilot: bool) -> tuple[int, int]:
    """Fit the groups of a batch and write their results; return its number and how many failed."""
    if work.parent != (platform.node(), os.getpid()):
        # XLA reads these when it computes for the first time in this process.
        os.environ.setdefault("NPROC", "1")
        if "multi_thread_eigen" not in (flags := os.environ.get("XLA_FLAGS", "")):
            os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()
        _keep_memory()
    if len(SHAPES | {groups[0].shape}) > MOST_SHAPES:
        jax.clear_caches()
        SHAPES.clear()
    SHAPES.add(groups[0].shape)
    found: dict[str, list[pa.Table]] = {kind: [] for kind in KINDS}
    with threadpool_limits(1):
        for group in groups:
            made = _do_group(work, group, work.file("pilots", number, "cgp") if pilot else None)
            for kind, table in made.items():
                found[kind].append(table.add_column(0, work.by, [[group.name] * len(table)]))
    for kind in KINDS:
        if found[kind]:
            whole = pa.concat_tables(found[kind], promote_options="permissive")
            with replacing(work.file(kind, number)) as draft:
                parquet.write_table(whole, draft)
    return number, sum(t["status"][0].as_py() in NOT_FITTED for t in found["summary"])


def _keep_memory() -> None:
    """Let the C library keep freed memory, up to 256 MB, for the next arrays.

    Dask's workers are told to give it back at once: asking for it anew then takes half of the time.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # only GNU's has this
        library = ctypes.CDLL(None)
        library.mallopt(M_TRIM_THRESHOLD, 2**28)
        library.mallopt(M_MMAP_THRESHOLD, 2**25)


def _do_group(work: Work, group: Group, pilot: Path | None) -> dict[str, pa.Table]:
    """Fit one group; return its tables, those of the fallback if the fit fails."""
    began, table, made = time.perf_counter(), Table(pa.table({})), {}
    model: Any = clone(work.model)
    summary: dict[str, Any] = {"status": "failed", "rows": group.rows}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            table = _read(work, group)
            model.fit(table, start=work.start, **work.columns)
            if model.report_.status == "interrupted":
                raise KeyboardInterrupt
            words = str(model.report_)
            if not np.isfinite(model.elbo_):
                raise FloatingPointError(words)
            made = _answers(work, model)
            if pilot is not None:
                # Settings that no file can hold give no medians.
                with contextlib.suppress(ValueError):
                    model.save(pilot)
            summary |= {"status": model.report_.status, "iterations": model.n_iter_}
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            # Of a table that cannot be read nothing is filled.
            with contextlib.suppress(Exception):
                made = _fallback(work, model, table)
                summary["status"] = "fallback"
    notes = dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning))
    words = " ".join(" ".join([words, *(n for n in notes if n not in words)]).split())
    summary |= made.pop("total", {}) | {"seconds": time.perf_counter() - began, "words": words}
    return made | {"summary": pa.table({name: [value] for name, value in summary.items()})}


def _read(work: Work, group: Group) -> Table:
    """Return the rows of a group: the columns that are named somewhere, with its times read."""
    source = dataset.dataset(list(work.paths), format="parquet")
    used = list(dict.fromkeys(columns_used(work.columns, source.schema.names)))
    own = dataset.field(work.by) == dataset.scalar(group.name)
    table = Table(source.to_table(columns=used, filter=own, use_threads=False))
    when = work.columns.get("time")
    return table if when is None else table.with_times(when, work.zone, work.columns["by"])


def _answers(work: Work, model: Any) -> dict[str, Any]:
    """Return what a fitted model says: imputed cells, lost demand and forecasts."""
    seen, made = model.training_.seen, {}
    cells = row, output = np.nonzero(~seen.is_exact)
    if len(row):
        rows, place = np.unique(row, return_inverse=True)
        found = model.imputation(rows)
        figures = found.mean, *found.interval(work.probability)
        made["imputed"] = _cells(model.training_, cells, *(part[place, output] for part in figures))
    if model.use_censoring:
        made["lost_demand"] = model.lost_demand("output", work.probability, work.samples)
        made["total"] = model.lost_demand(None, work.probability, work.samples).to_pylist()[0]
    if work.periods:
        made["forecast"] = model.forecast(work.periods, probability=work.probability)
    return made


def _cells(data: Any, cells: Any, *figures: Any) -> pa.Table:
    """Return cells of the training data, with value, low and high within their bounds."""
    known, rows, layout, (row, output) = data.observations, data.rows, data.layout, cells
    # The first row of the table that is about each row of the model.
    first = np.unique(rows.row, return_index=True)[1][row]
    made = {"row": pa.array(first)}
    if layout.time is not None:
        made = {layout.time: rows.index.array(layout.time, "Time").take(first)}
    made[data.output_label] = pa.array(list(data.labels)).take(output)
    partial = known.is_partial[cells]
    bounds = known.lower[cells], np.where(partial, np.inf, known.upper[cells])
    shown = [np.where(np.isfinite(bound), bound, np.nan) for bound in bounds]
    ends = data.seen.lower[cells], data.seen.upper[cells]
    shown += [np.where(partial, part, np.clip(part, *ends)) for part in figures]
    names = ("at_least", "at_most", "value", "low", "high")
    each = zip(names, shown, strict=True)
    return pa.table(made | {name: pa.array(part, from_pandas=True) for name, part in each})


def _fallback(work: Work, model: Any, table: Table) -> dict[str, Any]:
    """Return answers of means over exact cells of the same hour of the week; no intervals."""
    data = model.training_ = read_training(model, table, **work.columns)
    known, made = data.observations, {}
    filled = fill(known, calendar_means(known, data.times)[0])
    cells = np.nonzero(~known.is_exact)
    unknown = np.full(len(cells[0]), np.nan)
    made["imputed"] = _cells(data, cells, filled[cells], unknown, unknown)
    lost = (filled - known.recorded)[known.falls_short]
    for name, by in (("lost_demand", "output"), ("total", None)):
        figures = summarise(known, [lost[None]], group_cells(data, by), work.probability)
        figures |= {n: v * np.nan for n, v in figures.items() if n.endswith(("_low", "_high"))}
        made[name] = data.table(figures)
    made["total"] = made["total"].to_pylist()[0]
    return made


def group_outputs(data: Any, most: int) -> list[list[Any]]:
    """Return outputs in groups of at most `most`, the most correlated ones together.

    Groups are filled one after another, by mean absolute correlation. Outputs of a table are named,
    those of an array numbered; NaN is missing.

    >>> a, b = [1.0, 2, 3, 4, 5, 6], [1.0, -1, 1, -1, 1, -1]
    >>> group_outputs({"a": a, "b": b, "c": [2 * x for x in a], "d": b}, most=2)
    [['a', 'c'], ['b', 'd']]
    """
    if not isinstance(most, int | np.integer) or most < 1:
        raise ValueError(f"`most` must be a positive integer, got {most!r}.")
    found, named = read_columns(data, "Output")
    alike = np.abs(observed_correlation(np.stack([c.numbers("Output") for c in found], axis=1)))
    np.fill_diagonal(alike, 0.0)
    groups, left = [], list(range(len(found)))
    while left:
        # The output that is most correlated with another one, and then those most like its group.
        group = [left.pop(int(np.argmax(alike[np.ix_(left, left)].max(axis=1))))]
        while left and len(group) < most:
            group.append(left.pop(int(np.argmax(alike[np.ix_(group, left)].mean(axis=0)))))
        groups.append(sorted(group))
    return [[found[d].name if named else d for d in group] for group in sorted(groups)]
