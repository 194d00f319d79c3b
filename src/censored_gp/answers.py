"""What a fitted model says of the outputs at given inputs: in arrays, or in tables like the given.

A mix-in of the estimator. All computing is in `predict`; here inputs are read and answers are put
into the shape in which the data came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from censored_gp import checks, frames, targets
from censored_gp.frames import Layout, Rows
from censored_gp.inputs import Columns
from censored_gp.model import Units, prior_draw
from censored_gp.natives import is_table
from censored_gp.nodes import MOST_ROWS
from censored_gp.observations import Observations
from censored_gp.posterior import Posterior, Seen
from censored_gp.predict import Prediction, drawn_in_parts, draws
from censored_gp.readings import Spec
from censored_gp.sites import Sites
from censored_gp.tables import first_problem

__all__ = ["Answers", "drawn_in_parts", "draws"]

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
        truth = self._truth(X, y, Spec(censored, capacity, lower, upper, side))
        self._check_alike(truth, prediction)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, float)
        each = [
            r2_score(truth.lower[rows, d], prediction.mean[rows, d], sample_weight=weight[rows])
            for d, rows in enumerate(truth.is_exact.T)
            if rows.any()
        ]
        return float(np.mean(each)) if each else float("nan")

    def _truth(self, X: Any, y: Any, spec: Spec) -> Observations:
        said = (spec.censored, spec.lower, spec.upper, spec.capacity)
        if y is None and self.layout_ is not None and is_table(X):
            anew = any(each is not None for each in said)
            layout = dataclasses.replace(self.layout_, spec=spec) if anew else self.layout_
            return frames.read_truth(X, layout)
        return targets.read_targets(y, *said, spec.side)

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
            rows = Rows(rows.keys, place.reshape(-1)[rows.row], rows.output)
        return matrix, rows

    def _matrix(self, X: Any) -> Float[np.ndarray, "N C"]:
        return checks.validated_inputs(self, X, self.columns_)[0]

    def _prediction(
        self,
        inputs: Float[np.ndarray, "N C"],
        bounds: Observations | None = None,
        seen: Seen | None = None,
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
    problem = first_problem(~(values.is_exact | values.is_missing), values.names, "Output")
    if problem:
        row, d, place = problem
        raise ValueError(
            f"{place}: found from {values.lower[row, d]:g} to {values.upper[row, d]:g}. Accepted "
            "are values. For bounds use predict_distribution(X).log_probability(lower, upper), or "
            "metrics.nlpd."
        )
