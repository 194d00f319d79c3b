"""What users might pass: tables, columns, bounds, kernels and other arguments, sound and not."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from censored_gp import kernels

LARGEST = 1e100
"""Larger numbers are refused or not by rules of their own, which other tests are about."""
WORDS = ("", " ", "a", "b", "time", "rain", "nan", "1,204", "0x1f", "1e5", "=1+1", "é", "1d", "3h")

numbers = st.one_of(
    st.integers(-5, 50),
    st.floats(-LARGEST, LARGEST),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e-300, np.nan, np.inf, -np.inf, 2**63, 10**30]),
)
times = st.one_of(
    st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)),
    st.dates(),
    st.timedeltas(),
    st.integers(0, 10**6).map(lambda n: np.datetime64("2024-01-01", "m") + n),
)
odd = st.one_of(
    st.none(), st.booleans(), st.sampled_from(WORDS), st.binary(max_size=3), st.complex_numbers(),
    st.builds(object), st.lists(st.integers(0, 3), max_size=2), st.builds(dict), times,
)  # fmt: skip
cells = st.one_of(numbers, numbers, numbers, odd)


@st.composite
def columns(draw, rows):
    """One column: mostly of one type, as columns are."""
    kind = draw(st.sampled_from(["floats", "small", "counts", "flags", "times", "text", "mixed"]))
    many = {"min_size": rows, "max_size": rows}
    match kind:
        case "floats":
            return np.array(draw(st.lists(st.floats(-LARGEST, LARGEST), **many)))
        case "small":
            return np.array(draw(st.lists(st.floats(-10, 10, width=16), **many)))
        case "counts":
            return np.array(draw(st.lists(st.integers(0, 99), **many)), dtype=np.int64)
        case "flags":
            return np.array(draw(st.lists(st.sampled_from([0, 1, -1, True]), **many)))
        case "times" if rows:
            start, step = draw(st.integers(-(10**6), 10**6)), draw(st.integers(0, 100))
            return np.datetime64("2024-01-01", "h") + start + step * np.arange(rows)
        case "text" | "times":
            found = draw(st.lists(st.sampled_from(["x", "y", *WORDS]), **many))
            return np.array(found, dtype=object)
    found = np.empty(rows, dtype=object)
    found[:] = draw(st.lists(cells, **many))
    return found


@st.composite
def tables(draw, names=("time", "rain", "a", "b", "a_empty"), most=8):
    """A table of some make."""
    rows = draw(st.integers(0, most))
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)))
    made = {name: draw(columns(rows)) for name in chosen}
    make = draw(st.sampled_from(["dict", "lists", "pandas", "polars", "pyarrow"]))
    try:
        match make:
            case "pandas":
                return pd.DataFrame(made)
            case "polars":
                return pl.DataFrame(made)
            case "pyarrow":
                return pa.table({name: pa.array(list(column)) for name, column in made.items()})
    except Exception:
        # Not a table that this package could hold.
        return made
    return {name: list(column) for name, column in made.items()} if make == "lists" else made


@st.composite
def arrays(draw, most=8):
    """An array, a list of lists, or no array at all."""
    rows, wide = draw(st.integers(0, most)), draw(st.integers(0, 3))
    made = [draw(columns(rows)) for _ in range(wide)]
    match draw(st.sampled_from(["array", "list", "flat", "odd", "masked", "deep"])):
        case "array":
            alike = all(np.can_cast(column.dtype, float) for column in made)
            stacked = np.empty((rows, wide), dtype=float if alike else object)
            for place, column in enumerate(made):
                stacked[:, place] = column if alike else column.astype(object)
            return stacked
        case "list":
            return [list(row) for row in zip(*made, strict=True)]
        case "flat":
            return made[0] if made else []
        case "masked":
            return np.ma.array(np.arange(float(rows)), mask=np.arange(rows) % 2)
        case "deep":
            return np.zeros((rows, 1, 2))
    return draw(odd)


names = st.one_of(
    st.none(),
    st.sampled_from(["a", "b", "time", "rain", "a_empty", "absent", "", 0, 3.5, True]),
    st.lists(st.sampled_from(["a", "b", "rain", "absent", 0]), max_size=3),
    st.dictionaries(
        st.sampled_from(["a", "b", "absent"]),
        st.one_of(numbers, st.sampled_from(["a_empty", "rain", "absent"])),
        max_size=2,
    ),
)
"""Arguments that name columns."""

limits = st.one_of(st.none(), names, numbers, odd, arrays())
"""Arguments that are bounds."""

settings_of_kernels = st.one_of(
    st.floats(1e-3, 1e3), numbers, st.sampled_from(["1d", "2h", "1w", "", "x"]), odd,
    st.lists(st.floats(0.1, 10), max_size=3),
)  # fmt: skip


@st.composite
def simple_kernels(draw):
    """A call that makes a kernel: the class and its arguments."""
    kinds = [getattr(kernels, n) for n in kernels.__all__ if n not in ("Kernel", "hyperparameter")]
    kind = draw(st.sampled_from(kinds))
    own = draw(st.lists(settings_of_kernels, max_size=3))
    where = st.one_of(st.none(), st.sampled_from([0, 1, [0], [0, 1], 7, -1, "time", "rain", "x"]))
    return kind, own, {} if draw(st.booleans()) else {"columns": draw(where)}
