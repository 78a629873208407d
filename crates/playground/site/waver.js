// Fields for what wavers: per path its jitter and reordering, what lies under the link, policer, burst, queue, MTU, IP version, and the times at which it comes and
// goes, in the words of a scenario. The engine reads them, and says what is wrong.

import { written } from "./blocks.js";

// Each key with an example of its value.
const KEYS = [
  ["jitter", "5ms"],
  ["reorder", '{ probability = 0.01, by = "3ms" }'],
  ["arq", '{ loss = "10%", attempts = 4, delay = "8ms" }'],
  ["aggregate", "4ms"],
  ["wake", '{ idle = "10s", delay = "260ms" }'],
  ["slots", '{ every = "15s", step = "8ms" }'],
  ["middlebox", '[{ kind = "strip", options = "mp-join" }]'],
  ["police", '{ rate = "20mbit", burst = "32KB" }'],
  ["burst", "64KB"],
  ["queue", '{ kind = "fq_codel" }'],
  ["mtu", "1280"],
  ["mtu_signal", "icmp"],
  ["ip", "6"],
  ["start", "2s"],
  ["stop", "8s"],
];

export class Waver {
  // `set(path, key, value)`: the reader's value; null for an empty field.
  constructor(table, set) {
    this.table = table;
    this.set = set;
  }

  // A row per key, a column per path, with what the scenario has.
  show({ toml, network }) {
    const names = network.paths.map((path) => path.name);
    const head = row([cell("th", ""), ...names.map((name) => cell("th", name, { scope: "col" }))]);
    const body = KEYS.map(([key, example]) => {
      const fields = names.map((name) => cell("td", field(name, key, example, written(toml, name, key), this.set)));
      return row([cell("th", key, { scope: "row" }), ...fields]);
    });
    // What the reader is about to write stays.
    const focused = document.activeElement?.dataset.key;
    this.table.replaceChildren(head, ...body);
    if (focused) this.table.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }
}

function field(name, key, example, value, set) {
  const input = document.createElement("input");
  Object.assign(input, { value: value ?? "", placeholder: example, spellcheck: false, autocomplete: "off" });
  input.dataset.key = `${name}.${key}`;
  input.setAttribute("aria-label", `${key} of ${name}`);
  input.addEventListener("change", () => set(name, key, input.value.trim() || null));
  return input;
}

const row = (cells) => element("tr", cells);
const cell = (tag, content, attributes = {}) => Object.assign(element(tag, [content]), attributes);

function element(tag, children) {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
}
