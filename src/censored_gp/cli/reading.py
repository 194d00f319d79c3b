"""Tables from files: the columns that a command needs, each as what it is for."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from censored_gp.cli import memory
from censored_gp.cli.arrow import require_pyarrow
from censored_gp.cli.columns import as_flags, as_input, as_labels, as_numbers, as_time, with_points
from censored_gp.cli.csvs import CsvFile
from censored_gp.cli.problems import BadInput
from censored_gp.cli.times import check_zone

__all__ = ["STDIN", "Roles", "Source", "Wanted"]

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
STDIN = "-"
"""What is given for a file to read the standard input, as CSV."""
MOST_NAMED = 20
"""Names in a message at most."""


class Wanted(NamedTuple):
    """A table with the columns that were asked for, and where its rows stand in the file."""

    table: Any
    name: str
    line_of: Callable[[int], str]

    def only(self, column: str, wanted: Sequence[Any]) -> Wanted:
        """Return the rows in which a column has one of the wanted values; each must be there."""
        words = [str(value) for value in self.table[column].to_pylist()]
        absent = [value for value in map(str, wanted) if value not in set(words)]
        if absent:
            there = ", ".join(map(repr, list(dict.fromkeys(words))[:MOST_NAMED]))
            raise BadInput(f"{self.name}, column {column!r}: found no {absent[0]!r}, but {there}.")
        kept = set(map(str, wanted))
        rows = [row for row, word in enumerate(words) if word in kept]
        return Wanted(self.table.take(rows), self.name, lambda row: self.line_of(rows[row]))


@dataclass(frozen=True)
class Roles:
    """Which column of a file is for what; `optional` ones need not be there.

    >>> Roles(numbers=("a", "docks"), time="time").columns
    ('time', 'a', 'docks')
    """

    numbers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    time: str | None = None
    by: str | None = None
    optional: frozenset[str] = field(default_factory=frozenset)

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them, each once, the keys first."""
        keys = tuple(name for name in (self.time, self.by) if name is not None)
        return tuple(dict.fromkeys((*keys, *self.inputs, *self.numbers, *self.flags)))


@dataclass(frozen=True)
class Source:
    """A file to read, CSV or Parquet by its ending, with what must be known to read it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("time,a\\n2024-06-03,1\\n")
    >>> Source(path).read(Roles(numbers=("a",), time="time")).table["a"].to_pylist()
    [1.0]
    """

    path: Path
    delimiter: str | None = None
    encoding: str = "utf-8"
    zone: str | None = None
    where: tuple[tuple[str, str], ...] = ()
    """Columns and the values that they have in the rows that are read."""
    decimal: str = "."
    content: bytes | None = None
    """What the standard input held, if that is what is read."""

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.csv.name

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file, by its name."""
        return self.path.name.lower().endswith(PARQUET_ENDINGS)

    @property
    def csv(self) -> CsvFile:
        """The file as comma-separated values; tabs separate by default in a `.tsv` file."""
        tabs = ".tsv" in self.path.suffixes
        given = "\t" if self.delimiter == "\\t" else self.delimiter
        return CsvFile(self.path, given or ("\t" if tabs else ","), self.encoding, self.content)

    def header(self) -> list[str]:
        """Return the names of the columns."""
        return self._known[0]

    def count_rows(self) -> int:
        """Return the number of rows, at most, without reading what is in them."""
        return self._known[1] if self.is_parquet else max(self._known[1] - 1, 0)

    @functools.cached_property
    def _known(self) -> tuple[list[str], int]:
        """The names of the columns and the number of rows (of a CSV file, at most)."""
        require_pyarrow()
        self._check()
        if not self.is_parquet:
            lines = self.csv.count_lines()
            return self.csv.header(), lines
        file = _parquet(self.path)
        names = list(file.schema_arrow.names)
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            raise BadInput(f"{self.name}: found column {doubles[0]!r} twice. Rename or delete one.")
        return names, file.metadata.num_rows

    def read(self, roles: Roles, check_memory: bool = True) -> Wanted:
        """Return the columns of the given roles."""
        names = self.header()
        needed = (*roles.columns, *(name for name, _ in self.where))
        absent = [name for name in needed if name not in names]
        for name in absent:
            if name not in roles.optional:
                raise BadInput(f"{self.name}: {_no_column(name, names)}")
        wanted = [name for name in roles.columns if name in names]
        check_zone(self.zone)
        read = list(dict.fromkeys([*wanted, *(name for name, _ in self.where)]))
        memory.check_reading(self.name, self._known[1], len(read), check_memory)
        raw = self._raw(read, names)
        if not len(raw):
            raise BadInput(
                f"{self.name}: found column names but no rows. Accepted is at least one."
            )
        chosen = Wanted(raw, self.name, self.line_of)
        for name, value in self.where:
            chosen = chosen.only(name, [value])
        line_of = chosen.line_of
        groups = chosen.table[roles.by] if roles.by in wanted else None
        columns = {n: self._typed(chosen.table[n], n, roles, line_of, groups) for n in wanted}
        return Wanted(_table(columns), self.name, line_of)

    def line_of(self, row: int) -> str:
        """Return where a row stands, in words."""
        return f"row {row + 1}" if self.is_parquet else self.csv.line(row)

    def _check(self) -> None:
        self._check_signs()
        name = self.path.name.lower()
        if self.content is None and not name.endswith(CSV_ENDINGS + PARQUET_ENDINGS):
            raise BadInput(
                f"{self.name}: found a file whose name does not end in "
                f"{', '.join(CSV_ENDINGS + PARQUET_ENDINGS)}. Rename or convert it."
            )
        try:
            "".encode(self.encoding)
        except LookupError as error:
            raise BadInput(
                f"--encoding: found {self.encoding!r}. Accepted are names such as utf-8 or latin-1."
            ) from error

    def _check_signs(self) -> None:
        """Refuse a delimiter or a decimal sign that no file can have."""
        sign = self.csv.delimiter
        if len(sign.encode()) != 1 or sign in '"\r\n' or sign.isalnum():
            raise BadInput(
                f"--delimiter: found {self.delimiter!r}. Accepted is one sign, such as ';' or ',', "
                "or '\\t' for tabs."
            )
        if self.decimal not in (".", ","):
            raise BadInput(f"--decimal: found {self.decimal!r}. Accepted are . and , alone.")

    def _raw(self, wanted: list[str], names: list[str]) -> Any:
        if not self.is_parquet:
            return self.csv.read(wanted, names)
        import pyarrow as pa

        try:
            return _parquet(self.path).read(columns=wanted)
        except (pa.ArrowInvalid, OSError) as error:
            raise BadInput(f"{self.name}: the Parquet file is damaged ({error}).") from error

    def _typed(
        self,
        column: Any,
        name: str,
        roles: Roles,
        line_of: Callable[[int], str],
        groups: Any = None,
    ) -> Any:
        def place(row: int) -> str:
            return f"{self.name}, {line_of(row)}, column {name!r}"

        if name == roles.by:
            return as_labels(column, place)
        if self.decimal == "," and not self.is_parquet:
            column = with_points(column, place, name in roles.numbers)
        if name == roles.time:
            return as_time(column, place, self.zone, groups)
        if name in roles.flags:
            return as_flags(column, place)
        return as_numbers(column, place) if name in roles.numbers else as_input(column, place)


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise BadInput(f"{path}: not a Parquet file, or damaged or cut short ({error}).") from error


def _table(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def _no_column(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"found no column {name!r}; there are {', '.join(map(repr, names))}.{hint}"
