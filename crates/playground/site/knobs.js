// The sliders in the picture: a path's rate, delay, loss and queue. Dragged sideways, by touch too, or moved with keys.

import * as units from "./units.js";

const of = (text) => text.replace(/ /g, "");

// What a knob shows, its steps, and the keys that it sets. `shape` = a path as the engine describes it.
const KINDS = [
  { what: "queue", shared: true,
    value: (shape) => shape.queue_packets ?? shape.queue_bytes,
    steps: (shape) => (shape.queue_packets ? units.ladder(2, 5000).filter(Number.isInteger) : units.ladder(3e3, 1e7)),
    show: (value, shape) => (shape.queue_packets ? `${value} packets` : units.bytes(value)),
    set: (value, shape) => ({ queue: shape.queue_packets ? `${value}p` : `${Math.round(value)}B` }) },
  { what: "rate", shared: true, fixed: (shape) => shape.recorded,
    value: (shape) => shape.rate_bps,
    steps: () => units.ladder(1e5, 1e9),
    show: (value) => units.rate(value),
    set: (value) => ({ rate: of(`${value / 1e3}kbit`) }) },
  { what: "delay",
    value: (shape) => shape.delay_s,
    steps: () => units.ladder(1e-3, 0.8),
    show: (value) => units.time(value),
    set: (value) => ({ delay: `${Number((value * 1e6).toPrecision(3))}us` }) },
  { what: "loss",
    value: (shape) => shape.loss,
    steps: () => units.ladder(1e-4, 0.3, [0]),
    show: (value) => units.share(value),
    set: (value) => ({ loss: `${Number((value * 100).toPrecision(3))}%` }) },
];

const PIXELS = 9;

// `modelled(key)`: the scenario has a model there, which no single value may replace.
export function knobs(shape, onSet, modelled) {
  return KINDS.map((kind) => knob(kind, shape, onSet, modelled(kind.what)));
}

function knob(kind, shape, onSet, modelled) {
  const element = document.createElement("span");
  const fixed = modelled || kind.fixed?.(shape) || (kind.shared && shape.link);
  const steps = kind.steps(shape);
  const value = kind.value(shape);
  let at = nearest(steps, value);
  Object.assign(element, { className: "knob", tabIndex: 0 });
  element.dataset.what = kind.what;
  const attributes = { role: "slider", "aria-label": `${kind.what} of ${shape.name}`, "aria-valuemin": 0, "aria-valuemax": steps.length - 1 };
  for (const [name, text] of Object.entries(attributes)) element.setAttribute(name, text);
  if (fixed) element.setAttribute("aria-disabled", "true");
  const show = (shown) => {
    element.setAttribute("aria-valuenow", at);
    element.setAttribute("aria-valuetext", kind.show(shown, shape));
    const what = Object.assign(document.createElement("span"), { className: "what", textContent: kind.what });
    element.replaceChildren(what, kind.show(shown, shape));
  };
  const move = (to) => {
    const next = Math.max(0, Math.min(steps.length - 1, to));
    if (fixed || next === at) return;
    at = next;
    show(steps[at]);
    onSet(kind.set(steps[at], shape));
  };
  show(value);
  keys(element, () => at, move, steps.length);
  drag(element, () => at, move);
  return element;
}

function nearest(steps, value) {
  let best = 0;
  steps.forEach((step, i) => { if (Math.abs(step - value) < Math.abs(steps[best] - value)) best = i; });
  return best;
}

function keys(element, at, move, count) {
  const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5, Home: -count, End: count };
  element.addEventListener("keydown", (event) => {
    if (!(event.key in by)) return;
    event.preventDefault();
    move(at() + by[event.key]);
  });
}

function drag(element, at, move) {
  let from = null;
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    element.classList.add("dragged");
    from = { x: event.clientX, at: at() };
  });
  element.addEventListener("pointermove", (event) => { if (from) move(from.at + Math.round((event.clientX - from.x) / PIXELS)); });
  for (const end of ["pointerup", "pointercancel"]) {
    element.addEventListener(end, () => { from = null; element.classList.remove("dragged"); });
  }
}
