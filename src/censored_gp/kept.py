"""The keys of a training table, kept with the model: to give results their rows, now and later.

What is kept is plain arrays, so that a file can hold it. As long as the program runs the table
itself is there too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Shaped

from censored_gp.natives import Opened, open_table, plain

__all__ = ["Kept"]

Plain = Shaped[np.ndarray, " N"]


@dataclass(frozen=True)
class Kept:
    """A table as labels, arrays (times with a zone in UTC) and zones; the index likewise."""

    make: Any
    rows: int
    labels: tuple[Any, ...]
    columns: tuple[Plain, ...]
    zones: tuple[str | None, ...]
    index: tuple[Any, Plain | None, str | None] = (None, None, None)
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

    def _series(self, values: Plain, zone: str | None) -> nw.Series:
        listed = values.tolist() if values.dtype.kind in "OU" else values
        series = nw.new_series("", listed, backend=self.make)
        if zone is None:
            return series
        return series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)

    def _empty(self) -> Any:
        return nw.from_dict({"": []}, backend=self.make).drop("").to_native()

    def _pandas(self, columns: dict[Any, Any]) -> Any:
        # Imported when asked for: the table was one of pandas, so that it should be there.
        import pandas as pd

        name, values, zone = self.index
        index = pd.RangeIndex(self.rows)
        if values is not None:
            index = pd.Index(self._series(values, zone).to_native())
        frame = pd.DataFrame({label: s.array for label, s in columns.items()}, index=index)
        return frame.rename_axis(index=name)


def _zone(column: Any) -> str | None:
    series = nw.from_native(column, series_only=True, pass_through=True)
    return getattr(series.dtype, "time_zone", None) if isinstance(series, nw.Series) else None


def _storable(column: Any) -> Plain:
    """Return a column as numbers, times or text."""
    values = plain(column)
    return values if values.dtype.kind in "biufM" else values.astype(str)


def _index(table: Opened) -> tuple[Any, Plain | None, str | None]:
    if table.make != "pandas":
        return None, None, None
    index = table.native.index
    counted = type(index).__name__ == "RangeIndex" and index.equals(type(index)(len(index)))
    if counted or index.nlevels > 1:
        return index.name, None, None
    series = index.to_series()
    return index.name, _storable(series), _zone(series)
