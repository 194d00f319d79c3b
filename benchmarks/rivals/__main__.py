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
    """How to install a rival, how to start it, and the tasks that it can be given."""

    packages: tuple[str, ...]
    script: str
    tasks: tuple[str, ...]
    options: tuple[str, ...] = ()


RIVALS = {
    "censored-gp, same kernels": Rival((), "ours.py", TASKS, ("same",)),
    "censored-gp, defaults": Rival((), "ours.py", TASKS, ("default",)),
    "mgcv": Rival(("r-base-core", "r-cran-mgcv"), "mgcv.R", TASKS),
    "GPyTorch": Rival(("torch==2.13.0", "gpytorch", "scipy"), "gpytorch_svgp.py", TASKS[:1]),
    "GPflow": Rival(
        ("gpflow", "tensorflow", "tf-keras", "setuptools<81"), "gpflow_svgp.py", TASKS[:1]
    ),
    "GPBoost": Rival(("gpboost", "scipy"), "gpboost_laplace.py", TASKS[:1]),
    "NumPyro": Rival(("numpyro", "scipy"), "numpyro_svi.py", TASKS[:1]),
}


def command(name: str, environments: Path) -> list[str]:
    """Return the command that starts a rival, in an environment that is built if there is none."""
    rival = RIVALS[name]
    script = str(SCRIPTS / rival.script)
    if not rival.packages:
        return [sys.executable, "-W", "ignore", "-m", f"benchmarks.rivals.{script[:-3].split('/')[-1]}"]
    if script.endswith(".R"):
        asked = ["Rscript", "-e", "library(mgcv)"]
        if subprocess.run(asked, capture_output=True, check=False).returncode:
            subprocess.run(["apt-get", "install", "--yes", *rival.packages], check=True)
        return ["Rscript", script]
    folder = environments / name.lower()
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *rival.packages], check=True)
        (folder / "ready").touch()
    return [str(python), "-W", "ignore", script]


def scores(task: Path, result: Path) -> dict[str, float]:
    """Return R², mean negative log density and CRPS of the truth, means over outputs."""
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
    return {"r2": np.mean(1 - error), "nlpd": -density.mean(), "crps": loss.mean()}


def plateau(result: Path) -> tuple[float, float]:
    """Return CPU and wall seconds until the bound was within a nat of the best."""
    trace = np.loadtxt(result / "trace.csv", delimiter=",", ndmin=2)
    bounds = np.maximum.accumulate(trace[:, 2])
    first = int(np.argmax(bounds >= bounds[-1] - 1.0))
    return float(trace[first, 0]), float(trace[first, 1])


def one(start: list[str], name: str, task: Path, result: Path, budget: float) -> dict[str, Any]:
    """Run a rival once; return its figures, or why there are none."""
    result.mkdir(parents=True, exist_ok=True)
    used: Used = run([*start, str(task), str(result), str(budget), *RIVALS[name].options], 4 * budget)
    if used.failure:
        return {"missing": used.failure}
    cpu, wall = plateau(result)
    words = (result / "missing.txt").read_text().strip() or "-"
    return {"cpu": cpu, "wall": wall, "gigabytes": used.gigabytes, "missing": words} | scores(
        task, result
    )


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
            able = [n for n in starts if len(RIVALS[n].tasks) > 1 or not large]
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in able}
            for turn in range(chosen.rounds):
                for name in able if turn % 2 == 0 else reversed(able):
                    result = Path(folder) / f"{name}-{turn}"
                    found[name].append(one(starts[name], name, task, result, chosen.budget))
            print(f"\n**{task_name}**\n")
            print("| | CPU s | wall s | R² | NLPD | CRPS | peak GB | not expressed |")
            print("|---|--:|--:|--:|--:|--:|--:|---|")
            for name, runs in found.items():
                keys = ("cpu", "wall", "r2", "nlpd", "crps", "gigabytes")
                done = [each for each in runs if "cpu" in each]
                middle = [statistics.median(r[k] for r in done) if done else np.nan for k in keys]
                cells = " | ".join(
                    f"{v:.{d}f}" for v, d in zip(middle, (1, 1, 3, 4, 4, 2), strict=True)
                )
                print(f"| {name} | {cells} | {runs[-1]['missing']} |", flush=True)
    for name, why in absent.items():
        print(f"\n{name}: {why}")


if __name__ == "__main__":
    main()
