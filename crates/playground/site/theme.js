// Light and dark: as the system says, or as the reader chose. The report in its frame has the same choice.

const NAMES = { auto: "like the system", light: "light", dark: "dark" };
const KEY = "anabranch-theme";

export function chosen() {
  try { return localStorage.getItem(KEY) || "auto"; } catch { return "auto"; }
}

function apply(choice, button) {
  if (choice === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
  button.textContent = `Theme: ${NAMES[choice]}`;
  document.dispatchEvent(new Event("themechange"));
}

export function followTheme(button) {
  apply(chosen(), button);
  button.onclick = () => {
    const order = Object.keys(NAMES);
    const next = order[(order.indexOf(chosen()) + 1) % order.length];
    try { localStorage.setItem(KEY, next); } catch { /* a browser may forbid it */ }
    apply(next, button);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
}

// The colours of a canvas, which knows no variables.
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of("ink"), soft: of("soft"), line: of("line"), tint: of("tint"), page: of("page"), raised: of("raised"), bad: of("bad"),
    paths: [0, 1, 2, 3, 4, 5].map((i) => of(`p${i}`)) };
}
