"""From what a user passes as outputs to bounds that the likelihoods accept.

Everything that can be wrong with the outputs is found here, before any computing: the output and
the row are named, with what was found, what is accepted and what to do.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Bool, Float

from censored_gp.data import observations as cells
from censored_gp.data.observations import Observations
from censored_gp.data.tables import first_problem, listed
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.partial import knows_shares


def to_support(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> Observations:
    """Say the same with bounds that each output's family can reach.

    Those of counts are whole numbers, and there are none where the support itself ends.
    """
    supports = [likelihood.support for likelihood in likelihoods]
    discrete = np.array([support.discrete for support in supports])
    lower = np.where(discrete, np.ceil(observations.lower), observations.lower)
    upper = np.where(discrete, np.floor(observations.upper), observations.upper)
    exact = lower == upper
    first, last = (np.array([getattr(s, end) for s in supports]) for end in ("lower", "upper"))
    # Of a share, none at all says something too.
    lower = np.where(~exact & ~observations.is_share & (lower <= first), -np.inf, lower)
    upper = np.where(~exact & (upper >= last), np.inf, upper)
    return dataclasses.replace(observations, lower=lower, upper=upper)


NO_SHARE, NO_ODDS = np.zeros((1, 1), dtype=bool), np.zeros((1, 1))


FEW_ROWS = 10
"""Rows below which repeated times say nothing of the kind of table."""


def read_targets(
    y: Any,
    censored: Any = None,
    lower: Any = None,
    upper: Any = None,
    capacity: Any = None,
    side: str = "right",
) -> Observations:
    """Return what is known of the outputs.

    Flags and capacities are read as `Observations.from_flags` and `from_capacity` do. With bounds,
    an end that is not given (or NaN) is y itself, and open where y is missing as well.

    >>> read_targets([0.1, 2.0], censored=[True, False], side="left").upper.tolist()
    [[0.1], [2.0]]
    """
    bounded = lower is not None or upper is not None
    if y is None and not bounded:
        raise ValueError(
            "CensoredGP requires y to be passed, but the target y is None. Give y, Observations, "
            "or lower=... and upper=..."
        )
    if side in cells.SHARES and censored is None:
        refuse_share_without_flags(side)
    if isinstance(y, Observations):
        if censored is not None or bounded or capacity is not None:
            _refuse_both("Observations", "flags or bounds", "Observations hold the bounds already")
        return y
    if bounded and censored is not None:
        _refuse_both("flags", "bounds", "give censored=..., or lower=... and upper=...")
    if capacity is not None and (bounded or censored is not None):
        _refuse_both("a capacity", "flags or bounds", "flags and bounds say all there is to say")
    if bounded:
        return _from_ends(y, lower, upper)
    _refuse_complex(y)
    if capacity is not None:
        return Observations.from_capacity(y, capacity)
    if censored is not None:
        return Observations.from_flags(y, censored, side=side)
    return Observations.exact(y)


def refuse_share_without_flags(side: str) -> NoReturn:
    """Refuse shares of which it is not said where they are: no capacity or bound can."""
    raise ValueError(f'side: found "{side}" without flags. Give censored=... to say where.')


def _refuse_both(one: str, other: str, advice: str) -> NoReturn:
    raise ValueError(f"Outputs: found {one} and {other} as well. Accepted is one: {advice}.")


def _refuse_complex(y: Any) -> None:
    if getattr(y, "dtype", None) is not None and np.iscomplexobj(y):
        raise ValueError("Outputs: Complex data not supported. Accepted are real numbers.")


def _from_ends(y: Any, lower: Any, upper: Any) -> Observations:
    """Join values and bounds: a bound where there is one, else the value, else open."""
    given = {"Output": y, "Lower bound": lower, "Upper bound": upper}
    seen = {noun: cells.read(data, noun) for noun, data in given.items() if data is not None}
    _check_alike(seen)
    first = next(iter(seen.values()))
    missing = first._replace(values=np.full(first.values.shape, np.nan))
    values, *ends = (seen.get(noun, missing).values for noun in given)
    low, high = (np.where(np.isnan(end), values, end) for end in ends)
    named = next((each for each in seen.values() if each.named), first)
    return Observations(
        np.where(np.isnan(low), -np.inf, low),
        np.where(np.isnan(high), np.inf, high),
        named.names,
        first.flat,
    )


def _check_alike(seen: dict[str, cells.Seen]) -> None:
    """Refuse values and bounds of other sizes, or of other names, than the first of their kind."""
    first, *_ = seen
    named = next((each for each in seen.values() if each.named), seen[first])
    rows, columns = seen[first].values.shape
    for noun, other in seen.items():
        if other.values.shape != (rows, columns):
            raise ValueError(
                f"{noun}s: found {cells.size_in_words(other.values)}, but {rows} and {columns} in "
                f"the {first.lower()}s. Accepted is one for each row and output."
            )
        cells.check_same_names(other, named, f"{noun.lower()}s")


def same_rows(observations: Observations, inputs: Float[np.ndarray, "N C"]) -> None:
    """Refuse outputs that have other rows than the inputs."""
    if len(observations) != len(inputs):
        raise ValueError(
            f"Found {len(inputs)} row(s) of inputs and {len(observations)} of outputs. Accepted "
            "are equal numbers: give one row of outputs (NaN where missing) for each row of inputs."
        )


def same_outputs(observations: Observations, names: tuple[str, ...]) -> None:
    """Refuse other outputs than the model has: another number of them, or another order.

    >>> same_outputs(Observations.exact({"b": [1.0], "a": [2.0]}), ("a", "b"))
    Traceback (most recent call last):
    ...
    ValueError: Outputs: found 'b', 'a'. Accepted are those of the model in their order: 'a', 'b'.
    """
    found = observations.names
    # Other names altogether are fine: the truth is often called "truth_a".
    moved = [name for name in found if name in names and found.index(name) != names.index(name)]
    if len(found) != len(names) or moved:
        raise ValueError(
            f"Outputs: found {listed(found)}. Accepted are those of the model in their order: "
            f"{listed(names)}."
        )


def as_seen(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> Observations:
    """Take every record at its word: a censored cell becomes an exact one at its value.

    This is what a model that knows nothing of censoring does. Bounds of counts are rounded inward
    first; between two counts it is the lower of the middle ones. A bound where no value can be (a
    concentration of at least 0) is no value either.
    """
    observations = dataclasses.replace(observations, is_share=NO_SHARE, limit_odds=NO_ODDS)
    _check_support(observations, likelihoods)
    columns = [_at_its_word(observations, d, each) for d, each in enumerate(likelihoods)]
    values = np.stack(columns, axis=1)
    lower, upper = (np.where(np.isnan(values), end, values) for end in (-np.inf, np.inf))
    return dataclasses.replace(observations, lower=lower, upper=upper)


def _at_its_word(
    observations: Observations, d: int, likelihood: Likelihood
) -> Float[np.ndarray, " N"]:
    """Return the values for which the cells of one output are taken; NaN: none."""
    support, between = likelihood.support, observations.is_interval[:, d]
    low, high = observations.lower[:, d], observations.upper[:, d]
    if support.discrete:
        low, high = np.ceil(low), np.floor(high)
    low = np.where(between, np.maximum(low, support.lower), low)
    high = np.where(between, np.minimum(high, support.upper), high)
    values = Observations(low, high).values()[:, 0]
    values = np.floor(values) if support.discrete else values
    return np.where(support.contains(values), values, np.nan)


def within_support(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> Observations:
    """Refuse what a likelihood cannot produce, and return the bounds as it sees them.

    Bounds of counts are rounded inward (at least 2.5 is at least 3), and a bound that excludes
    nothing (a demand of at least 0) is no bound.
    """
    _check_support(observations, likelihoods)
    seen = to_support(observations, likelihoods)
    seen.require_observed()
    return seen


def _check_support(observations: Observations, likelihoods: tuple[Likelihood, ...]) -> None:
    for d, likelihood in enumerate(likelihoods):
        _check_exact(observations, d, likelihood)
        _check_possible(observations, d, likelihood)
        _check_shares(observations, d, likelihood)


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


def _check_shares(observations: Observations, d: int, likelihood: Likelihood) -> None:
    """Refuse a share of what is no count, or that is none itself."""
    share, values = observations.is_share[:, d], observations.lower[:, d]
    if share.any() and not knows_shares(likelihood):
        raise ValueError(
            f"Output {observations.names[d]!r}: found {share.sum()} row(s) of which a share was "
            f"counted, or may have been, and the likelihood {type(likelihood).__name__}. Accepted "
            'are likelihoods of counts: "poisson" or "negative_binomial". Choose one, or '
            'side="right".'
        )
    bad = share & ~likelihood.support.contains(values)
    _refuse(bad, observations, d, likelihood, lambda row: f"a share of {values[row]:g}")


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
        sure = observations.is_share[:, d] & ~observations.is_share_or_limit[:, d]
        if len(exact) == 0 and not sure.any():
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


def warn_of_shared_times(inputs: Float[np.ndarray, "N C"], time: Any) -> None:
    """Warn if most rows of a wide table have the time, and all else, of another: it may be long.

    >>> warn_of_shared_times(np.arange(12.0)[:, None], "t")
    """
    _, counts = np.unique(inputs, axis=0, return_counts=True)
    shared = int(counts[counts > 1].sum())
    if len(inputs) >= FEW_ROWS and 2 * shared > len(inputs):
        warn(
            f"Time {str(time)!r}: {shared:,} of {len(inputs):,} rows have a time (and inputs) that "
            "another row has, too; they are taken for measurements of one and the same. If each "
            "row is about one place, product or station, name the column that says which one: "
            "by='...'."
        )


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's that led here: the first that is not of this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("censored_gp."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=max(level, 2))
