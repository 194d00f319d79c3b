"""Shared by plots and report: the x axis, predictions of training rows, rows of result tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Float, Int, Shaped

from censored_gp.data.errors import listed
from censored_gp.prediction.predictive import Prediction

GOLDEN_RATIO = 0.6180339887498949


class XAxis(NamedTuple):
    """Positions along the x axis and the axis label."""

    values: Shaped[np.ndarray, " N"]
    """Times, numbers, or codes of categories."""
    label: str
    categories: list[str] | None = None
    """Names of the categories by code; None if the axis is continuous."""

    @property
    def is_time(self) -> bool:
        """Whether positions are times."""
        return self.values.dtype.kind == "M"


def training_inputs(model: Any) -> Float[np.ndarray, "N C"]:
    """Return the centred input matrix that a model was fitted to."""
    return model.training_.inputs


def training_axis(model: Any) -> XAxis:
    """Return the x axis of the training rows.

    It is the first time column; without one, the first numeric column; if all inputs are
    categorical, the combinations of categories that occur.
    """
    columns, inputs = model.columns_, training_inputs(model)
    if any(columns.is_time):
        name = columns.names[columns.is_time.index(True)]
        return XAxis(columns.values(name, inputs), name)
    if None in columns.levels:
        column = columns.levels.index(None)
        return XAxis(inputs[:, column] + float(columns.origin[column]), columns.names[column])
    parts = zip(*(columns.values(source, inputs) for source in columns.groups), strict=True)
    names, codes = np.unique([", ".join(row) for row in parts], return_inverse=True)
    return XAxis(codes, ", ".join(columns.groups), names.tolist())


def predict_training(model: Any, rows: Any = slice(None)) -> Prediction:
    """Return the posterior predictive distribution at training rows, not using their own bounds."""
    inputs = training_inputs(model)[rows]
    return Prediction(model.posterior_, model.units_, inputs, model.output_names_)


def output_position(names: Sequence[str], output: Any) -> int:
    """Return the position of an output given by name or position.

    >>> output_position(("a", "b"), "b")
    1
    """
    if isinstance(output, str) and output in names:
        return list(names).index(output)
    if not isinstance(output, str | bool) and output in range(len(names)):
        return int(output)
    raise ValueError(
        f"`output` must be one of {listed(names)} or a position from 0 to {len(names) - 1}, "
        f"got {output!r}."
    )


def jitter(codes: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return offsets within ±0.3 that keep rows of one category from hiding each other.

    Multiples of the golden ratio fill the interval evenly, however many rows there are.

    >>> jitter(np.array([0, 1, 1])).round(2).tolist()
    [-0.3, -0.3, 0.07]
    """
    rank = np.zeros(len(codes))
    for code in np.unique(codes):
        rank[codes == code] = np.arange(np.sum(codes == code))
    return 0.6 * (rank * GOLDEN_RATIO % 1.0 - 0.5)


def records(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a result table: a list of rows, a dict of columns, or a data frame.

    >>> records({"a": np.array([1, 2])})
    [{'a': 1}, {'a': 2}]
    """
    if isinstance(table, list):
        return table
    if isinstance(table, Mapping):
        columns = {str(name): np.asarray(values).tolist() for name, values in table.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return nw.from_native(table, eager_only=True).rows(named=True)
