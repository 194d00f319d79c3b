"""Options that commands share, in groups, and the decorator that gives a command such a group.

A group is a dataclass whose fields are options. A command that has a parameter of that class has
all of these options on its command line.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from censored_gp.cli.console import bad_option, explained

ModelName = StrEnum("ModelName", ["hmocgp", "mocgp", "hcgp", "cgp", "moncgp", "ncgp"])
"""The six models of the paper."""
Side = StrEnum("Side", ["right", "left"])
"""What a flag says of a value."""


Names = list[str] | None
Text = str | None
Number = int | None


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """Return an option; its name is that of the parameter, unless others are given."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def _likelihoods(incomplete: str) -> list[str]:
    from censored_gp.likelihoods import FAMILIES

    return [name for name in FAMILIES if name.startswith(incomplete)]


DELIMITER = option("CHAR", "Column separator of a CSV file; '\\t' is a tab.")
TIME_FORMAT = option(
    "FORMAT",
    "How times are written, if not as 2024-06-03: '%d/%m/%Y' (day first), '%m/%d/%Y %H:%M' (month "
    "first). The letters are those of Python's strptime.",
)
WHERE = option("COLUMN=VALUE", "Read only these rows, as store=235; repeat for more.")


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """How table files are read."""

    delimiter: Annotated[Text, DELIMITER] = None
    decimal: Annotated[str, option("CHAR", "Decimal separator of a CSV file: . or ,")] = "."
    encoding: Annotated[str, option("NAME", "Text encoding of a CSV file.")] = "utf-8"
    zone: Annotated[Text, option("NAME", "Time zone of the times, as Europe/Copenhagen.")] = None
    time_format: Annotated[Text, TIME_FORMAT] = None
    where: Annotated[Names, WHERE] = None


OUTPUTS = option("NAMES", "Columns to model, as a,b; of a long table, the value column.")
BY = option("NAME", "For a long table (a row per output and time): output column.")
CENSORED = option("NAMES", "Flag columns: f,g in the order of --outputs, or a=f,b=g.")
CAPACITY = option("LIMITS", "Largest observable value: number or column, or a=16,b=docks.")
EXPOSURE = option(
    "SHARES",
    "Share of the period in which it was seen: column, or minutes/60, or 1-minutes_empty/60; "
    "unknown, for flagged counts that stopped at some moment.",
)
SIDE = typer.Option(
    help="Meaning of a flag: the truth is at least the value (right, the default) or at most "
    "the value (left)."
)
ROUNDED = option("STEPS", "Steps of recorded values: 1, or a=1,b=0.5; 0 is none. Found by default.")
FAMILY = "As negative_binomial, or a=poisson,b=gamma; gaussian by default."
LIKELIHOOD = option("NAME", FAMILY, autocompletion=_likelihoods)
MODEL = typer.Option(case_sensitive=False, help="hmocgp by default.")
ITERATIONS = option("NUMBER", "Maximal number of iterations.", min=1)
SUBSTITUTION = option(
    "SHARES",
    "Where the excess of an output at its limit goes: learned, or shares as a>b=0.6,b>a=0.5, or a "
    "CSV file of them: a column `from`, and one for each output.",
)
OWN_INPUTS = option(
    "NAMES",
    "Columns of numbers that explain one output alone, such as its price: with --by any number of "
    "them, else one for each output.",
)
LOAD = option("FILE", "Use this model file; with a table, fit its settings anew.")


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """Which column is what and which model to fit."""

    outputs: Annotated[Names, OUTPUTS] = None
    time: Annotated[Text, option("NAME", "Time column.")] = None
    inputs: Annotated[Names, option("NAMES", "Other input columns, as x,y.")] = None
    own_inputs: Annotated[Names, OWN_INPUTS] = None
    holidays: Annotated[Text, option("COUNTRY", "Public holidays as an input: DK, US-NY.")] = None
    by: Annotated[Text, BY] = None
    censored: Annotated[Names, CENSORED] = None
    capacity: Annotated[Names, CAPACITY] = None
    lower: Annotated[Names, option("LIMITS", "Lower bounds: columns or numbers.")] = None
    upper: Annotated[Names, option("LIMITS", "Upper bounds: columns or numbers.")] = None
    exposure: Annotated[Names, EXPOSURE] = None
    side: Annotated[Side | None, SIDE] = None
    rounded: Annotated[Names, ROUNDED] = None
    likelihood: Annotated[Text, LIKELIHOOD] = None
    model: Annotated[ModelName | None, MODEL] = None
    iterations: Annotated[Number, ITERATIONS] = None
    seed: Annotated[Number, option("NUMBER", "Random seed; 0 by default.", min=0)] = None


@dataclasses.dataclass(frozen=True)
class FitOptions(FileOptions, ModelOptions):
    """The same, or a model file to load; and where to save the model."""

    substitution: Annotated[Text, SUBSTITUTION] = None
    only: Annotated[Names, option("NAMES", "With --by: model only these outputs.")] = None
    load: Annotated[Path | None, LOAD] = None
    save: Annotated[Path | None, option("FILE", "Save the fitted model, as model.cgp.")] = None


@dataclasses.dataclass(frozen=True)
class FleetOptions(FileOptions, ModelOptions):
    """The same for many groups, each of which may be a long table."""

    by: Annotated[str, option("NAME", "Column of the groups: a model for each.")] = cast(str, ...)
    series: Annotated[Text, option("NAME", "Of long tables: output column.")] = None


RESULT = "Write the result to a .csv, .parquet or .json file; - is standard output (CSV)."
OutputOption = Annotated[Text, option("FILE", RESULT, "--output", "-o")]
INTERVAL = option("NUMBER", "Probability of the intervals.", min=0.001, max=0.999)
ProbabilityOption = Annotated[float, INTERVAL]
SamplesOption = Annotated[int, option("NUMBER", "Joint draws behind the answer.", min=1)]
FoldsOption = Annotated[int, option("NUMBER", "Folds of the cross-validation.", min=2)]
TABLE = "Table to fit: CSV or Parquet, or - for CSV on standard input."
TableArgument = Annotated[Path | None, typer.Argument(metavar="FILE", help=TABLE)]


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


def register(app: typer.Typer, name: str, *examples: str) -> Callable[[Callable], Callable]:
    """Return a decorator that makes a function a command, with examples in its help.

    Parameters that are groups become their options. What the function returns, text or a table or
    an iterator over parts of one, is written to `--output`. Errors become messages.
    """

    def decorate(function: Callable) -> Callable:
        hints = get_type_hints(function, include_extras=True)
        groups = {n: hint for n, hint in hints.items() if dataclasses.is_dataclass(hint)}
        own = [p for p in inspect.signature(function).parameters.values() if p.name not in groups]
        parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
        fields = {n: dataclasses.fields(group) for n, group in groups.items()}
        for n, group in groups.items():
            types = get_type_hints(group, include_extras=True)
            parameters += [
                inspect.Parameter(
                    f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default,
                    annotation=types[f.name],
                )
                for f in fields[n]
            ]  # fmt: skip

        def run(**given: Any) -> None:
            for n, group in groups.items():
                given[n] = cast(Any, group)(**{f.name: given.pop(f.name) for f in fields[n]})
            with explained():
                answer = function(**given)
                if answer is not None:
                    from censored_gp.cli.output import write

                    write(answer, given["output"])

        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        # \b keeps the lines that follow it as they are.
        lines = "\n".join(f"  {line}" for line in examples)
        text = f"{inspect.cleandoc(function.__doc__ or '')}\n\n\b\nExample:\n{lines}"
        app.command(name, help=text)(run)
        return function

    return decorate
