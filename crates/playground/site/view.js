// A question of the engine as an object for the reader's scheduler, and its answer as a command; `src/own.rs` says what the numbers are.

const valueOf = ({ words }, number) => words ? words[number] : number;

// `fields` names the numbers, of the connection and of each path.
export function viewOf(numbers, fields) {
  const read = (named, at) => Object.fromEntries(named.map((field, i) => [field.name, valueOf(field, numbers[at + i])]));
  const head = fields.view.length;
  const paths = Array.from({ length: numbers[head] }, (_, path) => read(fields.path, head + 1 + fields.path.length * path));
  return { ...read(fields.view, 0), paths };
}

const KINDS = { skip: 1, copy: 2 };
const PLAIN = { kind: 0, bytes: 0 };
const VALID = "it returns a path's id, −1 to wait, { path, skip: bytes } or { path, copy: offset }";

// The answer as { path, kind, bytes }. What is none is an error that names it.
export function commandOf(answer, view) {
  const wrong = (why) => { throw new TypeError(`choose returned ${said(answer)}: ${why}; ${VALID}`); };
  if (answer === -1) return { path: -1, ...PLAIN };
  if (typeof answer !== "number" && (typeof answer !== "object" || answer === null)) wrong("that is no command");
  const { path, ...rest } = typeof answer === "number" ? { path: answer } : answer;
  // A path whose subflow is not there yet refuses the command, as one without room does.
  if (!(Number.isInteger(path) && path >= 0 && path < view.known)) wrong(`there is no path ${said(path)}`);
  const [command, more] = Object.entries(rest);
  if (!command) return { path, ...PLAIN };
  const [kind, bytes] = command;
  if (more) wrong("only one of skip and copy can be");
  if (!Object.hasOwn(KINDS, kind)) wrong(`there is no ${kind}`);
  if (!(Number.isInteger(bytes) && bytes >= 0)) wrong(`${kind} is ${said(bytes)}, no whole number of bytes`);
  return { path, kind: KINDS[kind], bytes };
}

function said(value) {
  if (typeof value !== "object" || value === null) return String(value);
  return `{ ${Object.entries(value).map(([name, one]) => `${name}: ${typeof one === "object" ? "…" : String(one)}`).join(", ")} }`;
}
