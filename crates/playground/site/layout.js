// Where everything in the picture is, for a width in CSS pixels. Pipes are as long as their delay and as thick as their rate, queues as
// wide as their room, each to a square-root scale, so that small ones stay visible.

const part = (value, most) => (most > 0 ? Math.sqrt(value / most) : 0);

export function layout(width, shapes) {
  const narrow = width < 640;
  // Where the values of a lane take a second row.
  const rows = narrow || width < 860 ? 2 : 1;
  const lane = narrow ? 158 : rows > 1 ? 150 : 116;
  const top = narrow ? 44 : 12;
  const lanes = top + lane * shapes.length;
  const client = narrow
    ? { x: 12, y: lanes + 30, width: width - 24, height: 88 }
    : { x: width - 202, y: top + 34, width: 186, height: Math.max(112, lane * shapes.length - 74) };
  const height = narrow ? client.y + client.height + 14 : Math.max(lanes, client.y + client.height + 40) + 4;
  const [from, to] = narrow ? [14, width - 16] : [104, width - 226];
  const most = (name) => Math.max(...shapes.map((shape) => shape[name]));
  const [queue, delay, rate] = [most("queue_bytes"), most("delay_s"), most("rate_bps")];
  const room = (to - from) * 0.34;
  const paths = shapes.map((shape, i) => {
    const y = top + lane * i + (narrow ? 106 : rows > 1 ? 100 : 66);
    const thick = 12 + 20 * part(shape.rate_bps, rate);
    const wide = Math.max(24, room * (0.16 + 0.84 * part(shape.queue_bytes, queue)));
    const begin = from + wide + 10;
    const long = (to - from - room - 10) * (0.2 + 0.8 * part(shape.delay_s, delay));
    return { y, thick, queue: { x: from, width: wide, height: 34 }, pipe: { x: begin, width: long }, end: to, top: top + lane * i };
  });
  return { narrow, width, height, lane, paths, client, server: { x: 14, y: narrow ? 8 : lanes / 2 - 18 }, from };
}
