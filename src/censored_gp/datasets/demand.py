"""Demand of which part was hidden, by a draw or by a capacity, while the truth is kept aside."""

import dataclasses
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.special import expit

from censored_gp.data.observations import Observations
from censored_gp.simulate.world import PartlySeen

Cells: TypeAlias = Float[np.ndarray, "N D"]
Flags: TypeAlias = Bool[np.ndarray, "N D"]
Column: TypeAlias = Shaped[np.ndarray, " N"]
Columns: TypeAlias = dict[str, Shaped[np.ndarray, " N"]]

OFFSET = 5.0
"""The paper's: an hour is censored with probability `1 - sigmoid(dropoffs - pickups + 5)`."""
HOURS_OF_A_DAY = 24
MOST_SUPPLY = 1.2
"""Of supply that is independent of demand: most of it, as a share of another day's demand."""


@dataclass(frozen=True)
class CensoredDemand(PartlySeen):
    """Hourly demand at D stations of which part was hidden on purpose, so that the truth is known.

    Rows are in the order of time: first those to train on, then to validate, then to test.

    >>> time = np.datetime64("2018-06-01T00") + np.arange(4)
    >>> truth = np.array([[3.0], [5.0], [4.0], [6.0]])
    >>> hidden = np.array([[False], [True], [False], [False]])
    >>> demand = CensoredDemand(("a",), time, {}, truth, truth - hidden, hidden, (2, 1, 1))
    >>> demand.observations(demand.train).upper[:, 0]
    array([ 3., inf])
    """

    names: tuple[str, ...]
    time: Column
    """Start of each hour, `datetime64[h]`."""
    weather: dict[str, Float[np.ndarray, " N"]]
    """Weather by name, without gaps; `rain` is 1 in a wet hour, else 0."""
    truth: Cells
    observed: Cells
    """The truth, or less where censored."""
    censored: Flags
    split: tuple[int, int, int]
    """How many rows there are to train on, to validate and to test."""

    @property
    def train(self) -> slice:
        """The rows to train on."""
        return slice(0, self.split[0])

    @property
    def validation(self) -> slice:
        """The rows to decide on when to stop."""
        return slice(self.split[0], self.split[0] + self.split[1])

    @property
    def test(self) -> slice:
        """The rows to score."""
        return slice(self.split[0] + self.split[1], sum(self.split))

    def inputs(self, *weather: str, rows: slice = slice(None)) -> Columns:
        """Return the columns of inputs: the time and the weather asked for by name."""
        return _inputs(self.time, self.weather, weather, rows)


@dataclass(frozen=True)
class LimitedDemand:
    """Demand of D areas and the cells in which supply ran out: what the paper's table 3 is about.

    What was recorded is taken for the truth, as the paper does, and `observations` then hides part
    of it in those cells.

    >>> time, truth = np.array(["2016-10-04"], "datetime64[D]"), np.array([[10.0]])
    >>> park = LimitedDemand(("a",), time, {}, truth, truth >= 10)
    >>> round(float(park.observations(0.8).lower[0, 0]), 6)
    2.0
    """

    names: tuple[str, ...]
    time: Column
    weather: dict[str, Float[np.ndarray, " N"]]
    truth: Cells
    """What was recorded, NaN where nothing was."""
    limited: Flags
    """Where supply ran out."""

    def inputs(self, *weather: str, rows: Shaped[np.ndarray, " K"] | None = None) -> Columns:
        """Return the columns of inputs: the time and the weather asked for by name."""
        return _inputs(self.time, self.weather, weather, slice(None) if rows is None else rows)

    def observations(self, intensity: float) -> Observations:
        """Return bounds: `(1 - intensity)` times the truth and up, where supply ran out."""
        low = np.where(self.limited, (1.0 - intensity) * self.truth, self.truth)
        high = np.where(self.limited, np.inf, self.truth)
        gone = np.isnan(self.truth)
        return Observations(np.where(gone, -np.inf, low), np.where(gone, np.inf, high), self.names)


def censor(
    truth: Float[np.ndarray, "N D"],
    probability: Float[np.ndarray, "N D"],
    seed: int,
    *,
    whole_numbers: bool = True,
) -> tuple[Float[np.ndarray, "N D"], Bool[np.ndarray, "N D"]]:
    """Hide part of the truth: return what is then observed, and where it is censored.

    Each cell is censored with its probability, and then shows a uniform draw from 0 to the truth.

    >>> observed, censored = censor(np.full((3, 1), 9.0), np.array([[0.0], [0.0], [1.0]]), seed=0)
    >>> censored[:, 0], bool(observed[2, 0] <= 9.0)
    (array([False, False,  True]), True)
    """
    rng = np.random.default_rng(seed)
    censored = rng.uniform(size=truth.shape) < probability
    share = rng.uniform(size=truth.shape)
    shown = np.floor(share * (truth + 1)) if whole_numbers else share * truth
    return np.where(censored, shown, truth), censored


def with_independent_limits(data: CensoredDemand, seed: int) -> CensoredDemand:
    """Return the same demand with limits that know nothing of it, in the same hours.

    The paper's rule shows a share of the truth: a low figure speaks of low demand. Here an hour
    that it censors has a supply, a share (up to 1.2) of the demand at the same hour of another
    day of those to train on, drawn at random. It is censored where that is less than the truth;
    elsewhere it is seen whole.

    >>> time = np.arange(np.datetime64("2018-06-01T00"), np.datetime64("2018-06-06T00"))
    >>> truth, flags = np.full((120, 1), 9.0), np.ones((120, 1), bool)
    >>> rule = CensoredDemand(("a",), time, {}, truth, truth, flags, (100, 10, 10))
    >>> found = with_independent_limits(rule, seed=0)
    >>> bool((found.observed[found.censored] < 9).all()), bool(0.6 < found.censored.mean() < 0.9)
    (True, True)
    """
    rng = np.random.default_rng([seed, 1])
    rows = np.arange(len(data.truth))
    hour = data.time.astype("datetime64[h]").astype(int) % HOURS_OF_A_DAY
    limit = np.empty_like(data.truth)
    for row in rows:
        # Of days to train on only: a limit must not tell what is to be predicted.
        alike = (hour == hour[row]) & (rows != row) & (rows < data.train.stop)
        other = rng.choice(rows[alike])
        limit[row] = np.floor(rng.uniform(0.0, MOST_SUPPLY) * data.truth[other])
    censored = data.censored & (limit < data.truth)
    observed = np.where(censored, limit, data.truth)
    return dataclasses.replace(data, observed=observed, censored=censored)


def probability_of_running_out(
    inflow: Float[np.ndarray, "N D"], outflow: Float[np.ndarray, "N D"]
) -> Float[np.ndarray, "N D"]:
    """Return the paper's probability that an hour is censored, from the flows of the hour before.

    >>> probability_of_running_out(np.array([[0.0]]), np.array([[5.0]]))
    array([[0.5]])
    """
    return 1.0 - expit(inflow - outflow + OFFSET)


def _inputs(
    time: Column,
    known: dict[str, Float[np.ndarray, " N"]],
    weather: tuple[str, ...],
    rows: slice | Shaped[np.ndarray, " K"],
) -> Columns:
    """Return the rows of the time and of the weather asked for."""
    absent = [name for name in weather if name not in known]
    if absent:
        raise ValueError(f"No weather column {absent}; there are {list(known)}.")
    columns = {"time": time} | {name: known[name] for name in weather}
    return {name: column[rows] for name, column in columns.items()}
