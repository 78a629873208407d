// The page's end of a worker: a call is a promise.

// Browsers do not say of a worker's module what is wrong with its syntax.
export const CANNOT_START = "the worker cannot start";

export class Client {
  #calls = new Map();
  #next = 1;
  #ready;
  #never;

  // Why no more calls are answered, once the worker is ended.
  ended = null;

  // `onProgress(done, planned)`; `limit` = milliseconds without an answer after which the worker is ended.
  constructor(worker, { onProgress, limit } = {}) {
    this.worker = worker;
    this.limit = limit;
    this.module = new Promise((found) => { this.found = found; });
    this.#ready = new Promise((done, failed) => {
      this.#never = failed;
      worker.onerror = (event) => {
        event.preventDefault();
        this.end(new Error(event.message || CANNOT_START));
      };
      worker.onmessage = ({ data }) => {
        if (data.ready) done();
        else if (data.module) this.found(data.module);
        else if (data.progress) onProgress?.(data.progress.done, data.progress.planned);
        else this.#answer(data);
      };
    });
    this.#ready.catch(() => {});
  }

  #answer({ id, value, mistakes, broken }) {
    // A module that trapped has no state to build on.
    if (broken) return this.end(new Error(broken));
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    clearTimeout(call.timer);
    if (mistakes) call.failed(Object.assign(new Error(mistakes.map((one) => one.message).join("; ")), { list: mistakes }));
    else call.done(value);
  }

  // The time runs from here: a worker may never be ready.
  async ask(call, more = {}) {
    if (this.ended) throw this.ended;
    return new Promise((done, failed) => {
      const id = this.#next++;
      const timer = this.limit && setTimeout(() => this.end(new Error(`no answer in ${this.limit / 1000} s: ended`)), this.limit);
      this.#calls.set(id, { done, failed, timer });
      this.#ready.then(() => this.worker.postMessage({ id, call, ...more }), () => {});
    });
  }

  end(why = new Error("ended")) {
    this.ended ??= why;
    this.worker.terminate();
    this.#never(why);
    for (const { failed, timer } of this.#calls.values()) {
      clearTimeout(timer);
      failed(why);
    }
    this.#calls.clear();
  }
}

export const engine = (options) => new Client(new Worker(new URL("./engine.js", import.meta.url), { type: "module" }), options);
