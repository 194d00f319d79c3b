"""What may be known of a datum."""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = ("exact", "right", "left", "interval")
"""What an interval can be, besides missing."""
OPEN = KINDS[1:]
"""Those that are not a point."""
ONE_SIDED = ("right", "left")


def open_kinds(lower: Any, upper: Any) -> tuple[str, ...]:
    """Return the kinds of interval that bounds make, besides points.

    A bound that no cell has comes as a plain infinite number: then there is less to compile.

    >>> open_kinds(np.zeros(3), np.inf), open_kinds(np.zeros(3), np.full(3, np.inf))
    (('right', 'left'), ('right', 'left', 'interval'))
    """
    absent = any(isinstance(bound, float) and np.isinf(bound) for bound in (lower, upper))
    return ONE_SIDED if absent else OPEN
