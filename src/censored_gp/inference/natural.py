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
    starting_sites,
)
from censored_gp.inference.elbo import Problem, Roles
from censored_gp.inference.growth import ROLE, Growth, grown, lacking
from censored_gp.inference.report import Report
from censored_gp.inference.task import Task
from censored_gp.posterior import Posterior
from censored_gp.prior import from_free, to_free

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
    try:
        for better in _refined(task, settings, found, reports):
            found = better
    except KeyboardInterrupt:
        # Between two climbs, or before a climb's first value: what was there before is whole.
        reports.append(_interrupted(reports[-1]))
    problem, end, jitter = found
    model = task.with_priors(_constrained(end.free))
    posterior = Posterior(model, problem.inducing, end.evaluation.weights, np.asarray(jitter))
    return jax.tree.map(np.asarray, posterior), _joined(reports)


@dataclasses.dataclass
class _Lookout:
    """Looks at an early state of a climb, and remembers what its model lacks."""

    task: Task
    problem: Problem
    growth: Growth | None = None

    def __call__(self, state: State) -> bool:
        """Whether the model lacks a kernel."""
        self.growth = lacking(state.free, state.sites, self.problem, self.task.spare)
        return self.growth is not None

    def wider(self, free: Roles) -> Roles:
        """Return free hyper-parameters with those of the kernel that was lacking."""
        return free if self.growth is None else free | {ROLE: grown(free[ROLE], self.growth)}


def _refined(
    task: Task, settings: NaturalSettings, found: Found, reports: list[Report]
) -> Iterator[Found]:
    """Climb; and climb on with one more kernel where the means lack one, and with more inducing
    inputs where too few carry the fitted kernels."""
    problem, end, jitter = found
    known: State | None = end
    start = free = end.free
    left, refinements = settings.max_iterations, 0
    look = _Lookout(task, problem) if settings.learn and task.spare else None
    while left > 0 and reports[-1].status != "interrupted":
        own = dataclasses.replace(settings, max_iterations=left)
        end, jitter, report = climb(
            problem, free, end.sites, own, task.progress, jitter, known, look
        )
        reports.append(report)
        yield problem, end, jitter
        left -= report.site_steps
        if look is not None and report.status == "too simple":
            free = look.wider(start)
            finer = task.problem(task.with_priors(_constrained(free)))
        elif end.evaluation.left_out < ENOUGH_CARRIED or refinements == MOST_REFINEMENTS:
            return
        else:
            free, refinements = end.free, refinements + 1
            finer = task.problem(task.with_priors(_constrained(free)))
            if finer.inducing_size < WORTH_REFINING * problem.inducing_size:
                return
        # Taken up only to climb on it: the weights belong to a problem's inducing inputs.
        problem, known, look = finer, None, None


def _interrupted(report: Report) -> Report:
    """Return a report of nothing but the interruption."""
    return dataclasses.replace(
        report,
        status="interrupted",
        message=MESSAGES["interrupted"],
        trace=(),
        site_steps=0,
        hyper_steps=0,
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
            ends[-1] = (*ends[-1][:2], _interrupted(ends[-1][2]))
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
