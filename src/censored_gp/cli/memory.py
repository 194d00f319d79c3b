"""How much memory a command will need, compared with what there is, before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from censored_gp.cli.problems import BadInput

__all__ = ["available", "check_fitting", "check_reading"]

BYTES_PER_CELL = 90
"""Of a table that is read: text, its parsed twin, and the copies in between."""
BASE = 0.7e9
"""The compiler's own."""
BYTES_PER_ROW = 72_000
"""Of a fit with about 450 inducing inputs, as default kernels of hourly data have: measured."""
BYTES_PER_VARYING_CELL = 16_000
"""More where the noise varies: the grid of two parameters for every row and output: measured."""
MEMORY_FILE = Path("/proc/meminfo")
LIMIT_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available() -> float:
    """Return the bytes of memory that are free, infinite where that cannot be known.

    >>> available() > 0
    True
    """
    return min([_free_of_machine(), *(_free_of_group(*pair) for pair in LIMIT_FILES)])


def _free_of_machine() -> float:
    try:
        lines = MEMORY_FILE.read_text().splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable:"))
        return 1024.0 * int(found.split()[1])
    except (OSError, StopIteration, ValueError):
        return float("inf")


def _free_of_group(limit: str, used: str) -> float:
    """Return what is left of the limit that a container has."""
    try:
        return float(Path(limit).read_text()) - float(Path(used).read_text())
    except (OSError, ValueError):
        return float("inf")


def check_reading(path: Path | str, rows: int, columns: int, wanted: bool = True) -> None:
    """Refuse a file that does not fit into memory.

    >>> check_reading(Path("t.csv"), 100, 3)
    """
    needed = float(BYTES_PER_CELL * rows * columns)
    _check(f"{path}: reading {rows:,} rows of {columns} columns", needed, wanted)


def check_fitting(name: str, shape: tuple[int, int], model: Any, wanted: bool = True) -> None:
    """Refuse a fit that does not fit into memory; a rough estimate, made before any computing."""
    rows, outputs = shape
    # Outputs that share nothing have features of their own, but fewer copies of them.
    blocks = 1 if model.coupled else max(1.0, outputs / 2)
    varying = BYTES_PER_VARYING_CELL * outputs if model.heteroscedastic else 0
    needed = BASE + rows * (BYTES_PER_ROW * blocks + varying)
    _check(f"{name}: fitting {rows:,} rows of {outputs} output(s)", needed, wanted)


def _check(what: str, needed: float, wanted: bool) -> None:
    free = available()
    if wanted and needed > free:
        raise BadInput(
            f"{what} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are "
            "free. Use fewer rows (a shorter period, or hours instead of minutes) or fewer outputs "
            "at a time. If you know better: --ignore-memory."
        )
