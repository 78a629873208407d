// Light and dark: as the system says, or as the reader chose.

const shared = JSON.parse(document.getElementById("data").textContent);

const theme = {
  names: { auto: "like the system", light: "light", dark: "dark" },

  chosen() {
    try { return localStorage.getItem("anabranch-theme") || "auto"; } catch { return "auto"; }
  },

  apply(choice) {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    document.getElementById("theme").textContent = `Theme: ${theme.names[choice]}`;
    document.dispatchEvent(new Event("themechange"));
  },

  next() {
    const order = ["auto", "light", "dark"];
    const choice = order[(order.indexOf(theme.chosen()) + 1) % order.length];
    try { localStorage.setItem("anabranch-theme", choice); } catch { /* a browser may forbid it */ }
    theme.apply(choice);
  },
};

// A colour as it is now, for canvas, which knows no variables.
function resolved(colour) {
  const name = /^var\((--[\w-]+)\)$/.exec(colour);
  return name ? getComputedStyle(document.documentElement).getPropertyValue(name[1]).trim() : colour;
}

const styleOf = (name) => shared.styles[name] ?? { colour: 6, symbol: "circle", dash: "", filled: true };
const colourOf = (name) => `var(--c${styleOf(name).colour})`;

// An SVG element as a file of its own: the light theme's colours, no variables.
function exported(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  copy.setAttribute("color", "#1b1f24");
  const text = new XMLSerializer().serializeToString(copy);
  return text
    .replace(/var\(--c(\d+)\)/g, (_, i) => shared.light[i])
    .replace(/var\(--(page|plot-background)\)/g, shared.light.at(-1))
    .replace(/var\(--ink\)/g, "#1b1f24")
    .replace(/var\(--soft\)/g, "#57606a")
    .replace(/var\(--line\)/g, "#d4d9df");
}

function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text].flat(), { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
