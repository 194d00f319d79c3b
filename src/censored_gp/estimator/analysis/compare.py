"""Comparison of models and families by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning

from censored_gp.data.errors import not_among
from censored_gp.data.observations import Observations, widen_exact
from censored_gp.estimator.analysis.diagnose import cell_scores, hold_out, refit, scored
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.estimator.presets import MODELS
from censored_gp.estimator.settings import check_settings
from censored_gp.estimator.training import read_training
from censored_gp.likelihoods import as_likelihood
from censored_gp.prediction.predictive import Prediction


def compare(
    X: Any,
    y: Any = None,
    *,
    models: str | Sequence[str] = tuple(MODELS),
    likelihoods: Any = "gaussian",
    folds: int = 3,
    random_state: int = 0,
    settings: Mapping[str, Any] | None = None,
    **known: Any,
) -> Any:
    """Fit models of the paper with one family or several, and return a table, the best one first.

    The best has the least `nlpd`: the mean negative log probability of held-out cells (of their
    bounds, where they are censored; cells that were seen for a part of their period are not
    scored). All models predict the same folds, and every fold is fitted afresh, so that nothing
    leaks from the cells held out. If counts are compared with continuous families, the latter are
    scored by the probability of y ± 1/2, so that scores are comparable. `elbo` compares models only
    within one family and with the same use of the bounds (NCGP and MONCGP see other data than the
    rest).

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
        Seed of the folds and of the fits.
    settings : dict, optional
        Further settings of `CensoredGP` for all models.

    Returns
    -------
    A table of the backend of the training data, with the columns model, likelihood, elbo, nlpd, mae
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
    names = [models] if isinstance(models, str) else list(models)
    families = list(likelihoods) if isinstance(likelihoods, list | tuple) else [likelihoods]
    for wrong in [name for name in names or [None] if name not in MODELS]:
        raise not_among("models", wrong, MODELS)
    if not families:
        raise ValueError("`likelihoods` must be one or more, got none.")
    chosen = {"random_state": random_state, **(settings or {})}
    tried = [(name, family) for family in families for name in names]
    fitted = [MODELS[name](family, **chosen) for name, family in tried]
    with warnings.catch_warnings():
        # What one of them cannot take is refused before minutes are spent on the others. The fit
        # warns again.
        warnings.simplefilter("ignore")
        for model in fitted:
            check_settings(model)
            read_training(model, X, y, **known)
    seconds = [_fit(model, X, y, known) for model in fitted]
    discrete = {each.support.discrete for model in fitted for each in model.training_.likelihoods}
    exact = fitted[0].observations_.lower[fitted[0].observations_.is_exact]
    # Counts against continuous families, on data that are whole numbers.
    as_counts = len(discrete) == 2 and bool(np.all(exact % 1 == 0))
    rows = []
    for (name, family), model, taken in zip(tried, fitted, seconds, strict=True):
        fold = hold_out(model.observations_, folds, model.training_.times, random_state)
        cells = cross_validate(model, fold, as_counts)
        found = scored(cells, model.observations_)["all"]
        row = {"model": name, "likelihood": _named(family), "elbo": model.elbo_}
        shown = ("nlpd", "mae", "r2", "coverage", "pit_deviation")
        rows.append({**row, **{score: found[score] for score in shown}, "seconds": taken})
    order = np.argsort([row["nlpd"] for row in rows], kind="stable")
    columns = {name: [rows[i][name] for i in order] for name in rows[0]}
    columns["best"] = [rank == 0 for rank in range(len(rows))]
    return fitted[0].training_.table(columns)


def cross_validate(
    model: CensoredGP, fold: Int[np.ndarray, "N D"], as_counts: bool = False
) -> dict[str, Float[np.ndarray, "N D"]]:
    """Return scores of every cell by a refit without its fold.

    Each refit starts afresh: hyper-parameters fitted to all cells would leak those held out.
    `as_counts`: whole numbers are y ± 1/2 under a continuous family.
    """
    training, units, known = model.training_, model.units_, model.observations_
    seen, found = units.apply(widen_exact(training.seen)), {}
    for k in np.unique(fold):
        posterior, own = refit(model, seen, fold == k, afresh=True), fold == k
        prediction = Prediction(posterior, units, training.inputs, known.names)
        cells = cell_scores(prediction, known)
        if as_counts:
            cells["nlpd"] = nlpd_of_counts(prediction, known)
        found = {name: np.where(own, part, found.get(name, part)) for name, part in cells.items()}
    return found


def _fit(model: CensoredGP, X: Any, y: Any, known: dict[str, Any]) -> float:
    """Fit one of the models; return the seconds it took."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        # One of many models that stops early is told by its scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, **known)
    if model.report_.status == "interrupted":
        raise KeyboardInterrupt
    return time.perf_counter() - began


def _named(family: Any) -> str:
    if isinstance(family, str):
        return family
    if isinstance(family, Mapping):
        return ", ".join(f"{output}: {_named(each)}" for output, each in family.items())
    return type(as_likelihood(family)).__name__


def nlpd_of_counts(prediction: Prediction, known: Observations) -> Float[np.ndarray, "N D"]:
    """Return the `nlpd` of whole numbers, y ± 1/2 under a continuous family; else NaN."""
    half = np.where(prediction.discrete, 0.0, 0.5)
    logs = prediction.log_probability(known.lower - half, known.upper + half)
    return np.where(known.is_missing | known.is_partial, np.nan, -logs)
