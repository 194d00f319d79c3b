"""Does the report say when its estimates are wrong? Flags of several kinds, truth known.

    python -m benchmarks.trust [--seeds 10] [--first 0] [--only TEXT] [--folder FOLDER] [--jobs 1]

In simulated bike shares an hour is flagged when the supply ran out (returns follow demand, or do
not), or when counting stopped at a random moment, of these hours or of any; in one case the minutes
in which there were bikes are known, and are the exposure. Simulated car parks are full at a
capacity. In the Jersey City data the truth behind real flags is unknown: exact hours get more of
them, as limits (the value of another hour of the station), or as counts that stopped at a random
moment. Of each table: the estimate over the truth (of lost demand; in Jersey City of the imposed
hours), how many seeds are within 15 %, how many reports begin with a verdict, and how many are
wrong without one, which must be none. A folder keeps the runs, so that a second call does only what
is missing. Jersey City is read from the folder that the variable `CENSORED_GP_DATA` names.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from benchmarks.real_data import JERSEY, impose
from censored_gp import MOCGP, Observations, simulate
from reproduction.study import Settings, Study, complete, finished

Cells = Float[np.ndarray, "N D"]
FLAGGED = dataclasses.replace(JERSEY, minutes=None)
"""Jersey City with nothing but flags."""
TOLERATED = 0.15
"""An estimate may be so far from the truth without a verdict."""


def stopped(
    truth: Cells, flagged: Bool[np.ndarray, "N D"], names: tuple[str, ...], seed: int
) -> Observations:
    """Return counts of which the flagged ones stopped at a random moment of their hour."""
    rng = np.random.default_rng([seed, 1])
    seen = rng.binomial(truth.astype(int), rng.uniform(size=truth.shape))
    lower = np.where(flagged, seen, truth).astype(float)
    return Observations(lower, np.where(flagged, np.inf, lower), names)


def bikes(seed: int, kind: str) -> tuple[Any, Observations, Cells, Bool[np.ndarray, "N D"]]:
    """Return inputs, what is known, the truth, and where it is compared."""
    options = {"returns_follow_demand": kind != "independent", "minutes": kind == "minutes"}
    world = simulate.bike_share(days=28, seed=seed, **options)
    if kind in ("supply", "independent", "minutes"):
        return world.inputs(), world.observations(), world.demand, world.censored
    flagged = world.censored
    if kind == "anywhere":
        flagged = np.random.default_rng(seed).uniform(size=flagged.shape) < flagged.mean()
    return world.inputs(), stopped(world.demand, flagged, world.names, seed), world.demand, flagged


def jersey(seed: int, kind: str) -> tuple[Any, Observations, Cells, Bool[np.ndarray, "N D"]]:
    """Return inputs, real and imposed flags, the truth, and where flags were imposed."""
    inputs, known = FLAGGED.read()
    if kind == "limits":
        seen, imposed = impose(FLAGGED, known, seed)
        return inputs, seen, known.lower, imposed
    chosen = np.random.default_rng(seed).uniform(size=known.shape) < 0.1
    imposed = chosen & known.is_exact
    thinned = stopped(np.where(known.is_exact, known.lower, 0.0), imposed, known.names, seed)
    lower = np.where(imposed, thinned.lower, known.lower)
    seen = Observations(lower, np.where(imposed, np.inf, known.upper), known.names)
    return inputs, seen, known.lower, imposed


def car_parks(seed: int) -> tuple[Any, Observations, Cells, Bool[np.ndarray, "N D"]]:
    """Return inputs, what is known, the truth, and where car parks were full."""
    world = simulate.car_park(days=28, seed=seed)
    return world.inputs(), world.observations(), world.demand, world.censored


CASES = {
    "bikes: supply ran out, returns follow demand": lambda seed: bikes(seed, "supply"),
    "bikes: supply ran out, returns do not": lambda seed: bikes(seed, "independent"),
    "bikes: stopped in hours that run out": lambda seed: bikes(seed, "stopped"),
    "bikes: stopped in any hour": lambda seed: bikes(seed, "anywhere"),
    "bikes: supply ran out, minutes known": lambda seed: bikes(seed, "minutes"),
    "car parks: full": car_parks,
    "Jersey City: limits": lambda seed: jersey(seed, "limits"),
    "Jersey City: stopped": lambda seed: jersey(seed, "stopped"),
}
RESULTS = ("ratio", "total", "warned", "anew", "simple")


def run(settings: Settings) -> dict[str, float]:
    """Fit, diagnose, and hold the estimates against the truth."""
    inputs, seen, truth, where = CASES[settings["case"]](settings["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        family = "gaussian" if "car parks" in settings["case"] else "negative_binomial"
        model = MOCGP(family, hyperparameters="fixed", random_state=settings["seed"])
        found = model.fit(inputs, seen).diagnose()
    filled = np.reshape(model.impute(), seen.shape)
    lost, real = ((cells - seen.recorded)[where].sum() for cells in (filled, truth))
    total = float(filled[where].sum() / truth[where].sum())
    last = {row["method"]: row for row in found.rows if row["output"] == "all"}
    own, *others = last.values()
    return {
        "ratio": total if "Jersey" in settings["case"] else float(lost / real),
        "total": total,
        "warned": float(bool(found.verdict)),
        "anew": own["ratio"],
        "simple": min(row["error"] for row in others) / own["error"],
    }


STUDY = Study("trust", ("case", "seed"), RESULTS, run)


def table(rows: pd.DataFrame) -> str:
    """Return a Markdown table of runs, a line for each kind of flags."""
    lines = [
        "| flags | estimate / truth | least to most | within 15 % | with a verdict "
        "| wrong without one | estimate / truth censored anew |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, own in rows.groupby("case", sort=False):
        ratio, warned = own["ratio"], own["warned"] > 0
        right, seeds = np.abs(ratio - 1) <= TOLERATED, len(own)
        lines.append(
            f"| {name} | {ratio.mean():.2f} | {ratio.min():.2f} to {ratio.max():.2f} "
            f"| {right.sum()} of {seeds} | {warned.sum()} | {(~right & ~warned).sum()} "
            f"| {own['anew'].mean():.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Do the runs in worker processes with one thread each, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="lines of the table that contain this")
    parser.add_argument("--folder", type=Path, help="where runs are kept; none: nowhere")
    parser.add_argument("--jobs", type=int, help="worker processes; none: one for each core")
    chosen = parser.parse_args()
    asked = [
        {"case": name, "seed": seed}
        for seed in range(chosen.first, chosen.first + chosen.seeds)
        for name in CASES
        if chosen.only in name
    ]
    with tempfile.TemporaryDirectory() as nowhere:
        rows = complete(STUDY, asked, chosen.folder or Path(nowhere), jobs=chosen.jobs)
    print(table(finished(rows)))
    for row in rows.to_dict("records"):
        if row["error"]:
            print(f"failed: {row['case']}, seed {row['seed']}: {row['error']}")


if __name__ == "__main__":
    main()
