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

// Below the chart, once, what one might not see.
function remark(place, text) {
  if (!place.remarks.textContent.includes(text)) place.remarks.textContent = `${place.remarks.textContent} ${text}`.trim();
}

// An axis from zero: where nothing can be negative, an interval that reaches below zero does not move it.
function span(axis, means, lows, highs) {
  const low = d3.min([0, ...means, ...(axis.signed ? lows : [])].filter((value) => value != null));
  const high = d3.max([0, ...means, ...highs].filter((value) => value != null));
  return low === high ? [0, 1] : [low, high];
}

// The axis upwards for these values, with the floor to which intervals are drawn.
function upwards(axis, means, lows, highs) {
  if (axis.log) return { ...axis, values: means, floor: d3.min(means) };
  const domain = span(axis, means, lows, highs);
  return { ...axis, domain, floor: domain[0] };
}

// Bands that lie on each other must let each other through.
const bandOpacity = (bands, alone) => (bands > 2 ? alone / 2 : alone);

// Of lines that lie on each other, how many lie on each; the names are told. `curves`: [{ name, points: [[x, y]] }].
function covered(curves, place) {
  const [low, high] = d3.extent(curves.flatMap((curve) => curve.points), ([, y]) => y);
  const near = (a, b) => Object.is(a, b) || Math.abs(a - b) <= 0.005 * (high - low);
  const same = (a, b) => a.points.length > 1 && a.points.length === b.points.length
    && a.points.every(([x, y], i) => x === b.points[i][0] && near(y, b.points[i][1]));
  return curves.map((curve, i) => {
    const above = curves.slice(i + 1).filter((other) => same(curve, other));
    if (above.length) remark(place, `${above.map((other) => other.name).join(", ")} on ${curve.name}, the wider line: they agree.`);
    return above.length;
  });
}

// From where to where 95 % of every curve's mass lies: of what is nowhere negative, from zero.
function bulk(curves) {
  const ends = curves.filter((curve) => curve.shares.length).map(({ shares }) => {
    const total = d3.sum(shares, ([, share]) => share), negative = shares[0][0] < 0;
    const beyond = (list, part) => {
      let mass = 0;
      return list.find(([, share]) => (mass += share) > part * total)?.[0] ?? list[0][0];
    };
    return [negative ? beyond(shares, 0.025) : 0, beyond([...shares].reverse(), negative ? 0.025 : 0.05)];
  });
  return [d3.min(ends, ([low]) => low) ?? 0, d3.max(ends, ([, high]) => high) ?? 1];
}

// A distribution's panels, [title, domain]: all of it, and before that its bulk, if a long tail would hide it.
function windows(curves) {
  const near = bulk(curves);
  const [low, high] = d3.extent(curves.flatMap((curve) => curve.shares.filter(([, share]) => share > 0)), ([x]) => x);
  const whole = [Math.min(low ?? 0, near[0]), Math.max(high ?? 1, near[1])];
  return near[1] - near[0] < (whole[1] - whole[0]) / 2 ? [["Where 95 % of every row lie", near], ["All", whole]] : [["", whole]];
}

const charts = {
  // One chart a group, all with the same scale unless some would be lost on it.
  bars(chart, width, place) {
    const groups = d3.groups(chart.bars, (bar) => bar.group);
    const grouped = chart.bars.some((bar) => bar.group);
    const rows = unique(chart.bars.map((bar) => bar.row));
    const reach = (bars) => span(chart.axis, bars.flatMap((bar) => [bar.ours?.mean, bar.published]),
      bars.map((bar) => bar.ours?.low), bars.map((bar) => bar.ours?.high));
    const sizes = groups.map(([, bars]) => d3.max(bars, (bar) => Math.abs(bar.ours?.mean ?? bar.published ?? 0))).filter((size) => size > 0);
    const apart = d3.max(sizes) > 10 * d3.min(sizes);
    if (apart) remark(place, "Each panel has an axis of its own: the values differ more than tenfold.");
    const letters = width < 500 ? 16 : 40;
    const left = room(rows.map((row) => shorten(row, letters)), 30);
    const published = chart.bars.some((bar) => bar.published != null);
    legend(place.legend, published ? [["published", publishedSign()]] : []);
    return groups.map(([group, bars]) => {
      const domain = reach(apart ? bars : chart.bars);
      const ours = bars.filter((bar) => bar.ours);
      const spread = ours.filter((bar) => bar.ours.low != null);
      const text = (bar) => `${bar.row}\n${bar.ours ? say(bar.ours) : ""}${bar.ours?.n ? `\nn = ${bar.ours.n}` : ""}`
        + (bar.published == null ? "" : `\npublished ${number.format(bar.published)}`);
      const filled = (bar) => (styleOf(bar.row).filled ? 1 : 0.3);
      const whisker = { y: "row", stroke: "var(--ink)", strokeWidth: 1.4 };
      const ends = [spread.filter((bar) => bar.ours.low >= domain[0]), spread];
      return plot(width, {
        title: grouped ? groupTitle(group) : undefined,
        marginLeft: left, marginRight: 16, marginBottom: 38,
        height: 26 * unique(bars.map((bar) => bar.row)).length + 62,
        x: { label: chart.axis.label, domain, nice: true, grid: true, labelArrow: "none", labelAnchor: "center", tickFormat: tick },
        y: { domain: rows.filter((row) => bars.some((bar) => bar.row === row)), label: null, padding: 0.25,
          tickFormat: (row) => shorten(row, letters), tickSize: 0 },
        marks: [
          Plot.barX(ours, { x: (bar) => bar.ours.mean, y: "row", fill: (bar) => colourOf(bar.row), fillOpacity: filled,
            stroke: (bar) => colourOf(bar.row), strokeWidth: 1.5, insetTop: 1, insetBottom: 1 }),
          Plot.ruleX([0], { stroke: "var(--soft)" }),
          Plot.ruleY(spread, { ...whisker, x1: (bar) => Math.max(domain[0], bar.ours.low), x2: (bar) => bar.ours.high, className: "interval" }),
          ...["low", "high"].map((end, i) => Plot.tickX(ends[i], { ...whisker, x: (bar) => bar.ours[end], inset: 5 })),
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
    const all = points.flat(), marked = chart.lines.flatMap((line) => line.published ?? []);
    const up = upwards(chart.y, [...all.map((d) => d.mean), ...marked.map(([, y]) => y)], all.map((d) => d.low), all.map((d) => d.high));
    const under = covered(chart.lines.map((line) => ({ name: line.name, points: line.points.map(([x, mean]) => [x, mean.mean]) })), place);
    const bands = points.filter((line) => line.some((d) => d.low != null)).length;
    const marks = points.flatMap((line, i) => {
      const style = styleOf(chart.lines[i].name), colour = colourOf(chart.lines[i].name);
      return [
        Plot.areaY(line.filter((d) => d.low != null), { x: "x", y1: (d) => Math.max(up.floor, d.low), y2: "high", fill: colour,
          fillOpacity: bandOpacity(bands, 0.16) }),
        Plot.line(line, { x: "x", y: "mean", stroke: colour, strokeWidth: 2 + 4 * under[i], strokeDasharray: style.dash || undefined }),
        Plot.dot(line, { x: "x", y: "mean", r: 4 + 2.5 * under[i], symbol: style.symbol, stroke: colour,
          fill: style.filled ? colour : "var(--page)", strokeWidth: 1.5 }),
        Plot.dot(chart.lines[i].published ?? [], { x: "0", y: "1", symbol: "diamond", r: 5.5, fill: colour,
          stroke: "var(--ink)", strokeWidth: 1.6, className: "published" }),
      ];
    });
    marks.push(Plot.tip(all, Plot.pointer({ x: "x", y: "mean", title: (d) => `${d.name}\nat ${number.format(d.x)}: ${say(d)}\nn = ${d.n}` })));
    return [plot(width, { height: lineHeight(width), ...frame(chart.x, up, all.map((d) => d.x)), marks })];
  },

  distribution(chart, width, place) {
    legend(place.legend, chart.curves.map((curve) => [curve.name, sample(styleOf(curve.name), "bare")]));
    const known = chart.curves.map(({ name, shares }) => shares.filter(([, share]) => share > 0 || !chart.y.log)
      .map(([x, share]) => ({ name, x, share })));
    const scaled = (share) => (chart.y.log ? Math.log(share) : share);
    const under = covered(known.map((curve, i) => ({ name: chart.curves[i].name, points: curve.map((d) => [d.x, scaled(d.share)]) })), place);
    return windows(chart.curves).map(([title, domain]) => {
      const curves = known.map((curve) => curve.filter(({ x }) => x >= domain[0] && x <= domain[1]));
      const marks = curves.map((curve, i) => Plot.line(curve, { x: "x", y: "share", curve: "step", strokeWidth: 1.8 + 4 * under[i],
        stroke: colourOf(chart.curves[i].name), strokeDasharray: styleOf(chart.curves[i].name).dash || undefined }));
      marks.push(Plot.tip(curves.flat(), Plot.pointer({ x: "x", y: "share",
        title: (d) => `${d.name}\n${number.format(d.x)}: ${number.format(d.share)}` })));
      const up = upwards(chart.y, curves.flat().map((d) => d.share), [], []);
      return plot(width, { title: title ? groupTitle(title) : undefined, height: lineHeight(width), ...frame({ ...chart.x, domain }, up), marks });
    });
  },

  time_series: timeSeries,

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
    return [plot(width, { height: lineHeight(width), ...frame(chart.x, chart.y), marks })];
  },
};

// `0.05`, `2500`, `12k`, `1e-6`.
function tick(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return d3.format("~s")(value);
  return size > 0 && size < 1e-3 ? d3.format("~e")(value) : number.format(value).replace(",", "");
}

// On a logarithmic axis 1, 2 and 5 are named, as far as there is room.
function logTick(values) {
  const far = Math.max(...values) / Math.min(...values) > 1e3;
  return (value) => {
    const leading = Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
    return leading === 1 || (!far && (leading === 2 || leading === 5)) ? tick(value) : "";
  };
}

const lineHeight = (width) => Math.min(420, Math.max(260, width * 0.55));

// Axes of a chart whose values go up; from zero unless the scale is logarithmic. `xs` = where a logarithmic x axis has points,
// `y.values` likewise.
function frame(x, y, xs) {
  return {
    marginLeft: 58, marginRight: 16, marginTop: 26, marginBottom: 38,
    x: { label: x.label, type: x.log ? "log" : "linear", domain: x.domain, labelArrow: "none", labelAnchor: "center", grid: true, ticks: 6,
      tickFormat: x.log ? logTick(xs) : tick },
    y: { label: y.label, type: y.log ? "log" : "linear", domain: y.domain, labelArrow: "none", grid: true, zero: !y.log, nice: true, ticks: 5,
      tickFormat: y.log && y.values ? logTick(y.values) : tick },
  };
}
