"""The report: one HTML page about a fitted model that needs no network and no other file.

Its content is computed here, and the sentences about it are written. `template.html` is the page,
and `report.js` draws its charts. Text may hold names that users gave; the template escapes it.
Data of charts are named columns, whose names are single letters, never the user's text.
"""

from __future__ import annotations

import itertools
import os
import platform
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.utils.validation import check_is_fitted

import censored_gp
from censored_gp.data.errors import listed
from censored_gp.data.layout import inputs_table
from censored_gp.data.tables import as_arrow
from censored_gp.estimator.analysis.compare import compare
from censored_gp.estimator.analysis.diagnose import censoring_cautions
from censored_gp.estimator.persistence import replacing
from censored_gp.estimator.presets import MODELS, paper_name
from censored_gp.estimator.summary import kernel_labels
from censored_gp.prediction.metrics import PIT, pit_coverage, pit_histogram
from censored_gp.reporting.plots import (
    DAYS,
    LEVELS,
    chance_limits,
    predict_training,
    training_axis,
)

# At most this many points are drawn of all outputs together, which bounds the size of the page.
MOST_POINTS = 24_000
# Of each output at least this many points may be drawn, however many outputs there are.
FEWEST_POINTS = 300
# An output of which a larger share of cells is missing is listed among the problems.
MOSTLY_MISSING = 0.5
# Kinds of cells; data of charts refer to them by position.
CELL_KINDS = ("exact", "right", "left", "interval", "missing", "partial")
ALL_OUTPUTS = "all outputs"


# ---- series ----


def series_charts(model: Any, probability: float, max_points: int) -> list[dict[str, Any]]:
    """Return a chart of each output over the training rows: observations and predictions.

    Its data are x, m (mean), lo and hi (interval), k (kind of cell), v (value or bound), u (upper
    bound of an interval) and e (imputed value).
    """
    axis, names = training_axis(model), model.output_names_
    x, most = axis.values, max(2, min(max_points, max(FEWEST_POINTS, MOST_POINTS // len(names))))
    few = len(x) <= most
    rows = thinned(x, np.zeros((len(x), 1)) if few else predict_training(model).mean, most)
    prediction, imputed = predict_training(model, rows), model.imputation(rows).mean
    imputed = model.training_.bounded(imputed, rows)
    low, high = prediction.interval(probability)
    known = model.observations_.rows(rows)
    kind = np.select([getattr(known, f"is_{name}") for name in CELL_KINDS], range(len(CELL_KINDS)))
    value = np.where(known.is_interval | known.is_right, known.lower, known.values())
    upper = np.where(known.is_interval, known.upper, np.nan)
    cells = {"m": prediction.mean, "lo": low, "hi": high, "v": value, "u": upper, "e": imputed}
    at = x[rows].astype("datetime64[ms]").astype(np.int64) if axis.is_time else x[rows]
    shared = {"kind": "series", "kinds": CELL_KINDS, "time": axis.is_time}
    shared["label"] = None if axis.is_time else axis.label
    charts = []
    for d, name in enumerate(names):
        data = {"x": at.tolist(), "k": kind[:, d].tolist()}
        data |= {key: rounded(each[:, d]) for key, each in cells.items()}
        title = f"Observations and predictions of {name}"
        charts.append({**shared, "title": title, "data": data})
    return charts


def thinned(
    x: Shaped[np.ndarray, " N"], mean: Float[np.ndarray, "N D"], most: int
) -> Int[np.ndarray, " K"]:
    """Return rows in the order of x: all, or of each stretch the lowest and the highest.

    >>> x, mean = np.arange(6.0), np.array([[0.0], [9.0], [1.0], [5.0], [4.0], [-3.0]])
    >>> thinned(x, mean, 4).tolist()
    [0, 1, 3, 5]
    """
    order = np.argsort(x, kind="stable")
    if len(order) <= most:
        return order
    spread = np.std(mean, axis=0)
    level = ((mean - mean.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
    kept = []
    for stretch in np.array_split(order, max(1, most // 2)):
        ends = {int(np.argmin(level[stretch])), int(np.argmax(level[stretch]))}
        kept.extend(stretch[sorted(ends)])
    return np.array(kept)


def rounded(values: Any, digits: int = 5) -> list[float | None]:
    """Return numbers with few significant digits, None for NaN, which keeps the page small.

    >>> rounded([1.23456789, np.nan, 123456.7])
    [1.2346, None, 123460.0]
    """
    numbers = np.asarray(values, dtype=float).tolist()
    return [float(f"{number:.{digits}g}") if np.isfinite(number) else None for number in numbers]


# ---- lost demand, comparison ----


def lost_demand(model: Any, probability: float, random_state: Any) -> dict[str, Any]:
    """Return lost demand in `total`, by `outputs`, and in `groups` by hour and weekday of each.

    It is empty if no record falls short or the model ignores censoring.
    """
    if not model.use_censoring or not model.observations_.falls_short.any():
        return {}

    def ask(*by: str) -> list[dict[str, Any]]:
        settings = {"probability": probability, "random_state": random_state}
        rows = as_arrow(model.lost_demand(by=list(by) or None, **settings)).to_pylist()
        # Columns of groups come first, under names that may be the user's.
        return [row | dict(zip(by, row.values(), strict=False)) for row in rows]

    (total,), groups = ask(), {}
    with warnings.catch_warnings():
        # What there was to warn of has been said of the total.
        warnings.simplefilter("ignore", UserWarning)
        for part in () if model.training_.times is None else ("hour", "weekday"):
            rows = ask(part)
            if len(rows) > 1:
                groups[part] = [row | {"output": ALL_OUTPUTS} for row in rows] + ask("output", part)
        return {"total": total, "outputs": ask("output"), "groups": groups}


def comparison_rows(model: Any, wanted: Any) -> list[dict[str, Any]]:
    """Return the rows of a comparison that is given, or that is made now from names of models."""
    if wanted is None or wanted is False:
        return []
    names = list(MODELS) if wanted is True else [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return as_arrow(wanted).to_pylist()
    settings = {"engine": model.engine, "max_iterations": model.max_iterations}
    table, own = inputs_table(model.columns_, model.training_.inputs), model.training_.own_names
    asked = {"models": names, "likelihoods": model.likelihood, "settings": settings}
    return as_arrow(compare(table, model.observations_, own_inputs=own, **asked)).to_pylist()


# ---- charts ----


def lost_charts(model: Any, groups: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return charts of lost demand by hour and weekday, if there are any."""
    names = [ALL_OUTPUTS, *model.output_names_] if len(model.output_names_) > 1 else [ALL_OUTPUTS]
    fields = {"y": "lost", "lo": "lost_low", "hi": "lost_high", "r": "observed", "s": "share",
              "sl": "share_low", "sh": "share_high", "c": "censored", "n": "cells"}  # fmt: skip
    titles = {"hour": "By hour of the day", "weekday": "By day of the week"}
    orders = {"hour": list(range(24)), "weekday": DAYS}
    charts = []
    for group, rows in groups.items():
        kept = [row for row in rows if str(row["output"]) in names]
        data = {key: rounded([row[name] for row in kept]) for key, name in fields.items()}
        data["g"] = [int(row[group]) if group == "hour" else row[group][:3] for row in kept]
        data["o"] = [names.index(str(row["output"])) for row in kept]
        shared = {"kind": "lost", "group": group, "order": orders[group], "names": names}
        charts.append({**shared, "title": titles[group], "data": data})
    return charts


def calibration_charts(pit: PIT) -> list[dict[str, Any]]:
    """Return the histogram of the PIT and the coverage of intervals."""
    histogram = pit_histogram(pit)
    edges = rounded(np.arange(len(histogram) + 1) / len(histogram))
    bars = {"x": edges[:-1], "x2": edges[1:], "y": rounded(histogram)}
    limits = chance_limits(pit, len(histogram))
    held = {"x": LEVELS, "y": rounded(pit_coverage(pit, LEVELS))}
    return [
        {"kind": "pit", "title": "Histogram of the PIT", "limits": limits, "data": bars},
        {"kind": "coverage", "title": "Coverage of central intervals", "data": held},
    ]


# ---- problems ----


def data_problems(model: Any) -> list[str]:
    """Return problems of the data and of the fit, in sentences; a diagnosis has the cautions."""
    known, times, found = model.observations_, model.training_.times, []
    for d, name in enumerate(model.output_names_):
        missing = float(known.is_missing[:, d].mean())
        if missing > MOSTLY_MISSING:
            found.append(f"Output {name!r}: {missing:.0%} of its {len(known)} rows are missing.")
        exact = known.lower[known.is_exact[:, d], d]
        if len(exact) > 1 and np.ptp(exact) == 0:
            found.append(f"Output {name!r}: all of its exact values are {exact[0]:g}.")
    found += censoring_cautions(known, times if model.use_censoring else None)
    found += [] if times is None else time_problems(times)
    fit = model.report_
    return found + ([] if fit.converged else [fit.message]) + list(fit.notes)


def time_problems(times: Shaped[np.ndarray, " N"]) -> list[str]:
    """Return whether times are repeated, and whether there are gaps between them."""
    distinct, counts = np.unique(times, return_counts=True)
    found, repeated = [], counts > 1
    if repeated.any():
        first = _minute(distinct[repeated][0])
        found.append(f"{int(repeated.sum())} times occur more than once, the first is {first}.")
    steps = np.diff(distinct) / np.timedelta64(1, "s")
    usual = float(np.median(steps)) if len(steps) > 1 else np.inf
    gaps = steps > 1.5 * usual
    if gaps.any():
        longest = int(np.argmax(steps))
        found.append(
            f"Times are {_duration(usual)} apart but for {_several(int(gaps.sum()), 'gap')}; the "
            f"longest is {_duration(steps[longest])}, after {_minute(distinct[longest])}."
        )
    return found


def _minute(time: np.datetime64) -> str:
    return np.datetime_as_string(time, unit="m").replace("T", " ")


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return _several(seconds / size, unit)
    return _several(seconds, "second")


def _several(count: float, noun: str) -> str:
    number = f"{count:,}" if isinstance(count, int) else f"{count:.3g}"
    return f"{number} {noun}{'' if number == '1' else 's'}"


# ---- words ----


def amount(value: Any) -> str:
    """Return a cell of a table as people read it.

    >>> amount(1234.5), amount(0.12345), amount(12), amount(float("nan")), amount("a")
    ('1,234', '0.123', '12', '–', 'a')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if value is None or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return "–"
    if not isinstance(value, float | np.floating):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.3g}'):g}"


def percent(value: float | None) -> str:
    """Return a share as a percentage.

    >>> percent(0.224), percent(0.0123), percent(None)
    ('22%', '1.2%', '–')
    """
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:.1%}" if abs(value) < 0.1 else f"{value:.0%}"


def recorded_steps(model: Any) -> dict[str, float]:
    """Return the steps in which values were recorded, of outputs that have such."""
    steps = zip(model.output_names_, model.observations_.step.tolist(), strict=True)
    return {name: step for name, step in steps if step > 0}


def code(model: Any) -> str:
    """Return the Python code of such a fit, and the versions that were used."""
    layout, remarks, arguments = model.layout_, [], ["X", "y", "..."]
    if layout is not None:
        chosen = [f"{column!r} is {value!r}" for column, value in getattr(model, "where_", ())]
        if layout.long:
            chosen.append(f"{str(layout.by)!r} is one of {listed(map(str, layout.outputs))}")
        remarks = [f"# table: its rows in which {' and '.join(chosen)}"] if chosen else []
        given = layout.arguments | {"rounded": recorded_steps(model)}
        given = {name: v for name, v in given.items() if v and (name, v) != ("side", "right")}
        arguments = ["table", *(f"{name}={value!r}" for name, value in given.items())]
        arguments += ["..."] if model.training_.is_forgotten else []
    lines = [
        f"from censored_gp import {type(model).__name__}",
        "",
        f"model = {' '.join(repr(model).split())}",
        *remarks,
        f"model.fit({', '.join(arguments)})",
        "",
        f"# censored-gp {censored_gp.__version__}, Python {platform.python_version()}",
        f"# jax {jax.__version__}, numpy {np.__version__}",
    ]
    return "\n".join(lines)


# ---- the page ----


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    diagnosis: Any = None,
    folds: int | None = 5,
    comparison: Any = None,
    problems: Sequence[str] = (),
    probability: float = 0.9,
    max_points: int = 2000,
    random_state: Any = None,
) -> Path:
    """Write one HTML page about a fitted model, with charts to zoom and hover; return its path.

    Parameters
    ----------
    model : CensoredGP
        A fitted model.
    path : str or path
        Where to write; a file that is there is replaced when the page is complete.
    title : str, optional
        Heading of the page.
    diagnosis : Diagnosis, optional
        What `model.diagnose()` returned: whether the estimates are to be trusted.
    folds : int, optional
        If no diagnosis is given: diagnose now, with one day in so many held out, by one more fit.
        None: the page says nothing on whether it is to be trusted.
    comparison : table, True, or list of model names, optional
        What `compare` returned; or the models to compare now, on the training data (True: all six).
    problems : list of str
        Problems of the data that were found before, to be listed with those found here.
    probability : float
        Of all intervals.
    max_points : int
        Points drawn of each output; of more rows, peaks and troughs are kept.
    random_state : int, RandomState or None
        Seed of the joint draws of lost demand.

    Examples
    --------
    >>> import tempfile
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> page = write_report(model, tempfile.mkdtemp() + "/report.html", title="Six hours")
    >>> "<title>Six hours</title>" in page.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(model)
    try:
        import jinja2
        import vl_convert
    except ImportError as error:
        raise ImportError(
            f"A report needs {error.name}, which is not installed: "
            'pip install "censored-gp[report]".'
        ) from error
    if diagnosis is None and folds:
        diagnosis = model.diagnose(folds=folds)
    cautions = () if diagnosis is None else diagnosis.warnings
    methods = [] if diagnosis is None else as_arrow(diagnosis.rows).to_pylist()
    names, known, fitted = model.output_names_, model.observations_, model.posterior_.model
    counts = {kind: int(getattr(known, f"is_{kind}").sum()) for kind in CELL_KINDS}
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    lost = lost_demand(model, probability, random_state)
    charts = {
        "series": series_charts(model, probability, max_points),
        "lost": lost_charts(model, lost.get("groups", {})),
        "calibration": calibration_charts(diagnosis.pit) if diagnosis else [],
    }
    interval = f"{probability:.0%} interval"
    for number, chart in enumerate(itertools.chain(*charts.values())):
        chart |= {"id": f"chart-{number}", "interval": interval}
    content = {
        "title": title or f"Censored GP report: {', '.join(names[:3])}{more}",
        "model": model,
        "names": names,
        "interval": interval,
        # Of the missing cells, those that could not be seen at all.
        "counts": counts | {"never": int((known.exposure == 0).sum())},
        "axis": training_axis(model),
        "rows": len(known),
        "lost": lost,
        "diagnosis": diagnosis,
        "methods": methods,
        "comparison": comparison_rows(model, comparison),
        "problems": list(dict.fromkeys((*problems, *data_problems(model), *cautions))),
        "charts": charts,
        "steps": recorded_steps(model),
        "paper_name": paper_name(model),
        "families": sorted({type(family).__name__ for family in fitted.likelihoods}),
        "patterns": dict.fromkeys(kernel_labels(fitted.priors["mean"].kernels, model.columns_)),
        "code": code(model),
        "ALL_OUTPUTS": ALL_OUTPUTS,
    }
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    pages.filters |= {"amount": amount, "percent": percent, "minute": _minute, "listed": listed}
    # Vega, Vega-Lite and Vega-Embed in one script. Its type says wrongly that it needs an argument.
    script = vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue]
    vega = script.replace("</script", r"<\/script")
    text = pages.get_template("template.html").render(content, vega=vega)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)
