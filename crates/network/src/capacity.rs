//! The capacity of a bottleneck.

use crate::bucket::Bucket;
use crate::{BucketSpec, CapacitySpec, CapacityTrace, RateSteps};
use anabranch_units::{Instant, Rate};
use core::fmt::Debug;
use std::sync::Arc;

/// Transmits packets one after the other, in calls of ascending time.
pub trait Capacity: Debug + Send {
    /// A packet of `size` bytes comes to the head at `now`. Returns when its last bit leaves, [`Instant::MAX`] for
    /// never. `idle`: no packet left just before it.
    fn transmit(&mut self, now: Instant, size: u32, idle: bool) -> Instant;

    /// Sets the rate from `now` on. Returns when the packet in transmission leaves, which was to leave at `departs`.
    /// Recorded capacity has no rate to set.
    fn set_rate(&mut self, _now: Instant, _rate: Rate, departs: Instant) -> Instant {
        departs
    }

    /// Sets the burst from `now` on, while a packet leaves at `departs`, [`Instant::MAX`] if there is none. Returns what takes this
    /// one's place, if it changes its kind. Recorded capacity has no burst to set.
    fn set_burst(&mut self, _now: Instant, _burst: u64, _departs: Instant) -> Option<Box<dyn Capacity>> {
        None
    }
}

/// A rate that only a timeline changes.
#[derive(Clone, Debug)]
pub struct FixedRate {
    rate: Rate,
    /// When `left` was measured for the packet in transmission.
    since: Instant,
    /// Bits of it not yet sent, times 10⁹.
    left: u128,
}

impl FixedRate {
    /// Capacity of a fixed `rate`.
    pub fn new(rate: Rate) -> Self {
        Self { rate, since: Instant::ZERO, left: 0 }
    }
}

impl Capacity for FixedRate {
    fn transmit(&mut self, now: Instant, size: u32, _idle: bool) -> Instant {
        self.since = now;
        self.left = u128::from(size) * 8_000_000_000;
        now + self.rate.time_for(size.into())
    }

    fn set_rate(&mut self, now: Instant, rate: Rate, _departs: Instant) -> Instant {
        let sent = u128::from(now.since(self.since).as_nanos()) * u128::from(self.rate.as_bps());
        *self = Self { rate, since: now, left: self.left.saturating_sub(sent) };
        if rate.as_bps() == 0 {
            return Instant::MAX;
        }
        let nanos = self.left.div_ceil(rate.as_bps().into());
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(now.as_nanos()))
    }

    fn set_burst(&mut self, _now: Instant, burst: u64, departs: Instant) -> Option<Box<dyn Capacity>> {
        Some(Box::new(shaper(BucketSpec { rate: self.rate, burst }, departs)))
    }
}

/// The bucket of what was a rate, whose last packet leaves at `departs`; full if there is none.
pub(crate) fn shaper(spec: BucketSpec, departs: Instant) -> Bucket {
    if departs == Instant::MAX { Bucket::new(spec) } else { Bucket::empty_at(departs, spec) }
}

/// Recorded delivery opportunities, accounted by the byte as in mahimahi: small packets share an opportunity, a packet
/// that does not fit continues in the next one, and an opportunity without a waiting packet is lost. A packet that
/// arrives exactly at an opportunity misses it.
#[derive(Clone, Debug)]
pub struct TraceDriven {
    trace: Arc<CapacityTrace>,
    /// Number of the next unused opportunity, counted over all repetitions.
    next: u64,
    /// Time of the opportunity in use.
    current: Instant,
    /// Bytes left of it.
    left: u64,
}

impl TraceDriven {
    /// Repeats `trace` for ever.
    pub fn new(trace: Arc<CapacityTrace>) -> Self {
        Self { trace, next: 0, current: Instant::ZERO, left: 0 }
    }
}

impl Capacity for TraceDriven {
    fn transmit(&mut self, now: Instant, size: u32, idle: bool) -> Instant {
        if idle {
            self.next = self.trace.first_after(now);
            self.current = now;
            self.left = 0;
        }
        let size = u64::from(size);
        if size > self.left {
            let opportunities = (size - self.left).div_ceil(CapacityTrace::BYTES);
            self.next = self.next.saturating_add(opportunities);
            self.current = self.trace.time_of(self.next - 1);
            self.left += opportunities * CapacityTrace::BYTES;
        }
        self.left -= size;
        self.current
    }
}

/// A recorded rate.
#[derive(Clone, Debug)]
struct StepDriven(Arc<RateSteps>);

impl Capacity for StepDriven {
    fn transmit(&mut self, now: Instant, size: u32, _idle: bool) -> Instant {
        self.0.leaves(now, size)
    }
}

impl CapacitySpec {
    /// The capacity that it describes.
    pub(crate) fn build(&self) -> Box<dyn Capacity> {
        match self {
            CapacitySpec::Fixed(rate) => Box::new(FixedRate::new(*rate)),
            CapacitySpec::Bucket(spec) => Box::new(Bucket::new(*spec)),
            CapacitySpec::Trace(trace) => Box::new(TraceDriven::new(trace.clone())),
            CapacitySpec::Steps(steps) => Box::new(StepDriven(steps.clone())),
        }
    }

    /// The rate at the beginning; the mean of a trace.
    pub fn initial_rate(&self) -> Rate {
        match self {
            CapacitySpec::Fixed(rate) | CapacitySpec::Bucket(BucketSpec { rate, .. }) => *rate,
            CapacitySpec::Trace(trace) => trace.mean_rate(),
            CapacitySpec::Steps(steps) => steps.mean_rate(),
        }
    }

    /// The same at another rate; a trace has none to set.
    #[must_use]
    pub fn at_rate(&self, rate: Rate) -> Self {
        match self {
            CapacitySpec::Fixed(_) => CapacitySpec::Fixed(rate),
            CapacitySpec::Bucket(spec) => CapacitySpec::Bucket(BucketSpec { rate, ..*spec }),
            CapacitySpec::Trace(_) | CapacitySpec::Steps(_) => self.clone(),
        }
    }

    /// The same with this burst; a trace has none to set.
    #[must_use]
    pub fn with_burst(&self, burst: u64) -> Self {
        match self {
            CapacitySpec::Fixed(rate) | CapacitySpec::Bucket(BucketSpec { rate, .. }) => {
                CapacitySpec::Bucket(BucketSpec { rate: *rate, burst })
            }
            CapacitySpec::Trace(_) | CapacitySpec::Steps(_) => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_rate_change_meets_the_bytes_that_are_left() {
        let mut link = FixedRate::new(Rate::from_bps(12_000_000));
        let departs = link.transmit(ms(0), 1500, true);
        assert_eq!(departs, ms(1));
        // Half is left: 750 bytes at 6 Mbit/s take 1 ms; after another quarter of the packet, at 3 Mbit/s, 1 ms again.
        let departs = link.set_rate(Instant::from_nanos(500_000), Rate::from_bps(6_000_000), departs);
        assert_eq!(departs, Instant::from_nanos(1_500_000));
        let departs = link.set_rate(ms(1), Rate::from_bps(3_000_000), departs);
        assert_eq!(departs, ms(2));
        // A stop, and a start with the same 187.5 bytes left.
        let never = link.set_rate(Instant::from_nanos(1_500_000), Rate::from_bps(0), departs);
        assert_eq!(never, Instant::MAX);
        let departs = link.set_rate(ms(100), Rate::from_bps(1_500_000), never);
        assert_eq!(departs, ms(101));
    }

    #[test]
    fn rate_changes_lose_no_time_to_rounding() {
        let mut link = FixedRate::new(Rate::from_bps(3));
        let departs = link.transmit(ms(0), 1, true);
        assert_eq!(departs.as_nanos(), 2_666_666_667);
        let mut now = departs;
        for at in 1..1000 {
            now = link.set_rate(Instant::from_nanos(at * 2_000_000), Rate::from_bps(3), departs);
        }
        assert_eq!(now, departs);
    }

    fn trace(text: &str) -> TraceDriven {
        TraceDriven::new(Arc::new(CapacityTrace::parse(text).unwrap()))
    }

    #[test]
    fn packets_share_opportunities_and_are_carried_over() {
        let mut link = trace("10\n20\n20\n35\n");
        // Three packets of 500 bytes fill the first opportunity; all leave with it.
        assert_eq!(link.transmit(ms(1), 500, true), ms(10));
        assert_eq!(link.transmit(ms(10), 500, false), ms(10));
        assert_eq!(link.transmit(ms(10), 500, false), ms(10));
        // 1400 leave 100 over; 1500 take those, and 1400 of the second opportunity of that millisecond.
        assert_eq!(link.transmit(ms(10), 1400, false), ms(20));
        assert_eq!(link.transmit(ms(20), 1500, false), ms(20));
        // 101 find 100: one byte is carried over to 35.
        assert_eq!(link.transmit(ms(20), 101, false), ms(35));
        assert_eq!(link.transmit(ms(35), 1499, false), ms(35));
        // The trace repeats every 35 ms: 45, 55, 55, 70, 80.
        assert_eq!(link.transmit(ms(35), 4501, false), ms(70));
        assert_eq!(link.transmit(ms(70), 1500, false), ms(80));
    }

    #[test]
    fn opportunities_that_meet_no_packet_are_lost() {
        let mut link = trace("10\n20\n");
        assert_eq!(link.transmit(ms(0), 100, true), ms(10));
        // 1400 bytes of that one are lost, and a packet that arrives at an opportunity misses it.
        assert_eq!(link.transmit(ms(10), 100, true), ms(20));
        assert_eq!(link.transmit(Instant::from_nanos(29_999_999), 1500, true), ms(30));
        assert_eq!(link.transmit(ms(30), 1500, true), ms(40));
        // Far ahead: the repetition that begins at 20 s.
        assert_eq!(link.transmit(ms(20_000), 1500, true), ms(20_010));
        assert_eq!(link.transmit(ms(20_010), 3000, true), ms(20_030));
    }

    #[test]
    fn a_trace_that_begins_at_zero_meets_its_own_end() {
        // 0 and 5 coincide from the second round on: 5 5 10 10 15 15.
        let mut link = trace("0\n5\n");
        assert_eq!(link.transmit(ms(1), 1500, true), ms(5));
        assert_eq!(link.transmit(ms(5), 1500, false), ms(5));
        assert_eq!(link.transmit(ms(5), 1500, false), ms(10));
        assert_eq!(link.transmit(ms(10), 1500, false), ms(10));
        assert_eq!(link.transmit(ms(10), 1, false), ms(15));
    }

    #[test]
    fn an_empty_trace_sends_nothing() {
        for opportunities in [vec![], vec![0]] {
            let mut link = TraceDriven::new(Arc::new(CapacityTrace::new(opportunities)));
            assert_eq!(link.transmit(ms(3), u32::MAX, true), Instant::MAX);
            assert_eq!(link.trace.mean_rate(), Rate::from_bps(0));
        }
    }
}
