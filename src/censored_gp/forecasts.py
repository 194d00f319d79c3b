"""What will be, and how much would be enough: a fitted model asked about times to come.

A mix-in of the estimator. The work is in `ahead`, `futures` and `demand`; here the data are handed
over, and answers become tables of the make that the training data had.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.utils.validation import check_is_fitted

from censored_gp import ahead, demand, futures
from censored_gp.answers import Answers
from censored_gp.frames import Layout, Rows
from censored_gp.natives import ResultTable, build, names_of_ends, times_like
from censored_gp.predict import central, drawn_in_parts, draws
from censored_gp.tables import listed, zone_rules

__all__ = ["Forecasts"]

SCENARIOS = 12
"""Ways in which inputs that are not known may turn out, in a forecast."""
Cells = tuple[Float[np.ndarray, "H D"], ...]


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
        for column, hours in ahead.in_hours(self.columns_, when.wall).items():
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
            return ahead.drawn_stretches(when.past, self._inputs, matrix, SCENARIOS, rng)
        return ahead.scenarios(when.past, self._inputs, when.wall, matrix, SCENARIOS, rng)

    def _over_scenarios(
        self,
        many: Float[np.ndarray, "K H C"],
        probability: float,
        samples: int,
        rng: np.random.Generator,
    ) -> Cells:
        """Return mean and interval over several ways in which the inputs may turn out."""
        count = len(many)
        found = [self._prediction(inputs) for inputs in many]
        each = max(1, -(-samples // count))
        drawn = np.concatenate([draws(one, each, rng) for one in found])
        return np.mean([one.mean for one in found], axis=0), *central(drawn, probability)

    def _forecast_table(self, cells: Cells, when: _Ahead) -> Any:
        """Return a forecast as a table: wide, or long if the training table was."""
        layout, size = self.layout_, len(when.wall)
        row, name = np.arange(size), str(self._time_label(when.place))
        if layout is not None and layout.long:
            row, labels = np.repeat(row, len(layout.outputs)), [str(layout.value)]
            columns = {layout.by: np.array(layout.outputs * size)}
            parts = [[part.reshape(-1) for part in cells]]
        else:
            columns, labels = {}, list(map(str, self._labels()))
            parts = [[part[:, d] for part in cells] for d in range(len(labels))]
        ends = ("", *names_of_ends(labels, [name, *map(str, columns)]))
        for label, each in zip(labels, parts, strict=True):
            columns |= {f"{label}{end}": part for end, part in zip(ends, each, strict=True)}
        time = self._like_own_times(when.wall, when.instant, when.place, row)
        return self._by_index(self._table({name: time, **columns}), name)

    def _like_own_times(
        self, wall: Any, instant: Any, place: int, row: Int[np.ndarray, " K"]
    ) -> Any:
        """Return new times in the way in which the training table has its own."""
        zone, rows = self.columns_.zones[place], self._rows
        make = None if self.layout_ is None else self.layout_.make
        own = None
        if rows is not None and self.layout_ is not None and self.layout_.time is not None:
            own = rows.keys.column(self.layout_.time)
        return times_like(own, make, wall[row], instant[row], zone)

    def _starts(self, walls: Shaped[np.ndarray, " W"]) -> Any:
        """Return the starts of windows in the way in which the training table has its times."""
        place = self.columns_.is_time.index(True)
        zone = self.columns_.zones[place]
        instants = walls
        if zone is not None:
            rules = zone_rules(zone)
            instants = np.array([ahead.in_utc(wall, rules) for wall in walls])
        return self._like_own_times(walls, instants, place, np.arange(len(walls)))

    def _by_index(self, table: Any, time: str) -> Any:
        """Return a table of pandas by its time, if that was the index of the training table."""
        layout, rows = self.layout_, self._rows
        if layout is None or layout.make != "pandas" or rows is None:
            return table
        if layout.time is None or layout.time in rows.keys.labels:
            return table
        return table.set_index(time).rename_axis(index=rows.keys.index[0])

    def _fixed(self, random_state: Any) -> Any:
        """Return a seed that is the same every time, unless the user wants another."""
        chosen = self.random_state if random_state is None else random_state
        return 0 if chosen is None else chosen

    def _table(self, columns: dict[str, Any]) -> Any:
        """Return columns as a table of the make of the training data."""
        return (
            ResultTable.of(columns) if self.layout_ is None else build(self.layout_.make, columns)
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
