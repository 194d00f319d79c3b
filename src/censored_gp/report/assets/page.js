"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  // Room for the labels of y, which have one width in all charts, and for what sticks out on the right.
  const LABELS = 60, LEAST = 160;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  function config() {
    const [ink, faint, line, blue, warm, grey] = ["ink", "faint", "line", "blue", "warm", "grey"].map(colour);
    const axis = { labelColor: faint, titleColor: faint, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 };
    return {
      background: null, font: "system-ui, sans-serif", view: { stroke: null }, axis,
      style: {
        "cgp-band": { color: blue, fillOpacity: 0.25 },
        "cgp-mean": { color: blue, strokeWidth: 1.8 },
        "cgp-seen": { color: grey, fillOpacity: 0.85 },
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

  // Columns take half the room of rows.
  function rows(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((n) => [n, columns[n][i]])));
  }

  async function draw(chart) {
    const place = document.getElementById(chart.id);
    const width = Math.max(LEAST, place.clientWidth - LABELS);
    const spec = structuredClone(chart.spec);
    for (const part of spec.vconcat || [spec]) part.width = width;
    spec.datasets = spec.datasets || {};
    for (const [name, columns] of Object.entries(chart.data)) spec.datasets[name] = rows(columns);
    if (chart.view) chart.view.finalize();
    const made = await vegaEmbed(place, spec, {
      actions: false, renderer: "canvas", config: config(), tooltip: { theme: night.matches ? "dark" : "light" },
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
