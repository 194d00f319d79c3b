"""Where real data lie, and how their tables are read."""

import csv
import functools
import gzip
import os
from pathlib import Path

import numpy as np
from jaxtyping import Float

FOLDER_VARIABLE = "CENSORED_GP_DATA"

FILES_KEPT = 2
"""Files whose rows are kept in memory, the last ones that were read."""

Rows = list[dict[str, str]]


def data_folder() -> Path:
    """Return the folder of real data, or say how to provide it.

    It is the one that the environment variable `CENSORED_GP_DATA` names, or else `shared/data`
    beside the project.

    >>> import os
    >>> os.environ["CENSORED_GP_DATA"] = "."
    >>> str(data_folder())
    '.'
    >>> del os.environ["CENSORED_GP_DATA"]
    """
    named = os.environ.get(FOLDER_VARIABLE)
    project = Path(__file__).resolve().parents[3]
    folder = Path(named) if named else project.parent / "shared" / "data"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"No real data: there is no folder {folder}. Set the environment variable "
            f"{FOLDER_VARIABLE} to the folder that holds the data files."
        )
    return folder


def read_rows(path: Path) -> Rows:
    """Read a table of comma-separated values, compressed or not, as one dict for each row.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "demand.csv"
    >>> _ = path.write_text("hour,pickups\\n8,12\\n")
    >>> read_rows(path)
    [{'hour': '8', 'pickups': '12'}]
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path.parent} does not hold {path.name}. Put the file there, or set the environment "
            f"variable {FOLDER_VARIABLE} to the folder that holds it."
        )
    state = path.stat()
    return [dict(row) for row in _rows_of(path.resolve(), state.st_mtime_ns, state.st_size)]


@functools.lru_cache(maxsize=FILES_KEPT)
def _rows_of(path: Path, changed: int, size: int) -> Rows:
    """Read a file once, unless it has changed: hundreds of fits to draws of one table follow."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def numbers(rows: Rows, column: str) -> Float[np.ndarray, " N"]:
    """Return a column as numbers; NaN where it is empty.

    >>> numbers([{"pickups": "12"}, {"pickups": ""}], "pickups")
    array([12., nan])
    """
    return np.array([float(row[column] or "nan") for row in rows])


def without_gaps(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Interpolate over missing rows.

    >>> without_gaps(np.array([1.0, np.nan, 3.0]))
    array([1., 2., 3.])
    """
    rows, good = np.arange(len(values)), np.isfinite(values)
    return np.interp(rows, rows[good], values[good])
