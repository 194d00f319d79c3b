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

from censored_gp import metrics, simulate
from censored_gp.plotting import COLOURS, plot_observations, plot_prediction
from censored_gp.predict import Prediction
from censored_gp.presets import HMOCGP, NCGP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Demo", "draw_figure", "fit_both", "table_rows"]

PROBABILITY = 0.9
HOURS_SHOWN = 96


@dataclasses.dataclass(frozen=True)
class Demo:
    """A simulated world, and what two models make of what was seen of it."""

    world: simulate.BikeShare
    training: int
    """Hours that the models have seen; those after them they have not."""
    naive: Prediction
    censored: Prediction

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
    world = simulate.bike_share(days=days, seed=seed)
    training = 24 * (days - unseen_days)
    inputs = world.inputs()
    seen = {name: column[:training] for name, column in inputs.items()}
    known = world.observations().rows(slice(training))
    predictions = [
        preset(likelihood, progress=progress).fit(seen, known).predict_distribution(inputs)
        for preset in (NCGP, HMOCGP)
    ]
    return Demo(world, training, *predictions)


def table_rows(demo: Demo) -> list[tuple[str, str, str, str]]:
    """Return rows of a table: what, naive, censored, truth."""
    truth, out = demo.world.demand, demo.ran_out
    later = np.zeros_like(out)
    later[demo.training :] = True
    both = (demo.naive, demo.censored)
    means = [prediction.mean for prediction in both]
    shown = [*means, truth]
    everywhere = np.isfinite(truth)
    rows = [
        ("Demand per hour where bikes ran out", *(f"{m[out].mean():.1f}" for m in shown)),
        ("Total demand, training weeks", *(f"{m[: demo.training].sum():,.0f}" for m in shown)),
        ("Total demand, the unseen week", *(f"{m[demo.training :].sum():,.0f}" for m in shown)),
    ]
    places = {"where bikes ran out": out, "all hours": everywhere, "the unseen week": later}
    for where, cells in places.items():
        target = np.where(cells, truth, np.nan)
        rows.append((f"Mean absolute error, {where}",
                     *(f"{metrics.mae(m, target):.2f}" for m in means), "0"))  # fmt: skip
    target = np.where(later, truth, np.nan)
    rows.append(("R², the unseen week", *(f"{metrics.r2(m, target):.2f}" for m in means), "1"))
    target = np.where(out, truth, np.nan)
    covered = [metrics.coverage(p, target, PROBABILITY).expected for p in both]
    rows.append((f"{PROBABILITY:.0%} intervals that hold the truth, where bikes ran out",
                 *(f"{share:.0%}" for share in covered), f"{PROBABILITY:.0%}"))  # fmt: skip
    return rows


def draw_figure(demo: Demo, path: Path) -> Path:
    """Draw some days of every station and the demand by hour of the day; write it to a file."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    stations = len(demo.world.names)
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(
            stations, 2, figsize=(12, 3.2 * stations + 0.8), layout="constrained", squeeze=False,
            width_ratios=(3.2, 1), sharey="row",
        )  # fmt: skip
        for d in range(stations):
            _draw_days(demo, d, axes[d, 0])
            _draw_profile(demo, d, axes[d, 1])
        _draw_legend(figure, axes[0, 0])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return path


def _draw_days(demo: Demo, d: int, ax: Axes) -> None:
    """Draw the days on which a station ran out of bikes most often."""
    world, time = demo.world, demo.world.time.astype("datetime64[m]")
    ax.plot(time, world.demand[:, d], ":", color=COLOURS["truth"], label="true demand")
    colour = COLOURS["other"]
    plot_prediction(
        demo.naive, time, d, probability=None, label="naive model", colour=colour, ax=ax
    )
    plot_prediction(demo.censored, time, d, probability=PROBABILITY, label="censored model", ax=ax)
    plot_observations(world.observations(), time, d, ax=ax)
    first = _busiest(demo.ran_out[:, d])
    shown = slice(first, first + HOURS_SHOWN)
    ax.set_xlim(time[first], time[first] + np.timedelta64(HOURS_SHOWN, "h"))
    ax.set_ylim(0, 1.15 * max(world.demand[shown, d].max(), demo.censored.mean[shown, d].max()))
    ax.set_title(world.names[d].replace("_", " "), loc="left", fontweight="bold")
    ax.set_ylabel("pickups per hour")
    _name_days(ax)


def _name_days(ax: Axes) -> None:
    from matplotlib.dates import DateFormatter, DayLocator

    ax.xaxis.set_major_locator(DayLocator())
    ax.xaxis.set_major_formatter(DateFormatter("%a %d %b"))


def _busiest(ran_out: Bool[np.ndarray, " N"]) -> int:
    """Return the first hour of the whole days in which bikes ran out most often."""
    counts = [ran_out[h : h + HOURS_SHOWN].sum() for h in range(0, len(ran_out) - HOURS_SHOWN, 24)]
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
    named = dict(zip(labels, handles, strict=True))
    figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=len(named),
                  frameon=False)  # fmt: skip
