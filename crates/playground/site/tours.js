// Short tours: a scenario, a moment, and what is to be seen there.

const TOURS = [
  { name: "minRTT blocks", steps: [
    { preset: "tight-window", set: { "connection.scheduler": "minrtt" }, at: 0.68, pace: 0.02, title: "The far path holds the window",
      text: "MinRTT fills the near path, then the far one. Data on the far path takes 60 ms and more, while the receiver keeps all that the near path brought: the box at the client fills, and its first place, framed, stays empty." },
    { at: 1.35, pace: 0.05, title: "The window is full",
      text: "The receive buffer has 128 KiB. When it is full of data that waits for the far path, the server may send nothing, though the near path has room. Goodput falls below that of the near path alone." },
  ] },
  { name: "BLEST waits", steps: [
    { preset: "tight-window", set: { "connection.scheduler": "blest" }, at: 1.2, pace: 0.05, title: "It would block, so it waits",
      text: "BLEST estimates how much the near path could send while a segment is on the far one. If the receive window is too small for both, it waits: the server says “scheduler waits”, and the far path stays nearly empty." },
    { at: 2.2, pace: 0.1, title: "The near path keeps its rate",
      text: "The box at the client is nearly empty, and the near path is full. Compare blest with minrtt below: the report says what this is worth over several seeds." },
  ] },
  { name: "A tight window", steps: [
    { preset: "tight-window", set: { "connection.scheduler": "minrtt", "connection.recv_buffer": "128KiB" }, at: 1.5, pace: 0.1, title: "128 KiB",
      text: "Both paths together need a receive window of the sum of their rates times the longest RTT, and more when a queue is deep." },
    { set: { "connection.recv_buffer": "2MiB" }, at: 3, pace: 0.1, title: "2 MiB",
      text: "With 2 MiB the same scheduler gets the sum of both paths. The box holds far more; it is full once, about 2 s, while a loss on the far path is repaired. The receive buffer is above the picture: try values between." },
  ] },
  { name: "Bufferbloat", steps: [
    { preset: "bufferbloat", at: 1, pace: 0.2, title: "Nothing is lost, so the queue fills",
      text: "The cellular path has a queue of two seconds. Cubic sends until something is lost, and the queue fills first: watch the RTT below the path." },
    { at: 12, pace: 0.2, title: "Far behind",
      text: "A segment that takes this path now arrives long after its neighbours, and waits in the queue for most of that time. Drag the queue of the cellular path to 60 kB: its RTT stays low, and little waits at the client." },
  ] },
  { name: "Failover", steps: [
    { preset: "failover", at: 9.9, pace: 0.1, title: "The fibre is cut at 10 s",
      text: "All data is on the fibre, and LTE is only a backup. At 10 s nothing arrives any more, and the sender does not know it." },
    { at: 10.06, pace: 0.05, title: "The backup takes over",
      text: "As soon as the fibre is held to be silent, what it carried goes again on LTE: dark packets are repeated data. The fibre's own retransmission timer fires later. The list of events has the times." },
  ] },
];

export function tours({ list, box }, go) {
  list.append("Tours: ", ...TOURS.map((tour) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: tour.name });
    button.onclick = () => show(tour, 0);
    return button;
  }));

  async function show(tour, at) {
    const step = tour.steps[at];
    const title = Object.assign(document.createElement("h2"), { textContent: `${tour.name} ${at + 1}/${tour.steps.length}: ${step.title}` });
    const row = Object.assign(document.createElement("p"), { className: "row" });
    const button = (text, act, kind = "") => {
      const made = Object.assign(document.createElement("button"), { type: "button", textContent: text, className: kind, onclick: act });
      row.append(made);
    };
    button("See it again", () => go({ at: step.at, pace: step.pace }));
    if (at > 0) button("Back", () => show(tour, at - 1));
    if (at + 1 < tour.steps.length) button("Next", () => show(tour, at + 1), "main");
    button("End the tour", () => { box.hidden = true; });
    box.replaceChildren(title, Object.assign(document.createElement("p"), { textContent: step.text }), row);
    box.hidden = false;
    await go({ ...step, ...upTo(tour, at) });
  }
}

// A step shows the scenario of the steps before it.
function upTo(tour, at) {
  const before = tour.steps.slice(0, at + 1);
  return { preset: before.findLast((step) => step.preset).preset, set: Object.assign({}, ...before.map((step) => step.set)) };
}
