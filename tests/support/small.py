"""Small tasks that many tests share: shapes are few, so that compiled programs are shared too."""

import dataclasses
from typing import Any

import numpy as np

from censored_gp.data.observations import Observations
from censored_gp.data.validation import within_support
from censored_gp.inference.result import Task
from censored_gp.kernels import RBF, Periodic
from censored_gp.likelihoods import Gaussian, NegativeBinomial, Poisson
from censored_gp.model.lmc import to_free
from censored_gp.model.model import Cycle, Design
from censored_gp.model.starting_values import starting_model

RNG = np.random.default_rng


def outputs(likelihoods, x, seed):
    """One sine for each output, a little shifted, seen through its family."""
    rng = RNG(seed)
    columns = []
    for d, likelihood in enumerate(likelihoods):
        latent = np.sin(x[:, 0] + 0.4 * d)
        if isinstance(likelihood, Gaussian):
            columns.append(latent + 0.3 * rng.normal(size=len(x)))
        elif isinstance(likelihood, Poisson):
            columns.append(rng.poisson(np.exp(1 + latent)))
        elif isinstance(likelihood, NegativeBinomial):
            columns.append(rng.poisson(np.exp(2 + latent) * rng.gamma(4, 1 / 4, len(x))))
        else:
            columns.append(np.exp(latent) * rng.gamma(4, 1 / 4, len(x)))
    return np.stack(columns, axis=1).astype(float)


def observe(y, censored=0.25, missing=0.0, seed=1):
    """Right-censor the largest share of every output, and lose some cells altogether."""
    shares = np.broadcast_to(censored, y.shape[1])
    capacity = [
        np.quantile(column, 1 - share, method="lower") if share else np.inf
        for column, share in zip(y.T, shares, strict=True)
    ]
    lost = RNG(seed).uniform(size=y.shape) < missing
    seen = np.where(lost, np.nan, np.minimum(y, capacity))
    return Observations.from_capacity(seen, np.broadcast_to(capacity, y.shape))


def make_task(
    likelihoods,
    kernels,
    rows=20,
    coupled=True,
    rank=None,
    censored: Any = 0.25,
    missing=0.0,
    seed=0,
    nugget=None,
    **choices,
):
    """A task at its starting values."""
    x = np.linspace(0.0, 10.0, rows)[:, None] + RNG(seed).uniform(-0.1, 0.1, (rows, 1))
    observations = observe(outputs(likelihoods, x, seed), censored, missing)
    design = Design(tuple(likelihoods), kernels, coupled, rank, nugget)
    model = starting_model(design, observations.values())
    settings: Any = {"tolerance": 0.0} | choices
    return Task(model, observations, x, **settings)


def mixed(**changes):
    """A Gaussian with its own noise level at every row, coupled to a Poisson; cells are missing."""
    kernels = {"mean": (RBF(1.5), Periodic(4.0, 1.0)), "scale": (RBF(2.0),)}
    settings = {"missing": 0.2, "censored": (0.25, 0.0)} | changes
    return make_task((Gaussian(), Poisson()), kernels, **settings)


def scattered(**changes):
    """The same, with a nugget of the Poisson's mean that changes over a cycle."""
    return mixed(nugget=Cycle(0, 5.0, 3), **changes)


def separate(**changes):
    """Two Gaussians with nothing in common but their inputs."""
    kernels = {"mean": (RBF(1.5),), "scale": ()}
    return make_task((Gaussian(), Gaussian()), kernels, coupled=False, **changes)


def deficient(**changes):
    """Two Gaussians that are multiples of one function: K of Eq. (5) has half the full rank."""
    kernels = {"mean": (RBF(1.5),), "scale": ()}
    return make_task((Gaussian(), Gaussian()), kernels, rank=1, **changes)


def many(**changes):
    """Six Gaussians: more outputs than have tables of their own."""
    kernels = {"mean": (RBF(1.5), Periodic(4.0, 1.0)), "scale": ()}
    return make_task((Gaussian(),) * 6, kernels, missing=0.2, **changes)


def single(likelihood, **changes):
    """One output, one function of the input."""
    return make_task((likelihood,), {"mean": (RBF(1.5),), "scale": ()}, **changes)


def of_every_kind(likelihood, rows=20, **choices):
    """Two outputs of one family: exact, right-, left- and interval-censored and missing cells."""
    x, rng = np.linspace(0.0, 10.0, rows)[:, None], RNG(0)
    latent = [0.5 * np.sin(x + np.array([0.0, 0.4]))] + [np.zeros((rows, 2))] * 2
    theta = likelihood.theta(*latent[: len(likelihood.parameters)])
    at, kind = rng.uniform(0.2, 0.8, (rows, 2)), rng.permuted(np.arange(2 * rows) % 6)
    low, y, high = (np.asarray(likelihood.quantile(at + s, *theta)) for s in (-0.15, 0.0, 0.15))
    kind = kind.reshape(rows, 2)
    lower = np.select([kind == 1, kind == 2, kind == 3], [y, -np.inf, low], y)
    upper = np.select([kind == 1, kind == 2, kind == 3], [np.inf, y, high], y)
    missing = kind == 4
    seen = Observations(np.where(missing, -np.inf, lower), np.where(missing, np.inf, upper))
    seen = within_support(seen, (likelihood,) * 2)
    roles = [parameter.role for parameter in likelihood.parameters]
    kernels = {role: (RBF(1.5),) if role == roles[0] else () for role in roles}
    design = Design((likelihood,) * 2, kernels, **choices)
    return Task(starting_model(design, seen.full_values()), seen, x, tolerance=0.0)


def free_parameters(task):
    """The hyper-parameters as the engines move them."""
    return {role: to_free(lmc) for role, lmc in task.model.priors.items()}


def with_rows_missing(task, extra):
    """The same task with rows at new inputs where nothing was seen."""
    observations = task.observations
    nothing = np.full((len(extra), observations.shape[1]), np.inf)
    return dataclasses.replace(
        task,
        inputs=np.concatenate([task.inputs, extra]),
        observations=Observations(
            np.concatenate([observations.lower, -nothing]),
            np.concatenate([observations.upper, nothing]),
            observations.names,
        ),
    )
