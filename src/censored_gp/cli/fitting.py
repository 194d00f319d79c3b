"""From the options of a command to tables and a fitted model."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from sklearn.base import clone

from censored_gp.cli._shim import DataError, header, read_file
from censored_gp.cli.console import bad_option, explain, say
from censored_gp.cli.options import Preset, Reading, Side, Training, split_names
from censored_gp.cli.output import ENDINGS, check_target
from censored_gp.estimator import presets
from censored_gp.estimator.censored_gp import CensoredGP
from censored_gp.estimator.persistence import load
from censored_gp.likelihoods import FAMILIES

MODEL_ENDINGS = (".cgp", ".safetensors")
"""Endings of model files: a slip of --save cannot overwrite a table."""
SAVED = (
    *("outputs", "time", "inputs", "by", "only", "censored", "capacity", "lower", "upper"),
    *("side", "likelihood", "model"),
)
"""Options that a model file settles."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A table file and the options for reading it; - is CSV on the standard input."""

    given: Path
    reading: Reading

    @property
    def name(self) -> str:
        """What messages call the file."""
        return "standard input" if str(self.given) == "-" else str(self.given)

    @functools.cached_property
    def path(self) -> Path:
        """The file, or a temporary copy of the standard input, which can be read only once."""
        if str(self.given) != "-":
            return self.given
        with tempfile.NamedTemporaryFile(suffix=".csv", delete=False) as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        atexit.register(Path(copy.name).unlink, missing_ok=True)
        return Path(copy.name)

    @functools.cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        with self._named():
            return header(
                self.path, delimiter=self.reading.delimiter, encoding=self.reading.encoding
            )

    def read(self, columns: Sequence[str], where: Sequence[tuple[str, Any]] = ()) -> TableFile:
        """Return some columns, of the rows that the options choose."""
        given = dataclasses.asdict(self.reading)
        chosen = [(name, [value]) for name, value in where_pairs(given.pop("where"))]
        with self._named():
            table = read_file(
                self.path, columns=list(dict.fromkeys(columns)), where=[*chosen, *where], **given
            )
        return TableFile(table, self.name)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Name the standard input in errors, not the temporary file."""
        try:
            yield
        except DataError as error:
            raise error.at(file=self.name) from error


class TableFile(NamedTuple):
    """A table that was read, and the file's name."""

    table: Any
    name: str

    @contextlib.contextmanager
    def located(self) -> Iterator[None]:
        """Add the file and the line to errors about cells, and the file to warnings."""
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: say(
                f"Warning: {self.name}: {explain(message)}"
            )
            try:
                yield
            except DataError as error:
                line = None if error.row is None else self.table.line(error.row)
                raise error.at(file=self.name, line=line) from error


def where_pairs(where: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the columns and values of --where.

    >>> where_pairs(["store = 235"])
    [('store', '235')]
    """
    pairs = [tuple(map(str.strip, text.partition("=")[::2])) for text in where or ()]
    for (name, _), text in zip(pairs, where or (), strict=True):
        if not name or "=" not in text:
            raise bad_option("--where", f"{text!r} must be COLUMN=VALUE, as store=235.")
    return pairs


def check_files(
    training: Training,
    reading: Reading,
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
            raise bad_option(f"--{field.name}", "it is about a table; give FILE as well.")


def fitted(
    file: Path | None, training: Training, reading: Reading, also: Sequence[str] = ()
) -> CensoredGP:
    """Return a fitted model: loaded, or fitted to a table (the columns `also` are read with it)."""
    if file is not None:
        model = _fit(*prepare(file, training, reading, also), reading)
    elif training.iterations is not None:
        raise bad_option("--iterations", "the model is already fitted; give FILE to fit it anew.")
    else:
        model = load_model(training)
    if training.save is not None:
        model.save(training.save)
        say(f"Model: {training.save}")
    return model


def prepare(
    file: Path, training: Training, reading: Reading, also: Sequence[str] = ()
) -> tuple[CensoredGP, TableFile, dict[str, Any]]:
    """Return an unfitted model, the table to fit it to, and the other arguments of its `fit`."""
    source = Source(file, reading)
    if training.load is None:
        model = _unfitted(training)
        arguments, only = _arguments(training, source), split_names(training.only)
    else:
        before = load_model(training)
        model, (arguments, only) = clone(before), _saved_arguments(before, training.load)
        if training.iterations is not None:
            model.set_params(max_iterations=training.iterations)
    where = [(arguments["by"], only)] if only else []
    return model, source.read([*_columns(arguments, source.header), *also], where), arguments


def _fit(
    model: CensoredGP, file: TableFile, arguments: dict[str, Any], reading: Reading
) -> CensoredGP:
    say(f"Fitting {len(file.table.arrow):,} rows of {file.name} ...")
    with file.located():
        model.set_params(progress=sys.stderr.isatty()).fit(file.table.arrow, **arguments)
    if model.report_.status == "interrupted":
        raise KeyboardInterrupt
    # The report says which rows the model is about.
    model.where_ = tuple(where_pairs(reading.where))
    return model


def load_model(training: Training) -> CensoredGP:
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


def read_new(file: Path, model: CensoredGP, reading: Reading, partial: bool = False) -> TableFile:
    """Return new rows for a model: times and inputs. If `partial`, inputs may be left out."""
    layout, source = model.layout_, Source(file, reading)
    if partial and not all(name in source.header for name, _ in where_pairs(reading.where)):
        # What selects rows of the past need not be known of the future.
        source = Source(file, dataclasses.replace(reading, where=[]))
    if layout is None:
        return source.read(list(model.columns_.groups))
    names = [str(name) for name in layout.columns]
    if partial:
        names = [name for name in names if name == layout.time or name in source.header]
    elif layout.by in source.header:
        names.append(layout.by)
    return source.read(names)


def training_inputs(model: CensoredGP) -> pa.Table:
    """Return the inputs that a model was fitted to, with a row for each of its rows."""
    columns = model.columns_
    found = {}
    for name, places in columns.groups.items():
        column, zone = pa.array(columns.values(name, model._inputs)), columns.zones[places[0]]
        if zone is not None:
            # The model knows the wall clock only: either of a repeated hour is as good.
            column = pa.compute.assume_timezone(
                column, zone, ambiguous="earliest", nonexistent="latest"
            )
        found[name] = column
    return pa.table(found)


def _unfitted(training: Training) -> CensoredGP:
    """Return the model that the options describe."""
    preset = getattr(presets, (training.model or Preset.hmocgp).upper())
    return preset(
        _likelihood(training.likelihood or "gaussian"),
        random_state=training.seed or 0,
        max_iterations=training.iterations,
    )


def _likelihood(text: str) -> str | dict[str, str]:
    """Return the name of a family, or a dict with one for each output."""
    pairs = [tuple(map(str.strip, part.rpartition("=")[::2])) for part in text.split(",")]
    unknown = [family for _, family in pairs if family not in FAMILIES]
    if unknown or (len(pairs) > 1 and not all(output for output, _ in pairs)):
        accepted = f"one of {', '.join(FAMILIES)}, or one for each output, as a=poisson,b=gamma"
        raise bad_option("--likelihood", f"{text!r} must be {accepted}.")
    return dict(pairs) if pairs[0][0] else pairs[0][1]


def _arguments(training: Training, source: Source) -> dict[str, Any]:
    """Return the arguments of `CensoredGP.fit` that the options describe."""
    names = source.header
    outputs = split_names(training.outputs, names)
    if not outputs:
        there = ", ".join(map(repr, names))
        raise bad_option("--outputs", f"give the columns to model. {source.name} has {there}.")
    if training.time is None and not training.inputs:
        raise bad_option("--time / --inputs", "give at least one column that explains the outputs.")
    if training.only and training.by is None:
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
    spec = {f.name: getattr(layout.spec, f.name) for f in dataclasses.fields(layout.spec)}
    wide = layout.by is None
    arguments = spec | {
        "outputs": list(layout.outputs) if wide else layout.value,
        "time": layout.time,
        "inputs": list(layout.inputs) or None,
        "by": layout.by,
    }
    return arguments, [] if wide else [str(name) for name in layout.outputs]


def _limits(option: str, given: Any, outputs: Sequence[str], source: Source) -> Any:
    """Return a column or number for all outputs, or a dict with one for each output."""
    parts = split_names(given, source.header)
    pairs = [
        part.partition("=")[::2] for part in parts if part not in source.header and "=" in part
    ]
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


def _limit(option: str, text: str, source: Source) -> str | float:
    """Return a column if there is one of that name, else a number."""
    if text in source.header:
        return text
    with contextlib.suppress(ValueError):
        return float(text)
    accepted = "a column" if option == "--censored" else "a column or a number"
    there = ", ".join(map(repr, source.header))
    raise bad_option(option, f"{text!r} is not {accepted}. {source.name} has {there}.")


def _columns(arguments: dict[str, Any], header: Sequence[str]) -> list[str]:
    """Return the columns that the arguments of `fit` name; bounds may stand for an output."""
    names = []
    for argument, given in arguments.items():
        several = list(given.values()) if isinstance(given, dict) else given
        several = several if isinstance(several, list) else [several]
        names += [name for name in several if isinstance(name, str) and argument != "side"]
    if arguments["lower"] is None and arguments["upper"] is None:
        return names
    return [name for name in names if name in header or name not in arguments["outputs"]]
