"""The charts of a report, in Vega-Lite. Data are named, and put in by the page itself.

What is the user's own text never becomes a name of a field. Colours are left to named styles, which
the page sets for light and dark.
"""

from __future__ import annotations

import functools
from typing import Any

from censored_gp.report.bundle import require_altair

__all__ = ["category_chart", "coverage_chart", "lost_chart", "pit_chart", "series_chart"]

Spec = dict[str, Any]
HEIGHT = 250
STYLE = "cgp-"
# Labels have one width in all charts, so that the page can tell how wide a chart may be.
AXIS = {"minExtent": 38, "maxExtent": 38}
SHORT = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~g')"

TIMES = (
    "utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') : "
    "utcdate(datum.value) === 1 ? utcFormat(datum.value, '%b %Y') : "
    "utcFormat(datum.value, '%a %d %b')"
)


def _number(field: str) -> str:
    """Return an expression for a number as people read it."""
    value = f"datum.{field}"
    return f"(abs({value}) >= 1000 ? format({value}, ',.0f') : format({value}, '.3~g'))"


def _named(name: str) -> Any:
    alt = require_altair()
    return alt.Chart(alt.NamedData(name=name))


def _y(field: str, title: str | None = None, **settings: Any) -> Any:
    alt = require_altair()
    axis = alt.Axis(**AXIS, labelExpr=SHORT, title=title, tickCount=5)
    return alt.Y(field, axis=axis, **settings)


@functools.cache
def series_chart(is_time: bool, label: str, kinds: frozenset[int], probability: float) -> Spec:
    """Return the chart of one output: all that is known of it, and below it an overview to zoom.

    `kinds` are those that occur, by number: a layer without points would upset its scale. Outputs
    of the same kinds share a chart, which takes long to make.
    """
    alt = require_altair()
    brush = alt.selection_interval(encodings=["x"], name="zoom")
    chart = _named("series")
    # All layers have the one scale: those without it would widen it again.
    x = alt.X(**_x(is_time, label), scale=_scale(is_time, brush))
    detail = alt.layer(
        *_marks(chart, kinds, x), _hover(chart, is_time, label, probability, x)
    ).properties(width=600, height=HEIGHT)
    overview = (
        chart.mark_area(style=STYLE + "band", interpolate="linear")
        .encode(
            x=alt.X(**_x(is_time, ""), scale=_scale(is_time)),
            y=alt.Y("m:Q", axis=alt.Axis(**AXIS, labels=False, ticks=False, title=None)),
        )
        .properties(width=600, height=44)
        .add_params(brush)
    )
    return alt.vconcat(detail, overview, spacing=8).to_dict()


def _x(is_time: bool, label: str) -> Spec:
    alt = require_altair()
    title = None if is_time or not label else label
    clock = {"labelExpr": TIMES} if is_time else {}
    # A label that would stick out at an end is left out: there is no room for it.
    whole = {"labelOverlap": "greedy", "labelSeparation": 12, "labelBound": True}
    axis = alt.Axis(title=title, tickCount=6, **whole, **clock)
    return {"shorthand": "x:T" if is_time else "x:Q", "axis": axis}


def _scale(is_time: bool, brush: Any = None) -> Any:
    """Return a scale of x; times are those of the wall clock, so that they must not be shifted."""
    alt = require_altair()
    settings: Spec = {"type": "utc"} if is_time else {"type": "linear", "zero": False}
    if brush is not None:
        settings["domain"] = brush
    return alt.Scale(**settings)


def _marks(chart: Any, kinds: frozenset[int], x: Any) -> list[Any]:
    """Return band, mean, and the cells by kind: their shapes differ, not only their colours."""
    alt = require_altair()
    clip: Spec = {"clip": True}
    band = chart.mark_area(style=STYLE + "band", **clip).encode(x=x, y=_y("lo:Q"), y2="hi:Q")
    mean = chart.mark_line(style=STYLE + "mean", **clip).encode(x=x, y="m:Q")

    def points(kind: int, shape: str, size: int, style: str) -> Any:
        mark = {"shape": shape, "size": size, "filled": True, "style": STYLE + style, **clip}
        return chart.transform_filter(f"datum.k === {kind}").mark_point(**mark).encode(x=x, y="v:Q")

    between = (
        chart.transform_filter("datum.k === 3")
        .mark_rule(style=STYLE + "between", **clip)
        .encode(x=x, y="v:Q", y2="u:Q")
    )
    missing = (
        chart.transform_filter("datum.k === 4")
        .mark_tick(orient="vertical", height=9, style=STYLE + "missing", **clip)
        .encode(x=x, y=alt.YValue(HEIGHT - 5))
    )
    seen = points(0, "circle", 14, "seen")
    right, left = points(1, "triangle-up", 46, "bound"), points(2, "triangle-down", 46, "bound")
    each = (seen, right, left, between, missing)
    return [band, mean, *(layer for kind, layer in enumerate(each) if kind in kinds)]


def _hover(chart: Any, is_time: bool, label: str, probability: float, x: Any) -> Any:
    """Return the rule at the row that is nearest to the pointer, and what is told of it."""
    alt = require_altair()
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", fields=["x"], empty=False
    )
    when = "utcFormat(datum.x, '%a %d %b %Y, %H:%M')" if is_time else _number("x")
    told = _told("time" if is_time else label or "input", when, probability)
    return (
        chart.transform_calculate(**{name: words for name, (_, words) in told.items()})
        .mark_rule(style=STYLE + "hover", strokeWidth=2)
        .encode(
            x=x,
            opacity=alt.condition(near, alt.value(0.8), alt.value(0)),
            tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, (title, _) in told.items()],
        )
        .add_params(near)
    )


def _told(place: str, where: str, probability: float) -> dict[str, tuple[str, str]]:
    """Return what is told of a row: titles and expressions, by name."""
    value, upper = _number("v"), _number("u")
    recorded = (
        f"datum.k === 4 ? 'missing' : datum.k === 1 ? 'at least ' + {value} : datum.k === 2 ? "
        f"'at most ' + {value} : datum.k === 3 ? {value} + ' to ' + {upper} : {value}"
    )
    estimate = f"datum.k === 0 ? '= recorded' : {_number('e')}"
    return {
        "when": (place, where),
        "recorded": ("recorded", recorded),
        "estimate": ("estimate of the truth", estimate),
        "mean": ("predicted", _number("m")),
        "between": (f"{probability:.0%} interval", f"{_number('lo')} + ' to ' + {_number('hi')}"),
    }


def category_chart(label: str, kinds: frozenset[int], probability: float) -> Spec:
    """Return the chart of one output by category: the prediction of each with its interval."""
    alt = require_altair()
    told = _told(label, "'' + datum.g", probability)
    tips = [alt.Tooltip(f"{name}:N", title=title) for name, (title, _) in told.items()]
    chart = _named("series").transform_calculate(**{name: w for name, (_, w) in told.items()})
    axis = alt.Axis(title=label, labelAngle=0, labelOverlap="greedy", labelSeparation=4)
    x = alt.X("g:N", sort=None, axis=axis)
    one = chart.transform_filter("datum.f === 1")
    ends = one.mark_rule(style=STYLE + "mean").encode(x=x, y=_y("lo:Q"), y2="hi:Q", tooltip=tips)
    mean = one.mark_point(shape="diamond", size=110, filled=True, style=STYLE + "mean").encode(
        x=x, y="m:Q", tooltip=tips
    )
    rows = _in_places(chart, kinds, x, tips)
    layered = alt.layer(*rows, ends, mean)
    return layered.properties(width=600, height=HEIGHT).to_dict()


def _in_places(chart: Any, kinds: frozenset[int], x: Any, tips: list[Any]) -> list[Any]:
    """Return cells by kind, side by side in their category."""
    alt = require_altair()
    beside = alt.XOffset("j:Q", scale=alt.Scale(domain=[-0.5, 0.5]))
    shapes = {0: ("circle", 16, "seen"), 1: ("triangle-up", 46, "bound"),
              2: ("triangle-down", 46, "bound")}  # fmt: skip
    drawn = []
    for kind, (shape, size, style) in shapes.items():
        if kind in kinds:
            own = chart.transform_filter(f"datum.k === {kind}")
            mark = own.mark_point(shape=shape, size=size, filled=True, style=STYLE + style)
            drawn.append(mark.encode(x=x, xOffset=beside, y="v:Q", tooltip=tips))
    if 3 in kinds:
        between = chart.transform_filter("datum.k === 3").mark_rule(style=STYLE + "between")
        drawn.append(between.encode(x=x, xOffset=beside, y="v:Q", y2="u:Q", tooltip=tips))
    if 4 in kinds:
        lost = chart.transform_filter("datum.k === 4")
        ticks = lost.mark_tick(orient="vertical", height=9, style=STYLE + "missing")
        drawn.append(ticks.encode(x=x, xOffset=beside, y=alt.YValue(HEIGHT - 5), tooltip=tips))
    return drawn


def lost_chart(names: list[str], group: str, order: list[Any], probability: float) -> Spec:
    """Return bars of lost demand by group with intervals; outputs are chosen from a list."""
    alt = require_altair()
    chart = _named("lost")
    params = []
    if len(names) > 1:
        chosen = alt.binding_select(
            options=list(range(len(names))), labels=[str(name) for name in names], name="Show "
        )
        params = [alt.param(name="which", value=0, bind=chosen)]
        chart = chart.transform_filter("datum.o === which")
    axis = alt.Axis(title=None, labelAngle=0, labelOverlap="greedy", labelSeparation=4)
    x = alt.X("g:O", sort=order, axis=axis, scale=alt.Scale(paddingInner=0.25))
    share = "format(datum.s, '.0%') + ' (' + format(datum.sl, '.0%') + ' to ' + "
    told = {
        "group": (group, "'' + datum.g"),
        "seen": ("recorded", _number("r")),
        "gone": ("lost", _number("y")),
        "between": (f"{probability:.0%} interval", f"{_number('lo')} + ' to ' + {_number('hi')}"),
        "part": ("share of demand lost", share + "format(datum.sh, '.0%') + ')'"),
        "cells": ("cells censored", "datum.c + ' of ' + datum.n"),
    }
    chart = chart.transform_calculate(**{name: words for name, (_, words) in told.items()})
    tips = [alt.Tooltip(f"{name}:N", title=title) for name, (title, _) in told.items()]
    bars = chart.mark_bar(style=STYLE + "bar").encode(x=x, y=_y("y:Q"), tooltip=tips)
    ends = chart.mark_rule(style=STYLE + "whisker", strokeWidth=1.5).encode(
        x=x, y="lo:Q", y2="hi:Q", tooltip=tips
    )
    layered = alt.layer(bars, ends).properties(width=600, height=200)
    return (layered.add_params(*params) if params else layered).to_dict()


def pit_chart(chance: float) -> Spec:
    """Return how often the truth fell into each tenth of its prediction: flat if all is well."""
    alt = require_altair()
    axis = alt.Axis(title="where the truth fell in its prediction", format=".1f", tickCount=5)
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    tip = [
        alt.Tooltip("x:Q", title="from", format=".1f"),
        alt.Tooltip("x2:Q", title="to", format=".1f"),
        alt.Tooltip("y:Q", title="relative number", format=".2f"),
    ]
    bars = _named("pit").mark_bar(style=STYLE + "calibration", binSpacing=2)
    lines = [
        alt.Chart(alt.InlineData(values=[{"y": y}]))
        .mark_rule(style=STYLE + "reference", strokeDash=dash)
        .encode(y="y:Q")
        for y, dash in ((1.0, [1, 0]), (max(0.0, 1 - chance), [4, 3]), (1 + chance, [4, 3]))
    ]
    layers = (bars.encode(x=x, x2="x2:Q", y=_y("y:Q"), y2="y0:Q", tooltip=tip), *lines)
    return alt.layer(*layers).properties(width=300, height=200).to_dict()


def coverage_chart() -> Spec:
    """Return how many cells intervals hold against how many they promise: the diagonal is right."""
    alt = require_altair()
    domain = alt.Scale(domain=[0, 1])
    axis = {"format": ".0%", "tickCount": 5}
    x = alt.X("x:Q", scale=domain, axis=alt.Axis(title="share that intervals promise", **axis))
    y = alt.Y("y:Q", scale=domain, axis=alt.Axis(**AXIS, **axis, title=None))
    tip = [
        alt.Tooltip("x:Q", title="promised", format=".0%"),
        alt.Tooltip("y:Q", title="held", format=".1%"),
    ]
    ends = alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}])
    diagonal = alt.Chart(ends).mark_line(style=STYLE + "reference").encode(x=x, y=y)
    held = _named("coverage").mark_line(style=STYLE + "mean").encode(x=x, y=y)
    dots = _named("coverage").mark_point(style=STYLE + "dot", filled=True, size=45)
    layers = (diagonal, held, dots.encode(x=x, y=y, tooltip=tip))
    return alt.layer(*layers).properties(width=300, height=200).to_dict()
