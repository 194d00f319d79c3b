"""What is known after the fit: a distribution over the latent weights, Eq. (9), (10), (15).

Two kinds share one contract: a Gaussian over the weights (engines ``natural`` and ``svi``) and
draws of the weights (engine ``nuts``). Both give latent moments, latent nodes (a discrete mixture
that stands for the distribution of the parameters at each row), and joint draws.

Gaussian sites, and what they say where part of a latent value belongs to its row alone.

A site stands for what an observation says of its latent value, exp(h gamma - Lambda gamma^2 / 2).
With a nugget the latent value is gamma = f + e, of a function f and of e ~ N(0, c) that no other
row shares. Given the sites everything is Gaussian, and e can be integrated out row by row:

    the site of f itself:   Lambda / w  and  h / w,                          w = 1 + c Lambda,
    gamma given f:          N((f + c h) / w, c / w),
    divergence of e:        (1 / w - 1 + log w + c E[(h - Lambda f)^2] / w^2) / 2.

So a nugget costs next to nothing. As a kernel (`White`) it would need an inducing input at every
row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from censored_gp.likelihoods.quadrature import grid
from censored_gp.model.compilation import AnyArray
from censored_gp.model.inducing import Inducing
from censored_gp.model.linalg import cholesky
from censored_gp.model.lmc import LMC, Geometry, features, geometry, left_out_covariance
from censored_gp.model.model import Model

LEAST_REST = 1e-9
"""Share of what is known of f that is at least owed to other cells, or to the prior."""


class Sites(NamedTuple):
    """Gaussian sites of one role: exp(h gamma - Lambda gamma^2 / 2) for each cell."""

    linear: Float[AnyArray, "B N D"]
    precision: Float[AnyArray, "B N D"]


class Spread(NamedTuple):
    """Means and variances of latent values at the rows: of f, or of gamma with its nugget."""

    mean: Float[Array, "... B N D"]
    variance: Float[Array, "... B N D"]


def of_functions(sites: Sites, nugget: Float[Array, "B N D"] | None) -> Sites:
    """Return what sites of gamma = f + e say of f; the nugget is given by its variance."""
    if nugget is None:
        return sites
    weight = 1.0 + nugget * sites.precision
    return Sites(sites.linear / weight, sites.precision / weight)


def with_nugget(f: Spread, sites: Sites, nugget: Float[Array, "B N D"]) -> Spread:
    """Return means and variances of gamma = f + e where it has sites."""
    weight = 1.0 + nugget * sites.precision
    mean = (f.mean + nugget * sites.linear) / weight
    return Spread(mean, f.variance / weight**2 + nugget / weight)


def before_seen(f: Spread, sites: Sites, nugget: Float[Array, "B N D"]) -> Spread:
    """Return means and variances of gamma = f + e by all that was seen but the cell itself."""
    own = of_functions(sites, nugget)
    rest = jnp.maximum(1.0 - own.precision * f.variance, LEAST_REST)
    return Spread((f.mean - f.variance * own.linear) / rest, f.variance / rest + nugget)


def nugget_divergence(f: Spread, sites: Sites, nugget: Float[Array, "B N D"]) -> Float[Array, ""]:
    """Return the divergence of e from its prior given f, in the mean over f, of all rows."""
    weight = 1.0 + nugget * sites.precision
    residual = sites.linear - sites.precision * f.mean
    squared = residual**2 + sites.precision**2 * f.variance
    return 0.5 * jnp.sum(1.0 / weight - 1.0 + jnp.log(weight) + nugget * squared / weight**2)


def nugget_slope(
    f: Spread, sites: Sites, nugget: Float[Array, "B N D"]
) -> tuple[Float[Array, "B N D"], Float[Array, "B N D"]]:
    """Return the slope in c of log Z, the evidence of the sites, and what each row tells of its c.

    With S the covariance of sites under the prior, and alpha = S^-1 times their distance from the
    mean, these are (alpha^2 - S^-1_nn) / 2 and (S^-1_nn)^2 / 2.
    """
    own = of_functions(sites, nugget)
    alpha = jnp.asarray(own.linear - own.precision * f.mean)
    inverse = jnp.asarray(own.precision - own.precision**2 * f.variance)
    return 0.5 * (alpha**2 - inverse), 0.5 * inverse**2


PREDICTION_NODES = {0: 1, 1: 32, 2: 16, 3: 10}
"""Nodes per varying parameter in a prediction: more than in the bound, as they are used once."""


MOST_JOINT_ROWS = 4000
"""Rows whose left-out parts are drawn jointly: their covariances are factorised. Rows of different
stretches still share all that the features carry."""


Latent = dict[str, Float[Array, "... N O"]]
"""Latent values by role, the role's outputs side by side."""


Seen = Mapping[str, Sites]
"""What was seen of cells themselves, by role, of the roles that have a nugget: a nugget is no other
row's, so that features know nothing of it. Empty at inputs that are new."""


class Weights(NamedTuple):
    """q(v) of one role, block by block: W = R M weights, rank by rank."""

    mean: Float[Array, "B W"]
    covariance: Float[Array, "B W W"]


def marginals(
    shape: Geometry, weights: Weights
) -> tuple[Float[Array, "B N D"], Float[Array, "B N D"]]:
    """Return mean and variance of gamma_d(x_n) under q."""
    mean = shape.mean[:, None] + shape.phi @ jnp.swapaxes(output_slopes(shape, weights), 1, 2)
    inner = output_covariances(shape, weights)[1]
    spread = jnp.sum((shape.phi[:, None] @ inner) * shape.phi[:, None], axis=3)
    return mean, jnp.maximum(jnp.swapaxes(spread, 1, 2), 0.0) + shape.left_out


def output_slopes(shape: Geometry, weights: Weights) -> Float[Array, "B D M"]:
    """Return the mean of the factors by which each output sees the features."""
    blocks, _, rank, size = shape.loading.shape
    return jnp.einsum("bdrm,brm->bdm", shape.loading, weights.mean.reshape(blocks, rank, size))


def output_covariances(
    shape: Geometry, weights: Weights
) -> tuple[Float[Array, "B D R M M"], Float[Array, "B D M M"]]:
    """Return the covariance of the weights with each output's factors, and that of the factors."""
    blocks, _, rank, size = shape.loading.shape
    square = weights.covariance.reshape(blocks, rank, size, rank, size)
    # Sums over the few ranks one by one: a contraction so short takes far longer.
    loading, each = shape.loading, range(rank)
    half = reduce(add, (loading[:, :, None, None, s] * square[:, None, ..., s, :] for s in each))
    return half, reduce(add, (loading[:, :, r, :, None] * half[:, :, r] for r in each))


def latent_marginals(
    shape: Geometry, weights: Weights, seen: Sites | None, before: Bool[np.ndarray, "B D"]
) -> tuple[Float[Array, "B N D"], Float[Array, "B N D"]]:
    """Return mean and variance of gamma_d(x_n) under q, of cells that were seen or of new ones.

    Of some outputs `before` the cell itself was seen.
    """
    mean, variance = marginals(shape, weights)
    if shape.nugget is None:
        return mean, variance
    if seen is None:
        return mean, variance + shape.nugget
    f = Spread(mean, variance - shape.left_out)
    both = before_seen(f, seen, shape.nugget), with_nugget(f, seen, shape.nugget)
    mean, variance = (jnp.where(before[:, None], *each) for each in zip(*both, strict=True))
    return mean, variance + shape.left_out


def nugget_values(
    shape: Geometry,
    functions: Float[Array, "S B N D"],
    seen: Sites | None,
    normals: Float[AnyArray, "S B N D"],
) -> Float[Array, "S B N D"]:
    """Return gamma for drawn functions without what the features leave out: a nugget is added."""
    nugget = jnp.asarray(shape.nugget)
    if seen is None:
        return functions + jnp.sqrt(nugget) * normals
    own = with_nugget(Spread(functions, jnp.zeros(())), seen, nugget)
    return own.mean + jnp.sqrt(own.variance) * normals


def kernel_marginals(
    shape: Geometry, weights: Weights, columns: slice, left_out: Float[Array, "B N D"]
) -> tuple[Float[Array, "B N D"], Float[Array, "B N D"]]:
    """Return mean and variance of one kernel's share of gamma: its features' columns alone."""
    blocks, _, rank, size = shape.loading.shape
    mean = weights.mean.reshape(blocks, rank, size)[..., columns]
    square = weights.covariance.reshape(blocks, rank, size, rank, size)
    square = square[:, :, columns, :, columns]
    own = mean.shape[1] * mean.shape[2]
    part = Weights(mean.reshape(blocks, own), square.reshape(blocks, own, own))
    phi, loading = shape.phi[..., columns], shape.loading[..., columns]
    return marginals(Geometry(phi, loading, jnp.zeros_like(shape.mean), left_out), part)


def flat(blocked: Float[Array, "B N D"]) -> Float[Array, "N O"]:
    """Put the outputs of all blocks of a role side by side."""
    return jnp.moveaxis(blocked, 0, 1).reshape(blocked.shape[1], -1)


def functions_of(
    shape: Geometry, weights: Float[Array, "S B W"], rest: Float[Array, "#S B N D"]
) -> Float[Array, "S N O"]:
    """Return gamma for given weights, and given values of what the features leave out."""
    return jax.vmap(flat)(carried(shape, weights) + rest)


def carried(shape: Geometry, weights: Float[Array, "S B W"]) -> Float[Array, "S B N D"]:
    """Return what the features make of given weights."""
    blocks, _, rank, size = shape.loading.shape
    drawn = weights.reshape(-1, blocks, rank, size)
    values = jnp.einsum("bnm,bdrm,sbrm->sbnd", shape.phi, shape.loading, drawn)
    return values + shape.mean[:, None]


def left_out_values(
    lmc: LMC,
    covariances: tuple[Float[Array, "B N N"], ...],
    normals: tuple[Float[AnyArray, "S B N R"], ...],
) -> Float[Array, "S B N D"]:
    """Return what the features leave out, joint over rows and outputs: sum_q sum_i a e_{q,i}."""
    parts = zip(covariances, normals, lmc.mixing, strict=True)
    return reduce(add, ((cholesky(c) @ e) @ jnp.swapaxes(a, 1, 2) for c, e, a in parts))


class Noise(NamedTuple):
    """The random numbers of joint draws: made by the host, as generators take long to compile."""

    weights: Mapping[str, AnyArray]
    """Standard normals (S, B, W) by role; or which of the draws that were kept (S,)."""
    rest: Mapping[str, tuple[Float[AnyArray, "S B N R"], ...]]
    """Standard normals for what the features leave out, by role and kernel."""
    nugget: Mapping[str, Float[AnyArray, "S B N D"]]
    """Standard normals for the nuggets, by role."""


class Posterior(eqx.Module):
    """Fitted hyper-parameters with q(v) = N(mean, covariance) for every role that varies."""

    model: Model
    inducing: dict[str, tuple[Inducing, ...]]
    weights: dict[str, Weights]
    jitter: Float[np.ndarray, ""]
    sites: Seen = eqx.field(default_factory=dict)
    """What was seen of the training cells, of the roles that have a nugget."""

    def _geometry(self, role: str, inputs: Float[AnyArray, "N C"]) -> Geometry:
        """Compute features at new inputs."""
        return geometry(
            self.model.priors[role], self.inducing[role], jnp.asarray(inputs), self.jitter
        )

    def latent(
        self, inputs: Float[AnyArray, "N C"], seen: Seen | None = None, before: bool = False
    ) -> tuple[Latent, Latent]:
        """Return means and variances of the latent parameters at the inputs.

        Of families with nuggets, if asked for, `before` the cells themselves were seen.
        """
        mean, variance = {}, {}
        for role, lmc in self.model.priors.items():
            if lmc.varies:
                shape = self._geometry(role, inputs)
                alone = np.array([before and self.model.likelihoods[d].nugget for d in lmc.outputs])
                of_cells = (seen or {}).get(role), alone.reshape(np.shape(lmc.mean))
                both = latent_marginals(shape, self.weights[role], *of_cells)
                mean[role], variance[role] = (flat(part) for part in both)
            else:
                mean[role] = lmc.constant(len(inputs))
                variance[role] = jnp.zeros_like(mean[role])
        return mean, variance

    def components(
        self, role: str, inputs: Float[AnyArray, "N C"]
    ) -> tuple[Float[Array, "Q N O"], Float[Array, "Q N O"]]:
        """Return means and variances of the terms of Eq. (4): each kernel's share of gamma - m."""
        lmc, inducing = self.model.priors[role], self.inducing[role]
        rest = features(lmc, inducing, jnp.asarray(inputs), self.jitter).rest
        shape, start, found = self._geometry(role, inputs), 0, []
        for q, (mixing, z) in enumerate(zip(lmc.mixing, inducing, strict=True)):
            columns = slice(start, start := start + len(z.mask))
            left_out = rest[:, :, q, None] * jnp.sum(jnp.asarray(mixing) ** 2, axis=2)[:, None]
            found.append(kernel_marginals(shape, self.weights[role], columns, left_out))
        means, variances = zip(*found, strict=True)
        return jnp.stack([flat(m) for m in means]), jnp.stack([flat(v) for v in variances])

    def nodes(
        self, inputs: Float[AnyArray, "N C"], seen: Seen | None = None
    ) -> tuple[Latent, Float[Array, "S"]]:
        """Return latent values (S, N, O) by role and their weights: quadrature of Eq. (14).

        With a nugget q may be wide, and what was seen of a cell itself far from Gaussian. Such
        cells have their nodes `before` that; they are to be weighed by it.
        """
        roles, priors = list(self.model.priors), self.model.priors.values()
        varying = tuple(lmc.varies for lmc in priors)
        evenly = any(lmc.nugget is not None for lmc in priors)
        points, mass = grid(varying, PREDICTION_NODES[sum(varying)], evenly)
        mean, variance = self.latent(inputs, seen, before=True)
        spread = {
            role: mean[role] + points[:, i, None, None] * jnp.sqrt(variance[role])
            for i, role in enumerate(roles)
        }
        return spread, jnp.asarray(mass)

    def noise(self, random: np.random.Generator, rows: int, count: int) -> Noise:
        """Make the random numbers for so many draws at so many rows.

        Those of the weights come first: for one seed they are the same at any rows.
        """
        weights = self._weight_noise(random, count)
        rest = {
            role: tuple(
                random.standard_normal((count, len(a), rows, np.shape(a)[2])) for a in lmc.mixing
            )
            for role, lmc in self.model.priors.items()
            if lmc.varies
        }
        nugget = {
            role: random.standard_normal((count, len(lmc.mean), rows, np.shape(lmc.mean)[1]))
            for role, lmc in self.model.priors.items()
            if lmc.nugget is not None
        }
        return Noise(weights, rest, nugget)

    def draw(
        self, noise: Noise, inputs: Float[AnyArray, "N C"], count: int, seen: Seen | None = None
    ) -> Latent:
        """Draw the latent parameters jointly over rows and outputs."""
        rest = {
            role: self._left_out(role, jnp.asarray(inputs), normals)
            for role, normals in noise.rest.items()
        }
        weights = self._drawn_weights(noise.weights)
        return self._functions(weights, inputs, rest, count, noise.nugget, seen or {})

    def _functions(
        self,
        weights: dict[str, Float[Array, "S B W"]],
        inputs: Float[AnyArray, "N C"],
        rest: dict[str, Float[Array, "S B N D"]],
        count: int,
        nugget: Mapping[str, Float[AnyArray, "S B N D"]],
        seen: Seen,
    ) -> Latent:
        """Return the latent parameters for given weights, and given values of what is left out."""
        found = {}
        for role, lmc in self.model.priors.items():
            if lmc.varies:
                shape = self._geometry(role, inputs)
                drawn = carried(shape, weights[role])
                if role in nugget:
                    drawn = nugget_values(shape, drawn, seen.get(role), nugget[role])
                found[role] = jax.vmap(flat)(drawn + rest[role])
            else:
                constant = lmc.constant(len(inputs))
                found[role] = jnp.broadcast_to(constant, (count, *constant.shape))
        return found

    def _left_out(
        self,
        role: str,
        inputs: Float[Array, "N C"],
        normals: tuple[Float[AnyArray, "S B N R"], ...],
    ) -> Float[Array, "S B N D"]:
        """Return values of what the features leave out, stretch by stretch of many rows."""
        lmc, parts = self.model.priors[role], []
        for start in range(0, len(inputs), MOST_JOINT_ROWS):
            rows = slice(start, start + MOST_JOINT_ROWS)
            covariances = left_out_covariance(lmc, self.inducing[role], inputs[rows], self.jitter)
            own = tuple(normal[:, :, rows] for normal in normals)
            parts.append(left_out_values(lmc, covariances, own))
        return jnp.concatenate(parts, axis=2)

    def _weight_noise(self, random: np.random.Generator, count: int) -> dict[str, AnyArray]:
        """Make standard normals for the weights of every role that varies."""
        return {
            role: random.standard_normal((count, *np.shape(q.mean)))
            for role, q in self.weights.items()
        }

    def _drawn_weights(self, noise: Mapping[str, AnyArray]) -> dict[str, Float[Array, "S B W"]]:
        """Draw the weights of every role that varies from q, in which roles are independent."""
        drawn = {}
        for role, (mean, covariance) in self.weights.items():
            # q's covariance is the inverse of I + something positive: no jitter is needed.
            drawn[role] = mean + jnp.einsum("bwu,sbu->sbw", cholesky(covariance), noise[role])
        return drawn


class DrawnPosterior(Posterior):
    """Fitted hyper-parameters with S draws of the weights; the Gaussian part is their moments."""

    draws: dict[str, Float[Array, "S B W"]] = eqx.field(default_factory=dict)

    def nodes(
        self, inputs: Float[AnyArray, "N C"], seen: Seen | None = None
    ) -> tuple[Latent, Float[Array, "S"]]:
        """Return the latent values of every draw, all of equal weight.

        A node is about one row at a time, so what the features leave out need not be joint.
        """
        kept = {role: jnp.asarray(draws) for role, draws in self.draws.items()}
        count, rest = len(next(iter(kept.values()))), {}
        for role, key in zip(kept, jax.random.split(jax.random.key(0), len(kept)), strict=True):
            left_out = self._geometry(role, inputs).left_out
            rest[role] = jnp.sqrt(left_out) * jax.random.normal(key, (count, *left_out.shape))
        # This engine knows no nuggets.
        latent = self._functions(kept, inputs, rest, count, {}, {})
        return latent, jnp.full(count, 1.0 / count)

    def _weight_noise(self, random: np.random.Generator, count: int) -> dict[str, AnyArray]:
        """Pick among the draws at random, the same ones for all roles: these are not independent.

        No draw is picked again before every other one has been.
        """
        number = len(next(iter(self.draws.values())))
        rounds = [random.permutation(number) for _ in range(1 + count // number)]
        return dict.fromkeys(self.draws, np.concatenate(rounds)[:count])

    def _drawn_weights(self, noise: Mapping[str, AnyArray]) -> dict[str, Float[Array, "S B W"]]:
        """Return the draws that were picked."""
        return {role: jnp.asarray(kept)[noise[role]] for role, kept in self.draws.items()}
