"""Whether predictions are as sure as they should be: transforms, and intervals that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from censored_gp.plotting.outputs import place_of
from censored_gp.plotting.style import colours_on, new_axes
from censored_gp.prediction.metrics import PIT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coverage_curve", "pit_bars", "pit_of", "plot_coverage", "plot_pit"]

LEVELS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())


def pit_of(diagnosis: Any, output: int | str | None = None) -> PIT:
    """Return the transforms of all outputs or one; given transforms are taken as they are.

    >>> both = PIT(np.zeros((3, 2)), np.ones((3, 2)))
    >>> pit_of(both).lower.shape
    (3, 2)
    """
    pit: PIT = diagnosis if isinstance(diagnosis, PIT) else diagnosis.pit
    if output is None:
        return pit
    unnamed = tuple(f"y{d}" for d in range(pit.lower.shape[1]))
    d = place_of(getattr(getattr(diagnosis, "truth", None), "names", unnamed), output)
    return PIT(pit.lower[:, d : d + 1], pit.upper[:, d : d + 1])


def pit_bars(pit: PIT, bins: int = 10) -> Float[np.ndarray, " B"]:
    """Return how full each bin is, 1 being as full as it should be.

    >>> pit_bars(PIT(np.array([[0.0]]), np.array([[1.0]])), bins=4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return np.diff(np.concatenate([[0.0], pit.cdf(np.arange(1, bins + 1) / bins)])) * bins


def coverage_curve(pit: PIT, levels: Any = LEVELS) -> Float[np.ndarray, " L"]:
    """Return the share of cells that central intervals hold, a censored cell by its probability.

    >>> coverage_curve(PIT(np.array([[0.0]]), np.array([[1.0]])), [0.5, 0.9]).round(3).tolist()
    [0.5, 0.9]
    """
    half = np.asarray(levels, dtype=float) / 2
    return pit.cdf(0.5 + half) - pit.cdf(0.5 - half)


def plot_pit(
    diagnosis: Any, output: int | str | None = None, *, bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw how often the truth fell into each tenth of its prediction: flat if all is well.

    Many at the ends mean intervals too narrow, many in the middle too wide, many on one side that
    predictions are off. Dashed lines hold 95 % of the bars if nothing is wrong.

    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0).uniform(size=(100, 1))
    >>> ax = plot_pit(PIT(rng, rng), ax=Figure().subplots())
    >>> len(ax.patches)
    10
    """
    ax, pit = new_axes(ax), pit_of(diagnosis, output)
    colours, known = colours_on(ax), int(np.sum(~np.isnan(pit.lower)))
    edges = np.arange(bins) / bins
    ax.bar(edges, pit_bars(pit, bins), width=0.94 / bins, align="edge", color=colours["prediction"])
    ax.axhline(1.0, color=colours["truth"], linewidth=1.0)
    chance = 1.96 * np.sqrt((bins - 1) / max(known, 1))
    for end in (max(0.0, 1 - chance), 1 + chance):
        ax.axhline(end, color=colours["truth"], linewidth=0.8, linestyle="--")
    ax.set(xlim=(0, 1), xlabel="where the truth fell in its prediction", ylabel="relative number")
    return ax


def plot_coverage(
    diagnosis: Any, output: int | str | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how many cells intervals hold against how many they promise: the diagonal is right.

    Below it intervals are too narrow, above it too wide.

    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0).uniform(size=(100, 1))
    >>> ax = plot_coverage(PIT(rng, rng), ax=Figure().subplots())
    >>> len(ax.lines)
    2
    """
    ax, pit = new_axes(ax), pit_of(diagnosis, output)
    colours, levels = colours_on(ax), np.array(LEVELS)
    held = coverage_curve(pit, levels)
    known = max(1, int(np.sum(~np.isnan(pit.lower))))
    chance = 1.96 * np.sqrt(levels * (1 - levels) / known)
    band = (levels, levels - chance, levels + chance)
    ax.fill_between(*band, color=colours["exact"], alpha=0.2, linewidth=0, label="by chance")
    ax.plot([0, 1], [0, 1], color=colours["exact"], linewidth=1.0, label="as promised")
    line = {"color": colours["prediction"], "marker": "o", "markersize": 3.5}
    ax.plot(levels, held, **line, label="held")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="promised share", ylabel="share held", aspect="equal")
    ax.legend(fontsize="small", loc="upper left")
    return ax
