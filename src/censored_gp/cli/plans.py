"""Which column of a file is what: from the options of a command, or from a model file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from censored_gp.cli.options import SIDES, USUAL_SIDE, Training
from censored_gp.cli.problems import BadInput
from censored_gp.cli.reading import Roles

__all__ = ["Plan", "plan_of_columns", "plan_of_layout", "plan_of_options", "split_names"]

GIVEN = (
    *("outputs", "time", "inputs", "by", "only", "censored", "capacity", "lower", "upper"),
    *("side", "likelihood", "model"),
)
"""Options about which a model file has its own say."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What `CensoredGP.fit` is told of a table.

    >>> Plan(("a",), "time", capacity="docks").roles().columns
    ('time', 'a', 'docks')
    """

    outputs: tuple[str, ...]
    time: str | None = None
    inputs: tuple[str, ...] = ()
    by: str | None = None
    censored: Any = None
    capacity: Any = None
    lower: Any = None
    upper: Any = None
    side: str = "right"
    only: tuple[Any, ...] = ()
    """Of a long table, the outputs that are wanted; none: all."""

    def roles(self) -> Roles:
        """Return the columns to read from the file; only what has bounds may be absent."""
        bounds = [*_columns(self.lower), *_columns(self.upper)]
        return Roles(
            numbers=(*self.outputs, *_columns(self.capacity), *bounds),
            flags=tuple(_columns(self.censored)),
            inputs=self.inputs,
            time=self.time,
            by=self.by,
            optional=frozenset(self.outputs if bounds else ()),
        )

    def roles_of_new(self) -> Roles:
        """Return the columns that rows to predict at must have."""
        by = frozenset(() if self.by is None else {self.by})
        return Roles(inputs=self.inputs, time=self.time, by=self.by, optional=by)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `fit`."""
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        given.pop("only")
        outputs = self.outputs[0] if self.by is not None else list(self.outputs)
        return given | {"outputs": outputs, "inputs": list(self.inputs) or None}


def plan_of_options(options: Training, names: Sequence[str], file: str = "The file") -> Plan:
    """Return the plan that the options describe, for a file with columns of the given names.

    >>> plan_of_options(Training(outputs=["a"], time="t", capacity=["16"]), ["t", "a"]).capacity
    16.0
    """
    outputs = split_names(options.outputs, names)
    if not outputs:
        raise BadInput(
            f"--outputs is missing: say which columns to model. There are "
            f"{', '.join(map(repr, names))}."
        )
    if options.time is None and not options.inputs:
        raise BadInput("--time and --inputs are missing: say what explains the outputs.")
    if options.only and options.by is None:
        raise BadInput("--only is for tables with a row per output and time: give --by as well.")
    side = options.side or USUAL_SIDE
    if side not in SIDES:
        raise BadInput(f"--side: found {side!r}. Accepted are {', '.join(SIDES)}.")
    limits = {
        name: _limits(getattr(options, name), names, f"--{name}", outputs, file)
        for name in ("censored", "capacity", "lower", "upper")
    }
    return Plan(
        outputs,
        options.time,
        split_names(options.inputs, names),
        options.by,
        side=side,
        only=split_names(options.only),
        **limits,
    )


def plan_of_layout(model: Any, name: str) -> Plan:
    """Return the plan that a model file holds."""
    layout = model.layout_
    if layout is None:
        raise BadInput(
            f"{name} was fitted to arrays, whose columns have no names to be found in a file. Fit "
            "it to a table: fit(table, outputs=[...], time=...)."
        )
    outputs, only = (layout.outputs, ()) if layout.by is None else ((layout.value,), layout.outputs)
    fields = ("censored", "capacity", "lower", "upper", "side")
    spec = {name: getattr(layout, name) for name in fields}
    return Plan(tuple(outputs), layout.time, tuple(layout.inputs), layout.by, only=only, **spec)


def plan_of_columns(model: Any) -> Plan:
    """Return which columns a table must have for a model that was fitted to arrays: its inputs."""
    columns = model.columns_
    sources = {name: columns.is_time[places[0]] for name, places in columns.groups.items()}
    time = next((name for name, is_time in sources.items() if is_time), None)
    inputs = tuple(name for name in sources if name != time)
    return Plan(tuple(map(str, model.output_names_)), time, inputs)


def split_names(given: Iterable[str] | None, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return names from a list in which commas separate them; a column may hold a comma itself.

    >>> split_names(["a,b", "c"]), split_names(["a,b"], ["a,b"])
    (('a', 'b', 'c'), ('a,b',))
    """
    parts = [[part] if part in names else part.split(",") for part in given or ()]
    return tuple(name.strip() for several in parts for name in several if name.strip())


def _limits(
    given: Any, names: Sequence[str], option: str, outputs: Sequence[str], file: str
) -> Any:
    """Return a name or number, one of each output, or a dict of these by output."""
    parts = split_names(given, names)
    if not parts:
        return None
    pairs = [part.split("=", 1) for part in parts if part not in names and "=" in part]
    if pairs and len(pairs) != len(parts):
        raise BadInput(f"{option}: found {','.join(parts)}. Accepted is a=x for all or none.")
    if pairs:
        return {name.strip(): _limit(value.strip(), names, option, file) for name, value in pairs}
    limits = [_limit(part, names, option, file) for part in parts]
    if len(limits) == 1:
        # One capacity may be that of all outputs; one flag is that of a single output.
        alone = option == "--censored" or len(outputs) == 1 or isinstance(limits[0], float)
        return limits[0] if alone else dict.fromkeys(outputs, limits[0])
    if len(limits) != len(outputs):
        raise BadInput(
            f"{option}: found {len(limits)} for {len(outputs)} output(s). Accepted is one for "
            f"each, in the order of --outputs, or as {outputs[0]}={parts[0]}."
        )
    return dict(zip(outputs, limits, strict=True))


def _limit(text: str, names: Sequence[str], option: str, file: str) -> str | float:
    if text in names:
        return text
    try:
        return float(text)
    except ValueError:
        pass
    accepted = "a column" if option == "--censored" else "a column or a number"
    raise BadInput(
        f"{option}: found {text!r}, which is not {accepted}. {file} has "
        f"{', '.join(map(repr, names))}."
    )


def _columns(given: Any) -> list[str]:
    """Return the names of columns in a specification."""
    if isinstance(given, Mapping):
        given = list(given.values())
    several = given if isinstance(given, list | tuple) else [given]
    return [name for name in several if isinstance(name, str)]
