"""Data sets by name, as tables with a column for each thing: simulated worlds, and real data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["WORLDS", "listing", "table_of"]


class World(NamedTuple):
    """A data set: what it is, how it is made from a seed, and what its flags are called."""

    text: str
    make: Callable[[int], Any]
    flag: str = "censored"


def _bike_share(seed: int) -> Any:
    from censored_gp import simulate

    return simulate.bike_share(days=14, seed=seed)


def _new_york(seed: int) -> Any:
    from censored_gp import datasets

    return datasets.new_york(seed)


WORLDS = {
    "bike_share": World("simulated: two stations that run out of bikes", _bike_share, "empty"),
    "new_york": World("real: the paper's stations 3711 and 366, part hidden", _new_york),
}
"""The data sets; more are added by one line each."""


def listing() -> list[dict[str, str]]:
    """Return a table of the data sets there are."""
    return [{"name": name, "what": world.text} for name, world in WORLDS.items()]


def table_of(name: str, seed: int) -> Any:
    """Return a data set as a pyarrow table: inputs, then what was seen, the flags and the truth."""
    import pyarrow as pa

    world = WORLDS[name].make(seed)
    columns = {name: _storable(column) for name, column in world.inputs().items()}
    truth = world.demand if hasattr(world, "demand") else world.truth
    for d, output in enumerate(world.names):
        columns[output] = world.observed[:, d]
        columns[f"{output}_{WORLDS[name].flag}"] = world.censored[:, d]
        columns[f"{output}_truth"] = truth[:, d]
    return pa.table(columns)


def _storable(column: Any) -> Any:
    # A table has no times in hours.
    return column.astype("datetime64[us]") if column.dtype.kind == "M" else column
