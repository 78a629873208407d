// A run so far, in columns: its packets, what else happened, what the scheduler saw.

const COLUMNS = ["path", "kind", "bound", "sent", "arrived", "ordered", "delivered", "start", "end", "superseded"];

export const NOTE = {
  window: 1, timeout: 2, recovery: 3, path: 4, blocked: 5, value: 6, dropped: 7, penalised: 8, queued: 9, ack: 10,
};

// Grows as needed.
class Column {
  #data = new Float64Array(1024);
  length = 0;

  set(at, value) {
    if (at >= this.#data.length) {
      const more = new Float64Array(2 * Math.max(at, this.#data.length));
      more.set(this.#data);
      this.#data = more;
    }
    this.#data[at] = value;
    this.length = Math.max(this.length, at + 1);
  }

  at(index) { return this.#data[index]; }

  // The first place whose value is above `value`; the values ascend.
  above(value) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#data[middle] > value) high = middle; else low = middle + 1;
    }
    return low;
  }
}

export class History {
  constructor(paths) {
    this.now = 0;
    this.over = false;
    this.count = 0;
    for (const name of [...COLUMNS, "dropped", "cause", "waiting"]) this[name] = new Column();
    // The longest life of a packet, from sending to delivery.
    this.life = 0.1;
    // The greatest distance of data that arrived from the data delivered, in bytes.
    this.reach = 0;
    // The payload of the largest packet, in bytes.
    this.segment = 1;
    this.windows = Array.from({ length: paths }, () => ({ time: new Column(), rows: [] }));
    // Acknowledgments by path, as they reached the server; and the longest of their ways.
    this.acks = Array.from({ length: paths }, () => ({ sent: new Column(), arrived: new Column(), news: new Column() }));
    this.ackLife = 0;
    this.states = Array.from({ length: paths }, () => []);
    this.blocked = { time: new Column(), rows: [] };
    this.value = { time: new Column(), rows: [] };
    this.events = [];
    this.decisions = { time: new Column(), rows: [] };
    this.deliveredBytes = { time: new Column(), bytes: new Column() };
  }

  add(slice) {
    this.now = slice.now;
    this.over = slice.over;
    this.#packets(slice.packets);
    each(slice.notes, (row) => this.#note(row));
    each(slice.decisions, (row) => {
      this.decisions.time.set(this.decisions.rows.length, row[0]);
      this.decisions.rows.push(row);
    });
  }

  #packets(part) {
    each(part, (row) => {
      const id = row[0];
      if (id >= this.count) {
        this.count = id + 1;
        this.dropped.set(id, NaN);
        this.waiting.set(id, 0);
      }
      COLUMNS.forEach((name, i) => this[name].set(id, row[i + 1]));
      const [sent, arrived, delivered] = [row[4], row[5], row[7]];
      this.segment = Math.max(this.segment, row[9] - row[8]);
      if (arrived > 0) this.life = Math.max(this.life, (delivered > 0 ? delivered : arrived) - sent);
    });
    // Packets have the order of sending, which need not be that of the data.
    const delivered = [];
    each(part, (row) => { if (row[7] > 0) delivered.push([row[7], row[9]]); });
    delivered.sort(([time, end], [other, another]) => time - other || end - another);
    for (const [time, end] of delivered) this.#delivered(time, end);
  }

  #delivered(time, end) {
    const { time: times, bytes } = this.deliveredBytes;
    const last = times.length - 1;
    const most = last < 0 ? 0 : bytes.at(last);
    if (end <= most) return;
    if (last >= 0 && times.at(last) >= time) bytes.set(last, end);
    else { times.set(last + 1, time); bytes.set(last + 1, end); }
  }

  #note([what, time, path, a, b, c]) {
    const put = (list, row) => { list.time.set(list.rows.length, time); list.rows.push(row); };
    if (what === NOTE.window) put(this.windows[path], { cwnd: a, inFlight: b, srtt: c });
    else if (what === NOTE.blocked) put(this.blocked, a);
    else if (what === NOTE.value) put(this.value, a);
    else if (what === NOTE.queued) this.waiting.set(a, b);
    else if (what === NOTE.ack) this.#ack(this.acks[path], time, a, b);
    else if (what === NOTE.dropped) { if (a >= 0) { this.dropped.set(a, time); this.cause.set(a, b); } }
    else {
      this.events.push({ what, time, path, a });
      if (what === NOTE.path) this.states[path].push({ time, state: a });
    }
  }

  #ack({ sent, arrived, news }, time, since, what) {
    const at = arrived.length;
    arrived.set(at, time);
    sent.set(at, since);
    news.set(at, what);
    this.ackLife = Math.max(this.ackLife, time - since);
  }

  // Calls `take(part, news)` for each acknowledgment on its way over a path: the part of the way, and 1 for the subflow's, 2 for the
  // connection's, 3 for both.
  eachAck(path, time, take) {
    const { sent, arrived, news } = this.acks[path];
    for (let at = arrived.above(time); at < arrived.length && arrived.at(at) <= time + this.ackLife; at++) {
      if (sent.at(at) <= time) take((time - sent.at(at)) / (arrived.at(at) - sent.at(at)), news.at(at));
    }
  }

  // The newest row of a list at a time.
  static latest(list, time) {
    const at = list.time.above(time) - 1;
    return at < 0 ? null : list.rows[at];
  }

  // Bytes delivered in order by a time.
  bytesBy(time) {
    const at = this.deliveredBytes.time.above(time) - 1;
    return at < 0 ? 0 : this.deliveredBytes.bytes.at(at);
  }

  // Packets that may be seen at a time: from … to, by number.
  around(time) {
    return [this.sent.above(time - this.life - 0.5), this.sent.above(time)];
  }

  // The decision that bound a packet.
  decisionOf(id) {
    const bound = this.bound.at(id);
    let at = this.decisions.time.above(bound + 1e-9) - 1;
    while (at >= 0 && this.decisions.rows[at][1] === 0 && this.decisions.time.at(at) > bound - 1e-9) at -= 1;
    return at >= 0 && Math.abs(this.decisions.time.at(at) - bound) < 1e-9 ? this.decisions.rows[at] : null;
  }

  pathState(path, time) {
    return this.states[path].findLast((one) => one.time <= time)?.state ?? 0;
  }
}

function each({ width, rows }, take) {
  if (!(width >= 1)) throw new Error("a row without numbers");
  for (let at = 0; at < rows.length; at += width) take(rows.subarray(at, at + width));
}
