"""The commands: thin functions over `CensoredGP`, in the order in which the help lists them.

What imports JAX is imported when a command runs: help and usage errors do not wait for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import censored_gp
from censored_gp.cli.console import bad_option, explain, say
from censored_gp.cli.options import (
    FitOptions,
    FleetOptions,
    FoldsOption,
    ModelName,
    Names,
    Number,
    OutputOption,
    ProbabilityOption,
    SamplesOption,
    TableArgument,
    Text,
    option,
    register,
    split_names,
    split_presets,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from censored_gp.estimator.censored_gp import CensoredGP

GROUPS = ("output", "hour", "weekday", "date", "month")
"""Groups of lost demand that are no columns."""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
command = functools.partial(register, app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"censored-gp {censored_gp.__version__}")
        raise typer.Exit


SHOWN = "Show the version and exit."
VERSION = typer.Option("--version", callback=_show_version, is_eager=True, help=SHOWN)


@app.callback()
def main(version: Annotated[bool, VERSION] = False) -> None:
    """Gaussian-process regression for censored data: true demand from incomplete records."""


@command("demo", "censored-gp demo --days 15 --likelihood poisson --figure demo.png")
def demo(
    days: Annotated[int, typer.Option(min=15, help="Days to simulate; 7 are held out.")] = 28,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    likelihood: Annotated[str, typer.Option(help="Likelihood of counts.")] = "negative_binomial",
    figure: Annotated[Path, typer.Option(help="File for the figure.")] = Path("out/demo.png"),
) -> None:
    """Fit a bike share that runs out of bikes: truth is known.

    The naive model takes pickups for demand. The censored model takes them for a lower bound of
    it wherever a station ran out of bikes.
    """
    from rich.console import Console

    from censored_gp.cli import demonstration

    started = time.perf_counter()
    say(f"Simulating {days} days of a bike share and fitting two models ...")
    fitted = demonstration.fit_both(days, seed, likelihood, progress=True)
    Console().print(demonstration.table(fitted))
    try:
        demonstration.draw_figure(fitted, figure)
        say(f"Figure: {figure}")
    except ImportError as error:
        say(f"No figure. {error}")
    say(f"{time.perf_counter() - started:.0f} s")


DATA_SETS = {
    "bike_share": "stations that run out of bikes",
    "car_park": "car parks that fill up",
    "shop": "fresh products that sell out",
    "water_samples": "metals below detection limits",
}
"""The sample data sets, by the name of the function that simulates them."""


@command("data", "censored-gp data", "censored-gp data bike_share --output bikes.csv")
def data(
    name: Annotated[Text, typer.Argument(help="Data set; without it, the list.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    length: Annotated[
        Number, typer.Option("--days", "--samples", min=1, help="Days, or water samples.")
    ] = None,
    output: OutputOption = None,
) -> Any:
    """List the sample data sets, or write one as a table.

    They are simulated, and their truth is in the columns that end in _truth.
    """
    from censored_gp.cli.output import check_target
    from censored_gp.data.errors import did_you_mean
    from censored_gp.datasets import simulated

    check_target(output)
    if name is None:
        return [{"name": name, "what": text} for name, text in DATA_SETS.items()]
    if name not in DATA_SETS:
        hint = did_you_mean(name, DATA_SETS)
        raise bad_option("NAME", f"{name!r} is not one of {', '.join(DATA_SETS)}. {hint}")
    size = () if length is None else (length,)
    return getattr(simulated, name)(*size, seed=seed).table(truth=True)


@command(
    "fit",
    "censored-gp fit bikes.csv --outputs station_1,station_2 --time time --inputs rain \\\n"
    "    --censored station_1_empty,station_2_empty --likelihood poisson --save bikes.cgp",
)
def fit(
    given: FitOptions,
    file: TableArgument = None,
    output: Annotated[
        Text, option("FILE", "Write the summary to a .txt or .md file.", "--output", "-o")
    ] = None,
) -> str:
    """Fit a model to a table, and save it.

    A summary is printed. With --load and no FILE it is that of the loaded model.
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given, file, output, endings=(".txt", ".md"))
    if given.save is None and file is not None:
        say("The model is not saved. Use --save model.cgp, and other commands can --load it.")
    return model.summary()


@command("predict", "censored-gp predict next_week.csv --load bikes.cgp -o predicted.csv")
def predict(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Rows to predict at: times and inputs.")
    ],
    given: FitOptions,
    train: Annotated[
        Path | None, option("FILE", "Table to fit first, if no model is loaded.")
    ] = None,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> Iterator[Any]:
    """Predict the true outputs at new rows, with intervals.

    For each output a the result has the mean in column a, and the ends of an interval that holds
    the truth with the given probability in a_low and a_high.
    """
    from censored_gp.cli import fitting

    if train is None and given.load is None:
        raise bad_option("--load / --train", "give a model file, or a table to fit first.")
    source = fitting.table_file(file, given)
    source.header()  # A file that cannot be read is refused before the fit.
    model = fitting.fitted(given, train, output, file)
    new = fitting.read_new(source, model, given)
    new = new.select(new.names)
    for rows in fitting.in_parts(len(new)):
        some = new.rows(rows)
        answers = (model.predict(some), *model.interval(some, probability))
        yield _with_keys(model, answers, some.arrow)


@command(
    "impute",
    "censored-gp impute --load bikes.cgp --output imputed.csv",
    "censored-gp impute tanks.csv --outputs lead --inputs depth --censored below --side left",
)
def impute(
    given: FitOptions,
    file: TableArgument = None,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> Iterator[Any]:
    """Fill in censored and missing cells of a table.

    For each output a the result has column a, as observed or else the mean given what is known of
    the cell, and the ends of an interval that holds the truth with the given probability in a_low
    and a_high.
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given, file, output)
    places = model.training_.places
    for rows in fitting.in_parts(len(places)):
        answers = (model.impute(rows=rows), *model.impute_interval(probability, rows=rows))
        yield _with_keys(model, answers, fitting.training_inputs(model, places[rows]).arrow)


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
    "lost-demand",
    "censored-gp lost-demand --load bikes.cgp",
    "censored-gp lost-demand --load bikes.cgp --group output,hour --output lost.csv",
)
def lost_demand(
    given: FitOptions,
    file: TableArgument = None,
    group: Annotated[
        Names, option("NAMES", f"Group by {', '.join(GROUPS)} or columns, as a,b.")
    ] = None,
    samples: SamplesOption = 500,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> Any:
    """Estimate the demand lost to censoring, by group.

    Intervals come from joint draws of all censored cells.
    """
    from censored_gp.cli import fitting

    if given.by is not None and given.load is not None:
        raise bad_option("--by", f"use --group {given.by} to group the lost demand.")
    groups = split_names(group)
    columns = [name for name in groups if name not in GROUPS]
    model = fitting.fitted(given, file, output, also=columns)
    keys = () if model.layout_ is None else model.layout_.keys
    saved = dict.fromkeys([*model.columns_.groups, *map(str, keys)])
    if file is None and not set(columns) <= set(saved):
        accepted = f"{', '.join(GROUPS)} or a saved column ({', '.join(saved)})"
        raise bad_option("--group", f"must be {accepted}, got {', '.join(columns)}.")
    return model.lost_demand(groups or None, probability, samples)


@command("forecast", "censored-gp forecast --load bikes.cgp --periods 24 --output ahead.csv")
def forecast(
    given: FitOptions,
    file: TableArgument = None,
    periods: Annotated[Number, option("NUMBER", "Number of steps ahead.", min=1)] = None,
    until: Annotated[Text, option("TIME", "Last time, instead of --periods.")] = None,
    future: Annotated[
        Path | None, option("FILE", "Table of future times and inputs; other inputs are drawn.")
    ] = None,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> Any:
    """Forecast the true outputs after the last time.

    The steps are those of the table: hours, days, or whatever its usual spacing is.
    """
    from censored_gp.cli import fitting

    if (periods is None) == (until is None):
        raise bad_option("--periods / --until", "give one of the two.")
    model = fitting.fitted(given, file, output, future)
    if future is None:
        return model.forecast(periods, until=until, probability=probability)
    known = fitting.read_new(fitting.table_file(future, given), model, given, partial=True)
    return model.forecast(periods, until=until, inputs=known, probability=probability)


@command(
    "required-supply",
    "censored-gp required-supply --load bikes.cgp --window 1d",
    "censored-gp required-supply --load bikes.cgp --future next_week.csv --probability 0.9",
)
def required_supply(
    given: FitOptions,
    file: TableArgument = None,
    future: Annotated[
        Path | None,
        option("FILE", "Rows to supply: times and inputs; the fitted rows by default."),
    ] = None,
    probability: Annotated[
        float, option("NUMBER", "Probability that the supply is enough.", min=0.001, max=0.999)
    ] = 0.95,
    window: Annotated[Text, option("DURATION", "As 6h or 1d; else all rows together.")] = None,
    samples: SamplesOption = 500,
    output: OutputOption = None,
) -> Any:
    """Compute the supply that meets demand with a probability.

    There is a row for each output and window of time. The column peak is enough for the busiest
    row of the window, the column sum for all of its rows together.
    """
    from censored_gp.cli import fitting
    from censored_gp.data.time import duration_hours

    try:
        duration_hours(window or "1h")
    except ValueError as error:
        raise bad_option("--window", str(error)) from error
    model = fitting.fitted(given, file, output, future)
    new = fitting.training_inputs(model)
    if future is not None:
        new = fitting.read_new(fitting.table_file(future, given), model, given)
    return model.required_supply(new, probability, window, samples)


@command("correlations", "censored-gp correlations --load bikes.cgp")
def correlations(
    given: FitOptions,
    file: TableArgument = None,
    role: Annotated[
        str, option("NAME", "Parameter: mean, or scale if the noise varies (heteroscedastic).")
    ] = "mean",
    output: OutputOption = None,
) -> Any:
    """Show how the latent functions of outputs correlate.

    They are zero in models whose outputs are not coupled (cgp, hcgp, ncgp).
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given, file, output)
    matrix = model.correlations(role)
    if model.layout_ is not None:
        return matrix
    names = list(map(str, model.output_names_))
    return {"output": names} | {name: matrix[:, d] for d, name in enumerate(names)}


@command("diagnose", "censored-gp diagnose --load bikes.cgp --output methods.csv")
def diagnose(
    given: FitOptions,
    file: TableArgument = None,
    folds: Annotated[int, option("NUMBER", "Hold out one day in so many.", min=2)] = 5,
    output: OutputOption = None,
) -> Any:
    """Tell whether estimates are to be trusted.

    Exact cells are censored anew, as the real ones are, and the model is fitted once more. On these
    cells the table has the sum of the estimates over the truth (ratio) and the mean absolute error,
    and of the really censored ones lost demand, for this model and two simple methods. What speaks
    against the model, and what to do, comes first, on the standard error stream.
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given, file, output)
    say("Censoring exact cells anew, and fitting once more ...")
    diagnosis = model.diagnose(folds)
    for message in (*diagnosis.lines, *diagnosis.warnings):
        say(explain(message))
    return diagnosis.rows


@command("compare", "censored-gp compare bikes.csv --load bikes.cgp --models ncgp,mocgp --folds 2")
def compare(
    given: FitOptions,
    file: TableArgument = None,
    models: Annotated[Names, option("NAMES", "Models, as cgp,hmocgp; all six by default.")] = None,
    likelihoods: Annotated[
        Names, option("NAMES", "Likelihoods, as poisson,negative_binomial.")
    ] = None,
    folds: FoldsOption = 3,
    output: OutputOption = None,
) -> Any:
    """Compare models and likelihoods by cross-validation.

    With --load and no FILE the table is the one that the model was fitted to. The other settings
    of the model (kernels, rank, engine, iterations, seed) are those of all models.
    """
    from censored_gp.cli import fitting
    from censored_gp.estimator.analysis.compare import compare as compare_models

    fitting.check_files(given, output, file)
    if given.save is not None:
        raise bad_option("--save", "compare saves no model. Fit the best one with fit --save.")
    if given.model is not None:
        raise bad_option("--model", f"use --models {given.model}.")
    presets = split_presets("--models", models or list(ModelName))
    if file is None:
        model = fitting.load_model(given)
        table, arguments = fitting.training_inputs(model), {"y": model.observations_}
    else:
        model, table, arguments = fitting.prepare(file, given)
    families = split_names(likelihoods) or [model.likelihood]
    settings = model.get_params(deep=False)
    for name in ("coupled", "heteroscedastic", "use_censoring", "likelihood", "progress"):
        settings.pop(name, None)
    seed = settings.pop("random_state")
    say(f"Fitting {len(presets) * len(families)} models {folds + 1} times each ...")
    return compare_models(
        X=table,
        models=presets,
        likelihoods=families,
        folds=folds,
        random_state=seed if isinstance(seed, int) else 0,
        settings=settings,
        **arguments,
    )


@command(
    "fleet",
    "censored-gp fleet sales.parquet --by store_id --series product_id --outputs sold \\\n"
    "    --time time --censored sold_out --model mocgp --save results --jobs 2",
)
def fleet(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Tables, or folders.")],
    given: FleetOptions,
    save: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results.")],
    jobs: Annotated[int, typer.Option(help="Worker processes; -1: one on each core.")] = -1,
    dask: Annotated[Text, option("ADDRESS", "Dask cluster.")] = None,
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
    sources = [fitting.table_file(path, given) for path in data or files]
    arguments = fitting.fit_arguments(dataclasses.replace(given, by=given.series), sources[0])
    used = [*columns_used(arguments, sources[0].header()), given.by]
    arguments["series"] = arguments.pop("by")
    if given.where or not data:
        where = fitting.where_pairs(given.where)
        data = [source.read(used, where) for source in sources]
    with contextlib.ExitStack() as stack:
        if dask is not None:
            # An optional dependency.
            from dask.distributed import Client
            from joblib import parallel_config

            stack.enter_context(Client(dask))
            stack.enter_context(parallel_config(backend="dask"))
        say(str(fit_many(
            data, fitting.unfitted(given), by=given.by, save=save, zone=given.zone,
            periods=periods, probability=probability, n_jobs=None if dask else jobs, **arguments,
        )))  # fmt: skip


@command("report", "censored-gp report --load bikes.cgp --output report.html")
def report(
    given: FitOptions,
    file: TableArgument = None,
    output: Annotated[
        str, option("FILE", "Write the page here; - is standard output.", "--output", "-o")
    ] = "report.html",
    title: Annotated[Text, option("TEXT", "Heading of the page.")] = None,
    folds: Annotated[
        int, option("NUMBER", "Hold out one day in so many; 0: no diagnosis.", min=0)
    ] = 5,
    compare: Annotated[
        Names, option("NAMES", "Compare models, as ncgp,hmocgp. Takes longer.")
    ] = None,
) -> str | None:
    """Write a self-contained HTML page about a model.

    It begins with whether its estimates are to be trusted, as diagnose tells it. The page needs no
    network and no other file.
    """
    from censored_gp.cli import fitting
    from censored_gp.reporting import write_report

    models = split_presets("--compare", compare) or None
    model = fitting.fitted(given, file, output, endings=(".html", ".htm"))
    diagnosis = model.diagnose(folds) if folds else None
    for message in diagnosis.verdict[:1] if diagnosis else ():
        say(explain(message))
    settings = {"title": title, "diagnosis": diagnosis, "folds": None, "comparison": models}
    if output != "-":
        write_report(model, output, **settings)
        say(f"Report: {output}")
        return None
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        write_report(model, page, **settings)
        return page.read_text(encoding="utf-8")
