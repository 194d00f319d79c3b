"""Calibration of the whole pipeline: do 90 % intervals of cells and sums hold what they promise?

    python -m benchmarks.calibration [--families gaussian ...] [--censored 0 30 60 80]
        [--seeds 0 24] [--settings '{"hyperparameters": "fixed"}'] [--scale 0.5] [--white]
        [--results FILE]

A world has hyper-parameters of its own: lengthscale, couplings, level and noise are drawn from wide
distributions, then latent functions and outputs from the model, and limits independently of them.
The estimator sees none of this and fits with its defaults. Of each family and share of censored
cells: how many cells (censored ones, or new ones where none is) and sums (`lost_demand` by output,
or sums of new rows) the intervals hold, with standard errors over worlds; the pooled and the median
ratio of estimated to true sums; and how evenly the true sums rank among joint draws of them, as a
histogram in tenths with the p-value of a chi-squared test. Each replicate is appended to a file of
results; what this holds already is not run again.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import chisquare

from censored_gp import CensoredGP
from censored_gp.inference.posterior import Posterior
from censored_gp.kernels import RBF
from censored_gp.likelihoods import as_likelihood
from censored_gp.model.lmc import LMC
from censored_gp.model.model import Model, Units
from censored_gp.prediction.predictive import Prediction

DRAWS = 240
"""Joint draws of the sums."""
Cells = Float[np.ndarray, "N D"]
FAMILIES = ("gaussian", "gamma", "poisson", "negative_binomial")
LEVELS = {"gaussian": (0.0, 1.0), "student_t": (0.0, 1.0), "beta": (0.0, 0.7)}
"""Mean and deviation of the level of the latent mean; of other families these are (2, 0.5)."""
SCALES = {"beta": 2.0}
"""The level of the latent scale, which is -1 in other families."""


class World(NamedTuple):
    """Inputs, true outputs at training and at new rows, limits, and which cells are censored."""

    inputs: Float[np.ndarray, "N 1"]
    truth: Cells
    new_inputs: Float[np.ndarray, "M 1"]
    new: Cells
    limit: Cells
    censored: Bool[np.ndarray, "N D"]


def simulate(
    family: str, share: float, seed: int, rows: int = 80, outputs: int = 2, scale: float = -1.0
) -> World:
    """Draw hyper-parameters, latent functions, outputs, and limits that censor a share of them."""
    random = np.random.default_rng([seed, sum(map(ord, family))])
    likelihood = as_likelihood(family)
    level, spread = LEVELS.get(family, (2.0, 0.5))
    priors = {}
    for role in [parameter.role for parameter in likelihood.parameters]:
        if role == "mean":
            length = np.array([rows * np.exp(random.normal(np.log(0.1), 0.5))])
            size = np.exp(random.normal(np.log(0.7 if spread < 0.8 else 1.0), 0.4, (outputs, 1)))
            angle = random.uniform(0, np.pi / 2, outputs)
            mixing = size * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            mean = random.normal(level, spread, (1, outputs))
            priors[role] = LMC((RBF(length, columns=(0,)),), (mixing[None],), mean, (0, 1))
        else:
            middle = SCALES.get(family, scale) if role == "scale" else 1.5
            mean = random.normal(middle, 0.3, (1, outputs))
            priors[role] = LMC((), (), mean, (0, 1))
    model = Model(priors, (likelihood,) * outputs)
    everything = np.arange(rows + rows // 4, dtype=float)[:, None]
    units, names = Units(np.zeros(outputs), np.ones(outputs)), tuple(map(str, range(outputs)))
    prior = Prediction(Posterior.of_prior(model, everything), units, everything, names)
    y = prior.sample(1, int(random.integers(2**31)))[0]
    new = np.zeros(len(y), dtype=bool)
    new[random.permutation(len(y))[: rows // 4]] = True
    truth = y[~new]
    shift = random.standard_normal(truth.shape) * 0.7
    if likelihood.support.lower == 0.0 and likelihood.support.upper > 1.0:
        relative = np.log(np.maximum(truth, 0.5)) - shift * np.log(np.maximum(truth, 0.5)).std(0)
        limit = np.exp(
            np.quantile(relative, 1 - share, axis=0) + np.log(np.maximum(truth, 0.5)) - relative
        )
    else:
        relative = truth - shift * truth.std(axis=0)
        limit = np.quantile(relative, 1 - share, axis=0) + truth - relative
    if likelihood.support.discrete:
        limit = np.maximum(np.round(limit), 1.0)
    censored = (truth >= limit) if share > 0 else np.zeros(truth.shape, dtype=bool)
    return World(everything[~new], truth, everything[new], y[new], limit, censored)


def white_noise(rows: int, outputs: int, seed: int) -> World:
    """Return independent standard normal outputs, of which a fifth is hidden."""
    random = np.random.default_rng(seed)
    inputs, truth = np.arange(rows, dtype=float)[:, None], random.standard_normal((rows, outputs))
    new = random.standard_normal((rows, outputs))
    nothing = np.zeros(truth.shape, dtype=bool)
    return World(inputs, truth, inputs, new, np.full(truth.shape, np.inf), nothing)


def replicate(family: str, world: World, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit one world; return what the intervals held."""
    seen = np.where(world.censored, world.limit, world.truth)
    model, start = CensoredGP(family, **settings), time.process_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(world.inputs, seen, censored=world.censored)
    took = time.process_time() - start
    if world.censored.any():
        low, high = model.impute_interval(0.9)
        held = ((low <= world.truth) & (world.truth <= high))[world.censored]
        drawn = model.imputation().sample(DRAWS, 0)
        part = np.where(world.censored, drawn - seen, 0.0).sum(axis=1)
        true = np.where(world.censored, world.truth - seen, 0.0).sum(axis=0)
    else:
        found = model.predict_distribution(world.new_inputs)
        low, high = found.interval(0.9)
        held = ((low <= world.new) & (world.new <= high)).ravel()
        part, true = found.sample(DRAWS, 0).sum(axis=1), world.new.sum(axis=0)
    ends = np.quantile(part, [0.05, 0.95], axis=0)
    jitter = np.random.default_rng(0).uniform(size=true.shape)
    below, equal = (part < true).mean(axis=0), (part == true).mean(axis=0)
    return {
        "cells": float(held.mean()) if held.size else np.nan,
        "sums": float(((ends[0] <= true) & (true <= ends[1])).mean()),
        "ranks": (below + jitter * equal).tolist(),
        "estimated": float(np.median(part, axis=0).sum()),
        "true": float(true.sum()),
        "width": float(np.mean(high - low)),
        "seconds": took,
        "answers": time.process_time() - start - took,
        "warned": [str(one.message) for one in told],
    }


def summary(name: str, found: list[dict[str, Any]]) -> str:
    """Return one line of the table."""

    def mean(key: str) -> str:
        values = np.array([one[key] for one in found])
        values = values[np.isfinite(values)]
        return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"

    estimated, true = (np.array([one[key] for one in found]) for key in ("estimated", "true"))
    ranks = np.concatenate([one["ranks"] for one in found])
    tenths = np.histogram(ranks, bins=10, range=(0, 1))[0]
    fifths = tenths.reshape(5, 2).sum(axis=1)
    seconds, answers = (np.median([one[key] for one in found]) for key in ("seconds", "answers"))
    warned = np.mean([bool(one["warned"]) for one in found])
    return (
        f"{name:28s} cells {mean('cells')}  sums {mean('sums')}  "
        f"ratio {estimated.sum() / true.sum():.2f} median {np.median(estimated / true):.2f}  "
        f"ranks {tenths.tolist()} p={chisquare(fifths).pvalue:.3f}  "
        f"width {np.median([one['width'] for one in found]):.2f}  "
        f"{seconds:.1f} s + {answers:.1f} s  warned {warned:.2f}"
    )


def main() -> None:
    """Run the cases that the command line names, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--censored", nargs="+", type=int, default=[0, 30, 60, 80])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 24], help="first, and end")
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--scale", type=float, default=-1.0, help="level of the log scale")
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--white", action="store_true", help="white noise: 5 x 50 and 10 x 10")
    parser.add_argument("--results", type=Path, help="a file of JSON lines")
    given = parser.parse_args()
    worlds: dict[str, Callable[[int], World]] = {}
    if given.white:
        for shape in ((5, 50), (10, 10)):
            worlds[f"gaussian, white {shape}"] = functools.partial(white_noise, *shape)
    else:
        for family, percent in itertools.product(given.families, given.censored):
            own = {"rows": given.rows, "scale": given.scale}
            worlds[f"{family}, {percent} %"] = functools.partial(
                simulate, family, percent / 100, **own
            )
    run = json.dumps([given.rows, given.scale, given.settings])
    if given.results:
        given.results.touch()
    lines = given.results.read_text().splitlines() if given.results else []
    known = {(line["run"], line["case"], line["seed"]): line for line in map(json.loads, lines)}
    for case, draw in worlds.items():
        found = []
        for seed in range(*given.seeds):
            line = known.get((run, case, seed))
            if line is None:
                one = replicate(case.partition(",")[0], draw(seed=seed), given.settings)
                line = {"run": run, "case": case, "seed": seed, **one}
                if given.results:
                    with given.results.open("a") as file:
                        print(json.dumps(line), file=file)
            found.append(line)
        print(summary(case, found), flush=True)


if __name__ == "__main__":
    main()
