"""An output: what was seen of it, exact, censored and missing apart, and what is predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from censored_gp.data.observations import Observations
from censored_gp.plotting.style import colours_on, new_axes
from censored_gp.prediction.predictive import Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

__all__ = [
    "categories_of",
    "place_of",
    "plot_observations",
    "plot_output",
    "plot_posterior",
    "plot_prediction",
    "positions",
    "spread_out",
]


def plot_prediction(
    prediction: Prediction,
    x: Shaped[np.ndarray, " N"],
    output: int | str = 0,
    *,
    probability: float | None = 0.9,
    label: str = "predicted",
    colour: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of an output and the interval that holds it with the given probability.

    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = CensoredGP(heteroscedastic=False).fit(X, np.sin(X[:, 0]).round(1))
    >>> ax = Figure().subplots()
    >>> plot_prediction(model.predict_distribution(X), X[:, 0], ax=ax) is ax
    True
    """
    ax, d = new_axes(ax), place_of(prediction.names, output)
    colour = colours_on(ax)["prediction"] if colour is None else colour
    order = np.argsort(x, kind="stable")
    if probability is not None:
        low, high = prediction.interval(probability)
        words = f"{label}, {probability:.0%} interval"
        band = (x[order], low[order, d], high[order, d])
        ax.fill_between(*band, color=colour, alpha=0.22, linewidth=0, label=words)
    ax.plot(x[order], prediction.mean[order, d], color=colour, linewidth=1.6, label=label)
    return ax


def plot_observations(
    observations: Observations,
    x: Shaped[np.ndarray, " N"],
    output: int | str = 0,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw what was seen of an output: exact, censored and missing rows each in their own way.

    Exact values are dots. "At least" and "at most" are bars at the bound, with an arrow to where
    the truth lies; intervals are bars between their bounds, and missing rows ticks at the bottom.

    >>> from matplotlib.figure import Figure
    >>> seen = Observations.from_flags([1.0, 2.0, np.nan], [0, 1, 0])
    >>> ax = plot_observations(seen, np.arange(3.0), ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['seen', 'at least', 'missing']
    """
    ax, d = new_axes(ax), place_of(observations.names, output)
    values, colours = observations.values()[:, d], colours_on(ax)
    is_, grey, warm = _kinds(observations, d), colours["exact"], colours["censored"]
    _points(ax, x, values, is_["exact"], "o", grey, "seen")
    _points(ax, x, values, is_["right"], _arrow(1), warm, "at least")
    _points(ax, x, values, is_["left"], _arrow(-1), warm, "at most")
    if is_["interval"].any():
        rows = is_["interval"]
        ends = observations.lower[rows, d], observations.upper[rows, d]
        ax.vlines(x[rows], *ends, color=warm, linewidth=1.8, alpha=0.8, label="between")
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
    """Draw the posterior of an output with what was seen of it and, if known, the truth.

    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = CensoredGP(heteroscedastic=False).fit(X, np.sin(X[:, 0]).round(1))
    >>> found = model.predict_distribution(X)
    >>> seen = model.observations_
    >>> ax = plot_output(found, X[:, 0], observations=seen, ax=Figure().subplots())
    >>> ax.get_title(loc="left")
    'y'
    """
    ax, d = new_axes(ax), place_of(prediction.names, output)
    if truth is not None:
        order = np.argsort(x, kind="stable")
        line = (x[order], np.asarray(truth)[order, d])
        ax.plot(*line, color=colours_on(ax)["truth"], linewidth=1.0, linestyle=":", label="truth")
    plot_prediction(prediction, x, d, probability=probability, ax=ax)
    if observations is not None:
        plot_observations(observations, x, d, ax=ax)
    ax.set_title(_plain(prediction.names[d]), loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_posterior(
    model: Any,
    output: int | str = 0,
    *,
    rows: Any = slice(None),
    truth: Float[np.ndarray, "N D"] | None = None,
    probability: float | None = 0.9,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw an output of a fitted model over its training rows: predicted, seen, and the bounds.

    Parameters
    ----------
    model : CensoredGP
        A fitted model.
    output : int or str
        Which output, by name or position.
    rows : slice or array
        Training rows to draw; all, if not given.
    truth : array (N, D), optional
        The true outputs of all training rows, where they are known.
    probability : float or None
        Of the interval that is drawn.
    legend : bool
        Whether to say what is what.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.minimum(np.sin(X[:, 0]) + 0.1 * np.cos(37 * X[:, 0]), 0.6)
    >>> model = CensoredGP(heteroscedastic=False).fit(X, y, capacity=0.6)
    >>> ax = plot_posterior(model, ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1][-2:]
    ['seen', 'at least']
    """
    x, label = positions(model)
    chosen = np.arange(len(x))[rows]
    names = categories_of(model)
    draw = plot_output if names is None else _plot_in_categories
    draw(
        model._prediction(model._inputs[chosen]),
        x[chosen],
        output,
        observations=model.observations_.rows(chosen),
        truth=None if truth is None else np.asarray(truth)[chosen],
        probability=probability,
        ax=(ax := new_axes(ax)),
    )
    ax.set_xlabel(label)
    time_axis(ax, x)
    if names is not None:
        category_axis(ax, names)
    if legend:
        # The room for the title is in units of the font, however high the axes are.
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 2.3}
        ax.legend(ncols=3, fontsize="small", **place)
    return ax


def _plot_in_categories(
    prediction: Prediction,
    x: Int[np.ndarray, " N"],
    output: int | str,
    *,
    observations: Observations,
    truth: Float[np.ndarray, "N D"] | None,
    probability: float | None,
    ax: Axes,
) -> None:
    """Draw an output by category: nothing lies between categories, so that there is no line."""
    d, colours = place_of(prediction.names, output), colours_on(ax)
    apart = spread_out(x)
    if truth is not None:
        dots = {"color": colours["truth"], "marker": "x", "s": 14, "linewidths": 1.0}
        ax.scatter(apart, truth[:, d], label="truth", **dots)
    plot_observations(observations, apart, d, ax=ax)
    place, first = np.unique(x, return_index=True)
    mean, style = prediction.mean[first, d], {"color": colours["prediction"], "zorder": 4}
    if probability is not None:
        low, high = (end[first, d] for end in prediction.interval(probability))
        words = f"predicted, {probability:.0%} interval"
        bars = {"fmt": "none", "elinewidth": 2.2, "capsize": 6, "label": words}
        ax.errorbar(place, mean, np.maximum([mean - low, high - mean], 0.0), **bars, **style)
    ax.plot(place, mean, "D", markersize=7, label="predicted", **style)
    ax.set_title(_plain(prediction.names[d]), loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def spread_out(codes: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return places beside the middle of each category, so that its rows do not hide each other.

    >>> spread_out(np.array([0, 1, 1])).round(2).tolist()
    [-0.3, 0.7, 1.07]
    """
    _, inverse = np.unique(codes, return_inverse=True)
    rank = np.zeros(len(codes))
    for code in range(int(inverse.max(initial=-1)) + 1):
        rows = np.flatnonzero(inverse == code)
        rank[rows] = np.arange(len(rows))
    # Multiples of the golden ratio fill an interval evenly, however many there are.
    return codes + 0.6 * (rank * 0.6180339887498949 % 1.0 - 0.5)


def positions(model: Any) -> tuple[Shaped[np.ndarray, " N"], str]:
    """Return where the training rows are: their times, or else their first number; and its name.

    Rows that have nothing but categories are at the places of those (see `categories_of`).

    >>> from censored_gp import CensoredGP
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = CensoredGP(heteroscedastic=False).fit(X, [1.0, 2.0, 1.0, 2.0])
    >>> positions(model)
    (array([0., 1., 2., 3.]), 'x0')
    """
    columns = model.columns_
    if any(columns.is_time):
        return model._clock(), columns.names[columns.is_time.index(True)]
    if None not in columns.levels:
        return _in_categories(model)[1], ", ".join(columns.groups)
    place = columns.levels.index(None)
    return model._inputs[:, place] + float(columns.origin[place]), columns.names[place]


def categories_of(model: Any) -> list[str] | None:
    """Return the categories of the inputs, in the order of their places; None if there is more.

    Of several inputs they are those that occur together.
    """
    return None if None in model.columns_.levels else _in_categories(model)[0]


def _in_categories(model: Any) -> tuple[list[str], Int[np.ndarray, " N"]]:
    columns = model.columns_
    each = [columns.values(source, model._inputs) for source in columns.groups]
    words = np.array([", ".join(row) for row in zip(*each, strict=True)])
    names, codes = np.unique(words, return_inverse=True)
    return names.tolist(), codes


def category_axis(ax: Axes, names: list[str]) -> None:
    """Label the places of categories by their names, turned where they would touch."""
    turned = sum(map(len, names)) > 60
    words = [_plain(name) for name in names]
    ax.set_xticks(
        range(len(names)), words, rotation=30 if turned else 0, ha="right" if turned else "center"
    )
    ax.set_xlim(-0.6, len(names) - 0.4)


def time_axis(ax: Axes, x: Shaped[np.ndarray, " N"]) -> None:
    """Label times briefly: what the labels have in common is said once."""
    if np.asarray(x).dtype.kind != "M":
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _kinds(observations: Observations, d: int) -> dict[str, Bool[np.ndarray, " N"]]:
    kinds = ("exact", "right", "left", "interval", "missing")
    return {kind: getattr(observations, f"is_{kind}")[:, d] for kind in kinds}


def _arrow(way: int) -> Path:
    """Return a marker: a bar at the bound, and an arrow head to where the truth lies."""
    from matplotlib.path import Path

    bar = [(-0.7, -0.09), (0.7, -0.09), (0.7, 0.09), (-0.7, 0.09), (-0.7, -0.09)]
    head = [(-0.45, 0.35), (0.45, 0.35), (0.0, 1.1), (-0.45, 0.35)]
    steps = [[Path.MOVETO] + [Path.LINETO] * (len(part) - 2) + [Path.CLOSEPOLY]
             for part in (bar, head)]  # fmt: skip
    return Path(np.array(bar + head) * (1, way), [step for part in steps for step in part])


def _points(
    ax: Axes,
    x: Shaped[np.ndarray, " N"],
    values: Float[np.ndarray, " N"],
    rows: Bool[np.ndarray, " N"],
    marker: Any,
    colour: str,
    label: str,
) -> None:
    if rows.any():
        exact = marker == "o"
        ax.scatter(
            x[rows], values[rows], marker=marker, color=colour, s=12 if exact else 90,
            linewidths=0, alpha=0.75 if exact else 0.95, zorder=3, label=label,
        )  # fmt: skip


def _plain(text: str) -> str:
    """Return text as it is: matplotlib would take what is between dollars for mathematics."""
    return text.replace("$", r"\$")


def place_of(names: tuple[str, ...], output: Any) -> int:
    """Return the position of an output given by name or position.

    >>> place_of(("a", "b"), "b")
    1
    """
    if isinstance(output, str) and output in names:
        return names.index(output)
    if not isinstance(output, str | bool) and output in range(len(names)):
        return int(output)
    raise ValueError(
        f"output: found {output!r}. Accepted is one of {', '.join(map(repr, names))}, or a "
        f"position from 0 to {len(names) - 1}."
    )
