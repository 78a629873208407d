//! Timestamps (RFC 7323).

use anabranch_units::{Duration, Instant};
use anabranch_wire::Timestamps;

/// One tick of our timestamp clock, as Linux has it.
const TICK: u64 = 1_000_000;
/// Ticks after which a value of an idle peer is too old to judge by (RFC 7323 §5.5): 24 days.
const STALE: Duration = Duration::from_secs(24 * 86_400);

/// The timestamp clock and what the peer's clock said.
#[derive(Debug)]
pub(crate) struct Stamps {
    /// `TS.Recent` and when it was taken.
    recent: Option<(u32, Instant)>,
}

/// RFC 7323 §5.5: a value of long ago does not count. Apart, so that a segment in order does not pay for it.
#[cold]
#[inline(never)]
fn is_fresh(at: Instant, now: Instant) -> bool {
    now.since(at) < STALE
}

impl Stamps {
    pub fn new() -> Self {
        Self { recent: None }
    }

    /// Our clock now, in ticks. It starts at 1. A zero echo means that there is none: it is one of ours in only one tick of
    /// 49.7 days.
    pub fn clock(now: Instant) -> u32 {
        ((now.as_nanos() / TICK) as u32).wrapping_add(1)
    }

    /// The option to send now.
    pub fn option(&self, now: Instant) -> Timestamps {
        Timestamps { val: Self::clock(now), ecr: self.recent.map_or(0, |(val, _)| val) }
    }

    /// PAWS: true if the segment is old (RFC 7323 §5.3 R1).
    #[inline(always)]
    pub fn is_old(&self, stamps: Timestamps, now: Instant) -> bool {
        self.recent.is_some_and(|(val, at)| (stamps.val.wrapping_sub(val) as i32) < 0 && is_fresh(at, now))
    }

    /// Keeps the peer's value for echoing if the segment touches what was last acknowledged (RFC 7323 §4.3).
    pub fn keep(&mut self, stamps: Timestamps, touches_last_ack: bool, now: Instant) {
        if touches_last_ack && !self.is_old(stamps, now) {
            self.keep_next(stamps, now);
        }
    }

    /// The same for a segment that touches it and is known not to be old.
    #[inline(always)]
    pub fn keep_next(&mut self, stamps: Timestamps, now: Instant) {
        self.recent = Some((stamps.val, now));
    }

    /// When the segment that `echo` answers was sent, and how long ago that is. Accurate to a tick.
    pub fn echoed(echo: u32, now: Instant) -> Option<(Duration, Instant)> {
        let ago = Self::clock(now).wrapping_sub(echo);
        if echo == 0 || ago > i32::MAX as u32 {
            return None;
        }
        let ticks = (now.as_nanos() / TICK).checked_sub(u64::from(ago))?;
        let sent = Instant::from_nanos(ticks * TICK);
        Some((now.since(sent), sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_segments_are_seen() {
        let mut stamps = Stamps::new();
        let at = |val| Timestamps { val, ecr: 0 };
        stamps.keep(at(100), true, Instant::ZERO);
        assert!(stamps.is_old(at(99), Instant::ZERO));
        assert!(!stamps.is_old(at(100), Instant::ZERO));
        // RFC 7323 §5.5: after 24 days the value says nothing.
        assert!(!stamps.is_old(at(99), Instant::ZERO + STALE));
        // §4.3: a segment ahead of the last acknowledgment is not echoed.
        stamps.keep(at(200), false, Instant::ZERO);
        assert_eq!(stamps.option(Instant::from_millis(4)), Timestamps { val: 5, ecr: 100 });
    }

    #[test]
    fn the_clock_wraps() {
        let last = Instant::from_millis(u32::MAX.into());
        assert_eq!(
            [last - Duration::from_millis(1), last, last + Duration::from_millis(1)].map(Stamps::clock),
            [u32::MAX, 0, 1]
        );
        for ms in [0, 1, 2, 3, 1000] {
            let (sent, now) = (last - Duration::from_millis(1), last + Duration::from_millis(ms));
            assert_eq!(Stamps::echoed(Stamps::clock(sent), now), Some((Duration::from_millis(ms + 1), sent)));
        }
        // The peer's wraps too, and what it says after a long silence is kept.
        let mut stamps = Stamps::new();
        let at = |val| Timestamps { val, ecr: 0 };
        stamps.keep(at(u32::MAX), true, last);
        assert!(!stamps.is_old(at(3), last) && stamps.is_old(at(u32::MAX - 1), last));
        stamps.keep(at(3), true, last);
        stamps.keep(at(2), true, last + STALE);
        assert_eq!(stamps.option(last).ecr, 2);
        assert!(stamps.is_old(at(1), last + STALE));
    }

    #[test]
    fn echoes_give_the_sending_time() {
        let sent = Instant::from_millis(1234);
        let now = Instant::from_millis(1300);
        assert_eq!(Stamps::echoed(Stamps::clock(sent), now), Some((Duration::from_millis(66), sent)));
        assert_eq!(Stamps::echoed(0, now), None);
        assert_eq!(Stamps::echoed(Stamps::clock(now) + 5, now), None);
    }
}
