"""The questions that people with censored data have, asked of a fitted model.

A mix-in of the estimator. The work is in `demand` and `diagnose`; here the data are handed over,
and answers become tables of the make that the training data had. What lies ahead is in `forecasts`.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from censored_gp import demand, diagnose
from censored_gp.answers import drawn_in_parts
from censored_gp.diagnose import Diagnosis
from censored_gp.forecasts import Forecasts
from censored_gp.natives import Opened, build, group_labels, open_table
from censored_gp.posterior import Posterior
from censored_gp.summary import Coregionalization, coregionalization, describe, prior_correlation

__all__ = ["Questions"]


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
            labels = group_labels(open_table({name: values}), name)
        else:
            return None
        shape = self.observations_.shape
        return labels if labels.ndim == 2 else np.broadcast_to(labels[:, None], shape)

    def _table_with(self, name: str) -> Opened | None:
        """Return the training table, or what a file kept of it, if it has a column."""
        assert self._rows is not None
        whole, keys = self._rows.table, self._rows.keys
        for native in (whole, keys.table() if keys.labels else None):
            table = None if native is None else open_table(native)
            if table is not None and table.has(name):
                return table
        return None
