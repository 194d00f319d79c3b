"""Rivals on the same tasks, in one run: python -m benchmarks.rivals [--tasks ...] [--rivals ...].

Each rival gets an environment of its own (built where it is missing), the same rows, our starting
values, and the closest model it can express; see `tasks` for the tasks. Rivals take turns, each in
a fresh process, and the table has medians: CPU and wall seconds until the bound came within a nat
of where it ended (of the whole fit where there is no trace), scores of the truth at the test rows
(means over outputs), peak memory of the process, and what could not be expressed. Every rival is
scored by the same code, from the moments of its latent functions. Reading data and predicting are
not counted; neither is compiling in fits of less than 1,000 rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm, poisson

from benchmarks.measure import HERE, Used, run

SCRIPTS = Path(__file__).parent
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
TASKS = ("new_york", "1e5", "1e6")


class Rival(NamedTuple):
    """The file that runs a rival, its options, and whether it can be given large tasks."""

    script: str
    options: tuple[str, ...] = ()
    large: bool = False


RIVALS = {
    "censored-gp, same kernels": Rival("ours.py", ("same",), True),
    "censored-gp, defaults": Rival("ours.py", ("default",), True),
    "mgcv": Rival("mgcv.R", large=True),
    "GPyTorch": Rival("gpytorch_svgp.py"),
    "GPflow": Rival("gpflow_svgp.py"),
    "GPBoost": Rival("gpboost_laplace.py"),
    "NumPyro": Rival("numpyro_svi.py"),
}


def command(name: str, environments: Path) -> list[str]:
    """Return the command that starts a rival, in an environment that is built if there is none."""
    script = SCRIPTS / RIVALS[name].script
    if script.stem == "ours":
        return [sys.executable, "-W", "ignore", "-m", "benchmarks.rivals.ours"]
    if script.suffix == ".R":
        asked = ["Rscript", "-e", "library(mgcv)"]
        try:
            subprocess.run(asked, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            packages = "r-base-core", "r-cran-mgcv"
            subprocess.run(["apt-get", "install", "--yes", *packages], check=True)
        return ["Rscript", str(script)]
    group = name.lower()
    folder = environments / group
    python = str(folder / "bin" / "python")
    if not (folder / "ready").exists():
        groups = tomllib.loads((HERE / "pyproject.toml").read_text())["dependency-groups"]
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *groups[group]], check=True)
        (folder / "ready").touch()
    return [python, "-W", "ignore", str(script)]


def scores(task: Path, result: Path) -> dict[str, Any]:
    """Return R², mean negative log density and CRPS of the truth, and the log densities."""
    truth, moments = np.load(task / "test_y.npy"), np.loadtxt(result / "moments.csv", delimiter=",")
    mean, deviation = np.split(moments.reshape(len(truth), -1), 2, axis=1)
    noise = float(np.loadtxt(result / "noise.csv"))
    if noise > 0:
        spread = np.sqrt(deviation**2 + noise**2)
        expected, density = mean, norm.logpdf(truth, mean, spread)
        z = (truth - mean) / spread
        loss = spread * (z * (2 * ndtr(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    else:
        rate = np.exp(mean[..., None] + deviation[..., None] * NODES)
        mass = WEIGHTS / WEIGHTS.sum()
        expected = rate @ mass
        density = np.log(poisson.pmf(truth[..., None], rate) @ mass)
        counts = np.arange(int(3 * truth.max()) + 10)
        below = np.stack([poisson.cdf(k, rate) @ mass for k in counts])
        loss = np.sum((below - (truth <= counts[:, None, None])) ** 2, axis=0)
    error = ((truth - expected) ** 2).sum(axis=0) / ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    return {"r2": np.mean(1 - error), "nlpd": -density.mean(), "crps": loss.mean()} | {
        "cells": density
    }


def plateau(result: Path) -> tuple[float, float]:
    """Return CPU and wall seconds until the bound was within a nat of the best."""
    trace = np.loadtxt(result / "trace.csv", delimiter=",", ndmin=2)
    bounds = np.maximum.accumulate(trace[:, 2])
    first = int(np.argmax(bounds >= bounds[-1] - 1.0))
    return float(trace[first, 0]), float(trace[first, 1])


def one(start: list[str], name: str, task: Path, result: Path, budget: float) -> dict[str, Any]:
    """Run a rival once; return its figures, or why there are none."""
    result.mkdir(parents=True, exist_ok=True)
    used: Used = run(
        [*start, str(task), str(result), str(budget), *RIVALS[name].options], 4 * budget
    )
    if used.failure:
        return {"missing": used.failure}
    cpu, wall = plateau(result)
    words = (result / "missing.txt").read_text().strip() or "-"
    if np.loadtxt(result / "trace.csv", delimiter=",", ndmin=2)[-1, 0] > budget:
        words += f"; stopped after {budget:.0f} CPU s, still rising"
    return {"cpu": cpu, "wall": wall, "gigabytes": used.gigabytes, "missing": words} | scores(
        task, result
    )


def table(found: dict[str, list[dict[str, Any]]]) -> str:
    """Return the medians of all rivals as a Markdown table."""
    lines = [
        "| | CPU s | wall s | R² | NLPD | over the first, s.e. | CRPS | peak GB | not expressed |",
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    first = next((r["cells"] for runs in found.values() for r in runs if "cells" in r), None)
    for name, runs in found.items():
        done = [each for each in runs if "cpu" in each]
        if not done:
            lines.append(f"| {name} | | | | | | | | {runs[-1]['missing']} |")
            continue
        cpu, wall, r2, nlpd, crps, gigabytes = (
            statistics.median(each[key] for each in done)
            for key in ("cpu", "wall", "r2", "nlpd", "crps", "gigabytes")
        )
        worse = np.mean(first - done[0]["cells"], axis=1)
        error = worse.std() / np.sqrt(len(worse))
        beside = f"{worse.mean():+.5f} ± {error:.5f}" if worse.any() else ""
        lines.append(
            f"| {name} | {cpu:.1f} | {wall:.1f} | {r2:.3f} | {nlpd:.4f} | {beside} | {crps:.4f} "
            f"| {gigabytes:.2f} | {done[-1]['missing']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print a Markdown table for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--tasks", nargs="+", default=TASKS, help="new_york, or numbers of rows")
    parser.add_argument("--rivals", nargs="+", default=list(RIVALS), choices=list(RIVALS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=300.0, help="CPU seconds of one fit")
    parser.add_argument("--environments", type=Path, default=home / "censored-gp" / "rivals")
    chosen = parser.parse_args()
    starts, absent = {}, {}
    for name in chosen.rivals:
        try:
            starts[name] = command(name, chosen.environments)
        except (OSError, subprocess.CalledProcessError) as error:
            absent[name] = f"not installed: {error}"
    for task_name in chosen.tasks:
        large = task_name != "new_york"
        with tempfile.TemporaryDirectory() as folder:
            task = Path(folder) / "task"
            making = [sys.executable, "-W", "ignore", "-m", "benchmarks.rivals.tasks"]
            subprocess.run([*making, task_name, str(task)], check=True, cwd=HERE)
            able = [n for n in starts if RIVALS[n].large or not large]
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in able}
            for turn in range(chosen.rounds):
                for name in able if turn % 2 == 0 else reversed(able):
                    result = Path(folder) / f"{name}-{turn}"
                    found[name].append(one(starts[name], name, task, result, chosen.budget))
            print(f"\n**{task_name}**\n\n" + table(found), flush=True)
    for name, why in absent.items():
        print(f"\n{name}: {why}")


if __name__ == "__main__":
    main()
