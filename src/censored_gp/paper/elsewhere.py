"""Stations of New York that had no part in any choice: does what table 4 tells hold there, too?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from censored_gp.datasets import station_pairs
from censored_gp.paper import new_york
from censored_gp.paper.gaps import AIM, WITHIN, gap
from censored_gp.paper.new_york import CHAMPIONS, COUNTED, IGNORED
from censored_gp.paper.page import collect, effort, markdown, shown
from censored_gp.paper.runs import Row, Settings

__all__ = ["DRAWS", "is_elsewhere", "runs", "section"]

DRAWS = 1
"""Draws of the censoring at each station: what differs most is the station."""
COUNT = 12
LOOKED_AT = ("3711", "366", "379", "523", "3386", "393", "487")
"""Stations whose truth was seen while defaults were settled, and one more of the same files."""
CASES = {
    "observed": "as observed",
    "share": "told that a share was seen",
    "limits": "limits independent of demand",
}
SHOWN = {
    "ratio_train": "expected / true, training hours",
    "coverage": "90 %: test hours",
    "coverage_expected": "of its own draws",
    "coverage_at_random": "at random",
    "coverage_censored": "90 %: censored hours",
    "coverage_censored_expected": "of its own draws",
    "coverage_censored_at_random": "at random",
}
PROTOCOL = """\
Made by `censored-gp reproduce elsewhere`. Some of the package's defaults were settled after looking
at the truth of table 4's stations. These {count} had no part in that: of all stations with a pickup
in an hour or more in June and July 2016, in the order of their demand, every one in so many is
taken, with the station that is most correlated with it. Those of table 4 are left out. Hours, rule
of censoring and limits are those of station 379, models those of the package's defaults with
temperature. Means are over stations, and so are standard errors. *Closed* is of the means of R²;
then of how many stations at least {aim:.0%} of the gap is closed, of those that have one.
*Of its own draws* is what the intervals would hold if the model were right, *within* of how many
stations they hold {low} to {high}."""


def is_elsewhere(row: Row) -> bool:
    """Say whether a run is of these stations.

    >>> is_elsewhere({"partner": "published"}), is_elsewhere({"partner": "426"})
    (False, True)
    """
    return row["partner"].isdigit()


def runs(draws: int = DRAWS, engine: str = "natural") -> list[Settings]:
    """Return the runs: champions, told or not, with other limits, and their twins for the gap."""
    pairs = station_pairs(COUNT, without=LOOKED_AT)
    return [
        new_york.own_run(pair, draw, family, model, data=seen, engine=engine)
        for family, model, seen, seeds in _kinds(draws)
        for pair, draw in itertools.product(pairs, range(seeds))
    ]


def _kinds(draws: int) -> Iterator[tuple[str, str, str, int]]:
    """Yield family, model, what it sees, and of how many draws."""
    for (family, model), seen in itertools.product(CHAMPIONS.items(), (*CASES, "truth")):
        if seen == "share" and (family, model) not in COUNTED:
            continue
        # The truth is the same in all draws: one run serves all.
        yield family, model, seen, 1 if seen == "truth" else draws
        if seen in ("observed", "limits"):
            yield family, IGNORED[family, model], seen, draws


def section(rows: Sequence[Row]) -> list[str]:
    """Return how the gap is closed and what intervals hold, in the mean over the stations.

    >>> section([])
    []
    """
    own = [row for row in rows if is_elsewhere(row)]
    if not own:
        return []
    low, high = WITHIN
    stations = sorted({row["station"] for row in own}, key=int)
    protocol = PROTOCOL.format(count=len(stations), aim=AIM, low=low, high=high)
    named = ", ".join(
        f"{row['station']} with {row['partner']}"
        for row in {row["station"]: row for row in own}.values()
    )
    parts = [f"### {len(stations)} more stations", protocol, f"Stations: {named}."]
    return [*parts, _gaps(own, stations), _coverages(own), effort(own)]


def _rows() -> Iterator[tuple[str, str, str]]:
    """Yield what was known of the censoring, family and model of every row of the tables."""
    for seen, (family, model) in itertools.product(CASES, CHAMPIONS.items()):
        if seen != "share" or (family, model) in COUNTED:
            yield seen, family, model


def _gaps(rows: Sequence[Row], stations: Sequence[str]) -> str:
    lines = []
    for seen, family, model in _rows():
        each = [gap([r for r in rows if r["station"] == s], "own", family, model, seen)
                for s in stations]  # fmt: skip
        known = np.array([found for found in each if found[-1]])
        if not len(known):
            continue
        ignoring, ours, oracle, closed = known[:, :4].T
        share = (ours.mean() - ignoring.mean()) / (oracle.mean() - ignoring.mean())
        there = closed[np.isfinite(closed)]
        lines.append([
            CASES[seen], f"{family} {model}".replace("_", " "),
            *(shown(values) for values in (ignoring, ours, oracle)),
            f"{share:.2f}", f"{np.sum(there >= AIM)} of {len(there)}",
        ])  # fmt: skip
    header = ["censoring", "model", "R² ignoring", "R² ours", "R² oracle", "closed"]
    return markdown([*header, f"stations with {AIM:.0%}"], lines)


def _coverages(rows: Sequence[Row]) -> str:
    low, high = WITHIN
    lines = []
    for seen, family, model in _rows():
        name = f"{family} {model}"
        chosen = [r for r in rows if (r["family"], r["model"]) == (family, model)
                  and r["data"] == seen]  # fmt: skip
        scores = {m: collect(chosen, ["family", "model"], ["station"], m).get(name, {})
                  for m in SHOWN}  # fmt: skip
        if not scores["coverage"]:
            continue
        counts = [
            f"{sum(low <= held <= high for held in scores[m].values())} of {len(scores[m])}"
            for m in ("coverage", "coverage_censored")
        ]
        cells = [shown(scores[m].values()) for m in SHOWN]
        lines.append([CASES[seen], name.replace("_", " "), *cells[:4], counts[0],
                      *cells[4:], counts[1]])  # fmt: skip
    titles = [*SHOWN.values()]
    header = ["censoring", "model", *titles[:4], "within", *titles[4:], "within"]
    return markdown(header, lines)
