// The page: a change of the scenario stops the run, and begins another.

import { addPath, differs, dropPath, isModel, outagesWith } from "./blocks.js";
import { Choices } from "./choices.js";
import { CANNOT_START, engine } from "./client.js";
import { Lanes } from "./lanes.js";
import { Model, PACKETS } from "./model.js";
import { EXAMPLE, ownClient } from "./own.js";
import { Picture } from "./picture.js";
import { Player } from "./player.js";
import { Run } from "./run.js";
import { signs } from "./signs.js";
import { SoFar } from "./sofar.js";
import { Study } from "./study.js";
import { chosen as chosenTheme, followTheme } from "./theme.js";
import { tours } from "./tours.js";
import { Waver } from "./waver.js";
import { explain } from "./why.js";

// Seconds of a run that has not been shown yet: without motion its beginning would be an empty picture.
const BEGIN = { playing: 0, calm: 0.5 };

// The keys of a path that a slider sets for data alone, from sender to receiver.
const OF_DATA = new Set(["rate", "loss", "queue"]);

const find = (id) => document.getElementById(id);
const pick = (names) => Object.fromEntries(Object.entries(names).map(([name, id]) => [name, find(id)]));

class Page {
  run = null;
  chosen = null;
  own = null;
  #turn = 0;
  #target = null;
  // What is wrong with the address.
  #broken = null;
  // The text of the scenario was edited, and not used yet.
  #typed = false;

  constructor(client, catalogue) {
    this.client = client;
    this.model = new Model(catalogue);
    this.picture = new Picture(find("picture"));
    this.lanes = new Lanes(
      pick({ lanes: "lanes", server: "server", client: "client", serverSays: "server-says", clientSays: "client-says" }),
      {
        modelled: (path, key) => isModel(this.described.toml, path, key),
        set: (path, values) => { for (const [key, value] of Object.entries(values)) this.#put(path, key, value); },
        cut: (path) => this.#cut(path),
        drop: (path) => this.model.useText(dropPath(this.described.toml, path)),
      });
    this.waver = new Waver(find("waver-values"), (path, key, value) => this.#setWhole(path, key, value));
    this.choices = new Choices(
      pick({ form: "choices", preset: "preset", scheduler: "scheduler", congestion: "congestion", traffic: "traffic", buffer: "buffer", seed: "seed" }), this.model);
    this.soFar = new SoFar(pick({ figures: "figures", log: "log" }));
    this.player = new Player(pick({ play: "play", step: "step", pace: "pace", time: "time", clock: "clock" }), () => this.draw());
    this.study = new Study(
      pick({ form: "study-form", schedulers: "study-schedulers", seeds: "study-seeds", run: "study-run", stop: "study-stop", progress: "study-progress",
        problem: "study-problem", old: "study-old", report: "report", save: "study-save" }),
      { theme: chosenTheme, own: (onProgress) => this.own && ownClient(this.own, this.client.module, { onProgress, kind: "study" }),
        request: (more, seeds) => {
          const request = this.model.request({ ...more, own: !!this.own });
          return { ...request, set: [...request.set.filter((pair) => !pair.startsWith("repeat=")), `repeat=${seeds}`] };
        } });
    find("version").textContent = `anabranch ${catalogue.version}.`;
    this.#listen();
  }

  #listen() {
    this.model.addEventListener("change", () => this.refresh());
    find("picture").addEventListener("click", (event) => {
      this.choose(this.picture.at(event.offsetX, event.offsetY));
    });
    find("step").onclick = () => this.step();
    // With less motion they are switched on by a click.
    find("acks").checked = !this.player.calm;
    find("acks").onchange = () => this.draw();
    find("share").onclick = async () => {
      const words = find("share");
      try { await navigator.clipboard.writeText(location.href); words.textContent = "Copied"; } catch { words.textContent = "The address is the link"; }
      setTimeout(() => { words.textContent = "Copy link"; }, 2000);
    };
    find("add-path").onclick = () => {
      const names = this.described.network.paths.map((path) => path.name);
      this.model.useText(addPath(this.described.toml, names));
    };
    find("toml").oninput = () => this.#typing(true);
    find("toml-use").onclick = () => this.model.useText(find("toml").value);
    find("toml-back").onclick = () => {
      find("toml").value = this.described?.toml ?? this.model.text;
      this.#typing(false);
    };
    find("toml-save").onclick = () => save("scenario.toml", find("toml").value);
    find("own-run").onclick = () => this.useOwn(find("own-code").value);
    find("own-end").onclick = () => this.useOwn(null);
    document.addEventListener("themechange", () => this.draw());
    addEventListener("hashchange", () => { if (location.hash !== this.fragment) this.#follow(); });
    new ResizeObserver(() => this.place()).observe(find("stage"));
    signs(find("key"));
    tours({ list: find("tours"), box: find("tour") }, (step) => this.go(step));
  }

  // A key of a path, for data alone or for both directions; what is set for the other direction stays.
  #put(path, key, value) {
    const whole = `path.${path}.${key}`;
    const { set } = this.model;
    const [own, other] = this.described.network.direction === "up" ? ["up", "down"] : ["down", "up"];
    if (OF_DATA.has(key) || differs(this.described.toml, path, key)) {
      if (set.has(whole)) set.set(`${whole}.${other}`, set.get(whole));
      set.delete(whole);
      this.model.put(`${whole}.${own}`, value);
    } else {
      this.#setWhole(path, key, value);
    }
  }

  // A key of a path for both directions; null for what the scenario says.
  #setWhole(path, key, value) {
    const whole = `path.${path}.${key}`;
    for (const end of [".down", ".up"]) this.model.set.delete(whole + end);
    this.model.put(whole, value);
  }

  // From the shown time on.
  #cut(path) {
    const { time } = this.player;
    this.#target = { at: Math.max(0, time - 0.05) };
    const [down, up] = outagesWith(this.described.toml, path, Math.max(time, 0.001), time + 1);
    this.model.set.delete(`path.${path}.outage`);
    this.model.set.set(`path.${path}.outage.down`, down);
    this.model.put(`path.${path}.outage.up`, up);
  }

  async begin() {
    find("own-code").value = EXAMPLE;
    await this.#follow();
    if (!this.model.text) this.model.usePreset();
  }

  // The scenario of the address, if it has one; its code is shown, and not run.
  async #follow() {
    try {
      if (!await this.model.read(location.hash)) return;
      this.#useCode(this.model.code, false);
      this.#begin(new URLSearchParams(location.hash.slice(1)));
      this.model.changed();
    } catch (error) {
      this.#broken = { message: `The address cannot be read: ${error.message}` };
      if (this.model.text) this.#problems([this.#broken]);
    }
  }

  // The moment that the address names: `&at=0.7&pace=0.02`, in seconds and as a share of real time.
  #begin(parts) {
    const [at, pace] = [Number(parts.get("at")), Number(parts.get("pace"))];
    if (at > 0) this.#target = { at };
    if (this.player.hasPace(pace)) this.player.setPace(pace);
  }

  // After a trap, another worker.
  #engine() {
    if (this.client.ended) this.client = engine();
    return this.client;
  }

  // Another scenario: it is checked, drawn and run. A newer change overtakes an older one.
  async refresh() {
    const turn = ++this.#turn;
    try {
      const described = await this.#engine().ask("describe", { request: this.model.request() });
      if (turn !== this.#turn) return;
      this.described = described;
      this.model.accept();
      this.#problems(this.#broken ? [this.#broken] : []);
      this.#broken = null;
    } catch (error) {
      if (turn === this.#turn) this.#refused(error);
      return;
    }
    const fragment = await this.model.fragment();
    if (turn !== this.#turn) return;
    this.fragment = fragment;
    history.replaceState(null, "", fragment);
    this.#show();
    await this.#simulate(turn);
  }

  // The run before continues, and its scenario is the one that the next change changes.
  #refused(error) {
    this.#problems(error.list ?? [{ message: error.message }]);
    this.model.refuse();
    this.#target = null;
    if (this.described) {
      this.choices.show(this.described);
      this.waver.show(this.described);
    }
  }

  #typing(typed) {
    this.#typed = typed;
    find("toml-says").textContent = typed ? "This text is not used yet." : "";
    find("toml-back").hidden = !typed;
  }

  #problems(list) {
    const words = (one) => `${one.line ? `Line ${one.line}: ` : one.source ? `${one.source}: ` : ""}${one.message}${one.help ? `. ${one.help}` : ""}`;
    find("problem").textContent = list.map(words).join(" ");
    find("problem").hidden = !list.length;
    find("toml-problems").replaceChildren(...list.map((one) => Object.assign(document.createElement("li"), { textContent: words(one) })));
  }

  #show() {
    const { described } = this;
    const { paths, direction } = described.network;
    // The sender stands first.
    const hosts = direction === "up" ? ["Client", "Server"] : ["Server", "Client"];
    ["server", "client"].forEach((place, n) => { find(place).querySelector("b").textContent = hosts[n]; });
    // The old run stays to be seen until the new one begins, unless there is no place for it.
    if (this.run?.described.network.paths.length !== paths.length) this.run = null;
    this.choices.show(described);
    this.lanes.build(paths);
    this.waver.show(described);
    this.place();
    if (find("toml").value === this.model.text) this.#typing(false);
    if (!this.#typed) find("toml").value = described.toml;
    this.study.compare();
    const schedulers = find("study-schedulers");
    if (!schedulers.value || schedulers.dataset.made === schedulers.value) {
      schedulers.value = [...new Set([described.scheduler, "minrtt", "blest"])].join(",");
      schedulers.dataset.made = schedulers.value;
    }
  }

  async #simulate(turn) {
    this.run?.stop();
    const client = this.own ? this.#ownWorker() : this.#engine();
    const run = new Run(client, this.described);
    this.run = run;
    this.chosen = null;
    find("digest").textContent = "…";
    find("why-says").replaceChildren();
    this.soFar.reset();
    // A change of a value is seen at the time that was shown, a new scenario from its beginning.
    const start = this.#target?.at ?? (this.model.fresh ? BEGIN[this.player.calm ? "calm" : "playing"] : this.player.time);
    this.#target = null;
    this.model.fresh = false;
    this.player.reset(start);
    try {
      const request = this.model.request({ own: !!this.own });
      await run.make(request, () => { if (this.run === run) this.#grown(run); });
      if (run.summary && this.run === run) find("digest").textContent = run.summary.digest;
    } catch (error) {
      if (this.run === run && turn === this.#turn) this.#failed(error);
    }
  }

  #grown({ history }) {
    // Packets that are not followed any more cannot be shown.
    const end = history.count < PACKETS ? history.now : history.sent.at(PACKETS - 1);
    if (history.over && this.player.time > end) this.player.seek(end);
    this.player.reach(history.over ? end : Math.max(0, Math.min(end, history.now - Math.max(history.life, history.ackLife))));
  }

  #ownWorker() {
    this.ownClient?.end();
    find("own-says").textContent = "Your code schedules.";
    this.ownClient = ownClient(this.own, this.client.module);
    return this.ownClient;
  }

  #failed(error) {
    const text = error.list ? error.list.map((one) => one.message).join(" ") : error.message;
    const hint = text === CANNOT_START ? ": is it valid JavaScript?" : "";
    if (this.own) find("own-says").textContent = `Your code: ${text}${hint}`;
    else this.#problems(error.list ?? [{ message: text }]);
  }

  // The reader's own scheduler, or the scenario's again.
  useOwn(code) {
    this.#useCode(code, true);
    this.model.changed();
  }

  // The code of the address, and of the page; it schedules if it `runs`.
  #useCode(code, runs) {
    this.model.code = code;
    this.own = runs ? code : null;
    this.ownClient?.end();
    find("own-end").hidden = !this.own;
    find("own-says").textContent = "";
    if (!code) return;
    find("own-code").value = code;
    find("own").open = true;
  }

  // A tour's step.
  async go({ preset, set, at, pace }) {
    this.player.setPace(pace);
    this.player.set(!this.player.calm);
    if (!preset) { this.player.seek(at); return; }
    this.#target = { at };
    this.#useCode(null, false);
    this.model.usePreset(preset, set);
  }

  place() {
    if (!this.described) return;
    this.lanes.place(this.picture.fit(this.described.network.paths));
    this.draw();
  }

  draw() {
    if (!this.run || !this.picture.layout) return;
    const { history, described } = this.run;
    const [shapes, { time, pace }] = [described.network.paths, this.player];
    const state = { history, shapes, time, value: valueOf(this.run) };
    const seen = this.picture.draw({ ...state, chosen: this.chosen, linger: 0.5 * pace, buffer: described.recv_buffer, acks: find("acks").checked });
    this.lanes.show({ ...state, ...seen });
    this.soFar.show({ ...state, ...seen });
  }

  choose(id) {
    this.chosen = id;
    const { run } = this;
    if (run && id !== null) {
      const scheduler = this.own ? "your code" : run.described.scheduler;
      find("why-says").replaceChildren(explain({ history: run.history, shapes: run.described.network.paths, id, scheduler, own: ownNames(run) }));
    }
    this.draw();
  }

  // To the next packet's sending.
  step() {
    if (!this.run) return;
    const { history } = this.run;
    this.player.set(false);
    const next = history.sent.above(this.player.time + 1e-9);
    if (next >= history.count) return;
    this.player.seek(history.sent.at(next) + 1e-9);
    this.choose(next);
  }
}

const valueOf = (run) => run.summary?.value ?? null;
const ownNames = (run) => ({ state: run.summary?.state ?? [], pathState: run.summary?.path_state ?? [] });

function save(name, text) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Inside another page: the picture, its time and a few choices.
if (new URLSearchParams(location.search).has("embed")) document.documentElement.dataset.embed = "";
followTheme(find("theme"));
try {
  const client = engine();
  const page = new Page(client, await client.ask("offer"));
  // For the console, and for tests.
  window.page = page;
  await page.begin();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  find("problem").textContent = `The simulator cannot start: ${error.message}`;
  find("problem").hidden = false;
}
