"""Plots of an output and its observations, of lost demand, and of how a fit went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped
from scipy.linalg import block_diag

from censored_gp.data.errors import listed
from censored_gp.data.observations import Observations
from censored_gp.estimator.summary import kernel_labels, prior_correlation
from censored_gp.prediction.predictive import Prediction
from censored_gp.reporting.rows import (
    XAxis,
    jitter,
    output_position,
    predict_training,
    records,
    training_axis,
)
from censored_gp.reporting.style import colours_on, new_axes, without_math

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path


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
    """Draw the predictive mean of an output and its central interval.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CGP
    >>> X = np.arange(6.0)[:, None]
    >>> model = CGP().fit(X, [1, 2, 3, 3, 2, 1], capacity=3)
    >>> ax = plot_prediction(model.predict_distribution(X), X[:, 0], ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['predicted, 90% interval', 'predicted']
    """
    ax, d = new_axes(ax), output_position(prediction.names, output)
    colour = colours_on(ax)["prediction"] if colour is None else colour
    order = np.argsort(x, kind="stable")
    if probability is not None:
        low, high = (end[order, d] for end in prediction.interval(probability))
        band = f"{label}, {probability:.0%} interval"
        ax.fill_between(x[order], low, high, color=colour, alpha=0.22, linewidth=0, label=band)
    ax.plot(x[order], prediction.mean[order, d], color=colour, linewidth=1.6, label=label)
    return ax


def plot_observations(
    observations: Observations,
    x: Shaped[np.ndarray, " N"],
    output: int | str = 0,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the observations of an output; exact, censored and missing rows differ in shape.

    Exact values are dots. Right- and left-censored rows are bars at the bound with an arrow to
    where the truth lies, intervals are bars between their bounds, missing rows ticks at the bottom.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import Observations
    >>> known = Observations.from_flags([1.0, 2.0, np.nan], [0, 1, 0])
    >>> ax = plot_observations(known, np.arange(3.0), ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['seen', 'at least', 'missing']
    """
    ax, d = new_axes(ax), output_position(observations.names, output)
    values, colours = observations.values()[:, d], colours_on(ax)
    dot = {"marker": "o", "color": colours["exact"], "s": 12, "alpha": 0.75}
    arrow = {"color": colours["censored"], "s": 90, "alpha": 0.95}
    for rows, label, mark in (
        (observations.is_exact[:, d], "seen", dot),
        (observations.is_right[:, d], "at least", {**arrow, "marker": _arrow(1)}),
        (observations.is_left[:, d], "at most", {**arrow, "marker": _arrow(-1)}),
    ):
        if rows.any():
            ax.scatter(x[rows], values[rows], linewidths=0, zorder=3, label=label, **mark)
    rows = observations.is_interval[:, d]
    if rows.any():
        ends = observations.lower[rows, d], observations.upper[rows, d]
        bar = {"color": colours["censored"], "linewidth": 1.8, "alpha": 0.8}
        ax.vlines(x[rows], *ends, label="between", **bar)
    rows = observations.is_missing[:, d]
    if rows.any():
        tick = {"color": colours["exact"], "markersize": 9, "clip_on": False, "label": "missing"}
        ax.plot(x[rows], np.zeros(rows.sum()), "|", transform=ax.get_xaxis_transform(), **tick)
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
    """Draw the prediction of an output with its observations and, if known, the truth.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CGP
    >>> X = np.arange(6.0)[:, None]
    >>> model = CGP().fit(X, [1, 2, 3, 3, 2, 1], capacity=3)
    >>> prediction, known = model.predict_distribution(X), model.observations_
    >>> ax = plot_output(prediction, X[:, 0], observations=known, ax=Figure().subplots())
    >>> ax.get_title(loc="left")
    'y'
    """
    ax, d = new_axes(ax), output_position(prediction.names, output)
    if truth is not None:
        order = np.argsort(x, kind="stable")
        line = {"color": colours_on(ax)["truth"], "linewidth": 1.0, "linestyle": ":"}
        ax.plot(x[order], np.asarray(truth)[order, d], label="truth", **line)
    plot_prediction(prediction, x, d, probability=probability, ax=ax)
    if observations is not None:
        plot_observations(observations, x, d, ax=ax)
    ax.set_title(without_math(prediction.names[d]), loc="left")
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
    """Draw an output of a fitted model over its training rows: prediction and observations.

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
        Of the interval that is drawn; None: no interval.
    legend : bool
        Whether to add a legend.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> ax = plot_posterior(model, ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1][-2:]
    ['seen', 'at least']
    """
    axis = training_axis(model)
    chosen = np.arange(len(axis.values))[rows]
    draw = plot_output if axis.categories is None else _plot_by_category
    draw(
        predict_training(model, chosen),
        axis.values[chosen],
        output,
        observations=model.observations_.rows(chosen),
        truth=None if truth is None else np.asarray(truth)[chosen],
        probability=probability,
        ax=(ax := new_axes(ax)),
    )
    label_x_axis(ax, axis)
    if legend:
        # The room for the title is in units of the font, whatever the height of the axes.
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 2.3}
        ax.legend(ncols=3, fontsize="small", **place)
    return ax


def _plot_by_category(
    prediction: Prediction,
    x: Shaped[np.ndarray, " N"],
    output: int | str,
    *,
    observations: Observations,
    truth: Float[np.ndarray, "N D"] | None,
    probability: float | None,
    ax: Axes,
) -> None:
    """Draw an output by category: points with error bars, since nothing lies in between."""
    d, colours = output_position(prediction.names, output), colours_on(ax)
    beside = x + jitter(x)
    if truth is not None:
        dots = {"color": colours["truth"], "marker": "x", "s": 14, "linewidths": 1.0}
        ax.scatter(beside, truth[:, d], label="truth", **dots)
    plot_observations(observations, beside, d, ax=ax)
    codes, first = np.unique(x, return_index=True)
    mean, style = prediction.mean[first, d], {"color": colours["prediction"], "zorder": 4}
    if probability is not None:
        low, high = (end[first, d] for end in prediction.interval(probability))
        bars = {"fmt": "none", "elinewidth": 2.2, "capsize": 6, **style}
        label = f"predicted, {probability:.0%} interval"
        ax.errorbar(codes, mean, np.maximum([mean - low, high - mean], 0.0), label=label, **bars)
    ax.plot(codes, mean, "D", markersize=7, label="predicted", **style)
    ax.set_title(without_math(prediction.names[d]), loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def label_x_axis(ax: Axes, axis: XAxis) -> None:
    """Label the x axis: times concisely, categories by name, turned where they would touch."""
    ax.set_xlabel(axis.label)
    if axis.is_time:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    if axis.categories is not None:
        names = [without_math(name) for name in axis.categories]
        turned = {"rotation": 30, "ha": "right"} if sum(map(len, names)) > 60 else {}
        ax.set_xticks(range(len(names)), names, **turned)
        ax.set_xlim(-0.6, len(names) - 0.4)


def _arrow(direction: int) -> Path:
    """Return a marker: a bar at the bound, and an arrow head up (1) or down (-1)."""
    from matplotlib.path import Path

    bar = [(-0.7, -0.09), (0.7, -0.09), (0.7, 0.09), (-0.7, 0.09), (-0.7, -0.09)]
    head = [(-0.45, 0.35), (0.45, 0.35), (0.0, 1.1), (-0.45, 0.35)]
    parts = [Path(np.array(part) * (1, direction), closed=True) for part in (bar, head)]
    return Path.make_compound_path(*parts)


def plot_lost_demand(
    model: Any,
    by: str = "hour",
    *,
    share: bool = False,
    probability: float = 0.9,
    random_state: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how much demand was lost by hour (weekday, date, month or output), with intervals.

    Parameters
    ----------
    model : CensoredGP
        A fitted model.
    by : str
        "hour", "weekday", "date", "month" or "output".
    share : bool
        Whether to draw the share of demand that was lost, instead of the amount.
    probability : float
        Of the intervals.
    random_state : int, RandomState or None
        Seed of the joint draws, as in `model.lost_demand`.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> ax = plot_lost_demand(model, by="output", ax=Figure().subplots())
    >>> len(ax.patches)
    1
    """
    ax, what = new_axes(ax), "share" if share else "lost"
    rows = records(model.lost_demand(by=by, probability=probability, random_state=random_state))
    # The first column has the groups, under a name that may be the user's.
    labels = [str(next(iter(row.values()))) for row in rows]
    mean, low, high = (
        np.array([row[what + end] for row in rows], dtype=float) for end in ("", "_low", "_high")
    )
    colours, places = colours_on(ax), np.arange(len(rows))
    ax.bar(places, mean, color=colours["censored"], alpha=0.85, label="lost")
    # The mean of a skewed distribution may lie outside its interval.
    ends = np.maximum([mean - low, high - mean], 0.0)
    bars = {"fmt": "none", "ecolor": colours["truth"], "elinewidth": 1.2, "capsize": 2.5}
    ax.errorbar(places, mean, ends, label=f"{probability:.0%} interval", **bars)
    if by == "weekday":
        labels = [label[:3] for label in labels]
    step = max(1, -(-len(labels) // 12))
    ax.set_xticks(places[::step], labels[::step])
    if share:
        ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(xlabel=by, ylabel="share of demand lost" if share else "demand lost")
    ax.set_ylim(0, None)
    ax.legend(fontsize="small")
    return ax


def plot_elbo(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the evidence lower bound after every evaluation.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> len(plot_elbo(model, ax=Figure().subplots()).lines)
    1
    """
    ax, trace = new_axes(ax), np.asarray(model.report_.trace, dtype=float)
    line = {"color": colours_on(ax)["prediction"], "marker": ".", "linewidth": 1.4}
    ax.plot(np.arange(1, len(trace) + 1), trace, **line)
    finite = trace[np.isfinite(trace)]
    if len(finite) > 4:
        # The first evaluations may be so low that they would flatten the rest.
        low = np.quantile(finite, 0.1)
        ax.set_ylim(low - 0.05 * (finite.max() - low + 1e-9), None)
    ax.set(xlabel="evaluation", ylabel="evidence lower bound")
    ax.set_title(f"ELBO {model.elbo_:,.1f}, {model.report_.status}")
    return ax


def plot_coregionalization(
    model: Any, role: str = "mean", kernel: int | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the prior correlations of the outputs' latent functions: of all kernels, or one.

    `kernel` is the position of a kernel among those of the role; None: the sum of all.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import MOCGP
    >>> model = MOCGP(rank=1).fit([[0], [1], [2], [3]], [[1, 9], [2, 7], [3, 8], [2, 9]])
    >>> ax = plot_coregionalization(model, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['y0', 'y1']
    """
    ax, lmc = new_axes(ax), varying_prior(model, role, kernel)
    names = [without_math(model.output_names_[d]) for d in lmc.outputs]
    if kernel is None:
        matrix, title = prior_correlation(model.posterior_.model, role), "all kernels"
    else:
        covariance = np.asarray(block_diag(*np.asarray(lmc.coregionalization[kernel])))
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
        matrix = covariance / np.outer(scale, scale)
        title = kernel_labels(lmc.kernels, model.columns_)[kernel]
    # A diverging scale whose ends the colour-blind tell apart, pale in the middle.
    image = ax.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
    if len(names) <= 12:
        for (row, column), value in np.ndenumerate(matrix):
            ink = "white" if abs(value) > 0.6 else "black"
            ax.text(column, row, f"{value:.2f}", color=ink, ha="center", va="center", size="small")
    turned = {"rotation": 45, "ha": "right"} if max(map(len, names)) > 4 else {}
    ax.set_xticks(range(len(names)), names, **turned)
    ax.set_yticks(range(len(names)), names)
    ax.grid(visible=False)
    ax.set_title(f"{role}: {title}")
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="correlation")
    return ax


def varying_prior(model: Any, role: str, kernel: int | None = None) -> Any:
    """Return the linear model of coregionalization of a role, if it varies and has the kernel."""
    priors = model.posterior_.model.priors
    varying = [name for name, lmc in priors.items() if lmc.varies]
    if role not in varying:
        raise ValueError(f"`role` must be one that varies ({listed(varying)}), got {role!r}.")
    lmc = priors[role]
    if kernel is not None and kernel not in range(len(lmc.kernels)):
        labels = listed(kernel_labels(lmc.kernels, model.columns_))
        raise ValueError(
            f"`kernel` must be a position from 0 to {len(lmc.kernels) - 1} ({labels}), "
            f"got {kernel!r}."
        )
    return lmc
