"""A fitted model for people to read: coregionalization matrices, correlations, names of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from censored_gp.data.errors import listed, not_among, shortened
from censored_gp.data.inputs import Columns, Whole
from censored_gp.kernels import Kernel
from censored_gp.model.lmc import LMC
from censored_gp.model.model import Model


class Coregionalization(NamedTuple):
    """How one kernel moves the outputs of a role together, in the units the model computes in."""

    role: str
    kernel: str
    outputs: tuple[str, ...]
    matrix: Float[np.ndarray, "D D"]


def coregionalization(
    model: Model, columns: Columns, names: tuple[str, ...]
) -> tuple[Coregionalization, ...]:
    """Return B_q = A_q A_q' of every role, block of outputs and kernel."""
    found = []
    for role, lmc in model.priors.items():
        for block, outputs in enumerate(np.reshape(lmc.outputs, np.shape(lmc.mean))):
            labels = tuple(names[d] for d in outputs)
            for kernels, matrices in zip(lmc.kernels, lmc.coregionalization, strict=True):
                kernel = jax.tree.map(lambda leaf, b=block: np.asarray(leaf)[b], kernels)
                words = repr(kernel.named(columns))
                found.append(Coregionalization(role, words, labels, np.asarray(matrices[block])))
    return tuple(found)


def varying_prior(model: Model, role: str, kernel: int | None = None) -> LMC:
    """Return the linear model of coregionalization of a role that varies and has the kernel."""
    varying = {name: lmc for name, lmc in model.priors.items() if lmc.varies}
    if role not in varying:
        raise not_among("role", role, varying, ", the roles that vary")
    last = len(varying[role].kernels) - 1
    if kernel is not None and kernel not in range(last + 1):
        raise ValueError(f"`kernel` must be a position from 0 to {last}, got {kernel!r}.")
    return varying[role]


def prior_correlation(model: Model, role: str = "mean") -> Float[np.ndarray, "D D"]:
    """Return the correlation of sum_q B_q: of the latent functions at one and the same input."""
    matrices = varying_prior(model, role).coregionalization
    # Outputs in different blocks are independent.
    total = np.asarray(block_diag(*np.sum(matrices, axis=0)))
    scale = np.sqrt(np.maximum(np.diagonal(total), 1e-300))
    correlation = total / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def describe(estimator: Any) -> str:
    """Return the model, its data, the end of the fit and the priors, in words."""
    model, names = estimator.posterior_.model, estimator.output_names_
    families = [f"{name} {each!r}" for name, each in zip(names, model.likelihoods, strict=True)]
    lines = [
        f"{type(estimator).__name__} on {listed(estimator.columns_.names)}: {', '.join(families)}",
        estimator.observations_.summary(),
        f"{estimator.report_} Engine {estimator.engine}, {estimator.n_iter_} step(s).",
    ]
    if estimator.substitution_ is not None:
        lines.append("Substitution: the share of excess that moves from one output to another")
        for i, j in zip(*np.nonzero(estimator.substitution_), strict=True):
            error = estimator.substitution_error_[i, j]
            doubt = f" ± {error:.2f}" if error else ""
            lines.append(f"  {names[i]} to {names[j]} {estimator.substitution_[i, j]:.2f}{doubt}")
    for role, lmc in model.priors.items():
        lines += _role_lines(estimator, role, lmc)
    if estimator.coupled and len(names) > 1:
        lines.append("Correlation of the means:")
        for name, row in zip(names, prior_correlation(model), strict=True):
            cells = " ".join(f"{value:6.3f}" for value in row)
            lines.append(f"  {name:>{max(map(len, names))}} {cells}")
    return shortened("\n".join(lines))


def _role_lines(estimator: Any, role: str, lmc: LMC) -> list[str]:
    if not lmc.varies:
        return [f"{role}: constant for each output"]
    lines = [f"{role}: sum of"]
    for part in (part for part in estimator.coregionalization() if part.role == role):
        units = [_unit(estimator, role, name) for name in part.outputs]
        spread = np.sqrt(np.diagonal(part.matrix)) * units
        sizes = ", ".join(f"{n} {s:.3g}" for n, s in zip(part.outputs, spread, strict=True))
        lines.append(f"  {part.kernel}, standard deviation {sizes}")
    if lmc.slopes is not None:
        slopes = np.reshape(lmc.slopes.size, (len(lmc.outputs), -1))
        effects = [
            f"{estimator.columns_.names[c]} on {name} {slope * _unit(estimator, role, name):.3g}"
            for d, columns, each in zip(lmc.outputs, lmc.slopes.columns, slopes, strict=True)
            for name in [estimator.output_names_[d]]
            for c, slope in zip(columns, each, strict=True)
        ]
        lines.append(f"  own inputs, effect of one unit: {', '.join(effects)}")
    if lmc.nugget is not None:
        nugget = np.abs(np.asarray(lmc.nugget.size)).reshape(len(lmc.outputs), -1)
        sizes = [
            f"{estimator.output_names_[d]} {' to '.join(f'{s:.3g}' for s in np.unique(ends))}"
            for d, *ends in zip(lmc.outputs, nugget.min(axis=1), nugget.max(axis=1), strict=True)
            if any(ends)
        ]
        lines.append(f"  nugget, standard deviation {', '.join(sizes)}")
    return lines


def _unit(estimator: Any, role: str, name: str) -> float:
    """Return the unit of a latent function: that of its output, if it is a location of it."""
    d = estimator.output_names_.index(name)
    likelihood = estimator.posterior_.model.likelihoods[d]
    links = [
        k.name
        for p, k in zip(likelihood.parameters, likelihood.links, strict=True)
        if p.role == role
    ]
    located = role == "mean" and likelihood.rescale == "affine" and links == ["identity"]
    return float(estimator.units_.scale[d]) if located else 1.0


def kernel_labels(kernels: Sequence[Kernel], columns: Columns) -> list[str]:
    """Return a short name of each kernel: daily, weekly, slow, fast, or the inputs it looks at.

    Of several aperiodic kernels of time, the one with the longest lengthscale is slow.

    >>> from censored_gp.kernels import RBF, Periodic
    >>> columns = Columns(("time", "rain"), (True, False), (np.datetime64("2024-06-03"), 0.0))
    >>> kernels = [Periodic(24.0, 1.0, columns=[0]), RBF(99.0, columns=[0]), RBF(4.0, columns=[0])]
    >>> kernel_labels([*kernels, RBF(1.0, columns=[1])], columns)
    ['daily', 'slow', 'fast', 'rain']
    """
    labels = [_kernel_label(kernel, columns) for kernel in kernels]
    slow = [kernel for kernel, label in zip(kernels, labels, strict=True) if label == "slow"]
    for place, (kernel, label) in enumerate(zip(kernels, labels, strict=True)):
        rivals = [longest_lengthscale(other) for other in slow if other.columns == kernel.columns]
        finite = [length for length in rivals if np.isfinite(length)]
        if label == "slow" and longest_lengthscale(kernel) < max(finite, default=0.0):
            labels[place] = "fast"
    return labels


def _kernel_label(kernel: Kernel, columns: Columns) -> str:
    views = sorted(kernel.views(len(columns.names)), key=str)
    if len(views) != 1:
        return " and ".join(columns.names[c] for c in sorted({c for c, _ in views})) or "constant"
    column, period = views[0]
    name, is_time = columns.names[column], columns.is_time[column]
    if isinstance(period, Whole):
        step = f"{name}, in steps of {period.period:g}"
        return "day by day" if is_time and period.period == 24.0 else step
    if not is_time:
        return name if period is None else f"{name}, every {period:g}"
    if period is None:
        return "slow"
    names = {24.0: "daily", 168.0: "weekly", 8766.0: "yearly"}
    return names.get(float(period), f"every {period:g} hours")


def longest_lengthscale(kernel: Kernel) -> float:
    """Return a kernel's lengthscale, the longest over blocks; infinite if it has none."""
    return float(np.max(getattr(kernel, "lengthscale", np.inf)))
