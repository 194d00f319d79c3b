"""Table 4: true demand on unseen days at New York's bike stations, from censored training data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from censored_gp.paper import elsewhere, gaps, new_york
from censored_gp.paper.gaps import block_scores, mean_of
from censored_gp.paper.models import CRPS_DRAWS, NATURAL
from censored_gp.paper.new_york import BLOCK_NAMES, BLOCKS, CHAMPIONS, REFERENCES, ROWS, STATIONS
from censored_gp.paper.page import (
    Scores,
    bold_best,
    collect,
    differences,
    effort,
    is_clear,
    markdown,
    shown,
    standing,
)
from censored_gp.paper.runs import Row, Settings

__all__ = ["DRAWS", "PAPER", "STUDY", "about_paper", "runs", "runs_of", "section"]

DRAWS = 10
STUDY = new_york.STUDY
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
ACCURACY = {
    "r2": ("R²", 3),
    "mae": ("MAE", 2),
    "nlpd_per_point": ("NLPD per hour", 3),
    "crps": ("CRPS", 3),
}
CALIBRATION = {
    "ratio": ("expected / true, test hours", 2),
    "ratio_train": ("training hours", 2),
    "coverage": ("90 %: test hours", 3),
    "coverage_expected": ("of its own draws", 3),
    "coverage_censored": ("90 %: censored hours", 3),
    "coverage_censored_expected": ("of its own draws", 3),
    "converged": ("converged", 1),
    "fit_seconds": ("seconds per fit", 1),
}
PROTOCOL = """\
Hourly pickups of three stations, each with a neighbour whose pickups are highly correlated: 3711
with 366 (the paper's own data, 2018-06-01 to 2018-08-01), 379 with 523 (June and July 2016) and
3386 with 393 (September and October 2016). The paper's fourth station, 2002, and its months of 379
and 3386 are not among the public files here, so its figures for these two are for other months. 732
hours to train on, 293 to validate and the rest to test. Both stations are censored, by draws with
the seeds 0, 1, 2, ...

An hour is censored with probability 1 - sigmoid(dropoffs - pickups + 5) of the hour before, and
then shows a whole number drawn evenly from 0 to the truth. The files of 2016 have no dropoffs.
There the rule has another driver: as many bikes are taken to come back in an hour as were picked
up in the mean of the 24 hours up to it, and flows are put on the scale of 3711.

*Training.* Models see what was observed in the training hours, and nothing else: neither units nor
kernels nor starting values come from the truth. The natural engine makes no use of the validation
hours; svi stops by them, as in the paper. Models of one output are fitted to that output alone. The
paper's kernels: daily, weekly, 1 h and (for 3711) rain, softplus links, at most {inducing} inducing
inputs each. The package's defaults: `kernels=None`, its own links, and as further input rain (3711)
or the day's temperature (379, 3386): the weather that the files of all hours have. Log rates of a
Poisson then have a nugget, which no other hour shares and whose size may change over the day: a
Poisson has no other noise, and these counts scatter by more than one. That there is a nugget, and
that it may change, was settled after looking at what intervals of earlier runs held of the truth,
of two or three draws of these very stations: coverages of the Poisson with the package's defaults
are to be read with that in mind. The natural engine takes at most {max_iterations} steps, and stops
when the bound changes by less than {tolerance} nats; how many fits did so is under *converged*.
What is told the rule, with the paper's kernels, has {half} draws, what has station 366 corrected
{few}. The booster knows hour, weekday and (3711) rain.

*Scores* are against the true demand of the test hours, which are the same in all draws: standard
errors tell what the draw of the censoring does, and not what other days would do. NLPD of a
Gaussian is that of a density, not to be held against that of counts. CRPS is from {crps_draws}
draws of every hour, with the seed of the draw of the censoring. *Expected / true* is the sum of
predicted means over that of the truth. Demand moves between training and test hours: where it
rises, a model that expects too much is rewarded, elsewhere it is punished.

*Censored hours* are those of the training data; the intervals there are given the bound, for models
that use it. 90 % intervals leave out at most 5 % below, and have the smallest upper end with which
they hold 90 %. Both ends count in full, so that of counts they hold more than 90 % of what is drawn
from the model itself: how much stands beside it, *of its own draws*. What is said *at random* is of
what lies between the quantiles, whose ends count in part, so that it would be 90 %. Whole numbers
under a Gaussian are rounded ones. Seconds are medians of wall time on a machine that may have done
other work, too."""
MOST_OF_IT = 0.5
"""Share of what a champion is behind by that must be there without censoring to explain it."""
CORRECTED = """\
The published counts of station 366 are twice what they should be. With them halved, the rows of
more than one output change; the others are repeated."""
REASONS = """\
A family's champion is HMOCGP, for Poisson MOCGP. *Ahead by* is its R² less that of the best other
row of its family, paired by draw. Where that is negative, the other columns tell why:

- The difference is not clear: **chance**, as far as these draws can tell.
- *Trained on the truth*, both of them, the champion is behind by at least half as much: **not the
  censoring**. What may be: with the paper's kernels the weekly one starts at a lengthscale of one,
  which can hardly tell weekends from weekdays, and outputs that share it need not find a shorter
  one; what is not explained becomes noise. A varying noise takes it up: it trusts the busiest
  hours least, and these make R². Such a model may lose by R² what it wins by NLPD; and a negative
  binomial of large dispersion has means far above its medians.
- *Told the rule* of censoring, which the other row is not, the champion is the better one: **the
  rule**. See what the rule has to do with it, below.
- Else **varying noise**, if the champion is the best row by NLPD; or it is not explained."""


def runs(draws: int = DRAWS, engine: str = "natural") -> list[Settings]:
    """Return the runs of the table.

    >>> len(runs(1))
    116
    """
    return new_york.runs(draws, engine)


def section(rows: Sequence[Row], engine: str = "natural") -> str:
    """Return the tables with their protocol, made from the rows of runs.

    >>> section([]).splitlines()[0]
    '## Table 4: New York, engine natural'
    """
    ours = [row for row in rows if row["engine"] in (engine, "-")]
    own = [row for row in ours if not elsewhere.is_elsewhere(row)]
    parts = [f"## Table 4: New York, engine {engine}", _protocol()]
    for station in STATIONS:
        parts += _station(own, station)
    corrected = [row for row in own if row["partner"] == "corrected"]
    if corrected:
        parts += ["### Station 3711 with station 366 corrected", CORRECTED]
        parts += [_accuracy(_with_single(own), block, "3711") for block in BLOCKS]
    parts += _downloaded(own)
    parts += ["### Which row is the best, and why", REASONS, _standings(own), about_paper(own)]
    parts += [gaps.about_coverage(own), effort(runs_of(own))]
    parts += [*gaps.section(own), *elsewhere.section(ours)]
    return "\n\n".join(part for part in parts if part)


def runs_of(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the table itself, of all that its file has.

    >>> runs_of([])
    []
    """
    return [row for row in rows if not gaps.is_beside(row) and not elsewhere.is_elsewhere(row)]


def _protocol() -> str:
    return PROTOCOL.format(**NATURAL, half=new_york.HALF, few=new_york.FEW,
                           crps_draws=CRPS_DRAWS, inducing=new_york.PAPER_INDUCING)  # fmt: skip


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
    blocks = [part(own, block, station) for block in BLOCKS for part in (_accuracy, _calibration)]
    return [title, _about_censoring(own, station), _references(own), *blocks]


def _about_censoring(rows: Sequence[Row], station: str) -> str:
    """Say what the rule of censoring does to a station."""
    try:
        found = new_york.censoring(station, sorted({int(row["draw"]) for row in rows}))
    except FileNotFoundError:
        # A page can be made of runs alone.
        return ""
    many, seen, whole = (f"{share:.0%}" for share in found)
    before, after = new_york.demand(station)
    return (
        f"{many} of the training hours are censored. They show {seen} of their demand, and {whole} "
        f"of them show all of it. True demand is {before:.2f} an hour in the training hours, and "
        f"{after:.2f} in the test hours."
    )


def _downloaded(rows: Sequence[Row]) -> list[str]:
    """Return the blocks of the paper's four stations, if they were downloaded."""
    parts = []
    for station in new_york.FOUR_STATIONS:
        own = [r for r in rows if r["station"] == station and r["partner"] == "downloaded"]
        if own:
            parts += [f"### Station {station}, from the trip files of 2018", _references(own)]
            parts += [_accuracy(own, block, station) for block in BLOCKS]
    return parts


def _references(rows: Sequence[Row]) -> str:
    simple = [row for row in rows if row["family"] == "-"]
    r2, mae = (collect(simple, ["model", "data"], ["draw"], s) for s in ("r2", "mae"))
    lines = []
    for method, seen in REFERENCES:
        name = f"{method} {seen}"
        # The truth is the same in all draws.
        values = [[*s.get(name, {}).values()] for s in (r2, mae)]
        shorter = [own[:1] if seen == "truth" else own for own in values]
        told = f"{method}, {SEEN_AS[seen]}"
        lines.append([told, shown(shorter[0]), shown(shorter[1], 2)])
    return markdown(["simple methods", "R²", "MAE"], lines)


SEEN_AS = {
    "observed": "what was observed",
    "uncensored": "uncensored hours only",
    "truth": "the truth (oracle)",
}


def _accuracy(rows: Sequence[Row], block: str, station: str) -> str:
    """Return scores of one block: a line for each row, paired with its family's champion."""
    scores = {measure: block_scores(rows, block, measure) for measure in ACCURACY}
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
            shown(scores[m].get(name, {}).values(), digits) for m, (_, digits) in ACCURACY.items()
        ]
        gap = "" if name == champion else shown(differences(scores["r2"], name, champion))
        known = f"{paper[place]:.3f}" if paper else "-"
        cells = [best(name, cells[0]), *cells[1:], gap, str(len(scores["r2"][name]))]
        lines.append([name.replace("_", " "), known, *cells])
    header = [BLOCK_NAMES[block], "paper's R²", *(title for title, _ in ACCURACY.values())]
    return markdown([*header, "R² less the champion's", "draws"], lines) if lines else ""


def _calibration(rows: Sequence[Row], block: str, station: str) -> str:
    """Return how much the models of one block expect, and how much their intervals hold."""
    scores = {measure: block_scores(rows, block, measure) for measure in CALIBRATION}
    lines = [
        [name.replace("_", " "), *(
            _cell(m, [*scores[m].get(name, {}).values()], digits)
            for m, (_, digits) in CALIBRATION.items()
        )]
        for name in (f"{family} {model}" for family, model in ROWS)
        if name in scores["coverage"]
    ]  # fmt: skip
    header = [BLOCK_NAMES[block], *(title for title, _ in CALIBRATION.values())]
    return markdown(header, lines) if lines else ""


def _cell(measure: str, values: list[float], digits: int) -> str:
    """Return a mean with its standard error; of times the median, of fits how many converged."""
    if measure == "fit_seconds":
        return f"{np.median(values):.{digits}f}" if values else "-"
    if measure == "converged":
        return f"{sum(values):.0f} of {len(values)}"
    return shown(values, digits)


def _standings(rows: Sequence[Row]) -> str:
    """Return for every family of every block the best row, and why it is not the champion."""
    lines = [
        [station, BLOCK_NAMES[block], f"{family} {model}".replace("_", " "), *cells]
        for station, block, (family, model) in itertools.product(
            STATIONS, BLOCKS, CHAMPIONS.items()
        )
        if (cells := _standing(_published(rows, station), block, family, model))
    ]
    header = ["station", "block", "champion", "best other row", "ahead by"]
    header += ["trained on the truth", "the other row"]
    return markdown([*header, "told the rule", "best by NLPD", "why not"], lines)


def _standing(rows: Sequence[Row], block: str, family: str, model: str) -> list[str]:
    """Return how one champion stands; nothing where there are no runs of it."""
    champion = f"{family} {model}"
    r2, nlpd = (_of_family(block_scores(rows, block, s), family) for s in ("r2", "nlpd_per_point"))
    rival, ahead = standing(r2, champion, high_is_good=True)
    if not rival:
        return []
    of_truth = block_scores(rows, block, "r2", "truth")
    truth, its = (mean_of(of_truth, name) for name in (champion, rival))
    of_share = block_scores(rows, block, "r2", "share")
    told = mean_of(of_share, champion)
    _, by_nlpd = standing(nlpd, champion, high_is_good=False)
    first = bool(np.mean(by_nlpd) >= 0)
    # Of the same draws: the rest would be chance.
    by_rule = differences({**r2, champion: of_share.get(champion, {})}, champion, rival)
    why = (
        _why(ahead, truth - its, float(np.mean(by_rule or [np.nan])), first)
        if np.mean(ahead) < 0
        else ""
    )
    by = shown(ahead) + ("" if is_clear(ahead) else " (not clear)")
    figures = ["-" if np.isnan(value) else f"{value:.3f}" for value in (truth, its, told)]
    return [rival.replace("_", " "), by, *figures, "yes" if first else "no", why]


def _why(ahead: Sequence[float], by_truth: float, by_rule: float, by_nlpd: bool) -> str:
    """Say why a champion is not the best row.

    From by how much it is ahead, and would be if both were trained on the truth, or it alone told
    the rule of censoring.
    """
    if not is_clear(ahead):
        return "chance"
    if np.isnan(by_truth):
        return "see `reproduce gaps`"
    if by_truth <= MOST_OF_IT * np.mean(ahead):
        return "not the censoring"
    if by_rule > 0.0:
        return "the rule"
    return "varying noise" if by_nlpd else "not explained"


def _of_family(scores: Scores, family: str) -> Scores:
    """Return the rows of one family."""
    names = [f"{f} {m}" for f, m in ROWS if f == family]
    return {name: scores[name] for name in names if name in scores}


def about_paper(rows: Sequence[Row]) -> str:
    """Say which rows of 3711 are not above the paper's figure.

    >>> about_paper([])
    ''
    """
    r2 = block_scores(_published(rows, "3711"), "paper", "r2")
    known = {row: mean for row in PAPER if not np.isnan(mean := mean_of(r2, " ".join(row)))}
    below = [f"{f} {m}" for (f, m), mean in known.items() if mean <= PAPER[f, m][0]]
    if not known:
        return ""
    if below:
        return f"Station 3711, the paper's kernels: not above its figure: {', '.join(below)}."
    return (
        f"Station 3711, the paper's kernels: all {len(known)} rows are above the paper's figures."
    )
