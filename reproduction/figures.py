"""The figures of the results page, as SVG.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; lines differ in their
dashes or markers too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.dates
import matplotlib.pyplot as plt
import numpy as np

from reproduction.models import MODELS, build
from reproduction.protocol import new_york
from reproduction.study import finished
from reproduction.synthetic import PIT_COLUMNS, SHARE_STUDY, TABLE_2, WINDOWS, SyntheticPair, world

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"),
)
COLOURS = dict(zip(MODELS, (ORANGE, PINK, SKY, GREEN, RED, BLUE), strict=True))
MARKERS = dict(zip(MODELS, "osv^DP", strict=True))
DRAW = 4
"""The synthetic world that is shown."""
WEEK = slice(24, 24 + 168)
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "legend.frameon": False,
    "svg.hashsalt": "censored-gp",
}


def draw_all(folder: Path) -> None:
    """Draw all figures into a folder; one whose data are absent is left out with a warning."""
    with plt.rc_context(STYLE):
        for name, (draw, _) in FIGURES.items():
            try:
                figure = draw(folder)
            except FileNotFoundError as absent:
                warnings.warn(f"The figure {name!r} is left out: {absent}", stacklevel=2)
                continue
            # Without a date, so that the same runs make the same file.
            figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
            plt.close(figure)


def synthetic(folder: Path) -> Any:
    """Draw both outputs of one world and the predictions of four models."""
    pair = world(DRAW, WINDOWS["block"])
    figure, grid = _panels()
    for column, name in enumerate(("NCGP", "MONCGP", "CGP", "HMOCGP")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Uncoupled models share nothing: fitting both outputs at once is fitting each.
            model = build(name).fit({"x": pair.x}, pair.observations())
        prediction = model.predict_distribution({"x": pair.x})
        low, high = prediction.interval(0.9)
        for d in (0, 1):
            ax, colour = grid[d, column], COLOURS[name]
            _records(ax, pair, d)
            ax.fill_between(pair.x, low[:, d], high[:, d], color=colour, alpha=0.25, lw=0)
            ax.plot(pair.x, prediction.mean[:, d], color=colour, lw=1.8,
                    label="model (mean, 90 % interval)")  # fmt: skip
        grid[0, column].set_title(name)
    _legend_below(figure, grid[0, 3])
    return figure


def overlap(folder: Path) -> Any:
    """Draw the four scenarios of table 2."""
    figure, grid = _panels()
    for column, (name, spans) in enumerate(TABLE_2.items()):
        pair = world(DRAW, *(WINDOWS[span] for span in spans))
        grid[0, column].set_title(f"overlap {name}")
        for d, span in enumerate(spans):
            for start, stop in WINDOWS[span]:
                grid[d, column].axvspan(start, stop, color=ORANGE, alpha=0.15, lw=0)
            _records(grid[d, column], pair, d)
    _legend_below(figure, grid[0, 0])
    return figure


def censoring(folder: Path) -> Any:
    """Draw a week of demand at station 3711 and its records."""
    data = new_york(0)
    time, truth, seen = data.time[WEEK], data.truth[WEEK, 0], data.observed[WEEK, 0]
    hidden = data.censored[WEEK, 0]
    figure, ax = plt.subplots(figsize=(10, 3.4), layout="constrained")
    ax.plot(time, truth, color=BLACK, lw=1.2, label="true demand")
    ax.plot(time, seen, color=BLUE, lw=1.2, ls="--", label="record")
    ax.vlines(time[hidden], seen[hidden], truth[hidden], color=RED, lw=1.0, alpha=0.6)
    ax.plot(time[~hidden], seen[~hidden], "x", color=BLACK, ms=4, label="not censored")
    ax.plot(time[hidden], seen[hidden], "o", color=RED, ms=5, mfc="white", label="censored")
    ax.set_ylabel("pickups in the hour")
    ax.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%a %d %b"))
    _legend_below(figure, ax)
    return figure


def calibration(folder: Path) -> Any:
    """Draw the PIT, the coverage and the error at censored points, by the share censored."""
    rows = finished(SHARE_STUDY.read(folder))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for model in MODELS:
        # A small shift to the side, or models that agree would hide each other.
        aside = 0.004 * (MODELS.index(model) - 2.5)
        style = {"color": COLOURS[model], "marker": MARKERS[model], "ms": 6, "lw": 1.6,
                 "ls": "--" if model in ("NCGP", "MONCGP") else "-", "label": model}  # fmt: skip
        chosen = rows[rows["model"] == model]
        below = np.concatenate([[0.0], chosen[list(PIT_COLUMNS)].mean().cumsum()])
        left.plot(np.linspace(0.0, 1.0, len(below)) + aside, below, **style)
        for ax, score in ((middle, "coverage"), (right, "relative_error")):
            by_share = chosen.groupby(chosen["share"].astype(float))[score]
            mean, error = by_share.mean(), by_share.sem()
            ax.errorbar(mean.index + aside, mean, error, capsize=2, **style)
    left.plot([0, 1], [0, 1], color=BLACK, ls=":", lw=1)
    middle.axhline(0.9, color=BLACK, ls=":", lw=1)
    left.set(title="PIT", xlabel="predicted probability", ylabel="share of the truth below")
    middle.set(title="90 % intervals", xlabel="share censored", ylabel="coverage", ylim=(0, 1))
    right.set(title="error", xlabel="share censored", ylabel="mean absolute error / sd")
    right.set_ylim(0, None)
    _legend_below(figure, right)
    return figure


FIGURES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "synthetic": (
        synthetic,
        "One synthetic draw, four models. Those that ignore censoring follow the pushed-down "
        "records; CGP has the bounds of its own output, HMOCGP the other output too.",
    ),
    "overlap": (overlap, "The four scenarios of table 2, in one draw."),
    "calibration": (
        calibration,
        "Censored points of synthetic worlds. Left: share of the truth below each predicted "
        "quantile; the diagonal is calibrated. Middle and right: coverage and error by the share "
        "censored; means over draws with standard errors.",
    ),
    "censoring": (censoring, "A week at station 3711: demand, and what the rule leaves of it."),
}
"""How each figure is drawn, and its caption."""


def _panels() -> Any:
    figure, grid = plt.subplots(
        2, 4, figsize=(13, 5.2), sharex=True, sharey="row", layout="constrained"
    )
    for d in (0, 1):
        grid[d, 0].set_ylabel(f"output {d + 1}")
    for ax in grid[1]:
        ax.set_xlabel("x")
    return figure, grid


def _records(ax: Any, pair: SyntheticPair, d: int) -> None:
    """Draw the truth of one output and its records."""
    hidden = pair.censored[:, d]
    ax.plot(pair.x, pair.truth[:, d], ".", color="#999999", ms=4, label="truth")
    ax.plot(pair.x[~hidden], pair.observed[~hidden, d], "x", color=BLACK, ms=4,
            label="not censored")  # fmt: skip
    ax.plot(pair.x[hidden], pair.observed[hidden, d], "^", color=BLACK, mfc="white", ms=5,
            label="censored")  # fmt: skip


def _legend_below(figure: Any, ax: Any) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
