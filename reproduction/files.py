"""The files of real data that experiments read."""

from __future__ import annotations

import os
from pathlib import Path

from pyarrow import csv

from censored_gp.datasets.simulated import Table


def data_folder() -> Path:
    """Return the folder of data files, which the variable `CENSORED_GP_DATA` names."""
    return Path(os.environ.get("CENSORED_GP_DATA") or "data")


def read_columns(file: Path) -> Table:
    """Read a CSV file, compressed or not, into columns; missing numbers are NaN."""
    if not file.is_file():
        raise FileNotFoundError(
            f"{file.parent} does not hold {file.name}. Put the file there, or set the environment "
            "variable CENSORED_GP_DATA to the folder that holds it."
        )
    table = csv.read_csv(file)
    return {name: table[name].to_numpy() for name in table.column_names}
