"""Options, each declared once: groups of them that commands share, and the decorator of commands.

An option is a pair: its type, and what Typer must know of it (its default, its help). A command
gets the values of its options as attributes of one argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Given
from typing import Any

import typer

from censored_gp.cli.console import bad_option, explained, import_whole

# The six models of the paper.
MODEL_NAMES = ("hmocgp", "mocgp", "hcgp", "cgp", "moncgp", "ncgp")

Option = tuple[Any, Any]
Options = dict[str, Option]


def option(
    kind: Any, metavar: str | None, text: str, default: Any = None, *names: str, **more: Any
) -> Option:
    """Return an option; its name is that of the parameter, unless others are given."""
    return kind, typer.Option(default, *names, metavar=metavar, help=text, **more)


text = partial(option, str | None)
names = partial(option, list[str] | None)
number = partial(option, int | None, "NUMBER")
share = partial(option, float, "NUMBER", min=0.001, max=0.999)
path = partial(option, Path | None, "FILE")


def one_of(name: str, values: Iterable[str], given: str) -> str:
    """Return one of the values of an option, whatever its case, or refuse it."""
    from censored_gp.data.errors import did_you_mean

    if given.lower() not in values:
        hint = did_you_mean(given, values)
        raise bad_option(name, f"{given!r} is not one of {', '.join(values)}. {hint}")
    return given.lower()


def choice(name: str, values: tuple[str, ...], text: str) -> Option:
    """Return an option that has one of some values."""
    return option(
        str | None,
        f"<{'|'.join(values)}>",
        text,
        callback=lambda given: given and one_of(name, values, given),
        autocompletion=lambda incomplete: [v for v in values if v.startswith(incomplete)],
    )


def table(text: str, default: Any = None) -> Option:
    """Return the argument FILE."""
    return Path | None, typer.Argument(default, metavar="FILE", help=text)


def _likelihoods(incomplete: str) -> list[str]:
    from censored_gp.likelihoods import FAMILIES

    return [name for name in FAMILIES if name.startswith(incomplete)]


def output(text: str, default: str | None = None) -> Option:
    """Return the option --output."""
    return option(str | None, "FILE", text, default, "--output", "-o")


# How table files are read.
FILE: Options = {
    "delimiter": text("CHAR", "Column separator of a CSV file; '\\t' is a tab."),
    "decimal": text("CHAR", "Decimal separator of a CSV file: . or ,", "."),
    "encoding": text("NAME", "Text encoding of a CSV file.", "utf-8"),
    "zone": text("NAME", "Time zone of the times, as Europe/Copenhagen."),
    "time_format": text(
        "FORMAT",
        "How times are written, if not as 2024-06-03: '%d/%m/%Y' (day first), '%m/%d/%Y %H:%M' "
        "(month first). The letters are those of Python's strptime.",
    ),
    "where": names("COLUMN=VALUE", "Read only these rows, as store=235; repeat for more."),
}

# Which column is what and which model to fit.
MODEL: Options = {
    "outputs": names("NAMES", "Columns to model, as a,b; of a long table, the value column."),
    "time": text("NAME", "Time column."),
    "inputs": names("NAMES", "Other input columns, as x,y."),
    "own_inputs": names(
        "NAMES",
        "Columns of numbers that explain one output alone, such as its price: with --by any number "
        "of them, else one for each output.",
    ),
    "holidays": text("COUNTRY", "Public holidays as an input: DK, US-NY."),
    "by": text("NAME", "For a long table (a row per output and time): output column."),
    "censored": names("NAMES", "Flag columns: f,g in the order of --outputs, or a=f,b=g."),
    "capacity": names("LIMITS", "Largest observable value: number or column, or a=16,b=docks."),
    "lower": names("LIMITS", "Lower bounds: columns or numbers."),
    "upper": names("LIMITS", "Upper bounds: columns or numbers."),
    "exposure": names(
        "SHARES",
        "Share of the period in which it was seen: column, or minutes/60, or 1-minutes_empty/60; "
        "unknown, for flagged counts that stopped at some moment.",
    ),
    "side": choice(
        "--side",
        ("right", "left"),
        "A flag means that the truth is at least the value (right, the default) or at most (left).",
    ),
    "rounded": names("STEPS", "Steps of values: 1, or a=1,b=0.5; 0: none. By default found."),
    "likelihood": text(
        "NAME",
        "As poisson, or a=poisson,b=gamma; gaussian by default.",
        autocompletion=_likelihoods,
    ),
    "model": choice("--model", MODEL_NAMES, "hmocgp by default."),
    "iterations": number("Maximal number of iterations.", min=1),
    "seed": number("Random seed; 0 by default.", min=0),
}

# The same, or a model file to load; where to save the model, and where to write the answer.
FIT: Options = {
    **FILE,
    **MODEL,
    "substitution": text(
        "SHARES",
        "Where the excess of an output at its limit goes: learned, or shares as a>b=0.6,b>a=0.5, "
        "or a CSV file of them: a column `from`, and one for each output.",
    ),
    "only": names("NAMES", "With --by: model only these outputs."),
    "load": path("Use this model file; with a table, fit its settings anew."),
    "save": path("Save the fitted model, as model.cgp."),
    "file": table("Table to fit: CSV or Parquet, or - for CSV on standard input."),
    "output": output("Write to a .csv, .parquet or .json file; - is standard output (CSV)."),
}

PROBABILITY = share("Probability of the intervals.", 0.9)
SAMPLES = number("Joint draws behind the answer.", 500, min=1)


def split_names(given: Iterable[str] | None, header: Sequence[str] = ()) -> list[str]:
    """Return names from comma-separated lists; a name of the header may hold a comma itself.

    >>> split_names(["a,b", "c"]), split_names(["a,b"], ["a,b"])
    (['a', 'b', 'c'], ['a,b'])
    """
    parts = [[part] if part in header else part.split(",") for part in given or ()]
    return [name.strip() for several in parts for name in several if name.strip()]


def split_presets(option: str, given: Iterable[str] | None) -> list[str]:
    """Return the models of a comma-separated list, in capitals as the library has them."""
    return [one_of(option, MODEL_NAMES, name).upper() for name in split_names(given)]


def register(
    app: typer.Typer, name: str, /, *examples: str, group: Options = FIT, **own: Option
) -> Callable[[Callable], Callable]:
    """Return a decorator that makes a function a command, with examples in its help.

    Its options are its own and those of the group. What the function returns, text or a table or an
    iterator over parts of one, is written to `--output`. Errors become messages.
    """
    options = own | {n: each for n, each in group.items() if n not in own}

    def decorate(function: Callable) -> Callable:
        def run(**values: Any) -> None:
            with explained():
                import_whole("censored_gp.cli.fitting")
                answer = function(Given(**values))
                if answer is not None:
                    from censored_gp.cli.output import write

                    write(answer, values["output"])

        run.__dict__["__signature__"] = inspect.Signature(
            [
                inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind)
                for n, (kind, info) in options.items()
            ]
        )
        run.__annotations__ = {n: kind for n, (kind, _) in options.items()}
        # \b keeps the lines that follow it as they are.
        lines = "\n".join(f"  {line}" for line in examples)
        text = f"{inspect.cleandoc(function.__doc__ or '')}\n\n\b\nExample:\n{lines}"
        app.command(name, help=text)(run)
        return function

    return decorate
