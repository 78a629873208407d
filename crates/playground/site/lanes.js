// What stands around the canvas: names and sliders of the paths, figures below them, the hosts.

import { History } from "./history.js";
import { knobs } from "./knobs.js";
import * as units from "./units.js";

// Seconds for which a decision to wait is shown: a scheduler that still waits decides so at each acknowledgment.
const RECENT = 0.5;

export class Lanes {
  // `on.modelled(path, key)`: whether a model stands there; `on.set(path, values)`, `on.cut(path)`, `on.drop(path)`: what the reader does to a path.
  constructor({ lanes, server, client, serverSays, clientSays }, on) {
    Object.assign(this, { lanes, server, client, serverSays, clientSays, on });
    this.says = [];
    this.heads = [];
    this.dragged = false;
    lanes.addEventListener("pointerdown", (event) => { this.dragged = !!event.target.closest(".knob"); });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { this.dragged = false; });
  }

  // New elements, unless one of them is being dragged or has the focus: then it shows its own value.
  build(shapes) {
    const same = shapes.length === this.heads.length && shapes.every((shape, i) => this.heads[i].dataset.path === shape.name);
    if (same && (this.dragged || this.lanes.contains(document.activeElement))) return;
    this.lanes.replaceChildren();
    this.heads = shapes.map((shape, path) => {
      const head = Object.assign(document.createElement("div"), { className: "lane" });
      head.dataset.path = shape.name;
      head.style.setProperty("--own", `var(--p${path % 6})`);
      const name = Object.assign(document.createElement("span"), { className: "name", textContent: shape.name });
      head.append(name, ...knobs(shape, (set) => this.on.set(shape.name, set), (key) => this.on.modelled(shape.name, key)));
      head.append(button("Cut 1 s", `Cut ${shape.name} for a second from now on`, () => this.on.cut(shape.name)));
      if (shapes.length > 1) head.append(button("✕", `Remove ${shape.name}`, () => this.on.drop(shape.name)));
      return head;
    });
    this.says = shapes.map(() => Object.assign(document.createElement("span"), { className: "says" }));
    this.lanes.append(...this.heads, ...this.says);
  }

  place(layout) {
    const put = (element, x, y) => Object.assign(element.style, { left: `${x}px`, top: `${y}px` });
    layout.paths.forEach(({ top, y, queue }, i) => {
      put(this.heads[i], queue.x, top + (layout.narrow ? 2 : 6));
      this.heads[i].style.maxWidth = `${layout.paths[i].end - queue.x}px`;
      put(this.says[i], queue.x, y + 25);
    });
    put(this.server, layout.server.x, layout.server.y);
    put(this.client, layout.client.x, layout.client.y - (layout.narrow ? 20 : 38));
    this.client.style.display = layout.narrow ? "flex" : "grid";
    this.server.style.display = layout.narrow ? "flex" : "grid";
    for (const host of [this.server, this.client]) host.style.gap = layout.narrow ? ".5rem" : "0";
    this.server.style.maxWidth = layout.narrow ? "none" : "84px";
  }

  show({ history, shapes, time, queued, held }) {
    shapes.forEach((shape, path) => {
      const window = History.latest(history.windows[path], time);
      const parts = window ? [`window ${window.cwnd}`, `in flight ${window.inFlight}`] : ["no data yet"];
      if (window && !Number.isNaN(window.srtt)) parts.push(`RTT ${units.time(window.srtt)}`);
      if (queued[path] > 0) parts.push(`${units.bytes(queued[path])} queued`);
      const state = history.pathState(path, time);
      text(this.says[path], state > 1 ? ["", "", "silent", "closed"][state] : parts.join(" · "));
    });
    const decision = History.latest(history.decisions, time);
    const full = History.latest(history.blocked, time);
    const waits = decision && decision[1] !== 1 && time - decision[0] < RECENT;
    text(this.serverSays, full ? "window full" : waits ? "scheduler waits" : "sends");
    text(this.clientSays, held > 0 ? `${units.bytes(held)} wait for earlier data` : "all in order");
  }
}

function button(text, label, onclick) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "drop", textContent: text, title: label, onclick });
  made.setAttribute("aria-label", label);
  return made;
}

function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}
