// Charts over time: all show the same times and the same names.

const overTime = {
  window: null,
  hidden: new Set(),
  known: new Set(),
  version: 0,

  // Of many names the first are shown, until the reader chooses.
  meet(names) {
    names.filter((name) => !overTime.known.has(name)).forEach((name) => {
      if (overTime.known.size >= 8) overTime.hidden.add(name);
      overTime.known.add(name);
    });
  },

  changed() {
    overTime.version++;
    drawAll(stale);
  },

  show(window) {
    overTime.window = window;
    overTime.changed();
  },

  toggle(name) {
    if (!overTime.hidden.delete(name)) overTime.hidden.add(name);
    overTime.changed();
  },
};

// The window after a key: zoomed about its middle, moved by a fifth, or whole. Never beyond [0, end].
function movedWindow(window, end, key) {
  const [from, to] = window ?? [0, end];
  const within = (low, high) => {
    const length = Math.min(high - low, end), start = Math.max(0, Math.min(low, end - length));
    return length >= end ? null : [start, start + length];
  };
  const middle = (from + to) / 2, half = (to - from) / 2, step = (to - from) / 5;
  return {
    "+": () => within(middle - half / 1.6, middle + half / 1.6), "-": () => within(middle - half * 1.6, middle + half * 1.6),
    ArrowLeft: () => within(from - step, to - step), ArrowRight: () => within(from + step, to + step), Home: () => null,
  }[key]?.();
}

const zoomButtons = [["Zoom in", "+"], ["Zoom out", "-"], ["Earlier", "ArrowLeft"], ["Later", "ArrowRight"], ["Show all", "Home"]];

// Once a figure: buttons above its chart, and keys.
function timeControls(place, end) {
  if (place.chart.dataset.end) return;
  place.chart.dataset.end = end;
  const press = (key) => overTime.show(movedWindow(overTime.window, end, key));
  const keys = document.createElement("div");
  keys.className = "keys";
  for (const [text, key] of zoomButtons) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", () => press(key));
    keys.append(button);
  }
  place.chart.before(keys);
  place.chart.tabIndex = 0;
  place.chart.setAttribute("role", "group");
  place.chart.setAttribute("aria-label", "Charts over time. Keys: plus and minus zoom, left and right move, Home shows all.");
  place.chart.addEventListener("keydown", (event) => {
    const key = event.key === "=" ? "+" : event.key;
    if (event.ctrlKey || event.metaKey || event.altKey || !zoomButtons.some(([, known]) => known === key)) return;
    event.preventDefault();
    press(key);
  });
}

// Names that can be hidden: buttons, which stay while the names do.
function toggles(place, names) {
  if (place.dataset.names !== names.join("\n")) {
    place.dataset.names = names.join("\n");
    place.replaceChildren(...names.map((name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "name";
      button.append(sample(styleOf(name), "bare"), name);
      button.addEventListener("click", () => overTime.toggle(name));
      return button;
    }));
  }
  [...place.children].forEach((button, i) => button.setAttribute("aria-pressed", !overTime.hidden.has(names[i])));
}

// A drag over a drawn chart chooses the times of all.
function dragTime(svg) {
  const x = svg.scale("x"), y = svg.scale("y");
  if (!x?.invert) return;
  const brush = d3.brushX().extent([[x.range[0], Math.min(...y.range)], [x.range[1], Math.max(...y.range)]]).touchable(false)
    .on("end", (event) => {
      if (event.sourceEvent && event.selection) overTime.show(event.selection.map((px) => x.invert(px)));
    });
  d3.select(svg).append("g").attr("class", "brush").call(brush);
}

// The end of an axis that a few far values do not flatten: the greatest value, or 1.25 times the 98 % quantile where that value
// is above twice the quantile.
function robustEnd(values) {
  const known = values.filter((value) => value != null).sort((a, b) => a - b);
  const most = known.at(-1) ?? 0, usual = d3.quantileSorted(known, 0.98) ?? 0;
  return usual > 0 && most > 2 * usual ? 1.25 * usual : most;
}

function timeSeries(chart, width, place) {
  const names = unique(chart.panels.flatMap((panel) => panel.curves.map((curve) => curve.name))).filter((name) => name);
  overTime.meet(names);
  if (names.length > 1) toggles(place.legend, names);
  else legend(place.legend, names.map((name) => [name, sample(styleOf(name), "bare")]));
  const end = d3.max(chart.panels.flatMap((panel) => panel.curves), (curve) => curve.start_s + curve.step_s * curve.mean.length) ?? 0;
  timeControls(place, end);
  const [from, to] = overTime.window ?? [0, end];
  const height = chart.panels.length > 1 ? 240 : lineHeight(width);
  const views = chart.panels.map((panel) => {
    const shown = panel.curves.filter((curve) => !overTime.hidden.has(curve.name));
    const inWindow = (curve) => (d) => d.t > from - curve.step_s && d.t < to + curve.step_s;
    const curves = shown.map((curve) => curve.mean.map((mean, i) => ({ name: curve.name, mean,
      t: curve.start_s + curve.step_s * (i + 0.5), low: curve.low?.[i], high: curve.high?.[i] })).filter(inWindow(curve)));
    const all = curves.flat();
    const most = robustEnd(all.map((d) => d.high ?? d.mean));
    const up = upwards(panel.axis, all.map((d) => (d.mean == null ? null : Math.min(most, d.mean))), all.map((d) => d.low), [most]);
    const far = d3.max(all, (d) => d.high ?? d.mean);
    if (far > most) remark(place, `${panel.axis.label}: cut off, the greatest is ${number.format(far)}.`);
    const under = covered(shown.map((curve, i) => ({ name: curve.name, points: curves[i].map((d) => [d.t, d.mean ?? NaN]) })), place);
    const bands = shown.filter((curve) => curve.low?.length).length;
    const drawn = curves.map((curve, i) => {
      const name = shown[i].name, style = name ? styleOf(name) : { dash: "" };
      const colour = name ? colourOf(name) : "var(--ink)";
      return [
        shown[i].low?.length ? Plot.areaY(curve, { x: "t", y1: (d) => (d.low == null ? NaN : Math.max(up.floor, d.low)), y2: "high",
          fill: colour, fillOpacity: bandOpacity(bands, 0.22), clip: true }) : null,
        Plot.line(curve, { x: "t", y: "mean", stroke: colour, strokeWidth: 1.6 + 4 * under[i], strokeDasharray: style.dash || undefined, clip: true }),
      ];
    });
    const warm = chart.warmup_s > from ? [[from, Math.min(chart.warmup_s, to)]] : [];
    // Every line above every band.
    const marks = [
      Plot.rectX(warm, { x1: "0", x2: "1", fill: "var(--line)", fillOpacity: 0.45, className: "warmup" }),
      Plot.text(warm, { x: "0", text: () => "warm-up, not measured", frameAnchor: "top-left", dx: 4, dy: 4, fill: "var(--soft)", fontSize: 11 }),
      ...drawn.map(([band]) => band), ...drawn.map(([, line]) => line),
    ];
    const known = all.filter((d) => d.mean != null && d.t >= from && d.t <= to);
    marks.push(Plot.tip(known, Plot.pointer({ x: "t", y: "mean",
      title: (d) => `${d.name ? `${d.name}, ` : ""}${number.format(d.t)} s\n${number.format(d.mean)}` })));
    return plot(width, { height, ...frame({ label: "time, s", domain: [from, to] }, up), marks });
  });
  views.forEach(dragTime);
  return views;
}
