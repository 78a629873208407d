// Charts: a figure's values in, SVG out. Colours are the page's variables, so that they follow the theme.

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const say = (mean) => (mean.low == null ? number.format(mean.mean)
  : `${number.format(mean.mean)} (${number.format(mean.low)} to ${number.format(mean.high)})`);
const unique = (list) => [...new Set(list)];

// Room for the longest of `texts` beside an axis.
function room(texts, least) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  return Math.ceil(Math.max(least, ...texts.map((text) => pen.measureText(text).width + 14)));
}

const shorten = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function groupTitle(text) {
  const title = document.createElement("p");
  title.className = "group";
  title.textContent = text;
  return title;
}

function plot(width, options) {
  return Plot.plot({
    width, style: { fontSize: "12px", background: "none" },
    color: { type: "identity" }, ...options,
  });
}

const charts = {
  // One chart a group, all with the same scale.
  bars(chart, width, place) {
    const grouped = chart.bars.some((bar) => bar.group);
    const rows = unique(chart.bars.map((bar) => bar.row));
    const reach = chart.bars.flatMap((bar) => [bar.ours?.mean, bar.ours?.low, bar.ours?.high, bar.published])
      .filter((value) => value != null);
    const domain = [Math.min(0, ...reach), Math.max(0, ...reach)];
    const letters = width < 500 ? 16 : 40;
    const left = room(rows.map((row) => shorten(row, letters)), 30);
    const published = chart.bars.some((bar) => bar.published != null);
    legend(place.legend, published ? [["published", publishedSign()]] : []);
    return unique(chart.bars.map((bar) => bar.group)).map((group) => {
      const bars = chart.bars.filter((bar) => bar.group === group);
      const ours = bars.filter((bar) => bar.ours);
      const spread = ours.filter((bar) => bar.ours.low != null);
      const text = (bar) => `${bar.row}\n${bar.ours ? say(bar.ours) : ""}${bar.ours?.n ? `\nn = ${bar.ours.n}` : ""}`
        + (bar.published == null ? "" : `\npublished ${number.format(bar.published)}`);
      const filled = (bar) => (styleOf(bar.row).filled ? 1 : 0.3);
      const whisker = { y: "row", stroke: "var(--ink)", strokeWidth: 1.4 };
      return plot(width, {
        title: grouped ? groupTitle(group) : undefined,
        marginLeft: left, marginRight: 16, marginBottom: 38,
        height: 26 * unique(bars.map((bar) => bar.row)).length + 62,
        x: { label: chart.axis.label, domain, nice: true, grid: true, labelArrow: "none", labelAnchor: "center" },
        y: { domain: rows.filter((row) => bars.some((bar) => bar.row === row)), label: null, padding: 0.25,
          tickFormat: (row) => shorten(row, letters), tickSize: 0 },
        marks: [
          Plot.barX(ours, { x: (bar) => bar.ours.mean, y: "row", fill: (bar) => colourOf(bar.row), fillOpacity: filled,
            stroke: (bar) => colourOf(bar.row), strokeWidth: 1.5, insetTop: 1, insetBottom: 1, ariaLabel: text }),
          Plot.ruleX([0], { stroke: "var(--soft)" }),
          Plot.ruleY(spread, { ...whisker, x1: (bar) => bar.ours.low, x2: (bar) => bar.ours.high, className: "interval" }),
          ...["low", "high"].map((end) => Plot.tickX(spread, { ...whisker, x: (bar) => bar.ours[end], inset: 5 })),
          Plot.dot(bars.filter((bar) => bar.published != null), { x: "published", y: "row", symbol: "diamond", r: 5,
            fill: "var(--page)", stroke: "var(--ink)", strokeWidth: 1.6, className: "published" }),
          Plot.tip(bars, Plot.pointerY({ x: (bar) => bar.ours?.mean ?? bar.published, y: "row", title: text })),
        ],
      });
    });
  },

  lines(chart, width, place) {
    const published = chart.lines.some((line) => line.published?.length);
    const entries = chart.lines.map((line) => [line.name, sample(styleOf(line.name), true)]);
    legend(place.legend, published ? [...entries, ["published", publishedSign()]] : entries);
    const points = chart.lines.map((line) => line.points.map(([x, mean]) => ({ name: line.name, x, ...mean })));
    const marks = points.flatMap((line, i) => {
      const style = styleOf(chart.lines[i].name), colour = colourOf(chart.lines[i].name);
      return [
        Plot.areaY(line.filter((d) => d.low != null), { x: "x", y1: "low", y2: "high", fill: colour, fillOpacity: 0.16 }),
        Plot.line(line, { x: "x", y: "mean", stroke: colour, strokeWidth: 2, strokeDasharray: style.dash || undefined }),
        Plot.dot(line, { x: "x", y: "mean", r: 4, symbol: style.symbol, stroke: colour,
          fill: style.filled ? colour : "var(--page)", strokeWidth: 1.5 }),
        Plot.dot(chart.lines[i].published ?? [], { x: "0", y: "1", symbol: "diamond", r: 5.5, fill: colour,
          stroke: "var(--ink)", strokeWidth: 1.6, className: "published" }),
      ];
    });
    const all = points.flat();
    marks.push(Plot.tip(all, Plot.pointer({ x: "x", y: "mean", title: (d) => `${d.name}\nat ${number.format(d.x)}: ${say(d)}\nn = ${d.n}` })));
    return [plot(width, { height: Math.min(420, Math.max(260, width * 0.55)), ...frame(chart.x, chart.y, chart.y.log), marks })];
  },

  distribution(chart, width, place) {
    legend(place.legend, chart.curves.map((curve) => [curve.name, sample(styleOf(curve.name), "bare")]));
    const curves = chart.curves.map((curve) => curve.shares.filter(([, share]) => share > 0 || !chart.y.log)
      .map(([x, share]) => ({ name: curve.name, x, share })));
    const marks = curves.map((curve, i) => Plot.line(curve, { x: "x", y: "share", curve: "step", strokeWidth: 1.8,
      stroke: colourOf(chart.curves[i].name), strokeDasharray: styleOf(chart.curves[i].name).dash || undefined }));
    marks.push(Plot.tip(curves.flat(), Plot.pointer({ x: "x", y: "share",
      title: (d) => `${d.name}\n${number.format(d.x)}: ${number.format(d.share)}` })));
    return [plot(width, { height: Math.min(400, Math.max(240, width * 0.5)), ...frame(chart.x, chart.y, chart.y.log), marks })];
  },

  time_series(chart, width, place) {
    const names = unique(chart.panels.flatMap((panel) => panel.curves.map((curve) => curve.name))).filter((name) => name);
    legend(place.legend, names.map((name) => [name, sample(styleOf(name), "bare")]));
    const end = Math.max(...chart.panels.flatMap((panel) => panel.curves).map((curve) => curve.start_s + curve.step_s * curve.mean.length), 0);
    return chart.panels.map((panel) => {
      const curves = panel.curves.map((curve) => curve.mean.map((mean, i) => ({ name: curve.name, mean,
        t: curve.start_s + curve.step_s * (i + 0.5), low: curve.low?.[i], high: curve.high?.[i] })));
      const marks = curves.flatMap((curve, i) => {
        const name = panel.curves[i].name, style = name ? styleOf(name) : { dash: "" };
        const colour = name ? colourOf(name) : "var(--ink)";
        return [
          panel.curves[i].low?.length ? Plot.areaY(curve, { x: "t", y1: "low", y2: "high", fill: colour, fillOpacity: 0.22 }) : null,
          Plot.line(curve, { x: "t", y: "mean", stroke: colour, strokeWidth: 1.5, strokeDasharray: style.dash || undefined }),
        ];
      });
      const known = curves.flat().filter((d) => d.mean != null);
      marks.push(Plot.tip(known, Plot.pointerX({ x: "t", y: "mean",
        title: (d) => `${d.name ? `${d.name}, ` : ""}${number.format(d.t)} s\n${number.format(d.mean)}` })));
      return plot(width, { height: 190, ...frame({ label: "time, s", domain: [0, end] }, panel.axis, panel.axis.log), marks });
    });
  },

  scatter(chart, width, place) {
    legend(place.legend, [
      ...chart.sets.map((set) => [set.name, sample(styleOf(set.name), false)]),
      ...chart.models.map((set) => [set.name, sample(styleOf(set.name), "bare")]),
    ]);
    const marks = [
      ...chart.sets.map((set) => Plot.dot(set.points, { x: "0", y: "1", r: 3.5, symbol: styleOf(set.name).symbol,
        stroke: colourOf(set.name), fill: styleOf(set.name).filled ? colourOf(set.name) : "var(--page)", fillOpacity: 0.6 })),
      ...chart.models.map((set) => Plot.line(set.points, { x: "0", y: "1", stroke: colourOf(set.name), strokeWidth: 2,
        strokeDasharray: styleOf(set.name).dash || undefined })),
    ];
    return [plot(width, { height: Math.min(420, Math.max(260, width * 0.55)), ...frame(chart.x, chart.y, chart.y.log), marks })];
  },
};

// `0.05`, `2500`, `12k`, `1e-6`.
function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return d3.format("~s")(value);
  return size > 0 && size < 1e-3 ? d3.format("~e")(value) : number.format(value).replace(",", "");
}

// On a logarithmic axis 1, 2 and 5 are named, as far as there is room.
function logTick(value, i, ticks) {
  const leading = Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
  const far = ticks.at(-1) / ticks[0] > 1e3;
  return leading === 1 || (!far && (leading === 2 || leading === 5)) ? tick(value) : "";
}

// Axes of a chart whose values go up; from zero unless the scale is logarithmic.
function frame(x, y, log) {
  return {
    marginLeft: 58, marginRight: 16, marginTop: 26, marginBottom: 38,
    x: { label: x.label, type: x.log ? "log" : "linear", domain: x.domain, labelArrow: "none", labelAnchor: "center", grid: true, ticks: 6,
      tickFormat: x.log ? logTick : tick },
    y: { label: y.label, type: log ? "log" : "linear", labelArrow: "none", grid: true, zero: !log, nice: true, ticks: 5,
      tickFormat: log ? logTick : tick },
  };
}
