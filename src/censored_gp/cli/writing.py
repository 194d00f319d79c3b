"""Results as files or on the standard output: CSV, Parquet or JSON by the ending of the name."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from censored_gp.cli.arrow import compute
from censored_gp.cli.problems import BadInput
from censored_gp.cli.tabulate import as_arrow

__all__ = ["check_target", "write_table", "write_text"]

ENDINGS = (".csv", ".json", ".parquet", ".pq")
ROWS_SHOWN = 40


def check_target(
    target: str | None, endings: Iterable[str] = ENDINGS, reads: Iterable[Path | None] = ()
) -> None:
    """Refuse a name that cannot be written to, before any time is spent on what to write.

    A file that the command reads is no place for what it writes.

    >>> check_target("-")
    """
    if target in (None, "-"):
        return
    path = Path(str(target))
    if path.suffix.lower() not in endings and not _is_device(path):
        raise BadInput(
            f"{path}: found the ending {path.suffix!r}. Accepted are {', '.join(endings)}, or - "
            "for the standard output."
        )
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Give the name of a file in it.")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: there is no folder {path.parent}. Make it first.")
    if path.is_file() and any(read and read.is_file() and path.samefile(read) for read in reads):
        raise BadInput(f"--output: found {path}, which is read. Give the result another name.")


def write_table(table: Any, target: str | None) -> None:
    """Write a table of any make to a file or, as CSV, to the standard output.

    Without a target a person at a terminal gets a table to look at, and a program gets CSV.

    >>> write_table([{"a": 1, "b": 0.5}], "-")
    a,b
    1,0.5
    """
    arrow = as_arrow(table)
    if target is None and sys.stdout.isatty():
        _show(arrow)
    elif target in (None, "-"):
        typer.echo(_csv(arrow), nl=False)
    else:
        _write_file(arrow, Path(str(target)))


def write_text(text: str, target: str | None) -> None:
    """Write text to a file or to the standard output.

    >>> write_text("Done.", "-")
    Done.
    """
    if target in (None, "-"):
        typer.echo(text)
        return
    from censored_gp.estimator.persistence import replacing

    with replacing(str(target)) as draft:
        draft.write_text(text, encoding="utf-8")


def _write_file(arrow: Any, path: Path) -> None:
    # Imported when asked for: it is slow to load.
    from censored_gp.estimator.persistence import replacing

    with replacing(path) as draft:
        if path.suffix.lower() in (".parquet", ".pq"):
            from pyarrow import parquet

            parquet.write_table(arrow, draft)
        else:
            make = _json if path.suffix.lower() == ".json" else _csv
            draft.write_text(make(arrow), encoding="utf-8")


def _csv(arrow: Any) -> str:
    """Return comma-separated values: times as ISO 8601, numbers with all their digits."""
    text = _without_times(arrow)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(text.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in text.columns), strict=True))
    return buffer.getvalue()


def _json(arrow: Any) -> str:
    """Return a table as a list of rows; what is missing or infinite is null."""
    rows = _without_times(arrow).to_pylist()
    clean = [{name: _as_json(value) for name, value in row.items()} for row in rows]
    return json.dumps(clean, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _as_json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _without_times(arrow: Any) -> Any:
    """Return the table with times as ISO 8601 text, offset included; NaN as nothing."""
    import pyarrow as pa

    pc = compute()
    columns = {}
    for name in arrow.column_names:
        column = arrow[name]
        if pa.types.is_temporal(column.type):
            column = pa.array([_iso(value) for value in column.to_pylist()], pa.string())
        elif pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        columns[str(name)] = column
    return pa.table(columns)


def _iso(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def _show(arrow: Any) -> None:
    """Print a table for people."""
    from rich.console import Console
    from rich.table import Table

    text = _without_times(arrow)
    shown = Table()
    for name in text.column_names:
        shown.add_column(name, justify="left" if str(text[name].type) == "string" else "right")
    for row in text.slice(0, ROWS_SHOWN).to_pylist():
        shown.add_row(*(_short(value) for value in row.values()))
    Console().print(shown)
    if len(text) > ROWS_SHOWN:
        typer.echo(f"... {len(text) - ROWS_SHOWN} more rows: --output FILE writes all.", err=True)


def _short(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
