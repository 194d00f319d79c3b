"""Data sets by name, as tables with a column for each thing: simulated worlds, and real data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from censored_gp.cli.arrow import require_pyarrow
from censored_gp.cli.plans import split_names
from censored_gp.cli.problems import BadInput

__all__ = ["WORLDS", "Choice", "listing", "table_of"]


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which part of a data set is wanted."""

    seed: Annotated[int, typer.Option(min=0, help="Which world to simulate.")] = 0
    days: Annotated[int, typer.Option(min=1, help="Days to simulate.")] = 14
    names: Annotated[
        list[str] | None, typer.Option(help="Stations, car parks or products, as 3711,366.")
    ] = None
    months: Annotated[list[str] | None, typer.Option(help="Months, as 2018-06,2018-07.")] = None
    store: Annotated[int | None, typer.Option(help="Store of the retail data.")] = None

    def wanted(self, name: str, example: str) -> tuple[str, ...]:
        """Return what was given by an option that a data set needs."""
        given = getattr(self, name)
        found = split_names(given if isinstance(given, list) else given and [str(given)])
        if not found:
            raise BadInput(f"data: --{name} is missing. Give it, as --{name} {example}.")
        return found


class World(NamedTuple):
    """A data set: what it is, and how to get it."""

    kind: str
    text: str
    columns: Callable[[Choice], dict[str, Any]]


def listing() -> list[dict[str, str]]:
    """Return a table of the data sets there are.

    >>> listing()[0]["name"]
    'bike_share'
    """
    return [{"name": name, "kind": w.kind, "what": w.text} for name, w in WORLDS.items()]


def table_of(name: str, choice: Choice) -> Any:
    """Return a data set as a pyarrow table.

    >>> table_of("bike_share", Choice(days=1)).column_names[:4]
    ['time', 'rain', 'station_1', 'station_1_empty']
    """
    columns = WORLDS[name].columns(choice)
    # A table has no times in hours.
    stored = {
        n: c.astype("datetime64[us]") if c.dtype.kind == "M" else c for n, c in columns.items()
    }
    return require_pyarrow().table(stored)


def _side_by_side(names: tuple[str, ...], **parts: Any) -> dict[str, Any]:
    """Return a column for each output and part; the first part bears the output's own name."""
    ends = dict(zip(parts, ("", *(f"_{part}" for part in list(parts)[1:])), strict=True))
    return {
        f"{name}{ends[part]}": cells[:, d]
        for d, name in enumerate(names)
        for part, cells in parts.items()
    }


def _bike_share(choice: Choice) -> dict[str, Any]:
    from censored_gp import simulate

    world = simulate.bike_share(days=choice.days, seed=choice.seed)
    return world.inputs() | _side_by_side(
        world.names, seen=world.observed, empty=world.censored, truth=world.demand
    )


def _new_york(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    world = datasets.new_york(choice.seed)
    return world.inputs(*world.weather) | _side_by_side(
        world.names, seen=world.observed, censored=world.censored, truth=world.truth
    )


def _citibike(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    months, names = choice.wanted("months", "2018-06"), choice.wanted("names", "3711,366")
    found = datasets.citibike(months, names)
    cells = _side_by_side(found.names, pickups=found.pickups, dropoffs=found.dropoffs)
    return {"time": found.time, **cells}


def _birmingham_parking(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    found = datasets.birmingham_parking(choice.wanted("names", "BHMBCCTHL01,BHMBCCMKT01"))
    return found.inputs() | _side_by_side(found.names, seen=found.truth, full=found.limited)


def _fresh_retail(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    products = tuple(map(int, choice.wanted("names", "70,81")))
    found = datasets.fresh_retail(int(choice.wanted("store", "235")[0]), products)
    return found.inputs() | _side_by_side(found.names, seen=found.truth, sold_out=found.limited)


WORLDS = {
    "bike_share": World("simulated", "two stations that run out of bikes", _bike_share),
    "new_york": World("local file", "the paper's stations 3711 and 366, part hidden", _new_york),
    "citibike": World("download", "Citi Bike trips by station and hour", _citibike),
    "birmingham_parking": World("download", "car parks that fill up", _birmingham_parking),
    "fresh_retail": World("download", "fresh products that sell out", _fresh_retail),
}
"""The data sets by name."""
