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
import numpy as np
from jaxtyping import Float

from censored_gp.data.observations import Observations, read_only
from censored_gp.kernels.base import Kernel, distinct_rows
from censored_gp.likelihoods import Likelihood
from censored_gp.model.compilation import Rows
from censored_gp.model.inducing import (
    LONG,
    Inducing,
    InducingInputs,
    Knots,
    greedy_inducing,
    longest,
)
from censored_gp.model.lmc import LMC, scale_lengthscales

# Latent values by role, the outputs of all blocks side by side.
Latent = dict[str, Any]
# A kernel has at most this many latent functions of up to ten outputs, where no rank was chosen;
# one more of up to a hundred, and so on.
MOST_LATENT = 3
# Half the lengthscales leave out at least this many times the variance, even for Matern 5/2.
MARGIN = 100.0


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
    """

    likelihoods: tuple[Likelihood, ...]
    kernels: dict[str, tuple[Kernel, ...]]
    coupled: bool | Mapping[str, bool] = True
    rank: int | Mapping[str, int | Sequence[int]] | None = None
    nugget: Cycle | None = None
    own: tuple[int, ...] = ()
    own_inputs: tuple[tuple[int, ...], ...] = ()

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
    model: Model, inputs: Rows, tolerance: float, most: int, knots: bool = False
) -> dict[str, InducingInputs]:
    """Pick the inducing inputs of every kernel of every role.

    They are picked for lengthscales half as long, with a tolerance `MARGIN` times as large: at the
    model's own lengthscales they are within the tolerance, and they last for a while in a fit that
    shortens the lengthscales. Where `most` are too few for a long series, the fastest of its smooth
    kernels has a grid of ``knots`` instead, if these are allowed.
    """
    tolerance, chosen = MARGIN * tolerance, {}
    for role, lmc in model.priors.items():
        halved = scale_lengthscales(jax.tree.map(lambda leaf: leaf.min(axis=0), lmc.kernels), 0.5)
        # Functions that each output has of its own are many, and have few inducing inputs.
        most_of = [min(most, 16) if q in lmc.own else most for q in range(len(halved))]
        pairs = zip(halved, most_of, strict=True)
        points = [greedy_inducing(kernel, inputs, tolerance, m) for kernel, m in pairs]
        found: list[Any] = list(map(Inducing.padded, points))
        capped = [
            q
            for q, kernel in enumerate(halved)
            if knots and tolerance > 0 and len(points[q]) == most and q not in lmc.own
            if hasattr(kernel, "root") and len(kernel.views(inputs.shape[1])) == 1
            if len(distinct_rows(kernel, inputs)) > LONG
        ]
        if capped:
            q = min(capped, key=lambda q: longest(halved[q]))
            found[q] = Knots.along(scale_lengthscales(halved[q], 2.0), inputs)
        chosen[role] = tuple(found)
    return chosen
