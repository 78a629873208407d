// Draws a moment of a run on canvas.

import { layout } from "./layout.js";
import { phaseOf } from "./life.js";
import { colours } from "./theme.js";

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.spots = [];
    this.colours = colours();
    document.addEventListener("themechange", () => { this.colours = colours(); });
  }

  // Fits the canvas to its place; the layout, for what stands around it.
  fit(shapes) {
    const width = this.canvas.parentElement.clientWidth;
    this.layout = layout(width, shapes);
    const scale = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.layout.height * scale);
    this.canvas.style.height = `${this.layout.height}px`;
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    return this.layout;
  }

  // `linger` = how long what is lost stays to be seen, in virtual seconds; `acks` = acknowledgments are shown.
  draw({ history, shapes, time, chosen, linger, buffer, acks }) {
    const { pen, layout: place } = this;
    pen.clearRect(0, 0, place.width, place.height);
    this.spots = [];
    shapes.forEach((shape, path) => this.#path(shape, path, history.pathState(path, time)));
    this.acks = 0;
    if (acks) shapes.forEach((_, path) => history.eachAck(path, time, (part, news) => this.#ack(path, part, news)));
    this.#receiver();
    const ahead = shapes.map(() => 0);
    const held = [];
    const [from, to] = history.around(time);
    const delivered = history.bytesBy(time);
    for (let id = from; id < to; id++) {
      const path = history.path.at(id), shape = shapes[path];
      const now = phaseOf(history, id, shape, time, linger);
      if (!now) continue;
      if (now.phase === "ofo" || now.phase === "subflow") held.push([id, now.phase, path]);
      else this.#packet(id, path, shape, now, ahead, history);
    }
    this.#held(held, history, delivered, buffer);
    if (chosen !== null) this.#mark(chosen);
    return { queued: ahead, held: held.reduce((sum, [id]) => sum + history.end.at(id) - history.start.at(id), 0) };
  }

  #path(shape, path, state) {
    const { pen, colours: c } = this;
    const { y, thick, queue, pipe, end } = this.layout.paths[path];
    const down = state > 1;
    pen.globalAlpha = down ? 0.45 : 1;
    pen.strokeStyle = c.soft;
    pen.setLineDash([2, 4]);
    line(pen, pipe.x + pipe.width, y, end, y);
    pen.setLineDash([]);
    pen.fillStyle = c.raised;
    pen.strokeStyle = this.#colour(path);
    pen.lineWidth = 1.5;
    box(pen, queue.x, y - queue.height / 2, queue.width, queue.height, 4);
    box(pen, pipe.x, y - thick / 2, pipe.width, thick, thick / 2);
    pen.lineWidth = 1;
    pen.globalAlpha = 1;
  }

  // Below the pipe, from right to left: a tick, with a diamond around it if it acknowledges data of the connection.
  #ack(path, part, news) {
    const { pen } = this;
    const { y, thick, pipe } = this.layout.paths[path];
    const [x, middle] = [pipe.x + pipe.width * (1 - part), y + thick / 2 + 4];
    pen.strokeStyle = this.#colour(path);
    pen.globalAlpha = 0.75;
    if (news & 1) line(pen, x, middle - 2.5, x, middle + 2.5);
    if (news & 2) {
      pen.beginPath();
      for (const [dx, dy] of [[-3, 0], [0, -3], [3, 0], [0, 3]]) pen.lineTo(x + dx, middle + dy);
      pen.closePath();
      pen.stroke();
    }
    pen.globalAlpha = 1;
    this.acks += 1;
  }

  #colour(path) { return this.colours.paths[path % this.colours.paths.length]; }

  #packet(id, path, shape, { phase, part }, ahead, history) {
    const { pen } = this;
    const { y, thick, queue, pipe } = this.layout.paths[path];
    if (phase === "queue") {
      const size = history.end.at(id) - history.start.at(id) + 60;
      const width = Math.max(1.5, (queue.width - 4) * size / Math.max(size, shape.queue_bytes + size));
      const x = queue.x + queue.width - 2 - (queue.width - 4) * Math.min(1, (ahead[path] + size) / Math.max(size, shape.queue_bytes + size));
      ahead[path] += size;
      this.#fill(path, history.kind.at(id));
      pen.fillRect(x, y - queue.height / 2 + 4, Math.max(1, width - (width > 4 ? 1 : 0)), queue.height - 8);
      this.spots.push([id, x + width / 2, y]);
    } else if (phase === "pipe") {
      const high = Math.max(6, thick - 7);
      const wide = Math.max(1.5, Math.min(12, 0.72 * onTheWay(shape) * pipe.width));
      const x = pipe.x + 3 + wide / 2 + part * (pipe.width - 6 - wide);
      this.#fill(path, history.kind.at(id));
      pen.beginPath();
      pen.roundRect(x - wide / 2, y - high / 2, wide, high, Math.min(3, wide / 2));
      pen.fill();
      this.spots.push([id, x, y]);
    } else {
      const [x, up] = phase === "dropped" ? [queue.x - 2, 10 + 14 * part] : [pipe.x + pipe.width, 6 + 18 * part];
      pen.globalAlpha = 1 - part;
      pen.strokeStyle = this.colours.bad;
      pen.lineWidth = 2.5;
      line(pen, x - 5, y - up - 5, x + 5, y - up + 5);
      line(pen, x - 5, y - up + 5, x + 5, y - up - 5);
      pen.lineWidth = 1;
      pen.globalAlpha = 1;
      this.spots.push([id, x, y - up]);
    }
  }

  // Repeated data has the colour of the text.
  #fill(path, kind) {
    const { pen } = this;
    pen.fillStyle = this.#colour(path);
    if (kind > 0) pen.fillStyle = this.colours.ink;
  }

  #receiver() {
    const { pen, colours: c, layout: { client } } = this;
    pen.fillStyle = c.raised;
    pen.strokeStyle = c.line;
    box(pen, client.x, client.y, client.width, client.height, 6);
  }

  // The receive buffer as a map: it begins with the first byte that is missing, row by row.
  #held(held, history, delivered, buffer) {
    const { pen, layout: { client } } = this;
    for (const [id] of held) history.reach = Math.max(history.reach, history.end.at(id) - delivered);
    const { segment } = history;
    const span = Math.min(buffer, 2 ** Math.ceil(Math.log2(Math.max(64 * segment, history.reach))));
    const inner = { x: client.x + 6, y: client.y + 6, width: client.width - 12, height: client.height - 12 };
    const { side, columns } = cells(inner, span / segment + 1);
    if (held.length) {
      pen.strokeStyle = this.colours.bad;
      pen.lineWidth = 2;
      pen.strokeRect(inner.x + 0.5, inner.y + 0.5, Math.max(4, side - 1.5), Math.max(4, side - 1.5));
      pen.lineWidth = 1;
    }
    for (const [id, phase, path] of held) {
      const cell = Math.round((history.start.at(id) - delivered) / segment);
      const [x, y] = [inner.x + (cell % columns) * side, inner.y + Math.floor(cell / columns) * side];
      if (cell < 0 || y + side > inner.y + inner.height + 1e-6) continue;
      const edge = Math.max(1.5, side - 1);
      pen.fillStyle = pen.strokeStyle = this.#colour(path);
      if (phase === "ofo") pen.fillRect(x, y, edge, edge); else pen.strokeRect(x + 0.5, y + 0.5, edge - 1, edge - 1);
      this.spots.push([id, x + side / 2, y + side / 2]);
    }
  }

  #mark(chosen) {
    const spot = this.spots.find(([id]) => id === chosen);
    if (!spot) return;
    const { pen } = this;
    pen.strokeStyle = this.colours.ink;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(spot[1], spot[2], 13, 0, 7);
    pen.stroke();
    pen.lineWidth = 1;
  }

  // The packet nearest to a place; null if none is near.
  at(x, y) {
    let [best, near] = [null, 22 ** 2];
    for (const [id, px, py] of this.spots) {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < near) [best, near] = [id, distance];
    }
    return best;
  }
}

// Squares of which so many fit into a box, row by row.
function cells({ width, height }, count) {
  let side = 11;
  while (side > 2 && Math.floor(width / side) * Math.floor(height / side) < count) side *= 0.97;
  return { side, columns: Math.floor(width / side) };
}

// The part of the pipe that a full packet fills: its time of transmission over the delay.
const onTheWay = (shape) => (8 * 1500) / Math.max(1, shape.rate_bps) / Math.max(1e-6, shape.delay_s);

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

function box(pen, x, y, width, height, radius) {
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
  pen.fill();
  pen.stroke();
}
