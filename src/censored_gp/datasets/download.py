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
    pooch, requests = _libraries()
    name = name or address.rsplit("/", 1)[-1]
    files = pooch.create(
        folder or data_folder(), "", registry={name: checksum}, urls={name: address},
        retry_if_failed=RETRIES,
    )  # fmt: skip
    try:
        return Path(files.fetch(name, progressbar=progress and sys.stderr.isatty()))
    except requests.RequestException as error:
        raise ConnectionError(f"{address} could not be downloaded: {error}") from None


def is_available(address: str) -> bool:
    """Return whether there is a file at an address, without downloading it."""
    pooch, requests = _libraries()
    try:
        return bool(pooch.HTTPDownloader()(address, None, None, check_only=True))
    except requests.RequestException as error:
        raise ConnectionError(f"{address} could not be reached: {error}") from None


def _libraries() -> tuple[Any, Any]:
    """Import pooch and requests, which it depends on."""
    try:
        import pooch
        import requests
    except ImportError:
        raise ImportError("Downloads need pooch: pip install 'censored-gp[data]'.") from None
    pooch.get_logger().setLevel("WARNING")
    return pooch, requests


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
