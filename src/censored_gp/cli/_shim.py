"""Temporary stand-in for censored_gp.data.files and errors until that lands."""

from __future__ import annotations

import difflib

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet


class DataError(ValueError):
    def __init__(
        self, problem, *, noun="", column=None, row=None, more=0, hint="", file=None, line=None
    ):
        self.problem, self.noun, self.column, self.row = problem, noun, column, row
        self.more, self.hint, self.file, self.line = more, hint, file, line
        place = ", ".join(str(p) for p in (file, line, column and f"column {column!r}") if p)
        super().__init__(f"{place}: {problem}" if place else problem)

    def at(self, **changes):
        fields = {
            k: getattr(self, k)
            for k in ("problem", "noun", "column", "row", "more", "hint", "file", "line")
        }
        return DataError(**(fields | changes))


class Table:
    def __init__(self, arrow, rows):
        self.arrow, self.rows = arrow, rows

    def line(self, row):
        return f"line {self.rows[row] + 2}"


def header(path, *, delimiter=None, encoding="utf-8"):
    if str(path).endswith((".parquet", ".pq")):
        return parquet.read_schema(path).names
    if not str(path).endswith((".csv", ".tsv", ".gz")):
        open(path)
        raise DataError("not CSV", file=str(path))
    return csv.open_csv(
        path, parse_options=csv.ParseOptions(delimiter=delimiter or ",")
    ).schema.names


def read_file(
    path, *, columns=None, delimiter=None, encoding="utf-8", decimal=".", where=(), zone=None
):
    names = header(path, delimiter=delimiter)
    for name in [*(columns or ()), *(n for n, _ in where)]:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            raise DataError(
                f"no column {name!r}. Did you mean {near}? There are {names}", file=str(path)
            )
    if str(path).endswith((".parquet", ".pq")):
        table = parquet.read_table(path)
    else:
        table = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(delimiter=delimiter or ","),
            convert_options=csv.ConvertOptions(decimal_point=decimal, strings_can_be_null=True),
        )
    rows = list(range(len(table)))
    for name, values in where:
        keep = pc.is_in(pc.cast(table[name], pa.string()), pa.array(list(values)))
        rows = [r for r, k in zip(rows, keep.to_pylist(), strict=True) if k]
        table = table.filter(keep)
    return Table(table.select(columns) if columns else table, rows)
