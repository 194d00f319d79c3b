"""Our models as a rival: python -m benchmarks.rivals.ours TASK RESULT BUDGET [same | default].

`same` has the kernels that all rivals get; `default` chooses for itself.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from benchmarks.rivals.common import Clock, arguments, write
from benchmarks.rivals.tasks import our_model, table
from censored_gp import CGP, MOCGP


def main() -> None:
    """Fit and predict; programs are compiled by a fit before that is not counted."""
    warnings.simplefilter("ignore")
    task, result, budget = arguments()
    inputs, y, flags = table(task), task.y, task.censored > 0
    build: Any = our_model
    if sys.argv[4:] == ["default"]:
        families = {1: (CGP, "gaussian"), 2: (MOCGP, "poisson")}
        model, family = families[y.shape[1]]
        build = lambda _: model(family, random_state=0)  # noqa: E731
    if len(y) <= 1000:
        # A small fit is mostly compiling, the first time: say what the second takes.
        build(task).fit(inputs, y, flags)
    clock = Clock(budget)
    fitted = build(task).fit(inputs, y, flags)
    clock.tick(fitted.elbo_)
    prediction = fitted.predict_distribution(table(task, "test_"))
    mean, deviation = (role["mean"] for role in prediction.latent())
    mean, deviation = (
        fitted.units_.shift + fitted.units_.scale * mean,
        fitted.units_.scale * deviation,
    )
    noise = 0.0
    if y.shape[1] == 1:
        noise = float(prediction.parameters()["scale"][0, 0])
    write(result, mean, deviation, clock.trace, noise, "")


if __name__ == "__main__":
    main()
