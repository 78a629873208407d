// "Why this path?": what the scheduler saw when it bound a packet.

import { History } from "./history.js";
import * as units from "./units.js";

const HEAD = 4, OF_PATH = 6;
const KINDS = ["first time", "opportunistic retransmission", "rescue after a timeout", "redundant copy", "TCP retransmission"];

const time = (s) => (Number.isNaN(s) ? "not measured" : units.time(s));

export function explain({ history, shapes, id, scheduler, value }) {
  const box = document.createElement("div");
  const path = history.path.at(id);
  const say = (text) => { box.append(Object.assign(document.createElement("p"), { textContent: text })); };
  const [sent, bound] = [history.sent.at(id), history.bound.at(id)];
  say(`Packet ${id + 1}, bytes ${history.start.at(id)} to ${history.end.at(id)}, on ${shapes[path].name}: ${KINDS[history.kind.at(id)]}. `
    + `${bound < sent - 1e-9 ? `Bound at ${bound.toFixed(4)} s, sent` : "Sent"} at ${sent.toFixed(4)} s${fate(history, id)}.`);
  const seen = history.kind.at(id) === 0 ? history.decisionOf(id) : null;
  if (!seen) {
    say(history.kind.at(id) === 0
      ? "No scheduler chose: only one path could carry data."
      : "The packet repeats data: that is no choice of a path for new data.");
    return box;
  }
  box.append(table(seen, shapes, path));
  const published = value && History.latest(history.value, bound);
  const also = [`${units.bytes(seen[2])} waited to be sent`, `the receive window had room for ${units.bytes(seen[3])}`];
  if (published !== null && published !== undefined && published !== false) also.push(`the scheduler's ${value} was ${units.number(published)}`);
  say(`When ${scheduler} chose, ${also.join("; ")}.`);
  const faster = best(seen, shapes);
  if (faster !== null && faster !== path) {
    const room = seen[HEAD + OF_PATH * faster + 1];
    say(room > 0
      ? `${shapes[faster].name} has the lower RTT and had room: the scheduler passed it over.`
      : `${shapes[faster].name} has the lower RTT, but its window had no room.`);
  } else if (faster === path) say(`${shapes[path].name} has the lowest RTT of the paths that are usable.`);
  return box;
}

function fate(history, id) {
  const [arrived, delivered] = [history.arrived.at(id), history.delivered.at(id)];
  if (history.dropped.at(id) > 0) return history.cause.at(id) === 1 ? ", dropped by the queue, which was full" : ", dropped by the queue's management";
  if (!(arrived > 0)) return history.over ? ", lost" : "";
  if (history.superseded.at(id) === 1) return `, arrived after ${units.time(arrived - history.sent.at(id))}: its data was there already`;
  const waited = delivered > 0 ? `, waited ${units.time(delivered - arrived)} for earlier data` : "";
  return `, arrived after ${units.time(arrived - history.sent.at(id))}${delivered - arrived > 1e-6 ? waited : ""}`;
}

// The usable path with the lowest RTT.
function best(seen, shapes) {
  let found = null;
  shapes.forEach((_, path) => {
    const at = HEAD + OF_PATH * path;
    const [usable, srtt] = [seen[at], seen[at + 2]];
    if (usable === 1 && !Number.isNaN(srtt) && (found === null || srtt < seen[HEAD + OF_PATH * found + 2])) found = path;
  });
  return found;
}

function table(seen, shapes, chosen) {
  const rows = shapes.map((shape, path) => {
    const [usable, room, srtt, cwnd, inFlight, queued] = seen.subarray(HEAD + OF_PATH * path, HEAD + OF_PATH * (path + 1));
    const cells = usable === 1
      ? [time(srtt), `${cwnd}`, `${inFlight}`, `${queued}`, room > 0 ? `${room}` : "none"]
      : ["not usable", "", "", "", ""];
    return row("td", [path === chosen ? `${shape.name} ✓` : shape.name, ...cells], path === chosen);
  });
  const head = document.createElement("thead");
  head.append(row("th", ["path", "smoothed RTT", "window", "in flight", "queued", "room"], false));
  const body = document.createElement("tbody");
  body.append(...rows);
  const made = document.createElement("table");
  made.append(head, body);
  const scroll = Object.assign(document.createElement("div"), { className: "scroll" });
  scroll.append(made);
  return scroll;
}

function row(kind, texts, chosen) {
  const made = document.createElement("tr");
  if (chosen) made.className = "chosen";
  made.append(...texts.map((text, i) => {
    const cell = document.createElement(i === 0 ? "th" : kind);
    if (i === 0) cell.scope = kind === "th" ? "col" : "row";
    cell.textContent = text;
    return cell;
  }));
  return made;
}
