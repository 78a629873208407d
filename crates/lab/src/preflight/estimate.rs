//! Estimates of a path's parameters from the arrivals of a train.

use crate::probe::{Sample, Shot};
use anabranch_network::{BottleneckSpec, CapacitySpec, DropTail};
use anabranch_units::{Duration, Rate};

/// The train that measures one direction of a path: single small packets first, then a burst that fills the queue, then
/// packets a quarter faster than the path, so that its queue stays full.
#[derive(Clone, Debug)]
pub(super) struct Sounding {
    pub shots: Vec<Shot>,
    /// The number of single packets.
    quiet: usize,
    rate: Rate,
    overhead: i32,
    /// Size of the IP packets of the train.
    size: u16,
    /// Packets of that size that the queue holds, if the train fills it.
    pub queue: Option<u32>,
    /// When the last one leaves the bottleneck.
    pub lasts: Duration,
}

/// The estimates. Seconds, bits per second, packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimates {
    pub rate_bps: Option<f64>,
    pub delay_s: Option<f64>,
    pub jitter_s: Option<f64>,
    pub queue_packets: Option<f64>,
}

/// Single packets.
const QUIET: usize = 20;
/// Time between them.
const GAP: Duration = Duration::from_millis(2);
/// Their size.
const SMALL: u16 = 100;
/// The size of the train's packets, unless their transmission takes too long.
const LARGE: u16 = 1500;
/// Longest transmission time of one packet.
const LONGEST: Duration = Duration::from_millis(10);
/// The train's minimum length; timestamps have an error of some 50 µs, so that this is 0.05 %.
const TRAIN: Duration = Duration::from_millis(100);
/// Least packets of a train.
const FEWEST: u64 = 16;
/// Most packets of either part: more overflow the devices.
const MOST: u64 = 10_000;
/// Longest time to fill a queue.
const FILL: Duration = Duration::from_millis(400);

impl Sounding {
    /// The train for a bottleneck of fixed rate; `None` for recorded capacity, a shaper, a policer, and a rate of zero.
    pub fn new(bottleneck: &BottleneckSpec, overhead: i32) -> Option<Self> {
        let CapacitySpec::Fixed(rate) = bottleneck.capacity else { return None };
        // A policer drops what a train exceeds.
        if rate.as_bps() == 0 || bottleneck.police.is_some() {
            return None;
        }
        let wire = |size: u16| u64::from(u32::from(size).saturating_add_signed(overhead).max(1));
        let size = match rate.bytes_in(LONGEST) {
            bytes if bytes >= wire(LARGE) => LARGE,
            bytes => u16::try_from(bytes).unwrap_or(LARGE).clamp(SMALL, LARGE),
        };
        let takes = rate.time_for(wire(size)).as_nanos().max(1);
        let holds = match bottleneck.queue.limit() {
            DropTail::Packets(packets) => packets.into(),
            DropTail::Bytes(bytes) => bytes / wire(size),
        };
        // A queue under active management is never full, or only briefly.
        let managed = bottleneck.queue.discipline().is_some();
        let filled = !managed && holds < MOST && Duration::from_nanos(holds * takes) <= FILL;
        let burst = if filled { holds + holds / 8 + 8 } else { FEWEST };
        // A quarter faster than the path.
        let apart = takes * 4 / 5;
        let paced = (TRAIN.as_nanos() / apart.max(1)).clamp(FEWEST, MOST);
        let gap = GAP.max(Duration::from_nanos(rate.time_for(wire(SMALL)).as_nanos() * 2));
        let alone = |n: usize| Shot { after: Duration::from_nanos(gap.as_nanos() * n as u64), size: SMALL };
        let begin = alone(QUIET).after;
        let mut shots: Vec<Shot> = (0..QUIET).map(alone).collect();
        shots.extend((0..burst).map(|_| Shot { after: begin, size }));
        shots.extend((0..paced).map(|n| Shot { after: begin + Duration::from_nanos(apart * n), size }));
        let waiting = Duration::from_nanos(holds.min(burst + paced) * takes);
        let lasts = begin + Duration::from_nanos(apart * paced) + waiting;
        let queue = filled.then_some(holds as u32);
        Some(Self { shots, quiet: QUIET, rate, overhead, size, queue, lasts })
    }

    /// Bytes of an IP packet on the path.
    fn wire(&self, size: u16) -> u64 {
        u32::from(size).saturating_add_signed(self.overhead).max(1).into()
    }

    /// The estimates from `samples`; `None` where they are not enough.
    pub fn found(&self, samples: &[Sample]) -> Estimates {
        let (quiet, train): (Vec<Sample>, Vec<Sample>) = samples.iter().partition(|sample| sample.index < self.quiet);
        let transmission = self.rate.time_for(self.wire(SMALL)).as_secs_f64();
        let mut delays: Vec<f64> = quiet.iter().map(|s| s.delay().as_secs_f64() - transmission).collect();
        let steps: Vec<f64> = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        delays.sort_by(f64::total_cmp);
        let Some(least) = delays.first().copied() else { return Estimates::default() };
        let rate_bps = self.rate_of(&train, least);
        Estimates {
            rate_bps,
            delay_s: Some(delays[delays.len() / 2]),
            jitter_s: (!steps.is_empty()).then(|| steps.iter().sum::<f64>() / steps.len() as f64),
            queue_packets: self.queue_of(&train, least, rate_bps),
        }
    }

    /// Dispersion: the bytes of packets that waited, over the time since the arrival before theirs.
    fn rate_of(&self, train: &[Sample], delay: f64) -> Option<f64> {
        let bits = self.wire(self.size) as f64 * 8.0;
        let takes = bits / self.rate.as_bps() as f64;
        let waited = |sample: &Sample| sample.delay().as_secs_f64() > delay + 1.5 * takes;
        let gaps = train.windows(2).filter(|pair| waited(&pair[1]));
        let (n, time) = gaps.fold((0_u64, 0.0), |(n, time), pair| {
            (n + 1, time + pair[1].received.since(pair[0].received).as_secs_f64())
        });
        (n + 1 >= FEWEST / 2 && time > 0.0).then(|| n as f64 * bits / time)
    }

    /// The packets ahead of one that takes the last place: the limit minus the sent part of the packet in transmission.
    /// Known if packets were dropped, or if more packets wait than the limit.
    fn queue_of(&self, train: &[Sample], delay: f64, rate_bps: Option<f64>) -> Option<f64> {
        let limit = f64::from(self.queue?);
        let takes = self.wire(self.size) as f64 * 8.0 / rate_bps?;
        let mut waits: Vec<f64> = train.iter().map(|s| (s.delay().as_secs_f64() - delay) / takes - 1.0).collect();
        waits.sort_by(f64::total_cmp);
        // Not the maximum, which a late loop may have caused.
        let packets = waits.get(waits.len() * 9 / 10)?.round().max(0.0);
        let dropped = train.len() < self.shots.len() - self.quiet;
        (dropped || packets > limit).then_some(packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_network::{CodelSpec, QueueSpec};
    use anabranch_units::Instant;

    fn bottleneck(mbit: f64, packets: u32) -> BottleneckSpec {
        let capacity = CapacitySpec::Fixed(Rate::from_bps((mbit * 1e6) as u64));
        BottleneckSpec::new(capacity, QueueSpec::Packets(packets))
    }

    /// The effect of a queue of `limit` packets, drained at `rate`, on the shots of a sounding.
    fn through(sounding: &Sounding, rate: Rate, limit: usize, delay: Duration) -> Vec<Sample> {
        let mut leaving: Vec<Instant> = Vec::new();
        let mut samples = Vec::new();
        for (index, shot) in sounding.shots.iter().enumerate() {
            let sent = Instant::ZERO + shot.after;
            leaving.retain(|at| *at > sent);
            if leaving.len() > limit {
                continue;
            }
            let begins = leaving.last().copied().unwrap_or(sent);
            let departs = begins + rate.time_for(sounding.wire(shot.size));
            leaving.push(departs);
            samples.push(Sample { index, sent, received: departs + delay });
        }
        samples
    }

    fn near(found: Option<f64>, expected: f64, by: f64) {
        let found = found.expect("a figure");
        assert!((found - expected).abs() <= by, "{found} is not {expected}");
    }

    #[test]
    fn a_path_is_found_as_it_is() {
        for (mbit, packets, millis) in [(0.1, 10, 100), (5.0, 40, 20), (25.0, 100, 25), (1000.0, 800, 5)] {
            let sounding = Sounding::new(&bottleneck(mbit, packets), 0).unwrap();
            let (rate, delay) = (Rate::from_bps((mbit * 1e6) as u64), Duration::from_millis(millis));
            let found = sounding.found(&through(&sounding, rate, packets as usize, delay));
            near(found.rate_bps, mbit * 1e6, mbit * 1e3);
            near(found.delay_s, delay.as_secs_f64(), 1e-6);
            near(found.jitter_s, 0.0, 1e-6);
            near(found.queue_packets, packets.into(), 1.0);
        }
    }

    #[test]
    fn a_path_that_is_not_as_configured_is_found_as_it_is() {
        let sounding = Sounding::new(&bottleneck(5.0, 40), 0).unwrap();
        for mbit in [2.5, 4.0, 8.0] {
            let samples = through(&sounding, Rate::from_bps((mbit * 1e6) as u64), 30, Duration::from_millis(20));
            let found = sounding.found(&samples);
            near(found.rate_bps, mbit * 1e6, mbit * 1e3);
            // A path that is faster than the train empties its queue after the burst.
            near(found.queue_packets, 30.0, if mbit > 6.25 { 3.0 } else { 1.0 });
        }
        let long = sounding.found(&through(&sounding, Rate::from_bps(5_000_000), 400, Duration::from_millis(70)));
        near(long.delay_s, 0.07, 1e-6);
        assert!(long.queue_packets.is_some_and(|packets| packets > 44.0), "{long:?}");
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        let sounding = Sounding::new(&bottleneck(5.0, 3750), 0).unwrap();
        assert_eq!(sounding.queue, None);
        let samples = through(&sounding, Rate::from_bps(5_000_000), 3750, Duration::from_millis(65));
        near(sounding.found(&samples).rate_bps, 5e6, 5e3);
        assert_eq!(sounding.found(&samples).queue_packets, None);
        assert_eq!(sounding.found(&[]), Estimates::default());
        let managed = QueueSpec::Managed(CodelSpec::default().into(), DropTail::Packets(40));
        assert_eq!(Sounding::new(&BottleneckSpec { queue: managed, ..bottleneck(5.0, 40) }, 0).unwrap().queue, None);
        assert_eq!(sounding.found(&samples[..1]).rate_bps, None);
    }

    #[test]
    fn overhead_counts() {
        let sounding = Sounding::new(&bottleneck(10.0, 20), 38).unwrap();
        let samples = through(&sounding, Rate::from_bps(10_000_000), 20, Duration::from_millis(10));
        near(sounding.found(&samples).rate_bps, 1e7, 1e4);
    }
}
