"""The sample data sets, and the two models, table and figure of the demonstration."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from rich.table import Table

from censored_gp import datasets
from censored_gp.cli.console import bad_option
from censored_gp.cli.options import split_names
from censored_gp.datasets import simulated
from censored_gp.estimator.presets import HMOCGP, NCGP
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import Prediction
from censored_gp.reporting import COLOURS, plot_observations, plot_prediction, require_matplotlib

PROBABILITY = 0.9
"""The probability of the intervals of the demonstration."""
UNSEEN_DAYS = 7
"""The last days of the demonstration are held out."""
HOURS_SHOWN = 96
"""The figure of the demonstration shows so many hours of each station."""


class DataSet(NamedTuple):
    """A sample data set: its description, and its columns by the options that it takes."""

    kind: str
    text: str
    make: Callable[..., dict[str, Any]]


def _bike_share(days: int = 14, seed: int = 0) -> dict[str, Any]:
    return simulated.bike_share(days, seed=seed).table(truth=True)


def _car_park(days: int = 28, seed: int = 0) -> dict[str, Any]:
    return simulated.car_park(days, seed=seed).table(truth=True)


def _shop(days: int = 120, seed: int = 0) -> dict[str, Any]:
    return simulated.shop(days, seed=seed).table(truth=True)


def _water_samples(samples: int = 120, seed: int = 0) -> dict[str, Any]:
    return simulated.water_samples(samples, seed=seed).table(truth=True)


def _new_york(seed: int = 0) -> dict[str, Any]:
    world = datasets.new_york(seed)
    return world.inputs(*world.weather) | world.table(truth=True)


def _citibike(months: list[str], names: list[str]) -> dict[str, Any]:
    return datasets.citibike(tuple(months), tuple(names)).table()


def _birmingham_parking(names: list[str]) -> dict[str, Any]:
    return datasets.birmingham_parking(tuple(names)).table()


def _fresh_retail(store: int, names: list[str]) -> dict[str, Any]:
    return datasets.fresh_retail(store, tuple(map(int, names))).table()


DATA_SETS = {
    "bike_share": DataSet("simulated", "stations that run out of bikes", _bike_share),
    "car_park": DataSet("simulated", "car parks that fill up", _car_park),
    "shop": DataSet("simulated", "fresh products that sell out", _shop),
    "water_samples": DataSet("simulated", "metals below detection limits", _water_samples),
    "new_york": DataSet("local file", "the paper's stations 3711 and 366, part hidden", _new_york),
    "citibike": DataSet("download", "Citi Bike trips by station and hour", _citibike),
    "birmingham_parking": DataSet("download", "car parks that fill up", _birmingham_parking),
    "fresh_retail": DataSet("download", "fresh products that sell out", _fresh_retail),
}
"""The data sets by name."""


def sample(name: str, given: dict[str, Any]) -> pa.Table:
    """Return a data set with the options that were given."""
    make = DATA_SETS[name].make
    parameters = inspect.signature(make).parameters
    for option in given:
        if option not in parameters:
            accepted = ", ".join(f"--{each}" for each in parameters)
            raise bad_option(f"--{option}", f"{name} has only {accepted}.")
    for option, parameter in parameters.items():
        if option not in given and parameter.default is parameter.empty:
            raise bad_option(f"--{option}", f"{name} needs it.")
    chosen = {k: split_names(v) if isinstance(v, list) else v for k, v in given.items()}
    columns = {n: np.asarray(column) for n, column in make(**chosen).items()}
    # pyarrow has no times in hours.
    return pa.table(
        {n: c.astype("datetime64[us]") if c.dtype.kind == "M" else c for n, c in columns.items()}
    )


@dataclasses.dataclass(frozen=True)
class Demo:
    """A simulated world, and the predictions of two models that saw part of it."""

    world: Any
    training: int
    """The number of hours that the models were fitted to; later ones are held out."""
    naive: Prediction
    censored: Prediction
    filled: Float[np.ndarray, "T D"]
    """Training hours as recorded or, where bikes ran out, as the censored model imputes them."""

    @property
    def ran_out(self) -> Bool[np.ndarray, "N D"]:
        """Training hours in which a station ran out of bikes."""
        seen = np.arange(len(self.world.time)) < self.training
        return self.world.censored & seen[:, None]


def fit_both(days: int, seed: int, likelihood: str, progress: Any = False) -> Demo:
    """Simulate a world, fit both models to all but its last days, and predict all of it."""
    world = simulated.bike_share(days=days, seed=seed)
    training = 24 * (days - UNSEEN_DAYS)
    inputs = world.inputs()
    seen = {name: column[:training] for name, column in inputs.items()}
    known = world.observations().rows(slice(training))
    models = [preset(likelihood, progress=progress).fit(seen, known) for preset in (NCGP, HMOCGP)]
    naive, censored = (model.predict_distribution(inputs) for model in models)
    return Demo(world, training, naive, censored, models[1].impute())


def table(demo: Demo) -> Table:
    """Return the table: quantities, each with its naive, censored and true value."""
    hours, of = int(demo.ran_out.sum()), demo.ran_out[: demo.training].size
    shown = Table(
        title=f"Bikes ran out in {hours} of {of} station hours",
        caption="naive: pickups taken for demand (NCGP). censored: pickups in those hours taken "
        "for a lower bound (HMOCGP).",
    )
    shown.add_column()
    for column, style in (("naive", "red"), ("censored", "green"), ("truth", "bold")):
        shown.add_column(column, justify="right", style=style)
    for quantity, form, values in figures(demo):
        shown.add_row(quantity, *(format(value, form) for value in values))
    return shown


def figures(demo: Demo) -> list[tuple[str, str, list[float]]]:
    """Return quantities, their formats, and their naive, censored and true values."""
    truth, out, both = demo.world.demand, demo.ran_out, (demo.naive, demo.censored)
    later = np.broadcast_to(np.arange(len(truth))[:, None] >= demo.training, truth.shape)
    means = [prediction.mean for prediction in both]
    three = (*means, truth)
    intervals = [prediction.interval(PROBABILITY) for prediction in both]
    covered = [np.mean(((low <= truth) & (truth <= high))[out]) for low, high in intervals]
    coverage = f"Coverage of {PROBABILITY:.0%} intervals, censored hours"
    target = np.where(later, truth, np.nan)
    filled = (demo.world.observed[out], demo.filled[out[: demo.training]], truth[out])

    def errors(cells: Bool[np.ndarray, "N D"]) -> list[float]:
        return [*(metrics.mae(mean, np.where(cells, truth, np.nan)) for mean in means), 0]

    return [
        ("Demand per censored hour, imputed", ".1f", [f.mean() for f in filled]),
        ("Demand per censored hour, predicted", ".1f", [m[out].mean() for m in three]),
        ("Total demand, training weeks", ",.0f", [m[~later].sum() for m in three]),
        ("Total demand, held-out week", ",.0f", [m[later].sum() for m in three]),
        ("Mean absolute error, censored hours", ".2f", errors(out)),
        ("Mean absolute error, held-out week", ".2f", errors(later)),
        ("R², held-out week", ".2f", [*(metrics.r2(m, target) for m in means), 1]),
        (coverage, ".0%", [*covered, PROBABILITY]),
    ]


def draw_figure(demo: Demo, path: Path) -> None:
    """Draw the days on which each station ran out of bikes most often; write it to a file."""
    mpl, world, times = require_matplotlib(), demo.world, demo.world.time.astype("datetime64[m]")
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        size = (12, 3.2 * len(world.names) + 0.8)
        figure = mpl.figure.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(world.names), squeeze=False)[:, 0]
        for d, ax in enumerate(axes):
            ax.plot(times, world.demand[:, d], ":", color=COLOURS["truth"], label="true demand")
            naive = {"label": "naive model", "colour": COLOURS["other"], "probability": None}
            plot_prediction(demo.naive, times, d, **naive, ax=ax)
            censored = {"label": "censored model", "probability": PROBABILITY}
            plot_prediction(demo.censored, times, d, **censored, ax=ax)
            plot_observations(world.observations(), times, d, ax=ax)
            first = _busiest(demo.ran_out[:, d])
            shown = slice(first, first + HOURS_SHOWN)
            highest = max(world.demand[shown, d].max(), demo.censored.mean[shown, d].max())
            ax.set(ylim=(-0.4, 1.15 * highest), ylabel="bikes per hour")
            ax.set_xlim(times[first], times[first] + np.timedelta64(HOURS_SHOWN, "h"))
            ax.set_title(world.names[d].replace("_", " "), loc="left", fontweight="bold")
            ax.xaxis.set_major_locator(mpl.dates.DayLocator())
            ax.xaxis.set_major_formatter(mpl.dates.DateFormatter("%a %d %b"))
        handles, labels = axes[0].get_legend_handles_labels()
        words = {"exact": "pickups", "at least": "pickups until bikes ran out"}
        named = dict(zip((words.get(text, text) for text in labels), handles, strict=True))
        place = {"loc": "outside upper left", "ncols": len(named), "frameon": False}
        figure.legend(list(named.values()), list(named), **place)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def _busiest(ran_out: Bool[np.ndarray, " N"]) -> int:
    """Return the first hour of the whole days in which bikes ran out most often."""
    starts = range(0, len(ran_out) - HOURS_SHOWN + 1, 24)
    return max(starts, key=lambda h: ran_out[h : h + HOURS_SHOWN].sum(), default=0)
