//! What a bottleneck could carry.

use anabranch_network::{CapacitySpec, CapacityTrace, Change};
use anabranch_units::{Direction, Instant};

/// Bytes that one opportunity of a recorded trace carries.
const OPPORTUNITY: u64 = 1500;

/// The capacity of one bottleneck over time, changes of rate included.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// From each time on, until the next; the first begins the run.
    pieces: Vec<(Instant, CapacitySpec)>,
}

impl Capacity {
    /// The same from beginning to end.
    pub fn new(spec: CapacitySpec) -> Self {
        Self { pieces: vec![(Instant::ZERO, spec)] }
    }

    /// From `at` on the capacity is `spec`; calls come in order of time.
    pub fn change(&mut self, at: Instant, spec: CapacitySpec) {
        self.pieces.push((at, spec));
    }

    /// Bytes that it could carry in `[from, to)`.
    pub fn bytes(&self, from: Instant, to: Instant) -> f64 {
        let ends = self.pieces.iter().skip(1).map(|(at, _)| *at).chain([Instant::MAX]);
        let within = self.pieces.iter().zip(ends).map(|((start, spec), end)| (from.max(*start), to.min(end), spec));
        within.filter(|(from, to, _)| from < to).map(|(from, to, spec)| bytes_of(spec, from, to)).sum()
    }
}

/// The capacities of a network's bottlenecks after the changes of a timeline, in one direction.
pub(crate) fn after_changes(
    spec: &CapacitySpec,
    timeline: &[(Instant, Change)],
    applies: impl Fn(&Change) -> bool,
) -> Capacity {
    let mut capacity = Capacity::new(spec.clone());
    for (at, change) in timeline {
        if let (true, Change::PathRate(_, _, rate) | Change::LinkRate(_, _, rate)) = (applies(change), change) {
            capacity.change(*at, CapacitySpec::Fixed(*rate));
        }
    }
    capacity
}

/// True if `change` sets the rate of path `index`'s own bottleneck in `direction`.
pub(crate) fn is_path_rate(change: &Change, index: usize, direction: Direction) -> bool {
    matches!(change, Change::PathRate(i, d, _) if (*i, *d) == (index, direction))
}

/// True if `change` sets the rate of link `index` in `direction`.
pub(crate) fn is_link_rate(change: &Change, index: usize, direction: Direction) -> bool {
    matches!(change, Change::LinkRate(i, d, _) if (*i, *d) == (index, direction))
}

fn bytes_of(spec: &CapacitySpec, from: Instant, to: Instant) -> f64 {
    match spec {
        CapacitySpec::Fixed(rate) => rate.as_bps() as f64 * to.since(from).as_secs_f64() / 8.0,
        CapacitySpec::Trace(trace) => {
            ((opportunities_before(trace, to) - opportunities_before(trace, from)) * OPPORTUNITY as u128) as f64
        }
    }
}

/// Opportunities of a trace that repeats, at times below `t`.
fn opportunities_before(trace: &CapacityTrace, t: Instant) -> u128 {
    let Some(period) = trace.opportunities.last().copied().filter(|period| *period > 0) else { return 0 };
    // Those at whole milliseconds up to and including the last one that is below t.
    let Some(last) = t.as_nanos().checked_sub(1) else { return 0 };
    let ms = last / 1_000_000;
    let in_period = trace.opportunities.partition_point(|at| *at <= ms % period);
    (ms / period) as u128 * trace.opportunities.len() as u128 + in_period as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;
    use std::sync::Arc;

    const fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn rates_change() {
        let mut capacity = Capacity::new(CapacitySpec::Fixed(Rate::from_bps(8_000_000)));
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
        let trace = CapacityTrace { opportunities: vec![0, 3, 3, 10] };
        let capacity = Capacity::new(CapacitySpec::Trace(Arc::new(trace)));
        let count = |from, to| capacity.bytes(from, to) / 1500.0;
        assert_eq!(count(ms(0), ms(3)), 1.0);
        assert_eq!(count(ms(0), Instant::from_nanos(3_000_001)), 3.0);
        assert_eq!(count(ms(3), ms(4)), 2.0);
        // The last opportunity of one round and the first of the next come together.
        assert_eq!(count(ms(10), ms(11)), 2.0);
        assert_eq!(count(ms(0), ms(1000)), 400.0 - 1.0);
        let empty = Capacity::new(CapacitySpec::Trace(Arc::new(CapacityTrace { opportunities: vec![] })));
        assert_eq!(empty.bytes(ms(0), ms(10)), 0.0);
    }
}
