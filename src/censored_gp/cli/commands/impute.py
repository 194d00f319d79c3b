"""`censored-gp impute`: what censored and missing cells really were."""

from __future__ import annotations

from censored_gp.cli.fitting import fitted, refuse_unused
from censored_gp.cli.held import row_keys, told_apart
from censored_gp.cli.options import File, Files, Output, Probability, Training, command
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
    check_target(output, reads=(file,))
    refuse_unused(file, files)
    model, _ = fitted(file, training, files)
    low, high = model.impute_interval(probability)
    tables = {"": model.impute(), "_low": low, "_high": high}
    write_table(told_apart(model, tables, row_keys(model)), output)
