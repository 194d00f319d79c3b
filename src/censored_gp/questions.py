"""The questions that people with censored data have, asked of a fitted model.

A mix-in of the estimator. The work is in `demand`, `ahead` and `diagnose`; here the data are
handed over, and answers become tables of the make that the training data had.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Shaped
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from censored_gp import ahead, demand, diagnose
from censored_gp.answers import Answers, drawn_in_parts, draws
from censored_gp.diagnose import Diagnosis
from censored_gp.frames import Layout, Rows
from censored_gp.natives import ResultTable, build
from censored_gp.posterior import Posterior
from censored_gp.summary import Coregionalization, coregionalization, describe, prior_correlation

__all__ = ["Questions"]

SCENARIOS = 12
"""Ways in which inputs that are not known may turn out, in a forecast."""


class _Lost(NamedTuple):
    """Draws of lost demand: of which fit, how many by which seed, and what was drawn."""

    posterior: Posterior
    key: tuple[int, int]
    draws: Float[np.ndarray, "S R"]


LATEST: WeakKeyDictionary[Questions, _Lost] = WeakKeyDictionary()
"""The last draws of each estimator. They are not in it, so that no file or copy holds them."""


class Questions(Answers):
    """What was lost, what will be, what would be enough, and whether to believe it."""

    def lost_demand(
        self,
        by: Any = None,
        probability: float = 0.9,
        samples: int = 500,
        random_state: Any = None,
    ) -> Any:
        """Return how much demand was lost in the training data: totals and shares, with intervals.

        Demand is lost where a cell is right-censored: what was wanted, less what was recorded.
        Intervals are of the sums themselves, from joint draws. Missing cells are left out.

        Parameters
        ----------
        by : None, str, list of str, or array
            "output", "hour", "weekday", "date", "month", several of these, or a label for each
            row; None: one total.
        probability : float
            How probably the interval from `lost_low` to `lost_high` holds the truth.
        samples : int
            Joint draws. They are kept, so that other groupings of them take no time.
        random_state : int, RandomState or None
            Seed of the draws; None: that of the estimator or, if it has none, 0.

        Returns
        -------
        A table with the columns of the groups, then observed, demand, lost, lost_low, lost_high,
        share (of demand that was lost), share_low, share_high, cells and censored (how many).

        Examples
        --------
        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> total = model.lost_demand(samples=100, random_state=0)[0]
        >>> 0 < total["lost_low"] < total["lost"] < total["lost_high"], total["censored"]
        (True, 2)
        """
        check_is_fitted(self)
        if not self.use_censoring:
            raise ValueError(
                "lost_demand: found a model with use_censoring=False, to which nothing is lost. "
                "Fit one that uses the bounds, such as HMOCGP."
            )
        known = self.observations_
        groups = demand.group_cells(
            self._per_cell(by), self._labels(), self._clock, known.shape, self._output_label()
        )
        lost = self._lost_cells(samples, self._seed(self._fixed(random_state)))
        return self._table(demand.lost_demand(known, lost, groups, probability))

    def _lost_cells(self, samples: int, seed: Any) -> Float[np.ndarray, "S R"]:
        """Return draws of what was lost in each right-censored cell, the last ones if asked again.

        A seed that is a generator makes other draws every time: they are not kept.
        """
        kept = LATEST.get(self)
        if kept and kept.posterior is self.posterior_ and kept.key == (samples, seed):
            return kept.draws
        known, rows = self.observations_, np.any(self.observations_.is_right, axis=1)
        if not rows.any():
            return np.zeros((1, 0))
        parts = drawn_in_parts(self.imputation(rows), samples, seed)
        lost = np.concatenate([demand.lost_cells(known.rows(rows), part) for part in parts])
        if isinstance(seed, int):
            LATEST[self] = _Lost(self.posterior_, (samples, seed), lost)
        return lost

    def _fixed(self, random_state: Any) -> Any:
        """Return a seed that is the same every time, unless the user wants another."""
        chosen = self.random_state if random_state is None else random_state
        return 0 if chosen is None else chosen

    def required_supply(
        self,
        X: Any,
        probability: float = 0.95,
        window: Any = None,
        samples: int = 500,
        random_state: Any = None,
    ) -> Any:
        """Return how much supply would meet demand with a probability, by window of time.

        `peak` is enough for the busiest row of a window, `sum` for all of its rows together, each
        with the given probability. Both are quantiles of joint draws. Several outputs have a line
        each, and one for all of them together.

        Parameters
        ----------
        X : like the training inputs, or a table like the training table
            Rows to be supplied.
        probability : float
            How probably the supply must be enough.
        window : None, str or array
            A duration such as "6h" or "1d", a label for each row, or None for all rows together.
        samples, random_state
            Joint draws, and their seed.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> rows = model.required_supply([[2], [3], [4]], samples=100, window=[0, 0, 1])
        >>> [row["peak"] > row["expected_peak"] for row in rows]
        [True, True]
        """
        prediction, rows = self._asked(X)
        inputs = prediction._inputs
        parts = drawn_in_parts(prediction, samples, self._seed(random_state))
        windows = demand.windows_of(
            window, lambda: demand.clock(self.columns_, inputs), len(inputs)
        )
        asked = _asked_cells(rows, prediction.shape)
        names = self._labels()
        found = demand.required_supply(
            parts, windows, asked, names, probability, self._output_label()
        )
        return self._table(found)

    def forecast(
        self,
        periods: int | None = None,
        until: Any = None,
        inputs: Any = None,
        probability: float = 0.9,
        samples: int = 600,
        random_state: Any = None,
    ) -> Any:
        """Return expected demand and its interval after the last training time.

        Times go on at the spacing of the training data, and only through those hours of the day
        (of the week, if two weeks are known) that the training data have.

        Parameters
        ----------
        periods, until : int; time
            How many times ahead, or up to which time by the wall clock.
        inputs : table, optional
            Inputs at the times ahead, one row for each. Columns that it does not have are drawn
            from the past: each day ahead takes them from a random day of the past (of the same
            weekday, where there are two), at the same hour. The interval then allows for not
            knowing them.
        probability : float
            How probably the interval holds the true output.
        samples, random_state
            Draws, and their seed, where inputs are not known.

        Returns
        -------
        A table with the time, and for each output its expectation, and the interval in the columns
        that end in `_low` and `_high`; long if the training table was.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> days = [f"2024-06-0{day}" for day in range(1, 7)]
        >>> table = {"day": days, "y": [1, 2, 3, 3, 2, 1]}
        >>> model = CGP().fit(table, outputs="y", time="day", capacity=3)
        >>> [str(day) for day in model.forecast(2)["day"]]
        ['2024-06-07T00:00:00', '2024-06-08T00:00:00']
        """
        check_is_fitted(self)
        demand.check_probability(probability)
        past = self._clock()
        place = self.columns_.is_time.index(True)
        zone = self.columns_.zones[place]
        wall, instant = ahead.times_ahead(past, periods, until, zone)
        matrix = ahead.known_inputs(inputs, self.columns_, len(wall))
        for column, hours in ahead.in_hours(self.columns_, wall).items():
            matrix[:, column] = hours
        if np.isnan(matrix).any():
            rng = np.random.default_rng(self._seed(random_state))
            many = ahead.scenarios(past, self._inputs, wall, matrix, SCENARIOS, rng)
            cells = self._over_scenarios(many, probability, samples, rng)
        else:
            found = self._prediction(matrix)
            cells = (found.mean, *found.interval(probability))
        return self._ahead(cells, self.columns_.names[place], wall, instant, zone)

    def _over_scenarios(
        self,
        many: Float[np.ndarray, "K H C"],
        probability: float,
        samples: int,
        rng: np.random.Generator,
    ) -> tuple[Float[np.ndarray, "H D"], ...]:
        """Return mean and interval over several ways in which the inputs may turn out."""
        count = len(many)
        found = [self._prediction(inputs) for inputs in many]
        each = max(1, -(-samples // count))
        drawn = np.concatenate([draws(one, each, rng) for one in found])
        ends = [(1 - probability) / 2, (1 + probability) / 2]
        low, high = np.quantile(drawn, ends, axis=0, method="inverted_cdf")
        return np.mean([one.mean for one in found], axis=0), low, high

    def _ahead(
        self,
        cells: tuple[Float[np.ndarray, "H D"], ...],
        name: str,
        wall: Shaped[np.ndarray, " H"],
        instant: Shaped[np.ndarray, " H"],
        zone: str | None,
    ) -> Any:
        """Return a forecast as a table: wide, or long if the training table was."""
        layout, size = self.layout_, len(wall)
        row = np.arange(size)
        if layout is not None and layout.long:
            row, value = np.repeat(row, len(layout.outputs)), str(layout.value)
            columns = {layout.by: np.array(layout.outputs * size)}
            columns |= _with_ends(value, [part.reshape(-1) for part in cells])
        else:
            columns = {}
            for d, label in enumerate(self._labels()):
                columns |= _with_ends(str(label), [part[:, d] for part in cells])
        if zone is None or layout is None or layout.make == "dict":
            return self._table({name: wall[row], **columns})
        backend: Any = layout.make
        made = nw.new_series(name, instant[row].astype("datetime64[us]"), backend=backend)
        local = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        return build(layout.make, {name: local, **columns})

    def diagnose(self, folds: int = 3, random_state: Any = None) -> Diagnosis:
        """Hold out cells, predict them, and tell in figures and words how well that went.

        Whole days are held out (rows, if the inputs have no time), those of each output on their
        own. Every refit starts afresh, so that it knows nothing of what it is asked for, and uses
        the engine "natural". Three folds are nine refits, or three if nothing is censored.

        Parameters
        ----------
        folds : int
            How many times a part of the cells is held out.
        random_state : int, RandomState or None
            Seed of who is held out when; None: that of the estimator or, if it has none, 0.

        Returns
        -------
        Diagnosis, with `rows`: scores of this model, of one that ignores censoring and of one
        that sees exact cells only, by output; and `warnings`: sentences. Print it to see both.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> found = model.diagnose(folds=2)
        >>> list(found.scores)
        ['this model', 'ignores censoring', 'exact cells only']
        """
        check_is_fitted(self)
        seed = int(check_random_state(self._fixed(random_state)).randint(2**31 - 1))
        times = self._clock() if any(self.columns_.is_time) else None
        scores, prediction = diagnose.diagnose(self, folds, times, seed)
        rows = self._table(diagnose.columns_of(scores))
        said = diagnose.warnings_of(scores, self)
        return Diagnosis(rows, said, scores, prediction, self.observations_)

    def coregionalization(self) -> tuple[Coregionalization, ...]:
        """Return the matrices B_q = A_q A_q' of Eq. (5) by role and kernel.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> [(found.role, found.matrix.shape) for found in model.coregionalization()]
        [('mean', (1, 1))]
        """
        check_is_fitted(self)
        return coregionalization(self.posterior_.model, self.columns_, self.output_names_)

    def correlations(self, role: str = "mean") -> Any:
        """Return how far outputs inform each other: prior correlations of their latent functions.

        A model that was fitted to a table answers with one, its first column the outputs' names.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.correlations()
        array([[1.]])
        """
        check_is_fitted(self)
        matrix = prior_correlation(self.posterior_.model, role)
        if self.layout_ is None:
            return matrix
        names = [str(label) for label in self._labels()]
        columns = {name: matrix[:, d] for d, name in enumerate(names)}
        return build(self.layout_.make, {self._output_label(): np.array(names), **columns})

    def summary(self) -> str:
        """Return what was fitted, to what, and how it went, in words.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> print(model.summary())
        CGP on 'x0': y Gaussian()
        6 rows of 1 output
        ...
        """
        check_is_fitted(self)
        return describe(self)

    def _table(self, columns: dict[str, Any]) -> Any:
        """Return columns as a table of the make of the training data."""
        return (
            ResultTable.of(columns) if self.layout_ is None else build(self.layout_.make, columns)
        )

    def _clock(self) -> Shaped[np.ndarray, " N"]:
        """Return the times of the training rows by the wall clock."""
        return demand.clock(self.columns_, self._inputs)

    def _labels(self) -> tuple[Any, ...]:
        return self.output_names_ if self.layout_ is None else self.layout_.outputs

    def _output_label(self) -> str:
        """Return what the column that tells outputs apart is called."""
        layout: Layout | None = self.layout_
        return "output" if layout is None or not layout.long else str(layout.by)

    def _per_cell(self, by: Any) -> Any:
        """Return labels by cell of the model, where there is one for each row of a long table."""
        rows = self._rows
        if rows is None or rows.output is None or np.ndim(by) != 1 or len(by) != len(rows.row):
            return by
        labels = np.asarray(by)
        cells = np.full(self.observations_.shape, labels[0], dtype=labels.dtype)
        cells[rows.row, rows.output] = labels
        return cells


def _with_ends(name: str, parts: list[Float[np.ndarray, " H"]]) -> dict[str, Any]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), parts, strict=True))


def _asked_cells(rows: Rows | None, shape: tuple[int, int]) -> Bool[np.ndarray, "N D"]:
    """Return the cells that a long table asks for; otherwise all."""
    if rows is None or rows.output is None:
        return np.ones(shape, dtype=bool)
    asked = np.zeros(shape, dtype=bool)
    asked[rows.row, rows.output] = True
    return asked
