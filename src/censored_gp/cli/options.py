"""Options that commands share, in groups, and the decorator that gives a command such a group.

A group is a dataclass whose fields are options. A command that has a parameter of that class has
all of these options on its command line.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from censored_gp.cli.console import bad_option, explained

ModelName = StrEnum("ModelName", ["hmocgp", "mocgp", "hcgp", "cgp", "moncgp", "ncgp"])
"""The six models of the paper."""
Side = StrEnum("Side", ["right", "left", "share"])
"""What a flag says of a value."""


Names = list[str] | None
Text = str | None


def _option(metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=text, **more)


def _likelihoods(incomplete: str) -> list[str]:
    from censored_gp.likelihoods import FAMILIES

    return [name for name in FAMILIES if name.startswith(incomplete)]


DELIMITER = _option("CHAR", "Column separator of a CSV file; '\\t' is a tab.")
TIME_FORMAT = _option(
    "FORMAT",
    "How times are written, if not as 2024-06-03: '%d/%m/%Y' (day first), '%m/%d/%Y %H:%M' (month "
    "first). The letters are those of Python's strptime.",
)
WHERE = _option("COLUMN=VALUE", "Read only these rows, as store=235; repeat for more.")


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """How table files are read."""

    delimiter: Annotated[Text, DELIMITER] = None
    decimal: Annotated[str, _option("CHAR", "Decimal separator of a CSV file: . or ,")] = "."
    encoding: Annotated[str, _option("NAME", "Text encoding of a CSV file.")] = "utf-8"
    zone: Annotated[Text, _option("NAME", "Time zone of the times, as Europe/Copenhagen.")] = None
    time_format: Annotated[Text, TIME_FORMAT] = None
    where: Annotated[Names, WHERE] = None


OUTPUTS = _option("NAMES", "Columns to model, as a,b; of a long table, the value column.")
BY = _option("NAME", "For a long table (a row per output and time): output column.")
CENSORED = _option("NAMES", "Flag columns: f,g in the order of --outputs, or a=f,b=g.")
CAPACITY = _option("LIMITS", "Largest observable value: number or column, or a=16,b=docks.")
SIDE = typer.Option(
    help="Meaning of a flag: the truth is at least the value (right, the default), at most "
    "the value (left), or only a random share of it was counted (share)."
)
LIKELIHOOD = _option(
    "NAME",
    "As negative_binomial, or a=poisson,b=gamma; gaussian by default.",
    autocompletion=_likelihoods,
)
LOAD = _option("FILE", "Use this model file; with a table, fit its settings anew.")


@dataclasses.dataclass(frozen=True)
class BaseOptions:
    """Which column is what and which model to fit."""

    outputs: Annotated[Names, OUTPUTS] = None
    time: Annotated[Text, _option("NAME", "Time column.")] = None
    inputs: Annotated[Names, _option("NAMES", "Other input columns, as x,y.")] = None
    by: Annotated[Text, BY] = None
    censored: Annotated[Names, CENSORED] = None
    capacity: Annotated[Names, CAPACITY] = None
    lower: Annotated[Names, _option("LIMITS", "Lower bounds: columns or numbers.")] = None
    upper: Annotated[Names, _option("LIMITS", "Upper bounds: columns or numbers.")] = None
    side: Annotated[Side | None, SIDE] = None
    likelihood: Annotated[Text, LIKELIHOOD] = None
    model: Annotated[
        ModelName | None, typer.Option(case_sensitive=False, help="hmocgp by default.")
    ] = None
    iterations: Annotated[int | None, _option("NUMBER", "Maximal number of iterations.", min=1)] = (
        None
    )
    seed: Annotated[int | None, _option("NUMBER", "Random seed; 0 by default.", min=0)] = None


@dataclasses.dataclass(frozen=True)
class FitOptions(BaseOptions):
    """The same, or a model file to load; and where to save the model."""

    only: Annotated[Names, _option("NAMES", "With --by: model only these outputs.")] = None
    load: Annotated[Path | None, LOAD] = None
    save: Annotated[Path | None, _option("FILE", "Save the fitted model, as model.cgp.")] = None


@dataclasses.dataclass(frozen=True)
class FleetOptions(BaseOptions):
    """The same for many groups, each of which may be a long table."""

    by: Annotated[str, _option("NAME", "Column of the groups: a model for each.")] = cast(str, ...)
    series: Annotated[Text, _option("NAME", "Of long tables: output column.")] = None


OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result to a .csv, .parquet or .json file; - is standard output (CSV).",
    ),
]
ProbabilityOption = Annotated[
    float,
    _option("NUMBER", "Probability of the intervals.", min=0.001, max=0.999),
]
TableArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="Table to fit: CSV or Parquet, or - for CSV on standard input."
    ),
]


def split_names(given: Iterable[str] | None, header: Sequence[str] = ()) -> list[str]:
    """Return names from comma-separated lists; a name of the header may hold a comma itself.

    >>> split_names(["a,b", "c"]), split_names(["a,b"], ["a,b"])
    (['a', 'b', 'c'], ['a,b'])
    """
    parts = [[part] if part in header else part.split(",") for part in given or ()]
    return [name.strip() for several in parts for name in several if name.strip()]


def split_presets(option: str, given: Iterable[str] | None) -> list[str]:
    """Return the models of a comma-separated list, in capitals as the library has them."""
    from censored_gp.data.errors import did_you_mean

    names = [name.lower() for name in split_names(given)]
    for name in names:
        if name not in list(ModelName):
            hint = did_you_mean(name, ModelName)
            raise bad_option(option, f"{name!r} is not one of {', '.join(ModelName)}. {hint}")
    return [name.upper() for name in names]


def command(app: typer.Typer, name: str, *examples: str) -> Callable[[Callable], Callable]:
    """Register a function as a command: option groups spread, examples in its help, errors told."""

    def register(function: Callable) -> Callable:
        # \b keeps the lines that follow it as they are.
        lines = "\n".join(f"  {line}" for line in examples)
        text = f"{inspect.cleandoc(function.__doc__ or '')}\n\n\b\nExample:\n{lines}"
        app.command(name, help=text)(_spread_groups(function))
        return function

    return register


def _spread_groups(function: Callable) -> Callable:
    """Return the function with the options of its groups in its signature."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)
    }
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
    for group in groups.values():
        types = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )
            for field in dataclasses.fields(group)
        ]

    @functools.wraps(function)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            names = [field.name for field in dataclasses.fields(group)]
            given[name] = group(**{field: given.pop(field) for field in names})
        with explained():
            function(**given)

    del run.__wrapped__
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
