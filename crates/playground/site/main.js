// The page: a change of the scenario stops the run, and begins another.

import { addPath, dropPath } from "./blocks.js";
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
import { explain } from "./why.js";

const find = (id) => document.getElementById(id);
const pick = (names) => Object.fromEntries(Object.entries(names).map(([name, id]) => [name, find(id)]));

class Page {
  run = null;
  chosen = null;
  own = null;
  #turn = 0;
  #target = null;

  constructor(client, catalogue) {
    this.client = client;
    this.model = new Model(catalogue);
    this.picture = new Picture(find("picture"));
    this.lanes = new Lanes(
      pick({ lanes: "lanes", server: "server", client: "client", serverSays: "server-says", clientSays: "client-says" }),
      {
        set: (path, values) => { for (const [key, value] of Object.entries(values)) this.#put(path, key, value); },
        cut: (path) => this.#cut(path),
        drop: (path) => this.model.useText(dropPath(this.described.toml, path)),
      });
    this.choices = new Choices(
      pick({ form: "choices", preset: "preset", scheduler: "scheduler", congestion: "congestion", traffic: "traffic", buffer: "buffer", seed: "seed" }), this.model);
    this.soFar = new SoFar(pick({ figures: "figures", log: "log" }));
    this.player = new Player(pick({ play: "play", step: "step", pace: "pace", time: "time", clock: "clock" }), () => this.draw());
    this.study = new Study(
      pick({ form: "study-form", schedulers: "study-schedulers", seeds: "study-seeds", run: "study-run", stop: "study-stop", progress: "study-progress",
        problem: "study-problem", report: "report", save: "study-save" }),
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
    find("share").onclick = async () => {
      const words = find("share");
      try { await navigator.clipboard.writeText(location.href); words.textContent = "Copied"; } catch { words.textContent = "The address is the link"; }
      setTimeout(() => { words.textContent = "Copy link"; }, 2000);
    };
    find("add-path").onclick = () => {
      const names = this.described.network.paths.map((path) => path.name);
      this.model.useText(addPath(this.described.toml, names));
    };
    find("toml-use").onclick = () => this.model.useText(find("toml").value);
    find("toml-save").onclick = () => save("scenario.toml", find("toml").value);
    find("own-run").onclick = () => this.useOwn(find("own-code").value);
    find("own-end").onclick = () => this.useOwn(null);
    document.addEventListener("themechange", () => this.draw());
    addEventListener("hashchange", async () => {
      if (location.hash === this.fragment) return;
      // Without motion, a moment of the run is shown.
    if (!this.player.playing) this.#target = { at: 0.5 };
    if (await this.model.read(location.hash).catch(() => false)) this.model.changed();
    });
    new ResizeObserver(() => this.place()).observe(find("stage"));
    signs(find("key"));
    tours({ list: find("tours"), box: find("tour") }, (step) => this.go(step));
  }

  // A key of a path, for both directions where the file has them apart.
  #put(path, key, value) {
    const whole = `path.${path}.${key}`;
    for (const end of ["", ".down", ".up"]) this.model.set.delete(whole + end);
    this.model.put(key === "rate" || key === "loss" || key === "queue" ? `${whole}.down` : whole, value);
  }

  // From the shown time on.
  #cut(path) {
    const { time } = this.player;
    const end = (s) => `"${Math.round(s * 1000)}ms"`;
    this.#target = { at: Math.max(0, time - 0.05) };
    this.model.put(`path.${path}.outage`, `[[${end(Math.max(time, 0.001))}, ${end(time + 1)}]]`);
  }

  async begin() {
    if (await this.model.read(location.hash).catch(() => false)) this.model.changed();
    else this.model.usePreset();
    find("own-code").value = this.model.code ?? EXAMPLE;
    find("own").open = !!this.model.code;
  }

  // Another scenario: it is checked, drawn and run. A newer change overtakes an older one.
  async refresh() {
    const turn = ++this.#turn;
    this.run?.stop();
    try {
      const described = await this.client.ask("describe", { request: this.model.request() });
      if (turn !== this.#turn) return;
      this.described = described;
      this.#problems([]);
    } catch (error) {
      if (turn === this.#turn) this.#problems(error.list ?? [{ message: error.message }]);
      return;
    }
    this.fragment = await this.model.fragment();
    history.replaceState(null, "", this.fragment);
    this.#show();
    await this.#simulate(turn);
  }

  #problems(list) {
    const words = (one) => `${one.line ? `Line ${one.line}: ` : ""}${one.message}${one.help ? `. ${one.help}` : ""}`;
    find("problem").textContent = list.map(words).join(" ");
    find("problem").hidden = !list.length;
    find("toml-problems").replaceChildren(...list.map((one) => Object.assign(document.createElement("li"), { textContent: words(one) })));
  }

  #show() {
    const { described } = this;
    const { paths } = described.network;
    // The old run stays to be seen until the new one begins, unless there is no place for it.
    if (this.run?.described.network.paths.length !== paths.length) this.run = null;
    this.choices.show(described);
    this.lanes.build(paths);
    this.place();
    if (document.activeElement !== find("toml")) find("toml").value = described.toml;
    const schedulers = find("study-schedulers");
    if (!schedulers.value || schedulers.dataset.made === schedulers.value) {
      schedulers.value = [...new Set([described.scheduler, "minrtt", "blest"])].join(",");
      schedulers.dataset.made = schedulers.value;
    }
  }

  async #simulate(turn) {
    const client = this.own ? this.#ownWorker() : this.client;
    const run = new Run(client, this.described);
    this.run = run;
    this.chosen = null;
    find("digest").textContent = "…";
    find("why-says").replaceChildren();
    this.soFar.reset();
    // A change of a value is seen at the time that was shown, a new scenario from its beginning.
    const start = this.#target?.at ?? (this.model.fresh ? 0 : this.player.time);
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
    this.player.reach(history.over ? end : Math.max(0, Math.min(end, history.now - history.life)));
  }

  #ownWorker() {
    this.ownClient?.end();
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
    this.own = code;
    this.model.code = code;
    find("own-end").hidden = !code;
    find("own-says").textContent = code ? "Your code schedules." : "";
    if (!code) this.ownClient?.end();
    this.model.changed();
  }

  // A tour's step.
  async go({ preset, set, at, pace }) {
    this.player.setPace(pace);
    this.player.set(true);
    if (!preset) { this.player.seek(at); return; }
    this.#target = { at };
    this.own = null;
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
    const seen = this.picture.draw({ ...state, chosen: this.chosen, linger: 0.5 * pace, buffer: described.recv_buffer });
    this.lanes.show({ ...state, ...seen });
    this.soFar.show({ ...state, ...seen });
  }

  choose(id) {
    this.chosen = id;
    const { run } = this;
    if (run && id !== null) {
      const scheduler = this.own ? "your code" : run.described.scheduler;
      find("why-says").replaceChildren(explain({ history: run.history, shapes: run.described.network.paths, id, scheduler, value: valueOf(run) }));
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

function save(name, text) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

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
