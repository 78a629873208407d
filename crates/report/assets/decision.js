// "Why this path?": what the scheduler saw when it bound a packet, as elements. The playground has this file as a module.
//
// `seen`: { backlog, window, state, paths: [{ usable, room, left, srtt, cwnd, inFlight, queued, state }] }, or null; bytes, seconds and packets,
// NaN where there is nothing. It is the view before the round that bound the packet; `left` (room) and `state` are those after it. `names`: { paths, state, pathState }. `path` = where the packet went; `first` = its data was new.

const noView = "No view was recorded: only one path could carry data, or the engine bound the packet without the scheduler, "
  + "or it left later than it was bound, or the sender shows no view.";

function whyThisPath({ seen, first, path, scheduler, names }) {
  const say = (text) => Object.assign(document.createElement("p"), { textContent: text });
  if (!first) return [say("The packet repeats data: that is no choice of a path for new data.")];
  if (!seen) return [say(noView)];
  return [decisionTable(seen, path, names), say(decisionInWords(seen, scheduler, names)), ...fasterInWords(seen, path, names).map(say)];
}

function decisionInWords(seen, scheduler, names) {
  const parts = [`${units.bytes(seen.backlog)} waited to be sent`, `the receive window had room for ${units.bytes(seen.window)}`];
  const own = seen.state.map((value, i) => [names.state[i], value]).filter(([name, value]) => name && !Number.isNaN(value));
  const after = own.map(([name, value]) => ` After it, the scheduler's ${name} was ${units.number(value)}.`);
  return `Before the round in which ${scheduler} chose, ${parts.join("; ")}.${after.join("")}`;
}

// About the usable path with the lowest RTT.
function fasterInWords(seen, path, names) {
  const measured = [...seen.paths.entries()].filter(([, one]) => one.usable && !Number.isNaN(one.srtt));
  if (!measured.length) return [];
  const [fastest, { room, left, srtt }] = measured.reduce((best, one) => (one[1].srtt < best[1].srtt ? one : best));
  const name = names.paths[fastest];
  if (seen.paths[path].srtt <= srtt) return [`${names.paths[path]} has the lowest RTT of the paths that are usable.`];
  if (room <= 0) return [`${name} has the lower RTT, but no room for a packet.`];
  // One round binds many packets: those before this one may have filled the window.
  return [left > 0
    ? `${name} has the lower RTT and had room throughout the round: the scheduler passed it over.`
    : `${name} has the lower RTT. It had room for ${room} when the round began, and for none when the round was over.`];
}

function decisionTable(seen, chosen, names) {
  const own = names.pathState ?? [];
  const heads = ["path", "smoothed RTT", "window", "in flight", "queued", "room", "room afterwards", ...own.map((name) => `${name}, afterwards`)];
  const room = (packets) => (packets > 0 ? `${packets}` : "none");
  const rows = seen.paths.map((one, path) => {
    const state = own.map((_, i) => (Number.isNaN(one.state[i] ?? NaN) ? "" : units.number(one.state[i])));
    const cells = one.usable
      ? [Number.isNaN(one.srtt) ? "not measured" : units.time(one.srtt), `${one.cwnd}`, `${one.inFlight}`, `${one.queued}`, room(one.room), room(one.left)]
      : ["not usable", "", "", "", "", ""];
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
