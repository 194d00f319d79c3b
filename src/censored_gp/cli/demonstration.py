"""The two models, the table and the figure of the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool
from rich.table import Table

from censored_gp.datasets import simulated
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.estimator.presets import HMOCGP, NCGP
from censored_gp.prediction import metrics
from censored_gp.reporting import plot_posterior, require_matplotlib

# The probability of the intervals of the demonstration.
PROBABILITY = 0.9
# The last days of the demonstration are held out.
UNSEEN_DAYS = 7
# The figure of the demonstration shows so many hours, the last ones of the training weeks.
HOURS_SHOWN = 96


class Demo(NamedTuple):
    """A simulated world, and two models that saw its first hours.

    `training` is the number of hours that they were fitted to, later ones are held out; `models`
    are the naive one and the censored one.
    """

    world: Any
    training: int
    models: tuple[CensoredGP, CensoredGP]

    @property
    def ran_out(self) -> Bool[np.ndarray, "N D"]:
        """Training hours in which a station ran out of bikes."""
        return self.world.censored & (np.arange(len(self.world.time)) < self.training)[:, None]


def fit_both(days: int, seed: int, likelihood: str, progress: Any = False) -> Demo:
    """Simulate a world, and fit both models to all but its last days."""
    world, training = simulated.bike_share(days=days, seed=seed), 24 * (days - UNSEEN_DAYS)
    seen = {name: column[:training] for name, column in world.inputs().items()}
    known = world.observations(slice(training))
    naive, censored = (
        kind(likelihood, progress=progress).fit(seen, known) for kind in (NCGP, HMOCGP)
    )
    return Demo(world, training, (naive, censored))


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
    truth, out, past = demo.world.demand, demo.ran_out, slice(demo.training)
    both = [model.predict_distribution(demo.world.inputs()) for model in demo.models]
    three, later = (*(prediction.mean for prediction in both), truth), slice(demo.training, None)
    filled = (demo.world.observed[out], demo.models[1].impute()[out[past]], truth[out])
    ends = [prediction.interval(PROBABILITY) for prediction in both]
    covered = [np.mean(((low <= truth) & (truth <= high))[out]) for low, high in ends]
    coverage = f"Coverage of {PROBABILITY:.0%} intervals, censored hours"
    errors = [abs(mean - truth)[out].mean() for mean in three]
    return [
        ("Demand per censored hour, imputed", ".1f", [f.mean() for f in filled]),
        ("Demand per censored hour, predicted", ".1f", [mean[out].mean() for mean in three]),
        ("Total demand, training weeks", ",.0f", [mean[past].sum() for mean in three]),
        ("Mean absolute error, censored hours", ".2f", errors),
        ("R², held-out week", ".2f", [metrics.r2(mean[later], truth[later]) for mean in three]),
        (coverage, ".0%", [*covered, PROBABILITY]),
    ]


def draw_figure(demo: Demo, path: Path) -> None:
    """Draw what the censored model makes of the end of the training weeks; write it to a file."""
    stations, truth = len(demo.world.names), demo.world.demand[: demo.training]
    figure = require_matplotlib().figure.Figure((12, 3.2 * stations + 0.8), layout="constrained")
    for d, ax in enumerate(figure.subplots(stations, squeeze=False)[:, 0]):
        plot_posterior(demo.models[1], d, rows=slice(-HOURS_SHOWN, None), truth=truth, ax=ax)
        ax.set_ylabel("bikes per hour")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
