"""Lost demand against the truth, in simulated worlds of several kinds and many seeds.

    python -m benchmarks.lost_demand [--seeds 6] [--only TEXT] [--folder FOLDER]

Of each world and model: the mean over seeds of estimated over true lost demand (all outputs
together) with its standard error and the least and most of it, how many of the 90 % intervals, one
for each seed and output, hold the truth, and the median time of a core for a fit and its answer
(the first ones compile). A folder keeps the runs, so that a second call does only what is missing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from censored_gp import simulate
from censored_gp.estimator import presets
from censored_gp.kernels import RBF, Kernel, Matern12, Periodic
from reproduction.study import Settings, Study, complete, finished

FORGETFUL: tuple[Kernel, ...] = (
    Periodic("1d", columns="time"),
    Periodic("7d", columns="time"),
    RBF("4d", columns="time"),
    Matern12("12h", columns="time"),
    RBF(columns="rain"),
)
"""The default kernels of the bike share, and one that follows what lasts for hours."""


@dataclass(frozen=True)
class Case:
    """A world, and the models that are asked what was lost in it."""

    simulate: Callable[[int], Any]
    """Makes a world of a seed."""
    family: str = "negative_binomial"
    models: tuple[str, ...] = ("MOCGP",)
    kernels: tuple[Kernel, ...] | None = None
    with_returns: bool = False
    """Whether bikes that were brought back are outputs, too."""
    exposed: bool = False
    """Whether the minutes in which there were bikes are told, too."""


def _bikes(days: int, **settings: Any) -> Callable[[int], Any]:
    return lambda seed: simulate.bike_share(days=days, seed=seed, **settings)


BOTH = ("MOCGP", "HMOCGP")
CASES = {
    "bikes, 14 days": Case(_bikes(14)),
    "bikes, 28 days": Case(_bikes(28), models=BOTH),
    "bikes, 56 days": Case(_bikes(56)),
    "bikes, 14 days, supply independent of demand": Case(_bikes(14, returns_follow_demand=False)),
    "bikes, 28 days, supply independent of demand": Case(_bikes(28, returns_follow_demand=False)),
    "bikes, 28 days, short memory": Case(_bikes(28), "poisson", kernels=FORGETFUL),
    "bikes, 28 days, short memory, returns are outputs": Case(
        _bikes(28), "poisson", kernels=FORGETFUL, with_returns=True
    ),
    **{
        f"bikes, 28 days, minutes{told}{world}": Case(
            _bikes(28, minutes=True, returns_follow_demand=follow), family, exposed=exposed
        )
        for told, family, exposed in (
            (" known", "poisson", True),
            (" known, overdispersed", "negative_binomial", True),
            (" not told", "negative_binomial", False),
        )
        for world, follow in (("", True), (", supply independent of demand", False))
    },
    **{
        f"bikes, 28 days, minutes known, short memory, returns are outputs{world}": Case(
            _bikes(28, minutes=True, returns_follow_demand=follow),
            "poisson",
            kernels=FORGETFUL,
            with_returns=True,
            exposed=True,
        )
        for world, follow in (("", True), (", supply independent of demand", False))
    },
    "shop, 120 days": Case(lambda seed: simulate.shop(days=120, seed=seed), models=BOTH),
    "car parks, 28 days": Case(
        lambda seed: simulate.car_park(days=28, seed=seed), "gaussian", models=BOTH
    ),
}


def run(settings: Settings) -> dict[str, float]:
    """Fit one model to one world, and hold its answer against the truth."""
    began, case = time.process_time(), CASES[settings["case"]]
    world = case.simulate(settings["seed"])
    seen, censored = world.observed, world.censored
    exposure = world.exposure if case.exposed else None
    if case.with_returns:
        seen = np.hstack([seen, world.returned])
        censored = np.hstack([censored, np.zeros_like(censored)])
        exposure = None if exposure is None else np.hstack([exposure, np.ones_like(exposure)])
    model = getattr(presets, settings["model"])(case.family, case.kernels)
    model.fit(world.inputs(), seen, censored=censored, exposure=exposure)
    truth = (world.demand - world.observed).sum(axis=0)
    rows = list(model.lost_demand(by="output", samples=400, random_state=0))[: len(truth)]
    inside = [row["lost_low"] <= t <= row["lost_high"] for row, t in zip(rows, truth, strict=True)]
    ratio = sum(row["lost"] for row in rows) / truth.sum()
    return {"ratio": ratio, "inside": np.mean(inside), "core": time.process_time() - began}


STUDY = Study("lost_demand", ("case", "model", "seed"), ("ratio", "inside", "core"), run)


def wanted(only: str, seeds: int) -> list[Settings]:
    """Return the runs of all cases and models whose line in the table contains a text."""
    return [
        {"case": name, "model": model, "seed": seed}
        for name, case in CASES.items()
        for model in case.models
        for seed in range(seeds)
        if only in _label(name, model)
    ]


def _label(name: str, model: str) -> str:
    return f"{name} | {CASES[name].family} {model}"


def table(rows: pd.DataFrame) -> str:
    """Return a Markdown table of runs, a line for each world and model."""
    lines = [
        "| world | model | estimated / true lost demand | least to most "
        "| 90 % intervals that hold the truth | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for (name, model), own in rows.groupby(["case", "model"], sort=False):
        ratio, inside, core = (own[result] for result in STUDY.results)
        found = f"{ratio.mean():.2f} ± {ratio.sem():.2f} | {ratio.min():.2f} to {ratio.max():.2f}"
        label = _label(str(name), str(model))
        lines.append(f"| {label} | {found} | {inside.mean():.0%} | {core.median():.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Do the runs in worker processes with one thread each, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", default="", help="lines of the table that contain this")
    parser.add_argument("--folder", type=Path, help="where runs are kept; none: nowhere")
    parser.add_argument("--jobs", type=int, help="worker processes; none: one for each core")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as nowhere:
        folder = chosen.folder or Path(nowhere)
        rows = complete(STUDY, wanted(chosen.only, chosen.seeds), folder, jobs=chosen.jobs)
    print(table(finished(rows)))
    for row in rows.to_dict("records"):
        if row["error"]:
            print(f"failed: {row['case']}, {row['model']}, seed {row['seed']}: {row['error']}")


if __name__ == "__main__":
    main()
