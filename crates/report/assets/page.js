// The page: draws each figure when it can be seen, and again when its place or the theme changes.

const drawn = new Map();

function draw(figure) {
  const chart = JSON.parse(figure.querySelector("script").textContent);
  const place = figure.querySelector(".chart");
  const parts = { chart: place, legend: figure.querySelector(".legend"), remarks: figure.querySelector(".remarks") };
  parts.remarks.textContent = "";
  place.classList.add(chart.kind);
  if (chart.kind === "timeline") {
    drawn.set(figure, { width: place.clientWidth });
    timeline(chart, parts);
    return;
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

const visible = (figure) => !figure.closest("details:not([open])");

function drawAll(changed) {
  for (const figure of document.querySelectorAll("figure[id]")) {
    if (visible(figure) && (!drawn.has(figure) || changed(drawn.get(figure), figure))) draw(figure);
  }
}

// Tables that are wider than the page say so.
function tellWidth() {
  for (const box of document.querySelectorAll(".wide")) box.toggleAttribute("data-more", box.scrollWidth > box.clientWidth + 1);
}

// Charts over time that show other times or names than the others do.
const stale = (was) => was.version != null && was.version !== overTime.version;
const resized = (was, figure) => was.width !== figure.querySelector(".chart").clientWidth;

function saveFigure(figure) {
  const svgs = figure.querySelectorAll(".chart svg:not([aria-hidden])");
  if (figure.querySelector(".chart.timeline")) {
    save(`${figure.id}.svg`, figure.querySelector(".stage").drawing(), "image/svg+xml");
    return;
  }
  svgs.forEach((svg, i) => save(`${figure.id}${svgs.length > 1 ? `-${i + 1}` : ""}.svg`, exported(svg), "image/svg+xml"));
}

async function copy(button) {
  const text = decodeBase64(button.dataset.from.split(",")[1]);
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

const decodeBase64 = (text) => new TextDecoder().decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));

theme.apply(theme.chosen());
document.getElementById("theme").addEventListener("click", theme.next);
document.addEventListener("click", (event) => {
  if (event.target.matches("button.svg")) saveFigure(event.target.closest("figure"));
  if (event.target.matches("button.copy")) copy(event.target);
});
document.addEventListener("toggle", () => { drawAll(stale); tellWidth(); }, true);
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
drawAll(() => true);
tellWidth();
document.documentElement.dataset.ready = "yes";
