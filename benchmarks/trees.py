"""Compare two source trees in one run: import, first fit, later fits, predictions, memory.

    python benchmarks/trees.py OTHER [--rounds 3] [--only WORD]

OTHER is another checkout of the project (a git worktree of an older version, say). Every task runs
in a fresh process of each tree in turn; the table has the medians and their ratio, this tree over
the other: below one is faster. Seconds are CPU seconds of the process, which other work on the
machine disturbs less than the clock; "first" has an empty cache of compiled programs, "again" a
filled one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

PRELUDE = """
import json, resource, time, warnings
warnings.simplefilter("ignore")
start = time.process_time()
import numpy as np
import censored_gp
from censored_gp import CGP, HMOCGP, MOCGP

def hourly(rows, outputs, seed=0):
    rng = np.random.default_rng(seed)
    hours = np.arange(rows)
    wave = np.sin(2 * np.pi * hours / 24)[:, None] * np.linspace(0.5, 1.0, outputs)
    truth = rng.poisson(np.exp(1.5 + wave + 0.2 * np.sin(hours / 90.0)[:, None]))
    limit = rng.poisson(8, truth.shape)
    X = {"time": np.datetime64("2024-06-03T00") + hours}
    return X, np.minimum(truth, limit).astype(float), truth >= limit
"""

FIT = """
X, y, flags = hourly({rows}, {outputs})
model = {model}.fit(X, y, censored=flags)
"""

DONE = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"seconds": time.process_time() - start, "gigabytes": peak}))
"""

TASKS = {
    "import censored_gp": "",
    "censored-gp --help": "",
    "CGP gaussian, 200 x 1": FIT.format(rows=200, outputs=1, model="CGP(random_state=0)"),
    "MOCGP poisson, 732 x 2": FIT.format(rows=732, outputs=2, model="MOCGP('poisson')"),
    "HMOCGP negative binomial, 732 x 2": FIT.format(
        rows=732, outputs=2, model="HMOCGP('negative_binomial')"
    ),
    "MOCGP poisson, 732 x 2, and its answers": FIT.format(
        rows=732, outputs=2, model="MOCGP('poisson')"
    )
    + "model.predict(X, return_std=True); model.interval(X, 0.9); model.impute()\n"
    "model.lost_demand(by='hour'); model.forecast(24)\n",
}


def run(tree: Path, name: str, cache: str) -> dict[str, float]:
    """Return the figures of one task in a fresh process of a tree."""
    settings = os.environ | {"PYTHONPATH": str(tree / "src"), "CENSORED_GP_CACHE": cache}
    if name == "censored-gp --help":
        code = (
            "import json, resource, subprocess, sys\n"
            "subprocess.run([sys.executable, '-m', 'censored_gp', '--help'], capture_output=True)\n"
            "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
            "print(json.dumps({'seconds': used.ru_utime + used.ru_stime,"
            " 'gigabytes': used.ru_maxrss / 2**20}))"
        )
    elif name == "import censored_gp":
        code = PRELUDE + DONE
    else:
        code = PRELUDE + TASKS[name] + DONE
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=settings
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a Markdown table of both trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    chosen = parser.parse_args()
    trees = {"this": HERE, "other": chosen.other.resolve()}
    print("| task | this (s) | other (s) | ratio | this (GB) | other (GB) |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in (name for name in TASKS if chosen.only in name):
        compiles = name in list(TASKS)[2:]
        for state in ("first", "again") if compiles else ("",):
            found: dict[str, list[dict[str, float]]] = {tree: [] for tree in trees}
            for _ in range(chosen.rounds):
                for tree, folder in trees.items():
                    with tempfile.TemporaryDirectory() as cache:
                        if state == "again":
                            run(folder, name, cache)
                        found[tree].append(run(folder, name, cache))
            seconds, memory = (
                {t: statistics.median(each[key] for each in runs) for t, runs in found.items()}
                for key in ("seconds", "gigabytes")
            )
            print(
                f"| {name}{', ' + state if state else ''} | {seconds['this']:.2f} "
                f"| {seconds['other']:.2f} | {seconds['this'] / seconds['other']:.2f} "
                f"| {memory['this']:.2f} | {memory['other']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
