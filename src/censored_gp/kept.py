"""The keys of a training table, kept with the model: to give results their rows, now and later.

What is kept is plain arrays, so that a file can hold it. As long as the program runs the table
itself is there too.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Shaped

from censored_gp.natives import Opened, in_zone, open_table, plain

__all__ = ["Kept"]

Plain = Shaped[np.ndarray, " N"]


@dataclass(frozen=True)
class Kept:
    """A table as labels, arrays (times with a zone in UTC) and zones; the index likewise.

    An index of several levels has a tuple of each: names, arrays and zones.
    """

    make: Any
    rows: int
    labels: tuple[Any, ...]
    columns: tuple[Plain, ...]
    zones: tuple[str | None, ...]
    index: tuple[Any, Any, Any] = (None, None, None)
    native: Any = field(init=False, default=None, repr=False, compare=False)

    @classmethod
    def of(cls, data: Any) -> Kept:
        """Keep a table.

        >>> Kept.of({"station": ["a", "b"]}).table()
        {'station': ['a', 'b']}
        """
        table = open_table(data)
        raw = [table.raw(label, "Column") for label in table.labels]
        rows = len(data) if table.make == "pandas" else len(table)
        kept = cls(
            table.make, rows, tuple(table.labels), tuple(map(_storable, raw)),
            tuple(map(_zone, raw)), _index(table),
        )  # fmt: skip
        object.__setattr__(kept, "native", data)
        return kept

    def table(self) -> Any:
        """Return the table, or one like it if the model came from a file."""
        if self.native is not None:
            return self.native
        triples = zip(self.labels, self.columns, self.zones, strict=True)
        if self.make == "dict":
            return {label: column for label, column, _ in triples}
        made = {label: self._series(values, zone) for label, values, zone in triples}
        if self.make != "pandas":
            return nw.from_dict(made, backend=self.make).to_native() if made else self._empty()
        return self._pandas({label: series.to_native() for label, series in made.items()})

    def column(self, label: Any) -> Any:
        """Return a column in the table's own make; the index, if there is no such column.

        >>> Kept.of({"day": [1, 2]}).column("day")
        [1, 2]
        """
        table = self.table()
        if self.make != "pandas":
            return table[label]
        return table[label] if label in table.columns else table.index.to_series()

    def _series(self, values: Plain, zone: str | None) -> nw.Series:
        # pandas has no type for days: they were objects, and are again.
        days = values.dtype == "datetime64[D]" and self.make == "pandas"
        listed = values.tolist() if values.dtype.kind in "OU" or days else values
        series = nw.new_series("", listed, backend=self.make)
        return series if zone is None else in_zone(series, zone)

    def _empty(self) -> Any:
        return nw.from_dict({"": []}, backend=self.make).drop("").to_native()

    def _pandas(self, columns: dict[Any, Any]) -> Any:
        # Imported when asked for: the table was one of pandas, so that it should be there.
        import pandas as pd

        name, values, zone = self.index
        index = pd.RangeIndex(self.rows)
        if isinstance(values, tuple):
            pairs = zip(values, zone, strict=True)
            index = pd.MultiIndex.from_arrays([self._series(*pair).to_native() for pair in pairs])
        elif values is not None:
            index = pd.Index(self._series(values, zone).to_native())
        frame = pd.DataFrame({label: s.array for label, s in columns.items()}, index=index)
        frame.index.names = list(name) if isinstance(values, tuple) else [name]
        return frame


def _zone(column: Any) -> str | None:
    series = nw.from_native(column, series_only=True, pass_through=True)
    return getattr(series.dtype, "time_zone", None) if isinstance(series, nw.Series) else None


def _storable(column: Any) -> Plain:
    """Return a column as numbers, times or text."""
    values = plain(column)
    if values.dtype == object and len(values) and all(map(_is_day, values)):
        return values.astype("datetime64[D]")
    return values if values.dtype.kind in "biufM" else values.astype(str)


def _is_day(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _index(table: Opened) -> tuple[Any, Any, Any]:
    if table.make != "pandas":
        return None, None, None
    index = table.native.index
    if type(index).__name__ == "RangeIndex" and index.equals(type(index)(len(index))):
        return index.name, None, None
    levels = [index.get_level_values(k).to_series() for k in range(index.nlevels)]
    arrays, zones = tuple(map(_storable, levels)), tuple(map(_zone, levels))
    if index.nlevels > 1:
        return tuple(index.names), arrays, zones
    return index.name, arrays[0], zones[0]
