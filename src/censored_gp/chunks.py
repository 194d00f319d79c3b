"""Cells in parts: how many a program is for, and which of them it is asked about at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

__all__ = ["coarse", "pad_last", "shapes", "slices"]


def shapes(total: int, most: int) -> tuple[int, list[slice]]:
    """Return how many cells a program is for, and the cells that are asked of it at a time.

    Not more than there are, unless these are very few: cells that only pad a shape take as long as
    real ones, and another call of the same program takes no time.

    >>> shapes(440, 512)
    (256, [slice(0, 256, None), slice(256, 440, None)])
    >>> shapes(5, 512), shapes(100, 20)[0]
    ((16, [slice(0, 5, None)]), 16)
    """
    wanted = max(1, min(total, most))
    size = coarse(wanted)
    if size > wanted:
        size = max(16, size // 4 if size <= 1024 else size // 2)
    return size, list(slices(total, size))


def coarse(size: int) -> int:
    """Round a number of cells up to a power of four, from 1024 on of two: few shapes, few programs.

    So few cells as there are below take no time, and a program takes seconds to compile.

    >>> [coarse(n) for n in (1, 16, 17, 1000, 1025)]
    [16, 16, 64, 1024, 2048]
    """
    digits = max(size - 1, 15).bit_length()
    return 1 << (digits + digits % 2 if size <= 1024 else digits)


def slices(size: int, most: int) -> Iterator[slice]:
    """Yield slices that are not longer than so many.

    >>> list(slices(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, size, most):
        yield slice(start, min(start + most, size))


def pad_last(cells: Float[np.ndarray, "... K"], room: int) -> Float[np.ndarray, "... P"]:
    """Repeat the last cell.

    >>> pad_last(np.array([1.0, 2.0]), 2)
    array([1., 2., 2., 2.])
    """
    return np.pad(cells, [(0, 0)] * (cells.ndim - 1) + [(0, room)], "edge")
