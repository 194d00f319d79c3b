"""The estimator: scikit-learn's way into the model, for outputs that were only partly seen.

What a fitted model says of the outputs at given inputs: in arrays, or in tables like the given.

A mix-in of the estimator. All computing is in `predict`; here inputs are read and answers are put
into the shape in which the data came.

What will be, and how much would be enough: a fitted model asked about times to come.

A mix-in of the estimator. The work is in `ahead`, `futures` and `demand`; here the data are handed
over, and answers become tables of the make that the training data had.

The questions that people with censored data have, asked of a fitted model.

A mix-in of the estimator. The work is in `demand` and `diagnose`; here the data are handed over,
and answers become tables of the make that the training data had. What lies ahead is in `forecasts`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from censored_gp.data import layout as frames
from censored_gp.data import time as ahead
from censored_gp.data import validation as targets
from censored_gp.data.errors import listed, refuse
from censored_gp.data.inputs import Columns
from censored_gp.data.layout import Layout, Rows, placed, read_training
from censored_gp.data.observations import Observations, within_steps
from censored_gp.data.tables import (
    ResultTable,
    Table,
    build,
    group_labels,
    interval_suffixes,
    is_table,
    read_table,
    times_like,
)
from censored_gp.estimator import persistence as files
from censored_gp.estimator import settings as checks
from censored_gp.estimator.analysis import diagnose
from censored_gp.estimator.analysis import forecast as futures
from censored_gp.estimator.analysis import lost_demand as demand
from censored_gp.estimator.analysis.diagnose import Diagnosis
from censored_gp.estimator.progress import progress_bar
from censored_gp.estimator.summary import (
    Coregionalization,
    coregionalization,
    describe,
    prior_correlation,
)
from censored_gp.inference import FitResult, Task, infer
from censored_gp.inference.model_search import best_fit
from censored_gp.inference.posterior import Posterior, Sites, TrainingSites
from censored_gp.likelihoods import Likelihood
from censored_gp.model import starting_values
from censored_gp.model.compilation import float64, keep_compiled_programs
from censored_gp.model.model import Units, choose_units, prior_draw
from censored_gp.model.starting_values import freedom_of, starting_models
from censored_gp.prediction.predictive import MOST_ROWS, Prediction, central, drawn_in_parts, draws

Cells = Float[np.ndarray, "N D"]


class Answers(BaseEstimator):
    """Predictions and imputations of a fitted estimator."""

    posterior_: Posterior
    units_: Units
    columns_: Columns
    observations_: Observations
    output_names_: tuple[str, ...]
    layout_: Layout | None
    random_state: Any
    use_censoring: bool
    _inputs: Float[np.ndarray, "N C"]
    _inner: Observations
    _rows: Rows | None
    _flat: bool

    def predict_distribution(self, X: Any) -> Prediction:
        """Return the distribution of the true outputs at new inputs, for every row and output.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5]]).interval(0.8)[0].round(1)
        array([[3.2]])
        """
        check_is_fitted(self)
        if self.layout_ is not None and is_table(X):
            X = frames.read_new(X, self.layout_)[0]
        return self._prediction(self._matrix(X))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected true outputs, and their standard deviations if asked for.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict([[0.5], [2.5]]).round(1)
        array([1.4, 3.6])
        """
        prediction, rows = self._asked(X)
        mean = self._shaped(prediction.mean, rows)
        return (mean, self._shaped(prediction.std, rows)) if return_std else mean

    def quantile(self, X: Any, levels: Any) -> Any:
        """Return quantiles of the true outputs.

        Several levels make a leading axis or, in a table, a column `level`.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.quantile([[2.5]], [0.1, 0.9]).round(1)[:, 0]
        array([3.2, 4.1])
        """
        prediction, rows = self._asked(X)
        several = ("level", np.asarray(levels, dtype=float)) if np.ndim(levels) else None
        return self._shaped(prediction.quantile(levels), rows, several)

    def interval(self, X: Any, probability: float = 0.9) -> tuple[Any, Any]:
        """Return both ends of the central intervals that hold the true outputs with a probability.

        Of continuous outputs as much is left out below as above. Ends of counts count in full, so
        that less is left out below than may be (of small counts, or at a bound, nothing at all);
        the upper end is then the smallest with which the interval holds as much as it should.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> low, high = model.interval([[2.5]], 0.8)
        >>> low.round(1), high.round(1)
        (array([3.2]), array([4.1]))
        """
        checks.check_probability(probability)
        prediction, rows = self._asked(X)
        low, high = prediction.interval(probability)
        return self._shaped(low, rows), self._shaped(high, rows)

    def cdf(self, X: Any, y: Any = None) -> Any:
        """Return P(Y <= y) of the true outputs; of a table, y may be left to its own values.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.cdf([[2.5]], 3).round(2)
        array([0.04])
        """
        prediction, rows = self._asked(X)
        return self._shaped(prediction.cdf(self._cells(y, prediction, X, rows)), rows)

    def log_density(self, X: Any, y: Any = None) -> Any:
        """Return the log density (for counts, the log probability) of true outputs y.

        If X is a table, y may be left to the values that it has; NaN stays NaN.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.log_density([[2.5]], [3]).round(1)
        array([-1.5])
        """
        prediction, rows = self._asked(X)
        return self._shaped(prediction.log_density(self._cells(y, prediction, X, rows)), rows)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> Any:
        """Draw true outputs n times, jointly over rows and outputs.

        The draws make a leading axis or, in a table, a column `draw`.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.sample([[2.5], [3.5]], 100, random_state=0).shape
        (100, 2)
        """
        prediction, rows = self._asked(X)
        drawn = draws(prediction, n, self._seed(random_state))
        return self._shaped(drawn, rows, ("draw", np.arange(n)))

    def sample_prior(self, X: Any, n: int = 1, random_state: Any = None) -> Any:
        """Draw outputs from the model before it saw data, at its fitted hyper-parameters.

        This is the paper's generative algorithm: latent functions from the linear model of
        coregionalization, then outputs from their likelihoods. The draws make a leading axis or,
        in a table, a column `draw`.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.sample_prior([[2.5], [3.5]], 3, random_state=0).shape
        (3, 2)
        """
        check_is_fitted(self)
        inputs, rows = self._asked_inputs(X)
        seeds = np.random.default_rng(self._seed(random_state)).integers(2**31, size=n)
        cells = np.stack([prior_draw(self.posterior_.model, inputs, int(s)) for s in seeds])
        own = self.units_.shift + self.units_.scale * cells
        return self._shaped(own, rows, ("draw", np.arange(n)))

    def imputation(self, rows: Any = slice(None)) -> Prediction:
        """Return the distribution of what training cells really were, given their bounds.

        Parameters
        ----------
        rows : slice, mask or positions
            Which training rows; without them, all.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.imputation([2, 3]).mean.round(1)[:, 0]
        array([3.4, 3.4])
        """
        check_is_fitted(self)
        seen = {
            role: Sites(*(np.asarray(part)[:, rows] for part in own))
            for role, own in self.posterior_.sites.items()
        }
        return self._prediction(self._inputs[rows], self._inner.rows(rows), seen)

    def impute(self, return_std: bool = False) -> Any:
        """Return the training outputs with the gaps filled, and standard deviations if asked for.

        Exact cells are as they were observed, censored ones the mean given their bounds, missing
        ones the predictive mean.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.impute().round(1)
        array([1. , 2. , 3.4, 3.4, 2. , 1. ])
        """
        check_is_fitted(self)
        mean, std = self._filled()
        shaped = self._shaped(mean, self._rows)
        return (shaped, self._shaped(std, self._rows)) if return_std else shaped

    def impute_interval(self, probability: float = 0.9) -> tuple[Any, Any]:
        """Return both ends of the central intervals that hold what the training outputs were.

        Both ends of an exact cell are the value that was observed; those of a censored one are
        within its bounds.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> low, high = model.impute_interval(0.8)
        >>> low.round(1), high.round(1)
        (array([1. , 2. , 3.1, 3.1, 2. , 1. ]), array([1. , 2. , 3.8, 3.8, 2. , 1. ]))
        """
        check_is_fitted(self)
        checks.check_probability(probability)
        ends = self._of_open(slice(None), lambda found: found.interval(probability))
        low, high = (self._shaped(self._with_known(end), self._rows) for end in ends)
        return low, high

    def _filled(self, rows: Any = slice(None)) -> tuple[Cells, Cells]:
        """Return means and standard deviations of training cells given their bounds."""
        mean, std = self._of_open(rows, lambda found: (found.mean, found.std))
        return self._with_known(mean, rows), np.where(self._inner.is_exact[rows], 0.0, std)

    def _of_open(
        self, rows: Any, ask: Callable[[Prediction], tuple[Cells, Cells]]
    ) -> Float[np.ndarray, "2 N D"]:
        """Ask for two figures of the training cells that are not exact; the others have NaN."""
        exact = self._inner.is_exact[rows]
        # Of few rows all are looked at, by the program that predicts them.
        open_ = ~exact.all(axis=1) | ((len(exact) <= MOST_ROWS) & ~exact.all())
        figures = np.full((2, *exact.shape), np.nan)
        if open_.any():
            found = ask(self.imputation(np.arange(len(self._inputs))[rows][open_]))
            figures[:, open_] = np.where(exact[open_], np.nan, found)
        return figures

    def _with_known(self, cells: Cells, rows: Any = slice(None)) -> Cells:
        """Return training cells as observed where they are exact, the given ones elsewhere."""
        known, inner = self.observations_.rows(rows), self._inner.rows(rows)
        # Computing is in other units: what was seen comes out as it was, and what was not must
        # not come out beyond its bounds.
        seen = np.where(known.is_exact, known.lower, self._in_units(inner.lower))
        return np.where(inner.is_exact, seen, np.clip(cells, known.lower, known.upper))

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        censored: Any = None,
        capacity: Any = None,
        lower: Any = None,
        upper: Any = None,
        side: str = "right",
    ) -> float:
        """Return R², the mean over outputs, of `predict` against the exact cells of y.

        Flags, a capacity or bounds say which cells are not exact, as in `fit`. If X is a table, y
        may be left to what it says of the outputs, by the columns that `fit` was told of.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> X, y = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
        >>> model = CGP().fit(X, y, capacity=3)
        >>> model.score(X, y, capacity=3) > model.score(X, y)
        True
        """
        # Imported when asked for: it is slow to load.
        from sklearn.metrics import r2_score

        prediction = self.predict_distribution(X)
        given = {"censored": censored, "capacity": capacity, "lower": lower, "upper": upper}
        truth = self._truth(X, y, given | {"side": side})
        self._check_alike(truth, prediction)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, float)
        each = [
            r2_score(truth.lower[rows, d], prediction.mean[rows, d], sample_weight=weight[rows])
            for d, rows in enumerate(truth.is_exact.T)
            if rows.any()
        ]
        return float(np.mean(each)) if each else float("nan")

    def _truth(self, X: Any, y: Any, spec: dict[str, Any]) -> Observations:
        if y is None and self.layout_ is not None and is_table(X):
            anew = any(spec[name] is not None for name in spec if name != "side")
            layout = dataclasses.replace(self.layout_, **spec) if anew else self.layout_
            return frames.read_truth(X, layout)
        return targets.read_targets(y, **spec)

    def _asked(self, X: Any) -> tuple[Prediction, Rows | None]:
        """Return the distribution at new inputs, and the rows of the table they came in, if any."""
        inputs, rows = self._asked_inputs(X)
        return self._prediction(inputs), rows

    def _asked_inputs(self, X: Any) -> tuple[Float[np.ndarray, "N C"], Rows | None]:
        """Return new inputs, and the rows of the table they came in, if any."""
        check_is_fitted(self)
        if self.layout_ is None or not is_table(X):
            return self._matrix(X), None
        inputs, rows = frames.read_new(X, self.layout_)
        matrix = self._matrix(inputs)
        if rows.output is not None:
            # Rows of a long table share their inputs; what is drawn for them must be joint.
            matrix, place = np.unique(matrix, axis=0, return_inverse=True)
            rows = Rows(rows.index, place.reshape(-1)[rows.row], rows.output)
        return matrix, rows

    def _matrix(self, X: Any) -> Float[np.ndarray, "N C"]:
        return checks.validated_inputs(self, X, self.columns_)[0]

    def _prediction(
        self,
        inputs: Float[np.ndarray, "N C"],
        bounds: Observations | None = None,
        seen: TrainingSites | None = None,
    ) -> Prediction:
        return Prediction(self.posterior_, self.units_, inputs, self.output_names_, bounds, seen)

    def _seed(self, random_state: Any = None) -> int | np.random.Generator:
        source = self.random_state if random_state is None else random_state
        if isinstance(source, np.random.Generator):
            return source
        return int(check_random_state(source).randint(2**31 - 1))

    def _in_units(self, cells: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
        """Return cells in the outputs' own units."""
        return self.units_.shift + self.units_.scale * cells

    def _shaped(
        self,
        cells: Float[np.ndarray, "... N D"],
        rows: Rows | None = None,
        stack: Any = None,
    ) -> Any:
        """Return cells in the shape y had, or in a table like the one whose rows these are."""
        if rows is not None and self.layout_ is not None:
            return frames.result(self.layout_, rows, cells, stack)
        return cells[..., 0] if self._flat else cells

    def _cells(self, y: Any, prediction: Prediction, X: Any, rows: Rows | None) -> Cells:
        """Return values of outputs as rows and columns; one number stands for all cells."""
        if y is None and rows is not None:
            assert self.layout_ is not None
            return frames.values_of(X, self.layout_, rows, prediction.shape)
        if y is not None and (isinstance(y, float | int) or getattr(y, "shape", None) == ()):
            return np.full(prediction.shape, float(y))
        values = targets.read_targets(y)
        _refuse_censored(values)
        self._check_alike(values, prediction)
        return values.values()

    def _check_alike(self, found: Observations, prediction: Prediction) -> None:
        if found.shape != prediction.shape:
            raise ValueError(
                f"Found outputs of shape {found.shape} for inputs and outputs of shape "
                f"{prediction.shape}. Accepted is one value for each row of X and each output."
            )
        targets.same_outputs(found, self.output_names_)


def _refuse_censored(values: Observations) -> None:
    """Refuse bounds where values are asked for."""
    refuse(
        ~(values.is_exact | values.is_missing),
        values.names,
        "Output",
        lambda row, d: (
            f"got from {values.lower[row, d]:g} to {values.upper[row, d]:g}. There must be values."
        ),
        "For bounds ask log_probability.",
    )


SCENARIOS = 12
"""Ways in which inputs that are not known may turn out, in a forecast."""


Ends = tuple[Float[np.ndarray, "H D"], ...]


class _Ahead(NamedTuple):
    """The past and the times ahead, by the wall clock and in UTC, and which column they are."""

    place: int
    past: Shaped[np.ndarray, " N"]
    wall: Shaped[np.ndarray, " H"]
    instant: Shaped[np.ndarray, " H"]

    @property
    def in_numbers(self) -> bool:
        """Whether the times are numbers, of which nobody knows what a day is."""
        return self.wall.dtype.kind != "M"


class Forecasts(Answers):
    """What will be, and what would be enough."""

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
        samples : int
            Joint draws.
        random_state : int, RandomState or None
            Seed of the draws; None: that of the estimator or, if it has none, 0.

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
        parts = drawn_in_parts(prediction, samples, self._seed(self._fixed(random_state)))
        windows = demand.windows_of(
            window, lambda: demand.clock(self.columns_, inputs), len(inputs)
        )
        asked = _asked_cells(rows, prediction.shape)
        names = self._labels()
        found = demand.required_supply(
            parts, windows, asked, names, probability, self._output_label()
        )
        if isinstance(window, str):
            found["window"] = self._starts(found["window"])
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
            How many times ahead, or up to which time: by the wall clock or, if it has a zone of
            its own, by that.
        inputs : table, optional
            Inputs at the times ahead. If it has the column of times, its rows are found by their
            times, whatever their order; if not, it has one row for each time, in their order.
            Columns that it does not have are drawn from the past: each day ahead takes them from
            a random day of the past (of the same weekday, where there are two), at the same hour.
            The interval then allows for not knowing them.
        probability : float
            How probably the interval holds the true output.
        samples : int
            Draws, where inputs are not known.
        random_state : int, RandomState or None
            Seed of the draws; None: that of the estimator or, if it has none, 0.

        Returns
        -------
        A table with the time, and for each output its expectation, and the interval in the columns
        that end in `_low` and `_high` (in `_interval_low` and `_interval_high`, if an output has
        one of these names); long if the training table was. The time is the index if it was.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> days = [f"2024-06-0{day}" for day in range(1, 7)]
        >>> table = {"day": days, "y": [1, 2, 3, 3, 2, 1]}
        >>> model = CGP().fit(table, outputs="y", time="day", capacity=3)
        >>> [str(day)[:10] for day in model.forecast(2)["day"]]
        ['2024-06-07', '2024-06-08']
        """
        check_is_fitted(self)
        demand.check_probability(probability)
        when = self._when(periods, until)
        matrix = futures.known_inputs(
            inputs, self.columns_, self._time_label(when.place), when.wall, when.instant
        )
        if when.in_numbers:
            matrix[:, when.place] = when.wall - self.columns_.origin[when.place]
        for column, hours in futures.in_hours(self.columns_, when.wall).items():
            matrix[:, column] = hours
        if np.isnan(matrix).any():
            rng = np.random.default_rng(self._seed(self._fixed(random_state)))
            cells = self._over_scenarios(
                self._scenarios(when, matrix, rng), probability, samples, rng
            )
        else:
            found = self._prediction(matrix)
            cells = (found.mean, *found.interval(probability))
        return self._forecast_table(cells, when)

    def _when(self, periods: Any, until: Any) -> _Ahead:
        """Return the times ahead."""
        place = self._time_place()
        if self.columns_.is_time[place]:
            past, zone = demand.clock(self.columns_, self._inputs), self.columns_.zones[place]
            return _Ahead(place, past, *ahead.times_ahead(past, periods, until, zone))
        past = self._inputs[:, place] + float(self.columns_.origin[place])
        numbers = ahead.numbers_ahead(past, periods, until)
        return _Ahead(place, past, numbers, numbers)

    def _time_place(self) -> int:
        """Return which column of the inputs is the time: that so named, or the first of times."""
        names, layout = self.columns_.names, self.layout_
        if layout is not None and layout.time is not None:
            return names.index(str(layout.time))
        if not any(self.columns_.is_time):
            raise ValueError(
                f"forecast: found the inputs {listed(names)}, none of them a time. Accepted is a "
                "model that was fitted with a time: fit(table, outputs=..., time=...)."
            )
        return self.columns_.is_time.index(True)

    def _time_label(self, place: int) -> Any:
        layout = self.layout_
        named = layout is not None and layout.time is not None
        return layout.time if layout is not None and named else self.columns_.names[place]

    def _scenarios(
        self, when: _Ahead, matrix: Float[np.ndarray, "H C"], rng: np.random.Generator
    ) -> Float[np.ndarray, "K H C"]:
        """Return ways in which inputs that are not known may turn out."""
        if when.in_numbers:
            return futures.drawn_stretches(when.past, self._inputs, matrix, SCENARIOS, rng)
        return futures.scenarios(when.past, self._inputs, when.wall, matrix, SCENARIOS, rng)

    def _over_scenarios(
        self,
        many: Float[np.ndarray, "K H C"],
        probability: float,
        samples: int,
        rng: np.random.Generator,
    ) -> Ends:
        """Return mean and interval over several ways in which the inputs may turn out."""
        count = len(many)
        found = [self._prediction(inputs) for inputs in many]
        each = max(1, -(-samples // count))
        drawn = np.concatenate([draws(one, each, rng) for one in found])
        return np.mean([one.mean for one in found], axis=0), *central(drawn, probability)

    def _forecast_table(self, cells: Ends, when: _Ahead) -> Any:
        """Return a forecast as a table: wide, or long if the training table was."""
        layout, size = self.layout_, len(when.wall)
        row, name = np.arange(size), str(self._time_label(when.place))
        if layout is not None and layout.long:
            row, labels = np.repeat(row, len(layout.outputs)), [str(layout.value)]
            columns = {str(layout.by): np.array(layout.outputs * size)}
            parts = [[part.reshape(-1) for part in cells]]
        else:
            columns, labels = {}, list(map(str, self._labels()))
            parts = [[part[:, d] for part in cells] for d in range(len(labels))]
        ends = ("", *interval_suffixes(labels, [name, *map(str, columns)]))
        for label, each in zip(labels, parts, strict=True):
            columns |= {f"{label}{end}": part for end, part in zip(ends, each, strict=True)}
        time = self._like_own_times(when.wall, when.instant, when.place, row)
        return self._by_index(self._table({name: time, **columns}), name)

    def _like_own_times(
        self, wall: Any, instant: Any, place: int, row: Int[np.ndarray, " K"]
    ) -> Any:
        """Return new times in the way in which the training table has its own."""
        zone, rows = self.columns_.zones[place], self._rows
        own = None
        if rows is not None and self.layout_ is not None and self.layout_.time is not None:
            own = rows.index.array(self.layout_.time, "Time")
        return times_like(own, wall[row], instant[row], zone)

    def _starts(self, walls: Shaped[np.ndarray, " W"]) -> Any:
        """Return the starts of windows in the way in which the training table has its times."""
        place = self.columns_.is_time.index(True)
        zone = self.columns_.zones[place]
        instants = walls
        if zone is not None:
            instants = ahead.to_utc(walls, zone)
        return self._like_own_times(walls, instants, place, np.arange(len(walls)))

    def _by_index(self, table: Any, time: str) -> Any:
        """Return a table of pandas by its time, if that was the index of the training table."""
        layout, rows = self.layout_, self._rows
        if layout is None or layout.backend != "pandas" or rows is None:
            return table
        if layout.time is None or layout.time in rows.index.names:
            return table
        return table.set_index(time).rename_axis(index=rows.index.native().index.name)

    def _fixed(self, random_state: Any) -> Any:
        """Return a seed that is the same every time, unless the user wants another."""
        chosen = self.random_state if random_state is None else random_state
        return 0 if chosen is None else chosen

    def _table(self, columns: dict[str, Any]) -> Any:
        """Return columns as a table of the make of the training data."""
        return (
            ResultTable.of(columns)
            if self.layout_ is None
            else build(self.layout_.backend, columns)
        )

    def _labels(self) -> tuple[Any, ...]:
        return self.output_names_ if self.layout_ is None else self.layout_.outputs

    def _output_label(self) -> str:
        """Return what the column that tells outputs apart is called."""
        layout: Layout | None = self.layout_
        return "output" if layout is None or not layout.long else str(layout.by)


def _asked_cells(rows: Rows | None, shape: tuple[int, int]) -> Bool[np.ndarray, "N D"]:
    """Return the cells that a long table asks for; otherwise all."""
    if rows is None or rows.output is None:
        return np.ones(shape, dtype=bool)
    asked = np.zeros(shape, dtype=bool)
    asked[rows.row, rows.output] = True
    return asked


class _Lost(NamedTuple):
    """Draws of lost demand: of which fit, how many by which seed, and what was drawn."""

    posterior: Posterior
    key: tuple[int, int]
    draws: Float[np.ndarray, "S R"]


LATEST: WeakKeyDictionary[Questions, _Lost] = WeakKeyDictionary()
"""The last draws of each estimator. They are not in it, so that no file or copy holds them."""


class Questions(Forecasts):
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
            "output", "hour", "weekday", "date", "month", columns of the training table, several
            of these, or a label for each row; None: one total. A column that is called like one
            of the five words is given as labels: `by=table["hour"]`. A model that was loaded has
            the columns of its time and inputs only.
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
        label, by_column = self._output_label(), self._column_cells
        groups = demand.group_cells(
            self._per_cell(by), self._labels(), self._clock, known.shape, label, by_column
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
        said = diagnose.warnings_of(scores, self, times)
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
        return build(self.layout_.backend, {self._output_label(): np.array(names), **columns})

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

    def _clock(self) -> Shaped[np.ndarray, " N"]:
        """Return the times of the training rows by the wall clock."""
        return demand.clock(self.columns_, self._inputs)

    def _per_cell(self, by: Any) -> Any:
        """Return labels by cell of the model, where there is one for each row of a long table."""
        rows = self._rows
        if rows is None or rows.output is None or np.ndim(by) != 1 or len(by) != len(rows.row):
            return by
        labels = np.asarray(by)
        cells = np.full(self.observations_.shape, labels[0], dtype=labels.dtype)
        cells[rows.row, rows.output] = labels
        return cells

    def _column_cells(self, name: str) -> Shaped[np.ndarray, "N D"] | None:
        """Return what a column of the training table has for each cell; None: no such column."""
        table = None if self._rows is None else self._table_with(name)
        if table is not None:
            labels = self._per_cell(group_labels(table, name))
        elif name in self.columns_.groups:
            values = self.columns_.values(name, self._inputs)
            labels = group_labels(read_table({name: values}), name)
        else:
            return None
        shape = self.observations_.shape
        return labels if labels.ndim == 2 else np.broadcast_to(labels[:, None], shape)

    def _table_with(self, name: str) -> Table | None:
        """Return the training table, or what a file kept of it, if it has a column."""
        assert self._rows is not None
        for table in (self._rows.table, self._rows.index):
            if table is not None and table.has(name):
                return table
        return None


class _Data(NamedTuple):
    """What a fit is about, read and checked."""

    inputs: Float[np.ndarray, "N C"]
    columns: Columns
    observations: Observations
    likelihoods: tuple[Likelihood, ...]
    seen: Observations
    """The bounds as the likelihoods see them."""
    layout: Layout | None = None
    rows: Rows | None = None


class CensoredGP(Questions, RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Gaussian-process regression for outputs that were only partly seen.

    Parameters
    ----------
    likelihood : str, Likelihood, or a list or dict (by output) of these
        How the outputs scatter: "gaussian", "student_t", "poisson", "negative_binomial", ...
    kernels : None, Kernel, list of Kernel, or dict of these by role
        Covariances of the latent functions. None: chosen from the inputs; the engines
        "natural" and "nuts" add a part of time to the means of up to four coupled outputs where the
        observations ask for it, and "natural" a nugget, which no other row shares, to the mean of a
        Poisson: counts mostly scatter by more than it allows. The roles are "mean", "scale" and
        "shape"; without roles the same kernels serve means and scales.
    coupled : bool, or dict of bool by role
        Whether the outputs are learned together (a linear model of coregionalization).
    heteroscedastic : bool
        Whether the scale of the noise varies with the inputs. If not, every role but the mean is
        a learned constant for each output, whatever `kernels` says. Shapes, such as the degrees
        of freedom of a Student-t, vary only if `kernels` names them. Values recorded in steps, of
        which many are the same, are then known to within half a step: where all of them are 0 the
        scale of a Gaussian would vanish.
    use_censoring : bool
        Whether bounds are used. If not, every bound is taken for the value itself.
    rank : int or None, or dict by role of an int or a list with one int for each kernel
        Latent functions per kernel. None: as many as outputs, at most three. Where that is three
        and cells are few (less than ten for each coefficient), "natural" fits a model with one,
        too, and keeps it if its bound is lower by less than the number of coefficients saved.
        `rank_` tells.
    engine : {"natural", "svi", "nuts"}, or function
        How the posterior is found. A function is an engine of your own.
    max_iterations : int or None
        Steps of the engine at most; None: the engine's own default. Of "nuts" these are the steps
        that find the hyper-parameters: `{"draws": 500, "warmup": 300}` are engine settings.
    engine_settings : dict, settings of the engine (such as SVISettings), or None
        Further settings of the engine, such as `{"validation": (X, y)}` for "svi". What is said
        here goes before `max_iterations` and `random_state`.
    inducing_tolerance : float
        Share of a kernel's variance that its inducing inputs may leave out.
    max_inducing : int
        Inducing inputs of a kernel at most.
    random_state : int, RandomState or None
        Seed of what is random: the engines "svi" and "nuts", and `sample`.
    progress : bool
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    posterior_ : Posterior
        Fitted hyper-parameters and the distribution of the latent functions.
    report_ : FitResult
        How the fit ended, in words, with the trace of the bound.
    elbo_ : float
        The evidence lower bound, in the outputs' own units.
    n_iter_ : int
        Steps taken.
    observations_ : Observations
        What was known of the outputs.
    layout_ : Layout or None
        Which column of the training table is what; None if arrays were given.
    output_names_ : tuple of str
        Names of the outputs.
    columns_ : Columns
        How the inputs are read; units_: the units in which the outputs are computed.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Cross-validation and searches must know which test records are censored, or these are scored
    as if they were exact. `cross_val_score(model, X, y, params={"censored": flags})` tells `fit`
    alone. There are three ways to tell `score` as well:

    - `Observations` as y: `cross_val_score(model, X, Observations.from_flags(y, flags))`;
    - a table: `cross_val_score(model, table, params={"outputs": "y", "time": "t", "censored":
      "flag"})`, with names of columns;
    - metadata routing: after `sklearn.set_config(enable_metadata_routing=True)` and
      `model.set_fit_request(censored=True).set_score_request(censored=True)`, by `params` as above.

    Examples
    --------
    >>> from censored_gp import CensoredGP
    >>> hours, bikes = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
    >>> empty = [False, False, True, True, False, False]
    >>> model = CensoredGP(heteroscedastic=False).fit(hours, bikes, censored=empty)
    >>> model.predict([[2.5]]).round(1)
    array([3.6])
    """

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        likelihood: Any = "gaussian",
        kernels: Any = None,
        *,
        coupled: bool | dict[str, bool] = True,
        heteroscedastic: bool = True,
        use_censoring: bool = True,
        rank: int | None = None,
        engine: str = "natural",
        max_iterations: int | None = None,
        engine_settings: Any = None,
        inducing_tolerance: float = 1e-6,
        max_inducing: int = 256,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.likelihood = likelihood
        self.kernels = kernels
        self.coupled = coupled
        self.heteroscedastic = heteroscedastic
        self.use_censoring = use_censoring
        self.rank = rank
        self.engine = engine
        self.max_iterations = max_iterations
        self.engine_settings = engine_settings
        self.inducing_tolerance = inducing_tolerance
        self.max_inducing = max_inducing
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any = None,
        censored: Any = None,
        *,
        outputs: Any = None,
        by: Any = None,
        time: Any = None,
        inputs: Any = None,
        capacity: Any = None,
        lower: Any = None,
        upper: Any = None,
        side: str = "right",
    ) -> Self:
        """Fit to rows of inputs and what is known of their outputs.

        Either X are the inputs and y the outputs, as arrays or data frames. Or X is a table
        (a data frame of pandas, polars or pyarrow, or a dict of columns), `outputs` names its
        columns of outputs, and what is below may be names of columns as well: one name, a list
        with one for each output, or a dict by output. Results are then such tables, too.

        Parameters
        ----------
        X : array, data frame, or dict of columns
            Inputs, or a table with everything; a column of times may be given as datetimes.
        y : array (N,) or (N, D), data frame, or Observations
            Outputs, NaN where missing. May be None if bounds, or names of `outputs`, are given.
        censored : array like y, optional
            Flags: 0 or False exact, 1 or True "at least y", -1 "at most y".
        outputs : name or list of names, optional
            Columns of the table that hold the outputs.
        by : name, optional
            Of a long table, with a row for each output and time: the column that tells the
            outputs apart. `outputs` is then the one column of values.
        time, inputs : name; name or list of names, optional
            Columns that explain the outputs: text and categories may be among the inputs.
        capacity : number or array like y, optional
            "At least y" where y reaches the capacity.
        lower, upper : array like y, optional
            Bounds instead of flags. An end that is not given, or NaN, is y itself; where y is
            missing too it is open.
        side : {"right", "left", "share"}
            What a flag of 1 or True means: "at least" the value; below a detection limit, "at
            most"; or, of counts, that counting stopped at a random moment, so that the value is a
            random share of the truth. If it may be that or a limit, "share_or_limit".

        Examples
        --------
        >>> from censored_gp import CensoredGP
        >>> table = {"hour": [0.0, 1, 2, 3, 4, 5], "bikes": [1.0, 3, 4, 4, 2, 1]}
        >>> model = CensoredGP(heteroscedastic=False)
        >>> filled = model.fit(table, outputs="bikes", time="hour", capacity=4).impute()
        >>> [bool(value >= 4) for value in filled["bikes"]]
        [False, False, True, True, False, False]
        """
        settings = self._settings()
        spec = {"censored": censored, "capacity": capacity, "lower": lower, "upper": upper}
        spec |= {"side": side}
        given = {"by": by, "time": time, "inputs": inputs}
        return self._fit(self._read(X, y, outputs, given, spec), settings)

    def _fit(self, data: _Data, settings: Any) -> Self:
        """Fit to data that have been read."""
        targets.warn_of_little(data.observations)
        if data.layout is not None and data.layout.time is not None and not data.layout.long:
            targets.warn_of_shared_times(data.inputs, data.layout.time)
        keep_compiled_programs()
        with float64(), progress_bar(self.progress) as tell:
            units = choose_units(data.likelihoods, data.seen.values())
            inner = units.apply(data.seen)
            design = starting_values.design_for(
                self.get_params(deep=False), data.likelihoods, data.columns, data.inputs
            )
            models = starting_models(design, inner.values())
            recorded = within_steps(data.seen, design.outputs_of_varying_scale)
            task = Task(
                models[-1],
                units.apply(recorded),
                data.inputs,
                self.inducing_tolerance,
                self.max_inducing,
                **freedom_of(self.kernels, data.columns, data.inputs, self.max_inducing),
                progress=tell,
            )
            settings = self._with_validation(settings, data, units)
            run = self.engine if callable(self.engine) else functools.partial(infer, self.engine)
            # The other engines take many times longer for a fit.
            tried = models if self.engine == "natural" else models[-1:]
            self.posterior_, report = best_fit(run, task, tried, settings)
        self.units_, self._inner = units, inner
        self._keep(data, _in_own_units(report, units, recorded))
        return self

    def _settings(self) -> Any:
        """Check the settings that do not depend on data."""
        checks.check_settings(self.get_params(deep=False))
        return checks.engine_settings(
            self.engine, self.max_iterations, self.engine_settings, self.random_state
        )

    def _read(
        self, X: Any, y: Any, outputs: Any, given: dict[str, Any], spec: dict[str, Any]
    ) -> _Data:
        """Read and check the data; everything that can be wrong with them is found here."""
        if outputs is None:
            checks.refuse_without_outputs(given)
            inputs, columns = checks.validated_inputs(self, X)
            observations = targets.read_targets(y, **spec)
            layout = rows = None
        else:
            checks.refuse_y(y)
            layout, rows, named, observations = read_training(X, outputs, **given, **spec)
            with placed(layout, rows):
                inputs, columns = checks.validated_inputs(self, named)
        targets.same_rows(observations, inputs)
        with placed(layout, rows):
            data = self._data(inputs, columns, observations)
        return data._replace(layout=layout, rows=rows)

    def _data(
        self, inputs: Float[np.ndarray, "N C"], columns: Columns, observations: Observations
    ) -> _Data:
        """Put inputs and observations together as the likelihoods see them."""
        observations.require_observed()
        likelihoods = checks.likelihood_of_each(self.likelihood, observations.names)
        seen = (
            observations
            if self.use_censoring
            else targets.ignore_censoring(observations, likelihoods)
        )
        seen = targets.within_support(seen, likelihoods)
        return _Data(inputs, columns, observations, likelihoods, seen)

    def _with_validation(self, settings: Any, data: _Data, units: Units) -> Any:
        """Return engine settings with the validation data, given as (X, y), in model units."""
        given = getattr(settings, "validation", None)
        if given is None:
            return settings
        try:
            inputs, seen = self._held_out(given, data)
        except ValueError as error:
            raise ValueError(f"engine_settings, validation: {error}") from error
        return dataclasses.replace(settings, validation=(inputs, units.apply(seen)))

    def _held_out(self, given: Any, data: _Data) -> tuple[Float[np.ndarray, "V C"], Observations]:
        """Read inputs and outputs that are held out."""
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"found {given!r}. Accepted is a pair (X, y).")
        inputs, _ = checks.validated_inputs(self, given[0], data.columns)
        observations = targets.read_targets(given[1])
        targets.same_rows(observations, inputs)
        targets.same_outputs(observations, data.observations.names)
        return inputs, targets.within_support(observations, data.likelihoods)

    def _keep(self, data: _Data, report: FitResult) -> None:
        """Keep what was learned, and warn where it is not what a user would expect."""
        self.columns_, self.observations_ = data.columns, data.observations
        self.output_names_ = data.observations.names
        self.report_, self.elbo_ = report, report.elbo
        self.n_iter_ = max(report.site_steps, report.hyper_steps, 1)
        self.layout_, self._rows = data.layout, data.rows
        self._inputs, self._flat = data.inputs, bool(data.observations.flat)
        if not report.converged:
            targets.warn(report.message, ConvergenceWarning)
        for note in report.notes:
            targets.warn(note)

    @property
    def rank_(self) -> dict[str, tuple[int, ...]]:
        """Latent functions of each kernel, by role.

        Examples
        --------
        >>> from censored_gp import MOCGP
        >>> MOCGP(rank=1).fit([[0], [1], [2], [3]], [[1, 9], [2, 7], [3, 8], [2, 9]]).rank_
        {'mean': (1,), 'scale': ()}
        """
        priors = self.posterior_.model.priors
        return {role: tuple(a.shape[2] for a in lmc.mixing) for role, lmc in priors.items()}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a file that `censored_gp.load` reads; see `files.save`.

        >>> from censored_gp import CGP, load
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> path = model.save("bikes.cgp")
        >>> bool(load(path).predict([[2.5]]) == model.predict([[2.5]]))
        True
        """
        return files.save(self, path)

    def __str__(self) -> str:
        return self.summary() if hasattr(self, "posterior_") else repr(self)


def _in_own_units(report: FitResult, units: Units, seen: Observations) -> FitResult:
    """Return the report with the bound in the outputs' own units.

    An exact cell has log p(y) = log p(y in the unit of the model) - log(scale); probabilities of
    intervals have no unit.
    """
    change = float(np.sum(seen.is_exact * np.log(units.scale)))
    trace = tuple(value - change for value in report.trace)
    return dataclasses.replace(report, elbo=report.elbo - change, trace=trace)
