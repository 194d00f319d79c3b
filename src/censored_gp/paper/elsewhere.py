"""Stations that were not looked at while defaults were settled: do these hold there, too?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from censored_gp.datasets import station_pairs
from censored_gp.paper import new_york
from censored_gp.paper.gaps import AIM, NEAR, WITHIN, costs, gap, gap_closed, row_name
from censored_gp.paper.new_york import CHAMPIONS, COUNTED, IGNORED, KNOWN, UNTOLD
from censored_gp.paper.page import collect, effort, markdown, shown
from censored_gp.paper.runs import Row, Settings

__all__ = ["COUNT", "DRAWS", "in_short", "is_elsewhere", "runs", "section"]

DRAWS = 1
COUNT = 12
LOOKED_AT = ("3711", "366", "379", "523", "3386", "393", "487")
"""Stations of table 4, at whose truth was looked, and one more of the same files."""
HOURS = {"coverage": "test hours", "coverage_censored": "censored hours"}
PROTOCOL = """\
Made by `censored-gp reproduce elsewhere`. Some of the package's defaults were settled after looking
at the truth of table 4's stations, hour by hour. At that of these {count} nobody did (some of them
lie in areas of table 3); but how models fare here that take records for limits, or are told, was
known when `share_or_limit` was made. Of all stations with at least one pickup an hour in June and
July 2016, in the order of their demand, every one in so many is taken, with the one that is most
correlated with it over all hours; those of table 4 are left out. Hours, rule of censoring and
limits are those of station 379, models have the package's defaults and temperature. Draws of the
censoring: {draws}, with the same random numbers at all stations.

Means and standard errors are over stations: what other days would do they do not tell. *Closed* is
from the means of R²; then, at how many stations at least {aim:.0%} of the gap is closed, of those
that have one, or where heeding the censoring costs. *Within* says at how many stations intervals
hold {low} to {high}, *near* at how many they come within {near} of what they hold of the model's
own draws."""


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
    for seen, family, model in _cases():
        yield family, model, seen, draws
        # What ignores censoring does not ask what a record means.
        if seen not in UNTOLD:
            yield family, IGNORED[family, model], seen, draws
    for family, model in CHAMPIONS.items():
        # The truth is the same in all draws: one run serves all.
        yield family, model, "truth", 1


def _cases() -> Iterator[tuple[str, str, str]]:
    """Yield what is known of the censoring, family and model of every row of the tables."""
    for seen, (family, model) in itertools.product(KNOWN, CHAMPIONS.items()):
        if seen not in UNTOLD or (family, model) in COUNTED:
            yield seen, family, model


def section(rows: Sequence[Row]) -> list[str]:
    """Return how the gap is closed and what intervals hold, in the mean over the stations.

    >>> section([])
    []
    """
    own = [row for row in rows if is_elsewhere(row)]
    if not own:
        return []
    # In whatever order the workers came to them.
    partners = dict(sorted(((r["station"], r["partner"]) for r in own), key=lambda s: int(s[0])))
    named = ", ".join(f"{station} with {partner}" for station, partner in partners.items())
    drawn = len({row["draw"] for row in own})
    words = {"count": len(partners), "aim": AIM, "near": NEAR, "draws": drawn}
    protocol = PROTOCOL.format(low=WITHIN[0], high=WITHIN[1], **words)
    parts = [f"### {len(partners)} more stations", protocol, f"Stations: {named}."]
    return [*parts, _gaps(own), _coverages(own), effort(own)]


def in_short(rows: Sequence[Row]) -> Iterator[str]:
    """Yield at how many of the stations the gap is closed, by what models know.

    >>> list(in_short([]))
    []
    """
    own = [row for row in rows if is_elsewhere(row)]
    told: dict[str, list[str]] = {}
    for seen, family, model in _cases():
        found = _found(own, seen, family, model)
        if found and not seen.startswith("limits"):
            told.setdefault(KNOWN[seen], []).append(f"{row_name(family, model)} {_met(found)}")
    if told:
        each = "; ".join(f"{known}, {', '.join(rows)}" for known, rows in told.items())
        yield f"Stations by which nothing was settled, with {AIM:.0%} of the gap closed: {each}."


def _found(rows: Sequence[Row], seen: str, family: str, model: str) -> list[tuple[float, ...]]:
    """Return the gaps of one model, station by station."""
    stations = sorted({row["station"] for row in rows}, key=int)
    each = (gap([r for r in rows if r["station"] == s], "own", family, model, seen)
            for s in stations)  # fmt: skip
    return [found for found in each if found[-1]]


def _met(known: Sequence[tuple[float, ...]]) -> str:
    """Say at how many stations the gap is closed, of those that have one or where it costs."""
    there = [found for found in known if not np.isnan(found[3]) or costs(found)]
    return f"{sum(found[3] >= AIM for found in there)} of {len(there)}"


def _gaps(rows: Sequence[Row]) -> str:
    lines = []
    for seen, family, model in _cases():
        known = _found(rows, seen, family, model)
        if not known:
            continue
        ignoring, ours, oracle = np.array(known)[:, :3].T
        share = gap_closed(*(float(np.mean(values)) for values in (ours, ignoring, oracle)))
        figures = [shown(values) for values in (ignoring, ours, oracle)]
        closed = "no gap" if np.isnan(share) else f"{share:.2f}"
        lines.append([KNOWN[seen], row_name(family, model), *figures, closed, _met(known)])
    header = ["censoring", "model", "R² ignoring", "R² ours", "R² oracle", "closed"]
    return markdown([*header, f"stations with {AIM:.0%}"], lines)


def _coverages(rows: Sequence[Row]) -> str:
    header = ["censoring", "model", "expected / true, training hours", "MAE, censored hours"]
    for hours in HOURS.values():
        header += [f"90 %: {hours}", "of its own draws", "at random", "within", "near"]
    lines = []
    for seen, family, model in _cases():
        chosen = [r for r in rows if (r["family"], r["model"]) == (family, model)
                  and r["data"] == seen]  # fmt: skip
        if not chosen:
            continue
        cells = [cell for measure in HOURS for cell in _held(chosen, measure)]
        sums = [shown(_by_station(chosen, score)) for score in ("ratio_train", "mae_censored")]
        lines.append([KNOWN[seen], row_name(family, model), *sums, *cells])
    return markdown(header, lines)


def _held(rows: Sequence[Row], measure: str) -> list[str]:
    """Return what intervals hold in the mean, and at how many stations as much as they should."""
    closed, own, even = (
        np.array(_by_station(rows, f"{measure}{kind}")) for kind in ("", "_expected", "_at_random")
    )
    within = int(np.sum((closed >= WITHIN[0]) & (closed <= WITHIN[1])))
    near = int(np.sum(np.abs(closed - own) <= NEAR))
    return [*map(shown, (closed, own, even)), f"{within} of {len(closed)}",
            f"{near} of {len(closed)}"]  # fmt: skip


def _by_station(rows: Sequence[Row], score: str) -> list[float]:
    """Return a score of one model, station by station."""
    found = collect(rows, ["model"], ["station"], score)
    return [value for own in found.values() for value in own.values()]
