//! The capacity of a bottleneck over time.

use anabranch_network::{BottleneckSpec, BucketSpec, CapacitySpec, CapacityTrace, Change, Place};
use anabranch_units::{Direction, Instant};

/// The capacity of one bottleneck over time, changes of rate included.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityCurve {
    /// From each time on, until the next; the first begins the run. With the policer before it.
    pieces: Vec<(Instant, CapacitySpec, Option<BucketSpec>)>,
}

impl CapacityCurve {
    /// The same from beginning to end.
    pub fn new(spec: CapacitySpec) -> Self {
        Self { pieces: vec![(Instant::ZERO, spec, None)] }
    }

    /// From `at` on the capacity is `spec`; calls come in order of time.
    pub fn change(&mut self, at: Instant, spec: CapacitySpec) {
        let police = self.pieces.last().and_then(|(_, _, police)| *police);
        self.pieces.push((at, spec, police));
    }

    /// One rate from beginning to end.
    pub fn is_constant(&self) -> bool {
        matches!(self.pieces[..], [(_, CapacitySpec::Fixed(_), None)])
    }

    /// Bytes that it could carry after `from` and up to `to`. A recorded opportunity at `from` itself does not count: what
    /// comes to the bottleneck in that very moment has missed it.
    pub fn bytes(&self, from: Instant, to: Instant) -> f64 {
        let ends = self.pieces.iter().skip(1).map(|(at, ..)| *at).chain([Instant::MAX]);
        let within = self.pieces.iter().zip(ends).map(|(piece, end)| (from.max(piece.0), to.min(end), piece));
        let bytes = |(from, to, (_, spec, police)): (Instant, Instant, &(_, _, Option<BucketSpec>))| {
            let passed = police.map_or(f64::INFINITY, |police| in_bucket(&police, from, to));
            bytes_of(spec, from, to).min(passed)
        };
        within.filter(|(from, to, _)| from < to).map(bytes).sum()
    }
}

/// The capacity of one bottleneck with those changes of a timeline that apply to it.
pub(crate) fn after_changes(
    spec: &BottleneckSpec,
    timeline: &[(Instant, Change)],
    (place, direction): (Place, Direction),
) -> CapacityCurve {
    let mut pieces = vec![(Instant::ZERO, spec.capacity.clone(), spec.police)];
    for (at, change) in timeline {
        let Some((_, capacity, police)) = pieces.last() else { break };
        let next = match change {
            Change::Rate(at, d, rate) if (*at, *d) == (place, direction) => (capacity.at_rate(*rate), *police),
            Change::Burst(at, d, burst) if (*at, *d) == (place, direction) => (capacity.with_burst(*burst), *police),
            Change::Police(at, d, spec) if (*at, *d) == (place, direction) => (capacity.clone(), Some(*spec)),
            _ => continue,
        };
        pieces.push((*at, next.0, next.1));
    }
    CapacityCurve { pieces }
}

/// The most that passes a token bucket.
fn in_bucket(bucket: &BucketSpec, from: Instant, to: Instant) -> f64 {
    bucket.burst as f64 + bucket.rate.as_bps() as f64 * to.since(from).as_secs_f64() / 8.0
}

fn bytes_of(spec: &CapacitySpec, from: Instant, to: Instant) -> f64 {
    match spec {
        CapacitySpec::Fixed(rate) => rate.as_bps() as f64 * to.since(from).as_secs_f64() / 8.0,
        CapacitySpec::Bucket(bucket) => in_bucket(bucket, from, to),
        CapacitySpec::Steps(steps) => steps.bytes(from, to),
        CapacitySpec::Trace(trace) => {
            (trace.first_after(to) - trace.first_after(from)) as f64 * CapacityTrace::BYTES as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_network::QueueSpec;
    use anabranch_units::Rate;
    use std::sync::Arc;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_policer_and_a_burst_bound_what_passes() {
        let bucket = |mbit: u64, burst| BucketSpec { rate: Rate::from_bps(mbit * 1_000_000), burst };
        let mut spec = BottleneckSpec::new(CapacitySpec::Bucket(bucket(8, 5_000)), QueueSpec::Packets(1));
        let place = (Place::Link(0), Direction::Up);
        let changes = [
            (ms(100), Change::Police(Place::Link(0), Direction::Up, bucket(4, 1_000))),
            (ms(200), Change::Burst(Place::Link(0), Direction::Up, 100)),
            (ms(300), Change::Rate(Place::Link(0), Direction::Up, Rate::from_bps(800_000))),
            (ms(300), Change::Rate(Place::Link(1), Direction::Up, Rate::from_bps(1))),
            (ms(300), Change::Burst(Place::Link(0), Direction::Down, 1)),
        ];
        let capacity = after_changes(&spec, &changes, place);
        assert_eq!(capacity.bytes(ms(0), ms(10)), 15_000.0);
        assert_eq!(capacity.bytes(ms(100), ms(110)), 6_000.0);
        assert_eq!(capacity.bytes(ms(300), ms(310)), 1_100.0);
        spec.police = Some(bucket(1, 0));
        assert_eq!(after_changes(&spec, &[], place).bytes(ms(0), ms(8)), 1_000.0);
    }

    #[test]
    fn rates_change() {
        let mut capacity = CapacityCurve::new(CapacitySpec::Fixed(Rate::from_bps(8_000_000)));
        capacity.change(ms(100), CapacitySpec::Fixed(Rate::from_bps(16_000_000)));
        capacity.change(ms(200), CapacitySpec::Fixed(Rate::from_bps(0)));
        assert_eq!(capacity.bytes(ms(0), ms(50)), 50_000.0);
        assert_eq!(capacity.bytes(ms(50), ms(150)), 50_000.0 + 100_000.0);
        assert_eq!(capacity.bytes(ms(150), ms(900)), 100_000.0);
        assert_eq!(capacity.bytes(ms(150), ms(150)), 0.0);
        assert_eq!(capacity.bytes(ms(150), ms(100)), 0.0);
    }

    #[test]
    fn traces_repeat() {
        let trace = CapacityTrace::new(vec![0, 3, 3, 10]);
        let capacity = CapacityCurve::new(CapacitySpec::Trace(Arc::new(trace)));
        let count = |from, to| capacity.bytes(from, to) / CapacityTrace::BYTES as f64;
        assert_eq!(count(ms(0), Instant::from_nanos(2_999_999)), 0.0);
        assert_eq!(count(ms(0), ms(3)), 2.0);
        assert_eq!(count(ms(3), ms(9)), 0.0);
        // The last opportunity of one round and the first of the next come together.
        assert_eq!(count(ms(9), ms(10)), 2.0);
        assert_eq!(count(ms(0), ms(1000)), 400.0);
        let empty = CapacityCurve::new(CapacitySpec::Trace(Arc::new(CapacityTrace::new(vec![]))));
        assert_eq!(empty.bytes(ms(0), ms(10)), 0.0);
    }
}
