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

  // Columns take half the room of rows.
  function rows(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((n) => [n, columns[n][i]])));
  }

  // A box of our own: text stays text, and the row under the pointer is read from the chart itself,
  // because Vega-Lite loses text at the nearest row.
  const box = document.createElement("div");
  box.id = "told";
  box.hidden = true;
  box.setAttribute("role", "tooltip");
  document.body.append(box);

  function tell(told, event, item, value) {
    box.hidden = value === null || value === undefined || value === "";
    if (box.hidden) return;
    const row = item.datum && item.datum.datum;
    box.replaceChildren(...Object.entries(value).flatMap(([name, text]) => {
      const [head, cell] = [document.createElement("b"), document.createElement("span")];
      head.textContent = name;
      cell.textContent = row && told[name] in row ? row[told[name]] : text;
      return [head, cell];
    }));
    const room = { x: window.innerWidth - box.offsetWidth - 8, y: window.innerHeight - box.offsetHeight - 8 };
    const point = event.touches && event.touches.length ? event.touches[0] : event;
    box.style.left = Math.max(8, Math.min(point.clientX + 14, room.x)) + "px";
    box.style.top = Math.max(8, Math.min(point.clientY + 14, room.y)) + "px";
  }

  // Titles of what a chart tells, and the fields they stand for.
  function fields(part) {
    const own = ((part.encoding && part.encoding.tooltip) || []).map((each) => [each.title, each.field]);
    return Object.assign(Object.fromEntries(own), ...(part.layer || part.vconcat || []).map(fields));
  }

  async function draw(chart) {
    const place = document.getElementById(chart.id);
    const width = Math.max(LEAST, place.clientWidth - LABELS);
    const spec = structuredClone(chart.spec);
    const told = fields(spec);
    for (const part of spec.vconcat || [spec]) part.width = width;
    spec.datasets = spec.datasets || {};
    for (const [name, columns] of Object.entries(chart.data)) spec.datasets[name] = rows(columns);
    if (chart.view) chart.view.finalize();
    const made = await vegaEmbed(place, spec, {
      actions: false, renderer: "canvas", config: config(), 
      tooltip: (_, event, item, value) => tell(told, event, item, value),
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
