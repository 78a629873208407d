//! Labels of time that only grow (TAI64N, <https://cr.yp.to/libtai/tai64.html>).

use anabranch_units::Instant;

/// A TAI64N label: seconds and nanoseconds, big-endian, so that bytes compare as times do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub [u8; Timestamp::LEN]);

impl Timestamp {
    /// Bytes of a label.
    pub const LEN: usize = 12;
    /// The label of 1970-01-01 00:00:10 TAI.
    const UNIX: u64 = 1 << 62 | 10;

    /// So many nanoseconds after the beginning of 1970. Leap seconds since then do not count: the label has only to grow.
    pub fn of_unix_nanos(nanos: u128) -> Self {
        let mut bytes = [0; Self::LEN];
        let seconds = Self::UNIX + (nanos / 1_000_000_000) as u64;
        bytes[..8].copy_from_slice(&seconds.to_be_bytes());
        bytes[8..].copy_from_slice(&((nanos % 1_000_000_000) as u32).to_be_bytes());
        Self(bytes)
    }
}

/// Gives each handshake a later timestamp than the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    /// Wall time of [`Instant::ZERO`], in nanoseconds after the beginning of 1970.
    epoch: u128,
    last: u128,
}

impl Timestamps {
    pub fn new(epoch: u128) -> Self {
        Self { epoch, last: 0 }
    }

    pub fn next(&mut self, now: Instant) -> Timestamp {
        self.last = (self.epoch + u128::from(now.as_nanos())).max(self.last + 1);
        Timestamp::of_unix_nanos(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_compare_as_times_do() {
        let label = |nanos| Timestamp::of_unix_nanos(nanos);
        assert!(label(999_999_999) < label(1_000_000_000) && label(1_000_000_000) < label(1_000_000_001));
        assert_eq!(label(0).0, [0x40, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0]);
    }

    #[test]
    fn two_timestamps_of_one_instant_differ() {
        let mut timestamps = Timestamps::new(1_800_000_000_000_000_000);
        let [a, b] = [Instant::ZERO, Instant::ZERO].map(|now| timestamps.next(now));
        assert!(a < b && b < timestamps.next(Instant::from_millis(1)));
    }
}
