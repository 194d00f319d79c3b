"""What answers from a saved model take: `lost-demand`, `impute` and `forecast` with `--load`.

    python -m benchmarks.answers [--days 14] [--against TREE] [--rounds 1]

A Poisson model of two stations of a simulated bike share is fitted and saved by the command line;
then every command answers from the file, each time in a process of its own, with an empty cache of
compiled programs ("first") and with that of the first ("again"). With `--against` (a git worktree
of another version) each tree fits, saves and answers in turns. CPU seconds are medians over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import HERE, Used, run

COMMAND = (sys.executable, "-m", "censored_gp")
ANSWERS = {
    "version": ("--version",),
    "lost-demand": ("lost-demand", "--load", "model.cgp"),
    "impute": ("impute", "--load", "model.cgp", "--output", "imputed.csv"),
    "forecast": ("forecast", "--load", "model.cgp", "--periods", "24", "--output", "ahead.csv"),
}
"""The commands; the first shows what Python itself takes."""
FIT = (
    *("fit", "bikes.csv", "--outputs", "station_1,station_2", "--time", "time"),
    *("--censored", "station_1_empty,station_2_empty", "--likelihood", "poisson"),
    *("--save", "model.cgp"),
)


def main() -> None:
    """Print a line for each tree and command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--against", type=Path, help="another source tree")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    trees = {"this": HERE} | ({"other": given.against.resolve()} if given.against else {})
    found: dict[tuple[str, str], list[Used]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, tree in trees.items():
            folder = Path(scratch, name)
            folder.mkdir()
            sample = ("data", "bike_share", "--days", str(given.days), "--output", "bikes.csv")
            for command in (sample, FIT):
                used = run((*COMMAND, *command), 600, tree, folder=folder)
                if used.failure:
                    raise RuntimeError(used.failure)
            size = (folder / "model.cgp").stat().st_size / 2**20
            print(f"{name:6s} fit {used.cpu:.1f} CPU s, file {size:.1f} MB", flush=True)
        for turn in range(given.rounds):
            for command, arguments in ANSWERS.items():
                for name, tree in trees.items():
                    folder = Path(scratch, name)
                    cache = {"CENSORED_GP_CACHE": str(folder / f"cache {command} {turn}")}
                    for when in ("first", "again"):
                        used = run((*COMMAND, *arguments), 600, tree, cache, folder)
                        if used.failure:
                            raise RuntimeError(used.failure)
                        found.setdefault((command, f"{name}, {when}"), []).append(used)
    for (command, name), uses in found.items():
        cpu, peak = (statistics.median(getattr(u, k) for u in uses) for k in ("cpu", "gigabytes"))
        print(f"{command:12s} {name:14s} {cpu:5.1f} CPU s, {peak:.2f} GB")


if __name__ == "__main__":
    main()
