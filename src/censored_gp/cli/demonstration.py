"""The two models, the table and the figure of the demonstration."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from rich.table import Table

from censored_gp.datasets import simulated
from censored_gp.estimator.presets import HMOCGP, NCGP
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import Prediction
from censored_gp.reporting import COLOURS, plot_output, plot_prediction, require_matplotlib

PROBABILITY = 0.9
"""The probability of the intervals of the demonstration."""
UNSEEN_DAYS = 7
"""The last days of the demonstration are held out."""
HOURS_SHOWN = 96
"""The figure of the demonstration shows so many hours of each station."""


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
    size = (12, 3.2 * len(world.names) + 0.8)
    figure = mpl.figure.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(world.names), squeeze=False)[:, 0]
    for d, ax in enumerate(axes):
        naive = {"label": "naive", "colour": COLOURS["other"], "probability": None}
        plot_prediction(demo.naive, times, d, **naive, ax=ax)
        both = {"observations": world.observations(), "truth": world.demand}
        plot_output(demo.censored, times, d, **both, probability=PROBABILITY, ax=ax)
        first = _busiest(demo.ran_out[:, d])
        shown = slice(first, first + HOURS_SHOWN)
        highest = max(world.demand[shown, d].max(), demo.censored.mean[shown, d].max())
        ax.set(ylim=(-0.4, 1.15 * highest), ylabel="bikes per hour")
        ax.set_xlim(times[first], times[first] + np.timedelta64(HOURS_SHOWN, "h"))
    axes[0].legend(ncols=3, fontsize="small", loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _busiest(ran_out: Bool[np.ndarray, " N"]) -> int:
    """Return the first hour of the whole days in which bikes ran out most often."""
    starts = range(0, len(ran_out) - HOURS_SHOWN + 1, 24)
    return max(starts, key=lambda h: ran_out[h : h + HOURS_SHOWN].sum(), default=0)
