"""From the options of a command to tables and a fitted model."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.base import clone

from censored_gp.cli.console import bad_option, option_of, say
from censored_gp.cli.options import FileOptions, FitOptions, FleetOptions, ModelName, split_names
from censored_gp.cli.output import ENDINGS, check_target
from censored_gp.data.errors import did_you_mean, listed, reads_as
from censored_gp.data.files import File
from censored_gp.data.layout import columns_used, inputs_table, located
from censored_gp.data.observations import UNKNOWN, share_term
from censored_gp.data.tables import Table
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.estimator.presets import MODELS, load
from censored_gp.likelihoods import FAMILIES
from censored_gp.model.compilation import slices

MODEL_ENDINGS = (".cgp", ".safetensors")
"""Endings of model files: a slip of --save cannot overwrite a table."""
SAVED = (
    *("outputs", "time", "inputs", "own_inputs", "holidays", "by", "only", "censored", "capacity"),
    *("lower", "upper", "exposure", "side", "rounded", "likelihood", "model", "substitution"),
)
"""Options that a model file settles."""
ROWS_AT_A_TIME = 2**16
"""Answers about more rows are computed and written in parts."""


def table_file(path: Path, given: FileOptions) -> File:
    """Return a table file with the options for reading it; - is CSV on the standard input."""
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    return File(path, given.delimiter, given.encoding, given.decimal, given.time_format, content)


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


def check_files(
    given: FitOptions, output: str | None, *reads: Path | None, endings: Sequence[str] = ENDINGS
) -> None:
    """Refuse files that cannot be written and options that nothing uses, before any work is done.

    `reads` are the tables that the command reads, if they were given.
    """
    check_target(output, endings, reads)
    path = given.save
    if path is not None and path.suffix.lower() not in MODEL_ENDINGS:
        raise bad_option("--save", f"{path} must end in {' or '.join(MODEL_ENDINGS)}.")
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise bad_option("--save", f"{path} is a folder, or in a folder that does not exist.")
    for field in dataclasses.fields(FileOptions):
        if not any(reads) and getattr(given, field.name) not in (field.default, []):
            problem = "it is about a table; give FILE as well."
            raise bad_option(option_of(field.name), problem)


def fitted(
    given: FitOptions,
    file: Path | None,
    output: str | None,
    *reads: Path | None,
    also: Sequence[str] = (),
    endings: Sequence[str] = ENDINGS,
) -> CensoredGP:
    """Return a model: loaded, or fitted to a table (the columns `also` are read with it).

    `output` is where the command writes its answer, `reads` are further tables that it reads.
    """
    check_files(given, output, file, *reads, endings=endings)
    if file is not None:
        model = _fit(*prepare(file, given, also), given)
    elif given.iterations is not None:
        raise bad_option("--iterations", "the model is already fitted; give FILE to fit it anew.")
    else:
        model = load_model(given)
    if given.save is not None:
        model.save(given.save)
        say(f"Model: {given.save}")
    return model


def prepare(
    file: Path, given: FitOptions, also: Sequence[str] = ()
) -> tuple[CensoredGP, Table, dict[str, Any]]:
    """Return an unfitted model, the table to fit it to, and the other arguments of its `fit`."""
    source = table_file(file, given)
    if given.load is None:
        model: Any = unfitted(given)
        arguments, only = fit_arguments(given, source), split_names(given.only)
    else:
        before = load_model(given)
        model: Any = clone(before)
        arguments, only = _saved_arguments(before, given.load)
    table = source.read(
        [*columns_used(arguments, source.header()), *also], where_pairs(given.where)
    )
    table = table.only(arguments["by"], only) if only else table
    return model, _with_times(table, arguments["time"], given.zone, arguments["by"]), arguments


def _with_times(table: Table, time: Any, zone: str | None, by: Any) -> Table:
    with located(table):
        return table if time is None else table.with_times(time, zone, by)


def _fit(model: Any, table: Table, arguments: dict[str, Any], given: FitOptions) -> CensoredGP:
    """Fit a model. The best so far of an interrupted fit is saved beside `--save`."""
    say(f"Fitting {len(table):,} rows of {table.file.name} ...")
    try:
        model.set_params(progress=True).fit(table, **arguments)
        if model.report_.status == "interrupted":
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        if given.save is None or not hasattr(model, "posterior_"):
            raise
        kept = model.save(given.save.with_suffix(f".interrupted{given.save.suffix}"))
        raise KeyboardInterrupt(f"the best model so far is in {kept}.") from None
    known = model.observations_
    found = [f"{n} {s:g}" for n, s in zip(known.names, known.step, strict=True) if s > 0]
    if found and arguments.get("rounded") is None:
        say(f"Recorded in steps: {', '.join(found)}. --rounded 0 takes values as they are.")
    # The report says which rows the model is about.
    model.where_ = tuple(where_pairs(given.where))
    return model


def load_model(given: FitOptions) -> CensoredGP:
    """Return the model of a file; other options may not contradict it."""
    if given.load is None:
        raise bad_option("FILE / --load", "give a table to fit, or a model file.")
    for name in SAVED:
        if getattr(given, name):
            raise bad_option(f"--{name}", "the model file settles it; leave it out with --load.")
    changed = {"random_state": given.seed, "max_iterations": given.iterations}
    model: Any = load(str(given.load))
    return model.set_params(**{k: value for k, value in changed.items() if value is not None})


def read_new(source: File, model: CensoredGP, given: FitOptions, partial: bool = False) -> Table:
    """Return new rows for a model: times and inputs. If `partial`, inputs may be left out."""
    layout, names, columns = model.layout_, source.header(), model.columns_
    where, wanted = where_pairs(given.where), list(columns.groups)
    time, by = (layout.time, layout.by) if layout is not None else (None, None)
    if layout is None and any(columns.is_time):
        time = columns.names[columns.is_time.index(True)]
    if partial:
        # What selects rows of the past need not be known of the future.
        where = where if all(name in names for name, _ in where) else []
        wanted = [name for name in wanted if name == time or name in names]
    elif by in names:
        wanted.append(str(by))
    return _with_times(source.read(wanted, where), time, given.zone, by)


def in_parts(rows: int) -> list[slice]:
    """Return the slices of rows about which answers are computed and written one by one."""
    return slices(rows, ROWS_AT_A_TIME)


def training_inputs(model: CensoredGP, rows: Any = slice(None)) -> Table:
    """Return the inputs that a model was fitted to, with a row for each of its rows."""
    return inputs_table(model.columns_, model.training_.inputs[rows])


def unfitted(given: FitOptions | FleetOptions) -> CensoredGP:
    """Return the model that the options describe."""
    return MODELS[(given.model or ModelName.hmocgp).upper()](
        _likelihood(given.likelihood or "gaussian"),
        random_state=given.seed or 0,
        max_iterations=given.iterations,
        substitution=_substitution(getattr(given, "substitution", None)),
    )


def _substitution(text: str | None) -> Any:
    """Return the shares of excess that move between outputs, as a dict of dicts, or "learned".

    >>> _substitution("a>b=0.6, b>a=0.5")
    {'a': {'b': 0.6}, 'b': {'a': 0.5}}
    """
    if text is None or text == "learned":
        return text
    shares: dict[str, dict[str, float]] = {}
    if ">" not in text:
        table = File(Path(text)).read()
        columns = {n: table.column(n, "Share").numbers("Share") for n in table.names if n != "from"}
        for row, start in enumerate(table.array("from", "Output").to_pylist()):
            shares[str(start)] = {name: float(column[row]) for name, column in columns.items()}
        return shares
    for part in text.split(","):
        ends, _, share = part.rpartition("=")
        start, _, end = ends.partition(">")
        if not reads_as(float, share):
            raise bad_option("--substitution", f"{part!r} must be a share as a>b=0.6.")
        shares.setdefault(start.strip(), {})[end.strip()] = float(share)
    return shares


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


def fit_arguments(given: FitOptions | FleetOptions, source: File) -> dict[str, Any]:
    """Return the arguments of `CensoredGP.fit` that the options describe."""
    names = source.header()
    outputs = split_names(given.outputs, names)
    if not outputs:
        problem = f"give the columns to model. {source.name} has {listed(names)}."
        raise bad_option("--outputs", problem)
    if given.time is None and not given.inputs:
        raise bad_option("--time / --inputs", "give at least one column that explains the outputs.")
    if isinstance(given, FitOptions) and given.only and given.by is None:
        raise bad_option("--only", "it needs --by.")
    arguments = {
        name: _limits(f"--{name}", getattr(given, name), outputs, source)
        for name in ("censored", "capacity", "lower", "upper", "exposure", "rounded")
    }
    return arguments | {
        "outputs": outputs if given.by is None else outputs[0],
        "time": given.time,
        "inputs": split_names(given.inputs, names) or None,
        "own_inputs": split_names(given.own_inputs, names) or None,
        "holidays": given.holidays,
        "by": given.by,
        "side": str(given.side or "right"),
    }


def _saved_arguments(model: CensoredGP, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that a model was fitted with, and the outputs of a long table."""
    layout = model.layout_
    if layout is None:
        raise ValueError(
            f"{path} was fitted to arrays, whose columns have no names to look for in a table. Fit "
            "a table with --outputs and --time or --inputs."
        )
    steps = dict(zip(model.output_names_, model.observations_.step, strict=True))
    return layout.arguments | {"rounded": steps}, [
        str(name) for name in layout.outputs
    ] if layout.long else []


def _limits(option: str, given: Any, outputs: Sequence[str], source: File) -> Any:
    """Return a column or number for all outputs, or a dict with one for each output."""
    header = source.header()

    def read(text: str) -> str | float:
        if text in header and option != "--rounded":
            return text
        if option == "--exposure" and (text == UNKNOWN or share_term(text, header)[0] in header):
            return text
        with contextlib.suppress(ValueError):
            return float(text)
        accepted = {
            "--censored": "a column",
            "--exposure": "a column, one over a number (minutes/60, 1-minutes/60), a number or "
            "unknown",
            "--rounded": "a number",
        }.get(option, "a column or a number")
        there = f"{source.name} has {listed(header)}"
        raise bad_option(option, f"{text!r} is not {accepted}. {there}.")

    parts = split_names(given, header)
    pairs = [part.partition("=")[::2] for part in parts if "=" in part and part not in header]
    if pairs and len(pairs) != len(parts):
        raise bad_option(option, f"give OUTPUT=... for all of {','.join(parts)}, or for none.")
    if pairs:
        return {output.strip(): read(limit.strip()) for output, limit in pairs}
    limits = [read(part) for part in parts]
    if len(limits) <= 1:
        single = limits[0] if limits else None
        # One column of capacities may be that of all outputs; a flag is of one output.
        shared = isinstance(single, str) and len(outputs) > 1 and option != "--censored"
        return dict.fromkeys(outputs, single) if shared else single
    if len(limits) != len(outputs):
        problem = f"found {len(limits)} for {len(outputs)} output(s). Give one for each, in the "
        raise bad_option(option, f"{problem}order of --outputs, or as {outputs[0]}={parts[0]}.")
    return dict(zip(outputs, limits, strict=True))
