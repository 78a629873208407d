//! Rates in bits per second.

use crate::Duration;
use core::fmt;

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Time to send `bytes`, rounded up to a nanosecond, so that a link is never faster than its rate.
    /// [`Duration::MAX`] for a rate of zero.
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        match bytes.checked_mul(8_000_000_000) {
            Some(bits) => Duration::from_nanos(bits.div_ceil(self.0)),
            None => {
                let ns = (bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128);
                Duration::from_nanos(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
            }
        }
    }
    /// Bytes transmitted in `time`, rounded down.
    pub const fn bytes_in(self, time: Duration) -> u64 {
        (self.0 as u128 * time.as_nanos() as u128 / 8_000_000_000) as u64
    }
}

impl fmt::Display for Rate {
    /// A scenario file's notation: `25mbit`, `1.5mbit`, `387kbit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, per) = match self.0 {
            r if r >= 1_000_000_000 => ("gbit", 1_000_000_000),
            r if r >= 1_000_000 => ("mbit", 1_000_000),
            r if r >= 1_000 => ("kbit", 1_000),
            r => return write!(f, "{r}bit"),
        };
        write!(f, "{}{unit}", self.0 as f64 / per as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_up_and_bytes_down() {
        assert_eq!(Rate::from_bps(25_000_000).time_for(1500), Duration::from_micros(480));
        assert_eq!(Rate::from_bps(3).time_for(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(Rate::from_bps(0).time_for(1), Duration::MAX);
        assert_eq!(Rate::from_bps(8).time_for(u64::MAX), Duration::MAX);
        assert_eq!(Rate::from_bps(12).bytes_in(Duration::from_secs(1)), 1);
    }

    #[test]
    fn rates_read_as_written() {
        assert_eq!(Rate::from_bps(1_500_000).to_string(), "1.5mbit");
        assert_eq!(Rate::from_bps(387_000).to_string(), "387kbit");
    }
}
