"""What every engine is given (`Task`) and what it returns besides a posterior (`FitResult`)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import jax
import numpy as np
from jaxtyping import Bool, Float

from censored_gp.data.observations import Observations
from censored_gp.inference.elbo import Problem, Roles, Terms, collect_terms
from censored_gp.inference.lookup import Lookup, look_up
from censored_gp.kernels.base import Kernel
from censored_gp.model.compilation import bucket
from censored_gp.model.lmc import LMC, scale_lengthscales
from censored_gp.model.model import Model, choose_inducing

# Called with the stage, steps done, steps at most, and the bound so far.
Progress = Callable[[str, int, int, float], None]


# If inducing inputs leave out more than this share of the prior variance, the fit says so.
NOTABLE_SHARE = 0.02
COUNTS_AS_NOISE = (
    "The inducing inputs leave out up to {:.0%} of the prior variance, which counts as noise: "
    "raise max_inducing."
)


def silent(stage: str, done: int, most: int, bound: float) -> None:
    """Report nothing: the default progress function."""


@dataclasses.dataclass(frozen=True)
class FitResult:
    """How an inference ended.

    Attributes
    ----------
    status
        ``converged``, ``out of iterations``, ``stuck``, ``interrupted`` or ``diverged``.
    message
        The status as a sentence, with advice where something can be done.
    trace
        The bound after every evaluation, in model units; the estimator converts it to the units
        of the outputs.
    notes
        Other things worth knowing, such as a raised jitter.
    """

    status: str
    message: str
    elbo: float
    trace: tuple[float, ...]
    site_steps: int = 0
    hyper_steps: int = 0
    notes: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the bound settled before the iterations ran out."""
        return self.status == "converged"

    def __str__(self) -> str:
        return " ".join([f"{self.message} ELBO {self.elbo:.2f}.", *self.notes])


@dataclasses.dataclass(frozen=True)
class Task:
    """A model at its starting values with the observations (in model units) and their inputs.

    Attributes
    ----------
    tolerance
        Share of a kernel's variance that its inducing inputs may leave out; 0: none.
    most_inducing
        Largest number of inducing inputs of one kernel.
    explore
        Whether the fit may choose among several starting lengthscales, by the bound.
    spare
        Kernels of which the fit may add one to the means, if the observations ask for it.
    candidates
        Models that the engine `natural` is to choose among; empty: there is `model` only.
    centre
        Hyper-parameters that their prior is around, where the fit goes on from an earlier one;
        empty: those of the model.
    held_out
        Cells without weight. They keep their places, so that all folds of a cross-validation share
        a compiled program.
    """

    model: Model
    observations: Observations
    inputs: Float[np.ndarray, "N C"]
    tolerance: float = 1e-6
    most_inducing: int = 256
    explore: bool = False
    spare: tuple[Kernel, ...] = ()
    progress: Progress = silent
    candidates: tuple[Model, ...] = ()
    centre: Mapping[str, LMC] = dataclasses.field(default_factory=dict)
    held_out: Bool[np.ndarray, "N D"] | None = None

    @functools.cached_property
    def cells(self) -> tuple[Terms, ...]:
        """The observed cells, by likelihood and kind; those held out have no weight."""
        roles = {role: lmc.outputs for role, lmc in self.model.priors.items()}
        terms = collect_terms(self.observations, self.model.likelihoods, roles)
        if self.held_out is None:
            return terms
        outputs = [np.array(roles[part.roles[0]])[part.column[:, 0]] for part in terms]
        return tuple(
            dataclasses.replace(part, weight=part.weight * ~self.held_out[part.row, columns])
            for part, columns in zip(terms, outputs, strict=True)
        )

    @property
    def terms(self) -> tuple[Terms, ...]:
        """The observed cells, padded for one compiled program of them all."""
        return tuple(part.padded(bucket(len(part.row), "cells")) for part in self.cells)

    def problem(self, model: Model, knots: bool = False) -> Problem:
        """Lay out the observed cells, with inducing inputs for the lengthscales of a model.

        With ``knots`` a long series may have a grid of them, see `Knots`.
        """
        inducing = choose_inducing(model, self.inputs, self.tolerance, self.most_inducing, knots)
        known: dict[object, Lookup] = {}
        lookups = {}
        for role, lmc in model.priors.items():
            found, nugget = [], () if lmc.nugget is None else (lmc.nugget,)
            for part, *size in [*zip(lmc.kernels, inducing[role], strict=True), *zip(nugget)]:
                key = frozenset(part.views(self.inputs.shape[1])), *(z.size for z in size)
                if key not in known:
                    known[key] = look_up(part, self.inputs, *key[1:])
                found.append(known[key])
            lookups[role] = tuple(found)
        return Problem(self.inputs, inducing, lookups, self.cells, len(self.model.likelihoods))

    def with_priors(self, priors: Roles) -> Model:
        """Return the model with other hyper-parameters."""
        return dataclasses.replace(self.model, priors=jax.tree.map(np.asarray, priors))

    @property
    def periodic(self) -> bool:
        """Whether any kernel is periodic."""
        kernels = [kernel for lmc in self.model.priors.values() for kernel in lmc.kernels]
        return any(hasattr(kernel, "period") for kernel in kernels)

    def starts(self, factors: tuple[float, ...]) -> list[Model]:
        """Return the model with the lengthscales of its non-periodic kernels times each factor.

        Periodic kernels start at the spacing of the data, which is as short as it can be.
        """

        def scaled(lmc: LMC, factor: float) -> LMC:
            kernels = (
                kernel if hasattr(kernel, "period") else scale_lengthscales(kernel, factor)
                for kernel in lmc.kernels
            )
            return dataclasses.replace(lmc, kernels=tuple(kernels))

        priors = self.model.priors.items()
        some = [{role: scaled(lmc, factor) for role, lmc in priors} for factor in factors]
        return list(map(self.with_priors, some)) if self.explore else [self.model]
