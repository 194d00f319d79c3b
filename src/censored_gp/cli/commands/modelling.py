"""Commands that fit, predict, impute, compare models and report."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from censored_gp.cli.console import bad_option, say
from censored_gp.cli.options import (
    FileOptions,
    FitOptions,
    FleetOptions,
    ModelName,
    OutputOption,
    ProbabilityOption,
    TableArgument,
    command,
    split_names,
    split_presets,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from censored_gp.estimator.censored_gp import CensoredGP

app = typer.Typer(rich_markup_mode=None)


@command(
    app,
    "fit",
    "censored-gp fit bikes.csv --outputs station_1,station_2 --time time --inputs rain \\\n"
    "    --censored station_1_empty,station_2_empty --likelihood poisson --save bikes.cgp",
)
def fit(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write the summary to a .txt or .md file."),
    ] = None,
) -> None:
    """Fit a model to a table, and save it.

    A summary is printed. With --load and no FILE it is that of the loaded model.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_text

    fitting.check_files(training, reading, output, file, endings=(".txt", ".md"))
    model = fitting.fitted(file, training, reading)
    if training.save is None and file is not None:
        say("The model is not saved. Use --save model.cgp, and other commands can --load it.")
    write_text(model.summary(), output)


@command(app, "predict", "censored-gp predict next_week.csv --load bikes.cgp -o predicted.csv")
def predict(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Rows to predict at: times and inputs.")
    ],
    training: FitOptions,
    reading: FileOptions,
    train: Annotated[
        Path | None, typer.Option(help="Table to fit first, if no model is loaded.")
    ] = None,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> None:
    """Predict the true outputs at new rows, with intervals.

    For each output a the result has the mean in column a, and the ends of an interval that holds
    the truth with the given probability in a_low and a_high.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_parts

    fitting.check_files(training, reading, output, file, train)
    if train is None and training.load is None:
        raise bad_option("--load / --train", "give a model file, or a table to fit first.")
    source = fitting.table_file(file, reading)
    source.header()  # A file that cannot be read is refused before the fit.
    model = fitting.fitted(train, training, reading)
    new = fitting.read_new(source, model, reading)
    new = new.select(new.names)

    def predicted() -> Iterator[pa.Table]:
        for rows in fitting.in_parts(len(new)):
            some = new.rows(rows)
            with fitting.located(some):
                answers = (model.predict(some), *model.interval(some, probability))
            yield _with_keys(model, answers, some.arrow)

    write_parts(predicted(), output)


@command(
    app,
    "impute",
    "censored-gp impute --load bikes.cgp --output imputed.csv",
    "censored-gp impute tanks.csv --outputs lead --inputs depth --censored below --side left",
)
def impute(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> None:
    """Fill in censored and missing cells of a table.

    For each output a the result has column a, as observed or else the mean given what is known of
    the cell, and the ends of an interval that holds the truth with the given probability in a_low
    and a_high.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_parts

    fitting.check_files(training, reading, output, file)
    model = fitting.fitted(file, training, reading)
    places = model.training_.places

    def imputed() -> Iterator[pa.Table]:
        for rows in fitting.in_parts(len(places)):
            answers = (model.impute(rows=rows), *model.impute_interval(probability, rows=rows))
            inputs = fitting.training_inputs(model, places[rows])
            yield _with_keys(model, answers, inputs.arrow)

    write_parts(imputed(), output)


def _with_keys(model: CensoredGP, answers: tuple[Any, Any, Any], inputs: pa.Table) -> pa.Table:
    """Return value and interval side by side, after the columns that tell the rows apart.

    These are the time and the output of a long table; without a time, the inputs of each row.
    """
    import pyarrow as pa

    from censored_gp.cli.output import with_intervals

    layout = model.layout_
    if layout is None:
        names = list(map(str, model.output_names_))
        tables = [dict(zip(names, a.reshape(len(a), -1).T, strict=True)) for a in answers]
        table = with_intervals(tables, ())
    else:
        table = with_intervals(answers, layout.keys)
        if layout.time is not None:
            return table
        inputs = inputs.select([str(name) for name in layout.inputs])
        # New rows of a long table that name no output ask for each of them.
        each = len(table) // max(len(inputs), 1)
        inputs = inputs.take([row for row in range(len(inputs)) for _ in range(each)])
    keys = {name: inputs[name] for name in inputs.column_names if name not in table.column_names}
    return pa.table(keys | {name: table[name] for name in table.column_names})


@command(
    app, "compare", "censored-gp compare bikes.csv --load bikes.cgp --models ncgp,mocgp --folds 2"
)
def compare(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    models: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Models, as cgp,hmocgp; all six by default."),
    ] = None,
    likelihoods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Likelihoods, as poisson,negative_binomial."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    output: OutputOption = None,
) -> None:
    """Compare models and likelihoods by cross-validation.

    With --load and no FILE the table is the one that the model was fitted to. The other settings
    of the model (kernels, rank, engine, iterations, seed) are those of all models.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_table
    from censored_gp.estimator.analysis.compare import compare as compare_models

    fitting.check_files(training, reading, output, file)
    if training.save is not None:
        raise bad_option("--save", "compare saves no model. Fit the best one with fit --save.")
    if training.model is not None:
        raise bad_option("--model", f"use --models {training.model}.")
    presets = split_presets("--models", models or list(ModelName))
    if file is None:
        model = fitting.load_model(training)
        if training.iterations is not None:
            model.set_params(max_iterations=training.iterations)
        arguments = {"X": fitting.training_inputs(model), "y": model.observations_}
        place = contextlib.nullcontext()
    else:
        model, table, arguments = fitting.prepare(file, training, reading)
        arguments["X"], place = table, fitting.located(table)
    families = split_names(likelihoods) or [model.likelihood]
    settings = model.get_params(deep=False)
    for name in ("coupled", "heteroscedastic", "use_censoring", "likelihood", "progress"):
        settings.pop(name, None)
    seed = settings.pop("random_state")
    say(f"Fitting {len(presets) * len(families)} models {folds + 1} times each ...")
    with place:
        compared = compare_models(
            models=presets,
            likelihoods=families,
            folds=folds,
            random_state=seed if isinstance(seed, int) else 0,
            settings=settings,
            **arguments,
        )
    write_table(compared, output)


@command(
    app,
    "fleet",
    "censored-gp fleet sales.parquet --by store_id --series product_id --outputs sold \\\n"
    "    --time time --censored sold_out --model mocgp --save results --jobs 2",
)
def fleet(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Tables, or folders.")],
    training: FleetOptions,
    reading: FileOptions,
    save: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results.")],
    jobs: Annotated[int, typer.Option(help="Worker processes; -1: one on each core.")] = -1,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask cluster.")] = None,
    periods: Annotated[int, typer.Option(min=0, help="Number of steps ahead to forecast.")] = 0,
    probability: ProbabilityOption = 0.9,
) -> None:
    """Fit a model to each of many groups, such as stores.

    Results are folders of Parquet files in DIR: imputed, lost_demand, forecast, and summary with a
    row for each group. The same command, given again, does what is left.
    """
    from censored_gp.cli import fitting
    from censored_gp.data.layout import columns_used
    from censored_gp.estimator.fleet import fit_many, parquet_files

    data: Any = parquet_files(files)
    sources = [fitting.table_file(path, reading) for path in data or files]
    arguments = fitting.fit_arguments(dataclasses.replace(training, by=training.series), sources[0])
    used = [*columns_used(arguments, sources[0].header()), training.by]
    arguments["series"] = arguments.pop("by")
    if reading.where or not data:
        where = fitting.where_pairs(reading.where)
        data = [source.read(used, where) for source in sources]
    with contextlib.ExitStack() as stack:
        if dask is not None:
            # An optional dependency.
            from dask.distributed import Client
            from joblib import parallel_config

            stack.enter_context(Client(dask))
            stack.enter_context(parallel_config(backend="dask"))
        say(str(fit_many(
            data, fitting.unfitted(training), by=training.by, save=save, zone=reading.zone,
            periods=periods, probability=probability, n_jobs=None if dask else jobs, **arguments,
        )))  # fmt: skip


@command(app, "report", "censored-gp report --load bikes.cgp --output report.html")
def report(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Write the page here; - is standard output.")
    ] = "report.html",
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate with so many folds. Takes longer.")
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Compare models, as ncgp,hmocgp. Takes longer."),
    ] = None,
) -> None:
    """Write a self-contained HTML page about a model.

    The page needs no network and no other file.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_text

    fitting.check_files(training, reading, output, file, endings=(".html", ".htm"))
    models = split_presets("--compare", compare) or None
    # Charts are an optional dependency.
    from censored_gp.reporting import write_report

    model = fitting.fitted(file, training, reading)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html") if output == "-" else output
        write_report(model, page, title=title, folds=folds, comparison=models)
        if output == "-":
            write_text(Path(page).read_text(encoding="utf-8"), output)
        else:
            say(f"Report: {output}")
