// Packets from sender to application: the values, and the strokes that show them.

const kinds = {
  first: "first", opportunistic: "again, opportunistic", rescue: "again, rescue", copy: "redundant copy",
  retransmission: "TCP retransmission",
};

// The file's columns, each value against one that it is near, as bytes and as seconds since the run began; NaN where a packet did
// not arrive or was not delivered. `end` = when nothing more became of it.
function readPackets(chart) {
  const length = chart.sent.length;
  const packets = { length, data: new Float64Array(length), size: new Float64Array(length), path: chart.path, why: new Array(length).fill("first") };
  for (const key of ["bound", "sent", "arrived", "ordered", "delivered", "end"]) packets[key] = new Float64Array(length);
  const sizes = new Map(chart.sizes);
  for (const [i, kind] of chart.again) packets.why[i] = kind;
  let [sent, data, size] = [0, 0, 0];
  for (let i = 0; i < length; i++) {
    sent += chart.sent[i];
    size = sizes.get(i) ?? size;
    packets.data[i] = data + chart.data[i];
    packets.size[i] = size;
    data = packets.data[i] + size;
    const at = (value) => (value == null ? NaN : (sent + value) / 1e6);
    const after = (value) => (value == null ? NaN : (sent + chart.arrived[i] + value) / 1e6);
    packets.sent[i] = sent / 1e6;
    packets.bound[i] = at(chart.bound[i]);
    packets.arrived[i] = at(chart.arrived[i]);
    packets.ordered[i] = after(chart.ordered[i]);
    packets.delivered[i] = after(chart.delivered[i]);
    packets.end[i] = Math.max(packets.sent[i], packets.arrived[i] || 0, packets.delivered[i] || 0);
  }
  packets.fate = new Array(length);
  for (const fate of ["waiting", "on_the_way", "lost"]) for (const i of chart[fate]) packets.fate[i] = fate;
  for (const i of [...chart.waiting, ...chart.on_the_way]) packets.end[i] = chart.duration_s;
  packets.decisions = chart.decisions ? readDecisions(chart.decisions) : null;
  // What its subflow never passed on waits there until the end.
  for (let i = 0; i < length; i++) if (Number.isNaN(packets.ordered[i])) packets.ordered[i] = packets.end[i];
  return packets;
}

// Views of the scheduler, from columns of differences; `seen(i)` = at the decision that bound packet i, or null.
function readDecisions(columns) {
  const sums = (list) => { let sum = 0; return list.map((step) => (sum += step)); };
  const all = (of) => Object.fromEntries(["usable", "room", "left", "srtt", "cwnd", "in_flight", "queued"].map((name) => [name, sums(of[name])]));
  const [backlog, window, paths] = [sums(columns.backlog), sums(columns.window), columns.paths.map(all)];
  let last = 0;
  const places = columns.of.map((step) => (step == null ? -1 : (last += step)));
  const own = (lists, at) => lists.map((list) => list[at] ?? NaN);
  const pathAt = (at) => (one, path) => ({ usable: one.usable[at] === 1, room: one.room[at], left: one.left[at], srtt: one.srtt[at] < 0 ? NaN : one.srtt[at] / 1e6,
    cwnd: one.cwnd[at], inFlight: one.in_flight[at], queued: one.queued[at], state: own(columns.paths[path].state, at) });
  const seenAt = (at) => ({ backlog: backlog[at], window: window[at], state: own(columns.state, at), paths: paths.map(pathAt(at)) });
  return { state: columns.state_names, pathState: columns.path_state_names, seen: (i) => (places[i] < 0 ? null : seenAt(places[i])) };
}

// A packet that has arrived waits behind gaps of its subflow, then in the connection's out-of-order queue (OFO).
const waits = (packets, i) => packets.delivered[i] > packets.arrived[i] || packets.fate[i] === "waiting";

// Bytes that wait at the receiver for earlier data from the time `since` (arrived, ordered) on, as [time, bytes] at every change.
function waitingBytes(packets, since) {
  const changes = [];
  for (let i = 0; i < packets.length; i++) {
    if (waits(packets, i) && since[i] < packets.end[i]) changes.push([since[i], packets.size[i]], [packets.end[i], -packets.size[i]]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  let bytes = 0;
  return changes.map(([t, change]) => [t, bytes += change]);
}

// What is drawn of a packet at height y. `pen` has moveTo and lineTo: a canvas, or d3.path for SVG; `r` = half a mark's size.
const strokes = {
  bound(pen, packets, i, x, y) {
    if (packets.bound[i] < packets.sent[i]) { pen.moveTo(x(packets.bound[i]), y); pen.lineTo(x(packets.sent[i]), y); }
  },
  sent(pen, packets, i, x, y, r) {
    const at = x(packets.sent[i]);
    pen.moveTo(at, y - r); pen.lineTo(at, y + r);
  },
  flight(pen, packets, i, x, y) {
    const until = packets.fate[i] === "on_the_way" ? packets.end[i] : packets.arrived[i];
    if (until >= 0) { pen.moveTo(x(packets.sent[i]), y); pen.lineTo(x(until), y); }
  },
  subflow(pen, packets, i, x, y) {
    if (waits(packets, i) && packets.ordered[i] > packets.arrived[i]) { pen.moveTo(x(packets.arrived[i]), y); pen.lineTo(x(packets.ordered[i]), y); }
  },
  queue(pen, packets, i, x, y) {
    if (waits(packets, i) && packets.end[i] > packets.ordered[i]) { pen.moveTo(x(packets.ordered[i]), y); pen.lineTo(x(packets.end[i]), y); }
  },
  lost(pen, packets, i, x, y, r) {
    if (packets.fate[i] !== "lost") return;
    const at = x(packets.sent[i]);
    pen.moveTo(at - r, y - r); pen.lineTo(at + r, y + r);
    pen.moveTo(at - r, y + r); pen.lineTo(at + r, y - r);
  },
  again(pen, packets, i, x, y, r) {
    if (packets.why[i] === "first") return;
    const at = x(packets.sent[i]);
    pen.moveTo(at, y - 1.2 * r); pen.lineTo(at + 1.1 * r, y + 0.9 * r); pen.lineTo(at - 1.1 * r, y + 0.9 * r); pen.lineTo(at, y - 1.2 * r);
  },
};

// For each stroke what it draws of each path, so that no other packet is looked at again: `of` = the packets, in the order of sending;
// `from`, `to` = seconds between which it draws; `latest` = the greatest `end` of packets up to here.
function drawnBy(packets, paths) {
  let low = Infinity, high = -Infinity;
  const probe = { moveTo(x) { low = Math.min(low, x); high = Math.max(high, x); }, lineTo(x) { probe.moveTo(x); } };
  const same = (t) => t;
  return new Map(Object.values(strokes).map((draw) => {
    const lists = Array.from({ length: paths }, () => ({ of: [], from: [], to: [], latest: [] }));
    for (let i = 0; i < packets.length; i++) {
      [low, high] = [Infinity, -Infinity];
      draw(probe, packets, i, same, 0, 0);
      if (low > high) continue;
      const { of, from, to, latest } = lists[packets.path[i]];
      latest.push(Math.max(packets.end[i], latest.at(-1) ?? 0));
      of.push(i); from.push(low); to.push(high);
    }
    return [draw, lists];
  }));
}

// The strokes, with how each looks; `along` = it is lines along an axis; `row` = pixels that a packet is high. Marks grow with the room
// that there is for them. Where packets share a row of pixels, bars are pale: they cover each other.
// Sendings are upright ticks over the packet's bytes, as in a Stevens graph: together the line of the path's sequence.
function layers(row) {
  // A canvas adds up lines that are thinner than a pixel: those of packets would hide that they are pale.
  const bar = Math.max(2, Math.min(9, row * 0.7));
  const mark = Math.max(1.5, Math.min(4.5, 1 + row));
  return [
    [
      { draw: strokes.bound, along: true, width: row < 1 ? 2 : 1, opacity: row < 1 ? 0.15 : 0.4, dash: [1, 3] },
      { draw: strokes.flight, along: true, width: row < 1 ? 2 : Math.max(0.8, bar / 4), opacity: row < 1 ? 0.2 : 0.55, dash: [] },
      { draw: strokes.subflow, along: true, width: row < 1 ? 2 : Math.max(1, bar * 0.55), opacity: row < 1 ? 0.45 : 0.85, dash: [] },
      { draw: strokes.queue, along: true, width: bar, opacity: 0.9, dash: [] },
      { draw: strokes.sent, along: true, width: 1.4, opacity: 1, dash: [], mark: Math.max(0.8, row / 2) },
    ],
    [
      { draw: strokes.again, width: Math.min(1.4, mark / 2), opacity: 1, dash: [], ink: true, mark },
      { draw: strokes.lost, width: Math.min(1.8, mark / 2), opacity: 1, dash: [], ink: true, mark },
    ],
  ];
}

// Calls `stroke(layer, path)` in the order in which they cover each other: the marks of all paths above their lines.
function eachStroke(row, paths, stroke) {
  for (const list of layers(row)) for (const [path] of paths.entries()) for (const layer of list) stroke(layer, path);
}

const bytesInWords = (packets, i) => `bytes ${packets.data[i]} to ${packets.data[i] + packets.size[i]}`;
const sendingInWords = (packets, i) => `${bytesInWords(packets, i)}, bound ${packets.bound[i].toFixed(4)} s`;

function packetInWords(packets, paths, i) {
  const time = (seconds) => `${seconds.toFixed(4)} s`;
  const parts = [bytesInWords(packets, i), paths[packets.path[i]], kinds[packets.why[i]] ?? packets.why[i]];
  if (packets.bound[i] < packets.sent[i]) parts.push(`bound ${time(packets.bound[i])}`);
  parts.push(`sent ${time(packets.sent[i])}`);
  const span = (from, to) => `${number.format((to - from) * 1e3)} ms`;
  if (packets.arrived[i] >= 0) parts.push(`arrived ${time(packets.arrived[i])} (${span(packets.sent[i], packets.arrived[i])})`);
  if (packets.delivered[i] >= 0) parts.push(`delivered ${time(packets.delivered[i])}: waited ${span(packets.arrived[i], packets.ordered[i])} in its subflow, ${span(packets.ordered[i], packets.delivered[i])} in the OFO queue`);
  else parts.push({ lost: "lost", on_the_way: "on its way at the end", waiting: "waited for earlier data at the end" }[packets.fate[i]]
    ?? "after other packets with the same data");
  return parts.join(" · ");
}

// Waited at the receiver, in seconds; 0 for what did not.
const waited = (packets, i) => (packets.delivered[i] > packets.arrived[i] ? packets.delivered[i] - packets.arrived[i] : 0);

// The packet for which packet i waited: of those with earlier data, the last to arrive until i was delivered; -1 for none.
function blocker(packets, i) {
  if (waited(packets, i) === 0) return -1;
  let last = -1;
  for (let j = 0; j < packets.length; j++) {
    const fills = packets.data[j] < packets.data[i] && packets.arrived[j] > packets.arrived[i] && packets.arrived[j] <= packets.delivered[i] + 1e-6;
    if (fills && (last < 0 || packets.arrived[j] > packets.arrived[last])) last = j;
  }
  return last;
}

// Places to jump to: [name, places in the order of sending]. Those that do not occur are left out.
function sights(packets) {
  const all = [...Array(packets.length).keys()];
  const longest = all.reduce((best, i) => (waited(packets, i) > waited(packets, best) ? i : best), 0);
  const list = [
    ["Longest wait", waited(packets, longest) > 0 ? [longest] : []],
    ["Loss", all.filter((i) => packets.fate[i] === "lost")],
    ["Retransmission", all.filter((i) => packets.why[i] === "retransmission")],
    ["Copy on another path", all.filter((i) => ["opportunistic", "rescue", "copy"].includes(packets.why[i]))],
  ];
  return list.filter(([, places]) => places.length);
}
