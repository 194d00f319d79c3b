"""The commands: thin functions over `CensoredGP`, in the order in which the help lists them.

What imports JAX is imported when a command runs: help and usage errors do not wait for it.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import censored_gp
from censored_gp.cli import options
from censored_gp.cli.console import bad_option, explain, say
from censored_gp.cli.options import Given, names, number, path, split_names, split_presets, text

if TYPE_CHECKING:
    import pyarrow as pa

    from censored_gp.estimator.censored_gp import CensoredGP

# Groups of lost demand that are no columns.
GROUPS = ("output", "hour", "weekday", "date", "month")

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
command = functools.partial(options.register, app)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Gaussian-process regression for censored data: true demand from incomplete records."""
    if version:
        typer.echo(f"censored-gp {censored_gp.__version__}")
        raise typer.Exit


@command(
    "demo",
    "censored-gp demo --days 15 --likelihood poisson --figure demo.png",
    group={},
    days=number("Days to simulate; 7 are held out.", 28, min=15),
    seed=number("Random seed.", 1, min=0),
    likelihood=text("NAME", "Likelihood of counts.", "negative_binomial"),
    figure=path("File for the figure.", Path("out/demo.png")),
)
def demo(given: Given) -> None:
    """Fit a bike share that runs out of bikes: truth is known.

    The naive model takes pickups for demand. The censored model takes them for a lower bound of
    it wherever a station ran out of bikes.
    """
    from rich.console import Console

    from censored_gp.cli import demonstration

    say(f"Simulating {given.days} days of a bike share and fitting two models ...")
    fitted = demonstration.fit_both(given.days, given.seed, given.likelihood, progress=True)
    Console().print(demonstration.table(fitted))
    try:
        demonstration.draw_figure(fitted, given.figure)
        say(f"Figure: {given.figure}")
    except ImportError as error:
        say(f"No figure. {error}")


# The sample data sets, by the name of the function that simulates them.
DATA_SETS = {
    "bike_share": "stations that run out of bikes",
    "car_park": "car parks that fill up",
    "shop": "fresh products that sell out",
    "water_samples": "metals below detection limits",
}


@command(
    "data",
    "censored-gp data",
    "censored-gp data bike_share --output bikes.csv",
    group={"output": options.FIT["output"]},
    name=(str | None, typer.Argument(None, help="Data set; without it, the list.")),
    seed=number("Random seed.", 0, min=0),
    length=number("Days, or water samples.", None, "--days", "--samples", min=1),
)
def data(given: Given) -> Any:
    """List the sample data sets, or write one as a table.

    They are simulated, and their truth is in the columns that end in _truth.
    """
    from censored_gp.cli.output import check_target
    from censored_gp.datasets import simulated

    check_target(given.output)
    if given.name is None:
        return [{"name": name, "what": what} for name, what in DATA_SETS.items()]
    size = () if given.length is None else (given.length,)
    world = getattr(simulated, options.one_of("NAME", DATA_SETS, given.name))
    return world(*size, seed=given.seed).table(truth=True)


@command(
    "fit",
    "censored-gp fit bikes.csv --outputs station_1,station_2 --time time --inputs rain \\\n"
    "    --censored station_1_empty,station_2_empty --likelihood poisson --save bikes.cgp",
    output=options.output("Write the summary to a .txt or .md file."),
)
def fit(given: Given) -> str:
    """Fit a model to a table, and save it.

    A summary is printed. With --load and no FILE it is that of the loaded model.
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given, endings=(".txt", ".md"))
    if given.save is None and given.file is not None:
        say("The model is not saved. Use --save model.cgp, and other commands can --load it.")
    return model.summary()


@command(
    "predict",
    "censored-gp predict next_week.csv --load bikes.cgp -o predicted.csv",
    file=options.table("Rows to predict at: times and inputs.", ...),
    train=path("Table to fit first, if no model is loaded."),
    probability=options.PROBABILITY,
)
def predict(given: Given) -> Iterator[Any]:
    """Predict the true outputs at new rows, with intervals.

    For each output a the result has the mean in column a, and the ends of an interval that holds
    the truth with the given probability in a_low and a_high.
    """
    from censored_gp.cli import fitting

    if given.train is None and given.load is None:
        raise bad_option("--load / --train", "give a model file, or a table to fit first.")
    source = fitting.table_file(given.file, given)
    source.read(source.header[:1])  # A file that cannot be read is refused before the fit.
    model = fitting.fitted(Given(**vars(given) | {"file": given.train}), given.file)
    new = fitting.read_new(source, model, given)
    new = new.select(new.names)
    for rows in fitting.in_parts(len(new)):
        some = new.rows(rows)
        answers = (model.predict(some), *model.interval(some, given.probability))
        yield _with_keys(model, answers, some.arrow)


@command(
    "impute",
    "censored-gp impute --load bikes.cgp --output imputed.csv",
    "censored-gp impute tanks.csv --outputs lead --inputs depth --censored below --side left",
    probability=options.PROBABILITY,
)
def impute(given: Given) -> Iterator[Any]:
    """Fill in censored and missing cells of a table.

    For each output a the result has column a, as observed or else the mean given what is known of
    the cell, and the ends of an interval that holds the truth with the given probability in a_low
    and a_high.
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given)
    places = model.training_.places
    for rows in fitting.in_parts(len(places)):
        answers = (model.impute(rows=rows), *model.impute_interval(given.probability, rows=rows))
        yield _with_keys(model, answers, fitting.training_inputs(model, places[rows]).arrow)


def _with_keys(model: CensoredGP, answers: tuple[Any, ...], inputs: pa.Table) -> pa.Table:
    """Return value and interval side by side, after the columns that tell the rows apart.

    These are the time and the output of a long table; without a time, the inputs of each row.
    """
    import pyarrow as pa

    from censored_gp.data.tables import as_arrow, with_intervals

    layout = model.layout_
    if layout is None:
        names = list(map(str, model.output_names_))
        answers = tuple(dict(zip(names, a.reshape(len(a), -1).T, strict=True)) for a in answers)
    value, low, high = map(as_arrow, answers)
    keys = {name: value[name] for name in getattr(layout, "keys", ()) if name in value.column_names}
    outputs = {n: (value[n], low[n], high[n]) for n in value.column_names if n not in keys}
    if layout is None or layout.time is None:
        # New rows of a long table that name no output ask for each of them.
        each = len(value) // max(len(inputs), 1)
        inputs = inputs.take([row for row in range(len(inputs)) for _ in range(each)])
        own = inputs.column_names if layout is None else layout.inputs
        keys = {n: inputs[n] for n in own if n not in value.column_names} | keys
    return pa.table(with_intervals(keys, outputs))


@command(
    "lost-demand",
    "censored-gp lost-demand --load bikes.cgp",
    "censored-gp lost-demand --load bikes.cgp --group output,hour --output lost.csv",
    group_by=names("NAMES", f"Group by {', '.join(GROUPS)} or columns, as a,b.", None, "--group"),
    samples=options.SAMPLES,
    probability=options.PROBABILITY,
)
def lost_demand(given: Given) -> Any:
    """Estimate the demand lost to censoring, by group.

    Intervals come from joint draws of all censored cells.
    """
    from censored_gp.cli import fitting

    if given.by is not None and given.load is not None:
        raise bad_option("--by", f"use --group {given.by} to group the lost demand.")
    groups = split_names(given.group_by)
    model = fitting.fitted(given, also=[name for name in groups if name not in GROUPS])
    return model.lost_demand(groups or None, given.probability, given.samples)


@command(
    "forecast",
    "censored-gp forecast --load bikes.cgp --periods 24 --output ahead.csv",
    periods=number("Number of steps ahead.", min=1),
    until=text("TIME", "Last time, instead of --periods."),
    future=path("Table of future times and inputs; other inputs are drawn."),
    probability=options.PROBABILITY,
)
def forecast(given: Given) -> Any:
    """Forecast the true outputs after the last time.

    The steps are those of the table: hours, days, or whatever its usual spacing is.
    """
    from censored_gp.cli import fitting
    from censored_gp.data.errors import DataError

    if (given.periods is None) == (given.until is None):
        raise bad_option("--periods / --until", "give one of the two.")
    model, known = fitting.fitted(given, given.future), None
    if given.future is not None:
        source = fitting.table_file(given.future, given)
        known = fitting.read_new(source, model, given, partial=True)
    try:
        return model.forecast(given.periods, given.until, known, given.probability)
    except DataError as error:
        if error.argument == "inputs":
            raise bad_option("--future", error.problem) from error
        raise


@command(
    "required-supply",
    "censored-gp required-supply --load bikes.cgp --window 1d",
    "censored-gp required-supply --load bikes.cgp --future next_week.csv --probability 0.9",
    future=path("Rows to supply: times and inputs; the fitted rows by default."),
    probability=options.share("Probability that the supply is enough.", 0.95),
    window=text("DURATION", "As 6h or 1d; else all rows together."),
    samples=options.SAMPLES,
)
def required_supply(given: Given) -> Any:
    """Compute the supply that meets demand with a probability.

    There is a row for each output and window of time. The column peak is enough for the busiest
    row of the window, the column sum for all of its rows together.
    """
    from censored_gp.cli import fitting
    from censored_gp.data.time import duration_hours

    try:
        duration_hours(given.window or "1h")
    except ValueError as error:
        raise bad_option("--window", str(error)) from error
    model = fitting.fitted(given, given.future)
    new = fitting.training_inputs(model)
    if given.future is not None:
        new = fitting.read_new(fitting.table_file(given.future, given), model, given)
    return model.required_supply(new, given.probability, given.window, given.samples)


@command(
    "correlations",
    "censored-gp correlations --load bikes.cgp",
    role=text("NAME", "Parameter: mean, or scale if the noise varies (heteroscedastic).", "mean"),
)
def correlations(given: Given) -> Any:
    """Show how the latent functions of outputs correlate.

    They are zero in models whose outputs are not coupled (cgp, hcgp, ncgp).
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given)
    matrix = model.correlations(given.role)
    if model.layout_ is not None:
        return matrix
    outputs = list(map(str, model.output_names_))
    return {"output": outputs} | {name: matrix[:, d] for d, name in enumerate(outputs)}


@command(
    "diagnose",
    "censored-gp diagnose --load bikes.cgp --output methods.csv",
    folds=number("Hold out one day in so many.", 5, min=2),
)
def diagnose(given: Given) -> Any:
    """Tell whether estimates are to be trusted.

    Exact cells are censored anew, as the real ones are, and the model is fitted once more. On these
    cells the table has the sum of the estimates over the truth (ratio) and the mean absolute error,
    and of the really censored ones lost demand, for this model and two simple methods. What speaks
    against the model, and what to do, comes first, on the standard error stream.
    """
    from censored_gp.cli import fitting

    model = fitting.fitted(given)
    say("Censoring exact cells anew, and fitting once more ...")
    diagnosis = model.diagnose(given.folds)
    for message in (*diagnosis.lines, *diagnosis.warnings):
        say(explain(message))
    return diagnosis.rows


@command(
    "compare",
    "censored-gp compare bikes.csv --load bikes.cgp --models ncgp,mocgp --folds 2",
    models=names("NAMES", "Models, as cgp,hmocgp; all six by default."),
    likelihoods=names("NAMES", "Likelihoods, as poisson,negative_binomial."),
    folds=number("Folds of the cross-validation.", 3, min=2),
)
def compare(given: Given) -> Any:
    """Compare models and likelihoods by cross-validation.

    With --load and no FILE the table is the one that the model was fitted to. The other settings
    of the model (kernels, rank, engine, iterations, seed) are those of all models.
    """
    from censored_gp.cli import fitting
    from censored_gp.estimator.analysis.compare import compare as compare_models
    from censored_gp.estimator.presets import FIXED

    fitting.check_files(given)
    if given.save is not None:
        raise bad_option("--save", "compare saves no model. Fit the best one with fit --save.")
    if given.model is not None:
        raise bad_option("--model", f"use --models {given.model}.")
    presets = split_presets("--models", given.models or options.MODEL_NAMES)
    arguments: dict[str, Any]
    if given.file is None:
        model = fitting.load_model(given)
        rows, arguments = fitting.training_inputs(model), {"y": model.observations_}
        arguments["own_inputs"] = model.training_.own_names
    else:
        model, rows, arguments = fitting.prepare(given)
    families = split_names(given.likelihoods) or [model.likelihood]
    say(f"Fitting {len(presets) * len(families)} models {given.folds + 1} times each ...")
    others = (*FIXED, "likelihood", "progress")
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in others}
    asked = {"models": presets, "likelihoods": families, "folds": given.folds}
    asked["random_state"] = settings.pop("random_state") or 0
    return compare_models(X=rows, **asked, settings=settings, **arguments)


@command(
    "fleet",
    "censored-gp fleet sales.parquet --by store_id --series product_id --outputs sold \\\n"
    "    --time time --censored sold_out --model mocgp --save results --jobs 2",
    group=options.FILE | options.MODEL,
    files=(list[Path], typer.Argument(..., metavar="FILES", help="Tables, or folders.")),
    by=text("NAME", "Column of the groups: a model for each.", ...),
    series=text("NAME", "Of long tables: output column."),
    save=options.option(Path, "DIR", "Folder of the results.", ...),
    jobs=number("Worker processes; -1: one on each core.", -1),
    dask=text("ADDRESS", "Dask cluster."),
    periods=number("Number of steps ahead to forecast.", 0, min=0),
    probability=options.PROBABILITY,
)
def fleet(given: Given) -> None:
    """Fit a model to each of many groups, such as stores.

    Results are folders of Parquet files in DIR: imputed, lost_demand, forecast, and summary with a
    row for each group. The same command, given again, does what is left.
    """
    from censored_gp.cli import fitting
    from censored_gp.data.layout import columns_used
    from censored_gp.estimator.fleet import fit_many, parquet_files

    data: Any = parquet_files(given.files)
    sources = [fitting.table_file(each, given) for each in data or given.files]
    arguments = fitting.fit_arguments(Given(**vars(given) | {"by": given.series}), sources[0])
    used = [*columns_used(arguments, sources[0].header), given.by]
    arguments["series"] = arguments.pop("by")
    if given.where or not data:
        where = fitting.where_pairs(given.where)
        data = [source.read(used, where) for source in sources]
    with contextlib.ExitStack() as stack:
        if given.dask is not None:
            # An optional dependency.
            from dask.distributed import Client
            from joblib import parallel_config

            stack.enter_context(Client(given.dask))
            stack.enter_context(parallel_config(backend="dask"))
        settings = {name: getattr(given, name) for name in ("by", "save", "zone", "periods")}
        settings |= {"probability": given.probability, "n_jobs": None if given.dask else given.jobs}
        say(str(fit_many(data, fitting.unfitted(given), **settings, **arguments)))


@command(
    "report",
    "censored-gp report --load bikes.cgp --output report.html",
    output=options.output("Write the page here; - is standard output.", "report.html"),
    title=text("TEXT", "Heading of the page."),
    folds=number("Hold out one day in so many; 0: no diagnosis.", 5, min=0),
    compare=names("NAMES", "Compare models, as ncgp,hmocgp. Takes longer."),
)
def report(given: Given) -> str | None:
    """Write a self-contained HTML page about a model.

    It begins with whether its estimates are to be trusted, as diagnose tells it. The page needs no
    network and no other file.
    """
    from censored_gp.cli import fitting
    from censored_gp.reporting import write_report

    models = split_presets("--compare", given.compare) or None
    model = fitting.fitted(given, endings=(".html", ".htm"))
    diagnosis = model.diagnose(given.folds) if given.folds else None
    for message in diagnosis.verdict[:1] if diagnosis else ():
        say(explain(message))
    settings = {"diagnosis": diagnosis, "folds": None, "comparison": models}
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html") if given.output == "-" else Path(given.output)
        write_report(model, page, title=given.title, **settings)
        if given.output == "-":
            return page.read_text(encoding="utf-8")
    say(f"Report: {page}")
    return None
