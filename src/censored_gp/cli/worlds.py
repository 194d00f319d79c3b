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

    seed: Annotated[int | None, typer.Option(min=0, help="Which world to simulate; usually 0.")] = (
        None
    )
    days: Annotated[
        int | None, typer.Option(min=1, help="Days to simulate; none: enough to try things on.")
    ] = None
    samples: Annotated[int | None, typer.Option(min=1, help="Water samples to simulate.")] = None
    names: Annotated[
        list[str] | None, typer.Option(help="Stations, car parks or products, as 3711,366.")
    ] = None
    months: Annotated[list[str] | None, typer.Option(help="Months, as 2018-06,2018-07.")] = None
    store: Annotated[int | None, typer.Option(help="Store of the retail data.")] = None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        names = [field.name for field in dataclasses.fields(self)]
        return [name for name in names if getattr(self, name) not in (None, [])]

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
    options: tuple[str, ...]
    """What may be chosen of it."""


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
    options = WORLDS[name].options
    other = [option for option in choice.given if option not in options]
    if other:
        raise BadInput(
            f"--{other[0]}: {name} has no such choice. It has "
            f"{', '.join(f'--{option}' for option in options)}."
        )
    columns = WORLDS[name].columns(choice)
    # A table has no times in hours.
    stored = {
        n: c.astype("datetime64[us]") if c.dtype.kind == "M" else c for n, c in columns.items()
    }
    return require_pyarrow().table(stored)


def _simulated(name: str, **sizes: int) -> Callable[[Choice], dict[str, Any]]:
    """Return how a world is simulated: what somebody has who records it, and the truth.

    Sizes are what it has unless the user chose otherwise.
    """

    def columns(choice: Choice) -> dict[str, Any]:
        from censored_gp.datasets import simulated

        chosen = {size: getattr(choice, size) or usual for size, usual in sizes.items()}
        return getattr(simulated, name)(**chosen, seed=choice.seed or 0).table(truth=True)

    return columns


def _new_york(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    world = datasets.new_york(choice.seed or 0)
    return world.inputs(*world.weather) | world.table(truth=True)


def _citibike(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    months, names = choice.wanted("months", "2018-06"), choice.wanted("names", "3711,366")
    return datasets.citibike(months, names).table()


def _birmingham_parking(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    return datasets.birmingham_parking(choice.wanted("names", "BHMBCCTHL01,BHMBCCMKT01")).table()


def _fresh_retail(choice: Choice) -> dict[str, Any]:
    from censored_gp import datasets

    products = tuple(map(int, choice.wanted("names", "70,81")))
    return datasets.fresh_retail(int(choice.wanted("store", "235")[0]), products).table()


def _simulation(text: str, name: str, **sizes: int) -> World:
    return World("simulated", text, _simulated(name, **sizes), (*sizes, "seed"))


WORLDS = {
    "bike_share": _simulation("stations that run out of bikes", "bike_share", days=14),
    "car_park": _simulation("car parks that fill up", "car_park", days=28),
    "shop": _simulation("fresh products that sell out", "shop", days=120),
    "water_samples": _simulation("metals below detection limits", "water_samples", samples=120),
    "new_york": World(
        "local file", "the paper's stations 3711 and 366, part hidden", _new_york, ("seed",)
    ),
    "citibike": World(
        "download", "Citi Bike trips by station and hour", _citibike, ("names", "months")
    ),
    "birmingham_parking": World(
        "download", "car parks that fill up", _birmingham_parking, ("names",)
    ),
    "fresh_retail": World(
        "download", "fresh products that sell out", _fresh_retail, ("names", "store")
    ),
}
"""The data sets by name."""
