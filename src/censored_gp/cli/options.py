"""Options that commands share, in groups, and the way to give a command such a group.

A group is a dataclass whose fields are options. A command that has a parameter of that class has
all of these options on its command line.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand

from censored_gp.cli.problems import explained
from censored_gp.cli.words import in_options

__all__ = ["COMMANDS", "File", "Files", "Output", "Probability", "Training", "command"]

MODELS = ("hmocgp", "mocgp", "hcgp", "cgp", "moncgp", "ncgp")
USUAL_MODEL, USUAL_LIKELIHOOD, USUAL_SIDE, USUAL_SEED = "hmocgp", "gaussian", "right", 0
"""What is meant where no option says otherwise. A model file says it itself, so that the options
must tell apart what was given and what was not."""
SIDES = ("right", "left", "share")


def _families(incomplete: str) -> list[str]:
    from censored_gp.likelihoods import FAMILIES

    return [name for name in FAMILIES if name.startswith(incomplete)]


def _models(incomplete: str) -> list[str]:
    return [name for name in MODELS if name.startswith(incomplete)]


def _option(*names: str, text: str, metavar: str = "NAME", **more: Any) -> Any:
    return typer.Option(*names, help=text, metavar=metavar, **more)


@dataclasses.dataclass(frozen=True)
class Files:
    """How files are read."""

    delimiter: Annotated[
        str | None,
        _option("--delimiter", metavar="SIGN", text="What separates the columns of a CSV file."),
    ] = None
    decimal: Annotated[
        str,
        _option("--decimal", metavar="SIGN", text="Decimal sign in a CSV file: point or comma."),
    ] = "."
    encoding: Annotated[str, _option("--encoding", text="How a CSV file is written.")] = "utf-8"
    zone: Annotated[
        str | None,
        _option("--zone", text="Time zone to read the times in, as Europe/Copenhagen."),
    ] = None
    where: Annotated[
        list[str] | None,
        _option(
            "--where", metavar="COLUMN=VALUE", text="Rows to read, as store=235; all must hold."
        ),
    ] = None
    ignore_memory: Annotated[
        bool, typer.Option("--ignore-memory", help="Begin even if the memory seems too small.")
    ] = False


@dataclasses.dataclass(frozen=True)
class Training:
    """What to fit, and to what; or a model that has been fitted."""

    outputs: Annotated[
        list[str] | None,
        _option(
            "--outputs",
            metavar="NAMES",
            text="Columns to model, as a,b; with --by, the column of values.",
        ),
    ] = None
    time: Annotated[str | None, _option("--time", text="Column of times.")] = None
    inputs: Annotated[
        list[str] | None,
        _option("--inputs", metavar="NAMES", text="Columns that explain the outputs, as x,y."),
    ] = None
    by: Annotated[
        str | None,
        _option("--by", text="Of a table with a row per output and time: column of the output."),
    ] = None
    only: Annotated[
        list[str] | None,
        _option("--only", metavar="NAMES", text="With --by: these outputs, and no others."),
    ] = None
    censored: Annotated[
        list[str] | None,
        _option(
            "--censored",
            metavar="NAMES",
            text="Flag columns: f,g in the order of outputs, or a=f,b=g.",
        ),
    ] = None
    capacity: Annotated[
        list[str] | None,
        _option(
            "--capacity",
            metavar="LIMITS",
            text="Most that could be seen: number or column, or a=16,b=docks.",
        ),
    ] = None
    lower: Annotated[
        list[str] | None,
        _option("--lower", metavar="LIMITS", text="Columns (or numbers) of lower bounds."),
    ] = None
    upper: Annotated[
        list[str] | None,
        _option("--upper", metavar="LIMITS", text="Columns (or numbers) of upper bounds."),
    ] = None
    side: Annotated[
        str | None,
        _option(
            "--side",
            metavar="SIDE",
            text="What a flag says: right (at least; usual), left (at most) or share (counted "
            "in part).",
        ),
    ] = None
    likelihood: Annotated[
        str | None,
        _option(
            "--likelihood",
            text="How outputs scatter, as negative_binomial or a=poisson,b=gamma (else gaussian).",
            autocompletion=_families,
        ),
    ] = None
    model: Annotated[
        str | None,
        _option(
            "--model",
            text=f"One of {', '.join(MODELS)}; usually {USUAL_MODEL}.",
            autocompletion=_models,
        ),
    ] = None
    iterations: Annotated[
        int | None,
        _option("--iterations", metavar="NUMBER", text="Steps of the fit at most.", min=1),
    ] = None
    seed: Annotated[
        int | None,
        _option("--seed", metavar="NUMBER", text="Seed of all that is random; usually 0.", min=0),
    ] = None
    load: Annotated[
        Path | None,
        _option(
            "--load",
            metavar="FILE",
            text="Model file to use instead; with FILE, its settings fitted anew.",
        ),
    ] = None
    save: Annotated[
        Path | None,
        _option("--save", metavar="FILE", text="File to keep the fitted model in, as model.cgp."),
    ] = None


Output = Annotated[
    str | None,
    _option(
        "--output",
        "-o",
        metavar="FILE",
        text="File for the result: .csv, .parquet, .json, or - (stdout).",
    ),
]
"""The option that says where a table goes."""


Probability = Annotated[
    float,
    _option("--probability", metavar="NUMBER", text="Of the intervals.", min=0.001, max=0.999),
]
"""The option that says how sure an interval is to be."""

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="Table to fit, CSV or Parquet (-: CSV from stdin); or --load."
    ),
]
"""The argument that names the table a model is fitted to."""


class Command(NamedTuple):
    """A function that the terminal can call, with its help."""

    run: Callable[..., None]
    text: str
    examples: tuple[str, ...]
    shown: type[TyperCommand] = TyperCommand
    """How its help is made."""


def command(
    name: str, *examples: str, later: Mapping[str, Callable[[], str]] | None = None
) -> Callable[[Callable], Callable]:
    """Make a function a command, with examples in its help and errors explained.

    Texts of options that are keys of `later` are made when somebody asks for this command's help:
    what takes long to load must not keep the others waiting.
    """

    def register(function: Callable) -> Callable:
        # The mark keeps the lines that follow it as they are.
        lines = "\n\n\b\nExample:\n" + "\n".join(f"  {line}" for line in examples)
        text = inspect.cleandoc(function.__doc__ or "") + lines
        COMMANDS[name] = Command(_with_groups(function), text, examples, _shown(later or {}))
        return function

    return register


COMMANDS: dict[str, Command] = {}
"""The commands by name."""


def _shown(later: Mapping[str, Callable[[], str]]) -> type[TyperCommand]:
    """Return a kind of command whose help has some texts that are made when it is shown."""

    class Shown(TyperCommand):
        def format_help(self, ctx: Any, formatter: Any) -> None:
            for parameter in self.params:
                text: Any = getattr(parameter, "help", None)
                if text in later:
                    parameter.help = later[text]()  # type: ignore[attr-defined]
            super().format_help(ctx, formatter)

    return Shown if later else TyperCommand


def _with_groups(function: Callable) -> Callable:
    """Return the function with the options of every group in its signature."""
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters.values()
    groups = {p.name: hints[p.name] for p in own if dataclasses.is_dataclass(hints[p.name])}
    plain = [p.replace(annotation=hints[p.name]) for p in own if p.name not in groups]
    spread = {name: _parameters(group) for name, group in groups.items()}

    @functools.wraps(function)
    def run(**given: Any) -> None:
        with explained(), in_options():
            made = {
                name: groups[name](**{p.name: given.pop(p.name) for p in parameters})
                for name, parameters in spread.items()
            }
            function(**given, **made)

    every = [*plain, *(p for parameters in spread.values() for p in parameters)]
    run.__dict__.pop("__wrapped__")
    run.__dict__["__signature__"] = inspect.Signature(every)
    run.__annotations__ = {p.name: p.annotation for p in every}
    return run


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(group)
    ]
