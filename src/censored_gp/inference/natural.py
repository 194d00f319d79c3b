"""The default engine: choose a start by the bound, climb, and mend the model on the way.

A model may turn out to lack a kernel, or its kernels inducing inputs. Nothing is random.

Hyper-parameters as one vector, and back.

Steps uphill in the hyper-parameters: Newton's, with the expected curvature, within reason.

The sites change along with the hyper-parameters, so there is no line search to be exact about: a
step is taken, looked at once, and taken back if the bound fell. How far the curvature is believed
is learned from what the steps promised and what they brought (Levenberg and Marquardt).

One climb of the bound: natural-gradient steps on the sites, Newton steps on hyper-parameters.

One evaluation of the bound gives both the next sites and the gradient in the hyper-parameters, so
the two climb together: every iteration is one site step and one hyper-parameter step. Nothing is
random.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from censored_gp.inference.elbo import (
    Evaluation,
    Problem,
    Roles,
    Stages,
    add_expectation,
    constant_ascent,
    constant_state,
    evaluate,
    role_ascent,
    role_state,
)
from censored_gp.inference.fisher import (
    MOST_COUPLED,
    Vector,
    assemble,
    from_vector,
    information,
    role_information,
    to_vector,
)
from censored_gp.inference.model_search import ROLE, Growth, grown, lacking
from censored_gp.inference.posterior import Posterior, Sites
from censored_gp.inference.result import Progress, Report, Task, silent
from censored_gp.kernels import Kernel
from censored_gp.model.compilation import AnyArray, blas_threads_for, compiled, compiled_for_arrays
from censored_gp.model.lmc import from_free, to_free
from censored_gp.model.model import Model

MIXING_UNIT = 0.5
"""How far a mixing coefficient goes while others (logarithms, or of order 1) go by one."""


LONGEST_STEP = 1.0
"""Most that any hyper-parameter may move in one step, in these units."""


LEAST_DAMPING = 1.0
"""Curvature (nats per squared unit) below which a direction is not worth running after."""


class Step(NamedTuple):
    """A step, and by how much it should raise the bound."""

    change: Vector
    promised: float


class Ascent:
    """Turns gradients and information into steps, and learns how far to trust them."""

    def __init__(self) -> None:
        self.damping = LEAST_DAMPING

    def step(self, free: Roles, gradient: Vector, information: Float[np.ndarray, "P P"]) -> Step:
        """Return (F + D)^-1 g, cut where it would lead too far."""
        vector, mixing = to_vector(free), _is_mixing(free)
        unit = np.where(mixing, MIXING_UNIT, 1.0)
        # The covariance has mixing coefficients as squares. One that falls to nought has the
        # curvature g / a besides the information, which itself vanishes there.
        falls = mixing & (gradient * vector < 0)
        bent = np.abs(gradient) / np.where(falls, np.abs(vector), np.inf)
        curvature = information + np.diag(bent + self.damping / unit**2)
        change = np.linalg.solve(curvature, gradient)
        change *= min(1.0, LONGEST_STEP / np.abs(change / unit).max(initial=1e-300))
        return Step(change, float(gradient @ change - 0.5 * change @ curvature @ change))

    def learn(self, step: Step, gain: float) -> None:
        """Trust the curvature more after a step that kept its promise, less after one that did not.

        >>> ascent = Ascent()
        >>> ascent.learn(Step(np.zeros(1), promised=2.0), gain=-1.0)
        >>> ascent.damping
        4.0
        """
        if not gain > 0.1 * step.promised:
            self.damping *= 4.0
        elif gain > 0.5 * step.promised:
            self.damping = max(self.damping / 2.0, LEAST_DAMPING)


def _is_mixing(free: Roles) -> Bool[np.ndarray, "P"]:
    """Tell which hyper-parameters are coefficients of the mixing, or nuggets."""
    marked = {
        role: eqx.tree_at(
            lambda m: (m.mixing, m.nugget),
            jax.tree.map(np.zeros_like, lmc),
            jax.tree.map(np.ones_like, (lmc.mixing, lmc.nugget)),
            is_leaf=lambda node: node is None,
        )
        for role, lmc in free.items()
    }
    return to_vector(marked) > 0


MOST_REFUSALS = 8
"""Steps in a row that may be taken back before the climb is given up."""


LOOK_AFTER = 6
"""Iterations after which a climb is far enough to tell whether its model will do."""


LEAST_LEFT = 15
"""Iterations that must be left for another model to be worth a start."""


CALM_STEPS = 3
"""Iterations in a row without a change after which the bound has settled."""


INFORMATION_AGE = 2
"""Steps for which the curvature is kept: it changes slowly, and costs as much as an evaluation."""


INFORMATION_AGE_OF_MANY = 4
"""The same where it is computed output by output: it costs more, and says less."""


CALM_OF_MANY = 20.0
"""How much larger a change is none there, for each cell: so many outputs have many coefficients,
and the bound goes on to creep up by little in each of many steps."""


LEAST_SLACK = 0.02
"""By how much (nats) the bound may fall in a step in any case: the sites lag behind a little."""


FIRST_JITTER = 1e-9


LARGEST_JITTER = 1e-4


@dataclasses.dataclass(frozen=True)
class NaturalSettings:
    """When to stop, and how carefully to go."""

    max_iterations: int = 80
    tolerance: float = 0.02
    """A change of the bound (nats) that is none, besides ..."""
    tolerance_per_cell: float = 5e-5
    """... so much for each observed cell; `CALM_OF_MANY` times as much where many outputs share
    latent functions."""
    warm_up: int = 3
    """Site steps before the hyper-parameters move: at the first start, as others have its sites."""
    learn: bool = True
    """Whether the hyper-parameters move at all."""


@dataclasses.dataclass
class State:
    """Where the climb stands."""

    free: Roles
    sites: dict[str, Sites]
    evaluation: Evaluation
    value: float
    gradient: Vector


COMPILED = Stages(
    compiled_for_arrays(role_state),
    compiled_for_arrays(role_ascent),
    compiled_for_arrays(constant_state, static=("rows",)),
    compiled_for_arrays(constant_ascent),
    # A family may have fields that are no arrays.
    compiled(add_expectation),
)


evaluate_compiled = functools.partial(evaluate, stages=COMPILED)


information_compiled = functools.partial(information, of_role=compiled_for_arrays(role_information))


@compiled_for_arrays
def mix_sites(
    sites: dict[str, Sites], target: dict[str, Sites], rho: Float[AnyArray, ""]
) -> dict[str, Sites]:
    """Return (1 - rho) lambda + rho lambda*: a damped natural-gradient step."""
    return jax.tree.map(lambda old, new: (1.0 - rho) * old + rho * new, sites, target)


def starting_sites(free: Roles, problem: Problem) -> dict[str, Sites]:
    """Return sites as informative as the prior at every row: q starts calm and proper."""
    sites = {}
    for role, lmc in free.items():
        if not lmc.varies:
            continue
        prior = np.sum([np.sum(np.square(a), axis=2) for a in lmc.mixing], axis=0)
        if lmc.nugget is not None:
            prior = prior + np.mean(np.square(lmc.nugget.size), axis=2)
        shape = (prior.shape[0], len(problem.inputs), prior.shape[1])
        precision = np.broadcast_to(1.0 / prior[:, None], shape) * problem.real_rows[:, None]
        sites[role] = Sites(precision * np.asarray(lmc.mean)[:, None], precision)
    return sites


class Climb:
    """One run of the engine over a fixed set of inducing inputs."""

    def __init__(
        self, problem: Problem, settings: NaturalSettings, jitter: float, many: bool = False
    ) -> None:
        self.problem, self.settings, self.many = problem, settings, many
        self.jitter = np.asarray(jitter)
        self.ascent, self.information, self.age = Ascent(), np.zeros((0, 0)), 0
        self.rho, self.calm, self.refused = 1.0, 0, 0
        self.calm_per_cell = CALM_OF_MANY if many and settings.learn else 1.0
        self.trace: list[float] = []
        self.site_steps = self.hyper_steps = 0

    def evaluate(self, free: Roles, sites: dict[str, Sites]) -> State:
        """Evaluate the bound, its gradient and the next sites."""
        found = evaluate_compiled(free, sites, self.problem, self.jitter)
        value, gradient = float(found.elbo), to_vector(found.gradient)
        if not np.all(np.isfinite(gradient)):
            value = -np.inf
        self.trace.append(value)
        return State(free, sites, found, value, gradient)

    def run(
        self,
        free: Roles,
        sites: dict[str, Sites],
        progress: Progress,
        known: State | None = None,
        look: Callable[[State], bool] | None = None,
    ) -> tuple[State, str]:
        """Climb until the bound settles; return the best state and how it ended.

        `known` is the evaluation at the start, by who has it. `look` is shown an early state, and
        may find that this is not the model to go on with.
        """
        best = state = known or self.evaluate(free, sites)
        if not np.isfinite(state.value):
            return state, "diverged"
        advance = self.step if self.settings.learn else self.site_step
        most = self.settings.max_iterations
        try:
            for iteration in range(most):
                state = advance(state)
                # With hyper-parameters held the last state is the settled one.
                best = state if state.value > best.value or not self.settings.learn else best
                progress("fitting", iteration + 1, most, best.value)
                settled = self.calm >= CALM_STEPS
                early = iteration + 1 == LOOK_AFTER or (settled and iteration + 1 < LOOK_AFTER)
                if look and early and iteration + LEAST_LEFT < most and look(best):
                    return best, "too simple"
                if settled:
                    return best, "converged"
                if self.refused > MOST_REFUSALS:
                    return best, "stuck"
        except KeyboardInterrupt:
            return best, "interrupted"
        return best, "out of iterations"

    def site_step(self, state: State) -> State:
        """Move the sites alone."""
        new = self.evaluate(state.free, self._mixed(state))
        self.site_steps += 1
        self._settle(new.value - state.value)
        return new

    def step(self, state: State) -> State:
        """Move sites and hyper-parameters; return the old state where the bound fell."""
        step = self.ascent.step(state.free, state.gradient, self._curvature(state))
        moved = from_vector(to_vector(state.free) + step.change, state.free)
        new = self.evaluate(moved, self._mixed(state))
        self.site_steps += 1
        self.hyper_steps += 1
        gain = new.value - state.value
        self.ascent.learn(step, gain)
        if gain > -max(LEAST_SLACK, step.promised):
            self.rho, self.refused = min(1.0, 1.4 * self.rho), 0
            self._settle(gain)
            return new
        self.refused += 1
        if self.refused > 1:
            self.rho = max(self.rho / 2, 0.1)
        # What was promised shrinks with the steps: that nothing is promised must be certain.
        self._settle(step.promised, 1.0)
        return state

    def _curvature(self, state: State) -> Float[np.ndarray, "P P"]:
        """Return the information about the hyper-parameters; it may be from some steps ago."""
        if self.age == 0:
            found = information_compiled(
                state.free, state.sites, state.evaluation.weights, self.problem, self.jitter
            )
            about = state.evaluation
            self.information = assemble(state.free, found, about.scores, about.nuggets)
            self.age = INFORMATION_AGE_OF_MANY if self.many else INFORMATION_AGE
        self.age -= 1
        return self.information

    def _mixed(self, state: State) -> dict[str, Sites]:
        """Return the sites after a damped natural-gradient step."""
        return mix_sites(state.sites, state.evaluation.target, np.asarray(self.rho))

    def _settle(self, change: float, calm_per_cell: float | None = None) -> None:
        """Count how many iterations in a row had next to nothing to gain."""
        rate = self.settings.tolerance_per_cell * (calm_per_cell or self.calm_per_cell)
        calm = abs(change) < self.settings.tolerance + rate * self.problem.cells
        self.calm = self.calm + 1 if calm else 0


MESSAGES = {
    "converged": "The fit converged.",
    "out of iterations": (
        "The fit ran out of iterations before the bound settled; raise max_iterations."
    ),
    "too simple": "The model lacked a kernel.",
    "stuck": (
        "The fit stopped where no step raised the bound any more; it may not be the best there is."
    ),
    "interrupted": "The fit was interrupted; this is the best found so far.",
    "diverged": (
        "The fit diverged: the bound was not finite at the starting values. Look for extreme "
        "values in the outputs, or set the kernels' lengthscales by hand."
    ),
}


def many_share(free: Roles) -> bool:
    """Whether many outputs share latent functions: their curvature is looked at one by one."""
    return any(lmc.varies and lmc.mean.shape[1] > MOST_COUPLED for lmc in free.values())


def climb(
    problem: Problem,
    free: Roles,
    sites: dict[str, Sites],
    settings: NaturalSettings,
    progress: Progress = silent,
    first_jitter: float = FIRST_JITTER,
    known: State | None = None,
    look: Callable[[State], bool] | None = None,
) -> tuple[State, float, Report]:
    """Maximise the ELBO from given free hyper-parameters; return the end, jitter and a report.

    `known` is the evaluation there, at the first jitter, by who has it; `look` see `Climb.run`.
    """
    order = max((problem.order(role, lmc) for role, lmc in free.items()), default=1)
    many = many_share(free)
    notes: list[str] = []
    for jitter in _jitters(first_jitter):
        run = Climb(problem, settings, jitter, many)
        with blas_threads_for(order):
            state, status = run.run(free, sites, progress, known, look)
        known = None
        if status != "diverged":
            break
        notes = [f"The kernel matrices needed a jitter of {10 * jitter:.0e}."]
    report = Report(
        status,
        MESSAGES[status],
        state.value,
        tuple(run.trace),
        run.site_steps,
        run.hyper_steps,
        () if status == "diverged" else tuple(notes),
    )
    return state, jitter, report


def _jitters(first: float) -> Iterator[float]:
    """Yield growing jitters, the first one in any case."""
    yield first
    while (first := 10 * first) <= LARGEST_JITTER:
        yield first


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
