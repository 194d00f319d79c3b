"""The paper's own engine: stochastic gradients on the bound of Eq. (6) and Eq. (13).

Variational and hyper-parameters climb together, by RMSprop, with the expectation estimated from a
few samples; held-out data, if given, tell when to stop. The Gaussian q of Eq. (7) and Eq. (12) is
over the whitened weights v of each role, as it is for the other engines:

    q(v) = N(m, T T'),      gamma_d = mean_d + Psi_d v,      KL(q || N(0, I)) in closed form,

with T lower triangular. It starts at the prior, and outputs that share latent functions share q.
(The paper gives every output a Gaussian over its values at the N rows. Its published code hardly
converges where rows are close to each other, and a divergence that is summed output by output, as
the paper prints it, knows nothing of their coupling.)
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from censored_gp.data.observations import Observations
from censored_gp.inference.elbo import Nodes, Roles, Terms, elbo, log_likelihood_at, quadrature
from censored_gp.inference.posterior import Latent, Posterior
from censored_gp.inference.result import COUNTS_AS_NOISE, NOTABLE_SHARE, FitResult, Task
from censored_gp.inference.sites import Weights
from censored_gp.model.compilation import blas_threads_for, compiled_to_run_long
from censored_gp.model.inducing import InducingInputs
from censored_gp.model.lmc import flat, from_free, geometry, real_weights, to_free
from censored_gp.model.model import choose_inducing

# Jitters of the inducing inputs' Gram matrices, to be tried in turn.
JITTERS = (1e-8, 1e-6, 1e-4)
# The density of held-out cells is a mixture over this many samples of q.
VALIDATION_SAMPLES = 64


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
    learn: bool = True
    seed: int = 0


class FreeWeights(NamedTuple):
    """q(v) of one role in free form: T below the diagonal, and the logarithms of T's on it."""

    mean: Float[Array, "B W"]
    factor: Float[Array, "B W W"]

    @property
    def root(self) -> Float[Array, "B W W"]:
        """The factor T of the covariance."""
        diagonal = jnp.exp(jnp.diagonal(self.factor, axis1=1, axis2=2))
        return jnp.tril(self.factor, -1) + diagonal[..., None] * jnp.eye(diagonal.shape[1])

    @property
    def divergence(self) -> Float[Array, ""]:
        """KL(q(v) || N(0, I))."""
        log_root = jnp.sum(jnp.diagonal(self.factor, axis1=1, axis2=2))
        return 0.5 * (jnp.sum(self.root**2) + jnp.sum(self.mean**2) - self.mean.size) - log_root


class Parameters(NamedTuple):
    """All that the gradient steps move."""

    free: Roles
    q: dict[str, FreeWeights]


class Data(NamedTuple):
    """What all steps share: inputs, inducing inputs, cells and jitter."""

    inputs: Float[Array, "N C"]
    inducing: dict[str, InducingInputs]
    terms: tuple[Terms, ...]
    jitter: Float[Array, ""]


def moments(parameters: Parameters, data: Data) -> tuple[Latent, Latent]:
    """Return mean and variance of every gamma_{d,j}(x_n) under q: Eq. (9), (10), (15)."""
    mean, variance = {}, {}
    for role, free in parameters.free.items():
        if free.varies:
            q = parameters.q[role]
            shape = geometry(from_free(free), data.inducing[role], data.inputs, data.jitter)
            psi = jnp.einsum("bnm,bdrm->bdnrm", shape.phi, shape.loading)
            psi = psi.reshape(*psi.shape[:3], -1)
            spread = jnp.swapaxes(jnp.sum((psi @ q.root[:, None]) ** 2, axis=3), 1, 2)
            mean[role], variance[role] = shape.functions(q.mean), spread + shape.left_out
            mean[role], variance[role] = flat(mean[role]), flat(variance[role])
        else:
            mean[role] = free.constant(len(data.inputs))
            variance[role] = jnp.zeros_like(mean[role])
    return mean, variance


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
    parameters: Parameters, data: Data, key: Key[Array, ""] | None = None, count: int = 0
) -> Float[Array, ""]:
    """Return the ELBO, its expectation by quadrature, or over samples if there is a key."""
    nodes = quadrature({role: lmc.varies for role, lmc in parameters.free.items()})
    if key is not None:
        nodes = samples(parameters.free, data.terms, key, count)
    divergence = sum((q.divergence for q in parameters.q.values()), jnp.zeros(()))
    return elbo(data.terms, *moments(parameters, data), nodes, divergence)


def optimiser(learning_rate: Float[Array, ""] | float) -> optax.GradientTransformation:
    """Return RMSprop, with the memory of the published code."""
    return optax.rmsprop(learning_rate, decay=0.99)


@compiled_to_run_long
def take_step(
    parameters: Parameters,
    memory: Any,
    key: Key[Array, ""],
    data: Data,
    learning_rate: Float[Array, ""],
    count: int,
    learn: bool,
) -> tuple[Parameters, Any, Float[Array, ""]]:
    """Take one gradient step; return the parameters, RMSprop's state and the bound before it."""
    value, slope = jax.value_and_grad(bound)(parameters, data, key, count)
    if not learn:
        slope = slope._replace(free=jax.tree.map(jnp.zeros_like, slope.free))
    downhill = jax.tree.map(jnp.negative, slope)
    change, memory = optimiser(learning_rate).update(downhill, memory)
    return cast(Parameters, optax.apply_updates(cast(Any, parameters), change)), memory, value


def to_posterior(task: Task, parameters: Parameters, data: Data) -> Posterior:
    """Return the form of a posterior that all engines share."""
    model = task.with_priors({role: from_free(free) for role, free in parameters.free.items()})
    weights = {}
    for role, q in parameters.q.items():
        real = real_weights(parameters.free[role], data.inducing[role])
        root = q.root[:, real]
        weights[role] = Weights(q.mean[:, real], root @ jnp.swapaxes(root, 1, 2))
    return jax.tree.map(np.asarray, Posterior(model, data.inducing, weights, data.jitter))


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
        # All distinct inputs, as far as `most_inducing` allows: lengthscales may become short.
        inducing = choose_inducing(task.model, task.inputs, 0.0, task.most_inducing)
        self.data = Data(jnp.asarray(task.inputs), inducing, task.terms, jnp.asarray(jitter))
        self.key, self.score_key = jax.random.split(jax.random.key(settings.seed))
        self.trace: list[float] = []
        self.scores: list[float] = []
        free, q = {role: to_free(lmc) for role, lmc in task.model.priors.items()}, {}
        for role, lmc in free.items():
            if lmc.varies:
                rank = max(np.shape(a)[2] for a in lmc.loadings)
                order = rank * sum(len(z.mask) for z in inducing[role])
                q[role] = FreeWeights(*(jnp.zeros((len(lmc.mean), *[order] * n)) for n in (1, 2)))
        self.best = self.parameters = jax.tree.map(jnp.asarray, Parameters(free, q))
        self.memory: Any = compiled_to_run_long(optimiser(1.0).init)(cast(Any, self.parameters))

    def run(self) -> str:
        """Step until the score settles; return how it ended. The best parameters are kept."""
        most, learning_rate = self.settings.max_iterations, jnp.asarray(self.settings.learning_rate)
        choices = learning_rate, self.settings.samples, self.settings.learn
        try:
            for iteration in range(1, most + 1):
                self.key, own = jax.random.split(self.key)
                now = self.parameters, self.memory, own, self.data, *choices
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
        posterior = to_posterior(self.task, self.parameters, self.data)
        held_out = dataclasses.replace(self.task, observations=observations, held_out=None)
        # The same samples at every check, so that scores differ by the parameters only.
        own = posterior.model.priors, posterior.latent(inputs), held_out.terms, self.score_key
        return float(held_out_score(*own))


def fit(task: Task, settings: SVISettings | None = None) -> tuple[Posterior, FitResult]:
    """Fit the task's model from its starting values by stochastic gradients."""
    settings = settings or SVISettings()
    with blas_threads_for(len(task.inputs) * len(task.model.likelihoods)):
        for jitter in JITTERS:
            run = Run(task, settings, jitter)
            status = run.run()
            if status != "diverged" or len(run.trace) > 1:
                break
        value = float(compiled_to_run_long(bound)(run.best, run.data))
        posterior = to_posterior(task, run.best, run.data)
        share = posterior.left_out(task.inputs)
    steps, waited = len(run.trace), settings.patience * settings.check_every
    score = "bound" if settings.validation is None else "log density of the validation data"
    message = {
        "converged": f"The fit converged: the {score} did not rise in the last {waited} steps.",
        "out of iterations": f"The fit ran out of iterations while the {score} could still rise; "
        "raise max_iterations.",
        "interrupted": "The fit was interrupted; this is the best found so far.",
        "diverged": f"The fit diverged at step {steps}: the bound was not finite. Lower the "
        "learning rate, or look for extreme values in the outputs.",
    }[status]
    notes = () if jitter == JITTERS[0] else (f"The prior needed a jitter of {jitter:.0e}.",)
    if share > NOTABLE_SHARE:
        notes += (COUNTS_AS_NOISE.format(share),)
    result = FitResult(status, message, value, tuple(run.trace), hyper_steps=steps, notes=notes)
    return posterior, result
