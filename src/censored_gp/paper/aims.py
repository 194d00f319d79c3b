"""What table 4 was to show, and what it shows with the package's defaults, in one table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from censored_gp.paper import elsewhere, page, table1, table4
from censored_gp.paper.gaps import (
    AIM,
    COVERAGES,
    WITHIN,
    block_scores,
    costs,
    gap,
    mean_of,
    row_name,
)
from censored_gp.paper.new_york import CHAMPIONS, COUNTED, KNOWN, REFERENCES, ROWS, STATIONS
from censored_gp.paper.page import bulleted, markdown
from censored_gp.paper.runs import Row

__all__ = ["section"]

BLOCK = "own"
MEANT = [data for data in KNOWN if data != "limits share"]
"""But for what is merely wrong."""
STATION = "3711"
"""The one whose data are the paper's own."""
R2_AIM = 0.62
MOST_MINUTES = {"Table 1": 5, "Table 4": 30}
"""On two cores."""
MORE = "What else was aimed at, with the package's defaults if nothing else is said:"
TEXT = """\
## What was aimed at

At every station of table 4, at least {aim:.0%} of what censoring costs was to be made good, and
90 % intervals of the count families were to hold {low} to {high} of the true demand, both in the
test hours and in the censored ones. Where the package's defaults do so the figure is in bold.

The rule of censoring shows a share of the demand. *As observed* models take that for a limit, as
the paper's do: records alone cannot tell the one from the other (Tsiatis, 1975). *A share or a
limit* are models that are told nothing either, but take one for as likely as the other:
`side="share_or_limit"`, which needs a likelihood of counts. Who keeps the records may know: *told*,
models are fitted with `side="share"`. The last two columns are of other data, whose limits are
limits. Standard errors, more models, the paper's kernels and {more} stations by which nothing was
settled are below, under table 4; that a share is as likely as a limit was settled after looking at
trials with these three. Figures are of stations {stations}, in this order."""


def section(rows: Sequence[Row], synthetic: Sequence[Row] = ()) -> list[str]:
    """Return the table with its words, nothing if what it is made of has not been run.

    `rows` are the runs of table 4 and what is beside it, `synthetic` those of table 1.

    >>> section([])
    []
    """
    by_us = [row for row in rows if row["engine"] in ("natural", "-")]
    own = [row for row in by_us if row["engine"] != "-" and row["partner"] == "published"]
    lines = [*_gap_lines(own), *_coverage_lines(own)]
    if not lines:
        return []
    low, high = WITHIN
    header = ["", "model", *(KNOWN[data] for data in MEANT)]
    more = [*_of_accuracy(by_us), *elsewhere.in_short(by_us), *_of_time(synthetic, by_us)]
    names = ", ".join(STATIONS)
    told = TEXT.format(aim=AIM, low=low, high=high, more=elsewhere.COUNT, stations=names)
    parts = [told, markdown(header, lines)]
    return [*parts, MORE, bulleted(more)] if more else parts


def _of_accuracy(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how the best row of the paper's own station stands beside its aim and the oracles."""
    own = [r for r in _at(rows, STATION) if r["partner"] == "published"]
    r2 = block_scores([r for r in own if r["engine"] != "-"], BLOCK, "r2")
    known = {name: mean_of(r2, name) for name in (f"{f} {m}" for f, m in ROWS) if name in r2}
    if not known:
        return
    best = max(known, key=lambda name: known[name])
    simple = page.collect([r for r in own if r["family"] == "-"], ["model", "data"], ["draw"], "r2")
    oracles = {m: mean_of(simple, f"{m} {data}") for m, data in REFERENCES if data == "truth"}
    beaten = all(known[best] > oracle for oracle in oracles.values() if not np.isnan(oracle))
    told = ", ".join(f"{name} {value:.3f}" for name, value in oracles.items())
    yield (
        f"R² of the best row of {STATION}, {best.replace('_', ' ')}, is "
        f"{_bold(page.shown(r2[best].values()), known[best] >= R2_AIM)}, where {R2_AIM} was aimed "
        f"at. {'Above' if beaten else 'Not above'} the methods that saw the truth: {told}."
    )
    if said := table4.about_paper(rows):
        yield said


def _of_time(synthetic: Sequence[Row], rows: Sequence[Row]) -> Iterator[str]:
    """Yield how long the tables took that were to be made in so many minutes."""
    first = [r for r in synthetic if r["engine"] == "natural" and table1.is_run_of(r)]
    for name, own in (("Table 1", first), ("Table 4", table4.runs_of(rows))):
        if not np.isnan(minutes := page.minutes_at_a_go(own)):
            text = _bold(f"{minutes:.0f} min", minutes <= MOST_MINUTES[name])
            yield f"{name} took {text} of at most {MOST_MINUTES[name]}: {len(own)} runs."


def _bold(text: str, met: bool) -> str:
    return f"**{text}**" if met else text


def _gap_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield how much of the gap each champion closes, station by station."""
    for family, model in CHAMPIONS.items():
        found = {
            data: [gap(_at(rows, station), BLOCK, family, model, data) for station in STATIONS]
            for data in MEANT
        }
        cells = [_shown([(e[3], e[3] >= AIM and not costs(e)) for e in found[d]]) for d in MEANT]
        if any(cells):
            yield ["gap closed", row_name(family, model), *cells]


def _coverage_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield what the intervals of each champion of counts hold, station by station."""
    (low, high), measures = WITHIN, ("coverage", "coverage_censored")
    for measure, (family, model) in itertools.product(measures, COUNTED):
        cells = []
        for data in MEANT:
            each = [block_scores(_at(rows, s), BLOCK, measure, data) for s in STATIONS]
            means = [mean_of(scores, f"{family} {model}") for scores in each]
            cells.append(_shown([(mean, low <= mean <= high) for mean in means], digits=3))
        if any(cells):
            yield [f"90 %: {COVERAGES[measure]}", row_name(family, model), *cells]


def _at(rows: Sequence[Row], station: str) -> list[Row]:
    return [row for row in rows if row["station"] == station]


def _shown(values: Sequence[tuple[float, bool]], digits: int = 2) -> str:
    """Return figures side by side, those that meet their aim in bold; nothing if none is known.

    >>> _shown([(0.9, True), (0.5, False)]), _shown([(float("nan"), False)])
    ('**0.90**, 0.50', '')
    """
    if all(np.isnan(value) for value, _ in values):
        return ""
    # What is just not met must not look as if it were.
    each = ("-" if np.isnan(v) else f"{v:.{digits + (not met and AIM - 0.005 <= v < AIM)}f}"
            for v, met in values)  # fmt: skip
    return ", ".join(
        f"**{text}**" if met else text for text, (_, met) in zip(each, values, strict=True)
    )
