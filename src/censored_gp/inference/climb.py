"""One climb of the bound: natural-gradient steps on the sites, Newton steps on hyper-parameters.

One evaluation of the bound gives both the next sites and the gradient in the hyper-parameters, so
the two climb together: every iteration is one site step and one hyper-parameter step. Nothing is
random.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import jax
import numpy as np
from jaxtyping import Float

from censored_gp.inference.ascent import Ascent
from censored_gp.inference.elbo import (
    Evaluation,
    Problem,
    Roles,
    Stages,
    constant_ascent,
    constant_state,
    evaluate,
    role_ascent,
    role_state,
)
from censored_gp.inference.information import (
    MOST_COUPLED,
    assemble,
    information,
    role_information,
)
from censored_gp.inference.report import Progress, Report, silent
from censored_gp.inference.terms import add_expectation
from censored_gp.inference.vectors import Vector, from_vector, to_vector
from censored_gp.runtime import AnyArray, blas_threads_for, compiled, compiled_for_arrays
from censored_gp.sites import Sites

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
