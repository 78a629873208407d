// A question of the engine as an object for the reader's scheduler; `src/own.rs` says what the numbers are.

const HEAD = 5;
const FIELDS = ["id", "usable", "eligible", "srtt", "rttvar", "minRtt", "cwnd", "inFlight", "queued", "mss", "loss", "rate", "mayWait"];
const FLAGS = new Set(["usable", "eligible", "mayWait"]);

export function viewOf(numbers) {
  const [now, backlog, outstanding, window, count] = numbers;
  const paths = Array.from({ length: count }, (_, path) => {
    const at = HEAD + FIELDS.length * path;
    return Object.fromEntries(FIELDS.map((name, i) => [name, FLAGS.has(name) ? numbers[at + i] === 1 : numbers[at + i]]));
  });
  return { now, backlog, outstanding, window, paths };
}
