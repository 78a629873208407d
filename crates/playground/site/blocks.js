// A scenario's text by its blocks, each from its header on: paths come and go, traffic is replaced. The engine writes the text that
// is taken apart here, so that a header begins a line and a key stands on one.

const split = (toml) => toml.split(/\n(?=\[)/);
const join = (blocks) => blocks.map((block) => block.trimEnd()).join("\n\n").concat("\n");

export function replaceTraffic(toml, lines) {
  const rest = split(toml).filter((block) => !block.startsWith("[[traffic]]"));
  return join([...rest, `[[traffic]]\n${lines.join("\n")}`]);
}

export function addPath(toml, names) {
  let number = names.length + 1;
  while (names.includes(`path${number}`)) number += 1;
  return join([...split(toml), `[[path]]\nname = "path${number}"\nrate = "10mbit"\ndelay = "20ms"\nqueue = "100KB"`]);
}

// What names the path goes with it: changes over time, cross traffic, the choice of the first path.
export function dropPath(toml, name) {
  const quoted = JSON.stringify(name);
  const names = (block) => (block.startsWith("[[path]]") && block.includes(`\nname = ${quoted}`))
    || (block.startsWith("[[timeline]]") && block.includes(`"path.${name}.`))
    || (block.startsWith("[[cross]]") && new RegExp(`\\n(over|path) = ${quoted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`).test(block));
  return join(split(toml).filter((block) => !names(block)).map((block) => block.replace(`\nfirst_path = ${quoted}`, "")));
}

function pathBlock(toml, name) {
  return split(toml).find((one) => one.startsWith("[[path]]") && one.includes(`\nname = ${JSON.stringify(name)}`)) ?? "";
}

// A key of a path, as it stands there for each direction: `key = { down = …, up = … }`.
function directions(toml, name, key) {
  const [, down, up] = new RegExp(`^${key} = \\{ down = (.*), up = (.*) \\}`, "m").exec(pathBlock(toml, name)) ?? [];
  return [down, up];
}

export function differs(toml, name, key) {
  const [down, up] = directions(toml, name, key);
  return down !== up;
}

// A key of a path as a setting takes it, the same value for both directions or a table of both; undefined if the path has none.
export function written(toml, name, key) {
  const [down, up] = directions(toml, name, key);
  const whole = new RegExp(`^${key} = (.*)$`, "m").exec(pathBlock(toml, name))?.[1];
  return (down !== undefined && down === up ? down : whole)?.replace(/^"(.*)"$/, "$1");
}

// The value is a table, a model: one number would replace it.
export function isModel(toml, name, key) {
  return directions(toml, name, key)[0]?.startsWith("{ kind") ?? false;
}

const SECONDS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };

function seconds(text) {
  const [, value, unit] = /^([\d.]+)([a-z]+)$/.exec(text);
  return Number(value) * SECONDS[unit];
}

// A path's outages in each direction and another one, ascending and apart, as settings take them.
export function outagesWith(toml, name, from, to) {
  return directions(toml, name, "outage").map((list) => {
    const all = [...JSON.parse(list).map((one) => one.map(seconds)), [from, to]].sort(([a], [b]) => a - b);
    const apart = [];
    for (const [begin, end] of all) {
      const last = apart.at(-1);
      if (last && begin <= last[1]) last[1] = Math.max(last[1], end); else apart.push([begin, end]);
    }
    return JSON.stringify(apart.map((one) => one.map((s) => `${Math.round(s * 1e6)}us`)));
  });
}
