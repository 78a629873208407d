// Where many packets share a row of pixels: a sheet of whole pixels that holds what one layer draws, and gives it back as runs of
// pixels in a row. A pixel that many packets cover is drawn once, and costs no more than one that a single packet covers.
function pixelSheet(wide, high) {
  const covered = new Uint8Array(wide * high), left = new Int32Array(high).fill(wide), right = new Int32Array(high);
  // What was covered last: most packets lie where the one before them lies.
  let [a, b, top, bottom] = [0, 0, 0, 0];
  const within = (value, most) => (value > most ? most : value > 0 ? (value + 0.5) | 0 : 0);
  return {
    // The box between these edges, at least a pixel wide and high.
    cover(x0, x1, y0, y1) {
      const from = within(x0, wide), until = Math.max(within(x1, wide), Math.min(from + 1, wide));
      const first = within(y0, high), last = Math.max(within(y1, high), Math.min(first + 1, high));
      if (first === top && last === bottom && from >= a && until <= b) return;
      [a, b, top, bottom] = [from, until, first, last];
      for (let y = first; y < last; y++) {
        covered.fill(1, y * wide + from, y * wide + until);
        if (from < left[y]) left[y] = from;
        if (until > right[y]) right[y] = until;
      }
    },
    // Calls `run(x, y, width)` for each run, and leaves the sheet blank.
    take(run) {
      for (let y = 0; y < high; y++) {
        const row = y * wide, end = row + right[y];
        for (let at = row + left[y]; at < end;) {
          if (!covered[at]) { at++; continue; }
          const begin = at;
          while (at < end && covered[at]) covered[at++] = 0;
          run(begin - row, y, at - begin);
        }
        left[y] = wide;
        right[y] = 0;
      }
      [a, b, top, bottom] = [0, 0, 0, 0];
    },
  };
}

// A linear scale as [at zero, per unit]: of a hundred thousand packets, a scale's own arithmetic is seen.
function coefficients(scale, times = 1) {
  const [a, b] = scale.domain(), [low, high] = scale.range(), slope = (high - low) / (b - a);
  return [(low - a * slope) * times, slope * times];
}

const middle = (packets, i) => (packets.data[i] + packets.size[i] / 2) / 1e6;

// A stroke's packets of one path by sixteens: the edges of what is drawn of them, in seconds and megabytes, and how far the beginnings
// and the ends of their lines lie apart.
function sixteens(packets, { of, from, to }) {
  const blocks = [];
  for (let first = 0; first < of.length; first += 16) {
    const until = Math.min(first + 16, of.length), data = of.slice(first, until).map((i) => middle(packets, i));
    const [from0, from1] = d3.extent(from.slice(first, until)), [to0, to1] = d3.extent(to.slice(first, until)), [low, high] = d3.extent(data);
    blocks.push({ first, until, from: from0, to: to1, low, high, apart: Math.max(from1 - from0, to1 - to0) });
  }
  return blocks;
}

// Covers what a stroke draws of one path between two times: sixteen packets at once where they share a pixel. `x`, `y` = coefficients
// in pixels of the sheet; `wide`, `high` = half of what a mark needs.
function coverAll(sheet, packets, list, [begin, until], x, y, wide, high) {
  const cover = (from, to, low, up) => sheet.cover(x[0] + from * x[1] - wide, x[0] + to * x[1] + wide, y[0] + up * y[1] - high, y[0] + low * y[1] + high);
  list.blocks ??= sixteens(packets, list);
  for (const block of list.blocks) {
    if (block.from > until || block.to < begin) continue;
    if (block.apart * x[1] < 1 && (block.low - block.high) * y[1] < 1) cover(block.from, block.to, block.low, block.high);
    else for (let k = block.first; k < block.until; k++) {
      const data = middle(packets, list.of[k]);
      cover(list.from[k], list.to[k], data, data);
    }
  }
}
