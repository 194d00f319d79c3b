"""The demonstration: a bike share that runs out of bikes, so that the true demand is known.

A model that takes pickups for demand and one that knows where they are only a lower bound of it
are fitted to what an operator would have seen; the truth tells how near they come.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from censored_gp.datasets import simulated
from censored_gp.estimator.presets import HMOCGP, NCGP
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import Prediction
from censored_gp.reporting import COLOURS, plot_observations, plot_prediction, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Demo", "draw_figure", "fit_both", "table_rows"]

PROBABILITY = 0.9
HOURS_SHOWN = 96


@dataclasses.dataclass(frozen=True)
class Demo:
    """A simulated world, and what two models make of what was seen of it."""

    world: simulated.BikeShare
    training: int
    """Hours that the models have seen; those after them they have not."""
    naive: Prediction
    censored: Prediction
    filled: Float[np.ndarray, "T D"]
    """Training hours as seen or, where bikes ran out, as the censored model thinks they were."""

    @property
    def ran_out(self) -> Bool[np.ndarray, "N D"]:
        """Training hours in which a station ran out of bikes."""
        seen = np.arange(len(self.world.time)) < self.training
        return self.world.censored & seen[:, None]


def fit_both(
    days: int = 28,
    unseen_days: int = 7,
    seed: int = 1,
    likelihood: str = "negative_binomial",
    progress: Any = False,
) -> Demo:
    """Simulate a world, fit both models to all but its last days, and predict all of it."""
    world = simulated.bike_share(days=days, seed=seed)
    training = 24 * (days - unseen_days)
    inputs = world.inputs()
    seen = {name: column[:training] for name, column in inputs.items()}
    known = world.observations().rows(slice(training))
    models = [preset(likelihood, progress=progress).fit(seen, known) for preset in (NCGP, HMOCGP)]
    naive, censored = (model.predict_distribution(inputs) for model in models)
    return Demo(world, training, naive, censored, models[1].impute())


def table_rows(demo: Demo) -> list[tuple[str, ...]]:
    """Return rows of a table: what, naive, censored, truth."""
    truth, out, both = demo.world.demand, demo.ran_out, (demo.naive, demo.censored)
    later = np.broadcast_to(np.arange(len(truth))[:, None] >= demo.training, truth.shape)
    means = [prediction.mean for prediction in both]
    target = np.where(later, truth, np.nan)
    filled = (demo.world.observed[out], demo.filled[out[: demo.training]], truth[out])
    figures = [
        ("Demand per hour where bikes ran out, filled in", ".1f", [f.mean() for f in filled]),
        ("the same, predicted", ".1f", [m[out].mean() for m in (*means, truth)]),
        ("Total demand, training weeks", ",.0f", [m[~later].sum() for m in (*means, truth)]),
        ("Total demand, the unseen week", ",.0f", [m[later].sum() for m in (*means, truth)]),
        ("Mean error where bikes ran out", ".2f", [*(_error(m, truth, out) for m in means), 0]),
        ("Mean error, the unseen week", ".2f", [*(_error(m, truth, later) for m in means), 0]),
        ("R², the unseen week", ".2f", [*(metrics.r2(m, target) for m in means), 1]),
        (
            f"{PROBABILITY:.0%} intervals right where bikes ran out",
            ".0%",
            [*(_share_within(p, truth, out) for p in both), PROBABILITY],
        ),
    ]
    return [(what, *(format(value, style) for value in row)) for what, style, row in figures]


def _error(
    mean: Float[np.ndarray, "N D"], truth: Float[np.ndarray, "N D"], cells: Bool[np.ndarray, "N D"]
) -> float:
    """Return the mean absolute error in some cells."""
    return metrics.mae(mean, np.where(cells, truth, np.nan))


def _share_within(
    prediction: Prediction, truth: Float[np.ndarray, "N D"], cells: Bool[np.ndarray, "N D"]
) -> float:
    """Return the share of cells whose truth lies within the prediction's interval."""
    low, high = prediction.interval(PROBABILITY)
    return float(np.mean((low <= truth)[cells] & (truth <= high)[cells]))


def draw_figure(demo: Demo, path: Path) -> Path:
    """Draw some days of every station and the demand by hour of the day; write it to a file."""
    mpl, stations = require_matplotlib(), len(demo.world.names)
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = mpl.figure.Figure(figsize=(12, 3.2 * stations + 0.8), layout="constrained")
        axes = figure.subplots(stations, 2, squeeze=False, width_ratios=(3.2, 1), sharey="row")
        for d in range(stations):
            _draw_days(demo, d, axes[d, 0])
            _draw_profile(demo, d, axes[d, 1])
        _draw_legend(figure, axes[0, 0])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    return path


def _draw_days(demo: Demo, d: int, ax: Axes) -> None:
    """Draw the days on which a station ran out of bikes most often."""
    world, time = demo.world, demo.world.time.astype("datetime64[m]")
    ax.plot(time, world.demand[:, d], ":", color=COLOURS["truth"], label="true demand")
    naive = {"label": "naive model", "colour": COLOURS["other"], "probability": None}
    plot_prediction(demo.naive, time, d, **naive, ax=ax)
    plot_prediction(demo.censored, time, d, probability=PROBABILITY, label="censored model", ax=ax)
    plot_observations(world.observations(), time, d, ax=ax)
    first = _busiest(demo.ran_out[:, d])
    shown = slice(first, first + HOURS_SHOWN)
    ax.set_xlim(time[first], time[first] + np.timedelta64(HOURS_SHOWN, "h"))
    ax.set_ylim(-0.4, 1.15 * max(world.demand[shown, d].max(), demo.censored.mean[shown, d].max()))
    ax.set_title(world.names[d].replace("_", " "), loc="left", fontweight="bold")
    ax.set_ylabel("bikes per hour")
    _name_days(ax)


def _name_days(ax: Axes) -> None:
    from matplotlib.dates import DateFormatter, DayLocator

    ax.xaxis.set_major_locator(DayLocator())
    ax.xaxis.set_major_formatter(DateFormatter("%a %d %b"))


def _busiest(ran_out: Bool[np.ndarray, " N"]) -> int:
    """Return the first hour of the whole days in which bikes ran out most often."""
    counts = [
        ran_out[h : h + HOURS_SHOWN].sum() for h in range(0, len(ran_out) - HOURS_SHOWN + 1, 24)
    ]
    return 24 * int(np.argmax(counts)) if counts else 0


def _draw_profile(demo: Demo, d: int, ax: Axes) -> None:
    """Draw the mean demand on working days by hour of the day."""
    time = demo.world.time[: demo.training]
    working = np.is_busday(time.astype("datetime64[D]"))
    hour = (time - time.astype("datetime64[D]")).astype(int)
    lines = {
        "truth": (demo.world.demand, COLOURS["truth"], ":"),
        "naive": (demo.naive.mean, COLOURS["other"], "-"),
        "censored": (demo.censored.mean, COLOURS["prediction"], "-"),
    }
    for cells, colour, style in lines.values():
        ax.plot(range(24), _by_hour(cells[: demo.training, d], hour, working), style, color=colour)
    ax.set_title("mean working day", loc="left")
    ax.set_xticks(range(0, 24, 6), [f"{h}:00" for h in range(0, 24, 6)])


def _by_hour(
    values: Float[np.ndarray, " N"], hour: Int[np.ndarray, " N"], chosen: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, "24"]:
    sums, counts = (np.bincount(hour[chosen], w, 24) for w in (values[chosen], None))
    return sums / np.maximum(counts, 1)


def _draw_legend(figure: Figure, ax: Axes) -> None:
    """Put one legend above all panels."""
    handles, labels = ax.get_legend_handles_labels()
    words: dict[str, str] = {"seen": "pickups", "at least": "pickups until bikes ran out"}
    named = {words.get(label, label): handle for label, handle in zip(labels, handles, strict=True)}
    columns = len(named)
    figure.legend(
        list(named.values()),
        [str(name) for name in named],
        loc="outside upper left",
        ncols=columns,
        frameon=False,
    )
