"""The table that a model was fitted to and holds, for commands that are given no file."""

from __future__ import annotations

from typing import Any

from censored_gp.cli.arrow import compute, require_pyarrow
from censored_gp.cli.tabulate import side_by_side

__all__ = ["inputs_of", "new_keys", "row_keys", "told_apart"]

MICROSECONDS = 3_600_000_000
"""Of an hour."""
DIGITS = 12
"""Of a number that was shifted by the training mean and back: the last ones are of rounding."""


def inputs_of(model: Any) -> Any:
    """Return the inputs that a model was fitted to, a row for each of its rows, under their names.

    >>> from types import SimpleNamespace
    >>> from censored_gp.data.inputs import read_inputs
    >>> inputs, columns = read_inputs({"depth": [0.1, 0.2, 0.7], "sky": ["dry", "wet", "dry"]})
    >>> model = SimpleNamespace(training_=SimpleNamespace(inputs=inputs), columns_=columns)
    >>> inputs_of(model).to_pydict()
    {'depth': [0.1, 0.2, 0.7], 'sky': ['dry', 'wet', 'dry']}
    """
    pa = require_pyarrow()
    groups = model.columns_.groups
    return pa.table({name: _column(model, places) for name, places in groups.items()})


def _column(model: Any, places: tuple[int, ...]) -> Any:
    """Return one of the user's columns: times, words or numbers."""
    import numpy as np

    pa, columns, first = require_pyarrow(), model.columns_, places[0]
    values = model.training_.inputs[:, list(places)]
    if columns.levels[first] is not None:
        words = np.array([columns.levels[place][1] for place in places])
        return pa.array(words[np.argmax(values, axis=1)].tolist())
    if not columns.is_time[first]:
        numbers = values[:, 0] + float(columns.origin[first])
        return pa.array([float(f"{number:.{DIGITS}g}") for number in numbers])
    since = np.round(values[:, 0] * MICROSECONDS).astype("timedelta64[us]")
    wall = pa.array(np.asarray(columns.origin[first]).astype("datetime64[us]") + since)
    zone = columns.zones[first]
    if zone is None:
        return wall
    # The model knows the wall clock alone, so that either of a doubled hour is as good.
    return compute().assume_timezone(wall, zone, ambiguous="earliest", nonexistent="latest")


def row_keys(model: Any) -> Any:
    """Return the inputs of each row of the training table, where no time tells rows apart."""
    if model.layout_ is None:
        return inputs_of(model)
    if model.layout_.time is not None:
        return None
    return inputs_of(model).take(model.training_.rows.row)


def new_keys(model: Any, table: Any) -> Any:
    """Return the inputs of each row of a new table, where no time tells rows apart."""
    layout = model.layout_
    if layout is None:
        return table
    if layout.time is not None:
        return None
    inputs = table.select([str(name) for name in layout.inputs])
    if not layout.long or layout.by in table.column_names:
        return inputs
    # Such a table asks for all outputs at each of its rows.
    each = len(layout.outputs)
    return inputs.take([row for row in range(len(inputs)) for _ in range(each)])


def told_apart(model: Any, answers: dict[str, Any], keys: Any) -> Any:
    """Return answers about rows side by side, after the columns that tell the rows apart."""
    layout = model.layout_
    both = side_by_side(
        () if layout is None else layout.keys,
        {end: _as_table(model, cells) for end, cells in answers.items()},
    )
    if keys is None:
        return both
    columns = {name: keys[name] for name in keys.column_names if name not in both.column_names}
    return require_pyarrow().table(columns | {name: both[name] for name in both.column_names})


def _as_table(model: Any, cells: Any) -> Any:
    """Return an answer as a table: whoever fitted arrays gets arrays."""
    if model.layout_ is not None:
        return cells
    columns = cells.reshape(len(cells), -1).T
    return dict(zip(map(str, model.output_names_), columns, strict=True))
