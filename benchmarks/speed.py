"""Steps of a fit on the paper's New York data, and the paper's engine beside ours.

    python -m benchmarks.speed [steps] [engines]

All comparisons are ratios of runs on one machine at one time.
"""

from __future__ import annotations

import sys
import time
import warnings

from censored_gp import HMOCGP, MOCGP
from reproduction.models import paper_kernels
from reproduction.protocol import new_york

PUBLISHED_ITERATIONS = 9802
"""RMSprop iterations of the paper's published code on these data."""
STEPS = 34
"""Iterations allowed in the comparison; the six site steps that choose a start come on top."""


def fitted(model: object, seed: int = 0) -> tuple[object, float]:
    """Fit to the training hours; return the model and the seconds it took."""
    data = new_york(seed)
    start = time.perf_counter()
    model.fit(data.inputs("rain", rows=data.train), data.observations(data.train))
    return model, time.perf_counter() - start


def steps() -> None:
    """Compare the bound after few iterations with that after ten times as many."""
    print("\n| model | site steps | hyper steps | ELBO | ELBO after 10 x | difference (nats) |")
    print("|---|---|---|---|---|---|")
    for build in (MOCGP, HMOCGP):
        for family in ("gaussian", "poisson", "negative_binomial"):
            if family == "poisson" and build is HMOCGP:
                continue
            short, _ = fitted(build(likelihood=family, max_iterations=STEPS))
            patient = {"max_iterations": 10 * STEPS, "tolerance": 1e-4}
            long, _ = fitted(build(likelihood=family, engine_settings=patient))
            found = short.report_
            gap = long.elbo_ - short.elbo_
            print(
                f"| {build.__name__} {family} | {found.site_steps} | {found.hyper_steps} "
                f"| {short.elbo_:.2f} | {long.elbo_:.2f} | {gap:.2f} |",
                flush=True,
            )


def engines() -> None:
    """Compare a whole fit by ``natural`` with the published number of iterations of ``svi``."""
    print("\n| model | natural, whole fit (s) | svi, per iteration (s) | published / natural |")
    print("|---|---|---|---|")
    for build in (MOCGP, HMOCGP):
        settings = {"kernels": paper_kernels(), "inducing_tolerance": 1e-4}
        own = [fitted(build(max_iterations=STEPS))[1] for _ in range(2)][-1]
        # The first run compiles; the others differ by ten iterations.
        slow = {n: _svi_seconds(build, settings, n) for n in (2, 3, 13)}
        each = (slow[13] - slow[3]) / 10
        ratio = PUBLISHED_ITERATIONS * each / own
        print(f"| {build.__name__} gaussian | {own:.1f} | {each:.2f} | {ratio:.0f} |", flush=True)


def _svi_seconds(build: object, settings: dict, iterations: int) -> float:
    """Return the seconds that so many iterations of the paper's engine take, compiled before."""
    return fitted(build(engine="svi", max_iterations=iterations, **settings))[1]


def main() -> None:
    """Run the comparisons named on the command line, or all."""
    warnings.simplefilter("ignore")
    known = {f.__name__: f for f in (steps, engines)}
    for name in sys.argv[1:] or known:
        known[name]()


if __name__ == "__main__":
    main()
