"""From what a user passes as outputs to bounds that the likelihoods accept.

Everything that can be wrong with the outputs is found before any computing: the output and the row
are named, with what was found, what is accepted and what to do.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from censored_gp.data.bounds import Cells, open_ends, read_bounds, read_only, read_values
from censored_gp.data.errors import DataError, listed, refuse, warn
from censored_gp.data.inputs import Columns, distinct, refuse_extreme
from censored_gp.data.observations import Observations
from censored_gp.data.time import to_utc
from censored_gp.likelihoods import FAMILIES, Likelihood
from censored_gp.likelihoods.partial import averages_exposure

if TYPE_CHECKING:
    from censored_gp.data.tables import Table

ALIGN = "Align them by their index (.loc[X.index]), or drop it (.to_numpy())."

Likelihoods = tuple[Likelihood, ...]


def read_targets(y: Any, **given: Any) -> Observations:
    """Return what is known of the outputs, from arrays or data frames; see `read_bounds`.

    >>> read_targets([0.1, 2.0], censored=[True, False], side="left").upper.tolist()
    [[0.1], [2.0]]
    """
    if isinstance(y, Observations):
        if any(each is not None for name, each in given.items() if name != "side"):
            raise DataError("got Observations and flags, bounds or exposures as well.", "Outputs")
        return y
    ends = given.get("lower"), given.get("upper")
    first = next((each for each in (y, *ends) if each is not None), None)
    if first is None:
        said = "CensoredGP requires y to be passed, but the target y is None."
        raise DataError(said, hint="Give y, Observations, or lower=... and upper=...")
    seen = read_values(first, "Bound").unknown if y is None else read_values(y, bounds=True)
    return Observations(*read_bounds(seen, **given))


def same_rows(observations: Observations, inputs: Float[np.ndarray, "N C"]) -> None:
    """Refuse outputs that have other rows than the inputs."""
    if len(observations) != len(inputs):
        raise DataError(
            f"Got {len(inputs)} row(s) of inputs and {len(observations)} of outputs. Give one row "
            "of outputs (NaN where missing) for each row of inputs."
        )


def same_index(X: Any, **others: Any) -> None:
    """Refuse what has the index of X in another order; warn of another index, as rows are matched.

    This is about series and data frames of pandas: others have no index.
    """
    own: Any = getattr(X, "index", None)
    for name, given in others.items():
        if isinstance(given, Mapping):
            same_index(X, **{f"{name}[{key!r}]": other for key, other in given.items()})
        index: Any = getattr(given, "index", None)
        labelled = hasattr(own, "equals") and hasattr(index, "equals")
        if not labelled or len(own) != len(index) or own.equals(index):
            continue
        row = int(np.argmax(np.asarray(own != index)))
        said = f"`{name}` has the index {index[row]!r} in row {row}, where X has {own[row]!r}"
        if set(own) == set(index):
            raise DataError(f"{said}, and the same labels in another order.", hint=ALIGN)
        warn(f"{said}: rows are matched by position. {ALIGN}")


def same_outputs(observations: Observations, names: tuple[str, ...]) -> None:
    """Refuse other outputs than the model has: another number of them, or another order."""
    found = observations.names
    # Other names altogether are fine: the truth is often called "truth_a".
    moved = [name for name in found if name in names and found.index(name) != names.index(name)]
    if len(found) != len(names) or moved:
        said = f"got {listed(found)}. The model has, in this order, {listed(names)}."
        raise DataError(said, "Outputs")


def within_support(observations: Observations, likelihoods: Likelihoods) -> Observations:
    """Refuse what a likelihood cannot produce, and return the bounds as it sees them.

    Bounds of counts are rounded inward (at least 2.5 is at least 3), and a bound that excludes
    nothing (a demand of at least 0) is no bound.
    """
    _require_exposable(observations, likelihoods)
    _require_possible(observations, likelihoods)
    seen = to_support(observations, likelihoods)
    if empty := [seen.names[d] for d in np.flatnonzero(np.all(seen.is_missing, axis=0))]:
        said = f"got no observed row among {len(seen)}. Drop the output or add a row."
        raise DataError(said, "Output", ", ".join(empty))
    return seen


def to_support(observations: Observations, likelihoods: Likelihoods) -> Observations:
    """Return equivalent bounds inside the support of each family.

    Bounds of counts are rounded inward; a bound that excludes nothing is dropped.
    """
    lower, upper = _round_inward(observations, likelihoods)
    exact = lower == upper
    for d, likelihood in enumerate(likelihoods):
        below, above = likelihood.support.excludes(lower[:, d], upper[:, d])
        lower[:, d] = np.where(exact[:, d] | below, lower[:, d], -np.inf)
        upper[:, d] = np.where(exact[:, d] | above, upper[:, d], np.inf)
    if np.array_equal(lower, observations.lower) and np.array_equal(upper, observations.upper):
        return observations
    return dataclasses.replace(observations, lower=read_only(lower), upper=read_only(upper))


def _round_inward(observations: Observations, likelihoods: Likelihoods) -> tuple[Cells, Cells]:
    """Return the bounds, those of counts rounded inward to whole numbers."""
    cells = zip(likelihoods, observations.lower.T, observations.upper.T, strict=True)
    bounds = [likelihood.support.round_inward(low, high) for likelihood, low, high in cells]
    lower, upper = zip(*bounds, strict=True)
    return np.stack(lower, axis=1), np.stack(upper, axis=1)


def ignore_censoring(observations: Observations, likelihoods: Likelihoods) -> Observations:
    """Treat every bound, and every record of a part of a period, as an exact observation.

    This is what a model that knows nothing of censoring does. Bounds of counts are rounded inward
    first; between two counts it is the lower of the middle ones. A bound where no value can be (a
    concentration of at least 0) is missing.
    """
    plain = dataclasses.replace(observations, exposure=1.0)
    supports = [likelihood.support for likelihood in likelihoods]
    lower, upper = _require_possible(plain, likelihoods)
    lower = np.where(plain.is_interval, np.maximum(lower, [s.lower for s in supports]), lower)
    upper = np.where(plain.is_interval, np.minimum(upper, [s.upper for s in supports]), upper)
    values = dataclasses.replace(plain, lower=lower, upper=upper).values()
    for d, support in enumerate(supports):
        column = np.floor(values[:, d]) if support.discrete else values[:, d]
        values[:, d] = np.where(support.contains(column), column, np.nan)
    lower, upper = open_ends(np.isnan(values), values, values)
    return dataclasses.replace(plain, lower=lower, upper=upper)


def _require_possible(observations: Observations, likelihoods: Likelihoods) -> tuple[Cells, Cells]:
    """Refuse values and intervals that a family cannot produce; return bounds rounded inward."""
    lower, upper, names = observations.lower, observations.upper, observations.names
    inward = _round_inward(observations, likelihoods)
    for end in (lower, upper):
        refuse_extreme(end, names, "Output")
    cells = zip(likelihoods, lower.T, *(end.T for end in inward), strict=True)
    found = [(f.support.contains(v), f.support.is_empty(low, high)) for f, v, low, high in cells]
    contains, empty = np.stack(found, axis=2)
    impossible = (lower == upper) & ~contains
    accepts = [f"{type(f).__name__} accepts {f.support.words}." for f in likelihoods]
    hint = "Correct the value, make it NaN if it is not known, or choose another likelihood."
    if any(not f.support.discrete and f.support.lower == 0.0 for f in likelihoods):
        hint += " If it was rounded, give the step: rounded=..."
    if any(not f.support.discrete and f.support.upper == 1.0 for f in likelihoods):
        hint += " Divide percentages by 100."
    refuse(impossible, names, "Output", "got {:g}. {}", lower, accepts, hint=hint)
    said = "got from {:g} to {:g}, where no such value lies. {}"
    refuse(empty, names, "Output", said, lower, upper, accepts, hint=hint)
    return inward


def _require_exposable(observations: Observations, likelihoods: Likelihoods) -> None:
    """Refuse exposures of families that are not additive, and unknown ones of other than counts."""
    if not observations.is_partial.any():
        return
    exposure, names = observations.exposure, observations.names
    kinds = [type(likelihood).__name__ for likelihood in likelihoods]
    additive = np.array([likelihood.additive for likelihood in likelihoods])
    known = listed([name for name, family in FAMILIES.items() if family.additive])
    said = "got an exposure of {:g}, but a {} is no sum over the parts of its period."
    refuse(
        observations.is_partial & ~additive, names, "Output", said, exposure, kinds,
        hint=f"Choose one of the likelihoods {known}, or leave out the exposure.",
    )  # fmt: skip
    averaged = np.array([averages_exposure(likelihood) for likelihood in likelihoods])
    said = "got an unknown exposure, which is averaged over for counts alone, not for a {}."
    refuse(
        np.isnan(exposure) & ~averaged, names, "Output", said, kinds,
        hint='Choose "poisson" or "negative_binomial", or fill in the exposure.',
    )  # fmt: skip


def warn_of_little(observations: Observations) -> None:
    """Warn of outputs that say little: all the same, or never seen exactly."""
    counts = observations.counts()
    for d, name in enumerate(observations.names):
        exact = observations.lower[observations.is_exact[:, d], d]
        known = len(observations) - counts["missing"][d]
        if len(exact) == 0 and not observations.is_partial[:, d].any():
            warn(
                f"Output {name!r} is censored in all of its {known} observed row(s): its level and "
                "noise rest on the bounds and the prior alone."
            )
        elif len(exact) == known and np.ptp(exact) == 0.0:
            rows = "its one row" if known == 1 else f"all of its {known} rows"
            warn(
                f"Output {name!r} has the same value, {exact[0]:g}, in {rows}: how much it varies "
                "cannot be learned from that."
            )


def warn_of_shared_times(
    inputs: Float[np.ndarray, "N C"], columns: Columns, time: Any, table: Table | None = None
) -> None:
    """Warn if rows of a wide table have the time, and all else, of another: it may be long.

    An hour that a zone has twice in autumn is no such case.
    """
    time = time or next(itertools.compress(columns.names, columns.is_time), None)
    first, kind = distinct(inputs)
    if time not in columns.names or len(first) == len(inputs):
        return
    first, shared = first[kind], np.bincount(kind)[kind] > 1
    times, zone = columns.values(time, inputs), columns.zones[columns.names.index(time)]
    if zone is not None:
        shared &= to_utc(times, zone) == to_utc(times, zone, fold=1)
    if shared.any():
        row = int(np.argmax(shared & (first < np.arange(len(inputs)))))
        pair = (f"row {n}" if table is None else table.place(n) for n in (int(first[row]), row))
        when = times[row].astype("datetime64[s]") if times.dtype.kind == "M" else times[row]
        warn(
            f"Time {time!r}: {shared.sum():,} of {len(inputs):,} rows have a time (and inputs) "
            f"that another row has, too, such as {' and '.join(pair)} "
            f"({when}); they are taken for measurements of one and the same. If each row is about "
            "one place, product or station, name the column that says which one: by='...'."
        )
