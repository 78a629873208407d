// Runs a scenario in the playground's module, in Node, and prints CPU time per study and the digest:
//   node benches/web.mjs SCENARIO.toml SCHEDULER KEY=VALUE...
import { readFileSync } from "node:fs";
import { enter } from "../crates/playground/site/border.js";

const [file, scheduler, ...set] = process.argv.slice(2);
const folder = new URL("../crates/playground/site/", import.meta.url);
const border = await enter(await WebAssembly.compile(readFileSync(new URL("engine.wasm", folder))), {});
const study = (set) => border.ask("compare", { name: file, text: readFileSync(file, "utf8"), set, schedulers: [scheduler] });

// The first calls are compiled while they run.
study([...set, "repeat=1"]);
for (let n = 0; n < 5; n++) {
  const before = process.cpuUsage();
  const { results } = study(set);
  const { user, system } = process.cpuUsage(before);
  console.log(`${((user + system) / 1e6).toFixed(2)} s, ${results.runs.length} runs, digest ${results.digest}`);
}
