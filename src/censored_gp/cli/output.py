"""Results as files or on the terminal: CSV, Parquet or JSON by the ending of the file's name."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from censored_gp.cli.console import bad_option, say
from censored_gp.data.tables import as_arrow
from censored_gp.estimator.persistence import replacing

ENDINGS = (".csv", ".json", ".parquet", ".pq")
ROWS_SHOWN = 40
# A spreadsheet takes text that begins so for a formula, and runs it.
FORMULA = ("=", "+", "-", "@", "\t")


def check_target(
    target: str | None,
    endings: Iterable[str] = ENDINGS,
    reads: Iterable[Path | None] = (),
    hint: str = "",
) -> None:
    """Refuse a file that cannot be written, or that the command reads, before any work is done.

    The hint is for what does not look like a file.
    """
    if target in (None, "-"):
        return
    path = Path(str(target))
    is_device = path.exists() and not path.is_file() and not path.is_dir()
    if path.is_dir():
        raise bad_option("--output", f"{path} is a folder. Give the name of a file in it.")
    if path.suffix.lower() not in endings and not is_device:
        accepted = f"{', '.join(endings)}, or - for standard output"
        raise bad_option("--output", f"{path} must end in {accepted}. {hint}".strip())
    if not path.parent.is_dir():
        raise bad_option("--output", f"{path}: there is no folder {path.parent}. Create it first.")
    if path.is_file() and any(read and read.is_file() and path.samefile(read) for read in reads):
        raise bad_option("--output", f"{path} is read by this command. Give another name.")


def write(answer: Any, target: str | None = None) -> None:
    """Write text, a table of any kind, or the parts of one, each as soon as it is there.

    Without a target, a terminal shows a table and a pipe gets CSV.
    """
    ending, texts = Path(str(target)).suffix.lower(), iter([f"{answer}\n"])
    if not isinstance(answer, str):
        parts = map(as_arrow, answer if isinstance(answer, Iterator) else [answer])
        first = next(parts)  # What is wrong is found before a file is opened.
        parts = itertools.chain([first], parts)
        if target is None and sys.stdout.isatty():
            _show(pa.concat_tables(parts))
            return
        if ending in (".parquet", ".pq"):
            open_file = parquet.ParquetWriter
            with replacing(str(target)) as draft, open_file(draft, first.schema) as file:
                for arrow in parts:
                    file.write_table(arrow)
            return
        texts = (_csv(arrow, header=number == 0) for number, arrow in enumerate(parts))
        if ending == ".json":
            texts = iter([_json(pa.concat_tables(parts))])
    if target in (None, "-"):
        for text in texts:
            typer.echo(text, nl=False)
        return
    with replacing(str(target)) as draft, draft.open("w", encoding="utf-8") as file:
        file.writelines(texts)


def _csv(arrow: pa.Table, header: bool = True) -> str:
    """Return comma-separated values: times as ISO 8601, numbers with all their digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(map(_not_formula, arrow.column_names))
    writer.writerows(map(_not_formula, row) for row in _rows(arrow))
    return buffer.getvalue()


def _not_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _json(arrow: pa.Table) -> str:
    """Return a list of rows; missing and infinite values are null."""
    finite = ([None if v in (math.inf, -math.inf) else v for v in row] for row in _rows(arrow))
    rows = [dict(zip(arrow.column_names, row, strict=True)) for row in finite]
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(arrow: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Return rows of values: times as ISO 8601 text (offset included), None for NaN."""
    columns = []
    for column in arrow.columns:
        values = column.to_pylist()
        if pa.types.is_temporal(column.type):
            values = [value and value.isoformat() for value in values]
        columns.append([None if value != value else value for value in values])
    return zip(*columns, strict=True)


def _show(arrow: pa.Table) -> None:
    """Print the first rows of a table."""
    shown = Table()
    for field in arrow.schema:
        is_number = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        shown.add_column(field.name, justify="right" if is_number else "left")
    for row in _rows(arrow.slice(0, ROWS_SHOWN)):
        numbers = (f"{value:.4g}" if isinstance(value, float) else value for value in row)
        shown.add_row(*("" if value is None else str(value) for value in numbers))
    Console().print(shown)
    if len(arrow) > ROWS_SHOWN:
        say(f"... {len(arrow) - ROWS_SHOWN} more rows. Use --output FILE to write all of them.")
