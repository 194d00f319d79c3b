"""Write the arrays of a task, with our starting values: python -m benchmarks.rivals.tasks NAME DIR.

`new_york` is the paper's: 732 hours of stations 3711 and 366 with their rain, half of whose demand
is hidden; the truth of 440 later hours is predicted. A number of rows asks for so many hours of one
Gaussian output with a daily cycle, a weekly one and a trend, a quarter of them right-censored; the
truth of 5,000 other hours between them is predicted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rivals.common import Task
from censored_gp import CGP, MOCGP
from censored_gp.estimator.training import read_training
from censored_gp.kernels import RBF, Periodic
from censored_gp.model.model import choose_units
from censored_gp.model.starting_values import design_for, starting_model
from reproduction.protocol import new_york

TEST_ROWS = 5000
EPOCH = np.datetime64("1900-01-01T00")


def hourly_gaussian(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return so many hours of one censored Gaussian output, and hours between them to predict."""
    rng = np.random.default_rng(seed)
    hours = np.arange(rows + TEST_ROWS, dtype=float)
    day, week, trend = (2 * np.pi * hours / p for p in (24.0, 168.0, rows / 3.0))
    mean = 2.0 + np.sin(day) + 0.4 * np.cos(2 * day) + 0.5 * np.cos(week) + 0.3 * np.sin(3 * week)
    mean += 0.6 * np.sin(trend)
    truth = mean + 0.7 * rng.normal(size=len(hours))
    limit = mean + 0.8 + rng.normal(size=len(hours))
    test = np.zeros(len(hours), dtype=bool)
    test[rng.choice(len(hours), TEST_ROWS, replace=False)] = True
    seen, flags = np.minimum(truth, limit)[:, None], (truth > limit)[:, None]
    return _task(hours, 0.0 * hours, seen, flags, truth[:, None], test)


def stations() -> dict[str, np.ndarray]:
    """Return the paper's New York data, first draw of its censoring."""
    data = new_york(0)
    hours = data.time.astype("datetime64[h]").astype(float)
    test = np.arange(len(hours)) >= data.test.start
    kept = test | (np.arange(len(hours)) < data.train.stop)
    own = hours - hours[0], data.weather["rain"], data.observed, data.censored, data.truth
    return _task(*(column[kept] for column in own), test[kept])


def _task(hours, rain, seen, flags, truth, test) -> dict[str, np.ndarray]:
    train = {"hours": hours, "rain": rain, "y": seen, "censored": flags.astype(float)}
    later = {"test_hours": hours[test], "test_rain": rain[test], "test_y": truth[test]}
    return {name: column[~test] for name, column in train.items()} | later


def table(arrays: Any, which: str = "") -> dict[str, np.ndarray]:
    """Return inputs as our models take them."""
    hours = getattr(arrays, f"{which}hours")
    inputs = {"time": EPOCH + hours.astype(int)}
    rain = getattr(arrays, f"{which}rain")
    return inputs | ({"rain": rain} if np.ptp(arrays.rain) > 0 else {})


def our_model(arrays: Any, **settings: Any) -> Any:
    """Return the model whose kernels all rivals get: day, week, a trend, and rain if there is."""
    span = np.ptp(arrays.hours)
    kernels = [Periodic("1d", columns="time"), Periodic("7d", columns="time")]
    kernels += [RBF(f"{span / 8:.0f}h", columns="time")]
    kernels += [RBF(columns="rain")] if np.ptp(arrays.rain) > 0 else []
    if arrays.y.shape[1] == 1:
        return CGP("gaussian", kernels, random_state=0, **settings)
    return MOCGP("poisson", kernels, rank=2, random_state=0, **settings)


def starting_values(arrays: Any) -> dict[str, np.ndarray]:
    """Return our starting values in units of the outputs.

    A row of `kernels` has 0 for a periodic one and 1 for a smooth one, its input (0 the time, 1 the
    rain), period and lengthscale, in our parametrisation exp(-2 sin^2(pi r / p) / l^2) of periodic
    ones; `mixing` has the coefficients of each kernel, output and latent function.
    """
    model = our_model(arrays)
    flags = arrays.censored > 0
    data = read_training(
        model, table(arrays), arrays.y, censored=flags, capacity=None, lower=None, upper=None,
        side="right",
    )  # fmt: skip
    units = choose_units(data.likelihoods, data.seen.values())
    design = design_for(vars(model), data.likelihoods, data.columns, data.inputs)
    start = starting_model(design, units.apply(data.seen).values())
    prior, scale = start.priors["mean"], units.scale[:, None]
    noise = [np.exp(lmc.mean[0, 0]) for role, lmc in start.priors.items() if role == "scale"]
    kernels = [
        (isinstance(k, RBF), k.columns[0], getattr(k, "period", 0.0), k.lengthscale.item())
        for k in prior.kernels
    ]
    return {
        "kernels": np.array(kernels, dtype=float),
        "mixing": np.stack([scale * np.asarray(a)[0] for a in prior.mixing]),
        "mean": units.shift + units.scale * np.asarray(prior.mean)[0],
        "noise": units.scale[0] * np.array(noise),
    }


def main() -> None:
    """Write a task."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    arrays = stations() if name == "new_york" else hourly_gaussian(int(float(name)))
    folder.mkdir(parents=True, exist_ok=True)
    for key, column in arrays.items():
        np.save(folder / f"{key}.npy", np.asfortranarray(column))
    for key, column in starting_values(Task(folder)).items():
        np.save(folder / f"{key}.npy", column)


if __name__ == "__main__":
    main()
