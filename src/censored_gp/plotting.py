"""Pictures of predictions and of what was seen (needs matplotlib: `pip install censored-gp[plot]`).

Every function draws on the axes it is given, or on new ones, and returns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Shaped

from censored_gp.observations import Observations
from censored_gp.predict import Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "COLOURS",
    "new_axes",
    "plot_observations",
    "plot_output",
    "plot_prediction",
    "require_matplotlib",
]

# Told apart by people who do not see all colours, and in print.
COLOURS = {
    "prediction": "#00766c",
    "other": "#d1495b",
    "exact": "#555555",
    "censored": "#e08e0b",
    "truth": "#1f2937",
}


def require_matplotlib() -> Any:
    """Return matplotlib, or say how to get it."""
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "censored-gp[plot]".'
        ) from error
    return mpl


def new_axes(ax: Axes | None = None) -> Axes:
    """Return the axes given, or new ones."""
    if ax is not None:
        return ax
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def plot_prediction(
    prediction: Prediction,
    x: Shaped[np.ndarray, " N"],
    output: int | str = 0,
    *,
    probability: float | None = 0.9,
    label: str = "predicted",
    colour: str = COLOURS["prediction"],
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of an output and the interval that holds it with the given probability."""
    ax, d = new_axes(ax), _place(prediction.names, output)
    order = np.argsort(x, kind="stable")
    if probability is not None:
        low, high = prediction.interval(probability)
        words = f"{label}, {probability:.0%} interval"
        band = (x[order], low[order, d], high[order, d])
        ax.fill_between(*band, color=colour, alpha=0.18, linewidth=0, label=words)
    ax.plot(x[order], prediction.mean[order, d], color=colour, linewidth=1.8, label=label)
    return ax


def plot_observations(
    observations: Observations,
    x: Shaped[np.ndarray, " N"],
    output: int | str = 0,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw what was seen of an output: exact, censored and missing rows each in their own way.

    Exact values are dots, "at least" and "at most" triangles that point to where the truth lies,
    intervals are bars between their bounds, and missing rows ticks at the bottom.
    """
    ax, d = new_axes(ax), _place(observations.names, output)
    values = observations.values()[:, d]
    is_, grey, warm = _kinds(observations, d), COLOURS["exact"], COLOURS["censored"]
    _points(ax, x, values, is_["exact"], "o", grey, "seen")
    _points(ax, x, values, is_["right"], "^", warm, "at least")
    _points(ax, x, values, is_["left"], "v", warm, "at most")
    if is_["interval"].any():
        rows = is_["interval"]
        ends = observations.lower[rows, d], observations.upper[rows, d]
        ax.vlines(x[rows], *ends, color=warm, linewidth=2.5, alpha=0.8, label="between")
    if is_["missing"].any():
        rows = is_["missing"]
        ax.plot(
            x[rows], np.zeros(rows.sum()), "|", color=grey, markersize=9, label="missing",
            transform=ax.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    return ax


def plot_output(
    prediction: Prediction,
    x: Shaped[np.ndarray, " N"],
    output: int | str = 0,
    *,
    observations: Observations | None = None,
    truth: Float[np.ndarray, "N D"] | None = None,
    probability: float | None = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw the posterior of an output with what was seen of it and, if known, the truth."""
    ax, d = new_axes(ax), _place(prediction.names, output)
    if truth is not None:
        order = np.argsort(x, kind="stable")
        line = (x[order], np.asarray(truth)[order, d])
        ax.plot(*line, color=COLOURS["truth"], linewidth=1.0, linestyle=":", label="truth")
    plot_prediction(prediction, x, d, probability=probability, ax=ax)
    if observations is not None:
        plot_observations(observations, x, d, ax=ax)
    ax.set_title(prediction.names[d], loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _kinds(observations: Observations, d: int) -> dict[str, Bool[np.ndarray, " N"]]:
    kinds = ("exact", "right", "left", "interval", "missing")
    return {kind: getattr(observations, f"is_{kind}")[:, d] for kind in kinds}


def _points(
    ax: Axes,
    x: Shaped[np.ndarray, " N"],
    values: Float[np.ndarray, " N"],
    rows: Bool[np.ndarray, " N"],
    marker: str,
    colour: str,
    label: str,
) -> None:
    if rows.any():
        ax.scatter(
            x[rows], values[rows], marker=marker, color=colour, s=16 if marker == "o" else 30,
            linewidths=0, alpha=0.75 if marker == "o" else 0.95, zorder=3, label=label,
        )  # fmt: skip


def _place(names: tuple[str, ...], output: Any) -> int:
    """Return the position of an output given by name or position."""
    if isinstance(output, str) and output in names:
        return names.index(output)
    if not isinstance(output, str | bool) and output in range(len(names)):
        return int(output)
    raise ValueError(
        f"output: found {output!r}. Accepted is one of {', '.join(map(repr, names))}, or a "
        f"position from 0 to {len(names) - 1}."
    )
