// Figures and events of a run up to the shown time.

import { History, NOTE } from "./history.js";
import * as units from "./units.js";

// Time over which the shown goodput is a mean, in seconds.
const MEAN = 0.5;
const SHOWN = 60;

const SAYS = {
  [NOTE.timeout]: (name, a) => `${name}: retransmission timeout${a > 1 ? `, ${a} in a row` : ""}`,
  [NOTE.recovery]: (name, a) => (a === 1 ? `${name}: fast recovery` : a === 2 ? `${name}: recovery from a timeout` : `${name}: recovered`),
  [NOTE.path]: (name, a) => `${name}: ${["", "established", "silent: it gets no new data", "closed"][a]}`,
  [NOTE.penalised]: (name) => `${name}: penalised, its window is halved`,
};

export class SoFar {
  constructor({ figures, log }) {
    this.figures = figures;
    this.log = log;
    this.listed = -1;
    this.cells = {};
  }

  reset() {
    this.listed = -1;
    this.log.replaceChildren();
    this.figures.replaceChildren();
    this.cells = {};
  }

  show({ history, shapes, time, held, value }) {
    const from = Math.max(0, time - MEAN);
    const goodput = time > from ? 8 * (history.bytesBy(time) - history.bytesBy(from)) / (time - from) : 0;
    this.#put("goodput", units.rate(goodput));
    this.#put("delivered", units.bytes(history.bytesBy(time)));
    this.#put("out of order", units.bytes(held));
    this.#put("receive window", History.latest(history.blocked, time) ? "full" : "has room");
    const published = History.latest(history.value, time);
    if (value && published !== null) this.#put(`scheduler's ${value}`, units.number(published));
    this.#events(history, shapes, time);
  }

  #put(name, text) {
    if (!this.cells[name]) {
      const box = document.createElement("div");
      this.cells[name] = document.createElement("dd");
      box.append(Object.assign(document.createElement("dt"), { textContent: name }), this.cells[name]);
      this.figures.append(box);
    }
    if (this.cells[name].textContent !== text) this.cells[name].textContent = text;
  }

  #events(history, shapes, time) {
    const count = history.events.findLastIndex((event) => event.time <= time) + 1;
    if (count === this.listed) return;
    this.listed = count;
    const items = history.events.slice(Math.max(0, count - SHOWN), count).reverse().map((event) => {
      const item = document.createElement("li");
      const at = Object.assign(document.createElement("time"), { textContent: `${event.time.toFixed(3)} s` });
      item.append(at, ` ${SAYS[event.what](shapes[event.path].name, event.a)}`);
      return item;
    });
    this.log.replaceChildren(...items);
  }
}
