"""Default kernels, starting values, and the `Design` that settings ask for.

They decide more than the likelihood does. A time column gets a periodic kernel for every cycle that
its spacing resolves and its span repeats (day, week, year) and a slow kernel; every other column
gets a smooth kernel of its own. Inputs without a time get one smooth kernel over all columns. Roles
other than means get the simpler half of this. A fit may add one more kernel of time to the means
(see `inference.model_search`). Many outputs on some days are a panel, whose levels walk at random.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from censored_gp.data.errors import not_among
from censored_gp.data.inputs import Columns, spacing
from censored_gp.data.observations import Observations
from censored_gp.kernels.base import Kernel
from censored_gp.kernels.others import Brownian, Periodic, White
from censored_gp.kernels.stationary import RBF
from censored_gp.likelihoods import Likelihood
from censored_gp.model.compilation import Rows
from censored_gp.model.inducing import KNOTS_A_LENGTH, LONG, MOST_KNOTS
from censored_gp.model.lmc import LMC, Nugget, Slopes, in_blocks
from censored_gp.model.model import MOST_LATENT, Cycle, Design, Model

# Observed values of every output.
Table = Float[np.ndarray, "N D"]
Column = Float[np.ndarray, "N"]
ROLES = ("mean", "scale", "shape")
DAY, WEEK, YEAR = 24.0, 168.0, 8766.0
# Bounds of an output with fewer other cells are taken as they are.
LEAST_EXACT = 5
# A normal is fitted to at most this many cells of an output, in at most so many steps.
MOST_FITTED, MOST_EM_STEPS = 2000, 100


def default_kernels(
    columns: Columns, inputs: Rows, role: str, own: Collection[int] = ()
) -> tuple[Kernel, ...]:
    """Choose kernels and starting lengthscales from the training inputs alone.

    Columns in `own` are inputs of one output alone, which kernels do not look at.
    """
    times = [c for c, is_time in enumerate(columns.is_time) if is_time]
    # The 0/1 columns of one input in words share a kernel.
    others = [p for p in columns.groups.values() if not columns.is_time[p[0]] and p[0] not in own]
    if not times:
        every = [c for places in others for c in places] if own else None
        return (RBF(columns=every).resolve(columns).fill_lengthscales(inputs),)
    chosen = [kernel for c in times for kernel in _time_kernels(c, inputs[:, c], role)]
    if role == "mean":
        chosen += [RBF(columns=c) for c in others if np.any(np.ptp(inputs[:, c], axis=0) > 0)]
    return tuple(kernel.resolve(columns).fill_lengthscales(inputs) for kernel in chosen)


def _time_kernels(column: int, hours: Column, role: str) -> list[Kernel]:
    """Return periodic kernels and a slow one; for other roles than means the shortest cycle only.

    An observation says far less of its noise than of its mean, and a flexible noise would vanish
    wherever the mean happens to meet the data (counts of zero at night).
    """
    cycles: list[Kernel] = [Periodic(period, columns=column) for period in _cycles(hours)]
    if role != "mean" and cycles:
        return cycles[:1]
    return [*cycles, RBF(_slow(hours), columns=column)]


def _first_time(columns: Columns, inputs: Rows) -> tuple[int, Column]:
    """Return the first column of times and its hours; no hours if there is no such column."""
    if not any(columns.is_time):
        return 0, np.zeros(0)
    column = columns.is_time.index(True)
    return column, inputs[:, column]


def _cycles(hours: Column) -> list[float]:
    """Return the periods that the spacing of the hours resolves and their span repeats."""
    if not len(hours):
        return []
    span, step = float(np.ptp(hours)), spacing(hours)
    # Resolved by four observations each; known to repeat if the data span two of them.
    return [p for p in (DAY, WEEK, YEAR) if 2 * p <= span + step and 4 * step <= p]


def default_nugget(columns: Columns, inputs: Rows) -> Cycle:
    """Return the cycle of the nuggets of means: the shortest cycle of time, if there is one.

    The scale of other families has the same.
    """
    column, hours = _first_time(columns, inputs)
    for period in _cycles(hours)[:1]:
        phase = hours / period % 1.0
        # Fewer than three bumps could not follow a cycle.
        for bumps in range(8, 2, -1):
            nearest = np.floor(phase * bumps + 0.5).astype(int) % bumps
            # The size of each is learned from its rows.
            if np.bincount(nearest, minlength=bumps).min() >= 80:
                return Cycle(column, period, bumps)
    return Cycle()


def _slow(hours: Column) -> float:
    """Return the starting lengthscale of the slow kernel of time: an eighth of the span."""
    return max(float(np.ptp(hours)) / 8, 2.5 * spacing(hours)) or 1.0


def spare_kernels(columns: Columns, inputs: Rows, most_inducing: int) -> tuple[Kernel, ...]:
    """Return kernels of the first time column of which a fit may add one, from fast to slow.

    There are none where time is too short for a fast kernel to differ from the slow one, or so long
    that inducing inputs would leave out too much of it.
    """
    column, hours = _first_time(columns, inputs)
    if not len(hours):
        return ()
    count = len(np.unique(hours))
    # Inducing inputs two lengthscales apart carry 5/6 of the variance.
    carried = MOST_KNOTS / KNOTS_A_LENGTH if count > LONG else 2 * most_inducing
    slow, fast = _slow(hours), max(4, count / carried) * spacing(hours)
    # One that is hardly faster than the slow one is not worth a try.
    if not 0.0 < 4 * fast <= slow:
        return ()
    # Each knot costs: in a long series a start is at most five times as long as the one before.
    ratio = np.log(slow / fast) / np.log(5.0) if count > LONG else 2.0
    lengths = np.geomspace(fast, slow, 1 + max(2, int(np.ceil(ratio))))
    return tuple(RBF(float(length), columns=column).resolve(columns) for length in lengths)


def starting_model(design: Design, values: Table) -> Model:
    """Return the model at starting values that are taken from observed values in model units."""
    correlation = observed_correlation(values)
    priors = {}
    for role, outputs in design.role_outputs.items():
        starts = [_role_start(design.likelihoods[d], role, values[:, d]) for d in outputs]
        mean, spread = (np.array(column) for column in zip(*starts, strict=True))
        kernels = design.kernels.get(role, ())
        within = correlation[np.ix_(outputs, outputs)]
        blocks = 1 if design.is_coupled(role) else len(outputs)
        shape = blocks, len(outputs) // blocks, -1
        ranks = design.ranks(role, len(outputs)) if blocks == 1 else (1,) * len(kernels)
        factors = [correlation_factor(within, rank) if blocks == 1 else 1.0 for rank in ranks]
        # The prior variance is divided evenly among the kernels.
        each = [spread[:, None] * factor / np.sqrt(len(kernels)) for factor in factors]
        mixing = tuple(a.reshape(shape) for a in each)
        lmc = LMC(in_blocks(kernels, blocks), mixing, mean.reshape(shape[:2]), outputs)
        if role == "mean":
            own, slopes = design.own if blocks == 1 else (), None
            if design.own_inputs:
                columns = tuple(design.own_inputs[d] for d in outputs)
                slopes = Slopes(np.zeros((*shape[:2], len(columns[0]))), columns)
            nugget = _starting_nugget(design, outputs, spread, shape)
            lmc = dataclasses.replace(lmc, nugget=nugget, slopes=slopes, own=own)
        priors[role] = lmc
    return Model(priors, design.likelihoods)


def starting_models(design: Design, values: Table) -> list[Model]:
    """Return the starting model, preceded by a simpler one if the evidence may prefer it.

    That is one of rank one where observed cells are few, as coefficients are point estimates and
    many of them would follow the noise of few cells.
    """
    model = starting_model(design, values)
    widest = max((a.shape[2] for lmc in model.priors.values() for a in lmc.mixing), default=0)
    cells = np.isfinite(values).sum() / max(coefficients(model), 1)
    if design.rank is not None or widest < MOST_LATENT or cells >= 10:
        return [model]
    # Of next to no cells many functions make all noise vanish, which no criterion forgives.
    last = [model] if cells >= 3 else []
    return [starting_model(dataclasses.replace(design, rank=1), values), *last]


def coefficients(model: Model) -> int:
    """Return the degrees of freedom of the mixing: coefficients less rotations of each kernel.

    The size of an output's own function is a variance, and no more a coefficient than a nugget.
    """
    shapes = [
        np.shape(a)
        for lmc in model.priors.values()
        for q, a in enumerate(lmc.mixing)
        if q not in lmc.own
    ]
    return sum(b * (outputs * rank - rank * (rank - 1) // 2) for b, outputs, rank in shapes)


def _role_start(likelihood: Likelihood, role: str, values: Column) -> tuple[float, float]:
    """Return the starting mean and standard deviation of one latent parameter."""
    seen = values[np.isfinite(values)]
    place = [parameter.role for parameter in likelihood.parameters].index(role)
    start = float(likelihood.links[place].inverse(np.asarray(likelihood.start(seen)[place])))
    return start, likelihood.latent_spread(seen) if role == "mean" else 0.3


def _starting_nugget(
    design: Design, outputs: tuple[int, ...], spread: Float[np.ndarray, "D"], shape: tuple[int, ...]
) -> Nugget | None:
    """Return the nuggets of means, 0.3 of their latent functions; zero if a family asks for none.

    Those stay zero in a fit, as the gradient in a standard deviation of zero is zero.
    """
    asked = np.array([design.likelihoods[d].nugget for d in outputs])
    if design.nugget is None or not asked.any() or not design.kernels.get("mean"):
        return None
    column, period, bumps = design.nugget
    size = np.repeat((0.3 * spread * asked)[:, None], bumps, axis=1)
    return Nugget(size.reshape(shape), column, period)


def uncensored_values(seen: Observations, likelihoods: Sequence[Likelihood]) -> Table:
    """Return `Observations.full_values`, with lower and upper bounds moved to likely values.

    These are medians beyond the bounds, of a normal that is fitted to all bounds of an output: of
    what is never negative to cube roots, which are nearly normal (Wilson and Hilferty, 1931), or to
    logarithms of a log-normal. Levels and spreads of records that limits cut are too low.
    """
    values = seen.full_values()
    least = np.array([likelihood.support.lower for likelihood in likelihoods])
    below = (seen.lower <= least) & (seen.lower < seen.upper) & (seen.upper < np.inf)
    moved = (seen.is_right | below) & ~seen.is_partial
    for d in np.flatnonzero(moved.any(axis=0)):
        likelihood = likelihoods[int(d)]
        rows = np.flatnonzero(np.isfinite(values[:, d]) & ~seen.is_partial[:, d])
        if np.isfinite(likelihood.support.upper) or np.sum(~moved[rows, d]) < LEAST_EXACT:
            continue
        bounds = np.stack([seen.lower[rows, d], seen.upper[rows, d]])
        to_normal: Any = np.positive
        from_normal: Any = np.positive
        if least[d] == 0.0:
            bounds[0, (bounds[0] <= 0.0) & (bounds[1] > 0.0)] = -np.inf
            pair = (np.log, np.exp) if likelihood.normal else (np.cbrt, _cube)
            to_normal, from_normal = pair
        known = np.isfinite(bounds)
        bounds[known] = to_normal(bounds[known])
        rows, bounds = (part[..., known.any(axis=0)] for part in (rows, bounds))
        mean, scale = _censored_normal(bounds[:, :: -(-len(rows) // MOST_FITTED)])
        own = moved[rows, d]
        middle = ndtr((bounds[:, own] - mean) / scale).mean(axis=0)
        median = mean + scale * ndtri(np.clip(middle, 1e-9, 1.0 - 1e-9))
        values[rows[own], d] = from_normal(np.clip(median, *bounds[:, own]))
    return values


def _cube(root: Column) -> Column:
    """Return the value that a cube root, or a number below zero, stands for."""
    return np.maximum(root, 0.0) ** 3


def _censored_normal(bounds: Float[np.ndarray, "2 N"]) -> tuple[float, float]:
    """Return mean and deviation of a normal that is fitted to intervals, by EM.

    They stay within three deviations of the records, as few exact ones say little.
    """
    exact = bounds[0] == bounds[1]
    records = np.where(np.isfinite(bounds), bounds, bounds[::-1]).mean(axis=0)
    centre, deviation = records.mean(), max(float(records.std()), 1e-300)
    mean, scale = centre, deviation
    for _ in range(MOST_EM_STEPS):
        z = (bounds - mean) / scale
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
        upper_half = z[0] > 0.0
        mass = np.where(upper_half, ndtr(-z[0]) - ndtr(-z[1]), ndtr(z[1]) - ndtr(z[0]))
        mass = np.maximum(mass, 1e-300)
        finite_z = np.where(np.isfinite(z), z, 0.0)
        first = np.where(exact, z[0], (density[0] - density[1]) / mass)
        second = 1.0 + (finite_z[0] * density[0] - finite_z[1] * density[1]) / mass
        second = np.where(exact, np.square(z[0]), second)
        shift, factor = first.mean(), np.sqrt(max(second.mean() - first.mean() ** 2, 1e-12))
        mean, scale = mean + scale * shift, scale * factor
        mean = np.clip(mean, centre - 3.0 * deviation, centre + 3.0 * deviation)
        scale = np.clip(scale, deviation / 3.0, 3.0 * deviation)
        if abs(shift) + abs(factor - 1.0) < 1e-4:
            break
    return float(mean), float(scale)


def observed_correlation(values: Table) -> Float[np.ndarray, "D D"]:
    """Return pairwise correlations of the observed values, shrunk towards zero."""
    seen = np.isfinite(values)
    count = np.maximum(seen.sum(axis=0), 1)
    filled = np.where(seen, values, 0.0)
    centred = np.where(seen, values - filled.sum(axis=0) / count, 0.0)
    norm = np.sqrt(np.maximum((centred**2).sum(axis=0), 1e-300))
    correlation = 0.9 * (centred / norm).T @ (centred / norm)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def correlation_factor(
    correlation: Float[np.ndarray, "D D"], rank: int
) -> Float[np.ndarray, "D R"]:
    """Return A with rows of unit length, A A' the best approximation of the given rank."""
    values, vectors = np.linalg.eigh(correlation)
    kept = np.argsort(values)[::-1][:rank]
    factor = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 1e-6))
    length = np.linalg.norm(factor, axis=1, keepdims=True)
    return np.where(length > 1e-6, factor / np.maximum(length, 1e-6), 1.0 / np.sqrt(rank))


def design_for(
    settings: Mapping[str, Any],
    likelihoods: tuple[Likelihood, ...],
    columns: Columns,
    inputs: Rows,
    own_inputs: tuple[tuple[int, ...], ...] = (),
) -> Design:
    """Return the design that an estimator's settings ask for, with all kernels in numbers."""
    own = {column for each in own_inputs for column in each}
    # Columns that do not exist are refused in roles that are not used as well.
    for several in kernels_by_role(settings["kernels"], ROLES, heteroscedastic=True).values():
        for kernel in several or ():
            kernel.resolve(columns)
    present = [p.role for likelihood in likelihoods for p in likelihood.parameters]
    wanted = kernels_by_role(settings["kernels"], present, settings["heteroscedastic"])
    kernels = {
        role: default_kernels(columns, inputs, role, own)
        if given is None
        else tuple(k.resolve(columns).fill_lengthscales(inputs) for k in given)
        for role, given in wanted.items()
    }
    # The other engines know no nuggets.
    alone = wanted.get("mean", ()) is None and settings["engine"] == "natural"
    nugget = default_nugget(columns, inputs) if alone else None
    rank = settings["rank"]
    design = Design(likelihoods, kernels, settings["coupled"], rank, nugget, (), own_inputs)
    # Up to four outputs can have latent functions of their own by the rank of the mixing.
    if not (alone and len(likelihoods) > 4 and rank is None and design.is_coupled("mean")):
        return design
    return _panel(design, columns, inputs)


def _panel(design: Design, columns: Columns, inputs: Rows) -> Design:
    """Return the design of a panel of up to 256 days, months or the like, or the one that is given.

    Outputs share functions, and of time each has its own as well. Levels walk at random, so that a
    forecast stays where they were last seen. At each time there is a shared effect of that time
    alone.
    """
    times = [c for c, is_time in enumerate(columns.is_time) if is_time]
    hours = _first_time(columns, inputs)[1]
    if not 0 < len(np.unique(hours)) <= 256 or spacing(hours) < DAY:
        return design
    kernels: list[Kernel] = []
    own: list[int] = []
    for kernel in design.kernels["mean"]:
        of_time = isinstance(kernel, RBF | Periodic) and kernel.columns[0] in times
        slow = of_time and isinstance(kernel, RBF)
        shared = Brownian(columns=kernel.columns).fill_lengthscales(inputs) if slow else kernel
        own += [len(kernels) + 1] if of_time else []
        kernels += [shared, shared] if of_time else [shared]
    kernels.append(White(columns=times[0]).resolve(columns))
    every = design.kernels | {"mean": tuple(kernels)}
    return dataclasses.replace(design, kernels=every, rank={"mean": 1}, own=tuple(own))


def with_kernels(
    design: Design, kernels: Mapping[str, Sequence[Kernel]], columns: Columns
) -> Design | None:
    """Return the design with other hyper-parameters of its kernels, and perhaps further kernels.

    None if the kernels are of another kind, or look at other columns, than those of the design.
    """
    found = {r: tuple(k.aligned(columns) for k in several) for r, several in kernels.items()}
    for role, own in design.kernels.items():
        if jax.tree.structure(own) != jax.tree.structure(found.get(role, ())[: len(own)]):
            return None
    own = {role: found[role] for role in design.kernels}
    return dataclasses.replace(design, kernels=own)


def kernels_by_role(
    kernels: Any, present: Sequence[str], heteroscedastic: bool
) -> dict[str, tuple[Kernel, ...] | None]:
    """Return the kernels of each role; None: to be chosen, empty: the role is constant.

    Means vary. Scales vary if heteroscedastic, shapes only if kernels are given for them by name.
    """
    by_role = kernels if isinstance(kernels, Mapping) else dict.fromkeys(("mean", "scale"), kernels)
    for unknown in set(by_role) - set(ROLES):
        raise not_among("kernels", unknown, ROLES, ", if they are a dict by role")
    wanted: dict[str, Any] = {"mean": None, "scale": None, "shape": ()} | dict(by_role)
    if not heteroscedastic:
        wanted |= {"scale": (), "shape": ()}
    return {role: _as_kernels(wanted[role], role) for role in ROLES if role in present}


def _as_kernels(kernels: Any, role: str) -> tuple[Kernel, ...] | None:
    if kernels is None:
        return None
    several = (kernels,) if isinstance(kernels, Kernel) else kernels
    good = isinstance(several, Sequence) and all(isinstance(kernel, Kernel) for kernel in several)
    if not good or isinstance(several, str) or (role == "mean" and not several):
        raise ValueError(
            '`kernels` must be a Kernel, a list of them, a dict of these by role ("mean", '
            f'"scale", "shape"), or None to have them chosen, got {kernels!r} for role {role!r}.'
        )
    return tuple(several)
