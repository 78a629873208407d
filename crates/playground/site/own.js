// The reader's own scheduler: its code runs in a worker of its own, which has this page's policy (it reaches no network) and is
// ended if it does not answer. Nothing runs before a click.

import { Client } from "./client.js";

export const EXAMPLE = `// view: { now, backlog, paths: [{ id, eligible, srtt, cwnd, inFlight, mss, copy, ... }], ... }; times in seconds, data in bytes.
// srtt is NaN before the first sample; eligible = it may take a segment now; copy = offset of the lowest outstanding data that
// the path has not carried, NaN if there is none. The page "Playground" of the documentation has all names.
// The answer: a path's id for the next segment; -1 to wait; { path, skip: bytes } for a segment further on;
// { path, copy: offset } for outstanding data once more.
function choose(view) {
  const ready = view.paths.filter((path) => path.eligible);
  ready.sort((a, b) => (a.srtt || Infinity) - (b.srtt || Infinity));
  return ready.length ? ready[0].id : -1;
}
`;

// Milliseconds without an answer after which the worker is ended: of a slice of a run, and of a whole study.
const LIMITS = { live: 5000, study: 120000 };

// The worker's program, around the code. Modules of this page's origin are all that the policy lets it load.
function program(code) {
  const border = new URL("./border.js", import.meta.url);
  const view = new URL("./view.js", import.meta.url);
  return `import { enter, serve } from ${JSON.stringify(border.href)};
import { commandOf, viewOf } from ${JSON.stringify(view.href)};
const choose = (() => { "use strict"; ${code}
; return choose; })();
onmessage = async ({ data: { module } }) => {
  const page = {
    progress: (done, planned) => postMessage({ progress: { done, planned } }),
    choose: (numbers) => { const view = viewOf(numbers, fields); return commandOf(choose(view), view); },
  };
  const border = await enter(module, page);
  const fields = border.ask("fields");
  serve(globalThis, border);
};`;
}

export function ownClient(code, module, { onProgress, kind = "live" } = {}) {
  const url = URL.createObjectURL(new Blob([program(code)], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  const client = new Client(worker, { onProgress, limit: LIMITS[kind] });
  module.then((compiled) => worker.postMessage({ module: compiled }));
  return client;
}
