"""Gather the facts of a fitted model, make a page of them, write it whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from censored_gp.estimator.persistence import replacing
from censored_gp.report.bundle import make_beside, require_altair
from censored_gp.report.facts import gather
from censored_gp.report.page import page

__all__ = ["write_report"]


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    diagnosis: Any = None,
    folds: int | None = None,
    comparison: Any = None,
    problems: Sequence[str] = (),
    probability: float = 0.9,
    max_points: int = 2000,
    random_state: Any = None,
) -> Path:
    """Write one page of HTML about a fitted model: charts to zoom and hover, no network needed.

    Parameters
    ----------
    model : CensoredGP
        A fitted model.
    path : str or path
        Where to write; what is there is replaced at once, when the page is complete.
    title : str, optional
        Heading of the page.
    diagnosis : Diagnosis, optional
        What `model.diagnose()` returned, for calibration on cells that were held out.
    folds : int, optional
        Diagnose with so many folds, if no diagnosis is given. This fits the model again several
        times. None: calibration is shown for the cells the model was fitted to.
    comparison : table, True, or list of model names, optional
        What `compare` returned; or the models to compare now, on the training data (True: all six).
    problems : list of str
        Problems of the data that were found before, to be listed with those found here.
    probability : float
        How probably intervals hold the truth.
    max_points : int
        Points drawn of each output; of more rows, peaks and troughs are kept.
    random_state : int, RandomState or None
        Seed of the joint draws of lost demand.

    Returns
    -------
    The path.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> wanted = 2 + np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=30)
    >>> model = CensoredGP(heteroscedastic=False)
    >>> model = model.fit(X, np.minimum(wanted, 2.6), capacity=2.6)
    >>> page = write_report(model, tempfile.mkdtemp() + "/report.html", title="A sine")
    >>> "<title>A sine</title>" in page.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(model)
    require_altair()
    make_beside()
    facts = gather(
        model, title, diagnosis, folds, comparison, problems, probability, max_points, random_state
    )
    text = page(facts)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)
