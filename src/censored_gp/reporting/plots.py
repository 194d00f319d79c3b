"""Plots of outputs, components, lost demand and calibration, with matplotlib.

Each function draws on the axes it is given, or on new ones, and returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.data.errors import not_among
from censored_gp.data.inputs import Whole
from censored_gp.data.observations import Observations
from censored_gp.data.tables import as_arrow
from censored_gp.data.time import WEEKDAYS, weekday
from censored_gp.estimator.summary import kernel_labels, longest_lengthscale, varying_prior
from censored_gp.kernels.base import Kernel
from censored_gp.model.compilation import float64
from censored_gp.prediction.metrics import PIT, pit_coverage, pit_histogram
from censored_gp.prediction.predictive import Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

# After Okabe and Ito's palette for the colour-blind. Censored cells differ in shape as well.
# Colours by what they stand for.
COLOURS = {
    "prediction": "#0072b2",
    "other": "#d55e00",
    "exact": "#555555",
    "censored": "#d98200",
    "truth": "#000000",
}
# A component is drawn at this many points.
POINTS = 240
# Over time it has at least this many points per lengthscale, up to a maximum.
POINTS_PER_LENGTHSCALE, MOST_POINTS = 4, 20 * POINTS
DAYS = [day[:3] for day in WEEKDAYS]
# Axis label and ticks of common cycles, by their hours.
CYCLES = {
    24.0: ("hour of the day", (range(0, 25, 6),)),
    168.0: ("day of the week", (range(12, 168, 24), DAYS)),
}
# Levels at which the coverage of intervals is computed.
LEVELS = tuple((np.arange(1, 20) / 20).tolist())


# ---- axes ----


def require_matplotlib() -> Any:
    """Return matplotlib, or say how to get it.

    >>> require_matplotlib().__name__
    'matplotlib'
    """
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "censored-gp[plot]".'
        ) from error
    return mpl


def new_axes(ax: Axes | None = None, **settings: Any) -> Axes:
    """Return the axes given, or new ones with these settings of `plt.subplots`.

    >>> from matplotlib.figure import Figure
    >>> mine = Figure().subplots()
    >>> new_axes(mine) is mine
    True
    """
    if ax is not None:
        return ax
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **settings)[1]


def without_math(text: str) -> str:
    """Return text in which matplotlib takes no dollar signs for mathematics."""
    return text.replace("$", r"\$")


# ---- training rows ----


class XAxis(NamedTuple):
    """Positions along the x axis, times or numbers, and the axis label."""

    values: Shaped[np.ndarray, " N"]
    label: str

    @property
    def is_time(self) -> bool:
        """Whether positions are times."""
        return self.values.dtype.kind == "M"


def training_axis(model: Any) -> XAxis:
    """Return the x axis of the training rows.

    It is the first time column; without one, the first numeric column; else the number of the row.
    """
    columns, inputs, times = model.columns_, model.training_.inputs, model.training_.times
    if times is not None:
        return XAxis(times, columns.names[model.training_.time_column])
    if None not in columns.levels:
        return XAxis(np.arange(len(inputs)), "row")
    column = columns.levels.index(None)
    return XAxis(inputs[:, column] + float(columns.origin[column]), columns.names[column])


def predict_training(model: Any, rows: Any = slice(None)) -> Prediction:
    """Return the posterior predictive distribution at training rows, not using their own bounds."""
    return model.distribution_at(model.training_.inputs[rows])


def output_position(names: Sequence[str], output: Any) -> int:
    """Return the position of an output given by name or position.

    >>> output_position(("a", "b"), "b")
    1
    """
    if isinstance(output, str) and output in names:
        return list(names).index(output)
    if not isinstance(output, str | bool) and output in range(len(names)):
        return int(output)
    raise not_among("output", output, names, f", or a position from 0 to {len(names) - 1}")


# ---- outputs ----


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
    >>> X = np.arange(6.0)[:, None]
    >>> ax = plot_prediction(model.predict_distribution(X), X[:, 0], ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['predicted, 90% interval', 'predicted']
    """
    ax, d = new_axes(ax), output_position(prediction.names, output)
    colour = COLOURS["prediction"] if colour is None else colour
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
    where the truth lies, intervals are bars between their bounds, rows that were seen for a part of
    their period are rings, missing rows ticks at the bottom.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import Observations
    >>> known = Observations.from_flags([1.0, 2.0, np.nan], [0, 1, 0])
    >>> ax = plot_observations(known, np.arange(3.0), ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['exact', 'at least', 'missing']
    """
    ax, d = new_axes(ax), output_position(observations.names, output)
    values = observations.values()[:, d]
    dot = {"marker": "o", "color": COLOURS["exact"], "s": 12, "alpha": 0.75}
    arrow = {"color": COLOURS["censored"], "s": 90, "alpha": 0.95}
    ring = {"facecolors": "none", "edgecolors": COLOURS["censored"], "s": 16, "linewidths": 1.2}
    for rows, label, mark in (
        (observations.is_exact[:, d], "exact", dot),
        (observations.is_right[:, d], "at least", {**arrow, "marker": _arrow(1)}),
        (observations.is_left[:, d], "at most", {**arrow, "marker": _arrow(-1)}),
        (observations.is_partial[:, d], "part of period", ring),
    ):
        if rows.any():
            look = {"linewidths": 0, "zorder": 3, "label": label, **mark}
            ax.scatter(x[rows], values[rows], **look)
    rows = observations.is_interval[:, d]
    if rows.any():
        ends = observations.lower[rows, d], observations.upper[rows, d]
        bar = {"color": COLOURS["censored"], "linewidth": 1.8, "alpha": 0.8}
        ax.vlines(x[rows], *ends, label="between", **bar)
    rows = observations.is_missing[:, d]
    if rows.any():
        tick = {"color": COLOURS["exact"], "markersize": 9, "clip_on": False, "label": "missing"}
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
    >>> X = np.arange(6.0)[:, None]
    >>> prediction, known = model.predict_distribution(X), model.observations_
    >>> ax = plot_output(prediction, X[:, 0], observations=known, ax=Figure().subplots())
    >>> ax.get_title(loc="left")
    'y'
    """
    ax, d = new_axes(ax), output_position(prediction.names, output)
    if truth is not None:
        order = np.argsort(x, kind="stable")
        line = {"color": COLOURS["truth"], "linewidth": 1.0, "label": "truth"}
        ax.plot(x[order], np.asarray(truth)[order, d], ":", **line)
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
    >>> ax = plot_posterior(model, ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1][-2:]
    ['exact', 'at least']
    """
    ax, axis = new_axes(ax), training_axis(model)
    chosen = np.arange(len(axis.values))[rows]
    plot_output(
        predict_training(model, chosen),
        axis.values[chosen],
        output,
        observations=model.observations_.rows(chosen),
        truth=None if truth is None else np.asarray(truth)[chosen],
        probability=probability,
        ax=ax,
    )
    label_x_axis(ax, axis)
    if legend:
        # The room for the title is in units of the font, whatever the height of the axes.
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 2.3}
        ax.legend(ncols=3, fontsize="small", **place)
    return ax


def label_x_axis(ax: Axes, axis: XAxis) -> None:
    """Label the x axis, times concisely."""
    ax.set_xlabel(axis.label)
    if axis.is_time:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _arrow(direction: int) -> Path:
    """Return a marker: a bar at the bound, and an arrow head up (1) or down (-1)."""
    from matplotlib.path import Path

    bar = [(-0.7, -0.09), (0.7, -0.09), (0.7, 0.09), (-0.7, 0.09), (-0.7, -0.09)]
    head = [(-0.45, 0.35), (0.45, 0.35), (0.0, 1.1), (-0.45, 0.35)]
    parts = [Path(np.array(part) * (1, direction), closed=True) for part in (bar, head)]
    return Path.make_compound_path(*parts)


# ---- components ----


def plot_component(
    model: Any,
    kernel: int = 0,
    output: int | str = 0,
    *,
    role: str = "mean",
    ax: Axes | None = None,
) -> Axes:
    """Draw one kernel's additive component of an output's latent function, with 90 % intervals.

    A periodic component is drawn over one period, an aperiodic one over the training times, and
    any other over the values of its input. Behind a log link the component is drawn as a factor.

    Parameters
    ----------
    model : CensoredGP
        A fitted model.
    kernel : int
        Position of the kernel among those of the role.
    output : int or str
        Which output, by name or position.
    role : str
        "mean", "scale" or "shape".
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> plot_component(model, ax=Figure().subplots()).get_title(loc="left")
    'x0'
    """
    ax, lmc = new_axes(ax), varying_prior(model.posterior_.model, role, kernel)
    d = output_position(model.output_names_, output)
    transform, unit = _scale(model, role, d)
    inputs, axis, ticks = _grid(model, lmc.kernels[kernel])
    with float64():
        moments = model.posterior_.components(role, inputs)
    mean, variance = (moment[kernel, :, lmc.outputs.index(d)] for moment in moments)
    low, middle, high = (transform(mean + side * np.sqrt(variance)) for side in (-1.645, 0, 1.645))
    ax.fill_between(axis.values, low, high, color=COLOURS["prediction"], alpha=0.22, linewidth=0)
    ax.plot(axis.values, middle, color=COLOURS["prediction"], linewidth=1.6)
    ax.axhline(float(transform(0.0)), color=COLOURS["exact"], linewidth=0.8)
    ax.set_title(without_math(kernel_labels(lmc.kernels, model.columns_)[kernel]), loc="left")
    ax.set_ylabel(unit)
    label_x_axis(ax, axis)
    if ticks:
        ax.set_xticks(*ticks)
    return ax


def plot_components(
    model: Any, output: int | str = 0, *, role: str = "mean", axes: Any = None
) -> Any:
    """Draw every kernel's component of an output's latent function side by side; return the axes.

    `axes` are as many as the role has kernels; None: new ones.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> len(plot_components(model, axes=[Figure().subplots()]))
    1
    """
    count = len(varying_prior(model.posterior_.model, role).kernels)
    axes = new_axes(axes, ncols=count, sharey=True, figsize=(3.2 * count, 2.8))
    flat = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(flat) != count:
        raise ValueError(f"`axes` must be {count}, one per kernel, got {len(flat)}.")
    for kernel, ax in enumerate(flat):
        plot_component(model, kernel, output, role=role, ax=ax)
        if kernel:
            ax.set_ylabel("")
    return flat


def _scale(model: Any, role: str, d: int) -> tuple[Any, str]:
    """Return how latent values of an output are transformed for drawing, and the unit."""
    parameters = {p.role: p for p in model.posterior_.model.likelihoods[d].parameters}
    if role not in parameters:
        raise not_among("role", role, parameters, f", those of {model.output_names_[d]!r}")
    name, link = parameters[role].name, parameters[role].link
    link = getattr(link, "name", link)
    if link == "exp":
        return np.exp, f"factor on the {name}"
    scale, words = (model.units_.scale[d], "added to the") if link == "identity" else (1, "latent")
    return lambda f: scale * f, f"{words} {name}"


def _grid(model: Any, kernel: Kernel) -> tuple[Float[np.ndarray, "K C"], XAxis, Any]:
    """Return the inputs at which a component is drawn, their axis, and ticks, if it needs any.

    The kernel's first column varies; the others stay at their medians.
    """
    columns, known = model.columns_, model.training_.inputs
    column, period = min(kernel.views(known.shape[1]), key=str, default=(0, None))
    origin, first, last = columns.origin[column], known[:, column].min(), known[:, column].max()
    values, ticks = np.linspace(first, last, POINTS), None
    if not columns.is_time[column]:
        axis = XAxis(values + float(origin), columns.names[column])
    elif period is None or isinstance(period, Whole):
        wanted = (last - first) * POINTS_PER_LENGTHSCALE / longest_lengthscale(kernel)
        values = np.linspace(first, last, int(np.clip(wanted, 2 * POINTS, MOST_POINTS)))
        seconds = np.round(values * 3600).astype("timedelta64[s]")
        axis = XAxis(np.datetime64(origin).astype("datetime64[s]") + seconds, "time")
    else:
        # Weeks begin on a Monday; other cycles at midnight.
        day = np.datetime64(origin).astype("datetime64[D]")
        start = day - weekday(day) if period == 168.0 else day
        cycle = np.linspace(0.0, period, POINTS + 1)
        values = cycle + (start - np.datetime64(origin)) / np.timedelta64(1, "h")
        label, ticks = CYCLES.get(float(period), ("hours", None))
        axis = XAxis(cycle, label)
    inputs = np.tile(np.median(known, axis=0), (len(values), 1))
    inputs[:, column] = values
    return inputs, axis, ticks


# ---- lost demand, calibration ----


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
    >>> ax = plot_lost_demand(model, by="output", ax=Figure().subplots())
    >>> len(ax.patches)
    1
    """
    ax, what = new_axes(ax), "share" if share else "lost"
    settings = {"probability": probability, "random_state": random_state}
    table = as_arrow(model.lost_demand(by=by, **settings))
    # The first column has the groups, under a name that may be the user's.
    labels = [str(label)[: 3 if by == "weekday" else None] for label in table[0].to_pylist()]
    mean, low, high = (np.asarray(table[what + end]) for end in ("", "_low", "_high"))
    places = np.arange(len(labels))
    ax.bar(places, mean, color=COLOURS["censored"], alpha=0.85, label="lost")
    # The mean of a skewed distribution may lie outside its interval.
    ends = np.maximum([mean - low, high - mean], 0.0)
    bars = {"color": COLOURS["truth"], "elinewidth": 1.2, "capsize": 2.5, "fmt": "none"}
    ax.errorbar(places, mean, ends, label=f"{probability:.0%} interval", **bars)
    some = slice(None, None, -(-len(labels) // 12))
    ax.set_xticks(places[some], labels[some])
    if share:
        ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(xlabel=by, ylabel="share of demand lost" if share else "demand lost")
    ax.set_ylim(0, None)
    ax.legend(fontsize="small")
    return ax


def plot_pit(
    diagnosis: Any, output: int | str | None = None, *, bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw the histogram of the PIT: flat if the model is calibrated.

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
    edges, heights = np.arange(bins) / bins, pit_histogram(pit, bins)
    ax.bar(edges, heights, width=0.94 / bins, align="edge", color=COLOURS["prediction"])
    ax.axhline(1.0, color=COLOURS["truth"], linewidth=1.0)
    for end in chance_limits(pit, bins):
        ax.axhline(end, color=COLOURS["truth"], linewidth=0.8, linestyle="--")
    ax.set(xlim=(0, 1), xlabel="probability integral transform (PIT)", ylabel="density")
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
    levels = np.array(LEVELS)
    chance = 1.96 * np.sqrt(levels * (1 - levels) / _known_cells(pit))
    band = (levels, levels - chance, levels + chance)
    ax.fill_between(*band, color=COLOURS["exact"], alpha=0.2, linewidth=0, label="by chance")
    ax.plot([0, 1], [0, 1], color=COLOURS["exact"], linewidth=1.0, label="nominal")
    line = {"color": COLOURS["prediction"], "marker": "o", "markersize": 3.5, "label": "observed"}
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


def _known_cells(pit: PIT) -> int:
    """Return how many cells have a PIT, those that are not missing; 1 if none has."""
    return max(1, int(np.sum(~np.isnan(pit.lower))))


def chance_limits(pit: PIT, bins: int) -> tuple[float, float]:
    """Return the limits between which 95 % of the bars of a calibrated model's PIT lie.

    The number of cells in one of B bins is binomial: a bar has the variance (B - 1) / cells.
    """
    chance = 1.96 * float(np.sqrt((bins - 1) / _known_cells(pit)))
    return max(0.0, 1.0 - chance), 1.0 + chance
