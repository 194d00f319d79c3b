"""Where the time of a fit goes.

    python -m benchmarks.profile [--cases new_york air rows stations large]

Each case runs in a process of its own, with no compiled programs on disk: importing, a first fit, a
second fit whose parts are timed, and predictions. What the first fit takes more is compiling. The
seconds are CPU seconds of the process. Beside each part stands its floor: the same arithmetic bare
in numpy, as often (tables: one sum and one look-up of every row for each table; quadrature: one
exponential, product and sum for each cell and node).
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import run

CASES = {
    "new_york": ("New York, Poisson MOCGP, 732 x 2", "new_york poisson", 0),
    "air": ("air, log-normal HMOCGP, 672 x 4", "air", 0),
    "rows": ("Poisson MOCGP, 10,000 x 2", "rows", 10_000),
    "stations": ("negative binomial MOCGP, 1,464 x 16", "outputs", 16),
    "large": ("Gaussian CGP, 1,000,000 x 1, day, week and trend", "large", 1_000_000),
}
PARTS = (
    "reading",
    "inducing inputs, look-up",
    "features",
    "tables",
    "factorisation",
    "quadrature: programs",
    "quadrature: the rest",
    "gradient",
    "Fisher information",
    "the rest of an evaluation",
)


class Stages:
    """CPU seconds and calls of timed functions; those of an inner one are not the outer's."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.inner: list[float] = []

    def wrap(self, owner: Any, name: str, stage: str, keep: list[Any] | None = None) -> None:
        """Time a function of a module or class; keep its last result."""
        function: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self.inner.append(0.0)
            start = time.process_time()
            try:
                found = function(*args, **kwargs)
            finally:
                spent = time.process_time() - start
                self.seconds[stage] += spent - self.inner.pop()
                self.calls[stage] += 1
                if self.inner:
                    self.inner[-1] += spent
            if keep is not None:
                keep[:] = [found]
            return found

        setattr(owner, name, timed)


def floor(evaluation: Any, problem: Any) -> dict[str, float]:
    """Return CPU seconds of the arithmetic of one evaluation, bare in numpy."""
    from scipy.linalg import cholesky, solve_triangular

    from censored_gp.inference.arrow import POTRF, POTRI

    jobs: dict[str, list[Callable[[], Any]]] = {
        p: [] for p in ("features", "tables", "factorisation")
    }
    for block in (b for state in evaluation.states.values() for b in state.blocks):
        for f in block.features:
            (distinct, inducing), gram = f.phi.shape, f.factor @ f.factor.T
            cross = np.random.default_rng(0).normal(size=(inducing, distinct))
            jobs["features"].append(
                lambda c=cross, g=gram: solve_triangular(
                    cholesky(g, lower=True), np.exp(-0.5 * c**2), lower=True
                )
            )
        rows = len(block.index[0])
        for pair in block.pairs:
            where, weights = pair.where(slice(0, rows)), np.ones(rows)
            entries = pair.shape[0] if pair.diagonal else int(np.prod(pair.shape))
            for table in pair.tables:
                if not pair.sparse:
                    flat = np.zeros(entries)
                    jobs["tables"] += [
                        lambda w=where, x=weights, n=entries: np.bincount(w, x, n),
                        lambda w=where, t=flat: t[w],
                    ]
                jobs["factorisation"].append(
                    lambda p=pair, t=table: p.left.T @ (t * p.right if p.diagonal else t @ p.right)
                )
        precision = np.eye(block.rank * block.size)
        jobs["factorisation"].append(lambda p=precision: POTRI(POTRF(p, lower=1)[0], lower=1))
    cells = int(problem.cells)
    from censored_gp.likelihoods.quadrature import grid

    points, mass = grid((True,), None)
    values = np.linspace(0.0, 1.0, min(cells, 4096))[:, None]
    calls = -(-cells // 4096)

    def quadrature() -> None:
        for _ in range(calls):
            gamma = values + points[:, 0]
            (values * gamma - np.exp(gamma)) @ mass

    found = {part: sum(_seconds(job) for job in own) for part, own in jobs.items()}
    return found | {"quadrature: programs": _seconds(quadrature)}


def _seconds(job: Callable[[], Any]) -> float:
    """Return the least CPU seconds of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        job()
        found.append(time.process_time() - start)
    return min(found)


def profile(kind: str, size: int) -> None:
    """Print the table of one case."""
    warnings.simplefilter("ignore")
    start = time.process_time()
    import censored_gp.estimator.censored_gp  # noqa: F401
    from censored_gp.estimator import training
    from censored_gp.inference import elbo, lookup, natural, result

    imported = time.process_time() - start
    if kind == "large":
        from types import SimpleNamespace

        from benchmarks.rivals.tasks import hourly_gaussian, our_model, table

        arrays = SimpleNamespace(**hourly_gaussian(size))
        model, inputs, new = our_model(arrays), table(arrays), table(arrays, "test_")
        truth, choose = arrays.test_y, {"y": arrays.y, "censored": arrays.censored > 0}
    else:
        from benchmarks.scale import build

        model, inputs, choose, new, truth, _ = build(kind, size)
    start = time.process_time()
    model.fit(inputs, **choose)
    first = time.process_time() - start
    stages, last, problems = Stages(), [], []
    stages.wrap(training, "read_training", "reading")
    stages.wrap(result.Task, "problem", "inducing inputs, look-up", problems)
    stages.wrap(lookup.Features, "__init__", "features")
    stages.wrap(lookup.OutputBlock, "add", "tables")
    stages.wrap(lookup.OutputBlock, "marginals", "tables")
    stages.wrap(lookup.OutputBlock, "collect", "tables")
    stages.wrap(lookup.OutputBlock, "solve", "factorisation")
    stages.wrap(lookup.OutputBlock, "gradient", "gradient")
    stages.wrap(elbo, "cell_slopes", "quadrature: the rest")
    stages.wrap(elbo, "expected_cells", "quadrature: programs")
    stages.wrap(natural, "fisher_information", "Fisher information")
    stages.wrap(natural, "evaluate", "the rest of an evaluation", last)
    start = time.process_time()
    model.fit(inputs, **choose)
    second = time.process_time() - start
    timed = dict(stages.seconds)
    evaluations = stages.calls["the rest of an evaluation"]
    start = time.process_time()
    model.predict(new, return_std=True)
    model.log_density(new, truth)
    predicted = time.process_time() - start
    start = time.process_time()
    model.predict(new, return_std=True)
    model.log_density(new, truth)
    again = time.process_time() - start
    bare = floor(last[0], problems[0])
    print("| part | CPU s | share of a fit | floor s | over the floor |")
    print("|---|--:|--:|--:|--:|")
    print(f"| import | {imported:.2f} | | | |")
    print(f"| compiling, in the first fit | {first - second:.2f} | | | |")
    print(f"| **a fit ({evaluations} evaluations)** | **{second:.2f}** | | | |")
    for part in PARTS:
        spent = timed.get(part, 0.0)
        least = bare.get(part, 0.0) * evaluations
        beside = f"{least:.2f} | {spent / least:.1f}" if least else " | "
        print(f"| {part} | {spent:.2f} | {100 * spent / second:.0f} % | {beside} |")
    other = second - sum(timed.values())
    print(f"| all else | {other:.2f} | {100 * other / second:.0f} % | | |")
    print(f"| compiling, in the first prediction | {predicted - again:.2f} | | | |")
    print(f"| predictions of {len(truth):,} rows | {again:.2f} | | | |")


def main() -> None:
    """Print a table for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.case:
        profile(chosen.case[0], int(chosen.case[1]))
        return
    for name in chosen.cases:
        title, kind, size = CASES[name]
        with tempfile.TemporaryDirectory() as cache:
            asked = [sys.executable, "-W", "ignore", "-m", "benchmarks.profile", "--case", kind]
            used = run([*asked, str(size)], 1800.0, variables={"CENSORED_GP_CACHE": cache})
        print(f"\n**{title}**\n\n{used.failure or used.output}", flush=True)


if __name__ == "__main__":
    main()
