//! Head-of-line waits: bytes that came wait for bytes before them that did not.

use anabranch_units::{Duration, Instant, Range, RangeSet};

/// Most separate ranges held; of more, the lowest hole counts as filled.
const MOST_RANGES: usize = 1 << 16;

/// A stream as its receiver has it, and how long it waited for which path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    next: u64,
    /// Above `next`: the out-of-order queue.
    held: RangeSet,
    since: Option<Instant>,
    /// Waits that the bytes of each path ended, and how long they had lasted.
    pub by: Vec<(u64, Duration)>,
    pub longest: Option<Wait>,
    /// Greatest number of bytes out of order, and when.
    pub peak: (u64, Option<Instant>),
    /// Bytes that came a second time.
    pub duplicate: u64,
    /// Byte nanoseconds out of order, until `last`.
    area: u128,
    last: Instant,
}

/// One wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub from: Instant,
    pub lasted: Duration,
    /// The path that brought the missing bytes.
    pub path: usize,
}

impl Waits {
    /// First byte that has not come.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes came on a path; true if more of the stream is in order than before.
    pub fn arrived(&mut self, now: Instant, path: usize, data: Range) -> bool {
        self.area += u128::from(self.held.bytes()) * u128::from(now.since(self.last).as_nanos());
        self.last = now;
        let fresh = Range::new(data.start.max(self.next), data.end);
        let in_order = fresh.start == self.next && self.held.is_empty();
        let new = if in_order { fresh.len() } else { self.held.insert(fresh) };
        self.duplicate += data.len().saturating_sub(new);
        let before = self.next;
        self.next = match self.held.first() {
            _ if in_order => self.next.max(fresh.end),
            Some(first) if first.start == self.next => {
                self.held.remove(first);
                first.end
            }
            Some(first) if self.held.count() > MOST_RANGES => first.start,
            _ => self.next,
        };
        let went_on = self.next > before;
        if went_on && let Some(from) = self.since.take() {
            self.end(Wait { from, lasted: now.since(from), path });
        }
        if self.since.is_none() && !self.held.is_empty() {
            self.since = Some(now);
        }
        if self.held.bytes() > self.peak.0 {
            self.peak = (self.held.bytes(), Some(now));
        }
        went_on
    }

    fn end(&mut self, wait: Wait) {
        if self.by.len() <= wait.path {
            self.by.resize(wait.path + 1, Default::default());
        }
        let (count, time) = &mut self.by[wait.path];
        *count += 1;
        *time += wait.lasted;
        if self.longest.is_none_or(|longest| wait.lasted > longest.lasted) {
            self.longest = Some(wait);
        }
    }

    /// A wait that never ended: since when.
    pub fn open(&self) -> Option<Instant> {
        self.since
    }

    /// Mean of the bytes out of order over `span`.
    pub fn mean(&self, span: Duration) -> f64 {
        if span.is_zero() { 0.0 } else { self.area as f64 / span.as_nanos() as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_laid_to_the_path_that_ends_it() {
        let at = Instant::from_millis;
        let mut waits = Waits::default();
        assert!(waits.arrived(at(0), 0, Range::new(0, 10)));
        assert!(!waits.arrived(at(10), 0, Range::new(20, 30)));
        assert!(!waits.arrived(at(15), 0, Range::new(40, 50)));
        assert!(waits.arrived(at(40), 1, Range::new(10, 20)));
        assert_eq!((waits.next(), waits.held.bytes()), (30, 10));
        assert!(waits.arrived(at(60), 0, Range::new(25, 40)));
        assert_eq!(waits.by, [(1, Duration::from_millis(20)), (1, Duration::from_millis(30))]);
        assert_eq!(waits.longest, Some(Wait { from: at(10), lasted: Duration::from_millis(30), path: 1 }));
        assert_eq!((waits.peak, waits.duplicate, waits.open()), ((20, Some(at(15))), 5, None));
        // 10 bytes for 5 ms, 20 for 25, 10 for 20
        assert_eq!(waits.mean(Duration::from_millis(50)), 15.0);
    }
}
