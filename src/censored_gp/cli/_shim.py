"""Temporary stand-in for censored_gp.data.files and errors until that lands."""

# ruff: noqa
import difflib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet


class DataError(ValueError):
    def __init__(
        self,
        problem,
        *,
        noun="",
        column=None,
        row=None,
        more=0,
        hint="",
        argument=None,
        file=None,
        line=None,
    ):
        super().__init__(problem)
        self.problem, self.noun, self.column, self.row = problem, noun, column, row
        self.more, self.hint, self.file, self.line, self.argument = more, hint, file, line, argument

    def __str__(self):
        place = ", ".join(
            str(p) for p in (self.file, self.line, self.column and f"column {self.column!r}") if p
        )
        return f"{place}: {self.problem} {self.hint}"

    def at(self, **changes):
        return DataError(**{**vars(self), **changes})


class Table:
    def __init__(self, arrow, file):
        self.arrow, self.file = arrow, file

    def __len__(self):
        return len(self.arrow)

    def native(self):
        return self.arrow

    def only(self, name, wanted):
        return Table(
            self.arrow.filter(pc.is_in(pc.cast(self.arrow[name], pa.string()), pa.array(wanted))),
            self.file,
        )

    def with_times(self, name, zone=None, by=None):
        return self

    def locate(self, error):
        line = None if error.row is None else f"line {error.row + 2}"
        return error.at(file=self.file.name, line=line)


def listed(names):
    return ", ".join(map(repr, names))


@dataclass(frozen=True)
class File:
    path: object
    delimiter: object = None
    encoding: str = "utf-8"
    decimal: str = "."
    content: object = None

    @property
    def name(self):
        return str(self.path)

    def _all(self):
        if str(self.path).endswith(".parquet"):
            return parquet.read_table(self.path)
        return csv.read_csv(
            self.path,
            parse_options=csv.ParseOptions(delimiter=self.delimiter or ","),
            convert_options=csv.ConvertOptions(
                decimal_point=self.decimal, strings_can_be_null=True
            ),
        )

    def header(self):
        return self._all().column_names

    def read(self, columns=None, where=()):
        names = self.header()
        for name in [*(columns or ()), *(n for n, _ in where)]:
            if name not in names:
                raise DataError(
                    f"no column {name!r}. There are {names}",
                    file=self.name,
                    hint=str(difflib.get_close_matches(name, names, 1)),
                )
        table = Table(self._all(), self)
        for name, value in where:
            table = table.only(name, [value])
        return Table(table.arrow.select(columns), self)
