"""Which model and family fit best? Every one is fitted, and scored on cells it has not seen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from censored_gp.data.errors import listed
from censored_gp.data.observations import Observations
from censored_gp.estimator import presets
from censored_gp.estimator.analysis.diagnose import CrossPrediction, cross_predict, hold_out, scored
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.likelihoods import as_likelihood

MODELS = ("NCGP", "MONCGP", "CGP", "HCGP", "MOCGP", "HMOCGP")


SCORES = ("nlpd", "mae", "r2", "coverage", "pit_deviation")


def compare(
    X: Any,
    y: Any = None,
    *,
    models: str | Sequence[str] = MODELS,
    likelihoods: Any = "gaussian",
    folds: int = 3,
    random_state: int = 0,
    settings: Mapping[str, Any] | None = None,
    **known: Any,
) -> Any:
    """Fit models of the paper with one family or several, and return a table, the best one first.

    The best has the least `nlpd`: the mean negative log probability of what is known of cells
    that were held out, censored ones included (but what may be a share). All models are asked
    about the same cells, and every fold is fitted afresh, so that no model knows of what it is
    asked for. If counts are compared with continuous families, the latter are asked for the
    probability of y ± 1/2, so that figures mean the same. `elbo` compares models only within one
    family and with the same use of the bounds (NCGP and MONCGP see other data than the rest).

    Parameters
    ----------
    X, y, **known
        Data and names of columns, as for `CensoredGP.fit`.
    models : name or list of names
        Among NCGP, MONCGP, CGP, HCGP, MOCGP and HMOCGP.
    likelihoods : name, Likelihood, or list of these
        Families to try; a dict gives one for each output.
    folds : int
        How many times a part of the cells is held out; whole days, if there are times.
    random_state : int
        Seed of who is held out when, and of the fits.
    settings : dict, optional
        Further settings of `CensoredGP` for all models.

    Returns
    -------
    A table of the make of the training data, with the columns model, likelihood, elbo, nlpd, mae
    and r2 (both of exact cells), coverage (of 90 % intervals), pit_deviation, seconds and best.

    Examples
    --------
    >>> import numpy as np
    >>> import censored_gp
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.minimum(np.sin(X[:, 0]) + 0.1 * np.cos(37 * X[:, 0]), 0.6)
    >>> table = censored_gp.compare(X, y, capacity=0.6, models=["NCGP", "CGP"], folds=2)
    >>> table[0]["model"], [row["best"] for row in table]
    ('CGP', [True, False])
    """
    names = (models,) if isinstance(models, str) else tuple(models)
    families = likelihoods if isinstance(likelihoods, list | tuple) else [likelihoods]
    _check_names(names)
    if not families:
        raise ValueError("likelihoods: found none. Accepted is one or more.")
    chosen = {"random_state": random_state, **(settings or {})}
    tried = [(n, f, getattr(presets, n)(f, **chosen)) for f in families for n in names]
    check_data([model for _, _, model in tried], X, y, known)
    fitted = [_fit(name, family, model, X, y, known) for name, family, model in tried]
    rows = [_scores(*one, folds, random_state, _widened(fitted)) for one in fitted]
    order = np.argsort([row["nlpd"] for row in rows], kind="stable")
    rows = [{**rows[i], "best": rank == 0} for rank, i in enumerate(order)]
    return fitted[0][1]._table({name: [row[name] for row in rows] for name in rows[0]})


def _check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in MODELS]
    if unknown or not names:
        raise ValueError(
            f"models: found {listed(map(str, unknown))}. Accepted are one or more of "
            f"{listed(MODELS)}."
        )


def check_data(models: Sequence[CensoredGP], X: Any, y: Any, known: dict[str, Any]) -> None:
    """Refuse what one of the models cannot take, before minutes are spent on the others."""
    for model in models:
        model._settings()
    with warnings.catch_warnings():
        # The fit says it again.
        warnings.simplefilter("ignore")
        given = {name: known.get(name) for name in ("by", "time", "inputs")}
        fields = ("censored", "capacity", "lower", "upper", "side")
        spec = {name: known[name] for name in fields if name in known}
        for model in models:
            model._read(X, y, known.get("outputs"), given, spec)


def _fit(
    name: str, family: Any, model: CensoredGP, X: Any, y: Any, known: dict[str, Any]
) -> tuple[dict[str, Any], CensoredGP]:
    """Fit one model; return the beginning of its line in the table, and the model."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        # One of many models that stops early is told by its scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, **known)
    seconds = time.perf_counter() - began
    line = {"model": name, "likelihood": _named(family), "elbo": model.elbo_, "seconds": seconds}
    return line, model


def _named(family: Any) -> str:
    if isinstance(family, str):
        return family
    if isinstance(family, Mapping):
        return ", ".join(f"{output}: {_named(each)}" for output, each in family.items())
    return type(as_likelihood(family)).__name__


def _widened(fitted: Sequence[tuple[Any, CensoredGP]]) -> bool:
    """Whether counts and continuous families are compared, on data that are whole numbers."""
    discrete = {
        likelihood.support.discrete
        for _, model in fitted
        for likelihood in model.posterior_.model.likelihoods
    }
    known = fitted[0][1].observations_
    return len(discrete) == 2 and bool(np.all(known.lower[known.is_exact] % 1 == 0))


def _scores(
    line: dict[str, Any], model: CensoredGP, folds: int, seed: int, widened: bool
) -> dict[str, Any]:
    """Return a line of the table: how well cells that were held out are predicted."""
    times = model._clock() if any(model.columns_.is_time) else None
    fold = hold_out(model.observations_, folds, times, seed)
    prediction = cross_predict(model, fold, use_censoring=model.use_censoring)
    found = scored(prediction, model.observations_)["all"]
    if widened:
        found["nlpd"] = _nlpd_of_counts(prediction, model.observations_)
    started = {name: line[name] for name in ("model", "likelihood", "elbo")}
    return {**started, **{name: found[name] for name in SCORES}, "seconds": line["seconds"]}


def _nlpd_of_counts(prediction: CrossPrediction, known: Observations) -> float:
    """Return the mean score of whole numbers, of which a continuous family gives y ± 1/2."""
    half = np.where(prediction.discrete, 0.0, 0.5)
    logs = prediction.log_probability(known.lower - half, known.upper + half)
    return float(-np.mean(logs[~known.is_missing & ~known.is_share]))
