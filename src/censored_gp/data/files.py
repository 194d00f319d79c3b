"""Files of tables: CSV (also packed) and Parquet, read by pyarrow.

Columns of a CSV file stay text until it is known what each is for (`Table.numbers`, `.flags`,
`.with_times`, ...); `File.line` tells where a row stands, for error messages.
"""

from __future__ import annotations

import codecs
import csv
import functools
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from censored_gp.data.errors import DataError, did_you_mean, listed, quoted
from censored_gp.data.tables import Table, read_table

MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>", "NaT"]
"""Words that stand for a missing value in a CSV file."""

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")

PARQUET_ENDINGS = (".parquet", ".pq")

CHUNK = 1 << 20


def read_file(
    path: Path | str,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    where: Sequence[tuple[str, str]] = (),
) -> Table:
    """Return the table in a CSV or Parquet file.

    Parameters
    ----------
    path : path
        A file whose name ends in .csv, .tsv, .txt (also .gz), .parquet or .pq.
    columns : names, optional
        The columns to read; None: all.
    delimiter, encoding, decimal : str
        How a CSV file is written. None: tabs in .tsv files, else commas.
    where : pairs of column and value
        Rows to read: those in which each column has its value.
    """
    return File(Path(path), delimiter, encoding, decimal).read(columns, where)


def open_table(data: Any) -> Table:
    """Return a data frame, a dict of columns, or the file at a path as a table."""
    return read_file(data) if isinstance(data, str | Path) else read_table(data)


def header(path: Path | str, *, delimiter: str | None = None, encoding: str = "utf-8") -> list[str]:
    """Return the names of the columns of a file."""
    return File(Path(path), delimiter, encoding).header()


@dataclass(frozen=True)
class File:
    """A file with what must be known to read it; `content` is what the standard input held."""

    path: Path
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    content: bytes | None = None

    @property
    def name(self) -> str:
        """What messages call the file."""
        return str(self.path) if self.content is None else "standard input"

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file, by its name."""
        return self.content is None and self.path.name.lower().endswith(PARQUET_ENDINGS)

    @property
    def separator(self) -> str:
        """The sign between columns; tabs by default in a `.tsv` file."""
        given = "\t" if self.delimiter == "\\t" else self.delimiter
        return given or ("\t" if ".tsv" in self.path.suffixes else ",")

    def header(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._known[0])

    def count_rows(self) -> int:
        """Return the number of rows (of a CSV file, at most), without reading what is in them."""
        return self._known[1]

    @functools.cached_property
    def _known(self) -> tuple[list[str], int]:
        """The names of the columns and the number of rows, of a file that can be read."""
        self._check()
        if not self.is_parquet:
            lines = self._count_lines()
            return self._csv_header(), max(lines - 1, 0)
        file = self._parquet()
        names = list(file.schema_arrow.names)
        self._check_names(names, None)
        return names, file.metadata.num_rows

    def read(
        self, columns: Sequence[str] | None = None, where: Sequence[tuple[str, str]] = ()
    ) -> Table:
        """Return some or all of the columns, and the rows in which others have given values."""
        names = self.header()
        wanted = list(dict.fromkeys(names if columns is None else columns))
        read = list(dict.fromkeys([*wanted, *(name for name, _ in where)]))
        for name in read:
            if name not in names:
                said = f"got no column {quoted(name)}. There are {listed(names)}."
                raise self._problem(said, hint=did_you_mean(name, names))
        arrow = self._read_parquet(read) if self.is_parquet else self._read_csv(read, names)
        if not len(arrow):
            raise self._problem("got column names but no rows.")
        table = Table(arrow, file=self)
        for name, value in where:
            table = table.only(name, [value])
        return table.select(wanted)

    def line(self, row: int) -> str:
        """Return where a row stands, in words: found by reading again, as it is rarely asked."""
        if self.is_parquet:
            return f"row {row + 1}"
        found = next(itertools.islice(self._records(), row + 1, None), None)
        return f"line {found[0]}" if found else f"row {row}"

    def _problem(self, problem: str, line: int | None = None, hint: str = "") -> DataError:
        place = None if line is None else f"line {line}"
        return DataError(problem, file=self.name, line=place, hint=hint)

    def _check(self) -> None:
        """Refuse a file or a way of reading that cannot be."""
        sign = self.separator
        if len(sign.encode()) != 1 or sign in '"\r\n' or sign.isalnum():
            said = f"must be one sign such as ';', or '\\t' for tabs, got {self.delimiter!r}."
            raise DataError(said, argument="delimiter")
        if self.decimal not in (".", ","):
            raise DataError(f"must be . or , but got {self.decimal!r}.", argument="decimal")
        try:
            "".encode(self.encoding)
        except LookupError as error:
            said = f"must be a name such as utf-8 or latin-1, got {self.encoding!r}."
            raise DataError(said, argument="encoding") from error
        endings = CSV_ENDINGS + PARQUET_ENDINGS
        if self.content is None and not self.path.name.lower().endswith(endings):
            said = f"got a name that does not end in {', '.join(endings)}. Convert the file."
            raise self._problem(said)

    def _open(self) -> IO[bytes]:
        """Open the file for reading, unpacked."""
        if self.content is not None:
            return io.BytesIO(self.content)
        make: Any = gzip.open if self.path.suffix == ".gz" else open
        return make(self.path, "rb")

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line on which each record ends, and its fields; blank lines are no records."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with self._open() as raw, codecs.getreader(encoding)(raw) as text:
            reader = csv.reader(text, delimiter=self.separator)
            yield from ((reader.line_num, record) for record in reader if record)

    def _csv_header(self) -> list[str]:
        line, names = next(self._records(), (1, []))
        if not any(names):
            raise self._problem("the file is empty. It must have a line of names and rows.")
        names = [name.strip() for name in names]
        # Spreadsheets leave columns without a name behind.
        names = [name or f"unnamed {place}" for place, name in enumerate(names, start=1)]
        others = [d for d in DELIMITERS if d != self.separator and d in names[0]]
        if len(names) == 1 and others:
            said = (
                f"got one column, {quoted(names[0])}. A {DELIMITERS[others[0]]} seems to separate "
            )
            raise self._problem(said + f"columns: give the delimiter {others[0]!r}.", line)
        self._check_names(names, line)
        return names

    def _check_names(self, names: Sequence[str], line: int | None) -> None:
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            said = f"got column {quoted(doubles[0])} {names.count(doubles[0])} times."
            raise self._problem(said, line, "Rename or delete one.")

    def _count_lines(self) -> int:
        """Return the number of lines, and refuse what is not text in the expected encoding."""
        decoder, lines, last = codecs.getincrementaldecoder(self.encoding)(), 0, b""
        wide = "16" in self.encoding or "32" in self.encoding
        try:
            with self._open() as raw:
                while chunk := raw.read(CHUNK):
                    bad = -1 if wide else chunk.find(b"\0")
                    try:
                        decoder.decode(chunk)
                    except UnicodeDecodeError as error:
                        bad = error.start
                    if bad >= 0:
                        self._refuse_encoding(lines + chunk[:bad].count(b"\n") + 1)
                    lines += chunk.count(b"\n")
                    last = chunk[-1:]
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._problem(f"the file is damaged or cut short ({error}).") from error
        return lines + (last not in (b"", b"\n"))

    def _refuse_encoding(self, line: int) -> None:
        with self._open() as raw:
            marked = raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        likely = "utf-16" if marked else "latin-1" if self.encoding == "utf-8" else "utf-8"
        hint = f"Save the file as UTF-8, or say that its encoding is {likely}."
        raise self._problem(f"got bytes that are not {self.encoding.upper()} text.", line, hint)

    def _read_csv(self, wanted: Sequence[str], names: Sequence[str]) -> pa.Table:
        """Return columns as text, nulls where values are missing."""
        ragged: list[Any] = []

        def skip(row: Any) -> str:
            ragged.append(row)
            return "skip"

        options = {
            "read_options": arrow_csv.ReadOptions(
                column_names=list(names), skip_rows=next(self._records())[0], encoding=self.encoding
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, invalid_row_handler=skip
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=list(wanted),
                null_values=MISSING,
                strings_can_be_null=True,
            ),
        }
        with self._open() as raw:
            try:
                table = arrow_csv.read_csv(raw, **options)
            except pa.ArrowInvalid as error:
                raise self._problem(str(error)) from error
        if ragged:
            self._refuse_ragged(names)
        return table

    def _refuse_ragged(self, names: Sequence[str]) -> None:
        line, record = next(each for each in self._records() if len(each[1]) != len(names))
        what = f"no value for {quoted(names[min(len(record), len(names) - 1)])}"
        if len(record) > len(names):
            what = f"the surplus {quoted(record[-1])}"
        said = f"got {len(record)} fields, {what}. There must be {len(names)}."
        hint = f"Put text that holds a {DELIMITERS.get(self.separator, 'delimiter')} in quotes."
        raise self._problem(said, line, hint)

    def _parquet(self) -> parquet.ParquetFile:
        try:
            return parquet.ParquetFile(self.path)
        except pa.ArrowInvalid as error:
            raise self._problem(f"not a Parquet file, or damaged ({error}).") from error

    def _read_parquet(self, wanted: list[str]) -> pa.Table:
        try:
            return self._parquet().read(columns=wanted)
        except (pa.ArrowInvalid, OSError) as error:
            raise self._problem(f"the Parquet file is damaged ({error}).") from error
