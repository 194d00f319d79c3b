"""Calibration plots: the histogram of the PIT, and the coverage of central intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censored_gp.prediction.metrics import PIT, pit_coverage, pit_histogram
from censored_gp.reporting.rows import output_position
from censored_gp.reporting.style import colours_on, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_pit(
    diagnosis: Any, output: int | str | None = None, *, bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw how often the truth fell into each tenth of its prediction: flat if calibrated.

    Many at the ends mean intervals too narrow, many in the middle too wide, many on one side a
    bias. The dashed lines hold 95 % of the bars of a calibrated model.

    Parameters
    ----------
    diagnosis : Diagnosis or PIT
        What `model.diagnose()` or `metrics.pit` returned.
    output : int or str, optional
        Which output, by name or position; None: all of them.
    bins : int
        Number of bars.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp.prediction.metrics import PIT
    >>> u = np.random.default_rng(0).uniform(size=(100, 1))
    >>> len(plot_pit(PIT(u, u), ax=Figure().subplots()).patches)
    10
    """
    ax, pit = new_axes(ax), _pit(diagnosis, output)
    colours, edges = colours_on(ax), np.arange(bins) / bins
    heights = pit_histogram(pit, bins)
    ax.bar(edges, heights, width=0.94 / bins, align="edge", color=colours["prediction"])
    ax.axhline(1.0, color=colours["truth"], linewidth=1.0)
    chance = 1.96 * np.sqrt((bins - 1) / _cells(pit))
    for end in (max(0.0, 1 - chance), 1 + chance):
        ax.axhline(end, color=colours["truth"], linewidth=0.8, linestyle="--")
    ax.set(xlim=(0, 1), xlabel="where the truth fell in its prediction", ylabel="relative number")
    return ax


def plot_coverage(
    diagnosis: Any, output: int | str | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the coverage of central intervals against their nominal level: the diagonal is right.

    Below the diagonal intervals are too narrow, above it too wide. The band holds 95 % of the
    points of a calibrated model. Parameters are those of `plot_pit`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp.prediction.metrics import PIT
    >>> u = np.random.default_rng(0).uniform(size=(100, 1))
    >>> len(plot_coverage(PIT(u, u), ax=Figure().subplots()).lines)
    2
    """
    ax, pit = new_axes(ax), _pit(diagnosis, output)
    colours, levels = colours_on(ax), np.arange(1, 20) / 20
    chance = 1.96 * np.sqrt(levels * (1 - levels) / _cells(pit))
    band = (levels, levels - chance, levels + chance)
    ax.fill_between(*band, color=colours["exact"], alpha=0.2, linewidth=0, label="by chance")
    ax.plot([0, 1], [0, 1], color=colours["exact"], linewidth=1.0, label="nominal")
    line = {"color": colours["prediction"], "marker": "o", "markersize": 3.5, "label": "observed"}
    ax.plot(levels, pit_coverage(pit, levels), **line)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="nominal coverage", ylabel="coverage", aspect="equal")
    ax.legend(fontsize="small", loc="upper left")
    return ax


def _pit(diagnosis: Any, output: int | str | None) -> PIT:
    """Return the PIT of all outputs or one, from a diagnosis or a PIT."""
    pit: PIT = diagnosis if isinstance(diagnosis, PIT) else diagnosis.pit
    if output is None:
        return pit
    unnamed = [f"y{d}" for d in range(pit.lower.shape[1])]
    d = output_position(getattr(getattr(diagnosis, "truth", None), "names", unnamed), output)
    return PIT(pit.lower[:, [d]], pit.upper[:, [d]])


def _cells(pit: PIT) -> int:
    """Return how many cells are known, at least 1."""
    return max(1, int(np.sum(~np.isnan(pit.lower))))
