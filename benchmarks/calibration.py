"""Calibration of the whole pipeline: do 90 % intervals of cells and sums hold what they promise?

    python -m benchmarks.calibration [--families gaussian ...] [--censored 0 30 60 80]
        [--seeds 0 24] [--settings '{"hyperparameters": "fixed"}'] [--scale 0.5]
        [--white | --stations | --prior | --engines] [--results FILE]

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
import dataclasses
import functools
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import chisquare

from censored_gp import CensoredGP
from censored_gp.data.errors import DataError
from censored_gp.data.observations import Observations
from censored_gp.data.validation import within_support
from censored_gp.inference import Task, infer
from censored_gp.inference.fisher import from_vector, positions, to_vector
from censored_gp.inference.hyperparameters import (
    KERNEL_SPREAD,
    POINTS,
    SIZE_SPREAD,
    level_deviation,
)
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.kernels import RBF
from censored_gp.likelihoods import as_likelihood
from censored_gp.model.compilation import float64
from censored_gp.model.lmc import LMC, from_free, to_free
from censored_gp.model.model import Design, Model, Units
from censored_gp.model.starting_values import starting_model, uncensored_values
from censored_gp.prediction.predictive import Prediction

Result = dict[str, Any]
"""What came of one replicate."""
DRAWS = 240
"""Joint draws of the sums."""
Cells = Float[np.ndarray, "N D"]
NAMES, UNITS = ("a", "b"), Units(np.zeros(2), np.ones(2))
"""Names and units of the outputs of a world."""
FAMILIES = ("gaussian", "gamma", "poisson", "negative_binomial")
LEVELS = {"gaussian": (0.0, 1.0), "student_t": (0.0, 1.0), "beta": (0.0, 0.7)}
"""Mean and deviation of the level of the latent mean; of other families these are (2, 0.5)."""
WIDEST = 200.0
"""Logarithms of the sizes of values in one world of the prior span at most this."""
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


def central_model(family: str, rows: int, scale: float = -1.0) -> Model:
    """Return the model in the middle of the distributions that worlds are drawn from."""
    likelihood, priors, outputs = as_likelihood(family), {}, len(NAMES)
    for role in [parameter.role for parameter in likelihood.parameters]:
        level = SCALES.get(family, scale) if role == "scale" else 1.5
        level = LEVELS.get(family, (2.0, 0.5))[0] if role == "mean" else level
        mean = np.full((1, outputs), level)
        priors[role] = LMC((), (), mean, tuple(range(outputs)))
        if role == "mean":
            kernels = (RBF(np.array([0.1 * rows]), columns=(0,)),)
            mixing = (np.full((1, outputs, 2), size_of(family) / np.sqrt(2.0)),)
            priors[role] = LMC(kernels, mixing, mean, tuple(range(outputs)))
    return Model(priors, (likelihood,) * outputs)


def size_of(family: str) -> float:
    """Return the middle of the deviations of latent means."""
    return 0.7 if LEVELS.get(family, (2.0, 0.5))[1] < 0.8 else 1.0


def world_of(
    model: Model, share: float, size: float, rows: int, random: np.random.Generator
) -> World:
    """Draw latent functions, outputs, and limits that censor a share of them.

    A limit is random but for a constant, which is the largest that censors the share: what limits
    tell beyond that outputs reach them is told by the outputs that were seen (type II censoring).
    """
    support = model.likelihoods[0].support
    everything = np.arange(rows + rows // 4, dtype=float)[:, None]
    prior = Prediction(Posterior.of_prior(model, everything), UNITS, everything, NAMES)
    y = prior.sample(1, int(random.integers(2**31)))[0]
    new = np.zeros(len(y), dtype=bool)
    new[random.permutation(len(y))[: rows // 4]] = True
    truth = y[~new]
    shift = 0.7 * size * random.standard_normal(truth.shape)
    positive = support.lower == 0.0 and support.upper > 1.0
    least = 0.5 if support.discrete else 1e-300
    place = (np.log(np.maximum(truth, least)) if positive else truth) - shift
    limit = shift + np.quantile(place, 1.0 - share, axis=0, method="lower")
    if positive:
        limit = np.exp(limit)
    if support.discrete:
        # Above the count that the constant is of: this is seen, as all below their limits are.
        limit = np.floor(limit * (1.0 + 1e-9)) + 1.0
    reached = truth >= limit if support.discrete else truth > limit
    censored = reached if share > 0 else np.zeros(truth.shape, dtype=bool)
    return World(everything[~new], truth, everything[new], y[new], limit, censored)


def simulate(family: str, share: float, seed: int, rows: int = 80, scale: float = -1.0) -> World:
    """Draw hyper-parameters around those of the central model, and a world of them."""
    random = np.random.default_rng([seed, sum(map(ord, family))])
    centre, priors = central_model(family, rows, scale), {}
    for role, lmc in centre.priors.items():
        spread = LEVELS.get(family, (2.0, 0.5))[1] if role == "mean" else 0.3
        mean = random.normal(lmc.mean, spread)
        priors[role] = dataclasses.replace(lmc, mean=mean)
        if role == "mean":
            length = 0.1 * rows * np.exp(random.normal(0.0, 0.5, 1))
            size = size_of(family) * np.exp(random.normal(0.0, 0.4, (len(NAMES), 1)))
            angle = random.uniform(0, np.pi / 2, len(NAMES))
            mixing = size * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            priors[role] = LMC((RBF(length, columns=(0,)),), (mixing[None],), mean, lmc.outputs)
    model = dataclasses.replace(centre, priors=priors)
    return world_of(model, share, size_of(family), rows, random)


def white_noise(rows: int, outputs: int, seed: int) -> World:
    """Return independent standard normal outputs, of which a fifth is hidden."""
    random = np.random.default_rng(seed)
    inputs, truth = np.arange(rows, dtype=float)[:, None], random.standard_normal((rows, outputs))
    new = random.standard_normal((rows, outputs))
    nothing = np.zeros(truth.shape, dtype=bool)
    return World(inputs, truth, inputs, new, np.full(truth.shape, np.inf), nothing)


def stations(outputs: int, days: int, seed: int) -> World:
    """Return hourly Poisson counts of many outputs that share a day, a week and slow functions.

    Limits are random, around the mean of each output, and reached in three hours of ten or so.
    """
    random = np.random.default_rng(seed)
    hours = np.arange(24.0 * days)
    apart = hours[:, None] - hours
    rate = np.tile(random.normal(1.3, 0.5, outputs), (len(hours), 1))
    day, week = (np.sin(np.pi * apart / period) ** 2 for period in (24.0, 168.0))
    parts = (-2.0 * day / 0.8**2, 2, 0.5), (-2.0 * week / 0.3**2, 1, 0.3)
    for log_gram, rank, size in (*parts, (-0.5 * (apart / 40.0) ** 2, 2, 0.25)):
        factor = np.linalg.cholesky(np.exp(log_gram) + 1e-8 * np.eye(len(hours)))
        shared = factor @ random.standard_normal((len(hours), rank))
        rate += size * shared @ random.standard_normal((rank, outputs))
    truth = random.poisson(np.exp(rate)).astype(float)
    level = np.exp(rate).mean(axis=0)
    limit = np.ceil(level * np.exp(random.normal(0.3, 0.6, truth.shape)))
    times: Any = {"time": np.datetime64("2024-03-04T00") + hours.astype(int)}
    return World(times, truth, times, truth, limit, truth >= limit)


def prior_model(model: Model, random: np.random.Generator) -> Model:
    """Draw hyper-parameters from the prior that fits assume around those of a model."""
    free = {role: to_free(lmc) for role, lmc in model.priors.items()}
    drawn, places = to_vector(free), positions(free)
    for role, lmc in free.items():
        levels = np.ravel(places[role].mean)
        deviation = np.broadcast_to(level_deviation(role, lmc), lmc.mean.shape)
        drawn[levels] += np.ravel(deviation) * random.standard_normal(len(levels))
        for at in map(np.ravel, jax.tree.leaves(places[role].kernels)):
            drawn[at] += KERNEL_SPREAD * random.standard_normal(len(at))
        sizes = list(zip(lmc.mixing, places[role].mixing, strict=True))
        rows = (zip(*(p.reshape(-1, p.shape[-1]) for p in pair), strict=True) for pair in sizes)
        for a, at in itertools.chain.from_iterable(rows):
            turned = random.standard_normal(len(a))
            length = np.linalg.norm(a) * np.exp(SIZE_SPREAD * random.standard_normal())
            drawn[at] = length * turned / np.linalg.norm(turned)
    priors = {role: from_free(lmc) for role, lmc in from_vector(drawn, free).items()}
    return dataclasses.replace(model, priors=jax.tree.map(np.asarray, priors))


def observe(world: World) -> Observations:
    """Return what was seen of the training rows."""
    seen = np.where(world.censored, world.limit, world.truth)
    upper = np.where(world.censored, np.inf, seen)
    return Observations(seen, upper, NAMES)


def draw_task(
    family: str, share: float, random: np.random.Generator, rows: int = 80, scale: float = -1.0
) -> tuple[Task, World, Model]:
    """Draw a model from its prior and a world of it; return what is to be inferred from it.

    Worlds whose values a fit would refuse, or for which its bound is not finite (1e-205 beside
    2000), are drawn anew. What is seen decides this: posteriors of the others do not depend on it.
    """
    centre = central_model(family, rows, scale)
    while True:
        truth = prior_model(centre, random)
        world = world_of(truth, share, size_of(family), rows, random)
        try:
            seen = within_support(observe(world), centre.likelihoods)
        except DataError:
            continue
        values = uncensored_values(seen, centre.likelihoods)
        logs = np.log(np.abs(values[values != 0.0]))
        if np.ptp(logs) < WIDEST:
            break
    kernels = {"mean": (RBF(0.1 * rows, columns=(0,)),)}
    begin = starting_model(Design(centre.likelihoods, kernels), values)
    return Task(begin, seen, world.inputs, explore=True, centre=centre.priors), world, truth


def from_prior(
    family: str,
    share: float,
    seed: int,
    settings: dict[str, Any],
    rows: int = 80,
    scale: float = -1.0,
) -> Result:
    """Draw a world from the prior of the model and infer it: simulation-based calibration."""
    random = np.random.default_rng([seed, sum(map(ord, family)), 1])
    with float64():
        task, world, truth = draw_task(family, share, random, rows, scale)
        start = time.process_time()
        chosen = NaturalSettings(**{"points": POINTS} | settings)
        posterior, result = infer("natural", task, chosen)
    took = time.process_time() - start
    if world.censored.any():
        own = posterior, UNITS, world.inputs, NAMES, task.observations, np.arange(rows)
    else:
        own = posterior, UNITS, world.new_inputs, NAMES
    length = posterior.priors["mean"].kernels[0].lengthscale.ravel()
    below = np.sum(length < truth.priors["mean"].kernels[0].lengthscale.item())
    rank = (below + random.uniform()) / (len(length) + 1)
    found = score(Prediction(*own), world)
    warned = [] if result.converged else [result.message]
    return found | {"length": float(rank), "seconds": took, "warned": warned}


def from_world(
    family: str,
    share: float,
    seed: int,
    settings: dict[str, Any],
    rows: int = 80,
    scale: float = -1.0,
) -> Result:
    """Simulate a world and fit it."""
    return replicate(family, simulate(family, share, seed, rows, scale=scale), settings)


def replicate(family: str, world: World, settings: dict[str, Any]) -> Result:
    """Fit one world with the defaults of the estimator; return what the intervals held."""
    seen = np.where(world.censored, world.limit, world.truth)
    model, start = CensoredGP(family, **settings), time.process_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(world.inputs, seen, censored=world.censored)
    took = time.process_time() - start
    any_censored = world.censored.any()
    found = model.imputation() if any_censored else model.predict_distribution(world.new_inputs)
    messages = [str(one.message) for one in told]
    return score(found, world) | {"seconds": took, "warned": messages}


def score(found: Prediction, world: World) -> Result:
    """Return what 90 % intervals of cells and sums held, and ranks of the truth among draws."""
    start, some = time.process_time(), world.censored.any()
    truth = world.truth if some else world.new
    cells = world.censored if some else np.ones(truth.shape, dtype=bool)
    seen = np.where(world.censored, world.limit, world.truth) if some else 0.0
    low, high = found.interval(0.9)
    drawn = found.sample(DRAWS, 0)
    part = np.where(cells, drawn - seen, 0.0).sum(axis=1)
    true = np.where(cells, truth - seen, 0.0).sum(axis=0)
    ends = np.quantile(part, [0.05, 0.95], axis=0)
    random = np.random.default_rng(0)
    one = tuple(random.permutation(np.argwhere(cells))[0])
    return {
        "cells": float(((low <= truth) & (truth <= high))[cells].mean()),
        "sums": float(((ends[0] <= true) & (true <= ends[1])).mean()),
        "ranks": [rank_among(*each, random) for each in zip(part.T, true, strict=True)],
        "total": rank_among(part.sum(axis=1), true.sum(), random),
        "cell": rank_among(drawn[:, *one], truth[one], random),
        "estimated": float(np.median(part, axis=0).sum()),
        "true": float(true.sum()),
        "width": float(np.mean(high - low)),
        "answers": time.process_time() - start,
    }


def rank_among(drawn: Float[np.ndarray, "S"], truth: float, random: np.random.Generator) -> float:
    """Return the share of draws below the truth, those that equal it at random on either side."""
    return float(np.mean(drawn < truth) + random.uniform() * np.mean(drawn == truth))


def compare_engines(
    family: str, share: float, seed: int, settings: dict[str, Any], **world: Any
) -> Result:
    """Return how far answers of `natural` are from those of `nuts`, with hyper-parameters sampled.

    Distances of the means of training cells, unknown as new ones, are in deviations of `nuts`.
    """
    own = simulate(family, share, seed, **world)
    seen, found, seconds = np.where(own.censored, own.limit, own.truth), [], []
    draws = {"draws": 1000, "warmup": 400, "target_acceptance": 0.95} | settings
    for engine, chosen in (("natural", {}), ("nuts", draws)):
        start = time.process_time()
        # Nuts knows no nuggets, which kernels that were not chosen bring.
        model = CensoredGP(
            family, kernels=RBF(), engine=engine, hyperparameters="mixed", heteroscedastic=False,
            rank=1, engine_settings=chosen, random_state=0,
        )  # fmt: skip
        model.fit(own.inputs, seen, censored=own.censored)
        found.append(model.predict_distribution(own.inputs))
        seconds.append(time.process_time() - start)
    mixed, drawn = found
    shift = np.abs((mixed.mean - drawn.mean) / drawn.std)
    width, reference = (high - low for low, high in (each.interval(0.9) for each in found))
    return {
        "shift": float(np.sqrt(np.mean(shift**2))),
        "largest shift": float(shift.max()),
        "width": float(np.mean(width) / np.mean(reference)),
        "seconds": seconds,
    }


def compared(name: str, found: list[Result]) -> str:
    """Return the line of the table about the engines in one case."""
    figures = (
        f"{key} {np.mean([one[key] for one in found]):.3f} (at most "
        f"{max(one[key] for one in found):.3f})"
        for key in ("shift", "largest shift", "width")
    )
    seconds = np.mean([one["seconds"] for one in found], axis=0).round(1).tolist()
    return f"{name:28s} {'  '.join(figures)}  seconds {seconds}"


def summary(name: str, found: list[Result]) -> str:
    """Return the lines of the table about one case."""

    def mean(key: str) -> str:
        values = np.array([one[key] for one in found])
        values = values[np.isfinite(values)]
        return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"

    estimated, true = (np.array([one[key] for one in found]) for key in ("estimated", "true"))
    seconds, answers = (np.median([one[key] for one in found]) for key in ("seconds", "answers"))
    warned = np.mean([bool(one["warned"]) for one in found])
    lines = [
        f"{name:28s} cells {mean('cells')}  sums {mean('sums')}  "
        f"ratio {estimated.sum() / true.sum():.2f} median {np.median(estimated / true):.2f}  "
        f"width {np.median([one['width'] for one in found]):.2f}  "
        f"{seconds:.1f} s + {answers:.1f} s  warned {warned:.2f}"
    ]
    for key in ("total", "cell", "length"):
        ranks = [one[key] for one in found if key in one]
        if ranks:
            tenths = np.histogram(ranks, bins=10, range=(0, 1))[0]
            lines.append(f"{'':28s} ranks of {key:6s} {tenths.tolist()} p={uniformity(ranks):.3f}")
    return "\n".join(lines)


def uniformity(ranks: list[float]) -> float:
    """Return the p-value of a chi-squared test, in fifths, that ranks are uniform."""
    return float(chisquare(np.histogram(ranks, bins=5, range=(0, 1))[0]).pvalue)


def main() -> None:
    """Run the cases that the command line names, and print the results of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--censored", nargs="+", type=int, default=[0, 30, 60, 80])
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 24], help="first, and end")
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--scale", type=float, default=-1.0, help="level of the log scale")
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--white", action="store_true", help="white noise: 5 x 50 and 10 x 10")
    parser.add_argument("--stations", action="store_true", help="40 outputs over two weeks")
    parser.add_argument("--prior", action="store_true", help="worlds from the prior of the model")
    parser.add_argument("--engines", action="store_true", help="natural beside nuts")
    parser.add_argument("--results", type=Path, help="a file of JSON lines")
    given = parser.parse_args()
    cases: dict[str, Callable[[int], Result]] = {}
    if given.white:
        for shape in ((5, 50), (10, 10)):
            cases[f"gaussian, white {shape}"] = lambda seed, shape=shape: replicate(
                "gaussian", white_noise(*shape, seed), given.settings
            )
    if given.stations:
        cases["poisson, 40 stations x 336 hours"] = lambda seed: replicate(
            "poisson", stations(40, 14, seed), given.settings
        )
    shares = () if given.white or given.stations else given.censored
    for family, percent in itertools.product(given.families, shares):
        own = {"rows": given.rows, "scale": given.scale}
        kind = from_prior if given.prior else compare_engines if given.engines else from_world
        run = functools.partial(kind, family, percent / 100)
        name = f"{family}, {percent} %{', prior' * given.prior}{', engines' * given.engines}"
        cases[name] = functools.partial(run, settings=given.settings, **own)
    run = json.dumps([given.rows, given.scale, given.settings])
    if given.results:
        given.results.touch()
    lines = given.results.read_text().splitlines() if given.results else []
    known = {(line["run"], line["case"], line["seed"]): line for line in map(json.loads, lines)}
    for case, replicated in cases.items():
        found = []
        for seed in range(*given.seeds):
            line = known.get((run, case, seed))
            if line is None:
                line = {"run": run, "case": case, "seed": seed, **replicated(seed=seed)}
                if given.results:
                    with given.results.open("a") as file:
                        print(json.dumps(line), file=file)
            found.append(line)
        print((compared if given.engines else summary)(case, found), flush=True)


if __name__ == "__main__":
    main()
