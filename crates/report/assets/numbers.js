// The numbers behind charts over time, as a table and as CSV: made when a reader opens them, for they are many.

const csvField = (value) => {
  const text = value == null || Number.isNaN(value) ? "" : `${value}`;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
// Rows of a file that are made at once.
const CHUNK = 5000;

// A file, in parts; `numbers`: { heads, count, row(i), shown } with the first row and the one after the last of the times that the chart shows.
function* csv({ heads, count, row }) {
  const line = (values) => `${values.map(csvField).join(",")}\n`;
  yield line(heads);
  for (let from = 0; from < count; from += CHUNK) {
    yield Array.from({ length: Math.min(CHUNK, count - from) }, (_, i) => line(row(from + i))).join("");
  }
}

// Every curve of all panels, with its band if it has one, over the times of all.
function seriesNumbers(chart) {
  const parts = (curve) => [["", curve.mean], ["low", curve.low], ["high", curve.high]].filter(([, values]) => values?.length);
  const columns = chart.panels.flatMap((panel) => panel.curves.flatMap((curve) => parts(curve).map(([part, values]) => (
    { head: [panel.axis.label, curve.name, part].filter(Boolean).join(", "), curve, values }))));
  const rows = new Map();
  columns.forEach(({ curve, values }, column) => values.forEach((value, i) => {
    // A nanosecond is the same time.
    const time = Math.round((curve.start_s + curve.step_s * (i + 0.5)) * 1e9) / 1e9;
    if (!rows.has(time)) rows.set(time, [time, ...columns.map(() => null)]);
    rows.get(time)[column + 1] = value;
  }));
  const all = [...rows.values()].sort(([a], [b]) => a - b), times = all.map(([time]) => time);
  const [from, to] = overTime.window ?? [-Infinity, Infinity];
  return { heads: ["time, s", ...columns.map(({ head }) => head)], count: all.length, row: (i) => all[i], shown: [d3.bisectLeft(times, from), d3.bisectRight(times, to)] };
}

// Each packet of a timeline, with what its scheduler saw of the path that it took. A row is made when it is read: there may be a million.
function packetNumbers({ packets, paths, dataset }) {
  const heads = ["path", "first byte", "bytes", "why", "bound, s", "sent, s", "arrived, s", "in order in its subflow, s", "delivered, s"];
  const seen = ["smoothed RTT, s", "window, packets", "in flight, packets", "queued, packets", "room, packets", "backlog, bytes"];
  const row = (i) => {
    const arrived = packets.arrived[i] >= 0;
    const values = [paths[packets.path[i]], packets.data[i], packets.size[i], kinds[packets.why[i]], packets.bound[i], packets.sent[i],
      packets.arrived[i], arrived ? packets.ordered[i] : NaN, packets.delivered[i]];
    const decision = packets.decisions?.seen(i), of = decision?.paths[packets.path[i]];
    return packets.decisions ? [...values, of?.srtt, of?.cwnd, of?.inFlight, of?.queued, of?.room, decision?.backlog] : values;
  };
  const shown = [d3.bisectLeft(packets.sent, Number(dataset.from)), d3.bisectRight(packets.sent, Number(dataset.to))];
  return { heads: packets.decisions ? [...heads, ...seen] : heads, count: packets.length, row, shown };
}

// Rows of a table that are shown at most: more are for the file.
const SHOWN_ROWS = 50;

// Fills the figure's place for numbers with those of the times that its chart shows, once that is drawn.
function showNumbers(figure) {
  const chart = figure.querySelector(".chart"), place = figure.querySelector(".values"), stage = figure.querySelector(".stage");
  if (chart.classList.contains("timeline") && !stage) return;
  const all = stage ? packetNumbers(stage) : seriesNumbers(chartOf(figure));
  const [from, after] = all.shown;
  const rows = Array.from({ length: Math.min(SHOWN_ROWS, after - from) }, (_, i) => all.row(from + i));
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = `${rows.length < after - from ? `The first ${rows.length} of ${after - from} rows` : `${rows.length} rows`} of the times that the chart shows; `
    + `the file has all ${all.count}.`;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Save CSV";
  button.addEventListener("click", () => save(`${figure.dataset.stem}.csv`, [...csv(all)], "text/csv"));
  place.replaceChildren(note, button, numbersTable(all.heads, rows));
}

function numbersTable(heads, rows) {
  const box = Object.assign(document.createElement("div"), { className: "wide tall", tabIndex: 0 });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Table: the values of the chart");
  const table = document.createElement("table");
  const cell = (kind, value, scope) => {
    const made = document.createElement(kind);
    if (scope) made.scope = scope;
    if (typeof value === "number") made.className = "numeric";
    made.textContent = value == null || Number.isNaN(value) ? "" : typeof value === "number" ? number.format(value) : value;
    return made;
  };
  const line = (cells) => {
    const row = document.createElement("tr");
    row.append(...cells);
    return row;
  };
  const head = document.createElement("thead"), body = document.createElement("tbody");
  head.append(line(heads.map((text) => cell("th", text, "col"))));
  body.append(...rows.map(([first, ...rest]) => line([cell("th", first, "row"), ...rest.map((value) => cell("td", value))])));
  table.append(head, body);
  box.append(table);
  return box;
}
