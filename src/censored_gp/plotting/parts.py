"""What a model is made of: each kernel's share of a latent function, and the noise over time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Shaped

from censored_gp.data.errors import listed
from censored_gp.data.inputs import Columns
from censored_gp.inference.posterior import Posterior
from censored_gp.kernels import Kernel
from censored_gp.model.compilation import in_float64
from censored_gp.plotting.outputs import (
    categories_of,
    category_axis,
    place_of,
    positions,
    time_axis,
)
from censored_gp.plotting.style import colours_on, new_axes, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["kernel_words", "plot_component", "plot_components", "plot_noise", "words_of"]

PERIODS = {24.0: "daily", 168.0: "weekly", 8766.0: "yearly"}
POINTS = 240
"""Places at which a share is drawn, ..."""
PER_LENGTH, MOST_POINTS = 4, 20 * POINTS
"""... and in one lengthscale of time at least, up to so many in all."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WIDTH = 1.645
"""Standard deviations on each side of the mean that hold 90 %."""


class Grid(NamedTuple):
    """Where a share is drawn: inputs of the model, places on the axis, and its name."""

    inputs: Float[np.ndarray, "N C"]
    x: Shaped[np.ndarray, " N"]
    label: str


def kernel_words(kernel: Kernel, columns: Columns) -> str:
    """Return what a kernel stands for in a word: daily, weekly, slow, or the inputs it looks at.

    >>> from censored_gp.kernels import RBF, Periodic
    >>> columns = Columns(("time", "rain"), (True, False), (np.datetime64("2024-06-03"), 0.0))
    >>> kernels = (Periodic(24.0, 1.0, columns=[0]), RBF(1.0, columns=[0]), RBF(1.0, columns=[1]))
    >>> [kernel_words(kernel, columns) for kernel in kernels]
    ['daily', 'slow', 'rain']
    """
    views = sorted(kernel.views(len(columns.names)), key=str)
    if len(views) != 1:
        named = [columns.names[c] for c in sorted({c for c, _ in views})]
        return " and ".join(named) or "constant"
    column, period = views[0]
    if not columns.is_time[column]:
        name = columns.names[column]
        return name if period is None else f"{name}, every {period:g}"
    return "slow" if period is None else PERIODS.get(float(period), f"every {period:g} hours")


def words_of(kernels: Sequence[Kernel], columns: Columns) -> list[str]:
    """Return what each of several kernels stands for: the shorter of two slow parts is fast.

    >>> from censored_gp.kernels import RBF, Periodic
    >>> columns = Columns(("time",), (True,), (np.datetime64("2024-06-03"),))
    >>> words_of([Periodic(24.0, 1.0, columns=[0]), RBF(99.0, columns=[0]), RBF(4.0, columns=[0])],
    ...          columns)
    ['daily', 'slow', 'fast']
    """
    words = [kernel_words(kernel, columns) for kernel in kernels]
    slow = [
        p for p, word in enumerate(words) if word == "slow" and np.isfinite(_length(kernels[p]))
    ]
    for place in slow:
        beside = [_length(kernels[p]) for p in slow if kernels[p].columns == kernels[place].columns]
        if _length(kernels[place]) < max(beside):
            words[place] = "fast"
    return words


def _length(kernel: Kernel) -> float:
    """Return a kernel's lengthscale, the longest of its blocks; infinite if it has none."""
    return float(np.max(getattr(kernel, "lengthscale", np.inf)))


def plot_component(
    model: Any,
    kernel: int = 0,
    output: int | str = 0,
    *,
    role: str = "mean",
    ax: Axes | None = None,
) -> Axes:
    """Draw one kernel's share of an output's latent function, with its 90 % interval.

    A cycle is drawn over one turn of it, the slow part over the training times, and every other
    share over the values of its input. For families whose mean is positive the share is a factor.

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

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = CensoredGP(heteroscedastic=False).fit(X, np.sin(X[:, 0]).round(1))
    >>> plot_component(model, ax=Figure().subplots()).get_title(loc="left")
    'x0'
    """
    ax, lmc = new_axes(ax), _varying(model, role)
    if kernel not in range(len(lmc.kernels)):
        words = words_of(lmc.kernels, model.columns_)
        raise ValueError(
            f"kernel: found {kernel!r}. Accepted is a position from 0 to {len(words) - 1}: "
            f"{listed(words)}."
        )
    d = place_of(model.output_names_, output)
    grid = _grid(model, lmc.kernels[kernel])
    mean, std = shares(model, role, grid.inputs)
    place = lmc.outputs.index(d)
    as_drawn, unit = _scale(model, role, d)
    middle, spread = mean[kernel, :, place], WIDTH * std[kernel, :, place]
    colour = colours_on(ax)["prediction"]
    band = (grid.x, as_drawn(middle - spread), as_drawn(middle + spread))
    ax.fill_between(*band, color=colour, alpha=0.22, linewidth=0)
    ax.plot(grid.x, as_drawn(middle), color=colour, linewidth=1.6)
    ax.axhline(float(as_drawn(0.0)), color=colours_on(ax)["exact"], linewidth=0.8)
    ax.set_title(words_of(lmc.kernels, model.columns_)[kernel], loc="left")
    ax.set(xlabel=grid.label, ylabel=unit)
    _ticks(ax, grid)
    return ax


def plot_components(
    model: Any, output: int | str = 0, *, role: str = "mean", axes: Any = None
) -> Any:
    """Draw every kernel's share of an output's latent function side by side; return their axes.

    `axes` are as many as the role has kernels; new ones are made if they are not given.

    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = CensoredGP(heteroscedastic=False).fit(X, np.sin(X[:, 0]).round(1))
    >>> len(plot_components(model, axes=[Figure().subplots()]))
    1
    """
    count = len(_varying(model, role).kernels)
    if axes is None:
        require_matplotlib()
        import matplotlib.pyplot as plt

        size = {"figsize": (3.2 * count, 2.8), "layout": "constrained"}
        axes = plt.subplots(1, count, squeeze=False, sharey=True, **size)[1][0]
    flat = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(flat) != count:
        raise ValueError(f"axes: found {len(flat)}. Accepted are {count}, one for each kernel.")
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
    """Draw how much an output scatters over the training rows: the parameter of a role.

    What the parameter is depends on the family: the standard deviation of a Gaussian, the
    dispersion of a negative binomial. It is in the units of the output where it has any.

    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = CensoredGP(heteroscedastic=False).fit(X, np.sin(X[:, 0]).round(1))
    >>> plot_noise(model, ax=Figure().subplots()).get_ylabel()
    'scale'
    """
    ax, d = new_axes(ax), place_of(model.output_names_, output)
    x, label = positions(model)
    chosen = np.arange(len(x))[rows]
    prediction = model._prediction(model._inputs[chosen])
    parameter = _parameter(model, role, d)
    values = prediction.parameters()[role][:, d]
    order = np.argsort(x[chosen], kind="stable")
    line, names = (x[chosen][order], values[order]), categories_of(model)
    mark: dict[str, Any] = {"linewidth": 1.6}
    if names is not None:
        mark = {"linestyle": "", "marker": "D"}
    ax.plot(*line, color=colours_on(ax)["other"], **mark)
    ax.set_ylim(0, 1.1 * float(np.max(line[1])))
    ax.set_title(model.output_names_[d].replace("$", r"\$"), loc="left")
    ax.set(xlabel=label, ylabel=parameter.name)
    time_axis(ax, x)
    if names is not None:
        category_axis(ax, names)
    return ax


@in_float64
def shares(
    model: Any, role: str, inputs: Float[np.ndarray, "N C"]
) -> tuple[Float[np.ndarray, "Q N O"], Float[np.ndarray, "Q N O"]]:
    """Return mean and standard deviation of each kernel's share of a role's latent functions."""
    # How many rows there were in training must not decide what is compiled.
    posterior = dataclasses.replace(model.posterior_, sites={})
    mean, variance = eqx.filter_jit(Posterior.components)(posterior, role, inputs)
    return np.asarray(mean), np.sqrt(np.asarray(variance))


def _varying(model: Any, role: str) -> Any:
    priors = model.posterior_.model.priors
    varying = [name for name, lmc in priors.items() if lmc.varies]
    if role not in varying:
        raise ValueError(f"role: found {role!r}. Accepted are those that vary: {listed(varying)}.")
    return priors[role]


def _parameter(model: Any, role: str, d: int) -> Any:
    """Return the parameter of an output's likelihood that has this role."""
    parameters = model.posterior_.model.likelihoods[d].parameters
    found = [parameter for parameter in parameters if parameter.role == role]
    if not found:
        roles = listed(parameter.role for parameter in parameters)
        raise ValueError(
            f"role: found {role!r}, which output {model.output_names_[d]!r} has not. Accepted are "
            f"{roles}: a Poisson, for one, has no scale."
        )
    return found[0]


def _scale(model: Any, role: str, d: int) -> tuple[Any, str]:
    """Return how latent values are drawn, and in which unit."""
    parameter = _parameter(model, role, d)
    if getattr(parameter.link, "name", parameter.link) == "exp":
        return np.exp, f"factor on the {parameter.name}"
    if getattr(parameter.link, "name", parameter.link) == "identity":
        unit = np.broadcast_to(model.units_.scale, len(model.output_names_))[d]
        return lambda f: unit * f, f"added to the {parameter.name}"
    return lambda f: f, f"latent {parameter.name}"


def _grid(model: Any, kernel: Kernel) -> Grid:
    """Return where a kernel's share is drawn: all but its own first column stay in the middle."""
    columns, known = model.columns_, model._inputs
    views = sorted(kernel.views(known.shape[1]), key=str) or [(0, None)]
    column, period = views[0]
    origin = columns.origin[column]
    if columns.is_time[column]:
        own, x, label = _times(np.datetime64(origin), known[:, column], period, _length(kernel))
    else:
        own = np.linspace(known[:, column].min(), known[:, column].max(), POINTS)
        x, label = own + float(origin), columns.names[column]
    inputs = np.tile(np.median(known, axis=0), (len(own), 1))
    inputs[:, column] = own
    return Grid(inputs, x, label)


def _times(
    origin: np.datetime64, hours: Float[np.ndarray, " N"], period: float | None, length: float
) -> tuple[Float[np.ndarray, " K"], Shaped[np.ndarray, " K"], str]:
    """Return hours since the origin, places on the axis, and a name for it."""
    start = origin.astype("datetime64[s]")
    if period is None:
        finest = np.ptp(hours) * PER_LENGTH / length
        own = np.linspace(hours.min(), hours.max(), int(np.clip(finest, 2 * POINTS, MOST_POINTS)))
        return own, start + np.round(own * 3600).astype("timedelta64[s]"), "time"
    # Weeks begin on a Monday, as 1970 began on a Thursday; other cycles at midnight.
    day = start.astype("datetime64[D]")
    first = day - (day.astype(int) + 3) % 7 if period == 168.0 else day
    shift = (first - start) / np.timedelta64(3600, "s")
    own = np.linspace(0.0, period, POINTS + 1)
    words = {24.0: "hour of the day", 168.0: "day of the week"}.get(period, "hours")
    return own + shift, own, words


def _ticks(ax: Axes, grid: Grid) -> None:
    time_axis(ax, grid.x)
    if grid.label == "hour of the day":
        ax.set_xticks(range(0, 25, 6))
    elif grid.label == "day of the week":
        ax.set_xticks(range(12, 168, 24), DAYS)
