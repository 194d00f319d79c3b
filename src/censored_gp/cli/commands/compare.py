"""`censored-gp compare`: which model and likelihood fits best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censored_gp.cli.fitting import prepared
from censored_gp.cli.options import MODELS, Files, Output, Training, command
from censored_gp.cli.plans import split_names
from censored_gp.cli.problems import BadInput, located, say
from censored_gp.cli.writing import check_target, write_table


@command(
    "compare",
    "censored-gp compare bikes.csv --load bikes.cgp --models ncgp,mocgp --folds 2",
)
def compare(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Table, CSV or Parquet.")],
    training: Training,
    files: Files,
    models: Annotated[
        list[str] | None, typer.Option(help="Models, as cgp,hmocgp. All six, if none is named.")
    ] = None,
    likelihoods: Annotated[
        list[str] | None, typer.Option(help="Likelihoods, as poisson,negative_binomial.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 3,
    output: Output = None,
) -> None:
    """Compare models and likelihoods by cross-validation and by the bound on the evidence."""
    check_target(output)
    names = [name.lower() for name in split_names(models)]
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise BadInput(f"--models: found {unknown[0]!r}. Accepted are {', '.join(MODELS)}.")
    from censored_gp.comparison import compare as compare_models

    wanted, plan, model = prepared(file, training, files)
    families = split_names(likelihoods) or (model.likelihood,)
    say(f"Fitting {len(names or MODELS) * len(families)} models {folds + 1} times each ...")
    with located(wanted.name, wanted.line_of):
        table = compare_models(
            wanted.table,
            models=[name.upper() for name in names or MODELS],
            likelihoods=list(families),
            folds=folds,
            random_state=training.seed,
            settings={"max_iterations": model.max_iterations},
            **plan.arguments(),
        )
    write_table(table, output)
