"""Where data files lie, how they are downloaded, and how their tables are read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import Shaped

FOLDER_VARIABLE = "CENSORED_GP_DATA"
"""This environment variable names the folder of data files."""
RETRIES = 2
"""A download that failed is tried again so many times."""


def data_folder() -> Path:
    """Return the folder of data files, to which downloads go as well.

    It is the one that the environment variable `CENSORED_GP_DATA` names, or else
    `censored-gp/downloads` in the user's cache.

    >>> import os
    >>> os.environ["CENSORED_GP_DATA"] = "."
    >>> str(data_folder())
    '.'
    >>> del os.environ["CENSORED_GP_DATA"]
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(FOLDER_VARIABLE) or cache / "censored-gp" / "downloads")


def fetch(
    address: str,
    *,
    name: str | None = None,
    checksum: str | None = None,
    folder: Path | None = None,
    progress: bool = True,
) -> Path:
    """Download a file unless it is there already, check it, and return its path.

    `name` is what the file is called in the folder. `checksum` is its SHA-256; a file that differs
    is downloaded again, and refused if it still does.

    >>> fetch("https://example.org/demand.csv").name  # doctest: +SKIP
    'demand.csv'
    """
    name = name or address.rsplit("/", 1)[-1]
    registry, urls = {name: checksum}, {name: address}
    folder = folder or data_folder()
    files = import_pooch().create(folder, "", registry=registry, urls=urls, retry_if_failed=RETRIES)
    return Path(files.fetch(name, progressbar=progress and sys.stderr.isatty()))


def import_pooch() -> Any:
    """Return pooch, an optional dependency, without the messages it logs."""
    try:
        import pooch
    except ImportError:
        raise ImportError("Downloads need pooch: pip install 'censored-gp[data]'.") from None
    pooch.get_logger().setLevel("WARNING")
    return pooch


def read_columns(file: Path | IO[bytes]) -> dict[str, Shaped[np.ndarray, " N"]]:
    """Read a CSV file, compressed or not, into columns; missing numbers are NaN."""
    # Imported when a table is read: simulated worlds should not wait for it.
    from pyarrow import csv

    if isinstance(file, Path) and not file.is_file():
        raise FileNotFoundError(
            f"{file.parent} does not hold {file.name}. Put the file there, or set the environment "
            f"variable {FOLDER_VARIABLE} to the folder that holds it."
        )
    table = csv.read_csv(file)
    return {name: table[name].to_numpy() for name in table.column_names}
