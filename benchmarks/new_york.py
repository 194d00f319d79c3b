"""Test R² of true demand on the paper's New York data (its table 4, station 3711).

    python benchmarks/new_york.py [--draws 5] [--kernels paper|own|both] [--only NAME]

Means over draws of the paper's censoring rule with standard errors, the paper's own figures beside
them. Models see what was observed in the 732 training hours only; the validation hours are unused.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from censored_gp import presets
from censored_gp.datasets import CensoredDemand, new_york
from censored_gp.kernels import RBF, Kernel, Periodic
from censored_gp.likelihoods import NegativeBinomial, Poisson
from censored_gp.metrics import r2

PAPER = {
    ("gaussian", "NCGP"): 0.172,
    ("gaussian", "MONCGP"): 0.190,
    ("gaussian", "CGP"): 0.339,
    ("gaussian", "HCGP"): 0.366,
    ("gaussian", "HMOCGP"): 0.381,
    ("poisson", "NCGP"): 0.150,
    ("poisson", "MONCGP"): 0.218,
    ("poisson", "CGP"): 0.201,
    ("poisson", "MOCGP"): 0.262,
    ("negative_binomial", "NCGP"): 0.150,
    ("negative_binomial", "MONCGP"): 0.170,
    ("negative_binomial", "CGP"): 0.174,
    ("negative_binomial", "HMOCGP"): 0.224,
}
ALSO = [("gaussian", "MOCGP")]
# The paper gives the rate of counts by a softplus; our own default is the exponential.
PAPER_LIKELIHOODS = {
    "gaussian": "gaussian",
    "poisson": Poisson(rate="softplus"),
    "negative_binomial": NegativeBinomial(mean="softplus", dispersion="softplus"),
}


def paper_kernels() -> list[Kernel]:
    """Return the kernels of the paper's published code, at its starting values."""
    return [
        Periodic("1d", 1.0, columns="time"),
        Periodic("7d", 1.0, columns="time"),
        RBF("1h", columns="time"),
        RBF(1.0, columns="rain"),
    ]


def score(model: object, data: CensoredDemand) -> tuple[float, float]:
    """Fit to the training hours as observed; return R² of the true test demand and seconds."""
    start = time.perf_counter()
    model.fit(data.inputs("rain", rows=data.train), data.observations(data.train))
    seconds = time.perf_counter() - start
    predicted = model.predict(data.inputs("rain", rows=data.test))
    return r2(predicted[:, 0], data.truth[data.test, 0]), seconds


def references(data: CensoredDemand) -> dict[str, float]:
    """Return R² of two simple methods, on what was observed and on the truth."""
    hour = data.time.astype("datetime64[h]").astype(int)
    table = np.stack([hour % 24, (hour // 24 + 4) % 7, data.weather["rain"]], axis=1)
    week, target = hour % 168, data.truth[data.test, 0]
    found = {}
    for name, seen in (("observed", data.observed[:, 0]), ("truth", data.truth[:, 0])):
        train, values = week[data.train], seen[data.train]
        means = np.array([values[train == h].mean() for h in range(168)])
        found[f"hour-of-week mean of the {name}"] = r2(means[week[data.test]], target)
        booster = HistGradientBoostingRegressor(random_state=0).fit(table[data.train], values)
        found[f"gradient boosting on the {name}"] = r2(booster.predict(table[data.test]), target)
    return found


def report(label: str, values: list[float], paper: float | None, seconds: float | None) -> None:
    """Print one row of the table."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    known = "   -" if paper is None else f"{paper:.3f}"
    timed = "" if seconds is None else f" | {seconds:5.1f}"
    print(f"| {label:44s} | {np.mean(values):.3f} ± {error:.3f} | {known} {timed} |", flush=True)


def main() -> None:
    """Run all rows and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--kernels", choices=("paper", "own", "both"), default="both")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    draws = [new_york(seed) for seed in range(chosen.draws)]
    print("| test R² of true demand, station 3711 | mean ± s.e. | paper | seconds per fit |")
    print("|---|---|---|---|")
    simple = [references(data) for data in draws]
    for name in simple[0]:
        report(name, [each[name] for each in simple], None, None)
    for kind in ("paper", "own") if chosen.kernels == "both" else (chosen.kernels,):
        for family, name in [*PAPER, *ALSO]:
            label = f"{kind} kernels: {family} {name}"
            if chosen.only not in label:
                continue
            likelihood = PAPER_LIKELIHOODS[family] if kind == "paper" else family
            kernels = paper_kernels() if kind == "paper" else None
            build = getattr(presets, name)
            scores = [score(build(likelihood=likelihood, kernels=kernels), d) for d in draws]
            values, seconds = (list(column) for column in zip(*scores, strict=True))
            report(label, values, PAPER.get((family, name)), float(np.median(seconds)))


if __name__ == "__main__":
    main()
