"""Arrays that may not fit into memory: beyond a budget they live in a file.

A pass over the rows reads and writes such arrays in slices, so that a file is nearly as quick as
memory; the system drops from memory what was not used lately.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from censored_gp.data.errors import warn

# The environment variable that sets how much memory arrays over the rows may take.
BUDGET_VARIABLE = "CENSORED_GP_MEMORY_GB"
# Without it they may take this share of the memory that was available at the first of them.
SHARE = 0.6
# Memory of a fit for each row and output, more or less: bounds, cells and sites.
BYTES_A_CELL = 130
# The share of it that sites take, which may be files.
SITES_SHARE = 0.5
# Arrays of fewer bytes always live in memory.
LARGE = 2**24


class Storage:
    """What arrays over the rows take, in bytes: how much they may, and how much they do."""

    def __init__(self) -> None:
        self.budget, self.used, self.told = np.inf, 0, False

    def allocate(
        self, shape: tuple[int, ...], dtype: Any = np.float64
    ) -> Shaped[np.ndarray, "..."]:
        """Return an array of any content, in memory or in a file that goes with it."""
        size = int(np.prod(shape, dtype=float)) * np.dtype(dtype).itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        if not self.used:
            self.budget = budget()
        if self.used + size <= self.budget:
            found = np.empty(shape, dtype)
            self.used += size
            weakref.finalize(found, self._release, size)
            return found
        if not self.told:
            self.told = True
            warn(
                f"Arrays over the rows take more than the {self.budget / 1e9:.1f} GB of memory "
                f"they may: further ones are files in {tempfile.gettempdir()}, which is slower. "
                f"Set {BUDGET_VARIABLE} to allow more, TMPDIR for another folder."
            )
        # The file has no name any more: the system deletes it with the array.
        with tempfile.TemporaryFile(prefix="censored-gp-") as file:
            return np.memmap(file, dtype, "w+", shape=shape)

    def _release(self, size: int) -> None:
        self.used -= size


def available() -> float:
    """Return the bytes of memory that programs may still take; infinite where it is not known."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(w.split()[1]) for w in lines if w.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return np.inf


def budget() -> float:
    """Return how many bytes arrays over the rows may take in memory."""
    given = os.environ.get(BUDGET_VARIABLE)
    try:
        return SHARE * available() if given is None else 1e9 * float(given)
    except ValueError:
        raise ValueError(f"`{BUDGET_VARIABLE}` must be a number, got {given!r}.") from None


def warn_of_need(rows: int, outputs: int) -> None:
    """Warn if a fit of so many rows and outputs needs more memory than there is."""
    need, free = BYTES_A_CELL * float(rows) * outputs, available()
    if need > free:
        warn(
            f"A fit of {rows:,} rows and {outputs:,} output(s) needs about {need / 1e9:.1f} GB, of "
            f"which {SITES_SHARE:.0%} may be files; {free / 1e9:.1f} GB of memory are available. "
            "Take fewer rows or outputs, or a larger machine."
        )


allocate = Storage().allocate
