"""The default engine: natural-gradient steps on the sites, Newton steps on the hyper-parameters.

One evaluation of the bound gives the next sites and the gradient in the hyper-parameters, so the
two climb together: every iteration is one site step and one hyper-parameter step. The sites move
along with the hyper-parameters, so that an exact line search would be pointless: a step is taken
and evaluated, and taken back if the bound fell; were it the sites that overshot, their steps are
shortened. The damping of the Fisher information follows from
what steps promised and what they gained (Levenberg and Marquardt). Nothing is random.

A fit chooses a start by the bound, climbs, adds a kernel if the means lack one (`model_search`),
drops a nugget that is not worth its numbers, and picks more inducing inputs where the fitted
lengthscales need them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from censored_gp.data.storage import allocate
from censored_gp.inference.elbo import CELLS_AT_A_TIME, Evaluation, Problem, Roles, evaluate
from censored_gp.inference.fisher import (
    Information,
    Vector,
    fisher_information,
    from_vector,
    to_dense,
    to_vector,
)
from censored_gp.inference.hyperparameters import (
    LEAST_FACTOR,
    MOST_NUMBERS,
    displaced,
    log_prior,
    principal_directions,
    radial_factor,
    standard_points,
)
from censored_gp.inference.lookup import MOST_BY_OUTPUT, make_blocks
from censored_gp.inference.model_search import ROLE, Growth, propose_kernel, with_kernel
from censored_gp.inference.posterior import MixedPosterior, Posterior
from censored_gp.inference.result import (
    COUNTS_AS_NOISE,
    NOTABLE_SHARE,
    FitResult,
    Progress,
    Task,
)
from censored_gp.inference.sites import ByBlock, Sites
from censored_gp.model.compilation import blas_threads_for, slices
from censored_gp.model.inducing import Knots
from censored_gp.model.lmc import from_free, to_free
from censored_gp.model.model import Model
from censored_gp.model.starting_values import coefficients

# A mixing coefficient moves by this much while other hyper-parameters move by one.
MIXING_UNIT = 0.5
# No hyper-parameter moves further than this in one step, in the units above.
LONGEST_STEP = 1.0
# The damping (nats per squared unit) is never smaller than this.
LEAST_DAMPING = 1.0
# The bound may fall by this much (nats) in a step that counts, as the sites lag behind.
LEAST_SLACK = 0.02
# A climb ends after more than this many refused steps in a row.
MOST_REFUSALS = 8
# The bound has settled after this many iterations in a row without a change.
CALM_STEPS = 3
# More than `MOST_BY_OUTPUT` coupled outputs, whose bound creeps, have this times the tolerance.
CALM_OF_MANY = 20.0
# The Fisher information is kept for this many steps, as it changes slowly.
INFORMATION_AGE = 2
# The same for more than `MOST_BY_OUTPUT` coupled outputs, whose information costs more.
INFORMATION_AGE_OF_MANY = 4
# The first jitter that is tried, relative to the largest prior variance of a kernel.
FIRST_JITTER = 1e-9
# The largest jitter that is tried.
LARGEST_JITTER = 1e-4
# The bound chooses among starts whose lengthscales are multiplied by these.
LENGTHSCALE_FACTORS = (1.0, 1.0 / 3.0)
# Many rows without a periodic kernel get this factor too: they may hold a short wave.
SHORTEST_FACTOR = 1.0 / 10.0
# More rows than this are many in the sense of `SHORTEST_FACTOR`.
MANY_ROWS = 100
# A start that takes over the sites of an earlier one gets this many site steps.
LATER_WARM_UP = 1
# Site steps that alone lower the bound are halved, to this share of a full one at the least.
LEAST_SITE_STEP = 0.1
# It grows by this factor with every step that counts: full ones may swing between two values.
SITE_RECOVERY = 1.1
# After this many iterations a climb is checked for a missing kernel.
LOOK_AFTER = 6
# A further kernel is looked for only while more than this many iterations are left.
LEAST_LEFT = 15
# Without a nugget a fit goes on unless the bound is this much (nats) below what is enough.
HOPELESS = 50.0
# Inducing inputs are picked anew at most this often.
MOST_REFINEMENTS = 2
# Inducing inputs may leave out this share of the prior variance of fitted kernels.
MOST_LEFT_OUT = 1e-3
# Every so many iterations a climb leaves out inducing inputs that are not needed.
THIN_EVERY = 3
# They are not if this share of the task's tolerance is left out without them.
THINNED = 1e-2
# All inducing inputs are used again once more than this share of a prior variance is left out, and
# more than twice what was left out before.
TOO_THIN = 1e-4
# A climb goes on with new inducing inputs only if they are more by at least this factor.
WORTH_REFINING = 1.2
# The way to a design point is shortened at most this often; then it is the mode.
MOST_SHORTENINGS = 3
# It is shortened while the bound falls by this many times what the Gaussian promised.
TOO_FAR = 3.0
# Up to so many observed cells sites settle at each design point. With more, points are near the
# mode and its sites suit them.
MOST_SETTLED = 1280
# Sites take at most this many steps at a design point.
MOST_ADAPTATIONS = 8
# The length of these steps, from the third on.
DAMPED = 0.7
# Sites have settled when a step changes the bound by no more than this (nats).
SETTLED = 0.2
# With fewer cells for each hyper-parameter, many coupled outputs get a warning.
FEW_CELLS = 5.0
TOO_FEW = (
    "the data cannot tell what outputs share from noise, and intervals may be too narrow. Models "
    "with coupled=False, rank=1 or heteroscedastic=False learn fewer."
)
# What numpy says of a step too far: the bound is not finite there, and the step is refused.
TOO_FAR_IS_REFUSED: Any = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}
MESSAGES = {
    "converged": "The fit converged.",
    "out of iterations": "The fit ran out of iterations before the bound settled; raise "
    "max_iterations.",
    "too simple": "The model lacked a kernel.",
    "stuck": "The fit stopped where no step raised the bound any more; it may not be the best "
    "there is.",
    "interrupted": "The fit was interrupted; this is the best found so far.",
    "diverged": "The fit diverged: the bound was not finite at the starting values. Look for "
    "extreme values in the outputs, or set the kernels' lengthscales by hand.",
}


@dataclasses.dataclass(frozen=True)
class NaturalSettings:
    """Settings of the engine ``natural``.

    Attributes
    ----------
    tolerance
        A change of the bound (nats) up to this, plus the next for each cell, counts as none.
    tolerance_per_cell
        A change of the bound (nats) that counts as none, for each observed cell.
    warm_up
        Site steps at the first start before the hyper-parameters move.
    learn
        Whether the hyper-parameters move at all.
    points
        Design points of the hyper-parameters that predictions are mixed over, see
        `hyperparameters`; 0: the hyper-parameters are taken for certain.
    prior
        Whether the hyper-parameters have a prior; with design points they always do.
    hold
        With a prior: whether kernels and their coefficients stay as they are.
    optional
        Whether a fit that cannot have design points does without them and says nothing.
    """

    max_iterations: int = 300
    tolerance: float = 0.02
    tolerance_per_cell: float = 5e-5
    warm_up: int = 3
    learn: bool = True
    points: int = 0
    prior: bool = False
    hold: bool = False
    optional: bool = False

    @property
    def has_prior(self) -> bool:
        """Whether the hyper-parameters have a prior."""
        return self.prior or self.points > 0


class State(NamedTuple):
    """One point of a climb, with the evaluation of the bound there."""

    problem: Problem
    free: Roles
    sites: dict[str, Sites]
    jitter: float
    evaluation: Evaluation
    value: float
    gradient: Vector


class Step(NamedTuple):
    """A step in the hyper-parameters, and by how much it should raise the bound."""

    change: Vector
    promised: float


def newton_step(free: Roles, gradient: Vector, information: Information, damping: float) -> Step:
    """Return (F + D)^-1 g, shortened where it would lead too far."""
    leaves: Any = jax.tree_util.tree_leaves_with_path(free)
    marked = [np.full(np.size(leaf), path[1].name in {"mixing", "nugget"}) for path, leaf in leaves]
    vector, mixing = to_vector(free), np.concatenate(marked)
    unit = np.where(mixing, MIXING_UNIT, 1.0)
    # The covariance has squares of mixing coefficients. One that falls to zero has the curvature
    # g / a besides the information, which itself vanishes there.
    falls = mixing & (gradient * vector < 0)
    bent = np.abs(gradient) / np.where(falls, np.abs(vector), np.inf)
    damped = bent + damping / unit**2
    change, bend = np.zeros_like(gradient), 0.0
    for index, matrix in information:
        change[index] = np.linalg.solve(matrix + np.diag(damped[index]), gradient[index])
        bend += change[index] @ gradient[index]
    factor = min(1.0, LONGEST_STEP / np.abs(change / unit).max(initial=1e-300))
    return Step(factor * change, factor * float(gradient @ change) - 0.5 * factor**2 * float(bend))


def damping_after(damping: float, promised: float, gain: float) -> float:
    """Return less damping after a step that kept its promise, more after one that did not."""
    if not gain > 0.1 * promised:
        return 4.0 * damping
    return max(damping / 2.0, LEAST_DAMPING) if gain > 0.5 * promised else damping


def mix_sites(sites: dict[str, Sites], target: dict[str, Sites], rho: float) -> dict[str, Sites]:
    """Return (1 - rho) lambda + rho lambda*: a damped natural-gradient step."""
    if rho == 1.0:
        return target

    def mixed(old: ByBlock, new: ByBlock) -> ByBlock:
        found = allocate(np.shape(new), new.dtype)
        for rows in slices(found.shape[1], CELLS_AT_A_TIME // found.shape[2] + 1):
            found[:, rows] = (1.0 - rho) * old[:, rows] + rho * new[:, rows]
        return found

    return jax.tree.map(mixed, sites, target)


def starting_sites(free: Roles, problem: Problem) -> dict[str, Sites]:
    """Return sites with the precision of the prior at every real row: q starts proper."""
    sites = {}
    for role, lmc in free.items():
        if not lmc.varies:
            continue
        prior = np.sum(lmc.variances, axis=0)
        if lmc.nugget is not None:
            prior = prior + np.mean(np.square(lmc.nugget.size), axis=2)
        shape = (prior.shape[0], len(problem.inputs), prior.shape[1])
        # An output whose coefficients have vanished has no function to tell of.
        precision = np.divide(1.0, prior, out=np.zeros_like(prior), where=prior > 0)
        parts = np.asarray(lmc.mean) * precision, precision
        sites[role] = Sites(*(np.broadcast_to(s[:, None], shape) for s in parts))
    return sites


def many_share(free: Roles) -> bool:
    """Whether many outputs share latent functions: their information is computed one by one."""
    return any(lmc.varies and lmc.mean.shape[1] > MOST_BY_OUTPUT for lmc in free.values())


class Optimizer:
    """One run over a fixed set of inducing inputs, at a given jitter."""

    def __init__(
        self,
        problem: Problem,
        settings: NaturalSettings,
        jitter: float,
        many: bool = False,
        centre: Roles | None = None,
        share: float = 0.0,
    ) -> None:
        self.problem, self.settings, self.jitter, self.many = problem, settings, jitter, many
        self.centre, self.whole, self.share, self.allowed = centre, problem, share, np.inf
        self.damping, self.age = LEAST_DAMPING, 0
        self.information: Information = []
        self.rho, self.calm, self.refused = 1.0, 0, 0
        self.suited = False
        self.trace: list[float] = []
        self.site_steps = self.hyper_steps = 0

    def evaluate(self, free: Roles, sites: dict[str, Sites], slopes: bool = True) -> State:
        """Evaluate the bound, with ``slopes`` its gradient, and the next sites."""
        with np.errstate(**TOO_FAR_IS_REFUSED):
            found = evaluate(free, sites, self.problem, self.jitter, slopes)
        value, gradient = found.elbo, to_vector(found.gradient)
        if not np.isfinite([value, *gradient]).all():
            value = -np.inf
        self.trace.append(value)
        if self.centre is not None:
            prior = log_prior(free, self.centre, self.settings.hold)
            value += prior.value
            gradient = gradient + prior.gradient if slopes else gradient
        return State(self.problem, free, sites, self.jitter, found, value, gradient)

    def run(
        self,
        free: Roles,
        sites: dict[str, Sites],
        progress: Progress,
        known: State | None = None,
        look: Callable[[State], bool] | None = None,
    ) -> tuple[State, str]:
        """Climb until the bound settles; return the best state and how it ended.

        `known` is the evaluation at the start, if it is there already. `look` is called once with
        an early state, and may end the climb of a model that is too simple.
        """
        best = state = known or self.evaluate(free, sites)
        if not np.isfinite(best.value):
            return best, "diverged"
        learn, most = self.settings.learn, self.settings.max_iterations
        try:
            for iteration in range(1, most + 1):
                state = self.step(state) if learn else self.site_step(state)
                if not np.isfinite(self.trace[-1]) and (not learn or self.refused > MOST_REFUSALS):
                    return best, "diverged"
                # With hyper-parameters held the last state is the settled one.
                best = state if state.value > best.value or not learn else best
                progress("fitting", iteration, most, best.evaluation.elbo)
                self.thin(state, iteration)
                settled = self.calm >= CALM_STEPS
                early = iteration == LOOK_AFTER or (settled and iteration < LOOK_AFTER)
                if look and early and iteration + LEAST_LEFT <= most and look(best):
                    return best, "too simple"
                if settled:
                    return best, "converged"
                if self.refused > MOST_REFUSALS:
                    return best, "stuck"
        except KeyboardInterrupt:
            return best, "interrupted"
        return best, "out of iterations"

    def thin(self, state: State, iteration: int) -> None:
        """Leave out inducing inputs that the present lengthscales do not need, or take all again.

        Kernels that see few distinct inputs start with all of them. Sites are per row, so that a
        climb goes on with any inducing inputs.
        """
        if state.problem is not self.problem:
            # A step that was refused leaves a state with the inducing inputs of before.
            return
        left_out = state.evaluation.left_out
        if left_out > self.allowed:
            self.problem, self.allowed = self.whole, np.inf
        elif self.share and iteration % THIN_EVERY == 0 and np.isfinite(state.value):
            blocks = {role: own.blocks for role, own in state.evaluation.states.items()}
            self.problem = state.problem.thinned(blocks, self.share)
            self.allowed = max(TOO_THIN, 2.0 * left_out)

    def site_step(self, state: State) -> State:
        """Move the sites alone, by a shorter step where they overshoot.

        Those of a count far above all others overshoot whatever the step. From where the first one
        leads further ones rise, by one in the logarithm.
        """
        first = new = self.evaluate(state.free, self._next_sites(state))
        rho, least = self.rho, state.value - LEAST_SLACK
        # One step may be shorter than those to follow.
        while new.value < least and rho > 1e-3:
            rho, self.calm = rho / 2, 0
            new = self.evaluate(state.free, mix_sites(state.sites, state.evaluation.target, rho))
        self.rho = max(rho, LEAST_SITE_STEP)
        if new.value < least and np.isfinite(first.value):
            new, self.rho = first, 1.0
        self.rho = min(1.0, SITE_RECOVERY * self.rho)
        self._settle(new.value - state.value)
        return new

    def step(self, state: State) -> State:
        """Move sites and hyper-parameters; return the old state where the bound fell."""
        step = newton_step(state.free, state.gradient, self._information(state), self.damping)
        moved = from_vector(to_vector(state.free) + step.change, state.free)
        new = self.evaluate(moved, self._next_sites(state))
        self.hyper_steps += 1
        gain = new.value - state.value
        if gain > -max(LEAST_SLACK, step.promised):
            self.damping = damping_after(self.damping, step.promised, gain)
            self.rho, self.refused = min(1.0, SITE_RECOVERY * self.rho), 0
            self.suited = False
            self._settle(gain, CALM_OF_MANY if self.many else 1.0)
            return new
        self.refused += 1
        promised, risen = step.promised if np.isfinite(gain) else np.inf, 0.0
        if np.isfinite(gain) and self.rho > LEAST_SITE_STEP and not self.suited:
            # Where the sites overshoot, shorter steps of the hyper-parameters would not help.
            alone = self.evaluate(state.free, new.sites)
            risen = alone.value - state.value
            if risen < -LEAST_SLACK:
                self.rho, self.calm = max(self.rho / 2, LEAST_SITE_STEP), 0
                return state
            state = alone if risen > 0.0 else state
            # Sites that suit the hyper-parameters are no reason for the next refusal.
            self.suited = risen < LEAST_SLACK
        self.damping = damping_after(self.damping, step.promised, gain)
        # Promises shrink with the steps: that nothing is promised must be certain.
        self._settle(max(promised, risen))
        return state

    def _information(self, state: State) -> Information:
        """Return the Fisher information of the hyper-parameters, of now or of some steps ago."""
        if self.age == 0:
            self.information = fisher_information(state.free, state.evaluation)
            if self.centre is not None:
                prior = log_prior(state.free, self.centre, self.settings.hold).curvature
                self.information = [(i, f + prior[np.ix_(i, i)]) for i, f in self.information]
            self.age = INFORMATION_AGE_OF_MANY if self.many else INFORMATION_AGE
        self.age -= 1
        return self.information

    def _next_sites(self, state: State) -> dict[str, Sites]:
        """Return the sites after a damped natural-gradient step."""
        self.site_steps += 1
        return mix_sites(state.sites, state.evaluation.target, self.rho)

    def _settle(self, change: float, factor: float = 1.0) -> None:
        """Count how many iterations in a row changed next to nothing."""
        rate = factor * self.settings.tolerance_per_cell
        # Short steps of the sites change little though there is far to go.
        most = self.rho * (self.settings.tolerance + rate * self.problem.cells)
        calm = abs(change) < most
        self.calm = self.calm + 1 if calm else 0


def fit(task: Task, settings: NaturalSettings | None = None) -> tuple[Posterior, FitResult]:
    """Fit the task's model, or the best of its candidates."""
    climbs = best_climbs(task, settings or NaturalSettings())
    try:
        posterior = climbs.mixed()
    except KeyboardInterrupt:
        climbs.status, posterior = "interrupted", climbs.posterior()
    return posterior, climbs.result()


def best_climbs(task: Task, settings: NaturalSettings) -> FitSchedule:
    """Fit every candidate; return the one of the highest bound less its coefficients (Akaike)."""
    ends: list[FitSchedule] = []
    for model in task.candidates or (task.model,):
        try:
            ends.append(FitSchedule(dataclasses.replace(task, model=model), settings))
            if not ends[-1].over:
                ends[-1].climb_and_grow()
                ends[-1].prune()
                ends[-1].refine()
        except KeyboardInterrupt:
            # Between two climbs, before a climb's first value, or between candidates: the best
            # state is whole.
            if not ends:
                raise
            ends[-1].status = "interrupted"
        if ends[-1].status == "interrupted":
            break

    def criterion(end: FitSchedule) -> float:
        bound = end.best.evaluation.elbo
        return bound - coefficients(end.model(end.best.free)) if np.isfinite(bound) else -np.inf

    return max(ends, key=criterion)


class FitSchedule:
    """The climbs of one fit, which share its iterations.

    Attributes
    ----------
    status
        How the last climb ended.
    left
        The iterations that are left.
    centre
        The hyper-parameters that their prior is around.
    best
        The state that the fit would return now.
    whole
        The problem of the last climb, with all inducing inputs that it may use.
    """

    def __init__(self, task: Task, settings: NaturalSettings) -> None:
        self.task, self.settings, self.left = task, settings, settings.max_iterations
        self.status, self.site_steps, self.hyper_steps = "", 0, 0
        self.trace: list[float] = []
        self.notes: list[str] = []
        priors = task.centre or task.model.priors
        self.centre = {role: to_free(lmc) for role, lmc in priors.items()}
        self.best = self.choose_start()

    @property
    def over(self) -> bool:
        """Whether no further climb may begin."""
        return self.left <= 0 or self.status == "interrupted"

    def model(self, free: Roles) -> Model:
        """Return the model with given free hyper-parameters."""
        return self.task.with_priors({role: from_free(lmc) for role, lmc in free.items()})

    def choose_start(self) -> State:
        """Take site steps at every start; return the state of the highest bound.

        All starts share the inducing inputs of the shortest one: one compiled program.
        """
        task, settings = self.task, self.settings
        waves = len(task.inputs) > MANY_ROWS and not task.periodic
        starts = task.starts(
            (*LENGTHSCALE_FACTORS, SHORTEST_FACTOR) if waves else LENGTHSCALE_FACTORS
        )
        problem = task.problem(starts[-1], knots=True)
        ends: list[State] = []
        for start in starts:
            free = {role: to_free(lmc) for role, lmc in start.priors.items()}
            # Sites stand for the likelihood: those that suit one start nearly suit the next.
            sites = ends[0].sites if ends else starting_sites(free, problem)
            steps = min(settings.warm_up, LATER_WARM_UP) if ends else settings.warm_up
            try:
                ends.append(self.climb(problem, free, sites, warm_up=steps))
            except KeyboardInterrupt:
                if not ends:
                    raise
                self.status = "interrupted"
            if self.status == "interrupted":
                break
        return max(ends, key=lambda end: end.value)

    def climb(
        self,
        problem: Problem,
        free: Roles,
        sites: dict[str, Sites],
        jitter: float = FIRST_JITTER,
        known: State | None = None,
        look: Callable[[State], bool] | None = None,
        warm_up: int | None = None,
        centre: Roles | None = None,
    ) -> State:
        """Maximise the ELBO from given free hyper-parameters; raise the jitter if that diverges.

        ``warm_up`` is a number of site steps, with the hyper-parameters held. `known` is the
        evaluation at the start and at the first jitter; for `look` see `Optimizer.run`. `centre` is
        what the prior is around, if it is not that of the fit.
        """
        settings = dataclasses.replace(self.settings, max_iterations=self.left)
        if warm_up is not None:
            settings = dataclasses.replace(settings, max_iterations=warm_up, learn=False)
        order = max((problem.order(role, lmc) for role, lmc in free.items()), default=1)
        first_jitter, centre = jitter, centre or self.centre
        self.whole = problem
        while True:
            own = settings, jitter, many_share(free), centre if settings.has_prior else None
            run = Optimizer(problem, *own, self.thinning_share(jitter))
            with blas_threads_for(order):
                state, status = run.run(free, sites, self.task.progress, known, look)
            if status != "diverged" or 10 * jitter > LARGEST_JITTER:
                break
            free, sites, known, jitter = state.free, state.sites, None, 10 * jitter
        if run.problem is problem and state.problem is not problem:
            # All inducing inputs are used again, but the best state is older.
            state = run.evaluate(state.free, state.sites)
        if status == "diverged" and np.isfinite(state.value):
            # There are finite values, but none that a step leads to.
            status = "stuck"
        if jitter > first_jitter and status != "diverged":
            self.notes.append(f"The kernel matrices needed a jitter of {jitter:.0e}.")
        self.status, self.trace = status, self.trace + run.trace
        self.site_steps += run.site_steps
        self.hyper_steps += run.hyper_steps
        self.left -= run.site_steps if warm_up is None else 0
        return state

    def thinning_share(self, jitter: float) -> float:
        """Return the share of a prior variance that inducing inputs may do without; 0: none."""
        return max(THINNED * self.task.tolerance, 10.0 * jitter) if self.task.tolerance else 0.0

    def climb_and_grow(self) -> None:
        """Optimise; if the means lack a kernel, refit with it and keep the higher bound."""
        start = self.best
        # A further kernel of many outputs would make a fit several times as long.
        may_grow = self.settings.learn and not many_share(start.free)
        spare = self.task.spare if may_grow else ()
        growth: list[Growth] = []

        def look(state: State) -> bool:
            found = propose_kernel(state.free, state.sites, start.problem, spare)
            growth.extend([] if found is None else [found])
            return bool(growth)

        whole, seek = self.whole, look if spare else None
        self.best = narrow = self.climb(whole, *start[1:4], known=start, look=seek)
        if not growth or self.over:
            return
        free, centre = (
            roles | {ROLE: with_kernel(roles[ROLE], growth[0])}
            for roles in (start.free, self.centre)
        )
        problem = self.task.problem(self.model(free), knots=True)
        wide = self.climb(problem, free, narrow.sites, narrow.jitter, centre=centre)
        if wide.value > narrow.value:
            self.best, self.centre = wide, centre
            return
        self.whole = whole
        if not self.over:
            self.best = self.climb(whole, *narrow[1:4], known=narrow)
        elif self.status != "interrupted":
            self.status = "out of iterations"

    def prune(self) -> None:
        """Drop the nuggets that nobody has chosen, unless each bump is worth a nat (Akaike).

        Noise that is not there follows single counts, and what was not seen beside a high one is
        overestimated. All outputs keep theirs, or none. Nuggets without a cycle stay, as rows may
        be too few to tell.
        """
        wide, status = self.best, self.status
        nugget = wide.free[ROLE].nugget if ROLE in wide.free else None
        may_drop = self.task.explore and self.settings.learn and not self.over
        if not may_drop or nugget is None or np.shape(nugget.size)[2] < 2:
            return
        none = dataclasses.replace(nugget, size=np.zeros(np.shape(nugget.size)))
        free, centre = (
            roles | {ROLE: dataclasses.replace(roles[ROLE], nugget=none)}
            for roles in (wide.free, self.centre)
        )
        least = wide.evaluation.elbo - np.count_nonzero(nugget.size)
        steps = self.settings.warm_up
        bare = self.climb(self.whole, free, *wide[2:4], warm_up=steps, centre=centre)
        if bare.evaluation.elbo > least - HOPELESS and self.status != "interrupted":
            bare = self.climb(self.whole, *bare[1:4], centre=centre)
        if bare.evaluation.elbo >= least:
            self.best, self.centre = bare, centre
        elif self.status != "interrupted":
            self.status = status

    def refine(self) -> None:
        """Climb on with more inducing inputs while too few carry the fitted kernels.

        The sites are per row, so that the climb goes on from where it was.
        """
        for _ in range(MOST_REFINEMENTS):
            if self.over or self.best.evaluation.left_out < MOST_LEFT_OUT:
                return
            finer = self.task.problem(self.model(self.best.free), knots=True)
            before = self.whole.inducing
            outgrown = any(
                isinstance(old, Knots) and not (isinstance(new, Knots) and new.suits(old))
                for role, several in finer.inducing.items()
                for old, new in zip(before[role], several, strict=True)
            )
            enough = WORTH_REFINING * self.whole.inducing_size
            if finer.inducing_size < enough and not outgrown:
                return
            self.best = self.climb(finer, self.best.free, self.best.sites, self.best.jitter)

    def result(self) -> FitResult:
        """Return how the fit ended, and how kernels that are too fast for it are represented."""
        best, message = self.best, MESSAGES[self.status]
        for role, inducing in best.problem.inducing.items():
            for z, kernel in zip(inducing, best.free[role].kernels, strict=True):
                if isinstance(z, Knots):
                    name = type(kernel).__name__
                    message += f" The {name} of the {role} is computed on a grid of {z.size} knots."
        notes, share = dict.fromkeys(self.notes), best.evaluation.left_out
        if share > NOTABLE_SHARE:
            notes[COUNTS_AS_NOISE.format(share)] = None
        bound, trace = float(best.evaluation.elbo), tuple(self.trace)
        steps = self.site_steps, self.hyper_steps
        return FitResult(self.status, message, bound, trace, *steps, tuple(notes))

    def posterior(self) -> Posterior:
        """Return the posterior at the best hyper-parameters."""
        best, centre = self.best, self.model(self.centre).priors
        own = self.model(best.free), best.problem.inducing, best.evaluation.weights
        own = *own, np.asarray(best.jitter), self.training_sites(best), centre
        return jax.tree.map(np.asarray, Posterior(*own))

    def certain(self, why: str) -> Posterior:
        """Return the posterior at the mode, with a note if it should be mixed."""
        if not self.settings.optional:
            self.notes.append(f"Hyper-parameters were taken for certain, not mixed over: {why}.")
        return self.posterior()

    def mixed(self) -> Posterior:
        """Return the posterior, mixed over design points of the hyper-parameters if asked for."""
        points = self.settings.points
        if not points or self.status in {"interrupted", "diverged"}:
            return self.posterior()
        if any(isinstance(z, Knots) for role in self.whole.inducing.values() for z in role):
            return self.certain("a kernel is computed on a grid of knots")
        run = Optimizer(self.best.problem, self.settings, self.best.jitter, centre=self.centre)
        if self.task.tolerance:
            run.problem = self.problem_of([self.best.free])
            self.best = run.evaluate(self.best.free, self.best.sites)
        best = self.best
        order = max((best.problem.order(r, lmc) for r, lmc in best.free.items()), default=1)
        if order**2 * points > MOST_NUMBERS:
            return self.certain(f"the posterior has {order} weights, too many for {points} of them")
        cells, number = best.problem.cells, len(best.gradient)
        if many_share(best.free) and cells < FEW_CELLS * number:
            told = f"There are {cells:.0f} observed cells for {number} hyper-parameters"
            self.notes.append(f"{told}: {TOO_FEW}")
        few = cells <= MOST_SETTLED

        def at(change: Vector, near: State, steps: int, slopes: bool = False) -> State:
            free, sites = displaced(best.free, change), near.evaluation.target
            state = run.evaluate(free, sites, slopes and not steps)
            for step in range(steps):
                before, rho = state.value, 1.0 if step < 2 else DAMPED
                sites = mix_sites(state.sites, state.evaluation.target, rho)
                state = run.evaluate(free, sites, slopes)
                # Neither finite, nor ever to be: that is settled too.
                if not abs(state.value - before) > SETTLED:
                    break
            return state

        def gradient_at(change: Vector, slopes: bool = True) -> tuple[float, Vector]:
            return at(change, best, MOST_ADAPTATIONS if few else 1, slopes)[-2:]

        def point(number: int, normal: Vector) -> State:
            self.task.progress("design points", number, points, best.evaluation.elbo)
            promised, share = 0.5 * float(normal @ normal), 1.0
            steps = MOST_ADAPTATIONS if few else 0
            state = at(root @ normal, best, steps)
            for _ in range(MOST_SHORTENINGS):
                share *= radial_factor(promised, best.value - state.value) or LEAST_FACTOR
                near = state if np.isfinite(state.value) else best
                state = at(share * (root @ normal), near, steps)
                if best.value - state.value < TOO_FAR * promised:
                    return state
            return best

        with blas_threads_for(order), np.errstate(**TOO_FAR_IS_REFUSED):
            information = to_dense(fisher_information(best.free, best.evaluation), number)
            prior = log_prior(best.free, self.centre, self.settings.hold).curvature
            root, mean = principal_directions(best.free, information, prior, gradient_at, few)
            normals = mean + standard_points(points, root.shape[1])
            if self.task.tolerance:
                run.problem = self.problem_of([displaced(best.free, root @ own) for own in normals])
                self.best = best = run.evaluate(best.free, best.sites)
            # One point's tables at a time.
            parts = [
                (self.model(end.free).priors, end.evaluation.weights, self.training_sites(end))
                for end in map(point, range(points), normals)
            ]
        priors, weights, sites = jax.tree.map(lambda *a: np.stack(a), *parts)
        mode = self.posterior()
        own = mode.model, mode.inducing, mode.weights, mode.jitter
        return MixedPosterior(*own, sites, mode.centre, priors, weights)

    def problem_of(self, several: list[Roles]) -> Problem:
        """Return the problem with the inducing inputs that the shortest lengthscales need.

        If those make too many weights to mix over, it is that of the best state.
        """
        best, blocks = self.best, {}
        for role in best.evaluation.states:
            kernels = jax.tree.map(
                lambda *a: np.min(a, axis=0), *(f[role].kernels for f in several)
            )
            free = dataclasses.replace(best.free[role], kernels=kernels)
            inducing, lookups = self.whole.inducing[role], self.whole.lookups[role]
            own = lookups[: len(kernels)]
            blocks[role] = make_blocks(free, inducing, own, best.jitter, slopes=False)
        problem = self.whole.thinned(blocks, self.task.tolerance)
        order = max((problem.order(role, best.free[role]) for role in blocks), default=1)
        return problem if order**2 * len(several) <= MOST_NUMBERS else best.problem

    def training_sites(self, state: State) -> dict[str, Sites]:
        """Return the sites of the training rows, of the roles that have a nugget."""
        return {r: state.sites[r] for r, lmc in state.free.items() if lmc.nugget is not None}
