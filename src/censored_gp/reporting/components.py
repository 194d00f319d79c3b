"""Plots of what a latent function is made of: one component per kernel, and the noise."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from censored_gp.data.errors import listed
from censored_gp.estimator.summary import kernel_labels, longest_lengthscale
from censored_gp.inference.posterior import Posterior
from censored_gp.kernels import Kernel
from censored_gp.model.compilation import in_float64
from censored_gp.reporting.plots import label_x_axis, varying_prior
from censored_gp.reporting.rows import (
    XAxis,
    output_position,
    predict_training,
    training_axis,
    training_inputs,
)
from censored_gp.reporting.style import colours_on, new_axes, require_matplotlib, without_math

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 240
"""A component is drawn at this many points."""
POINTS_PER_LENGTHSCALE, MOST_POINTS = 4, 20 * POINTS
"""Over time it has at least this many points per lengthscale, up to a maximum."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
CYCLES = {
    24.0: ("hour of the day", (range(0, 25, 6),)),
    168.0: ("day of the week", (range(12, 168, 24), DAYS)),
}
"""Axis label and ticks of common cycles, by their hours."""


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
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> plot_component(model, ax=Figure().subplots()).get_title(loc="left")
    'x0'
    """
    ax, lmc = new_axes(ax), varying_prior(model, role, kernel)
    d = output_position(model.output_names_, output)
    inputs, axis, ticks = _grid(model, lmc.kernels[kernel])
    mean, std = (
        m[kernel, :, lmc.outputs.index(d)] for m in component_marginals(model, role, inputs)
    )
    transform, unit = _scale(model, role, d)
    colours = colours_on(ax)
    band = (axis.values, transform(mean - 1.645 * std), transform(mean + 1.645 * std))
    ax.fill_between(*band, color=colours["prediction"], alpha=0.22, linewidth=0)
    ax.plot(axis.values, transform(mean), color=colours["prediction"], linewidth=1.6)
    ax.axhline(float(transform(0.0)), color=colours["exact"], linewidth=0.8)
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
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> len(plot_components(model, axes=[Figure().subplots()]))
    1
    """
    count = len(varying_prior(model, role).kernels)
    if axes is None:
        require_matplotlib()
        import matplotlib.pyplot as plt

        size = {"figsize": (3.2 * count, 2.8), "layout": "constrained"}
        axes = plt.subplots(1, count, squeeze=False, sharey=True, **size)[1][0]
    flat = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(flat) != count:
        raise ValueError(f"`axes` must be {count}, one per kernel, got {len(flat)}.")
    for kernel, ax in enumerate(flat):
        plot_component(model, kernel, output, role=role, ax=ax)
        if kernel:
            ax.set_ylabel("")
    return flat


def plot_noise(
    model: Any,
    output: int | str = 0,
    *,
    rows: Any = slice(None),
    role: str = "scale",
    ax: Axes | None = None,
) -> Axes:
    """Draw a parameter of an output's likelihood over the training rows, by default its scale.

    The parameter depends on the family: the standard deviation of a Gaussian, the dispersion of a
    negative binomial. It is in the units of the output where it has any.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> plot_noise(model, ax=Figure().subplots()).get_ylabel()
    'scale'
    """
    ax, d = new_axes(ax), output_position(model.output_names_, output)
    axis, parameter = training_axis(model), _parameter(model, role, d)
    chosen = np.arange(len(axis.values))[rows]
    chosen = chosen[np.argsort(axis.values[chosen], kind="stable")]
    values = predict_training(model, chosen).parameters()[role][:, d]
    dots = axis.categories is not None
    line: dict[str, Any] = {"linestyle": "", "marker": "D"} if dots else {"linewidth": 1.6}
    ax.plot(axis.values[chosen], values, color=colours_on(ax)["other"], **line)
    ax.set_ylim(0, 1.1 * float(np.max(values)))
    ax.set_title(without_math(model.output_names_[d]), loc="left")
    ax.set_ylabel(parameter.name)
    label_x_axis(ax, axis)
    return ax


@in_float64
def component_marginals(
    model: Any, role: str, inputs: Float[np.ndarray, "N C"]
) -> tuple[Float[np.ndarray, "Q N O"], Float[np.ndarray, "Q N O"]]:
    """Return mean and standard deviation of each kernel's part of a role's latent functions."""
    # Without sites the compiled program does not depend on the number of training rows.
    posterior = dataclasses.replace(model.posterior_, sites={})
    mean, variance = eqx.filter_jit(Posterior.components)(posterior, role, inputs)
    return np.asarray(mean), np.sqrt(np.asarray(variance))


def _parameter(model: Any, role: str, d: int) -> Any:
    """Return the parameter of an output's likelihood that has this role."""
    parameters = {p.role: p for p in model.posterior_.model.likelihoods[d].parameters}
    if role not in parameters:
        raise ValueError(
            f"`role` must be one of output {model.output_names_[d]!r} ({listed(parameters)}), "
            f"got {role!r}."
        )
    return parameters[role]


def _scale(model: Any, role: str, d: int) -> tuple[Any, str]:
    """Return how latent values are transformed for drawing, and the unit."""
    parameter = _parameter(model, role, d)
    link = getattr(parameter.link, "name", parameter.link)
    if link == "exp":
        return np.exp, f"factor on the {parameter.name}"
    if link == "identity":
        unit = np.broadcast_to(model.units_.scale, len(model.output_names_))[d]
        return lambda f: unit * f, f"added to the {parameter.name}"
    return lambda f: f, f"latent {parameter.name}"


def _grid(model: Any, kernel: Kernel) -> tuple[Float[np.ndarray, "K C"], XAxis, Any]:
    """Return the inputs at which a component is drawn, their axis, and ticks, if it needs any.

    The kernel's first column varies; the others stay at their medians.
    """
    columns, known = model.columns_, training_inputs(model)
    views = sorted(kernel.views(known.shape[1]), key=str) or [(0, None)]
    column, period = views[0]
    origin, first, last = columns.origin[column], known[:, column].min(), known[:, column].max()
    values, ticks = np.linspace(first, last, POINTS), None
    if not columns.is_time[column]:
        axis = XAxis(values + float(origin), columns.names[column])
    elif period is None:
        wanted = (last - first) * POINTS_PER_LENGTHSCALE / longest_lengthscale(kernel)
        values = np.linspace(first, last, int(np.clip(wanted, 2 * POINTS, MOST_POINTS)))
        seconds = np.round(values * 3600).astype("timedelta64[s]")
        axis = XAxis(np.datetime64(origin).astype("datetime64[s]") + seconds, "time")
    else:
        # Weeks begin on a Monday, as 1970 began on a Thursday; other cycles at midnight.
        day = np.datetime64(origin).astype("datetime64[D]")
        start = day - (day.astype(int) + 3) % 7 if period == 168.0 else day
        cycle = np.linspace(0.0, period, POINTS + 1)
        values = cycle + (start - np.datetime64(origin)) / np.timedelta64(1, "h")
        label, ticks = CYCLES.get(float(period), ("hours", None))
        axis = XAxis(cycle, label)
    inputs = np.tile(np.median(known, axis=0), (len(values), 1))
    inputs[:, column] = values
    return inputs, axis, ticks
