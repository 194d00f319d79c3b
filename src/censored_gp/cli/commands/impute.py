"""`censored-gp impute`: what censored and missing cells really were."""

from __future__ import annotations

from censored_gp.cli.fitting import fitted
from censored_gp.cli.options import File, Files, Output, Probability, Training, command
from censored_gp.cli.tabulate import side_by_side
from censored_gp.cli.writing import check_target, write_table


@command(
    "impute",
    "censored-gp impute --load bikes.cgp --output imputed.csv",
    "censored-gp impute tanks.csv --outputs lead --inputs depth --censored below --side left",
)
def impute(
    training: Training,
    files: Files,
    file: File = None,
    probability: Probability = 0.9,
    output: Output = None,
) -> None:
    """Fill in what censored and missing cells of a table really were.

    The columns a, a_low and a_high are output a as it was seen or, where it was not, its expected
    value given what is known of it, and the ends of the interval that holds it with the given
    probability.
    """
    check_target(output)
    model, _ = fitted(file, training, files)
    low, high = model.impute_interval(probability)
    tables = {"": model.impute(), "_low": low, "_high": high}
    write_table(side_by_side(model.layout_.keys, tables), output)
