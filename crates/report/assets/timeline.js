// The packet timeline: time across, data upwards, a panel per path. Wheel, drag, pinch, keys, buttons and the overview all move one window.

function timeline(chart, place) {
  const packets = readPackets(chart), paths = chart.paths;
  const margin = { left: 56, right: 10, top: 8, bottom: 34 };
  const panel = Math.max(110, Math.min(300, 440 / Math.max(1, paths.length))), gap = 22;
  const width = place.chart.clientWidth, height = margin.top + margin.bottom + paths.length * panel;
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const begin = packets.length ? d3.min(packets.sent) : 0;
  const end = Math.max(begin + 1e-6, Math.min(chart.duration_s, d3.max(packets.end) ?? chart.duration_s));
  const whole = d3.scaleLinear([begin, end], [0, inner.width]);
  const pathName = (i) => paths[i] ?? "?";
  const drawn = drawnBy(packets, paths.length);
  const latest = packets.end.slice();
  for (let i = 1; i < latest.length; i++) latest[i] = Math.max(latest[i], latest[i - 1]);
  timelineLegend(place.legend, paths);

  const box = d3.select(place.chart);
  box.selectAll("*").remove();
  const keys = box.append("div").attr("class", "keys");
  const stage = box.append("div").attr("class", "stage").attr("tabindex", 0).attr("role", "application")
    .attr("aria-label", `Packet timeline. ${place.chart.dataset.words} Keys: plus and minus zoom, left and right move, up and down go from packet to packet, Home shows all.`)
    .style("height", `${height}px`);
  const canvas = stage.append("canvas").style("left", `${margin.left}px`).style("top", `${margin.top}px`);
  const svg = stage.append("svg").attr("width", width).attr("height", height).attr("aria-hidden", "true").style("position", "relative");
  const across = svg.append("g").attr("transform", `translate(${margin.left},${height - margin.bottom})`);
  const upwards = paths.map((name, path) => {
    const group = svg.append("g").attr("transform", `translate(${margin.left},${margin.top})`);
    svg.append("text").attr("x", margin.left + 4).attr("y", margin.top + path * panel + 12).attr("fill", colourOf(name))
      .attr("font-size", 12).attr("font-weight", 600).text(name);
    return group;
  });
  // An SVG of its own cuts off what lies outside.
  const marked = svg.append("svg").attr("x", margin.left).attr("y", margin.top).attr("width", inner.width).attr("height", inner.height)
    .style("overflow", "hidden");
  svg.append("text").attr("x", margin.left + inner.width / 2).attr("y", height - 2).attr("text-anchor", "middle")
    .attr("fill", "currentColor").attr("font-size", 12).text("time, s");
  svg.append("text").attr("x", 2).attr("y", 11).attr("fill", "currentColor").attr("font-size", 12).text("data, MB");
  const told = box.append("p").attr("class", "told").attr("aria-live", "polite")
    .text(`Point at a packet, or go from one to the next with the arrow keys.${packets.decisions ? " Click it: why this path?" : ""}`);

  let x = whole, ys = paths.map(() => d3.scaleLinear()), seen = [], chosen = -1, cause = -1, sheet = null;

  // The packets within the window, and the scale that they need.
  function look() {
    const [from, to] = x.domain();
    seen = [];
    let low = Infinity, high = -Infinity;
    for (let i = d3.bisectLeft(latest, from); i < packets.length && packets.sent[i] <= to; i++) {
      if (packets.end[i] < from) continue;
      seen.push(i);
      low = Math.min(low, packets.data[i]);
      high = Math.max(high, packets.data[i] + packets.size[i]);
    }
    const domain = seen.length ? [low / 1e6, high / 1e6] : [0, 1];
    ys = paths.map((_, path) => d3.scaleLinear(domain, [(path + 1) * panel - 6, path * panel + gap]));
  }

  const straight = (scale) => {
    const [zero, slope] = coefficients(scale);
    return (value) => zero + value * slope;
  };
  const heights = () => {
    const up = ys.map(straight);
    return (i) => up[packets.path[i]](middle(packets, i));
  };
  const heightOf = (i) => heights()(i);
  const rowHeight = () => (seen.length ? Math.abs(ys[0](packets.size[seen[0]] / 1e6) - ys[0](0)) : 1);

  // One layer of one path: lines into `pen`.
  function trace(pen, layer, path) {
    const { of, latest } = drawn.get(layer.draw)[path], [from, to] = x.domain(), across = straight(x), height = heights();
    for (let k = d3.bisectLeft(latest, from); k < of.length && packets.sent[of[k]] <= to; k++) {
      if (packets.end[of[k]] >= from) layer.draw(pen, packets, of[k], across, height(of[k]), layer.mark);
    }
  }

  // The same onto a sheet of pixels, `scale` to a unit of length.
  function cover(onto, layer, path, scale) {
    const [wide, high] = [layer.mark ? layer.width / 2 : 0, layer.mark ?? layer.width / 2].map((half) => half * scale);
    coverAll(onto, packets, drawn.get(layer.draw)[path], x.domain(), coefficients(x, scale), coefficients(ys[path], scale), wide, high);
  }

  const isDense = (layer) => layer.along && rowHeight() < 1;

  function paint() {
    const scale = devicePixelRatio || 1, [wide, high] = [inner.width, inner.height].map((side) => Math.round(side * scale));
    // A canvas that gets a size gets new memory.
    if (canvas.property("width") !== wide || canvas.property("height") !== high) {
      canvas.attr("width", wide).attr("height", high).style("width", `${inner.width}px`).style("height", `${inner.height}px`);
      sheet = pixelSheet(wide, high);
    }
    const pen = canvas.node().getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, wide, high);
    eachStroke(rowHeight(), paths, (layer, path) => {
      pen.fillStyle = pen.strokeStyle = resolved(layer.ink ? "var(--ink)" : colourOf(paths[path]));
      pen.globalAlpha = layer.opacity;
      if (isDense(layer)) {
        cover(sheet, layer, path, scale);
        sheet.take((left, top, length) => pen.fillRect(left, top, length, 1));
        return;
      }
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.beginPath();
      trace(pen, layer, path);
      pen.lineWidth = layer.width;
      pen.setLineDash(layer.dash);
      pen.stroke();
      pen.setTransform(1, 0, 0, 1, 0, 0);
    });
    mark();
  }

  function axes() {
    across.call(d3.axisBottom(x).ticks(Math.max(3, width / 110)));
    upwards.forEach((group, path) => group.call(d3.axisLeft(ys[path]).ticks(Math.max(2, panel / 45))));
  }

  // The chosen packet, and the one that it waited for.
  function mark() {
    marked.selectAll("*").remove();
    for (const [i, dash] of [[chosen, null], [cause, "3 3"]]) {
      if (i < 0 || packets.sent[i] > x.domain()[1] || packets.end[i] < x.domain()[0]) continue;
      marked.append("circle").attr("cx", x(packets.sent[i])).attr("cy", heightOf(i)).attr("r", 5).attr("stroke-dasharray", dash);
      marked.append("line").attr("x1", x(packets.sent[i])).attr("x2", x(packets.end[i]))
        .attr("y1", heightOf(i)).attr("y2", heightOf(i)).attr("stroke-dasharray", dash);
    }
    if (cause >= 0 && chosen >= 0) {
      // From the arrival that filled the gap to the packet that it set free.
      const at = x(packets.arrived[cause]);
      marked.append("line").attr("x1", at).attr("x2", at).attr("y1", heightOf(cause)).attr("y2", heightOf(chosen)).attr("stroke-dasharray", "3 3");
    }
    marked.selectAll("*").attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 2);
  }

  function tell(i, withCause = false) {
    chosen = i;
    cause = withCause && i >= 0 ? blocker(packets, i) : -1;
    const names = paths.map((_, p) => pathName(p));
    if (i >= 0) told.text(packetInWords(packets, names, i) + (cause < 0 ? "" : `. It waited for ${packetInWords(packets, names, cause)} (dashed).`));
    mark();
  }

  // The packet, what it waited for, and why it took this path.
  function choose(i) {
    tell(i, true);
    if (i < 0 || !packets.decisions) return;
    const { seen, ...own } = packets.decisions;
    const title = Object.assign(document.createElement("p"), { className: "group", textContent: `Why ${pathName(packets.path[i])}? (${sendingInWords(packets, i)})` });
    why.node().replaceChildren(title, ...whyThisPath({ seen: seen(i), first: packets.why[i] === "first", path: packets.path[i],
      scheduler: "the scheduler", names: { paths, ...own } }));
  }

  const zoom = d3.zoom().scaleExtent([1, 20000]).extent([[0, 0], [inner.width, inner.height]])
    .translateExtent([[0, 0], [inner.width, inner.height]]).on("zoom", (event) => {
      x = event.transform.rescaleX(whole);
      look();
      axes();
      requestAnimationFrame(paint);
      overview.follow(x.domain());
      stage.attr("data-from", x.domain()[0]).attr("data-to", x.domain()[1]).attr("data-seen", seen.length);
    }).on("end", () => place.chart.dispatchEvent(new Event("windowchange", { bubbles: true })));

  const pad = svg.append("rect").attr("x", margin.left).attr("y", margin.top).attr("width", inner.width).attr("height", inner.height)
    .attr("fill", "transparent").style("cursor", "grab");
  pad.call(zoom).on("dblclick.zoom", null).on("dblclick", () => pad.call(zoom.transform, d3.zoomIdentity));
  pad.on("pointermove", (event) => tell(nearest(d3.pointer(event, pad.node()))));
  pad.on("click", (event) => choose(nearest(d3.pointer(event, pad.node()))));

  // The packet whose line is nearest to the pointer, within 12 pixels.
  function nearest([px, py]) {
    const [at, up] = [px - margin.left, py - margin.top];
    let best = -1, least = 12;
    const across = straight(x), height = heights(), until = x.invert(at + least);
    for (let i = d3.bisectLeft(latest, x.invert(at - least)); i < packets.length && packets.sent[i] <= until; i++) {
      const left = across(packets.sent[i]), right = across(packets.end[i]);
      const distance = Math.hypot(Math.max(0, left - at, at - right), height(i) - up);
      if (distance < least) { least = distance; best = i; }
    }
    return best;
  }

  function show([from, to]) {
    const k = inner.width / (whole(to) - whole(from));
    pad.call(zoom.transform, d3.zoomIdentity.scale(k).translate(-whole(from), 0));
  }
  const overview = timelineOverview(box, { width, margin, inner, whole, packets }, show);
  // Read on request: a screen reader says the sentence about each packet already.
  const why = box.append("div").attr("class", "why").attr("role", "region").attr("aria-label", "Why this path?");

  // To the first of `places` after the chosen packet, with what happens around it.
  function jump(places) {
    const next = places.find((i) => i > chosen) ?? places[0];
    const near = Math.max(0.02, packets.end[next] - packets.sent[next]);
    show([Math.max(begin, packets.sent[next] - 0.4 * near), Math.min(end, packets.end[next] + 0.4 * near)]);
    choose(next);
  }

  function step(direction) {
    if (!seen.length) return;
    const at = seen.indexOf(chosen);
    choose(seen[at < 0 ? 0 : Math.max(0, Math.min(seen.length - 1, at + direction))]);
  }

  const moves = {
    "+": () => pad.call(zoom.scaleBy, 1.6), "=": () => pad.call(zoom.scaleBy, 1.6), "-": () => pad.call(zoom.scaleBy, 1 / 1.6),
    ArrowLeft: () => pad.call(zoom.translateBy, inner.width / 5 / d3.zoomTransform(pad.node()).k, 0),
    ArrowRight: () => pad.call(zoom.translateBy, -inner.width / 5 / d3.zoomTransform(pad.node()).k, 0),
    ArrowUp: () => step(1), ArrowDown: () => step(-1),
    Home: () => pad.call(zoom.transform, d3.zoomIdentity),
  };
  stage.on("keydown", (event) => {
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  });
  for (const [text, key] of zoomButtons) keys.append("button").attr("type", "button").text(text).on("click", moves[key]);
  for (const [text, places] of sights(packets)) {
    const count = places.length > 1 ? ` (${places.length})` : "";
    keys.append("button").attr("type", "button").attr("class", "jump").text(`${text}${count}`).on("click", () => jump(places));
  }

  // The window as SVG, with the same strokes as on canvas.
  function drawing() {
    const copy = svg.node().cloneNode(true);
    copy.removeAttribute("style");
    const clip = d3.select(copy).insert("clipPath", ":first-child").attr("id", "window");
    clip.append("rect").attr("width", inner.width).attr("height", inner.height);
    const group = d3.select(copy).append("g").attr("transform", `translate(${margin.left},${margin.top})`).append("g").attr("clip-path", "url(#window)");
    eachStroke(rowHeight(), paths, (layer, path) => {
      const pen = d3.pathRound(2), colour = layer.ink ? "var(--ink)" : colourOf(paths[path]);
      if (isDense(layer)) {
        const own = pixelSheet(Math.ceil(inner.width), Math.ceil(inner.height));
        cover(own, layer, path, 1);
        own.take((left, top, length) => pen.rect(left, top, length, 1));
        group.append("path").attr("d", pen.toString()).attr("fill", colour).attr("fill-opacity", layer.opacity);
        return;
      }
      trace(pen, layer, path);
      group.append("path").attr("d", pen.toString()).attr("fill", "none").attr("stroke", colour)
        .attr("stroke-width", layer.width).attr("stroke-opacity", layer.opacity).attr("stroke-dasharray", layer.dash.join(" ") || null);
    });
    return exported(copy);
  }
  Object.assign(stage.node(), { paint, drawing, packets, paths });
  pad.call(zoom.transform, d3.zoomIdentity);
}

function timelineLegend(place, paths) {
  const bar = (thick, dash) => ownSign((svg) => svg.append("line").attr("x1", 0).attr("x2", 22).attr("y1", 7).attr("y2", 7)
    .attr("stroke", "currentColor").attr("stroke-width", thick).attr("stroke-dasharray", dash));
  const swatch = (name) => ownSign((svg) => svg.append("rect").attr("width", 22).attr("height", 8).attr("y", 3).attr("fill", colourOf(name)));
  const shape = (d) => ownSign((svg) => svg.append("path").attr("d", d).attr("fill", "none").attr("stroke", "currentColor").attr("stroke-width", 1.6));
  legend(place, [
    ...paths.map((name) => [name, swatch(name)]),
    ["bound, not sent yet", bar(1, "1 3")], ["sent", shape("M11,1L11,13")], ["on the way", bar(1.5, null)], ["arrived, waits in its subflow", bar(4, null)], ["waits in the OFO queue", bar(7, null)],
    ["retransmitted or copied", shape("M11,2L16,11L6,11Z")], ["lost", shape("M7,3L15,11M7,11L15,3")],
  ]);
}

// Below: bytes that wait at the receiver over the whole time, with a window to drag.
function timelineOverview(box, { width, margin, inner, whole, packets }, moved) {
  const height = 54;
  const svg = box.append("svg").attr("class", "overview").attr("width", width).attr("height", height)
    .attr("role", "img").attr("aria-label", "Bytes that waited at the receiver over the whole time");
  const group = svg.append("g").attr("transform", `translate(${margin.left},4)`);
  const [steps, queued] = [waitingBytes(packets, packets.arrived), waitingBytes(packets, packets.ordered)];
  const kib = (bytes) => number.format(bytes / 1024);
  const most = (list) => d3.max(list, (step) => step[1]) || 0;
  const y = d3.scaleLinear([0, most(steps) || 1], [height - 4, 0]);
  const area = d3.area().curve(d3.curveStepAfter).x((step) => whole(step[0])).y0(y(0)).y1((step) => y(step[1])).digits(1);
  group.append("path").attr("d", area(steps)).attr("fill", "var(--soft)").attr("fill-opacity", 0.35);
  group.append("path").attr("d", area(queued)).attr("fill", "var(--soft)").attr("fill-opacity", 0.55);
  group.append("line").attr("x2", inner.width).attr("y1", y(0)).attr("y2", y(0)).attr("stroke", "var(--line)");
  box.append("p").attr("class", "strip").style("padding-left", `${margin.left}px`)
    .text(`Waiting at the receiver: ${kib(most(steps))} KiB at most; of these in the connection's out-of-order queue (OFO, dark) `
      + `${kib(most(queued))} KiB at most, the others behind gaps of their subflows (pale). Drag here to choose a time.`);
  const brush = d3.brushX().extent([[0, 0], [inner.width, height - 4]]).on("brush end", (event) => {
    if (!event.sourceEvent) return;
    moved(event.selection && event.selection[1] > event.selection[0] ? event.selection.map(whole.invert) : whole.domain());
  });
  const handle = group.append("g").call(brush);
  return { follow: (domain) => handle.call(brush.move, domain.map(whole)) };
}
