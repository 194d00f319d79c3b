"""What is drawn of each output: rows chosen so that the page stays small, rounded numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from censored_gp.data.observations import Observations
from censored_gp.plotting.outputs import categories_of, positions, spread_out

__all__ = ["Series", "rows_to_draw", "series_of"]

MOST_IN_ALL = 24_000
"""Points of all outputs together: what bounds the size of the page."""
FEWEST = 300
KINDS = ("exact", "right", "left", "interval", "missing")
"""Kinds of cells by their number on the page."""


class Series(NamedTuple):
    """Columns of each output, in the order of x, and how many rows there are in all."""

    label: str
    is_time: bool
    outputs: list[dict[str, list[Any]]]
    drawn: int
    rows: int
    in_categories: bool = False
    """Whether rows have nothing but categories: each column `g` then has the name of its own."""


def rows_to_draw(
    x: Shaped[np.ndarray, " N"], mean: Float[np.ndarray, "N D"], most: int
) -> Int[np.ndarray, " K"]:
    """Return rows in the order of x: all, or of each stretch its lowest and its highest.

    >>> x, mean = np.arange(6.0), np.array([[0.0], [9.0], [1.0], [5.0], [4.0], [-3.0]])
    >>> rows_to_draw(x, mean, 4).tolist()
    [0, 1, 3, 5]
    """
    order = np.argsort(x, kind="stable")
    if len(order) <= most:
        return order
    spread = np.std(mean, axis=0)
    level = ((mean - mean.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
    kept = []
    for stretch in np.array_split(order, max(1, most // 2)):
        ends = {int(np.argmin(level[stretch])), int(np.argmax(level[stretch]))}
        kept.extend(stretch[sorted(ends)])
    return np.array(kept)


def series_of(model: Any, probability: float, max_points: int) -> Series:
    """Return what is drawn: predictions with intervals, what was seen, and estimates."""
    x, label = positions(model)
    known, outputs = model.observations_, len(model.output_names_)
    most = max(2, min(max_points, max(FEWEST, MOST_IN_ALL // outputs)))
    few = len(x) <= most
    level = np.zeros((len(x), 1)) if few else model._prediction(model._inputs).mean
    rows = rows_to_draw(x, level, most)
    found = model._prediction(model._inputs[rows])
    low, high = found.interval(probability)
    filled = model._filled(rows)[0]
    is_time = x.dtype.kind == "M"
    names = categories_of(model)
    groups = {} if names is None else _in_groups(x[rows], names)
    places = (x.astype("datetime64[ms]").astype(np.int64) if is_time else x)[rows].tolist()
    columns = [
        {
            "x": places,
            "m": rounded(found.mean[:, d]),
            "lo": rounded(low[:, d]),
            "hi": rounded(high[:, d]),
            **_seen(known.rows(rows), d),
            "e": rounded(filled[:, d]),
            **groups,
        }
        for d in range(outputs)
    ]
    return Series(label, is_time, columns, len(rows), len(x), names is not None)


def _in_groups(codes: Int[np.ndarray, " K"], names: list[str]) -> dict[str, list[Any]]:
    """Return the category of each row, its place beside the middle, and whether it is the first."""
    first = np.zeros(len(codes), dtype=int)
    first[np.unique(codes, return_index=True)[1]] = 1
    beside = spread_out(codes) - codes
    return {
        "g": [names[code] for code in codes],
        "j": [round(float(place), 3) for place in beside],
        "f": first.tolist(),
    }


def _seen(known: Observations, d: int) -> dict[str, list[Any]]:
    """Return what was recorded of each cell: kind, value, and the upper end of an interval."""
    kind = np.select([getattr(known, f"is_{name}")[:, d] for name in KINDS], range(len(KINDS)))
    value = np.where(known.is_interval | known.is_right, known.lower, known.values())[:, d]
    upper = np.where(known.is_interval[:, d], known.upper[:, d], np.nan)
    return {"k": kind.tolist(), "v": rounded(value), "u": rounded(upper)}


def rounded(values: Float[np.ndarray, " N"], digits: int = 5) -> list[float | None]:
    """Return numbers of few digits, None where there is none: a page need not carry more.

    >>> rounded(np.array([1.23456789, np.nan, 123456.7]))
    [1.2346, None, 123460.0]
    """
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values.tolist()]
