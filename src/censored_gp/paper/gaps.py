"""How much of what censoring costs is made good, with the rule of censoring known or not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from censored_gp.datasets.demand import MOST_SUPPLY
from censored_gp.paper import new_york
from censored_gp.paper.models import IGNORING
from censored_gp.paper.new_york import BLOCK_NAMES, BLOCKS, CHAMPIONS, IGNORED, STATIONS, UNTOLD
from censored_gp.paper.page import Scores, bulleted, collect, effort, markdown, shown
from censored_gp.paper.runs import Row, Settings

__all__ = [
    "about_coverage",
    "about_gaps",
    "block_scores",
    "costs",
    "gap",
    "gap_closed",
    "gaps",
    "is_beside",
    "mean_of",
    "row_name",
    "runs",
    "section",
]

AIM = 0.8
"""Share of the censoring gap that should be closed."""
LEAST_GAP = 0.02
"""Difference in R² below which there is no gap to speak of."""
WITHIN = (0.85, 0.95)
"""How much the 90 % intervals of the count families should cover."""
NEAR = 0.05
"""How near to what they would hold of a model's own draws intervals should come."""
COVERAGES = {
    "coverage": "test hours",
    "coverage_expected": "of its own draws",
    "coverage_censored": "censored hours",
    "coverage_censored_expected": "of its own draws",
}
GAP = """\
Made by `censored-gp reproduce gaps`: (R² of ours - R² of the same model ignoring censoring) / (R²
of the same model trained on the truth - R² ignoring censoring), from means over the draws that both
have. Where the truth makes a model no better there is no gap. More than one is closed where a model
beats its twin that was trained on the truth: it cannot be better informed, but may err in the
direction in which demand has moved since (the ratios above tell), or be held back less by what it
does not see."""
RULES = """\
### What the rule of censoring has to do with it

The rule shows a share of the truth, which censored likelihoods, the paper's and ours, take for a
limit that has nothing to do with demand. Where most hours of one kind are censored nothing then
holds their estimates down. What follows tells whether that is why a gap stays open."""
SHARES = """\
**Knowing that a share was seen.** The same models are fitted to the same data, and told so:
`fit(..., side="share")`. A likelihood of counts can make use of it: any share of the truth is
equally likely to be seen."""
EITHER = """\
**Not knowing.** The same models are fitted to the same data, and take what an hour shows for a
share or a limit: `fit(..., side="share_or_limit")`. Each is taken for as likely as the other, hour
by hour; that is no estimate, as records do not tell. It was settled after looking at trials of it,
and of nine shares in ten, of up to three draws of these stations. The package's defaults."""
LIMITS = f"""\
**With limits that are independent of demand.** The same hours get a limit that has nothing to do
with their own demand, a share, up to {MOST_SUPPLY}, of the demand at the same hour of another
training day. An hour is censored if that is less than the truth. {new_york.FEW} draws, the
package's defaults."""
LIMITS_EITHER = """\
**Not knowing, with limits that are independent of demand.** What it costs to take limits for what
may be shares: the same data as in the last tables."""
LIMITS_SHARE = """\
**Being told what is not so.** The same data once more, all of their limits taken for shares."""
RULE_WORDS = {
    "share": SHARES,
    "either": EITHER,
    "limits": LIMITS,
    "limits either": LIMITS_EITHER,
    "limits share": LIMITS_SHARE,
}


def runs(draws: int, engine: str = "natural") -> list[Settings]:
    """Return the runs that tell what censoring costs in table 4, and what its rule does to it.

    >>> len(runs(1))
    150
    """
    return [*new_york.gap_runs(draws, engine), *new_york.rule_runs(draws, engine)]


def block_scores(rows: Sequence[Row], block: str, score: str, data: str = "observed") -> Scores:
    """Return a score of one block by family and model, and by draw.

    >>> block_scores([], "own", "r2")
    {}
    """
    chosen = [row for row in rows if row["block"] == block and row["data"] == data]
    return collect(chosen, ["family", "model"], ["draw"], score)


def gap_closed(ours: float, ignoring: float, oracle: float) -> float:
    """Return the share of the loss by censoring that a model makes good.

    >>> round(gap_closed(0.6, 0.2, 0.7), 3)
    0.8
    """
    gap = oracle - ignoring
    return (ours - ignoring) / gap if gap > LEAST_GAP else float("nan")


def gap(
    rows: Sequence[Row], block: str, family: str, model: str, data: str = "observed"
) -> tuple[float, ...]:
    """Return R² ignoring censoring, ours, the oracle's, the share closed, and the draws of it.

    What ignores censoring does not ask what a record means.

    >>> gap([], "own", "poisson", "MOCGP")[-1]
    0.0
    """
    seen, truth = (block_scores(rows, block, "r2", each) for each in (data, "truth"))
    naive = block_scores(rows, block, "r2", UNTOLD[data]) if data in UNTOLD else seen
    ours = seen.get(f"{family} {model}", {})
    without = naive.get(f"{family} {IGNORED[family, model]}", {})
    oracle = [*truth.get(f"{family} {model}", {}).values()]
    # Of the same draws: the rest would be chance.
    both = sorted(ours.keys() & without.keys()) if oracle else []
    values = ([without[k] for k in both], [ours[k] for k in both], oracle)
    means = [float(np.mean(each or [np.nan])) for each in values]
    return (*means, gap_closed(means[1], means[0], means[2]), float(len(both)))


def gaps(rows: Sequence[Row], data: str = "observed") -> str:
    """Return the table of gaps.

    >>> gaps([]).count("|")
    18
    """
    lines = []
    for station, block, (family, model) in itertools.product(STATIONS, BLOCKS, IGNORED):
        found = gap(_of(rows, station), block, family, model, data)
        if not found[-1]:
            continue
        figures = ["-" if np.isnan(value) else f"{value:.3f}" for value in found[:3]]
        own = [
            station,
            BLOCK_NAMES[block],
            row_name(family, model),
            *figures,
            _closed(found),
            f"{found[-1]:.0f}",
        ]
        lines.append(own)
    header = ["station", "block", "model", "R² ignoring", "R² ours", "R² oracle", "closed", "draws"]
    return markdown(header, lines)


def _closed(found: tuple[float, ...]) -> str:
    """Say how much of a gap is closed; without a gap, what heeding the censoring costs."""
    ignoring, ours, _, closed, _ = found
    if not np.isnan(closed):
        return f"{closed:.2f}"
    return f"no gap ({ours - ignoring:+.2f})"


def _of(rows: Sequence[Row], station: str) -> list[Row]:
    return [r for r in rows if r["station"] == station and r["partner"] == "published"]


def about_gaps(rows: Sequence[Row], data: str = "observed") -> str:
    """Say in how many cases the aim is met, and name those in which it is not.

    >>> about_gaps([])
    ''
    """
    cases = [
        (f"{station}, {BLOCK_NAMES[block]}, {row_name(family, model)}", found)
        for station, block, (family, model) in itertools.product(STATIONS, BLOCKS, IGNORED)
        if (found := gap(_of(rows, station), block, family, model, data))[-1]
    ]
    missed = [name for name, found in cases if found[3] < AIM or costs(found)]
    if not cases:
        return ""
    met = f"In {len(cases) - len(missed)} of {len(cases)} cases at least {AIM:.0%} is closed"
    named = f" Not so at {'; '.join(missed)}." if missed else ""
    return f"{met}, or there is no gap.{named}"


def costs(found: tuple[float, ...]) -> bool:
    """Say whether there is no gap, and heeding the censoring makes a model worse all the same.

    >>> costs((0.5, 0.4, 0.5, float("nan"), 1.0))
    True
    """
    return bool(np.isnan(found[3]) and found[1] < found[0] - LEAST_GAP)


def is_beside(row: Row) -> bool:
    """Say whether a run is not of table 4 itself, but tells of its gaps.

    >>> is_beside({"family": "poisson", "model": "MOCGP", "data": "truth"})
    True
    """
    return row["family"] != "-" and (row["data"] != "observed" or row["model"] == IGNORING)


def section(rows: Sequence[Row]) -> list[str]:
    """Return how much of the gap is closed, and what the rule of censoring has to do with it.

    >>> section([])
    []
    """
    own = [row for row in rows if is_beside(row)]
    if not own:
        return []
    parts = ["### How much of the censoring gap is closed", GAP, gaps(rows), about_gaps(rows)]
    return [*parts, *_rules(rows), effort(own)]


def _rules(rows: Sequence[Row]) -> list[str]:
    """Return what models that know the rule, and data with another one, tell."""
    own = {row["data"] for row in rows}
    parts = []
    for data, words in RULE_WORDS.items():
        if data in own:
            parts += [words, gaps(rows, data), about_gaps(rows, data)]
            parts.append(_coverage_with(rows, data, BLOCKS if data == "share" else ("own",)))
            parts += [about_coverage(rows, data)] if data in UNTOLD else []
    return [RULES, *parts] if parts else []


def _coverage_with(rows: Sequence[Row], data: str, blocks: Sequence[str]) -> str:
    """Return how much the intervals cover with other data, or other knowledge of them."""
    lines = []
    measures = ("nlpd_per_point", "ratio_train", "mae_censored", *COVERAGES)
    for station, block in itertools.product(STATIONS, blocks):
        scores = {m: block_scores(_of(rows, station), block, m, data) for m in measures}
        for name in (f"{family} {model}" for family, model in CHAMPIONS.items()):
            if name in scores["coverage"]:
                cells = [shown(scores[m].get(name, {}).values()) for m in measures]
                lines.append([station, BLOCK_NAMES[block], name.replace("_", " "), *cells])
    titles = ["NLPD per hour", "expected / true, training hours", "MAE, censored hours"]
    titles += [f"90 %: {title}" for title in COVERAGES.values()]
    return markdown(["station", "block", "model", *titles], lines)


def about_coverage(rows: Sequence[Row], data: str = "observed") -> str:
    """Say where 90 % intervals of the count families hold less or more than they should.

    >>> about_coverage([])
    ''
    """
    (low, high), known = WITHIN, list(_coverages(rows, data))
    if not known:
        return ""
    outside = [own for own in known if not low <= np.mean(own.closed) <= high]
    inside = _by_block(known, lambda own: own not in outside)
    said = f"90 % coverages of the count families: {inside} are within {low} to {high}."
    near = _by_block(
        [own for own in known if not np.isnan(_apart(own))], lambda own: abs(_apart(own)) <= NEAR
    )
    if near:
        said += f" {near} are within {NEAR} of what the intervals hold of the model's own draws."
    lines = [f"{own.what}: {_held(own)}." for own in outside]
    return f"{said} Outside {low} to {high} are:\n\n{bulleted(lines)}" if lines else said


class Coverage(NamedTuple):
    """What the 90 % intervals of one row hold, draw by draw."""

    block: str
    what: str
    closed: list[float]
    expected: list[float]
    """Of the model's own draws."""
    even: list[float]
    """With ends at random."""


def _apart(own: Coverage) -> float:
    return float(np.mean(own.closed) - np.mean(own.expected))


def _held(own: Coverage) -> str:
    """Say what intervals hold of the truth, and of draws from the model."""
    return (
        f"{shown(own.closed)}; of its own draws {shown(own.expected)}; at random {shown(own.even)}"
    )


def _by_block(known: Sequence[Coverage], good: Callable[[Coverage], bool]) -> str:
    """Say how many coverages of each block are good."""
    each = []
    for block in BLOCKS:
        own = [good(found) for found in known if found.block == block]
        each += [f"{sum(own)} of {len(own)} with {BLOCK_NAMES[block]}"] if own else []
    return " and ".join(each)


def _coverages(rows: Sequence[Row], data: str) -> Iterator[Coverage]:
    """Yield the coverages of the champions of the count families that have been run."""
    names = [f"{family} {model}" for family, model in new_york.COUNTED]
    each = itertools.product(STATIONS, BLOCKS, ("coverage", "coverage_censored"), names)
    for station, block, measure, name in each:
        words = (BLOCK_NAMES[block], name.replace("_", " "), COVERAGES[measure])
        held = [
            [*block_scores(_of(rows, station), block, m, data).get(name, {}).values()]
            for m in (measure, f"{measure}_expected", f"{measure}_at_random")
        ]
        if held[0]:
            yield Coverage(block, f"Station {station}, {', '.join(words)}", *held)


def row_name(family: str, model: str) -> str:
    """Return what a row is called.

    >>> row_name("negative_binomial", "HMOCGP")
    'negative binomial HMOCGP'
    """
    return f"{family} {model}".replace("_", " ")


def mean_of(scores: Scores, name: str) -> float:
    """Return the mean of a row, NaN where there is none.

    >>> mean_of({"CGP": {("0",): 1.0, ("1",): 2.0}}, "CGP")
    1.5
    """
    return float(np.mean([*scores.get(name, {}).values()] or [np.nan]))
