"""What a fit takes, by rows and by outputs, and beside another version of the package.

    python -m benchmarks.scale [--cases rows parquet long outputs air new_york start]
        [--rows 1e3 1e4 1e5 1e6] [--outputs 8 32 128 493] [--against TREE] [--rounds 1]
        [--limit 1800]
    python -m benchmarks.scale --coupling 50 --outputs 50 493 [--ranks 1 2 8]

The second command compares coupled models of the stations, of the default rank and of others, with
models of their own.

Every case runs in a fresh process, with `--against` (a git worktree of another version, say) in
turns with that tree. CPU seconds disturb less than the clock where other programs run. A fit is
measured in its first process with no compiled programs on disk ("first"), and in a second process
that finds those of the first ("again"); where the first takes more than a minute there is no
second. Peak memory is that of the process until the fit was done. The held-out log density is the
mean over cells. The exponent is that of CPU seconds in rows or outputs, from the second size on.

The cases: Poisson MOCGP of so many hours x 2 outputs with a day, a week and a trend, from memory
("rows") or from a Parquet file that is written part by part ("parquet"); Gaussian CGP of so many
hours with a day and weather that lasts for a day or two ("long"); negative binomial MOCGP of so
many New York stations x 1,464 hours, a tenth of the cells held out; HMOCGP of four weeks of hours x
4 outputs with detection limits, log-normal and negative binomial, also with hyper-parameters taken
for certain; the paper's New York data, 732 x 2; and what comes before a fit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import HERE, Used, peak_gigabytes, run

LONG = 60.0
"""CPU seconds: a first fit that takes longer is not run again with its compiled programs."""
STATIONS = "citibike_nyc_2016-06_07_hourly_pickups_493stations.csv.gz"
SCORED = 2000
"""At most so many rows are held out, and scored."""
ROWS_OF_A_PART = 2**20
"""A Parquet file is written so many rows at a time."""
SCORED_CELLS = 100_000
"""Of stations, of which a tenth of the cells are held out, at most so many cells are looked at."""


def hourly(rows: int, seed: int = 0, part: slice = slice(None)) -> tuple[dict[str, Any], Any]:
    """Return columns of so many hours (or of a part of them) of two counts, flags, the truth."""
    rng = np.random.default_rng(seed)
    hours: Any = np.arange(rows)[part]
    wave = 0.8 * np.sin(2 * np.pi * hours / 24) + 0.3 * np.cos(2 * np.pi * hours / 168)
    trend = 0.3 * np.sin(2 * np.pi * hours / rows * 3)
    rate = np.exp(1.5 + wave[:, None] + trend[:, None] * np.array([1.0, 0.5]))
    truth = rng.poisson(rate).astype(float)
    limit = rng.poisson(1.2 * rate.mean(), rate.shape) + 1.0
    columns: dict[str, Any] = {"time": np.datetime64("2015-01-01T00") + hours}
    for d, name in enumerate("ab"):
        columns[name] = np.minimum(truth, limit)[:, d]
        columns[f"{name} at limit"] = (truth >= limit)[:, d]
    return columns, truth


def write_hourly(path: Path, rows: int) -> tuple[Any, Any]:
    """Write a Parquet file of so many hours, in parts; return times and truth of held-out hours."""
    rng, writer, held = np.random.default_rng(1), None, []
    for k, start in enumerate(range(0, rows, ROWS_OF_A_PART)):
        columns, truth = hourly(rows, k, slice(start, start + ROWS_OF_A_PART))
        columns["time"] = columns["time"].astype("datetime64[s]")
        out = rng.random(len(truth)) < min(SCORED / rows, 0.1)
        held.append((columns["time"][out], truth[out]))
        table = pa.table({name: column[~out] for name, column in columns.items()})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return tuple(map(np.concatenate, zip(*held, strict=True)))


def weather(rows: int, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Return columns of so many hours of one output: a day, weather of 24 hours, noise, a limit."""
    rng, hours = np.random.default_rng(seed), np.arange(rows)
    kernel = np.exp(-((np.arange(-144, 145) / 24.0) ** 2))
    fast = np.convolve(rng.normal(size=rows + 288), kernel / np.linalg.norm(kernel), "valid")
    truth = np.sin(2 * np.pi * hours / 24) + fast + 0.5 * rng.normal(size=rows)
    columns = {"time": np.datetime64("2015-01-01T00") + hours, "y": np.minimum(truth, 1.5)}
    return columns | {"y at limit": truth >= 1.5}, truth[:, None]


def air(counts: bool, rows: int = 747, outputs: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Return columns of hourly concentrations (or counts) below whose limit nothing is detected."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows)
    shared = 0.5 * np.sin(2 * np.pi * hours / 24) + 0.3 * np.sin(2 * np.pi * hours / 168)
    level = np.cumsum(rng.normal(size=rows)) * 0.03
    load = np.linspace(0.6, 1.2, outputs)
    mean = 2.0 + (shared + level)[:, None] * load
    noise = (0.3 + 0.15 * np.cos(2 * np.pi * hours / 24))[:, None]
    truth = np.exp(mean + noise * rng.normal(size=mean.shape))
    truth = rng.poisson(truth).astype(float) if counts else truth
    limit = np.quantile(truth, 0.2, axis=0)
    columns: dict[str, Any] = {"time": np.datetime64("2024-03-04T00") + hours}
    for d in range(outputs):
        columns[f"gas {d}"] = np.maximum(truth, limit)[:, d]
        columns[f"gas {d} below"] = (truth <= limit)[:, d]
    return columns, truth


class Case(NamedTuple):
    """A model, the arguments of `fit`, and cells that it has not seen."""

    model: Any
    table: Any
    choose: dict[str, Any]
    new: dict[str, Any]
    truth: np.ndarray
    scored: Any = True


def build(kind: str, size: int, folder: str = "") -> Case:
    """Return a case for whatever version of the package is on the path.

    A Parquet file is written to the folder.
    """
    from censored_gp import CGP, HMOCGP, MOCGP

    rng, choose, scored = np.random.default_rng(1), {}, True
    if kind in ("rows", "long"):
        table, truth = hourly(size) if kind == "rows" else weather(size)
        held = np.sort(rng.choice(size, min(SCORED, size // 10), replace=False))
        used = np.delete(np.arange(size), held)
        model, names = MOCGP("poisson", random_state=0), ["a", "b"]
        if kind == "long":
            model, names = CGP("gaussian", random_state=0), ["y"]
        choose = {"censored": [f"{name} at limit" for name in names]}
        new, truth = {"time": table["time"][held]}, truth[held]
        table = {name: column[used] for name, column in table.items()}
    elif kind == "parquet":
        table = Path(folder) / "hours.parquet"
        times, truth = write_hourly(table, size)
        model, names, new = MOCGP("poisson", random_state=0), ["a", "b"], {"time": times}
        choose = {"censored": [f"{name} at limit" for name in names]}
    elif kind == "outputs":
        import pandas as pd

        frame = pd.read_csv(Path(os.environ.get("CENSORED_GP_DATA", "data")) / STATIONS)
        columns = [c for c in frame.columns[1:] if c not in ("temp_mean", "hour", "temperature_f")]
        names = columns[:size]
        truth = frame[names].to_numpy(float)
        scored = rng.random(truth.shape) < 0.1
        times = pd.to_datetime(frame[frame.columns[0]]).to_numpy("datetime64[s]")
        cells = np.where(scored, np.nan, truth)
        table = {"time": times} | {name: cells[:, d] for d, name in enumerate(names)}
        rows = np.sort(rng.choice(len(times), min(len(times), SCORED_CELLS // size), replace=False))
        new, truth, scored = {"time": times[rows]}, truth[rows], scored[rows]
        model = MOCGP("negative_binomial", random_state=0)
    elif kind.startswith("air"):
        table, truth = air(counts=size == 1)
        names = [name for name in table if name.startswith("gas") and "below" not in name]
        choose = {"censored": [f"{name} below" for name in names], "side": "left"}
        model = HMOCGP(["log_normal", "negative_binomial"][size], random_state=0)
        # Versions without this setting take them for certain, too.
        if kind == "air, certain" and hasattr(model, "hyperparameters"):
            model.set_params(hyperparameters="fixed")
        held = np.arange(5, len(truth), 10)
        used = np.delete(np.arange(len(truth)), held)
        new, truth = {"time": table["time"][held]}, truth[held]
        table = {name: column[used] for name, column in table.items()}
    else:
        from reproduction.protocol import new_york

        data = new_york(0)
        family = {"new_york poisson": (MOCGP, "poisson")}.get(kind, (HMOCGP, "negative_binomial"))
        model, names = family[0](family[1], random_state=0), ["3711", "366"]
        hours = data.inputs("rain", rows=slice(None))
        flags = {f"{name} at limit": data.censored[:, d] for d, name in enumerate(names)}
        values = {name: data.observed[:, d] for d, name in enumerate(names)}
        table = {n: c[data.train] for n, c in (hours | values | flags).items()}
        choose = {"censored": list(flags), "inputs": "rain"}
        new = {name: column[data.test] for name, column in hours.items()}
        truth = data.truth[data.test]
    return Case(model, table, {"outputs": names, "time": "time"} | choose, new, truth, scored)


def measure(kind: str, size: int) -> dict[str, float]:
    """Run one case in this process; return its figures."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        model, table, choose, new, truth, scored = build(kind, size, folder)
        cpu, wall = time.process_time(), time.perf_counter()
        model.fit(table, **choose)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    gigabytes = peak_gigabytes()
    density = model.log_density(new, truth)
    cells = np.column_stack([np.asarray(density[name]) for name in choose["outputs"]])
    score = float(np.mean(cells[np.broadcast_to(scored, cells.shape)]))
    return {"cpu": cpu, "wall": wall, "gigabytes": gigabytes, "density": score}


def compare_coupling(size: int, most: int, ranks: Sequence[int]) -> Iterator[str]:
    """Yield by how much coupling changes the held-out log density of stations, as words.

    Up to ``most`` of the stations have models of their own as well, with their own default kernels;
    coupled models have the default rank, and others. Standard errors are those of means of
    stations.
    """
    from censored_gp import CGP, MOCGP

    warnings.simplefilter("ignore")
    family = "negative_binomial"
    _, table, choose, new, truth, scored = build("outputs", size)
    some = slice(None, None, -(-size // most))
    names, cells = choose["outputs"][some], scored[:, some]

    def score(model: Any, outputs: list[str], own: slice) -> tuple[np.ndarray, float]:
        """Return the mean log density of each of some stations, and CPU seconds of the fit."""
        start = time.process_time()
        model.fit(table, **choose | {"outputs": outputs})
        cpu = time.process_time() - start
        density = model.predict_distribution(new).of_outputs(range(len(outputs))[own])
        found = np.where(cells, density.log_density(truth[:, some]), 0.0)
        return found.sum(axis=0) / cells.sum(axis=0), cpu

    apart, cpu = score(CGP(family, random_state=0), names, slice(None))
    yield f"{len(names)} of {size} stations apart: {apart.mean():.4f} ({cpu:.0f} CPU s)"
    for rank in (None, *ranks):
        model = MOCGP(family, rank=rank, random_state=0)
        joint, cpu = score(model, choose["outputs"], some)
        gains = joint - apart
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        yield (
            f"{size} coupled, rank {model.rank_['mean']}: {joint.mean():.4f} ({cpu:.0f} CPU s), "
            f"{gains.mean():+.4f} +- {error:.4f}"
        )


def measured(
    tree: Path, kind: str, size: int, cache: str, limit: float
) -> tuple[dict[str, float], str]:
    """Return the figures of one case in a fresh process of a tree, or why there are none."""
    variables = {"CENSORED_GP_CACHE": cache}
    if kind.startswith("start"):
        code = ["-c", "import censored_gp"] if size == 0 else ["-m", "censored_gp", "--help"]
        used: Used = run([sys.executable, "-W", "ignore", *code], limit, tree, variables)
        return {"cpu": used.cpu, "wall": used.wall, "gigabytes": used.gigabytes}, used.failure
    asked = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale", "--case", kind, str(size)]
    used = run(asked, limit, tree, variables)
    return (json.loads(used.output.splitlines()[-1]) if not used.failure else {}), used.failure


def cases(chosen: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Return the name, kind and size of every case that was asked for."""
    found = []
    if "start" in chosen.cases:
        found += [("import censored_gp", "start", 0), ("censored-gp --help", "start", 1)]
    if "new_york" in chosen.cases:
        found += [("New York, Poisson MOCGP, 732 x 2", "new_york poisson", 0)]
        found += [("New York, negative binomial HMOCGP, 732 x 2", "new_york noise", 0)]
    if "air" in chosen.cases:
        families = ("log-normal", "negative binomial")
        for i, f in enumerate(families):
            found += [(f"air, {f} HMOCGP, 672 x 4", "air", i)]
            found += [("the same, hyper-parameters certain", "air, certain", i)]
    if "rows" in chosen.cases:
        found += [(f"Poisson MOCGP, {n:,} x 2", "rows", n) for n in map(_whole, chosen.rows)]
    if "parquet" in chosen.cases:
        own = map(_whole, chosen.rows)
        found += [(f"Poisson MOCGP, {n:,} x 2 from Parquet", "parquet", n) for n in own]
    if "long" in chosen.cases:
        found += [(f"Gaussian CGP, {n:,} x 1, fast", "long", n) for n in map(_whole, chosen.rows)]
    if "outputs" in chosen.cases:
        sizes = map(_whole, chosen.outputs)
        found += [(f"negative binomial MOCGP, 1,464 x {n}", "outputs", n) for n in sizes]
    return found


def _whole(text: str) -> int:
    return int(float(text))


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log seconds in log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = ["start", "new_york", "air", "rows", "parquet", "long", "outputs"]
    parser.add_argument("--cases", nargs="+", default=every, choices=every)
    parser.add_argument("--rows", nargs="+", default=["1e3", "1e4", "1e5", "1e6"])
    parser.add_argument("--outputs", nargs="+", default=["8", "32", "128", "493"])
    parser.add_argument("--against", type=Path, help="another source tree")
    parser.add_argument("--rounds", type=int, default=1, help="the table has medians of so many")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of one process")
    parser.add_argument("--coupling", type=int, help="compare up to so many stations with separate")
    parser.add_argument("--ranks", nargs="+", type=int, default=[], help="of coupled models")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.coupling:
        for size in map(_whole, chosen.outputs):
            for line in compare_coupling(size, chosen.coupling, chosen.ranks):
                print(line, flush=True)
        return
    if chosen.case:
        print(json.dumps(measure(chosen.case[0], int(chosen.case[1]))))
        return
    trees = {"this": HERE} | ({"other": chosen.against.resolve()} if chosen.against else {})
    print("| case | tree | CPU s | wall s | peak GB | log density | CPU other / this |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    seconds: dict[tuple[str, str], dict[int, float]] = {}
    for name, kind, size in cases(chosen):
        states: dict[str, dict[str, list[dict[str, float]]]] = {"first": {}, "again": {}}
        failures: dict[str, str] = {}
        for turn in range(chosen.rounds):
            for tree in trees if turn % 2 == 0 else reversed(trees):
                with tempfile.TemporaryDirectory() as cache:
                    for state in states:
                        found, failure = measured(trees[tree], kind, size, cache, chosen.limit)
                        if failure:
                            failures[tree] = failure
                            break
                        states[state].setdefault(tree, []).append(found)
                        if found["cpu"] > LONG or kind == "start":
                            break
        for state, by_tree in states.items():
            middle = {
                tree: {key: statistics.median(r[key] for r in runs) for key in runs[0]}
                for tree, runs in by_tree.items()
            }
            for tree, figures in middle.items():
                if kind in ("rows", "parquet", "long", "outputs"):
                    seconds.setdefault((kind, tree), {})[size] = figures["cpu"]
                ratio = ""
                # One that took too long to be run again stands for its second run.
                other = middle.get("other") or states["first"].get("other", [None])[0]
                if tree == "this" and other:
                    ratio = f"{other['cpu'] / figures['cpu']:.1f}"
                density = f"{figures['density']:.4f}" if "density" in figures else ""
                print(
                    f"| {name}, {state} | {tree} | {figures['cpu']:.2f} | {figures['wall']:.2f} "
                    f"| {figures['gigabytes']:.2f} | {density} | {ratio} |",
                    flush=True,
                )
        for tree, failure in failures.items():
            print(f"| {name} | {tree} | {failure} | | | | |", flush=True)
    for (kind, tree), found in seconds.items():
        sizes = sorted(found)[1:]
        if len(sizes) > 1:
            slope = exponent(sizes, [found[n] for n in sizes])
            print(
                f"\nExponent of CPU seconds in {kind}, {tree} tree, from {sizes[0]:,}: {slope:.2f}"
            )


if __name__ == "__main__":
    main()
