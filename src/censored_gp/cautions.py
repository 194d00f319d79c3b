"""What records cannot tell, in sentences: outputs, and hours of the week, seldom seen."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Shaped

from censored_gp.observations import Observations

__all__ = ["of_censoring"]

MANY = 0.5
"""Share of censored cells of an output that is worth a word."""
ALWAYS = 0.05
"""Share of the hours of the week (or of its days) that may be censored whenever they come."""
LEAST = 2
"""Weeks in which an hour must have been for it to be said that it is always censored."""
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY, WEEK = 24, 168
SHARE = (
    ' If it is a count that stopped at a random moment of its period, say so: side="share" takes '
    "it for a share."
)


def of_censoring(known: Observations, times: Shaped[np.ndarray, " N"] | None = None) -> list[str]:
    """Return where levels rest on the model more than on data, output by output.

    >>> for said in of_censoring(Observations.from_flags([3, 5, 5], [0, 1, 1])):
    ...     print(said)
    Output 'y': 67% of its cells are censored. Its level rests more on the model than on data: ...
    """
    # A share, unlike a bound, speaks of the level.
    hidden = ~known.is_exact & ~known.is_missing & ~known.is_share
    found = []
    for d, name in enumerate(known.names):
        seen = ~known.is_missing[:, d]
        share = float(hidden[seen, d].mean()) if seen.any() else 0.0
        if share > MANY:
            found.append(
                f"Output {name!r}: {share:.0%} of its cells are censored. Its level rests more on "
                "the model than on data: trust differences in time more than the level itself."
            )
        elif times is not None:
            said = _of_slots(hidden[seen, d], times[seen])
            # Only of what is at least so much can a share have been seen.
            hint = SHARE if known.is_right[hidden[:, d], d].all() else ""
            found += [f"Output {name!r}: {words}{hint}" for words in said]
    return found


def _of_slots(hidden: Bool[np.ndarray, " K"], times: Shaped[np.ndarray, " K"]) -> list[str]:
    """Return whether hours of the week (of daily records: days) are censored in every week."""
    # Weeks begin on Mondays, and the first day of counting was a Thursday.
    hours = times.astype("datetime64[h]").astype(np.int64) + 3 * DAY
    daily = len(np.unique(hours % DAY)) <= 1
    slots, weeks = hours % WEEK // (DAY if daily else 1), hours // WEEK
    number = WEEK // DAY if daily else WEEK
    often = np.bincount(np.unique(np.stack([slots, weeks]), axis=1)[0], minlength=number) >= LEAST
    open_ = np.bincount(slots, ~hidden, number) > 0
    always = often & ~open_
    if not always.any() or always.sum() < ALWAYS * often.sum():
        return []
    first = int(np.argmax(always))
    what, example = "hours", f"{DAYS[first // DAY]} {first % DAY}:00"
    if daily:
        what, example = "days", DAYS[first]
    return [
        f"{always.sum()} of {often.sum()} {what} of the week are censored in every week, such as "
        f"{example}. Its values there are known by other {what} and outputs alone, and come out "
        "too far beyond the bounds if these went up and down with them."
    ]
