// The worker that simulates.

import { enter, serve } from "./border.js";

const response = await fetch(new URL("./engine.wasm", import.meta.url));
if (!response.ok) throw new Error(`engine.wasm: ${response.status}`);
const module = await WebAssembly.compile(await response.arrayBuffer());
const border = await enter(module, { progress: (done, planned) => postMessage({ progress: { done, planned } }) });
// A worker for the reader's own scheduler begins with the same module.
postMessage({ module });
serve(globalThis, border);
