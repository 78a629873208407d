// The border to the WebAssembly module: JSON and columns of numbers in its linear memory. `src/abi.rs` is the other side.

const text = { encode: new TextEncoder(), decode: new TextDecoder() };

// `page` = what the module calls: { progress(done, planned), choose(numbers) }; `choose` gives { path, kind, bytes }, as `src/own.rs` says.
export async function enter(module, page) {
  const instance = await WebAssembly.instantiate(module, {
    page: {
      progress: (done, planned) => page.progress?.(done, planned),
      choose: (at, count, command) => {
        if (!page.choose) return -1;
        const numbers = (from, length) => new Float64Array(instance.exports.memory.buffer, from >>> 0, length);
        const { path, kind, bytes } = page.choose(numbers(at, count));
        numbers(command, 2).set([kind, bytes]);
        return path;
      },
    },
  });
  return new Border(instance.exports);
}

class Border {
  constructor(exports) { this.exports = exports; }

  #put(request) {
    const bytes = text.encode.encode(JSON.stringify(request));
    // The page's side of a pointer is signed.
    const at = this.exports.input(bytes.length) >>> 0;
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
  }

  #bytes() {
    return new Uint8Array(this.exports.memory.buffer, this.exports.output() >>> 0, this.exports.output_len() >>> 0);
  }

  #json() { return JSON.parse(text.decode.decode(this.#bytes()) || "null"); }

  // What a trap's panic said, if it said something.
  panic() {
    try { return this.#json().panic; } catch { return null; }
  }

  // Calls a function that answers in JSON.
  ask(name, request) {
    if (request) this.#put(request);
    const wrong = this.exports[name]();
    const answer = this.#json();
    if (wrong) throw new Mistakes(answer.mistakes);
    return answer;
  }

  // The run up to a time in seconds: what happened, as rows of numbers.
  advance(to) {
    if (this.exports.advance(to)) throw new Mistakes(this.#json().mistakes);
    const bytes = this.#bytes();
    const all = new Float64Array(bytes.slice().buffer);
    const [over, now] = all;
    const parts = {};
    let at = 8;
    ["packets", "notes", "decisions"].forEach((name, i) => {
      const [count, width] = [all[2 + 2 * i], all[3 + 2 * i]];
      parts[name] = { width, rows: all.slice(at, at + count) };
      at += count;
    });
    return { over: over === 1, now, ...parts };
  }
}

export class Mistakes extends Error {
  constructor(list) {
    super(list.map((one) => one.message).join("; "));
    this.list = list;
  }
}

const why = (error, border) => (error instanceof WebAssembly.RuntimeError ? border.panic() : null) ?? String(error);

// Answers messages { id, call, request } until the worker ends; `calls` may be slow.
export function serve(scope, border) {
  scope.onmessage = ({ data: { id, call, request, to } }) => {
    try {
      const value = call === "advance" ? border.advance(to) : border.ask(call, request);
      scope.postMessage({ id, value });
    } catch (error) {
      scope.postMessage(error instanceof Mistakes ? { id, mistakes: error.list } : { id, broken: why(error, border) });
    }
  };
  scope.postMessage({ ready: true });
}
