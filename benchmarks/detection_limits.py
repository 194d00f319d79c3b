"""Readings in whole steps at a floor: how well hidden values, their intervals and means come out.

    python -m benchmarks.detection_limits [--seeds 20] [--rows 100] [--only TEXT]

Log-normal and gamma values, whose level depends on an input, are rounded to whole numbers. Readings
up to the 20, 40 or 60 % quantile are flagged and show that quantile ("<= 6"). The tables of nada2
are real, and have several limits. It is not known to which of them a reading that was detected was
subject, so that low readings which are known are those of the better laboratories. Only readings
above the greatest limit were detected for certain: they are hidden by a floor at these quantiles of
them, and known to be above that limit. All others are below it, and none of them is scored.

Of the hidden values the table gives the share that lies in the 90 % intervals, of the values before
rounding (`held`, of simulated ones) and of the readings (`readings held`: a reading counts by the
share of its step that the interval covers, as it stands for any value in it); the RMSE of the
imputed values over that of floor/sqrt(2) (or of the limit, if that is more) in their place; and the
mean of all known values over the true one: by imputation, floor/sqrt(2), Kaplan-Meier, and
regression on order statistics (ROS). The last column is the largest difference between imputed
values when the same cells of the first simulated set are stated as "< 7".

Most readings of zinc are multiples of ten: a floor at a heap of them hides many values that are all
but the floor itself.
Figures are means over seeds, with the standard error of the first. The folder of the real tables is
the one that the variable `CENSORED_GP_DATA` names.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import stats

from censored_gp import CGP, Observations
from reproduction.files import data_folder

Vector = Float[np.ndarray, " N"]

QUANTILES = (0.2, 0.4, 0.6)

TABLES = {
    "zinc": ("CuZn", "Zn", "ZnCen", ["Zone"]),
    "TCE": ("TCE2", "TCECONC", "TCECens", ["Density"]),
    "mercury": ("Brumbaugh", "Hg", "HgCen", ["Length", "PctWetland"]),
    "chromium": ("Gales_Creek", "TCr", "CrND", ["dectime", "discharge"]),
}
"""A file of nada2, its output, flags of non-detects, and inputs; in others few are above limits."""


def simulate(family: str, rows: int, seed: int) -> tuple[pd.DataFrame, Vector]:
    """Return an input, and values around a level that depends on it."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, rows))
    level = np.exp(2.2 + 0.6 * np.sin(x))
    if family == "log_normal":
        return pd.DataFrame({"x": x}), level * np.exp(rng.normal(0, 0.5, rows))
    return pd.DataFrame({"x": x}), rng.gamma(3.0, level / 3)


def kaplan_meier(values: Vector, below: Bool[np.ndarray, " N"]) -> float:
    """Return the mean by Kaplan-Meier of left-censored values; the lowest counts as exact."""
    order = np.lexsort((below, -values))
    values, below = values[order], below[order].copy()
    below[-1] = False
    at_risk = np.arange(len(values), 0, -1)
    left = np.cumprod(np.where(below, 1.0, 1 - 1 / at_risk))
    return float(-np.diff(left, prepend=1.0) @ values)


def order_statistics(values: Vector, below: Bool[np.ndarray, " N"]) -> float:
    """Return the mean by robust ROS: hidden values from a line through log exact order statistics.

    Plotting positions are those of Helsel and Cohn for one floor.
    """
    share, exact = below.mean(), np.sort(values[~below])
    seen = share + (1 - share) * np.arange(1, len(exact) + 1) / (len(exact) + 1)
    hidden = share * np.arange(1, below.sum() + 1) / (below.sum() + 1)
    line = stats.linregress(stats.norm.ppf(seen), np.log(exact))
    low = np.exp(line.intercept + line.slope * stats.norm.ppf(hidden))
    return float(np.concatenate([exact, low]).mean())


def figures(
    family: str,
    X: pd.DataFrame,
    truth: Vector,
    known: Bool[np.ndarray, " N"],
    step: float,
    q: float,
    twice: bool = False,
) -> list[float]:
    """Return the figures of one data set; of others than those `known` it holds the upper bound.

    What is known is above that bound. With a step, true values are rounded to it.
    """
    readings = step * np.round(truth / step) if step else truth
    floor = np.quantile(readings[known], q, method="lower")
    hidden = known & (readings <= floor)
    lowest = np.min(readings[known & ~hidden])
    limit = np.max(truth[~known], initial=0.0)
    fits = []
    for shown in (floor, lowest):
        y = np.where(hidden, shown, readings)
        seen = Observations.from_detection_limit(
            y, nondetect=hidden | ~known, floor=np.where(hidden, limit, 0.0)
        )
        model = CGP(family, random_state=0)
        fits.append(model.fit(X, seen))
        if not (twice and model.observations_.step[0]):
            break
    filled, (low, high) = fits[0].impute(), fits[0].impute_interval(0.9)
    held = (low <= truth) & (truth <= high)
    found = fits[0].imputation()
    half = fits[0].observations_.step[0] / 2
    share = held.astype(float)
    if half:
        ends = readings - half, np.minimum(readings, floor) + half
        a, b, c, d = (
            found.cdf(end[:, None])[hidden, 0]
            for end in (*ends, *(np.clip(end, low, high) for end in ends))
        )
        share[hidden] = (d - c) / (b - a)
    substituted = np.where(hidden, max(floor / np.sqrt(2), limit), readings)
    error, simple = (np.sqrt(np.mean((g - truth)[hidden] ** 2)) for g in (filled, substituted))
    only, y = known, np.where(hidden, floor, readings)
    means = [
        filled[only].mean(),
        substituted[only].mean(),
        kaplan_meier(y[only], hidden[only]),
        order_statistics(y[only], hidden[only]),
    ]
    gap = np.max(np.abs(filled - fits[1].impute())[hidden]) if len(fits) > 1 else 0.0
    return [hidden.sum(), held[hidden].mean(), share[hidden].mean(), error / simple,
            *(mean / truth[only].mean() for mean in means), gap]  # fmt: skip


def trials(rows: int, seeds: int) -> Iterator[tuple[str, list[tuple]]]:
    """Yield the name of each line with the arguments of `figures` for each of its data sets."""
    for family in ("log_normal", "gamma"):
        sets = [simulate(family, rows, seed) for seed in range(seeds)]
        for q in QUANTILES:
            every = np.ones(rows, dtype=bool)
            yield f"{family}, {q:.0%}", [(family, X, y, every, 1.0, q) for X, y in sets]
    for name, (file, output, flag, inputs) in TABLES.items():
        table = pd.read_csv(data_folder() / "nada2" / f"{file}.csv").dropna(
            subset=[output, *inputs]
        )
        y, missed = table[output].to_numpy(float), table[flag].astype(bool).to_numpy()
        limit = y[missed].max()
        known, y = ~missed & (y > limit), np.maximum(y, limit)
        for q in QUANTILES:
            yield f"{name}, {q:.0%}", [("log_normal", table[inputs], y, known, 0.0, q)]


def main() -> None:
    """Print the table line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--only", default="", help="lines of the table that contain this")
    chosen = parser.parse_args()
    print(
        "| | hidden | held | readings held | RMSE / substituted | mean: model | substituted "
        "| Kaplan-Meier | ROS | as < |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    warnings.simplefilter("ignore")
    for name, sets in trials(chosen.rows, chosen.seeds):
        if chosen.only in name:
            found = np.array(
                [figures(*each, twice=i == 0 and len(sets) > 1) for i, each in enumerate(sets)]
            )
            hidden, held, *others = found.mean(axis=0)
            error = found[:, 1].std() / np.sqrt(len(found))
            print(
                f"| {name} | {hidden:.0f} | {held:.3f} ± {error:.3f} | "
                + " | ".join(f"{figure:.3f}" for figure in others[:-1])
                + f" | {found[:, -1].max():.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
