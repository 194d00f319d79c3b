"""The package on real tables: how long a report takes, and whether the answers make sense.

    python benchmarks/real_data.py [--only TEXT] [--seeds 3] [--rank R] [--without-reports]

Reports are made by the command line from the files themselves, first with no compiled programs on
disk, then again with those of the first time. The truth behind real censoring is unknown, so more
is imposed on cells that were seen: a tenth of them get a limit, the value of another cell of the
same output, whatever they are themselves, and those beyond it show the limit only. Of these cells
the table gives how many of the 90 % intervals hold the truth, the total that was estimated over the
true one, and the mean log density of the truth, as means over seeds with standard errors; and of
all censored cells, whether any was imputed on the wrong side of its bound. The last column is the
share of demand that is estimated to be lost with all censored cells, and with half of them taken
for missing. The files are read from the folder that the variable `CENSORED_GP_DATA` names.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from censored_gp import HMOCGP, Observations
from censored_gp.datasets import data_folder

STATIONS = "Grove St PATH,Hamilton Park,Newport Pkwy,Sip Ave,Liberty Light Rail,Newport PATH"


@dataclass(frozen=True)
class Trial:
    """A file, what the command line is told of it, and how it is read as a wide table."""

    file: str
    value: str
    time: str
    flag: str
    by: str | None = None
    inputs: tuple[str, ...] = ()
    family: str = "gaussian"
    only: str | None = None
    where: tuple[str, str] | None = None
    side: str = "right"

    @property
    def options(self) -> list[str]:
        """The options of `censored-gp report`."""
        chosen = {
            "--outputs": self.value,
            "--time": self.time,
            "--censored": self.flag,
            "--by": self.by,
            "--inputs": ",".join(self.inputs) or None,
            "--likelihood": self.family,
            "--only": self.only,
            "--where": self.where and "=".join(self.where),
            "--side": self.side,
        }
        return [text for option, value in chosen.items() if value for text in (option, value)]

    def read(self) -> tuple[dict[str, np.ndarray], Observations]:
        """Return inputs and what is known, a column for each output."""
        table = pd.read_csv(data_folder() / self.file, parse_dates=[self.time])
        if self.where:
            table = table[table[self.where[0]].astype(str) == self.where[1]]
        if self.by is None:
            table, names = table.assign(output=self.value), [self.value]
        else:
            table = table.assign(output=table[self.by].astype(str))
            names = self.only.split(",") if self.only else sorted(table["output"].unique())
        # Where it is not known whether a value was censored it is left out, as by the command line.
        table = table.dropna(subset=[self.value, self.flag, *self.inputs])
        values, flags = (
            table.pivot_table(index=self.time, columns="output", values=column)[names].to_numpy()
            for column in (self.value, self.flag)
        )
        first = table.groupby(self.time)[list(self.inputs)].first()
        inputs = {self.time: first.index.to_numpy(), **{n: first[n].to_numpy() for n in first}}
        return inputs, _known(values, flags > 0, self.side, tuple(names))


TRIALS = {
    "Jersey City, 6 stations": Trial(
        "citibike_jc_2020-06_hourly_with_supply.csv.gz",
        "pickups", "datetime", "pickups_censored", "station_name",
        family="negative_binomial", only=STATIONS,
    ),
    "Birmingham, 6 car parks": Trial(
        "birmingham_parking_6car_parks.csv.gz", "occupancy", "datetime", "censored", "car_park"
    ),
    "retail, a store with 8 products": Trial(
        "freshretailnet_3stores_8products_daily.csv", "sale", "date", "censored", "product_id",
        inputs=("holiday", "temperature"), family="gamma", where=("store_id", "235"),
    ),
    "chromium in a creek": Trial(
        "nada2/Gales_Creek.csv", "TCr", "Date", "CrND", inputs=("discharge",),
        family="log_normal", side="left",
    ),
}  # fmt: skip


def _known(
    values: Float[np.ndarray, "N D"],
    censored: Bool[np.ndarray, "N D"],
    side: str,
    names: tuple[str, ...],
) -> Observations:
    """Return lower bounds where censored, or upper ones for the left side."""
    absent = np.isnan(values)
    lower = np.where(absent | (censored & (side == "left")), -np.inf, values)
    upper = np.where(absent | (censored & (side == "right")), np.inf, values)
    return Observations(lower, upper, names)


def impose(
    known: Observations, side: str, seed: int
) -> tuple[Observations, Bool[np.ndarray, "N D"]]:
    """Censor more cells by limits that do not depend on them; return which, too."""
    rng = np.random.default_rng(seed)
    lower, upper = known.lower.copy(), known.upper.copy()
    for d in range(lower.shape[1]):
        exact = np.flatnonzero(known.is_exact[:, d])
        chosen = rng.choice(exact, size=len(exact) // 10, replace=False)
        limits = known.lower[rng.choice(exact, size=len(chosen)), d]
        if side == "right":
            beyond = limits < known.lower[chosen, d]
            lower[chosen[beyond], d], upper[chosen[beyond], d] = limits[beyond], np.inf
        else:
            beyond = limits > known.lower[chosen, d]
            lower[chosen[beyond], d], upper[chosen[beyond], d] = -np.inf, limits[beyond]
    return Observations(lower, upper, known.names), known.is_exact & (lower != upper)


def answers(trial: Trial, seed: int, rank: int | None) -> tuple[float, float, float, int, bool]:
    """Return coverage, ratio of totals and log density on imposed cells, how many these are, and
    whether bounds hold."""
    inputs, known = trial.read()
    seen, hidden = impose(known, trial.side, seed)
    if not hidden.any():
        return np.nan, np.nan, np.nan, 0, True
    model = HMOCGP(trial.family, rank=rank, random_state=seed).fit(inputs, seen)
    (low, high), filled = model.impute_interval(0.9), model.impute()
    low, high, filled = (np.reshape(a, seen.lower.shape) for a in (low, high, filled))
    truth = known.lower[hidden]
    inside = (truth >= low[hidden]) & (truth <= high[hidden])
    kept = bool(np.all((filled >= seen.lower) & (filled <= seen.upper)))
    logs = model.imputation().log_density(np.where(hidden, known.lower, np.nan))[hidden]
    ratio = float(filled[hidden].sum() / truth.sum())
    return float(inside.mean()), ratio, float(logs.mean()), len(truth), kept


def shares_lost(trial: Trial) -> tuple[float, float]:
    """Return the share of demand that is lost, and with half of the censored cells missing."""
    inputs, known = trial.read()
    model = HMOCGP(trial.family, random_state=0).fit(inputs, known)
    half = known.is_right & (np.random.default_rng(0).random(known.lower.shape) < 0.5)
    fewer = Observations(np.where(half, -np.inf, known.lower), known.upper, known.names)
    again = HMOCGP(trial.family, random_state=0).fit(inputs, fewer)
    found = [float(m.lost_demand(random_state=0)[0]["share"]) for m in (model, again)]
    return found[0], found[1]


def report_seconds(trial: Trial) -> tuple[float, float]:
    """Return how long the command takes, at first and with compiled programs on disk."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        words = ["report", str(data_folder() / trial.file), *trial.options]
        print(shlex.join(["censored-gp", *words]), file=sys.stderr)
        command = [str(Path(sys.executable).with_name("censored-gp")), *words]
        command += ["--output", str(Path(folder, "report.html"))]
        for _ in range(2):
            start = time.perf_counter()
            own = os.environ | {"CENSORED_GP_CACHE": str(Path(folder, "compiled"))}
            subprocess.run(command, check=True, env=own, stdout=subprocess.DEVNULL)
            found.append(time.perf_counter() - start)
            print(f"{found[-1]:.0f} s", file=sys.stderr)
    return found[0], found[1]


def line(name: str, seeds: int, with_report: bool, rank: int | None) -> str:
    """Return the line of one trial in the table."""
    trial = TRIALS[name]
    seconds = "|".join(f" {s:.0f} s " for s in report_seconds(trial)) if with_report else " | "
    found = np.array([answers(trial, seed, rank) for seed in range(seeds)])
    # In a small table a seed may impose nothing.
    some = found[found[:, 3] > 0, :3]
    error = some.std(axis=0, ddof=1) / np.sqrt(len(some)) if len(some) > 1 else [np.nan] * 3
    figures = " | ".join(
        f"{m:.3f} ± {e:.3f}" for m, e in zip(some.mean(axis=0), error, strict=True)
    )
    cells, kept = int(found[:, 3].sum()), "yes" if found[:, 4].all() else "no"
    lost = "" if trial.side == "left" else " to ".join(f"{s:.1%}" for s in shares_lost(trial))
    return f"| {name} |{seconds}| {cells} | {figures} | {kept} | {lost} |"


def main() -> None:
    """Print the table line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="lines of the table that contain this")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rank", type=int, help="of the answers; reports have the default")
    parser.add_argument("--without-reports", action="store_true")
    chosen = parser.parse_args()
    print(
        "| table | report | again | cells | 90 % intervals that hold the truth | estimated / true "
        "| log density | bounds hold | share lost, with half the censored cells |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    for name in TRIALS:
        if chosen.only in name:
            reported = not chosen.without_reports
            print(line(name, chosen.seeds, reported, chosen.rank), flush=True)


if __name__ == "__main__":
    main()
