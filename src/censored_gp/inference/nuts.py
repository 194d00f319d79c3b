"""The reference engine: the same whitened weights, sampled by the No-U-Turn sampler.

The target is

    log p(v, theta, y) = log N(v; 0, I) + log p(theta) + sum over cells of log p(y | v, theta),

where the hyper-parameters theta are held as ``natural`` finds them, or sampled along. There is no
approximation beyond the inducing inputs, which are all distinct ones as far as
``max_inducing`` allows. It is sampled in coordinates z in which it is near N(0, I): with natural's
sites (h, Lambda) standing for the likelihood, as in `elbo`,

    v = P^-1 b + L^-T z,    P = I + Psi' Lambda Psi = L L',    b = Psi' (h - Lambda m),

a change of variables that leaves the target as it is. Psi and m are those of theta, also where it
is sampled: data that tell a function well tell the product of its size and its weights, so that
weights held in coordinates of their own would have to follow every step of a size, a lengthscale
or a level. Only -log det L, the Jacobian, is added then.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax.linalg import cholesky, triangular_solve
from jaxtyping import Array, Bool, Float, Key

from censored_gp.inference import natural
from censored_gp.inference.elbo import Roles, Terms, cell_slopes, log_likelihood, next_sites
from censored_gp.inference.hyperparameters import CERTAIN, prior_parts
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import DrawnPosterior, Latent, MixedPosterior, Posterior
from censored_gp.inference.result import FitResult, Task
from censored_gp.inference.sites import Sites
from censored_gp.model.compilation import compiled_to_run_long
from censored_gp.model.lmc import Geometry, flat, from_free, geometry, real_weights, to_free

try:
    import blackjax
except ImportError as absent:
    raise ImportError(
        "engine='nuts' needs blackjax: install censored-gp[nuts], or use engine='natural'"
    ) from absent

# Weights by role, and hyper-parameters; of all draws (chains, draws, B, W).
Position = dict[str, Any]
# The name of the hyper-parameters among the parts of a position.
HYPER = "hyper-parameters"

Tuning = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class NutsSettings:
    """Settings of the engine ``nuts``.

    Attributes
    ----------
    draws
        Draws kept of each chain.
    warmup
        Draws that adapt step size and scales, and are discarded.
    draws_at_a_time
        Draws between two calls of the progress function.
    points
        Design points of the fit by ``natural``; if there are some, hyper-parameters are sampled.
    """

    draws: int = 500
    warmup: int = 300
    chains: int = 2
    target_acceptance: float = 0.8
    draws_at_a_time: int = 50
    natural: NaturalSettings | None = None
    points: int = 0
    seed: int = 0


class Hyper(NamedTuple):
    """Hyper-parameters as they are sampled: theta = mode + deviation * z, in free form.

    Attributes
    ----------
    start
        The hyper-parameters that the prior is around.
    hold
        Whether kernels and their coefficients are certain.
    """

    mode: Roles
    deviation: Roles
    start: Roles
    hold: bool = False

    def free(self, position: Roles) -> Roles:
        """Return theta in free form."""
        return jax.tree.map(lambda m, s, z: m + s * z, self.mode, self.deviation, position)

    def priors(self, position: Roles) -> Roles:
        """Return the hyper-parameters."""
        return {role: from_free(lmc) for role, lmc in self.free(position).items()}

    def log_density(self, position: Roles) -> Float[Array, ""]:
        """Return log p(theta), up to a constant: a density over coefficients, not over log |a|."""
        free = self.free(position)
        parts = prior_parts(free, self.start, self.hold)
        total = sum((part.value for part in parts), jnp.zeros(()))
        for lmc in free.values():
            pairs = zip(lmc.mixing, lmc.variances, strict=True)
            total -= sum(0.5 * a.shape[2] * jnp.sum(jnp.log(v)) for a, v in pairs)
        return total


class Target(NamedTuple):
    """The log density to sample from, with the change of variables.

    Attributes
    ----------
    sites
        Sites that stand for the likelihood, those of natural's Gaussian at the mode.
    shapes
        Features and loadings of the roles that vary, at the hyper-parameters of the posterior.
    """

    posterior: Posterior
    sites: dict[str, Sites]
    shapes: dict[str, Geometry]
    inputs: Float[Array, "N C"]
    terms: tuple[Terms, ...]
    hyper: Hyper | None = None

    def at(self, position: Position) -> tuple[Position, Latent, Float[Array, ""]]:
        """Return the weights, the parameter functions at the training rows, and log |dv / dz|."""
        priors, shapes = self.posterior.model.priors, self.shapes
        if self.hyper is not None:
            priors = self.hyper.priors(position[HYPER])
            shapes = geometries(priors, self.posterior, self.inputs)
        latent = {role: lmc.constant(len(self.inputs)) for role, lmc in priors.items()}
        weights, volume = {}, jnp.zeros(())
        for role, shape in shapes.items():
            weights[role], logs = conditional(shape, self.sites[role], position[role])
            latent[role], volume = flat(shape.functions(weights[role])), volume + logs
        return weights, latent, volume

    def __call__(self, position: Position) -> Float[Array, ""]:
        """Return log p(v, y), up to a constant."""
        weights, latent, volume = self.at(position)
        total = log_likelihood(self.terms, latent) + volume
        total -= sum(0.5 * jnp.sum(v**2) for v in weights.values())
        return total if self.hyper is None else total + self.hyper.log_density(position[HYPER])


def conditional(
    shape: Geometry, sites: Sites, z: Float[Array, "B W"]
) -> tuple[Float[Array, "B W"], Float[Array, ""]]:
    """Return v = P^-1 b + L^-T z of one role, and log |dv / dz| = -log det L."""
    blocks, rows, outputs = sites.linear.shape
    mean = jnp.broadcast_to(shape.mean, (blocks, rows, outputs))
    solve = partial(triangular_solve, left_side=True, lower=True)

    def block(own: Any) -> tuple[Float[Array, "W"], Float[Array, ""]]:
        phi, loading, mean, linear, precision, z = own
        psi = jnp.einsum("nm,drm->ndrm", phi, loading).reshape(rows * outputs, -1)
        weighted = psi * precision.reshape(-1, 1)
        factor = cholesky(jnp.eye(len(z)) + psi.T @ weighted, symmetrize_input=False)
        right = psi.T @ linear.ravel() - weighted.T @ mean.ravel()
        both = solve(factor, right[:, None]) + z[:, None]
        v = solve(factor, both, transpose_a=True)[:, 0]
        return v, -jnp.sum(jnp.log(jnp.diagonal(factor)))

    # One by one: a batched call may deadlock, see `geometry`.
    each = shape.phi, shape.loading, mean, sites.linear, sites.precision, z
    v, volume = jax.lax.map(block, each)
    return v, jnp.sum(volume)


def geometries(
    priors: Roles, posterior: Posterior, inputs: Float[Array, "N C"]
) -> dict[str, Geometry]:
    """Return features and loadings of the roles that vary, at given hyper-parameters."""
    return {
        role: geometry(priors[role], posterior.inducing[role], inputs, posterior.jitter)
        for role in posterior.weights
    }


def make_target(
    posterior: Posterior,
    inputs: Float[np.ndarray, "N C"],
    terms: tuple[Terms, ...],
    hyper: Hyper | None = None,
) -> Target:
    """Return the target around a fitted posterior."""
    mean, variance = Posterior.latent(posterior, inputs)
    certain = {role: np.zeros(mean[role].shape) for role in posterior.weights}
    _, slopes = cell_slopes(terms, slice(0, len(inputs)), mean, variance, certain)
    sites = {}
    for role in posterior.weights:
        shape = len(inputs), *np.shape(posterior.model.priors[role].mean)
        found = next_sites(mean[role], *slopes[role])
        sites[role] = Sites(*(jnp.moveaxis(jnp.reshape(part, shape), 1, 0) for part in found))
    rows = jnp.asarray(inputs)
    return Target(posterior, sites, _shapes(posterior, rows), rows, terms, hyper)


@compiled_to_run_long
def _shapes(posterior: Posterior, inputs: Float[Array, "N C"]) -> dict[str, Geometry]:
    """Return features and loadings at the hyper-parameters of the posterior."""
    return geometries(posterior.model.priors, posterior, inputs)


@compiled_to_run_long
def adapt(target: Target, key: Key[Array, ""], settings: NutsSettings) -> tuple[Any, Tuning]:
    """Warm every chain up from its own draw of natural's Gaussian: state and tuning of each."""
    warm: Any = blackjax.window_adaptation(
        blackjax.nuts, target, target_acceptance_rate=settings.target_acceptance
    )

    def one(own: Key[Array, ""]) -> tuple[Any, Tuning]:
        start_key, run_key = jax.random.split(own)
        own_keys = jax.random.split(start_key, len(target.shapes))
        start: Position = {}
        for (role, shape), key in zip(target.shapes.items(), own_keys, strict=True):
            blocks, _, rank, size = shape.loading.shape
            start[role] = jax.random.normal(key, (blocks, rank * size))
        if target.hyper is not None:
            start[HYPER] = jax.tree.map(jnp.zeros_like, target.hyper.mode)
        (state, tuning), _ = warm.run(run_key, start, num_steps=settings.warmup)
        return state, tuning

    return jax.lax.map(one, jax.random.split(key, settings.chains))


@compiled_to_run_long
def sample(
    target: Target, state: Any, tuning: Tuning, key: Key[Array, ""], count: int
) -> tuple[Any, Position, Bool[Array, "K S"]]:
    """Draw so many times from every chain: last states, positions, and which draws diverged."""

    def one(own: Key[Array, ""], state: Any, tuning: Tuning) -> Any:
        step: Any = blackjax.nuts(target, **tuning).step

        def draw(state: Any, own: Key[Array, ""]) -> Any:
            state, info = step(own, state)
            return state, (state.position, info.is_divergent)

        return jax.lax.scan(draw, state, jax.random.split(own, count))

    chains = len(jax.tree.leaves(state)[0])
    state, (positions, divergent) = jax.lax.map(
        lambda each: one(*each), (jax.random.split(key, chains), state, tuning)
    )
    return state, positions, divergent


def draw_all(
    target: Target, task: Task, settings: NutsSettings, bound: float
) -> tuple[Position, Bool[np.ndarray, "K S"]]:
    """Warm up and draw, until the end or an interruption, which waits for the draws under way.

    Return positions (chains, draws, B, W) of each role, none if there are no draws, and which draws
    diverged.
    """
    key, most, done = jax.random.key(settings.seed), settings.draws, 0
    positions: list[Position] = []
    divergent = [np.zeros((settings.chains, 0), dtype=bool)]
    try:
        task.progress("warming up", 0, most, bound)
        key, own = jax.random.split(key)
        state, tuning = adapt(target, own, settings)
        while done < most:
            key, own = jax.random.split(key)
            count = min(settings.draws_at_a_time, most - done)
            state, some, diverged = sample(target, state, tuning, own, count)
            positions.append(jax.tree.map(np.asarray, some))
            divergent.append(np.asarray(diverged))
            done += count
            task.progress("sampling", done, most, bound)
    except KeyboardInterrupt:
        pass
    joined = jax.tree.map(lambda *each: np.concatenate(each, axis=1), *positions or [{}])
    return joined, np.concatenate(divergent, axis=1)


@compiled_to_run_long
def _each_draw(target: Target, positions: Position) -> tuple[Position, Latent]:
    """Return weights and parameter functions of every draw."""
    # Loops, as Cholesky factors of many draws must not be batched.
    of_chain = partial(jax.lax.map, lambda z: target.at(z)[:2])
    return jax.lax.map(of_chain, positions)


def diagnose(latent: Latent, varying: list[str]) -> tuple[float, float]:
    """Return the largest split R-hat and smallest effective sample size of the latent values."""
    worst, least = 1.0, np.inf
    for role in varying:
        values = np.asarray(latent[role])
        chains, draws = values.shape[:2]
        half = values[:, : draws - draws % 2].reshape(2 * chains, draws // 2, -1)
        if half.shape[1] < 4:
            return np.nan, np.nan
        worst = max(worst, float(np.max(blackjax.rhat(half))))
        least = min(least, float(np.min(blackjax.ess(half))))
    return worst, least


def make_hyper(posterior: MixedPosterior, hold: bool = False) -> Hyper:
    """Return the hyper-parameters to sample, scaled by their deviations over the design points."""
    start, mode, points = (
        {role: to_free(lmc) for role, lmc in priors.items()}
        for priors in (posterior.centre, posterior.model.priors, posterior.priors)
    )
    # What is held is at the mode, and the others' deviations are far above this.
    least = CERTAIN if hold else 0.02
    spread = jax.tree.map(lambda a: np.maximum(np.std(a, axis=0), least), points)
    mode, spread, start = jax.tree.map(jnp.asarray, (mode, spread, start))
    return Hyper(mode, spread, start, hold)


def fit(task: Task, settings: NutsSettings | None = None) -> tuple[Posterior, FitResult]:
    """Find the hyper-parameters by ``natural``, then sample the weights."""
    settings = settings or NutsSettings()
    exact, own = dataclasses.replace(task, tolerance=0.0), settings.natural or NaturalSettings()
    if settings.points:
        # The prior is around the starting values, which a further kernel has not.
        exact = dataclasses.replace(exact, spare=())
        own = dataclasses.replace(own, points=settings.points)
    posterior, result = natural.fit(exact, own)
    if result.status in {"interrupted", "diverged"} or not posterior.weights:
        return posterior, result
    hyper = make_hyper(posterior, own.hold) if isinstance(posterior, MixedPosterior) else None
    target = make_target(posterior, task.inputs, task.terms, hyper)
    positions, divergent = draw_all(target, task, settings, result.elbo)
    if not positions:
        said = "The sampler was interrupted before its first draws; this is the posterior of "
        return posterior, dataclasses.replace(
            result, status="interrupted", message=f"{said}'natural'."
        )
    weights, latent = _each_draw(target, positions)
    verdict = diagnose(latent, list(weights))
    priors = None
    if hyper is not None:
        priors = jax.vmap(jax.vmap(hyper.priors))(positions[HYPER])
        priors = jax.tree.map(np.asarray, priors)
    for role, lmc in posterior.model.priors.items():
        if role in weights:
            real = real_weights(lmc, posterior.inducing[role])
            weights[role] = np.asarray(weights[role])[..., real]
    drawn = DrawnPosterior.from_chains(posterior, weights, priors)
    left_out = posterior.left_out(task.inputs)
    return drawn, _result(result, divergent, settings.draws, verdict, left_out)


def _result(
    before: FitResult,
    divergent: Bool[np.ndarray, "K S"],
    asked: int,
    verdict: tuple[float, float],
    left_out: float,
) -> FitResult:
    """Return how the sampling ended; bound and trace are those of the hyper-parameters' fit."""
    (r_hat, size), (chains, number) = verdict, divergent.shape
    figures = (
        f"{chains} chain(s) of {number} draws: R-hat at most {r_hat:.3f}, effective "
        f"sample size at least {size:.0f}, {divergent.sum()} divergence(s)."
    )
    sound = r_hat <= 1.05 and divergent.mean() <= 0.01
    status = "interrupted" if number < asked else "converged" if sound else "out of iterations"
    message = {
        "converged": "The chains agree.",
        "interrupted": "The sampler was interrupted; these are the draws so far.",
        "out of iterations": "The chains do not agree yet: raise draws and warmup, and if draws "
        "diverge, target_acceptance.",
    }[status]
    message, notes = f"{message} {figures}", before.notes
    if left_out > 1e-3:
        share = f"The inducing inputs leave out up to {left_out:.1%} of the prior variance"
        notes += (f"{share}, which was taken as zero: raise max_inducing.",)
    return dataclasses.replace(before, status=status, message=message, notes=notes)
