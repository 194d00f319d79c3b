"""The default engine: choose a start by the bound, climb, and mend the model on the way.

A model may turn out to lack a kernel, or its kernels inducing inputs. Nothing is random.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeAlias

import jax
import numpy as np

from censored_gp.inference.climb import (
    MESSAGES,
    NaturalSettings,
    State,
    climb,
    many_share,
    starting_sites,
)
from censored_gp.inference.elbo import Problem, Roles
from censored_gp.inference.growth import ROLE, Growth, grown, lacking
from censored_gp.inference.report import Report
from censored_gp.inference.task import Task
from censored_gp.kernels import Kernel
from censored_gp.model import Model
from censored_gp.posterior import Posterior
from censored_gp.prior import from_free, to_free
from censored_gp.sites import Sites

__all__ = ["NaturalSettings", "fit"]

MOST_REFINEMENTS = 2
ENOUGH_CARRIED = 1e-3
"""Share of prior variance that inducing inputs may leave out of the fitted kernels."""
WORTH_REFINING = 1.2
"""How many times as many inducing inputs there must be for a climb to go on with them."""
Found: TypeAlias = tuple[Problem, State, float]
"""A problem, where its climb ended, and the jitter that it needed."""
SHORTER = (1.0, 1.0 / 3.0)
"""Factors on the lengthscales of smooth kernels among which the bound chooses a start."""
MUCH_SHORTER = 1.0 / 10.0
"""One more, where rows are many and no kernel is periodic: a wave may be among them, which a start
that is too long takes for noise."""
MANY_ROWS = 100
AFTER_ANOTHER = 1
"""Site steps at a start that has the sites of another one."""


def fit(task: Task, settings: NaturalSettings | None = None) -> tuple[Posterior, Report]:
    """Fit the task's model: choose a start by the bound, climb, and refine the inducing inputs.

    If one of the task's spare kernels is called for, the climb begins anew with it. If the fitted
    lengthscales are so short that the inducing inputs no longer carry the kernels, they are picked
    anew and the climb goes on from where it was: the sites are per row.
    """
    settings = settings or NaturalSettings()
    found, reports = _start(task, settings)
    climbs = Climbs(task, settings, reports, settings.max_iterations)
    try:
        for better in _mended(climbs, found):
            found = better
    except KeyboardInterrupt:
        # Between two climbs, or before a climb's first value: what was there before is whole.
        reports.append(_ended(reports[-1], "interrupted"))
    problem, end, jitter = found
    model = task.with_priors(_constrained(end.free))
    own = model, problem.inducing, end.evaluation.weights, np.asarray(jitter)
    posterior = Posterior(*own, _seen(model, end.sites, len(task.inputs)))
    return jax.tree.map(np.asarray, posterior), _joined(reports)


def _seen(model: Model, sites: dict[str, Sites], rows: int) -> dict[str, Sites]:
    """Return the sites of the rows that are real, of the roles that have a nugget."""
    return {
        role: Sites(*(np.asarray(part)[:, :rows] for part in sites[role]))
        for role, lmc in model.priors.items()
        if lmc.nugget is not None
    }


@dataclasses.dataclass
class Climbs:
    """The climbs of one fit, one after the other: they share their iterations."""

    task: Task
    settings: NaturalSettings
    reports: list[Report]
    left: int
    """Iterations that are left."""

    @property
    def over(self) -> bool:
        """Whether there is to be no further climb."""
        return self.left <= 0 or self.reports[-1].status == "interrupted"

    def problem(self, free: Roles) -> Problem:
        """Return the problem with inducing inputs for given hyper-parameters."""
        return self.task.problem(self.task.with_priors(_constrained(free)))

    def climb(
        self,
        found: Found,
        free: Roles | None = None,
        known: State | None = None,
        look: Lookout | None = None,
    ) -> Found:
        """Climb on, from other hyper-parameters if these are given: the sites stay."""
        problem, end, jitter = found
        own = dataclasses.replace(self.settings, max_iterations=self.left)
        start = end.free if free is None else free
        end, jitter, report = climb(
            problem, start, end.sites, own, self.task.progress, jitter, known, look
        )
        self.reports.append(report)
        self.left -= report.site_steps
        return problem, end, jitter


@dataclasses.dataclass
class Lookout:
    """Looks at an early state of a climb, and remembers what its model lacks."""

    problem: Problem
    spare: tuple[Kernel, ...]
    growth: Growth | None = None

    def __call__(self, state: State) -> bool:
        """Whether the model lacks a kernel."""
        self.growth = lacking(state.free, state.sites, self.problem, self.spare)
        return self.growth is not None


def _mended(climbs: Climbs, found: Found) -> Iterator[Found]:
    """Climb, with one more kernel if the means lack one; then climb on with more inducing inputs
    where too few carry the fitted kernels."""
    if climbs.over:
        return
    for better in _grown(climbs, found):
        yield (found := better)
    for _ in range(MOST_REFINEMENTS):
        problem, end, jitter = found
        if climbs.over or end.evaluation.left_out < ENOUGH_CARRIED:
            return
        finer = climbs.problem(end.free)
        if finer.inducing_size < WORTH_REFINING * problem.inducing_size:
            return
        # Taken up only to climb on it: the weights belong to a problem's inducing inputs.
        yield (found := climbs.climb((finer, end, jitter)))


def _grown(climbs: Climbs, found: Found) -> Iterator[Found]:
    """Climb; where the means turn out to lack a kernel, anew with it, if that leads higher."""
    problem, start, _ = found
    # A further kernel of many outputs would make a fit several times as long.
    may_grow = climbs.settings.learn and not many_share(start.free)
    spare = climbs.task.spare if may_grow else ()
    look = Lookout(problem, spare)
    yield (narrow := climbs.climb(found, known=start, look=look if spare else None))
    if look.growth is None or climbs.over:
        return
    before = climbs.reports[-1]
    free = start.free | {ROLE: grown(start.free[ROLE], look.growth)}
    wide = climbs.climb((climbs.problem(free), narrow[1], narrow[2]), free)
    if wide[1].value > narrow[1].value:
        yield wide
    elif climbs.over:
        interrupted = climbs.reports[-1].status == "interrupted"
        climbs.reports.append(_ended(before, "interrupted" if interrupted else "out of iterations"))
    else:
        yield climbs.climb(narrow, known=narrow[1])


def _ended(report: Report, status: str) -> Report:
    """Return a report of nothing but how a climb ended."""
    message = MESSAGES[status]
    return dataclasses.replace(
        report, status=status, message=message, trace=(), site_steps=0, hyper_steps=0
    )


def _constrained(free: Roles) -> Roles:
    """Return the hyper-parameters themselves."""
    return {role: from_free(lmc) for role, lmc in free.items()}


def _start(task: Task, settings: NaturalSettings) -> tuple[Found, list[Report]]:
    """Warm up the sites at every start; return the problem and the state of the highest bound.

    All starts are looked at over the inducing inputs of the shortest one: one compiled program.
    """
    waves = len(task.inputs) > MANY_ROWS and not task.periodic
    starts = task.starts((*SHORTER, MUCH_SHORTER) if waves else SHORTER)
    problem = task.problem(starts[-1])
    ends: list[tuple[State, float, Report]] = []
    for start in starts:
        free = {role: to_free(lmc) for role, lmc in start.priors.items()}
        # Sites stand for the likelihood: those that suit one start nearly suit the next.
        sites = ends[0][0].sites if ends else starting_sites(free, problem)
        steps = min(settings.warm_up, AFTER_ANOTHER) if ends else settings.warm_up
        look = dataclasses.replace(settings, max_iterations=steps, learn=False)
        try:
            ends.append(climb(problem, free, sites, look, task.progress))
        except KeyboardInterrupt:
            if not ends:
                raise
            ends[-1] = (*ends[-1][:2], _ended(ends[-1][2], "interrupted"))
        if ends[-1][2].status == "interrupted":
            break
    state, jitter, _ = max(ends, key=lambda end: end[0].value)
    return (problem, state, jitter), [report for _, _, report in ends]


def _joined(reports: list[Report]) -> Report:
    """Put the reports of successive climbs together: the last one's verdict, all the steps."""
    return dataclasses.replace(
        reports[-1],
        trace=tuple(value for report in reports for value in report.trace),
        site_steps=sum(report.site_steps for report in reports),
        hyper_steps=sum(report.hyper_steps for report in reports),
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
    )
