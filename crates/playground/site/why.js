// "Why this path?": a packet's life in words, and what the scheduler saw when it bound the packet.

import { whyThisPath } from "./decision.js";
import * as units from "./units.js";

const HEAD = 5, OF_PATH = 7;
const KINDS = ["first time", "opportunistic retransmission", "rescue after a timeout", "redundant copy", "TCP retransmission"];

// `own` = the names of the scheduler's own values: { state, pathState }.
export function explain({ history, shapes, id, scheduler, own }) {
  const box = document.createElement("div");
  const path = history.path.at(id);
  const [sent, bound] = [history.sent.at(id), history.bound.at(id)];
  const text = `Packet ${id + 1}, bytes ${history.start.at(id)} to ${history.end.at(id)}, on ${shapes[path].name}: ${KINDS[history.kind.at(id)]}. `
    + `${bound < sent - 1e-9 ? `Bound at ${bound.toFixed(4)} s, sent` : "Sent"} at ${sent.toFixed(4)} s${fate(history, id)}.`;
  const first = history.kind.at(id) === 0;
  const row = first ? history.decisionOf(id) : null;
  const names = { paths: shapes.map((shape) => shape.name), ...own };
  box.append(Object.assign(document.createElement("p"), { textContent: text }),
    ...whyThisPath({ seen: row && seen(row, shapes.length), first, path, scheduler, names }));
  return box;
}

// A row of numbers as the engine gives it; `src/decisions.rs` says what they are.
function seen(row, paths) {
  const [, , backlog, window, ownOfPath] = row;
  const width = OF_PATH + ownOfPath;
  const of = (path) => {
    const [usable, room, left, srtt, cwnd, inFlight, queued, ...state] = row.subarray(HEAD + width * path, HEAD + width * (path + 1));
    return { usable: usable === 1, room, left, srtt, cwnd, inFlight, queued, state };
  };
  return { backlog, window, paths: Array.from({ length: paths }, (_, path) => of(path)), state: [...row.subarray(HEAD + width * paths)] };
}

function fate(history, id) {
  const [arrived, delivered] = [history.arrived.at(id), history.delivered.at(id)];
  if (history.dropped.at(id) > 0) return history.cause.at(id) === 1 ? ", dropped by the queue, which was full" : ", dropped by the queue's management";
  if (!(arrived > 0)) return history.over ? ", lost" : "";
  if (history.superseded.at(id) === 1) return `, arrived after ${units.time(arrived - history.sent.at(id))}: its data was there already`;
  const waited = delivered > 0 ? `, waited ${units.time(delivered - arrived)} for earlier data` : "";
  return `, arrived after ${units.time(arrived - history.sent.at(id))}${delivered - arrived > 1e-6 ? waited : ""}`;
}
