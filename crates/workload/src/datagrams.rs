//! Cross traffic without congestion control.

use crate::PacketSizes;
use anabranch_units::{Duration, Instant, Rate, Rng};
use core::fmt::Debug;

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The time.
    pub at: Instant,
    /// Bytes of the whole IP packet.
    pub size: u32,
}

/// Sends packets at its own times.
pub trait PacketSource: Debug + Send {
    /// The next packet, never earlier than the previous one; `None` after the last.
    fn next_packet(&mut self) -> Option<Datagram>;
}

/// Packets of one size at a constant rate.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    rate: Rate,
    size: u32,
    start: Instant,
    stop: Instant,
    /// Bytes sent.
    sent: u64,
}

impl ConstantRate {
    /// Packets of `size` bytes at `rate` in `[start, stop)`, the first at `start`. None at all if `rate` or `size` is
    /// zero.
    pub fn new(rate: Rate, size: u32, start: Instant, stop: Option<Instant>) -> Self {
        Self { rate, size, start, stop: stop.unwrap_or(Instant::MAX), sent: 0 }
    }
}

impl PacketSource for ConstantRate {
    fn next_packet(&mut self) -> Option<Datagram> {
        // Counted from the start, so that rounding errors never add up.
        let at = self.start + self.rate.time_for(self.sent);
        if self.size == 0 || at >= self.stop {
            return None;
        }
        self.sent = self.sent.saturating_add(self.size.into());
        Some(Datagram { at, size: self.size })
    }
}

/// Parameters of an [`OnOff`] source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOffSpec {
    /// Rate while on.
    pub rate: Rate,
    /// Bytes of the whole IP packet.
    pub sizes: PacketSizes,
    /// Mean on time.
    pub on: Duration,
    /// Mean off time.
    pub off: Duration,
    /// Shape of the Pareto distribution of on times; above 1, or the mean would not exist.
    pub shape: f64,
}

/// Bursts at a constant rate: Pareto on times, exponential off times. It begins with an off time.
///
/// On time is counted through all bursts, one packet per transmission time, so that the mean rate is exactly `rate` ·
/// on / (on + off), however short the bursts are.
#[derive(Clone, Debug)]
pub struct OnOff {
    spec: OnOffSpec,
    stop: Instant,
    rng: Rng,
    sizes: Rng,
    /// Bytes sent.
    sent: u64,
    /// The begin of the current burst, the on time before it, and its length.
    burst: Instant,
    before: Duration,
    length: Duration,
}

impl OnOff {
    /// Bursts in `[start, stop)`, drawn from `rng`. None at all if `rate`, the sizes or `on` is zero or `shape` is not
    /// above 1.
    pub fn new(spec: OnOffSpec, start: Instant, stop: Option<Instant>, rng: Rng) -> Self {
        let silent =
            spec.rate.as_bps() == 0 || spec.sizes == PacketSizes::Fixed(0) || spec.on.is_zero() || spec.shape.is_nan();
        let stop = if silent || spec.shape <= 1.0 { start } else { stop.unwrap_or(Instant::MAX) };
        let sizes = rng.fork("sizes");
        Self { spec, stop, rng, sizes, sent: 0, burst: start, before: Duration::ZERO, length: Duration::ZERO }
    }

    fn next_burst(&mut self) {
        let off = self.rng.exponential() * self.spec.off.as_secs_f64();
        self.burst = self.burst + self.length + Duration::from_secs_f64(off);
        self.before += self.length;
        // A Pareto variable with scale s and shape a has the mean s·a/(a-1).
        let shape = self.spec.shape;
        let scale = self.spec.on.as_secs_f64() * (shape - 1.0) / shape;
        self.length = Duration::from_secs_f64(scale * libm::pow(1.0 - self.rng.unit(), -1.0 / shape));
    }
}

impl PacketSource for OnOff {
    fn next_packet(&mut self) -> Option<Datagram> {
        let due = self.spec.rate.time_for(self.sent);
        while due >= self.before + self.length && self.burst < self.stop {
            self.next_burst();
        }
        let at = self.burst + (due - self.before);
        if at >= self.stop {
            return None;
        }
        let size = self.spec.sizes.draw(&mut self.sizes);
        self.sent = self.sent.saturating_add(size.into());
        Some(Datagram { at, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut source: impl PacketSource) -> Vec<Datagram> {
        core::iter::from_fn(|| source.next_packet()).collect()
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        // 7 bytes at 3 bit/s: 18.6 s each.
        let start = Instant::from_millis(10);
        let stop = start + Duration::from_secs(56);
        let sent = all(ConstantRate::new(Rate::from_bps(3), 7, start, Some(stop)));
        let at: Vec<_> = sent.iter().map(|d| d.at.since(start).as_nanos()).collect();
        assert_eq!(at, [0, 18_666_666_667, 37_333_333_334]);
        // The fourth would come exactly at the stop.
        assert_eq!(all(ConstantRate::new(Rate::from_bps(0), 7, start, None)), []);
        assert_eq!(all(ConstantRate::new(Rate::from_bps(8), 0, start, None)), []);
    }

    const SPEC: OnOffSpec = OnOffSpec {
        rate: Rate::from_bps(8_000_000),
        sizes: PacketSizes::Fixed(1000),
        on: Duration::from_millis(100),
        off: Duration::from_millis(300),
        shape: 2.5,
    };

    fn on_off(spec: OnOffSpec, seconds: u64, seed: u64) -> Vec<Datagram> {
        let stop = Some(Instant::ZERO + Duration::from_secs(seconds));
        all(OnOff::new(spec, Instant::ZERO, stop, Rng::stream(seed, "cross.0")))
    }

    #[test]
    fn bursts_have_the_stated_means() {
        let sent = on_off(SPEC, 10_000, 1);
        // 1000 packets per second while on, a quarter of the time.
        assert!((2_350_000..2_650_000).contains(&sent.len()), "{}", sent.len());
        let gaps: Vec<_> = sent.windows(2).map(|w| w[1].at.since(w[0].at).as_nanos()).collect();
        let offs: Vec<_> = gaps.iter().filter(|gap| **gap > 1_000_001).map(|gap| gap - 1_000_000).collect();
        let mean = offs.iter().sum::<u64>() / offs.len() as u64;
        assert!((290_000_000..310_000_000).contains(&mean), "{mean}");
        // Exponential: a share of 1/e is longer than the mean.
        let long = offs.iter().filter(|off| **off > 300_000_000).count() as f64 / offs.len() as f64;
        assert!((long - 0.3679).abs() < 0.01, "{long}");
        assert!(gaps.iter().all(|gap| *gap >= 999_999), "never faster than its rate");
    }

    #[test]
    fn on_times_are_pareto() {
        let mut source = OnOff::new(SPEC, Instant::ZERO, None, Rng::stream(2, "cross.0"));
        let lengths: Vec<_> = (0..50_000)
            .map(|_| {
                source.next_burst();
                source.length.as_secs_f64()
            })
            .collect();
        // Scale 60 ms; P(X > 2s) = 2^-2.5.
        assert!(lengths.iter().all(|l| *l >= 0.06));
        let long = lengths.iter().filter(|l| **l > 0.12).count() as f64 / 50_000.0;
        assert!((long - 0.1768).abs() < 0.006, "{long}");
    }

    #[test]
    fn bursts_shorter_than_a_packet_keep_the_mean_rate() {
        let spec = OnOffSpec { on: Duration::from_micros(200), off: Duration::from_micros(600), ..SPEC };
        let sent = on_off(spec, 100, 1);
        assert!((24_000..26_000).contains(&sent.len()), "{}", sent.len());
    }

    #[test]
    fn drawn_sizes_change_neither_the_bursts_nor_the_mean_rate() {
        let drawn = OnOffSpec { sizes: PacketSizes::exponential(1000, (40, 1500)), ..SPEC };
        let (fixed, drawn) = (on_off(SPEC, 1000, 1), on_off(drawn, 1000, 1));
        assert_eq!(fixed[0].at, drawn[0].at);
        let bytes = |sent: &[Datagram]| sent.iter().map(|d| f64::from(d.size)).sum::<f64>();
        assert!((bytes(&drawn) / bytes(&fixed) - 1.0).abs() < 0.001, "{} {}", bytes(&drawn), bytes(&fixed));
        assert!(drawn.iter().any(|d| d.size < 100) && drawn.iter().any(|d| d.size == 1500));
    }

    #[test]
    fn seeds_make_the_bursts() {
        assert_eq!(on_off(SPEC, 10, 4), on_off(SPEC, 10, 4));
        assert_ne!(on_off(SPEC, 10, 4), on_off(SPEC, 10, 5));
        for spec in [
            OnOffSpec { shape: 1.0, ..SPEC },
            OnOffSpec { shape: f64::NAN, ..SPEC },
            OnOffSpec { on: Duration::ZERO, ..SPEC },
            OnOffSpec { rate: Rate::from_bps(0), ..SPEC },
        ] {
            assert_eq!(on_off(spec, 10, 4), []);
        }
    }
}
