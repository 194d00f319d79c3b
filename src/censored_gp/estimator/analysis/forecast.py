"""Expected outputs and intervals after the last training time.

Inputs at those times come from a table of the user's, whose rows are matched by their times.
Unknown inputs are drawn from the past, in scenarios over which the predictions are averaged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from censored_gp.data import time as clock
from censored_gp.data.errors import DataError, listed, refuse
from censored_gp.data.inputs import Columns, hours_since, read_inputs, require_kind
from censored_gp.data.layout import HOLIDAY, located, with_own_ahead
from censored_gp.data.tables import Table, is_table, read_table, with_intervals
from censored_gp.data.time import DAY, Times, weekday
from censored_gp.estimator.settings import seed_of
from censored_gp.estimator.training import TrainingData
from censored_gp.prediction.predictive import central_interval, check_draws, check_probability

# The number of scenarios of unknown inputs.
SCENARIOS = 12

Matrix = Float[np.ndarray, "H C"]


def forecast(
    model: Any, periods: int | None, until: Any, inputs: Any, probability: float, samples: int,
    seed: Any,
) -> Any:  # fmt: skip
    """Return expected outputs and intervals at the times ahead; see `CensoredGP.forecast`."""
    check_probability(probability)
    check_draws(samples, "samples")
    training, columns, layout = model.training_, model.columns_, model.layout_
    c = training.time_column
    named = None if layout is None else layout.time
    if c is None or (named is not None and columns.names[c] != str(named)):
        raise ValueError(
            "forecast needs a model that was fitted with a column of dates or times, "
            f"fit(table, outputs=..., time=...), got one of the numbers {listed(columns.names)}. "
            "Use predict for rows of your own."
        )
    name = columns.names[c]
    past = columns.values(name, training.inputs)
    wall, instants = clock.times_ahead(past, periods, until, columns.zones[c])
    with located(inputs):
        known = with_own_ahead(inputs, layout)
        matrix = known_inputs(known, columns, name, wall, instants)
    for column, origin in enumerate(columns.origin):
        if isinstance(origin, np.datetime64):
            matrix[:, column] = hours_since(wall, origin)
    if layout is not None and layout.holidays is not None:
        place = columns.names.index(HOLIDAY)
        days = clock.is_holiday(wall, layout.holidays)
        matrix[:, place] = days - float(columns.origin[place])
    if np.isnan(matrix).any():
        rng = np.random.default_rng(seed_of(seed, model.random_state, 0))
        filled = scenarios(past, training.inputs, wall, matrix, SCENARIOS, rng)
        found = [model.distribution_at(each) for each in filled]
        drawn = np.concatenate([each.sample(-(-samples // SCENARIOS), rng) for each in found])
        mean = np.mean([each.mean for each in found], axis=0)
        cells = mean, *central_interval(drawn, probability)
    else:
        found = model.distribution_at(matrix)
        cells = found.mean, *found.interval(probability)
    return _table(training, cells, name, wall, instants)


def _table(
    training: TrainingData, cells: tuple[Matrix, ...], name: str, wall: Times, instants: Times
) -> Any:
    """Return a forecast as a table: wide, or long if the training table was."""
    layout, columns = training.layout, {}
    outputs = {str(name): [part[:, d] for part in cells] for d, name in enumerate(training.labels)}
    if layout is not None and layout.long:
        wall, instants = (np.repeat(times, len(outputs)) for times in (wall, instants))
        columns[str(layout.by)] = np.array(layout.outputs * len(cells[0]))
        outputs = {str(layout.value): [part.reshape(-1) for part in cells]}
    keys = {name: training.timestamps(wall, instants), **columns}
    table = training.table(with_intervals(keys, outputs))
    index = None if training.rows is None else training.rows.index
    if layout is None or index is None or layout.backend != "pandas":
        return table
    if layout.time in (None, *index.names):
        return table
    # The time was (in) the index of the training table.
    levels = [each for each in index.native().index.names if each in table.columns]
    return table.set_index(levels) if levels else table.set_index(name).rename_axis(index=None)


def scenarios(
    past: Times,
    inputs: Float[np.ndarray, "N C"],
    ahead: Times,
    matrix: Matrix,
    count: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "K H C"]:
    """Fill unknown inputs ahead with those of random days of the past.

    Each day ahead takes all of its inputs from one day of the past, of the same weekday if there
    are two such days or more, at the nearest time of the day: weather lasts, so hours are not
    drawn one by one.
    """

    def time_of_day(times: Times) -> Int[np.ndarray, " N"]:
        return times.astype("datetime64[s]").astype(np.int64) % DAY

    filled, unknown = np.repeat(matrix[None], count, axis=0), np.isnan(matrix).any(axis=0)
    past_days, days = past.astype("datetime64[D]"), ahead.astype("datetime64[D]")
    choices = np.unique(past_days)
    for day in np.unique(days):
        rows = np.flatnonzero(days == day)
        alike = choices[weekday(choices) == weekday(day)]
        pool = alike if len(alike) >= 2 else choices
        for k, source in enumerate(rng.choice(pool, size=count)):
            sources = np.flatnonzero(past_days == source)
            apart = np.subtract.outer(time_of_day(ahead[rows]), time_of_day(past[sources]))
            nearest = sources[np.argmin(np.abs(apart), axis=1)]
            filled[k][np.ix_(rows, unknown)] = inputs[np.ix_(nearest, unknown)]
    return np.where(np.isnan(matrix), filled, matrix)


def known_inputs(X: Any, columns: Columns, time: Any, wall: Times, instants: Times) -> Matrix:
    """Return the inputs that a table gives for the times ahead, NaN where it has no such column.

    A table with the column `time` has its rows in any order, and may have more than are needed.
    One without has a row for each time ahead, in their order.
    """
    matrix = np.full((len(wall), len(columns.names)), np.nan)
    if X is None:
        return matrix
    if not is_table(X):
        raise DataError(f"must be a table, got {type(X).__name__}.", argument="inputs")
    table = read_table(X)
    accepted = [source for source in columns.groups if source != str(time)]
    used = [source for source in accepted if table.has(source)]
    if not accepted:
        said = "got a table, but the model has no inputs beside its time."
        raise DataError(said, argument="inputs", hint="Leave it out.")
    if not used:
        said = f"must have columns among {listed(accepted)}, got {listed(table.names)}."
        raise DataError(said, argument="inputs")
    values, _ = read_inputs(table.select(used), columns.only(used))
    rows = _rows(table, columns, time, (wall, instants), values)
    matrix[:, [c for source in used for c in columns.groups[source]]] = values[rows]
    return matrix


def _rows(
    table: Table, columns: Columns, time: Any, ahead: tuple[Times, Times], values: Matrix
) -> Int[np.ndarray, " H"]:
    """Return the row of a table for each time ahead, which are by the wall clock and in UTC."""
    wall, instants = ahead
    if not table.has(time):
        if len(values) != len(wall):
            said = f"must have one row for each of the {len(wall)} times ahead, or a column of "
            raise DataError(f"{said}their times, got {len(values)} rows.", argument="inputs")
        return np.arange(len(wall))
    c = columns.names.index(str(time))
    column = table.with_times(time).column(time, "Input", columns.zones[c] and "UTC")
    require_kind(column, True, columns.zones[c])
    refuse(np.isnat(column.values), column.name, "Input", "got a missing time.")
    given, wanted = column.values.astype("datetime64[s]"), instants.astype("datetime64[s]")
    distinct, first, code = np.unique(given, return_index=True, return_inverse=True)
    other, said = values != values[first[code]], "got the time of row {} again, with other inputs."
    refuse(np.any(other, axis=1), str(time), "Input", said, first[code])
    place = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
    absent = np.flatnonzero(distinct[place] != wanted)
    if len(absent):
        said = f"must have a row for each of the {len(wall)} times from {wall[0]} to {wall[-1]}, "
        said += f"got none for {time} {wall[absent[0]]} ({len(absent)} missing)."
        raise DataError(said, argument="inputs")
    return first[place]
