//! Emulated paths as measured, beside their configuration.

use anabranch_units::{Direction, Duration};
use serde::{Deserialize, Serialize};

/// The pre-flight check of one network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preflight {
    /// How long it took.
    pub took_s: f64,
    /// The lateness that 99 of 100 packets do not exceed on leaving the loop.
    pub late_p99_s: f64,
    /// Both directions of each path, `down` first.
    pub ways: Vec<WayCheck>,
}

/// The check of one direction of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WayCheck {
    /// The path's name.
    pub path: String,
    /// `down` or `up`.
    pub direction: String,
    /// As configured. The queue counts packets as the measurement sent them.
    pub configured: WayFigures,
    /// As measured.
    pub measured: WayFigures,
    /// Mean difference between the delays of one packet and the next (RFC 3393's ipdv, without its sign).
    #[serde(default)]
    pub jitter_s: Option<f64>,
    /// Everything measured is within the tolerance.
    pub accurate: bool,
    /// Why it was not measured; null if it was.
    #[serde(default)]
    pub skipped: Option<String>,
}

/// An absent figure does not apply, or could not be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WayFigures {
    /// Rate of the bottleneck.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bps: Option<f64>,
    /// One way, without queueing and transmission.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delay_s: Option<f64>,
    /// Most packets that wait.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue_packets: Option<f64>,
}

impl Preflight {
    /// The longest time that it may take in all, unless the user allows more.
    pub const LIMIT: Duration = Duration::from_secs(2);
}

/// Share of the rate by which it may differ.
const RATE: f64 = 0.02;
/// Share of the delay by which it may differ, and seconds, the greater of both.
const DELAY: (f64, f64) = (0.02, 1e-3);
/// Share of the queue by which it may differ, and packets, the greater of both.
const QUEUE: (f64, f64) = (0.05, 2.0);

impl WayCheck {
    /// Not measured yet.
    pub fn new(path: &str, direction: Direction, configured: WayFigures) -> Self {
        Self { path: path.into(), direction: direction.name().into(), configured, ..Self::default() }
    }

    /// A rate or a delay that could not be measured is as bad as a wrong one: packets were lost where none may be, or the
    /// machine could not fill the path.
    pub fn judge(&mut self) {
        let (wanted, found) = (&self.configured, &self.measured);
        let within = |wanted: Option<f64>, found: Option<f64>, (share, least): (f64, f64)| {
            wanted.zip(found).map(|(wanted, found)| (found - wanted).abs() <= (wanted * share).max(least))
        };
        let rate = within(wanted.rate_bps, found.rate_bps, (RATE, 0.0)).unwrap_or(false);
        let delay = within(wanted.delay_s, found.delay_s, DELAY).unwrap_or(false);
        let queue = within(wanted.queue_packets, found.queue_packets, QUEUE).unwrap_or(true);
        self.accurate = rate && delay && queue;
    }

    /// The direction was measured, and is outside the tolerance.
    pub fn deviates(&self) -> bool {
        self.skipped.is_none() && !self.accurate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rate: Option<f64>, delay: f64, queue: Option<f64>) -> bool {
        let configured = WayFigures { rate_bps: Some(5e6), delay_s: Some(0.02), queue_packets: Some(10.0) };
        let mut check = WayCheck::new("wlan", Direction::Down, configured);
        check.measured = WayFigures { rate_bps: rate, delay_s: Some(delay), queue_packets: queue };
        check.judge();
        assert_ne!(check.accurate, check.deviates());
        check.accurate
    }

    #[test]
    fn deviations_beyond_the_tolerance_are_marked() {
        assert!(judged(Some(5.09e6), 0.0209, Some(12.0)));
        assert!(judged(Some(4.91e6), 0.0191, None));
        assert!(!judged(Some(5.11e6), 0.02, Some(10.0)));
        assert!(!judged(Some(5e6), 0.0211, Some(10.0)));
        assert!(!judged(Some(5e6), 0.02, Some(7.0)));
        assert!(!judged(None, 0.02, Some(10.0)));
    }

    #[test]
    fn a_way_that_was_skipped_does_not_deviate() {
        let check = WayCheck { skipped: Some("it would take 3.0 s".into()), ..WayCheck::default() };
        assert!(!check.deviates() && !check.accurate);
    }
}
