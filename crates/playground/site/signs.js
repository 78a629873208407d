// What the marks in the picture mean.

const SIGNS = [
  ["a packet, in its path's colour", '<rect x="5" y="2" width="8" height="12" rx="2" fill="var(--p0)"/>'],
  ["repeated data", '<rect x="5" y="2" width="8" height="12" rx="2" fill="var(--ink)"/>'],
  ["acknowledgment of its path's data, on its way back", '<path d="M9 3v10" stroke="var(--p0)" stroke-width="1.6"/>'],
  ["acknowledgment of the connection's data (DATA_ACK)", '<path d="M9 3 14 8 9 13 4 8Z" fill="none" stroke="var(--p0)" stroke-width="1.6"/>'],
  ["lost, or dropped by a full queue", '<path d="M4 3 14 13M14 3 4 13" stroke="var(--bad)" stroke-width="2.5"/>'],
  ["waits for the other path", '<rect x="4" y="3" width="10" height="10" fill="var(--p1)"/>'],
  ["waits for its own path", '<rect x="4.5" y="3.5" width="9" height="9" fill="none" stroke="var(--p1)" stroke-width="1.6"/>'],
  ["the first byte that is missing", '<rect x="4" y="3" width="10" height="10" fill="none" stroke="var(--bad)" stroke-width="2.2"/>'],
];

export function signs(list) {
  list.replaceChildren(...SIGNS.map(([text, shape]) => {
    const item = document.createElement("li");
    item.innerHTML = `<svg viewBox="0 0 18 16" aria-hidden="true">${shape}</svg>`;
    item.append(text);
    return item;
  }));
}
