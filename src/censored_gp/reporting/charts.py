"""The charts of the report, in Vega-Lite.

Data are kept apart from the specification, as named columns that the page puts in. Field names are
single letters, never the user's text. Colours come from named styles ("cgp-..."), which the page
sets for light and dark.
"""

from __future__ import annotations

import functools
from typing import Any

import altair as alt
import numpy as np

from censored_gp.prediction.metrics import PIT, pit_coverage, pit_histogram
from censored_gp.reporting.plots import DAYS, LEVELS, chance_limits, known_cells
from censored_gp.reporting.report import ALL_OUTPUTS, CELL_KINDS, Content, rounded

Spec = dict[str, Any]
HEIGHT = 250
Y_LABELS: Spec = {"minExtent": 38, "maxExtent": 38}
"""Labels of y have one width in all charts, so that the page can compute the width of a chart."""
SHORT_NUMBER = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~g')"
SHORT_TIME = (
    "utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') : "
    "utcdate(datum.value) === 1 ? utcFormat(datum.value, '%b %Y') : "
    "utcFormat(datum.value, '%a %d %b')"
)


def draw(content: Content) -> dict[str, list[Spec]]:
    """Return the charts by section; each has an id, a specification and its data."""
    sections = {
        "series": _series(content),
        "lost": _lost(content),
        "calibration": _calibration(content.diagnosis.pit) if content.diagnosis else [],
    }
    for number, chart in enumerate(chart for charts in sections.values() for chart in charts):
        chart["id"] = f"chart-{number}"
    return sections


def _chart(title: str, spec: Spec, **data: dict[str, list[Any]]) -> Spec:
    return {"title": title, "spec": {**spec, "description": title}, "data": data}


def _series(content: Content) -> list[Spec]:
    axis, charts = content.series.axis, []
    label = "" if axis.is_time else axis.label
    for name, columns in zip(content.names, content.series.columns, strict=True):
        kinds = frozenset(columns["k"])
        spec = series_chart(axis.is_time, label, kinds, content.probability)
        charts.append(_chart(f"Observations and predictions of {name}", spec, series=columns))
    return charts


def _lost(content: Content) -> list[Spec]:
    names = [ALL_OUTPUTS, *content.names] if len(content.names) > 1 else content.names
    fields = {"y": "lost", "lo": "lost_low", "hi": "lost_high", "r": "observed", "s": "share",
              "sl": "share_low", "sh": "share_high", "c": "censored", "n": "cells"}  # fmt: skip
    titles = {"hour": "By hour of the day", "weekday": "By day of the week"}
    orders = {"hour": list(range(24)), "weekday": DAYS}
    charts = []
    for group, rows in content.lost.groups.items() if content.lost else ():
        kept = [row for row in rows if str(row["output"]) in names]
        data: dict[str, list[Any]] = {
            key: rounded([row[name] for row in kept]) for key, name in fields.items()
        }
        data["g"] = [int(row[group]) if group == "hour" else str(row[group])[:3] for row in kept]
        data["o"] = [names.index(str(row["output"])) for row in kept]
        spec = lost_chart(names, group, orders[group], content.probability)
        charts.append(_chart(titles[group], spec, lost=data))
    return charts


def _calibration(pit: PIT) -> list[Spec]:
    histogram = pit_histogram(pit)
    bins = len(histogram)
    edges = rounded(np.arange(bins + 1) / bins)
    bars = {"x": edges[:-1], "x2": edges[1:], "y": rounded(histogram), "y0": [0.0] * bins}
    limits = chance_limits(bins, known_cells(pit))
    held = {"x": rounded(LEVELS), "y": rounded(pit_coverage(pit, LEVELS))}
    return [
        _chart("Histogram of the PIT", pit_chart(*limits), pit=bars),
        _chart("Coverage of central intervals", coverage_chart(), coverage=held),
    ]


def _named(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _number(field: str) -> str:
    """Return a Vega expression for a number as people read it."""
    value = f"datum.{field}"
    return f"(abs({value}) >= 1000 ? format({value}, ',.0f') : format({value}, '.3~g'))"


def _with_tips(chart: alt.Chart, tips: dict[str, str]) -> tuple[alt.Chart, list[alt.Tooltip]]:
    """Return a chart that computes texts from expressions by title, and its tooltips."""
    named = {f"tip{n}": title for n, title in enumerate(tips)}
    chart = chart.transform_calculate(**dict(zip(named, tips.values(), strict=True)))
    return chart, [alt.Tooltip(f"{field}:N", title=title) for field, title in named.items()]


def _cell_tips(axis: str, position: str, probability: float) -> dict[str, str]:
    """Return what a tooltip says of a row: Vega expressions by title."""
    value, upper = _number("v"), _number("u")
    return {
        axis: position,
        "observed": f"datum.k === 4 ? 'missing' : datum.k === 1 ? 'at least ' + {value} : "
        f"datum.k === 2 ? 'at most ' + {value} : "
        f"datum.k === 3 ? {value} + ' to ' + {upper} : "
        f"datum.k === 5 ? {value} + ' in a part of the period' : {value}",
        "estimate of the truth": f"datum.k === 0 ? '= observed' : {_number('e')}",
        "predicted": _number("m"),
        f"{probability:.0%} interval": f"{_number('lo')} + ' to ' + {_number('hi')}",
    }


def _y(field: str) -> alt.Y:
    return alt.Y(field, axis=alt.Axis(**Y_LABELS, labelExpr=SHORT_NUMBER, title=None, tickCount=5))


def _cell_layers(chart: alt.Chart, kinds: frozenset[int], x: Any) -> list[Any]:
    """Return a layer for each kind of cell that occurs; they differ in shape and in colour.

    An empty layer would upset the scale.
    """
    dot, bound = {"type": "point", "filled": True}, {"size": 46, "style": "cgp-bound"}
    marks: list[Spec] = [
        {**dot, "shape": "circle", "size": 14, "style": "cgp-exact"},
        {**dot, **bound, "shape": "triangle-up"},
        {**dot, **bound, "shape": "triangle-down"},
        {"type": "rule", "style": "cgp-between"},
        {"type": "tick", "style": "cgp-missing", "orient": "vertical", "height": 9},
        {"type": "point", "filled": False, "shape": "circle", "size": 24, "style": "cgp-bound"},
    ]
    layers = []
    for kind in sorted(kinds):
        own = chart.transform_filter(f"datum.k === {kind}")
        own = own.properties(mark={**marks[kind], "clip": True}).encode(x=x)
        y = alt.YValue(HEIGHT - 5) if CELL_KINDS[kind] == "missing" else "v:Q"
        upper = {"y2": "u:Q"} if CELL_KINDS[kind] == "interval" else {}
        layers.append(own.encode(y=y, **upper))
    return layers


@functools.cache
def series_chart(is_time: bool, label: str, kinds: frozenset[int], probability: float) -> Spec:
    """Return the chart of one output, and below it an overview to zoom.

    Outputs with the same kinds of cells share a specification, which takes long to make.
    """
    brush = alt.selection_interval(encodings=["x"], name="zoom")
    field = "x:T" if is_time else "x:Q"
    # Labels that would stick out at an end are left out: there is no room for them.
    labels: Spec = {"labelOverlap": "greedy", "labelSeparation": 12, "labelBound": True}
    labels |= {"tickCount": 6} | ({"labelExpr": SHORT_TIME} if is_time else {})
    # Times are those of the wall clock, so that the browser must not shift them to its zone.
    scale: Spec = {"type": "utc"} if is_time else {"type": "linear", "zero": False}
    # All layers share one scale: those without the brush would widen it again.
    x = alt.X(field, axis=alt.Axis(title=label or None, **labels),
              scale=alt.Scale(domain=brush, **scale))  # fmt: skip
    chart = _named("series")
    band = chart.mark_area(style="cgp-band", clip=True).encode(x=x, y=_y("lo:Q"), y2="hi:Q")
    mean = chart.mark_line(style="cgp-mean", clip=True).encode(x=x, y="m:Q")
    cells = _cell_layers(chart, kinds, x)
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", fields=["x"], empty=False
    )
    when = "utcFormat(datum.x, '%a %d %b %Y, %H:%M')" if is_time else _number("x")
    tips = _cell_tips("time" if is_time else label or "input", when, probability)
    rule, told = _with_tips(chart, tips)
    hover = (
        rule.mark_rule(style="cgp-hover", strokeWidth=2)
        .encode(x=x, opacity=alt.condition(near, alt.value(0.8), alt.value(0)), tooltip=told)
        .add_params(near)
    )
    detail = alt.layer(band, mean, *cells, hover).properties(width=600, height=HEIGHT)
    blank = alt.Axis(**Y_LABELS, labels=False, ticks=False, title=None)
    strip = (
        chart.mark_area(style="cgp-band", interpolate="linear")
        .encode(
            x=alt.X(field, axis=alt.Axis(title=None, **labels), scale=alt.Scale(**scale)),
            y=alt.Y("m:Q", axis=blank),
        )
        .properties(width=600, height=44)
        .add_params(brush)
    )
    return alt.vconcat(detail, strip, spacing=8).to_dict()


def lost_chart(names: list[str], group: str, order: list[Any], probability: float) -> Spec:
    """Return bars of lost demand by group with intervals; a drop-down list chooses the output."""
    share = "format(datum.s, '.0%') + ' (' + format(datum.sl, '.0%') + ' to ' + "
    tips = {
        group: "'' + datum.g",
        "observed": _number("r"),
        "lost": _number("y"),
        f"{probability:.0%} interval": f"{_number('lo')} + ' to ' + {_number('hi')}",
        "share of demand lost": share + "format(datum.sh, '.0%') + ')'",
        "censored cells": "datum.c + ' of ' + datum.n",
    }
    chart, told = _with_tips(_named("lost"), tips)
    chart = chart.transform_filter("datum.o === which")
    axis = alt.Axis(title=None, labelAngle=0, labelOverlap="greedy", labelSeparation=4)
    x = alt.X("g:O", sort=order, axis=axis, scale=alt.Scale(paddingInner=0.25))
    bars = chart.mark_bar(style="cgp-bar").encode(x=x, y=_y("y:Q"), tooltip=told)
    rules = chart.mark_rule(style="cgp-whisker", strokeWidth=1.5)
    ends = rules.encode(x=x, y="lo:Q", y2="hi:Q", tooltip=told)
    menu: Spec = {}
    if len(names) > 1:
        menu["bind"] = alt.binding_select(options=[*range(len(names))], labels=names, name="Show ")
    which = alt.param(name="which", value=0, **menu)
    return alt.layer(bars, ends).properties(width=600, height=200).add_params(which).to_dict()


def pit_chart(low: float, high: float) -> Spec:
    """Return the histogram of the PIT, flat if calibrated, with the limits of chance."""
    axis = alt.Axis(title="probability integral transform (PIT)", format=".1f", tickCount=5)
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    told = _tooltips(x=("from", ".1f"), x2=("to", ".1f"), y=("density", ".2f"))
    bars = _named("pit").mark_bar(style="cgp-calibration", binSpacing=2)
    bars = bars.encode(x=x, x2="x2:Q", y=_y("y:Q"), y2="y0:Q", tooltip=told)
    lines = [
        alt.Chart(alt.InlineData(values=[{"y": y}]))
        .mark_rule(style="cgp-reference", strokeDash=dash)
        .encode(y="y:Q")
        for y, dash in ((1.0, [1, 0]), (low, [4, 3]), (high, [4, 3]))
    ]
    return alt.layer(bars, *lines).properties(width=300, height=200).to_dict()


def coverage_chart() -> Spec:
    """Return the coverage of intervals against their nominal level: the diagonal is right."""
    domain, percent = alt.Scale(domain=[0, 1]), {"format": ".0%", "tickCount": 5}
    x = alt.X("x:Q", scale=domain, axis=alt.Axis(title="nominal coverage of intervals", **percent))
    y = alt.Y("y:Q", scale=domain, axis=alt.Axis(**Y_LABELS, **percent, title=None))
    told = _tooltips(x=("nominal", ".0%"), y=("observed", ".1%"))
    ends = alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])
    diagonal = alt.Chart(ends).mark_line(style="cgp-reference").encode(x=x, y=y)
    line = {"style": "cgp-mean", "point": {"style": "cgp-dot", "filled": True, "size": 45}}
    held = _named("coverage").mark_line(**line).encode(x=x, y=y, tooltip=told)
    return alt.layer(diagonal, held).properties(width=300, height=200).to_dict()


def _tooltips(**fields: tuple[str, str]) -> list[alt.Tooltip]:
    """Return tooltips by field: a title and a format each."""
    return [alt.Tooltip(f"{k}:Q", title=name, format=form) for k, (name, form) in fields.items()]
