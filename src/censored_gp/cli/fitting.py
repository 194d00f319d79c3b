"""From the options of a command to tables and a fitted model."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sklearn.base import clone

from censored_gp.cli.console import bad_option, explain, option_of, progress, say
from censored_gp.cli.options import (
    BaseOptions,
    FileOptions,
    FitOptions,
    ModelName,
    Side,
    split_names,
)
from censored_gp.cli.output import ENDINGS, check_target
from censored_gp.data.errors import DataError, did_you_mean, listed
from censored_gp.data.files import File
from censored_gp.data.layout import columns_used, inputs_table
from censored_gp.data.tables import Table
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.estimator.presets import MODELS, load
from censored_gp.likelihoods import FAMILIES
from censored_gp.model.compilation import slices

MODEL_ENDINGS = (".cgp", ".safetensors")
"""Endings of model files: a slip of --save cannot overwrite a table."""
READING = ("delimiter", "encoding", "decimal", "time_format")
"""Options that say how a file is written."""
SAVED = (
    *("outputs", "time", "inputs", "by", "only", "censored", "capacity", "lower", "upper"),
    *("side", "likelihood", "model"),
)
"""Options that a model file settles."""
ROWS_AT_A_TIME = 2**16
"""Answers about more rows are computed and written in parts."""


def table_file(path: Path, reading: FileOptions) -> File:
    """Return a table file with the options for reading it; - is CSV on the standard input."""
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    settings = dataclasses.asdict(reading)
    return File(path, **{name: settings[name] for name in READING}, content=content)


def where_pairs(where: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the columns and values of --where.

    >>> where_pairs(["store = 235"])
    [('store', '235')]
    """
    for text in where or ():
        if not text.partition("=")[0].strip() or "=" not in text:
            raise bad_option("--where", f"{text!r} must be COLUMN=VALUE, as store=235.")
    pairs = (text.partition("=")[::2] for text in where or ())
    return [(name.strip(), value.strip()) for name, value in pairs]


@contextlib.contextmanager
def located(table: Table) -> Iterator[None]:
    """Add the file and the line to errors about a table, and the file to warnings."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(
            f"Warning: {table.file.name}: {explain(message)}"
        )
        try:
            yield
        except DataError as error:
            raise table.locate(error) from error


def check_files(
    training: FitOptions,
    reading: FileOptions,
    output: str | None,
    *reads: Path | None,
    endings: Sequence[str] = ENDINGS,
) -> None:
    """Refuse files that cannot be written and options that nothing uses, before any work is done.

    `reads` are the tables that the command reads, if they were given.
    """
    check_target(output, endings, reads)
    path = training.save
    if path is not None and path.suffix.lower() not in MODEL_ENDINGS:
        raise bad_option("--save", f"{path} must end in {' or '.join(MODEL_ENDINGS)}.")
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise bad_option("--save", f"{path} is a folder, or in a folder that does not exist.")
    for field in dataclasses.fields(reading):
        if not any(reads) and getattr(reading, field.name) not in (field.default, []):
            problem = "it is about a table; give FILE as well."
            raise bad_option(option_of(field.name), problem)


def fitted(
    file: Path | None, training: FitOptions, reading: FileOptions, also: Sequence[str] = ()
) -> CensoredGP:
    """Return a fitted model: loaded, or fitted to a table (the columns `also` are read with it)."""
    if file is not None:
        model = _fit(*prepare(file, training, reading, also), reading, training.save)
    elif training.iterations is not None:
        raise bad_option("--iterations", "the model is already fitted; give FILE to fit it anew.")
    else:
        model = load_model(training)
    if training.save is not None:
        model.save(training.save)
        say(f"Model: {training.save}")
    return model


def prepare(
    file: Path, training: FitOptions, reading: FileOptions, also: Sequence[str] = ()
) -> tuple[CensoredGP, Table, dict[str, Any]]:
    """Return an unfitted model, the table to fit it to, and the other arguments of its `fit`."""
    source = table_file(file, reading)
    if training.load is None:
        model: Any = unfitted(training)
        arguments, only = fit_arguments(training, source), split_names(training.only)
    else:
        before = load_model(training)
        model: Any = clone(before)
        arguments, only = _saved_arguments(before, training.load)
        if training.iterations is not None:
            model.set_params(max_iterations=training.iterations)
    columns = [*columns_used(arguments, source.header()), *also]
    return model, _read(source, reading, columns, arguments, only), arguments


def _read(
    source: File,
    reading: FileOptions,
    columns: Sequence[str],
    layout: Mapping[str, Any],
    only: Sequence[str] = (),
) -> Table:
    """Return some columns of the rows that the options choose, with its times read."""
    table = source.read(columns, where_pairs(reading.where))
    table = table.only(layout["by"], only) if only else table
    with located(table):
        time, by = layout["time"], layout["by"]
        return table if time is None else table.with_times(time, reading.zone, by)


def _fit(
    model: Any, table: Table, arguments: dict[str, Any], reading: FileOptions, save: Path | None
) -> CensoredGP:
    """Fit a model. The best so far of an interrupted fit is saved beside `save`."""
    say(f"Fitting {len(table):,} rows of {table.file.name} ...")
    try:
        with located(table):
            model.set_params(progress=progress()).fit(table, **arguments)
        if model.report_.status == "interrupted":
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        if save is None or not hasattr(model, "posterior_"):
            raise
        kept = model.save(save.with_suffix(f".interrupted{save.suffix}"))
        raise KeyboardInterrupt(f"the best model so far is in {kept}.") from None
    # The report says which rows the model is about.
    model.where_ = tuple(where_pairs(reading.where))
    return model


def load_model(training: FitOptions) -> CensoredGP:
    """Return the model of a file; other options may not contradict it."""
    if training.load is None:
        raise bad_option("FILE / --load", "give a table to fit, or a model file.")
    for name in SAVED:
        if getattr(training, name):
            raise bad_option(f"--{name}", "the model file settles it; leave it out with --load.")
    model = load(str(training.load))
    if training.seed is not None:
        model.set_params(random_state=training.seed)
    return model


def read_new(source: File, model: CensoredGP, reading: FileOptions, partial: bool = False) -> Table:
    """Return new rows for a model: times and inputs. If `partial`, inputs may be left out."""
    layout, names = model.layout_, source.header()
    if partial and not all(name in names for name, _ in where_pairs(reading.where)):
        # What selects rows of the past need not be known of the future.
        reading = dataclasses.replace(reading, where=[])
    if layout is None:
        times = dict(zip(model.columns_.names, model.columns_.is_time, strict=True))
        time = next((name for name, is_time in times.items() if is_time), None)
        return _read(source, reading, list(model.columns_.groups), {"time": time, "by": None})
    columns = [str(name) for name in layout.columns]
    if partial:
        columns = [name for name in columns if name == layout.time or name in names]
    elif layout.by in names:
        columns.append(layout.by)
    return _read(source, reading, columns, {"time": layout.time, "by": layout.by})


def in_parts(rows: int) -> list[slice]:
    """Return the slices of rows about which answers are computed and written one by one."""
    return slices(rows, ROWS_AT_A_TIME)


def training_inputs(model: CensoredGP, rows: Any = slice(None)) -> Table:
    """Return the inputs that a model was fitted to, with a row for each of its rows."""
    return inputs_table(model.columns_, model.training_.inputs[rows])


def unfitted(training: BaseOptions) -> CensoredGP:
    """Return the model that the options describe."""
    return MODELS[(training.model or ModelName.hmocgp).upper()](
        _likelihood(training.likelihood or "gaussian"),
        random_state=training.seed or 0,
        max_iterations=training.iterations,
    )


def _likelihood(text: str) -> str | dict[str, str]:
    """Return the name of a family, or a dict with one for each output."""
    parts = (part.rpartition("=") for part in text.split(","))
    pairs = [(output.strip(), family.strip().lower()) for output, _, family in parts]
    unknown = [family for _, family in pairs if family not in FAMILIES]
    if unknown or (len(pairs) > 1 and not all(output for output, _ in pairs)):
        accepted = f"one of {', '.join(FAMILIES)}, or one for each output, as a=poisson,b=gamma"
        hint = did_you_mean(unknown[0], FAMILIES) if unknown else ""
        raise bad_option("--likelihood", f"{text!r} must be {accepted}. {hint}")
    return dict(pairs) if pairs[0][0] else pairs[0][1]


def fit_arguments(training: BaseOptions, source: File) -> dict[str, Any]:
    """Return the arguments of `CensoredGP.fit` that the options describe."""
    names = source.header()
    outputs = split_names(training.outputs, names)
    if not outputs:
        problem = f"give the columns to model. {source.name} has {listed(names)}."
        raise bad_option("--outputs", problem)
    if training.time is None and not training.inputs:
        raise bad_option("--time / --inputs", "give at least one column that explains the outputs.")
    if isinstance(training, FitOptions) and training.only and training.by is None:
        raise bad_option("--only", "it needs --by.")
    limits = {
        name: _limits(f"--{name}", getattr(training, name), outputs, source)
        for name in ("censored", "capacity", "lower", "upper")
    }
    return limits | {
        "outputs": outputs if training.by is None else outputs[0],
        "time": training.time,
        "inputs": split_names(training.inputs, names) or None,
        "by": training.by,
        "side": str(training.side or Side.right),
    }


def _saved_arguments(model: CensoredGP, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that a model was fitted with, and the outputs of a long table."""
    layout = model.layout_
    if layout is None:
        raise ValueError(
            f"{path} was fitted to arrays, whose columns have no names to look for in a table. Fit "
            "a table with --outputs and --time or --inputs."
        )
    same = ("time", "by", "censored", "capacity", "lower", "upper", "side")
    arguments = {name: getattr(layout, name) for name in same}
    arguments["inputs"] = list(layout.inputs) or None
    arguments["outputs"] = layout.value if layout.long else list(layout.outputs)
    return arguments, [str(name) for name in layout.outputs] if layout.long else []


def _limits(option: str, given: Any, outputs: Sequence[str], source: File) -> Any:
    """Return a column or number for all outputs, or a dict with one for each output."""
    parts = split_names(given, source.header())
    pairs = [p.partition("=")[::2] for p in parts if "=" in p and p not in source.header()]
    if pairs and len(pairs) != len(parts):
        raise bad_option(option, f"give OUTPUT=... for all of {','.join(parts)}, or for none.")
    if pairs:
        return {o.strip(): _limit(option, limit.strip(), source) for o, limit in pairs}
    limits = [_limit(option, part, source) for part in parts]
    if len(limits) <= 1:
        single = limits[0] if limits else None
        # One column of capacities may be that of all outputs; a flag is of one output.
        shared = isinstance(single, str) and len(outputs) > 1 and option != "--censored"
        return dict.fromkeys(outputs, single) if shared else single
    if len(limits) != len(outputs):
        problem = f"found {len(limits)} for {len(outputs)} output(s). Give one for each, in the "
        raise bad_option(option, f"{problem}order of --outputs, or as {outputs[0]}={parts[0]}.")
    return dict(zip(outputs, limits, strict=True))


def _limit(option: str, text: str, source: File) -> str | float:
    """Return a column if there is one of that name, else a number."""
    if text in source.header():
        return text
    with contextlib.suppress(ValueError):
        return float(text)
    accepted = "a column" if option == "--censored" else "a column or a number"
    there = f"{source.name} has {listed(source.header())}"
    raise bad_option(option, f"{text!r} is not {accepted}. {there}.")
