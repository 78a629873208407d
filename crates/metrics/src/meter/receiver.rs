//! Sums over the receiver's events.

use crate::Arrivals;
use crate::over_time::Peaks;
use anabranch_units::{Duration, Instant, Range};

/// Length of the samples of the out-of-order queue.
const SAMPLE: Duration = Duration::from_millis(10);

/// One connection's receiver.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Bytes delivered in the measured time.
    pub delivered: u64,
    pub duplicate: u64,
    pub ofo: Peaks,
    pub arrivals: Arrivals,
    pub outage: Outage,
}

impl Receiver {
    pub fn new(mss: u32, threshold: Option<u64>) -> Self {
        Self {
            delivered: 0,
            duplicate: 0,
            ofo: Peaks::new(SAMPLE),
            arrivals: Arrivals::new(mss, threshold),
            outage: Outage::default(),
        }
    }

    #[inline(always)]
    pub fn on_arrived(&mut self, data: Range, new: u64) {
        self.duplicate += data.len().saturating_sub(new);
        self.arrivals.arrive(data);
    }

    #[inline(always)]
    pub fn on_delivered(&mut self, now: Instant, data: Range) {
        self.delivered += data.len();
        self.outage.on_delivered(now, data.end);
    }

    pub fn restart(&mut self, now: Instant) {
        self.delivered = 0;
        self.duplicate = 0;
        self.ofo.restart(now);
        self.arrivals.restart();
        self.outage.restart(now);
    }
}

/// The longest time without delivery while data waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outage {
    written: u64,
    delivered: u64,
    /// Since when data has waited without any delivery.
    waiting: Option<Instant>,
    longest: Duration,
}

impl Outage {
    /// The sender's application has written up to this offset.
    pub fn on_written(&mut self, now: Instant, end: u64) {
        self.written = self.written.max(end);
        if self.waiting.is_none() && self.written > self.delivered {
            self.waiting = Some(now);
        }
    }

    fn on_delivered(&mut self, now: Instant, end: u64) {
        self.longest = self.longest(now);
        self.delivered = self.delivered.max(end);
        self.waiting = (self.written > self.delivered).then_some(now);
    }

    fn restart(&mut self, now: Instant) {
        self.longest = Duration::ZERO;
        self.waiting = self.waiting.map(|_| now);
    }

    pub fn longest(&self, now: Instant) -> Duration {
        self.longest.max(self.waiting.map_or(Duration::ZERO, |since| now.since(since)))
    }
}
