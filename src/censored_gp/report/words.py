"""What was done and found, in plain words; text here is not yet HTML."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from censored_gp.data.errors import listed
from censored_gp.estimator.summary import paper_name
from censored_gp.plotting.parts import words_of
from censored_gp.report.facts import Facts

__all__ = ["amount", "cards", "code", "what_was_done", "what_was_drawn"]


def amount(value: Any) -> str:
    """Return a number as people read it.

    >>> amount(1234.5), amount(0.12345), amount(12), amount(float("nan"))
    ('1,234', '0.123', '12', '–')
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else ""
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.3g}'):g}"


def share(value: float) -> str:
    """Return a share as a percentage.

    >>> share(0.224), share(0.0123)
    ('22%', '1.2%')
    """
    return "–" if not np.isfinite(value) else f"{value:.1%}" if abs(value) < 0.1 else f"{value:.0%}"


def cards(facts: Facts) -> list[tuple[str, str, str]]:
    """Return the figures to remember: name, figure, and what to know about it."""
    known = facts.model.observations_
    cells = int(np.sum(~known.is_missing))
    censored = int(np.sum(~known.is_exact & ~known.is_missing))
    found = [("Cells seen in part", share(censored / max(1, cells)), f"{censored:,} of {cells:,}")]
    if facts.lost is not None:
        total, level = facts.lost.total, f"{facts.probability:.0%} interval"
        lost = f"{level}: {amount(total['lost_low'])} to {amount(total['lost_high'])}"
        part = f"{level}: {share(total['share_low'])} to {share(total['share_high'])}"
        found = [
            ("Recorded", amount(total["observed"]), "what the records add up to"),
            ("Lost", amount(total["lost"]), lost),
            ("Share of demand lost", share(total["share"]), part),
            *found,
        ]
    held = facts.calibration.coverage[facts.calibration.levels.index(0.9)]
    which = "cells held out" if facts.calibration.held_out else "cells it was fitted to"
    return [*found, ("90% intervals hold", share(float(held)), f"of the {which}")]


def what_was_done(facts: Facts) -> list[str]:
    """Return paragraphs: the data, what censoring means here, the model, and the fit."""
    return [_data(facts), _bounds(facts), _model(facts.model), _fit(facts)]


def _data(facts: Facts) -> str:
    names, rows = facts.names, facts.series.rows
    shown = listed(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    words = f"The data have {rows:,} rows of {_several(len(names), 'output')}: {shown}."
    if facts.series.is_time:
        times = np.sort(facts.model._clock())[[0, -1]]
        first, last = (np.datetime_as_string(t, unit="m").replace("T", " ") for t in times)
        zone = facts.model.columns_.zones[facts.model.columns_.is_time.index(True)]
        words += f" They run from {first} to {last}{f' ({zone})' if zone else ''}."
    return words


def _bounds(facts: Facts) -> str:
    known, model = facts.model.observations_, facts.model
    words = {
        "right": "{} recorded values are only a lower bound: the truth was at least that.",
        "share": "Of these, {} are a random share of the truth: counting stopped at some moment.",
        "left": "{} recorded values are only an upper bound: the truth was at most that.",
        "interval": "{} values are known to lie between two bounds.",
        "missing": "{} values are missing.",
    }
    counts = {kind: int(own.sum()) for kind, own in known.counts().items()}
    counts["share"] = int(known.is_share.sum())
    found = [text.format(f"{counts[kind]:,}") for kind, text in words.items() if counts[kind]]
    if not found:
        return "All values were seen exactly."
    heeded = (
        "The model takes each of them for what it says, so that its estimate of the truth may lie "
        "beyond what was recorded, but never on the wrong side of a bound."
        if model.use_censoring
        else "The model takes every bound for the value itself: it was told to ignore censoring."
    )
    return " ".join([*found, heeded])


def _model(model: Any) -> str:
    fitted = model.posterior_.model
    parts = words_of(fitted.priors["mean"].kernels, model.columns_)
    families = sorted({type(likelihood).__name__ for likelihood in fitted.likelihoods})
    words = f"The model is a Gaussian process ({paper_name(model)}, {' and '.join(families)})."
    if parts:
        words += f" It adds up these patterns: {', '.join(dict.fromkeys(parts))}."
    if model.coupled and len(model.output_names_) > 1:
        words += " Outputs are learned together: what one shows informs the others."
    if model.heteroscedastic and any(
        lmc.varies for role, lmc in fitted.priors.items() if role != "mean"
    ):
        over = "time" if any(model.columns_.is_time) else "the inputs"
        words += f" How much values scatter may change with {over}, too."
    if fitted.priors["mean"].nugget is not None:
        words += " Values may scatter by more than chance alone would make them."
    return words


def _fit(facts: Facts) -> str:
    report = facts.model.report_
    return (
        f"{report.message} All intervals here hold the truth with {facts.probability:.0%} "
        "probability, if the model is right."
    )


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def what_was_drawn(facts: Facts) -> str:
    """Return whether all rows are drawn."""
    drawn, rows = facts.series.drawn, facts.series.rows
    if drawn == rows:
        return f"All {rows:,} rows are drawn."
    return (
        f"Of {rows:,} rows {drawn:,} are drawn, the lowest and the highest of each stretch, to "
        "keep this page small. All figures are computed from all rows."
    )


def code(model: Any) -> str:
    """Return the Python that fits such a model again, and the versions that were used."""
    lines = [f"from censored_gp import {type(model).__name__}", ""]
    settings = " ".join(repr(model).split())
    lines.append(f"model = {settings}")
    lines += _chosen_rows(model)
    lines.append(f"model.fit({', '.join(_arguments(model))})")
    return "\n".join([*lines, "", *(f"# {name} {version}" for name, version in _versions())])


def _chosen_rows(model: Any) -> list[str]:
    """Return, as a remark, which rows of the table were used."""
    layout, where = model.layout_, getattr(model, "where_", ())
    chosen = [f"{column!r} is {value!r}" for column, value in where]
    if layout is not None and layout.long:
        chosen.append(f"{str(layout.by)!r} is one of {listed(map(str, layout.outputs))}")
    return [f"# table: its rows in which {' and '.join(chosen)}"] if chosen else []


def _arguments(model: Any) -> list[str]:
    layout = model.layout_
    if layout is None:
        return ["X", "y", "..."]
    given = {"outputs": list(layout.outputs), "time": layout.time, "inputs": list(layout.inputs)}
    if layout.long:
        given |= {"outputs": layout.value, "by": layout.by}
    spec = {name: getattr(layout, name) for name in ("censored", "capacity", "lower", "upper")}
    if layout.side != "right":
        spec["side"] = layout.side
    given |= spec
    return ["table"] + [f"{name}={value!r}" for name, value in given.items() if value]


def _versions() -> list[tuple[str, str]]:
    import jax

    import censored_gp

    return [
        ("censored-gp", censored_gp.__version__),
        ("Python", platform.python_version()),
        ("jax", jax.__version__),
        ("numpy", np.__version__),
    ]
