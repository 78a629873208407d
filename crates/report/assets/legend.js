// Legends: one entry a name, drawn as the charts draw it.

const symbols = {
  circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle, diamond: d3.symbolDiamond,
  star: d3.symbolStar, wye: d3.symbolWye, cross: d3.symbolCross,
};

// One entry's sign; `line` draws the dash too.
function sample(style, line) {
  const colour = `var(--c${style.colour})`;
  const svg = d3.create("svg").attr("width", line ? 34 : 14).attr("height", 14).attr("aria-hidden", "true");
  const middle = line ? 17 : 7;
  if (line) {
    svg.append("line").attr("x1", 0).attr("x2", 34).attr("y1", 7).attr("y2", 7)
      .attr("stroke", colour).attr("stroke-width", 2).attr("stroke-dasharray", style.dash || null);
  }
  if (line !== "bare") {
    svg.append("path").attr("d", d3.symbol(symbols[style.symbol], 55)()).attr("transform", `translate(${middle},7)`)
      .attr("fill", style.filled ? colour : "var(--page)").attr("stroke", colour).attr("stroke-width", 1.5);
  }
  return svg.node();
}

// `entries`: [text, node].
function legend(place, entries) {
  place.replaceChildren(...entries.map(([text, sign]) => {
    const entry = document.createElement("span");
    entry.append(sign, text);
    return entry;
  }));
}

function ownSign(draw) {
  const svg = d3.create("svg").attr("width", 22).attr("height", 14).attr("aria-hidden", "true");
  draw(svg);
  return svg.node();
}

const publishedSign = () => ownSign((svg) => svg.append("path").attr("d", "M11,2L16,7L11,12L6,7Z")
  .attr("fill", "var(--page)").attr("stroke", "var(--ink)").attr("stroke-width", 1.5));
