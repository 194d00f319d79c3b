"""Table 4: true demand on unseen days at New York's bike stations, from censored training data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from censored_gp.datasets.demand import MOST_SUPPLY
from censored_gp.paper import new_york
from censored_gp.paper.models import NATURAL
from censored_gp.paper.new_york import BLOCKS, CHAMPIONS, IGNORED, REFERENCES, ROWS, STATIONS
from censored_gp.paper.page import (
    Scores,
    bold_best,
    bulleted,
    collect,
    differences,
    effort,
    markdown,
    shown,
    verdict,
)
from censored_gp.paper.runs import Row, Settings

__all__ = ["DRAWS", "PAPER", "STUDY", "gap_closed", "runs", "section"]

DRAWS = 10
STUDY = new_york.STUDY
AIM = 0.8
"""Share of the censoring gap that should be closed."""
LEAST_GAP = 0.02
"""Difference in R² below which there is no gap to speak of."""
WITHIN = (0.85, 0.95)
"""How much the 90 % intervals of the count families should cover."""
PAPER = {
    ("gaussian", "NCGP"): (0.172, 0.637, 0.241, 0.466),
    ("gaussian", "MONCGP"): (0.190, 0.653, 0.244, 0.473),
    ("gaussian", "CGP"): (0.339, 0.795, 0.360, 0.484),
    ("gaussian", "HCGP"): (0.366, 0.795, 0.362, 0.477),
    ("gaussian", "HMOCGP"): (0.381, 0.800, 0.369, 0.671),
    ("poisson", "NCGP"): (0.150, 0.678, 0.352, 0.466),
    ("poisson", "MONCGP"): (0.218, 0.679, 0.348, 0.446),
    ("poisson", "CGP"): (0.201, 0.697, 0.383, 0.476),
    ("poisson", "MOCGP"): (0.262, 0.698, 0.391, 0.478),
    ("negative_binomial", "NCGP"): (0.150, 0.5712, 0.182, 0.425),
    ("negative_binomial", "MONCGP"): (0.170, 0.691, 0.284, 0.461),
    ("negative_binomial", "CGP"): (0.174, 0.701, 0.203, 0.486),
    ("negative_binomial", "HMOCGP"): (0.224, 0.730, 0.376, 0.490),
}
"""R² at the stations 3711, 379, 3386 and 2002."""
BLOCK_NAMES = {"paper": "the paper's kernels", "own": "the package's defaults"}
MEASURES = {
    "r2": ("R²", 3),
    "mae": ("MAE", 2),
    "nlpd_per_point": ("NLPD per hour", 3),
    "crps": ("CRPS", 3),
    "coverage": ("90 % coverage, test hours", 3),
    "coverage_censored": ("90 % coverage, censored hours", 3),
    "fit_seconds": ("seconds per fit", 1),
}
PROTOCOL = """\
Hourly pickups, each station with the one it is most correlated with: 3711 with 366 (the paper's own
data, 2018-06-01 to 2018-08-01), 379 with 523 (June and July 2016) and 3386 with 393 (September and
October 2016); the paper's fourth station, 2002, and its months of 379 and 3386 are not among the
public files here, so its figures for these two are for other months. 732 hours to train on, 293 to
validate and the rest to test. Both stations are censored, by draws with the seeds 0, 1, 2, ...

An hour is censored with probability 1 - sigmoid(dropoffs - pickups + 5) of the hour before, and
then shows a whole number drawn evenly from 0 to the truth. The files of 2016 have no dropoffs.
There the rule has another driver: as many bikes are taken to come back in an hour as were picked
up in the mean of the 24 hours up to it, and flows are put on the scale of 3711.

Models see what was observed in the training hours, and nothing else: neither units nor kernels nor
starting values come from the truth. The natural engine makes no use of the validation hours; svi
stops by them, as in the paper. Models of one output are fitted to that output alone. Scores are
against the true demand of the test hours. The paper's kernels: daily, weekly, 1 h and (for 3711)
rain, softplus links, at most 128 inducing inputs each. The package's defaults: `kernels=None`, its
own links, and as further input rain (3711) or the day's temperature (379, 3386). The natural engine
takes at most {max_iterations} steps, and stops when the bound changes by less than {tolerance}
nats. What ignores censoring for the gap below, and what has station 366 corrected, has {few} draws.
NLPD of a Gaussian is that of a density, not to be held against that of counts. CRPS is from draws.
Seconds are medians of wall time on a machine that may have done other work, too.
Censored hours are those of the training data; the intervals there are given the bound, for models
that use it. By the rule above, what a censored hour shows is a share of the truth, so that a low
figure speaks of a low demand; censored likelihoods, the paper's and ours, take it for a limit that
has nothing to do with demand. Estimates for censored hours are too high for that reason, and their
intervals miss more often than those of the test hours. A family's champion is HMOCGP, for Poisson
MOCGP; differences from it are paired. R² is mostly about the busiest hours, which are the noisiest:
models of varying noise trust them least, and may lose by R² what they win by NLPD."""


def runs(draws: int = DRAWS, engine: str = "natural") -> list[Settings]:
    """Return the runs of the table.

    >>> len(runs(1))
    188
    """
    return new_york.runs(draws, engine)


def section(rows: Sequence[Row], engine: str = "natural") -> str:
    """Return the tables with their protocol, made from the rows of runs.

    >>> "too few runs for a verdict" in section([])
    True
    """
    own = [row for row in rows if row["engine"] in (engine, "-")]
    parts = [f"## Table 4: New York, engine {engine}", _protocol()]
    for station in STATIONS:
        parts += _station(own, station)
    corrected = [row for row in own if row["partner"] == "corrected"]
    if corrected:
        parts += ["### Station 3711 with station 366 corrected", CORRECTED]
        parts += [_rows_table(_with_single(own), block, "3711") for block in BLOCKS]
    parts += _downloaded(own)
    parts += ["### How much of the censoring gap is closed", GAP, _gaps(own)]
    if any(row["data"] == "share" for row in own):
        parts += ["### Knowing that a share was seen", SHARES, _gaps(own, "share")]
        parts += [_coverage_with(own, "share", BLOCKS), bulleted(_words_of_shares(own))]
    if any(row["data"] == "limits" for row in own):
        parts += ["### With limits that are independent of demand", LIMITS, _gaps(own, "limits")]
        parts.append(_coverage_with(own, "limits", ("own",)))
    parts += ["### In words", bulleted(_words(own)), effort(own)]
    return "\n\n".join(part for part in parts if part)


def _protocol() -> str:
    return PROTOCOL.format(**NATURAL, few=new_york.HALF)


CORRECTED = """\
The published counts of station 366 are twice what they should be. With them halved, the rows of
more than one output change; the others are repeated."""
GAP = """\
(R² of ours - R² of the same model ignoring censoring) / (R² of the same model trained on the
truth - R² ignoring censoring), from means over the draws that both have. Where the truth makes a
model no better there is no gap."""

SHARES = """\
Why the gap is not closed everywhere: the rule shows a share of the truth, which censored
likelihoods, the paper's and ours, take for a limit; where most hours of one kind are censored
nothing then holds their estimates down. Here the same models are fitted to the same data, and told
so: `fit(..., side="share")`. A likelihood of counts can make use of it: any share of the truth is
equally likely to be seen. Intervals of small counts (3386 has less than one pickup an hour) hold
more than they promise: there is no count between."""
LIMITS = f"""\
The other way to see whether that is the reason: the same hours get a limit that has nothing to do
with their own demand, a share, up to {MOST_SUPPLY}, of the demand at the same hour of another
training day. An hour is censored if that is less than the truth. {new_york.FEW} draws, the
package's defaults."""


def _coverage_with(rows: Sequence[Row], data: str, blocks: Sequence[str]) -> str:
    """Return how much the intervals cover with other data, or other knowledge of them."""
    lines = []
    measures = ("nlpd_per_point", "coverage", "coverage_censored")
    for station, block in itertools.product(STATIONS, blocks):
        own = _published(rows, station)
        scores = {m: _scores(own, block, m, data) for m in measures}
        for name in (f"{family} {model}" for family, model in CHAMPIONS.items()):
            if name in scores["coverage"]:
                cells = [shown(scores[m].get(name, {}).values()) for m in measures]
                lines.append([station, BLOCK_NAMES[block], name.replace("_", " "), *cells])
    header = ["station", "block", "model", *(MEASURES[m][0] for m in measures)]
    return markdown(header, lines)


def _words_of_shares(rows: Sequence[Row]) -> list[str]:
    """Say which aims are missed by models that know that a share was seen."""
    said = []
    for station, block in itertools.product(STATIONS, BLOCKS):
        own = _published(rows, station)
        for family, model in new_york.COUNTED:
            what = f"Station {station}, {BLOCK_NAMES[block]}, {family.replace('_', ' ')}"
            said += _about_gap(own, block, family, model, what, "share")
        said += _about_coverage(own, block, station, "share")
    return [line.replace("negative_binomial", "negative binomial") for line in said]


def gap_closed(ours: float, ignoring: float, oracle: float) -> float:
    """Return the share of the loss by censoring that a model makes good.

    >>> round(gap_closed(0.6, 0.2, 0.7), 3)
    0.8
    """
    gap = oracle - ignoring
    return (ours - ignoring) / gap if gap > LEAST_GAP else float("nan")


def _published(rows: Sequence[Row], station: str) -> list[Row]:
    return [r for r in rows if r["station"] == station and r["partner"] == "published"]


def _with_single(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the corrected partner, and those that do not see a partner."""
    single = [r for r in _published(rows, "3711") if r["model"] in new_york.SINGLE]
    return [row for row in rows if row["partner"] == "corrected"] + single


def _station(rows: Sequence[Row], station: str) -> list[str]:
    """Return heading, reference rows and both blocks of one station."""
    own = _published(rows, station)
    if not own:
        return []
    title = f"### Station {station} with {new_york.PARTNERS[station]}"
    blocks = [_rows_table(own, block, station) for block in BLOCKS]
    return [title, _about_censoring(own, station), _references(own), *blocks]


def _about_censoring(rows: Sequence[Row], station: str) -> str:
    """Say what the rule of censoring does to a station."""
    try:
        found = new_york.censoring(station, sorted({int(row["draw"]) for row in rows}))
    except FileNotFoundError:
        # A page can be made of runs alone.
        return ""
    many, seen, whole = (f"{share:.0%}" for share in found)
    return (
        f"{many} of the training hours are censored. They show {seen} of their demand, and {whole} "
        "of them show all of it."
    )


def _downloaded(rows: Sequence[Row]) -> list[str]:
    """Return the blocks of the paper's four stations, if they were downloaded."""
    parts = []
    for station in new_york.FOUR_STATIONS:
        own = [r for r in rows if r["station"] == station and r["partner"] == "downloaded"]
        if own:
            parts += [f"### Station {station}, from the trip files of 2018", _references(own)]
            parts += [_rows_table(own, block, station) for block in BLOCKS]
    return parts


def _scores(rows: Sequence[Row], block: str, score: str, data: str = "observed") -> Scores:
    chosen = [row for row in rows if row["block"] == block and row["data"] == data]
    return collect(chosen, ["family", "model"], ["draw"], score)


def _references(rows: Sequence[Row]) -> str:
    simple = [row for row in rows if row["family"] == "-"]
    r2, mae = (collect(simple, ["model", "data"], ["draw"], s) for s in ("r2", "mae"))
    lines = []
    for method, seen in REFERENCES:
        name = f"{method} {seen}"
        told = f"{method}, {SEEN_AS[seen]}"
        lines.append([told, shown(r2.get(name, {}).values()), shown(mae.get(name, {}).values(), 2)])
    return markdown(["simple methods", "R²", "MAE"], lines)


SEEN_AS = {
    "observed": "what was observed",
    "uncensored": "uncensored hours only",
    "truth": "the truth (oracle)",
}


def _rows_table(rows: Sequence[Row], block: str, station: str) -> str:
    """Return one block: a line for each row of the paper, paired with its family's champion."""
    scores = {measure: _scores(rows, block, measure) for measure in MEASURES}
    names = [f"{family} {model}" for family, model in ROWS]
    best = bold_best(names, scores["r2"], high_is_good=True)
    place = new_york.FOUR_STATIONS.index(station)
    lines = []
    for family, model in ROWS:
        name, champion = f"{family} {model}", f"{family} {CHAMPIONS[family]}"
        if name not in scores["r2"]:
            continue
        paper = PAPER.get((family, model))
        cells = [
            _cell(m, [*scores[m].get(name, {}).values()], digits)
            for m, (_, digits) in MEASURES.items()
        ]
        gap = "" if name == champion else shown(differences(scores["r2"], name, champion))
        known = f"{paper[place]:.3f}" if paper else "-"
        cells = [best(name, cells[0]), *cells[1:], gap, str(len(scores["r2"][name]))]
        lines.append([name.replace("_", " "), known, *cells])
    header = [BLOCK_NAMES[block], "paper's R²", *(title for title, _ in MEASURES.values())]
    return markdown([*header, "R² less the champion's", "draws"], lines) if lines else ""


def _cell(measure: str, values: list[float], digits: int) -> str:
    """Return a mean with its standard error; of times the median, since the first one compiles."""
    if measure == "fit_seconds":
        return f"{np.median(values):.{digits}f}" if values else "-"
    return shown(values, digits)


def _gap(
    rows: Sequence[Row], block: str, family: str, model: str, data: str = "observed"
) -> tuple[float, ...]:
    """Return R² ignoring censoring, ours, the oracle's, the share closed, and the draws of it.

    What ignores censoring does not ask what a record means.
    """
    seen, truth = (_scores(rows, block, "r2", each) for each in (data, "truth"))
    naive = _scores(rows, block, "r2", "observed") if data == "share" else seen
    ours = seen.get(f"{family} {model}", {})
    without = naive.get(f"{family} {IGNORED[family, model]}", {})
    oracle = [*truth.get(f"{family} {model}", {}).values()]
    # Of the same draws: the rest would be chance.
    both = sorted(ours.keys() & without.keys())
    values = ([without[k] for k in both], [ours[k] for k in both], oracle)
    means = [float(np.mean(each or [np.nan])) for each in values]
    return (*means, gap_closed(means[1], means[0], means[2]), float(len(both)))


def _gaps(rows: Sequence[Row], data: str = "observed") -> str:
    lines = []
    for station in STATIONS:
        own = _published(rows, station)
        for block in BLOCKS:
            for family, model in IGNORED:
                found = _gap(own, block, family, model, data)
                if np.isnan(found[1]):
                    continue
                name = f"{family} {model}".replace("_", " ")
                figures = ["-" if np.isnan(v) else f"{v:.3f}" for v in found[:-1]]
                lines.append([station, BLOCK_NAMES[block], name, *figures, f"{found[-1]:.0f}"])
    header = ["station", "block", "model", "R² ignoring", "R² ours", "R² oracle", "closed", "draws"]
    return markdown(header, lines)


def _words(rows: Sequence[Row]) -> list[str]:
    """Say where the paper's models are not the best rows, and which aims are missed."""
    said = []
    for station in STATIONS:
        own = _published(rows, station)
        for block in BLOCKS:
            said += _about_block(own, block, station)
    return said


def _about_block(rows: Sequence[Row], block: str, station: str) -> list[str]:
    r2, said = _scores(rows, block, "r2"), []
    for family, champion in CHAMPIONS.items():
        told = {f"{f} {m}": r2.get(f"{f} {m}", {}) for f, m in ROWS if f == family}
        what = f"Station {station}, {BLOCK_NAMES[block]}, {family.replace('_', ' ')}"
        said.append(verdict(told, f"{family} {champion}", high_is_good=True, what=what))
        if "**not**" in said[-1]:
            nlpd = _scores(rows, block, "nlpd_per_point")
            told = {name: nlpd.get(name, {}) for name in told}
            by = f"{what}, by NLPD per hour"
            said.append(verdict(told, f"{family} {champion}", high_is_good=False, what=by))
        said += _about_gap(rows, block, family, champion, what)
    said += _about_coverage(rows, block, station)
    if block == "paper" and station == "3711":
        said += _about_paper(r2)
    return [line.replace("negative_binomial", "negative binomial") for line in said]


def _about_gap(
    rows: Sequence[Row], block: str, family: str, model: str, what: str, data: str = "observed"
) -> list[str]:
    closed = _gap(rows, block, family, model, data)[3]
    if np.isnan(closed) or closed >= AIM:
        return []
    return [f"{what}: {closed:.0%} of the censoring gap is closed, less than {AIM:.0%}."]


def _about_coverage(
    rows: Sequence[Row], block: str, station: str, data: str = "observed"
) -> list[str]:
    said = []
    for measure in ("coverage", "coverage_censored"):
        scores = _scores(rows, block, measure, data)
        for family in ("poisson", "negative_binomial"):
            values = [*scores.get(f"{family} {CHAMPIONS[family]}", {}).values()]
            if values and not WITHIN[0] <= np.mean(values) <= WITHIN[1]:
                said.append(
                    f"Station {station}, {BLOCK_NAMES[block]}: {MEASURES[measure][0]} of {family} "
                    f"{CHAMPIONS[family]} is {np.mean(values):.3f}, outside {WITHIN[0]} to "
                    f"{WITHIN[1]}."
                )
    return said


def _about_paper(r2: Scores) -> list[str]:
    """Say which rows of 3711 are not above the paper's figure."""
    found = {(f, m): [*r2.get(f"{f} {m}", {}).values()] for f, m in PAPER}
    known = {row: np.mean(values) for row, values in found.items() if values}
    below = [f"{f} {m}" for (f, m), mean in known.items() if mean <= PAPER[f, m][0]]
    if not known:
        return []
    if below:
        return [f"Station 3711: not above the paper's figure: {', '.join(below)}."]
    return [f"Station 3711: all {len(known)} rows are above the paper's figures."]
