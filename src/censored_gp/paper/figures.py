"""The figures of the paper and two that it lacks, as PNG and SVG (needs matplotlib).

Colours are those of Okabe and Ito, which people who do not see all colours tell apart; lines differ
in their dashes or markers too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from censored_gp.datasets import new_york
from censored_gp.paper import shares, table2
from censored_gp.paper.captions import CAPTIONS
from censored_gp.paper.models import MODELS, build
from censored_gp.paper.runs import Row, read_runs
from censored_gp.paper.synthetic import WINDOWS, world
from censored_gp.reporting import require_matplotlib
from censored_gp.simulate import SyntheticPair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_all"]

BLACK, ORANGE, SKY, GREEN, BLUE, RED, PINK = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"),
)
COLOURS: dict[str, str] = dict(zip(MODELS, (ORANGE, PINK, SKY, GREEN, RED, BLUE), strict=True))
MARKERS: dict[str, str] = dict(zip(MODELS, "osv^DP", strict=True))
DRAW = 4
"""The synthetic world that is shown."""
WEEK = slice(24, 24 + 168)
STYLE = {
    "figure.dpi": 120,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "legend.frameon": False,
    "svg.hashsalt": "censored-gp",
    "svg.fonttype": "none",
}


def draw_all(folder: Path, only: tuple[str, ...] = tuple(CAPTIONS)) -> list[Path]:
    """Draw all figures (or some) into a folder, as PNG and SVG; return the PNG files.

    >>> import tempfile
    >>> draw_all(Path(tempfile.mkdtemp()), ("contributions",))[0].name
    'contributions.png'
    """
    plt = _pyplot()
    written = []
    with plt.rc_context(STYLE):
        for name in only:
            try:
                figure = DRAWN[name](folder)
            except FileNotFoundError as absent:
                # The others need no data.
                warnings.warn(f"The figure {name!r} is left out: {absent}", stacklevel=2)
                continue
            for ending in ("svg", "png"):
                path = folder / f"{name}.{ending}"
                # Without a date, so that the same runs make the same file.
                told = {"Date": None} if ending == "svg" else {}
                figure.savefig(path, bbox_inches="tight", metadata=told, dpi=150)
            plt.close(figure)
            written.append(path)
    return written


def synthetic_comparison(folder: Path) -> Figure:
    """Draw both outputs of one world and what four models make of them."""
    pair = world(DRAW, "block")
    figure, grid = _pyplot().subplots(
        2, 4, figsize=(13, 5.4), sharex=True, sharey="row", layout="constrained"
    )
    for column, name in enumerate(("NCGP", "MONCGP", "CGP", "HMOCGP")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Single outputs are fitted one by one here too: uncoupled models do not share anything.
            prediction = (
                build(name)
                .fit({"x": pair.x}, pair.observations())
                .predict_distribution({"x": pair.x})
            )
        low, high = prediction.interval(0.9)
        for d in (0, 1):
            ax = grid[d, column]
            _pair(ax, pair, d)
            ax.fill_between(pair.x, low[:, d], high[:, d], color=COLOURS[name], alpha=0.25, lw=0)
            ax.plot(
                pair.x,
                prediction.mean[:, d],
                color=COLOURS[name],
                lw=1.8,
                label="the model, in its colour (mean, 90 %)",
            )
        grid[0, column].set_title(name)
    for d in (0, 1):
        grid[d, 0].set_ylabel(f"output {d + 1}")
    for ax in grid[1]:
        ax.set_xlabel("x")
    _legend_below(figure, grid[0, 3])
    return figure


def censoring(folder: Path) -> Figure:
    """Draw a week of demand at the paper's station, and what was seen of it."""
    data = new_york(0)
    time, truth, seen = data.time[WEEK], data.truth[WEEK, 0], data.observed[WEEK, 0]
    hidden = data.censored[WEEK, 0]
    figure, ax = _pyplot().subplots(figsize=(10, 3.6), layout="constrained")
    ax.plot(time, truth, color=BLACK, lw=1.2, label="true demand")
    ax.plot(time, seen, color=BLUE, lw=1.2, ls="--", label="what was observed")
    ax.vlines(time[hidden], seen[hidden], truth[hidden], color=RED, lw=1.0, alpha=0.6)
    ax.plot(time[~hidden], seen[~hidden], "x", color=BLACK, ms=4, label="not censored")
    ax.plot(time[hidden], seen[hidden], "o", color=RED, ms=5, mfc="white", label="censored")
    ax.set_ylabel("pickups in the hour")
    ax.xaxis.set_major_formatter(_pyplot().matplotlib.dates.DateFormatter("%a %d %b"))
    _legend_below(figure, ax)
    return figure


def contributions(folder: Path) -> Figure:
    """Draw the likelihood of one observation under four candidate distributions."""
    figure, (left, right) = _pyplot().subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    y, grid = 0.0, np.linspace(-4, 6, 400)
    candidates = ((-1.0, 1.0, ORANGE, "-"), (0.0, 1.0, GREEN, "--"), (1.0, 1.0, RED, "-."),
                  (2.0, 2.0, PINK, ":"))  # fmt: skip
    for mean, scale, colour, dashes in candidates:
        label = f"mean {mean:g}, sd {scale:g}"
        for ax, height in ((left, norm.pdf), (right, norm.sf)):
            ax.plot(grid, height(grid, mean, scale), color=colour, ls=dashes, lw=1.8, label=label)
            ax.plot(y, height(y, mean, scale), "o", color=colour, ms=7, zorder=4)
            ax.plot(mean, 0.0, "^", color=colour, ms=8, clip_on=False, zorder=4)
    for ax, title in ((left, "not censored: density at y"), (right, "censored: P(Y ≥ y)")):
        ax.axvline(y, color=BLACK, ls="--", lw=1)
        ax.plot(y, 0.0, "x", color=BLACK, ms=9, mew=2, clip_on=False, zorder=5)
        ax.set(title=title, ylim=(0, None), xlabel="y (cross: observed; triangles: means)")
    _legend_below(figure, right)
    return figure


def overlap(folder: Path) -> Figure:
    """Draw the four scenarios of table 2."""
    figure, grid = _pyplot().subplots(
        2, 4, figsize=(13, 5.0), sharex=True, sharey="row", layout="constrained"
    )
    for column, (name, (own, other)) in enumerate(table2.SCENARIOS.items()):
        pair = world(DRAW, own, other)
        grid[0, column].set_title(name)
        for d, windows in enumerate((own, other)):
            for start, stop in WINDOWS[windows]:
                grid[d, column].axvspan(start, stop, color=ORANGE, alpha=0.15, lw=0)
            _pair(grid[d, column], pair, d)
    for d in (0, 1):
        grid[d, 0].set_ylabel(f"output {d + 1}")
    for ax in grid[1]:
        ax.set_xlabel("x")
    _legend_below(figure, grid[0, 0])
    return figure


def calibration(folder: Path) -> Figure:
    """Draw where the truth falls in the predictions, and coverage by censoring share."""
    rows = _natural(folder)
    figure, (left, right) = _pyplot().subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    levels = np.linspace(0.0, 1.0, shares.BINS + 1)
    for model in MODELS:
        style = _style(model)
        below = np.concatenate([[0.0], np.cumsum(shares.pit_shares(rows, model))])
        left.plot(levels + _aside(model), below, **style)
        means, errors = shares.by_share(rows, model, "coverage")
        right.errorbar(_shares(model), means, errors, capsize=2, **style)
    left.plot([0, 1], [0, 1], color=BLACK, ls="--", lw=1)
    right.axhline(0.9, color=BLACK, ls="--", lw=1)
    left.set(title="PIT", xlabel="predicted probability", ylabel="share of the truth below")
    right.set(title="90 % intervals", xlabel="share censored", ylabel="truth covered", ylim=(0, 1))
    _legend_below(figure, right)
    return figure


def error_by_share(folder: Path) -> Figure:
    """Draw the error at censored points against the censoring share, for six models."""
    rows = _natural(folder)
    figure, ax = _pyplot().subplots(figsize=(7, 4.4), layout="constrained")
    for model in MODELS:
        means, errors = shares.by_share(rows, model, "relative_error")
        ax.errorbar(_shares(model), means, errors, capsize=2, **_style(model))
    ax.set(xlabel="share censored", ylabel="mean absolute error / sd", ylim=(0, None))
    _legend_below(figure, ax)
    return figure


DRAWN: dict[str, Callable[[Path], Any]] = {
    "synthetic": synthetic_comparison,
    "censoring": censoring,
    "contributions": contributions,
    "overlap": overlap,
    "calibration": calibration,
    "shares": error_by_share,
}


def _natural(folder: Path) -> list[Row]:
    """Return the runs over censoring shares by the natural engine."""
    return [row for row in read_runs(shares.STUDY, folder) if row["engine"] == "natural"]


def _pyplot() -> Any:
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt


def _pair(ax: Axes, pair: SyntheticPair, d: int) -> None:
    """Draw the truth of one output and what was seen of it."""
    hidden = pair.censored[:, d]
    ax.plot(pair.x, pair.truth[:, d], ".", color="#999999", ms=4, label="truth")
    ax.plot(pair.x[~hidden], pair.observed[~hidden, d], "x", color=BLACK, ms=4,
            label="not censored")  # fmt: skip
    ax.plot(pair.x[hidden], pair.observed[hidden, d], "^", color=BLACK, mfc="white", ms=5,
            label="censored")  # fmt: skip


def _style(model: str) -> dict[str, Any]:
    dashes = "--" if model in ("NCGP", "MONCGP") else "-"
    return {"color": COLOURS[model], "marker": MARKERS[model], "ls": dashes, "ms": 6,
            "lw": 1.6, "label": model}  # fmt: skip


def _aside(model: str) -> float:
    """Return a small shift to the side, or models that agree would hide each other."""
    return 0.004 * (MODELS.index(model) - 2.5)


def _shares(model: str) -> list[float]:
    return [share + _aside(model) for share in shares.SHARES]


def _legend_below(figure: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
