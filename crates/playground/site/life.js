// The phases of a packet: in the queue, in the pipe, at the receiver.

// When it left the queue: from its arrival, less the scenario's first delay, also where a timeline changes it; of a packet that did not arrive, from what waited before it.
export function departure(history, id, shape) {
  const sent = history.sent.at(id);
  const arrived = history.arrived.at(id);
  if (arrived > 0) return Math.max(sent, arrived - shape.delay_s);
  return sent + (8 * (history.waiting.at(id) + 1500)) / Math.max(1, shape.rate_bps);
}

// `{ phase, part }` at a time; the part of the way through the pipe. Null before it is sent and after it is delivered.
export function phaseOf(history, id, shape, time, linger) {
  const dropped = history.dropped.at(id);
  if (dropped > 0) return time < dropped + linger ? { phase: "dropped", part: (time - dropped) / linger } : null;
  const left = departure(history, id, shape);
  if (time < left) return { phase: "queue", part: 0 };
  const arrived = history.arrived.at(id);
  const there = arrived > 0 ? arrived : left + shape.delay_s;
  if (time < there) return { phase: "pipe", part: (time - left) / Math.max(1e-9, there - left) };
  if (!(arrived > 0)) return time < there + linger ? { phase: "lost", part: (time - there) / linger } : null;
  // Data that another packet brought before waits for nothing.
  if (history.superseded.at(id) === 1) return null;
  const delivered = history.delivered.at(id);
  if (delivered > 0 && time >= delivered) return null;
  const ordered = history.ordered.at(id);
  return { phase: ordered > 0 && time >= ordered ? "ofo" : "subflow", part: 0 };
}
