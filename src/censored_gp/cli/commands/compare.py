"""`censored-gp compare`: which model and likelihood fits best."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from censored_gp.cli.fitting import loaded, prepared, refuse_unused
from censored_gp.cli.held import inputs_of
from censored_gp.cli.options import MODELS, USUAL_SEED, File, Files, Output, Training, command
from censored_gp.cli.plans import split_names
from censored_gp.cli.problems import BadInput, located, say
from censored_gp.cli.words import in_options
from censored_gp.cli.writing import check_target, write_table

OF_THE_MODEL = ("coupled", "heteroscedastic", "use_censoring")
"""Settings in which the models that are compared differ."""
OWN = (*OF_THE_MODEL, "likelihood", "random_state", "progress")
"""Settings that are not handed on to all models as they are."""


class _Data(NamedTuple):
    """What the models are fitted to, the model whose settings they get, and where errors are."""

    arguments: dict[str, Any]
    model: Any
    place: Any


@command(
    "compare",
    "censored-gp compare bikes.csv --load bikes.cgp --models ncgp,mocgp --folds 2",
)
def compare(
    training: Training,
    files: Files,
    file: File = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Models, as cgp,hmocgp. All six, if none is named.")
    ] = None,
    likelihoods: Annotated[
        list[str] | None, typer.Option(help="Likelihoods, as poisson,negative_binomial.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 3,
    output: Output = None,
) -> None:
    """Compare models and likelihoods by cross-validation and by the bound on the evidence.

    With --load and no FILE the table is the one that the model was fitted to. Other settings of
    the model (its kernels and rank, the engine, iterations and seed) are those of all models.
    """
    check_target(output, reads=(file,))
    names = _names(models, training)
    from censored_gp.estimator.analysis.compare import compare as compare_models

    arguments, model, place = _data(file, training, files)
    families = split_names(likelihoods) or (model.likelihood,)
    say(f"Fitting {len(names) * len(families)} models {folds + 1} times each ...")
    settings = model.get_params(deep=False)
    with place, in_options():
        table = compare_models(
            models=[name.upper() for name in names],
            likelihoods=list(families),
            folds=folds,
            random_state=_seed(model),
            settings={name: value for name, value in settings.items() if name not in OWN},
            **arguments,
        )
    write_table(table, output)


def _names(models: list[str] | None, training: Training) -> list[str]:
    """Return the models to compare; options that mean one model are refused."""
    if training.save is not None:
        raise BadInput("--save: compare keeps no model. Fit the best one with fit ... --save.")
    if training.model is not None:
        raise BadInput(f"--model: compare has --models. Give --models {training.model}.")
    names = [name.lower() for name in split_names(models)]
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise BadInput(f"--models: found {unknown[0]!r}. Accepted are {', '.join(MODELS)}.")
    return names or list(MODELS)


def _data(file: Path | None, training: Training, files: Files) -> _Data:
    """Return a table that is read, or what a model file holds."""
    if file is not None:
        wanted, plan, model = prepared(file, training, files)
        place = located(wanted.name, wanted.line_of)
        return _Data({"X": wanted.table, **plan.arguments()}, model, place)
    refuse_unused(file, files)
    if training.load is None:
        raise BadInput("Found no FILE and no --load. Give a table, or a model file.")
    model = loaded(training)
    if training.iterations is not None:
        model.set_params(max_iterations=training.iterations)
    known = {"X": inputs_of(model), "y": model.observations_}
    return _Data(known, model, contextlib.nullcontext())


def _seed(model: Any) -> int:
    """Return the seed of a model, or the usual one if it is of another kind."""
    found = model.random_state
    return found if isinstance(found, int) else USUAL_SEED
