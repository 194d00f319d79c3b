"""Answers of a model side by side in one table: the value, and the interval that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from censored_gp.cli.arrow import require_pyarrow

__all__ = ["as_arrow", "side_by_side"]


def as_arrow(table: Any) -> Any:
    """Return a table of any make, a list of rows or a dict of columns as a pyarrow table.

    >>> as_arrow([{"a": 1}, {"a": 2}])["a"].to_pylist()
    [1, 2]
    """
    pa = require_pyarrow()
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, Mapping):
        return pa.table(dict(table))
    if isinstance(table, list | tuple):
        return pa.Table.from_pylist([dict(row) for row in table])
    import narwhals as nw

    return nw.from_native(table, eager_only=True).to_arrow()


def side_by_side(keys: tuple[str, ...], tables: dict[str, Any]) -> Any:
    """Return tables of equal rows as one: columns that are not keys get the tables' endings.

    >>> import pyarrow as pa
    >>> mean, low = pa.table({"t": [1], "a": [2.0]}), pa.table({"t": [1], "a": [1.5]})
    >>> side_by_side(("t",), {"": mean, "_low": low}).to_pylist()
    [{'t': 1, 'a': 2.0, 'a_low': 1.5}]
    """
    # Imported when asked for: the help must not wait for it.
    from censored_gp.data.tables import interval_suffixes

    each = {end: as_arrow(table) for end, table in tables.items()}
    first = next(iter(each.values()))
    columns = {name: first[name] for name in first.column_names if name in keys}
    outputs = [name for name in first.column_names if name not in keys]
    # An output may have the name that an interval would have.
    low, high = interval_suffixes(outputs, list(columns))
    named = {"_low": low, "_high": high}
    for name in outputs:
        columns |= {f"{name}{named.get(end, end)}": table[name] for end, table in each.items()}
    return require_pyarrow().table(columns)
