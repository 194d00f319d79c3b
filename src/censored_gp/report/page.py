"""The page: facts and charts put into HTML. All text of the user is escaped here."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

import numpy as np

from censored_gp.data.time import WEEKDAYS
from censored_gp.report import charts, words
from censored_gp.report.bundle import javascript
from censored_gp.report.facts import EVERY, Facts
from censored_gp.report.series import rounded

__all__ = ["page"]

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
"""Browsers then refuse every request that the page might make."""
MOST_LISTED = 40
"""Outputs that tables list."""


class Charts:
    """The charts of a page: a place in the HTML for each, and what is drawn there."""

    def __init__(self) -> None:
        self.drawn: list[dict[str, Any]] = []

    def add(self, spec: dict[str, Any], data: dict[str, dict[str, list[Any]]], label: str) -> str:
        """Keep a chart, and return the HTML of its place."""
        name = f"chart-{len(self.drawn)}"
        self.drawn.append({"id": name, "spec": {**spec, "description": label}, "data": data})
        text = escaped(label)
        return f'<div class="chart" id="{name}" role="figure" aria-label="{text}"></div>'


def escaped(text: Any) -> str:
    """Return text that HTML shows as it is.

    >>> escaped("<script>")
    '&lt;script&gt;'
    """
    return html.escape(str(text), quote=True)


def as_script(value: Any) -> str:
    """Return JSON that can stand inside a script element, whatever text is in it.

    >>> as_script({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def page(facts: Facts) -> str:
    """Return the whole page."""
    drawn = Charts()
    sections = [
        ("done", "What was done", _done(facts)),
        ("demand", "What was recorded, and what it was", _demand(facts, drawn)),
        ("lost", "What was lost", _lost(facts, drawn)),
        ("calibration", "Can it be trusted?", _calibration(facts, drawn)),
        ("comparison", "Other models", _comparison(facts)),
        ("problems", "Problems found", _problems(facts)),
        ("settings", "To do it again", _settings(facts)),
    ]
    shown = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{name}">{escaped(title)}</a>' for name, title, _ in shown)
    body = "".join(
        f'<section id="{name}"><h2>{escaped(title)}</h2>{text}</section>'
        for name, title, text in shown
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escaped(facts.title)}</title>
<style>{_asset("page.css")}</style>
</head>
<body>
<header><h1>{escaped(facts.title)}</h1><div class="cards">{_cards(facts)}</div>
<nav>{links}</nav></header>
<main>{body}</main>
<footer>Made with censored-gp. This page needs no network.</footer>
<script type="application/json" id="charts">{as_script(drawn.drawn)}</script>
<script>{javascript()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (resources.files("censored_gp.report") / "assets" / name).read_text(encoding="utf-8")


def _cards(facts: Facts) -> str:
    return "".join(
        f'<div class="card"><div class="name">{escaped(name)}</div>'
        f'<div class="figure">{escaped(figure)}</div><div class="note">{escaped(note)}</div></div>'
        for name, figure, note in words.cards(facts)
    )


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escaped(text)}</p>" for text in texts)


def _done(facts: Facts) -> str:
    return _paragraphs(words.what_was_done(facts))


LINE = (
    '<span><i class="key line"></i>predicted</span><span><i class="key band"></i>{interval}</span>'
)
BAR = '<span><i class="key line"></i>predicted (diamond) and its {interval}</span>'
"""The same where there are categories, between which there is nothing to draw."""
LEGEND = """<p class="legend">
{prediction}
<span><i class="key seen"></i>seen</span>{kinds}</p>"""
KINDS = {
    "right": '<span><i class="key up"></i>at least (lower bound)</span>',
    "left": '<span><i class="key down"></i>at most (upper bound)</span>',
    "interval": '<span><i class="key between"></i>between two bounds</span>',
    "missing": '<span><i class="key missing"></i>missing</span>',
}


def _demand(facts: Facts, drawn: Charts) -> str:
    known, series = facts.model.observations_, facts.series
    kinds = "".join(text for kind, text in KINDS.items() if getattr(known, f"is_{kind}").any())
    prediction = BAR if series.in_categories else LINE
    prediction = prediction.format(interval=f"{facts.probability:.0%} interval")
    legend = LEGEND.format(prediction=prediction, kinds=kinds)
    hint = "Point at a chart for figures."
    if not series.in_categories:
        hint += " Drag across the strip below it to zoom; click the strip to see all."
    parts = [_paragraphs([words.what_was_drawn(facts), hint]), legend]
    label = "" if series.is_time else series.label
    for name, columns in zip(facts.names, series.outputs, strict=True):
        said = f"Recorded and predicted values of {name}"
        kinds = frozenset(columns["k"])
        if series.in_categories:
            spec = charts.category_chart(label, kinds, facts.probability)
        else:
            spec = charts.series_chart(series.is_time, label, kinds, facts.probability)
        parts.append(f"<h3>{escaped(name)}</h3>{drawn.add(spec, {'series': columns}, said)}")
    return "".join(parts)


def _lost(facts: Facts, drawn: Charts) -> str:
    if facts.lost is None:
        if facts.model.use_censoring:
            return ""
        return _paragraphs(["This model ignores censoring: to it, nothing was lost."])
    text = (
        "Where a recorded value is only a lower bound, the model estimates how much more was "
        "wanted. Intervals are those of the sums themselves, from joint draws."
    )
    parts = [_paragraphs([text]), _lost_table(facts)]
    for group, rows, title in (
        ("hour", facts.lost.hours, "By hour of the day"),
        ("weekday", facts.lost.weekdays, "By day of the week"),
    ):
        if rows:
            parts.append(f"<h3>{title}</h3>{_lost_chart(facts, group, rows, drawn)}")
    return "".join(parts)


def _lost_chart(facts: Facts, group: str, rows: list[dict[str, Any]], drawn: Charts) -> str:
    names = [EVERY, *facts.names] if len(facts.names) > 1 else facts.names
    kept = [row for row in rows if row["output"] in names]
    place = {name: o for o, name in enumerate(names)}
    short = (lambda g: str(g)[:3]) if group == "weekday" else int
    order = [day[:3] for day in WEEKDAYS] if group == "weekday" else list(range(24))
    fields = {"y": "lost", "lo": "lost_low", "hi": "lost_high", "r": "observed", "s": "share",
              "sl": "share_low", "sh": "share_high", "c": "censored", "n": "cells"}  # fmt: skip
    columns: dict[str, list[Any]] = {
        key: rounded(np.array([row[name] for row in kept], dtype=float))
        for key, name in fields.items()
    }
    columns["g"] = [short(row["group"]) for row in kept]
    columns["o"] = [place[row["output"]] for row in kept]
    said = f"Lost demand by {group}"
    spec = charts.lost_chart(names, group, order, facts.probability)
    return drawn.add(spec, {"lost": columns}, said)


def _lost_table(facts: Facts) -> str:
    assert facts.lost is not None
    heads = ["", "Recorded", "Lost", f"{facts.probability:.0%} interval", "Share lost", "Censored"]
    rows = [*facts.lost.outputs[:MOST_LISTED]]
    if len(facts.lost.outputs) > 1:
        rows.append({"output": EVERY, **facts.lost.total})
    body = [
        [
            row["output"],
            words.amount(row["observed"]),
            words.amount(row["lost"]),
            f"{words.amount(row['lost_low'])} to {words.amount(row['lost_high'])}",
            words.share(row["share"]),
            f"{row['censored']:,} of {row['cells']:,}",
        ]
        for row in rows
    ]
    more = len(facts.lost.outputs) - MOST_LISTED
    note = _paragraphs([f"{more} more outputs are not listed."]) if more > 0 else ""
    return _table(heads, body) + note


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]], marked: Any = None) -> str:
    """Return a table that scrolls on its own where it is too wide."""
    head = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in heads)
    body = "".join(
        f"<tr{' class=best' if marked is not None and i == marked else ''}>"
        + "".join(f"<td>{escaped(cell)}</td>" for cell in row)
        + "</tr>"
        for i, row in enumerate(rows)
    )
    # Keyboards must reach what scrolls.
    place = '<div class="wide" tabindex="0" role="region" aria-label="table">'
    return f"{place}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _calibration(facts: Facts, drawn: Charts) -> str:
    found = facts.calibration
    text = (
        f"{found.cells:,} cells were held out, predicted by a model that had not seen them, and "
        "compared with what is known of them."
        if found.held_out
        else f"Predictions of {found.cells:,} cells are compared with what is known of them. The "
        "model was fitted to these very cells, which flatters it. For cells that were held out, "
        "make this report with folds=3 (in a terminal: --folds 3)."
    )
    hint = (
        "Left: bars near 1 are right; many at both ends mean intervals too narrow. Right: points "
        "below the line mean the same. Ends of intervals of counts are counted in part."
    )
    chance = 1.96 * float(np.sqrt((len(found.bars) - 1) / max(1, found.cells)))
    edges = np.arange(len(found.bars) + 1) / len(found.bars)
    bars = {"x": rounded(edges[:-1]), "x2": rounded(edges[1:]), "y": rounded(found.bars)}
    bars["y0"] = [0.0] * len(found.bars)
    held = {"x": rounded(np.array(found.levels)), "y": rounded(found.coverage)}
    said = ("Where the truth fell in its prediction", "Cells that intervals hold")
    left = drawn.add(charts.pit_chart(chance), {"pit": bars}, said[0])
    right = drawn.add(charts.coverage_chart(), {"coverage": held}, said[1])
    pair = (
        f'<div class="pair"><div><h3>{said[0]}</h3>{left}</div>'
        f"<div><h3>{said[1]}</h3>{right}</div></div>"
    )
    rows = [
        [row["output"], f"{row['cells']:,}", words.share(row["coverage"]),
         words.amount(row["deviation"])] for row in found.outputs[:MOST_LISTED]
    ]  # fmt: skip
    table = _table(["", "Cells", "90% intervals hold", "Distance from uniform"], rows)
    return _paragraphs([text, hint]) + pair + table + _scores(found.scores)


def _scores(rows: list[dict[str, Any]]) -> str:
    """Return the scores of a diagnosis: this model and simpler ones."""
    if not rows:
        return ""
    text = "Scores of the cells held out; nlpd, mae and pit_deviation are the better the smaller."
    return _paragraphs([text]) + _table(list(rows[0]), [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    return [v if isinstance(v, str) else words.amount(v) for v in row.values()]


def _comparison(facts: Facts) -> str:
    rows = facts.comparison
    if not rows:
        return ""
    best = next((i for i, row in enumerate(rows) if row.get("best")), None)
    text = (
        "Each model was fitted, and scored on cells it had not seen. The best one has the least "
        "nlpd: it found what was known of those cells the least surprising."
    )
    kept = [{k: v for k, v in row.items() if k not in ("best", "this")} for row in rows]
    return _paragraphs([text]) + _table(list(kept[0]), [_cells(row) for row in kept], best)


def _problems(facts: Facts) -> str:
    if not facts.problems:
        return _paragraphs(["None were found in the data, nor in the fit."])
    return "<ul>" + "".join(f"<li>{escaped(text)}</li>" for text in facts.problems) + "</ul>"


def _settings(facts: Facts) -> str:
    text = words.code(facts.model)
    return (
        f'<pre tabindex="0">{escaped(text)}</pre><details><summary>The model in figures</summary>'
        f'<pre tabindex="0">{escaped(facts.model.summary())}</pre></details>'
    )
