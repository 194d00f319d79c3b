"""The posterior over latent weights: Eq. (9), (10), (15).

Engines return one of three kinds with one contract: a Gaussian over the whitened weights
(``natural`` and ``svi``), a mixture of such over hyper-parameters (``natural``), or draws of the
weights (``nuts``). All give latent moments, latent nodes (a discrete mixture that stands for the
distribution of the parameters at each row), and joint draws.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.linalg import get_lapack_funcs
from scipy.sparse import issparse

from censored_gp.inference.lookup import OutputBlock, look_up, make_blocks
from censored_gp.inference.sites import Moments, Sites, TrainingSites, Weights
from censored_gp.kernels.base import Kernel
from censored_gp.likelihoods.quadrature import grid, shifted_grids
from censored_gp.model.compilation import (
    AnyArray,
    Rows,
    Scalar,
    blas_threads_for,
    compiled,
    float64,
    slices,
)
from censored_gp.model.inducing import InducingInputs
from censored_gp.model.lmc import LMC, to_free
from censored_gp.model.model import Latent, Model, choose_inducing

(PSTRF,) = get_lapack_funcs(("pstrf",), dtype=np.float64)
# What the features leave out is drawn jointly over at most this many distinct inputs.
MOST_JOINT = 2000
# What the features leave out is not drawn below this share of the prior variance.
NEGLIGIBLE = 1e-6

Random = np.random.Generator
# Latent values (S, N, O) by role at S nodes, the weights of these, and the variances (S, N, O) of a
# role that has its mean at all nodes.
Nodes = tuple[Latent, Float[np.ndarray, "S"], Float[np.ndarray, "S N O"] | None]
# Means and variances (N, O) by role.
LatentPair = tuple[Latent, Latent]


class Posterior(eqx.Module):
    """Fitted hyper-parameters with q(v) = N(mean, covariance) for every role that varies.

    Attributes
    ----------
    sites
        Sites of the training cells, of the roles that have a nugget.
    centre
        The hyper-parameters that the prior of hyper-parameters is around.
    """

    model: Model
    inducing: dict[str, InducingInputs]
    weights: dict[str, Weights]
    jitter: Scalar
    sites: TrainingSites = eqx.field(default_factory=dict)
    centre: dict[str, LMC] = eqx.field(default_factory=dict)

    @classmethod
    @float64()
    def of_prior(cls, model: Model, inputs: Rows) -> Posterior:
        """Return the prior at the inputs: q(v) = N(0, I), an inducing input at every distinct row.

        Draws of the latent parameters, and of outputs given them, are the paper's generative
        algorithm, lines 1 to 7: the latent functions have the covariance K of Eq. (5).
        """
        inducing = choose_inducing(model, inputs, tolerance=0.0, most=len(inputs))
        prior, weights = cls(model, inducing, {}, np.asarray(1e-10)), {}
        for role in [role for role, lmc in model.priors.items() if lmc.varies]:
            orders = [block.order for block in prior._blocks(role, inputs)]
            identity = np.broadcast_to(np.eye(orders[0]), (len(orders), orders[0], orders[0]))
            weights[role] = Weights(np.zeros(identity.shape[:2]), identity)
        return dataclasses.replace(prior, weights=weights)

    def _blocks(self, role: str, inputs: Rows) -> Iterator[OutputBlock]:
        """Yield features at new inputs, block by block; few BLAS threads work on each."""
        lmc, jitter = to_free(self.model.priors[role]), float(self.jitter)
        lookups = [look_up(kernel, inputs, exactly=True) for kernel in lmc.kernels]
        with blas_threads_for(sum(z.width for z in self.inducing[role])):
            yield from make_blocks(lmc, self.inducing[role], lookups, jitter, slopes=False)

    def _nugget(self, role: str, inputs: Rows) -> Float[np.ndarray, "B N D"] | None:
        """Return the variance of the nugget at the inputs."""
        nugget = self.model.priors[role].nugget
        return None if nugget is None else np.asarray(nugget.variance(inputs))

    def _offset(self, role: str, inputs: Rows) -> Float[np.ndarray, "B N D"]:
        """Return the effects of the inputs that outputs have of their own."""
        lmc = self.model.priors[role]
        blocks, outputs = np.shape(lmc.mean)
        return np.broadcast_to(lmc.offset(np.asarray(inputs)), (blocks, len(inputs), outputs))

    def latent(self, inputs: Rows, sites: TrainingSites = None, cavity: bool = False) -> LatentPair:
        """Return means and variances of the latent parameters at the inputs.

        ``sites`` are those of the cells at the inputs, if these are training cells. With ``cavity``
        the moments of families with nuggets are those without the cell's own site.
        """
        mean, variance = {}, {}
        for role, lmc in self.model.priors.items():
            if not lmc.varies:
                mean[role] = lmc.constant(len(inputs))
                variance[role] = np.zeros(mean[role].shape)
                continue
            nugget, found = self._nugget(role, inputs), []
            alone = [cavity and self.model.likelihoods[d].nugget for d in lmc.outputs]
            leave_out = np.reshape(alone, np.shape(lmc.mean))
            q, offset = self.weights[role], self._offset(role, inputs)
            for b, block in enumerate(self._blocks(role, inputs)):
                block.set_weights(jax.tree.map(lambda part, b=b: part[b], q))
                centre, spread, rest, _ = block.marginals(slice(0, len(inputs)))
                centre = centre + offset[b]
                f = moments = Moments(centre, spread)
                if nugget is not None and sites:
                    own = Sites(*(part[b] for part in sites[role]))
                    both = own.cavity(f, nugget[b]), own.with_nugget(f, nugget[b])
                    pairs = zip(*both, strict=True)
                    moments = Moments(*(np.where(leave_out[b], *pair) for pair in pairs))
                elif nugget is not None:
                    moments = Moments(centre, spread + nugget[b])
                found.append((moments.mean, moments.variance + rest))
            parts = zip(*found, strict=True)
            mean[role], variance[role] = (np.concatenate(part, axis=1) for part in parts)
        return mean, variance

    def left_out(self, inputs: Rows) -> float:
        """Return the largest share of a role's prior variance that its features leave out."""
        rows, blocks = slice(0, len(inputs)), (self._blocks(role, inputs) for role in self.weights)
        return max((b.left_out(rows)[1] for b in itertools.chain(*blocks)), default=0.0)

    def components(self, role: str, inputs: Rows) -> tuple[Float[np.ndarray, "Q N O"], ...]:
        """Return means and variances of the terms of Eq. (4): each kernel's share of gamma - m."""
        found, q = [], self.weights[role]
        for b, block in enumerate(self._blocks(role, inputs)):
            block.set_weights(jax.tree.map(lambda part, b=b: part[b], q))
            found.append(block.components(slice(0, len(inputs))))
        means, variances = zip(*found, strict=True)
        return np.concatenate(means, axis=2), np.concatenate(variances, axis=2)

    def nodes(self, inputs: Rows, sites: TrainingSites = None, held: str | None = None) -> Nodes:
        """Return latent values (S, N, O) by role and their weights: quadrature of Eq. (14).

        With a nugget q may be wide, and the likelihood of the cell itself far from Gaussian. Such
        training cells have the nodes of their cavity, to be reweighted by their likelihood.

        A role that is ``held`` has its mean at all nodes, and its variances come third: where the
        likelihood has the integral over it in closed form.
        """
        priors = self.model.priors
        varying = tuple(lmc.varies and role != held for role, lmc in priors.items())
        evenly = any(lmc.nugget is not None for lmc in priors.values())
        # More nodes of each parameter than of the bound, as they are used once.
        points, mass = grid(varying, {0: 1, 1: 32, 2: 16, 3: 10}[sum(varying)], evenly)
        values, variance = self._nodes_at(points, inputs, sites)
        spread = None if held is None else np.broadcast_to(variance[held], values[held].shape)
        return values, mass, spread

    def _nodes_at(
        self, points: Float[np.ndarray, "S J"], inputs: Rows, sites: TrainingSites
    ) -> LatentPair:
        """Return latent values at standardised nodes of the roles, and the variances of these."""
        mean, variance = self.latent(inputs, sites, cavity=True)
        values = {
            role: mean[role] + points[:, i, None, None] * np.sqrt(variance[role])
            for i, role in enumerate(self.model.priors)
        }
        return values, variance

    def draw(self, random: Random, inputs: Rows, count: int, sites: TrainingSites = None) -> Latent:
        """Draw the latent parameters jointly over rows and outputs.

        Weights are drawn first: for one seed they are the same at any inputs.
        """
        weights = {}
        for role, q in self.weights.items():
            normals = random.standard_normal((count, *q.mean.shape))
            with blas_threads_for(np.shape(q.covariance)[1]):
                weights[role] = q.draw(normals)
        return self._functions(random, weights, inputs, sites)

    def _functions(
        self,
        random: Random,
        weights: Mapping[str, Float[np.ndarray, "S B ..."]],
        inputs: Rows,
        sites: TrainingSites = None,
    ) -> Latent:
        """Return latent parameters from weights, with draws of what the features leave out."""
        found, count = {}, len(next(iter(weights.values()))) if weights else 0
        for role, lmc in self.model.priors.items():
            if not lmc.varies:
                constant = lmc.constant(len(inputs))
                found[role] = np.broadcast_to(constant, (count, *constant.shape))
                continue
            nugget, parts = self._nugget(role, inputs), []
            offset = self._offset(role, inputs)
            for b, block in enumerate(self._blocks(role, inputs)):
                drawn = block.functions_of(weights[role][:, b]) + offset[b]
                if nugget is not None:
                    gamma = Moments(drawn, nugget[b])
                    if sites:
                        own = Sites(*(part[b] for part in sites[role]))
                        gamma = own.with_nugget(Moments(drawn, np.zeros(())), nugget[b])
                    noise = random.standard_normal(drawn.shape)
                    drawn = gamma.mean + np.sqrt(gamma.variance) * noise
                parts.append(drawn + self._left_out(random, lmc, b, block, drawn.shape))
            found[role] = np.concatenate(parts, axis=2)
        return found

    def _left_out(
        self, random: Random, lmc: LMC, b: int, block: OutputBlock, shape: tuple[int, ...]
    ) -> Float[np.ndarray, "S N D"] | float:
        """Draw sum_q sum_i a_{q,i} e_{q,i}, jointly over `MOST_JOINT` distinct inputs at a time."""
        total: Any = 0.0
        for q, (features, a) in enumerate(zip(block.features, block.mixing, strict=True)):
            if np.all(features.rest <= NEGLIGIBLE * features.prior):
                continue
            kernel = jax.tree.map(lambda leaf: leaf[b], lmc.kernels[q])
            drawn = np.empty((shape[0], a.shape[1], len(features.rest)))
            for rows in slices(len(features.rest), MOST_JOINT):
                points, phi = block.inputs[q][rows], cast(Any, features.phi[rows])
                phi = phi.toarray() if issparse(phi) else phi
                left = np.asarray(_gram(kernel, points)) - phi @ phi.T
                # With pivots, as few columns as the rank asks for; nothing needs be definite.
                least = NEGLIGIBLE * np.max(features.prior)
                factor, pivots, rank, _ = PSTRF(left, tol=least, lower=1)
                root = np.empty((len(left), rank))
                root[pivots - 1] = np.tril(factor)[:, :rank]
                drawn[..., rows] = random.standard_normal((*drawn.shape[:2], rank)) @ root.T
            total = total + np.moveaxis(drawn[..., block.index[q]], 1, 2) @ a.T
        return total


@compiled
def _gram(kernel: Kernel, inputs: Rows) -> Float[Array, "J J"]:
    """Return k(x, x')."""
    return kernel(inputs, inputs)


class DrawnPosterior(Posterior):
    """S draws of the weights, and of the hyper-parameters if these were sampled as well.

    Its Gaussian part has the moments of the weights.
    """

    draws: dict[str, Float[np.ndarray, "S B W"]] = eqx.field(default_factory=dict)
    priors: dict[str, LMC] = eqx.field(default_factory=dict)

    @classmethod
    def from_chains(
        cls,
        fitted: Posterior,
        weights: Mapping[str, AnyArray],
        priors: dict[str, LMC] | None = None,
    ) -> DrawnPosterior:
        """Return the draws (chains, draws, B, W) of all chains one after the other."""
        draws, moments = {}, {}
        for role, by_chain in weights.items():
            draws[role] = np.reshape(by_chain, (-1, *by_chain.shape[2:]))
            mean = draws[role].mean(axis=0)
            centred = draws[role] - mean
            covariance = np.einsum("sbw,sbu->bwu", centred, centred) / len(centred)
            moments[role] = Weights(mean, covariance)
        joined = jax.tree.map(lambda a: np.reshape(a, (-1, *np.shape(a)[2:])), priors or {})
        own = fitted.model, fitted.inducing, moments, fitted.jitter
        return cls(*own, centre=fitted.centre, draws=draws, priors=joined)

    @property
    def count(self) -> int:
        """The number of draws."""
        return len(next(iter(self.draws.values())))

    def latent(self, inputs: Rows, sites: TrainingSites = None, cavity: bool = False) -> LatentPair:
        """Return means and variances of the latent parameters at the inputs."""
        if not self.priors:
            return super().latent(inputs, sites, cavity)
        values = self.nodes(inputs)[0]
        mean, variance = ({r: f(v, axis=0) for r, v in values.items()} for f in (np.mean, np.var))
        return mean, variance

    def nodes(self, inputs: Rows, sites: TrainingSites = None, held: str | None = None) -> Nodes:
        """Return the latent values of every draw, all of equal weight; draws hold no role."""
        found = self._at(np.random.default_rng(0), np.arange(self.count), inputs)
        return found, np.full(self.count, 1.0 / self.count), None

    def draw(self, random: Random, inputs: Rows, count: int, sites: TrainingSites = None) -> Latent:
        """Return the latent parameters of draws picked at random.

        They are the same for all roles, as these are dependent. No draw is picked again before
        every other one has been.
        """
        rounds = [random.permutation(self.count) for _ in range(1 + count // self.count)]
        return self._at(random, np.concatenate(rounds)[:count], inputs)

    def _at(self, random: Random, chosen: Int[np.ndarray, "K"], inputs: Rows) -> Latent:
        """Return the latent parameters of some draws. This engine knows no nuggets."""
        weights = {role: np.asarray(drawn)[chosen] for role, drawn in self.draws.items()}
        if not self.priors:
            return self._functions(random, weights, inputs)
        found = []
        for k, draw in enumerate(chosen):
            priors = jax.tree.map(lambda a, draw=draw: np.asarray(a)[draw], self.priors)
            model = dataclasses.replace(self.model, priors=priors)
            own = {role: drawn[k : k + 1] for role, drawn in weights.items()}
            q = Posterior(model, self.inducing, {}, self.jitter)
            found.append(q._functions(random, own, inputs))
        return {role: np.concatenate([f[role] for f in found]) for role in self.model.priors}


class MixedPosterior(Posterior):
    """An even mixture of Gaussian posteriors, at K design points of the hyper-parameters.

    Its own hyper-parameters and weights are those of the mode. Sites have K as leading axis.
    """

    priors: dict[str, LMC] = eqx.field(default_factory=dict)
    mixed_weights: dict[str, Weights] = eqx.field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of design points."""
        return len(next(iter(self.priors.values())).mean)

    def _parts(self, sites: TrainingSites = None) -> Iterator[tuple[Posterior, TrainingSites]]:
        """Yield the posterior at every point, and its sites."""
        for k in range(self.count):
            trees = self.priors, self.mixed_weights, dict(sites or {})
            priors, weights, own = jax.tree.map(lambda a, k=k: np.asarray(a)[k], trees)
            model = dataclasses.replace(self.model, priors=priors)
            yield Posterior(model, self.inducing, weights, self.jitter), own

    def latent(self, inputs: Rows, sites: TrainingSites = None, cavity: bool = False) -> LatentPair:
        """Return means and variances of the mixture, by the laws of total mean and variance."""
        return _mixed([q.latent(inputs, own, cavity) for q, own in self._parts(sites)])

    def components(self, role: str, inputs: Rows) -> tuple[Float[np.ndarray, "Q N O"], ...]:
        """Return means and variances of each kernel's share of gamma - m."""
        return _mixed([q.components(role, inputs) for q, _ in self._parts()])

    def nodes(self, inputs: Rows, sites: TrainingSites = None, held: str | None = None) -> Nodes:
        """Return the nodes of all points: few of each, but at other places."""
        priors = self.model.priors
        varying = tuple(lmc.varies and role != held for role, lmc in priors.items())
        evenly = any(lmc.nugget is not None for lmc in self.model.priors.values())
        points, mass = shifted_grids(varying, self.count, evenly)
        parts = zip(points, self._parts(sites), strict=True)
        found = [q._nodes_at(own, inputs, at) for own, (q, at) in parts]
        values = {role: np.concatenate([f[role] for f, _ in found]) for role in priors}
        spread = None
        if held is not None:
            spread = np.concatenate([np.broadcast_to(v[held], f[held].shape) for f, v in found])
        return values, mass.reshape(-1) / self.count, spread

    def draw(self, random: Random, inputs: Rows, count: int, sites: TrainingSites = None) -> Latent:
        """Draw the latent parameters jointly: of every point equally many, in random order."""
        each = -(-count // self.count)
        order = random.permutation(self.count * each)[:count]
        found = [q.draw(random, inputs, each, own) for q, own in self._parts(sites)]
        return {r: np.concatenate([f[r] for f in found])[order] for r in self.model.priors}


def _mixed(found: list[Any]) -> tuple[Any, Any]:
    """Return the mean and variance of an even mixture, from those of its components."""
    means, variances = (
        jax.tree.map(lambda *a: np.stack(a), *part) for part in zip(*found, strict=True)
    )
    mean = jax.tree.map(lambda m: m.mean(axis=0), means)
    return mean, jax.tree.map(lambda m, v: v.mean(axis=0) + m.var(axis=0), means, variances)
