// "Why this path?": what the scheduler saw when it bound a packet, as elements. The playground has this file as a module.
//
// `seen`: { backlog, window, state, paths: [{ usable, room, srtt, cwnd, inFlight, queued, state }] }, or null; bytes, seconds and packets,
// NaN where there is nothing. `names`: { paths, state, pathState }. `path` = where the packet went; `first` = its data was new.

function whyThisPath({ seen, first, path, scheduler, names }) {
  const say = (text) => Object.assign(document.createElement("p"), { textContent: text });
  if (!first) return [say("The packet repeats data: that is no choice of a path for new data.")];
  if (!seen) return [say("No scheduler chose: only one path could carry data.")];
  return [decisionTable(seen, path, names), say(decisionInWords(seen, scheduler, names)), ...fasterInWords(seen, path, names).map(say)];
}

function decisionInWords(seen, scheduler, names) {
  const parts = [`${units.bytes(seen.backlog)} waited to be sent`, `the receive window had room for ${units.bytes(seen.window)}`];
  seen.state.forEach((value, i) => {
    if (names.state[i] && !Number.isNaN(value)) parts.push(`the scheduler's ${names.state[i]} was ${units.number(value)}`);
  });
  return `When ${scheduler} chose, ${parts.join("; ")}.`;
}

// About the usable path with the lowest RTT.
function fasterInWords(seen, path, names) {
  const measured = [...seen.paths.entries()].filter(([, one]) => one.usable && !Number.isNaN(one.srtt));
  if (!measured.length) return [];
  const [fastest, { room }] = measured.reduce((best, one) => (one[1].srtt < best[1].srtt ? one : best));
  const name = names.paths[fastest];
  if (fastest === path) return [`${name} has the lowest RTT of the paths that are usable.`];
  return [room > 0
    ? `${name} has the lower RTT and had room: the scheduler passed it over.`
    : `${name} has the lower RTT, but its window had no room.`];
}

function decisionTable(seen, chosen, names) {
  const own = names.pathState ?? [];
  const heads = ["path", "smoothed RTT", "window", "in flight", "queued", "room", ...own];
  const rows = seen.paths.map((one, path) => {
    const state = own.map((_, i) => (Number.isNaN(one.state[i] ?? NaN) ? "" : units.number(one.state[i])));
    const cells = one.usable
      ? [Number.isNaN(one.srtt) ? "not measured" : units.time(one.srtt), `${one.cwnd}`, `${one.inFlight}`, `${one.queued}`, one.room > 0 ? `${one.room}` : "none"]
      : ["not usable", "", "", "", ""];
    return decisionRow("td", [path === chosen ? `${names.paths[path]} ✓` : names.paths[path], ...cells, ...state], path === chosen);
  });
  const table = document.createElement("table");
  table.append(document.createElement("thead"), document.createElement("tbody"));
  table.tHead.append(decisionRow("th", heads, false));
  table.tBodies[0].append(...rows);
  const scroll = Object.assign(document.createElement("div"), { className: "scroll", tabIndex: 0 });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Table: the paths when the scheduler chose");
  scroll.append(table);
  return scroll;
}

function decisionRow(kind, texts, chosen) {
  const row = document.createElement("tr");
  if (chosen) row.className = "chosen";
  row.append(...texts.map((text, i) => {
    const cell = document.createElement(i === 0 ? "th" : kind);
    if (cell.tagName === "TH") cell.scope = kind === "th" ? "col" : "row";
    cell.textContent = text;
    return cell;
  }));
  return row;
}
