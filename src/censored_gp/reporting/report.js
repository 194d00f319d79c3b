"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  // Room for the labels of y, which have one width in all charts, and for what sticks out on the right.
  const LABELS = 60, LEAST = 160, HEIGHT = 250;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  function config() {
    const [ink, faint, line, blue, warm, grey] = ["ink", "faint", "line", "blue", "warm", "grey"].map(colour);
    const axis = { labelColor: faint, titleColor: faint, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 };
    return {
      background: null, font: "system-ui, sans-serif", view: { stroke: null }, axis,
      style: {
        "cgp-band": { color: blue, fillOpacity: 0.25 },
        "cgp-mean": { color: blue, strokeWidth: 1.8 },
        "cgp-exact": { color: grey, fillOpacity: 0.85 },
        "cgp-bound": { color: warm },
        "cgp-between": { color: warm, strokeWidth: 3 },
        "cgp-missing": { color: grey },
        "cgp-hover": { color: ink },
        "cgp-bar": { color: warm },
        "cgp-whisker": { color: ink },
        "cgp-calibration": { color: blue },
        "cgp-reference": { color: ink, strokeWidth: 1 },
        "cgp-dot": { color: blue },
      },
    };
  }

  // ---- the charts, in Vega-Lite: a specification of each kind, and what a row of it tells ----

  const SHORT_NUMBER = "abs(datum.value) >= 10000 ? format(datum.value, '~s') : format(datum.value, '~g')";
  const SHORT_TIME = "utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') : " +
    "utcdate(datum.value) === 1 ? utcFormat(datum.value, '%b %Y') : utcFormat(datum.value, '%a %d %b')";
  const number = (value) => value === null ? "–" : Math.abs(value) >= 1000 ? value.toLocaleString("en", { maximumFractionDigits: 0 }) : String(Number(value.toPrecision(3)));
  const percent = (value, digits = 0) =>
    Number.isFinite(value) ? (100 * value).toFixed(digits) + "%" : "–";
  const range = (row) => number(row.lo) + " to " + number(row.hi);
  const amount = (field) => ({ field, type: "quantitative" });
  const Y_LABELS = { minExtent: 38, maxExtent: 38, tickCount: 5, title: null };
  const labelled = (field) => ({ ...amount(field), axis: { ...Y_LABELS, labelExpr: SHORT_NUMBER } });
  // What a mark says is computed when the pointer is on it.
  const tooltip = { value: "told" };

  // One output over the training rows, and below it a strip to zoom. Times are those of the wall
  // clock, so that the browser must not shift them to its zone.
  function series({ data, kinds, time, label }) {
    // Labels that would stick out at an end are left out: there is no room for them.
    const axis = { labelOverlap: "greedy", labelSeparation: 12, labelBound: true, tickCount: 6, title: null };
    if (time) axis.labelExpr = SHORT_TIME;
    const place = { field: "x", type: time ? "temporal" : "quantitative", axis };
    const scale = time ? { type: "utc" } : { type: "linear", zero: false };
    // All layers share one scale: those without the brush would widen it again.
    const x = { ...place, axis: { ...axis, title: label }, scale: { ...scale, domain: { param: "zoom" } } };
    const bound = { type: "point", filled: true, size: 46, style: "cgp-bound" };
    const marks = {
      exact: { mark: { type: "point", filled: true, shape: "circle", size: 14, style: "cgp-exact" }, y: amount("v") },
      right: { mark: { ...bound, shape: "triangle-up" }, y: amount("v") },
      left: { mark: { ...bound, shape: "triangle-down" }, y: amount("v") },
      interval: { mark: { type: "rule", style: "cgp-between" }, y: amount("v"), y2: { field: "u" } },
      missing: { mark: { type: "tick", style: "cgp-missing", orient: "vertical", height: 9 }, y: { value: HEIGHT - 5 } },
      partial: { mark: { ...bound, filled: false, shape: "circle", size: 24 }, y: amount("v") },
    };
    // An empty layer would upset the scale.
    const cells = kinds.map((kind, k) => ({ k, ...marks[kind] })).filter(({ k }) => data.k.includes(k)).map(({ k, mark, ...y }) => (
      { transform: [{ filter: { field: "k", equal: k } }], mark: { ...mark, clip: true }, encoding: { x, ...y } }
    ));
    const near = { name: "near", select: { type: "point", nearest: true, on: "pointerover", clear: "pointerout", fields: ["x"] } };
    const opacity = { condition: { param: "near", empty: false, value: 0.8 }, value: 0 };
    const strip = { x: { ...place, scale }, y: { ...amount("m"), axis: { ...Y_LABELS, labels: false, ticks: false } } };
    return { spacing: 8, vconcat: [
      { height: HEIGHT, layer: [
        { mark: { type: "area", style: "cgp-band", clip: true }, encoding: { x, y: labelled("lo"), y2: { field: "hi" } } },
        { mark: { type: "line", style: "cgp-mean", clip: true }, encoding: { x, y: amount("m") } },
        ...cells,
        { mark: { type: "rule", style: "cgp-hover", strokeWidth: 2 }, encoding: { x, opacity, tooltip }, params: [near] },
      ] },
      { height: 44, mark: { type: "area", style: "cgp-band", interpolate: "linear" }, encoding: strip, params: [{ name: "zoom", select: { type: "interval", encodings: ["x"] } }] },
    ] };
  }
  series.tells = (row, { kinds, time, label, interval }) => {
    const kind = kinds[row.k], value = number(row.v);
    const observed = { missing: "missing", right: "at least " + value, left: "at most " + value, interval: value + " to " + number(row.u), partial: value + " in a part of the period" };
    return {
      [time ? "time" : label || "input"]: time ? new Date(row.x).toUTCString().slice(0, -7) : number(row.x),
      observed: observed[kind] || value,
      "estimate of the truth": kind === "exact" ? "= observed" : number(row.e),
      predicted: number(row.m),
      [interval]: range(row),
    };
  };

  // Lost demand by group, with intervals; a drop-down list chooses the output.
  function lost({ names, order }) {
    const axis = { title: null, labelAngle: 0, labelOverlap: "greedy", labelSeparation: 4 };
    const x = { field: "g", type: "ordinal", sort: order, axis, scale: { paddingInner: 0.25 } };
    const bind = { input: "select", options: names.map((_, d) => d), labels: names, name: "Show " };
    return {
      height: 200,
      params: [{ name: "which", value: 0, ...(names.length > 1 ? { bind } : {}) }],
      transform: [{ filter: "datum.o === which" }],
      layer: [
        { mark: { type: "bar", style: "cgp-bar" }, encoding: { x, y: labelled("y"), tooltip } },
        { mark: { type: "rule", style: "cgp-whisker", strokeWidth: 1.5 }, encoding: { x, y: amount("lo"), y2: { field: "hi" }, tooltip } },
      ],
    };
  }
  lost.tells = (row, { group, interval }) => ({
    [group]: row.g,
    observed: number(row.r),
    lost: number(row.y),
    [interval]: range(row),
    "share of demand lost": percent(row.s) + " (" + percent(row.sl) + " to " + percent(row.sh) + ")",
    "censored cells": row.c + " of " + row.n,
  });

  // The histogram of the PIT, flat if calibrated, with the limits of chance.
  function pit({ limits }) {
    const axis = { title: "probability integral transform (PIT)", format: ".1f", tickCount: 5 };
    const x = { ...amount("x"), scale: { domain: [0, 1] }, axis };
    const line = (at, dash) => ({ data: { values: [{ y: at }] }, mark: { type: "rule", style: "cgp-reference", strokeDash: dash }, encoding: { y: amount("y") } });
    return { height: 200, layer: [
      { mark: { type: "bar", style: "cgp-calibration", binSpacing: 2 }, encoding: { x, x2: { field: "x2" }, y: labelled("y"), y2: { datum: 0 }, tooltip } },
      line(1, [1, 0]), ...limits.map((limit) => line(limit, [4, 3])),
    ] };
  }
  pit.tells = (row) => ({ from: row.x.toFixed(1), to: row.x2.toFixed(1), density: row.y.toFixed(2) });

  // The coverage of intervals against their nominal level: the diagonal is right.
  function coverage() {
    const scale = { domain: [0, 1] }, axis = { format: ".0%", tickCount: 5 };
    const x = { ...amount("x"), scale, axis: { ...axis, title: "nominal coverage of intervals" } };
    const y = { ...amount("y"), scale, axis: { ...Y_LABELS, ...axis } };
    const point = { style: "cgp-dot", filled: true, size: 45 };
    return { height: 200, layer: [
      { data: { values: [{ x: 0, y: 0 }, { x: 1, y: 1 }] }, mark: { type: "line", style: "cgp-reference" }, encoding: { x, y } },
      { mark: { type: "line", style: "cgp-mean", point }, encoding: { x, y, tooltip } },
    ] };
  }
  coverage.tells = (row) => ({ nominal: percent(row.x), observed: percent(row.y, 1) });

  const KINDS = { series, lost, pit, coverage };

  // ---- drawing ----

  // Columns take half the room of rows.
  function rows(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((n) => [n, columns[n][i]])));
  }

  // A box of our own, in which text stays text.
  const box = document.createElement("div");
  box.id = "told";
  box.hidden = true;
  box.setAttribute("role", "tooltip");
  document.body.append(box);

  function tell(chart, event, item, value) {
    box.hidden = !value || !item || !item.datum;
    if (box.hidden) return;
    // Of the row that is nearest to the pointer the mark is a cell around it.
    const told = KINDS[chart.kind].tells(item.datum.datum || item.datum, chart);
    box.replaceChildren(...Object.entries(told).flatMap(([name, text]) => {
      const [head, cell] = [document.createElement("b"), document.createElement("span")];
      [head.textContent, cell.textContent] = [name, text];
      return [head, cell];
    }));
    const room = { x: window.innerWidth - box.offsetWidth - 8, y: window.innerHeight - box.offsetHeight - 8 };
    const point = event.touches && event.touches.length ? event.touches[0] : event;
    box.style.left = Math.max(8, Math.min(point.clientX + 14, room.x)) + "px";
    box.style.top = Math.max(8, Math.min(point.clientY + 14, room.y)) + "px";
  }

  async function draw(chart) {
    const place = document.getElementById(chart.id);
    const width = Math.max(LEAST, place.clientWidth - LABELS);
    const spec = { data: { values: rows(chart.data) }, description: chart.title, ...KINDS[chart.kind](chart) };
    for (const part of spec.vconcat || [spec]) part.width = width;
    if (chart.view) chart.view.finalize();
    const made = await vegaEmbed(place, spec, {
      mode: "vega-lite", actions: false, renderer: "canvas", config: config(),
      tooltip: (_, event, item, value) => tell(chart, event, item, value),
    });
    chart.view = made.view;
    chart.width = place.clientWidth;
  }

  // One after the other, so that the first are there soon.
  async function drawAll(wanted) {
    for (const chart of charts) if (wanted(chart)) await draw(chart);
    document.documentElement.dataset.drawn = charts.length;
  }

  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => drawAll((c) => c.width !== document.getElementById(c.id).clientWidth), 200);
  });
  night.addEventListener("change", () => drawAll(() => true));
  drawAll(() => true);
})();
