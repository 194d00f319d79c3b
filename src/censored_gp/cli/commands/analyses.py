"""Commands that ask a fitted model: lost demand, forecast, supply, correlations, diagnosis.

Here and in the other modules of commands, what imports JAX is imported when a command runs: help
and usage errors do not wait for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.console import bad_option, explain, say
from censored_gp.cli.options import (
    FileOptions,
    FitOptions,
    OutputOption,
    ProbabilityOption,
    TableArgument,
    command,
    split_names,
)

GROUPS = ("output", "hour", "weekday", "date", "month")

app = typer.Typer(rich_markup_mode=None)


@command(
    app,
    "lost-demand",
    "censored-gp lost-demand --load bikes.cgp",
    "censored-gp lost-demand --load bikes.cgp --group output,hour --output lost.csv",
)
def lost_demand(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help=f"Group by {', '.join(GROUPS)} or columns, as a,b."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Joint draws behind the intervals.")] = 500,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> None:
    """Estimate the demand lost to censoring, by group.

    Intervals come from joint draws of all censored cells.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_table

    fitting.check_files(training, reading, output, file)
    if training.by is not None and training.load is not None:
        raise bad_option("--by", f"use --group {training.by} to group the lost demand.")
    groups = split_names(group)
    columns = [name for name in groups if name not in GROUPS]
    model = fitting.fitted(file, training, reading, also=columns)
    keys = () if model.layout_ is None else model.layout_.keys
    saved = dict.fromkeys([*model.columns_.groups, *map(str, keys)])
    if file is None and not set(columns) <= set(saved):
        accepted = f"{', '.join(GROUPS)} or a saved column ({', '.join(saved)})"
        raise bad_option("--group", f"must be {accepted}, got {', '.join(columns)}.")
    write_table(model.lost_demand(groups or None, probability, samples), output)


@command(app, "forecast", "censored-gp forecast --load bikes.cgp --periods 24 --output ahead.csv")
def forecast(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    periods: Annotated[int | None, typer.Option(min=1, help="Number of steps ahead.")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Last time, instead of --periods.")
    ] = None,
    future: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table of future times and inputs; other inputs are drawn."
        ),
    ] = None,
    probability: ProbabilityOption = 0.9,
    output: OutputOption = None,
) -> None:
    """Forecast the true outputs after the last time.

    The steps are those of the table: hours, days, or whatever its usual spacing is.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_table

    fitting.check_files(training, reading, output, file, future)
    if (periods is None) == (until is None):
        raise bad_option("--periods / --until", "give one of the two.")
    model = fitting.fitted(file, training, reading)
    if future is None:
        ahead = model.forecast(periods, until=until, probability=probability)
    else:
        known = fitting.read_new(fitting.table_file(future, reading), model, reading, partial=True)
        with fitting.located(known):
            ahead = model.forecast(periods, until=until, inputs=known, probability=probability)
    write_table(ahead, output)


@command(
    app,
    "required-supply",
    "censored-gp required-supply --load bikes.cgp --window 1d",
    "censored-gp required-supply --load bikes.cgp --future next_week.csv --probability 0.9",
)
def required_supply(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    future: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Rows to supply: times and inputs; the fitted rows by default."
        ),
    ] = None,
    probability: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="Probability that the supply is enough.")
    ] = 0.95,
    window: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="As 6h or 1d; all rows together by default."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Joint draws behind the answer.")] = 500,
    output: OutputOption = None,
) -> None:
    """Compute the supply that meets demand with a probability.

    There is a row for each output and window of time. The column peak is enough for the busiest
    row of the window, the column sum for all of its rows together.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_table

    fitting.check_files(training, reading, output, file, future)
    if window is not None:
        from censored_gp.data.time import duration_hours

        try:
            duration_hours(window)
        except ValueError as error:
            raise bad_option("--window", str(error)) from error
    model = fitting.fitted(file, training, reading)
    if future is None:
        found = model.required_supply(fitting.training_inputs(model), probability, window, samples)
    else:
        new = fitting.read_new(fitting.table_file(future, reading), model, reading)
        with fitting.located(new):
            found = model.required_supply(new, probability, window, samples)
    write_table(found, output)


@command(app, "correlations", "censored-gp correlations --load bikes.cgp")
def correlations(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    role: Annotated[
        str, typer.Option(help="Parameter: mean, or scale if the noise varies (heteroscedastic).")
    ] = "mean",
    output: OutputOption = None,
) -> None:
    """Show how the latent functions of outputs correlate.

    They are zero in models whose outputs are not coupled (cgp, hcgp, ncgp).
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_table

    fitting.check_files(training, reading, output, file)
    model = fitting.fitted(file, training, reading)
    found = model.correlations(role)
    if model.layout_ is None:
        names = list(map(str, model.output_names_))
        found = {"output": names} | {name: found[:, d] for d, name in enumerate(names)}
    write_table(found, output)


@command(app, "diagnose", "censored-gp diagnose --load bikes.cgp --folds 2 --output scores.csv")
def diagnose(
    training: FitOptions,
    reading: FileOptions,
    file: TableArgument = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    output: OutputOption = None,
) -> None:
    """Score a model on held-out cells, and warn of problems.

    The table has the scores of each output for this model, for one that ignores censoring and for
    one that sees exact cells only. Warnings go to the standard error stream.
    """
    from censored_gp.cli import fitting
    from censored_gp.cli.output import write_table

    fitting.check_files(training, reading, output, file)
    model = fitting.fitted(file, training, reading)
    say(f"Predicting held-out cells in {folds} folds ...")
    diagnosis = model.diagnose(folds)
    write_table(diagnosis.rows, output)
    for message in diagnosis.warnings or ("Held-out cells show nothing wrong.",):
        say(explain(message))
