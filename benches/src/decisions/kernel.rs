//! The least that the rule of `playahead` takes: a look at each path per round and at one per segment, and for each segment the comparisons
//! and divisions, over numbers that lie ready. No path is read or checked, no backlog searched, nothing bound.

const SEGMENT: f64 = 1400.0;

/// A path's numbers: bytes, bytes per second, seconds.
#[derive(Clone, Copy)]
struct Way {
    out: u64,
    rate: f64,
    base: f64,
    delay: f64,
    window: f64,
    free: f64,
    room: u32,
    first: f64,
    step: f64,
    next_free: f64,
}

/// The lesser, where neither is NaN: one instruction.
const fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

impl Way {
    /// One of several: near and fast or far and slow in turn, each second pair full.
    fn nth(n: usize) -> Self {
        let (rate, base) = if n.is_multiple_of(2) { (3.1e6, 0.05) } else { (6.2e5, 0.13) };
        let room = if n % 4 < 2 { u32::MAX } else { 0 };
        let (delay, window) = (base / 2.0, rate / 2.0);
        Self { out: 20_000, rate, base, delay, window, free: 0.0, room, first: 0.0, step: 0.0, next_free: 0.0 }
    }

    #[inline(always)]
    fn look(&mut self, now: f64) {
        let out = self.out as i64 as f64 / self.rate;
        let queue = -lesser(-(out - self.base), -lesser(out, self.free - now));
        let queue = -lesser(-queue, 0.0);
        self.step = SEGMENT / if self.room > 0 { self.rate } else { lesser(self.rate, self.window) };
        self.first = queue + self.delay + self.step;
        self.next_free = now + queue + self.step;
    }
}

/// One round, in which `segments` are sent; returns the segments that are skipped.
#[inline(never)]
fn round(ways: &mut [Way], now: f64, segments: usize) -> i64 {
    ways.iter_mut().for_each(|way| way.look(now));
    let mut skipped = 0;
    for _ in 0..segments {
        let (mut on, mut arrival) = (0, f64::INFINITY);
        for (n, way) in ways.iter().enumerate() {
            if way.room > 0 && way.first < arrival {
                (on, arrival) = (n, way.first);
            }
        }
        for way in ways.iter() {
            if way.room == 0 && way.first < arrival {
                skipped += ((arrival - way.first) / way.step) as i64 + 1;
            }
        }
        let Some(way) = ways.get_mut(on) else { break };
        way.free = way.next_free;
        way.out += SEGMENT as u64;
        way.look(now);
    }
    skipped
}

/// `rounds` rounds over `paths` paths in which `segments` are sent, each 2 ms after the one before. Returns all segments that were sent.
pub fn run(paths: usize, rounds: usize, segments: usize) -> usize {
    let mut ways: Vec<Way> = (0..paths).map(Way::nth).collect();
    for n in 0..rounds {
        std::hint::black_box(round(&mut ways, n as f64 * 0.002, segments));
        ways.iter_mut().for_each(|way| way.out = way.out.min(60_000));
    }
    rounds * segments
}
