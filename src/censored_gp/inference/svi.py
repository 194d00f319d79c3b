"""The paper's own engine: stochastic gradients on a Gaussian over the function values.

Variational and hyper-parameters climb the bound of Eq. (6) and Eq. (13) together, by RMSprop, with
the expectation estimated from a few samples; held-out data, if given, tell when to stop. Every
parameter function gamma_{d,j} has at the N training rows the distribution of Eq. (7) and Eq. (12),

    q(gamma_{d,j}) = N(mu, S),      S = (A T)(A T)',      mu = m + A nu,

with T lower triangular and A the Cholesky factor of its own prior covariance, so that A T is the
Cholesky factor of S. (The published code moves A T itself, the same family, and hardly converges
where rows are close to each other.) The divergence is from the joint prior of all outputs of a
role, N(m, K) with K of Eq. (5): summed output by output, as the paper prints it, it would know
nothing of their coupling.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from censored_gp.data.observations import Observations
from censored_gp.inference.elbo import Nodes, Roles, Terms, elbo, log_likelihood_at, quadrature
from censored_gp.inference.posterior import Latent, Posterior
from censored_gp.inference.result import FitResult, Task
from censored_gp.inference.sites import Weights
from censored_gp.model.compilation import blas_threads_for, compiled_to_run_long
from censored_gp.model.inducing import InducingInputs
from censored_gp.model.linalg import cholesky, inverse_of_product, solve_lower
from censored_gp.model.lmc import LMC, covariance, flat, from_free, geometry, mean_variance, to_free
from censored_gp.model.model import choose_inducing

JITTERS = (1e-6, 1e-5, 1e-4)
"""Jitters on the diagonal of K, relative to the prior variance, to be tried in turn."""
FEATURE_JITTER = 1e-9
"""Jitter of the inducing inputs' Gram matrices."""
VALIDATION_SAMPLES = 64
"""The density of held-out cells is a mixture over this many samples of q."""


class Values(NamedTuple):
    """q of one role in free form: B blocks of G Gaussians over P function values (G P = D N).

    Attributes
    ----------
    location
        The vectors nu.
    factor
        T below the diagonal, and on the diagonal the logarithms of T's.
    """

    location: Float[Array, "B G P"]
    factor: Float[Array, "B G P P"]


class Gaussians(NamedTuple):
    """q of one role: mu - m, a factor F of S = F F', and the divergence from the prior."""

    shift: Float[Array, "B G P"]
    factor: Float[Array, "B G P P"]
    divergence: Float[Array, ""]


def separate(joint: Float[Array, "B GP GP"], groups: int) -> Float[Array, "B G P P"]:
    """Return the G diagonal blocks of every matrix."""
    points = joint.shape[1] // groups
    return jnp.einsum("bgpgq->bgpq", joint.reshape(len(joint), groups, points, groups, points))


def together(parts: Float[Array, "B G P P"]) -> Float[Array, "B GP GP"]:
    """Undo :func:`separate`: put the G matrices along a diagonal."""
    blocks, groups, points, _ = parts.shape
    spread = jnp.einsum("bgpq,gh->bgphq", parts, jnp.eye(groups))
    return spread.reshape(blocks, groups * points, groups * points)


def triangular(factor: Float[Array, "B G P P"]) -> Float[Array, "B G P P"]:
    """Return T from its free form."""
    diagonal = jnp.exp(jnp.diagonal(factor, axis1=2, axis2=3))
    return jnp.tril(factor, -1) + diagonal[..., None] * jnp.eye(factor.shape[-1])


def gaussians(values: Values, joint: Float[Array, "B GP GP"]) -> Gaussians:
    """Return q over the function values, less their mean m, and KL(q || N(m, K)), K = ``joint``.

    That is (|C^-1 F|^2 + |C^-1 (mu - m)|^2 - D N) / 2 + log|C| - log|F| with C C' = K, F = A T.
    """
    nu, own = values.location, triangular(values.factor)
    log_own = jnp.diagonal(values.factor, axis1=2, axis2=3).sum()
    prior = cholesky(separate(joint, nu.shape[1]))
    shift, factor = jnp.einsum("bgpq,bgq->bgp", prior, nu), prior @ own
    if nu.shape[1] == 1:
        # The prior's own factor cancels: KL(N(nu, T T') || N(0, I)).
        whole = jnp.sum(own**2) + jnp.sum(nu**2) - nu.size
        return Gaussians(shift, factor, 0.5 * whole - log_own)
    root = cholesky(joint)
    both = jnp.concatenate([together(factor), shift.reshape(len(root), -1, 1)], axis=2)
    whole = jnp.sum(solve_lower(root, both) ** 2) - nu.size
    log_ratio = _log_diagonal(root) - _log_diagonal(prior) - log_own
    return Gaussians(shift, factor, 0.5 * whole + log_ratio)


def _log_diagonal(factor: Float[Array, "... P P"]) -> Float[Array, ""]:
    """Return half the log determinant of all the matrices factorised."""
    return jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)))


@dataclasses.dataclass(frozen=True)
class SVISettings:
    """Settings of the engine ``svi``: the paper's choices, and what it leaves open.

    Attributes
    ----------
    check_every
        Iterations between two checks of the score.
    patience
        Checks without improvement after which the fit stops.
    tolerance
        The least improvement of the score (nats) that counts.
    validation
        Inputs and outputs (in model units) whose log density is the score; else it is the bound.
    stacked
        One q over all outputs of a role, instead of one for each.
    learn
        Whether the hyper-parameters move.
    """

    samples: int = 3
    learning_rate: float = 0.001
    max_iterations: int = 10_000
    check_every: int = 100
    patience: int = 5
    tolerance: float = 0.01
    validation: tuple[Float[np.ndarray, "V C"], Observations] | None = None
    stacked: bool = False
    learn: bool = True
    seed: int = 0


class Parameters(NamedTuple):
    """All that the gradient steps move."""

    free: Roles
    values: dict[str, Values]


class Shared(NamedTuple):
    """What all steps share: inputs, cells and jitter."""

    inputs: Float[Array, "N C"]
    terms: tuple[Terms, ...]
    jitter: Float[Array, ""]

    def gaussians(self, free: LMC, values: Values) -> tuple[LMC, Gaussians]:
        """Return a role's hyper-parameters and its q over the function values."""
        lmc = from_free(free)
        return lmc, gaussians(values, covariance(lmc, self.inputs, self.jitter))


def moments(parameters: Parameters, shared: Shared) -> tuple[Latent, Latent, Float[Array, ""]]:
    """Return mean and variance of every gamma_{d,j}(x_n) under q, and KL(q || p) of all roles."""
    mean, variance, divergence = {}, {}, jnp.zeros(())
    for role, free in parameters.free.items():
        if free.varies:
            lmc, q = shared.gaussians(free, parameters.values[role])
            shift, own = (
                flat(jnp.swapaxes(part.reshape(*lmc.mean.shape, -1), 1, 2))
                for part in (q.shift, jnp.sum(q.factor**2, axis=3))
            )
            mean[role], variance[role] = lmc.constant(len(shared.inputs)) + shift, own
            divergence += q.divergence
        else:
            mean[role] = free.constant(len(shared.inputs))
            variance[role] = jnp.ones_like(mean[role])  # never looked at
    return mean, variance, divergence


def samples(roles: Roles, terms: tuple[Terms, ...], key: Key[Array, ""], count: int) -> Nodes:
    """Return standard normal nodes of equal weight, with a key for each kind of cells."""
    keys = jax.random.split(key, len(terms))

    def nodes(part: Terms) -> tuple[Float[Array, "K S J"], Float[np.ndarray, "S"]]:
        place = next(i for i, other in enumerate(terms) if other is part)
        noise = jax.random.normal(keys[place], (len(part.row), count, len(part.roles)))
        varies = np.array([roles[role].varies for role in part.roles], dtype=float)
        return noise * varies, np.full(count, 1.0 / count)

    return nodes


def bound(
    parameters: Parameters, shared: Shared, key: Key[Array, ""] | None = None, count: int = 0
) -> Float[Array, ""]:
    """Return the ELBO, its expectation by quadrature, or over samples if there is a key."""
    mean, variance, divergence = moments(parameters, shared)
    nodes = quadrature({role: lmc.varies for role, lmc in parameters.free.items()})
    if key is not None:
        nodes = samples(parameters.free, shared.terms, key, count)
    return elbo(shared.terms, mean, variance, nodes, divergence)


def optimiser(learning_rate: Float[Array, ""] | float) -> optax.GradientTransformation:
    """Return RMSprop, with the memory of the published code."""
    return optax.rmsprop(learning_rate, decay=0.99)


@compiled_to_run_long
def take_step(
    parameters: Parameters,
    memory: Any,
    key: Key[Array, ""],
    shared: Shared,
    learning_rate: Float[Array, ""],
    count: int,
    learn: bool,
) -> tuple[Parameters, Any, Float[Array, ""]]:
    """Take one gradient step; return the parameters, RMSprop's state and the bound before it."""
    value, slope = jax.value_and_grad(bound)(parameters, shared, key, count)
    if not learn:
        slope = slope._replace(free=jax.tree.map(jnp.zeros_like, slope.free))
    downhill = jax.tree.map(jnp.negative, slope)
    change, memory = optimiser(learning_rate).update(downhill, memory)
    return eqx.apply_updates(parameters, change), memory, value


@compiled_to_run_long
def weights_of_values(
    free: LMC, values: Values, inducing: InducingInputs, shared: Shared
) -> Weights:
    """Return q(v) = int p(v | gamma) q(gamma) dgamma of one role: Eq. (9), (10), (15).

    With gamma = m + Psi v + e, e ~ N(0, s), and P = I + Psi' Psi / s, the weights given gamma are
    N(G (gamma - m), P^-1), G = P^-1 Psi' / s; under q they are N(G (mu - m), P^-1 + G S G').
    """
    lmc, q = shared.gaussians(free, values)
    shape = geometry(lmc, inducing, shared.inputs, jnp.asarray(FEATURE_JITTER))
    noise = shared.jitter * mean_variance(covariance(lmc, shared.inputs, 0.0))
    blocks, outputs, rank, size = shape.loading.shape
    psi = jnp.einsum("bnm,bdrm->bdnrm", shape.phi, shape.loading)
    psi = psi.reshape(blocks, outputs * shape.phi.shape[1], rank * size)
    left_out = jnp.swapaxes(shape.left_out, 1, 2).reshape(psi.shape[:2])
    scaled = jnp.swapaxes(psi / (left_out + noise[:, None])[..., None], 1, 2)
    conditional = inverse_of_product(cholesky(scaled @ psi + jnp.eye(psi.shape[2])))
    gain = conditional @ scaled
    mean = jnp.einsum("bwp,bp->bw", gain, q.shift.reshape(len(psi), -1))
    spread = gain @ together(q.factor)
    return Weights(mean, conditional + spread @ jnp.swapaxes(spread, 1, 2))


def to_posterior(task: Task, parameters: Parameters, shared: Shared) -> Posterior:
    """Return the form of a posterior that all engines share: q over whitened weights."""
    model = task.with_priors({role: from_free(free) for role, free in parameters.free.items()})
    inducing = choose_inducing(model, task.inputs, task.tolerance, len(task.inputs))
    weights = {
        role: weights_of_values(parameters.free[role], values, inducing[role], shared)
        for role, values in parameters.values.items()
    }
    posterior = Posterior(model, inducing, weights, np.asarray(FEATURE_JITTER))
    return jax.tree.map(np.asarray, posterior)


@compiled_to_run_long
def held_out_score(
    priors: Roles, moments: tuple[Latent, Latent], terms: tuple[Terms, ...], key: Key[Array, ""]
) -> Float[Array, ""]:
    """Return the log density of held-out cells, -NLPD, as a mixture over samples of q."""
    mean, variance = moments
    nodes, total = samples(priors, terms, key, VALIDATION_SAMPLES), jnp.zeros(())
    for part in terms:
        logs = log_likelihood_at(part, part.gather(mean), part.gather(variance), nodes(part)[0])
        mixed = jax.scipy.special.logsumexp(logs, axis=1) - np.log(VALIDATION_SAMPLES)
        total += jnp.sum(part.weight * mixed)
    return total


class Run:
    """One run of the engine at a given jitter, which starts with q at the prior."""

    def __init__(self, task: Task, settings: SVISettings, jitter: float) -> None:
        self.task, self.settings = task, settings
        inputs, own = jnp.asarray(task.inputs), jnp.asarray(jitter)
        self.shared = Shared(inputs, task.terms, own)
        self.key, self.score_key = jax.random.split(jax.random.key(settings.seed))
        self.trace: list[float] = []
        self.scores: list[float] = []
        priors, values = task.model.priors, {}
        for role, lmc in priors.items():
            if lmc.varies:
                blocks, outputs = lmc.mean.shape
                groups = 1 if settings.stacked else outputs
                points = outputs // groups * len(inputs)
                shape = blocks, groups, points
                values[role] = Values(jnp.zeros(shape), jnp.zeros((*shape, points)))
        start = Parameters({role: to_free(lmc) for role, lmc in priors.items()}, values)
        self.best = self.parameters = jax.tree.map(jnp.asarray, start)
        self.memory: Any = compiled_to_run_long(optimiser(1.0).init)(cast(Any, self.parameters))

    def run(self) -> str:
        """Step until the score settles; return how it ended. The best parameters are kept."""
        most, learning_rate = self.settings.max_iterations, jnp.asarray(self.settings.learning_rate)
        choices = learning_rate, self.settings.samples, self.settings.learn
        try:
            for iteration in range(1, most + 1):
                self.key, own = jax.random.split(self.key)
                now = self.parameters, self.memory, own, self.shared, *choices
                self.parameters, self.memory, value = take_step(*now)
                self.trace.append(float(value))
                if not np.isfinite(self.trace[-1]):
                    return "diverged"
                self.task.progress("fitting", iteration, most, self.trace[-1])
                if iteration % self.settings.check_every == 0 and self._settled():
                    return "converged"
            if most % self.settings.check_every:
                self._settled()
        except KeyboardInterrupt:
            self._settled()
            return "interrupted"
        return "out of iterations"

    def _settled(self) -> bool:
        """Compute the score, keep the parameters if they are the best, and tell whether to stop."""
        score, before = self._score(), max(self.scores, default=-np.inf)
        if score > before:
            self.best = self.parameters
        self.scores.append(score)
        recent = self.scores[-self.settings.patience :]
        earlier = self.scores[: -self.settings.patience]
        return bool(earlier) and max(recent) <= max(earlier) + self.settings.tolerance

    def _score(self) -> float:
        """Return the log density of the held-out cells, or else the mean of the last bounds."""
        if self.settings.validation is None:
            return float(np.mean(self.trace[-self.settings.check_every :]))
        inputs, observations = self.settings.validation
        posterior = to_posterior(self.task, self.parameters, self.shared)
        held_out = dataclasses.replace(self.task, observations=observations, held_out=None)
        # The same samples at every check, so that scores differ by the parameters only.
        moments = posterior.latent(inputs)
        own = posterior.model.priors, moments, held_out.terms, self.score_key
        return float(held_out_score(*own))


def fit(task: Task, settings: SVISettings | None = None) -> tuple[Posterior, FitResult]:
    """Fit the task's model from its starting values by stochastic gradients."""
    settings = settings or SVISettings()
    order = len(task.inputs) * len(task.model.likelihoods)
    with blas_threads_for(order):
        for jitter in JITTERS:
            run = Run(task, settings, jitter)
            status = run.run()
            if status != "diverged" or len(run.trace) > 1:
                break
        posterior = to_posterior(task, run.best, run.shared)
        value = float(compiled_to_run_long(bound)(run.best, run.shared))
    return posterior, _result(run, status, value)


def _result(run: Run, status: str, value: float) -> FitResult:
    """Return how the fit ended."""
    settings, steps = run.settings, len(run.trace)
    score = "bound" if settings.validation is None else "log density of the validation data"
    waited = settings.patience * settings.check_every
    message = {
        "converged": f"The fit converged: the {score} did not rise in the last {waited} steps.",
        "out of iterations": f"The fit ran out of iterations while the {score} could still rise; "
        "raise max_iterations.",
        "interrupted": "The fit was interrupted; this is the best found so far.",
        "diverged": f"The fit diverged at step {steps}: the bound was not finite. Lower the "
        "learning rate, or look for extreme values in the outputs.",
    }[status]
    jitter = float(run.shared.jitter)
    notes = () if jitter == JITTERS[0] else (f"The prior needed a jitter of {jitter:.0e}.",)
    return FitResult(status, message, value, tuple(run.trace), hyper_steps=steps, notes=notes)
