"""From what a user passes as outputs to bounds that the likelihoods accept.

Everything that can be wrong with the outputs is found here, before any computing: the output and
the row are named, with what was found, what is accepted and what to do.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.inference import terms
from censored_gp.likelihoods import Likelihood
from censored_gp.observations import Observations
from censored_gp.tables import as_numbers, first_problem, read_table

__all__ = ["as_seen", "read_targets", "same_rows", "warn_of_little", "within_support"]

Cells = Float[np.ndarray, "N D"]


def read_targets(
    y: Any, censored: Any = None, lower: Any = None, upper: Any = None, capacity: Any = None
) -> tuple[Observations, bool]:
    """Return what is known of the outputs, and whether they came as one flat column.

    Flags and capacities are read as `Observations.from_flags` and `from_capacity` do. With bounds,
    an end that is not given (or NaN) is y itself, and open where y is missing as well.
    """
    bounded = lower is not None or upper is not None
    if y is None and not bounded:
        raise ValueError(
            "CensoredGP requires y to be passed, but the target y is None. Give y, Observations, "
            "or lower=... and upper=..."
        )
    if isinstance(y, Observations):
        if censored is not None or bounded or capacity is not None:
            _refuse_both("Observations", "flags or bounds", "Observations hold the bounds already")
        return y, False
    if bounded and censored is not None:
        _refuse_both("flags", "bounds", "give censored=..., or lower=... and upper=...")
    if capacity is not None and (bounded or censored is not None):
        _refuse_both("a capacity", "flags or bounds", "flags and bounds say all there is to say")
    if bounded:
        return _from_ends(y, lower, upper)
    _refuse_complex(y)
    if capacity is not None:
        return Observations.from_capacity(y, capacity), _is_flat(y)
    seen = Observations.exact(y) if censored is None else Observations.from_flags(y, censored)
    return seen, _is_flat(y)


def _is_flat(data: Any) -> bool:
    # Not np.ndim(data): array-likes need not implement numpy's functions.
    return len(data.shape if hasattr(data, "shape") else np.asarray(data).shape) == 1


def _refuse_both(one: str, other: str, advice: str) -> NoReturn:
    raise ValueError(f"Outputs: found {one} and {other} as well. Accepted is one: {advice}.")


def _refuse_complex(y: Any) -> None:
    if getattr(y, "dtype", None) is not None and np.iscomplexobj(y):
        raise ValueError("Outputs: Complex data not supported. Accepted are real numbers.")


def _from_ends(y: Any, lower: Any, upper: Any) -> tuple[Observations, bool]:
    """Join values and bounds: a bound where there is one, else the value, else open."""
    given = {"Output": y, "Lower bound": lower, "Upper bound": upper}
    given = {noun: data for noun, data in given.items() if data is not None}
    tables = {n: read_table(d, noun=n, prefix="y", alone="y") for n, d in given.items()}
    cells = {n: np.stack([as_numbers(c, n) for c in t.columns], axis=1) for n, t in tables.items()}
    (first, shape), *others = ((noun, values.shape) for noun, values in cells.items())
    for noun, other in others:
        if other != shape:
            raise ValueError(
                f"{noun}s: found {other[0]} row(s) and {other[1]} column(s), but {shape[0]} and "
                f"{shape[1]} in the {first.lower()}s. Accepted is one for each row and output."
            )
    missing = np.full(shape, np.nan)
    values = cells.get("Output", missing)
    ends = (cells.get("Lower bound", missing), cells.get("Upper bound", missing))
    low, high = (np.where(np.isnan(end), values, end) for end in ends)
    names = next((t.names for t in tables.values() if t.named), tables[first].names)
    seen = Observations(
        np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high), names
    )
    return seen, _is_flat(given[first])


def same_rows(observations: Observations, inputs: Float[np.ndarray, "N C"]) -> None:
    """Refuse outputs that have other rows than the inputs."""
    if len(observations) != len(inputs):
        raise ValueError(
            f"Found {len(inputs)} row(s) of inputs and {len(observations)} of outputs. Accepted "
            "are equal numbers: give one row of outputs (NaN where missing) for each row of inputs."
        )


def as_seen(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> Observations:
    """Take every record at its word: a censored cell becomes an exact one at its value.

    This is what a model that knows nothing of censoring does. Between two counts it is the lower
    of the middle ones.
    """
    values = observations.values()
    discrete = np.array([likelihood.support.discrete for likelihood in likelihoods])
    values = np.where(observations.is_interval & discrete, np.floor(values), values)
    lower, upper = (np.where(np.isnan(values), end, values) for end in (-np.inf, np.inf))
    return Observations(lower, upper, observations.names)


def within_support(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> Observations:
    """Refuse what a likelihood cannot produce, and return the bounds as it sees them.

    Bounds of counts are rounded inward (at least 2.5 is at least 3), and a bound that excludes
    nothing (a demand of at least 0) is no bound.
    """
    for d, likelihood in enumerate(likelihoods):
        _check_exact(observations, d, likelihood)
        _check_possible(observations, d, likelihood)
    seen = terms.within_support(observations, likelihoods)
    seen.require_observed()
    return seen


def _check_exact(observations: Observations, d: int, likelihood: Likelihood) -> None:
    values = observations.lower[:, d]
    bad = observations.is_exact[:, d] & ~likelihood.support.contains(values)
    _refuse(bad, observations, d, likelihood, lambda row: f"{values[row]:g}")


def _check_possible(observations: Observations, d: int, likelihood: Likelihood) -> None:
    """Refuse an interval in which no value of the family lies."""
    lower, upper, support = observations.lower[:, d], observations.upper[:, d], likelihood.support
    if support.discrete:
        first, last = np.ceil(lower), np.floor(upper)
        empty = (first > last) | (last < support.lower) | (first > support.upper)
    else:
        empty = (upper <= support.lower) | (lower >= support.upper)
    _refuse(
        empty,
        observations,
        d,
        likelihood,
        lambda row: f"from {lower[row]:g} to {upper[row]:g}, where no such value lies",
    )


def _refuse(
    bad: Bool[np.ndarray, " N"],
    observations: Observations,
    d: int,
    likelihood: Likelihood,
    found: Any,
) -> None:
    problem = first_problem(bad[:, None], observations.names[d : d + 1], "Output")
    if problem:
        row, _, place = problem
        family = type(likelihood).__name__
        raise ValueError(
            f"{place}: found {found(row)}. {family} accepts {likelihood.support.describe()}. "
            "Correct the value, make it NaN if it is not known, or choose another likelihood."
        )


def warn_of_little(observations: Observations) -> None:
    """Warn, in words, of outputs that say little: all the same, or never seen exactly."""
    counts = observations.counts()
    for d, name in enumerate(observations.names):
        exact = observations.lower[observations.is_exact[:, d], d]
        known = len(observations) - counts["missing"][d]
        if len(exact) == 0:
            _warn(
                f"Output {name!r} is censored in all of its {known} observed row(s): its level and "
                "noise rest on the bounds and the prior alone."
            )
        elif len(exact) == known and np.ptp(exact) == 0.0:
            rows = "its one row" if known == 1 else f"all of its {known} rows"
            _warn(
                f"Output {name!r} has the same value, {exact[0]:g}, in {rows}: how much it varies "
                "cannot be learned from that."
            )


def _warn(message: str) -> None:
    # The level at which a user sees the line that called fit.
    warnings.warn(message, UserWarning, stacklevel=4)
