// The form above the picture: presets, plug-ins, traffic, buffer, seed.

import { replaceTraffic } from "./blocks.js";

const TRAFFIC = [["bulk", "Download"], ["frames", "Video frames"], ["call", "Video call"], ["video", "Video on demand"], ["request", "Requests"], ["web", "Web page"]];
const BUFFERS = ["64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB"];

// What a change of the traffic sets: the keys of one kind are refused with another.
const KEYS = {
  bulk: { kind: "bulk" },
  frames: { kind: "frames", size: "40KB", interval: "33ms" },
  call: { kind: "call", video: "1mbit" },
  video: { kind: "video", abr: "bola", segment: "1s", buffer: "5s" },
  request: { kind: "request", size: "200KB", interval: "100ms" },
  web: { kind: "web", size: "2MiB", objects: "40" },
};

export class Choices {
  constructor(parts, model) {
    Object.assign(this, { parts, model });
    const { catalogue } = model;
    parts.preset.replaceChildren(...catalogue.presets.map((one) => new Option(one.title, one.name)));
    const scheduler = (one) => [one.name, ...(one.suffixes ? [`${one.name}+pr`, `${one.name}+or`] : [])];
    options(parts.scheduler, catalogue.schedulers.flatMap(scheduler));
    options(parts.congestion, catalogue.congestion.map((one) => one.name));
    parts.traffic.replaceChildren(...TRAFFIC.map(([value, text]) => new Option(text, value)));
    options(parts.buffer, BUFFERS);
    parts.preset.onchange = () => model.usePreset(parts.preset.value);
    for (const key of ["scheduler", "congestion"]) parts[key].onchange = () => model.put(`connection.${key}`, parts[key].value);
    parts.buffer.onchange = () => model.put("connection.recv_buffer", parts.buffer.value);
    parts.seed.onchange = () => model.put("seed", parts.seed.value || "1");
    parts.traffic.onchange = () => this.#traffic(parts.traffic.value);
    parts.form.onsubmit = (event) => event.preventDefault();
  }

  // The scenario's text gets another [[traffic]], for one kind's keys are refused by another.
  #traffic(kind) {
    const lines = Object.entries(KEYS[kind]).map(([key, value]) => `${key} = ${/^\d+$/.test(value) ? value : JSON.stringify(value)}`);
    this.model.useText(replaceTraffic(this.described.toml, lines));
  }

  show(described) {
    const { parts, model } = this;
    this.described = described;
    const preset = model.preset ?? "";
    if (!model.preset && parts.preset.options[0].value !== "") parts.preset.prepend(new Option("Your own", ""));
    if (model.preset && parts.preset.options[0].value === "") parts.preset.remove(0);
    parts.preset.value = preset;
    choose(parts.scheduler, described.scheduler);
    choose(parts.congestion, described.congestion);
    parts.traffic.value = described.traffic;
    choose(parts.buffer, /^recv_buffer = "(.*)"$/m.exec(described.toml)?.[1] ?? `${described.recv_buffer}B`);
    parts.seed.value = described.seed;
  }
}

function options(select, names) {
  select.replaceChildren(...names.map((name) => new Option(name, name)));
}

// A value that is not in the list joins it.
function choose(select, value) {
  if (![...select.options].some((option) => option.value === value)) select.append(new Option(value, value));
  select.value = value;
}
