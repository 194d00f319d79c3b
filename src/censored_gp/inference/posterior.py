"""The posterior over latent weights: Eq. (9), (10), (15).

Engines return one of three kinds with one contract: a Gaussian over the whitened weights
(``natural`` and ``svi``), a mixture of such over hyper-parameters (``natural``), or draws of the
weights (``nuts``). All give latent moments, latent nodes (a discrete mixture that stands for the
distribution of the parameters at each row), and joint draws.

A Gaussian site exp(h gamma - Lambda gamma^2 / 2) stands for the likelihood of one cell. With a
nugget gamma = f + e, with e ~ N(0, c) independent over rows. Given the sites everything is
Gaussian, and e is integrated out row by row:

    site of f:         Lambda / w  and  h / w,                            w = 1 + c Lambda,
    gamma given f:     N((f + c h) / w, c / w),
    divergence of e:   (1 / w - 1 + log w + c E[(h - Lambda f)^2] / w^2) / 2.

So a nugget costs next to nothing; as a kernel (`White`) it would need an inducing input per row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from censored_gp.likelihoods.quadrature import grid, shifted_grids
from censored_gp.model.compilation import AnyArray, Inputs, Scalar, slices
from censored_gp.model.inducing import InducingInputs
from censored_gp.model.linalg import cholesky
from censored_gp.model.lmc import LMC, Geometry, features, geometry, left_out_covariance
from censored_gp.model.model import Latent, Model

ByBlock = Float[AnyArray, "... N D"]
"""One number for each block, row and output of a role."""
LEAST_REST = 1e-9
"""A cavity keeps at least this share of the precision of f."""
PREDICTION_NODES = {0: 1, 1: 32, 2: 16, 3: 10}
"""Nodes per parameter of a prediction, by how many vary: more than of the bound, as used once."""
MOST_JOINT_ROWS = 4000
"""What the features leave out is drawn jointly over at most this many rows (a Cholesky factor)."""


class Moments(NamedTuple):
    """Means and variances of latent values at the rows: of f, or of gamma = f + e."""

    mean: Float[AnyArray, "... N D"]
    variance: Float[AnyArray, "... N D"]


class Sites(NamedTuple):
    """Gaussian sites of one role: exp(h gamma - Lambda gamma^2 / 2) for each cell."""

    linear: Float[AnyArray, "B N D"]
    precision: Float[AnyArray, "B N D"]

    def marginal(self, nugget: ByBlock | None) -> Sites:
        """Return the sites of f: those of gamma = f + e with e integrated out."""
        if nugget is None:
            return self
        weight = 1.0 + nugget * self.precision
        return Sites(self.linear / weight, self.precision / weight)

    def with_nugget(self, f: Moments, nugget: ByBlock) -> Moments:
        """Return moments of gamma = f + e at cells with these sites."""
        weight = 1.0 + nugget * self.precision
        mean = (f.mean + nugget * self.linear) / weight
        return Moments(mean, f.variance / weight**2 + nugget / weight)

    def cavity(self, f: Moments, nugget: ByBlock) -> Moments:
        """Return leave-one-out (cavity) moments of gamma: q with the cell's own site removed."""
        linear, precision = self.marginal(nugget)
        rest = jnp.maximum(1.0 - precision * f.variance, LEAST_REST)
        return Moments((f.mean - f.variance * linear) / rest, f.variance / rest + nugget)

    def nugget_divergence(self, f: Moments, nugget: ByBlock) -> float:
        """Return the expected KL divergence of q(e | f) from the prior of e, over all cells."""
        weight = 1.0 + nugget * self.precision
        squared = (self.linear - self.precision * f.mean) ** 2 + self.precision**2 * f.variance
        terms = 1.0 / weight - 1.0 + np.log(weight) + nugget * squared / weight**2
        return 0.5 * float(np.sum(terms))

    def nugget_slope(self, f: Moments) -> tuple[ByBlock, ByBlock]:
        """Return the derivative of log Z in c, and the Fisher information of c, at each cell.

        These are the sites of f. With S the covariance of their pseudo-observations under the prior
        and alpha = S^-1 times the residuals they are (alpha^2 - S^-1_nn) / 2 and (S^-1_nn)^2 / 2.
        """
        alpha = self.linear - self.precision * f.mean
        inverse = self.precision - self.precision**2 * f.variance
        return 0.5 * (alpha**2 - inverse), 0.5 * inverse**2


TrainingSites = Mapping[str, Sites]
"""Sites of the training cells, by role. Only roles with a nugget need them, as noise of one row is
not in the features. Empty for new inputs."""


class Weights(NamedTuple):
    """q(v) of one role, block by block: W = R M weights, rank by rank."""

    mean: Float[AnyArray, "... W"]
    covariance: Float[AnyArray, "... W W"]

    def marginals(self, shape: Geometry) -> Moments:
        """Return mean and variance of f_d(x_n) under q: Eq. (9), (10), (15)."""
        mean = shape.mean[:, None] + shape.phi @ jnp.swapaxes(self.slopes(shape), 1, 2)
        inner = self.covariances(shape)[1]
        variance = jnp.sum((shape.phi[:, None] @ inner) * shape.phi[:, None], axis=3)
        return Moments(mean, jnp.maximum(jnp.swapaxes(variance, 1, 2), 0.0) + shape.left_out)

    def slopes(self, shape: Geometry) -> Float[Array, "B D M"]:
        """Return the mean of each output's coefficients of the features, loading_d * v."""
        blocks, _, rank, size = shape.loading.shape
        return jnp.einsum("bdrm,brm->bdm", shape.loading, self.mean.reshape(blocks, rank, size))

    def covariances(
        self, shape: Geometry
    ) -> tuple[Float[Array, "B D R M M"], Float[Array, "B D M M"]]:
        """Return the covariance of v with each output's coefficients, and that of these alone."""
        blocks, _, rank, size = shape.loading.shape
        square = self.covariance.reshape(blocks, rank, size, rank, size)
        # Sums over the few ranks one by one: a contraction so short takes far longer.
        a, ranks = shape.loading, range(rank)
        half = reduce(add, (a[:, :, None, None, s] * square[:, None, ..., s, :] for s in ranks))
        return half, reduce(add, (a[:, :, r, :, None] * half[:, :, r] for r in ranks))


def flat(by_block: ByBlock) -> Float[Array, "N O"]:
    """Put the outputs of all blocks of a role side by side."""
    return jnp.moveaxis(by_block, 0, 1).reshape(by_block.shape[1], -1)


def blocked(side_by_side: Float[AnyArray, "N O"], blocks: int) -> ByBlock:
    """Undo :func:`flat`."""
    return jnp.moveaxis(jnp.asarray(side_by_side).reshape(len(side_by_side), blocks, -1), 0, 1)


def functions_of(shape: Geometry, weights: Float[AnyArray, "S B W"]) -> Float[Array, "S B N D"]:
    """Return m + Psi v for given weights v."""
    blocks, _, rank, size = shape.loading.shape
    drawn = weights.reshape(-1, blocks, rank, size)
    values = jnp.einsum("bnm,bdrm,sbrm->sbnd", shape.phi, shape.loading, drawn)
    return values + shape.mean[:, None]


Drawn = Mapping[str, Float[AnyArray, "S B ..."]]
"""S draws of each role: of weights, or of values at the rows."""


class Noise(NamedTuple):
    """Random numbers of joint draws, made by numpy: JAX's generators take long to compile.

    Attributes
    ----------
    weights
        Standard normals (S, B, W) by role; or indices (S,) of stored draws.
    rest
        Standard normals for what the features leave out, by role and kernel.
    nugget
        Standard normals for the nuggets, by role.
    order
        Of a mixture, the order in which draws of its components are returned.
    """

    weights: Mapping[str, AnyArray]
    rest: Mapping[str, tuple[Float[AnyArray, "S B N R"], ...]]
    nugget: Mapping[str, Float[AnyArray, "S B N D"]]
    order: Int[AnyArray, "S"] | None = None


class Posterior(eqx.Module):
    """Fitted hyper-parameters with q(v) = N(mean, covariance) for every role that varies.

    Attributes
    ----------
    sites
        Sites of the training cells, of the roles that have a nugget.
    """

    model: Model
    inducing: dict[str, InducingInputs]
    weights: dict[str, Weights]
    jitter: Scalar
    sites: TrainingSites = eqx.field(default_factory=dict)

    def _geometry(self, role: str, inputs: Inputs) -> Geometry:
        """Compute features at new inputs."""
        lmc, inducing = self.model.priors[role], self.inducing[role]
        return geometry(lmc, inducing, jnp.asarray(inputs), self.jitter)

    def latent(
        self, inputs: Inputs, sites: TrainingSites | None = None, cavity: bool = False
    ) -> tuple[Latent, Latent]:
        """Return means and variances of the latent parameters at the inputs.

        ``sites`` are those of the cells at the inputs, if these are training cells. With ``cavity``
        the moments of families with nuggets are those without the cell's own site.
        """
        mean, variance = {}, {}
        for role, lmc in self.model.priors.items():
            if lmc.varies:
                shape = self._geometry(role, inputs)
                alone = [cavity and self.model.likelihoods[d].nugget for d in lmc.outputs]
                leave_out = np.reshape(alone, np.shape(lmc.mean))[:, None]
                moments = self.weights[role].marginals(shape)
                own = (sites or {}).get(role)
                if shape.nugget is not None and own is None:
                    moments = moments._replace(variance=moments.variance + shape.nugget)
                elif shape.nugget is not None and own is not None:
                    f = moments._replace(variance=moments.variance - shape.left_out)
                    without = own.cavity(f, shape.nugget)
                    both = zip(without, own.with_nugget(f, shape.nugget), strict=True)
                    moments = Moments(*(jnp.where(leave_out, *pair) for pair in both))
                    moments = moments._replace(variance=moments.variance + shape.left_out)
                mean[role], variance[role] = map(flat, moments)
            else:
                mean[role] = lmc.constant(len(inputs))
                variance[role] = jnp.zeros_like(mean[role])
        return mean, variance

    def components(
        self, role: str, inputs: Inputs
    ) -> tuple[Float[Array, "Q N O"], Float[Array, "Q N O"]]:
        """Return means and variances of the terms of Eq. (4): each kernel's share of gamma - m."""
        lmc, inducing, q = self.model.priors[role], self.inducing[role], self.weights[role]
        rest = features(lmc, inducing, jnp.asarray(inputs), self.jitter).rest
        shape, start, found = self._geometry(role, inputs), 0, []
        blocks, _, rank, size = shape.loading.shape
        mean = q.mean.reshape(blocks, rank, size)
        square = q.covariance.reshape(blocks, rank, size, rank, size)
        for k, (variance, z) in enumerate(zip(lmc.variances, inducing, strict=True)):
            columns = slice(start, start := start + len(z.mask))
            centre = mean[..., columns].reshape(blocks, -1)
            spread = square[:, :, columns, :, columns].reshape(*centre.shape, centre.shape[1])
            left_out = rest[:, :, k, None] * jnp.asarray(variance)[:, None]
            own = shape.phi[..., columns], shape.loading[..., columns]
            part = Geometry(*own, jnp.zeros_like(shape.mean), left_out)
            found.append(Weights(centre, spread).marginals(part))
        means, variances = zip(*found, strict=True)
        return jnp.stack([flat(m) for m in means]), jnp.stack([flat(v) for v in variances])

    def nodes(
        self, inputs: Inputs, sites: TrainingSites | None = None
    ) -> tuple[Latent, Float[Array, "S"]]:
        """Return latent values (S, N, O) by role and their weights: quadrature of Eq. (14).

        With a nugget q may be wide, and the likelihood of the cell itself far from Gaussian. Such
        training cells have the nodes of their cavity, to be reweighted by their likelihood.
        """
        priors = self.model.priors.values()
        varying = tuple(lmc.varies for lmc in priors)
        evenly = any(lmc.nugget is not None for lmc in priors)
        points, mass = grid(varying, PREDICTION_NODES[sum(varying)], evenly)
        return self._nodes_at(points, inputs, sites), jnp.asarray(mass)

    def _nodes_at(
        self, points: Float[AnyArray, "S J"], inputs: Inputs, sites: TrainingSites | None
    ) -> Latent:
        """Return latent values at standardised nodes of the roles."""
        mean, variance = self.latent(inputs, sites, cavity=True)
        return {
            role: mean[role] + points[:, i, None, None] * jnp.sqrt(variance[role])
            for i, role in enumerate(self.model.priors)
        }

    def noise(self, random: np.random.Generator, rows: int, count: int) -> Noise:
        """Make the random numbers for ``count`` draws at ``rows`` rows.

        Those of the weights come first: for one seed they are the same at any rows.
        """
        priors, normal = self.model.priors, random.standard_normal
        weights = self._weight_noise(random, count)
        rest = {
            role: tuple(normal((count, len(a), rows, np.shape(a)[2])) for a in lmc.mixing)
            for role, lmc in priors.items()
            if lmc.varies
        }
        nugget = {
            role: normal((count, len(lmc.mean), rows, np.shape(lmc.mean)[1]))
            for role, lmc in priors.items()
            if lmc.nugget is not None
        }
        return Noise(weights, rest, nugget)

    def draw(
        self, noise: Noise, inputs: Inputs, count: int, sites: TrainingSites | None = None
    ) -> Latent:
        """Draw the latent parameters jointly over rows and outputs."""
        rest = {role: self._left_out(role, inputs, normals) for role, normals in noise.rest.items()}
        weights = self._drawn_weights(noise.weights)
        return self._functions((weights, rest, noise.nugget), inputs, count, sites or {})

    def _functions(
        self, parts: tuple[Drawn, Drawn, Drawn], inputs: Inputs, count: int, sites: TrainingSites
    ) -> Latent:
        """Return latent parameters from weights, values of e, and normals of the nuggets."""
        found, (weights, rest, nugget) = {}, parts
        for role, lmc in self.model.priors.items():
            if not lmc.varies:
                constant = lmc.constant(len(inputs))
                found[role] = jnp.broadcast_to(constant, (count, *constant.shape))
                continue
            shape = self._geometry(role, inputs)
            drawn = functions_of(shape, weights[role])
            if role in nugget:
                gamma = Moments(drawn, jnp.asarray(shape.nugget))
                if role in sites:
                    gamma = sites[role].with_nugget(Moments(drawn, jnp.zeros(())), gamma.variance)
                drawn = gamma.mean + jnp.sqrt(gamma.variance) * nugget[role]
            found[role] = jax.vmap(flat)(drawn + rest[role])
        return found

    def _left_out(
        self, role: str, inputs: Inputs, normals: tuple[Float[AnyArray, "S B N R"], ...]
    ) -> Float[Array, "S B N D"]:
        """Return sum_q sum_i a_{q,i} e_{q,i}, joint over `MOST_JOINT_ROWS` rows at a time."""
        lmc, drawn = self.model.priors[role], []
        for rows in slices(len(inputs), MOST_JOINT_ROWS):
            stretch = jnp.asarray(inputs)[rows]
            covariances = left_out_covariance(lmc, self.inducing[role], stretch, self.jitter)
            terms = zip(covariances, normals, lmc.mixing, strict=True)
            values = ((cholesky(c) @ e[:, :, rows]) @ jnp.swapaxes(a, 1, 2) for c, e, a in terms)
            drawn.append(reduce(add, values))
        return jnp.concatenate(drawn, axis=2)

    def _weight_noise(self, random: np.random.Generator, count: int) -> dict[str, AnyArray]:
        """Make standard normals for the weights of every role that varies."""
        return {
            role: random.standard_normal((count, *np.shape(q.mean)))
            for role, q in self.weights.items()
        }

    def _drawn_weights(self, noise: Mapping[str, AnyArray]) -> Drawn:
        """Draw the weights of every role that varies from q, in which roles are independent."""
        # q's covariance is the inverse of I + something positive: no jitter is needed.
        return {
            role: q.mean
            + jnp.einsum("bwu,sbu->sbw", cholesky(jnp.asarray(q.covariance)), noise[role])
            for role, q in self.weights.items()
        }


class DrawnPosterior(Posterior):
    """S draws of the weights, and of the hyper-parameters if these were sampled as well.

    Its Gaussian part has the moments of the weights. What the features leave out is drawn by the
    hyper-parameters of the mode.
    """

    draws: dict[str, Float[Array, "S B W"]] = eqx.field(default_factory=dict)
    priors: dict[str, LMC] = eqx.field(default_factory=dict)

    @classmethod
    def from_chains(
        cls, fitted: Posterior, weights: Drawn, priors: dict[str, LMC] | None = None
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
        return cls(*own, draws=draws, priors=joined)

    def latent(
        self, inputs: Inputs, sites: TrainingSites | None = None, cavity: bool = False
    ) -> tuple[Latent, Latent]:
        """Return means and variances of the latent parameters at the inputs."""
        if not self.priors:
            return super().latent(inputs, sites, cavity)
        values, _ = self.nodes(inputs)
        mean, variance = ({r: f(v, axis=0) for r, v in values.items()} for f in (jnp.mean, jnp.var))
        return mean, variance

    def nodes(
        self, inputs: Inputs, sites: TrainingSites | None = None
    ) -> tuple[Latent, Float[Array, "S"]]:
        """Return the latent values of every draw, all of equal weight.

        A node is about one row at a time, so what the features leave out need not be joint.
        """
        count, rest = len(next(iter(self.draws.values()))), {}
        keys = jax.random.split(jax.random.key(0), len(self.draws))
        for role, key in zip(self.draws, keys, strict=True):
            left_out = self._geometry(role, inputs).left_out
            rest[role] = jnp.sqrt(left_out) * jax.random.normal(key, (count, *left_out.shape))
        return self._at(np.arange(count), rest, inputs), jnp.full(count, 1.0 / count)

    def draw(
        self, noise: Noise, inputs: Inputs, count: int, sites: TrainingSites | None = None
    ) -> Latent:
        """Return the latent parameters of the draws that were picked."""
        rest = {role: self._left_out(role, inputs, normals) for role, normals in noise.rest.items()}
        return self._at(next(iter(noise.weights.values())), rest, inputs)

    def _at(self, chosen: Int[AnyArray, "K"], rest: Drawn, inputs: Inputs) -> Latent:
        """Return the latent parameters of some draws. This engine knows no nuggets."""
        weights = self._drawn_weights(dict.fromkeys(self.draws, chosen))
        if not self.priors:
            return self._functions((weights, rest, {}), inputs, len(chosen), {})
        priors = jax.tree.map(lambda drawn: jnp.asarray(drawn)[chosen], self.priors)

        def one(part: Any) -> Latent:
            priors, *others = part
            model = dataclasses.replace(self.model, priors=priors)
            own = jax.tree.map(lambda a: a[None], others)
            q = Posterior(model, self.inducing, {}, self.jitter)
            return jax.tree.map(lambda a: a[0], q._functions((*own, {}), inputs, 1, {}))

        return jax.lax.map(one, (priors, weights, dict(rest)))

    def _weight_noise(self, random: np.random.Generator, count: int) -> dict[str, AnyArray]:
        """Pick draws at random, the same for all roles: these are dependent.

        No draw is picked again before every other one has been.
        """
        number = len(next(iter(self.draws.values())))
        rounds = [random.permutation(number) for _ in range(1 + count // number)]
        return dict.fromkeys(self.draws, np.concatenate(rounds)[:count])

    def _drawn_weights(self, noise: Mapping[str, AnyArray]) -> Drawn:
        """Return the draws that were picked."""
        return {role: jnp.asarray(drawn)[noise[role]] for role, drawn in self.draws.items()}


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

    def _over(self, ask: Callable[..., Any], sites: TrainingSites | None, *others: Any) -> Any:
        """Call a function of the posterior and sites at every point, and of others' parts."""

        def at(part: Any) -> Any:
            priors, weights, own, *rest = part
            model = dataclasses.replace(self.model, priors=priors)
            return ask(Posterior(model, self.inducing, weights, self.jitter), own, *rest)

        return jax.lax.map(at, (self.priors, self.mixed_weights, dict(sites or {}), *others))

    def latent(
        self, inputs: Inputs, sites: TrainingSites | None = None, cavity: bool = False
    ) -> tuple[Latent, Latent]:
        """Return means and variances of the mixture, by the laws of total mean and variance."""
        return self._moments(self._over(lambda q, own: q.latent(inputs, own, cavity), sites))

    def components(
        self, role: str, inputs: Inputs
    ) -> tuple[Float[Array, "Q N O"], Float[Array, "Q N O"]]:
        """Return means and variances of each kernel's share of gamma - m."""
        return self._moments(self._over(lambda q, _: q.components(role, inputs), None))

    def _moments(self, found: tuple[Any, Any]) -> tuple[Any, Any]:
        mean = jax.tree.map(lambda m: jnp.mean(m, axis=0), found[0])
        return mean, jax.tree.map(lambda m, v: jnp.mean(v, axis=0) + jnp.var(m, axis=0), *found)

    def nodes(
        self, inputs: Inputs, sites: TrainingSites | None = None
    ) -> tuple[Latent, Float[Array, "S"]]:
        """Return the nodes of all points: few of each, but at other places."""
        varying = tuple(lmc.varies for lmc in self.model.priors.values())
        evenly = any(lmc.nugget is not None for lmc in self.model.priors.values())
        points, mass = shifted_grids(varying, self.count, evenly)

        def ask(q: Posterior, own: TrainingSites, points: Float[Array, "S J"]) -> Latent:
            return q._nodes_at(points, inputs, own)

        found = self._over(ask, sites, jnp.asarray(points))
        values = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)
        return values, jnp.asarray(mass).reshape(-1) / self.count

    def noise(self, random: np.random.Generator, rows: int, count: int) -> Noise:
        """Make the random numbers: of every point equally many draws, in random order."""
        each = -(-count // self.count)
        order = random.permutation(self.count * each)[:count]
        return super().noise(random, rows, self.count * each)._replace(order=order)

    def draw(
        self, noise: Noise, inputs: Inputs, count: int, sites: TrainingSites | None = None
    ) -> Latent:
        """Draw the latent parameters jointly; what the features leave out is as at the mode."""
        each = -(-count // self.count)
        rest = {role: self._left_out(role, inputs, normals) for role, normals in noise.rest.items()}
        split = lambda a: jnp.asarray(a).reshape(self.count, each, *np.shape(a)[1:])  # noqa: E731
        parts = jax.tree.map(split, (dict(noise.weights), rest, dict(noise.nugget)))

        def ask(q: Posterior, own: TrainingSites, parts: tuple[Drawn, Drawn, Drawn]) -> Latent:
            drawn = q._drawn_weights(parts[0])
            return q._functions((drawn, *parts[1:]), inputs, each, own)

        found = self._over(ask, sites, parts)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[noise.order], found)
