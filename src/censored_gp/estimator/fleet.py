"""Fleets: one model for each of many independent groups of rows, such as stores or cities.

The groups are fitted in batches of one padded shape, so that a worker compiles its programs once.
joblib runs the batches: on the cores of one machine or, by `joblib.parallel_config`, on a cluster.
A batch is given a path and row groups of a Parquet file instead of data. It writes its results to
Parquet files, the summary last and each under its final name only when it is complete: a batch is
done if its summary is there, and a run that was killed goes on from where it was.

The first groups start from values of their own. All others start from the medians of their fitted
kernels, whichever group is finished first: the result does not depend on the order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import sys
import time as stopwatch
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import joblib
import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float, Int, Shaped
from pyarrow import parquet
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from censored_gp.data import time as clock
from censored_gp.data.errors import DataError
from censored_gp.data.files import PARQUET_ENDINGS, open_table
from censored_gp.data.tables import Table, is_table, read_columns, read_table
from censored_gp.estimator.analysis.forecast import forecast_table, time_column
from censored_gp.estimator.analysis.lost_demand import group_cells, summarise
from censored_gp.estimator.persistence import replacing
from censored_gp.estimator.presets import HMOCGP, load
from censored_gp.estimator.settings import check_probability, check_settings
from censored_gp.estimator.training import TrainingData, read_training
from censored_gp.kernels.base import Kernel
from censored_gp.model.compilation import bucket
from censored_gp.model.starting_values import observed_correlation

Kernels = dict[str, tuple[Kernel, ...]]
Cells = tuple[Int[np.ndarray, " K"], Int[np.ndarray, " K"]]
"""Rows and outputs of K cells."""
compute: Any = pyarrow.compute

KINDS = ("imputed", "lost_demand", "forecast", "summary")
"""The tables of a fleet: each is a folder of Parquet files, one for each batch."""
GROUP = "group"
"""The column that tells the groups apart, where they came as a list."""
PILOTS = 8
"""Groups that start from values of their own, and whose medians the others start from."""
BATCH_CELLS = 20_000
"""A batch has at most this many cells, or one group: what is lost when a run is killed."""
MOST_SHAPES = 16
"""A worker drops its compiled programs after this many shapes, as they take up memory maps."""
SECONDS_PER_LINE = 5
"""Without a terminal, progress is a line after at least this many seconds."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True)
class Fleet:
    """The results of `fit_many`, which are read from its folder.

    Attributes
    ----------
    folder : path
        Where the results are: a folder of Parquet files for each of the tables below.
    backend : str
        What tables are returned as: "pandas", "polars", "pyarrow" or "dict".
    """

    folder: Path
    backend: str = "pyarrow"

    @property
    def summary(self) -> Any:
        """A row for each group: how its fit ended, its lost demand, seconds, and words."""
        return self._table("summary")

    @property
    def imputed(self) -> Any:
        """A row for each cell that is not exact: what was recorded, the mean, an interval."""
        return self._table("imputed")

    @property
    def lost_demand(self) -> Any:
        """A row for each group and output, as `CensoredGP.lost_demand` has it."""
        return self._table("lost_demand")

    @property
    def forecast(self) -> Any:
        """Forecasts of all groups, as `CensoredGP.forecast` has them."""
        return self._table("forecast")

    def _table(self, kind: str) -> Any:
        files = sorted((self.folder / kind).glob("*.parquet"))
        parts = [parquet.read_table(file) for file in files]
        made = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        return Table(made, self.backend).native()

    def __str__(self) -> str:
        files = (self.folder / "summary").glob("*.parquet")
        status = (parquet.read_table(f, columns=["status"])["status"].to_pylist() for f in files)
        found = Counter(word for batch in status for word in batch)
        words = ", ".join(f"{count} {word}" for word, count in sorted(found.items()))
        return f"{sum(found.values())} groups in {self.folder}: {words or 'none is done'}"


@dataclass(frozen=True)
class Group:
    """A group of rows: its name, its size, and the row groups of each file that hold it."""

    name: Any
    rows: int
    outputs: int
    places: tuple[tuple[str, int], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and padded rows: groups of one shape share compiled programs."""
        return self.outputs, bucket(-(-self.rows // self.outputs))


@dataclass(frozen=True)
class Work:
    """What all batches have in common."""

    model: Any
    columns: Mapping[str, Any]
    by: str
    folder: Path
    zone: str | None
    periods: int
    probability: float
    samples: int
    parent: tuple[str, int]
    start: Kernels | None = None

    def file(self, kind: str, number: int) -> Path:
        """Return the file of a batch."""
        return self.folder / kind / f"{number:06d}.parquet"

    def pilot(self, number: int) -> Path:
        """Return the model file of a batch from whose kernels others start."""
        return self.folder / "pilots" / f"{number:06d}.cgp"


def fit_many(
    data: Any,
    model: Any = None,
    *,
    save: str | os.PathLike[str],
    outputs: Any,
    by: str | None = None,
    series: str | None = None,
    time: str | None = None,
    inputs: Any = None,
    censored: Any = None,
    capacity: Any = None,
    lower: Any = None,
    upper: Any = None,
    side: str = "right",
    zone: str | None = None,
    periods: int = 0,
    probability: float = 0.9,
    samples: int = 100,
    n_jobs: int | None = None,
    progress: bool = True,
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
    by : name
        The column that tells the groups apart; without it `data` has a table for each group.
    series : name, optional
        Of long tables, with a row for each output and time: the column that tells outputs apart.
        It is what `CensoredGP.fit` calls `by`.
    outputs, time, inputs, censored, capacity, lower, upper, side
        Names of columns (or numbers), as in `CensoredGP.fit`.
    zone : str, optional
        Time zone of the times.
    periods : int
        How many times ahead are forecast.
    probability, samples : float, int
        Probability of the intervals, and joint draws behind those of lost demand.
    n_jobs : int, optional
        Worker processes, -1 for one on each core. By default, and where
        `joblib.parallel_config(backend="dask")` says so, what joblib is configured for.
    progress : bool
        Whether to show a bar, or a line every few seconds where there is no terminal.

    Examples
    --------
    >>> from censored_gp import CGP
    >>> shops = {"north": {"day": [1.0, 2, 3, 4], "sold": [1.0, 3, 3, 2]},
    ...          "south": {"day": [1.0, 2, 3, 4], "sold": [2.0, 3, 2, 1]}}
    >>> fleet = fit_many(shops, CGP(), save="shops", outputs="sold", time="day", capacity=3,
    ...                  progress=False)
    >>> print(fleet)
    2 groups in shops: 2 converged
    >>> [(row["group"], row["day"]) for row in fleet.imputed.to_pylist()]
    [('north', 2.0), ('north', 3.0), ('south', 2.0)]
    """
    check_probability(probability)
    folder, model = Path(save), HMOCGP() if model is None else model
    check_settings(clone(model))
    if periods and time is None:
        raise ValueError(f"`periods` must be 0 where no `time` is given, got {periods}.")
    columns = {
        "outputs": outputs, "by": series, "time": time, "inputs": inputs, "censored": censored,
        "capacity": capacity, "lower": lower, "upper": upper, "side": side,
    }  # fmt: skip
    for kind in (*KINDS, "pilots"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*/.*.part"):
        left.unlink(missing_ok=True)
    here = platform.node(), os.getpid()
    answers = zone, periods, probability, samples
    work = Work(model, columns, by or GROUP, folder, *answers, here)
    paths, backend, content = _as_parquet(data, by, work)
    _check_same(folder, repr((model.get_params(), columns, by, answers, content)))
    groups = find_groups(paths, work.by, series, outputs)
    _run(work, *make_batches(groups), n_jobs, progress)
    return Fleet(folder, backend)


def _as_parquet(data: Any, by: str | None, work: Work) -> tuple[list[Path], str, Any]:
    """Return the Parquet files of the data, its backend, and what identifies its content."""
    several = data if isinstance(data, list | tuple) else [data]
    if several and all(isinstance(each, str | os.PathLike) for each in several):
        found = [sorted(p.rglob("*.parquet")) if p.is_dir() else [p] for p in map(Path, several)]
        paths = [path for some in found for path in some]
        if paths and all(path.name.lower().endswith(PARQUET_ENDINGS) for path in paths):
            if by is None:
                raise ValueError("`by` must name the column of the groups, got None.")
            sizes = [(str(path), path.stat().st_size) for path in paths]
            return paths, "pyarrow", sizes
        several = [open_table(path) for path in paths]
    elif isinstance(data, Mapping) and by is None and all(map(is_table, data.values())):
        several = list(data.values())
    elif is_table(data) or isinstance(data, Mapping):
        several = [data]
    if not several or (len(several) == 1 and by is None):
        raise ValueError("`data` must be one table and `by` a column of it, or several tables.")
    tables = [_typed(read_table(each), work) for each in several]
    parts = [table.arrow.select(table.names) for table in tables]
    if by is None:
        names = list(data) if isinstance(data, Mapping) else list(range(len(parts)))
        labels = [pa.array([name] * len(part)) for name, part in zip(names, parts, strict=True)]
        parts = [part.append_column(GROUP, c) for part, c in zip(parts, labels, strict=True)]
    try:
        whole = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"got columns of different kinds ({error}).", "Tables") from error
    encoded = whole[_known(work.by, whole.column_names)].combine_chunks().dictionary_encode()
    order = np.argsort(encoded.indices.fill_null(-1).to_numpy(), kind="stable")
    sizes = np.bincount(encoded.indices.drop_null().to_numpy(), minlength=1)
    whole = whole.take(order).combine_chunks()
    path, start = work.folder / "input.parquet", len(whole) - int(sizes.sum())
    with replacing(path) as draft, parquet.ParquetWriter(draft, whole.schema) as writer:
        # A row group for each group: it is all that a batch must read. Rows of none come first.
        writer.write_table(whole.slice(0, start))
        for size in sizes:
            writer.write_table(whole.slice(start, int(size)))
            start += int(size)
    digest = hashlib.sha256(Table(whole.replace_schema_metadata()).to_bytes()).hexdigest()
    return [path], tables[0].backend, digest


def _typed(table: Table, work: Work) -> Table:
    """Return a table with numbers instead of text that reads as numbers throughout."""
    keys = (work.by, work.columns["by"], work.columns["time"])
    for name in table.names:
        if name not in (*keys, *table.unreadable) and pa.types.is_string(table.arrow[name].type):
            with contextlib.suppress(DataError):
                table = table.with_column(name, table.numbers(name, "Column"))
    return table


def _known(name: str, names: Sequence[str]) -> str:
    """Return the name of a column, which must be there."""
    if name not in names:
        raise DataError(f"must be a column of the table ({', '.join(names)}), got {name!r}.",
                        argument="by")  # fmt: skip
    return name


def _check_same(folder: Path, settings: str) -> None:
    """Refuse a folder that holds the results of other data or settings; else say whose it is."""
    path = folder / "settings.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != settings:
        raise ValueError(
            f"`save` must be a new folder or that of an earlier run with the same data and "
            f"settings, got {folder}, which holds results of others."
        )
    with replacing(path) as draft:
        draft.write_text(json.dumps(settings), encoding="utf-8")


def find_groups(paths: Sequence[Path], by: str, series: str | None, outputs: Any) -> list[Group]:
    """Return the groups of Parquet files, in the order in which they come first."""
    found: dict[Any, list[Any]] = {}
    wide = 1 if isinstance(outputs, str) else len(outputs)
    for path in paths:
        file = parquet.ParquetFile(path)
        for name in (by, series or by):
            _known(name, file.schema_arrow.names)
        for place in range(file.num_row_groups):
            keys = file.read_row_group(place, columns=list({by, series or by}))
            names = keys[by].combine_chunks()
            if names.null_count:
                row = int(np.argmax(names.is_null()))
                said = f"got no value in row group {place}. There must be one in every row."
                raise DataError(said, "Column", by, row, file=str(path))
            labels = keys[series or by]
            for name in compute.unique(names).to_pylist():
                own = compute.equal(names, name)
                rows, places, kinds = found.setdefault(name, [0, [], set()])
                found[name][0] = rows + own.true_count
                places.append((str(path), place))
                if series is not None:
                    kinds.update(compute.unique(labels.filter(own)).to_pylist())
    return [
        Group(name, rows, len(kinds) or wide, tuple(places))
        for name, (rows, places, kinds) in found.items()
    ]


def make_batches(groups: Sequence[Group]) -> tuple[int, list[list[Group]]]:
    """Return how many pilots there are, and batches: the pilots first, then by shape.

    Pilots are spread over all shapes; large groups come early, so that no worker is left with one.

    >>> groups = [Group(name, 100, 1, ()) for name in "abcdefgh"]
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


def _run(
    work: Work, pilots: int, batches: list[list[Group]], n_jobs: int | None, wanted: bool
) -> None:
    """Do the batches that are not done: the pilots, and then the others."""
    missing = [k for k in range(len(batches)) if not work.file("summary", k).exists()]
    sizes = [sum(group.rows for group in batches[k]) for k in missing]
    with progress_of(len(batches) - len(missing), len(batches), sum(sizes), wanted) as advance:
        pool = joblib.Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
        for first in (True, False):
            if not first:
                work = dataclasses.replace(work, start=median_kernels(work, pilots))
            now = [k for k in missing if (k < pilots) == first]
            task = joblib.delayed(_do_batch)
            for done, failed in pool(task(work, k, batches[k], k < pilots) for k in now):
                advance(done, failed)


def median_kernels(work: Work, pilots: int) -> Kernels | None:
    """Return the median hyper-parameters of the pilots' kernels, of those most pilots have."""
    models = [load(work.pilot(k)).posterior_.model for k in range(pilots) if work.pilot(k).exists()]
    several = [{role: lmc.kernels for role, lmc in model.priors.items()} for model in models]
    if not several:
        return None
    structures = [jax.tree.structure(kernels) for kernels in several]
    common = max(structures, key=structures.count)
    alike = [k for k, own in zip(several, structures, strict=True) if own == common]

    def median(*leaves: Float[np.ndarray, "B ..."]) -> Float[np.ndarray, "..."]:
        return np.exp(np.median(np.log(np.concatenate(leaves)), axis=0))

    return jax.tree.map(median, *alike)


SHAPES: set[tuple[int, int]] = set()
"""The shapes of which this process holds compiled programs."""


def _do_batch(work: Work, number: int, groups: list[Group], pilot: bool) -> tuple[int, int]:
    """Fit the groups of a batch and write their results; return its rows and how many failed."""
    if work.parent != (platform.node(), os.getpid()):
        # XLA reads these when it computes for the first time in this process.
        os.environ.setdefault("NPROC", "1")
        if "multi_thread_eigen" not in (flags := os.environ.get("XLA_FLAGS", "")):
            os.environ["XLA_FLAGS"] = f"{flags} {ONE_THREAD}".strip()
    if len(SHAPES | {groups[0].shape}) > MOST_SHAPES:
        jax.clear_caches()
        SHAPES.clear()
    SHAPES.add(groups[0].shape)
    found: dict[str, list[pa.Table]] = {kind: [] for kind in KINDS}
    with threadpool_limits(1):
        for group in groups:
            made = _do_group(work, group, work.pilot(number) if pilot else None)
            for kind, table in made.items():
                names = pa.array([group.name] * len(table))
                found[kind].append(table.add_column(0, work.by, names))
    for kind in KINDS:
        if found[kind]:
            whole = pa.concat_tables(found[kind], promote_options="permissive")
            with replacing(work.file(kind, number)) as draft:
                parquet.write_table(whole, draft)
    failed = sum(table["status"][0].as_py() in ("fallback", "failed") for table in found["summary"])
    return sum(group.rows for group in groups), failed


def _do_group(work: Work, group: Group, pilot: Path | None) -> dict[str, pa.Table]:
    """Fit one group; return its tables, those of the fallback if the fit fails."""
    began, model = stopwatch.perf_counter(), clone(work.model).set_params(progress=False)
    table, made, summary = None, {}, {"status": "failed", "rows": group.rows}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            table = _read(work, group)
            model.fit(table, start=work.start, **work.columns)
            summary["status"], words = model.report_.status, str(model.report_)
            if summary["status"] == "interrupted":
                raise KeyboardInterrupt
            if not np.isfinite(model.elbo_):
                raise FloatingPointError(words)
            made = _answers(work, model)
            summary |= {"elbo": model.elbo_, "iterations": model.n_iter_}
            if pilot is not None:
                model.save(pilot)
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())
            # Without a table that can be read there is nothing to fill.
            with contextlib.suppress(Exception):
                made = _fallback(work, model, table)
                summary["status"] = "fallback"
    notes = [" ".join(str(w.message).split()) for w in caught if issubclass(w.category, UserWarning)]
    words = " ".join(dict.fromkeys([words, *(note for note in notes if note not in words)]))
    lost = made.get("lost_demand", pa.table({}))
    for name in ("cells", "censored", "observed", "lost"):
        summary[name] = compute.sum(lost[name]).as_py() if name in lost.column_names else None
    summary |= made.pop("total", {})
    summary |= {"seconds": stopwatch.perf_counter() - began, "words": words}
    order = ("status", "rows", "cells", "censored", "observed", "lost", "lost_low", "lost_high",
             "elbo", "iterations", "seconds", "words")  # fmt: skip
    return made | {"summary": pa.table({name: [summary.get(name)] for name in order})}


def _read(work: Work, group: Group) -> Table:
    """Return the rows of a group, with its times read."""
    names = list(parquet.read_schema(group.places[0][0]).names)
    parts = []
    for path in dict.fromkeys(path for path, _ in group.places):
        own = [place for file, place in group.places if file == path]
        parts.append(parquet.ParquetFile(path).read_row_groups(own, columns=_used(work, names)))
    arrow = pa.concat_tables(parts)
    if len(arrow) > group.rows:
        arrow = arrow.filter(compute.equal(arrow[work.by], group.name))
    table, time = Table(arrow.drop_columns([work.by])), work.columns["time"]
    return table if time is None else table.with_times(time, work.zone, work.columns["by"])


def _used(work: Work, names: list[str]) -> list[str]:
    """Return the columns that the arguments of the fit name, of those that there are."""
    given = list(work.columns.values())
    for several in work.columns.values():
        given += several.values() if isinstance(several, Mapping) else ()
        given += several if isinstance(several, list | tuple) else ()
    return [name for name in names if name == work.by or name in [g for g in given if isinstance(g, str)]]


def _answers(work: Work, model: Any) -> dict[str, Any]:
    """Return what a fitted model says: imputed cells, lost demand and forecasts."""
    data, made = model.training_, {}
    row, output = np.nonzero(~data.seen.is_exact)
    if len(row):
        rows, place = np.unique(row, return_inverse=True)
        found = model.imputation(rows)
        figures = [part[place, output] for part in (found.mean, *found.interval(work.probability))]
        made["imputed"] = _cells_table(work, data, (row, output), figures)
    if model.use_censoring:
        ask = work.probability, work.samples
        made["lost_demand"] = model.lost_demand("output", *ask)
        total = model.lost_demand(None, *ask).to_pylist()[0]
        made["total"] = {name: total[name] for name in ("lost", "lost_low", "lost_high")}
    if work.periods:
        made["forecast"] = model.forecast(work.periods, probability=work.probability)
    return made


def _cells_table(
    work: Work, data: TrainingData, cells: Cells, figures: Sequence[Shaped[np.ndarray, " K"]]
) -> pa.Table:
    """Return cells of the training data with the value, low and high that were found for them."""
    known, (row, output), time = data.observations, cells, work.columns["time"]
    lower, upper = known.lower[cells], known.upper[cells]
    value, low, high = (np.clip(part, lower, upper) for part in figures)
    # The first row of the table that is about each row of the model.
    first = np.unique(data.rows.row, return_index=True)[1][row]
    keys = {"row": pa.array(first)}
    if time is not None:
        keys = {time: data.rows.index.array(time, "Time").take(first)}
    labels = pa.array(list(data.labels)).take(pa.array(output))
    bounds = [pa.array(np.where(np.isfinite(b), b, np.nan), from_pandas=True) for b in (lower, upper)]
    found = [pa.array(part, from_pandas=True) for part in (value, low, high)]
    names = ("at_least", "at_most", "value", "low", "high")
    return pa.table(keys | {data.output_label: labels} | dict(zip(names, [*bounds, *found])))


def _fallback(work: Work, model: Any, table: Table) -> dict[str, Any]:
    """Return answers of means over exact cells of the same hour of the week; no intervals."""
    data = read_training(model, table, **work.columns)
    model.training_, known = data, data.observations
    typical = _typical(data)
    cells = row, output = np.nonzero(~known.is_exact)
    own = typical(data.times)[cells] if data.times is not None else typical(None)[cells]
    nothing = np.full(len(row), np.nan)
    made: dict[str, Any] = {}
    if len(row):
        made["imputed"] = _cells_table(work, data, cells, (own, nothing, nothing))
    right = known.is_right[cells]
    lost = np.maximum(own[right] - known.lower[known.is_right], 0.0)
    figures = summarise(known, lost[None], group_cells(data, "output"), work.probability)
    made["lost_demand"] = data.table(
        {k: np.full(len(v), np.nan) if k.endswith(("_low", "_high")) else v for k, v in figures.items()}
    )
    if work.periods:
        c, name = time_column(model)
        past = data.columns.values(data.columns.names[c], data.inputs)
        wall, instants = clock.times_ahead(past, work.periods, None, data.columns.zones[c])
        mean = typical(wall)
        unknown = np.full_like(mean, np.nan)
        made["forecast"] = forecast_table(model, (mean, unknown, unknown), c, name, wall, instants)
    return made


def _typical(data: TrainingData) -> Callable[[Any], Float[np.ndarray, "N D"]]:
    """Return the function of times that gives the mean of exact cells in that hour of the week.

    An hour without any has the mean of all hours; an output without any, that of its bounds.
    """
    known = data.observations
    values = np.where(known.is_exact, known.lower, np.nan)

    def hour(times: Any) -> Int[np.ndarray, " N"]:
        if times is None:
            return np.zeros(len(values), dtype=int)
        return times.astype("datetime64[h]").astype(np.int64) % 168

    slot, seen = hour(data.times), ~np.isnan(values)
    total, count = np.zeros((168, values.shape[1])), np.zeros((168, values.shape[1]))
    np.add.at(total, slot, np.where(seen, values, 0.0))
    np.add.at(count, slot, seen)
    bounds = np.where(np.isfinite(known.lower), known.lower, 0.0).mean(axis=0)
    overall = np.where(count.any(0), total.sum(0) / np.maximum(count.sum(0), 1), bounds)
    means = np.where(count > 0, total / np.maximum(count, 1), overall)
    return lambda times: means[hour(times)]


@contextlib.contextmanager
def progress_of(
    done: int, batches: int, cells: int, wanted: bool
) -> Iterator[Callable[[int, int], None]]:
    """Yield the function that is told of finished rows and of failures: a bar, or lines.

    The time that is left is estimated by the rows, as far as they were done in this run.
    """
    # Imported on demand: rich is slow to load.
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    console, began, shown, failures, rows = Console(stderr=True), stopwatch.monotonic(), 0.0, 0, 0
    bar = Progress(
        BarColumn(), "{task.description}", console=console,
        disable=not wanted or not console.is_terminal,
    )  # fmt: skip
    line = bar.add_task("starting", total=cells)

    def advance(size: int, failed: int) -> None:
        nonlocal done, shown, failures, rows
        done, rows, failures = done + 1, rows + size, failures + failed
        spent = stopwatch.monotonic() - began
        left = spent * (cells - rows) / max(rows, 1)
        said = f"{done} of {batches} batches, {failures} groups failed, {_minutes(spent)} so far, "
        said += f"about {_minutes(left)} left"
        bar.update(line, description=said, completed=rows)
        if wanted and bar.disable and (spent - shown >= SECONDS_PER_LINE or done == batches):
            shown = spent
            print(said, file=sys.stderr, flush=True)

    with bar:
        yield advance


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def group_outputs(data: Any, most: int) -> list[list[Any]]:
    """Return outputs in groups of at most `most`, the most correlated ones together.

    Groups are merged by their mean absolute correlation, the highest first, as long as they are not
    too large. Outputs of a table are named, those of an array numbered; NaN is missing.

    >>> a, b = [1.0, 2, 3, 4, 5, 6], [1.0, -1, 1, -1, 1, -1]
    >>> group_outputs({"a": a, "b": b, "c": [2 * x for x in a], "d": b}, most=2)
    [['a', 'c'], ['b', 'd']]
    """
    if not isinstance(most, int | np.integer) or most < 1:
        raise ValueError(f"`most` must be a positive integer, got {most!r}.")
    found, named = read_columns(data, "Output")
    values = np.stack([column.numbers("Output") for column in found], axis=1)
    groups = [[d] for d in range(len(found))]
    alike = np.abs(observed_correlation(values))
    np.fill_diagonal(alike, -1.0)
    while len(groups) > 1:
        sizes = np.array([len(group) for group in groups])
        allowed = np.where(sizes[:, None] + sizes > most, -1.0, alike)
        i, j = sorted(np.unravel_index(int(np.argmax(allowed)), allowed.shape))
        if allowed[i, j] < 0.0:
            break
        merged = (sizes[i] * alike[i] + sizes[j] * alike[j]) / (sizes[i] + sizes[j])
        alike[i], alike[:, i] = merged, merged
        alike[i, i] = -1.0
        alike = np.delete(np.delete(alike, j, axis=0), j, axis=1)
        groups[i] += groups.pop(j)
    return [[found[d].name if named else d for d in sorted(group)] for group in groups]
