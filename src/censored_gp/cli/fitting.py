"""A fitted model for a command: from a model file, or fitted to a table."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, NamedTuple

from censored_gp.cli import memory
from censored_gp.cli.options import MODELS, Files, Training
from censored_gp.cli.plans import GIVEN, Plan, plan_of_layout, plan_of_options
from censored_gp.cli.problems import BadInput, Interrupted, located, say
from censored_gp.cli.reading import Source, Wanted

__all__ = ["Fitted", "Ready", "check_save", "fitted", "prepared", "source_of"]


class Ready(NamedTuple):
    """A table that has been read, and the model that is to be fitted to it."""

    wanted: Wanted
    plan: Plan
    model: Any


class Fitted(NamedTuple):
    """A fitted model, and how its table is laid out."""

    model: Any
    plan: Plan


def source_of(file: Path, files: Files) -> Source:
    """Return a file with the options for reading it."""
    where = tuple(_pair(text) for text in files.where or ())
    return Source(file, files.delimiter, files.encoding, files.zone, where)


def _pair(text: str) -> tuple[str, str]:
    """Return a column and the value that it must have.

    >>> _pair("store = 235")
    ('store', '235')
    """
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise BadInput(f"--where: found {text!r}. Accepted is COLUMN=VALUE, as store=235.")
    return name.strip(), value.strip()


def fitted(
    file: Path | None, training: Training, files: Files, also: tuple[str, ...] = ()
) -> Fitted:
    """Return the model that a command is about, fitted if it has not been, and kept if asked for.

    Of a model file nothing is fitted, unless a table is given as well: then its settings are
    fitted to that. Columns that are read `also` are there to be asked about.
    """
    check_save(training.save)
    if file is None:
        if training.load is None:
            raise BadInput("Found no FILE and no --load. Give a table to fit, or a model file.")
        model = _loaded(training)
        done = Fitted(model, plan_of_layout(model, str(training.load)))
    else:
        done = _fit(prepared(file, training, files, also), files)
    if training.save is not None:
        done.model.save(training.save)
        say(f"Model: {training.save}")
    return done


def check_save(path: Path | None) -> None:
    """Refuse a place for the model that cannot be written to, before any time is spent."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise BadInput(f"--save: {path} is a folder, or is in a folder that does not exist.")


def prepared(file: Path, training: Training, files: Files, also: tuple[str, ...] = ()) -> Ready:
    """Read a table for a model by the options, or by the layout of a model file."""
    source = source_of(file, files)
    if training.load is None:
        model = _unfitted(training)
        plan = plan_of_options(training, source.header(), str(file))
    else:
        from sklearn.base import clone

        before = _loaded(training)
        plan, model = plan_of_layout(before, str(training.load)), clone(before)
    if plan.by is None:
        # Known before anything is read, of a long table only after.
        shape = (source.count_rows(), len(plan.outputs))
        memory.check_fitting(str(file), shape, model, not files.ignore_memory)
    roles = plan.roles()
    roles = dataclasses.replace(roles, inputs=(*roles.inputs, *also))
    wanted = source.read(roles, not files.ignore_memory)
    if plan.only:
        wanted = wanted.only(str(plan.by), plan.only)
    return Ready(wanted, plan, model)


def _fit(ready: Ready, files: Files) -> Fitted:
    wanted, plan, model = ready
    rows, outputs = len(wanted.table), len(plan.outputs)
    if plan.by is not None:
        outputs = len(wanted.table[plan.by].unique())
        rows = -(-rows // outputs)
    memory.check_fitting(wanted.name, (rows, outputs), model, not files.ignore_memory)
    say(f"Fitting {rows:,} rows of {outputs} output(s) ...")
    with located(wanted.name, wanted.line_of):
        model.set_params(progress=sys.stderr.isatty()).fit(wanted.table, **plan.arguments())
    if model.report_.status == "interrupted":
        raise Interrupted
    if files.where:
        # Kept with the model, so that a report can say what it is about.
        model.where_ = tuple(map(_pair, files.where))
    return Fitted(model, plan)


def _loaded(training: Training) -> Any:
    from censored_gp.files import load

    given = [name for name in GIVEN if getattr(training, name)]
    if given:
        raise BadInput(f"--{given[0]} and --load: the model file says it already. Leave one out.")
    return load(str(training.load))


def _unfitted(training: Training) -> Any:
    """Return the model that the options describe."""
    from censored_gp import presets

    if training.model.lower() not in MODELS:
        raise BadInput(f"--model: found {training.model!r}. Accepted are {', '.join(MODELS)}.")
    preset = getattr(presets, training.model.upper())
    return preset(
        _likelihood(training.likelihood),
        random_state=training.seed,
        max_iterations=training.iterations,
    )


def _likelihood(text: str) -> str | dict[str, str]:
    """Return the name of a family, or of one for each output, checked."""
    from censored_gp.likelihoods import FAMILIES

    pairs = [part.partition("=") for part in text.split(",")]
    families = [(family if mark else name).strip() for name, mark, family in pairs]
    unknown = [family for family in families if family not in FAMILIES]
    if unknown or (len(pairs) > 1 and not all(mark for _, mark, _ in pairs)):
        raise BadInput(
            f"--likelihood: found {text!r}. Accepted is one of {', '.join(FAMILIES)}, or one for "
            "each output, as a=poisson,b=gamma."
        )
    if not pairs[0][1]:
        return families[0]
    return {name.strip(): family for (name, *_), family in zip(pairs, families, strict=True)}
