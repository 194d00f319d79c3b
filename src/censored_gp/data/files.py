"""Files of tables: CSV (also packed), Parquet and folders of Parquet files, read by pyarrow.

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

from censored_gp.data.errors import DataError, did_you_mean, listed, quoted, reads_as
from censored_gp.data.tables import Table, read_table

# Words that stand for a missing value in a CSV file.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>"]
MISSING += ["NaT"]

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")

WORKBOOK_ENDINGS = (".xlsx", ".xlsm", ".xls", ".ods")

WORKBOOK = (
    "got a spreadsheet workbook. Save its sheet as CSV (in Excel: Save As, CSV UTF-8) and give "
    "that file; in Python, give fit the frame that pandas.read_excel returns."
)

PARQUET_ENDINGS = (".parquet", ".pq")


def open_table(data: Any) -> Table:
    """Return a data frame, a dict of columns, or the file at a path as a table."""
    return File(Path(data)).read() if isinstance(data, str | Path) else read_table(data)


@dataclass(frozen=True)
class File:
    """A file with what must be known to read it.

    Attributes
    ----------
    path : path
        A file whose name ends in .csv, .tsv, .txt (also .gz), .parquet or .pq, or a folder of
        Parquet files, whose rows follow each other in the order of the files' names.
    delimiter, encoding, decimal : str
        How a CSV file is written. None: tabs in .tsv files, else commas.
    time_format : str, optional
        How times are written, in the letters of `strptime`; None: ISO 8601.
    zone : str, optional
        The zone of the times.
    content : bytes, optional
        What the standard input held, instead of a file.
    """

    path: Path
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    time_format: str | None = None
    zone: str | None = None
    content: bytes | None = None

    @property
    def name(self) -> str:
        """What messages call the file."""
        return str(self.path) if self.content is None else "standard input"

    @property
    def is_parquet(self) -> bool:
        """Whether the file is a Parquet file, by its name, or a folder of them."""
        ended = self.path.name.lower().endswith(PARQUET_ENDINGS)
        return self.content is None and (ended or self.path.is_dir())

    @property
    def separator(self) -> str:
        """The sign between columns; tabs by default in a `.tsv` file."""
        given = "\t" if self.delimiter == "\\t" else self.delimiter
        return given or ("\t" if ".tsv" in self.path.suffixes else ",")

    @functools.cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        self._check_settings()
        line, names = (None, self.parquet.schema.names) if self.is_parquet else self._csv_header()
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            said = f"got column {quoted(doubles[0])} {names.count(doubles[0])} times."
            raise self._problem(said, line, "Rename or delete one.")
        return names

    def read(
        self, columns: Sequence[str] | None = None, where: Sequence[tuple[str, str]] = ()
    ) -> Table:
        """Return some or all of the columns (None: all).

        `where` are pairs of a column and a value: only rows that have all of them are returned.
        """
        names = self.header
        wanted = list(dict.fromkeys(names if columns is None else columns))
        read = list(dict.fromkeys([*wanted, *(name for name, _ in where)]))
        for name in read:
            if name not in names:
                said = f"got no column {quoted(name)}. There are {listed(names)}."
                raise self._problem(said, hint=did_you_mean(name, names))
        if self.is_parquet:
            table = Table(pa.table({}), "file", file=self, stored=tuple(read))
        else:
            table = Table(self._read_csv(read, names), "file", file=self)
        if not len(table):
            raise self._problem("got column names but no rows.")
        for name, value in where:
            table = table.only(name, [value])
        return table.select(wanted) if where else table

    def line(self, row: int) -> str:
        """Return where a row stands, in words: found by reading again, as it is rarely asked."""
        if self.is_parquet:
            return f"row {row + 1}"
        found = next(itertools.islice(self._records(), row + 1, None), None)
        return f"line {found[0]}" if found else f"row {row}"

    def _problem(self, problem: str, line: int | None = None, hint: str = "") -> DataError:
        place = None if line is None else f"line {line}"
        return DataError(problem, file=self.name, line=place, hint=hint)

    def _check_settings(self) -> None:
        """Refuse a file or a way of reading that cannot be."""
        sign = self.separator
        if len(sign.encode()) != 1 or sign in '"\r\n' or sign.isalnum():
            said = f"must be one sign such as ';', or '\\t' for tabs, got {self.delimiter!r}."
            raise DataError(said, argument="delimiter")
        if self.decimal not in (".", ","):
            raise DataError(f"must be . or , but got {self.decimal!r}.", argument="decimal")
        try:
            codecs.lookup(self.encoding)
        except LookupError as error:
            said = f"must be a name such as utf-8 or latin-1, got {self.encoding!r}."
            raise DataError(said, argument="encoding") from error
        if self.content is not None or self.is_parquet:
            return
        if self.path.suffix.lower() in WORKBOOK_ENDINGS:
            raise self._problem(WORKBOOK)
        if not self.path.name.lower().endswith(CSV_ENDINGS):
            endings = ", ".join(CSV_ENDINGS + PARQUET_ENDINGS)
            hint = "Convert the file, or if it is a model, load it."
            raise self._problem(f"got a name that does not end in {endings}. {hint}")

    def _open(self) -> IO[bytes]:
        """Open the file for reading, unpacked."""
        if self.content is not None:
            return io.BytesIO(self.content)
        make: Any = gzip.open if self.path.suffix == ".gz" else open
        return make(self.path, "rb")

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line on which each record ends, and its fields; blank lines are no records."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        try:
            # A form feed, at which text is split otherwise, ends no line.
            with self._open() as raw, io.TextIOWrapper(raw, encoding, newline="") as text:
                reader = csv.reader(text, delimiter=self.separator)
                yield from ((reader.line_num, record) for record in reader if record)
        except UnicodeError as error:
            raise self._wrong_encoding() from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise self._problem(f"the file is damaged or cut short ({error}).") from error

    def _csv_header(self) -> tuple[int, list[str]]:
        """Return the line of the names and the names."""
        line, names = next(self._records(), (1, []))
        if not any(names):
            raise self._problem("the file is empty. It must have a line of names and rows.")
        names = [name.strip() for name in names]
        # Spreadsheets leave columns without a name behind.
        names = [name or f"unnamed {place}" for place, name in enumerate(names, start=1)]
        others = [d for d in DELIMITERS if d != self.separator and d in names[0]]
        if len(names) == 1 and others:
            said = f"got one column, {quoted(names[0])}."
            hint = f"A {DELIMITERS[others[0]]} seems to separate columns: "
            raise self._problem(said, line, hint + f"give the delimiter {others[0]!r}.")
        return line, names

    def _wrong_encoding(self) -> DataError:
        """Return the error about the first line that is not text in the expected encoding."""
        decoder = codecs.getincrementaldecoder(self.encoding)()
        with self._open() as raw:
            start = raw.read(4)
            raw.seek(0)
            lines = enumerate(raw, start=1)
            line = next((n for n, text in lines if not reads_as(decoder.decode, text)), None)
        if start in (b"PK\3\4", b"\xd0\xcf\x11\xe0"):
            return self._problem(WORKBOOK)
        marked = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        likely = "utf-16" if marked else "latin-1" if self.encoding == "utf-8" else "utf-8"
        hint = f"Save the file as UTF-8, or say that its encoding is {likely}."
        return self._problem(f"got bytes that are not {self.encoding.upper()} text.", line, hint)

    def _read_csv(self, wanted: Sequence[str], names: Sequence[str]) -> pa.Table:
        """Return columns as text, nulls where values are missing."""
        ragged: list[Any] = []

        def skip(row: Any) -> str:
            ragged.append(row)
            return "skip"

        reading = arrow_csv.ReadOptions(
            column_names=list(names), skip_rows=next(self._records())[0], encoding=self.encoding
        )
        parsing = arrow_csv.ParseOptions(
            delimiter=self.separator, newlines_in_values=True, invalid_row_handler=skip
        )
        conversion = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=list(wanted),
            null_values=MISSING,
            strings_can_be_null=True,
        )
        with self._open() as raw:
            try:
                table = arrow_csv.read_csv(raw, reading, parsing, conversion)
            except (pa.ArrowInvalid, UnicodeError, OSError, EOFError, zlib.error) as error:
                self._check_records(names)
                raise self._problem(str(error)) from error
        if ragged:
            self._check_records(names)
        return table

    def _check_records(self, names: Sequence[str]) -> None:
        """Refuse the first line that is not text, or has more or fewer fields than there are."""
        # Read to the end first, as that the file is damaged is worse.
        if wrong := [each for each in self._records() if len(each[1]) != len(names)]:
            line, record = wrong[0]
            surplus = len(record) > len(names)
            cell = record[-1] if surplus else names[len(record)]
            what = f"{'the surplus' if surplus else 'no value for'} {quoted(cell)}"
            said = f"got {len(record)} fields, {what}. There must be {len(names)}."
            hint = f"Put text that holds a {DELIMITERS.get(self.separator, 'delimiter')} in quotes."
            raise self._problem(said, line, hint)

    @functools.cached_property
    def parquet(self) -> Any:
        """The Parquet file, or all in a folder and its folders, as a `pyarrow.dataset.Dataset`."""
        from pyarrow import dataset

        paths = [self.path]
        if self.path.is_dir():
            every = sorted(self.path.rglob("*"))
            paths = [path for path in every if path.name.lower().endswith(PARQUET_ENDINGS)]
        if not paths:
            raise self._problem(f"got a folder without files that end in {PARQUET_ENDINGS[0]}.")
        try:
            # Folders such as store=7 are a column of the files in them.
            return dataset.dataset(list(map(str, paths)), format="parquet", partitioning="hive")
        except pa.ArrowInvalid as error:
            raise self._problem(f"not a Parquet file, or damaged ({error}).") from error

    def read_parquet(self, names: Sequence[str], rows: Any = None) -> pa.Table:
        """Return columns of Parquet files, of all or some of the rows."""
        try:
            if rows is None:
                return self.parquet.to_table(columns=list(names))
            return self.parquet.take(pa.array(rows), columns=list(names))
        except (pa.ArrowInvalid, OSError) as error:
            raise self._problem(f"the Parquet file is damaged ({error}).") from error
