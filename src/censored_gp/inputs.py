"""From tables and arrays to the centred float64 matrix that kernels see.

Times become hours, numbers are shifted by their training mean and otherwise keep the user's unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["Columns", "duration_hours"]

HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}


def duration_hours(duration: str) -> float:
    """The hours of a duration such as `"30min"`, `"1d"` or `"1.5h"`."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", str(duration))
    if match is None or match[2] not in HOURS:
        raise ValueError(
            f"{duration!r} is not a duration. Accepted is a number followed by one of "
            f'{", ".join(HOURS)}, such as "30min", "1d" or "7d".'
        )
    return float(match[1]) * HOURS[match[2]]


@dataclass(frozen=True)
class Columns:
    """What the columns of the inputs are called, which are times, and where each has its zero."""

    names: tuple[str, ...]
    is_time: tuple[bool, ...]
    origin: tuple[float | np.datetime64, ...]

    @classmethod
    def plain(cls, number: int) -> Columns:
        """Numbers without names: x0, x1, ... with their zero where it is."""
        return cls(tuple(f"x{c}" for c in range(number)), (False,) * number, (0.0,) * number)

    def indices(
        self, wanted: Iterable[int | str] | None, *, asked_by: str = "a kernel"
    ) -> tuple[int, ...]:
        """The positions of the wanted columns, given by name or index; all of them for None."""
        if wanted is None:
            return tuple(range(len(self.names)))
        return tuple(self._index(column, asked_by) for column in wanted)

    def require_times(self, index: Iterable[int], *, asked_by: str, duration: str) -> None:
        """Refuse a duration on a column that is not a time."""
        for c in index:
            if not self.is_time[c]:
                times = [name for i, name in enumerate(self.names) if self.is_time[i]]
                raise ValueError(
                    f"{asked_by} gives the duration {duration!r}, but column {self.names[c]!r} "
                    f"holds numbers, not times. Give a number in the unit of the column, or look "
                    f"at a column of times ({_listed(times)}) with columns=..."
                )

    def _index(self, column: int | str, asked_by: str) -> int:
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        if not isinstance(column, str | bool) and column in range(len(self.names)):
            return int(column)
        raise ValueError(
            f"{asked_by} looks at column {column!r}, which is not there. The inputs have "
            f"{_listed(self.names)}. Give one of these names, or an index from 0 to "
            f"{len(self.names) - 1}."
        )


def _listed(names: Iterable[str]) -> str:
    """Names in quotes, for messages."""
    return ", ".join(map(repr, names)) or "none"
