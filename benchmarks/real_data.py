"""Real tables: estimates of cells whose truth is known, beside those of simple methods.

    python -m benchmarks.real_data [--only TEXT] [--seeds 3]

The truth behind real censoring is unknown, so more is imposed on a tenth of the cells that were
seen. By limits: such a cell gets the value of another cell of its output for a limit, and shows the
limit only if it is beyond it. By exposures: of a count, a random share of the period is seen, and
each arrival with that probability. Of these cells the table gives how many 90 % intervals hold the
truth, the estimated total over the true one, and the mean absolute error, of the model and of two
methods that know exact cells only: the mean of the hour (or day) of the week, and gradient
boosting, both cut at the bound. Means over seeds with standard errors. The files are read from the
folder that the variable `CENSORED_GP_DATA` names.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from censored_gp import HMOCGP, Observations
from censored_gp.estimator.analysis.diagnose import simple_estimates
from reproduction.files import data_folder

STATIONS = "Grove St PATH,Hamilton Park,Newport Pkwy,Sip Ave,Liberty Light Rail,Newport PATH"
Mask = Bool[np.ndarray, "N D"]


@dataclass(frozen=True)
class Trial:
    """A file, what its columns are, and which censoring is imposed."""

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
    minutes: str | None = None
    """The column of the minutes of an hour in which nothing could be seen."""
    thinned: bool = False
    """Whether exposures are imposed; else limits."""

    def read(self) -> tuple[dict[str, np.ndarray], Observations]:
        """Return inputs and what is known, a column for each output."""
        table = pd.read_csv(data_folder() / self.file, parse_dates=[self.time])
        if self.where:
            table = table[table[self.where[0]].astype(str) == self.where[1]]
        table = table.assign(output=self.value if self.by is None else table[self.by].astype(str))
        names = self.only.split(",") if self.only else sorted(table["output"].unique())
        # Where it is not known whether a value was censored it is left out, as by the command line.
        table = table.dropna(subset=[self.value, self.flag, *self.inputs])

        def cells(column: str) -> Float[np.ndarray, "N D"]:
            wide = table.pivot_table(index=self.time, columns="output", values=column)
            return wide[names].to_numpy()

        first = table.groupby(self.time)[list(self.inputs)].first()
        inputs = {self.time: first.index.to_numpy(), **{n: first[n].to_numpy() for n in first}}
        flags = np.nan_to_num(cells(self.flag)) > 0
        known = Observations.from_flags(cells(self.value), flags, side=self.side)
        if self.minutes is not None:
            exposure = 1.0 - np.nan_to_num(cells(self.minutes)) / 60.0
            seen = np.where(exposure < 1, known.lower, known.upper)
            known = dataclasses.replace(known, upper=seen, exposure=exposure)
        return inputs, dataclasses.replace(known, names=tuple(names))


JERSEY = Trial(
    "citibike_jc_2020-06_hourly_with_supply.csv.gz",
    "pickups", "datetime", "pickups_censored", "station_name",
    family="negative_binomial", only=STATIONS, minutes="minutes_empty",
)  # fmt: skip
TRIALS = {
    "Jersey City, 6 stations, exposures": dataclasses.replace(JERSEY, thinned=True),
    "Jersey City, 6 stations, limits": JERSEY,
    "Birmingham, 6 car parks, limits": Trial(
        "birmingham_parking_6car_parks.csv.gz", "occupancy", "datetime", "censored", "car_park"
    ),
    "retail, a store with 8 products, limits": Trial(
        "freshretailnet_3stores_8products_daily.csv", "sale", "date", "censored", "product_id",
        inputs=("holiday", "temperature"), family="gamma", where=("store_id", "235"),
    ),
    "chromium in a creek, limits": Trial(
        "nada2/Gales_Creek.csv", "TCr", "Date", "CrND", inputs=("discharge",),
        family="log_normal", side="left",
    ),
}  # fmt: skip


def impose(trial: Trial, known: Observations, seed: int) -> tuple[Observations, Mask]:
    """Censor a tenth of the exact cells, whatever they are themselves; return which, too."""
    rng = np.random.default_rng(seed)
    lower, upper, exposure = known.lower.copy(), known.upper.copy(), known.exposure.copy()
    for d in range(lower.shape[1]):
        exact = np.flatnonzero(known.is_exact[:, d])
        chosen = rng.choice(exact, size=len(exact) // 10, replace=False)
        truth = known.lower[chosen, d]
        if trial.thinned:
            share = rng.uniform(size=len(chosen))
            exposure[chosen, d] = share
            lower[chosen, d] = upper[chosen, d] = rng.binomial(truth.astype(int), share)
            continue
        limits = known.lower[rng.choice(exact, size=len(chosen)), d]
        beyond = limits < truth if trial.side == "right" else limits > truth
        rows = chosen[beyond]
        lower[rows, d] = limits[beyond] if trial.side == "right" else -np.inf
        upper[rows, d] = np.inf if trial.side == "right" else limits[beyond]
    seen = Observations(lower, upper, known.names, exposure=exposure)
    return seen, known.is_exact & ~seen.is_exact


def answers(trial: Trial, seed: int) -> dict[str, float]:
    """Return scores of the model and of simple methods on the imposed cells of one seed."""
    inputs, known = trial.read()
    seen, hidden = impose(trial, known, seed)
    truth, found = known.lower[hidden], {"cells": int(hidden.sum())}
    if not hidden.any():
        return found
    model = HMOCGP(trial.family, random_state=seed).fit(inputs, seen)
    low, high = (np.reshape(end, seen.shape)[hidden] for end in model.impute_interval(0.9))
    found["held"] = float(np.mean((truth >= low) & (truth <= high)))
    estimates = {"model": np.reshape(model.impute(), seen.shape)}
    simple = simple_estimates(seen, model.training_)
    estimates |= dict(zip(("week", "boosting"), simple.values(), strict=True))
    for method, cells in estimates.items():
        found[f"ratio {method}"] = float(cells[hidden].sum() / truth.sum())
        found[f"error {method}"] = float(np.mean(np.abs(cells[hidden] - truth)))
    return found


def main() -> None:
    """Print the table line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="lines of the table that contain this")
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    columns = {
        "90 % intervals that hold": "held",
        "estimated / true": "ratio model",
        "mean of the week": "ratio week",
        "boosting": "ratio boosting",
        "absolute error": "error model",
        "mean of the week ": "error week",
        "boosting ": "error boosting",
    }
    print(f"| table | cells | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 2)}")
    for name, trial in TRIALS.items():
        if chosen.only in name:
            runs = pd.DataFrame([answers(trial, seed) for seed in range(chosen.seeds)])
            # In a small table a seed may impose nothing.
            some = runs[runs["cells"] > 0]
            figures = [f"{some[c].mean():.3g} ± {some[c].sem():.2g}" for c in columns.values()]
            print(f"| {name} | {runs['cells'].sum()} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
