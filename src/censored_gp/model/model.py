"""The model: a likelihood for each output, a linear model of coregionalization for each role.

The six models of the paper are settings of :class:`Design`, not classes:

| name   | roles that vary | coupled | bounds used |
|--------|-----------------|---------|-------------|
| NCGP   | mean            | no      | no          |
| MONCGP | mean            | yes     | no          |
| CGP    | mean            | no      | yes         |
| HCGP   | all             | no      | yes         |
| MOCGP  | mean            | yes     | yes         |
| HMOCGP | all             | yes     | yes         |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from censored_gp.data.observations import Observations, read_only
from censored_gp.kernels.base import Kernel
from censored_gp.likelihoods import Likelihood
from censored_gp.model.compilation import Rows, float64
from censored_gp.model.inducing import Inducing, InducingInputs, greedy_inducing
from censored_gp.model.lmc import LMC, flat, geometry, scale_lengthscales

Latent = dict[str, Any]
"""Latent values by role, the outputs of all blocks side by side."""
MOST_LATENT = 3
"""A kernel has at most this many latent functions of up to ten outputs, where no rank was chosen;
one more of up to a hundred, and so on."""
MOST_OWN = 12
"""A function that each output has of its own has at most this many inducing inputs."""
MARGIN = 100.0
"""Half the lengthscales leave out at least this many times the variance, even for Matern 5/2."""


class Cycle(NamedTuple):
    """The cycle over which the nugget of a mean may change; one bump is a constant nugget."""

    column: int = 0
    period: float = 1.0
    bumps: int = 1


@dataclasses.dataclass(frozen=True)
class Design:
    """What a model consists of: likelihoods, kernels and couplings by role.

    Attributes
    ----------
    kernels
        The Q kernels of each role; an empty tuple makes the role a learned constant.
    coupled
        Whether outputs share latent functions, for all roles or by role.
    rank
        R_q of every kernel, or by role (one number, or one for each kernel). None: as many as there
        are outputs, at most `MOST_LATENT`, and one more with every power of ten outputs.
    nugget
        Cycle of the nuggets of means, for the families that ask for one; None: no nuggets.
    own
        Kernels of the means of which each output has a function of its own.
    own_inputs
        Columns of the inputs that each output has of its own, as many for every output.
    panel
        A design with such functions, to be tried as well.
    """

    likelihoods: tuple[Likelihood, ...]
    kernels: dict[str, tuple[Kernel, ...]]
    coupled: bool | Mapping[str, bool] = True
    rank: int | Mapping[str, int | Sequence[int]] | None = None
    nugget: Cycle | None = None
    own: tuple[int, ...] = ()
    own_inputs: tuple[tuple[int, ...], ...] = ()
    panel: Design | None = None

    def is_coupled(self, role: str) -> bool:
        """Whether the outputs of a role share latent functions."""
        given = self.coupled
        return bool(given.get(role, True) if isinstance(given, Mapping) else given)

    def ranks(self, role: str, outputs: int) -> tuple[int, ...]:
        """Return R_q for each kernel of a role."""
        given = self.rank.get(role) if isinstance(self.rank, Mapping) else self.rank
        count = len(self.kernels.get(role, ()))
        each = list(given) if isinstance(given, Sequence) else [given] * count
        if len(each) != count:
            raise ValueError(
                f"`rank` of the role {role!r} must be one integer, or one for each of its {count} "
                f"kernel(s), got {each}."
            )
        most = MOST_LATENT + len(str(max(outputs - 1, 1))) - 1
        ranks = [min(outputs, most if rank is None else rank) for rank in each]
        return tuple(1 if role == "mean" and q in self.own else r for q, r in enumerate(ranks))

    @property
    def role_outputs(self) -> dict[str, tuple[int, ...]]:
        """The outputs whose likelihood has a parameter of each role."""
        found: dict[str, list[int]] = {}
        for output, likelihood in enumerate(self.likelihoods):
            for parameter in likelihood.parameters:
                found.setdefault(parameter.role, []).append(output)
        return {role: tuple(outputs) for role, outputs in found.items()}


class Units(eqx.Module):
    """Model units of each output: y = shift + scale * (y in model units)."""

    shift: Float[np.ndarray, "D"]
    scale: Float[np.ndarray, "D"]

    def apply(self, observations: Observations) -> Observations:
        """Return the observations with bounds in model units.

        What was seen in a share of a period has that share of the shift.
        """
        if not self.shift.any() and np.all(self.scale == 1.0):
            return observations
        # Only counts, which have no shift, may have an unknown exposure.
        shift = self.shift * np.nan_to_num(observations.exposure, nan=1.0)
        lower = read_only((observations.lower - shift) / self.scale)
        upper = read_only((observations.upper - shift) / self.scale)
        return dataclasses.replace(observations, lower=lower, upper=upper)


def choose_units(likelihoods: tuple[Likelihood, ...], values: Float[np.ndarray, "N D"]) -> Units:
    """Choose model units from the observed values, those of censored cells included."""
    shift, scale = np.zeros(len(likelihoods)), np.ones(len(likelihoods))
    for d, likelihood in enumerate(likelihoods):
        seen = values[np.isfinite(values[:, d]), d]
        if likelihood.rescale == "affine":
            spread, largest = float(seen.std()), float(np.abs(seen).max())
            constant = spread <= 1e-8 * largest
            shift[d], scale[d] = seen.mean(), max(largest, 1.0) if constant else spread
        elif likelihood.rescale == "scale":
            scale[d] = np.exp(np.log(seen[seen > 0]).mean()) if np.any(seen > 0) else 1.0
    return Units(shift, scale)


class Model(eqx.Module):
    """Hyper-parameters of every role and the likelihoods of the outputs: all that defines p(y)."""

    priors: dict[str, LMC]
    likelihoods: tuple[Likelihood, ...]


def choose_inducing(
    model: Model, inputs: Rows, tolerance: float, most: int
) -> dict[str, InducingInputs]:
    """Pick the inducing inputs of every kernel of every role.

    They are picked for lengthscales half as long, with a tolerance `MARGIN` times as large: at the
    model's own lengthscales they are within the tolerance, and they last for a while in a fit that
    shortens the lengthscales.
    """
    tolerance, chosen = MARGIN * tolerance, {}
    for role, lmc in model.priors.items():
        halved = scale_lengthscales(jax.tree.map(lambda leaf: leaf.min(axis=0), lmc.kernels), 0.5)
        most_of = [min(most, MOST_OWN) if q in lmc.own else most for q in range(len(halved))]
        pairs = zip(halved, most_of, strict=True)
        points = (greedy_inducing(kernel, inputs, tolerance, m) for kernel, m in pairs)
        chosen[role] = tuple(map(Inducing.padded, points))
    return chosen


def generate(
    key: Key[Array, ""], model: Model, inputs: Rows, jitter: float = 1e-10
) -> tuple[Latent, Float[Array, "N D"]]:
    """Draw latent parameters and outputs: the paper's generative algorithm, lines 1 to 7.

    The latent functions are drawn in whitened weights with an inducing input at every distinct
    row, which is a draw from N(0, K) with K of Eq. (5).
    """
    inducing = choose_inducing(model, inputs, tolerance=0.0, most=len(inputs))
    latent_key, output_key = jax.random.split(key)
    latent = {}
    for role, lmc in model.priors.items():
        latent_key, own_key = jax.random.split(latent_key)
        if not lmc.varies:
            latent[role] = jnp.asarray(lmc.constant(len(inputs)))
            continue
        shape = geometry(lmc, inducing[role], jnp.asarray(inputs), jnp.asarray(jitter))
        blocks, _, rank, size = shape.loading.shape
        drawn = shape.functions(jax.random.normal(own_key, (blocks, rank, size)))
        if shape.nugget is not None:
            own = jax.random.normal(jax.random.fold_in(own_key, 1), drawn.shape)
            drawn = drawn + jnp.sqrt(shape.nugget) * own
        latent[role] = flat(drawn)
    return latent, draw_outputs(output_key, model, latent)


@float64()
def prior_draw(model: Model, inputs: Rows, seed: int) -> Float[np.ndarray, "N D"]:
    """Draw outputs by :func:`generate`, in model units."""
    return np.asarray(generate(jax.random.key(seed), model, inputs)[1])


def output_parameters(
    model: Model, latent: Latent, output: int
) -> tuple[Float[Array, "... N"], ...]:
    """Return the parameters theta of one output from the latent values of every role."""
    likelihood = model.likelihoods[output]
    roles = [parameter.role for parameter in likelihood.parameters]
    places = [model.priors[role].outputs.index(output) for role in roles]
    return likelihood.theta(*(latent[r][..., d] for r, d in zip(roles, places, strict=True)))


def draw_outputs(key: Key[Array, ""], model: Model, latent: Latent) -> Float[Array, "... N D"]:
    """Draw every output given the latent values of every role."""
    drawn = []
    for output, own_key in enumerate(jax.random.split(key, len(model.likelihoods))):
        theta = output_parameters(model, latent, output)
        shape = jnp.broadcast_shapes(*(t.shape for t in theta))
        drawn.append(model.likelihoods[output].sample(own_key, shape, *theta))
    return jnp.stack(drawn, axis=-1)
