"""Files of comma-separated values as columns of text, with the line that each row stands on."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from censored_gp.cli.problems import BadInput

__all__ = ["CsvFile"]

MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "<NA>", "NaT"]
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
CHUNK = 1 << 20


@dataclass(frozen=True)
class CsvFile:
    """A file of comma-separated values; `.gz` files are read as they are.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_text("a,b\\n1,2\\n")
    >>> CsvFile(path).header(), CsvFile(path).line(0)
    (['a', 'b'], 'line 2')
    """

    path: Path
    delimiter: str = ","
    encoding: str = "utf-8"
    content: bytes | None = None
    """What was read already, as the standard input can be read only once."""

    @property
    def name(self) -> str:
        """What messages call the file."""
        return str(self.path) if self.content is None else "standard input"

    def open(self) -> IO[bytes]:
        """Open the file for reading, unpacked."""
        if self.content is not None:
            return io.BytesIO(self.content)
        make: Any = gzip.open if self.path.suffix == ".gz" else open
        return make(self.path, "rb")

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line on which each record ends, and its fields; blank lines are no records."""
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with self.open() as raw, codecs.getreader(encoding)(raw) as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            yield from ((reader.line_num, record) for record in reader if record)

    def header(self) -> list[str]:
        """Return the names of the columns, each of them once."""
        line, names = next(self.records(), (1, []))
        if not any(names):
            raise BadInput(
                f"{self.name}: the file is empty. Accepted are a line of column names and at "
                "least one line of values."
            )
        names = _named([name.strip() for name in names])
        self._check_delimiter(names)
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            raise BadInput(
                f"{self.name}, line {line}: found column {doubles[0]!r} "
                f"{names.count(doubles[0])} times. Names must differ: rename or delete one."
            )
        return names

    def _check_delimiter(self, names: Sequence[str]) -> None:
        others = [d for d in DELIMITERS if d != self.delimiter and d in names[0]]
        if len(names) == 1 and others:
            other = "'\\t'" if others[0] == "\t" else f"'{others[0]}'"
            raise BadInput(
                f"{self.name}, line 1: found one column, {names[0]!r}. A "
                f"{DELIMITERS[others[0]]} seems to separate the columns: use --delimiter {other}."
            )

    def count_lines(self) -> int:
        """Return the number of lines, and refuse what is not text in the expected encoding."""
        try:
            return self._count_lines()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise BadInput(f"{self.name}: the file is damaged or cut short ({error}).") from error

    def _count_lines(self) -> int:
        decoder, lines = codecs.getincrementaldecoder(self.encoding)(), 0
        last = b""
        with self.open() as raw:
            while chunk := raw.read(CHUNK):
                if b"\0" in chunk and "16" not in self.encoding and "32" not in self.encoding:
                    self._refuse_encoding(lines + chunk[: chunk.index(b"\0")].count(b"\n") + 1)
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError as error:
                    self._refuse_encoding(lines + chunk[: error.start].count(b"\n") + 1)
                lines += chunk.count(b"\n")
                last = chunk[-1:]
        return lines + (last not in (b"", b"\n"))

    def _refuse_encoding(self, line: int) -> None:
        with self.open() as raw:
            start = raw.read(2)
        marked = start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        likely = "utf-16" if marked else "latin-1" if self.encoding == "utf-8" else "utf-8"
        raise BadInput(
            f"{self.name}, line {line}: found bytes that are not {self.encoding.upper()} text. "
            f"Save the file as UTF-8, or say how it is written: --encoding {likely}."
        )

    def line(self, row: int) -> str:
        """Return where a row of values stands: found by reading again, as it is rarely asked."""
        found = next(itertools.islice(self.records(), row + 1, None), None)
        return f"line {found[0]}" if found else f"row {row}"

    def read(self, wanted: Sequence[str], names: Sequence[str]) -> Any:
        """Return the wanted columns as a pyarrow table of text, empty cells as nulls."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        ragged: list[Any] = []

        def skip(row: Any) -> str:
            ragged.append(row)
            return "skip"

        options = {
            "read_options": arrow_csv.ReadOptions(
                column_names=list(names), skip_rows=self._lines_of_header(), encoding=self.encoding
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=list(wanted),
                null_values=MISSING,
                strings_can_be_null=True,
            ),
        }
        with self.open() as raw:
            try:
                table = arrow_csv.read_csv(raw, **options)
            except pa.ArrowInvalid as error:
                raise BadInput(f"{self.name}: {error}") from error
        if ragged:
            self._refuse_ragged(names)
        return table

    def _lines_of_header(self) -> int:
        return next(self.records())[0]

    def _refuse_ragged(self, names: Sequence[str]) -> None:
        line, record = next(
            (line, record) for line, record in self.records() if len(record) != len(names)
        )
        last = record[-1] if len(record) > len(names) else names[len(record)]
        what = f"the surplus {last!r}" if len(record) > len(names) else f"no value for {last!r}"
        raise BadInput(
            f"{self.name}, line {line}: found {len(record)} fields, {what}. Accepted are "
            f"{len(names)} in every line, as in the first; put text that holds a "
            f"{DELIMITERS.get(self.delimiter, 'delimiter')} in quotes."
        )


def _named(names: Sequence[str]) -> list[str]:
    """Return the names of columns; those without one, as spreadsheets leave behind, get one.

    >>> _named(["a", "", ""])
    ['a', 'unnamed 2', 'unnamed 3']
    """
    taken = set(names)
    return [
        name or next(n for n in _unnamed(place) if n not in taken)
        for place, name in enumerate(names, start=1)
    ]


def _unnamed(place: int) -> Iterator[str]:
    return (f"unnamed {place}{mark * count}" for count, mark in enumerate(itertools.repeat("'")))
