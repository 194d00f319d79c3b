"""A fitted model for a command: from a model file, or fitted to a table."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, NamedTuple

from censored_gp.cli import memory
from censored_gp.cli.arrow import require_pyarrow
from censored_gp.cli.options import (
    MODELS,
    USUAL_LIKELIHOOD,
    USUAL_MODEL,
    USUAL_SEED,
    Files,
    Training,
)
from censored_gp.cli.plans import GIVEN, Plan, plan_of_columns, plan_of_layout, plan_of_options
from censored_gp.cli.problems import BadInput, Interrupted, located, say
from censored_gp.cli.reading import STDIN, Source, Wanted
from censored_gp.cli.words import in_options

__all__ = [
    "Fitted",
    "Ready",
    "check_save",
    "fitted",
    "loaded",
    "prepared",
    "refuse_unused",
    "source_of",
]

MODEL_ENDINGS = (".cgp", ".safetensors")
"""Of model files: no table that somebody needs is called so."""


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
    return Source(
        file,
        files.delimiter,
        files.encoding,
        files.zone,
        where,
        decimal=files.decimal,
        content=sys.stdin.buffer.read() if str(file) == STDIN else None,
    )


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
    done = _held(training) if file is None else _fit(prepared(file, training, files, also), files)
    if training.save is not None:
        done.model.save(training.save)
        say(f"Model: {training.save}")
    return done


def _held(training: Training) -> Fitted:
    """Return a model as a file holds it."""
    if training.load is None:
        raise BadInput("Found no FILE and no --load. Give a table to fit, or a model file.")
    if training.iterations is not None:
        raise BadInput(
            "--iterations and --load: the model is fitted already. Give FILE as well, to which it "
            "is fitted anew, or leave --iterations out."
        )
    model = loaded(training)
    if model.layout_ is None:
        return Fitted(model, plan_of_columns(model))
    return Fitted(model, plan_of_layout(model, str(training.load)))


def check_save(path: Path | None) -> None:
    """Refuse a place for the model that cannot be written to, before any time is spent.

    >>> check_save(Path("model.cgp"))
    """
    if path is None:
        return
    if path.suffix.lower() not in MODEL_ENDINGS:
        raise BadInput(
            f"--save: found {path}. Accepted for a model file are names that end in "
            f"{' or '.join(MODEL_ENDINGS)}."
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise BadInput(f"--save: {path} is a folder, or is in a folder that does not exist.")


def refuse_unused(file: Path | None, files: Files) -> None:
    """Refuse options for reading a table where none is read."""
    usual = Files()
    names = [field.name for field in dataclasses.fields(files)]
    given = [name for name in names if (getattr(files, name) or None) != getattr(usual, name)]
    given = [name for name in given if name != "ignore_memory"]
    if file is None and given:
        raise BadInput(f"--{given[0]} is about a table, and none is given. Give FILE as well.")


def prepared(file: Path, training: Training, files: Files, also: tuple[str, ...] = ()) -> Ready:
    """Read a table for a model by the options, or by the layout of a model file."""
    source = source_of(file, files)
    if training.load is None:
        model: Any = _unfitted(training)
        plan = plan_of_options(training, source.header(), str(file))
    else:
        from sklearn.base import clone

        before = loaded(training)
        plan = plan_of_layout(before, str(training.load))
        model: Any = clone(before)
        if training.iterations is not None:
            model.set_params(max_iterations=training.iterations)
    if plan.by is None and not source.where:
        # Known before anything is read; of a long table, or of some rows, only after.
        shape = (source.count_rows(), len(plan.outputs))
        memory.check_fitting(source.name, shape, model, not files.ignore_memory)
    roles = plan.roles()
    roles = dataclasses.replace(roles, inputs=(*roles.inputs, *also))
    wanted = source.read(roles, not files.ignore_memory)
    if plan.only:
        wanted = wanted.only(str(plan.by), plan.only)
    shape = _shape(wanted, plan)
    memory.check_fitting(wanted.name, shape, model, not files.ignore_memory)
    return Ready(wanted, plan, model)


def _shape(wanted: Wanted, plan: Plan) -> tuple[int, int]:
    """Return how many rows and outputs the model will have, of a long table about."""
    if plan.by is None:
        return len(wanted.table), len(plan.outputs)
    outputs = len(wanted.table[plan.by].unique())
    return -(-len(wanted.table) // outputs), outputs


def _fit(ready: Ready, files: Files) -> Fitted:
    from censored_gp.estimator.analysis.compare import check_data

    wanted, plan, model = ready
    rows, outputs = _shape(wanted, plan)
    with located(wanted.name, wanted.line_of), in_options():
        # What is wrong is told before anything is said of fitting.
        check_data([model], wanted.table, None, plan.arguments())
        say(f"Fitting {rows:,} rows of {outputs} output(s) ...")
        model.set_params(progress=sys.stderr.isatty()).fit(wanted.table, **plan.arguments())
    if model.report_.status == "interrupted":
        raise Interrupted
    if files.where:
        # Kept with the model, so that a report can say what it is about.
        model.where_ = tuple(map(_pair, files.where))
    return Fitted(model, plan)


def loaded(training: Training) -> Any:
    """Return the model of a file; what the file says itself may not be said by options as well."""
    from censored_gp.estimator.presets import load

    given = [name for name in GIVEN if getattr(training, name)]
    if given:
        raise BadInput(f"--{given[0]} and --load: the model file says it already. Leave one out.")
    model = load(str(training.load))
    if training.seed is not None:
        model.set_params(random_state=training.seed)
    if model.layout_ is not None and model.layout_.backend == "pyarrow":
        # Its answers are such tables.
        require_pyarrow()
    return model


def _unfitted(training: Training) -> Any:
    """Return the model that the options describe."""
    from censored_gp.estimator import presets

    name = training.model or USUAL_MODEL
    if name.lower() not in MODELS:
        raise BadInput(f"--model: found {name!r}. Accepted are {', '.join(MODELS)}.")
    preset = getattr(presets, name.upper())
    return preset(
        _likelihood(training.likelihood or USUAL_LIKELIHOOD),
        random_state=USUAL_SEED if training.seed is None else training.seed,
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
