"""Lost demand in groups, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from censored_gp.data.tables import read_table
from censored_gp.plotting.style import colours_on, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["columns_of_table", "plot_lost_demand"]

DAYS = 3
"""Letters of a weekday's name that are shown."""


def columns_of_table(table: Any) -> dict[str, np.ndarray]:
    """Return the columns of a table of any make, or of a list of rows.

    >>> columns_of_table([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])["a"]
    array([1, 2])
    """
    if isinstance(table, list):
        names = table[0] if table else ()
        return {name: np.array([row[name] for row in table]) for name in names}
    opened = read_table(table)
    return {name: opened.column(name, "Column").values for name in opened.names}


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
        Whether to draw the share of demand that was lost, instead of how much.
    probability : float
        How probably an interval holds the truth.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> wanted = 2 + np.sin(X[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=30)
    >>> model = CensoredGP(heteroscedastic=False)
    >>> model = model.fit(X, np.minimum(wanted, 2.6), capacity=2.6)
    >>> ax = plot_lost_demand(model, by="output", ax=Figure().subplots())
    >>> len(ax.patches)
    1
    """
    ax, what = new_axes(ax), "share" if share else "lost"
    found = model.lost_demand(by=by, probability=probability, random_state=random_state)
    columns = columns_of_table(found)
    labels = [str(label) for label in next(iter(columns.values()))]
    middle, low, high = (
        np.asarray(columns[what + end], dtype=float) for end in ("", "_low", "_high")
    )
    colours, places = colours_on(ax), np.arange(len(labels))
    ax.bar(places, middle, color=colours["censored"], alpha=0.85, label="lost")
    # The mean of a skewed distribution may lie outside its interval.
    ends = np.maximum([middle - low, high - middle], 0.0)
    ax.errorbar(
        places, middle, ends, fmt="none", ecolor=colours["truth"], elinewidth=1.2, capsize=2.5,
        label=f"{probability:.0%} interval",
    )  # fmt: skip
    if by == "weekday":
        labels = [label[:DAYS] for label in labels]
    step = max(1, -(-len(labels) // 12))
    ax.set_xticks(places[::step], labels[::step])
    if share:
        ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(xlabel=by, ylabel="share of demand lost" if share else "demand lost")
    ax.set_ylim(0, None)
    ax.legend(fontsize="small")
    return ax
