//! Forward delays from timestamps (RFC 7323): Le and Bui, FDPS, section III.A. Offsets between our clock and the peer's
//! cancel in the difference of two paths, so one zero for all of them is enough.

use crate::schedule::ForwardDelay;
use anabranch_units::{Duration, Instant};

/// One tick of the peer's timestamp clock, as of ours: RFC 7323 §5.4 allows up to a second, Linux takes a millisecond.
const TICK: i64 = 1_000_000;

/// Forward delays of two paths that differ by more than this were not taken by one clock: Linux adds a random offset to
/// its clock for each pair of addresses, unless `net.ipv4.tcp_timestamps` is 2.
const FARTHEST: u64 = 10_000_000_000;

/// A reading of the peer's clock at some time of ours.
#[derive(Debug, Default)]
pub(crate) struct PeerClock(Option<(u32, u64)>);

impl PeerClock {
    /// From the sending at `sent` to the peer's `val`, plus a distance that is the same for all subflows. `None`: this is
    /// not the clock that the first sample was taken by.
    pub fn transit(&mut self, val: u32, sent: Instant) -> Option<Duration> {
        let sent = sent.as_nanos();
        let (zero, zero_at) = *self.0.get_or_insert((val, sent));
        // Ours says how often the peer's clock has wrapped meanwhile.
        let gone = sent.wrapping_sub(zero_at) as i64 / TICK;
        let ticks = gone + i64::from(val.wrapping_sub(zero).wrapping_sub(gone as u32) as i32);
        let at = zero_at.wrapping_add_signed(ticks.wrapping_mul(TICK));
        let transit = at.wrapping_add(FARTHEST).wrapping_sub(sent);
        if transit > 2 * FARTHEST {
            return None;
        }
        if ticks > 0 {
            // The same distance, taken later.
            self.0 = Some((val, at));
        }
        Some(Duration::from_nanos(transit))
    }
}

/// The estimate with one more sample: smoothed with gain 1/8, begun again where the last is too old.
pub(crate) fn smoothed(before: Option<ForwardDelay>, srtt: Duration, sample: Duration, now: Instant) -> ForwardDelay {
    let relative = match before {
        Some(before) if before.is_fresh(srtt, now) => before.relative - before.relative / 8 + sample / 8,
        _ => sample,
    };
    ForwardDelay { relative, sampled: now }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn offsets_cancel() {
        // Sent at 100 and 103, received at 1115 and 1138 by the peer's clock: path 1 is faster by 20 ms.
        let mut clock = PeerClock::default();
        let first = clock.transit(1115, ms(100)).unwrap();
        let second = clock.transit(1138, ms(103)).unwrap();
        assert_eq!(second - first, Duration::from_millis(20));
        // Whichever comes first, and however far the clock has gone meanwhile: here it wraps around.
        let mut clock = PeerClock::default();
        for round in 0..100u64 {
            let gone = round * 1_000_000_000;
            let at = |val: u64| (val + gone) as u32;
            let second = clock.transit(at(1138), ms(103 + gone)).unwrap();
            let first = clock.transit(at(1115), ms(100 + gone)).unwrap();
            assert_eq!(second - first, Duration::from_millis(20), "{round}");
        }
    }

    #[test]
    fn a_silence_may_last_longer_than_the_clock() {
        let day = 86_400_000;
        let mut clock = PeerClock::default();
        let first = clock.transit(1115, ms(100)).unwrap();
        for days in [20, 30, 49, 50, 75, 100, 1000] {
            let gone = days * day;
            assert_eq!(clock.transit((1115 + gone) as u32, ms(100 + gone)), Some(first), "{days} days");
            // Two paths: the packet that was sent earlier arrives later.
            assert_eq!(clock.transit((1110 + gone) as u32, ms(95 + gone)), Some(first), "{days} days");
        }
    }

    #[test]
    fn another_clock_is_not_compared() {
        let mut clock = PeerClock::default();
        assert!(clock.transit(1 << 30, ms(100)).is_some());
        for other in [0, (1 << 30) + 20_000, (1 << 30) - 20_000, u32::MAX] {
            assert_eq!(clock.transit(other, ms(101)), None, "{other}");
        }
        assert!(clock.transit((1 << 30) + 5, ms(105)).is_some());
        assert_eq!(clock.transit((1 << 30) + 5, Instant::from_nanos(u64::MAX / 2)), None);
    }

    #[test]
    fn samples_are_smoothed_until_they_expire() {
        let srtt = Duration::from_millis(20);
        let sample = |before, at, us| smoothed(before, srtt, Duration::from_micros(us), ms(at));
        let micros = |f: ForwardDelay| f.relative.as_nanos() as f64 / 1e3;
        // FDPS: −20 with samples −28 and −12 is −21, then −19.875; here with 100 ms added.
        let first = sample(None, 0, 80_000);
        let second = sample(Some(first), 200, 72_000);
        let third = sample(Some(second), 400, 88_000);
        assert_eq!([micros(first), micros(second), micros(third)], [80_000.0, 79_000.0, 80_125.0]);
        assert_eq!(micros(sample(Some(third), 601, 1_000)), 1_000.0);
    }
}
