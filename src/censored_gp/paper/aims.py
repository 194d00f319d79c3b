"""What table 4 was to show, and what it shows with the package's defaults, in one table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from censored_gp.paper.gaps import AIM, COVERAGES, WITHIN, block_scores, costs, gap, mean_of
from censored_gp.paper.new_york import CHAMPIONS, COUNTED, STATIONS
from censored_gp.paper.page import markdown
from censored_gp.paper.runs import Row

__all__ = ["section"]

KNOWN = {
    "observed": "as observed",
    "share": "told that a share was seen",
    "limits": "limits independent of demand",
}
"""What hours that are censored show, and what models know of it."""
BLOCK = "own"
TEXT = """\
## What was aimed at

At every station of table 4, at least {aim:.0%} of what censoring costs was to be made good, and
90 % intervals of the count families were to hold {low} to {high} of the true demand, both in the
test hours and in the censored ones. Where the package's defaults do so the figure is in bold.

The rule of censoring shows a share of the demand. *As observed* models take that for a limit, as
the paper's do: records alone cannot tell the one from the other. *Told*, they are fitted with
`side="share"`, which needs a likelihood of counts. The last column is of other data, whose limits
are limits. Standard errors, more models and the paper's kernels are below, under table 4."""


def section(rows: Sequence[Row]) -> list[str]:
    """Return the table with its words, nothing if what it is made of has not been run.

    >>> section([])
    []
    """
    own = [row for row in rows if row["engine"] == "natural" and row["partner"] == "published"]
    lines = [*_gap_lines(own), *_coverage_lines(own)]
    if not lines:
        return []
    low, high = WITHIN
    header = ["", "model", *(f"{name}: {', '.join(STATIONS)}" for name in KNOWN.values())]
    return [TEXT.format(aim=AIM, low=low, high=high), markdown(header, lines)]


def _gap_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield how much of the gap each champion closes, station by station."""
    for family, model in CHAMPIONS.items():
        found = {
            data: [gap(_at(rows, station), BLOCK, family, model, data) for station in STATIONS]
            for data in KNOWN
        }
        cells = [_shown([(e[3], e[3] >= AIM and not costs(e)) for e in found[d]]) for d in KNOWN]
        if any(cells):
            yield ["gap closed", _name(family, model), *cells]


def _coverage_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield what the intervals of each champion of counts hold, station by station."""
    (low, high), measures = WITHIN, ("coverage", "coverage_censored")
    for measure, (family, model) in itertools.product(measures, COUNTED):
        cells = []
        for data in KNOWN:
            each = [block_scores(_at(rows, s), BLOCK, measure, data) for s in STATIONS]
            means = [mean_of(scores, f"{family} {model}") for scores in each]
            cells.append(_shown([(mean, low <= mean <= high) for mean in means], digits=3))
        if any(cells):
            yield [f"90 %: {COVERAGES[measure]}", _name(family, model), *cells]


def _at(rows: Sequence[Row], station: str) -> list[Row]:
    return [row for row in rows if row["station"] == station]


def _name(family: str, model: str) -> str:
    return f"{family} {model}".replace("_", " ")


def _shown(values: Sequence[tuple[float, bool]], digits: int = 2) -> str:
    """Return figures side by side, those that meet their aim in bold; nothing if none is known.

    >>> _shown([(0.9, True), (0.5, False)]), _shown([(float("nan"), False)])
    ('**0.90**, 0.50', '')
    """
    if all(np.isnan(value) for value, _ in values):
        return ""
    each = ("-" if np.isnan(v) else f"{v:.{digits}f}" for v, _ in values)
    return ", ".join(
        f"**{text}**" if met else text for text, (_, met) in zip(each, values, strict=True)
    )
