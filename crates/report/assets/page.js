// The page: draws each figure when it can be seen, and again when its place or the theme changes.

const drawn = new Map();
const packed = new Map();

const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

// A timeline is packed; it is unpacked once.
function unpacked(figure, { deflated }) {
  const inflate = () => new Response(new Blob([bytesOf(deflated)]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
  if (!packed.has(figure)) packed.set(figure, inflate());
  return packed.get(figure);
}

async function drawTimeline(figure, chart, parts) {
  const mine = { width: parts.chart.clientWidth };
  drawn.set(figure, mine);
  try {
    const whole = await unpacked(figure, chart);
    // Unless it is drawn again by now.
    if (drawn.get(figure) === mine) timeline(whole, parts);
  } catch (error) {
    packed.delete(figure);
    parts.remarks.textContent = `The packets cannot be unpacked and drawn (${error.message}). A browser since 2023 can, if the file is whole.`;
  }
}

const chartOf = (figure) => JSON.parse(figure.querySelector("script").textContent);

function draw(figure) {
  const chart = chartOf(figure);
  const place = figure.querySelector(".chart");
  const parts = { chart: place, legend: figure.querySelector(".legend"), remarks: figure.querySelector(".remarks") };
  parts.remarks.textContent = "";
  place.classList.add(chart.kind);
  if (chart.kind === "timeline") {
    return drawTimeline(figure, chart, parts);
  }
  const panels = {
    time_series: () => chart.panels.length,
    bars: () => new Set(chart.bars.map((bar) => bar.group)).size,
    distribution: () => windows(chart.curves).length,
  };
  const single = (panels[chart.kind]?.() ?? 1) < 2;
  place.classList.toggle("one", single);
  // The width of a cell of the grid.
  const columns = getComputedStyle(place).gridTemplateColumns.split(" ").length;
  const width = Math.max(220, Math.floor((place.clientWidth - 24 * (columns - 1)) / columns));
  const views = charts[chart.kind](chart, Math.min(width, 900), parts);
  views.forEach((view) => view.querySelectorAll("svg").forEach(name));
  views.filter((view) => view.tagName === "svg").forEach(name);
  place.replaceChildren(...views);
  drawn.set(figure, { width: place.clientWidth, version: chart.kind === "time_series" ? overTime.version : null });
  showOpenNumbers(figure);

  // A picture has one name. Those that Plot gives its parts say nothing without a role.
  function name(svg) {
    for (const part of svg.querySelectorAll("[aria-label]")) {
      part.dataset.part = part.getAttribute("aria-label");
      part.removeAttribute("aria-label");
    }
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", place.dataset.words);
  }
}

function showOpenNumbers(figure) {
  if (figure.querySelector(".numbers[open]")) showNumbers(figure);
}

const visible = (figure) => !figure.closest("details:not([open])");

function drawAll(changed) {
  const due = [...document.querySelectorAll("figure[id]")].filter((figure) => visible(figure) && (!drawn.has(figure) || changed(drawn.get(figure), figure)));
  return Promise.all(due.map(draw));
}

// Tables that are wider than the page say so.
function tellWidth() {
  for (const box of document.querySelectorAll(".wide")) box.toggleAttribute("data-more", box.scrollWidth > box.clientWidth + 1);
}

// Charts over time that show other times or names than the others do.
const stale = (was) => was.version != null && was.version !== overTime.version;
const resized = (was, figure) => was.width !== figure.querySelector(".chart").clientWidth;

const drawingsOf = (figure) => [...figure.querySelectorAll(".chart svg:not([aria-hidden])")];

// Each panel as a file; LaTeX has the same names.
function saveFigure(figure) {
  const { stem, panels } = figure.dataset;
  const file = (name, text) => save(`${name}.svg`, text, "image/svg+xml");
  if (figure.querySelector(".chart.timeline")) return file(stem, figure.querySelector(".stage").drawing());
  const svgs = drawingsOf(figure), names = svgs.length > 1 ? panels.split(" ") : [stem];
  return svgs.forEach((svg, i) => file(names[i], exported(svg)));
}

// The LaTeX of a chart of several panels, if it is drawn as such.
function latexOf(button) {
  const figure = button.closest("figure"), { from, panels } = button.dataset;
  return decodeBase64((figure && panels && drawingsOf(figure).length > 1 ? panels : from).split(",")[1]);
}

async function copy(button) {
  const text = latexOf(button);
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = "Copying is not allowed here";
  }
  const before = button.textContent;
  button.textContent = done;
  setTimeout(() => { button.textContent = before; }, 1500);
}

const decodeBase64 = (text) => new TextDecoder().decode(bytesOf(text));

theme.apply(theme.chosen());
document.getElementById("theme").addEventListener("click", theme.next);
document.addEventListener("click", (event) => {
  if (event.target.matches("button.svg")) saveFigure(event.target.closest("figure"));
  if (event.target.matches("button.copy")) copy(event.target);
});
document.addEventListener("toggle", ({ target }) => {
  drawAll(stale);
  if (target.matches(".numbers[open]")) showNumbers(target.closest("figure"));
  tellWidth();
}, true);
// A timeline shows other times: at its first drawing, too.
document.addEventListener("windowchange", ({ target }) => showOpenNumbers(target.closest("figure")));
// What is drawn on canvas does not follow the style sheet's variables.
const repaint = () => document.querySelectorAll(".stage").forEach((stage) => stage.paint());
document.addEventListener("themechange", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
// Paper is white.
addEventListener("beforeprint", () => theme.apply("light"));
addEventListener("afterprint", () => theme.apply(theme.chosen()));
let waiting;
new ResizeObserver(() => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { drawAll(resized); tellWidth(); }, 120);
}).observe(document.getElementById("main"));
drawAll(() => true).then(() => {
  tellWidth();
  document.documentElement.dataset.ready = "yes";
});
