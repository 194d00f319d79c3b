"""Answers of a model side by side in one table: the value, and the interval that holds it."""

from __future__ import annotations

from typing import Any

__all__ = ["side_by_side"]


def side_by_side(keys: tuple[str, ...], tables: dict[str, Any]) -> Any:
    """Return tables of equal rows as one: columns that are not keys get the tables' endings.

    >>> import pyarrow as pa
    >>> mean, low = pa.table({"t": [1], "a": [2.0]}), pa.table({"t": [1], "a": [1.5]})
    >>> side_by_side(("t",), {"": mean, "_low": low}).to_pylist()
    [{'t': 1, 'a': 2.0, 'a_low': 1.5}]
    """
    import narwhals as nw
    import pyarrow as pa

    each = {end: nw.from_native(t, eager_only=True).to_arrow() for end, t in tables.items()}
    first = next(iter(each.values()))
    columns = {name: first[name] for name in first.column_names if name in keys}
    for name in first.column_names:
        if name not in keys:
            columns |= {f"{name}{end}": table[name] for end, table in each.items()}
    return pa.table(columns)
