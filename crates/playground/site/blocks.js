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
