// Schedulers × seeds in a worker of its own, and their report in a frame: the page that `anabranch run --out` writes.

import { engine } from "./client.js";

// The hashes of a report's scripts, which the page's policy has.
const SCRIPTS = document.querySelector("meta[http-equiv]").content.match(/'sha256-[^']+'/g) ?? [];

// A worker with the reader's code makes its page, so the page is not trusted: no script but the report's, no network.
const POLICY = "<!doctype html><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
  + `script-src ${SCRIPTS.join(" ") || "'none'"}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">`;

export class Study {
  constructor(parts, { request, theme, own }) {
    Object.assign(this, { parts, request, theme, own, client: null });
    parts.form.onsubmit = (event) => { event.preventDefault(); this.#run(); };
    parts.stop.onclick = () => this.client?.end(new Error("stopped"));
    document.addEventListener("themechange", () => this.#dress());
  }

  async #run() {
    const { parts } = this;
    if (this.client) return;
    parts.problem.hidden = true;
    this.#busy(true);
    const onProgress = (done, planned) => Object.assign(parts.progress, { max: planned, value: done });
    const [own, of] = [this.own(onProgress), this.#scenario()];
    try {
      this.client = own ?? engine({ onProgress });
      const schedulers = split(parts.schedulers.value);
      const { page, results } = await this.client.ask("compare", { request: this.request({ schedulers }, parts.seeds.value) });
      this.results = results;
      this.#show(own ? POLICY + page : page, !!own);
      this.of = of;
      this.compare();
    } catch (error) {
      parts.problem.textContent = error.list?.map((one) => [one.message, one.help].filter(Boolean).join(": ")).join("; ") ?? error.message;
      parts.problem.hidden = false;
    } finally {
      this.client?.end();
      this.client = null;
      this.#busy(false);
    }
  }

  #busy(busy) {
    const { run, stop, progress } = this.parts;
    run.hidden = busy;
    stop.hidden = progress.hidden = !busy;
    if (busy) progress.removeAttribute("value");
  }

  #scenario() { return JSON.stringify(this.request({}, 0)); }

  // Says whether the report is of another scenario than the page.
  compare() { this.parts.old.hidden = !this.frame || this.of === this.#scenario(); }

  // A page that is not trusted has an origin of its own, so it keeps its own theme, and scrolls in its frame.
  #show(page, apart) {
    const frame = document.createElement("iframe");
    if (apart) {
      frame.sandbox = "allow-scripts";
      frame.style.height = "80vh";
    }
    frame.title = "Report";
    frame.srcdoc = page;
    frame.onload = () => {
      frame.dataset.loaded = "yes";
      if (apart) return;
      const body = frame.contentDocument.body;
      Object.assign(body.style, { maxWidth: "none", padding: "0" });
      frame.contentDocument.getElementById("theme").style.display = "none";
      this.#dress();
      new ResizeObserver(() => { frame.style.height = `${frame.contentDocument.documentElement.offsetHeight + 4}px`; }).observe(body);
    };
    this.frame = frame;
    this.parts.report.replaceChildren(frame);
    URL.revokeObjectURL(this.parts.save.href);
    this.parts.save.href = URL.createObjectURL(new Blob([page], { type: "text/html" }));
    this.parts.save.hidden = false;
  }

  // The report has the page's theme.
  #dress() {
    const root = this.frame?.contentDocument?.documentElement;
    if (!root) return;
    const choice = this.theme();
    if (choice === "auto") delete root.dataset.theme; else root.dataset.theme = choice;
    this.frame.contentDocument.dispatchEvent(new Event("themechange"));
  }
}

// Names with commas between them, but not those in brackets.
function split(text) {
  return text.split(/,(?![^(]*\))/).map((name) => name.trim()).filter(Boolean);
}
