// The scenario that the page shows: a text and what was set over it. It stands in the address, so that a link is a scenario.

// Packets that a run follows: of more, the first are shown.
export const PACKETS = 150000;

export class Model extends EventTarget {
  constructor(catalogue) {
    super();
    this.catalogue = catalogue;
    this.preset = null;
    this.text = "";
    this.set = new Map();
    this.code = null;
    // The scenario is another one, and no change of the one before.
    this.fresh = true;
    this.accepted = null;
  }

  // The engine took the scenario.
  accept() {
    const { preset, text, set } = this;
    this.accepted = { preset, text, set: new Map(set) };
  }

  // The engine refused it: the next change is one of the scenario before.
  refuse() {
    if (this.accepted) Object.assign(this, { ...this.accepted, set: new Map(this.accepted.set), fresh: false });
  }

  // With `set` over what it sets itself.
  usePreset(name, set = {}) {
    const preset = this.catalogue.presets.find((one) => one.name === name) ?? this.catalogue.presets[0];
    this.preset = preset.name;
    this.text = preset.text;
    this.set = new Map([...preset.set.map(pair), ...Object.entries(set)]);
    this.fresh = true;
    this.changed();
  }

  useText(text) {
    this.preset = null;
    this.text = text;
    this.set.clear();
    this.fresh = true;
    this.changed();
  }

  put(key, value) {
    this.set.delete(key);
    if (value !== null) this.set.set(key, value);
    this.changed();
  }

  changed() { this.dispatchEvent(new Event("change")); }

  request(more = {}) {
    const set = [...this.set].map(([key, value]) => `${key}=${value}`);
    return { name: "scenario.toml", text: this.text, set, packets: PACKETS, ...more };
  }

  // `#preset=wifi-lte&set=path.wifi.loss%3D1%25`, or `#toml=…` with the text compressed; `&code=…` has a scheduler.
  async fragment() {
    const parts = new URLSearchParams();
    if (this.preset) parts.set("preset", this.preset);
    else parts.set("toml", await packed(this.text));
    const own = this.catalogue.presets.find((one) => one.name === this.preset)?.set ?? [];
    for (const [key, value] of this.set) {
      const pair = `${key}=${value}`;
      if (!own.includes(pair)) parts.append("set", pair);
    }
    if (this.code) parts.set("code", await packed(this.code));
    return `#${parts}`;
  }

  // Whether the address had a scenario. Code in it is only shown: a link runs nothing.
  async read(fragment) {
    const parts = new URLSearchParams(fragment.replace(/^#/, ""));
    const named = parts.get("preset");
    const preset = this.catalogue.presets.find((one) => one.name === named);
    if (named !== null && !preset) throw new Error(`no scenario is named ${named}`);
    if (!preset && !parts.has("toml")) return false;
    const text = preset ? preset.text : await unpacked(parts.get("toml"));
    const code = parts.has("code") ? await unpacked(parts.get("code")) : null;
    Object.assign(this, { preset: preset?.name ?? null, text, code, fresh: true });
    this.set = new Map([...(preset?.set ?? []), ...parts.getAll("set")].map(pair));
    return true;
  }
}

const pair = (text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)];

// Deflate and base64url: what an address may hold.
async function packed(whole) {
  const piped = new Blob([whole]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(piped).arrayBuffer());
  // Not as arguments of one call: there may be more bytes than a call takes.
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// An address is anybody's: what it unpacks to is no larger than a scenario file may be.
const LARGEST = 1 << 20;

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const parts = new TextDecoder();
  let whole = "";
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    whole += parts.decode(read.value, { stream: true });
    if (whole.length > LARGEST) throw new Error("the address holds more than 1 MiB");
  }
  return whole + parts.decode();
}
