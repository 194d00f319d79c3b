"""What records cannot tell, in sentences: outputs, and hours of the week, seldom seen."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Shaped

from censored_gp.demand import WEEKDAYS
from censored_gp.observations import Observations

__all__ = ["of_censoring"]

MANY = 0.5
"""Share of censored cells of an output that is worth a word."""
ALWAYS = 0.05
"""Share of the hours of the week (or of its days) that may be censored every time."""
LEAST = 3
"""Weeks in which an hour must have been for it to be said that it is censored every time."""
MORE_THAN_CHANCE = 3.0
"""How many times as many such hours there must be as there would be were flags dealt at random."""
DAY, WEEK = 24, 168
SHARE = (
    " If it is a count that stopped at a random moment of its period, say so: with a family of "
    'counts, side="share" takes it for a share, and side="share_or_limit" for what may be one.'
)


EITHER = " It also rests on a share being as likely as a limit."


def of_censoring(known: Observations, times: Shaped[np.ndarray, " N"] | None = None) -> list[str]:
    """Return where levels rest on the model more than on data, output by output.

    >>> for said in of_censoring(Observations.from_flags([3, 5, 5], [0, 1, 1])):
    ...     print(said)
    Output 'y': 67% of its cells are censored. Its level rests more on the model than on data: ...
    """
    # What lies between two bounds speaks of the level, and so does a share, if it is one.
    either = known.is_share_or_limit
    hidden = (known.is_right | known.is_left) & (~known.is_share | either)
    found = []
    for d, name in enumerate(known.names):
        seen = ~known.is_missing[:, d]
        share = float(hidden[seen, d].mean()) if seen.any() else 0.0
        if share > MANY:
            found.append(
                f"Output {name!r}: {share:.0%} of its cells are censored. Its level rests more on "
                "the model than on data: trust differences in time more than the level itself."
            )
        elif times is not None and (said := _of_slots(hidden[seen, d], times[seen])):
            # Only of what is at least so much can a share have been seen.
            hint = SHARE if known.is_right[hidden[:, d], d].all() else ""
            found.append(f"Output {name!r}: {said}{EITHER if either[:, d].any() else hint}")
    return found


def _of_slots(hidden: Bool[np.ndarray, " K"], times: Shaped[np.ndarray, " K"]) -> str:
    """Return that hours of the week (of daily records: days) are censored every time, if so."""
    # Weeks begin on Mondays, and the first day of counting was a Thursday.
    hours = times.astype("datetime64[h]").astype(np.int64) + 3 * DAY
    daily = len(np.unique(hours % DAY)) <= 1
    slots, number = (hours % WEEK // DAY, 7) if daily else (hours % WEEK, WEEK)
    weeks = np.bincount(np.unique(hours // WEEK * number + slots) % number, minlength=number)
    often = weeks >= LEAST
    always = often & (np.bincount(slots, ~hidden, number) == 0)
    by_chance = float(np.sum(hidden.mean() ** weeks[often])) if often.any() else 0.0
    if always.sum() <= max(ALWAYS * often.sum(), MORE_THAN_CHANCE * by_chance):
        return ""
    first, count = int(np.argmax(always)), int(always.sum())
    what, example = "hours", f"{WEEKDAYS[first // DAY]} {first % DAY}:00"
    if daily:
        what, example = "days", WEEKDAYS[first]
    return (
        f"{count} of {often.sum()} {what} of the week {'is' if count == 1 else 'are'} censored "
        f"every time, such as {example}. What is said of the values there rests on other {what} "
        "and on the model, and goes too far beyond the bounds if the bounds rose and fell with "
        "the values."
    )
