"""From the options of a command to tables and a fitted model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.base import clone

from censored_gp.cli.console import bad_option, option_of, say
from censored_gp.cli.options import FILE, Given, one_of, split_names
from censored_gp.cli.output import ENDINGS, check_target
from censored_gp.data.errors import listed, reads_as
from censored_gp.data.files import File
from censored_gp.data.layout import columns_used, inputs_table, located
from censored_gp.data.tables import Table
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.estimator.presets import MODELS, load
from censored_gp.likelihoods import FAMILIES
from censored_gp.model.compilation import slices

# Endings of model files: a slip of --save cannot overwrite a table.
MODEL_ENDINGS = (".cgp", ".safetensors")
# Options that are columns or numbers, for all outputs or for each.
LIMITS = ("censored", "capacity", "lower", "upper", "exposure", "rounded")
# Options that a model file settles.
SAVED = (
    *("outputs", "time", "inputs", "own_inputs", "holidays", "by", "only", "side", *LIMITS),
    *("likelihood", "model", "substitution"),
)
# Answers about more rows are computed and written in parts.
ROWS_AT_A_TIME = 2**16


def table_file(path: Path, given: Given) -> File:
    """Return a table file with the options for reading it; - is CSV on the standard input."""
    content = sys.stdin.buffer.read() if str(path) == "-" else None
    way = (given.delimiter, given.encoding, given.decimal, given.time_format, given.zone)
    return File(path, *way, content)


def where_pairs(where: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the columns and values of --where.

    >>> where_pairs(["store = 235"])
    [('store', '235')]
    """
    pairs = []
    for text in where or ():
        name, equal, value = map(str.strip, text.partition("="))
        if not name or not equal:
            raise bad_option("--where", f"{text!r} must be COLUMN=VALUE, as store=235.")
        pairs.append((name, value))
    return pairs


def check_files(given: Given, *reads: Path | None, endings: Sequence[str] = ENDINGS) -> None:
    """Refuse files that cannot be written and options that nothing uses, before any work is done.

    `reads` are tables that the command reads beside the one that it fits.
    """
    reads, path = (given.file, *reads), given.save
    columns = given.output if given.outputs is None and given.load is None else None
    hint = f"Did you mean --outputs {columns}?" if columns else ""
    check_target(given.output, endings, reads, hint)
    if path is not None and path.suffix.lower() not in MODEL_ENDINGS:
        raise bad_option("--save", f"{path} must end in {' or '.join(MODEL_ENDINGS)}.")
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise bad_option("--save", f"{path} is a folder, or in a folder that does not exist.")
    for name, (_, info) in FILE.items():
        if not any(reads) and getattr(given, name) not in (info.default, []):
            raise bad_option(option_of(name), "it is about a table; give FILE as well.")


def fitted(
    given: Given,
    *reads: Path | None,
    also: Sequence[str] = (),
    endings: Sequence[str] = ENDINGS,
) -> CensoredGP:
    """Return a model: loaded, or fitted to a table (the columns `also` are read with it).

    `reads` are further tables that the command reads.
    """
    check_files(given, *reads, endings=endings)
    if given.file is not None:
        model = _fit(*prepare(given, also), given)
    elif given.iterations is not None:
        raise bad_option("--iterations", "the model is already fitted; give FILE to fit it anew.")
    else:
        model = load_model(given)
    if given.save is not None:
        model.save(given.save)
        say(f"Model: {given.save}")
    return model


def prepare(given: Given, also: Sequence[str] = ()) -> tuple[CensoredGP, Table, dict[str, Any]]:
    """Return an unfitted model, the table to fit it to, and the other arguments of its `fit`."""
    source = table_file(Path(str(given.file)), given)
    if given.load is None:
        model: Any = unfitted(given)
        arguments, only = fit_arguments(given, source), split_names(given.only)
    else:
        before = load_model(given)
        model, layout = clone(before), before.layout_
        if layout is None:
            raise ValueError(
                f"{given.load} was fitted to arrays, whose columns have no names to look for in a "
                "table. Fit a table with --outputs and --time or --inputs."
            )
        if before.training_.is_forgotten:
            raise ValueError(
                f"{given.load} was fitted to flags or bounds in arrays, which no column of a table "
                "has. Fit a table with --censored, --capacity, --lower, --upper or --exposure."
            )
        steps = dict(zip(before.output_names_, before.observations_.step, strict=True))
        arguments = layout.arguments | {"rounded": steps}
        only = [str(name) for name in layout.outputs] if layout.long else []
    columns = [*columns_used(arguments, source.header), *also]
    table = source.read(columns, where_pairs(given.where))
    return model, table.only(arguments["by"], only) if only else table, arguments


def _fit(model: Any, table: Table, arguments: dict[str, Any], given: Given) -> CensoredGP:
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


def load_model(given: Given) -> CensoredGP:
    """Return the model of a file; other options may not contradict it."""
    if given.load is None:
        raise bad_option("FILE / --load", "give a table to fit, or a model file.")
    for name in SAVED:
        if getattr(given, name):
            raise bad_option(option_of(name), "the model file settles it; leave it out.")
    changed = {"random_state": given.seed, "max_iterations": given.iterations}
    model: Any = load(str(given.load))
    return model.set_params(**{k: value for k, value in changed.items() if value is not None})


def read_new(source: File, model: CensoredGP, given: Given, partial: bool = False) -> Table:
    """Return new rows for a model: times and inputs. If `partial`, inputs may be left out."""
    layout, names, columns = model.layout_, source.header, model.columns_
    where, wanted = where_pairs(given.where), list(columns.groups)
    time, by = (layout.time, layout.by) if layout is not None else (None, None)
    if layout is None and any(columns.is_time):
        time = columns.names[columns.is_time.index(True)]
    if layout is not None:
        # Not those that are made of them: of holidays, and of each output of a long table.
        own = layout.own_inputs if layout.long else sum(layout.own_inputs, ())
        wanted = [*layout.columns, *own]
    if partial:
        # What selects rows of the past need not be known of the future.
        where = where if all(name in names for name, _ in where) else []
        wanted = [name for name in wanted if name == time or name in names]
    if by in names:
        wanted.append(str(by))
    table = source.read(wanted, where)
    with located(table):
        return table if time is None else table.with_times(time, by=by)


def in_parts(rows: int) -> list[slice]:
    """Return the slices of rows about which answers are computed and written one by one."""
    return slices(rows, ROWS_AT_A_TIME)


def training_inputs(model: CensoredGP, rows: Any = slice(None)) -> Table:
    """Return the inputs that a model was fitted to, with a row for each of its rows."""
    return inputs_table(model.columns_, model.training_.inputs[rows])


def unfitted(given: Given) -> CensoredGP:
    """Return the model that the options describe."""
    return MODELS[(given.model or "hmocgp").upper()](
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
    if ">" not in text:
        table = File(Path(text)).read()
        starts, ends = map(str, table.labels("from")), [n for n in table.names if n != "from"]
        to = {end: table.numbers(end, "Share").tolist() for end in ends}
        return {start: {end: to[end][i] for end in ends} for i, start in enumerate(starts)}
    shares: dict[str, dict[str, float]] = {}
    for part in text.split(","):
        ends, _, share = part.rpartition("=")
        start, _, end = ends.partition(">")
        if not reads_as(float, share):
            raise bad_option("--substitution", f"{part!r} must be a share as a>b=0.6.")
        shares.setdefault(start.strip(), {})[end.strip()] = float(share)
    return shares


def _likelihood(text: str) -> str | dict[str, str]:
    """Return the name of a family, or a dict with one for each output."""
    parts = [part.rpartition("=")[::2] for part in text.split(",")]
    pairs = [(o.strip(), one_of("--likelihood", FAMILIES, family.strip())) for o, family in parts]
    if len(pairs) > 1 and not all(output for output, _ in pairs):
        said = f"{text!r} must be one for all, or one for each output, as a=poisson,b=gamma."
        raise bad_option("--likelihood", said)
    return dict(pairs) if pairs[0][0] else pairs[0][1]


def fit_arguments(given: Given, source: File) -> dict[str, Any]:
    """Return the arguments of `CensoredGP.fit` that the options describe."""
    names = source.header
    outputs = split_names(given.outputs, names)
    if not outputs:
        problem = f"give the columns to model. {source.name} has {listed(names)}."
        raise bad_option("--outputs", problem)
    if given.by is not None and len(outputs) > 1:
        said = f"a long table has one column of values, got {listed(outputs)}."
        raise bad_option("--outputs", said)
    if given.time is None and not given.inputs:
        raise bad_option("--time / --inputs", "give at least one column that explains the outputs.")
    if getattr(given, "only", None) and given.by is None:
        raise bad_option("--only", "it needs --by.")
    limits = {name: _limits(name, getattr(given, name), outputs, names) for name in LIMITS}
    return limits | {
        "outputs": outputs if given.by is None else outputs[0],
        "time": given.time,
        "inputs": split_names(given.inputs, names) or None,
        "own_inputs": split_names(given.own_inputs, names) or None,
        "holidays": given.holidays,
        "by": given.by,
        "side": given.side or "right",
    }


def _limits(name: str, given: Any, outputs: Sequence[str], header: Sequence[str]) -> Any:
    """Return a column or number for all outputs, or a dict with one for each output."""

    def read(text: str) -> str | float:
        is_column = text in header and name != "rounded"
        return float(text) if not is_column and reads_as(float, text) else text

    parts = split_names(given, header)
    pairs = [part.partition("=")[::2] for part in parts if "=" in part and part not in header]
    if pairs and len(pairs) == len(parts):
        return {output.strip(): read(limit.strip()) for output, limit in pairs}
    if pairs:
        said = f"give OUTPUT=... for all of {','.join(parts)}, or for none."
        raise bad_option(option_of(name), said)
    if len(parts) <= 1:
        return read(parts[0]) if parts else None
    if len(parts) != len(outputs):
        said = f"found {len(parts)} for {len(outputs)} output(s). Give one for each, in the order "
        raise bad_option(option_of(name), f"{said}of --outputs, or as {outputs[0]}={parts[0]}.")
    return dict(zip(outputs, map(read, parts), strict=True))
