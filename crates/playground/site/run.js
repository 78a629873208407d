// One live run: asks the engine for slices of virtual time, and keeps what they bring.

import { History } from "./history.js";

// Virtual seconds per slice: short enough that a change of the scenario stops the run at once.
const SLICE = 0.2;

export class Run {
  #stopped = false;

  constructor(client, described) {
    this.client = client;
    this.described = described;
    this.history = new History(described.network.paths.length);
    this.summary = null;
  }

  // `onSlice()` after each; the summary at the end, or null if stopped.
  async make(request, onSlice) {
    await this.client.ask("begin", { request });
    for (let to = SLICE; !this.#stopped && !this.history.over; to += SLICE) {
      this.history.add(await this.client.ask("advance", { to }));
      onSlice();
    }
    if (this.#stopped) return null;
    this.summary = await this.client.ask("finish");
    onSlice();
    return this.summary;
  }

  stop() { this.#stopped = true; }
}
