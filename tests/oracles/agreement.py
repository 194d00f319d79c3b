"""Other people's programs on the same numbers: what they say, and how far off we are.

Each function is one oracle. It yields what was compared, the largest difference, and how much of it
is allowed. Regressions are fitted by the other program; at its parameters our log likelihood must
be the one that it reports. An oracle whose program is absent raises `Absent`.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import mpmath as mp
import numpy as np

from censored_gp import CensoredGP
from censored_gp.kernels import RBF
from censored_gp.likelihoods import as_likelihood
from support import precise

Rows = Iterator[tuple[str, float, float]]
GPFLOW_VARIABLE = "CENSORED_GP_GPFLOW"
"""Names an interpreter that has GPflow, which does not go along with everything else."""


class Absent(Exception):
    """A program is not installed."""


def need(name: str) -> Any:
    """Import an oracle's package."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Absent(f"{name} is not installed") from error


def ours(family: str, lower: Any, upper: Any, *theta: Any) -> np.ndarray:
    """Our log likelihood of cells."""
    with jax.enable_x64(True):
        evaluate = jax.jit(as_likelihood(family).log_likelihood)
        every = np.broadcast_arrays(lower, upper, *theta)
        return np.asarray(evaluate(*(np.asarray(each, dtype=float) for each in every)))


def gap(found: Any, expected: Any) -> float:
    """The largest difference, relative where numbers are large."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    return float(np.max(np.abs(found - expected) / np.maximum(1.0, np.abs(expected))))


def scipy_families() -> Rows:
    """Density and both tails of every family, at usual values."""
    from contracts.test_likelihoods import CASES, U

    for family, (theta, oracle) in CASES.items():
        y = oracle.ppf(U[1:-1])
        support = as_likelihood(family).support
        log_density = oracle.logpmf if support.discrete else oracle.logpdf
        # Nothing is below the least value, which may have a probability of its own.
        above = np.where(y == support.lower, 1.0, oracle.sf(y - support.discrete))
        found = [ours(family, *b, *theta) for b in ((y, y), (y, np.inf), (-np.inf, y))]
        expected = [log_density(y), np.log(above), oracle.logcdf(y)]
        yield family, gap(found, expected), 1e-9


def mpmath_families() -> Rows:
    """Every kind of cell of every family, to the ends of the tails, in 45 digits."""
    for family, case in precise.CASES.items():
        rows = np.array(list(precise.intervals(family)))
        discrete = as_likelihood(family).support.discrete
        with mp.workdps(precise.DIGITS):
            expected = [float(precise.oracle(case, discrete, *row)) for row in rows.tolist()]
        yield family, gap(ours(family, *rows.T), expected), 1e-6


@functools.cache
def survival() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positive times of which a part is right-censored, and one input."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, 80)
    times = np.exp(0.8 + 0.5 * x) * rng.weibull(1.6, 80)
    limit = rng.uniform(0.5, 5.0, 80)
    return x, np.minimum(times, limit), times <= limit


def bounds() -> tuple[np.ndarray, np.ndarray]:
    """The same as intervals."""
    _, times, seen = survival()
    return times, np.where(seen, times, np.inf)


def r_survreg() -> Rows:
    """Parametric survival regression in R: survival::survreg."""
    if shutil.which("Rscript") is None:
        raise Absent("Rscript is not on the path (Debian: r-base-core, r-cran-survival)")
    x, times, seen = survival()
    table = "".join(f"{a:.17g} {b:.17g} {c:d}\n" for a, b, c in zip(x, times, seen, strict=True))
    code = """
    suppressMessages(library(survival))
    d <- read.table(file("stdin"), col.names = c("x", "y", "seen"))
    for (dist in c("gaussian", "weibull", "exponential", "lognormal", "t")) {
      own <- if (dist == "t") list(parms = 4) else list()
      m <- do.call(survreg, c(list(Surv(y, seen) ~ x, data = d, dist = dist), own))
      cat(dist, format(c(coef(m), m$scale, m$loglik[2]), digits = 17), "\n")
    }"""
    said = subprocess.run(["Rscript", "-e", code], input=table, capture_output=True, text=True)
    if said.returncode:
        raise Absent(f"Rscript failed: {said.stderr.strip()[-200:]}")
    for line in said.stdout.splitlines():
        name, *numbers = line.split()
        a, b, scale, loglik = map(float, numbers)
        mean = a + b * x
        family, theta = {
            "gaussian": ("gaussian", (mean, scale)),
            "t": ("student_t", (mean, scale, 4.0)),
            "lognormal": ("log_normal", (mean, scale)),
            "weibull": ("weibull", (np.exp(mean), 1.0 / scale)),
            "exponential": ("exponential", (np.exp(mean),)),
        }[name]
        yield f"{name}, log likelihood", gap(ours(family, *bounds(), *theta).sum(), loglik), 1e-8


def lifelines_univariate() -> Rows:
    """Distributions of one sample with right-censoring."""
    lifelines = need("lifelines")
    _, times, seen = survival()
    for fitter, family in (
        (lifelines.WeibullFitter(), "weibull"),
        (lifelines.LogNormalFitter(), "log_normal"),
        (lifelines.ExponentialFitter(), "exponential"),
    ):
        fitter.fit(times, seen)
        theta = {
            "weibull": lambda f: (f.lambda_, f.rho_),
            "log_normal": lambda f: (f.mu_, f.sigma_),
            "exponential": lambda f: (f.lambda_,),
        }[family](fitter)
        found = ours(family, *bounds(), *theta).sum()
        yield f"{family}, log likelihood", gap(found, fitter.log_likelihood_), 1e-7


def statsmodels_regressions() -> Rows:
    """Regressions of counts and of proportions."""
    sm = need("statsmodels.api")
    beta_model = need("statsmodels.othermod.betareg").BetaModel
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 120)
    design = sm.add_constant(x)
    y = rng.poisson(np.exp(1 + x) * rng.gamma(2.5, 0.4, 120)).astype(float)
    fitted = sm.Poisson(y, design).fit(disp=0)
    yield (
        "poisson, log likelihood",
        gap(ours("poisson", y, y, fitted.predict()).sum(), fitted.llf),
        1e-9,
    )
    fitted = sm.NegativeBinomial(y, design).fit(disp=0, maxiter=200)
    found = ours("negative_binomial", y, y, fitted.predict(), fitted.params[-1]).sum()
    yield "negative binomial, log likelihood", gap(found, fitted.llf), 1e-9
    fitted = sm.Logit((y > 2).astype(float), design).fit(disp=0)
    share, flag = fitted.predict(), (y > 2).astype(float)
    found = ours("bernoulli", flag, flag, share / (1 - share)).sum()
    yield "bernoulli, log likelihood", gap(found, fitted.llf), 1e-9
    part = rng.beta(3, 2, 120)
    fitted = beta_model(part, design).fit(disp=0)
    mean, precision = fitted.predict(), np.exp(fitted.params[-1])
    found = ours("beta", part, part, mean / (1 - mean), precision).sum()
    yield "beta, log likelihood", gap(found, fitted.llf), 1e-9


@functools.cache
def regression() -> dict[str, Any]:
    """A Gaussian process given exact values, and its hyper-parameters in units of y.

    They are held where they start: after learning, the sites lag behind by a part of a step, and
    what is compared here is the posterior at given hyper-parameters.
    """
    x = np.linspace(0, 3, 12)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * np.cos(17 * x[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CensoredGP(
            kernels={"mean": [RBF(1.0)]},
            heteroscedastic=False,
            hyperparameters="fixed",
            engine_settings={"learn": False},
        ).fit(x, y)
    new = np.array([[0.1], [1.4], [3.5]])
    mean, std = model.predict(new, return_std=True)
    shift, scale = float(model.units_.shift[0]), float(model.units_.scale[0])
    priors = model.posterior_.model.priors
    return {
        "x": x.tolist(), "y": y.tolist(), "new": new.tolist(), "elbo": model.elbo_,
        "mean": mean.tolist(), "std": std.tolist(),
        "level": shift + scale * priors["mean"].mean.item(),
        "variance": float(scale * priors["mean"].mixing[0].item()) ** 2,
        "lengthscale": priors["mean"].kernels[0].lengthscale.item(),
        "noise": (scale * np.exp(priors["scale"].mean.item())) ** 2,
    }  # fmt: skip


def sklearn_process() -> Rows:
    """An exact Gaussian process with the same hyper-parameters, in scikit-learn."""
    process = need("sklearn.gaussian_process")
    own = regression()
    kernel = own["variance"] * process.kernels.RBF(own["lengthscale"])
    exact = process.GaussianProcessRegressor(kernel, alpha=own["noise"], optimizer=None)
    exact.fit(own["x"], np.array(own["y"]) - own["level"])
    mean, std = exact.predict(own["new"], return_std=True)
    evidence = exact.log_marginal_likelihood_value_
    spread = np.sqrt(np.square(std) + own["noise"])
    yield from compare_processes(mean + own["level"], spread, evidence)


def gpflow_process() -> Rows:
    """The same in GPflow."""
    python = os.environ.get(GPFLOW_VARIABLE, sys.executable)
    code = """
import json, sys
import gpflow, numpy as np
own = json.load(sys.stdin)
kernel = gpflow.kernels.SquaredExponential(own["variance"], own["lengthscale"])
y = np.array(own["y"])[:, None] - own["level"]
model = gpflow.models.GPR((np.array(own["x"]), y), kernel, noise_variance=own["noise"])
mean, variance = model.predict_y(np.array(own["new"]))
evidence = float(model.log_marginal_likelihood())
print(json.dumps([mean.numpy()[:, 0].tolist(), variance.numpy()[:, 0].tolist(), evidence]))
"""
    said = subprocess.run(
        [python, "-c", code], input=json.dumps(regression()), capture_output=True, text=True
    )
    if said.returncode:
        last = (said.stderr.strip().splitlines() or ["failed"])[-1]
        raise Absent(f"GPflow does not run ({last}); name its interpreter in {GPFLOW_VARIABLE}")
    mean, variance, evidence = json.loads(said.stdout.splitlines()[-1])
    level = regression()["level"]
    yield from compare_processes(np.array(mean) + level, np.sqrt(variance), evidence)


def compare_processes(mean: Any, std: Any, evidence: float) -> Rows:
    """Predictions and evidence beside ours."""
    own = regression()
    yield "predictive mean", gap(own["mean"], mean), 1e-7
    yield "predictive standard deviation", gap(own["std"], std), 1e-7
    yield "evidence", gap(own["elbo"], evidence), 1e-7


ORACLES: dict[str, Callable[[], Rows]] = {
    "scipy": scipy_families,
    "mpmath": mpmath_families,
    "lifelines": lifelines_univariate,
    "statsmodels": statsmodels_regressions,
    "scikit-learn": sklearn_process,
    "GPflow": gpflow_process,
    "R survreg": r_survreg,
}
