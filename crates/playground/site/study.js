// Schedulers × seeds in a worker of its own, and their report in a frame: the page that `anabranch run --out` writes.

import { engine } from "./client.js";

export class Study {
  constructor(parts, { request, theme, own }) {
    Object.assign(this, { parts, request, theme, own, client: null });
    parts.form.onsubmit = (event) => { event.preventDefault(); this.#run(); };
    parts.stop.onclick = () => this.client?.end(new Error("stopped"));
    document.addEventListener("themechange", () => this.#dress());
  }

  async #run() {
    const { parts } = this;
    this.client?.end();
    parts.problem.hidden = true;
    this.#busy(true);
    const onProgress = (done, planned) => Object.assign(parts.progress, { max: planned, value: done });
    try {
      this.client = this.own(onProgress) ?? engine({ onProgress });
      const schedulers = split(parts.schedulers.value);
      const { page, results } = await this.client.ask("compare", { request: this.request({ schedulers }, parts.seeds.value) });
      this.results = results;
      this.#show(page);
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

  #show(page) {
    const frame = document.createElement("iframe");
    frame.title = "Report";
    frame.srcdoc = page;
    frame.onload = () => {
      const body = frame.contentDocument.body;
      Object.assign(body.style, { maxWidth: "none", padding: "0" });
      frame.contentDocument.getElementById("theme").style.display = "none";
      this.#dress();
      new ResizeObserver(() => { frame.style.height = `${frame.contentDocument.documentElement.offsetHeight + 4}px`; }).observe(body);
      frame.dataset.loaded = "yes";
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
